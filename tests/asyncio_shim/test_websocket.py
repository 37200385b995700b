"""WebSockets on asyncio: our client with two other servers, and our ASGI application.

The protocol of a WebSocket is tested in `tests/core/http`.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from websockets.asyncio.server import ServerConnection, serve
from websockets.frames import Opcode

from mcp_asyncio_shim import asgi, connect
from mcp_asyncio_shim._connect import _read_response
from mcp_asyncio_shim._websocket import _FramedWebSocket
from mcp_core import (
    AuthRequired,
    Config,
    ConnectFailed,
    Connection,
    ConnectionLost,
    PeerError,
    Pump,
    Role,
)
from mcp_core.adapters import H11ResponseReader
from mcp_core.types import ClientCapabilities, Implementation, TextContent
from tests.asyncio_shim.test_http_transport import DISCOVERED, DONE, on_trio
from tests.conformance.everything_server import everything
from tests.core.http.server.test_auth import guard
from tests.harness.jsonrpc import VERSIONS, D, E
from tests.harness.world.loop import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_asyncio_shim import Client

    Play = Callable[[ServerConnection, Any], Awaitable[None]]


# -- Our client ------------------------------------------------------------------------------------


def answer(message: Any, result: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


@asynccontextmanager
async def connected(play: Play, **options: Any) -> AsyncIterator[Client]:
    """Yield a stateless client of a `websockets` server. `play` gets each tool call."""

    async def converse(wire: ServerConnection) -> None:
        async for raw in wire:
            message = json.loads(raw)
            if message.get("method") == "server/discover":
                await wire.send(answer(message, DISCOVERED))
            elif "id" in message:
                await play(wire, message)

    async with (
        serve(converse, "127.0.0.1", 0, subprotocols=["mcp"], **options) as server,  # type: ignore[list-item]
        connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/", versions=[E]) as client,
    ):
        yield client


def test_fragmented_messages_between_pings_arrive() -> None:
    async def play(wire: ServerConnection, message: Any) -> None:
        response = answer(message, DONE)
        pong = await wire.ping()
        await wire.send([response[:10], response[10:11], response[11:]])
        await pong

    async def main() -> None:
        async with connected(play, compression="deflate") as client:
            for _ in range(3):
                assert (await client.call_tool("t")).content == []

    run(main())


def test_megabyte_over_websocket_passes_both_ways() -> None:
    async def play(wire: ServerConnection, message: Any) -> None:
        content = [{"type": "text", "text": message["params"]["arguments"]["words"]}]
        await wire.send(answer(message, {**DONE, "content": content}))

    async def main() -> None:
        words = "☃" * 350_000
        async with connected(play, max_size=None) as client:
            results = await asyncio.gather(
                *(client.call_tool("t", {"words": words}) for _ in range(3))
            )
            assert {result.text for result in results} == {words}

    run(main())


def test_long_message_in_pieces_restarts_write_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece that is written restarts the timeout."""
    monkeypatch.setattr("mcp_core.http.wire._websocket_frames._CHUNK", 100)

    async def main() -> None:
        info = Implementation(name="c" * 500, version="1")
        socket = _FramedWebSocket(
            Connection(Role.CLIENT, Config(info, ClientCapabilities(), versions=[D]))
        )
        now = socket._clock()
        socket._clock = lambda: now
        assert not socket.queued()
        socket.conn.open(now)
        pieces = []
        for _ in range(6):
            assert socket.queued()
            pieces.append(bytes(socket.data_to_send()))
            now += 25.0
            socket.handle_timeout(now)
        assert [len(piece) for piece in pieces] == [100] * 6
        assert not socket.disconnected
        socket.conn.close()
        Pump(socket, lambda event: None).run()

    run(main())


def test_idle_websocket_sends_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pings and pongs of an idle connection don't disturb the call that follows."""
    monkeypatch.setattr("mcp_core.http.wire._websocket._PING_INTERVAL", 0.02)

    pinged = asyncio.Event()

    class PingedConnection(ServerConnection):
        def process_event(self, event: Any) -> None:
            if getattr(event, "opcode", None) is Opcode.PING:
                pinged.set()
            super().process_event(event)

    async def play(wire: ServerConnection, message: Any) -> None:
        await wire.send(answer(message, DONE))

    async def main() -> None:
        async with connected(play, create_connection=PingedConnection) as client:
            await pinged.wait()
            await client.call_tool("t")

    run(main())


@pytest.mark.process
def test_ping_without_pong_closes_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_core.http.wire._websocket._PING_INTERVAL", 0.05)

    async def die(wire: ServerConnection, message: Any) -> None:
        wire.transport.pause_reading()

    async def main() -> None:
        async with connected(die, close_timeout=0.1) as client:
            with pytest.raises(ConnectionLost, match="no answer to a ping"):
                await client.call_tool("t")

    run(main())


async def binary(wire: ServerConnection, message: Any) -> None:
    await wire.send(b"{}")


async def bye(wire: ServerConnection, message: Any) -> None:
    await wire.close(1001, "so long")


async def gone(wire: ServerConnection, message: Any) -> None:
    wire.transport.abort()


async def nonsense(wire: ServerConnection, message: Any) -> None:
    wire.transport.write(b"\xff" * 20)


@pytest.mark.parametrize(
    ("play", "error"),
    [
        (binary, "the WebSocket was closed: messages are text"),
        (bye, "the server closed the WebSocket (1001, so long)"),
        (gone, "the server broke off the connection"),
        (nonsense, "the WebSocket was closed: Invalid opcode 0xf"),
    ],
)
def test_websocket_ending_raises_connection_lost(play: Play, error: str) -> None:
    async def main() -> None:
        async with connected(play) as client:
            calls = [asyncio.create_task(client.call_tool("t")) for _ in range(3)]
            for ended in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(ended, ConnectionLost)
                assert str(ended) == error
            with pytest.raises(ConnectionLost, match=r"WebSocket|broke off"):
                await client.call_tool("t")

    run(main())


def test_aclose_sends_close_frame() -> None:
    """The server sees code 1000, so it can tell a proper end from a lost connection."""
    closed: list[tuple[int | None, str | None]] = []

    async def main() -> None:
        over = asyncio.Event()

        async def converse(wire: ServerConnection) -> None:
            message = json.loads(await wire.recv())
            await wire.send(answer(message, DISCOVERED))
            await wire.wait_closed()
            closed.append((wire.close_code, wire.close_reason))
            over.set()

        async with serve(converse, "127.0.0.1", 0, subprotocols=["mcp"]) as server:  # type: ignore[list-item]
            port = server.sockets[0].getsockname()[1]
            async with connect(f"ws://127.0.0.1:{port}/", versions=[E]) as client:
                await client.aclose()
            await over.wait()

    run(main())
    assert closed == [(1000, "")]


def test_redirected_upgrade_without_subprotocol_connects() -> None:
    """A server under `/mcp/` that selects no subprotocol, as web frameworks' servers do."""
    asked: list[str] = []

    def redirect(wire: ServerConnection, request: Any) -> Any:
        asked.append(request.path)
        if request.path == "/mcp/":
            return None
        response = wire.respond(307, "")
        response.headers["Location"] = "/mcp/"
        return response

    async def converse(wire: ServerConnection) -> None:
        message = json.loads(await wire.recv())
        await wire.send(answer(message, DISCOVERED))
        await wire.wait_closed()

    async def main() -> None:
        async with serve(converse, "127.0.0.1", 0, process_request=redirect) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
            async with connect(url, versions=[E], subprotocols=[]) as client:
                assert client.peer.dialect.version == E
            with pytest.raises(ConnectFailed, match=r"subprotocols=\(\)"):
                await connect(url, versions=[E]).__aenter__()

    run(main())
    assert asked == ["/mcp", "/mcp/"] * 2


REFUSALS: list[tuple[bytes, str]] = [
    (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "no WebSocket: HTTP status 404"),
    (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        "does not match the request",
    ),
    (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "not HTTP/1.1"),
    (b"\r\n\r\n", "not HTTP/1.1"),
    # It may have echoed a header that it got.
    (b"HTTP/1.1 200 OK\r\nx CANARY: 1\r\n\r\n", "illegal header line$"),
    (b"", "without an answer"),
    (b"HTTP/1.1 100 Continue\r\n\r\n", "without an answer"),
    (b"H", "in the middle of its answer"),
    (b"HTTP/1.1 200 OK\r\nx", "in the middle of its answer"),
    (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 140_000, "head of the server's answer is too long"),
]


@pytest.mark.parametrize(("response", "why"), REFUSALS)
def test_upgrade_refused_raises(response: bytes, why: str) -> None:
    """The error says why, without the response's secrets, and differs from a closed port."""

    async def main() -> None:
        refused = asyncio.Event()

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(response)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            refused.set()

        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            with pytest.raises(ConnectFailed, match=why) as caught:
                await connect(f"ws://127.0.0.1:{port}/mcp").__aenter__()
            assert "CANARY" not in str(caught.value)
            await refused.wait()
        with pytest.raises(ConnectFailed, match="cannot connect"):
            await connect(f"ws://127.0.0.1:{port}/mcp").__aenter__()

    run(main())


@pytest.mark.parametrize(
    ("beginning", "where"), [(b"", "without an"), (b"HTTP/1.1 404", "in the middle of its")]
)
def test_upgrade_on_a_connection_that_is_reset_says_how_far_it_came(
    beginning: bytes, where: str
) -> None:
    async def main() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(beginning)
        reading = asyncio.create_task(_read_response(H11ResponseReader(), reader))
        await asyncio.sleep(0)
        reader.set_exception(ConnectionResetError())
        with pytest.raises(ConnectionLost, match=f"closed the connection {where} answer$"):
            await reading

    run(main())


def test_upgrade_without_response_ends_after_ten_seconds() -> None:
    """The loop's time stands still, but for what the test adds."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        loop.time = lambda: now  # type: ignore[method-assign]
        requested = asyncio.Event()

        async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            requested.set()
            await reader.read()
            writer.close()

        async with await asyncio.start_server(stay_silent, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            connecting = asyncio.create_task(
                connect(f"ws://127.0.0.1:{port}/mcp", initialize_timeout=None).__aenter__()
            )
            await requested.wait()
            for passed, is_over in ((9.9, False), (0.2, True)):
                now += passed
                await asyncio.wait([connecting], timeout=0)
                for _ in range(10):
                    await asyncio.sleep(0)
                assert connecting.done() is is_over
            with pytest.raises(ConnectFailed, match="not give us a WebSocket within 10 s"):
                await connecting

    run(main())


@pytest.mark.parametrize(
    ("url", "headers", "text"),
    [
        ("ws://", {}, "host and port of .* cannot be read"),
        ("wsx://here", {}, "a ws:// or wss:// URL is needed, not 'wsx://here'"),
        ("ws://here", {"upgrade": "x"}, "the header upgrade is set by the protocol"),
    ],
)
def test_connect_invalid_websocket_url_raises(url: str, headers: dict[str, str], text: str) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match=text):
            await connect(url, headers=headers).__aenter__()

    run(main())


@pytest.mark.parametrize("version", VERSIONS)
def test_trio_server_over_websocket_answers_asyncio_client(version: str) -> None:
    """Fifty calls share one socket, and a handler's error leaves it usable."""

    async def main(url: str) -> None:
        async with connect(url.replace("http", "ws"), versions=[version]) as client:
            assert client.peer.dialect.version == version
            assert (await client.call_tool("echo", {"text": "☃"})).content == [TextContent("☃")]
            received: list[float] = []
            await client.call_tool(
                "count", {"to": 3}, progress=lambda step, *_: received.append(step)
            )
            assert received == [1, 2, 3]
            with pytest.raises(PeerError, match="not today"):
                await client.call_tool("fail", {"how": "error"})
            results = await asyncio.gather(
                *(client.call_tool("count", {"to": 5}) for _ in range(50))
            )
            assert {result.text for result in results} == {"5"}

    with on_trio() as url:
        asyncio.run(main(url))


# -- Our application -------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["websockets-sansio", "wsproto"])
@pytest.mark.parametrize("version", [D, E])
def test_asgi_websocket_under_uvicorn_authorizes_and_carries_calls(
    library: Any, version: str
) -> None:
    """Our client and application with authorization, and both WebSocket libraries of uvicorn."""

    async def main() -> None:
        app = asgi(everything("asyncio"), auth=guard())
        config = uvicorn.Config(
            app, port=0, log_level="warning", ws=library, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        url = f"ws://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        try:
            with pytest.raises(
                ConnectFailed, match="no WebSocket: the server requires an access token"
            ) as refused:
                await connect(url).__aenter__()
            assert isinstance(refused.value.__cause__, AuthRequired)
            async with connect(
                url, versions=[version], headers={"authorization": "Bearer ann"}
            ) as client:
                received: list[float] = []
                counted = await client.call_tool(
                    "count", {"to": 20}, progress=lambda step, *_: received.append(step)
                )
                assert (counted.text, received) == ("20", list(range(1, 21)))
                words = "☃" * 100_000
                assert (await client.call_tool("echo", {"text": words})).text == words
        finally:
            server.should_exit = True
            await serving

    asyncio.run(main())
