"""A call in the other driver's event loop: one line that names the right package."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.registry import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Mistake = Callable[[], Awaitable[object]]

server = Server("mistaken")


async def enter(manager: Any) -> None:
    async with manager:
        raise AssertionError  # pragma: no cover


def stream() -> Any:
    return mcp_trio.memory_pair()[0]


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(lambda: enter(mcp_trio.connect(server)), id="memory"),
        pytest.param(lambda: enter(mcp_trio.connect(["true"])), id="command"),
        pytest.param(lambda: enter(mcp_trio.connect("http://127.0.0.1:1/")), id="http"),
        pytest.param(lambda: enter(mcp_trio.connect("ws://127.0.0.1:1/")), id="websocket"),
        pytest.param(lambda: enter(mcp_trio.Host({})), id="host"),
        pytest.param(lambda: mcp_trio.serve_http(server), id="serve-http"),
        pytest.param(lambda: mcp_trio.serve_stdio(server), id="serve-stdio"),
        pytest.param(lambda: mcp_trio.serve_listeners(server, []), id="serve-listeners"),
        pytest.param(lambda: mcp_trio.serve_stream(server, stream()), id="serve-stream"),
    ],
)
def test_trio_package_in_asyncio_names_the_shim(mistake: Mistake) -> None:
    async def main() -> None:
        await mistake()

    with pytest.raises(RuntimeError, match="in asyncio use the package mcp_asyncio_shim"):
        asyncio.run(main())


def test_lifespan_for_the_other_loop_gets_a_note() -> None:
    """With the right command, below the exception as it is."""

    @asynccontextmanager
    async def awaits_trio(server: Server) -> AsyncIterator[None]:
        trio.current_time()
        yield

    @asynccontextmanager
    async def awaits_asyncio(server: Server) -> AsyncIterator[None]:
        asyncio.get_running_loop()
        yield

    async def on_asyncio() -> None:
        await enter(mcp_asyncio_shim.connect(Server("s", lifespan=awaits_trio)))

    async def on_trio() -> None:
        await enter(mcp_trio.connect(Server("s", lifespan=awaits_asyncio)))

    with pytest.raises(RuntimeError, match="must be called") as caught:
        asyncio.run(on_asyncio())
    assert "mcp-trio run FILE" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="no running event loop") as caught:
        trio.run(on_trio)
    assert "--asyncio" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(lambda: enter(mcp_asyncio_shim.connect(server)), id="memory"),
        pytest.param(lambda: enter(mcp_asyncio_shim.connect(["true"])), id="command"),
        pytest.param(lambda: enter(mcp_asyncio_shim.Host({})), id="host"),
        pytest.param(lambda: mcp_asyncio_shim.serve_stdio(server), id="serve-stdio"),
        pytest.param(
            lambda: mcp_asyncio_shim.serve_streams(server, None, None),  # type: ignore[arg-type]
            id="serve-streams",
        ),
    ],
)
def test_shim_in_trio_names_mcp_trio(mistake: Mistake) -> None:
    with pytest.raises(RuntimeError, match="in trio use the package mcp_trio"):
        trio.run(mistake)
