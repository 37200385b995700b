"""An HTTP request of a client: it returns what follows from its response as outcomes.

An operation reads the connection and the options, and changes nothing but itself. The transport
acts on its outcomes, in order (`Transport.act`): it passes messages on, fails requests, sets
deadlines and makes further calls.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Struct

from mcp_core._errors import ConnectionLost, Fault, McpTrioError, RemoteProtocolError
from mcp_core.http.wire._media_types import EVENT_STREAM
from mcp_core.http.wire._messages import Head
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.jsonrpc._body import ParsedBody
from mcp_core.protocol.jsonrpc._codec import BadMessage, decode, encode_error
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.protocol.revisions._methods import METHODS, Step

from ._response import DENIED_STATUS, Response, error_for_status

if TYPE_CHECKING:
    from mcp_core.http.wire._messages import Headers
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.types import RequestId

    from ._options import HttpCall

__all__ = [
    "ACCEPT_EVENT_STREAM",
    "GATE_TIMEOUT",
    "LONG_LIVED",
    "NOTHING",
    "REPEATABLE",
    "STEPS",
    "Accepted",
    "EndpointEvent",
    "Failed",
    "HttpOperation",
    "LegacyServer",
    "MessagePost",
    "Messages",
    "Outcome",
    "Outcomes",
    "PlainOutcome",
    "ResponseBody",
    "SessionRejected",
    "Wait",
    "caller_headers",
    "handshake_step",
    "is_long_lived",
    "may_repeat",
    "operation_name",
]

ACCEPT_EVENT_STREAM: Final = (b"accept", EVENT_STREAM)

STEPS: Final = {row.name: row.step for row in METHODS}
REPEATABLE: Final = frozenset(row.name for row in METHODS if not row.non_idempotent)
LONG_LIVED: Final = frozenset(row.name for row in METHODS if row.long_lived)
# Seconds that messages are held behind another one. A server that needs longer is at fault already.
GATE_TIMEOUT: Final = 10.0
# Seconds for the response to a POST without a request in it. For a request, its caller decides.
_RESPONSE_TIMEOUT: Final = 30.0


def may_repeat(out: Outgoing) -> bool:
    """Return True if a message may be sent again without knowing whether it arrived.

    Custom methods may do anything, so they are never repeated.
    """
    return out.kind is MessageKind.RESPONSE or out.method in REPEATABLE


def is_long_lived(out: Outgoing) -> bool:
    """Return True if the response to a message stays open for as long as both sides like."""
    return out.method in LONG_LIVED


def caller_headers(out: Outgoing) -> Headers:
    """Return the headers that the method's caller set."""
    return [
        (name.lower().encode(), value.encode("latin-1"))
        for name, value in (out.headers or {}).items()
    ]


def operation_name(out: Outgoing) -> str:
    """Return a message's method, and the name of its tool, prompt or resource."""
    return f"{out.method} {_target_name(out.params)}".rstrip()


def _target_name(params: object) -> str:
    for name in ("name", "uri"):
        value = params.get(name) if isinstance(params, dict) else getattr(params, name, None)
        if isinstance(value, str):
            return value
    return ""


def handshake_step(out: Outgoing) -> Step | None:
    """Return the handshake step that a message takes."""
    return STEPS.get(out.method)


class Messages(Struct):
    """Server messages arrived on the operation's event stream."""

    messages: list[bytes]


class ResponseBody(Struct):
    """A complete body, in which the response to our request must be."""

    data: bytes
    # `data`, parsed; None if that wasn't done yet.
    parsed: ParsedBody | None = None


class Failed(Struct):
    """The operation failed, and so did the message in it. What still arrives is ignored."""

    error: McpTrioError
    # Of the response, 0 without one.
    status: int = 0


class Wait(Struct):
    """`on_deadline` is to be called at `until`, on the clock of `now`."""

    until: float


class Accepted(Struct):
    """The server accepted the handshake, or a message in a session. `head` is its response's."""

    head: Head


class LegacyServer(Struct):
    """The server rejected the handshake as one of 2024-11-05 does, with `response`."""

    response: Response


class SessionRejected(Struct):
    """The server rejected a request of a session without saying why in a reliable way.

    It may have lost the session. `otherwise` has the outcomes if it hasn't.
    """

    otherwise: Outcomes


class EndpointEvent(Struct):
    """The event `endpoint` of HTTP+SSE arrived. Its data is a URL, relative to the stream's."""

    reference: bytes


class PlainOutcome(Enum):
    """An outcome without data."""

    # The request has its response; nothing more is expected.
    ANSWERED = auto()
    # The rest of the response isn't wanted.
    ABANDON = auto()
    # The server doesn't know the session that the operation named.
    SESSION_LOST = auto()
    # The event stream of a POST ended before the response, and can be resumed.
    RESUME = auto()
    # It is time to connect the event stream again.
    RECONNECT = auto()
    # Notifications may have been lost between two connections of the stream.
    MISSED_CHANGES = auto()
    # The server offers no standalone stream.
    NO_STREAM = auto()


Outcome = (
    Messages
    | ResponseBody
    | Failed
    | Wait
    | Accepted
    | LegacyServer
    | SessionRejected
    | EndpointEvent
    | PlainOutcome
)
Outcomes = Sequence[Outcome]
NOTHING: Final[Outcomes] = ()


class HttpOperation(abc.ABC):
    """An HTTP request, and what is done with its response.

    `HttpClient` calls the methods below until the operation is dropped. Each returns outcomes.

    `key` is the key of its call while that is in progress, else 0. `id` is the id of our JSON-RPC
    request whose response it carries, if there is one. `response` is the response to the last call,
    None until its head has arrived. `sent_token` is True if the user gave it a token to send, None
    if only an authorizer may have done so. `call` is its last call. `redirect_problem` says why the
    response, a redirect, wasn't followed.
    """

    key = 0
    id: RequestId | None = None
    response: Response | None = None
    sent_token: bool | None = None
    call: HttpCall | None = None
    redirect_problem = ""

    @abc.abstractmethod
    def response_started(self, head: Head, now: float) -> Outcomes:
        """Process the response's head."""

    @abc.abstractmethod
    def response_data(self, data: bytes, now: float) -> Outcomes:
        """Process a chunk of the response's body."""

    @abc.abstractmethod
    def response_ended(self, error: str | None, now: float) -> Outcomes:
        """Process the response's end. With an `error` it broke, or no connection was made."""

    def status_error(self, prefix: str, response: Response) -> McpTrioError:
        """Build the error for a response whose status isn't good. Its text begins with `prefix`."""
        return error_for_status(
            prefix, response, sent_token=self.sent_token, redirect=self.redirect_problem
        )

    @abc.abstractmethod
    def denied(self, error: McpTrioError) -> Outcomes:
        """Fail, because authorization for the call failed."""

    def restart_timeout(self, now: float) -> Outcomes:
        """Start the timeout, or restart it after authorization, during which it was stopped."""
        return NOTHING

    def on_deadline(self, now: float) -> Outcomes:
        """Process the deadline that an outcome `Wait`, or `ClientState.linger`, has set."""
        raise AssertionError("it asked for none")  # pragma: no cover


class MessagePost(HttpOperation):
    """The POST of one message."""

    def __init__(self, conn: Connection, out: Outgoing) -> None:
        self.conn = conn
        self.out = out
        self.id = out.id if out.kind is MessageKind.REQUEST else None

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.out.method or 'a response'}, "
            f"{self.response or 'no response'}>"
        )

    @property
    def error_prefix(self) -> str:
        """The start of an error's text: the method, or "" while connecting."""
        return "" if self._is_opening else f"{self.out.method or 'a response'}: "

    @property
    def _is_opening(self) -> bool:
        opening = handshake_step(self.out) is Step.INITIALIZE or self.conn.state is State.OPENING
        return opening and self.id is not None

    def invalid_response_error(
        self, problem: str, fault: Fault = Fault.INVALID_REQUEST
    ) -> RemoteProtocolError:
        """Build the error for a response that cannot be understood."""
        # While connecting, the usual cause is a URL at which something else is served.
        question = "; is this the URL of an MCP server?" if self._is_opening else ""
        return RemoteProtocolError(f"{self.error_prefix}{problem}{question}", fault)

    def restart_timeout(self, now: float) -> Outcomes:
        return (Wait(now + _RESPONSE_TIMEOUT),) if self.id is None else NOTHING

    def on_deadline(self, now: float) -> Outcomes:
        if self.id is None:
            return self.connection_lost(f"no response within {_RESPONSE_TIMEOUT:g} s")
        # Set by `linger`: the request has its result, but the response did not end.
        return (PlainOutcome.ABANDON,)

    def denied(self, error: McpTrioError) -> Outcomes:
        return (Failed(error, DENIED_STATUS[0]),)

    def connection_lost(self, error: str | None) -> Outcomes:
        """Fail with `ConnectionLost`; without `error`, because the connection was closed."""
        why = error or "the connection was closed"
        return (Failed(ConnectionLost(f"{self.error_prefix}{why}")),)

    def error_response(self, response: Response) -> Outcomes:
        """Process a complete response that has the status of an error.

        A JSON-RPC error in its body is more precise than the status, so it is preferred.
        """
        status = response.status
        answer = (
            None
            if self.id is None or status in DENIED_STATUS
            else _response_in(response.body, self.id)
        )
        if answer is not None:
            return (ResponseBody(answer),)
        return (Failed(self.status_error(self.error_prefix, response), status),)


def _response_in(body: bytes, id: RequestId) -> bytes | None:
    """Return the response to request `id` from the body of an HTTP error, None if it has none."""
    try:
        envelope = decode(body)
    except BadMessage:
        return None
    if envelope.method is not UNSET:
        return None
    if envelope.id == id and type(envelope.id) is type(id):
        return body
    # The body answers one request only, so an error is for that one, also with another id: a server
    # that rejects a request before it has parsed the body doesn't know the id.
    return None if envelope.error is UNSET else encode_error(id, bytes(envelope.error))
