"""A leak of memory: what a server's processes keep for each case.

A process takes memory for a while until its caches are full. So each process is compared with
itself, in its later cases, and a leak is what the processes together still take per case. A command
can have several: what starts or ends between two readings is in no comparison.
"""

from __future__ import annotations

from typing import Final

__all__ = ["MemoryWatch"]

INTERVAL: Final = 10  # cases between two readings of a process
WARM_UP: Final = 20  # cases before the first reading
MAX_READINGS: Final = 400  # of a process; then every second one is dropped
MIN_READINGS: Final = 6  # with fewer, much of the growth is still warming up
MIN_CASES: Final = 100  # of all processes, in their later halves
MIN_SLOPE: Final = 10 * 1024  # bytes a case; allocators and caches take less
MIN_GROWTH: Final = 4 * 1024 * 1024  # bytes of all processes
# The later half of a process may not grow much less than the earlier one: that was warming up.
STEADY_PART: Final = 0.5


class MemoryWatch:
    """The memory of a run's processes, in their readings every few cases.

    A server is a process that was started, with those that it has started in turn.
    """

    def __init__(self) -> None:
        self._readings: dict[int, list[tuple[int, dict[int, int]]]] = {}
        self._processes = 0
        # Cases and bytes in the earlier and the later halves of the processes that have ended.
        self._early = [0, 0]
        self._late = [0, 0]

    def is_due(self, played: int) -> bool:
        """Return True if a process that has played so many cases should be read."""
        return played >= WARM_UP and played % INTERVAL == 0

    def add(self, server: int, played: int, sizes: dict[int, int]) -> None:
        """Add the bytes that a server's processes take after so many cases, by process id."""
        if not sizes:
            return
        readings = self._readings.setdefault(server, [])
        readings.append((played, sizes))
        if len(readings) > MAX_READINGS:
            del readings[1::2]

    def end(self, server: int) -> None:
        """Note that a server has ended."""
        readings = self._readings.pop(server, [])
        if len(readings) < MIN_READINGS:
            return
        middle = len(readings) // 2
        self._processes += 1
        for total, first, last in (
            (self._early, readings[0], readings[middle]),
            (self._late, readings[middle], readings[-1]),
        ):
            total[0] += last[0] - first[0]
            total[1] += sum(size - first[1].get(pid, size) for pid, size in last[1].items())

    def note(self) -> str:
        """Return what the processes that have ended show, or "" if that isn't a leak."""
        cases, growth = self._late
        if cases < MIN_CASES or growth < MIN_GROWTH or growth < MIN_SLOPE * cases:
            return ""
        early_cases, early_growth = self._early
        if early_cases and growth / cases < STEADY_PART * early_growth / early_cases:
            return ""
        where = "1 process" if self._processes == 1 else f"{self._processes} processes"
        return (
            f"memory of the server grows by {growth / cases / 1024:.0f} KiB a case, without end"
            f" (measured in {where})"
        )
