"""Attacks by web pages that send no `Origin`: images, scripts, frames and links, over sockets.

A browser says in `Sec-Fetch-Site` whose page has caused a request. Each attack is played on our own
HTTP server, and on the ASGI applications of both drivers under real servers. The proxy has a file
of its own.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.auth import OAuthResourceServer
from mcp_core.http import PlainResponse, RequestHead
from mcp_core.registry import Server
from tests.core.http.frames import upgrade
from tests.harness.wire.http2_client import H2Wire
from tests.harness.wire.http2_frames import END_HEADERS, END_STREAM, post
from tests.harness.world.asgi_servers import under_hypercorn, under_uvicorn
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Attack = Callable[[int], Awaitable[None]]

SECRET: Final = b"the sessions of all users"
VISIT: Final = ("sec-fetch-mode: navigate", "sec-fetch-dest: document")


def secret(head: RequestHead) -> PlainResponse:
    return PlainResponse(200, SECRET)


@asynccontextmanager
async def own_server(**options: Any) -> AsyncIterator[int]:
    async with trio.open_nursery() as nursery:
        serve = partial(mcp_trio.serve_http, Server("s"), routes={"/status": secret}, **options)
        address = await nursery.start(serve)
        yield address.port
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def hypercorn() -> AsyncIterator[int]:
    async with under_hypercorn(mcp_trio.asgi(Server("s"))) as url:
        yield urlsplit(url).port or 0


@asynccontextmanager
async def uvicorn() -> AsyncIterator[int]:
    async with under_uvicorn(mcp_asyncio_shim.asgi(Server("s")), ws="wsproto") as url:
        yield urlsplit(url).port or 0


SERVERS: Final[dict[str, tuple[Any, str]]] = {
    "our server": (own_server, "trio"),
    "hypercorn": (hypercorn, "trio"),
    "uvicorn": (uvicorn, "asyncio"),
}


def play(server: str, attack: Attack) -> None:
    """Run an attack on the port of a server."""
    serving, runtime = SERVERS[server]

    async def main() -> None:
        with anyio.fail_after(PATIENCE):
            async with serving() as port:
                await attack(port)

    anyio.run(main, backend=runtime)


async def ask(port: int, request: bytes) -> bytes:
    """Send a request on a connection of its own. Return the head of the response."""
    received = b""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(request)
        while b"\r\n\r\n" not in received:
            received += await stream.receive()
    return received


def status_of(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


def request(*headers: str, target: str = "/mcp", method: str = "GET") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "host: localhost", *headers, "content-length: 0"]
    return "\r\n".join([*lines, "", ""]).encode()


# What a browser sends with a request beside `Host`, and whether that is a page of another site.
SENT: Final[list[tuple[tuple[str, ...], bool]]] = [
    ((), False),
    (("sec-fetch-site: same-origin",), False),
    (("sec-fetch-site: none",), False),
    (("sec-fetch-mode: cors",), False),  # the fetch() of Node
    (("sec-fetch-site: cross-site",), True),
    (("sec-fetch-site: same-site",), True),
    (("Sec-Fetch-Site: cross-site", "sec-fetch-mode: no-cors", "sec-fetch-dest: image"), True),
    (("sec-fetch-site: cross-site", "sec-fetch-mode: no-cors", "sec-fetch-dest: script"), True),
    (("sec-fetch-site: cross-site", *VISIT), True),
    (("sec-fetch-site: Same-Origin",), True),
    (("sec-fetch-site: ",), True),
    (("sec-fetch-site: none, none",), True),
    (("sec-fetch-site: none", "sec-fetch-site: none"), True),
    (("sec-fetch-site: none", "sec-fetch-site: cross-site"), True),
    (("sec-fetch-site: cross-site", "sec-fetch-site: none"), True),
    (("sec-fetch-site: local",), True),
    (("sec-fetch-site: cross-site", "origin: http://localhost"), False),
    (("sec-fetch-site: none", "origin: https://evil.example"), True),
]


@pytest.mark.parametrize("server", SERVERS)
def test_endpoint_refuses_embedded_request_of_another_site(server: str) -> None:
    """An image could begin a session with each GET, and would need no `Origin` for it."""

    async def attack(port: int) -> None:
        for headers, is_foreign in SENT:
            found = await ask(port, request("accept: */*", *headers))
            assert status_of(found) == (403 if is_foreign else 200), headers
            for method, status in (("POST", 415), ("DELETE", 405), ("OPTIONS", 204)):
                found = await ask(port, request(*headers, method=method))
                assert status_of(found) == (403 if is_foreign else status), (method, headers)

    play(server, attack)


@pytest.mark.parametrize("server", SERVERS)
def test_websocket_of_another_site_is_refused(server: str) -> None:
    async def attack(port: int) -> None:
        for headers, is_foreign in SENT:
            lines = [line.encode() for line in headers]
            found = await ask(port, upgrade(*lines))
            assert status_of(found) == (403 if is_foreign else 101), headers

    play(server, attack)


async def test_h2_endpoint_refuses_embedded_request_of_another_site() -> None:
    async with own_server() as port:
        wire = H2Wire(await trio.open_tcp_stream("127.0.0.1", port))
        async with wire.stream:
            await wire.meet()
            for number, (headers, is_foreign) in enumerate(SENT):
                stream = 2 * number + 1
                pairs = [line.split(": ", 1) for line in headers]
                fields = [(name.lower().encode(), value.encode()) for name, value in pairs]
                flags = END_HEADERS | END_STREAM
                await wire.send(post(stream, b"/mcp", *fields, flags=flags, method=b"DELETE"))
                status = (await wire.answer(stream)).status
                assert status == (403 if is_foreign else 405), headers


# `Sec-Fetch-Site`, `-Mode` and `-Dest` of a request for a plain route; the status, by method.
ROUTE: Final = [
    ("cross-site", "navigate", "document", {"GET": 200, "HEAD": 200, "POST": 403}),
    ("same-site", "navigate", "document", {"GET": 200, "HEAD": 200, "PUT": 403}),
    ("cross-site", "navigate", "iframe", {"GET": 403}),
    ("cross-site", "navigate", "embed", {"GET": 403}),
    ("cross-site", "navigate", "", {"GET": 403}),
    ("cross-site", "no-cors", "document", {"GET": 403}),
    ("cross-site", "no-cors", "image", {"GET": 403}),
    ("same-site", "no-cors", "script", {"GET": 403}),
    ("cross-site", "cors", "empty", {"GET": 403}),
    ("cross-site", "", "", {"GET": 403, "OPTIONS": 403}),
    ("cross-site", "Navigate", "document", {"GET": 403}),
    ("same-origin", "no-cors", "image", {"GET": 200, "POST": 200}),
    ("none", "navigate", "document", {"GET": 200}),
    ("", "no-cors", "image", {"GET": 200}),
]


@pytest.mark.parametrize(("site", "mode", "dest", "statuses"), ROUTE)
async def test_plain_route_lets_visits_in_and_nothing_else_of_another_site(
    site: str, mode: str, dest: str, statuses: dict[str, int]
) -> None:
    sent = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    headers = [f"{name}: {value}" for name, value in sent.items() if value]
    async with own_server() as port:
        for method, status in statuses.items():
            found = await ask(port, request(*headers, target="/status", method=method))
            assert status_of(found) == status, method
            # What was read twice has no single meaning.
            doubled = [*headers, *headers]
            if site and status == 200 and site != "same-origin":
                twice = await ask(port, request(*doubled, target="/status", method=method))
                assert status_of(twice) == 403


async def test_visit_with_a_foreign_host_or_origin_is_refused() -> None:
    async with own_server() as port:
        for header, status in (("origin: https://evil.example", 403), ("origin: null", 403)):
            sent = request("sec-fetch-site: cross-site", *VISIT, header, target="/status")
            assert status_of(await ask(port, sent)) == status
        sent = request("sec-fetch-site: cross-site", *VISIT, target="/status")
        rebound = sent.replace(b"host: localhost", b"host: evil.example")
        assert status_of(await ask(port, rebound)) == 421


async def test_metadata_of_a_protected_resource_is_public() -> None:
    guard = OAuthResourceServer(
        "https://mcp.example.com/mcp", ["https://as.example.com"], lambda token: None
    )
    headers = ("sec-fetch-site: cross-site", "sec-fetch-mode: no-cors", "sec-fetch-dest: script")
    async with own_server(auth=guard) as port:
        target = "/.well-known/oauth-protected-resource/mcp"
        assert status_of(await ask(port, request(*headers, target=target))) == 200
        # Who may send requests is decided before authorization.
        assert status_of(await ask(port, request(*headers))) == 403
        assert status_of(await ask(port, request())) == 401
