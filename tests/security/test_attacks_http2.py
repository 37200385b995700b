"""Attacks of an HTTP/2 client that only its server can bound: each is played over a socket."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.http import HttpLimits
from mcp_trio import Server, serve_http
from tests.harness.wire.http2_client import CANCEL, H2Wire, asking
from tests.harness.wire.http2_frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    RST_STREAM,
    SETTINGS,
    block,
    frame,
    number,
    post,
    setting,
    window,
)
from tests.harness.wire.router import (
    POST,
    E,
    meta,
    request,
)
from tests.harness.world.waiting import PATIENCE
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

CALM = 11
KIB = 1024
SIZE = 256 * KIB
HEAD = [*[pair for pair in POST if pair[0] != b"host"], (b"mcp-protocol-version", E.encode())]


class AttackedServer:
    """A server with a tool that returns long texts. `calls` counts how often it ran."""

    def __init__(self) -> None:
        self.port = 0
        self.calls = 0
        self.server = Server("attacked")

        @self.server.tool
        def text(size: int) -> str:
            """Return a text."""
            self.calls += 1
            return "x" * size

    async def connect(self) -> H2Wire:
        wire = H2Wire(await trio.open_tcp_stream("127.0.0.1", self.port))
        await wire.meet()
        return wire


@asynccontextmanager
async def attacked(**limits: Any) -> AsyncIterator[AttackedServer]:
    attacked = AttackedServer()
    async with trio.open_nursery() as nursery:
        start = partial(serve_http, attacked.server, limits=HttpLimits(**limits))
        attacked.port = (await nursery.start(start)).port
        yield attacked
        nursery.cancel_scope.cancel()


def call(stream: int, size: int) -> bytes:
    params = {"name": "text", "arguments": {"size": size}, "_meta": meta()}
    body = json.dumps(request(stream, "tools/call", params)).encode()
    return asking(
        stream, body, b"/mcp", *HEAD, (b"mcp-method", b"tools/call"), (b"mcp-name", b"text")
    )


@pytest.mark.parametrize("count", [25, long(100)])
async def test_h2_client_that_reads_nothing_makes_the_server_hold_little(count: int) -> None:
    """Eve requests long responses with a window of zero; seven calls run at most."""
    streams = range(1, 2 * count, 2)
    async with attacked(unread=4 * SIZE) as server:
        eve = await server.connect()
        await eve.send(frame(SETTINGS, 0, 0, setting(4, 0)))  # no window for any response
        await eve.send(*[call(stream, SIZE) for stream in streams])
        await eve.settle()
        # The limit, and those that go beyond it: the longest, and the one that reached it.
        assert server.calls <= 7
        # Others are served, and so is the attacker once it reads.
        bob = await server.connect()
        await bob.send(window(0, 10 * SIZE), call(1, 100))
        assert json.loads((await bob.answer(1)).body)["id"] == 1
        await eve.send(window(0, 200 * SIZE), *[window(id, 2 * SIZE) for id in streams])
        for stream in streams:
            answer = await eve.answer(stream)
            assert (answer.status, len(answer.body) > SIZE) == (200, True)
        assert server.calls == count + 1
        await eve.stream.aclose()
        await bob.stream.aclose()


# Bytes that close stream 1, and a frame for it after that.
LATE: dict[str, tuple[bytes, Callable[[], bytes]]] = {
    "data of an answered request": (call(1, 1), lambda: frame(DATA, 0, 1, bytes(100))),
    "ends of an answered request": (call(1, 1), lambda: frame(DATA, END_STREAM, 1)),
    "data of a reset request": (
        call(1, 1) + frame(RST_STREAM, 0, 1, number(CANCEL)),
        lambda: frame(DATA, 0, 1, bytes(100)),
    ),
    "heads of a reset request": (
        call(1, 1) + frame(RST_STREAM, 0, 1, number(CANCEL)),
        lambda: frame(HEADERS, END_HEADERS | END_STREAM, 1, block([(b"x", b"y")])),
    ),
    "data of a malformed request": (
        post(1, b"no path", flags=END_HEADERS | END_STREAM),
        lambda: frame(DATA, 0, 1, bytes(100)),
    ),
    "windows of an answered request": (call(1, 1), lambda: window(1, 1)),
    "resets of an answered request": (
        call(1, 1),
        lambda: frame(RST_STREAM, 0, 1, number(CANCEL)),
    ),
}


@pytest.mark.parametrize("name", LATE)
async def test_h2_client_that_floods_a_closed_stream_loses_the_connection(name: str) -> None:
    """A few late frames are legal; a flood ends in one GOAWAY with ENHANCE_YOUR_CALM."""
    closing, late = LATE[name]
    async with attacked() as server:
        eve = await server.connect()
        await eve.send(window(0, SIZE), closing)
        await eve.settle()

        async def flood() -> None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while True:
                    await eve.send(late() * 100)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(flood)
                with suppress(trio.BrokenResourceError):
                    await eve.end()
                nursery.cancel_scope.cancel()
        goaways = [each for each in eve.frames if each.kind == 7]
        assert [int.from_bytes(each.payload[4:8], "big") for each in goaways] == [CALM]
        bob = await server.connect()
        await bob.send(window(0, SIZE), call(1, 100))
        assert (await bob.answer(1)).status == 200
        await eve.stream.aclose()
        await bob.stream.aclose()
