"""The common part of both client transports over HTTP: one POST per message, each with an outcome.

1. Each message is a request of its own, so messages may overtake each other. Where the order
   matters, later messages are held until the server has responded to the first: all messages behind
   `initialized`, and requests behind `logging/setLevel`. A timeout ends the wait.
2. Each request of the client ends: with its response, or with an error that says what HTTP did
   instead.
3. No caller awaits a notification or a response to the server. If it doesn't accept one in time,
   that is reported as an event, and nothing else happens.

Sessions and event streams are in `_streamable.py` and `_sse_transport.py`.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import UNSET

from mcp_core._errors import ConnectionLost, Fault, RemoteProtocolError
from mcp_core.http.wire._media_types import EVENT_STREAM
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.jsonrpc._codec import BadMessage, decode, encode_error
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.protocol.revisions._methods import METHODS, Step

from ._response import DENIED_STATUS, error_for_status
from ._response_queue import ResponseQueue

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError
    from mcp_core.http.wire._messages import Head, Headers
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.jsonrpc._body import ParsedBody
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.protocol.schema._param_headers import ParamHeaders
    from mcp_core.types import RequestId
    from mcp_core.urls._url import Url

    from ._options import HttpClientOptions
    from ._response import Response

__all__ = [
    "ACCEPT_EVENT_STREAM",
    "GATE_TIMEOUT",
    "LONG_LIVED",
    "REPEATABLE",
    "STEPS",
    "DeadlineOwner",
    "HttpOperation",
    "MessagePost",
    "OperationHost",
    "Transport",
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
_SET_LEVEL: Final = "logging/setLevel"
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
    """Return the headers that the caller of the method set."""
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
    """Return the step of the handshake that a message takes."""
    return STEPS.get(out.method)


class HttpOperation(abc.ABC):
    """An HTTP request, and what is done with its response.

    `HttpClient` calls the methods below until the operation is dropped.

    `key` is the key of its call while that is in progress, else 0. `id` is the id of our JSON-RPC
    request whose response it carries, if there is one. `response` is the response to the last call,
    None until its head has arrived. `sent_token` is True if the user gave it a token to send, None
    if only an authorizer may have done so.
    """

    key = 0
    id: RequestId | None = None
    response: Response | None = None
    sent_token: bool | None = None

    @abc.abstractmethod
    def response_started(self, head: Head, now: float) -> None:
        """Process the response's head."""

    @abc.abstractmethod
    def response_data(self, data: bytes, now: float) -> None:
        """Process a chunk of the response's body."""

    @abc.abstractmethod
    def response_ended(self, error: str | None, now: float) -> None:
        """Process the end of the response. With an `error` it broke, or no connection was made."""

    @abc.abstractmethod
    def denied(self, error: McpTrioError, now: float) -> None:
        """Fail, because authorization for the call failed."""

    def restart_timeout(self, now: float) -> None:  # noqa: B027 - most operations have no timeout of their own
        """Start the timeout, or restart it after authorization, during which it was stopped."""

    def on_deadline(self, now: float) -> None:
        """Act on the deadline that was set with `OperationHost.set_deadline`."""
        raise AssertionError("it asked for none")  # pragma: no cover


class DeadlineOwner(Protocol):
    """An operation, a transport or a part of one, which may have a deadline of its own."""

    def on_deadline(self, now: float) -> None:
        """Act on the deadline that was set with `OperationHost.set_deadline`."""


class OperationHost(Protocol):
    """The client, as far as its operations and transports need it.

    `HttpClient` is the only one. Operations and transports know this protocol and not the class, so
    that no module below `_http_client.py` depends on it.
    """

    @property
    def conn(self) -> Connection: ...
    @property
    def url(self) -> Url: ...
    @property
    def options(self) -> HttpClientOptions: ...

    @property
    def message_limit(self) -> int:
        """The maximum size of a message of the server, in bytes."""

    def make(
        self,
        operation: HttpOperation,
        method: bytes,
        target: bytes,
        headers: Headers,
        out: Outgoing | None = None,
        *,
        idempotent: bool = True,
        long_lived: bool = False,
        brief: bool = False,
    ) -> None:
        """Queue a call for the driver. `operation` gets its response.

        `out` is the message in its body, None for no body. Headers that its method's caller
        has set replace configured headers of the same name. `idempotent`, `long_lived` and `brief`
        are as of `HttpCall`.
        """

    def drop_unsent(self, id: RequestId) -> bool:
        """Drop the call that will send our request `id`. Return False if it was sent already."""

    def drop(self, operation: HttpOperation) -> None:
        """Detach `operation`, and have the driver end its connection or stream."""

    def forget(self, operation: HttpOperation) -> None:
        """Detach `operation`: its response is ignored, but the driver lets it end."""

    def linger(self, operation: HttpOperation, now: float) -> None:
        """Drop `operation` unless its response ends within some seconds of the first such call."""

    def is_authorizing(self, operation: HttpOperation) -> bool:
        """Return True if an authorization flow runs for the call of `operation`."""

    def set_deadline(self, owner: DeadlineOwner, when: float | None) -> None:
        """Set the deadline at which `owner.on_deadline` is called, or remove it (None)."""

    def receive(
        self,
        data: bytes,
        now: float,
        id: RequestId | None,
        status: int | None,
        body: ParsedBody | None = None,
    ) -> bool:
        """Pass a message of the server to the connection.

        `id` is our request on whose stream it came, `status` that of the response. `body` is
        `data`, parsed; None if that wasn't done yet. Return True if the message was the response
        to request `id`.
        """

    def message_failed(self, out: Outgoing, error: McpTrioError, now: float, status: int) -> None:
        """End a request with `error`, or report another message's error.

        `status` is that of the response, 0 without one.
        """

    def report_error(self, error: McpTrioError) -> None:
        """Emit an event for an error that ends no request."""

    def report_missed_changes(self) -> None:
        """Emit `ChangesMissed`: notifications of the server may have been lost."""

    def use_transport(self, transport: Transport) -> None:
        """Send messages through another transport from now on."""

    def param_headers(self, tool: str) -> ParamHeaders | None:
        """Return which arguments of a tool are mirrored into headers; None for no argument."""


class Transport(abc.ABC):
    """A way to send the messages of `client` to its server and to receive those of the server.

    `holds` is True while some messages have to wait for another one. Only then, or while
    `responses.active`, `send_waiting` may have something to do.
    """

    def __init__(self, client: OperationHost) -> None:
        self.client = client
        self.holds = False
        self._held: list[Outgoing] = []
        self._gate: HttpOperation | None = None  # the operation that held messages wait for
        self.responses = ResponseQueue(client, self.post)

    @abc.abstractmethod
    def post(self, out: Outgoing, now: float) -> MessagePost | None:
        """Send a message at once: queue its call. Return None if it cannot be sent."""

    @abc.abstractmethod
    def cancel(self, out: Outgoing, now: float) -> None:
        """Send a request's cancellation, or do what replaces it."""

    def request_answered(self, id: RequestId, now: float) -> None:  # noqa: B027 - optional
        """Note that our request `id` has its response, on whichever stream that arrived."""

    def close(self, now: float) -> None:
        """End all operations, and send the server what it must know of the end."""
        self._held.clear()
        first = self.responses.first
        if first is not None and not self._must_hold(first):
            self.responses.send(now)
        self.responses.clear()
        self._set_gate(None, now)

    @property
    def queued(self) -> int:
        """The number of bytes in held messages and waiting responses."""
        return sum(len(out.data) for out in self._held) + self.responses.size

    def send(self, out: Outgoing, now: float) -> None:
        """Send a message, or hold it until its turn."""
        step = STEPS.get(out.method)
        if out.kind is MessageKind.CANCEL:
            for held in self._held:
                if held.id == out.id and held.kind is MessageKind.REQUEST:
                    self._held.remove(held)
                    return
            self.cancel(out, now)
        elif step is Step.INITIALIZE:
            self.post(out, now)
        elif step is Step.INITIALIZED:
            self._set_gate(self.post(out, now), now)
        elif out.kind is MessageKind.RESPONSE:
            self.responses.add(out)
        elif self.holds and self._must_hold(out):
            self._held.append(out)
        else:
            sent = self.post(out, now)
            if out.method == _SET_LEVEL:
                self._set_gate(sent, now)

    def send_waiting(self, now: float) -> None:
        """Send the held messages and the waiting responses whose turn it is."""
        if self._gate is not None:
            self._check_gate(self._gate, now)
        responses = self.responses
        if responses.active:
            first = responses.first
            responses.send(now, hold=first is not None and self._must_hold(first))

    def _check_gate(self, gate: HttpOperation, now: float) -> None:
        """Send the held messages if `gate`, the operation that they wait for, was answered."""
        if gate.id is None:
            answered = gate.response is not None or not gate.key
        else:
            # Response headers prove nothing to a request: many servers open the event stream before
            # they parse the body. Wait for the result.
            answered = not self.client.conn.has_outgoing(gate.id)
        if answered:
            self._send_held(now)

    def on_deadline(self, now: float) -> None:
        """Send the held messages: the timeout of what they wait for has expired."""
        self._send_held(now)

    def _must_hold(self, out: Outgoing) -> bool:
        # Responses never wait for a client's request: the server may need one before it can answer.
        return self._gate is not None and (self._gate.id is None or out.kind is MessageKind.REQUEST)

    def _set_gate(
        self, operation: HttpOperation | None, now: float, seconds: float = GATE_TIMEOUT
    ) -> None:
        """Hold messages until `operation` has been answered, for at most `seconds`.

        None holds none.
        """
        self._gate = operation
        self.holds = operation is not None
        self.client.set_deadline(self, None if operation is None else now + seconds)

    def _send_held(self, now: float) -> None:
        """Send the held messages, up to one that later ones have to wait for in turn."""
        self._set_gate(None, now)
        held = self._held
        self._held = []
        for out in held:
            self.send(out, now)


class MessagePost(HttpOperation):
    """The POST of one message."""

    def __init__(self, client: OperationHost, out: Outgoing) -> None:
        self.client = client
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
        opening = (
            handshake_step(self.out) is Step.INITIALIZE or self.client.conn.state is State.OPENING
        )
        return opening and self.id is not None

    def invalid_response_error(
        self, problem: str, fault: Fault = Fault.INVALID_REQUEST
    ) -> RemoteProtocolError:
        """Build the error for a response that cannot be understood."""
        # While connecting, the usual cause is a URL at which something else is served.
        question = "; is this the URL of an MCP server?" if self._is_opening else ""
        return RemoteProtocolError(f"{self.error_prefix}{problem}{question}", fault)

    def restart_timeout(self, now: float) -> None:
        if self.id is None:
            self.client.set_deadline(self, now + _RESPONSE_TIMEOUT)

    def on_deadline(self, now: float) -> None:
        if self.id is None:
            self.fail_connection_lost(f"no response within {_RESPONSE_TIMEOUT:g} s", now)
        else:
            # Set by `linger`: the request has its result, but the response did not end.
            self.client.drop(self)

    def fail(self, error: McpTrioError, now: float, status: int = 0) -> None:
        """End the operation with an error. What still arrives is ignored."""
        self.client.drop(self)
        self.client.message_failed(self.out, error, now, status)

    def denied(self, error: McpTrioError, now: float) -> None:
        self.fail(error, now, DENIED_STATUS[0])

    def fail_connection_lost(self, error: str | None, now: float) -> None:
        """End the operation with `ConnectionLost`; without `error`, the connection was closed."""
        self.fail(ConnectionLost(f"{self.error_prefix}{error or 'the connection was closed'}"), now)

    def handle_error_response(self, response: Response, now: float) -> None:
        """End the operation with a complete response that has the status of an error.

        A JSON-RPC error in its body is more precise than the status, so it is preferred.
        """
        status = response.status
        answer = (
            None
            if self.id is None or status in DENIED_STATUS
            else _response_in(response.body, self.id)
        )
        if answer is not None:
            self.client.receive(answer, now, self.id, status)
        else:
            error = error_for_status(self.error_prefix, response, sent_token=self.sent_token)
            self.fail(error, now, status)


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
