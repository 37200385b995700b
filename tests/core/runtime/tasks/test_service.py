"""The pauses of the upkeep of tasks, and what it gives up; `tests/test_task_upkeep.py` has more."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from mcp_core.registry import Server, Tasks
from mcp_core.runtime.tasks import TaskService
from mcp_core.tasks import TaskLimits, TaskStoreError
from tests.core.tasks.runtimes import TrioStoreRuntime
from tests.core.tasks.store_contract import new_record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Runtime(TrioStoreRuntime):
    def entropy(self, size: int) -> bytes:
        return bytes(size)


def run(main: Callable[[Any], Awaitable[None]], **limits: Any) -> None:
    """Run `main` with the service of a server, in virtual time."""

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            server = Server("upkeep", tasks=Tasks(limits=TaskLimits(**limits)))
            await main(TaskService(server, Runtime(nursery)))
            nursery.cancel_scope.cancel()

    trio.run(run, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize(
    ("renewed", "lease", "seconds"),
    [(True, 30, 10), (True, 3000, 10), (True, 3, 1), (False, 3000, 1), (False, 0.3, 0.1)],
)
def test_upkeep_comes_each_ten_seconds_and_sooner_after_a_failure(
    renewed: bool, lease: float, seconds: float
) -> None:
    """A lease that could not be renewed is tried again before it ends."""

    async def main(service: Any) -> None:
        async def try_step(step: object) -> bool:
            if step == service._renew_lease:
                times.append(trio.current_time())
            return renewed

        times: list[float] = []
        service._try = try_step
        with trio.move_on_after(3.5 * seconds):
            await service._keep_up()
        assert [after - before for before, after in pairwise(times)] == pytest.approx([seconds] * 3)

    run(main, lease=lease)


@pytest.mark.parametrize("removed_at", [0, 1, 10])
def test_tasks_of_an_ended_owner_that_cannot_be_removed_are_given_up(removed_at: int) -> None:
    """A store that lists a record again after its removal must not loop for ever.

    Eleven pages in a row are in vain, after the last of which something was removed.
    """

    async def main(service: Any) -> None:
        async def page(owner: str, after: str, size: int) -> list[Any]:
            pages.append(size)
            return [new_record()]

        async def remove(record: object) -> bool:
            return len(pages) == removed_at

        pages: list[int] = []
        service._ended_owners["ada"] = None
        service._store.page = page
        service.records.remove = remove
        with pytest.raises(TaskStoreError, match="cannot be removed"):
            await service._remove_all("ada")
        assert pages == [100] * (removed_at + 11)

    run(main)


def test_other_tasks_run_while_many_expired_records_are_removed() -> None:
    """A store that never waits must not hold up the event loop until the last one is gone."""

    async def main(service: Any) -> None:
        async def remove_expired(now: float, size: int) -> list[Any]:
            steps.append("removed")
            count = size if steps.count("removed") < 3 else 0
            return [new_record(str(number)).key for number in range(count)]

        async def run_beside() -> None:
            while True:
                steps.append("other")
                await trio.lowlevel.checkpoint()

        steps: list[str] = []
        service._store.remove_expired = remove_expired
        service._store.immediate = False
        service.runtime.start_soon(run_beside)
        assert await service.remove_expired()
        # trio runs the two in any order within a round, so there is one for sure in two rounds.
        last = len(steps) - steps[::-1].index("removed")
        assert steps.count("removed") == 3
        assert "other" in steps[steps.index("removed") : last]

    run(main)


def test_records_to_remove_are_remembered_up_to_a_thousand() -> None:
    """A store that fails for long must not fill the memory. The others stay until they expire."""

    async def main(service: Any) -> None:
        async def remove(record: Any) -> bool:
            removed.append(record.id)
            return True

        removed: list[str] = []
        service.records.remove = remove
        service.records.start_soon = lambda function: None  # the store fails
        for number in range(1_100):
            service.discard_record(new_record(str(number)))
        await service._remove_unwanted()
        assert removed == [str(number) for number in range(1_000)]
        await service._remove_unwanted()
        assert len(removed) == 1_000

    run(main)
