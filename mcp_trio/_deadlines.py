"""Many deadlines, one task: what a connection may take for this and that, without a cancel scope for each of it.

Rules of this file:

1. To put a deadline off costs an assignment: the task looks again when the former one has passed. Only one that comes sooner
   than all before it wakes the task.
2. Acting on a deadline never waits.

It refuses to know what is overdue.
"""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Deadline", "Deadlines"]


class Deadline:
    """A moment that may be moved at any time: `act` is called once it has come, and it is far away then.

    `when` is a time of trio's clock, `math.inf` for never.
    """

    __slots__ = ("_act", "_deadlines", "_looked_at", "when")

    def __init__(self, deadlines: Deadlines, act: Callable[[], object]) -> None:
        self.when = math.inf
        self._deadlines = deadlines
        self._act: Callable[[], object] | None = act
        self._looked_at = math.inf  # when the task will look at this one

    def __repr__(self) -> str:
        return f"<Deadline at {self.when}>"

    def move(self, when: float) -> None:
        self.when = when
        if when < self._looked_at:
            self._looked_at = when
            self._deadlines.look_at(self, when)

    def drop(self) -> None:
        """It will never be needed again, and whoever it belonged to may go."""
        self.when = math.inf
        self._act = None

    def look(self, when: float, now: float) -> None:
        """To be called at `when`, as asked for, or a little later."""
        if when != self._looked_at:
            return  # since then an earlier look was asked for, and that one has taken care
        self._looked_at = math.inf
        if self.when > now:
            if self.when < math.inf:
                self.move(self.when)
        elif self._act is not None:
            self.when = math.inf
            self._act()


class Deadlines:
    """Runs deadlines: start `run` in a nursery. It ends when cancelled."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, int, Deadline]] = []
        self._numbers = count()
        self._sooner = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<Deadlines, {len(self._looks)} to look at>"

    def new(self, act: Callable[[], object]) -> Deadline:
        return Deadline(self, act)

    def look_at(self, deadline: Deadline, when: float) -> None:
        looks = self._looks
        heapq.heappush(looks, (when, next(self._numbers), deadline))
        if looks[0][2] is deadline:
            self._sooner.unpark_all()

    async def run(self) -> None:
        looks = self._looks
        while True:
            now = trio.current_time()
            while looks and looks[0][0] <= now:
                when, _, deadline = heapq.heappop(looks)
                deadline.look(when, now)
            with trio.move_on_at(looks[0][0] if looks else math.inf):
                await self._sooner.park()
