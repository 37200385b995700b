"""The findings of a run: which faults are worth an examination, and what is known of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_trio.oracle.fuzz.causes._baseline import NO_BASELINE
from mcp_trio.oracle.fuzz.causes._cause import (
    has_several_messages,
    possible_causes,
    shows_all,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mcp_core.trace import TraceHeader, TraceLine
    from mcp_trio.oracle.fuzz._case import Case, Outcome
    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz.causes._baseline import Baseline, IgnoredRow
    from mcp_trio.oracle.fuzz.causes._cause import Cause

    FaultKey: TypeAlias = tuple[str, str, str, str]  # a fault's key, and the tool or ""

__all__ = ["MAX_FINDINGS", "Findings", "FuzzFinding", "HeldFinding"]

MAX_PER_ROW: Final = 3  # findings of a row; more methods are only named, more tools confirmed too
MAX_FINDINGS: Final = 50
MAX_PER_METHOD: Final = 3  # findings of a row and method, or tool: one for each shape
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
        is_cut: True if there was time to try the case without each of its steps.
        cause: what a later run finds again; None before the examination's end.
        likely: the causes that can be the fault's, the most likely one last. A case that wasn't
            made small can have several ones.
        is_unclear: True if its case wasn't made small, so that `cause` can be another one's. Such a
            finding is in no baseline.
        methods: other methods and tools that show a fault of the same row.
        also: the causes of their faults, as far as a case shows them that wasn't made smaller. The
            faults of tools aren't among them: what no play has confirmed is in no baseline.
        further: the causes of further tools that show a fault of the same row, each confirmed.
        seen: how many cases have shown it.
        proof: the fault's sentence in a play that was made to prove it, "" without one. Other plays
            show the same fault as advice.
        header, lines: the trace of one play.
    """

    fault: TargetFault
    case: Case
    number: int = 0
    hits: int = 0
    plays: int = 0
    steps_before: int = 0
    shrink_plays: int = 0
    is_cut: bool = False
    cause: Cause | None = None
    likely: list[Cause] = field(default_factory=list)
    is_unclear: bool = False
    methods: list[str] = field(default_factory=list)
    also: list[Cause] = field(default_factory=list)
    further: list[Cause] = field(default_factory=list)
    seen: int = 1
    proof: str = ""
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
        if self.proof:
            self.fault = replace(self.fault, is_certain=True, sentence=self.proof)
        self.header, self.lines = outcome.header, outcome.lines

    def add_method(self, method: str) -> None:
        """Add a method that shows the same, once."""
        if method not in (self.fault.method, *self.methods):
            self.methods.append(method)

    @property
    def messages(self) -> int:
        """The trace's messages."""
        return sum(
            line.sender is not None and (line.raw is not None or line.data is not None)
            for line in self.lines
        )


class HeldFinding(Struct, eq=False):
    """A confirmed finding, and the flaky one that it replaces, if there is one."""

    finding: FuzzFinding
    former: FuzzFinding | None = None


class Findings:
    """The findings of a run.

    Args:
        baseline: an earlier report, whose findings are left out.
        ignored: the rows that are left out.
        tools: the names of the tools that the server lists.

    Attributes:
        items: the findings, in the order of their numbers.
        held: what is confirmed and waits for `add`, because its case may get smaller.
        known: how often each cause of the baseline was seen.
        known_methods: how often each row and method of a baseline of version 1 was seen.
        ignored: how often each ignored row was seen.
        left_out: why faults were left out, by row.
    """

    def __init__(
        self,
        baseline: Baseline = NO_BASELINE,
        ignored: Sequence[IgnoredRow] = (),
        tools: Collection[str] = (),
    ) -> None:
        self.items: list[FuzzFinding] = []
        self.held: list[HeldFinding] = []
        self.known: Counter[Cause] = Counter(dict.fromkeys(sorted(baseline.causes), 0))
        self.known_methods: Counter[tuple[str, str]] = Counter(
            dict.fromkeys(sorted(baseline.methods), 0)
        )
        self.ignored: Counter[IgnoredRow] = Counter(dict.fromkeys(ignored, 0))
        self.left_out: dict[str, str] = {}
        self._tools = tools
        self._examined: Counter[FaultKey] = Counter()

    def wants(self, fault: TargetFault, case: Case) -> bool:
        """Return True if a fault that a case has shown is worth an examination.

        Otherwise it is counted for the finding that it is.
        """
        possible = possible_causes(fault, case, self._tools)
        explained = {each for cause in possible for each in cause.wider}
        for each in self.items:
            may_fail = each.fault.is_advice and not fault.is_advice
            if each.cause in explained or self._is_beside(each, explained):
                each.seen += 1
                return (not each.is_solid or may_fail) and each.seen <= MAX_SEEN
            if not explained.isdisjoint((*each.also, *each.further)) and not may_fail:
                each.seen += 1
                return False
        former = self.find_flaky(fault, case)
        if former is not None:
            former.seen += 1
            return former.seen <= MAX_SEEN
        same = [each for each in self.items if each.fault.row == fault.row]
        is_much = self._examined[self.likely_cause(fault, case)[1]] >= MAX_PER_METHOD
        # A baseline doesn't hold for a tool what another one shows, so each of them is examined.
        is_named = fault.kind == "row" and not possible[-1].is_of_tool
        failures = [each for each in same if each.is_failure or fault.is_advice]
        if is_much or (len(failures) >= MAX_PER_ROW and is_named):
            same = failures or same
            if same:
                self._name_beside(same[0], fault, possible[-1])
            return False
        return True

    def _is_beside(self, finding: FuzzFinding, explained: set[Cause]) -> bool:
        """Return True if a finding whose case has several messages explains a fault.

        Not if it is a crash, a hang or a tool's: what one of the messages shows alone is another
        finding.
        """
        if finding.fault.kind != "row" or any(each.is_of_tool for each in finding.likely):
            return False
        return not explained.isdisjoint(finding.likely)

    def _name_beside(self, finding: FuzzFinding, fault: TargetFault, cause: Cause) -> None:
        """Name a fault of a finding's row that isn't examined."""
        finding.add_method(cause.scope if cause.is_of_tool else fault.method)
        if fault.kind == "row" and not cause.is_of_tool:
            finding.also.append(cause)

    def likely_cause(self, fault: TargetFault, case: Case) -> tuple[Cause, FaultKey]:
        """Return the likely cause of a fault, and what its examinations are counted for.

        What many plays have shown of one tool says nothing about another one, and a hang has the
        same method for all causes.
        """
        cause = possible_causes(fault, case, self._tools)[-1]
        scope = cause.scope if cause.is_of_tool or fault.kind == "hang" else ""
        return cause, (*fault.key, scope)

    def leaves_out(self, fault: TargetFault, case: Case, before: Sequence[Case] = ()) -> bool:
        """Return True if the user has accepted a fault that a case has shown, and count it.

        `before` are the cases that its session has played before it.
        """
        possible = possible_causes(fault, case, self._tools)
        return self._is_left_out(fault, [*possible, *self._known_groups(fault, case, before)])

    def _known_groups(self, fault: TargetFault, case: Case, before: Sequence[Case]) -> list[Cause]:
        """Return the causes of several messages that are in the baseline, and may be a fault's.

        The time may be too short to make its case as small as the baseline's.
        """
        tools = self._tools
        return [each for each in self.known if shows_all(each, fault, case, before, tools)]

    def _is_left_out(self, fault: TargetFault, possible: Sequence[Cause]) -> bool:
        """Return True if the user has accepted one of a fault's possible causes, and count it."""
        scopes = {each.scope for each in possible}
        for entry in self.ignored:
            if entry.matches(fault, scopes):
                self.ignored[entry] += 1
                reason = f": {entry.reason}" if entry.reason else ""
                self.left_out[fault.row] = f"ignored by {entry}{reason}"
                return True
        if (fault.row, fault.method) in self.known_methods:
            self.known_methods[fault.row, fault.method] += 1
            self.left_out[fault.row] = "in the baseline"
            return True
        for each in possible:
            for cause in each.wider:
                if cause in self.known:
                    self.known[cause] += 1
                    self.left_out[fault.row] = "in the baseline"
                    return True
        return False

    def find_flaky(self, fault: TargetFault, case: Case) -> FuzzFinding | None:
        """Return the flaky finding of a fault, which a solid one replaces, or None."""
        key = self.likely_cause(fault, case)[1]
        for each in self.items:
            if not each.is_solid and self.likely_cause(each.fault, each.case)[1] == key:
                return each
        return None

    def drop(self, held: HeldFinding) -> None:
        """Hold a finding no longer."""
        self.held = [each for each in self.held if each is not held]

    def has_row(self, row: str) -> bool:
        """Return True if there is a finding of a row, also one that is held."""
        return self.holds_row(row) or any(each.fault.row == row for each in self.items)

    def holds_row(self, row: str) -> bool:
        """Return True if a finding of a row is held."""
        return any(each.finding.fault.row == row for each in self.held)

    @property
    def count(self) -> int:
        """How many faults are confirmed."""
        return len(self.items) + sum(each.former is None for each in self.held)

    def add(self, finding: FuzzFinding, former: FuzzFinding | None = None) -> bool:
        """Add a finding, in place of a flaky `former` one. Return False if it is none.

        It is none if its smallest case shows that it is left out, or another finding. That one
        counts it then.
        """
        fault = finding.fault
        possible = possible_causes(fault, finding.case, self._tools)
        groups: list[Cause] = []
        if finding.cause is None:
            self._set_unshrunk_cause(finding, list(dict.fromkeys(possible)))
            # Its first sighting can have been another fault of the case.
            groups = self._known_groups(fault, finding.case, ())
        else:
            finding.likely = possible[-1:]
        likely = [] if finding.is_unclear else [finding.cause or possible[-1]]
        if (likely or groups) and self._is_left_out(fault, [*likely, *groups]):
            return False
        self._examined[self.likely_cause(fault, finding.case)[1]] += 1
        if former is None:
            same = self._find_same(finding)
            is_less = same is not None and finding.is_failure and not same.is_failure
            if same is not None and not is_less and (same.is_solid or finding.hits <= same.hits):
                same.seen += 1
                self._narrow(same, finding)
                same.add_method(fault.method)
                return False
            former = same or self._find_narrower(finding)
        if former is not None:
            finding.number, finding.seen = former.number, former.seen
            finding.methods, finding.also = former.methods, former.also
            finding.further = former.further
            self.items[former.number - 1] = finding
        elif (first := self._full_row(finding)) is not None:
            self._add_tool(first, finding)
            return False
        else:
            self.items.append(finding)
            finding.number = len(self.items)
        return True

    def _full_row(self, finding: FuzzFinding) -> FuzzFinding | None:
        """Return the first finding of a row with so many that a further one is named in it.

        A failure is named only in another failure: it must fail the run if those don't.
        """
        same = [
            each
            for each in self.items
            if each.fault.row == finding.fault.row and (each.is_failure or not finding.is_failure)
        ]
        is_full = finding.fault.kind in ("row", "invariant") and len(same) >= MAX_PER_ROW
        return same[0] if is_full else None

    def _add_tool(self, finding: FuzzFinding, further: FuzzFinding) -> None:
        """Name a further finding in one of the same row."""
        assert further.cause is not None
        finding.seen += further.seen
        finding.add_method(further.cause.scope)
        if not further.is_unclear:
            finding.further.append(further.cause)

    def _set_unshrunk_cause(self, finding: FuzzFinding, possible: list[Cause]) -> None:
        """Give a finding whose case wasn't made small its cause, which can be another one's.

        It is the fault's if the case has one message, or if a row of a method, not of a tool, has
        one possible cause. A burst stays one: no play has shown that one request is enough.
        """
        fault = finding.fault
        bursts = [each for each in possible if each.single != each]
        finding.likely, finding.cause = possible, (bursts or possible)[-1]
        is_alone = not has_several_messages(fault, finding.case, self._tools)
        if is_alone or finding.cause.stands_alone:
            return
        is_of_method = fault.kind == "row" and finding.cause.scope == fault.method
        finding.is_unclear = not is_of_method or len({each.single for each in possible}) > 1

    def _find_same(self, finding: FuzzFinding) -> FuzzFinding | None:
        """Return the finding that has a cause in common with a further one, or None."""
        assert finding.cause is not None
        wider = finding.cause.wider
        likely = {each for cause in finding.likely for each in cause.wider}
        for each in self.items:
            if each.cause in wider:
                return each
            if (each.is_unclear or finding.is_unclear) and not likely.isdisjoint(each.likely):
                return each
        return None

    def _find_narrower(self, finding: FuzzFinding) -> FuzzFinding | None:
        """Return a rule's finding that the cause of a further one explains, or None.

        Two plays can differ in what is outside of the process, so that only a later case shows
        that a simpler message is enough.
        """
        if finding.fault.kind != "row" or finding.is_unclear or not finding.is_solid:
            return None
        for each in self.items:
            if each.is_failure and not finding.is_failure:
                continue
            if each.cause is not None and not each.is_unclear and finding.cause in each.cause.wider:
                return each
        return None

    def _narrow(self, finding: FuzzFinding, further: FuzzFinding) -> None:
        """Take the causes that two findings have in common."""
        common = [each for each in finding.likely if each in further.likely]
        if finding.is_unclear and common:
            finding.likely, finding.cause = common, common[-1]
