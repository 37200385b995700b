"""Error responses to rejected requests and to unparsable messages.

1. The code of a fault is that of the peer's revision for this message. If that is unknown, it is
   that of the connection's revision, or of the newest one in the configuration.
2. If a message may have been a response or a notification, there is no error response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core import types as t
from mcp_core.revisions._methods import Role

from ._admission import Refusal
from ._errors import Fault

if TYPE_CHECKING:
    from mcp_core.jsonrpc._codec import BadMessage
    from mcp_core.revisions._config import Config
    from mcp_core.revisions._dialects import Dialect

__all__ = ["answer_to_bad_message", "answer_to_refused", "too_often"]

_CLIENT = Role.CLIENT


def answer_to_refused(
    refusal: Refusal, config: Config, dialect: Dialect | None
) -> t.ErrorData | None:
    """Build the error response for a rejected request. Return None if none may be sent.

    `dialect` is the revision of the connection, None if it has none.
    """
    if not refusal.answerable:
        return None
    answered_in = refusal.dialect or dialect or config.dialects[0]
    return t.ErrorData(
        code=answered_in.codes[refusal.fault], message=refusal.message, data=refusal.data
    )


def answer_to_bad_message(
    bad: BadMessage, role: Role, config: Config, dialect: Dialect | None
) -> tuple[t.ErrorData, bool] | None:
    """Build the error response for an unparsable message, and whether it has `"id": null`.

    The second value matters only if `bad.id` is None. Return None if no response may be sent: the
    message may itself have been a response. `dialect` is the revision of the connection, None if
    it has none.
    """
    if bad.looks not in ("request", "neither"):
        return None
    # A client does not answer a message without an id, because it may be no request. In a stateless
    # revision a client receives no requests at all.
    if role is _CLIENT and (bad.id is None or dialect is None or not dialect.stateful):
        return None
    code = (dialect or config.dialects[0]).codes[bad.fault]
    # Before a revision is known, the peer may speak any of the configured ones.
    null_id = any(each.null_error_id for each in ((dialect,) if dialect else config.dialects))
    return t.ErrorData(code=code, message=bad.message), null_id


def too_often(wait: float, dialect: Dialect) -> Refusal:
    """Return the rejection of a call that exceeds the rate limit by `wait` seconds."""
    message = f"too many calls in a short time; try again in {wait:.3g} s"
    return Refusal(Fault.BUSY, message, {"retryAfter": wait}, dialect=dialect)
