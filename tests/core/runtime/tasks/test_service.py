"""The pauses of the upkeep of tasks, and what it gives up; `tests/test_task_upkeep.py` has more."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import Raw
from msgspec.structs import replace
from trio.testing import MockClock

from mcp_core import McpError
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.registry import Server, Tasks
from mcp_core.runtime.tasks import TaskService
from mcp_core.runtime.tasks._running import TaskJob
from mcp_core.tasks import Cancel, TaskCall, TaskLimits, TaskStoreError
from mcp_core.types import ClientCapabilities
from tests.core.runtime.tasks.served import ServiceStage, play
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


PEER: Any = SimpleNamespace(dialect=DIALECTS["2026-07-28"])
CALL = TaskCall(params=Raw(b"{}"), capabilities=ClientCapabilities())


# -- New tasks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "held", "record", "text"),
    [
        ({"per_principal": 1}, {}, {}, "you have 1 tasks already, which is the limit"),
        ({"total": 1}, {"quota_key": "b"}, {}, "the server has 1 tasks already"),
        (
            {"stored_bytes": 10, "client_share": 0.5},
            {"size": 3},
            {"size": 3},
            "the call takes 3 bytes, and your tasks may take 5 together",
        ),
        (
            {"stored_bytes": 10, "client_share": 1.0},
            {"size": 6, "quota_key": "user:b"},
            {"size": 5},
            "the call takes 5 bytes, and the tasks of the server may take 10 together",
        ),
    ],
)
def test_task_above_a_limit_is_refused_with_the_limit_and_the_cure(
    limits: dict[str, Any], held: dict[str, Any], record: dict[str, Any], text: str
) -> None:
    """A refused task is not counted, so that the next one has its place."""

    async def main(stage: ServiceStage) -> None:
        create = stage.service.create
        await create(new_record("a", **{"quota_key": "user:a", **held}), PEER)
        new = new_record("b", **{"quota_key": "user:a", **record})
        for _ in range(2):
            with pytest.raises(McpError) as caught:
                await create(new, PEER)
            assert text in str(caught.value)
        assert list(stage.service._held._calls) == [new_record("a").key]
        assert await stage.store.change(new_record("a").key, 1, None)
        stage.service._held.release(new_record("a").key)
        await create(new, PEER)

    play(main, **limits)


def test_call_that_fits_the_file_only_is_refused_with_the_room_in_memory() -> None:
    async def main(stage: ServiceStage) -> None:
        record = new_record(quota_key="user:a", size=6)
        with pytest.raises(McpError, match="takes 6 bytes, and your tasks may take 5 together"):
            await stage.service.create(record, PEER)

    play(main, durable=True, stored_bytes=10, file_bytes=1_000, client_share=0.5)


def test_task_whose_creation_fails_is_removed_and_not_counted() -> None:
    """The store may have it nevertheless."""

    async def main(stage: ServiceStage) -> None:
        stage.store.fails = True
        with pytest.raises(McpError, match="the task cannot be stored now") as caught:
            await stage.service.create(new_record(), PEER)
        assert caught.value.code == -32603
        assert not stage.service._held._calls
        assert list(stage.service._unwanted) == [new_record().key]
        await stage.passes(0)
        assert list(stage.service._unwanted) == [new_record().key]  # the store still fails
        assert stage.runtime.warnings == ["the store of tasks failed: no disk"]
        stage.store.fails = False
        await stage.service._remove_unwanted()
        assert not stage.service._unwanted
        stage.service._closed = True
        with pytest.raises(McpError, match="the server is being shut down"):
            await stage.service.create(new_record(), PEER)

    play(main)


@pytest.mark.parametrize("durable", [False, True])
def test_record_gets_this_worker_and_its_call_if_another_one_can_run_it(durable: bool) -> None:
    async def main(stage: ServiceStage) -> None:
        found = stage.service.with_worker(new_record(), CALL)
        assert found.worker == stage.service.worker == "00" * 8
        assert found.call is (CALL if durable else None)

    play(main, durable=durable)


# -- The lease -------------------------------------------------------------------------------------


def test_lease_in_memory_is_taken_once_and_for_ever() -> None:
    async def main(stage: ServiceStage) -> None:
        for _ in range(3):
            await stage.service._hold_lease()
            await stage.passes(100)
        assert stage.store.renewed == [(0, inf)]

    play(main, lease=10)


def test_lease_is_renewed_before_a_task_once_half_of_it_is_over() -> None:
    async def main(stage: ServiceStage) -> None:
        for seconds in (0, 4.9, 0.1, 4.9, 0.1):
            await stage.passes(seconds)
            await stage.service._hold_lease()
        assert stage.store.renewed == [(0, 10), (5, 10), (10, 10)]
        stage.service._has_ended = True
        await stage.passes(10)
        await stage.service._hold_lease()
        assert len(stage.store.renewed) == 3

    play(main, durable=True, lease=10)


@pytest.mark.parametrize(("seconds", "stops"), [(10, False), (10.5, True)])
def test_running_tasks_are_compared_after_the_lease_was_over(seconds: float, stops: bool) -> None:
    """Another worker may have taken one over. While it lasts, a renewal reads no record."""

    async def main(stage: ServiceStage) -> None:
        task, job = await stage.start()
        _, other = await stage.start(new_record("b"))
        await stage.service._renew_lease()
        taken = replace(await stage.record(), worker="another", serial=2)
        assert await stage.store.change(task.key, 1, taken)
        await stage.passes(seconds)
        await stage.service._renew_lease()
        assert (job.stops, other.stops) == (stops, 0)
        await stage.service._renew_lease()
        assert job.stops == stops

    play(main, durable=True, lease=10)


# -- Lost tasks ------------------------------------------------------------------------------------


def test_lost_task_that_cannot_run_again_fails() -> None:
    """Without a call, or with one of a tool that this server lacks."""

    async def main(stage: ServiceStage) -> None:
        for id, call in (("a", None), ("b", CALL)):
            await stage.service.records.create(new_record(id, worker="gone", call=call))
        await stage.service._recover_lost()
        await stage.passes(0)
        texts = []
        for id in "ab":
            found = await stage.record(id)
            assert found.status == "failed"
            assert found.error is not None
            texts.append(found.error.message)
        assert texts[0] == "the process that ran this task is gone"
        assert texts[1].startswith("this server cannot run the task again")
        assert not stage.runtime.jobs

    play(main, durable=True)


def test_lost_task_is_taken_over_by_one_worker_and_run_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next serial number is what keeps a second worker from taking the same one."""

    async def main(stage: ServiceStage) -> None:
        job = object()
        taken: list[Any] = []

        def for_lost(service: object, record: Any) -> object:
            taken.append(record)
            return job

        monkeypatch.setattr(TaskJob, "for_lost", for_lost)
        service = stage.service
        for id in "abc":
            await service.records.create(new_record(id, worker="gone", call=CALL))
        lost = await stage.record()
        assert await service._recover(lost)
        assert not await service._recover(lost)
        found = await stage.record()
        assert (found.worker, found.serial, taken) == (service.worker, 2, [found])
        assert stage.runtime.jobs == [job]
        await stage.start(new_record("d"))
        service._run_again(await stage.record("d"))  # it runs already
        service._closed = True
        assert await service._recover(await stage.record("b"))
        assert stage.runtime.jobs == [job]  # the next worker runs it

    play(main, durable=True)


def test_expired_tasks_make_room_for_a_new_one() -> None:
    async def main(stage: ServiceStage) -> None:
        await stage.service.create(new_record("a", ttl=5.0), PEER)
        stage.service._held.release(new_record("a").key)
        with pytest.raises(McpError, match="you have 1 tasks already"):
            await stage.service.create(new_record("b"), PEER)
        await trio.sleep(5)
        await stage.service.create(new_record("b"), PEER)
        assert [record.id for record in await stage.store.page("ada", "", 9)] == ["b"]

    play(main, per_principal=1, lease=3000)


def test_upkeep_runs_once_however_many_tasks_are_created() -> None:
    async def main(stage: ServiceStage) -> None:
        before = len(stage.runtime.nursery.child_tasks)
        for id in "ab":
            await stage.service.create(new_record(id), PEER)
        await stage.passes(0)
        assert len(stage.runtime.nursery.child_tasks) == before + 1

    play(main)


@pytest.mark.parametrize("is_shut_down", [False, True])
def test_failure_of_a_store_is_logged_until_it_may_be_closed(is_shut_down: bool) -> None:
    async def main(stage: ServiceStage) -> None:
        async def fail() -> None:
            raise ZeroDivisionError

        async def do_nothing() -> None:
            pass

        stage.service._is_shut_down = is_shut_down
        assert await stage.service._try(fail) is False
        assert len(stage.runtime.warnings) == (not is_shut_down)
        assert await stage.service._try(do_nothing) is True

    play(main)


def test_task_that_was_lost_and_is_ours_or_changed_is_left_alone() -> None:
    """The record in hand may be older than the one in the store."""

    async def main(stage: ServiceStage) -> None:
        _, job = await stage.start()
        service = stage.service
        assert not await service._recover(await stage.record())
        old = new_record("b", worker="gone")
        await service.records.create(old)
        await service.records.apply(old.key, Cancel("by its client"))
        for call in (None, CALL):
            assert not await service._recover(replace(old, call=call))
        assert (await stage.record("b")).status == "cancelled"
        await service.records.create(new_record("c", created=0.0))
        assert not await service._recover(new_record("c", created=0.0))  # it has expired
        assert (job.stops, stage.runtime.jobs) == (0, [])

    play(main, durable=True)


def test_failure_with_one_lost_task_does_not_stop_the_others() -> None:
    """It is logged, and without any success there is no next round."""

    async def main(stage: ServiceStage) -> None:
        async def change(key: Any, *args: Any, **options: Any) -> bool:
            if key.id == "a":
                raise TaskStoreError("damaged")
            return await real(key, *args, **options)

        for id in "ab":
            await stage.service.records.create(new_record(id, worker="gone"))
        real, stage.store.change = stage.store.change, change  # type: ignore[method-assign]
        records = [await stage.record(id) for id in "ab"]
        assert await stage.service._recover_all(records)
        assert not await stage.service._recover_all(records[:1])
        assert (await stage.record("b")).status == "failed"
        assert stage.runtime.warnings == ["the store of tasks failed: damaged"]

    play(main, durable=True)


# -- Handlers that go on ---------------------------------------------------------------------------


def test_handler_that_ignores_its_cancellation_is_named_once_after_five_seconds() -> None:
    """Each by itself, and none that has ended until then."""

    async def main(stage: ServiceStage) -> None:
        tasks = []
        for number, seconds in enumerate([0, 1, 1]):
            await stage.passes(seconds)
            task, job = await stage.start(new_record(str(number), tool=f"tool{number}"))
            task.stop()
            tasks.append((task, job))
        await stage.passes(2.9)
        stage.service.job_ended(tasks[1][1])
        assert not stage.runtime.warnings
        await stage.passes(0.1)
        assert [text.split(" ignored")[0] for text in stage.runtime.warnings] == ["tool 'tool0'"]
        await stage.passes(2)
        assert [text.split(" ignored")[0] for text in stage.runtime.warnings] == [
            "tool 'tool0'",
            "tool 'tool2'",
        ]
        await stage.passes(100)
        assert len(stage.runtime.warnings) == 2
        stage.service.job_stopped(tasks[0][1])  # again
        await stage.passes(5)
        assert len(stage.runtime.warnings) == 3
        stage.service._warns = False
        stage.service.job_stopped(tasks[2][1])
        await stage.passes(100)
        assert len(stage.runtime.warnings) == 3

    play(main)


# -- Questions and owners --------------------------------------------------------------------------


def question(key: str, *, reachable: bool = True) -> Any:
    asked: list[bool] = []
    return SimpleNamespace(
        task=new_record().key,
        key=key,
        reachable=reachable,
        asked=asked,
        withdraw=lambda: asked.append(True),
    )


def test_question_is_asked_by_one_request_that_its_client_reads() -> None:
    """Another one takes it over only if the first cannot be read, or has given it up."""

    async def main(stage: ServiceStage) -> None:
        service = stage.service
        first, second, third, other = (question(key) for key in "aaab")
        assert service.claim_question(first)
        assert service.claim_question(other)
        assert not service.claim_question(second)
        first.reachable = False
        assert service.claim_question(second)
        assert (first.asked, second.asked) == ([True], [])
        changes: list[int] = []
        with service.records.watched(first.task, lambda: changes.append(1)):
            service.release_question(first)  # it isn't its own any more
            assert not service.claim_question(third)
            assert not changes
            service.release_question(second)
            assert changes == [1]
        assert service.claim_question(third)
        assert second.asked == []

    play(main)


def test_tasks_of_an_owner_that_ended_are_stopped_and_removed_and_no_others() -> None:
    async def main(stage: ServiceStage) -> None:
        _, job = await stage.start()
        _, other = await stage.start(new_record("b", owner="bob"))
        stage.service.remove_owner("ada")
        assert (job.stops, other.stops) == (1, 0)
        await stage.passes(0)
        assert await stage.store.page("ada", "", 9) == []
        assert len(await stage.store.page("bob", "", 9)) == 1
        assert not stage.service._ended_owners

    play(main)


def test_tasks_of_an_owner_that_cannot_be_removed_are_removed_ten_seconds_later() -> None:
    async def main(stage: ServiceStage) -> None:
        await stage.start()
        stage.store.fails = True
        stage.service.remove_owner("ada")
        await stage.passes(0)
        stage.store.fails = False
        await stage.passes(9.9)
        assert len(await stage.store.page("ada", "", 9)) == 1
        await stage.passes(0.1)
        assert await stage.store.page("ada", "", 9) == []

    play(main)


# -- The shutdown ----------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [True, False])
def test_shutdown_waits_for_the_tasks_of_a_durable_store_alone(durable: bool) -> None:
    """The others end with the process."""

    async def main(stage: ServiceStage) -> None:
        await stage.start()
        began = trio.current_time()
        await stage.service._shut_down(7.0)
        assert trio.current_time() - began == (7.0 if durable else 0.0)

    play(main, durable=durable)


@pytest.mark.parametrize(
    ("grace", "ends_after", "seconds"), [(0.0, 9, 0), (7.0, 9, 7), (7.0, 3, 3)]
)
def test_running_tasks_of_a_durable_store_get_their_grace(
    grace: float, ends_after: float, seconds: float
) -> None:
    """The lease is kept meanwhile: each third of it, and for no longer than the grace."""

    async def main(stage: ServiceStage) -> None:
        async def end() -> None:
            await trio.sleep(ends_after)
            stage.service.discard(task)

        task, _ = await stage.start()
        stage.runtime.start_soon(end)
        began = trio.current_time()
        await stage.service._wait_until_idle(grace)
        assert trio.current_time() - began == seconds
        times = [when for when, _ in stage.store.renewed]
        assert times == [when for when in (2.0, 4.0, 6.0, 7.0) if when <= min(seconds, grace)][:4]

    play(main, durable=True, lease=6)
