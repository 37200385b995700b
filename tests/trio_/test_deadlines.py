"""Deadlines that are moved all the time: each is met, none too early, by one task."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from mcp_trio._deadlines import Deadline, DeadlineRunner
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Callable

MockClock = trio.testing.MockClock


class Met:
    """Deadlines by name, with the times at which they were met."""

    def __init__(self, deadlines: DeadlineRunner) -> None:
        self._deadlines = deadlines
        self.at: list[tuple[str, float]] = []

    def new(self, name: str) -> Deadline:
        return self._deadlines.new(lambda: self.at.append((name, trio.current_time())))


@pytest.fixture
async def met(nursery: trio.Nursery) -> Met:
    deadlines = DeadlineRunner()
    nursery.start_soon(deadlines.run)
    return Met(deadlines)


async def test_deadline_is_met_once(met: Met, autojump_clock: MockClock) -> None:
    late, soon = met.new("late"), met.new("soon")
    late.move(20)
    soon.move(10)
    await trio.sleep(100)
    assert met.at == [("soon", 10), ("late", 20)]
    assert (late.when, soon.when) == (math.inf, math.inf)
    soon.move(110)
    await trio.sleep(100)
    assert met.at[2:] == [("soon", 110)]


async def test_deadline_moved_later_is_met_then(met: Met, autojump_clock: MockClock) -> None:
    deadline = met.new("it")
    for now in range(100):
        deadline.move(now + 10)
        await trio.sleep(1)
    assert met.at == []
    assert repr(met._deadlines) == "<DeadlineRunner, 1 to check>"
    await trio.sleep(100)
    assert met.at == [("it", 109)]


async def test_deadline_moved_earlier_is_met_once(met: Met, autojump_clock: MockClock) -> None:
    deadline = met.new("it")
    for when in 50, 40, 30, 60, 20:
        deadline.move(when)
    await trio.sleep(100)
    assert met.at == [("it", 20)]


async def test_deadline_dropped_or_infinite_is_not_met(met: Met, autojump_clock: MockClock) -> None:
    deadline, dropped = met.new("it"), met.new("dropped")
    deadline.move(10)
    deadline.move(math.inf)
    dropped.move(10)
    dropped.discard()
    dropped.move(20)  # by code that does not know of the drop
    await trio.sleep(100)
    assert met.at == []
    assert repr(met._deadlines) == "<DeadlineRunner, 0 to check>"


async def test_deadline_in_the_past_is_met_at_once(met: Met, autojump_clock: MockClock) -> None:
    await trio.sleep(10)
    met.new("it").move(5)
    await trio.testing.wait_all_tasks_blocked()
    assert met.at == [("it", 10)]


async def test_deadline_moved_by_its_own_callback(autojump_clock: MockClock) -> None:
    deadlines = DeadlineRunner()
    times: list[float] = []

    def act() -> None:
        times.append(trio.current_time())
        deadline.move(trio.current_time() + 5)

    deadline = deadlines.new(act)
    deadline.move(5)
    with trio.move_on_after(21):
        await deadlines.run()
    assert times == [5, 10, 15, 20]
    assert repr(deadline) == "<Deadline at 25.0>"


@fewer_examples(2)
@given(
    moves=st.lists(st.tuples(st.integers(0, 2), st.one_of(st.integers(0, 30), st.just(math.inf))))
)
def test_deadline_random_moves_meet_the_last_one(moves: list[tuple[int, float]]) -> None:
    """A move withdraws the earlier time: only a time that passes before the next move is met."""

    async def main() -> None:
        deadlines = DeadlineRunner()
        met = Met(deadlines)
        three = [met.new(str(number)) for number in range(3)]
        expected: list[tuple[str, float]] = []

        def expect(until: float) -> None:
            for name, deadline in enumerate(three):
                if now <= deadline.when < until:
                    expected.append((str(name), deadline.when))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(deadlines.run)
            await trio.testing.wait_all_tasks_blocked()
            now = 0.0
            for which, ahead in moves:
                expect(now + 3.37)
                await trio.sleep(3.37)
                now = trio.current_time()
                three[which].move(now + ahead)
            expect(math.inf)
            await trio.sleep(100)
            nursery.cancel_scope.cancel()
        assert [(name, round(when, 6)) for name, when in sorted(met.at)] == [
            (name, round(when, 6)) for name, when in sorted(expected)
        ]

    play(main)


def play(main: Callable[[], object]) -> None:
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))  # type: ignore[arg-type]
