"""WebSocket with other implementations: `websockets` and `trio-websocket` of PyPI, `ws` of npm, and
the official TypeScript client.

Each is a client of our server and, where it has one, a server of our client.
"""

from __future__ import annotations

import json
import ssl
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme

from mcp_core.types import TextContent
from mcp_trio import (
    ConnectFailed,
    ConnectionLost,
    Server,
    asgi,
    connect,
    connect_websocket,
    serve_http,
)
from tests.harness.wire.router import (
    D,
    E,
    initialize,
    request,
)
from tests.harness.world.asgi_servers import under_hypercorn
from tests.interop.official import everything, served
from tests.interop.test_http_server_node import toured

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

trio_websocket = pytest.importorskip("trio_websocket")
pytest.importorskip("websockets")
SCRIPT = Path(__file__).with_name("ws_peer.mjs")
NAMES = "naïve ☃ \U0001f600" * 1000
INITIALIZED = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
CALL = json.dumps(request(2, "tools/call", {"name": "echo", "arguments": {"text": NAMES}}))


def house() -> Server:
    server = Server("house", version="1")

    @server.tool
    def echo(text: str) -> str:
        """Return the text at once."""
        return text

    return server


@asynccontextmanager
async def served_here(**options: Any) -> AsyncIterator[str]:
    """Serve our server, and yield the URL of its WebSocket."""
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, house(), **options))
        yield address.url.replace("http", "ws", 1)
        nursery.cancel_scope.cancel()


async def check_client(url: str) -> None:
    """Use a server that has `echo` and, to close, `leave`, with our client."""
    async with connect(url, versions=[D]) as client:
        (content,) = (await client.call_tool("echo", {"text": NAMES})).content
        assert isinstance(content, TextContent)
        assert content.text == NAMES
        with pytest.raises(ConnectionLost, match=r"closed the WebSocket \(1001, enough\)"):
            await client.call_tool("leave")


def answer_to(text: str) -> str | None:
    """Return the response of such a server, or None if it closes."""
    message = json.loads(text)
    method, params = message["method"], message.get("params", {})
    if "id" not in message:
        return ""
    if method == "initialize":
        info = {"name": "peer", "version": "1"}
        result: Any = {"protocolVersion": D, "capabilities": {"tools": {}}, "serverInfo": info}
    elif params["name"] == "leave":
        return None
    else:
        result = {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


# -- websockets ------------------------------------------------------------------------------------


async def test_websocket_websockets_client_with_own_server() -> None:
    """Fragments and pings work; binary, too long, foreign or without `mcp` are refused."""
    from websockets.exceptions import ConnectionClosedError, InvalidStatus
    from websockets.sync.client import connect as dial

    def visit(url: str) -> None:
        with dial(url, subprotocols=["mcp"], proxy=None) as socket:  # type: ignore[list-item]
            assert (socket.subprotocol, socket.protocol.extensions) == ("mcp", [])
            socket.send(json.dumps(initialize(D)))
            assert json.loads(socket.recv())["result"]["protocolVersion"] == D
            socket.send(INITIALIZED)
            socket.send(CALL[at : at + 100] for at in range(0, len(CALL), 100))
            assert json.loads(socket.recv())["result"]["content"][0]["text"] == NAMES
            assert socket.ping(b"?").wait(5)
        assert socket.close_code == 1000
        with dial(url, subprotocols=["mcp"], proxy=None) as socket:  # type: ignore[list-item]
            socket.send(b"{}")
            with pytest.raises(ConnectionClosedError, match="1003"):
                socket.recv()
        with dial(url, subprotocols=["mcp"], proxy=None) as socket:  # type: ignore[list-item]
            socket.send("x" * (4 * 1024 * 1024 + 1))
            with pytest.raises(ConnectionClosedError, match="1009"):
                socket.recv()
        with pytest.raises(InvalidStatus, match="403"):
            dial(url, subprotocols=["mcp"], origin="http://evil.example", proxy=None)  # type: ignore[call-overload]
        with pytest.raises(InvalidStatus, match="400"):
            dial(url, proxy=None)

    async with served_here() as url:
        with trio.fail_after(30):
            await trio.to_thread.run_sync(visit, url)


async def test_websocket_own_client_with_websockets_server() -> None:
    """The library serves in a thread; its close code 1001 and the reason reach the caller."""
    from websockets.sync.server import ServerConnection, serve

    def answer(socket: ServerConnection) -> None:
        for text in socket:
            assert isinstance(text, str)
            reply = answer_to(text)
            if reply is None:
                socket.close(1001, "enough")
            elif reply:
                socket.send(reply)

    with serve(answer, "127.0.0.1", 0, subprotocols=["mcp"]) as server:  # type: ignore[list-item]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, server.serve_forever)
            with trio.fail_after(30):
                await check_client(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/")
            server.shutdown()


# -- trio-websocket --------------------------------------------------------------------------------


async def test_websocket_trio_websocket_client_over_tls_is_answered() -> None:
    """Over `wss:` a certificate that isn't trusted must end our own client's connection."""
    authority = trustme.CA()
    ours, theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(ours)
    authority.configure_trust(theirs)
    async with served_here(host="localhost", tls=ours) as url:
        with trio.fail_after(30):
            async with trio_websocket.open_websocket_url(
                url, theirs, subprotocols=["mcp"]
            ) as socket:
                await socket.send_message(json.dumps(initialize(D)))
                assert json.loads(await socket.get_message())["result"]["protocolVersion"] == D
                await socket.send_message(INITIALIZED)
                await socket.send_message(CALL)
                assert (
                    json.loads(await socket.get_message())["result"]["content"][0]["text"] == NAMES
                )
                await socket.ping(b"?")
            assert socket.closed.code == 1000
            async with connect_websocket(url, tls=theirs) as client:
                assert [tool.name for tool in await client.list_tools()] == ["echo"]
            with pytest.raises(ConnectFailed, match="not trusted"):
                async with connect(url):
                    pass


async def test_websocket_own_client_is_answered_by_trio_websocket() -> None:
    """The library shares our event loop, and closes in the middle of a call."""

    async def answer(handshake: Any) -> None:
        socket = await handshake.accept(subprotocol=handshake.proposed_subprotocols[0])
        try:
            while True:
                reply = answer_to(await socket.get_message())
                if reply is None:
                    await socket.aclose(1001, "enough")
                elif reply:
                    await socket.send_message(reply)
        except trio_websocket.ConnectionClosed:
            pass

    async with trio.open_nursery() as nursery:
        serve = partial(trio_websocket.serve_websocket, answer, "127.0.0.1", 0, None)
        server = await nursery.start(serve)
        with trio.fail_after(30):
            await check_client(f"ws://127.0.0.1:{server.port}/")
        nursery.cancel_scope.cancel()


# -- ws --------------------------------------------------------------------------------------------


@pytest.fixture
def ws(node_modules: Path) -> Callable[..., list[str]]:
    if not (node_modules / "ws").is_dir():
        pytest.skip("needs `ws` of npm")
    return lambda *words: ["node", str(SCRIPT), str(node_modules), *words]


@pytest.mark.node
async def test_websocket_ws_client_is_answered(ws: Callable[..., list[str]]) -> None:
    async with served_here() as url:
        with trio.fail_after(30):
            done = await trio.run_process(ws("client", url), capture_stdout=True)
    report = json.loads(done.stdout)
    assert (report["subprotocol"], report["extensions"], report["code"]) == ("mcp", "", 1003)
    assert report["pongs"] == ["still there?", "and now?"]
    first, second = report["messages"]
    assert first["result"]["protocolVersion"] == D
    assert second["result"]["content"][0]["text"] == NAMES
    assert not second["isBinary"]


@pytest.mark.node
async def test_websocket_own_client_is_answered_by_ws(ws: Callable[..., list[str]]) -> None:
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(trio.run_process, ws("server"), stdin=PIPE, stdout=PIPE)
        )
        with trio.fail_after(30):
            port = int(await process.stdout.receive_some())
            await check_client(f"ws://127.0.0.1:{port}/")
        await process.stdin.aclose()


# -- Under an ASGI server --------------------------------------------------------------------------


async def test_websocket_own_client_is_answered_by_asgi_app_under_hypercorn() -> None:
    """hypercorn turns our refusals into 404 and 403, with texts that reach the user."""
    async with under_hypercorn(asgi(house())) as http:
        url = http.replace("http", "ws", 1)
        with trio.fail_after(30):
            for versions in ([D], [E]):
                async with connect(f"{url}/mcp", versions=versions) as client:
                    (content,) = (await client.call_tool("echo", {"text": NAMES})).content
                    assert isinstance(content, TextContent)
                    assert content.text == NAMES
            with pytest.raises(ConnectFailed, match=r"404 Not Found.*nothing at this path"):
                async with connect(f"{url}/other"):
                    pass
            with pytest.raises(ConnectFailed, match="403 Forbidden"):
                async with connect_websocket(
                    f"{url}/mcp", headers={"origin": "http://evil.example"}
                ):
                    pass


# -- The official client ---------------------------------------------------------------------------


@pytest.mark.node
async def test_websocket_node_sdk_client_tours(
    ws: Callable[..., list[str]], node_modules: Path
) -> None:
    """The SDK's own WebSocket client plays everything; its only complaints are its own."""
    script = str(SCRIPT.with_name("ts_client.mjs"))
    async with served(everything()) as where:
        url = where.url.replace("http", "ws", 1)
        with trio.fail_after(30):
            argv = ["node", script, str(node_modules), url, "ws", "tour"]
            done = await trio.run_process(
                argv, capture_stdout=True, capture_stderr=True, check=False
            )
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    toured(report)
    # The client reports progress that arrives together with the response as unknown.
    assert all("for an unknown token" in error for error in report["errors"])
