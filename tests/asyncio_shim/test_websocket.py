"""WebSockets under asyncio: our client with servers that a test plays, with one of `websockets`, and with ours on trio; and our ASGI
application, by itself and under uvicorn.

What is said on a WebSocket, and when it ends, is the core's, and tested in `tests/core/http`.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from websockets.asyncio.server import ServerConnection, serve

from mcp_asyncio_shim import asgi, connect
from mcp_asyncio_shim._websocket import _FramedWebSocket
from mcp_core import AuthRequired, Config, ConnectFailed, Connection, ConnectionLost, PeerError, Pump, Role
from mcp_core.registry import Server
from mcp_core.types import ClientCapabilities, Implementation, TextContent
from tests.asgi import Neutral, hosting
from tests.asyncio_shim.everything import everything
from tests.asyncio_shim.loop import run
from tests.asyncio_shim.test_http import DISCOVERED, DONE, on_trio
from tests.core.helpers import VERSIONS, D, E, modern, request
from tests.core.http.site import initialize
from tests.core.http.test_guarded import guard
from tests.trio_.test_asgi_socket import ACCEPT, heard, socket, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_asyncio_shim import Client

    Play = Callable[[ServerConnection, Any], Awaitable[None]]


# -- Our client --------------------------------------------------------------------------------------------------------------------


def answer(message: Any, result: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


@asynccontextmanager
async def talking(play: Play, **options: Any) -> AsyncIterator[Client]:
    """A conversation with a server of `websockets`, in the stateless revision. `play` gets each call of a tool."""

    async def converse(wire: ServerConnection) -> None:
        async for told in wire:
            message = json.loads(told)
            if message.get("method") == "server/discover":
                await wire.send(answer(message, DISCOVERED))
            elif "id" in message:
                await play(wire, message)

    async with (
        serve(converse, "127.0.0.1", 0, subprotocols=["mcp"], **options) as server,  # type: ignore[list-item]
        connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/", versions=[E]) as client,
    ):
        yield client


def test_messages_in_fragments_and_pings_in_between() -> None:
    async def play(wire: ServerConnection, message: Any) -> None:
        said = answer(message, DONE)
        pong = await wire.ping()
        await wire.send([said[:10], said[10:11], said[11:]])
        await pong

    async def main() -> None:
        async with talking(play, compression="deflate") as client:
            for _ in range(3):
                assert (await client.call_tool("t")).content == []

    run(main())


def test_a_megabyte_either_way() -> None:
    async def play(wire: ServerConnection, message: Any) -> None:
        content = [{"type": "text", "text": message["params"]["arguments"]["words"]}]
        await wire.send(answer(message, {**DONE, "content": content}))

    async def main() -> None:
        words = "☃" * 500_000
        async with talking(play, max_size=None) as client:
            results = await asyncio.gather(*(client.call_tool("t", {"words": words}) for _ in range(3)))
            assert {result.text for result in results} == {words}

    run(main())


def test_a_long_message_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a part of it leaves."""
    monkeypatch.setattr("mcp_core.http._spelling._PIECE", 100)

    async def main() -> None:
        info = Implementation(name="c" * 500, version="1")
        socket = _FramedWebSocket(Connection(Role.CLIENT, Config(info, ClientCapabilities(), versions=[D])))
        now = socket._clock()
        socket._clock = lambda: now
        socket.conn.open(now)
        pieces = []
        for _ in range(6):
            assert socket.queued()
            pieces.append(bytes(socket.data_to_send()))
            now += 25.0
            socket.handle_timeout(now)
        assert [len(piece) for piece in pieces] == [100] * 6
        assert not socket.gone
        socket.conn.close()
        Pump(socket, lambda event: None).run()

    run(main())


def test_a_silence_is_filled_with_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_core.http._websocket._PING", 0.02)

    async def play(wire: ServerConnection, message: Any) -> None:
        await wire.send(answer(message, DONE))

    async def main() -> None:
        async with talking(play) as client:
            await asyncio.sleep(0.2)
            await client.call_tool("t")

    run(main())


def test_who_does_not_live_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_core.http._websocket._PING", 0.05)

    async def die(wire: ServerConnection, message: Any) -> None:
        wire.transport.pause_reading()

    async def main() -> None:
        async with talking(die, close_timeout=0.1) as client:
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
    ("play", "said"),
    [
        (binary, "the WebSocket was closed: messages are text"),
        (bye, "the server closed the WebSocket (1001, so long)"),
        (gone, "the server broke off the connection"),
        (nonsense, "the WebSocket was closed: Invalid opcode 0xf"),
    ],
)
def test_how_it_may_end(play: Play, said: str) -> None:
    async def main() -> None:
        async with talking(play) as client:
            calls = [asyncio.create_task(client.call_tool("t")) for _ in range(3)]
            for ended in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(ended, ConnectionLost)
                assert str(ended) == said
            with pytest.raises(ConnectionLost, match=r"WebSocket|broke off"):
                await client.call_tool("t")

    run(main())


def test_the_server_hears_that_it_is_over() -> None:
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


REFUSALS: list[tuple[bytes, str]] = [
    (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "no WebSocket: HTTP status 404"),
    (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        "has not read",
    ),
    (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "cannot connect to 127.0.0.1:"),
    (b"", "cannot connect to 127.0.0.1:"),
    (b"HTTP/1.1 200 OK\r\nx: " + b"x" * 70_000, "cannot connect to 127.0.0.1:"),
]


@pytest.mark.parametrize(("said", "why"), REFUSALS)
def test_who_gives_no_websocket(said: bytes, why: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            with pytest.raises(ConnectFailed, match=why):
                await connect(f"ws://127.0.0.1:{port}/mcp").__aenter__()
            await asyncio.sleep(0.01)
        with pytest.raises(ConnectFailed, match="cannot connect"):
            await connect(f"ws://127.0.0.1:{port}/mcp").__aenter__()

    run(main())


@pytest.mark.parametrize(
    ("url", "headers"), [("ws://", {}), ("wsx://here", {}), ("ws://here", {"upgrade": "x"})]
)
def test_what_cannot_be_meant(url: str, headers: dict[str, str]) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match=r"."):
            await connect(url, headers=headers).__aenter__()

    run(main())


@pytest.mark.parametrize("version", VERSIONS)
def test_our_server_on_trio(version: str) -> None:
    async def main(url: str) -> None:
        async with connect(url.replace("http", "ws"), versions=[version]) as client:
            assert client.peer.dialect.version == version
            assert (await client.call_tool("echo", {"text": "☃"})).content == [TextContent("☃")]
            told: list[float] = []
            await client.call_tool("count", {"to": 3}, progress=lambda step, *_: told.append(step))
            assert told == [1, 2, 3]
            with pytest.raises(PeerError, match="not today"):
                await client.call_tool("fail", {"how": "error"})
            results = await asyncio.gather(*(client.call_tool("count", {"to": 5}) for _ in range(50)))
            assert {result.text for result in results} == {"5"}

    with on_trio() as url:
        asyncio.run(main(url))


# -- Our application ---------------------------------------------------------------------------------------------------------------


def test_an_application() -> None:
    async def main() -> None:
        async with hosting(asgi(Neutral().server)) as host:
            call = socket(host)
            call.tell(text(initialize(D)))
            await call.until(lambda: len(call.said) == 2)
            accepted, said = heard(call)
            assert accepted == ACCEPT
            assert said["result"]["protocolVersion"] == D
            call.tell({"type": "websocket.disconnect", "code": 1000})
            await call.end()
            refused = await socket(host, (b"origin", b"http://evil.example")).end()
            assert refused.said == [{"type": "websocket.close"}]
            last = socket(host)
            await last.until(lambda: last.said)
        assert last.said == [ACCEPT, {"type": "websocket.close", "code": 1001, "reason": ""}]

    run(main())


def test_who_takes_nothing_is_not_heard() -> None:
    server = Server("loud")

    @server.tool
    def shout() -> str:
        """Much."""
        return "x" * 100_000

    async def main() -> None:
        async with hosting(asgi(server)) as host:
            call = socket(host)
            await call.until(lambda: call.said)
            call.taking = type(call.taking)()
            for id in range(40):
                call.tell(text(modern(id, "tools/call", {"name": "shout", "arguments": {}})))
            await asyncio.sleep(0.05)
            assert len(call._told) > 10
            call.taking.set()
            await call.until(lambda: len(call.said) == 41)
            assert {said["id"] for said in heard(call)[1:]} == set(range(40))
            call.tell({"type": "websocket.disconnect"})
            await call.end()

    run(main())


def test_nothing_is_sent_to_who_has_gone() -> None:
    """There are servers that raise then, and write that into their log."""

    async def main() -> None:
        async with hosting(asgi(Neutral().server)) as host:
            call = socket(host)
            await call.until(lambda: call.said)
            call.taking = type(call.taking)()
            call.tell(*(text(request(id, "ping")) for id in range(3)))
            await asyncio.sleep(0.01)
            call.tell({"type": "websocket.disconnect"})
            await asyncio.sleep(0.01)
            call.taking.set()
            await call.end()
            assert len(call.said) == 2, "what was on its way, and no more"

    run(main())


@pytest.mark.parametrize("library", ["websockets-sansio", "wsproto"])
@pytest.mark.parametrize("version", [D, E])
def test_under_uvicorn(library: Any, version: str) -> None:
    """Our client with our application, guarded, and whatever uvicorn makes of WebSockets in between."""

    async def main() -> None:
        app = asgi(everything(), auth=guard())
        config = uvicorn.Config(app, port=0, log_level="warning", ws=library, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        url = f"ws://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        try:
            with pytest.raises(
                ConnectFailed, match="no WebSocket: the server wants an access token"
            ) as refused:
                await connect(url).__aenter__()
            assert isinstance(refused.value.__cause__, AuthRequired)
            async with connect(url, versions=[version], headers={"authorization": "Bearer ann"}) as client:
                told: list[float] = []
                counted = await client.call_tool(
                    "count", {"to": 20}, progress=lambda step, *_: told.append(step)
                )
                assert (counted.text, told) == ("20", list(range(1, 21)))
                words = "☃" * 100_000
                assert (await client.call_tool("echo", {"text": words})).text == words
        finally:
            server.should_exit = True
            await serving

    asyncio.run(main())
