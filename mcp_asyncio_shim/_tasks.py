"""The tasks of a served server on asyncio: a set of asyncio tasks that outlive connections."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from mcp_core.runtime import ServedServer, open_bus, open_lifespans
from mcp_core.runtime.tasks import TaskRuntime, TaskService

from ._driver import JobTasks, move_on_after
from ._runtime import SYSTEM_SOURCES, LoopRuntime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from mcp_core.registry import Server
    from mcp_core.runtime import EventLike, Job, Sources
    from mcp_core.sharing import SessionStore

__all__ = ["AsyncioTaskRuntime", "open_server"]

T = TypeVar("T")

_STORE_THREADS: Final = 2  # one that writes, and one that was abandoned and is about to end


class AsyncioTaskRuntime(LoopRuntime, TaskRuntime):
    """The runtime of all tasks of one server. `aclose` cancels them and waits for their end."""

    new_event = staticmethod(asyncio.Event)

    def __init__(self, sources: Sources = SYSTEM_SOURCES) -> None:
        self.event_loop = asyncio.get_running_loop()
        super().__init__(self.event_loop)
        self.sources = sources
        self._tasks = JobTasks()
        self._context = contextvars.copy_context()
        # Handlers in threads share the loop's executor, and may occupy all of it.
        self._store_threads = ThreadPoolExecutor(_STORE_THREADS, "mcp-tasks")

    def monotonic(self) -> float:
        return self._loop.time()  # the clock of `wait`

    def shared_clock(self) -> float:
        return LoopRuntime.monotonic()

    async def wait(self, event: EventLike, seconds: float | None = None) -> bool:
        with move_on_after(seconds):
            await event.wait()
            return True
        return False

    async def within(self, seconds: float, function: Callable[[], Awaitable[T]]) -> T:
        with move_on_after(seconds):
            try:
                return await function()
            except asyncio.CancelledError as exc:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # This task wasn't cancelled: as in `run_job`, the function has failed.
                raise RuntimeError(f"it was cancelled from inside: {exc!r}") from exc
        raise TimeoutError(f"no response within {seconds:g} s")

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[Callable[[], bool]]:
        with move_on_after(seconds) as limit:

            def lift() -> bool:
                limit.reschedule(None)
                return not limit.expired

            yield lift

    def in_store_thread(self, function: Callable[[], T]) -> asyncio.Future[T]:
        return self._loop.run_in_executor(self._store_threads, function)

    def start_soon(self, function: Callable[[], Awaitable[object]]) -> None:
        # In a context of its own: what a handler has set isn't for the upkeep of all tasks.
        context = self._context.copy()
        self._tasks.keep(self._loop.create_task(self._run_logged(function), context=context))

    async def _run_logged(self, function: Callable[[], Awaitable[object]]) -> None:
        try:
            await function()
        except Exception as exc:  # noqa: BLE001 - one task must not end all others
            self.report_hook("a background task of the tasks", exc)

    def start_job(self, job: Job) -> None:
        self._tasks.start_job(job)

    async def checkpoint(self) -> None:
        await asyncio.sleep(0)

    async def shielded(self, function: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            await function()

        task = self._loop.create_task(run())
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise

    async def aclose(self) -> None:
        """Cancel all tasks, and wait for their end."""
        await self._tasks.aclose()
        self._store_threads.shutdown(wait=False)


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
        async with open_lifespans(server) as value:
            runtime = AsyncioTaskRuntime(sources)
            tasks = TaskService(server, runtime, value)
            bus = open_bus(server, store, runtime, value)
            try:
                async with bus, tasks.opened(grace, warns=warns):
                    yield ServedServer(server, value, tasks, sources)
            finally:
                await runtime.aclose()
    except Exception as exc:
        from mcp_core.runtime import note_other_loop  # on first use: few need it

        note_other_loop(exc, "asyncio")
        raise
