"""The client side of MCP over HTTP, without I/O: it turns messages of a `Connection` into requests.

1. `HttpClient` keeps the tables: which call belongs to which operation, what is to be made or
   dropped, and which deadlines are set. A transport decides how a message is sent: Streamable HTTP
   at first, and HTTP+SSE if the server is of 2024-11-05.
2. What arrives is passed to the connection at once, and the events are queued here. A transport
   can then see, when a response ends, whether the result was in it.
3. Each request of the connection ends, with a result or with an error of the network.
4. While too many responses wait to be sent (`ResponseQueue`), no event stream is read.

Sockets, the connection pool and the revisions aren't known here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from mcp_core._errors import ProtocolError, RemoteProtocolError
from mcp_core._version import __version__
from mcp_core.http.wire._mcp_headers import check_headers
from mcp_core.http.wire._messages import RequestHead
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.messages._events import (
    NEED_DATA,
    PAUSED,
    ChangesMissed,
    ErrorReceived,
    MessageRejected,
    ResultReceived,
)
from mcp_core.protocol.messages._incoming import MessageContext
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.protocol.schema._param_headers import param_headers
from mcp_core.types import ListToolsResult
from mcp_core.urls._url import Url

from ._options import HttpCall, HttpClientOptions, check_cleartext
from ._response import has_token
from ._streamable import StreamableHttpTransport
from ._transport import caller_headers, operation_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core._errors import McpTrioError
    from mcp_core.http.wire._messages import Head, Headers
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.jsonrpc._body import ParsedBody
    from mcp_core.protocol.messages._events import Event, NeedData, Paused
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.protocol.schema._param_headers import ParamHeaders
    from mcp_core.types import RequestId

    from ._transport import DeadlineOwner, HttpOperation, Transport

__all__ = ["HttpClient", "ToolHeaders"]

# Seconds that a server has to end a response after its result. If it does, the connection is
# reused.
_LINGER_TIMEOUT: Final = 5.0

# Tools with mirrored arguments that are remembered. Above it the tools listed first are forgotten,
# and a call of one of them costs one more `tools/list`.
_MAX_TOOLS: Final = 4096
# Characters of the name of such a tool. The specification recommends at most 128.
_MAX_TOOL_NAME: Final = 1024


class _UnreadInput:
    """The chunks that arrived on an event stream while it was paused, and perhaps its end."""

    __slots__ = ("chunks", "ended", "error")

    def __init__(self) -> None:
        self.chunks: deque[bytes] = deque()
        self.ended = False
        self.error: str | None = None


class HttpClient:
    """The client's side of a conversation with the server at `url`, over the connection `conn`.

    After each call of any method, make `calls_to_make()`, abort `calls_to_drop()`, set one timer to
    `next_deadline()`, and take `next_event()` until it returns `NEED_DATA`, as with a `Connection`.
    For each call, report `request_started` before its first byte is sent, `response_started`,
    `response_data` for each chunk, and `response_ended` once; for a dropped call, nothing more. The
    only header that a call lacks is `content-length`. After the end of the connection, calls may
    remain, such as the DELETE of a session, until `idle`. While `is_paused(key)`, read nothing more
    of that response; it may change after each call of a method. `now` is a monotonic time in
    seconds, on one clock for all calls.

    With an authorizer in the options, send the head that `sign` returns, and pass each response
    head to `is_retry_worthwhile`. If it returns True, don't report the response: run the
    authorization flow of the call's `attempt`, and call `pause_timeout` before and after it. Then
    make the call again, or report `denied`.

    Tools that cannot be called because of an invalid `x-mcp-header` are removed from the results of
    `tools/list`. Each is reported by a `MessageRejected` before the result.

    Attributes:
        events: what `next_event` returns before it asks the connection.
        drops: what `calls_to_drop` will return.

    Args:
        conn: a client's connection that isn't open yet.
        url: the URL of the server, `http://` or `https://`.
        options: headers, reconnect policy and authorization.

    Raises:
        ValueError: the URL is invalid (`Url.parse`), or a header would be sent unencrypted
            (`find_cleartext_error`).
    """

    def __init__(
        self, conn: Connection, url: str, options: HttpClientOptions | None = None
    ) -> None:
        self.conn = conn
        self.message_limit = conn.config.limits.message
        self.url = Url.parse(url)
        self.options = options or HttpClientOptions()
        check_cleartext(self.url, self.options.headers, allow=self.options.allow_cleartext)
        conn.check_headers = self._check_headers
        self.tools = ToolHeaders()
        self._transport: Transport = StreamableHttpTransport(self)
        self._last_key = 0
        self._calls: list[HttpCall] = []
        self.drops: list[int] = []
        self._operations: dict[int, HttpOperation] = {}
        # By our request's id: the operation whose call will send it and hasn't begun to.
        self._unsent: dict[RequestId, HttpOperation] = {}
        self._deadlines: dict[DeadlineOwner, float] = {}
        # By the key of the call. Drivers stop reading, but something may be on its way.
        self._unread: dict[int, _UnreadInput] = {}
        # Operations whose timeout is stopped, because authorization for their call is in progress.
        self._paused: set[HttpOperation] = set()
        self.events: deque[Event] = deque()
        self._closed = False
        configured = {name.lower(): value for name, value in self.options.headers.items()}
        configured.setdefault("user-agent", f"mcp-trio/{__version__}")
        # The first headers of each call: HTTP's own, then the configured ones.
        self._first_headers: Headers = [
            (b"host", self.url.authority),
            (b"accept-encoding", b"identity"),
            *(
                (name.encode("ascii"), value.encode("latin-1"))
                for name, value in configured.items()
            ),
        ]
        # As `HttpOperation.sent_token`, of calls without headers of their own.
        self._sends_token: bool | None = has_token(self._first_headers)
        if not self._sends_token and self.options.authorizer is not None:
            self._sends_token = None

    def __repr__(self) -> str:
        return (
            f"<HttpClient of {self.url}: {self.conn!r}, {len(self._operations)} calls,"
            f" {len(self._deadlines)} waiting>"
        )

    @property
    def idle(self) -> bool:
        """True if no call is in progress or queued, and no deadline is set."""
        return not (self._operations or self._deadlines)

    def queued(self, related: RequestId | None = None) -> int:
        """Return the number of bytes in messages that the driver hasn't taken yet.

        `related` is as for `Connection.queued`, and limits what waits in the connection.
        """
        return (
            self.conn.queued(related)
            + self._transport.queued
            + sum(len(call.body) for call in self._calls)
        )

    # -- What to do now ----------------------------------------------------------------------------

    def calls_to_make(self, now: float) -> list[HttpCall]:
        """Return the calls to make now, each in parallel to all others."""
        while True:
            for out in self.conn.messages_to_send():
                self._transport.send(out, now)
            transport = self._transport  # a message may have changed it
            if self.conn.state is not State.CLOSED:
                if transport.holds or transport.responses.active:
                    transport.send_waiting(now)
            elif not self._closed:
                self._closed = True
                transport.close(now)
            if not (self._unread and self._read_more(now)):
                break
        calls = self._calls
        self._calls = []
        return calls

    def calls_to_drop(self) -> list[int]:
        """Return the keys of calls to abort: end their connection (HTTP/1.1) or stream (HTTP/2)."""
        drops = self.drops
        self.drops = []
        return drops

    def is_paused(self, key: int) -> bool:
        """Return True if no more of the response to call `key` may be read at present.

        It is an event stream, and too many responses to the server's requests wait to be sent.
        """
        return self._transport.responses.paused and self._is_event_stream(key)

    def next_event(self) -> Event | NeedData | Paused:
        """Return the next event, as `Connection.next_event` does."""
        event = self.events.popleft() if self.events else self.conn.next_event()
        if type(event) is ResultReceived and type(event.result) is ListToolsResult:
            peer = self.conn.peer
            if peer is not None and peer.dialect.http.mirrored_headers:
                problems = self.tools.learn(event.result)
                if problems:
                    self.events.appendleft(event)
                    self.events.extendleft(MessageRejected(each) for each in reversed(problems[1:]))
                    return MessageRejected(problems[0])
        return event

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, or None, as `Connection.next_deadline` does."""
        deadline = self.conn.next_deadline()
        if not self._deadlines:
            return deadline
        first = min(self._deadlines.values())
        return first if deadline is None else min(first, deadline)

    # -- What arrived ------------------------------------------------------------------------------

    def handle_timeout(self, now: float) -> None:
        """Act on all deadlines up to `now`. A call before the deadline does nothing."""
        self.conn.handle_timeout(now)
        for owner, when in list(self._deadlines.items()):
            # Acting on one deadline may remove another.
            if when <= now and self._deadlines.pop(owner, None) is not None:
                owner.on_deadline(now)

    def request_started(self, key: int) -> None:
        """Note that call `key` is being sent. Call it before the first byte of each attempt.

        Until then, for example while the call waits for a connection or an access token, the
        cancellation of its request drops the call, and the server gets neither.
        """
        operation = self._operations.get(key)
        if operation is not None and operation.id is not None:
            self._unsent.pop(operation.id, None)

    def response_started(self, key: int, head: Head, now: float) -> None:
        """Process `head`, that of the response to call `key`. Header names must be in lower case.

        Leave out informational responses (1xx).
        """
        operation = self._operations.get(key)
        if operation is not None:
            if operation.id is not None:
                self._unsent.pop(operation.id, None)
            operation.response_started(head, now)

    def response_data(self, key: int, data: bytes, now: float) -> None:
        """Process `data`, a chunk of the body of the response to call `key`.

        While the response is paused, it is kept for later.
        """
        if key in self._unread or (self._transport.responses.paused and self._is_event_stream(key)):
            self._unread.setdefault(key, _UnreadInput()).chunks.append(data)
            return
        operation = self._operations.get(key)
        if operation is not None:
            operation.response_data(data, now)

    def response_ended(self, key: int, now: float, *, error: str | None = None) -> None:
        """Process the end of the response to call `key`.

        Args:
            key: the call.
            now: the time.
            error: a short text if no connection was made, or if it broke before the end; None if
                the response is complete.
        """
        unread = self._unread.get(key)
        if unread is not None:
            unread.ended = True
            unread.error = error
            return
        operation = self._operations.get(key)
        if operation is not None:
            self.forget(operation)
            operation.response_ended(error, now)

    def _is_event_stream(self, key: int) -> bool:
        operation = self._operations.get(key)
        response = None if operation is None else operation.response
        return response is not None and response.events is not None

    def _read_more(self, now: float) -> bool:
        """Process one chunk that was kept. Return False if the streams are still paused."""
        if self._transport.responses.paused:
            return False
        key, unread = next(iter(self._unread.items()))
        if unread.chunks:
            operation = self._operations[key]
            operation.response_data(unread.chunks.popleft(), now)
        if not unread.chunks and self._unread.pop(key, None) is not None and unread.ended:
            self.response_ended(key, now, error=unread.error)
        return True

    # -- Authorization -----------------------------------------------------------------------------

    def sign(self, call: HttpCall) -> RequestHead:
        """Return the head of `call` with authorization headers. Call it anew for each attempt."""
        head = call.head
        if call.attempt is None:
            return head
        pairs = call.attempt.headers(head.method.decode(), self._url_of(head))
        auth_headers = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
        replaced = {name for name, _ in auth_headers}
        kept = (each for each in head.headers if each[0] not in replaced)
        return RequestHead(head.method, head.target, [*kept, *auth_headers])

    def is_retry_worthwhile(self, call: HttpCall, head: Head) -> bool:
        """Return True if the server denied `call`, and its authorization flow may help.

        Call it once for each response, with its `head`, before the response is reported.
        """
        if call.attempt is None:
            return False
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers
        ]
        # The attempt sees every response, also one of a call that was dropped.
        worth_retrying = call.attempt.received(head.status, headers, self._url_of(call.head))
        operation = self._operations.get(call.key)
        if operation is None or self.conn.state is State.CLOSED or not worth_retrying:
            return False
        if operation.id is None:
            return True
        if call.body:
            self._unsent[operation.id] = operation  # the server hasn't processed the request
        return self.conn.has_outgoing(operation.id)

    def pause_timeout(self, key: int, now: float | None) -> None:
        """Stop the timeout of call `key` while its authorization flow runs, or restart it.

        Call it with None when the flow begins, and with the time `now` when it has ended. The flow
        may take long, because a user may have to log in.
        """
        operation = self._operations.get(key)
        if operation is not None:
            if self.conn.negotiation is not None:
                self.conn.negotiation.pause_timeout(now)
            if now is None:
                self._paused.add(operation)
                self.set_deadline(operation, None)
            else:
                self._paused.discard(operation)
                operation.restart_timeout(now)

    def denied(self, key: int, error: McpTrioError, now: float) -> None:
        """End call `key`, whose authorization failed with `error`.

        Report this in place of `response_ended`.
        """
        operation = self._operations.get(key)
        if operation is not None:
            self.forget(operation)
            operation.denied(error, now)

    def _url_of(self, head: RequestHead) -> str:
        return f"{self.url.scheme}://{self.url.authority.decode()}{head.target.decode()}"

    # -- For operations and transports, see `OperationHost` ----------------------------------------

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
        self._operations[key] = operation
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
            self._unsent[operation.id] = operation
        self._calls.append(HttpCall(key, head, body, idempotent, long_lived, brief, attempt))

    def drop_unsent(self, id: RequestId) -> bool:
        """Drop the call that will send our request `id`. Return False if it was sent already."""
        operation = self._unsent.get(id)
        if operation is None:
            return False
        self.drop(operation)
        return True

    def drop(self, operation: HttpOperation) -> None:
        """Detach `operation`, and have the driver end its connection or stream."""
        for call in self._calls:
            if call.key == operation.key:
                self._calls.remove(call)  # the driver hasn't taken it
                break
        else:
            if operation.key:
                self.drops.append(operation.key)
        self.forget(operation)

    def forget(self, operation: HttpOperation) -> None:
        """Detach `operation`: its response is ignored, but the driver lets it end."""
        self._deadlines.pop(operation, None)
        self._operations.pop(operation.key, None)
        self._unread.pop(operation.key, None)
        self._paused.discard(operation)
        if operation.id is not None:
            self._unsent.pop(operation.id, None)
        operation.key = 0

    def is_authorizing(self, operation: HttpOperation) -> bool:
        """Return True if an authorization flow runs for the call of `operation`."""
        return operation in self._paused

    def set_deadline(self, owner: DeadlineOwner, when: float | None) -> None:
        """Set `when` to call `owner.on_deadline`, on the clock of `now`, or remove it (None)."""
        if when is None:
            self._deadlines.pop(owner, None)
        else:
            self._deadlines[owner] = when

    def linger(self, operation: HttpOperation, now: float) -> None:
        """Drop `operation` unless its response ends within some seconds of the first such call.

        A call that is paused for authorization is dropped at once: the server hasn't processed it.
        """
        if operation in self._paused:
            self.drop(operation)
        else:
            self._deadlines.setdefault(operation, now + _LINGER_TIMEOUT)

    def receive(
        self,
        data: bytes,
        now: float,
        id: RequestId | None,
        status: int | None,
        body: ParsedBody | None = None,
    ) -> bool:
        """Pass `data`, a message of the server, to the connection.

        `id` is our request on whose stream it came, `status` that of the response; None for none.
        `body` is `data`, parsed; None if that wasn't done yet. Return True if the message was the
        response to request `id`.
        """
        if self.options.on_message is not None:
            self.options.on_message(data)
        context = MessageContext(id, None, status)
        if body is None:
            self.conn.receive_message(data, now, context)
        else:
            self.conn.receive_parsed(body, now, context)
        return self._queue_events(now, id)

    def message_failed(self, out: Outgoing, error: McpTrioError, now: float, status: int) -> None:
        """End the request `out` with `error`, or report another message's error.

        `status` is that of the response, 0 without one.
        """
        if out.kind is MessageKind.REQUEST:
            assert out.id is not None
            self.conn.receive_failure(out.id, error, now, status=status)
            self._queue_events(now)
        else:
            self.report_error(error)

    def report_error(self, error: McpTrioError) -> None:
        """Emit an event for `error`, which ends no request."""
        problem = error if isinstance(error, ProtocolError) else RemoteProtocolError(str(error))
        self.events.append(MessageRejected(problem))

    def report_missed_changes(self) -> None:
        """Emit `ChangesMissed`: notifications of the server may have been lost."""
        self.events.append(ChangesMissed())

    def use_transport(self, transport: Transport) -> None:
        """Send messages through `transport` from now on."""
        self._transport = transport

    def param_headers(self, tool: str) -> ParamHeaders | None:
        """Return which arguments of `tool`, a name, are mirrored into headers, None for none."""
        return self.tools.get(tool)

    def _check_headers(self, headers: Mapping[str, str]) -> None:
        """Check the headers of one call, as `Connection.check_headers` requires."""
        check_headers(headers)
        check_cleartext(self.url, headers, allow=self.options.allow_cleartext)

    def _queue_events(self, now: float, id: RequestId | None = None) -> bool:
        """Queue all events of the connection. Return True if our request `id` has its response.

        The operation of that request acts on it. The transport acts on the response to another one.
        """
        found = False
        while (event := self.conn.next_event()) is not NEED_DATA and event is not PAUSED:
            self.events.append(event)
            if type(event) is ResultReceived or type(event) is ErrorReceived:
                if event.id == id:
                    found = True
                else:
                    self._transport.request_answered(event.id, now)
        return found


class ToolHeaders:
    """The arguments that a client mirrors into headers, for each tool of a server.

    The last `tools/list` counts. If the server has changed a tool since, it rejects the call, and
    the list is requested again (`AbstractClient.call_tool`).
    """

    __slots__ = ("_by_tool",)

    def __init__(self) -> None:
        self._by_tool: dict[str, ParamHeaders] = {}

    def __repr__(self) -> str:
        return f"<ToolHeaders of {len(self._by_tool)} tools>"

    def get(self, tool: str) -> ParamHeaders | None:
        """Return the mirrored arguments of a tool, or None if it has none or wasn't listed."""
        return self._by_tool.get(tool)

    def learn(self, page: ListToolsResult) -> list[RemoteProtocolError]:
        """Learn from a page of `tools/list`, and remove the tools from it that cannot be called.

        Those are the tools with invalid `x-mcp-header` annotations; the others stay (2026-07-28,
        basic/transports/streamable-http, Custom Headers from Tool Parameters).

        Returns:
            An error for each tool that was removed.
        """
        usable = []
        problems = []
        for tool in page.tools:
            self._by_tool.pop(tool.name, None)
            try:
                mirrored = param_headers(tool.input_schema)
                if mirrored and len(tool.name) > _MAX_TOOL_NAME:
                    raise ValueError(f"its name is longer than {_MAX_TOOL_NAME} characters")
            except ValueError as exc:
                name = repr(tool.name[:_MAX_TOOL_NAME])
                problems.append(RemoteProtocolError(f"tool {name} is left out: {exc}"))
                continue
            usable.append(tool)
            if mirrored:
                self._by_tool[tool.name] = mirrored
                if len(self._by_tool) > _MAX_TOOLS:
                    del self._by_tool[next(iter(self._by_tool))]
        if problems:
            page.tools = usable
        return problems
