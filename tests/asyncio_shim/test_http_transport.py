"""The client over HTTP on asyncio: on sockets, with the SDK, and with mcp_trio.

What both drivers do is in `tests/drivers/test_http_client.py`.

Which connection carries a call is tested with `HttpRequestRunner` and `HttpClient`,
in `tests/core`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import socket
import ssl
import struct
import threading
import weakref
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import h11
import pytest
import trio
import trustme
from msgspec import Struct

import mcp_trio
from mcp_asyncio_shim import connect
from mcp_asyncio_shim._http_connection import _H11ClientConnection
from mcp_core import CallTimeout, Change, ConnectFailed, ConnectionLost, PeerError
from mcp_core.http import MAX_RESPONSE_HEAD, Body, RequestHead
from mcp_core.registry import Context, Server
from mcp_core.types import ElicitParams, TextContent
from tests.conformance.everything_server import everything
from tests.harness.asyncio_memory import asyncio_memory_pair
from tests.harness.jsonrpc import VERSIONS, D, E
from tests.harness.world.loop import descriptors, run, until
from tests.harness.world.virtual_time import advance_clock
from tests.harness.world.waiting import PATIENCE
from tests.interop.http_servers import Servers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from mcp_asyncio_shim import Client
    from tests.harness.asyncio_memory import MemoryEnd

    Play = Callable[["StatelessServer", Any, asyncio.StreamWriter], Awaitable[None]]

MODES = ("sessions", "stateless", "json")
INFO = {"name": "played", "version": "1"}
DISCOVERED = {
    "supportedVersions": [E],
    "capabilities": {"tools": {}},
    "serverInfo": INFO,
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}
DONE = {"content": [], "resultType": "complete"}


class Who(Struct):
    """The form that a user fills in."""

    name: str


# -- Connections -----------------------------------------------------------------------------------


class StatelessServer:
    """A server in the stateless revision, of which the test plays how tool calls are answered.

    `requests` are the methods of the requests, each with the number of the connection.
    """

    def __init__(self, play: Play) -> None:
        self.play = play
        self.requests: list[tuple[int, str]] = []
        self.opened = 0
        self.readers: set[asyncio.StreamReader] = set()
        self.serving: set[asyncio.Task[Any] | None] = set()
        self._changed = asyncio.Event()

    async def until(self, ready: Callable[[], object]) -> None:
        """Wait for what is true once a request has come, or a connection is closed."""
        while not ready():
            self._changed.clear()
            await self._changed.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.readers.add(reader)
        self.serving.add(asyncio.current_task())
        number, http, body = self.opened, h11.Connection(h11.SERVER), b""
        try:
            while True:
                event = http.next_event()
                if event is h11.NEED_DATA:
                    http.receive_data(await reader.read(65_536))
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    message, body = json.loads(body), b""
                    self.requests.append((number, message["method"]))
                    self._changed.set()
                    play = discovered if message["method"] == "server/discover" else self.play
                    await play(self, message, writer)
                    http = h11.Connection(h11.SERVER)
                elif isinstance(event, h11.ConnectionClosed):
                    return
        except (OSError, h11.RemoteProtocolError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self.serving.discard(asyncio.current_task())
            self._changed.set()


def answer(id: Any, result: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


async def discovered(server: StatelessServer, message: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(message["id"], DISCOVERED))


async def done(server: StatelessServer, message: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(message["id"], DONE))


@asynccontextmanager
async def connected(play: Play, **options: Any) -> AsyncIterator[tuple[Client, StatelessServer]]:
    played = StatelessServer(play)
    async with await asyncio.start_server(played.serve, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        async with connect(f"http://127.0.0.1:{port}/mcp", versions=[E], **options) as client:
            yield client, played
        await played.until(lambda: not played.serving)


def test_calls_in_sequence_use_one_connection() -> None:
    async def main() -> None:
        async with connected(done) as (client, played):
            for _ in range(3):
                assert (await client.call_tool("t")).content == []
            assert played.requests == [(1, "server/discover"), *[(1, "tools/call")] * 3]
            await asyncio.gather(client.call_tool("t"), client.call_tool("t"))
            assert played.opened == 2

    run(main())


def test_response_without_length_ends_with_connection() -> None:
    async def last(server: StatelessServer, message: Any, writer: asyncio.StreamWriter) -> None:
        response = answer(message["id"], DONE).replace(b"content-length", b"x-length")
        writer.write(response.replace(b"HTTP/1.1", b"HTTP/1.0"))
        writer.close()

    async def main() -> None:
        async with connected(last) as (client, played):
            await client.call_tool("t")
            await client.call_tool("t")
            assert [number for number, _ in played.requests] == [1, 1, 2]

    run(main())


@pytest.mark.parametrize(
    "more", [b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", b""]
)
def test_connection_with_unexpected_input_is_not_reused(
    more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even for a request that must not be sent twice."""
    received: set[asyncio.StreamReader] = set()

    def watch(name: str) -> None:
        feed = getattr(asyncio.StreamReader, name)

        def note(reader: asyncio.StreamReader, *data: bytes) -> None:
            feed(reader, *data)
            if data in ((), (more,)):
                received.add(reader)

        monkeypatch.setattr(asyncio.StreamReader, name, note)

    watch("feed_data")
    watch("feed_eof")

    async def main() -> None:
        answered = asyncio.Event()

        async def once(server: StatelessServer, message: Any, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(message["id"], DONE))
            await answered.wait()
            answered.clear()
            writer.write(more) if more else writer.write_eof()

        async with connected(once) as (client, played):
            for number in range(1, 4):
                await client.call_tool("t")
                answered.set()
                await until(lambda: len(received - played.readers) == number)  # noqa: B023
            assert [number for number, _ in played.requests] == [1, 1, 2, 3]

    run(main())


@pytest.mark.parametrize("idle", [False, True])
def test_connection_reset_is_not_reused(idle: bool, caplog: pytest.LogCaptureFixture) -> None:
    """In the middle of a call, or while idle."""

    async def main() -> None:
        answered = asyncio.Event()

        async def reset(
            server: StatelessServer, message: Any, writer: asyncio.StreamWriter
        ) -> None:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if idle:
                writer.write(answer(message["id"], DONE))
                await answered.wait()
                answered.clear()
            writer.transport.abort()

        async with connected(reset) as (client, played):
            unconnected = descriptors() - 2
            for _ in range(2):
                if idle:
                    await client.call_tool("t")
                    answered.set()
                    # Only the system knows that the client has seen it.
                    await until(lambda: descriptors() <= unconnected)
                else:
                    with pytest.raises(
                        ConnectionLost, match="closed the connection without an answer"
                    ):
                        await client.call_tool("t")
            assert [number for number, _ in played.requests] == [1, 1, 2]

    run(main())
    assert caplog.records == []


@pytest.mark.parametrize(
    ("response", "doubt"), [(b"", True), (b"HTTP/1.1 200 OK\r\n", False), (b"SSH-2.0-x\r\n", False)]
)
def test_doubt_whether_a_server_speaks_http_needs_a_silent_one(
    response: bytes, doubt: bool
) -> None:
    """The hint suits a port that closes without a word; any answer, even SSH's, excludes it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response)
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            with pytest.raises(ConnectFailed) as caught:
                async with connect(f"http://127.0.0.1:{port}/mcp", versions=[E]):
                    raise AssertionError
            assert ("is it an HTTP server" in str(caught.value)) is doubt

    run(main())


def test_session_whose_end_is_not_answered_is_left_after_a_second() -> None:
    """The transport stops its request, which would wait for as long as the server likes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while not (head := await reader.readuntil(b"\r\n\r\n")).startswith(b"DELETE"):
                length = re.search(rb"content-length: (\d+)", head)
                body = json.loads(await reader.readexactly(int(length[1])) if length else b"{}")
                if body.get("method") == "initialize":
                    result = {"protocolVersion": D, "capabilities": {}, "serverInfo": INFO}
                    session = b"\r\nmcp-session-id: 1\r\n\r\n"
                    writer.write(answer(body["id"], result).replace(b"\r\n\r\n", session, 1))
                else:
                    status = b"202 Accepted" if length else b"405 Method Not Allowed"
                    writer.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\n\r\n" % status)
            advance_clock(0.95)
            await reader.read()
        writer.close()

    async def main() -> float:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            async with connect(f"http://127.0.0.1:{port}/mcp", versions=[D]):
                began = asyncio.get_running_loop().time()
            return asyncio.get_running_loop().time() - began

    assert 1 <= run(main()) < 100


def test_closed_client_is_not_kept_by_its_timer() -> None:
    """The pool's timer for its idle connection would keep it for half a minute."""

    async def main() -> None:
        async with connected(done) as (client, _):
            await client.call_tool("t")
            closed = weakref.ref(client)
        del client
        gc.collect()
        assert closed() is None

    run(main())


# -- Connecting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "options", "error"),
    [
        ("server.py", {}, TypeError),
        ("ftp://here", {}, ValueError),
        ("http://", {}, ValueError),
        ("http://me:secret@here/", {}, ValueError),
        ("http://here", {"headers": {"host": "there"}}, ValueError),
        ("http://here", {"keep_alive": -1}, ValueError),
    ],
)
def test_connect_invalid_target_raises(target: str, options: Any, error: type[Exception]) -> None:
    async def main() -> None:
        with pytest.raises(error):
            await connect(target, **options).__aenter__()

    run(main())


def test_connect_unreachable_server_raises() -> None:
    async def main() -> None:
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
        with pytest.raises(
            ConnectFailed, match=f"cannot connect to 127.0.0.1:{port}: .*Connect call failed"
        ):
            await connect(f"http://127.0.0.1:{port}/mcp").__aenter__()
        with pytest.raises(ConnectFailed, match=r"cannot connect to nowhere\.invalid: "):
            await connect("http://nowhere.invalid/mcp").__aenter__()

    run(main())


def test_tls_certificates_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A private authority needs `tls=`, and the failed handshake leaves no task behind."""
    authority = trustme.CA()
    # Unlike `create_default_context`, they don't read the system's authorities.
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("localhost").configure_cert(theirs)
    authority.configure_trust(ours)

    async def main() -> None:
        played = StatelessServer(done)
        async with await asyncio.start_server(played.serve, "127.0.0.1", 0, ssl=theirs) as listener:
            url = f"https://localhost:{listener.sockets[0].getsockname()[1]}/mcp"
            async with connect(url, versions=[E], tls=ours) as client:
                for _ in range(2):
                    await client.call_tool("t")
            assert played.opened == 1
            with pytest.raises(ConnectFailed, match="certificate verify failed"):
                await connect(url, versions=[E]).__aenter__()
            # One of asyncio's own is for the handshake that failed.
            await until(lambda: len(asyncio.all_tasks()) == 1)

    run(main())


# -- Real servers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers(*(("sdk_server", mode) for mode in MODES))
    yield running
    running.close()


@pytest.mark.interop
@pytest.mark.parametrize("version", [E, D])
@pytest.mark.parametrize("mode", MODES)
def test_sdk_server_over_http_is_used_in_every_mode(
    servers: Servers, mode: str, version: str
) -> None:
    """In JSON mode the SDK sends no progress and doesn't notice a client that has left."""

    async def main() -> None:
        url = servers.url("sdk_server", mode)
        async with connect(url, versions=[version], headers={"x-mine": "1"}) as client:
            assert client.peer.dialect.version == version
            received: list[float] = []
            counted = await client.call_tool(
                "count", {"to": 3}, progress=lambda step, *_: received.append(step)
            )
            assert counted.content == [TextContent("3")]
            assert received == ([] if mode == "json" else [1, 2, 3])
            with pytest.raises(CallTimeout):
                await client.call_tool("wait", timeout=0.1)
            if mode != "json":  # then it does not check whether the client is still connected
                assert (await client.call_tool("cancelled")).content == [TextContent("yes")]
            results = await asyncio.gather(
                *(client.call_tool("echo", {"text": str(n)}) for n in range(50))
            )
            assert [result.text for result in results] == [str(n) for n in range(50)]

    run(main())


@contextmanager
def on_trio(server: Server | None = None, **options: Any) -> Iterator[str]:
    """Yield the URL of our server, which runs on trio in a thread."""
    urls: list[str] = []
    up, stop = threading.Event(), trio.Event()
    token: list[trio.lowlevel.TrioToken] = []

    async def serve() -> None:
        token.append(trio.lowlevel.current_trio_token())
        async with trio.open_nursery() as nursery:
            serving = partial(
                mcp_trio.serve_http, server or everything(), stop=stop, grace=0.1, **options
            )
            address: mcp_trio.HttpAddress = await nursery.start(serving)
            urls.append(address.url)
            up.set()

    thread = threading.Thread(target=trio.run, args=[serve])
    thread.start()
    try:
        assert up.wait(PATIENCE)
        yield urls[0]
    finally:
        token[0].run_sync_soon(stop.set)
        thread.join()


@pytest.mark.parametrize("version", VERSIONS)
def test_trio_server_over_http_is_used_in_each_revision(version: str) -> None:
    """Two event loops, one wire: asyncio calls a trio server over a real socket."""

    async def main(url: str) -> None:
        async with connect(url, versions=[version]) as client:
            assert client.peer.dialect.version == version
            assert (await client.call_tool("echo", {"text": "☃"})).content == [TextContent("☃")]
            received: list[float] = []
            await client.call_tool(
                "count", {"to": 3}, progress=lambda step, *_: received.append(step)
            )
            assert received == [1, 2, 3]
            with pytest.raises(PeerError, match="not today"):
                await client.call_tool("fail", {"how": "error"})
            [contents] = (await client.read_resource("book://austen/emma")).contents
            assert contents.text == "emma, by austen."
            assert len(await client.list_tools()) > 40

    with on_trio() as url:
        asyncio.run(main(url))


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("version", [D, E])
def test_trio_server_asks_for_input_and_sends_changes(scheme: str, version: str) -> None:
    """Elicitation and list changes use different messages per revision, also on WebSocket."""
    server = Server("asking")

    @server.tool
    async def ask(context: Context) -> str:
        """Ask the user for a name."""
        return str((await context.elicit("Who?", Who)).action)

    @server.tool
    def change() -> None:
        """Change."""
        server.changed(tools=True)

    def answer(params: ElicitParams) -> dict[str, str]:
        messages.append(params.message)
        return {"name": "Ada"}

    messages: list[str] = []

    async def main(url: str) -> None:
        there = url.replace("http", scheme)
        async with connect(there, versions=[version], on_elicit=answer) as client:
            assert (await client.call_tool("ask")).text == "accept"
            assert messages == ["Who?"]
            async with client.listen(tools=True) as changes:
                await client.call_tool("change")
                assert await anext(changes) == Change("tools")

    with on_trio(server) as url:
        asyncio.run(main(url))


def test_response_head_that_is_too_long_with_its_last_piece_is_connection_lost() -> None:
    """h11 alone has a limit only for what is incomplete."""
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: "
    whole = start + b"y" * (MAX_RESPONSE_HEAD - len(start) - 3) + b"\r\n\r\n"

    async def main() -> None:
        ours, theirs = asyncio_memory_pair()
        connection = _H11ClientConnection(ours.reader, ours.writer)
        head = RequestHead(b"GET", b"/mcp", [(b"host", b"here")])
        running = asyncio.create_task(connection.run(head, b"", lambda actions: None))
        for piece in (whole[:60_000], whole[60_000:]):
            await theirs.send_all(piece)
            for _ in range(5):
                await asyncio.sleep(0)
        with pytest.raises(ConnectionLost, match="head has more than 65536 bytes"):
            await running
        await connection.aclose()

    run(main())


def test_request_that_http_refuses_raises_and_sends_nothing() -> None:
    async def main() -> None:
        ours, theirs = asyncio_memory_pair()
        connection = _H11ClientConnection(ours.reader, ours.writer)
        head = RequestHead(b"GET", b"/mcp", [(b"host", b"here"), (b"x", b"a\r\nb")])
        with pytest.raises(ValueError, match=r"the request cannot be written as HTTP/1\.1: "):
            await connection.run(head, b"", lambda actions: None)
        await connection.aclose()
        assert await theirs.receive_some() == b""

    run(main())


# -- One connection --------------------------------------------------------------------------------


@asynccontextmanager
async def h11_connection() -> AsyncIterator[tuple[_H11ClientConnection, MemoryEnd]]:
    """Yield a connection and the server's end. When it is closed, nothing of it runs any more."""
    ours, theirs = asyncio_memory_pair()
    connection = _H11ClientConnection(ours.reader, ours.writer)
    try:
        yield connection, theirs
    finally:
        await connection.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert ours.transport.is_closing()


HEAD = RequestHead(b"POST", b"/mcp", [(b"host", b"here")])
OK = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"


def test_response_is_read_while_its_taker_is_ready_only() -> None:
    """A paused response isn't read on, so that TCP's flow control slows the server down."""

    async def main() -> None:
        resumed = asyncio.Event()
        sizes: list[int] = []

        def take(actions: list[Any]) -> asyncio.Event | None:
            sizes.extend(len(each.data) for each in actions if isinstance(each, Body))
            return resumed if sizes else None

        async with h11_connection() as (connection, theirs):
            running = asyncio.create_task(connection.run(HEAD, b"{}", take))
            await theirs.send_all(OK % 6 + b"one")
            await asyncio.sleep(1)
            assert sizes == [3]
            await theirs.send_all(b"2")
            await asyncio.sleep(1)
            await theirs.send_all(b"34")
            await asyncio.sleep(1)
            assert (sizes, running.done()) == ([3], False)
            resumed.set()
            assert await running is True
            assert sum(sizes) == 6

    run(main())


@pytest.mark.parametrize(("size", "reused"), [(10, True), (1_000_000, False)])
def test_connection_is_not_reused_before_its_request_is_sent(size: int, reused: bool) -> None:
    """A server may respond, for example with status 413, before it has read all."""

    async def main() -> None:
        async with h11_connection() as (connection, theirs):
            running = asyncio.create_task(connection.run(HEAD, b"x" * size, lambda actions: None))
            await asyncio.sleep(1)
            await theirs.send_all(OK % 0)
            assert await running is reused

    run(main())
