"""Attacks by web pages, and with headers of proxies, over sockets: on plain routes and an endpoint.

A page whose name resolves to the server (DNS rebinding) sends its own name in `Host`. A page of
another origin sends that in `Origin`. The headers of proxies may come from anyone, so they change
nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from mcp_core.auth import OAuthResourceServer
from mcp_core.http import PlainResponse, RequestHead
from mcp_core.registry import Server
from mcp_trio import serve_http
from tests.harness.wire.http1_client import HttpWire

SECRET = b"the sessions of all users"


def secret(head: RequestHead) -> PlainResponse:
    return PlainResponse(200, SECRET)


@asynccontextmanager
async def dialled(server: Server | None = None, **options: Any) -> AsyncIterator[HttpWire]:
    options = {"routes": {"/status": secret}, **options}
    async with trio.open_nursery() as nursery:
        serve: Any = partial(serve_http, server or Server("s"), **options)
        address = await nursery.start(serve)
        stream = await trio.open_tcp_stream("127.0.0.1", address.port)
        async with stream:
            yield HttpWire(stream)
        nursery.cancel_scope.cancel()


def request(*headers: str, target: str = "/status", method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["host: 127.0.0.1"], 200),
        (["host: localhost:8000", "origin: http://localhost:8000"], 200),
        (["host: rebound.evil.example"], 421),
        (["host: rebound.evil.example:8000", "origin: http://rebound.evil.example:8000"], 421),
        (["host: localhost.evil.example"], 421),
        (["host: 127.0.0.1.nip.io"], 421),
        (["host: 0.0.0.0"], 421),
        (["host: localhost", "origin: https://evil.example"], 403),
        (["host: localhost", "origin: null"], 403),
        (["host: rebound.evil.example", "x-forwarded-host: localhost"], 421),
        (["host: rebound.evil.example", "forwarded: host=localhost"], 421),
        (["host: rebound.evil.example", "x-original-host: localhost", "x-host: localhost"], 421),
    ],
)
async def test_plain_route_is_not_read_by_web_pages(headers: list[str], status: int) -> None:
    async with dialled() as wire:
        for method in ("GET", "OPTIONS"):
            answer = await wire.ask(request(*headers, method=method))
            assert answer.status == status
            assert (SECRET in answer.body) is (status == 200)
        # The endpoint decides in the same way.
        answer = await wire.ask(request(*headers, target="/mcp", method="OPTIONS"))
        assert answer.status == (204 if status == 200 else status)


async def test_absolute_target_with_another_host_is_rejected() -> None:
    async with dialled() as wire:
        target = "http://localhost/status"
        answer = await wire.ask(request("host: rebound.evil.example", target=target))
        assert answer.status == 400
    async with dialled() as wire:
        target = "http://rebound.evil.example/status"
        answer = await wire.ask(request("host: rebound.evil.example", target=target))
        assert answer.status == 421


FORGED = (
    "x-forwarded-host: evil.example",
    "x-forwarded-proto: https",
    "x-forwarded-port: 444",
    "x-forwarded-prefix: /evil",
    "x-forwarded-for: 127.0.0.1",
    "x-real-ip: 127.0.0.1",
    "x-original-url: /status",
    "x-rewrite-url: /status",
    "forwarded: for=127.0.0.1;host=evil.example;proto=https",
)


async def test_forwarded_headers_change_no_response() -> None:
    issuers = ["https://as.example.com"]
    guard = OAuthResourceServer("https://mcp.example.com/mcp", issuers, lambda token: None)
    async with dialled(auth=guard) as wire:
        plain = request("host: localhost", target="/mcp")
        forged = request("host: localhost", *FORGED, target="/mcp")
        one, other = await wire.ask(plain), await wire.ask(forged)
        assert one.status == other.status == 401
        assert one.headers[b"www-authenticate"] == other.headers[b"www-authenticate"]
        assert b"evil" not in repr(other).encode()
        for target in ("/status", "/.well-known/oauth-protected-resource/mcp"):
            one = await wire.ask(request("host: localhost", target=target))
            other = await wire.ask(request("host: localhost", *FORGED, target=target))
            assert (one.status, one.body) == (other.status, other.body)


async def test_forwarded_headers_do_not_change_the_endpoint_of_an_event_stream() -> None:
    """In 2024-11-05 the server names the URL for messages: a path only, so without a host."""
    async with dialled() as wire:
        accept = "accept: text/event-stream"
        await wire.send(request("host: localhost", accept, *FORGED, target="/mcp"))
        await wire.until(b"data: ")
        assert (await wire.until(b"\n")).startswith(b"/mcp?session_id=")
