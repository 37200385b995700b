"""A `TaskRuntime` of trio and one of asyncio, with nothing but what a store of tasks uses."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from mcp_core.runtime.tasks._runtime import TaskRuntime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from mcp_core.runtime import EventLike, Job

__all__ = ["RUNS", "StoreRuntime", "run_asyncio", "run_trio", "together"]

T = TypeVar("T")


class StoreRuntime(TaskRuntime):
    """The common part of both.

    Attributes:
        warnings: the texts of `warn`.
        ahead: seconds that the monotonic clock is ahead: leases end without waiting.
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.perf_counter() + self.ahead

    def report(self, request: object, reference: str, exc: BaseException) -> None:
        raise AssertionError("a store has no requests")

    async def checkpoint(self) -> None:
        await self.wait(self.new_event(), 0)

    def start_job(self, job: Job) -> None:
        raise AssertionError("a store has no jobs")

    async def shielded(self, function: Callable[[], Awaitable[None]]) -> None:
        await function()

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def wall_time(self) -> float:
        return time.time()


class TrioStoreRuntime(StoreRuntime):
    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__()
        self.nursery = nursery
        self._token = trio.lowlevel.current_trio_token()

    def new_event(self) -> trio.Event:
        return trio.Event()

    async def wait(self, event: EventLike, seconds: float | None = None) -> bool:
        assert isinstance(event, trio.Event)
        with trio.move_on_after(math.inf if seconds is None else seconds):
            await event.wait()
        return event.is_set()

    def start_soon(self, function: Callable[[], Awaitable[object]]) -> None:
        self.nursery.start_soon(function)

    def call_soon(self, function: Callable[[], object]) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(function, idempotent=True)

    def in_store_thread(self, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        return trio.to_thread.run_sync(function, abandon_on_cancel=True)


class AsyncioStoreRuntime(StoreRuntime):
    def __init__(self) -> None:
        super().__init__()
        self.tasks: set[asyncio.Future[object]] = set()
        self._loop = asyncio.get_running_loop()

    def new_event(self) -> asyncio.Event:
        return asyncio.Event()

    async def wait(self, event: EventLike, seconds: float | None = None) -> bool:
        assert isinstance(event, asyncio.Event)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        return event.is_set()

    def start_soon(self, function: Callable[[], Awaitable[object]]) -> None:
        task = asyncio.ensure_future(function())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def call_soon(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def in_store_thread(self, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        return asyncio.to_thread(function)


def run_trio(main: Callable[[StoreRuntime], Awaitable[T]]) -> T:
    """Run `main` under trio, and cancel at its end what it has started."""

    async def run() -> T:
        async with trio.open_nursery() as nursery:
            try:
                result = await main(TrioStoreRuntime(nursery))
            finally:
                nursery.cancel_scope.cancel()
        return result

    try:
        return trio.run(run)
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


def run_asyncio(main: Callable[[StoreRuntime], Awaitable[T]]) -> T:
    """Run `main` under asyncio, and cancel at its end what it has started."""

    async def run() -> T:
        runtime = AsyncioStoreRuntime()
        try:
            return await main(runtime)
        finally:
            for task in runtime.tasks:
                task.cancel()
            await asyncio.gather(*runtime.tasks, return_exceptions=True)

    return asyncio.run(run())


RUNS = [run_trio, run_asyncio]


async def together(runtime: StoreRuntime, *functions: Callable[[], Awaitable[T]]) -> list[T]:
    """Run the functions in tasks, and return their results in order. Raise the first exception."""
    outcomes: dict[int, T | Exception] = {}
    ended = runtime.new_event()

    async def run(index: int, function: Callable[[], Awaitable[T]]) -> None:
        try:
            outcomes[index] = await function()
        except Exception as exc:  # noqa: BLE001 - raised below
            outcomes[index] = exc
        if len(outcomes) == len(functions):
            ended.set()

    for index, function in enumerate(functions):
        runtime.start_soon(partial(run, index, function))
    await runtime.wait(ended, 20)
    results = []
    for index in range(len(functions)):
        outcome = outcomes[index]
        if isinstance(outcome, Exception):
            raise outcome
        results.append(outcome)
    return results
