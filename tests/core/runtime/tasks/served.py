"""A `TaskService` in virtual time, with a store in memory whose lease and changes a test sees."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import trio
import trio.testing
from msgspec.structs import replace

from mcp_core.registry import Server, Tasks
from mcp_core.runtime.tasks import MemoryTaskStore, TaskService
from mcp_core.runtime.tasks._running import RunningTask
from mcp_core.tasks import TaskLimits, TaskStoreError
from tests.core.tasks.runtimes import TrioStoreRuntime
from tests.core.tasks.store_contract import NOW, new_record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.tasks import TaskRecord

__all__ = ["ServiceStage", "play"]


class ServiceRuntime(TrioStoreRuntime):
    """A runtime whose clocks are trio's. `jobs` has what was started."""

    in_worker_thread = False

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__(nursery)
        self.jobs: list[Any] = []
        self.checkpoints = 0
        self.thread_calls = 0

    def entropy(self, size: int) -> bytes:
        return bytes(size)

    def monotonic(self) -> float:
        return trio.current_time()

    def wall_time(self) -> float:
        return NOW + trio.current_time()

    def start_job(self, job: Any) -> None:
        self.jobs.append(job)

    async def checkpoint(self) -> None:
        self.checkpoints += 1
        await trio.lowlevel.checkpoint()

    def from_thread(self, function: Callable[[], Awaitable[Any]]) -> Any:
        self.thread_calls += 1
        self.nursery.start_soon(function)


class LeasedStore(MemoryTaskStore):
    """A memory store that may say it is durable, and fails while `fails`. `renewed` has leases."""

    def __init__(self, *, durable: bool) -> None:
        super().__init__()
        self.durable = durable
        self.fails = False
        self.error: Exception = TaskStoreError("no disk")
        self.renewed: list[tuple[float, float]] = []  # when, and for how long

    async def create(self, record: TaskRecord, /, **options: Any) -> Any:
        self._check()
        return await super().create(record, **options)

    async def change(self, *args: Any, **options: Any) -> bool:
        self._check()
        return await super().change(*args, **options)

    async def renew_lease(self, worker: str, seconds: float, /) -> None:
        self._check()
        self.renewed.append((trio.current_time(), seconds))
        await super().renew_lease(worker, seconds)

    def _check(self) -> None:
        if self.fails:
            raise self.error


class StoppableJob:
    """The job of a task. `stops` counts how often it was stopped."""

    def __init__(self, tool: str = "research") -> None:
        self.stops = 0
        self.request = SimpleNamespace(
            method=SimpleNamespace(name="tools/call"), params=SimpleNamespace(name=tool)
        )

    def __repr__(self) -> str:
        return "<Job>"

    def stop(self) -> None:
        self.stops += 1


class ServiceStage:
    """A service whose store is open, and its tasks."""

    def __init__(self, nursery: trio.Nursery, *, durable: bool, **limits: Any) -> None:
        self.runtime = ServiceRuntime(nursery)
        self.store = LeasedStore(durable=durable)
        server = Server("s", tasks=Tasks(store=self.store, limits=TaskLimits(**limits)))
        self.service: Any = TaskService(server, self.runtime)

    async def start(self, record: TaskRecord | None = None) -> tuple[RunningTask, Any]:
        """Store a record of this worker, and return its task and job."""
        record = replace(record or new_record(), worker=self.service.worker)
        job: Any = StoppableJob(record.tool)
        assert await self.service.records.create(record) is None
        task = RunningTask(self.service, job, record)
        self.service.add(task)
        return task, job

    async def record(self, id: str = "a") -> TaskRecord:
        found = await self.store.get(new_record(id).key)
        assert found is not None
        return found

    async def passes(self, seconds: float) -> None:
        await trio.sleep(seconds)
        await trio.testing.wait_all_tasks_blocked()


def play(
    main: Callable[[ServiceStage], Awaitable[None]], *, durable: bool = False, **limits: Any
) -> None:
    """Run `main` with a stage, in virtual time. `limits` are those of its tasks."""

    async def run() -> None:
        async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
            stage = ServiceStage(nursery, durable=durable, **limits)
            await stack.enter_async_context(stage.store.opened(stage.runtime))
            await main(stage)
            nursery.cancel_scope.cancel()

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
