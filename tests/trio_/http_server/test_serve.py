"""Serving over HTTP: real servers on memory connections, shutdown, and real sockets and TLS."""

from __future__ import annotations

import json
import logging
import re
import signal
import socket
import ssl
import struct
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
import trio.testing
import trustme

import mcp_trio
from mcp_core.http import HostOriginPolicy, HttpOptions, PlainResponse, RequestHead
from mcp_core.registry import Context, Server
from mcp_trio import HttpAddress, MemoryStore, serve_http
from mcp_trio.http_server._connection import AccessLogEntry
from mcp_trio.http_server._serve import ServerConnections, _peer_address, serve_http_listeners
from tests.core.http.heads import ROWS, SERVED, WAITS, Row
from tests.harness.jsonrpc import (
    D,
    E,
    ping,
    request,
    stateless_request,
    text_of,
)
from tests.harness.wire.http1_client import (
    FakeRouter,
    HttpWire,
    get,
    serving,
)
from tests.harness.wire.http_session import (
    HttpSession,
    MemoryListener,
    events_in,
    served_over_http,
)
from tests.harness.world.waiting import until
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MockClock = trio.testing.MockClock
wait = trio.testing.wait_all_tasks_blocked
ERAS = pytest.mark.parametrize("version", [D, E])


class Notes:
    """A record of what happened in the handlers."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[str] = []


def make(notes: Notes | None = None) -> Server:
    notes = notes or Notes()
    server = Server("s")

    @server.tool
    def hello() -> str:
        """Return a greeting."""
        return "hello"

    @server.tool
    async def sleep(seconds: float, name: str = "") -> str:
        """Sleep."""
        notes.started.append(name)
        try:
            await trio.sleep(seconds)
        except trio.Cancelled:
            notes.ended.append(f"{name} cancelled")
            raise
        notes.ended.append(f"{name} slept")
        return "slept"

    @server.tool
    async def steps(context: Context, count: int, size: int = 0) -> str:
        """Report progress."""
        for step in range(count):
            await context.progress(step, message="x" * size)
            notes.ended.append(f"step {step}")
        return "there"

    return server


# -- Conversations -------------------------------------------------------------------------------


@ERAS
async def test_http_server_answers_calls(version: str) -> None:
    async with served_over_http(make()) as listener:
        session = HttpSession(listener.connect(), version)
        await session.shake_hands()
        for id in range(3):
            assert text_of(await session.call(id, "hello")) == "hello"
            assert text_of(await session.call(f"{id}", "sleep", {"seconds": 0})) == "slept"


@ERAS
async def test_http_server_builtin_answers_create_no_service(version: str) -> None:
    server = make()
    async with served_over_http(server) as listener:
        session = HttpSession(listener.connect(), version)
        await session.shake_hands()
        before = len(server._listeners)
        for id in range(3):
            asking = stateless_request(id, "server/discover") if version == E else ping(id)
            assert "result" in json.loads((await session.post(asking)).body)
        assert len(server._listeners) == before
    assert server._listeners == {}


async def test_http_server_response_stream_ends_and_is_resumed(autojump_clock: MockClock) -> None:
    """The tool closes its stream to save the connection; the client asks again with the last id."""
    server = make()

    @server.tool
    async def long(context: Context) -> str:
        """Take ten seconds."""
        assert context.close_stream(0.5)
        await trio.sleep(10)
        return "there"

    async with served_over_http(server) as listener:
        session = HttpSession(listener.connect())
        await session.shake_hands()
        answer = await session.post(session.calling(1, "long"))
        assert events_in(answer.body) == []
        assert b"retry: 500\n" in answer.body
        (id,) = re.findall(rb"^id: (.*)$", answer.body, re.MULTILINE)
        assert b"there" in (await session.ask(session.getting(b"last-event-id: " + id))).body
        assert trio.current_time() == 10


@ERAS
async def test_http_server_progress_and_result_are_an_event_stream(version: str) -> None:
    async with served_over_http(make()) as listener:
        session = HttpSession(listener.connect(), version)
        await session.shake_hands()
        for _ in range(2):
            answer = await session.post(
                session.calling(1, "steps", {"count": 3}, progressToken="t")
            )
            assert answer.headers[b"content-type"] == b"text/event-stream"
            *steps, result = events_in(answer.body)
            assert [step["params"]["progress"] for step in steps] == [0, 1, 2]
            assert text_of(result) == "there"


@ERAS
async def test_http_server_calls_on_several_connections_run_concurrently(
    version: str, autojump_clock: MockClock
) -> None:
    async with served_over_http(make()) as listener, trio.open_nursery() as nursery:
        first = HttpSession(listener.connect(), version)
        await first.shake_hands()
        for id in range(10):
            nursery.start_soon(partial(first.again(listener).call, id, "sleep", {"seconds": 10}))
        await wait()
        assert text_of(await first.call("next", "hello")) == "hello"
        assert trio.current_time() == 0


async def test_http_server_disconnect_cancels_the_call_by_revision(
    autojump_clock: MockClock,
) -> None:
    """Only the stateless revision takes a disconnect for a cancellation; a session lives on."""
    notes = Notes()
    async with served_over_http(make(notes)) as listener:
        for version in D, E:
            session = HttpSession(listener.connect(), version)
            await session.shake_hands()
            await session.send(
                session.posting(session.calling(1, "sleep", {"seconds": 5, "name": version}))
            )
            await trio.sleep(1)
            await session.stream.aclose()
            await trio.sleep(1)
        assert notes.ended == [f"{E} cancelled"]
        await trio.sleep(10)
        assert notes.ended == [f"{E} cancelled", f"{D} slept"]


async def test_http_server_session_delete_cancels_its_calls(autojump_clock: MockClock) -> None:
    """No client can fetch their results any more, and the session's stream ends as well."""
    notes = Notes()
    async with served_over_http(make(notes)) as listener:
        session = HttpSession(listener.connect())
        await session.shake_hands()
        calls = [session.again(listener) for _ in range(3)]
        for id, each in enumerate(calls):
            await each.send(
                each.posting(each.calling(id, "sleep", {"seconds": 50, "name": f"{id}"}))
            )
        stream = session.again(listener)
        await stream.send(stream.getting())
        assert b"text/event-stream" in await stream.until(b"\r\n\r\n")
        await wait()
        assert (await session.ask(session.getting(method=b"DELETE"))).status == 204
        for each in calls:
            assert (await each.answer()).status in (200, 404)
        await stream.until(b"0\r\n\r\n")
        await wait()
        assert sorted(notes.ended) == ["0 cancelled", "1 cancelled", "2 cancelled"]
        assert (await session.post(ping())).status == 404
        await session.shake_hands()


@ERAS
async def test_http_server_unread_stream_blocks_its_own_handler_only(
    version: str, autojump_clock: MockClock
) -> None:
    """The handler pauses in mid-output, while 20 calls on another connection succeed."""
    notes = Notes()
    async with served_over_http(make(notes)) as listener:
        slow = HttpSession(listener.connect(), version)
        await slow.shake_hands()
        quick = slow.again(listener)
        call = slow.calling("slow", "steps", {"count": 500, "size": 1_000}, progressToken="t")
        await slow.send(slow.posting(call))
        await wait()
        taken = len(notes.ended)
        assert 60 < taken < 300  # what the pipe and the queue hold
        for id in range(20):
            answer = await quick.post(quick.calling(id, "steps", {"count": 10}, progressToken="q"))
            assert len(events_in(answer.body)) == 11
        assert len(notes.ended) == taken + 200
        assert (await slow.until(b"there")).count(b"data: ") == 501 + (version == D)


@ERAS
async def test_http_server_client_that_never_reads_is_disconnected(
    version: str, autojump_clock: MockClock
) -> None:
    """A session keeps the rest for a client that reconnects; a stateless call ends unfinished."""
    notes = Notes()
    server = make(notes)
    async with served_over_http(server) as listener:
        slow = HttpSession(listener.connect(), version)
        await slow.shake_hands()
        call = slow.calling("slow", "steps", {"count": 1_000, "size": 1_000}, progressToken="t")
        await slow.send(slow.posting(call))
        await trio.sleep(40)
        with pytest.raises(trio.BrokenResourceError):
            await slow.send(b"x")
        # A session retains messages for a client that reconnects. Without one they are dropped.
        assert (notes.ended[-1] == "step 999") is (version == D)
        assert text_of(await slow.again(listener).call("next", "hello")) == "hello"


async def test_http_server_handlers_run_in_the_context_of_serve() -> None:
    """Context variables set by one call must not leak into another."""
    import contextvars

    variable = contextvars.ContextVar("variable", default="unset")
    server = Server("s")

    @server.tool
    def change() -> str:
        """Change it."""
        seen = variable.get()
        variable.set("changed")
        return seen

    @server.tool
    async def change_later() -> str:
        """Change it in a task."""
        return change()

    variable.set("around")
    async with served_over_http(server) as listener:
        variable.set("later")
        session = HttpSession(listener.connect(), E)
        for id, name in enumerate(["change", "change_later"] * 2):
            assert text_of(await session.call(id, name)) == "around"


async def test_http_server_changes_reach_the_standalone_stream(autojump_clock: MockClock) -> None:
    server = make()
    async with served_over_http(server) as listener:
        session = HttpSession(listener.connect())
        await session.shake_hands()
        stream = session.again(listener)
        await stream.send(stream.getting())
        await stream.until(b"\r\n\r\n")
        await trio.to_thread.run_sync(partial(server.changed, tools=True))
        assert b"notifications/tools/list_changed" in await stream.until(b"}\n\n")
        await trio.sleep(50)
        while stream.buffer.count(b":\n\n") < 3:  # keep-alive comments
            assert await stream.more()


# -- Paths and routes ----------------------------------------------------------------------------


async def test_http_server_serves_servers_and_routes_by_path() -> None:
    """Two servers with lifespans share a port with a health check; a failing route answers 500."""
    entered: list[str] = []

    def build(name: str) -> Server:
        @asynccontextmanager
        async def lifespan(server: Server) -> AsyncIterator[str]:
            entered.append(name)
            try:
                yield name
            finally:
                entered.append(f"left {name}")

        server = Server(name, lifespan=lifespan)

        @server.tool
        def who(context: Context[str]) -> str:
            """Return the value of the lifespan."""
            return f"{context.server.info.name} {context.lifespan}"

        return server

    def health(head: RequestHead) -> PlainResponse:
        return PlainResponse(200, b"fine " + head.method)

    def broken(head: RequestHead) -> PlainResponse:
        raise ZeroDivisionError

    async with trio.open_nursery() as nursery:
        address = await nursery.start(
            partial(
                serve_http,
                {"/a": build("a"), "/b": build("b")},
                routes={"/healthz": health, "/broken": broken},
            )
        )
        assert isinstance(address, HttpAddress)
        assert address == ("127.0.0.1", address.port, f"http://127.0.0.1:{address.port}/a")
        assert entered == ["a", "b"]

        async def connect() -> HttpSession:
            return HttpSession(await trio.open_tcp_stream("127.0.0.1", address.port), E)

        async with (session := await connect()).stream:
            for path in "a", "b":
                asking = session.posting(session.calling(1, "who")).replace(
                    b" /mcp ", b" /%b " % path.encode()
                )
                assert text_of(json.loads((await session.ask(asking)).body)) == f"{path} {path}"
            for path, status, body in (
                ("/healthz?x", 200, b"fine GET"),
                ("/mcp", 404, b"There is nothing at this path.\n"),
            ):
                answer = await session.ask(get(path))
                assert (answer.status, answer.body) == (status, body)
            assert (await session.ask(get("/healthz", method=b"HEAD"))).status == 200
            assert (await session.ask(get("/broken"))).status == 500
        async with (session := await connect()).stream:
            assert (await session.ask(get("/healthz"))).status == 200
        nursery.cancel_scope.cancel()
    assert entered == ["a", "b", "left b", "left a"]


async def test_http_server_lifespan_failure_propagates() -> None:
    """The program must not start without its database, and its port is closed again."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if server.info.name:
            raise FileNotFoundError("the database is gone")
        yield

    listener = MemoryListener()
    with pytest.raises(FileNotFoundError, match="the database is gone"):
        await serve_http_listeners(
            [listener],  # type: ignore[list-item]
            {"/mcp": Server("s", lifespan=lifespan)},
            HttpOptions(host_origin_policy=HostOriginPolicy(None)),
            routes={},
        )
    assert listener.closed


@pytest.mark.parametrize("option", [{"hosts": ["a/b"]}, {"origins": ["example.com"]}])
async def test_http_server_invalid_host_or_origin_raises_at_once(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a/b|example"):
        await serve_http(make(), **option)


# -- Limits --------------------------------------------------------------------------------------


@ERAS
@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("over", [0, 1])
async def test_http_server_body_over_limit_is_rejected(
    version: str, framed: bool, over: int, autojump_clock: MockClock
) -> None:
    """Exactly 4 MiB are accepted; one byte more gets 413, with or without a content-length."""
    size = 4 * 1024 * 1024
    async with served_over_http(make()) as listener:
        session = HttpSession(listener.connect(), version)
        await session.shake_hands()
        asking = session.posting(session.calling(1, "hello"))
        head, end, body = asking.partition(b"\r\n\r\n")
        body += b" " * (size + over - len(body))
        if framed:
            head = re.sub(rb"content-length: \d+", b"transfer-encoding: chunked", head)
            body = b"".join(
                b"10000\r\n%b\r\n" % body[at : at + 65_536] for at in range(0, size, 65_536)
            )
            body += (b"1\r\n \r\n" if over else b"") + b"0\r\n\r\n"
        else:
            head = re.sub(rb"content-length: \d+", b"content-length: %d" % (size + over), head)

        async def send() -> None:
            with suppress(trio.BrokenResourceError):
                await session.send(head + end + body)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            answer = await session.answer()
            assert answer.status == (413 if over else 200)
            assert (answer.headers.get(b"connection") == b"close") is bool(over)
            assert not over or await session.rest() == b""
        assert text_of(await session.again(listener).call(2, "hello")) == "hello"


@ERAS
@pytest.mark.parametrize("stride", [17, long(1)])
async def test_http_server_disconnect_at_every_byte_of_response_leaves_nothing(
    version: str, stride: int
) -> None:
    """The client leaves after each possible number of bytes, and the server still works."""
    server = make()
    async with served_over_http(server) as listener:
        session = HttpSession(listener.connect(), version)
        await session.shake_hands()
        for tool, arguments in ("hello", {}), ("steps", {"count": 2}):
            asking = session.posting(session.calling("0000", tool, arguments, progressToken="t"))
            whole = session.again(listener)
            await whole.send(asking)
            await wait()
            await whole.more()
            await whole.stream.aclose()
            for size in range(1, len(whole.buffer), stride):
                wire = session.again(listener)
                await wire.send(asking.replace(b'"0000"', b'"%04d"' % size))
                while len(wire.buffer) < size:
                    wire.buffer += await wire.stream.receive_some(size - len(wire.buffer))
                await wire.stream.aclose()
                await wait()
            assert text_of(await session.call(0, "hello")) == "hello"
        assert len(server._listeners) == (1 if version == D else 0)


# -- Shutdown ------------------------------------------------------------------------------------


class StoppedHttpServer:
    """A server, and the event that stops it."""

    def __init__(self) -> None:
        self.notes = Notes()
        self.stop = trio.Event()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[MemoryListener]:
        async with served_over_http(make(self.notes), stop=self.stop, grace=5.0) as listener:
            yield listener


async def ends_at(wire: HttpWire) -> float:
    await wire.rest()
    return trio.current_time()


async def test_http_server_idle_stops_at_once(autojump_clock: MockClock) -> None:
    stopping = StoppedHttpServer()
    async with stopping.served() as listener:
        talkers = [HttpSession(listener.connect(), version) for version in (D, E)]
        for session in talkers:
            await session.shake_hands()
        silent = HttpSession(listener.connect())
        await wait()
        stopping.stop.set()
        for session in (*talkers, silent):
            assert await ends_at(session) == 0
        assert listener.closed


@ERAS
async def test_http_server_stop_lets_handlers_finish_in_the_grace(
    version: str, autojump_clock: MockClock
) -> None:
    """Idle connections close at once, busy ones after their response."""
    stopping = StoppedHttpServer()
    async with stopping.served() as listener:
        session = HttpSession(listener.connect(), version)
        await session.shake_hands()
        other = session.again(listener)
        begun = session.again(listener)
        await begun.send(begun.posting(begun.calling(2, "hello"))[:-1])
        await session.send(
            session.posting(session.calling(1, "sleep", {"seconds": 3, "name": "it"}))
        )
        await other.ask(other.posting(other.calling(3, "hello")))
        await wait()
        stopping.stop.set()
        await wait()
        assert listener.closed
        assert await ends_at(other) == 0
        # A request that crosses the stop is answered either way, and is the last on its connection.
        await begun.send(b"}")
        answer = await begun.answer()
        assert answer.headers[b"connection"] == b"close"
        assert answer.status in (200, 503)
        answer = await session.answer()
        assert text_of(json.loads(answer.body)) == "slept"
        assert answer.headers[b"connection"] == b"close"
        assert await ends_at(session) == 3
    assert stopping.notes.ended == ["it slept"]


@ERAS
async def test_http_server_stop_cancels_handlers_after_the_grace(
    version: str, autojump_clock: MockClock
) -> None:
    """The client gets an error instead of a broken connection, and open streams end in order."""
    stopping = StoppedHttpServer()
    async with stopping.served() as listener:
        session = HttpSession(listener.connect(), version)
        await session.shake_hands()
        await session.send(
            session.posting(session.calling(1, "sleep", {"seconds": 30, "name": "it"}))
        )
        stream = None
        if version == D:
            stream = session.again(listener)
            await stream.send(stream.getting())
            await stream.until(b"\r\n\r\n")
        await wait()
        stopping.stop.set()
        answer = await session.answer()
        assert trio.current_time() == 5
        assert "shut down" in json.loads(answer.body)["error"]["message"]
        assert await ends_at(session) == 5
        if stream is not None:
            assert (await stream.rest()).endswith(b"0\r\n\r\n")
    assert stopping.notes.ended == ["it cancelled"]


async def test_http_server_stop_does_not_wait_for_an_unread_response(
    autojump_clock: MockClock,
) -> None:
    stopping = StoppedHttpServer()
    async with stopping.served() as listener:
        session = HttpSession(listener.connect(), E)
        call = session.calling("slow", "steps", {"count": 1_000, "size": 1_000}, progressToken="t")
        await session.send(session.posting(call))
        await wait()
        stopping.stop.set()
        await trio.sleep(7.5)
        with pytest.raises(trio.BrokenResourceError):
            await session.send(b"x")


# -- Connections ---------------------------------------------------------------------------------


async def test_http_server_connections_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    assert repr(ServerConnections(None, None, 2, None)) == ("<ServerConnections: 0 of 2>")  # type: ignore[arg-type]
    async with served_over_http(make(), max_connections=2) as listener:
        talkers = [HttpSession(listener.connect(), E) for _ in range(3)]
        await wait()
        assert await talkers[2].rest() == b""
        assert text_of(await talkers[0].call(1, "hello")) == "hello"
        await talkers[1].stream.aclose()
        await wait()
        assert text_of(await HttpSession(listener.connect(), E).call(1, "hello")) == "hello"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_http_server_has_two_thousand_connections_by_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also through `serve_http`, which hands the number on."""
    made: list[str] = []

    class Spy(ServerConnections):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(repr(self))

    monkeypatch.setattr(mcp_trio.http_server._serve, "ServerConnections", Spy)
    async with served_over_http(make()):
        await wait()
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_http, make())
        nursery.cancel_scope.cancel()
    assert made == ["<ServerConnections: 0 of 2000>"] * 2


async def test_http_client_that_is_gone_has_no_address() -> None:
    """It can reset the connection before it is served; that must not end the server."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        client = await trio.testing.open_stream_to_socket_listener(listener)
        async with await listener.accept() as stream:
            assert _peer_address(stream) == "127.0.0.1"
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await client.aclose()
            with pytest.raises(trio.BrokenResourceError):
                await stream.receive_some()
            assert _peer_address(stream) == ""


async def test_http_server_access_log_has_each_exchange() -> None:
    entries: list[AccessLogEntry] = []
    async with served_over_http(make(), on_exchange=entries.append) as listener:
        session = HttpSession(listener.connect(), E)
        await session.call(1, "hello")
        await session.ask(get("/none"))
    assert [(each.method, each.target, each.status, each.rpc_method) for each in entries] == [
        ("POST", "/mcp", 200, "tools/call"),
        ("GET", "/none", 404, ""),
    ]


async def test_http_server_access_log_forges_no_line() -> None:
    """The method of a body may be any text."""
    entries: list[AccessLogEntry] = []
    method = "tools/call\n12:00 GET /admin 200\x1b[2J\u202e"
    async with served_over_http(make(), on_exchange=entries.append) as listener:
        session = HttpSession(listener.connect(), D)
        await session.shake_hands()
        await session.post(request(1, method, {}))
    assert entries[-1].rpc_method == "tools/call\\n12:00 GET /admin 200\\u001b[2J\\u202e"


# Rows that differ from the functions for heads, because the server skips empty lines before one.
SKIPPED: Final = {
    "an empty line before it": SERVED,
    "two empty lines before it": SERVED,
    "an empty line": WAITS,
}


# The first row of each status. That each head has its status is shown of the function for heads.
OF_EACH_STATUS: Final = list({row.status: row for row in reversed(ROWS)}.values())


@pytest.mark.parametrize(
    "row",
    [*OF_EACH_STATUS, *(row for row in ROWS if row.name in SKIPPED)],
    ids=lambda row: row.name,
)
async def test_http_server_head_of_each_status_gets_it(row: Row) -> None:
    await assert_head_gets_its_status(row)


@pytest.mark.long
async def test_http_server_heads_of_corpus_get_their_status() -> None:
    for row in ROWS:
        await assert_head_gets_its_status(row)


async def assert_head_gets_its_status(row: Row) -> None:
    site = FakeRouter()
    async with serving(site) as served:
        wire = served.connect()
        await wire.send(row.raw)
        status = SKIPPED.get(row.name, row.status)
        if status in (SERVED, WAITS):
            await wait()
            begun = [exchange.reading for exchange in site.exchanges[:1]]
            assert begun == [False] if status == SERVED else begun in ([], [True])
        else:
            answer = await wire.answer()
            assert (answer.status, answer.headers[b"connection"]) == (row.status, b"close")
            assert site.exchanges == []
            assert await wire.rest() == b""


# -- Real sockets --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


async def test_http_server_tls_is_served(authority: trustme.CA) -> None:
    """Plain HTTP and an aborted handshake harm no other client, and TLS ends with close_notify."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    trusting.set_alpn_protocols(["http/1.1"])
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, make(), tls=context))
        assert address.url == f"https://127.0.0.1:{address.port}/mcp"
        # A client without TLS, or one that closes during the handshake, affects no other.
        async with await trio.open_tcp_stream("127.0.0.1", address.port) as plain:
            await plain.send_all(get())
            assert b"HTTP" not in await plain.receive_some()
        await (await trio.open_tcp_stream("127.0.0.1", address.port)).aclose()
        tcp = await trio.open_tcp_stream("127.0.0.1", address.port)
        stream = trio.SSLStream(tcp, trusting, server_hostname="127.0.0.1")
        session = HttpSession(stream, E)
        assert text_of(await session.call(1, "hello")) == "hello"
        assert stream.selected_alpn_protocol() == "http/1.1"
        answer = await session.ask(
            session.posting(session.calling(2, "hello"), b"connection: close")
        )
        assert answer.status == 200
        assert await session.rest() == b""  # an orderly TLS end, not a truncation
        await stream.aclose()
        tcp = await trio.open_tcp_stream("127.0.0.1", address.port)
        session = HttpSession(trio.SSLStream(tcp, trusting, server_hostname="127.0.0.1"), E)
        assert (await session.ask(b" \r\n\r\n")).status == 400
        await session.stream.aclose()
        nursery.cancel_scope.cancel()


async def test_http_server_tls_handshake_times_out(
    autojump_clock: MockClock, authority: trustme.CA
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    async with served_over_http(make(), tls=context) as listener:
        wire = HttpWire(listener.connect())
        assert await wire.rest() == b""
        assert trio.current_time() == 10


@pytest.mark.parametrize(
    ("host", "hosts", "warns"),
    [
        ("127.0.0.1", (), False),
        ("localhost", (), False),
        ("0.0.0.0", (), True),
        ("0.0.0.0", ("a.example",), False),
    ],
)
async def test_http_server_on_all_addresses_without_hosts_warns(
    host: str, hosts: tuple[str, ...], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, make(), host, hosts=hosts))
        async with await trio.open_tcp_stream(address.host, address.port) as stream:
            session = HttpSession(stream, E)
            assert text_of(await session.call(1, "hello")) == "hello"
            rebound = session.posting(session.calling(2, "hello")).replace(
                b"host: localhost", b"host: evil.example"
            )
            assert (await session.ask(rebound)).status == 421
        nursery.cancel_scope.cancel()
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * warns
    assert not warns or "hosts=" in caplog.text


async def test_http_server_free_port_uses_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """`localhost` has two addresses, whose free ports would differ: the second one is closed."""
    made = [
        *await trio.open_tcp_listeners(0, host="127.0.0.1"),
        *await trio.open_tcp_listeners(0, host="127.0.0.1"),
    ]

    async def open_tcp_listeners(port: int, *, host: str) -> list[trio.SocketListener]:
        await trio.lowlevel.checkpoint()
        return list(made)

    monkeypatch.setattr(trio, "open_tcp_listeners", open_tcp_listeners)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(serve_http, make(), "localhost")
        assert address == ("localhost", address.port, f"http://localhost:{address.port}/mcp")
        assert address.port == made[0].socket.getsockname()[1]
        assert made[1].socket.fileno() == -1
        nursery.cancel_scope.cancel()


async def test_http_server_address_in_use_raises() -> None:
    async with trio.open_nursery() as nursery:
        address = await nursery.start(serve_http, make())
        with pytest.raises(OSError, match="in use"):
            await serve_http(make(), port=address.port)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_http_shuts_down_on_a_signal(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real signal arrives during a call, which finishes before the exit status is set."""
    notes = Notes()
    serve = mcp_trio.http_server._serve.serve_http

    async def call_and_kill(address: HttpAddress) -> None:
        async with await trio.open_tcp_stream(address.host, address.port) as stream:
            session = HttpSession(stream, E)
            await session.send(
                session.posting(session.calling(1, "sleep", {"seconds": 0.2, "name": "it"}))
            )
            await until(lambda: notes.started)
            signal.raise_signal(number)
            assert text_of(json.loads((await session.answer()).body)) == "slept"

    async def watched(
        *args: Any, task_status: trio.TaskStatus[HttpAddress], **options: Any
    ) -> None:
        async with trio.open_nursery() as nursery:
            address = await nursery.start(partial(serve, *args, **options))
            nursery.start_soon(call_and_kill, address)
            task_status.started(address)

    monkeypatch.setattr(mcp_trio.http_server._serve, "serve_http", watched)
    with pytest.raises(SystemExit) as caught:
        mcp_trio.run_http(make(notes), port=0)
    assert caught.value.code == 128 + number
    assert notes.ended == ["it slept"]


# -- Several workers -------------------------------------------------------------------------------


class KeyedStore(MemoryStore):
    needs_keys = True


@pytest.mark.parametrize(
    ("servers", "store", "text"),
    [
        (Server("s"), KeyedStore(), "'s' needs state_keys="),
        (
            {"/a": Server("a", state_keys={"1": b"x" * 32}), "/b": Server("b")},
            KeyedStore(),
            "'b' needs state_keys=",
        ),
        ({"/a": Server("s"), "/b": Server("s")}, MemoryStore(), "two servers have the name 's'"),
    ],
)
async def test_store_that_cannot_be_shared_is_refused_before_anything_listens(
    servers: Any, store: MemoryStore, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listens(*args: Any, **options: Any) -> None:
        raise AssertionError("it listens")

    monkeypatch.setattr(trio, "open_tcp_listeners", listens)
    with pytest.raises(ValueError, match=text):
        await serve_http(servers, store=store)


async def test_servers_of_a_mapping_share_one_store(autojump_clock: MockClock) -> None:
    """Two processes with the same two servers: each server hears of its own namesake only."""
    store = MemoryStore()
    heard: list[str] = []
    processes = [[Server("a"), Server("b")] for _ in range(2)]
    for server in processes[1]:

        @server.on_remote_change
        def hear(change: mcp_trio.RemoteChange[None]) -> None:
            heard.append(change.server.info.name)

    options = HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1"))
    async with trio.open_nursery() as nursery:
        for servers in processes:
            started = trio.Event()
            listeners: list[Any] = [MemoryListener()]
            nursery.start_soon(
                partial(
                    serve_http_listeners,
                    listeners,
                    {f"/{server.info.name}": server for server in servers},
                    options,
                    routes={},
                    store=store,
                    started=started.set,
                )
            )
            await started.wait()
        assert heard == ["a", "b"]  # before they serve
        processes[0][1].changed(tools=True)
        await trio.sleep(1)
        assert heard == ["a", "b", "b"]
        nursery.cancel_scope.cancel()


# -- Messages of an extension, and what handlers see -----------------------------------------------


@ERAS
@pytest.mark.parametrize("scheme", ["http", "ws"])
async def test_http_server_and_client_exchange_messages_of_an_extension(
    scheme: str, version: str, nursery: trio.Nursery
) -> None:
    """On the stream of the call that they belong to; a client's own notification is a POST."""
    extension: dict[str, Any] = {"com.example/inbox": {}}
    server = Server("inbox", extensions=extension)
    seen: list[Any] = []
    statuses: list[int] = []

    @server.tool
    async def tell(context: Context) -> str:
        """Send a notification, and until 2025-11-25 a request."""
        await context.notify("notifications/inbox/new", {"from": "Ada"})
        if not context.peer.dialect.stateful:
            return "told"
        return str((await context.request("inbox/open", {"from": "Ada"}))["text"])

    serve = partial(serve_http, server, on_exchange=lambda entry: statuses.append(entry.status))
    address = await nursery.start(serve)
    url = address.url.replace("http", scheme, 1)
    async with mcp_trio.connect(
        url,
        versions=[version],
        extensions=extension,
        on_notification={"notifications/inbox/new": seen.append},
        on_request={"inbox/open": lambda params: {"text": f"opened {params['from']}"}},
    ) as client:
        text = (await client.call_tool("tell")).text
        assert text == ("opened Ada" if version == D else "told")
        assert seen == [{"from": "Ada"}]
        await client.notify("notifications/inbox/read", {"from": "Ada"})
        assert (await client.call_tool("tell")).text == text
    nursery.cancel_scope.cancel()
    assert set(statuses) <= {101, 200, 202, 204}


async def test_http_handler_sees_headers_of_odd_bytes_up_to_the_limit() -> None:
    """Above it a request is refused with 431, before anything is parsed."""
    server = Server("asked")

    @server.tool
    def sizes(context: Context) -> dict[str, int]:
        """Return the sizes of all headers, and the sum of the codes in one."""
        found = {name: len(value) for name, value in context.headers.items()}
        return {**found, "sum": sum(map(ord, context.headers["x-odd"]))}

    odd = bytes(range(128, 256))
    many = [b"x-long-%d: " % number + odd * 62 for number in range(3)]
    async with served_over_http(server) as listener:
        session = HttpSession(listener.connect(), E)
        message = session.calling(1, "sizes")
        answer = await session.ask(session.posting(message, b"X-Odd: " + odd, *many))
        result = json.loads(answer.body)["result"]["structuredContent"]
        assert result["sum"] == sum(odd)
        assert [result[f"x-long-{number}"] for number in range(3)] == [128 * 62] * 3
        refused = await session.ask(session.posting(message, *[b"x: " + odd * 62] * 8))
        assert refused.status == 431
