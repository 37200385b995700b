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
from mcp_core.adapters import SqliteTaskStore
from mcp_core.registry import Server, TaskOptions, Tasks
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    initialize,
    line,
    request,
)
from tests.harness.wire.asgi import serve_app
from tests.harness.world import virtual_time
from tests.test_asgi import ASYNCIO, TRIO, Driver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.harness.wire.asgi import Session

TASK_LINE = (
    "tool 'stubborn' ignored the cancellation for 5 s: a handler must not shield or swallow it for"
    " so long"
)
LINE = f"the conversation has ended, and {TASK_LINE}"


class Stubborn:
    """A server whose tool `stubborn` takes 18 s, and one whose tool `polite` can be cancelled."""

    def __init__(self, tasks: Tasks | None = None, task: TaskOptions | None = None) -> None:
        self.server = Server("stubborn", tasks=tasks)
        self.started = anyio.Event()
        options: Any = {} if task is None else {"task": task}

        @self.server.tool(name="stubborn", **options)
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

        @self.server.tool(**options)
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
    async with serve_app(driver.asgi(stubborn.server)) as host:
        call = host.call_tool(1, tool)
        await stubborn.started.wait()
        call.disconnect()
        await call.end()
        await anyio.sleep(30)


async def deleted(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """A client deletes its session."""
    async with serve_app(driver.asgi(stubborn.server)) as host:
        session = await host.session()
        session.calling(1, tool)
        await stubborn.started.wait()
        await session.delete()
        await anyio.sleep(30)


async def shutdown(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """An application ends while a handler runs."""
    async with serve_app(driver.asgi(stubborn.server)) as host:
        session = await host.session()
        session.calling(1, tool)
        await stubborn.started.wait()


def play(
    driver: Driver,
    make: Callable[[], Stubborn],
    way: Callable[[Stubborn, Driver, str], Awaitable[None]],
    tool: str,
) -> None:
    async def main() -> None:
        await way(make(), driver, tool)

    run = driver.run if driver is TRIO else lambda main: virtual_time.run(main())
    run(main)


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
    play(driver, Stubborn, way, tool)
    assert [text for text in caplog.messages if "cancel" in text] == lines


# -- Handlers of tasks -----------------------------------------------------------------------------


async def task_in_memory(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """A client in the same process leaves, and with it the server."""
    connect: Any = mcp_trio.connect if driver is TRIO else mcp_asyncio_shim.connect
    async with connect(stubborn.server, tasks=True) as client:
        await client.start_tool(tool)
        await stubborn.started.wait()


async def cancelled_task(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """The client cancels the task, and stays."""
    connect: Any = mcp_trio.connect if driver is TRIO else mcp_asyncio_shim.connect
    async with connect(stubborn.server, tasks=True) as client:
        task = await client.start_tool(tool)
        await stubborn.started.wait()
        await task.cancel()
        await anyio.sleep(30)


async def start_task(session: Session, stubborn: Stubborn, tool: str) -> None:
    params = {"name": tool, "arguments": {}, "task": {}}
    await session.post(request(1, "tools/call", params)).end()
    await stubborn.started.wait()


async def deleted_with_task(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """A client deletes the session that its task belongs to."""
    async with serve_app(driver.asgi(stubborn.server)) as host:
        session = await host.session()
        await start_task(session, stubborn, tool)
        await session.delete()
        await anyio.sleep(30)


async def shutdown_with_task(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """An application ends while a task runs."""
    async with serve_app(driver.asgi(stubborn.server)) as host:
        await start_task(await host.session(), stubborn, tool)


async def cancelled_with_task(stubborn: Stubborn, driver: Driver, tool: str) -> None:
    """The task of the program in which server and client run is cancelled."""
    if driver is TRIO:
        with trio.CancelScope() as scope:
            async with mcp_trio.connect(stubborn.server, tasks=True) as client:
                await client.start_tool(tool)
                await stubborn.started.wait()
                scope.cancel()
                await trio.sleep_forever()
        return
    running = asyncio.create_task(task_in_memory(stubborn, driver, tool))
    await stubborn.started.wait()
    running.cancel()
    await asyncio.wait({running})


TASK_WAYS = (
    task_in_memory,
    cancelled_task,
    deleted_with_task,
    shutdown_with_task,
    cancelled_with_task,
)


@pytest.mark.parametrize("store", ["memory", "file"])
@pytest.mark.parametrize("way", TASK_WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("driver", [TRIO, ASYNCIO], ids=["trio", "asyncio"])
@pytest.mark.parametrize(("tool", "lines"), [("stubborn", [TASK_LINE]), ("polite", [])])
def test_stubborn_handler_of_a_task_is_named_once_in_the_log(
    tool: str,
    lines: list[str],
    way: Callable[[Stubborn, Driver, str], Awaitable[None]],
    driver: Driver,
    store: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = Tasks(store=SqliteTaskStore(tmp_path / "tasks.db")) if store == "file" else None
    play(driver, lambda: Stubborn(tasks, TaskOptions()), way, tool)
    assert [text for text in caplog.messages if "cancel" in text] == lines


@pytest.mark.parametrize("driver", [TRIO, ASYNCIO], ids=["trio", "asyncio"])
@pytest.mark.parametrize(("tool", "lines"), [("stubborn", [TASK_LINE]), ("polite", [])])
def test_stubborn_handler_that_could_become_a_task_is_named_once_in_the_log(
    tool: str, lines: list[str], driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    async def cancelled_call(stubborn: Stubborn, driver: Driver, tool: str) -> None:
        connect: Any = mcp_trio.connect if driver is TRIO else mcp_asyncio_shim.connect
        async with connect(stubborn.server, tasks=True) as client:
            with pytest.raises(mcp_trio.CallTimeout):
                await client.call_tool(tool, timeout=1)

    play(driver, lambda: Stubborn(None, TaskOptions(detach=None)), cancelled_call, tool)
    assert [text for text in caplog.messages if "cancel" in text] == lines
