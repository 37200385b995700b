"""The runtimes of both drivers as they are, with keys, for tests of the stores in Redis."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from mcp_asyncio_shim._tasks import AsyncioTaskRuntime
from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.sharing import ChangesPublished, MessageCodec
from mcp_trio._tasks import TrioTaskRuntime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.runtime.tasks import TaskRuntime

__all__ = [
    "CODEC",
    "KEYS",
    "RUNS",
    "STREAM",
    "TOOLS",
    "Clock",
    "pause",
    "run_asyncio",
    "run_trio",
    "soon",
]

KEYS = KeyRing({"1": b"k" * 32})
# Of the deployment "lab".
CODEC = MessageCodec(KEYS.signing_keys("workers"), "lab")
STREAM = "mcp:{lab}:bus"
TOOLS = ChangesPublished("s", lists=("tools",))


class Clock:
    """Is ahead of the real one by so many seconds, or, if it `stands`, of the time it began at."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.stands = False
        self._began = time.monotonic()

    def __call__(self) -> float:
        return (self._began if self.stands else time.monotonic()) + self.ahead


def _prepared(runtime: Any) -> Any:
    """Give a runtime keys, the clock `clock`, and the list `warnings` of what it logs."""
    runtime.keys = KEYS
    runtime.clock = runtime.monotonic = Clock()
    runtime.warnings = []
    runtime.warn = runtime.warnings.append
    return runtime


def run_trio(main: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        async with trio.open_nursery() as nursery:
            try:
                await main(_prepared(TrioTaskRuntime(nursery)))
            finally:
                nursery.cancel_scope.cancel()

    try:
        trio.run(run)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def run_asyncio(main: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        runtime = _prepared(AsyncioTaskRuntime())
        try:
            await main(runtime)
        finally:
            await runtime.aclose()

    asyncio.run(run())


RUNS = [run_trio, run_asyncio]


async def pause(runtime: TaskRuntime, seconds: float = 0.01) -> None:
    await runtime.wait(runtime.new_event(), seconds)


def soon(runtime: TaskRuntime, call: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Start `call` in the background. Await what is returned for its value, or its exception."""
    done = runtime.new_event()
    outcome: list[Any] = []

    async def run() -> None:
        try:
            outcome.append(await call())
        except Exception as exc:  # noqa: BLE001 - raised below
            outcome.append(exc)
        done.set()

    async def wait() -> Any:
        assert await runtime.wait(done, 20)
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]

    runtime.start_soon(partial(run))
    return wait
