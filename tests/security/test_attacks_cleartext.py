"""Where a client sends what only the MCP server may get: its certificate, and tokens in headers."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme

import mcp_asyncio_shim
from mcp_core import ConnectFailed
from mcp_trio import LoginConfig, MemoryStorage, connect_http, connect_websocket
from tests.harness.jsonrpc import D, E
from tests.harness.wire.http1_server import PlayedHttpServer, Request, connected
from tests.trio_.http_client.test_connector import environment, listening, ours, theirs

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["environment"]

TOKEN = {"authorization": "Bearer secret"}
# Credentials of gateways, by the end of their names.
KEYS = ("x-functions-key", "Ocp-Apim-Subscription-Key", "DD-APPLICATION-KEY", "x-jwt", "x-auth")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def with_certificate(authority: trustme.CA) -> ssl.SSLContext:
    """Return the context of a client that presents a certificate."""
    context = ours(authority, "http/1.1")
    authority.issue_cert("user@client.example").configure_cert(context)
    return context


def requesting_certificate(authority: trustme.CA) -> ssl.SSLContext:
    """Return the context of a server that requests the certificate of its client."""
    context = theirs(authority, "127.0.0.1", protocols=("http/1.1",))
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


class LoginServers:
    """An MCP server that requires a login, and the authorization server that it names.

    `certificates` are the certificates of the client that each has seen.
    """

    def __init__(self) -> None:
        self.certificates: dict[str, list[Any]] = {"mcp": [], "as": []}
        self.port = self.as_port = 0

    async def serve_mcp(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        server = PlayedHttpServer(D)
        server.play = self._play_mcp  # type: ignore[method-assign]
        await server.serve(stream)

    async def serve_as(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        server = PlayedHttpServer(D)
        server.play = self._play_as  # type: ignore[method-assign]
        await server.serve(stream)

    async def _play_mcp(self, request: Request) -> None:
        self._see("mcp", request)
        origin = f"https://127.0.0.1:{self.port}"
        if request.method == "GET":
            document = {
                "resource": f"{origin}/mcp",
                "authorization_servers": [f"https://127.0.0.1:{self.as_port}"],
            }
            await request.answer(200, json.dumps(document).encode())
        else:
            challenge = f'Bearer resource_metadata="{origin}/prm"'
            await request.answer(401, headers=[("www-authenticate", challenge)])

    async def _play_as(self, request: Request) -> None:
        self._see("as", request)
        await request.answer(404)

    def _see(self, server: str, request: Request) -> None:
        stream: Any = request.connection.stream
        self.certificates[server].append(stream.getpeercert())


@pytest.mark.parametrize("given", [False, True], ids=["by default", "in LoginConfig"])
async def test_client_certificate_is_for_the_mcp_server_only(
    authority: trustme.CA, environment: pytest.MonkeyPatch, tmp_path: Path, given: bool
) -> None:
    """An MCP server could otherwise learn at any other server who its users are there."""
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    environment.setenv("SSL_CERT_FILE", str(bundle))
    servers = LoginServers()
    context = requesting_certificate(authority)
    async with (
        listening(servers.serve_mcp, context) as servers.port,
        listening(servers.serve_as, context) as servers.as_port,
    ):
        more: Any = {"tls": with_certificate(authority)} if given else {}
        login = LoginConfig(storage=MemoryStorage(), browse=None, **more)
        with pytest.raises(ConnectFailed):
            async with connect_http(
                f"https://127.0.0.1:{servers.port}/mcp",
                tls=with_certificate(authority),
                auth=login,
                versions=[D],
            ):
                raise AssertionError("it needs a token")
    assert len(servers.certificates["mcp"]) >= 2
    assert all(servers.certificates["mcp"])
    assert servers.certificates["as"]
    assert all(servers.certificates["as"]) is given
    assert any(servers.certificates["as"]) is given


async def test_untrusted_authorization_server_names_the_option(authority: trustme.CA) -> None:
    """The MCP server's TLS context must not present the client's certificate anywhere else."""
    servers = LoginServers()
    context = requesting_certificate(authority)
    async with (
        listening(servers.serve_mcp, context) as servers.port,
        listening(servers.serve_as, context) as servers.as_port,
    ):
        with pytest.raises(ConnectFailed, match="in LoginConfig for authorization servers"):
            async with connect_http(
                f"https://127.0.0.1:{servers.port}/mcp",
                tls=ours(authority, "http/1.1"),
                auth=LoginConfig(storage=MemoryStorage(), browse=None),
                versions=[D],
            ):
                raise AssertionError("it needs a token")
    assert servers.certificates["as"] == []


# -- Tokens that are not encrypted -----------------------------------------------------------------


class _NoConnections(trio.abc.HostnameResolver):
    async def getaddrinfo(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("no host is resolved, because nothing may be sent")

    getnameinfo = getaddrinfo


async def test_token_to_another_machine_unencrypted_is_not_sent() -> None:
    trio.socket.set_custom_hostname_resolver(_NoConnections())
    with pytest.raises(ValueError, match="the header authorization would be sent unencrypted"):
        await connect_http("http://server.example/mcp", headers=TOKEN).__aenter__()
    with pytest.raises(ValueError, match="use wss:// instead of ws://"):
        await connect_websocket("ws://server.example/mcp", headers=TOKEN).__aenter__()


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_asyncio_token_to_another_machine_unencrypted_is_not_sent(scheme: str) -> None:
    async def main() -> None:
        url = f"{scheme}://server.example/mcp"
        async with mcp_asyncio_shim.connect(url, headers=TOKEN):
            raise AssertionError("nothing may be sent")

    with pytest.raises(ValueError, match="the header authorization would be sent unencrypted"):
        asyncio.run(main())


@pytest.mark.parametrize("name", KEYS)
async def test_key_of_a_gateway_unencrypted_is_not_sent(name: str) -> None:
    trio.socket.set_custom_hostname_resolver(_NoConnections())
    problem = f"the header {name} would be sent unencrypted"
    with pytest.raises(ValueError, match=problem):
        await connect_http("http://server.example/mcp", headers={name: "secret"}).__aenter__()
    with pytest.raises(ValueError, match=problem):
        await connect_websocket("ws://server.example/mcp", headers={name: "secret"}).__aenter__()


@pytest.mark.parametrize("name", KEYS)
def test_asyncio_key_of_a_gateway_unencrypted_is_not_sent(name: str) -> None:
    async def main() -> None:
        async with mcp_asyncio_shim.connect("http://server.example/mcp", headers={name: "secret"}):
            raise AssertionError("nothing may be sent")

    with pytest.raises(ValueError, match=f"the header {name} would be sent unencrypted"):
        asyncio.run(main())


async def test_token_of_a_call_unencrypted_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    done = {"content": [], "resultType": "complete"}
    server = PlayedHttpServer(E, tools_call=done)
    async with connected(server, monkeypatch) as client:
        with pytest.raises(ValueError, match="connect with allow_cleartext=True"):
            await client.call_tool("t", headers=TOKEN)
    assert "tools/call" not in server.request_names()
    server = PlayedHttpServer(E, tools_call=done)
    async with connected(server, monkeypatch, allow_cleartext=True) as client:
        await client.call_tool("t", headers=TOKEN)
    assert server.requests[-1].headers["authorization"] == "Bearer secret"
