"""Faults and findings that wait for an examination, the most worthwhile first.

1. A fault of a row without any finding is confirmed first: a finding whose case isn't small is a
   finding, and a small case of another fault is no substitute for it.
2. Then the cases of confirmed findings are made small, which shows their causes.
3. Then follow further faults of the same rows, unless they have the same causes.
4. Last come faults that were tried in vain or are flaky, with another case.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_trio.oracle.fuzz._case import Case
    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz.causes._cause import Cause

    from ._findings import FaultKey, Findings, HeldFinding

__all__ = ["MAX_TRIES", "Agenda", "Sighting"]

MAX_TRIES: Final = 10  # cases of a fault, and of one tool, that are examined
MAX_WAITING: Final = 10  # cases of a fault with one likely cause that wait; more are counted


class Sighting(Struct, kw_only=True, eq=False):
    """A fault that a case has shown.

    Attributes:
        fault: the fault.
        case: the case.
        before: the cases that its session has played before it, the last ones of them.
        earlier: how many that were.
        times: how many cases it stands for.
        likely: its likely cause. The agenda sets it, and `key`.
        key: what examinations are counted for: the fault, and the tool that shows it.
    """

    fault: TargetFault
    case: Case
    before: list[Case]
    earlier: int
    times: int = 1
    likely: Cause | None = None
    key: FaultKey | None = None


class Agenda:
    """The faults and findings that wait for an examination.

    Args:
        findings: say which faults are worth one, and hold what was confirmed.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._waiting: list[Sighting] = []
        self._unshrunk: list[HeldFinding] = []
        self._tries: Counter[FaultKey | None] = Counter()
        self._busy_rows: set[str] = set()
        self._tried: set[Cause | None] = set()
        self._dropped: dict[Cause | None, Sighting] = {}  # crashes and hangs
        self._uncounted: dict[FaultKey | None, Sighting] = {}  # of rows, one of each

    def __len__(self) -> int:
        """Return how many faults and findings wait."""
        return len(self._waiting) + len(self._unshrunk)

    def add(self, sighting: Sighting) -> None:
        """Add a fault."""
        sighting.likely, sighting.key = self._findings.likely_cause(sighting.fault, sighting.case)
        key = sighting.fault.key, sighting.likely
        same = [each for each in self._waiting if (each.fault.key, each.likely) == key]
        if len(same) >= MAX_WAITING:
            same[-1].times += 1
        else:
            self._waiting.append(sighting)

    def hold(self, held: HeldFinding) -> None:
        """Add a finding whose case can get smaller."""
        self._findings.held.append(held)
        self._unshrunk.append(held)

    def take(self, *, is_enough: bool = False) -> Sighting | HeldFinding | None:
        """Return what to examine next: a fault to confirm, or a finding to shrink.

        With `is_enough` no further fault is confirmed, because one is enough. A fault must be given
        back by `release`. The faults of one row are examined one after the other, because the cause
        of the first one may be the cause of the others.
        """
        found = None if is_enough else self._next_sighting(0)
        if found is None and self._unshrunk:
            return self._unshrunk.pop(0)
        if is_enough:
            return None
        for rank in (1, 2):
            found = found or self._next_sighting(rank)
        return found

    def _next_sighting(self, rank: int) -> Sighting | None:
        findings = self._findings
        # A run fails for advice only if it is strict: the time for it comes last.
        for sighting in sorted(self._waiting, key=lambda each: each.fault.is_advice):
            fault = sighting.fault
            if fault.row in self._busy_rows or findings.holds_row(fault.row):
                continue
            if self._rank(sighting) != rank:
                continue
            self._waiting.remove(sighting)
            wanted = [findings.wants(fault, sighting.case) for _ in range(sighting.times)]
            if wanted[0] and self._tries[sighting.key] < MAX_TRIES:
                self._tries[sighting.key] += 1
                self._tried.add(sighting.likely)
                self._busy_rows.add(fault.row)
                return sighting
            if wanted[0] and fault.kind != "row":
                self._dropped.setdefault(sighting.likely, sighting)
            elif wanted[0]:
                first = self._uncounted.setdefault(sighting.key, sighting)
                first.times += sighting.times if first is not sighting else 0
        return None

    def _rank(self, sighting: Sighting) -> int:
        if self._tries[sighting.key]:
            return 2
        return 1 if self._findings.has_row(sighting.fault.row) else 0

    def release(self, sighting: Sighting, *, is_done: bool) -> None:
        """End the examination of a fault. If it isn't done, the fault waits again."""
        self._busy_rows.discard(sighting.fault.row)
        if not is_done:
            self._tries[sighting.key] -= 1
            self._waiting.insert(0, sighting)

    def take_uncounted(self) -> list[Sighting]:
        """Remove and return the faults of rows that were tried too often, one of each."""
        found = list(self._uncounted.values())
        self._uncounted.clear()
        return found

    def take_untried(self) -> Iterator[Sighting]:
        """Remove and yield the faults that were never examined, one of each.

        So are crashes and hangs with another likely cause than those that were tried too often.
        """
        for likely, sighting in self._dropped.items():
            if likely not in self._tried and self._findings.wants(sighting.fault, sighting.case):
                yield sighting
        self._dropped.clear()
        while self._waiting:
            sighting = self._waiting.pop(0)
            if not self._tries[sighting.key] and self._findings.wants(
                sighting.fault, sighting.case
            ):
                self._tries[sighting.key] += 1
                yield sighting
