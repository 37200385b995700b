"""The lean engine over HTTP/1.1.

1. Each caller has a connection of its own, which carries one call at a time, and in revisions with
   sessions a session of its own.
2. A call without a response in time ends its connection. One task watches all calls, so a call has
   no cancel scope of its own.
3. A kept-alive connection that the server has closed before the first byte of a response is
   replaced once, and the call is sent again, as clients do. Its latency counts from its start.
4. Requests of the server in an event stream are answered on other connections, so that the server
   goes on.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from mcp_core import ConnectFailed, escape_text
from mcp_core.http import RequestHead
from mcp_core.urls import Url, is_local_host
from mcp_trio.http_client._connector import Connector
from mcp_trio.oracle.bench._nursery_load import NurseryLoad
from mcp_trio.oracle.bench._process import ListenerMeter, NoMeter
from mcp_trio.oracle.bench._schedule import OpenLoop
from mcp_trio.oracle.bench._tally import KnownResponses, Tally
from mcp_trio.oracle.bench._turn import BenchTurn, TargetGone
from mcp_trio.oracle.bench._verdicts import decode_json, find_cause, find_response

from ._direct_stream import DirectStream
from ._handshake import Handshake, negotiate
from ._http_reader import MAX_RESPONSE, HttpReader, ReadState, TooLarge
from ._templates import HttpTemplates, Template, new_ids, read_mirrored, response_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_core import Dialect
    from mcp_core.http import ParamHeaders
    from mcp_trio.oracle.bench._process import Meter
    from mcp_trio.oracle.bench._requests import Work, Worker
    from mcp_trio.oracle.bench._turn import Pace

    from ._handshake import Ask
    from ._load import Address

__all__ = ["HttpLoad"]

_READ: Final = 64 * 1024  # bytes of one read
_MAX_OPENING: Final = 16  # connections that are opened at the same time
_IDLE: Final = 0.5  # seconds after which the server may have closed a connection
_DRAIN_TIMEOUT: Final = 1.0  # seconds for the end of an event stream that has the response
_SIDE_TIMEOUT: Final = 5.0  # seconds for the server to take an answer
_MAX_ANSWERING: Final = 64
_DELETE_TIMEOUT: Final = 1.0
_CONNECT_TIMEOUT: Final = 10.0
_MAX_PAGES: Final = 20  # of the list of tools
_NEEDS_LOGIN: Final = (401, 403)
_NO_ENDPOINT: Final = (404, 405)


class _HandshakeRefused(ConnectFailed):
    """An HTTP response to the handshake says that there is no MCP for us."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class _Broken(Exception):
    """A connection ended before the response did."""


class HttpConnection:
    """One caller's connection and session.

    Attributes:
        started: when its open call has started, None without one.
        scope: around its calls. Cancelled if the open call has no response in time.
        session: the session's id, b"" without one.
        needs_session: whether the server has ended the session.
        reader: reads the responses.
        templates: the prepared requests.
        idle_since: when its last call ended.
    """

    def __init__(self, load: HttpLoad) -> None:
        self.load = load
        self.started: float | None = None
        self.scope = trio.CancelScope()
        self.session = b""
        self.dialect: Dialect | None = None
        self.reader = HttpReader()
        self.idle_since = 0.0
        self.stream: trio.abc.Stream | None = None
        self.templates: HttpTemplates
        self.needs_session: bool

    def use(self, dialect: Dialect, session: bytes = b"") -> None:
        """Send requests in a revision and a session."""
        self.dialect, self.session, self.needs_session = dialect, session, False
        first_lines = self.load.first_lines(dialect, session)
        self.templates = HttpTemplates(dialect, first_lines, self.load.mirrored)

    async def connect(self) -> None:
        """Connect, unless it is connected.

        Raises:
            ConnectFailed: it can't.
        """
        if self.stream is None:
            self.stream = await self.load.connect()

    async def drop(self) -> None:
        """Close the connection. The session stays."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)

    def is_stale(self) -> bool:
        """Return True if the server has closed the connection, or sent what no one asked for."""
        stream: Any = self.stream
        if isinstance(stream, trio.SSLStream | DirectStream):
            stream = stream.transport_stream
        return isinstance(stream, trio.SocketStream) and stream.socket.is_readable()

    async def exchange(self, data: bytes, digits: bytes) -> ReadState:
        """Send a request and read its response until it is answered or complete.

        Raises:
            ConnectFailed: there is no connection.
            _Broken: the connection ended before the response.
            TooLarge, ValueError: as `HttpReader.feed`.
        """
        while True:
            stream, reader = self.stream, self.reader
            is_reused = stream is not None
            if stream is None:
                await self.connect()
                stream = self.stream
                assert stream is not None
            reader.begin(digits)
            try:
                await stream.send_all(data)
                while True:
                    received = await stream.receive_some(_READ)
                    if not received:
                        state = reader.end()
                        if state is ReadState.OPEN:
                            break
                        return state
                    state = reader.feed(received)
                    if state is not ReadState.OPEN:
                        return state
                    if reader.requests:
                        self.load.answer_requests(self)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            except BaseException:  # the rest of the response belongs to no later call
                await self.drop()
                raise
            await self.drop()
            if reader.has_begun or not is_reused:
                raise _Broken

    async def finish(self, state: ReadState) -> None:
        """Read the rest of a response whose call is answered, or close the connection."""
        reader = self.reader
        if state is ReadState.ANSWERED:
            try:
                with trio.move_on_after(_DRAIN_TIMEOUT):
                    state = await self._drain()
            except BaseException:
                await self.drop()
                raise
        if state is not ReadState.COMPLETE or not reader.can_continue:
            await self.drop()

    async def _drain(self) -> ReadState:
        assert self.stream is not None
        state = ReadState.ANSWERED
        try:
            while state is ReadState.ANSWERED:
                data = await self.stream.receive_some(_READ)
                if not data:
                    return self.reader.end()
                state = self.reader.feed(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError, ValueError, TooLarge):
            return ReadState.OPEN
        return state

    async def ask(self, template: Template, digits: bytes) -> Any:
        """Send one request, and return the decoded response; None if it isn't JSON."""
        state = await self.exchange(b"%b%b%b" % (template.head, digits, template.tail), digits)
        head, body = self.reader.head, bytes(self.reader.body)
        await self.finish(state)
        assert head is not None
        return find_response(body, digits, is_stream=head.is_stream)

    async def send(self, message: dict[str, Any]) -> None:
        """Send a notification or a response."""
        assert self.dialect is not None
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        head = self.load.first_lines(self.dialect, self.session)
        data = b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
        await self.finish(await self.exchange(data, b""))


class HttpLoad(NurseryLoad):
    """A server at a URL, connected and warm.

    Args:
        address: the server's URL, and headers for each request.
        timeout: seconds for each response.
        nursery: runs the tasks that answer the server's requests.

    Attributes:
        revision, server, capabilities: as `TargetLoad`.
        mirrored: for each tool, which of its arguments headers repeat.
    """

    def __init__(self, address: Address, timeout: float, nursery: trio.Nursery) -> None:
        url = Url.parse(address.url)
        self.revision = ""
        self.server = ""
        self.protocol = "HTTP/1.1"
        self.capabilities: Mapping[str, Any] = {}
        self.mirrored: dict[str, ParamHeaders] = {}
        self._url = url
        self._target = url.target
        self._headers = [
            (name.encode("ascii"), value.encode("latin-1"))
            for name, value in address.headers.items()
        ]
        if any(set(b"\r\n\0:") & set(n) or set(b"\r\n\0") & set(v) for n, v in self._headers):
            raise ValueError("a header's name or value has characters that no header may have")
        self._timeout = timeout
        self._nursery = nursery
        self._connector = Connector(url.scheme, url.host, url.port)
        self._connections: list[HttpConnection] = []
        self._known = KnownResponses()
        self._ids = new_ids()
        self._answering = 0
        self._gone: TargetGone | None = None
        self._dialect: Dialect | None = None
        self._meter: Meter = ListenerMeter(url.port) if is_local_host(url.host) else NoMeter()

    def __repr__(self) -> str:
        return f"<HttpLoad of {len(self._connections)} connections>"

    # -- Connections -------------------------------------------------------------------------------

    async def connect(self) -> trio.abc.Stream:
        """Return a new connection.

        Raises:
            ConnectFailed: it can't be opened.
        """
        with trio.move_on_after(_CONNECT_TIMEOUT):
            stream = await self._connector.connect_stream()
            if isinstance(stream, trio.SocketStream) and sys.platform != "win32":
                return DirectStream(stream)
            return stream
        raise ConnectFailed(f"no connection within {_CONNECT_TIMEOUT:g} s")

    def first_lines(
        self, dialect: Dialect | None, session: bytes, method: bytes = b"POST"
    ) -> bytes:
        """Return the request line and the headers of all requests of a session.

        Before the handshake `dialect` is None.
        """
        headers = [(b"Host", self._url.authority)]
        own = {name.lower() for name, _ in self._headers}
        if b"user-agent" not in own:
            headers.append((b"User-Agent", b"mcp-trio-bench"))
        if method == b"POST":
            headers.append((b"Accept", b"application/json, text/event-stream"))
            headers.append((b"Content-Type", b"application/json"))
        if dialect is not None and dialect.http.version_header:
            headers.append((b"MCP-Protocol-Version", dialect.version.encode()))
        if session:
            headers.append((b"Mcp-Session-Id", session))
        head = RequestHead(method, self._target, [*headers, *self._headers])
        head = self._connector.absolute_head(head)
        lines = [b"%b %b HTTP/1.1\r\n" % (head.method, head.target)]
        lines += [b"%b: %b\r\n" % header for header in head.headers]
        return b"".join(lines)

    async def open(self, era: str | None) -> None:
        """Connect and negotiate a revision.

        Raises:
            ConnectFailed: that isn't possible; the message names the cause and the cure.
        """
        connection = HttpConnection(self)
        self._connections.append(connection)
        try:
            await self._negotiate(connection, era)
        except _HandshakeRefused as exc:
            if exc.status not in _NO_ENDPOINT or self._target != b"/":
                raise
            self._target = b"/mcp"
            await self._negotiate(connection, era)
        assert self._dialect is not None
        if self._dialect.http.mirrored_headers and "tools" in self.capabilities:
            self.mirrored |= read_mirrored(await self._list_tools())

    async def _negotiate(self, connection: HttpConnection, era: str | None) -> None:
        await connection.connect()
        found = await self._shake_hands(connection, era)
        self._dialect = found.dialect
        self.revision, self.server = found.dialect.version, found.server
        self.capabilities = found.capabilities

    async def _shake_hands(self, connection: HttpConnection, era: str | None) -> Handshake:
        """Negotiate a revision on a connection, and use it.

        Raises:
            ConnectFailed: that isn't possible.
        """
        try:
            found = await negotiate(self._asker(connection), era, self._timeout)
            await self._begin(connection, found)
        except (_Broken, ValueError, TooLarge, trio.TooSlowError) as exc:
            raise ConnectFailed(f"{self._url.text}: {_explain(exc)}") from exc
        return found

    def _asker(self, connection: HttpConnection) -> Ask:
        """Return the function that sends a request of the handshake on a connection.

        It raises `_HandshakeRefused` if the response's status says that there is no MCP for us.
        """

        async def ask(dialect: Dialect, method: str, params: dict[str, Any]) -> Any:
            connection.use(dialect)
            if method == "initialize":
                # Its response says which version the header of later requests names.
                templates = HttpTemplates(dialect, self.first_lines(None, b""), {})
            else:
                templates = connection.templates
            digits = next(self._ids)
            found = await connection.ask(templates.encode(method, params), digits)
            head = connection.reader.head
            assert head is not None
            where = self._url.text
            if head.status in _NEEDS_LOGIN:
                cure = "give a token by --token-env, or log in and call --through client"
                problem = f"{where} needs a login (HTTP {head.status}); {cure}"
                raise _HandshakeRefused(problem, head.status)
            if 300 <= head.status < 400:
                location = escape_text(head.location.decode("latin-1"))[:200]
                problem = f"{where} redirects to {location}; give that URL"
                raise _HandshakeRefused(problem, head.status)
            is_rpc = isinstance(found, dict) and ("result" in found or "code" in _error(found))
            if head.status >= 400 and not is_rpc and dialect.stateful:
                cure = "; is the path right?" if head.status in _NO_ENDPOINT else ""
                problem = f"{where} responds with HTTP {head.status}{cure}"
                raise _HandshakeRefused(problem, head.status)
            return found

        return ask

    async def _begin(self, connection: HttpConnection, found: Handshake) -> None:
        """Use what was negotiated on a connection."""
        head = connection.reader.head
        session = head.session if head is not None and found.dialect.stateful else b""
        connection.use(found.dialect, session)
        if found.dialect.stateful:
            with trio.fail_after(self._timeout):
                await connection.send({"method": "notifications/initialized"})

    async def _list_tools(self) -> list[Any]:
        tools: list[Any] = []
        cursor: dict[str, Any] = {}
        for _ in range(_MAX_PAGES):
            found = await self.ask("tools/list", cursor)
            result = found.get("result")
            if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
                break
            tools += result["tools"]
            if not isinstance(result.get("nextCursor"), str):
                break
            cursor = {"cursor": result["nextCursor"]}
        return tools

    async def _open_connections(self, number: int) -> None:
        """Open connections until there are as many, each with a session if there are sessions."""
        missing = number - len(self._connections)
        failures: list[ConnectFailed] = []
        limit = trio.CapacityLimiter(_MAX_OPENING)

        async def open_one() -> None:
            async with limit:
                if failures:
                    return
                connection = HttpConnection(self)
                try:
                    await self.open_session(connection)
                except ConnectFailed as exc:
                    failures.append(exc)
                    await connection.drop()
                else:
                    self._connections.append(connection)

        async with trio.open_nursery() as nursery:
            for _ in range(missing):
                nursery.start_soon(open_one)
        if failures:
            if is_refused(failures[0]):
                raise TargetGone(str(failures[0])) from failures[0]
            opened = f"{len(self._connections)} of {number} connections are open"
            raise ConnectFailed(f"{failures[0]}; {opened}") from failures[0]

    async def open_session(self, connection: HttpConnection) -> None:
        """Connect, and begin a session if the revision has them.

        Raises:
            ConnectFailed: that isn't possible.
        """
        assert self._dialect is not None
        connection.use(self._dialect)
        await connection.connect()
        if self._dialect.stateful:
            await self._shake_hands(connection, self._dialect.version)

    async def aclose(self) -> None:
        """End all sessions and close all connections."""
        async with trio.open_nursery() as nursery:
            for connection in self._connections:
                nursery.start_soon(self._close, connection)

    async def _close(self, connection: HttpConnection) -> None:
        try:
            if connection.session and connection.dialect is not None:
                head = self.first_lines(connection.dialect, connection.session, b"DELETE")
                with trio.CancelScope(shield=True), trio.move_on_after(_DELETE_TIMEOUT):
                    await connection.exchange(head + b"\r\n", b"")
        except (_Broken, ValueError, TooLarge, ConnectFailed):
            pass  # the server ends the session in its own time
        finally:
            await connection.drop()

    # -- Calls -------------------------------------------------------------------------------------

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one request outside a turn, and return the decoded response, maybe an error.

        Raises:
            TargetGone: the server refuses connections.
            ConnectFailed: there is no response that is JSON, or none in time.
        """
        connection = self._connections[0]
        digits = next(self._ids)
        try:
            with trio.fail_after(self._timeout):
                found = await connection.ask(connection.templates.encode(method, params), digits)
        except (_Broken, ValueError, TooLarge, trio.TooSlowError) as exc:
            raise ConnectFailed(f"no response to {method}: {_explain(exc)}") from exc
        except ConnectFailed as exc:
            if is_refused(exc):
                raise TargetGone(str(exc)) from exc
            raise
        if not isinstance(found, dict):
            raise ConnectFailed(f"the response to {method} isn't JSON-RPC")
        return found

    async def turn(self, work: Work, pace: Pace, seconds: float) -> BenchTurn:
        """Call for `seconds`, wait for the last responses, and return what was measured.

        Raises:
            TargetGone: the server refuses connections.
            ConnectFailed: a further connection got no session.
        """
        await self._open_connections(pace.concurrency)
        connections = self._connections[: pace.concurrency]
        tally = Tally(seconds, self._known, self._meter)
        loop = None if pace.rate is None else OpenLoop(pace, tally, seconds, self._timeout)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, connections)
            async with trio.open_nursery() as callers:
                self._measured = tally, callers.cancel_scope
                for number, connection in enumerate(connections):
                    worker = work.worker(number, pace.seed)
                    caller = _HttpCaller(
                        connection, worker, tally, loop, reads_answers=work.reads_answers
                    )
                    callers.start_soon(self._run, caller, callers.cancel_scope)
                if loop is not None:
                    callers.start_soon(loop.run)
            nursery.cancel_scope.cancel()
        self._measured = None
        open_calls = [each for each in connections if each.started is not None]
        for connection in open_calls:
            connection.started = None
        tally.leave_out(len(open_calls), due=0 if loop is None else loop.due)
        turn = tally.finish(trio.current_time())
        if self._gone is not None:
            self._gone.turn = turn
            raise self._gone
        return turn

    async def _run(self, caller: _HttpCaller, scope: trio.CancelScope) -> None:
        """Run a caller. If the server is gone, end the turn."""
        try:
            await caller.run(self._ids)
        except TargetGone as exc:
            self._gone = exc
            scope.cancel()

    async def _watch(self, connections: list[HttpConnection]) -> None:
        """Cancel calls that have no response in time."""
        while True:
            now = oldest = trio.current_time()
            for connection in connections:
                if connection.started is None:
                    continue
                if connection.started + self._timeout <= now:
                    connection.scope.cancel()
                else:
                    oldest = min(oldest, connection.started)
            await trio.sleep_until(oldest + self._timeout)

    # -- Requests of the server --------------------------------------------------------------------

    def answer_requests(self, connection: HttpConnection) -> None:
        """Answer the requests that a connection's reader has found, in tasks of their own."""
        requests, connection.reader.requests = connection.reader.requests, []
        for message in requests:
            if self._answering < _MAX_ANSWERING:
                self._answering += 1
                self._nursery.start_soon(self._answer, connection, message)

    async def _answer(self, connection: HttpConnection, message: Mapping[str, Any]) -> None:
        side = HttpConnection(self)
        assert connection.dialect is not None
        side.use(connection.dialect, connection.session)
        try:
            with trio.move_on_after(_SIDE_TIMEOUT):
                await side.send(response_to(message))
        except (_Broken, ValueError, TooLarge, ConnectFailed):
            pass  # the call that it belongs to shows it
        finally:
            self._answering -= 1
            await side.drop()


class _HttpCaller:
    """One caller of a turn."""

    def __init__(
        self,
        connection: HttpConnection,
        worker: Worker,
        tally: Tally,
        loop: OpenLoop | None,
        *,
        reads_answers: bool,
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._tally = tally
        self._loop = loop
        self._reads_answers = reads_answers
        self._counts = tally.caller()
        self._answer: Any = None

    async def run(self, ids: Iterator[bytes]) -> None:
        """Call until the turn is over.

        Raises:
            TargetGone: the server refuses connections.
        """
        connection, tally = self._connection, self._tally
        is_over = False
        while not is_over:
            with trio.CancelScope() as connection.scope:
                try:
                    await self._calls(ids)
                    is_over = True
                except _Broken:
                    tally.error("closed")
                except TooLarge:
                    tally.error("too large")
                except ValueError:
                    tally.error("no HTTP")
                except ConnectFailed as exc:
                    if is_refused(exc):
                        tally.error("closed")
                        connection.started = None
                        raise TargetGone(str(exc)) from exc
                    tally.error("no connection")
            if is_over:
                return
            if connection.scope.cancelled_caught and connection.started is not None:
                tally.timeout()
            connection.started = None
            self._counts.last = trio.current_time()

    async def _calls(self, ids: Iterator[bytes]) -> None:
        """Make calls until the turn is over, or one fails with its connection."""
        connection, tally, loop = self._connection, self._tally, self._loop
        current_time = trio.current_time
        next_call = self._worker.next_call
        reader, counts = connection.reader, self._counts
        exchange = connection.exchange
        while True:
            if loop is None:
                start = current_time()
                if start >= tally.deadline:
                    return
            else:
                due = await loop.next_start()
                if due is None:
                    return
                start = due
            answer, self._answer = self._answer, None
            call = next_call(answer)
            digits = next(ids)
            tally.sent += 1
            connection.started = start
            if connection.needs_session:
                await connection.load.open_session(connection)
            head, tail = connection.templates.of(call)
            data = head + digits + tail
            if start - connection.idle_since > _IDLE and connection.is_stale():
                await connection.drop()
            state = await exchange(data, digits)
            now = current_time()
            connection.started = None
            connection.idle_since = now
            response = reader.head
            assert response is not None
            if response.status != 200:
                counts.last = now
                self._count_refusal(response.status, digits)
            elif self._reads_answers:
                answer = find_response(reader.body, digits, is_stream=response.is_stream)
                tally.decoded(counts, call, digits, start, now, answer)
                self._answer = answer if isinstance(answer, dict) else None
            else:
                tally.answer(counts, call, digits, start, now, reader.body, response.is_stream)
            if state is not ReadState.COMPLETE or not reader.can_continue:
                await connection.finish(state)
                if state is ReadState.ANSWERED:
                    tally.drain += current_time() - now
            if call.think:
                await trio.sleep_until(min(now + call.think, tally.deadline))

    def _count_refusal(self, status: int, digits: bytes) -> None:
        """Count a call whose response has another status than 200."""
        connection = self._connection
        cause = find_cause(decode_json(connection.reader.body), digits)
        is_code = cause.lstrip("-").isdigit()
        self._tally.error(cause if is_code else f"HTTP {status}")
        # A session has ended, and a client has to begin another one.
        connection.needs_session = status == 404 and bool(connection.session)


def is_refused(exc: BaseException) -> bool:
    """Return True if an error says that no one listens at an address."""
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            return any(is_refused(each) for each in cause.exceptions)
        if isinstance(cause, ConnectionRefusedError):
            return True
        cause = cause.__cause__
    return False


def _error(message: Mapping[str, Any]) -> Mapping[str, Any]:
    error = message.get("error")
    return error if isinstance(error, dict) else {}


def _explain(exc: BaseException) -> str:
    if isinstance(exc, _Broken):
        return "the connection ended before the response"
    if isinstance(exc, TooLarge):
        return f"the response is larger than {MAX_RESPONSE >> 20} MiB"
    if isinstance(exc, trio.TooSlowError):
        return "no response in time"
    return escape_text(str(exc))
