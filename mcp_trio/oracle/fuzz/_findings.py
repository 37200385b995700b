"""The findings of a run: which faults are worth an examination, and what is known of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from ._case import avoided_name

if TYPE_CHECKING:
    from mcp_core.trace import TraceHeader, TraceLine

    from ._case import Case, Outcome
    from ._session import TargetFault

__all__ = ["MAX_FINDINGS", "Findings", "FuzzFinding"]

MAX_PER_ROW: Final = 3  # findings of a row that are confirmed; more methods are only named
MAX_FINDINGS: Final = 50
MAX_SEEN: Final = 10  # flaky cases of a finding that are confirmed, in search of a solid one


class FuzzFinding(Struct, kw_only=True):
    """A fault that was confirmed on a fresh target.

    Attributes:
        fault: what is wrong.
        case: the smallest case that shows it.
        number: its number among the findings, from 1.
        hits, plays: how often the fault was seen when the case was played again.
        steps_before: the steps of the case that found it.
        shrink_plays: how many plays the shrinking took.
        methods: other methods that show a fault of the same row.
        seen: how many cases have shown it.
        header, lines: the trace of one play.
    """

    fault: TargetFault
    case: Case
    number: int = 0
    hits: int = 0
    plays: int = 0
    steps_before: int = 0
    shrink_plays: int = 0
    methods: list[str] = field(default_factory=list)
    seen: int = 1
    header: TraceHeader | None = None
    lines: list[TraceLine] = field(default_factory=list)

    @property
    def is_solid(self) -> bool:
        """True if every play has shown it."""
        return self.hits == self.plays > 0

    @property
    def is_failure(self) -> bool:
        """True if it is more than advice, and every play has shown it."""
        return self.is_solid and not self.fault.is_advice

    def take_play(self, outcome: Outcome) -> None:
        """Take the trace of a play that has shown the fault, and the fault as it was there."""
        found = [each for each in outcome.faults if each.cause == self.fault.cause]
        self.fault = found[0] if found else self.fault
        self.header, self.lines = outcome.header, outcome.lines

    @property
    def messages(self) -> int:
        """The trace's messages."""
        return sum(
            line.sender is not None and (line.raw is not None or line.data is not None)
            for line in self.lines
        )


class Findings:
    """The findings of a run.

    Args:
        known: the row and method of each fault that is left out.

    Attributes:
        items: the findings, in the order of their numbers.
        avoided: names of the steps that have shown one; see `avoided_name`.
    """

    def __init__(self, known: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.items: list[FuzzFinding] = []
        self.avoided: set[tuple[str, str]] = set()
        self._known = known

    def wants(self, fault: TargetFault) -> bool:
        """Return True if a fault that a case has shown is worth an examination.

        Otherwise it is counted for the finding that it is.
        """
        if (fault.row, fault.method) in self._known:
            return False
        same = [each for each in self.items if each.fault.row == fault.row]
        if any(fault.method in each.methods for each in same):
            return False
        former = self.find(fault)
        if former is not None:
            former.seen += 1
            return not former.is_solid and former.seen <= MAX_SEEN
        if len(same) >= MAX_PER_ROW and fault.kind == "row":
            same[0].methods.append(fault.method)
            return False
        return True

    def find(self, fault: TargetFault) -> FuzzFinding | None:
        """Return the finding of a fault, or None."""
        return next((each for each in self.items if each.fault.key == fault.key), None)

    def has_row(self, row: str) -> bool:
        """Return True if there is a finding of a row."""
        return any(each.fault.row == row for each in self.items)

    def add(self, finding: FuzzFinding, former: FuzzFinding | None = None) -> bool:
        """Add a finding, in place of a flaky `former` one. Return False if there was one like it.

        Then that one counts it.
        """
        if former is not None:
            finding.number, finding.seen, finding.methods = (
                former.number,
                former.seen,
                former.methods,
            )
            self.items[former.number - 1] = finding
        else:
            same = self.find(finding.fault)  # it became the same when it was shrunk
            if same is not None:
                same.seen += 1
                return False
            self.items.append(finding)
            finding.number = len(self.items)
        if len(finding.case) <= MAX_PER_ROW:
            self.avoided |= {name for step in finding.case[1:] if (name := avoided_name(step))}
        return True
