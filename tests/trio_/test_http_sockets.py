"""The client over HTTP on real sockets of this machine: what memory streams cannot show.

That is a connection which the server has closed while nobody used it, resets, TLS, proxies, and that no socket stays open, which the
fixture `no_leaks` looks after. How connections come about in general is in `test_dial.py`.
"""

from __future__ import annotations

import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
import trustme

from mcp_trio import ConnectFailed, ConnectionLost, connect, connect_http
from tests.core.helpers import D, E
from tests.trio_.http_wire import PlayedServer, Request
from tests.trio_.test_dial import TinyProxy, environment, listening, ours, theirs

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

__all__ = ["environment"]

DONE: Any = {"content": [], "resultType": "complete"}


@asynccontextmanager
async def serving(server: PlayedServer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    async with listening(server.serve, tls) as port:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("version", [D, E])
async def test_a_conversation(version: str) -> None:
    server = PlayedServer(version, session="s1" if version == D else "", tools_call=DONE)
    async with serving(server) as url, connect(url, versions=[version]) as client:
        for _ in range(10):
            await client.call_tool("t")
    assert server.opened <= 2
    assert server.heard()[-1] == ("DELETE" if version == D else "tools/call")


async def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    """Not even for what may be done once only."""

    async def last(request: Request) -> None:
        await request.result(DONE)
        await request.connection.stream.aclose()

    server = PlayedServer(E, tools_call=last)
    async with serving(server) as url, connect(url) as client:
        for number in range(1, 5):
            await client.call_tool("t")
            with trio.fail_after(5):
                while server.closed < number:  # noqa: ASYNC110 - the system tells nobody
                    await trio.sleep(0.01)
            await trio.sleep(0.01)
    assert server.heard() == ["server/discover"] + ["tools/call"] * 4
    assert server.opened == 4


async def test_a_reset_ends_its_call_only() -> None:
    async def reset(request: Request) -> None:
        stream = request.connection.stream
        assert isinstance(stream, trio.SocketStream)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await trio.aclose_forcefully(stream)

    server = PlayedServer(E, tools_call=reset)
    async with serving(server) as url, connect(url) as client:
        with pytest.raises(
            ConnectionLost, match="tools/call: the server closed the connection without an answer"
        ):
            await client.call_tool("t")
        server.answers["tools/call"] = DONE
        await client.call_tool("t")


async def test_a_server_that_is_started_again_goes_on_with_a_stateless_client(nursery: trio.Nursery) -> None:
    server = PlayedServer(E, tools_call=DONE)

    async def start(port: int = 0) -> tuple[int, trio.CancelScope]:
        [listener] = await trio.open_tcp_listeners(port, host="127.0.0.1")
        scope = trio.CancelScope()

        async def serve() -> None:
            with scope:
                await trio.serve_listeners(server.serve, [listener])

        nursery.start_soon(serve)
        return listener.socket.getsockname()[1], scope

    port, first = await start()
    async with connect(f"http://127.0.0.1:{port}/mcp") as client:
        await client.call_tool("t")
        first.cancel()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(ConnectionLost, match=f"cannot connect to 127.0.0.1:{port}: connection refused"):
            await client.call_tool("t")
        _, second = await start(port)
        await client.call_tool("t")
    second.cancel()


async def test_nobody_listens() -> None:
    async with serving(PlayedServer(E)) as url:
        pass
    with pytest.raises(ConnectFailed, match=r"connection refused; is the server running, and on this port\?"):
        await connect(url).__aenter__()


async def test_tls() -> None:
    authority = trustme.CA()
    server = PlayedServer(E, tools_call=DONE)
    async with serving(server, theirs(authority, "127.0.0.1")) as url:
        async with connect_http(url, tls=ours(authority)) as client:
            await client.call_tool("t")
            await client.call_tool("t")
        assert server.opened == 1
        with pytest.raises(
            ConnectFailed, match=r"the certificate of .* is not trusted: unable to get local issuer"
        ):
            await connect(url).__aenter__()
        with pytest.raises(ConnectFailed, match=r"without an answer|no HTTP/1\.1"):
            await connect(url.replace("https", "http")).__aenter__()
    async with serving(server) as url:
        with pytest.raises(ConnectFailed, match="it closed the connection; is its address http:// instead"):
            await connect(url.replace("http", "https")).__aenter__()


async def test_a_proxy_of_the_environment(
    environment: pytest.MonkeyPatch,
) -> None:
    server = PlayedServer(D, session="s1", tools_call=DONE)
    async with serving(server) as url:
        proxy = TinyProxy(int(url.split(":")[2].split("/")[0]))
        async with listening(proxy) as port:
            environment.setenv("http_proxy", f"http://127.0.0.1:{port}")
            async with connect("http://far.test/mcp", versions=[D]) as client:
                await client.call_tool("t")
            environment.setenv("no_proxy", "far.test")
    assert server.heard()[-1] == "DELETE"
    assert all(request.target == "http://far.test:80/mcp" for request in server.requests)
    with pytest.raises(
        ConnectFailed, match=f"cannot connect to the proxy 127.0.0.1:{port}: connection refused"
    ):
        await connect_http("http://far.test/mcp", proxy=f"127.0.0.1:{port}").__aenter__()
