"""Attacks through the HTTP proxy, over sockets: on a server whose credentials the proxy adds.

The server is played: it keeps what it receives, and answers. What a refusal promises is that the
server receives nothing.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import h11
import pytest
import trio

from mcp_core import ConnectFailed
from mcp_core.auth import ApiKeys
from mcp_core.http import Url
from mcp_trio import Server, connect, serve_http
from mcp_trio.oracle.proxy._http import serve_http_proxy
from tests.harness.world.waiting import PATIENCE
from tests.security.test_attacks_web_pages import SENT, VISIT, ask, request, status_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY: Final = {"Authorization": "Bearer of the proxy"}
OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
EVENTS: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class ProxiedServer:
    """The server behind the proxy: `received` has each request, `response` answers it.

    A response without a length stays open until `end` is set.
    """

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.response = OK
        self.end = trio.Event()
        self.port = 0  # of the proxy

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            http = h11.Connection(h11.SERVER)
            raw = b""
            while True:
                event = http.next_event()
                if event is h11.NEED_DATA:
                    data = bytes(await stream.receive_some())
                    raw += data
                    http.receive_data(data)
                elif isinstance(event, h11.EndOfMessage):
                    self.received.append(raw)
                    raw = b""
                    response = self.response
                    await stream.send_all(response)
                    if response.startswith(EVENTS):
                        await self.end.wait()
                        return
                    http.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                    http.send(h11.EndOfMessage())
                    http.start_next_cycle()
                elif isinstance(event, h11.ConnectionClosed):
                    return

    def take(self) -> list[bytes]:
        """Return what was received since the last call."""
        found, self.received = self.received, []
        return found


class Response:
    """The response to one GET, as it arrives on a connection of its own."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.CLIENT)
        self._http.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
        self._http.send(h11.EndOfMessage())

    async def until(self, end: bytes | None) -> None:
        """Read until `end` is in the body; None: until the end of the response."""
        body = b""
        while end is None or end not in body:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(bytes(await self._stream.receive_some()))
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                assert end is None
                return


@asynccontextmanager
async def proxied(target: str = "/mcp", **options: Any) -> AsyncIterator[ProxiedServer]:
    server = ProxiedServer()
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        port = listener.socket.getsockname()[1]
        url = Url.parse(f"http://127.0.0.1:{port}{target}")
        with trio.fail_after(PATIENCE):
            server.port = (await nursery.start(partial(serve_http_proxy, url, **options))).port
            yield server
        nursery.cancel_scope.cancel()


# -- Web pages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [None, KEY], ids=["plain", "with credentials"])
async def test_embedded_request_of_another_site_does_not_reach_the_server(
    headers: dict[str, str] | None,
) -> None:
    """An image or a script has no `Origin`, so the proxy took it for a program's request."""
    async with proxied(headers=headers) as server:
        for sent, is_foreign in SENT:
            if headers is None and any(line.startswith("origin") for line in sent):
                is_foreign = False  # the server judges it
            for method in ("GET", "HEAD", "POST"):
                found = await ask(server.port, request(*sent, method=method))
                assert status_of(found) == (403 if is_foreign else 200), sent
                assert len(server.take()) == (0 if is_foreign else 1)


async def test_own_page_of_the_server_passes_with_its_origin() -> None:
    async with proxied(headers=KEY) as server:
        own = f"origin: http://localhost:{server.port}"
        sent = request("sec-fetch-site: same-origin", own)
        sent = sent.replace(b"host: localhost", b"host: localhost:%d" % server.port)
        assert status_of(await ask(server.port, sent)) == 200
        (received,) = server.take()
        assert b"origin: http://127.0.0.1:" in received
        assert b"localhost" not in received


async def test_visit_does_not_use_the_credentials_of_the_proxy() -> None:
    async with proxied(headers=KEY) as server:
        found = await ask(server.port, request("sec-fetch-site: cross-site", *VISIT))
        assert status_of(found) == 403
        assert server.take() == []


# -- Other paths -----------------------------------------------------------------------------------

TARGETS: Final = [
    "/",
    "/admin",
    "/mcp/",
    "/mcp/admin",
    "/mcp/../admin",
    "/mcp/..;/admin",
    "/mcp;x=y",
    "//mcp",
    "/./mcp",
    "/x/../mcp",
    "/%6dcp",
    "/mc%70",
    "/mcp%2f..%2fadmin",
    "/MCP",
    "/mcp?",
    "/mcp?a=c",
    "/mcp?a=b&admin=1",
    "/mcp%3fa=b",
    "//evil.example/mcp?a=b",
    "http://localhost/admin",
    "http://localhost",
    "/.well-known/../admin",
    "/.well-known/oauth-protected-resource/admin",
    "/.well-known/oauth-protected-resource?a=b",
]


@pytest.mark.parametrize("target", TARGETS)
async def test_other_target_is_not_requested_with_the_credentials_of_the_proxy(target: str) -> None:
    async with proxied("/mcp?a=b", headers=KEY) as server:
        for method in ("GET", "POST", "DELETE", "OPTIONS", "PUT"):
            found = await ask(server.port, request(target=target, method=method))
            assert status_of(found) == 404
            assert b"mcp-trio proxy: This proxy adds credentials" in found
        assert server.take() == []
    async with proxied("/mcp?a=b") as server:
        assert status_of(await ask(server.port, request(target=target))) == 200
        assert len(server.take()) == 1


async def test_own_target_is_requested_with_the_credentials_of_the_proxy() -> None:
    async with proxied("/mcp?a=b", headers=KEY) as server:
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            for target in ("/mcp?a=b", "http://localhost/mcp?a=b"):
                mine = "authorization: of the client"
                sent = request(mine, target=target, method=method)
                assert status_of(await ask(server.port, sent)) == 200
                (received,) = server.take()
                assert received.startswith(b"%b /mcp?a=b HTTP/1.1\r\n" % method.encode())
                assert received.lower().count(b"authorization:") == 1
                assert b"Authorization: Bearer of the proxy\r\n" in received


@pytest.mark.parametrize(
    ("line", "host", "status"),
    [
        (b"CONNECT localhost:80", b"localhost", 501),
        (b"OPTIONS *", b"localhost", 404),
        (b"GET http://evil.example/mcp", b"localhost", 400),
        (b"GET http://evil.example/mcp", b"evil.example", 421),
        (b"GET http://user@localhost/mcp", b"localhost", 400),
        (b"GET mcp", b"localhost", 400),
        (b"GET (mount%20point)", b"localhost", 400),
        (b"GET /mcp", b"localhost, evil.example", 421),
        (b"GET /mcp", b"evil.example", 421),
        (b"GET /mcp", b"localhost\r\nhost: evil.example", 400),
    ],
)
async def test_target_or_host_of_another_server_is_refused(
    line: bytes, host: bytes, status: int
) -> None:
    async with proxied(headers=KEY) as server:
        sent = b"%b HTTP/1.1\r\nhost: %b\r\n\r\n" % (line, host)
        assert status_of(await ask(server.port, sent)) == status
        assert server.take() == []


@pytest.mark.parametrize("name", ["X-Original-URL", "x-rewrite-url"])
async def test_header_with_another_path_does_not_pass_with_credentials(name: str) -> None:
    async with proxied(headers=KEY) as server:
        assert status_of(await ask(server.port, request(f"{name}: /admin"))) == 200
        (received,) = server.take()
        assert b"/admin" not in received


METADATA: Final = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration",
]


@pytest.mark.parametrize("target", METADATA)
async def test_metadata_is_requested_without_the_credentials_of_the_proxy(target: str) -> None:
    async with proxied(headers=KEY) as server:
        assert status_of(await ask(server.port, request(target=target))) == 200
        (received,) = server.take()
        assert b"of the proxy" not in received
        assert status_of(await ask(server.port, request(target=target, method="POST"))) == 404
        foreign = request("sec-fetch-site: cross-site", target=target)
        assert status_of(await ask(server.port, foreign)) == 403
        assert server.take() == []


# -- HTTP+SSE --------------------------------------------------------------------------------------

# What the server announces, and the target that clients post to; None for one of another server.
ANNOUNCED: Final = [
    (b"/messages?session_id=a", "/messages?session_id=a"),
    (b"messages", "/messages"),
    (b"?s=1", "/sse?s=1"),
    (b"/a/../messages", "/messages"),
    (b"http://evil.example/messages", None),
    (b"//evil.example/messages", None),
    (b"\xff/messages", None),
    (b"http://[/messages", None),
]


@pytest.mark.parametrize(("reference", "target"), ANNOUNCED)
async def test_announced_target_is_posted_to_while_its_stream_is_open(
    reference: bytes, target: str | None
) -> None:
    """Only the exact target the server announced passes, or the proxy would lend its key to all."""
    async with proxied("/sse", headers=KEY) as server:
        place = target or "/messages"
        post = request(target=place, method="POST")
        assert status_of(await ask(server.port, post)) == 404
        server.response = EVENTS + b"event: endpoint\ndata: " + reference + b"\n\n"
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            await stream.send_all(request("accept: text/event-stream", target="/sse"))
            response = Response(stream)
            await response.until(b"\n\n")
            server.response = OK
            server.take()
            assert status_of(await ask(server.port, post)) == (200 if target else 404)
            if target:
                (posted,) = server.take()
                assert b"Authorization: Bearer of the proxy\r\n" in posted
            for other in (
                request(target=place),
                request(target=f"{place}&admin=1", method="POST"),
                request(target=f"{place}/x", method="POST"),
                request("sec-fetch-site: cross-site", target=place, method="POST"),
            ):
                assert status_of(await ask(server.port, other)) in (403, 404)
            assert server.take() == []
            server.end.set()
            await response.until(None)
        # The proxy has forgotten the target before it passed the end on.
        assert status_of(await ask(server.port, post)) == 404
        assert server.take() == []


OTHER_RESPONSES: Final = {
    "a message first": EVENTS + b"data: {}\n\nevent: endpoint\ndata: /messages\n\n",
    "no event stream": (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nevent: endpoint\ndata: /messages\n\n"
    ),
    "an error": (
        b"HTTP/1.1 404 Not Found\r\ncontent-type: text/event-stream\r\n\r\n"
        b"event: endpoint\ndata: /messages\n\n"
    ),
    "a long event": EVENTS + b"event: endpoint\ndata: /" + b"m" * 20_000 + b"\n\n",
}


@pytest.mark.parametrize("response", OTHER_RESPONSES.values(), ids=OTHER_RESPONSES)
async def test_other_response_announces_no_target(response: bytes) -> None:
    async with proxied("/sse", headers=KEY) as server:
        server.response = response
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            await stream.send_all(request(target="/sse"))
            await Response(stream).until(response[-20:])
            server.response = OK
            for target in ("/messages", "/" + "m" * 7_000):
                found = await ask(server.port, request(target=target, method="POST"))
                assert status_of(found) == 404
        server.end.set()


async def test_server_with_http_sse_is_used_with_the_credentials_of_the_proxy() -> None:
    """The client has no key; it works on both paths of the server and on no other."""
    server = Server("behind")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    keys = ApiKeys({"ann": "k" * 32})
    async with trio.open_nursery() as nursery:
        start = partial(serve_http, server, sse_path="/sse", auth=keys)
        behind = await nursery.start(start)
        for path, versions in (
            ("/sse", ["2024-11-05"]),
            ("/mcp", ["2024-11-05"]),
            ("/mcp", ["2025-11-25"]),
            ("/mcp", ["2026-07-28"]),
        ):
            url = Url.parse(behind.url.replace("/mcp", path))
            headers = {"Authorization": f"Bearer {'k' * 32}"}
            proxy = await nursery.start(partial(serve_http_proxy, url, headers=headers))
            async with connect(proxy.url, versions=versions) as client:
                result = await client.call_tool("add", {"a": 1, "b": 2})
                assert "3" in str(result.content)
            with pytest.raises(ConnectFailed, match="404"):
                async with connect(proxy.url.replace(path, "/other"), versions=versions):
                    pass
        nursery.cancel_scope.cancel()


# -- Trailers --------------------------------------------------------------------------------------

FORBIDDEN: Final = """
    Authorization Proxy-Authorization Cookie Set-Cookie WWW-Authenticate Host Content-Length
    Content-Encoding Content-Type Content-Range Trailer TE Connection Keep-Alive
    Upgrade Proxy-Connection Origin Referer Expect If-Match Range Cache-Control Location Retry-After
    Mcp-Session-Id MCP-Protocol-Version Mcp-Param-x Last-Event-ID X-Forwarded-For Forwarded
    X-Real-IP Sec-Fetch-Site Access-Control-Allow-Origin X-Api-Key X_Forwarded_For AUTHORIZATION
    X-Original-URL
""".split()


@pytest.mark.parametrize("name", FORBIDDEN)
async def test_forbidden_trailer_passes_in_neither_direction(name: str) -> None:
    """A harmless `X-Sum` passes; fields that could pose as headers are dropped."""
    trailers = b"0\r\nX-Sum: 1\r\n%b: 2\r\n\r\n" % name.encode()
    async with proxied() as server:
        server.response = (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n" + trailers
        )
        sent = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        async with stream:
            await stream.send_all(sent + b"2\r\nok\r\n" + trailers)
            received = b""
            while not received.endswith(b"\r\n\r\n") or b"ok" not in received:
                received += bytes(await stream.receive_some())
        (request,) = server.take()
        for passed in (request, received):
            assert passed.endswith(b"\r\n0\r\nX-Sum: 1\r\n\r\n")


async def test_trailer_that_would_be_a_framing_ends_the_exchange() -> None:
    async with proxied() as server:
        sent = (
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
            b"2\r\nok\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n"
        )
        with pytest.raises(anyio.EndOfStream):
            await ask(server.port, sent)
        assert server.take() == []


async def test_trailer_with_the_name_of_an_added_header_does_not_pass() -> None:
    async with proxied(headers={"X-Tenant-Name": "a"}) as server:
        head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        trailers = b"0\r\nx-tenant-name: b\r\nX_Tenant_Name: c\r\nX-Sum: 1\r\n\r\n"
        assert status_of(await ask(server.port, head + trailers)) == 200
        (request,) = server.take()
        assert request.endswith(b"\r\n\r\n0\r\nX-Sum: 1\r\n\r\n")
        assert b"X-Tenant-Name: a\r\n" in request
