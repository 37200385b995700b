"""Handlers that ignore their cancellation, where the process is not ours: one line in the log.

The drivers wait for such a handler, because its task is theirs. `test_last_deadline.py` has what
happens where the process is ours.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.registry import Server
from tests import virtual_time
from tests.asgi import serve_app
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.core.helpers import INITIALIZED, D, initialize, line, request
from tests.test_asgi import ASYNCIO, TRIO, Driver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LINE = (
    "the conversation has ended, and tool 'stubborn' ignored the cancellation for 5 s: a handler"
    " must not shield or swallow it for so long"
)


class Stubborn:
    """A server whose tool `stubborn` takes 18 s, and one whose tool `polite` can be cancelled."""

    def __init__(self) -> None:
        self.server = Server("stubborn")
        self.started = anyio.Event()

        @self.server.tool(name="stubborn")
        async def function() -> str:
            """Ignore the cancellation."""
            self.started.set()
            end = anyio.current_time() + 18
            with anyio.CancelScope(shield=True):  # trio
                while (rest := end - anyio.current_time()) > 0:
                    try:
                        await anyio.sleep(rest)
                    except asyncio.CancelledError:
                        pass
            return "in its own time"

        @self.server.tool
        async def polite() -> str:
            """Take a moment to clean up."""
            self.started.set()
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(1)
            return ""


def opening(tool: str) -> bytes:
    messages = initialize(D), INITIALIZED, request(1, "tools/call", {"name": tool})
    return b"".join(map(line, messages))


async def end_of_stream(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """The client of a stream closes it."""
    if driver is TRIO:
        ours, theirs = mcp_trio.memory_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(mcp_trio.serve_stream, stubborn.server, theirs, grace=1))
            await ours.send_all(opening(tool))
            await stubborn.started.wait()
            await ours.aclose()
        return
    mine, its = socket.socketpair()
    serving = asyncio.create_task(
        mcp_asyncio_shim.serve_streams(
            stubborn.server, *await asyncio.open_connection(sock=its), grace=1
        )
    )
    _, writer = await asyncio.open_connection(sock=mine)
    writer.write(opening(tool))
    await stubborn.started.wait()
    writer.close()
    await writer.wait_closed()
    await serving


async def cancelled_stream(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """The task that serves a stream is cancelled."""
    if driver is ASYNCIO:
        mine, its = socket.socketpair()
        serving = asyncio.create_task(
            mcp_asyncio_shim.serve_streams(
                stubborn.server, *await asyncio.open_connection(sock=its), grace=1
            )
        )
        _, writer = await asyncio.open_connection(sock=mine)
        writer.write(opening(tool))
        await stubborn.started.wait()
        serving.cancel()
        await asyncio.wait({serving})
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        return
    ours, theirs = mcp_trio.memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mcp_trio.serve_stream, stubborn.server, theirs)
        await ours.send_all(opening(tool))
        await stubborn.started.wait()
        nursery.cancel_scope.cancel()


async def memory(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """A client in the same process leaves."""
    connect: Any = mcp_trio.connect if driver is TRIO else mcp_asyncio_shim.connect
    async with connect(stubborn.server) as client:
        with pytest.raises(mcp_trio.CallTimeout):
            await client.call_tool(tool, timeout=1)


async def disconnected(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """One of several clients of an application disconnects."""
    async with serve_app(driver.asgi(stubborn.server), patience=3600) as host:
        call = host.call_tool(1, tool)
        await stubborn.started.wait()
        call.disconnect()
        await call.end()
        await anyio.sleep(30)


async def deleted(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """A client deletes its session."""
    async with serve_app(driver.asgi(stubborn.server), patience=3600) as host:
        session = await host.session()
        session.calling(1, tool)
        await stubborn.started.wait()
        await session.delete()
        await anyio.sleep(30)


async def shutdown(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """An application ends while a handler runs."""
    async with serve_app(driver.asgi(stubborn.server), patience=3600) as host:
        session = await host.session()
        session.calling(1, tool)
        await stubborn.started.wait()


WAYS = (end_of_stream, cancelled_stream, memory, disconnected, deleted, shutdown)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("driver", [TRIO, ASYNCIO], ids=["trio", "asyncio"])
@pytest.mark.parametrize(("tool", "lines"), [("stubborn", [LINE]), ("polite", [])])
def test_stubborn_handler_is_named_once_in_the_log(
    tool: str,
    lines: list[str],
    way: Callable[[Stubborn, Driver, str], Awaitable[None]],
    driver: Driver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        await way(Stubborn(), driver, tool)

    run = driver.run if driver is TRIO else lambda main: virtual_time.run(main())
    run(main)
    assert [text for text in caplog.messages if "cancel" in text] == lines
