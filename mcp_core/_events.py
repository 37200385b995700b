"""What `Connection.next_event` can say.

Rules of this file:

1. An event is a fact about the past, not an order; a method `send_x` of one side comes out as `XReceived` of the other.
2. Whatever is needed to act on a fact is on it. `peer` tells who asks, in which revision and able to do what; nobody has
   to ask the connection, which may be serving several eras at once.
3. `token` is what the caller gave to `send_request`, handed back untouched, so that a driver needs no table of its own.

Events are plain Structs: they compare by value and cost less than a dictionary.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Raw, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._dialects import Dialect
    from ._errors import McpTrioError, ProtocolError
    from ._methods import Method
    from .types import (
        ClientCapabilities,
        Implementation,
        LoggingLevel,
        RequestId,
        ServerCapabilities,
    )

__all__ = [
    "NEED_DATA",
    "PAUSED",
    "ChangesMissed",
    "ConnectionClosed",
    "ErrorReceived",
    "Event",
    "Granted",
    "InputRequested",
    "MessageRejected",
    "NeedData",
    "NotificationReceived",
    "Paused",
    "Peer",
    "PeerReady",
    "ProgressReceived",
    "RequestCancelled",
    "RequestReceived",
    "ResultReceived",
]


class NeedData(enum.Enum):
    """The type of `NEED_DATA`."""

    NEED_DATA = "NEED_DATA"

    def __repr__(self) -> str:
        return self.value


class Paused(enum.Enum):
    """The type of `PAUSED`."""

    PAUSED = "PAUSED"

    def __repr__(self) -> str:
        return self.value


NEED_DATA: Final = NeedData.NEED_DATA  # nothing more to say until something arrives
PAUSED: Final = Paused.PAUSED  # there may be more, but the peer has to wait: stop reading


class Peer(Struct, frozen=True, gc=False):
    """Who is at the other end: a handshake remembers it, a stateless request carries it.

    `info` is for display and logs only; it decides nothing (2026-07-28, basic/index). `log_level` is the least severe
    level that this peer wants to hear, None if it did not say.
    """

    dialect: Dialect
    capabilities: ClientCapabilities | ServerCapabilities
    info: Implementation | None = None
    log_level: LoggingLevel | None = None
    instructions: str | None = None


class PeerReady(Struct, gc=False):
    """The opening is complete: a client may send requests; a server has seen the handshake's end."""

    peer: Peer


class Granted(Protocol):
    """Who asks, as authenticated, and what that one may do; `mcp_core.auth.Grant` is one."""

    @property
    def principal(self) -> str: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def scopes(self) -> frozenset[str]: ...
    @property
    def claims(self) -> Mapping[str, Any]: ...
    @property
    def good_until(self) -> float | None: ...


class RequestReceived(Struct, gc=False):
    """The peer asks. End it with exactly one `send_result` or `send_error`, also if it is cancelled meanwhile.

    `params` is an object of `method.params`; `raw` the same undecoded, with members that the type does not know.
    `related` is the request of ours on whose stream it came, where the transport tells, and `grant` by what it was let in.
    """

    id: RequestId
    method: Method
    params: Any
    peer: Peer
    raw: Raw | bytes
    related: RequestId | None = None
    grant: Granted | None = None


class NotificationReceived(Struct, gc=False):
    """The peer tells something that the connection does not deal with by itself. `peer` is None before a handshake."""

    method: Method
    params: Any
    peer: Peer | None
    related: RequestId | None = None


class RequestCancelled(Struct, gc=False):
    """The peer no longer wants the answer to request `id`: stop working on it. What is still sent for it is dropped."""

    id: RequestId
    reason: str | None = None


class ResultReceived(Struct, gc=False):
    """The answer to our request `id`: an object of the method's result type (a dict for a method that MCP does not define)."""

    id: RequestId
    result: Any
    token: Any


class ErrorReceived(Struct, gc=False):
    """Our request `id` failed. `error` is the exception to raise: `PeerError` for the peer's word, or a
    `RemoteProtocolError` if it answered with something that cannot be an answer."""

    id: RequestId
    error: McpTrioError
    token: Any


class ProgressReceived(Struct, gc=False):
    """The peer works on our request `id`. `progress` grows from one event to the next; `total` is its expected end."""

    id: RequestId
    progress: float
    total: float | None
    message: str | None
    token: Any


class InputRequested(Struct, gc=False):
    """Instead of a result the server needs answers first (2026-07-28, basic/patterns/mrtr). The request `id` is over.

    Ask again: same method and params, `inputResponses` with the keys of `requests` and, if it is not None, `state`
    exactly as it came.
    """

    id: RequestId
    requests: dict[str, Any] | None
    state: str | None
    token: Any


class ChangesMissed(Struct, gc=False):
    """What carries the conversation was away for a moment, and nobody kept what the server said of changes meanwhile."""


class MessageRejected(Struct, gc=False):
    """The peer sent something that is no legal message. If it has to be answered the answer is already queued."""

    error: ProtocolError
    id: RequestId | None = None


class ConnectionClosed(Struct, gc=False):
    """Nothing more will arrive. `lost` holds the token of every request of ours that will have no answer; `error` says
    why the connection ended, None if it was asked to."""

    lost: list[Any]
    error: McpTrioError | None = None


Event = (
    PeerReady
    | RequestReceived
    | NotificationReceived
    | RequestCancelled
    | ResultReceived
    | ErrorReceived
    | ProgressReceived
    | InputRequested
    | ChangesMissed
    | MessageRejected
    | ConnectionClosed
)
