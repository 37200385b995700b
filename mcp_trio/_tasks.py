"""The tasks of a served server on trio: one nursery for all handlers that outlive their request."""

from __future__ import annotations

import contextvars
import math
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from mcp_core.runtime import ServedServer, open_bus, open_lifespans
from mcp_core.runtime.tasks import TaskRuntime, TaskService

from ._nursery import open_quiet_nursery
from ._runtime import SYSTEM_SOURCES, TrioRuntime, start_job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator

    from mcp_core.registry import Server
    from mcp_core.runtime import EventLike, Job, Sources
    from mcp_core.sharing import SessionStore

__all__ = ["TrioTaskRuntime", "open_server"]

T = TypeVar("T")

_STORE_THREADS: Final = 2  # one that writes, and one that was abandoned and is about to end


class TrioTaskRuntime(TrioRuntime, TaskRuntime):
    """The runtime of all tasks of one server. `nursery` has their handlers."""

    new_event = staticmethod(trio.Event)
    monotonic = staticmethod(trio.current_time)  # the clock of `wait`

    def shared_clock(self) -> float:
        return TrioRuntime.monotonic()

    def __init__(self, nursery: trio.Nursery, sources: Sources = SYSTEM_SOURCES) -> None:
        self.sources = sources
        self._trio = self.event_loop = trio.lowlevel.current_trio_token()
        self._nursery = nursery
        self._jobs: set[Job] = set()
        self._context = contextvars.copy_context()
        # Handlers in threads share trio's own limiter, and may occupy all of it.
        self._store_threads = trio.CapacityLimiter(_STORE_THREADS)

    async def wait(self, event: EventLike, seconds: float | None = None) -> bool:
        with trio.move_on_after(math.inf if seconds is None else seconds):
            await event.wait()
            return True
        return False

    async def within(self, seconds: float, function: Callable[[], Awaitable[T]]) -> T:
        with trio.move_on_after(seconds):
            return await function()
        raise TimeoutError(f"no response within {seconds:g} s")

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[Callable[[], bool]]:
        with trio.move_on_after(seconds) as scope:

            def lift() -> bool:
                scope.deadline = math.inf
                return not scope.cancel_called

            yield lift

    def in_store_thread(self, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        return trio.to_thread.run_sync(
            function, abandon_on_cancel=True, limiter=self._store_threads
        )

    def start_soon(self, function: Callable[[], Awaitable[object]]) -> None:
        # In a context of its own: what a handler has set isn't for the upkeep of all tasks.
        self._context.copy().run(self._nursery.start_soon, self._run_logged, function)

    async def _run_logged(self, function: Callable[[], Awaitable[object]]) -> None:
        try:
            await function()
        except Exception as exc:  # noqa: BLE001 - one task must not end all others
            self.report_hook("a background task of the tasks", exc)

    def start_job(self, job: Job) -> None:
        # A server that is cancelled must not take the handlers of its tasks along, before it has
        # recorded what becomes of them.
        self._jobs.add(job)
        start_job(job, self._nursery, partial(self._jobs.discard, job), shield=True)

    def stop_jobs(self) -> None:
        """Cancel the handlers that still run. Nothing else does, not even the nursery."""
        for job in list(self._jobs):
            job.stop()

    async def shielded(self, function: Callable[[], Awaitable[None]]) -> None:
        with trio.CancelScope(shield=True):
            await function()

    async def checkpoint(self) -> None:
        await self.checkpoint_if_due()


@asynccontextmanager
async def open_server(
    server: Server,
    grace: float = 0.0,
    store: SessionStore | None = None,
    *,
    warns: bool = True,
    sources: Sources = SYSTEM_SOURCES,
) -> AsyncIterator[ServedServer]:
    """Enter a server's lifespan, and run its tasks. At the end they get `grace` seconds.

    With a `store`, its changes are shared with other workers meanwhile.
    Handlers of tasks that ignore their cancellation get a line in the log, unless `warns` is False.
    `sources` are for everything that is served.

    *Error handling*: exceptions of the lifespan, and of opening a store, propagate. One that
    another event loop has caused gets a note.
    """
    try:
        async with open_lifespans(server) as value, open_quiet_nursery() as nursery:
            runtime = TrioTaskRuntime(nursery, sources)
            tasks = TaskService(server, runtime, value)
            bus = open_bus(server, store, runtime, value)
            try:
                async with bus, tasks.opened(grace, warns=warns):
                    yield ServedServer(server, value, tasks, sources)
            finally:
                runtime.stop_jobs()
    except Exception as exc:
        from mcp_core.runtime import note_other_loop  # on first use: few need it

        note_other_loop(exc, "trio")
        raise
