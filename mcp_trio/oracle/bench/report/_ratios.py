"""How many times faster one target is than another, with an interval.

The targets took turns, so a slow second of the machine has hit neighbouring turns of both. The
bootstrap therefore draws whole rounds: it computes the ratio for many runs that are put together of
rounds drawn with repetition, and 95 % of these ratios lie in the interval.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.oracle.bench._turn import BenchTurn

__all__ = ["Ratio", "latency_ratio", "rate_ratio"]

_DRAWS: Final = 400
_OUTSIDE: Final = 0.025  # of the ratios, on each side of the interval
_MIN_ROUNDS: Final = 3  # with fewer the interval would say nothing


class Ratio(NamedTuple):
    """A ratio, and the interval in which it lies with 95 % confidence.

    `low` and `high` equal `value` if there were too few rounds for an interval.
    """

    value: float
    low: float
    high: float


def latency_ratio(
    first: Sequence[BenchTurn], second: Sequence[BenchTurn], percent: float = 50.0
) -> Ratio | None:
    """Return how many times longer the second target's percentile is than the first's.

    Args:
        first, second: the turns of both targets. Those with the same index followed each other.
        percent: the percentile.

    Returns:
        None if one of them has no latencies.
    """
    return _bootstrap(_Latencies(first, percent), _Latencies(second, percent))


def rate_ratio(first: Sequence[BenchTurn], second: Sequence[BenchTurn]) -> Ratio | None:
    """Return how many times more calls a second the first target answers than the second.

    None if the second answers none.
    """
    return _bootstrap(_Rates(second), _Rates(first))


class _Measure(Protocol):
    rounds: int

    def of(self, drawn: Sequence[int]) -> float:
        """Return the value for a run of these rounds; 0 if there is none."""


def _bootstrap(below: _Measure, above: _Measure) -> Ratio | None:
    """Return the value of `above` divided by the value of `below`."""
    rounds = min(below.rounds, above.rounds)
    everything = range(rounds)
    if not rounds or not below.of(everything) or not above.of(everything):
        return None
    value = above.of(everything) / below.of(everything)
    if rounds < _MIN_ROUNDS:
        return Ratio(value, value, value)
    random = Random(rounds)  # noqa: S311 - the same run has the same interval each time
    ratios = []
    for _ in range(_DRAWS):
        drawn = random.choices(everything, k=rounds)
        if divisor := below.of(drawn):
            ratios.append(above.of(drawn) / divisor)
    ratios.sort()
    outside = int(len(ratios) * _OUTSIDE)
    return Ratio(value, min(ratios[outside], value), max(ratios[-1 - outside], value))


class _Latencies:
    """A percentile of drawn rounds.

    Each round has the counts up to each bucket, so that a percentile of many rounds is a binary
    search over the buckets and not a sum of histograms.
    """

    def __init__(self, turns: Sequence[BenchTurn], percent: float) -> None:
        self.rounds = len(turns)
        self._percent = percent
        buckets = [turn.histogram.buckets() for turn in turns]
        bounds = {each.low: each.high for found in buckets for each in found}
        self._bounds = sorted(bounds.items())
        places = {low: place for place, (low, _) in enumerate(self._bounds)}
        self._sums: list[list[int]] = []
        for found in buckets:
            counts = [0] * len(places)
            for low, _, number in found:
                counts[places[low]] = number
            self._sums.append(list(accumulate(counts)))

    def of(self, drawn: Sequence[int]) -> float:
        """Return the percentile for a run of these rounds; 0 if it has no latencies."""
        if not self._bounds:
            return 0.0
        sums = [self._sums[each] for each in drawn]

        def count(place: int) -> int:
            return sum(each[place] for each in sums)

        total = count(len(self._bounds) - 1)
        if not total:
            return 0.0
        rank = total * self._percent / 100
        place = bisect_left(range(len(self._bounds)), rank, key=count)
        before = count(place - 1) if place else 0
        low, high = self._bounds[place]
        return low + (high - low) * (rank - before) / (count(place) - before)


class _Rates:
    """The mean rate of drawn rounds."""

    def __init__(self, turns: Sequence[BenchTurn]) -> None:
        self.rounds = len(turns)
        self._turns = turns

    def of(self, drawn: Sequence[int]) -> float:
        """Return the calls a second of a run of these rounds."""
        turns = [self._turns[each] for each in drawn]
        seconds = sum(turn.seconds for turn in turns)
        return sum(turn.rate * turn.seconds for turn in turns) / seconds if seconds else 0.0
