"""A target that is a URL: each session is a new client, over HTTP/1.1.

1. Heads and bodies are written as bytes here, because a fuzzer sends what no client would.
   Responses are read by h11.
2. A session has at most one exchange for each of its messages, in tasks of the target's nursery.
"""

from __future__ import annotations

import itertools
import json
import socket
from collections import deque
from contextlib import suppress
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Final

import h11
import trio

from mcp_core import ALL, ConnectFailed, escape_text
from mcp_core.drivers import launch_secrets
from mcp_core.http import Body, End, Head, RequestHead, message_headers, param_headers
from mcp_core.trace import ConversationNumbers, HttpChannel, Redactor, TraceLine
from mcp_core.urls import Url, is_local_host
from mcp_trio.http_client._connector import Connector

from ._revisions import META, dialect_of
from ._sent_request import LOST
from ._session import MESSAGE_LIMIT, PART_INTERVAL, TargetSession
from ._shared_trace import new_header
from .play._http_steps import HTTP_STEPS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mcp_core.adapters import Recorder
    from mcp_core.http import Action, ParamHeaders
    from mcp_core.trace import TraceHeader

    from ._sent_request import SentRequest

__all__ = ["HttpSession", "UrlTarget", "is_loopback"]

MAX_EXCHANGE: Final = 64 * 1024 * 1024  # bytes of one response; more is a flood
MAX_HEAD: Final = 64 * 1024
MAX_IDLE: Final = 8  # connections
MAX_STREAMS: Final = 100  # whose first event is remembered
MAX_IDLE_TIME: Final = 1.0  # seconds; servers close them after a while
NOTIFY_TIMEOUT: Final = 5.0  # seconds for the response to a notification
DELETE_TIMEOUT: Final = 1.0
FINISH_TIMEOUT: Final = 1.0
CONNECT_TIMEOUT: Final = 10.0


def is_loopback(url: str) -> bool:
    """Return True if a URL's host is this machine."""
    return is_local_host(Url.parse(url).host)


class _ResponseState:
    """The state of a response that is being read.

    Attributes:
        status: 0 before its head.
        is_complete: it ended as HTTP says.
        has_body: a part of its body has come, and it isn't a stream of events, which may break.
        may_follow: the missing message can come on another stream, or was too large to read.
    """

    def __init__(self) -> None:
        self.status = 0
        self.is_complete = False
        self.has_body = False
        self.is_stream = False
        self.may_follow = False

    def add(self, lines: Iterable[TraceLine]) -> None:
        """Add a part of it to the trace."""
        for line in lines:
            has_id = line.sse is not None and bool(line.sse.id)  # the stream can be resumed
            self.may_follow |= has_id or line.truncated is not None or line.kind == "lost"


class _HttpLine:
    """A connection. It carries one exchange after the other."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.released_at = 0.0
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)

    async def send(
        self,
        head: RequestHead,
        body: bytes,
        interval: float = 0.0,
        parts: Sequence[bytes] = (),
    ) -> None:
        """Send a request at once, or byte by byte, one every `interval` seconds.

        With `parts` these are sent in place of the body, with a pause between them.
        """
        # h11 learns only what it needs to read the response.
        method = head.method if head.method in (b"GET", b"DELETE") else b"POST"
        self._h11.send(h11.Request(method=method, target=b"/", headers=[(b"host", b"a")]))
        self._h11.send(h11.EndOfMessage())
        for place, data in enumerate(parts):
            await self.stream.send_all(data)
            if place < len(parts) - 1:
                await trio.sleep(PART_INTERVAL)
        if parts:
            return
        data = encode_head(head) + body
        if not interval:
            await self.stream.send_all(data)
            return
        for byte in data:
            await self.stream.send_all(bytes([byte]))
            await trio.sleep(interval)

    async def next_action(self) -> Action | None:
        """Return the next part of the response, None at its end or if it breaks."""
        while True:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                self._h11.receive_data(bytes(await self.stream.receive_some()))
            elif isinstance(event, h11.Response):
                return Head(event.status_code, [(name, value) for name, value in event.headers])
            elif isinstance(event, h11.Data):
                return Body(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return End()
            elif not isinstance(event, h11.InformationalResponse):
                return None

    async def finish(self) -> None:
        """Close the connection once the server has closed its side, or after a timeout."""
        # What the server does about the end comes before the next request, so a case that is
        # played again does the same.
        try:
            with trio.move_on_after(FINISH_TIMEOUT), suppress(trio.BrokenResourceError):
                if isinstance(self.stream, trio.SocketStream):
                    await self.stream.send_eof()
                    while await self.stream.receive_some():
                        pass
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self.stream)

    def can_continue(self) -> bool:
        """Prepare for the next exchange. Return False if the connection has ended."""
        try:
            self._h11.start_next_cycle()
        except h11.LocalProtocolError:
            return False
        return True


class UrlTarget:
    """A server at a URL.

    Args:
        url: an `http` or `https` URL.
        nursery: the nursery of the exchanges.
        headers: sent with each request.
        rate: requests a second; None for no limit.
        unexpanded: the URL as its configuration file has it, as the only word, if it has one.
        secrets: values from that file, which must not be written.

    Attributes:
        mirrored: for each tool, which of its arguments headers repeat.
        longest_start: 0 once the server has answered: it runs. None before.
    """

    kind = "http"

    def __init__(
        self,
        url: str,
        nursery: trio.Nursery,
        *,
        headers: Mapping[str, str] | None = None,
        rate: float | None = None,
        unexpanded: Sequence[str] = (),
        secrets: Collection[str] = (),
    ) -> None:
        parsed = Url.parse(url)
        self.name = url
        self.unexpanded = tuple(unexpanded)
        self.secrets = launch_secrets((url,), headers=headers).union(secrets)
        redactor = Redactor(token_bytes(32), secrets=self.secrets)
        self._shown = redactor.redact_url(unexpanded[0] if unexpanded else url)
        self.is_local = is_local_host(parsed.host)
        self.nursery = nursery
        self.path = parsed.target
        self.host = parsed.authority
        self.headers = [
            (name.lower().encode(), value.encode()) for name, value in (headers or {}).items()
        ]
        self.mirrored: dict[str, ParamHeaders] = {}
        self.longest_start: float | None = None
        self.recorder: Recorder | None = None
        self._connector = Connector(parsed.scheme, parsed.host, parsed.port)
        self._idle: deque[_HttpLine] = deque()
        self._interval = 0.0 if rate is None else 1 / rate
        self._next_at = 0.0
        self._is_over = False
        nursery.start_soon(self._close_at_end)

    async def _close_at_end(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._is_over = True
            with trio.CancelScope(shield=True):
                while self._idle:
                    await trio.aclose_forcefully(self._idle.pop().stream)

    def header(self) -> TraceHeader:
        """Return the header of a trace of this target."""
        return new_header("client", "http", self._shown)

    def learn_tools(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Learn from listed tools which of their arguments headers repeat."""
        for tool in tools:
            name, schema = tool.get("name"), tool.get("inputSchema")
            if isinstance(name, str) and isinstance(schema, dict):
                with suppress(ValueError):  # a client leaves out a tool with invalid annotations
                    self.mirrored[name] = param_headers(schema)

    async def open(self, *, keep: bool = False, former: HttpSession | None = None) -> HttpSession:
        """Return another client's session. Nothing is sent yet.

        Args:
            keep: whether its lines are kept.
            former: a session whose trace it continues.
        """
        await trio.lowlevel.checkpoint()
        return HttpSession(self, former, keep=keep)

    async def wait_for_turn(self) -> None:
        """Wait until the rate allows another request."""
        if self._interval:
            wait = self._next_at - trio.current_time()
            self._next_at = max(self._next_at, trio.current_time()) + self._interval
            if wait > 0:
                await trio.sleep(wait)

    async def acquire(self, *, fresh: bool = False) -> _HttpLine:
        """Return a connection for one exchange, once the rate allows it.

        Raises:
            ConnectFailed: the server cannot be reached.
        """
        await self.wait_for_turn()
        while self._idle and not fresh:
            line = self._idle.pop()
            if trio.current_time() - line.released_at < MAX_IDLE_TIME:
                return line
            await trio.aclose_forcefully(line.stream)
        with trio.move_on_after(CONNECT_TIMEOUT):
            return _HttpLine(await self._connector.connect_stream())
        raise ConnectFailed(f"no connection within {CONNECT_TIMEOUT:g} s")

    async def release(self, line: _HttpLine, *, is_complete: bool) -> None:
        """Take a connection back, or close it."""
        may_keep = is_complete and not self._is_over and len(self._idle) < MAX_IDLE
        if may_keep and line.can_continue():
            line.released_at = trio.current_time()
            self._idle.append(line)
        else:
            await trio.aclose_forcefully(line.stream)


class _OneConversation(ConversationNumbers):
    """The numbers for a client's exchanges, which are all of one conversation.

    Other clients have theirs, in the same trace.
    """

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        super().__init__(single=True)
        self._number = number

    def of_request(self, head: RequestHead) -> int:
        """Return the conversation's number."""
        return self._number


class HttpSession(TargetSession):
    """A conversation over HTTP.

    Attributes:
        session_id: the id that the server has given, or None.
        event_id: the id of the last event that had one, or None.
        first_event_id: the id of the first event of the last stream that had two, or None: after
            it a resumed stream has more.
        last_status: the last response's status, 0 before one.
    """

    transport = "http"

    def __init__(self, target: UrlTarget, former: HttpSession | None = None, *, keep: bool) -> None:
        super().__init__(target.header(), keep=keep)
        self.target = target
        self.steps = HTTP_STEPS
        self.session_id: bytes | None = None
        self.event_id: bytes | None = None
        self.first_event_id: bytes | None = None
        self._first_events: dict[int, bytes] = {}  # of streams, by exchange
        self.last_status = 0
        self._location = b""
        self._numbers = ConversationNumbers(single=True)
        self._exchanges = itertools.count(1)
        self._scopes: dict[int | str | trio.Event, trio.CancelScope] = {}
        self._held: list[_HttpLine] = []
        self._beside: list[HttpSession] = []
        self._error = ""
        self._is_deleted = False
        if former is not None:
            self.follow(former)
            self._numbers, self._exchanges = former._numbers, former._exchanges
        elif target.recorder is not None:
            self.recording = target.recorder.lines()
        self.number = self._numbers.new()
        self._conversation = _OneConversation(self.number)

    @property
    def longest_start(self) -> float | None:
        """0 once the server has answered, in any session. None before."""
        return self.target.longest_start

    def receive(self, line: TraceLine, method: str = "") -> None:
        """Take a line of the server."""
        self.target.longest_start = 0.0
        super().receive(line, method)

    # -- Sending -----------------------------------------------------------------------------------

    def headers_for(self, message: Mapping[str, Any] | None) -> list[tuple[bytes, bytes]]:
        """Return the headers of a POST, without those for its body."""
        headers = [
            (b"host", self.target.host),
            (b"accept", b"application/json, text/event-stream"),
            *self.target.headers,
        ]
        method = message.get("method") if message is not None else None
        if self.session_id is not None:
            headers.append((b"mcp-session-id", self.session_id))
        # Servers of revisions that don't have this header ignore it.
        if method != "initialize" and self.revision:
            headers.append((b"mcp-protocol-version", self._version_of(message).encode()))
        if dialect_of(self.revision).http.mirrored_headers and message is not None:
            params = message.get("params")
            name = params.get("name") if isinstance(params, dict) else None
            is_call = method == "tools/call" and isinstance(name, str)
            mirrored = self.target.mirrored.get(str(name)) if is_call else None
            headers += message_headers(message, mirrored)
        return headers

    def _version_of(self, message: Mapping[str, Any] | None) -> str:
        """Return the version for a message's header: the one in its `_meta`, if it has another one.

        Else the server would have to refuse the message for its header, and not for its version. A
        revision with a handshake isn't named: it would be another request, one without a session.
        """
        params = message.get("params") if message is not None else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        named = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
        if dialect_of(self.revision).stateful or not isinstance(named, str):
            return self.revision
        is_value = named.isascii() and named.isprintable() and named == named.strip() != ""
        has_handshake = named in ALL and dialect_of(named).stateful
        return named if is_value and not has_handshake else self.revision

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        """POST one message."""
        body = text.encode("utf-8", "surrogatepass")
        await self.post(body, message, self.headers_for(message))

    async def send_data(self, data: bytes) -> None:
        """POST bytes."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            message = None
        await self.post(
            data, None, self.headers_for(message if isinstance(message, dict) else None)
        )

    async def post(
        self,
        body: bytes,
        message: Mapping[str, Any] | None,
        headers: list[tuple[bytes, bytes]],
        interval: float = 0.0,
    ) -> None:
        """POST a body, and wait for the response unless the body is a request.

        With an `interval` it is sent byte by byte.
        """
        names = {name for name, _ in headers}
        if b"content-type" not in names:
            headers = [*headers, (b"content-type", b"application/json")]
        headers = [*headers, (b"content-length", b"%d" % len(body))]
        head = RequestHead(b"POST", self.target.path, headers)
        request = None if message is None else self.open.get(message.get("id", ""))
        await self.exchange(head, body, request, interval)

    async def send_parts(self, body: bytes, message: Mapping[str, Any], how: str, cut: int) -> None:
        """POST a message in two parts: cut within its head or its body, or in two chunks."""
        is_chunked = how == "chunks"
        head = RequestHead(
            b"POST",
            self.target.path,
            [
                *self.headers_for(message),
                (b"content-type", b"application/json"),
                CHUNKED if is_chunked else (b"content-length", b"%d" % len(body)),
            ],
        )
        data = encode_head(head) + (encode_chunks(body[:cut], body[cut:]) if is_chunked else body)
        start = 0 if how == "head" else len(data) - len(body)
        if is_chunked:  # within the size or the data of the second chunk, in turn
            start = data.rindex(body[cut:]) - 2 - cut % 3
            cut = 0
        parts = (data[: start + cut], data[start + cut :])
        await self.exchange(head, body, self.open.get(message["id"]), 0.0, parts)

    async def exchange(
        self,
        head: RequestHead,
        body: bytes,
        request: SentRequest | None = None,
        interval: float = 0.0,
        parts: Sequence[bytes] = (),
    ) -> None:
        """Send an HTTP request. Wait for its response if it carries no JSON-RPC request."""
        if request is not None:
            begun = trio.Event()
            self.target.nursery.start_soon(
                self._run_exchange, head, body, request, interval, None, begun, parts
            )
            await begun.wait()  # a cancellation comes after it, on the wire and in the trace
            return
        with trio.move_on_after(NOTIFY_TIMEOUT):
            await self._run_exchange(head, body, None, interval)

    async def open_stream(self, head: RequestHead) -> None:
        """Open a standalone stream, which is read until the case ends. Wait for its head."""
        opened = trio.Event()
        self.target.nursery.start_soon(self._run_exchange, head, b"", None, 0.0, opened)
        with trio.move_on_after(NOTIFY_TIMEOUT):
            await opened.wait()

    async def _run_exchange(
        self,
        head: RequestHead,
        body: bytes,
        request: SentRequest | None,
        interval: float,
        opened: trio.Event | None = None,
        begun: trio.Event | None = None,
        parts: Sequence[bytes] = (),
    ) -> None:
        channel = HttpChannel(next(self._exchanges), self._conversation, MESSAGE_LIMIT)
        method = request.method if request is not None else self.last_sent
        line: _HttpLine | None = None
        response = _ResponseState()
        end: tuple[Any, str] = ("server", "reset")
        scope = trio.CancelScope()
        key = request.id if request is not None else opened
        if key is not None:
            self._scopes[key] = scope
        try:
            with scope:
                line = await self._begin(channel, head, body, method, interval, begun, parts)
                await self._read(channel, line, request, method, response, opened)
                end = ("server", "complete" if response.is_complete else "reset")
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError) as exc:
            self._error = str(exc) or type(exc).__name__
        except ConnectFailed as exc:
            self._error = str(exc)
            self.end(str(exc))
        finally:
            if begun is not None:
                begun.set()
            if line is not None:
                with trio.CancelScope(shield=True):
                    await self.target.release(line, is_complete=response.is_complete)
        if scope.cancelled_caught:
            end = ("client", "closed")
        self._take(channel.ended(self.time(), end), method)
        if key is not None:
            self._scopes.pop(key, None)
        if opened is not None:
            opened.set()
        if response.status == 404 and self._names_session(head):
            self.spent = True  # the server has ended the session, and refuses all further requests
        if request is not None and request.answer is None:
            request.answer = LOST
            request.loss = "cut" if response.has_body else "broken"
            if scope.cancelled_caught or self._is_excused(request, response):
                request.loss = "excused"
            elif response.is_complete:
                request.loss = "missing"
            self.open.pop(request.id, None)
            self.wake()

    def _names_session(self, head: RequestHead) -> bool:
        """Return True if a request names the session that the server gave."""
        return self.session_id is not None and (b"mcp-session-id", self.session_id) in head.headers

    def _is_excused(self, request: SentRequest, response: _ResponseState) -> bool:
        """Return True if a request can lack its response for a good reason."""
        if request.cancelled or not request.is_owed or not request.was_open:
            return True
        if self.ended or self._is_deleted:  # its streams end with a session
            return True
        is_rejected = response.status >= 300
        return is_rejected or response.may_follow or request.method == "subscriptions/listen"

    async def _begin(
        self,
        channel: HttpChannel,
        head: RequestHead,
        body: bytes,
        method: str,
        interval: float,
        begun: trio.Event | None,
        parts: Sequence[bytes],
    ) -> _HttpLine:
        """Send a request on a connection, on another one if the server has closed it."""
        for fresh in (False, True):
            line = await self.target.acquire(fresh=fresh)
            if not fresh:  # before it is sent: another exchange can show at once what it does
                self._take(channel.request(self.time(), (head, body, "1.1")), method)
                if begun is not None:
                    begun.set()
            try:
                await line.send(head, body, interval, parts)
            except BaseException as exc:
                await trio.aclose_forcefully(line.stream)
                if fresh or not isinstance(exc, trio.BrokenResourceError):
                    raise
            else:
                return line
        raise AssertionError("unreachable")

    async def _read(
        self,
        channel: HttpChannel,
        line: _HttpLine,
        request: SentRequest | None,
        method: str,
        response: _ResponseState,
        opened: trio.Event | None,
    ) -> None:
        """Read a response, and note in `response` what is seen of it."""
        size = 0
        while not response.is_complete:
            action = await line.next_action()
            if action is None:
                return
            if type(action) is Head:
                response.status = action.status
                response.is_stream = is_event_stream(action)
                self._see_head(action, request)
                if opened is not None:
                    opened.set()
            elif type(action) is Body:
                size += len(action.data)
                response.has_body = not response.is_stream
                if size > MAX_EXCHANGE:
                    self.end("it sends without end")
                    return
            lines = channel.response(self.time(), [action])
            response.add(lines)
            self._take(lines, method)
            response.is_complete = type(action) is End

    def _see_head(self, head: Head, request: SentRequest | None) -> None:
        self.last_status = head.status
        for name, value in head.headers:
            if name == b"mcp-session-id" and request is not None:
                if request.method == "initialize" and self.session_id is None:
                    self.session_id = bytes(value)
            elif name == b"location":
                self._location = bytes(value)

    def _take(self, lines: list[TraceLine], method: str) -> None:
        for line in lines:
            if line.sse is not None and line.sse.id:
                self._see_event(line.exchange, line.sse.id.encode())
            if line.sender == "server":
                self.receive(line, method)
            else:
                self.record(line)

    def _see_event(self, exchange: int, id: bytes) -> None:
        self.event_id = id
        first = self._first_events.setdefault(exchange, id)
        if first != id:
            self.first_event_id = first
        elif len(self._first_events) > MAX_STREAMS:
            del self._first_events[min(self._first_events)]

    # -- The session -------------------------------------------------------------------------------

    @property
    def is_stateful(self) -> bool:
        """True if the server has given a session."""
        return self.session_id is not None

    async def cancel_exchange(self, request: SentRequest) -> bool:
        """Cancel a request by closing its response, if the revision cancels like that."""
        scope = self._scopes.get(request.id)
        if scope is None or not dialect_of(self.revision).http.disconnect_cancels:
            return False
        scope.cancel()
        await trio.lowlevel.checkpoint()
        return True

    def encode_post(self, message: Mapping[str, Any], *headers: tuple[bytes, bytes]) -> bytes:
        """Return the bytes of a POST that carries a message, with more headers."""
        body = json.dumps(message, separators=(",", ":")).encode()
        given = [
            *self.headers_for(message),
            (b"content-type", b"application/json"),
            *headers,
            (b"content-length", b"%d" % len(body)),
        ]
        return encode_head(RequestHead(b"POST", self.target.path, given)) + body

    def encode_get(self) -> bytes:
        """Return the bytes of a GET that opens a standalone stream."""
        headers = [each for each in self.headers_for(None) if each[0] != b"accept"]
        headers.append((b"accept", b"text/event-stream"))
        return encode_head(RequestHead(b"GET", self.target.path, headers))

    async def hold(self, *requests: bytes, max_read: int | None = None) -> bool:
        """Send requests on a connection of its own, which stays open until `release`.

        Neither requests nor responses are recorded. Return False if the server has closed or
        refused the connection, which it may.

        Args:
            requests: the bytes of each. Each is sent once the rate allows it.
            max_read: bytes that the kernel takes from the server, about; None for its default.
        """
        try:
            line = await self.target.acquire(fresh=True)
            self._held.append(line)
            if max_read is not None and isinstance(line.stream, trio.SocketStream):
                line.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, max_read)
            for place, data in enumerate(requests):
                if place:
                    await self.target.wait_for_turn()
                await line.stream.send_all(data)
        except (ConnectFailed, trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return True

    async def begin_beside(self) -> bool:
        """Begin another client's session, which stays open until `release`.

        Return False if the server refuses it, which it may.
        """
        other = await self.target.open()
        self._beside.append(other)
        other.revision = self.revision
        await other.send(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": other.initialize_params(self.revision),
            }
        )
        while other.waits() and not other.ended:
            await other.wait_changed(trio.current_time() + NOTIFY_TIMEOUT)
        return other.session_id is not None

    async def release(self) -> None:
        """Close the connections that are held, and end the sessions that were begun beside."""
        held, self._held = self._held, []
        others, self._beside = self._beside, []
        async with trio.open_nursery() as nursery:
            for line in held:
                nursery.start_soon(line.finish)
            for other in others:
                nursery.start_soon(other.aclose)

    async def end_case(self) -> None:
        """Close what a case has left open."""
        await self.release()
        for scope in list(self._scopes.values()):
            scope.cancel()

    async def delete(self, session_id: bytes | None = None) -> None:
        """End the server's session, or try to end another one."""
        if self.session_id is None:
            return
        if session_id is None:
            self._is_deleted = True
        headers = [
            (b"host", self.target.host),
            (b"mcp-session-id", session_id or self.session_id),
            *self.target.headers,
        ]
        await self.exchange(RequestHead(b"DELETE", self.target.path, headers), b"")

    async def disconnect(self) -> None:
        """End the session in order."""
        self.spent = True
        await self.delete()
        self.end("the client has disconnected")

    async def successor(self) -> HttpSession:
        """Return another client's session, in the same trace."""
        return await self.target.open(keep=self.lines is not None, former=self)

    async def beside(self) -> HttpSession:
        """Return another client's session, in this one's trace."""
        other = await self.target.open(keep=self.lines is not None, former=self)
        other.stand_beside(self)
        return other

    async def fresh(self) -> HttpSession:
        """Return another client's session."""
        return await self.target.open()

    async def aclose(self) -> None:
        """End the session, and all its exchanges."""
        await self.end_case()
        if self.session_id is not None and not self.ended:
            with trio.move_on_after(DELETE_TIMEOUT):
                await self.delete()

    def describe(self) -> str:
        """Return what is known about a server that doesn't speak MCP."""
        if self._error:
            return f" ({escape_text(self._error)})"
        where = escape_text(self._location.decode("latin-1")[:200])
        if 300 <= self.last_status < 400:
            return f" (HTTP status {self.last_status}: it redirects to {where}; use that URL)"
        if self.last_status in (401, 403):
            cure = "give a token with --token-env VARIABLE"
            if self.target.unexpanded:
                cure = "write a header Authorization with a token into its entry"
            return f" (HTTP status {self.last_status}: it requires a login; {cure})"
        return f" (HTTP status {self.last_status})" if self.last_status else ""


def is_event_stream(head: Head) -> bool:
    """Return True if a response is a stream of server-sent events."""
    return any(
        name == b"content-type" and bytes(value).lower().startswith(b"text/event-stream")
        for name, value in head.headers
    )


CHUNKED: Final = (b"transfer-encoding", b"chunked")


def encode_chunks(*chunks: bytes) -> bytes:
    """Return the bytes of a body in chunks, with the last, empty one."""
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in (*chunks, b""))


def encode_head(head: RequestHead) -> bytes:
    """Return the bytes of a head, which may be one that no client would send."""
    lines = [b"%b %b HTTP/1.1" % (head.method, head.target)]
    lines += [b"%b: %b" % (name, value) for name, value in head.headers]
    return b"\r\n".join([*lines, b"", b""])
