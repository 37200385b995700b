"""Findings alone: what each keeps, what replaces what, and what the user has accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._case import Outcome
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz.campaign._findings import (
    MAX_PER_METHOD,
    MAX_SEEN,
    Findings,
    FuzzFinding,
    HeldFinding,
)
from mcp_trio.oracle.fuzz.causes._baseline import Baseline, IgnoredRow
from mcp_trio.oracle.fuzz.causes._cause import Cause, smallest_cause

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case

STARTED: Any = ("open", "2025-11-25", "whole", "all")


def row_of(method: str = "ping", row: str = "RPC-7", **members: Any) -> TargetFault:
    return TargetFault(kind="row", row=row, method=method, **members)


def case_of(*methods: str) -> Case:
    return [STARTED, *(("request", each, {}, "int") for each in methods)]


def confirmed(method: str = "ping", hits: int = 3, **members: Any) -> FuzzFinding:
    fault = members.pop("fault", row_of(method))
    case = members.pop("case", case_of(method))
    return FuzzFinding(fault=fault, case=case, hits=hits, plays=3, **members)


# -- One finding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "plays", "is_solid"), [(0, 0, False), (0, 3, False), (2, 3, False), (3, 3, True)]
)
@pytest.mark.parametrize(
    ("members", "is_advice"), [({}, False), ({"level": "reading"}, True), ({"is_certain": 0}, True)]
)
def test_finding_is_a_failure_if_every_play_has_shown_more_than_advice(
    hits: int, plays: int, is_solid: bool, members: Any, is_advice: bool
) -> None:
    found = FuzzFinding(fault=row_of(**members), case=[], hits=hits, plays=plays)
    assert (found.is_solid, found.is_failure) == (is_solid, is_solid and not is_advice)


def test_new_finding_was_seen_once_and_nothing_more_is_known() -> None:
    found = FuzzFinding(fault=row_of(), case=case_of("ping"))
    assert (found.number, found.hits, found.plays, found.steps_before) == (0, 0, 0, 0)
    assert (found.shrink_plays, found.is_cut, found.is_unclear, found.seen) == (0, False, False, 1)
    assert (found.cause, found.header, found.proof, found.lines) == (None, None, "", [])
    assert (found.likely, found.methods, found.also, found.further) == ([], [], [], [])


def test_finding_takes_the_fault_as_it_was_in_a_play() -> None:
    """The method may be another one in a smaller case. A proof stays, since it is about the row."""
    found = confirmed(fault=row_of(sentence="old"))
    shown = [row_of(row="RPC-1"), row_of("x/y", sentence="new"), row_of("z", sentence="last")]
    lines = [TraceLine(t=0.0, sender="server", raw="{}")]
    found.take_play(Outcome(faults=shown, lines=lines))
    assert (found.fault.method, found.fault.sentence, found.lines) == ("x/y", "new", lines)
    found.take_play(Outcome())
    assert (found.fault.method, found.lines) == ("x/y", [])
    found.proof = "proven"
    found.take_play(Outcome(faults=[row_of("z", sentence="last", is_certain=False)]))
    assert (found.fault.method, found.fault.sentence, found.is_failure) == ("z", "proven", True)


def test_methods_that_show_the_same_are_named_once() -> None:
    found = confirmed("ping")
    for method in ("ping", "x/y", "a", "x/y"):
        found.add_method(method)
    assert found.methods == ["x/y", "a"]


def test_messages_of_a_trace_are_counted_without_other_lines() -> None:
    found = confirmed()
    assert found.messages == 0
    found.lines = [
        TraceLine(t=0.0, sender="client", raw="{}"),
        TraceLine(t=0.0, sender="server", data=b"\xff"),
        TraceLine(t=0.0, sender="server"),
        TraceLine(t=0.0, raw="an event of the transport"),
    ]
    assert found.messages == 2


# -- All findings of a run -------------------------------------------------------------------------


def test_confirmed_faults_are_counted_also_while_they_are_held() -> None:
    """One that replaces a flaky finding isn't a further one."""
    findings = Findings()
    assert (findings.count, findings.has_row("RPC-7"), findings.holds_row("RPC-7")) == (0, 0, 0)
    flaky = confirmed(hits=1)
    assert findings.add(flaky)
    first, second = HeldFinding(confirmed(), flaky), HeldFinding(confirmed("x/y"))
    findings.held += [first, second]
    assert findings.count == 2
    assert (findings.has_row("RPC-7"), findings.holds_row("RPC-7")) == (True, True)
    assert not findings.has_row("RPC-1")
    findings.drop(first)
    assert findings.held == [second]
    findings.drop(first)
    findings.drop(second)
    assert (findings.count, findings.has_row("RPC-7"), findings.holds_row("RPC-7")) == (1, True, 0)


def test_flaky_finding_is_looked_for_in_so_many_further_cases() -> None:
    """Each of them may show it each time."""
    findings = Findings()
    flaky = confirmed(hits=1)
    assert findings.add(flaky)
    wanted = [findings.wants(row_of(), case_of("ping")) for _ in range(MAX_SEEN + 3)]
    assert wanted == [True] * (MAX_SEEN - 1) + [False] * 4
    assert flaky.seen == MAX_SEEN + 4
    solid = Findings()
    assert solid.add(confirmed())
    assert not solid.wants(row_of(), case_of("ping"))
    assert solid.items[0].seen == 2


def test_finding_that_replaces_a_flaky_one_takes_what_is_known_of_it() -> None:
    findings = Findings()
    other, flaky = confirmed("ping"), confirmed("tools/list", hits=1)
    assert findings.add(other)
    assert findings.add(flaky)
    assert (other.number, flaky.number) == (1, 2)
    flaky.seen = 5
    flaky.methods, flaky.also = ["m"], [Cause("RPC-7", "request", "m")]
    flaky.further = [Cause("RPC-7", "request", "t")]
    better = confirmed("tools/list")
    assert findings.add(better, flaky)
    assert findings.items == [other, better]
    assert (better.number, better.seen, better.methods) == (2, 5, ["m"])
    assert (better.also, better.further) == (flaky.also, flaky.further)


@pytest.mark.parametrize(
    ("first", "further", "is_added"),
    [(3, 3, False), (3, 1, False), (2, 2, False), (2, 1, False), (1, 2, True), (2, 3, True)],
)
def test_finding_of_the_same_cause_is_added_only_if_more_plays_have_shown_it(
    first: int, further: int, is_added: bool
) -> None:
    findings = Findings()
    findings.add(confirmed(hits=first))
    assert findings.add(confirmed(hits=further)) is is_added
    (found,) = findings.items
    assert (found.hits, found.number) == (max(first, further), 1)
    assert found.seen == (1 if is_added else 2)


def test_further_methods_of_a_row_are_named_in_its_first_finding() -> None:
    findings = Findings()
    methods = ["ping", "tools/list", "prompts/list", "resources/list"]
    for method in methods[:3]:
        assert findings.wants(row_of(method), case_of(method))
        assert findings.add(confirmed(method))
    assert not findings.wants(row_of(methods[3]), case_of(methods[3]))
    first = findings.items[0]
    assert first.methods == methods[3:]
    assert first.also == [Cause("RPC-7", "request", methods[3])]
    assert not findings.wants(row_of(methods[3]), case_of(methods[3]))
    assert (first.seen, first.methods) == (2, methods[3:]), "it is known now"


def test_method_has_so_many_findings_of_different_shapes() -> None:
    findings = Findings()
    values: list[Any] = [5, "x", [], None]
    cases: list[Case] = [[STARTED, ("request", "tools/list", each, "int")] for each in values]
    for case in cases[:MAX_PER_METHOD]:
        assert findings.wants(row_of("tools/list"), case)
        assert findings.add(confirmed(fault=row_of("tools/list"), case=case))
    assert not findings.wants(row_of("tools/list"), cases[MAX_PER_METHOD])
    assert len(findings.items) == MAX_PER_METHOD == 3


def test_tool_with_so_many_findings_is_named_in_the_first_one_of_its_row() -> None:
    """Findings are counted by tool, and their likely causes are those of their own cases."""
    tools = ("one", "two")
    findings = Findings(tools=tools)
    fault = row_of("tools/call", row="SAMP-2")
    extras: list[tuple[str, ...]] = [("progress",), ("text",), ("unsupported task",)]
    for extra in extras:
        case: Case = [STARTED, ("call", "one", {}, extra)]
        assert findings.wants(fault, case)
        cause = smallest_cause(fault, case, tools)
        found = confirmed(fault=fault, case=case, cause=cause)
        assert findings.add(found)
        assert found.likely == [cause]
    assert findings._examined == {("SAMP-2", "", "tools/call", "one"): 3}
    assert not findings.wants(fault, [STARTED, ("call", "one", {}, ())])
    assert findings.items[0].methods == ["one"]
    assert findings.items[0].also == []
    assert findings.wants(fault, [STARTED, ("call", "two", {}, ())])
    assert findings.add(confirmed(fault=fault, case=[STARTED, ("call", "two", {}, ("text",))])) is (
        False
    )
    assert findings.items[0].methods == ["one", "two"]


def test_left_out_examinations_name_nothing_without_a_finding() -> None:
    """All of them have turned out to be no finding: there is none to name the method in."""
    findings = Findings()
    findings._examined["RPC-7", "", "ping", ""] = MAX_PER_METHOD
    assert not findings.wants(row_of(), case_of("ping"))
    assert findings.items == []
    findings._examined["RPC-7", "", "ping", ""] -= 1
    assert findings.wants(row_of(), case_of("ping"))


@pytest.mark.parametrize(
    ("kind", "likely", "is_beside"),
    [
        ("row", ["ping"], True),
        ("row", ["prompts/list", "ping"], True),
        ("row", ["prompts/list"], False),
        ("row", ["ping", "tool"], False),
        ("crash", ["ping"], False),
        ("hang", ["ping", "tool"], False),
    ],
)
def test_finding_of_several_messages_explains_a_rule_without_tools(
    kind: Any, likely: list[str], is_beside: bool
) -> None:
    causes = [Cause("RPC-7", "request", each) for each in likely]
    fault = TargetFault(kind=kind, row="RPC-7", method="ping")
    found = confirmed(fault=fault, likely=causes)
    explained = {Cause("RPC-7", "request", "ping"), Cause("RPC-7", "request", "tools/list")}
    assert Findings()._is_beside(found, explained) is is_beside


# -- What the user has accepted --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ignored", "why"),
    [
        (IgnoredRow(row="RPC-7"), "ignored by RPC-7"),
        (IgnoredRow(row="RPC-7", scope="ping", reason="later"), "ignored by RPC-7:ping: later"),
        (IgnoredRow(row="RPC-7", scope="x/y"), ""),
        (IgnoredRow(row="RPC-1"), ""),
    ],
)
def test_ignored_row_is_left_out_with_its_reason_and_counted(ignored: IgnoredRow, why: str) -> None:
    findings = Findings(ignored=[ignored])
    assert findings.ignored == {ignored: 0}
    for count in (1, 2):
        assert findings.leaves_out(row_of(), case_of("ping")) is bool(why)
        assert findings.ignored[ignored] == (count if why else 0)
    assert findings.left_out == ({"RPC-7": why} if why else {})
    assert findings.add(confirmed()) is not bool(why)
    assert len(findings.items) == (not why)


PING_TWICE = Cause("RPC-7", "request", "ping")


@pytest.mark.parametrize(
    ("baseline", "is_known"),
    [
        (Baseline(form=2, causes=frozenset({PING_TWICE})), True),
        (Baseline(form=2, causes=frozenset({PING_TWICE.anywhere})), True),
        (Baseline(form=2, causes=frozenset({replace(PING_TWICE, scope="x/y")})), False),
        (Baseline(form=1, methods=frozenset({("RPC-7", "ping")})), True),
        (Baseline(form=1, methods=frozenset({("RPC-7", "x/y")})), False),
    ],
)
def test_finding_of_the_baseline_is_left_out_and_counted(
    baseline: Baseline, is_known: bool
) -> None:
    """All of the baseline is listed from the beginning: what wasn't seen is repaired."""
    findings = Findings(baseline)
    (counts,) = [each for each in (findings.known, findings.known_methods) if each]
    assert list(counts.values()) == [0]
    assert findings.leaves_out(row_of(), case_of("ping")) is is_known
    assert findings.add(confirmed()) is not is_known
    assert list(counts.values()) == [2 if is_known else 0]
    assert findings.left_out == ({"RPC-7": "in the baseline"} if is_known else {})


def test_baseline_of_several_messages_leaves_out_a_fault_after_all_of_them() -> None:
    """Its case can be cut where the time ends, or be in the cases before."""
    cause = Cause("RPC-7", "request, beside tools/list request", "ping")
    findings = Findings(Baseline(form=2, causes=frozenset({cause})))
    assert not findings.leaves_out(row_of(), case_of("ping"))
    assert findings.leaves_out(row_of(), case_of("tools/list", "ping"))
    assert findings.leaves_out(row_of(), case_of("ping"), [case_of("tools/list")])
    assert findings.known == {cause: 2}
    assert not findings.add(confirmed(case=case_of("tools/list", "ping")))
    assert findings.add(confirmed())
    assert findings.known == {cause: 3}
