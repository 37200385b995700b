"""A run: turns of one second among targets, at each pace, and what a row of them says.

1. Before its first turn at a pace each target is called for a second that isn't counted.
2. Then come rounds. In each one every target has one turn, in an order drawn by the seed. All get
   the same calls at the same intended times.
3. A target that ends, that answers nothing, or that falls hopelessly behind a rate has no more
   turns at this pace. The others go on.
4. A search for the highest rate doubles the rate until the limit is missed, then halves the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import sqrt
from operator import add
from random import Random
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectFailed
from mcp_trio.oracle.bench._turn import BenchTurn, TargetGone

from ._thresholds import percentile_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from mcp_trio.oracle.bench._requests import Work
    from mcp_trio.oracle.bench._turn import Pace, TargetLoad

__all__ = ["BenchRow", "BenchRun", "RateSearch", "TargetEnd", "round_pace"]

WARM_UP: Final = 1.0  # seconds
_TURN: Final = 1.0  # seconds
_MIN_TURNS: Final = 5  # fewer give no interval and no halves
_CLIENT_BOUND: Final = 0.85  # of a core
_HALVES_DIFFER: Final = 0.2
_BEHIND: Final = 0.97  # of the intended rate
_MOSTLY: Final = 0.5  # of the calls, or of a turn
_QUEUE: Final = 0.25  # of the time until the last response
_CUT_TIME: Final = 2.0  # seconds in which a load ends its turn
_HOPELESS: Final = 3.0  # times as long as a turn should take
_SEARCH_START: Final = 100.0  # calls a second
_SEARCH_GAP: Final = 1.05  # between a rate that is kept and one that isn't
_SEARCH_MOST: Final = 500_000.0
_SEARCH_LEAST: Final = 0.5


@dataclass(frozen=True)
class TargetEnd:
    """Why a target has no more turns.

    Attributes:
        reason: a sentence.
        status: the exit status of its process; None if it is unknown, or still runs.
        stderr: the last lines of its stderr.
    """

    reason: str
    status: int | None = None
    stderr: tuple[str, ...] = ()


@dataclass
class BenchRow:
    """The turns of one target at one pace.

    Attributes:
        target: the target's name.
        pace: how fast it was called.
        length: seconds that each turn should take.
        processes: how many processes have called.
        turns: what was measured, in rounds.
        total: all of them as one.
        end: why there are no more turns; None if all were measured, or the run was interrupted.
        on_slow_machine: whether the machine itself became slow meanwhile.
        search_end: the rate at which a search ended because the load itself was the limit.
    """

    target: str
    pace: Pace
    length: float = _TURN
    processes: int = 1
    turns: list[BenchTurn] = field(default_factory=list)
    total: BenchTurn = field(default_factory=BenchTurn)
    end: TargetEnd | None = None
    on_slow_machine: bool = False
    search_end: float | None = None

    def add(self, turn: BenchTurn) -> None:
        """Add the next turn."""
        self.total = self.total + turn if self.turns else turn
        self.turns.append(turn)

    @property
    def whole_turns(self) -> list[BenchTurn]:
        """The turns without one that was cut, which compares with no other."""
        return [turn for turn in self.turns if not turn.is_cut]

    @property
    def is_behind(self) -> bool:
        """True if the target can't keep the rate of an open loop.

        Then the responses come more slowly than the calls are due, and most calls find no free
        connection, or wait for those before them at the target.
        """
        total, rate = self.total, self.pace.rate
        if rate is None or not total.sent:
            return False
        due = total.sent / (self.length * len(self.turns))
        is_late = total.late > _MOSTLY * total.sent
        return (is_late or self._is_queueing) and total.rate < _BEHIND * due

    @property
    def _is_queueing(self) -> bool:
        """True if the calls of a turn take the longer the later they start.

        Their responses then come long after the last start. Where each call takes equally long,
        so do they, but the median is hardly longer than the shortest latency.
        """
        rest = self.total.seconds / len(self.turns) - self.length
        histogram = self.total.histogram
        spread = histogram.percentile(50) - histogram.percentile(0)
        return rest > _MOSTLY * self.length and spread > _QUEUE * rest

    @property
    def is_hopeless(self) -> bool:
        """True if further turns at this rate would only take time."""
        return self.is_behind and self.turns[-1].seconds > _HOPELESS * self.length

    @property
    def is_silent(self) -> bool:
        """True if nothing was answered in the last turn, which took much longer than it should.

        Each further turn would take the whole timeout again.
        """
        if not self.turns:
            return False
        last = self.turns[-1]
        return not last.answered and last.seconds > _HOPELESS * self.length

    @property
    def is_short(self) -> bool:
        """True if there were fewer responses a second than calls were due.

        The calls may have been started late by the load itself, which no latency shows. Each turn
        may be longer by the latency of its last call.
        """
        total = self.total
        if self.pace.rate is None or not total.sent:
            return False
        length = self.length + total.histogram.percentile(99)
        due = min(self.pace.rate * self.length, total.sent / len(self.turns))  # in a turn
        return total.rate < _BEHIND * due / length

    @property
    def is_client_bound(self) -> bool:
        """True if the load itself was busy nearly all the time, so the target may be faster."""
        total = self.total
        return total.load_cpu > _CLIENT_BOUND * total.seconds * self.processes > 0

    @property
    def failed_all(self) -> bool:
        """True if no call was answered without an error, or none was made."""
        return bool(self.turns) and not self.total.answered

    @property
    def halves(self) -> tuple[float, float] | None:
        """The medians of both halves of the run, in seconds; None if they hardly differ.

        None, too, if a half has no responses: the errors or the target's end say why.
        In a closed loop these are calls a second. A turn in the middle is in neither.
        """
        turns = self.whole_turns
        size = len(turns) // 2
        if not size or self.is_behind:
            return None
        first, second = (reduce(add, half) for half in (turns[:size], turns[-size:]))
        if not (first.answered and second.answered):
            return None
        if self.pace.rate is None:
            a, b = first.rate, second.rate
        else:
            a, b = (half.histogram.percentile(50) for half in (first, second))
        return (a, b) if max(a, b) > (1 + _HALVES_DIFFER) * min(a, b) else None

    @property
    def tenths(self) -> list[int]:
        """Responses in each tenth of each turn."""
        return [count for turn in self.turns for count in turn.tenths]

    def keeps(self, limit: float) -> bool:
        """Return True if 99 % of all calls were answered within `limit` seconds, at this rate."""
        return self._answers_within(limit) and not self.is_short

    def is_limited_by_load(self, limit: float) -> bool:
        """Return True if the load itself is the limit, so the target may keep a higher rate."""
        return self.is_client_bound or (self.is_short and self._answers_within(limit))

    def _answers_within(self, limit: float) -> bool:
        total = self.total
        return (
            self.end is None
            and not self.is_behind
            and not self.is_silent
            and percentile_of(total, 99, missing=total.failed) < limit
        )


class RateSearch:
    """Finds the highest rate that a target keeps.

    Attributes:
        rate: the rate to try next, in calls a second; None once the search is over.
        kept: the highest rate that was kept; 0 if none was.
    """

    def __init__(self, start: float) -> None:
        self.rate: float | None = start
        self.kept = 0.0
        self._missed: float | None = None

    def note(self, *, is_kept: bool) -> None:
        """Take the outcome for `rate`, and choose the next one."""
        assert self.rate is not None, "the search goes on"
        if is_kept:
            self.kept = self.rate
        else:
            self._missed = self.rate
        if self._missed is None:
            self.rate = self.kept * 2 if self.kept < _SEARCH_MOST / 2 else None
        elif not self.kept:
            self.rate = self._missed / 4 if self._missed > _SEARCH_LEAST * 4 else None
        elif self._missed > self.kept * _SEARCH_GAP:
            self.rate = _rounded(sqrt(self._missed * self.kept))
        else:
            self.rate = None

    def stop(self) -> None:
        """End the search: no other rate can be tried."""
        self.rate = None


def _rounded(rate: float) -> float:
    """Return a rate with three digits."""
    return float(f"{rate:.3g}")


def round_pace(pace: Pace, number: int) -> Pace:
    """Return the pace of a round: each round has other calls, at other times."""
    return replace(pace, seed=pace.seed * 1_000_003 + number)


@dataclass(kw_only=True)
class BenchRun:
    """A run.

    Attributes:
        loads: the targets by name. Those that have ended are in `ends`.
        works: what each target is called for, by its name.
        seconds: how long each target is measured at each pace.
        seed: decides the order of the turns.
        processes: how many processes call each target.
        hide: returns a text about a target, by its name, without its secrets.
        on_turn: called after each turn with its row.
        is_machine_slow: returns True if the machine is slower now than at the beginning.
        rows: what was measured; a search has its last rate that was kept.
        tried: the rows of a search, in order.
        ends: why targets have ended.
    """

    loads: Mapping[str, TargetLoad]
    works: Mapping[str, Work]
    seconds: float
    seed: int
    processes: Callable[[str], int] = lambda _: 1
    hide: Callable[[str, str], str] = lambda _, text: text
    on_turn: Callable[[BenchRow], object] = lambda _: None
    is_machine_slow: Callable[[], Awaitable[bool]] | None = None
    rows: list[BenchRow] = field(default_factory=list)
    tried: list[BenchRow] = field(default_factory=list)
    ends: dict[str, TargetEnd] = field(default_factory=dict)
    _scope: trio.CancelScope = field(init=False, default_factory=trio.CancelScope)
    _measured: TargetLoad | None = field(init=False, default=None)
    _is_stopped: bool = field(init=False, default=False)

    @cached_property
    def _random(self) -> Random:
        return Random(self.seed)  # noqa: S311 - no secret

    @property
    def turns(self) -> int:
        """How many turns each target has at each pace."""
        return max(_MIN_TURNS, round(self.seconds / _TURN))

    def stop(self) -> None:
        """End `measure` or `search`. The turn in progress is cut, and added to its row."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._measured is not None and self._measured.cut():
            self._scope.deadline = trio.current_time() + _CUT_TIME
        else:
            self._scope.cancel()

    async def measure(self, paces: Sequence[Pace]) -> None:
        """Measure all targets at each pace, unless `stop` ends it. `rows` grows meanwhile."""
        with self._scope:
            for pace in paces:
                rows = [self._row(name, pace) for name in self._alive]
                self.rows += rows
                await self._measure(rows)

    async def search(self, pace: Pace, limit: float) -> None:
        """Find the highest rate of each target at which 99 % of the calls take less than `limit`.

        `pace.rate` is the first rate to try. `stop` ends it, too.
        """
        with self._scope:
            await self._search(pace, limit)

    async def _search(self, pace: Pace, limit: float) -> None:
        searches = {name: RateSearch(pace.rate or _SEARCH_START) for name in self._alive}
        best: dict[str, BenchRow] = {}
        bounds: dict[str, BenchRow] = {}  # the last row that wasn't kept, or whose load was busy
        while rows := [
            self._row(name, replace(pace, rate=search.rate))
            for name, search in searches.items()
            if search.rate is not None and name not in self.ends
        ]:
            self.tried += rows
            # A target's row is the one at its best rate, or the only one.
            self.rows = [best.get(row.target, row) for row in _last_of_each(self.tried)]
            await self._measure(rows)
            for row in rows:
                search = searches[row.target]
                is_kept = row.keeps(limit)
                search.note(is_kept=is_kept)
                if is_kept or not search.kept:
                    best[row.target] = row
                if row.is_client_bound or (row.is_silent and not search.kept):
                    search.stop()
                if not is_kept or row.is_client_bound:
                    bounds[row.target] = row
                bound = bounds.get(row.target)
                is_limited = bound is not None and bound.is_limited_by_load(limit)
                best[row.target].search_end = bound.pace.rate if bound and is_limited else None
            self.rows = [best[name] for name in searches]

    @property
    def _alive(self) -> list[str]:
        return [name for name in self.loads if name not in self.ends]

    def _row(self, name: str, pace: Pace) -> BenchRow:
        length = self.seconds / self.turns
        # A process without a caller is idle.
        processes = min(self.processes(name), pace.concurrency)
        return BenchRow(name, pace, length=length, processes=processes)

    async def _measure(self, rows: Sequence[BenchRow]) -> None:
        for row in rows:
            await self._turn(row, -1)
        for number in range(self.turns):
            order = [
                row for row in rows if row.end is None and not row.is_hopeless and not row.is_silent
            ]
            self._random.shuffle(order)
            for row in order:
                await self._turn(row, number)
                self.on_turn(row)
        if self.is_machine_slow is not None and await self.is_machine_slow():
            for row in rows:
                row.on_slow_machine = True

    async def _turn(self, row: BenchRow, number: int) -> None:
        """Measure a turn; -1 is the one before the first, which isn't counted."""
        seconds = row.length if number >= 0 else min(WARM_UP, self.seconds)
        self._measured = self.loads[row.target] if number >= 0 else None
        try:
            turn = await self.loads[row.target].turn(
                self.works[row.target], round_pace(row.pace, number), seconds
            )
        except TargetGone as exc:
            reason = self.hide(row.target, str(exc))
            if number < 0:
                calls = exc.turn.sent if exc.turn is not None else 0
                after = f", after {calls:,} call{'s' if calls != 1 else ''}" if calls else ""
                reason += f"; it ended during the warm-up{after}, and so has no figures"
            elif exc.turn is not None and exc.turn.sent:
                row.add(exc.turn)
            lines = tuple(self.hide(row.target, line) for line in exc.stderr)
            row.end = TargetEnd(reason, exc.status, lines)
        except ConnectFailed as exc:
            row.end = TargetEnd(self.hide(row.target, str(exc)))
        else:
            if number >= 0:
                row.add(turn)
        if row.end is not None:
            self.ends[row.target] = row.end
        if self._is_stopped:
            self._scope.cancel()
            await trio.lowlevel.checkpoint()


def _last_of_each(rows: Sequence[BenchRow]) -> list[BenchRow]:
    return list({row.target: row for row in rows}.values())
