"""The HTTP proxy on sockets: our client and server through it, and servers that are not there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL, ConnectFailed
from mcp_core.http import Url
from mcp_core.trace import DamagedLine, Judge, read_trace
from mcp_trio import Context, Server, connect, serve_http
from mcp_trio.http_server._serve import CannotListen
from mcp_trio.oracle.proxy import _http
from mcp_trio.oracle.proxy._http import serve_http_proxy
from mcp_trio.recording._open import open_recorder
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_trio.http_server._connection import AccessLogEntry


def make_server() -> Server:
    server = Server("behind")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    async def steps(context: Context) -> str:
        """Report progress."""
        for step in range(3):
            await context.progress(step, 3)
        return "done"

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for the roots of the client."""
        return str(len(await context.roots()))

    @server.tool
    def long(size: int) -> str:
        """Return a long text."""
        return "x" * size

    return server


async def proxy_of(nursery: trio.Nursery, url: str, **options: Any) -> str:
    address = await nursery.start(partial(serve_http_proxy, Url.parse(url), **options))
    assert isinstance(address.url, str)
    return address.url


@pytest.mark.parametrize("version", ALL)
async def test_conversation_through_the_proxy_is_whole_and_clean(
    version: str, tmp_path: Path
) -> None:
    """Progress, a server request and 500 kB pass in each revision, and the judge finds no fault."""
    path = tmp_path / "a.mcp.jsonl"
    log: list[AccessLogEntry] = []
    steps: list[float] = []
    with trio.fail_after(PATIENCE):
        async with (
            open_recorder(path, "between", "http") as recorder,
            trio.open_nursery() as nursery,
        ):
            server = await nursery.start(serve_http, make_server())
            url = await proxy_of(nursery, server.url, recorder=recorder, on_exchange=log.append)
            assert url.endswith("/mcp")
            assert url != server.url
            async with connect(url, versions=[version], on_roots=["file:///a"]) as client:
                assert (await client.call_tool("add", {"a": 1, "b": 2})).content
                await client.call_tool("steps", {}, progress=lambda now, *_: steps.append(now))
                assert "1" in str((await client.call_tool("ask", {})).content)
                result = await client.call_tool("long", {"size": 500_000})
                assert "x" * 500_000 in str(result.content)
            nursery.cancel_scope.cancel()
    assert steps == [0, 1, 2]
    assert {each.status for each in log} <= {0, 200, 202, 204}
    header, lines = read_trace([path.read_bytes()])
    judge = Judge(header)
    found = [
        each
        for number, line in lines
        if not isinstance(line, DamagedLine)
        for each in judge.receive(line, number)
    ]
    assert [each for each in [*found, *judge.close()] if each.is_certain] == []
    assert judge.messages >= 8


async def test_calls_of_several_clients_pass_side_by_side() -> None:
    async def talk(url: str, number: int) -> None:
        async with connect(url, versions=[ALL[number % 2]]) as client:
            for _ in range(4):
                result = await client.call_tool("add", {"a": number, "b": 1})
                assert str(number + 1) in str(result.content)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            server = await nursery.start(serve_http, make_server())
            url = await proxy_of(nursery, server.url)
            async with trio.open_nursery() as clients:
                for number in range(6):
                    clients.start_soon(talk, url, number)
            nursery.cancel_scope.cancel()


async def test_server_that_is_started_later_is_reached() -> None:
    """The proxy connects at each request, so it may be started before its server."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    async with trio.open_nursery() as nursery:
        url = await proxy_of(nursery, f"http://127.0.0.1:{port}/mcp")
        with pytest.raises(ConnectFailed, match="502"):
            async with connect(url):
                pass
        stop = trio.Event()
        await nursery.start(partial(serve_http, make_server(), port=port, stop=stop, grace=0.0))
        async with connect(url) as client:
            assert len(await client.list_tools()) == 4
        nursery.cancel_scope.cancel()


async def ask_raw(url: str, request: bytes) -> bytes:
    parsed = Url.parse(url)
    stream = await trio.open_tcp_stream(parsed.host, parsed.port)
    async with stream:
        await stream.send_all(request.replace(b"HOST", parsed.authority))
        return b"".join([bytes(data) async for data in stream])


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("http://127.0.0.1:1/mcp", "cannot connect to 127.0.0.1:1: connection refused"),
        (
            "http://no-such-host.invalid/mcp",
            "cannot connect to no-such-host.invalid:80: there is no host no-such-host.invalid",
        ),
    ],
)
async def test_server_that_cannot_be_reached_gives_502_with_the_cause(
    target: str, text: str
) -> None:
    async with trio.open_nursery() as nursery:
        url = await proxy_of(nursery, target)
        response = await ask_raw(url, b"GET /mcp HTTP/1.1\r\nHost: HOST\r\n\r\n")
        assert response.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert f"\r\n\r\nmcp-trio proxy: {text}" in response.decode()
        nursery.cancel_scope.cancel()


async def test_server_without_tls_at_an_https_url_gives_502() -> None:
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve_http, make_server())
        url = await proxy_of(nursery, server.url.replace("http:", "https:"))
        response = await ask_raw(url, b"GET /mcp HTTP/1.1\r\nHost: HOST\r\n\r\n")
        assert b"does not speak TLS; is its address http:// instead?" in response
        nursery.cancel_scope.cancel()


async def test_login_and_session_of_the_server_pass() -> None:
    """401, its challenge and other statuses are the server's."""
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve_http, make_server())
        url = await proxy_of(nursery, server.url)
        request = b"DELETE /mcp HTTP/1.1\r\nHost: HOST\r\nMcp-Session-Id: x\r\nConnection: close"
        assert b" 404 " in await ask_raw(url, request + b"\r\n\r\n")
        request = b"GET /other HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"
        assert b" 404 " in await ask_raw(url, request)
        nursery.cancel_scope.cancel()


async def test_connections_above_the_maximum_are_closed() -> None:
    async with trio.open_nursery() as nursery:
        url = await proxy_of(nursery, "http://127.0.0.1:1/", max_connections=1)
        parsed = Url.parse(url)
        first = await trio.open_tcp_stream(parsed.host, parsed.port)
        second = await trio.open_tcp_stream(parsed.host, parsed.port)
        assert await second.receive_some() == b""
        await first.aclose()
        await second.aclose()
        nursery.cancel_scope.cancel()


async def test_port_in_use_is_an_error() -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        port = listener.socket.getsockname()[1]
        with pytest.raises(CannotListen, match="choose another port"):
            await serve_http_proxy(Url.parse("http://127.0.0.1:1/"), port=port)


async def test_added_headers_reach_the_server() -> None:
    """They replace the client's headers of the same names."""
    received = b""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]

        async def serve() -> None:
            nonlocal received
            async with await listener.accept() as stream:
                received = bytes(await stream.receive_some())
                await stream.send_all(b"HTTP/1.1 204 No Content\r\n\r\n")

        nursery.start_soon(serve)
        url = await proxy_of(nursery, f"http://127.0.0.1:{port}/mcp", headers={"X-Token": "a"})
        request = b"GET /mcp HTTP/1.1\r\nHost: HOST\r\nx-token: b\r\nConnection: close\r\n\r\n"
        assert b" 204 " in await ask_raw(url, request)
        nursery.cancel_scope.cancel()
    async with listener:
        assert b"X-Token: a\r\n" in received
        assert b"x-token: b" not in received


async def test_proxy_warns_of_hosts_and_limits_its_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each connection costs two of the 1,024 descriptors that a process may have at least."""
    warned: list[Any] = []
    limits: list[int] = []

    async def serve(_: object, listeners: list[trio.SocketListener], limit: int) -> None:
        limits.append(limit)
        for listener in listeners:
            await listener.aclose()

    monkeypatch.setattr(_http, "serve_connections", serve)
    monkeypatch.setattr(_http, "warn_of_missing_hosts", lambda *args: warned.append(args[1:]))
    await serve_http_proxy(Url.parse("http://127.0.0.1:1/"))
    assert warned == [("127.0.0.1", "give them a URL with an address in it")]
    assert limits == [400]
