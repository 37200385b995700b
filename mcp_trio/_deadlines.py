"""Many movable deadlines run by one task, without a cancel scope for each.

1. Moving a deadline to a later time costs one assignment: the task checks it again when the former
   time has passed. Only a deadline that is earlier than all others wakes the task.
2. The function called at a deadline must not wait.
"""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Deadline", "DeadlineRunner"]


class Deadline:
    """A deadline that may be moved at any time. Made by `DeadlineRunner.new`.

    `act` is called when the deadline has passed; the deadline is then at `math.inf` until it is
    moved again. `when` is a time of trio's clock, or `math.inf` for never.
    """

    __slots__ = ("_act", "_deadlines", "_next_check", "when")

    def __init__(self, deadlines: DeadlineRunner, act: Callable[[], object]) -> None:
        self.when = math.inf
        self._deadlines = deadlines
        self._act: Callable[[], object] | None = act
        self._next_check = math.inf  # when the task will check this deadline

    def __repr__(self) -> str:
        return f"<Deadline at {self.when}>"

    def move(self, when: float) -> None:
        """Set the deadline to `when`, earlier or later than before."""
        self.when = when
        if when < self._next_check:
            self._next_check = when
            self._deadlines.schedule_check(self, when)

    def discard(self) -> None:
        """Disable the deadline for good, and release the reference to its owner."""
        self.when = math.inf
        self._act = None

    def check(self, when: float, now: float) -> None:
        """Act if the deadline has passed at `now`. The runner calls this at `when` or later."""
        if when != self._next_check:
            return  # the deadline was moved to an earlier time: that check has replaced this one
        self._next_check = math.inf
        if self.when > now:
            if self.when < math.inf:
                self.move(self.when)
        elif self._act is not None:
            self.when = math.inf
            self._act()


class DeadlineRunner:
    """A set of deadlines with their task: start `run` in a nursery. It runs until cancelled."""

    def __init__(self) -> None:
        # A heap of checks. The number orders checks at equal times: deadlines don't compare.
        self._checks: list[tuple[float, int, Deadline]] = []
        self._numbers = count()
        self._earlier_check = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<DeadlineRunner, {len(self._checks)} to check>"

    def new(self, on_deadline: Callable[[], object]) -> Deadline:
        """Return a deadline at which `on_deadline` is called: never, until `Deadline.move`."""
        return Deadline(self, on_deadline)

    def schedule_check(self, deadline: Deadline, when: float) -> None:
        """Schedule a check of `deadline` at `when`."""
        checks = self._checks
        heapq.heappush(checks, (when, next(self._numbers), deadline))
        if checks[0][2] is deadline:
            self._earlier_check.unpark_all()

    async def run(self) -> None:
        """Check deadlines as they come, until cancelled."""
        checks = self._checks
        while True:
            now = trio.current_time()
            while checks and checks[0][0] <= now:
                when, _, deadline = heapq.heappop(checks)
                deadline.check(when, now)
            with trio.move_on_at(checks[0][0] if checks else math.inf):
                await self._earlier_check.park()
