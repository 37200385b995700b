"""The records of tasks in a store that others write, or that fails."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from msgspec import Raw
from trio.testing import MockClock

from mcp_core.runtime.tasks._memory_store import MemoryTaskStore
from mcp_core.runtime.tasks._records import TaskRecords
from mcp_core.runtime.tasks._service import TaskService
from mcp_core.tasks import Cancel, Complete, TaskLimits, TaskQuotaExceeded, TaskStoreError
from tests.core.tasks.runtimes import TrioStoreRuntime
from tests.core.tasks.store_contract import new_record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.tasks import TaskLimitName


def run(main: Callable[[TrioStoreRuntime], Awaitable[None]]) -> None:
    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await main(TrioStoreRuntime(nursery))
            nursery.cancel_scope.cancel()

    trio.run(run, clock=MockClock(autojump_threshold=0))


class Store(MemoryTaskStore):
    """A store whose records others change, and which has no watch. `times` has the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    async def get(self, key: Any, /) -> Any:
        return new_record()

    async def change(self, *args: Any, **options: Any) -> bool:
        self.times.append(trio.current_time())
        return False

    def watch(self) -> Any:
        self.times.append(trio.current_time())
        raise TaskStoreError("no watch")


def differences(times: list[float]) -> list[float]:
    return [round(after - before, 3) for before, after in pairwise(times)]


def test_change_is_tried_ten_times_while_others_are_faster() -> None:
    async def main(runtime: TrioStoreRuntime) -> None:
        store = Store()
        records = TaskRecords(store, TaskLimits(), runtime)
        with pytest.raises(TaskStoreError, match="10 times in a row"):
            await records.apply(new_record().key, Cancel())
        assert len(store.times) == 10

    run(main)


@pytest.mark.parametrize(
    ("limit", "whose"), [("key_bytes", "your tasks"), ("total_bytes", "all tasks")]
)
def test_result_that_does_not_fit_names_whose_tasks_have_how_many_bytes(
    limit: TaskLimitName, whose: str
) -> None:
    """A client can only make room among its own tasks."""

    class FullStore(MemoryTaskStore):
        """A store with room for errors only."""

        async def get(self, key: Any, /) -> Any:
            return new_record()

        async def change(self, *args: Any, limits: Any = None) -> bool:
            if limits is not None:
                raise TaskQuotaExceeded(limit)
            return True

    async def main(runtime: TrioStoreRuntime) -> None:
        records = TaskRecords(FullStore(), TaskLimits(), runtime)
        number = getattr(records.quota(""), limit)
        action = Complete(Raw(b'{"content": "%b"}' % (b"x" * 5_000)))
        applied = await records.apply(new_record().key, action)
        assert applied is not None
        error = applied[1].error
        assert error is not None
        assert f"is not kept: {whose} may have {number} bytes together, and" in error.message
        assert error.message.startswith("the handler has run, and what it changed stays, but what")

    run(main)


def test_store_that_cannot_be_watched_is_watched_again_each_second() -> None:
    async def main(runtime: TrioStoreRuntime) -> None:
        store = Store()
        records = TaskRecords(store, TaskLimits(), runtime)
        with trio.move_on_after(3.5):
            await records.watch_store()
        assert differences(store.times) == [1, 1, 1]

    run(main)


def test_observer_gets_each_of_our_own_states_and_the_last_of_others() -> None:
    """Only what another worker has changed is read from the store, once for several changes."""

    async def main(runtime: TrioStoreRuntime) -> None:
        records = TaskRecords(Store(), TaskLimits(), runtime)
        ours = [new_record(), new_record()]
        seen: list[Any] = []
        key = ours[0].key
        records.observe(key, seen.append)
        for record in ours:
            records.changed(key, record)
        assert [id(each) for each in seen] == [id(each) for each in ours]
        for _ in range(3):
            records.changed(key)
        assert len(seen) == 2
        await trio.testing.wait_all_tasks_blocked()
        assert len(seen) == 3
        records.stop_observing(key, seen.append)
        records.changed(key, ours[0])
        assert len(seen) == 3

    run(main)


def test_end_of_a_task_is_stored_again_after_longer_and_longer_pauses() -> None:
    """The pauses double, up to half a minute."""

    async def main(runtime: TrioStoreRuntime) -> None:
        async def fail() -> None:
            times.append(trio.current_time())
            raise TaskStoreError("full")

        times: list[float] = []
        tasks: Any = TaskService.__new__(TaskService)
        tasks.records = TaskRecords(Store(), TaskLimits(), runtime)
        tasks.runtime = runtime
        tasks.closing = trio.Event()
        with trio.move_on_after(100):
            await tasks.store(fail)
        assert differences(times) == [0.5, 1, 2, 4, 8, 16, 30, 30]

    run(main)
