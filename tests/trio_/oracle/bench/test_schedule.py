"""The starts of an open loop, and who gets them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.bench import _schedule
from mcp_trio.oracle.bench._process import NoMeter
from mcp_trio.oracle.bench._schedule import ROUNDING, OpenLoop, starts
from mcp_trio.oracle.bench._tally import KnownResponses, Tally
from mcp_trio.oracle.bench._turn import Pace

if TYPE_CHECKING:
    from collections.abc import Sequence


def loop_of(
    rate: float, seconds: float = 1.0, timeout: float = 30.0, *, begun: float = 0.0
) -> tuple[OpenLoop, Tally]:
    """Return a loop with even starts, whose turn has begun some seconds ago."""
    tally = Tally(seconds, KnownResponses(), NoMeter())
    tally.began -= begun
    return OpenLoop(Pace(rate, 1, even=True), tally, seconds, timeout), tally


@pytest.mark.parametrize(
    ("rate", "seconds", "found"),
    [
        (4.0, 1.0, [0.0, 0.25, 0.5, 0.75]),
        (4.0, 0.5, [0.0, 0.25]),
        (0.5, 4.0, [0.0, 2.0]),
        (0.5, 0.1, []),
    ],
)
def test_even_starts_are_equally_far_apart(
    rate: float, seconds: float, found: Sequence[float]
) -> None:
    assert list(starts(Pace(rate, 1, even=True), seconds)) == pytest.approx(found)


def test_drawn_starts_come_at_the_rate_and_within_the_turn() -> None:
    """They depend on the seed, and two of them may be close together, as with many clients."""
    found = list(starts(Pace(100.0, 1, seed=1), 10.0))
    assert found == list(starts(Pace(100.0, 1, seed=1), 10.0))
    assert found != list(starts(Pace(100.0, 1, seed=2), 10.0))
    assert found == sorted(found)
    assert 0 < found[0] < 0.1
    assert 9.9 < found[-1] < 10
    assert len(found) == pytest.approx(1000, rel=0.1)
    gaps = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert min(gaps) < 0.001
    assert max(gaps) > 0.03


async def test_free_caller_gets_each_start_when_it_comes(autojump_clock: Any) -> None:
    loop, tally = loop_of(4.0)
    assert tally.is_open
    found: list[float | None] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(loop.run)
        for _ in range(6):
            found.append(await loop.next_start())
            if found[-1] is not None:
                assert trio.current_time() == pytest.approx(found[-1])
    began = tally.began
    assert found[:4] == pytest.approx([began, began + 0.25, began + 0.5, began + 0.75])
    assert found[4:] == [None, None]
    assert (tally.late, tally.lag, loop.due) == (0, 0.0, 0)


async def test_callers_that_are_free_get_one_start_each_in_their_order(autojump_clock: Any) -> None:
    loop, tally = loop_of(4.0)
    found: list[tuple[str, float | None]] = []
    for name in "abc":
        loop.take(lambda start, name=name: found.append((name, start)))  # type: ignore[misc]
    await loop.run()
    began = tally.began
    assert [name for name, _ in found] == ["a", "b", "c"]
    assert [start for _, start in found] == pytest.approx([began, began + 0.25, began + 0.5])
    assert (tally.late, loop.due) == (1, 1)


async def test_free_callers_are_told_of_the_end_and_so_are_later_ones(autojump_clock: Any) -> None:
    loop, _ = loop_of(1.0)
    found: list[float | None] = []
    for _ in range(3):
        loop.take(found.append)
    await loop.run()
    loop.take(found.append)
    assert found[1:] == [None] * 3


async def test_start_that_no_caller_takes_is_late_and_waits_for_one(autojump_clock: Any) -> None:
    """The oldest is taken first, and its latency counts from when it should have started."""
    loop, tally = loop_of(4.0)
    await loop.run()
    assert (tally.late, loop.due, tally.sent) == (4, 4, 0)
    found: list[float | None] = [await loop.next_start()]
    loop.take(found.append)
    assert found == pytest.approx([tally.began, tally.began + 0.25])
    assert loop.due == 2


async def test_start_that_waits_for_too_long_has_timed_out(autojump_clock: Any) -> None:
    loop, tally = loop_of(4.0, timeout=1.0)
    await loop.run()
    await trio.sleep(0.5)  # 1.25 s after the first start, 1 s after the second
    assert await loop.next_start() == pytest.approx(tally.began + 0.5)
    assert tally.sent == 2
    assert tally.finish(trio.current_time()).timeouts == 2


async def test_starts_that_wait_have_a_limit(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_schedule, "MAX_DUE", 3)
    loop, tally = loop_of(10.0)
    await loop.run()
    assert (tally.late, loop.due, tally.sent) == (10, 3, 7)
    assert await loop.next_start() == pytest.approx(tally.began + 0.7)


@pytest.mark.parametrize(("behind", "counted"), [(0.001, 0.0), (0.5, 0.5 - ROUNDING)])
async def test_lateness_of_the_load_is_noted_and_counts_beyond_a_timers(
    behind: float, counted: float, autojump_clock: Any
) -> None:
    """A timer that wakes up late is no latency of the target. More may hide that it is slow."""
    loop, tally = loop_of(1.0, begun=behind)
    found: list[float | None] = []
    loop.take(found.append)
    await loop.run()
    [start] = found
    assert start is not None
    assert trio.current_time() - start == pytest.approx(counted, abs=1e-9)
    assert tally.lag == pytest.approx(behind)


async def test_cancelled_caller_takes_no_start(autojump_clock: Any) -> None:
    loop, tally = loop_of(1.0)
    with trio.move_on_after(1.0):
        await loop.next_start()
    await loop.run()
    assert (tally.late, loop.due) == (1, 1)
