"""The mock clock of trio: it stands still for threads at work, and goes on for those that wait."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from tests.harness.world.thread_clock import thread_waiting
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable


async def by_default(job: Callable[[], object]) -> None:
    await trio.to_thread.run_sync(job)


async def with_its_limiter(job: Callable[[], object]) -> None:
    await trio.to_thread.run_sync(job, limiter=trio.CapacityLimiter(1), abandon_on_cancel=True)


@pytest.mark.parametrize("begin", [by_default, with_its_limiter])
async def test_thread_at_work_stops_clock(
    begin: Callable[..., object], autojump_clock: object
) -> None:
    """The thread goes on when trio waits for events, where the clock would jump."""
    waits = threading.Event()

    class Waits(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            if timeout > 0:
                waits.set()

    def work() -> None:
        assert waits.wait(PATIENCE)

    instrument = Waits()
    trio.lowlevel.add_instrument(instrument)
    try:
        with trio.fail_after(5):
            await begin(work)  # type: ignore[misc]
    finally:
        trio.lowlevel.remove_instrument(instrument)
    before = trio.current_time()
    await trio.sleep(5)  # it goes on, in no time
    assert trio.current_time() == pytest.approx(before + 5)


async def test_two_threads_stop_clock_until_the_second_has_ended(autojump_clock: object) -> None:
    first, second = threading.Event(), threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.to_thread.run_sync, second.wait, abandon_on_cancel=True))
        await trio.to_thread.run_sync(lambda: first.wait(0.001))
        began = trio.current_time()
        with trio.move_on_after(5):
            await trio.to_thread.run_sync(lambda: first.wait(0.001))
        assert trio.current_time() == began
        second.set()


async def test_thread_that_waits_for_a_task_lets_clock_go_on(autojump_clock: object) -> None:
    async def sleep() -> float:
        await trio.sleep(3)
        return trio.current_time()

    began = trio.current_time()
    assert await trio.to_thread.run_sync(trio.from_thread.run, sleep) == pytest.approx(began + 3)


async def test_thread_that_waits_otherwise_lets_clock_go_on_when_told(
    autojump_clock: object,
) -> None:
    done = threading.Event()

    async def task() -> None:
        with thread_waiting():
            await trio.sleep(3)
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        assert await trio.to_thread.run_sync(done.wait, PATIENCE)


async def test_abandoned_thread_lets_clock_go_on(autojump_clock: object) -> None:
    done = threading.Event()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:

            async def cancel() -> None:
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()

            nursery.start_soon(cancel)
            await trio.to_thread.run_sync(done.wait, abandon_on_cancel=True)
    await trio.sleep(5)
    done.set()


def test_clock_that_does_not_jump_is_left_alone() -> None:
    clock = trio.testing.MockClock()

    async def main() -> None:
        await trio.to_thread.run_sync(int)
        with trio.move_on_after(1) as scope:
            await trio.testing.wait_all_tasks_blocked(0.001)
            clock.jump(2)
            await trio.sleep_forever()
        assert scope.cancelled_caught

    trio.run(main, clock=clock)
    assert clock.autojump_threshold == float("inf")
