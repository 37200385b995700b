"""The client over HTTP on real local sockets: what memory streams cannot show.

That is: connections closed by the server while idle, resets, TLS and proxies. The fixture
`no_leaks` checks that no socket stays open. Connecting is tested in `test_dial.py`.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
import trustme

from mcp_core.auth import HttpRequest
from mcp_core.http import Url
from mcp_trio import ConnectFailed, ConnectionLost, connect, connect_http
from mcp_trio.auth._fetch import fetch
from mcp_trio.http_client import _connector
from mcp_trio.http_client._connector import Connector
from tests.harness.jsonrpc import D, E
from tests.harness.wire.http1_server import Connection, PlayedHttpServer, Request
from tests.harness.wire.http2_server import H2Peer
from tests.harness.world.waiting import until
from tests.trio_.http_client.test_connector import TinyProxy, environment, listening, ours, theirs

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

__all__ = ["environment"]

DONE: Any = {"content": [], "resultType": "complete"}


@asynccontextmanager
async def serving(
    server: PlayedHttpServer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    async with listening(server.serve, tls) as port:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("version", [D, E])
async def test_http_socket_calls_are_answered(version: str) -> None:
    server = PlayedHttpServer(version, session="s1" if version == D else "", tools_call=DONE)
    async with serving(server) as url, connect(url, versions=[version]) as client:
        for _ in range(10):
            await client.call_tool("t")
    assert server.opened <= 2
    assert server.request_names()[-1] == ("DELETE" if version == D else "tools/call")


async def test_http_socket_closed_while_idle_is_not_reused() -> None:
    """Not even for calls, which are never sent twice."""

    async def last(request: Request) -> None:
        await request.result(DONE)
        await request.connection.stream.aclose()

    server = PlayedHttpServer(E, tools_call=last)
    async with serving(server) as url, connect(url) as client:
        pool = client._transport._requests.pool  # type: ignore[attr-defined]
        for _ in range(4):
            await client.call_tool("t")
            # Only the system knows when the client's socket has seen the end.
            await until(lambda: [each.server_closed() for each, _ in pool._idle] == [True])
    assert server.request_names() == ["server/discover"] + ["tools/call"] * 4
    assert server.opened == 4


async def test_http_socket_reset_fails_its_call_only() -> None:
    async def reset(request: Request) -> None:
        stream = request.connection.stream
        assert isinstance(stream, trio.SocketStream)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await trio.aclose_forcefully(stream)

    server = PlayedHttpServer(E, tools_call=reset)
    async with serving(server) as url, connect(url) as client:
        with pytest.raises(
            ConnectionLost, match="tools/call: the server closed the connection without an answer"
        ):
            await client.call_tool("t")
        server.answers["tools/call"] = DONE
        await client.call_tool("t")


async def test_http_socket_restarted_server_serves_a_stateless_client(
    nursery: trio.Nursery,
) -> None:
    """Without a session there is nothing to restore, so only calls during the restart fail."""
    server = PlayedHttpServer(E, tools_call=DONE)

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
        with pytest.raises(
            ConnectionLost, match=f"cannot connect to 127.0.0.1:{port}: connection refused"
        ):
            await client.call_tool("t")
        _, second = await start(port)
        await client.call_tool("t")
    second.cancel()


async def test_http_socket_refused_names_the_cure() -> None:
    async with serving(PlayedHttpServer(E)) as url:
        pass
    with pytest.raises(
        ConnectFailed, match=r"connection refused; is the server running, and on this port\?"
    ):
        await connect(url).__aenter__()


async def test_http_socket_tls_is_verified() -> None:
    """An unknown authority is refused, and a URL with the wrong scheme gets a hint."""
    authority = trustme.CA()
    server = PlayedHttpServer(E, tools_call=DONE)
    async with serving(server, theirs(authority, "127.0.0.1")) as url:
        async with connect_http(url, tls=ours(authority)) as client:
            await client.call_tool("t")
            await client.call_tool("t")
        assert server.opened == 1
        with pytest.raises(
            ConnectFailed, match=r"the certificate of .* is not trusted: unable to get local issuer"
        ):
            await connect(url).__aenter__()
        with pytest.raises(ConnectFailed, match=r"without an answer|not HTTP/1\.1"):
            await connect(url.replace("https", "http")).__aenter__()
    async with serving(server) as url:
        with pytest.raises(
            ConnectFailed, match="it closed the connection; is its address http:// instead"
        ):
            await connect(url.replace("http", "https")).__aenter__()


async def test_http_socket_proxy_of_environment_is_used(
    environment: pytest.MonkeyPatch,
) -> None:
    """Even the session's DELETE goes through the proxy; an explicit one beats `no_proxy`."""
    server = PlayedHttpServer(D, session="s1", tools_call=DONE)
    async with serving(server) as url:
        proxy = TinyProxy(int(url.split(":")[2].split("/")[0]))
        async with listening(proxy) as port:
            environment.setenv("http_proxy", f"http://127.0.0.1:{port}")
            async with connect("http://far.test/mcp", versions=[D]) as client:
                await client.call_tool("t")
            environment.setenv("no_proxy", "far.test")
    assert server.request_names()[-1] == "DELETE"
    assert all(request.target == "http://far.test:80/mcp" for request in server.requests)
    with pytest.raises(
        ConnectFailed, match=f"cannot connect to the proxy 127.0.0.1:{port}: connection refused"
    ):
        await connect_http("http://far.test/mcp", proxy=f"127.0.0.1:{port}").__aenter__()


# --- protocol selection -------------------------------------------------------------------------

H2, H1 = "h2", "http/1.1"


@asynccontextmanager
async def choosing(
    authority: trustme.CA, *offers: str
) -> AsyncIterator[tuple[PlayedHttpServer, str]]:
    """A server that offers these protocols, and speaks the negotiated one or HTTP/1.1."""
    server = PlayedHttpServer(E, tools_call=DONE)

    async def serve(stream: Any) -> None:
        await stream.do_handshake()
        server.speaks = H2Peer if stream.selected_alpn_protocol() == H2 else Connection
        await server.serve(stream)

    async with listening(serve, theirs(authority, "127.0.0.1", protocols=offers)) as port:
        yield server, f"https://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize(
    ("offers", "known", "spoken"),
    [
        ([H2, H1], [H2, H1], "HTTP/2"),
        ([H1, H2], [H2, H1], "HTTP/1.1"),  # the server decides
        ([H2], [H2, H1], "HTTP/2"),
        ([H1], [H2, H1], "HTTP/1.1"),
        ([], [H2, H1], "HTTP/1.1"),
        ([H2, H1], [H1], "HTTP/1.1"),
        ([H2, H1], [H2], "HTTP/2"),
        ([H2, H1], [], "HTTP/1.1"),
    ],
)
async def test_http_socket_alpn_selects_the_protocol(
    offers: list[str], known: list[str], spoken: str
) -> None:
    authority = trustme.CA()
    async with choosing(authority, *offers) as (server, url):
        async with connect_http(url, tls=ours(authority, *known)) as client:
            await client.call_tool("t")
            assert client.protocol == spoken
        assert server.request_names() == ["server/discover", "tools/call"]
        assert server.opened == 1


async def test_http_socket_system_tls_offers_http2_with_a_nursery(
    environment: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """HTTP/2 needs a background task, so a connection for one request speaks HTTP/1.1."""
    authority = trustme.CA()
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    environment.setenv("SSL_CERT_FILE", str(bundle))
    async with choosing(authority, H2, H1) as (_, url):
        async with connect(url) as client:
            await client.call_tool("t")
            assert client.protocol == "HTTP/2"
        # A connection for one request does not need it.
        connector = Connector(*Url.parse(url).origin)
        alone = await connector.connect()
        assert alone.protocol == "HTTP/1.1"
        await alone.aclose()


async def test_http_socket_fetch_follows_the_alpn_of_the_given_context() -> None:
    authority = trustme.CA()
    async with choosing(authority, H2) as (server, url):
        request = HttpRequest("GET", url, [("accept", "text/plain")], b"")
        reply = await fetch(request, allow=lambda _: True, tls=ours(authority, H2, H1))
        assert reply.status == 405
        assert server.request_names() == ["GET"]


async def test_http_socket_prior_knowledge_uses_http2() -> None:
    server = PlayedHttpServer(D, session="s1", tools_call=DONE)
    server.speaks = H2Peer
    async with serving(server) as url, connect(url, versions=[D], prior_knowledge=True) as client:
        for _ in range(10):
            await client.call_tool("t")
        assert client.protocol == "HTTP/2"
    assert server.opened == 1
    assert server.request_names()[-1] == "DELETE"


async def test_http_socket_prior_knowledge_through_a_proxy_uses_a_tunnel() -> None:
    server = PlayedHttpServer(E, tools_call=DONE)
    server.speaks = H2Peer
    async with serving(server) as url:
        proxy = TinyProxy(int(url.split(":")[2].split("/")[0]))
        async with (
            listening(proxy) as port,
            connect_http(
                "http://far.test/mcp", proxy=f"http://127.0.0.1:{port}", prior_knowledge=True
            ) as client,
        ):
            await client.call_tool("t")
    assert proxy.heads[0].startswith(b"CONNECT far.test:80 HTTP/1.1\r\n")
    assert server.requests[-1].target == "/mcp"


async def test_http_socket_prior_knowledge_wrong_names_the_cure() -> None:
    """The server speaks only HTTP/1.1, and both errors name the option to leave out."""

    async def close_after(stream: trio.abc.Stream) -> None:
        await stream.receive_some()

    async with listening(close_after) as port:
        with pytest.raises(
            ConnectFailed, match="without an answer; connect without prior_knowledge"
        ):
            await connect(f"http://127.0.0.1:{port}/mcp", prior_knowledge=True).__aenter__()

    async def refuse(stream: trio.abc.Stream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        await trio.sleep_forever()

    async with listening(refuse) as port:
        with pytest.raises(ConnectFailed) as caught:
            await connect(f"http://127.0.0.1:{port}/mcp", prior_knowledge=True).__aenter__()
    assert str(caught.value) == (
        f"cannot connect to 127.0.0.1:{port}: the server's answer is not HTTP/2: it speaks"
        " HTTP/1.1; connect without prior_knowledge"
    )


async def test_http_socket_prior_knowledge_silent_server_times_out(
    mock_clock: trio.testing.MockClock,
) -> None:
    """The server never sends SETTINGS, and its connection is closed at the timeout."""

    async def wait(stream: trio.abc.Stream) -> None:
        while await stream.receive_some():
            mock_clock.jump(_connector._CONNECT_TIMEOUT)
        gone.set()

    gone = trio.Event()
    async with listening(wait) as port:
        with pytest.raises(
            ConnectFailed, match=f"127.0.0.1:{port} did not let us connect within 10 s"
        ):
            await connect(f"http://127.0.0.1:{port}/mcp", prior_knowledge=True).__aenter__()
        await gone.wait()


@pytest.mark.parametrize("target", ["https://here/mcp", ["server"], "ws://here/mcp"])
def test_http_socket_prior_knowledge_for_other_targets_raises(target: Any) -> None:
    with pytest.raises(ValueError, match="prior_knowledge is for a server at http://"):
        connect(target, prior_knowledge=True)


@pytest.mark.process
def test_http_socket_http_1_1_does_not_import_http2() -> None:
    """h2 and wsproto are loaded on first use, since their import would slow each start."""
    program = f"""
import sys
sys.path[:] = {[str(Path(__file__).parents[3]), *sys.path]!r}
import trio
from mcp_trio import Server, connect, serve_http
from tests.harness.world.waiting import until
from tests.harness.world.waiting import until

server = Server("plain")

@server.tool
def echo(text: str) -> str:
    "Give it back."
    return text

async def main():
    async with trio.open_nursery() as nursery:
        address = await nursery.start(serve_http, server)
        async with connect(address.url) as client:
            assert (await client.call_tool("echo", {{"text": "x"}})).text == "x"
            assert client.protocol == "HTTP/1.1"
        nursery.cancel_scope.cancel()

trio.run(main)
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "h11" in done.stdout.split()
    assert not {"h2", "hpack", "wsproto", "mcp_trio.http_client._h2_connection"}.intersection(
        done.stdout.split()
    )
