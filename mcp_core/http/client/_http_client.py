"""The client side of MCP over HTTP, without I/O: it turns messages of a `Connection` into requests.

1. A transport decides how a message is sent: Streamable HTTP at first, and HTTP+SSE if the server
   is of 2024-11-05. It makes the calls in the tables of `ClientState`, which all parts share.
2. What arrives goes to the operation of its call. An operation calls no other part: it returns
   outcomes, such as "these messages arrived", and the transport acts on them.
3. Each request of the connection ends, with a result or with a network error.
4. A redirect within the origin is followed by another call in the same operation (`_redirects.py`).
5. While too many responses wait to be sent (`ResponseQueue`), no event stream is read.

Sockets, the connection pool and the revisions aren't known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._errors import McpTrioError
from mcp_core.http.wire._mcp_headers import check_headers
from mcp_core.http.wire._messages import Head, RequestHead
from mcp_core.protocol.connection._connection import Connection
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.messages._events import (
    Event,
    MessageRejected,
    NeedData,
    Paused,
    ResultReceived,
)
from mcp_core.types import ListToolsResult, RequestId
from mcp_core.urls._url import Url

from ._operation import HttpOperation
from ._options import HttpCall, HttpClientOptions, check_cleartext
from ._streamable import StreamableHttpTransport, ToolHeaders
from ._transport import ClientState, UnreadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._operation import Outcomes

__all__ = ["HttpClient"]


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
    authorization flow for the call's `attempt`, and call `pause_timeout` before and after it. Then
    make the call again, or report `denied`.

    Tools that cannot be called because of an invalid `x-mcp-header` are removed from the results of
    `tools/list`. Each is reported by a `MessageRejected` before the result.

    Attributes:
        events: what `next_event` returns before it asks the connection.
        drops: what `calls_to_drop` will return.

    Args:
        conn: a client's connection that isn't open yet.
        url: the server's URL, `http://` or `https://`.
        options: headers, reconnect policy and authorization.

    Raises:
        ValueError: the URL is invalid (`Url.parse`), or a header would be sent unencrypted
            (`find_cleartext_error`).
    """

    def __init__(
        self, conn: Connection, url: str, options: HttpClientOptions | None = None
    ) -> None:
        self.conn = conn
        self.url = Url.parse(url)
        self.options = options or HttpClientOptions()
        check_cleartext(self.url, self.options.headers, allow=self.options.allow_cleartext)
        conn.check_headers = self._check_headers
        self.tools = ToolHeaders()
        self._state = ClientState(conn, self.url, self.options)
        self._state.transport = StreamableHttpTransport(self._state, self.tools)
        self.events = self._state.events
        self.drops = self._state.drops
        self._closed = False

    def __repr__(self) -> str:
        return (
            f"<HttpClient of {self.url}: {self.conn!r}, {len(self._state.operations)} calls,"
            f" {len(self._state.deadlines)} waiting>"
        )

    @property
    def idle(self) -> bool:
        """True if no call is in progress or queued, and no deadline is set."""
        return not (self._state.operations or self._state.deadlines)

    def queued(self, related: RequestId | None = None) -> int:
        """Return the number of bytes in messages that the driver hasn't taken yet.

        `related` is as for `Connection.queued`, and limits what waits in the connection.
        """
        return (
            self.conn.queued(related)
            + self._state.transport.queued
            + sum(len(call.body) for call in self._state.calls)
        )

    # -- What to do now ----------------------------------------------------------------------------

    def calls_to_make(self, now: float) -> list[HttpCall]:
        """Return the calls to make now, each in parallel to all others."""
        state = self._state
        while True:
            for out in self.conn.messages_to_send():
                state.transport.send(out, now)
            transport = state.transport  # a message may have changed it
            if self.conn.state is not State.CLOSED:
                if transport.holds or transport.responses.active:
                    transport.send_waiting(now)
            elif not self._closed:
                self._closed = True
                transport.close(now)
            if not (state.unread and self._read_more(now)):
                break
        calls = state.calls
        state.calls = []
        return calls

    def calls_to_drop(self) -> list[int]:
        """Return the keys of calls to abort: end their connection (HTTP/1.1) or stream (HTTP/2)."""
        drops = self.drops.copy()
        self.drops.clear()
        return drops

    def is_paused(self, key: int) -> bool:
        """Return True if no more of the response to call `key` may be read at present.

        It is an event stream, and too many responses to the server's requests wait to be sent.
        """
        return self._state.transport.responses.paused and self._is_event_stream(key)

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
        if not self._state.deadlines:
            return deadline
        first = min(self._state.deadlines.values())
        return first if deadline is None else min(first, deadline)

    # -- What arrived ------------------------------------------------------------------------------

    def handle_timeout(self, now: float) -> None:
        """Act on all deadlines up to `now`. A call before the deadline does nothing."""
        self.conn.handle_timeout(now)
        deadlines = self._state.deadlines
        for owner, when in list(deadlines.items()):
            # Acting on one deadline may remove another.
            if when <= now and deadlines.pop(owner, None) is not None:
                if isinstance(owner, HttpOperation):
                    self._act(owner, owner.on_deadline(now), now)
                else:
                    owner.on_deadline(now)

    def request_started(self, key: int) -> None:
        """Note that call `key` is being sent. Call it before the first byte of each attempt.

        Until then, for example while the call waits for a connection or an access token, the
        cancellation of its request drops the call, and the server gets neither.
        """
        operation = self._state.operations.get(key)
        if operation is not None and operation.id is not None:
            self._state.unsent.pop(operation.id, None)

    def response_started(self, key: int, head: Head, now: float) -> None:
        """Process `head`, which answers call `key`. Header names must be in lower case.

        Leave out informational responses (1xx).
        """
        operation = self._state.operations.get(key)
        if operation is not None:
            if operation.id is not None:
                self._state.unsent.pop(operation.id, None)
            if 300 <= head.status < 400 and self._state.redirect(operation, head):
                return  # the rest of this response is ignored
            outcomes = operation.response_started(head, now)
            if outcomes:
                self._state.transport.act(operation, outcomes, now)

    def response_data(self, key: int, data: bytes, now: float) -> None:
        """Process `data`, a chunk of the body of the response to call `key`.

        While the response is paused, it is kept for later.
        """
        state = self._state
        if key in state.unread or (state.transport.responses.paused and self._is_event_stream(key)):
            state.unread.setdefault(key, UnreadInput()).chunks.append(data)
            return
        operation = self._state.operations.get(key)
        if operation is not None:
            outcomes = operation.response_data(data, now)
            if outcomes:
                self._state.transport.act(operation, outcomes, now)

    def response_ended(self, key: int, now: float, *, error: str | None = None) -> None:
        """Process the end of the response to call `key`.

        Args:
            key: the call.
            now: the time.
            error: a short text if no connection was made, or if it broke before the end; None if
                the response is complete.
        """
        unread = self._state.unread.get(key)
        if unread is not None:
            unread.ended = True
            unread.error = error
            return
        operation = self._state.operations.get(key)
        if operation is not None:
            self._state.forget(operation)
            outcomes = operation.response_ended(error, now)
            if outcomes:
                self._state.transport.act(operation, outcomes, now)

    def _act(self, operation: HttpOperation, outcomes: Outcomes, now: float) -> None:
        """Have the transport act on what an operation makes of its response."""
        if outcomes:
            self._state.transport.act(operation, outcomes, now)

    def _is_event_stream(self, key: int) -> bool:
        operation = self._state.operations.get(key)
        response = None if operation is None else operation.response
        return response is not None and response.events is not None

    def _read_more(self, now: float) -> bool:
        """Process one chunk that was kept. Return False if the streams are still paused."""
        state = self._state
        if state.transport.responses.paused:
            return False
        key, unread = next(iter(state.unread.items()))
        if unread.chunks:
            operation = state.operations[key]
            self._act(operation, operation.response_data(unread.chunks.popleft(), now), now)
        if not unread.chunks and state.unread.pop(key, None) is not None and unread.ended:
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
        operation = self._state.operations.get(call.key)
        if operation is None or self.conn.state is State.CLOSED or not worth_retrying:
            return False
        if operation.id is None:
            return True
        if call.body:
            self._state.unsent[operation.id] = operation  # the server hasn't processed the request
        return self.conn.has_outgoing(operation.id)

    def pause_timeout(self, key: int, now: float | None) -> None:
        """Stop the timeout of call `key` while its authorization flow runs, or restart it.

        Call it with None when the flow begins, and with the time `now` when it has ended. The flow
        may take long, because a user may have to log in.
        """
        operation = self._state.operations.get(key)
        if operation is not None:
            if self.conn.negotiation is not None:
                self.conn.negotiation.pause_timeout(now)
            if now is None:
                self._state.authorizing.add(operation)
                self._state.set_deadline(operation, None)
            else:
                self._state.authorizing.discard(operation)
                self._act(operation, operation.restart_timeout(now), now)

    def denied(self, key: int, error: McpTrioError, now: float) -> None:
        """End call `key`, whose authorization failed with `error`.

        Report this in place of `response_ended`.
        """
        operation = self._state.operations.get(key)
        if operation is not None:
            self._state.forget(operation)
            self._act(operation, operation.denied(error), now)

    def _url_of(self, head: RequestHead) -> str:
        return f"{self.url.scheme}://{self.url.authority.decode()}{head.target.decode()}"

    # -- Details ----------------------------------------------------------------------------------

    def _check_headers(self, headers: Mapping[str, str]) -> None:
        """Check the headers of one call, as `Connection.check_headers` requires."""
        check_headers(headers)
        check_cleartext(self.url, headers, allow=self.options.allow_cleartext)
