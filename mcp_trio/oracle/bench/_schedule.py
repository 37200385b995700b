"""The intended starts of an open loop, and the queue of calls whose start has come.

The schedule notes each start, whether or not a caller is free. A caller that becomes free takes the
oldest start that no one has taken, and the call's latency counts from that.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._tally import Tally
    from ._turn import Pace

__all__ = ["MAX_DUE", "ROUNDING", "OpenLoop", "starts"]

# Calls that wait for a free caller. Of more the oldest counts as timed out.
MAX_DUE: Final = 1_000_000
ROUNDING: Final = 0.002  # seconds that a timer may wake up late


def starts(pace: Pace, seconds: float) -> Iterator[float]:
    """Yield the starts of an open loop, in seconds from its begin, `rate * seconds` on average."""
    assert pace.rate is not None
    if pace.even:
        for number in range(round(pace.rate * seconds)):
            yield number / pace.rate
        return
    random = Random(pace.seed)  # noqa: S311 - the same starts in each run
    start = random.expovariate(pace.rate)
    while start < seconds:
        yield start
        start += random.expovariate(pace.rate)


class OpenLoop:
    """Hands the starts of a turn to free callers.

    The schedule wakes up late for a start: a millisecond, since epoll waits whole ones, and longer
    if the load is busy. This is the tally's `lag`. `ROUNDING` of it at most isn't part of the
    latency of a call that finds a free caller; the rest is, as a late start may hide that the
    target is slow.

    Args:
        pace: the pace of the turn.
        tally: counts late calls.
        seconds: how long calls start.
        timeout: seconds after its start when a call that no caller has taken counts as timed out.
    """

    def __init__(self, pace: Pace, tally: Tally, seconds: float, timeout: float) -> None:
        self._starts = starts(pace, seconds)
        tally.is_open = True
        self._tally = tally
        self._timeout = timeout
        self._due: deque[float] = deque()
        self._free: deque[Callable[[float | None], None]] = deque()
        self._is_over = False

    async def run(self) -> None:
        """Hand out all starts. Then tell the callers that are free, and those that become free."""
        tally = self._tally
        await trio.lowlevel.checkpoint()  # callers that have just been started become free
        now = trio.current_time()
        for offset in self._starts:
            start = tally.began + offset
            if start > now:
                await trio.sleep_until(start)
                now = trio.current_time()
            if self._free:
                tally.lag += now - start
                self._free.popleft()(min(now, start + ROUNDING))
            else:
                tally.late += 1
                self._due.append(start)
                if len(self._due) > MAX_DUE:
                    self._give_up()
        self._is_over = True
        while self._free:
            self._free.popleft()(None)

    @property
    def due(self) -> int:
        """The calls whose start has come, and that no caller has taken."""
        return len(self._due)

    def take(self, resume: Callable[[float | None], None]) -> None:
        """Call `resume` with the next start for a caller that is free, at once if one is due.

        It gets None if there is no further start.
        """
        start = self._take_due()
        if start is not None:
            resume(start)
        elif self._is_over:
            resume(None)
        else:
            self._free.append(resume)

    def _take_due(self) -> float | None:
        """Return the oldest start that is due and not too old, None without one."""
        due = self._due
        while due:
            if due[0] + self._timeout > trio.current_time():
                return due.popleft()
            self._give_up()
        return None

    def _give_up(self) -> None:
        """Count the oldest call that no caller has taken."""
        self._due.popleft()
        self._tally.sent += 1
        self._tally.timeout()

    async def next_start(self) -> float | None:
        """Wait for the next start, and return it. None if there is no further one."""
        start = self._take_due()
        if start is not None or self._is_over:
            return start
        task = trio.lowlevel.current_task()
        found: float | None = None

        def resume(start: float | None) -> None:
            nonlocal found
            found = start
            trio.lowlevel.reschedule(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._free.remove(resume)
            return trio.lowlevel.Abort.SUCCEEDED

        self._free.append(resume)
        await trio.lowlevel.wait_task_rescheduled(abort)
        return found
