"""Counts of latencies, in buckets that are about 3 % wide.

Each power of two, in microseconds, has 32 buckets of equal width. A percentile is the middle of
its bucket, so it differs from the exact one by at most 1.6 %.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import ceil, frexp, inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["SPECTRUM", "Histogram", "LatencyBucket"]

# The percentiles of a report. 0 is the shortest latency and 100 the longest one.
SPECTRUM: Final = (0.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 100.0)
_PARTS: Final = 32  # buckets for each power of two
_LONGEST: Final = 3600.0  # seconds; a longer latency counts as this one
_MICROSECOND: Final = 1e-6
# 2 ** 32 microseconds are 72 minutes.
_BUCKETS: Final = 32 * _PARTS


class LatencyBucket(NamedTuple):
    """How many latencies lie from `low` up to, but without, `high`, in seconds."""

    low: float
    high: float
    number: int


class Histogram:
    """Counts of latencies from 1 microsecond to 1 hour. Two can be added.

    Shorter and longer latencies count as these. It takes 8 KiB, however many are added.

    Attributes:
        count: how many latencies it has.
        total: their sum, in seconds.
        shortest, longest: in seconds; 0 if it is empty.
    """

    __slots__ = ("_counts", "_shortest", "count", "longest", "total")

    def __init__(self, latencies: Iterable[float] = ()) -> None:
        self._counts = [0] * _BUCKETS
        self.count = 0
        self.total = 0.0
        self._shortest = inf
        self.longest = 0.0
        self.add_all(latencies)

    def __repr__(self) -> str:
        return f"<Histogram of {self.count}, p50 {self.percentile(50):.6f} s>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]

    @property
    def shortest(self) -> float:
        """The shortest latency, in seconds; 0 if there is none."""
        return self._shortest if self.count else 0.0

    def add_all(self, latencies: Iterable[float]) -> None:
        """Count latencies, given in seconds. Many at once cost least."""
        counts = self._counts
        clipped = [
            latency if _MICROSECOND <= latency <= _LONGEST else _clip(latency)
            for latency in latencies
        ]
        if not clipped:
            return
        for latency in clipped:  # once for each measured call
            fraction, exponent = frexp(latency * 1e6)
            counts[(exponent - 1) * _PARTS + int(fraction * 64) - _PARTS] += 1
        self.count += len(clipped)
        self.total += sum(clipped)
        self.longest = max(self.longest, max(clipped))  # noqa: PLW3301  no copy
        self._shortest = min(self._shortest, min(clipped))  # noqa: PLW3301

    def __add__(self, other: Histogram) -> Histogram:
        """Return a histogram of the latencies of both."""
        both = Histogram()
        both._counts = [a + b for a, b in zip(self._counts, other._counts, strict=True)]
        both.count = self.count + other.count
        both.total = self.total + other.total
        both._shortest = min(self._shortest, other._shortest)
        both.longest = max(self.longest, other.longest)
        return both

    @property
    def mean(self) -> float:
        """The mean latency, in seconds; 0 if there is none."""
        return self.total / self.count if self.count else 0.0

    def percentile(self, percent: float) -> float:
        """Return the latency, in seconds, that `percent` of all latencies don't exceed.

        0 gives the shortest one and 100 the longest one. An empty histogram gives 0.

        Raises:
            ValueError: `percent` isn't from 0 to 100.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"a percentile is from 0 to 100, not {percent!r}")
        if percent == 0:
            return self.shortest
        # The nearest rank. 99.9 % of 1000 is 999, but in floats a little more.
        rank = min(ceil(percent * self.count / 100 - 1e-9), self.count)
        if rank == self.count:
            return self.longest
        index = bisect_left(list(accumulate(self._counts)), rank)
        low, high = _bounds(index)
        return min(max((low + high) / 2, self.shortest), self.longest)

    def spectrum(self) -> dict[float, float]:
        """Return the latency, in seconds, for each percentile of `SPECTRUM`."""
        return {percent: self.percentile(percent) for percent in SPECTRUM}

    def buckets(self) -> list[LatencyBucket]:
        """Return the buckets that aren't empty, shortest latencies first."""
        return [LatencyBucket(*_bounds(i), count) for i, count in enumerate(self._counts) if count]

    def bars(self, number: int) -> list[int]:
        """Return `number` counts for equal steps of the latency's logarithm, for a picture.

        The first step begins with the first bucket that isn't empty, the last one ends with the
        last. An empty histogram gives zeros.
        """
        bars = [0] * number
        filled = [i for i, count in enumerate(self._counts) if count]
        if filled:
            first, span = filled[0], filled[-1] - filled[0] + 1
            for i in filled:
                bars[(i - first) * number // span] += self._counts[i]
        return bars

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, in microseconds, with all buckets that aren't empty.

        `buckets` has a pair for each: where it begins, and its count.
        """
        return {
            "unit": "us",
            "count": self.count,
            "total": self.total * 1e6,
            "min": self.shortest * 1e6,
            "max": self.longest * 1e6,
            "buckets": [
                [_bounds(i)[0] * 1e6, count] for i, count in enumerate(self._counts) if count
            ],
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Histogram:
        """Return the histogram of a JSON form.

        Raises:
            ValueError: it isn't the form that `to_json` returns.
        """
        found = cls()
        try:
            if form["unit"] != "us":
                raise ValueError(f"the unit is {form['unit']!r}, not 'us'")
            for low, count in form["buckets"]:
                # The middle, because rounding may have moved the bucket's begin.
                fraction, exponent = frexp(low * (1 + 1 / 128))
                index = (exponent - 1) * _PARTS + int(fraction * 64) - _PARTS
                if not 0 <= index < _BUCKETS or type(count) is not int or count < 0:
                    raise ValueError(f"there is no bucket {low!r} with a count of {count!r}")
                found._counts[index] += count
            found.count = sum(found._counts)
            if found.count != form["count"]:
                raise ValueError(f"the buckets have {found.count}, the count is {form['count']}")
            found.total = form["total"] / 1e6
            if found.count:
                found._shortest, found.longest = form["min"] / 1e6, form["max"] / 1e6
        except (KeyError, TypeError) as exc:
            raise ValueError(f"this isn't a histogram: {exc!r}") from exc
        return found


def _clip(latency: float) -> float:
    return min(max(latency, _MICROSECOND), _LONGEST)


def _bounds(index: int) -> tuple[float, float]:
    """Return where a bucket begins and ends, in seconds."""
    power, part = divmod(index, _PARTS)
    unit = 2.0**power * _MICROSECOND / _PARTS
    return unit * (_PARTS + part), unit * (_PARTS + part + 1)
