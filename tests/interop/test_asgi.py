"""Our ASGI applications under real servers, hypercorn on trio and uvicorn on asyncio, with the
official Python client.

Everything runs in one process, on the server's runtime: the client runs on either, through anyio.
"""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as t
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.client.sse import sse_client
from starlette.applications import Starlette
from starlette.routing import Mount

import mcp_asyncio_shim
import mcp_trio
from tests.harness.wire.asgi import Lived, Neutral
from tests.harness.wire.router import (
    GET,
    POST,
    initialize,
    meta,
    request,
)
from tests.harness.world.asgi_servers import under_hypercorn, under_uvicorn
from tests.interop.official import D, E

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.client.session import ClientRequestContext

    from tests.harness.wire.asgi import App
    from tests.harness.world.asgi_servers import Serving

pytestmark = [
    # The client warns of features that the last revision removed, even in an older one.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    # It abandons event streams before their end, which trio reports and asyncio does not.
    pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning"),
]

ROOTS = t.ListRootsResult.model_validate({"roots": [{"uri": "file:///a"}]})


RUNTIMES: dict[str, tuple[Serving, Callable[..., App], str]] = {
    "hypercorn": (under_hypercorn, mcp_trio.asgi, "trio"),
    "uvicorn": (under_uvicorn, mcp_asyncio_shim.asgi, "asyncio"),
}


def run(runtime: str, test: Callable[..., Awaitable[None]], *args: Any) -> None:
    async def main() -> None:
        with anyio.fail_after(30):
            await test(*RUNTIMES[runtime][:2], *args)

    anyio.run(main, backend=RUNTIMES[runtime][2])


async def roots(context: ClientRequestContext) -> t.ListRootsResult:
    return ROOTS


def text(result: Any) -> str:
    assert not result.is_error
    return str(result.content[0].text)


async def converse(
    serving: Serving, make: Callable[..., App], mode: str, sessions: bool, mounted: bool
) -> None:
    neutral = Neutral()
    app = make(neutral.server, sessions=sessions)
    path = "/mcp"
    if mounted:
        app, path = Starlette(routes=[Mount("/v1/tools", app)]), "/v1/tools/"
    received: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        received.append(progress)

    async with (
        serving(app) as url,
        Client(f"{url}{path}", mode=mode, list_roots_callback=roots) as client,
    ):
        assert client.protocol_version == (D if mode == "legacy" else E)
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"echo", "count", "ask"} <= tools
        assert text(await client.call_tool("echo", {"text": "naïve ☃"})) == "naïve ☃"
        assert (
            text(await client.call_tool("count", {"to": 20}, progress_callback=on_progress))
            == "counted"
        )
        assert sorted(received) == list(range(1, 21))
        async with anyio.create_task_group() as group:
            texts: list[str] = []

            async def echo(number: int) -> None:
                texts.append(text(await client.call_tool("echo", {"text": str(number)})))

            for number in range(20):
                group.start_soon(echo, number)
        assert sorted(map(int, texts)) == list(range(20))
        if (
            sessions or mode != "legacy"
        ):  # without a stream, input requests and cancellations cannot reach the client
            assert text(await client.call_tool("ask", {})) == "file:///a"
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "wait", {})
                await neutral.started.wait()
                group.cancel_scope.cancel()
            await neutral.until(lambda: neutral.log == ["cancelled"])
        neutral.go.set()
        assert text(await client.call_tool("wait", {})) == "went on"


@pytest.mark.parametrize("mounted", [False, True], ids=["by-itself", "mounted"])
@pytest.mark.parametrize("sessions", [True, False], ids=["sessions", "stateless"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_asgi_under_real_server_answers_sdk_client(
    runtime: str, mode: str, sessions: bool, mounted: bool
) -> None:
    run(runtime, converse, mode, sessions, mounted)


async def http_sse(serving: Serving, make: Callable[..., App]) -> None:
    """A client that is set up for HTTP+SSE, alone and where the application is mounted."""
    app = make(Neutral().server, sse_path="/sse")
    for outer, path in (app, "/sse"), (Starlette(routes=[Mount("/v1", app)]), "/v1/sse"):
        begun: list[str] = []
        async with (
            serving(outer) as url,
            Client(
                sse_client(f"{url}{path}", on_session_created=begun.append), mode="legacy"
            ) as client,
        ):
            assert text(await client.call_tool("echo", {"text": "old"})) == "old"
            assert len(begun) == 1


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_asgi_under_real_server_answers_sse_client_at_sse_path(runtime: str) -> None:
    run(runtime, http_sse)


def raw(
    verb: str, headers: list[tuple[bytes, bytes]], body: bytes = b"", length: int | None = None
) -> bytes:
    size = b"content-length: %d" % (len(body) if length is None else length)
    lines = [
        f"{verb} /mcp HTTP/1.1".encode(),
        *(b"%b: %b" % header for header in headers),
        size,
        b"",
        b"",
    ]
    return b"\r\n".join(lines) + body


async def bytes_and_ends(serving: Serving, make: Callable[..., App]) -> None:
    """Check streams, disconnects, a body over the limit, and the shutdown under these servers."""
    lived: list[str] = []

    @asynccontextmanager
    async def lifespan(server: object) -> AsyncIterator[None]:
        lived.append("in")
        yield
        lived.append("out")

    neutral = Neutral(lifespan=lifespan)
    async with serving(make(neutral.server)) as url:
        port = int(url.rpartition(":")[2])

        async def connect() -> Any:
            return await anyio.connect_tcp("127.0.0.1", port)

        async with await connect() as stream:
            await stream.send(raw("GET", GET))
            received = b""
            while b"event: endpoint" not in received:
                received += await stream.receive()
            assert received.startswith(b"HTTP/1.1 200")
        assert lived == ["in"]

        params = {"name": "wait", "arguments": {}, "_meta": meta()}
        modern = [
            (b"mcp-protocol-version", E.encode()),
            (b"mcp-method", b"tools/call"),
            (b"mcp-name", b"wait"),
        ]
        async with await connect() as stream:
            await stream.send(
                raw("POST", [*POST, *modern], json.dumps(request(1, "tools/call", params)).encode())
            )
            await neutral.started.wait()
        await neutral.until(lambda: neutral.log == ["cancelled"])

        async with await connect() as stream:
            await stream.send(raw("POST", POST, b"{", length=1_000_000_000))
            received = b""
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    received += await stream.receive()
            assert received.startswith(b"HTTP/1.1 413")

        async with await connect() as stream:
            opened = raw("POST", POST, json.dumps(initialize(D)).encode())
            await stream.send(opened)
            found = None
            received = b""
            while found is None:
                received += await stream.receive()
                found = re.search(rb"mcp-session-id: ([0-9a-f]{32})", received)
            session = [(b"mcp-session-id", found[1]), (b"mcp-protocol-version", D.encode())]
            listening = await connect()
            await listening.send(raw("GET", [*GET, *session]))
            assert (await listening.receive()).startswith(b"HTTP/1.1 200")
    # Shutdown while a client is subscribed.
    assert lived == ["in", "out"]
    await listening.aclose()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_asgi_under_real_server_streams_and_shutdown(runtime: str) -> None:
    run(runtime, bytes_and_ends)


async def lifespan_of_framework(serving: Serving, make: Callable[..., Any]) -> None:
    """Check that a mounted application starts before its first request, and ends in time."""
    lived = Lived()
    app = make(Neutral(lifespan=lived).server)
    outer = FastAPI(lifespan=app.lifespan)
    outer.mount("/tools", app)
    outer.add_api_route("/seen", lambda: lived.seen)
    async with serving(outer) as url:
        received = b""
        async with await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2])) as stream:
            await stream.send(b"GET /seen HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            async for chunk in stream:
                received += chunk
        assert received.endswith(b'["in"]')
        async with Client(f"{url}/tools/mcp") as client:
            assert text(await client.call_tool("value", {})) == "alive"
        assert lived.seen == ["in"]
    assert lived.seen == ["in", "out"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_asgi_under_real_server_framework_runs_the_lifespan(runtime: str) -> None:
    run(runtime, lifespan_of_framework)
