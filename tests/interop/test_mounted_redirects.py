"""Both clients at the official Python SDK's server in a Starlette application, which redirects.

`app.mount("/mcp", ...)` answers `/mcp` with 307 to `/mcp/`. Behind a proxy that ends TLS, the
location is `http://` unless the application trusts the proxy's headers: that is never followed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

import mcp_asyncio_shim
import mcp_trio
from mcp_core import ConnectFailed
from tests.harness.jsonrpc import D, E
from tests.harness.world import waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from starlette.requests import Request

pytestmark = pytest.mark.interop

LEGACY = "2024-11-05"
CLIENTS: dict[str, Any] = {"trio": mcp_trio.connect, "asyncio": mcp_asyncio_shim.connect}


def mounted(targets: list[str]) -> Starlette:
    """Return an application with the server at `/mcp`, and over HTTP+SSE at `/sse`.

    The requests' methods and paths are added to `targets`.
    """
    server = MCPServer("mounted")

    @server.tool()
    def greet(name: str) -> str:
        """Greet someone."""
        return f"Hello, {name}!"

    inner = server.streamable_http_app(streamable_http_path="/")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(inner.router.lifespan_context(inner))
            yield

    async def to_http(request: Request) -> RedirectResponse:
        return RedirectResponse("http://mcp.example/mcp/", 307)

    app = Starlette(
        routes=[
            Mount("/mcp", app=inner),
            Mount("/old", app=server.sse_app(sse_path="/")),
            Route("/elsewhere", to_http, methods=["GET", "POST"]),
        ],
        lifespan=lifespan,
    )

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            targets.append(f"{scope['method']} {scope['path']}")
        await app(scope, receive, send)

    return noted  # type: ignore[return-value]


@contextmanager
def serving(targets: list[str]) -> Iterator[str]:
    """Serve the application in a thread, and yield its origin."""
    server = uvicorn.Server(uvicorn.Config(mounted(targets), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        end = time.monotonic() + waiting.PATIENCE
        while not server.started and time.monotonic() < end:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def play(runtime: str, main: Callable[[], Awaitable[Any]]) -> Any:
    if runtime == "asyncio":
        return asyncio.run(main())  # type: ignore[arg-type]
    return trio.run(main)


@pytest.mark.parametrize("runtime", CLIENTS)
@pytest.mark.parametrize("version", [D, E])
def test_client_follows_the_redirects_of_a_mounted_server(runtime: str, version: str) -> None:
    targets: list[str] = []

    async def main() -> str:
        async with CLIENTS[runtime](f"{origin}/mcp", versions=[version]) as client:
            assert client.peer.dialect.version == version
            text: str = (await client.call_tool("greet", {"name": "Ada"})).text
            return text

    with serving(targets) as origin:
        assert play(runtime, main) == "Hello, Ada!"
    for method in {D: ("POST", "GET", "DELETE"), E: ("POST",)}[version]:
        assert targets.count(f"{method} /mcp") == targets.count(f"{method} /mcp/") > 0


@pytest.mark.parametrize("runtime", CLIENTS)
def test_client_of_http_sse_follows_the_redirect_of_its_stream(runtime: str) -> None:
    targets: list[str] = []

    async def main() -> str:
        async with CLIENTS[runtime](f"{origin}/old", versions=[LEGACY]) as client:
            text: str = (await client.call_tool("greet", {"name": "Ada"})).text
            return text

    with serving(targets) as origin:
        assert play(runtime, main) == "Hello, Ada!"
    assert {"GET /old", "GET /old/", "POST /old/messages/"} <= set(targets)


@pytest.mark.parametrize("runtime", CLIENTS)
def test_client_is_not_led_to_another_origin(runtime: str) -> None:
    async def main() -> None:
        async with CLIENTS[runtime](f"{origin}/elsewhere"):
            raise AssertionError("it was led there")

    with (
        serving([]) as origin,
        pytest.raises(
            ConnectFailed, match=r"to another origin.*connect to http://mcp\.example/mcp/"
        ),
    ):
        play(runtime, main)
