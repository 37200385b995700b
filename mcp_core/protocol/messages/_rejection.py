"""Error responses to rejected requests and to unparsable messages.

1. A fault's code is the one in the peer's revision for this message. If that is unknown, it is
   the one in the connection's revision, or in the newest one of the configuration.
2. If a message may have been a response or a notification, there is no error response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcp_core import types as t
from mcp_core._errors import Fault
from mcp_core.protocol.jsonrpc._codec import encode_error
from mcp_core.protocol.jsonrpc._unencodable import encode_exactly
from mcp_core.protocol.revisions._capabilities import capability_object
from mcp_core.protocol.revisions._methods import Role

from ._outbox import MessageKind, Outgoing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.protocol.jsonrpc._codec import BadMessage
    from mcp_core.protocol.revisions._config import Config
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.types import RequestId

__all__ = [
    "RequestRejected",
    "error_response",
    "missing_capability",
    "rate_limited",
    "response_to_bad_message",
    "response_to_rejected",
]

_CLIENT = Role.CLIENT


def error_response(id: RequestId | None, error: t.ErrorData, null_id: bool = False) -> Outgoing:
    """Return the error response to the request `id`; see `encode_error` for None.

    Raises:
        UnencodableValue: JSON cannot hold part of the error's data.
    """
    data = encode_error(id, encode_exactly(error), null_id=null_id)
    return Outgoing(data, MessageKind.RESPONSE, id, error=error.code)


def response_to_rejected(
    rejected: RequestRejected, config: Config, dialect: Dialect | None
) -> t.ErrorData | None:
    """Build the error response for a rejected request. Return None if none may be sent.

    `dialect` is the connection's revision, None if it has none.
    """
    if not rejected.may_respond:
        return None
    answered_in = rejected.dialect or dialect or config.dialects[0]
    return t.ErrorData(
        code=answered_in.codes[rejected.fault], message=rejected.message, data=rejected.data
    )


def response_to_bad_message(
    bad: BadMessage, role: Role, config: Config, dialect: Dialect | None
) -> tuple[t.ErrorData, bool] | None:
    """Build the error response for an unparsable message, and whether it has `"id": null`.

    The second value matters only if `bad.id` is None. Return None if no response may be sent: the
    message may itself have been a response. `dialect` is the connection's revision, None if
    it has none.
    """
    if bad.apparent_kind not in ("request", "neither"):
        return None
    if bad.excerpt is not None and bad.excerpt.is_rest:
        return None  # it was answered when its beginning was reported
    # A client doesn't answer a message without an id, because it may be no request. In a stateless
    # revision a client receives no requests at all.
    if role is _CLIENT and (bad.id is None or dialect is None or not dialect.stateful):
        return None
    code = (dialect or config.dialects[0]).codes[bad.fault]
    # Before a revision is known, the peer may speak any of the configured ones.
    null_id = any(each.null_error_id for each in ((dialect,) if dialect else config.dialects))
    return t.ErrorData(code=code, message=bad.message), null_id


def rate_limited(wait: float, dialect: Dialect) -> RequestRejected:
    """Return the rejection of a call above the rate limit, which allows one in `wait` seconds."""
    message = f"too many calls in a short time; try again in {wait:.3g} s"
    return RequestRejected(Fault.BUSY, message, {"retryAfter": wait}, dialect=dialect)


def missing_capability(what: str, path: Sequence[str], dialect: Dialect) -> RequestRejected:
    """Return the rejection of a request for `what`, whose sender lacks the capability at `path`."""
    return RequestRejected(
        Fault.MISSING_CAPABILITY,
        f"{what} needs the client capability {'.'.join(path)}, which was not declared",
        {"requiredCapabilities": capability_object(path)},
        dialect=dialect,
    )


class RequestRejected(Exception):
    """A request that failed a check.

    Attributes:
        fault, message, data: the error response. `data` is `UNSET` for none.
        dialect: the revision that gives the code of `fault`, None if none is known yet.
        may_respond: False if the revision forbids even the error response.
    """

    def __init__(
        self,
        fault: Fault,
        message: str,
        data: Any = UNSET,
        *,
        dialect: Dialect | None = None,
        may_respond: bool = True,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message
        self.data = data
        self.dialect = dialect
        self.may_respond = may_respond
