"""The common part of both client transports over HTTP: one POST per message, each with an outcome.

1. Each message is a request of its own, so messages may overtake each other. Where the order
   matters, later messages are held until the server has responded to the first: all messages behind
   `initialized`, and requests behind `logging/setLevel`. A timeout ends the wait.
2. Each client request ends: with its response, or with an error that says what HTTP did instead.
3. No caller awaits a notification or a response to the server. If it doesn't accept one in time,
   that is reported as an event, and nothing else happens.

Sessions and event streams are in `_streamable.py` and `_sse_transport.py`.
"""

from __future__ import annotations

import abc
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from mcp_core._errors import ProtocolError, RemoteProtocolError
from mcp_core._secret_patterns import is_secret_name
from mcp_core._version import __version__
from mcp_core.http.wire._messages import RequestHead, header
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.messages._events import (
    NEED_DATA,
    PAUSED,
    ErrorReceived,
    InputProblem,
    MessageRejected,
    ResultReceived,
)
from mcp_core.protocol.messages._incoming import MessageContext
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.protocol.revisions._methods import Step

from ._operation import (
    GATE_TIMEOUT,
    STEPS,
    Failed,
    MessagePost,
    PlainOutcome,
    ResponseBody,
    Wait,
    caller_headers,
    operation_name,
)
from ._options import HttpCall
from ._response import MAX_ERROR_BODY, has_token
from ._response_queue import ResponseQueue

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError
    from mcp_core.http.wire._messages import Head, Headers
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.jsonrpc._body import ParsedBody
    from mcp_core.protocol.messages._events import Event
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.types import RequestId
    from mcp_core.urls._url import Url

    from ._operation import HttpOperation, Outcomes
    from ._options import HttpClientOptions

__all__ = ["ClientState", "DeadlineOwner", "Transport", "UnreadInput"]

_SET_LEVEL: Final = "logging/setLevel"
# Seconds that a server has to end a response after its result. If it does, the connection is
# reused.
_LINGER_TIMEOUT: Final = 5.0


class UnreadInput:
    """The chunks that arrived on an event stream while it was paused, and perhaps its end."""

    __slots__ = ("chunks", "ended", "error")

    def __init__(self) -> None:
        self.chunks: deque[bytes] = deque()
        self.ended = False
        self.error: str | None = None


class DeadlineOwner(Protocol):
    """A transport or its `ResponseQueue`, which may have a deadline, as an operation may."""

    def on_deadline(self, now: float) -> None:
        """Act on the deadline that was set with `ClientState.set_deadline`."""


class ClientState:
    """The connection, settings and tables that an `HttpClient` shares with its transports.

    Args:
        conn: the connection.
        url: the server's URL.
        options: the client's options.

    Attributes:
        message_limit: the maximum size of a server message, in bytes.
        transport: sends the messages.
        events: events for the driver, in order. The connection has no earlier ones.
        calls: the calls that the driver has not taken yet.
        drops: the keys of calls that the driver has to abort.
        operations: by the key of its call, each operation.
        unsent: by our request's id, the operation whose call will send it and hasn't begun to.
        deadlines: when to call `on_deadline` of each key.
        unread: by the key of its call, input of a stream that is paused. Drivers stop reading, but
            something may be on its way.
        authorizing: operations whose timeout is stopped, because authorization for their call is
            in progress.
    """

    transport: Transport

    def __init__(self, conn: Connection, url: Url, options: HttpClientOptions) -> None:
        self.conn = conn
        self.url = url
        self.options = options
        self.message_limit = conn.config.limits.message
        self.events: deque[Event] = deque()
        self.calls: list[HttpCall] = []
        self.drops: list[int] = []
        self.operations: dict[int, HttpOperation] = {}
        self.unsent: dict[RequestId, HttpOperation] = {}
        self.deadlines: dict[HttpOperation | DeadlineOwner, float] = {}
        self.unread: dict[int, UnreadInput] = {}
        self.authorizing: set[HttpOperation] = set()
        self._last_key = 0
        self._has_redirected = False
        configured = {name.lower(): value for name, value in options.headers.items()}
        configured.setdefault("user-agent", f"mcp-trio/{__version__}")
        # The first headers of each call: HTTP's own, then the configured ones.
        self._first_headers: Headers = [
            (b"host", url.authority),
            (b"accept-encoding", b"identity"),
            *(
                (name.encode("ascii"), value.encode("latin-1"))
                for name, value in configured.items()
            ),
        ]
        # As `HttpOperation.sent_token`, of calls without headers of their own.
        self._sends_token: bool | None = has_token(self._first_headers)
        if not self._sends_token and options.authorizer is not None:
            self._sends_token = None

    def __repr__(self) -> str:
        return f"<ClientState: {len(self.operations)} calls, {len(self.deadlines)} deadlines>"

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
        """Queue a call for the driver.

        Args:
            operation: gets the response.
            method: the HTTP method.
            target: the request's target.
            headers: headers of the protocol.
            out: the message in its body, None for no body. Headers that the caller of its method
                gave replace configured ones of the same name.
            idempotent: as for `HttpCall`, like the two that follow.
            long_lived: its response may never end.
            brief: the server responds without waiting for anything.
        """
        self._last_key += 1
        key = self._last_key
        operation.key = key
        self.operations[key] = operation
        first = self._first_headers
        operation.sent_token = self._sends_token
        if out is not None and out.headers:
            call_headers = caller_headers(out)
            operation.sent_token = has_token(call_headers) or self._sends_token
            replaced = {name for name, _ in call_headers}
            first = [header for header in first if header[0] not in replaced]
            first += call_headers
        head = RequestHead(method, target, first + headers)
        authorizer = self.options.authorizer
        attempt = None
        if authorizer is not None:
            attempt = authorizer.attempt("" if out is None else operation_name(out))
        body = b"" if out is None else out.data
        if body and operation.id is not None:
            self.unsent[operation.id] = operation
        call = HttpCall(key, head, body, idempotent, long_lived, brief, attempt)
        operation.call = call
        self.calls.append(call)

    def url_of(self, operation: HttpOperation) -> Url:
        """Return the URL of `operation`'s last call, after redirects."""
        assert operation.call is not None
        return self.url.at(operation.call.head.target)

    def redirect(self, operation: HttpOperation, head: Head) -> bool:
        """Make the last call of `operation` again at the URL to which `head` redirects it.

        Return False if it isn't followed; the operation then has the reason.
        """
        from ._redirects import redirect_target  # on first use

        call = operation.call
        assert call is not None
        if operation.id is not None and not self.conn.has_outgoing(operation.id):
            return False  # it was cancelled meanwhile, and must not begin elsewhere
        attempt = call.attempt
        redirected = (*call.redirected, self.url_of(operation))
        has_secret = any(is_secret_name(name.decode("latin-1")) for name, _ in call.head.headers)
        target = redirect_target(
            redirected,
            head,
            has_credential=has_secret or attempt is not None,
            # The resource of a token says nothing about a key in another header.
            covers=None if has_secret or attempt is None else attempt.covers,
        )
        if isinstance(target, str):
            operation.redirect_problem = target
            return False
        is_configured = redirected[-1].target == self.url.target
        if is_configured and not self._has_redirected and self.conn.state is not State.CLOSED:
            self._has_redirected = True
            problem = (
                f"the server redirects requests from {redirected[-1]} to {target}: connect to that"
                " URL, so that each takes one request instead of two"
            )
            self.events.append(InputProblem(problem))
        self._last_key += 1
        del self.operations[call.key]
        if not _ends_soon(head):
            self.drops.append(call.key)
        operation.key = self._last_key
        self.operations[operation.key] = operation
        if call.body and operation.id is not None:
            self.unsent[operation.id] = operation
        operation.call = replace(
            call,
            key=operation.key,
            head=RequestHead(call.head.method, target.target, call.head.headers),
            redirected=redirected,
        )
        self.calls.append(operation.call)
        return True

    def drop_unsent(self, id: RequestId) -> bool:
        """Drop the call that will send our request `id`. Return False if it was sent already."""
        operation = self.unsent.get(id)
        if operation is None:
            return False
        self.drop(operation)
        return True

    def drop(self, operation: HttpOperation) -> None:
        """Detach `operation`, and have the driver end its connection or stream."""
        for call in self.calls:
            if call.key == operation.key:
                self.calls.remove(call)  # the driver hasn't taken it
                break
        else:
            if operation.key:
                self.drops.append(operation.key)
        self.forget(operation)

    def forget(self, operation: HttpOperation) -> None:
        """Detach `operation`: its response is ignored, but the driver lets it end."""
        self.deadlines.pop(operation, None)
        self.operations.pop(operation.key, None)
        self.unread.pop(operation.key, None)
        self.authorizing.discard(operation)
        if operation.id is not None:
            self.unsent.pop(operation.id, None)
        operation.key = 0

    def is_authorizing(self, operation: HttpOperation) -> bool:
        """Return True if an authorization flow runs for the call of `operation`."""
        return operation in self.authorizing

    def set_deadline(self, owner: HttpOperation | DeadlineOwner, when: float | None) -> None:
        """Set `when` to call `owner.on_deadline`, on the clock of `now`, or remove it (None)."""
        if when is None:
            self.deadlines.pop(owner, None)
        else:
            self.deadlines[owner] = when

    def linger(self, operation: HttpOperation, now: float) -> None:
        """Drop `operation` unless its response ends within some seconds of the first such call.

        A call that is paused for authorization is dropped at once: the server hasn't processed it.
        """
        if operation in self.authorizing:
            self.drop(operation)
        else:
            self.deadlines.setdefault(operation, now + _LINGER_TIMEOUT)

    def receive(
        self,
        data: bytes,
        now: float,
        id: RequestId | None,
        status: int | None,
        body: ParsedBody | None = None,
    ) -> list[RequestId]:
        """Pass `data`, a server message, to the connection.

        `id` is our request on whose stream it came, `status` the response's; None for none. `body`
        is `data`, parsed; None if that wasn't done yet. Return the ids of our requests that it has
        answered.
        """
        if self.options.on_message is not None:
            self.options.on_message(data)
        context = MessageContext(id, None, status)
        if body is None:
            self.conn.receive_message(data, now, context)
        else:
            self.conn.receive_parsed(body, now, context)
        return self._queue_events()

    def message_failed(self, out: Outgoing, error: McpTrioError, now: float, status: int) -> None:
        """End the request `out` with `error`, or report another message's error.

        `status` is the response's, 0 without one.
        """
        if out.kind is MessageKind.REQUEST:
            assert out.id is not None
            self.conn.receive_failure(out.id, error, now, status=status)
            self._queue_events()
        else:
            self.report_error(error)

    def report_error(self, error: McpTrioError) -> None:
        """Emit an event for `error`, which ends no request."""
        problem = error if isinstance(error, ProtocolError) else RemoteProtocolError(str(error))
        self.events.append(MessageRejected(problem))

    def _queue_events(self) -> list[RequestId]:
        """Queue all the connection's events. Return the ids of our requests that have ended."""
        answered = []
        while (event := self.conn.next_event()) is not NEED_DATA and event is not PAUSED:
            self.events.append(event)
            if type(event) is ResultReceived or type(event) is ErrorReceived:
                answered.append(event.id)
        return answered


def _ends_soon(head: Head) -> bool:
    """Return True if the body is short, so that reading it is cheaper than a new connection."""
    length = header(head, b"content-length") or b""
    return length.isdigit() and len(length) < 9 and int(length) <= MAX_ERROR_BODY


class Transport(abc.ABC):
    """A way to send messages to the server, and to receive its messages.

    `holds` is True while some messages have to wait for another one. Only then, or while
    `responses.active`, `send_waiting` may have something to do.
    """

    def __init__(self, state: ClientState) -> None:
        self.state = state
        self.holds = False
        self._held: list[Outgoing] = []
        self._gate: HttpOperation | None = None  # the operation that held messages wait for
        self.responses = ResponseQueue(state)

    @abc.abstractmethod
    def post(self, out: Outgoing, now: float) -> MessagePost | None:
        """Send a message at once: queue its call. Return None if it cannot be sent."""

    @abc.abstractmethod
    def cancel(self, out: Outgoing, now: float) -> None:
        """Send a request's cancellation, or do what replaces it."""

    def act(self, operation: HttpOperation, outcomes: Outcomes, now: float) -> None:
        """Act on what `operation` makes of its response, in order."""
        assert isinstance(operation, MessagePost)
        state = self.state
        for outcome in outcomes:
            if isinstance(outcome, ResponseBody):
                self._receive_body(operation, outcome, now)
            elif isinstance(outcome, Failed):
                state.drop(operation)
                state.message_failed(operation.out, outcome.error, now, outcome.status)
            elif isinstance(outcome, Wait):
                state.set_deadline(operation, outcome.until)
            else:
                assert outcome is PlainOutcome.ABANDON
                state.drop(operation)

    def _receive_body(self, post: MessagePost, body: ResponseBody, now: float) -> None:
        """Pass the body of a response to the connection. Fail a request that it doesn't answer."""
        id = post.id
        response = post.response
        assert id is not None
        assert response is not None
        state = self.state
        answered = state.receive(body.data, now, id, response.status, body.parsed)
        for other in answered:
            if other != id:
                self.request_answered(other, now)
        # A batch may lack the response, and a response with the wrong shape is rejected.
        if id not in answered and state.conn.has_outgoing(id):
            missing = post.invalid_response_error(
                "the body does not contain the response to the request"
            )
            state.message_failed(post.out, missing, now, response.status)

    def request_answered(self, id: RequestId, now: float) -> None:  # noqa: B027 - optional
        """Note that our request `id` has its response, on whichever stream that arrived."""

    def close(self, now: float) -> None:
        """End all operations, and send the server what it must know of the end."""
        self._held.clear()
        first = self.responses.first
        if first is not None and not self._must_hold(first):
            self._send_responses(now, hold=False)
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
            self._send_responses(now, hold=first is not None and self._must_hold(first))

    def _send_responses(self, now: float, *, hold: bool) -> None:
        """Post the responses whose turn it is. With `hold` post none, but check the limits."""
        responses = self.responses
        progress = responses.discard_ended()
        while not hold and (out := responses.next_response()) is not None:
            post = self.post(out, now)
            if post is not None:
                responses.posts.append(post)
        responses.check_limits(now, progress=progress)

    def _check_gate(self, gate: HttpOperation, now: float) -> None:
        """Send the held messages if `gate`, the operation that they wait for, was answered."""
        if gate.id is None:
            answered = gate.response is not None or not gate.key
        else:
            # Response headers prove nothing to a request: many servers open the event stream before
            # they parse the body. Wait for the result.
            answered = not self.state.conn.has_outgoing(gate.id)
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
        self.state.set_deadline(self, None if operation is None else now + seconds)

    def _send_held(self, now: float) -> None:
        """Send the held messages, up to one that later ones have to wait for in turn."""
        self._set_gate(None, now)
        held = self._held
        self._held = []
        for out in held:
            self.send(out, now)
