"""The events that `Connection.next_event` returns.

1. An event states what has happened. What one side sends with `send_x`, the other side gets as
   `XReceived`.
2. An event has everything that is needed to handle it. Read revision and capabilities from its
   `peer`, not from the connection, which can serve several revisions at once.
3. `token` is the object that was passed to `send_request`, so a driver needs no table of requests.

Events are Structs: they compare by value and cost less than a dict. Those with a token or an error
are known to the garbage collector: a frame in the error's traceback can refer to its event, and
such a circle would never be freed otherwise.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Raw, Struct

from mcp_core._errors import McpTrioError, ProtocolError
from mcp_core.protocol.revisions._dialects import Dialect
from mcp_core.protocol.revisions._methods import Method
from mcp_core.types import (
    ClientCapabilities,
    Implementation,
    LoggingLevel,
    RequestId,
    ServerCapabilities,
    Task,
)

__all__ = [
    "NEED_DATA",
    "PAUSED",
    "ChangesMissed",
    "ConnectionClosed",
    "ErrorReceived",
    "Event",
    "GrantLike",
    "HttpRequestLike",
    "InputProblem",
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
    "TaskCreated",
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


# The `problems` of a result that has its exact type.
NO_PROBLEMS: Final[Mapping[str, str]] = MappingProxyType({})
NEED_DATA: Final = NeedData.NEED_DATA  # no event until more input arrives
PAUSED: Final = Paused.PAUSED  # back-pressure: stop reading from the peer


class Peer(Struct, frozen=True, gc=False):
    """The other end of a connection, as described by a handshake or by a stateless request.

    Attributes:
        dialect: the revision that it speaks.
        capabilities: the capabilities that it declared.
        info: its name and version, for display and logs only (2026-07-28, basic/index).
        log_level: the least severe level of log messages that it requested, None if it did not.
        instructions: how to use the server, for the model (servers only).
    """

    dialect: Dialect
    capabilities: ClientCapabilities | ServerCapabilities
    info: Implementation | None = None
    log_level: LoggingLevel | None = None
    instructions: str | None = None


class PeerReady(Struct, gc=False):
    """The connection is open. A client may send requests; at a server the handshake is complete.

    `peer` is the other end, with the revision that was negotiated.
    """

    peer: Peer


class GrantLike(Protocol):
    """The authenticated sender of a request and its permissions, as in `mcp_core.auth.Grant`."""

    @property
    def principal(self) -> str: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def scopes(self) -> frozenset[str]: ...
    @property
    def claims(self) -> Mapping[str, Any]: ...
    @property
    def valid_until(self) -> float | None: ...


class HttpRequestLike(Protocol):
    """The HTTP request that a message arrived in, as far as handlers may see it."""

    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def client_address(self) -> str: ...


class RequestReceived(Struct, gc=False):
    """A request from the peer.

    Call `send_result` or `send_error` exactly once for it, even if it is cancelled in the meantime.

    Attributes:
        id: its id, for the response.
        method: the row of its method in the peer's revision.
        params: an object of the type `method.params`.
        peer: the sender.
        raw: the params as JSON, including members that the type doesn't have.
        related: our request on whose stream it arrived, None if the transport doesn't tell.
        grant: the sender's authorization, None without authorization.
        http: the HTTP request that it arrived in, a POST or the upgrade to a WebSocket; None on
            other transports.
    """

    id: RequestId
    method: Method
    params: Any
    peer: Peer
    raw: Raw | bytes
    related: RequestId | None = None
    grant: GrantLike | None = None
    http: HttpRequestLike | None = None


class NotificationReceived(Struct, gc=False):
    """A notification from the peer that the connection doesn't process itself.

    Attributes:
        method: its method's row.
        params: an object of the type `method.params`.
        peer: the sender, None if no handshake has identified it.
        related: our request on whose stream it arrived, None if the transport doesn't tell.
    """

    method: Method
    params: Any
    peer: Peer | None
    related: RequestId | None = None


class RequestCancelled(Struct, gc=False):
    """The peer cancelled its request `id`, or the connection ended: stop the handler.

    Call `send_result` or `send_error` for it all the same. The response is dropped. `reason` is the
    peer's text for logs, None if the peer gave no reason (basic/utilities/cancellation).
    """

    id: RequestId
    reason: str | None = None


class ResultReceived(Struct):
    """The result of our request `id`.

    Attributes:
        id: our request.
        result: an object of the method's result type, or a dict for a method that MCP doesn't
            define. It may have an `UnknownContent` in place of a content block.
        token: the object that was passed to `send_request`.
        problems: what was left out of `result` or changed, because it could not be read: a text for
            each kind of place, such as `tools[]`. Mostly empty.
    """

    id: RequestId
    result: Any
    token: Any
    problems: Mapping[str, str] = NO_PROBLEMS


class ErrorReceived(Struct):
    """The failure of our request `id`. `error` is the exception to raise.

    It is a `PeerError` for an error response, a `RemoteProtocolError` for an invalid response, or
    the error that the transport passed to `receive_failure`. `token` is the object that was passed
    to `send_request`.
    """

    id: RequestId
    error: McpTrioError
    token: Any


class ProgressReceived(Struct):
    """Progress of our request `id` at the peer (basic/utilities/progress).

    Attributes:
        id: our request.
        progress: how much is done, in the peer's unit. It increases from event to event.
        total: the expected final value of `progress`, if known.
        message: what the peer is doing, for the user.
        token: the object that was passed to `send_request`.
    """

    id: RequestId
    progress: float
    total: float | None
    message: str | None
    token: Any


class InputRequested(Struct):
    """The server needs input before it can return a result (2026-07-28, basic/patterns/mrtr).

    The request `id` is complete. Send it again with the same method and params, `inputResponses`
    with the keys of `requests` and, unless it is None, `state` unchanged as `requestState`.

    Attributes:
        id: our request.
        requests: the input requests by key, each an object of its type. None if no input is
            asked for, and only `state` is to be sent again.
        state: the request state, opaque to the client.
        token: the object that was passed to `send_request`.
    """

    id: RequestId
    requests: dict[str, Any] | None
    state: str | None
    token: Any


def _nothing(token: object) -> None:
    """Deliver no progress: none was requested, or the revision has none for tasks."""


class TaskCreated(Struct):
    """The peer runs our request `id` as a task (basic/utilities/tasks; since 2025-11-25).

    The request is complete. Its outcome is the task's: send `tasks/get` until that ends.

    Attributes:
        task: the task's state. `task_id` names it.
        meta: the response's `_meta`, None if it has none. The member
            `types.META_IMMEDIATE_RESPONSE` is a text for the model, to read while the task runs.
        token: the request's `token`.
        redirect_progress: call it with another token, which progress of the task then has, or with
            None when no more is wanted. Until 2025-11-25 progress goes on until the task has ended.
    """

    id: RequestId
    task: Task
    meta: dict[str, Any] | None
    token: Any
    redirect_progress: Callable[[object], object] = _nothing


class ChangesMissed(Struct, gc=False):
    """The transport was disconnected for a while, and change notifications may have been lost."""


class MessageRejected(Struct):
    """The peer sent an invalid message. If it needs an error response, that is already queued.

    `error` says what is wrong with it, for logs. `id` is the message's id, None if it has none
    that is usable.
    """

    error: ProtocolError
    id: RequestId | None = None


class InputProblem(Struct):
    """The peer's messages have a fault, and are read in spite of it.

    It is also sent for an error without an id, which could be of any request, for a redirect that
    was followed, and for a result of which a part was left out. Each kind of fault is reported once
    in a connection.

    Attributes:
        problem: what is wrong, for logs.
    """

    problem: str


class ConnectionClosed(Struct):
    """The connection's input has ended.

    `lost` are the tokens of our requests that will get no response. `error` is the reason, None if
    the connection was closed on purpose. Responses to the peer's requests may still be sent while
    the connection's state is CLOSING.
    """

    lost: list[Any]
    error: McpTrioError | None = None


# What `Connection.next_event` returns.
Event = (
    PeerReady
    | RequestReceived
    | NotificationReceived
    | RequestCancelled
    | ResultReceived
    | ErrorReceived
    | ProgressReceived
    | InputRequested
    | TaskCreated
    | ChangesMissed
    | MessageRejected
    | InputProblem
    | ConnectionClosed
)
