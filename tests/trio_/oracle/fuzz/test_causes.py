"""Findings by cause: one for each, and none that the user has accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.oracle.fuzz._baseline import Baseline, IgnoredRow
from mcp_trio.oracle.fuzz._cause import Cause

from .memory_target import OLD, MemoryTarget, answers, played, same_each_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_trio.oracle.fuzz._campaign import Campaign
    from mcp_trio.oracle.fuzz._case import Case

OPEN = ("open", OLD, "whole", "all")


def is_list(message: Mapping[str, Any]) -> bool:
    return message.get("method") == "tools/list"


def doubling(is_wrong: Callable[[Mapping[str, Any]], bool]) -> Any:
    """Return the answers of a server that responds twice (RPC-7) if `is_wrong(request)`."""

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        yield from answers(message)
        if message.get("method") not in ("initialize", "server/discover") and is_wrong(message):
            yield from answers(message)

    return same_each_time(respond)


def silent(is_wrong: Callable[[Mapping[str, Any]], bool]) -> Any:
    """Return the answers of a server that doesn't respond (RPC-17) if `is_wrong(request)`."""
    return same_each_time(lambda message: iter(() if is_wrong(message) else answers(message)))


def broken(*methods: str) -> Any:
    return doubling(lambda message: message.get("method") in methods)


def case(method: str, params: Any = None) -> Case:
    """Return a case with one request of the old revision."""
    return [OPEN, ("request", method, {} if params is None else params, "int", "whole")]


def causes_of(run: Campaign) -> list[Cause | None]:
    return [each.cause for each in run.findings]


PING = case("ping")
PING_CAUSE = Cause("RPC-7", "request", "ping")


def test_finding_has_the_cause_of_its_smallest_case() -> None:
    noise = ("request", "tools/list", {"cursor": "x"}, "text", "whole")
    run = played(MemoryTarget(broken("ping")), [OPEN, noise, PING[1], noise])
    assert causes_of(run) == [PING_CAUSE]


@pytest.mark.parametrize(
    ("methods", "shrinks", "scope"),
    [((), True, "*"), (("prompts/list",), True, "prompts/list"), ((), False, "prompts/list")],
)
def test_scope_is_any_method_if_two_further_plays_show_it_elsewhere(
    methods: tuple[str, ...], shrinks: bool, scope: str
) -> None:
    """Without shrinking nothing is played further, and the scope stays the method."""

    def is_wrong(message: Mapping[str, Any]) -> bool:
        return message.get("params") == 82 and (not methods or message["method"] in methods)

    run = played(MemoryTarget(silent(is_wrong)), case("prompts/list", 82), shrinks=shrinks)
    assert causes_of(run) == [Cause("RPC-17", "request params:number", scope)]


def test_faults_of_one_cause_are_one_finding_that_counts_the_others() -> None:
    """Three methods and two types: one habit of the server, found and confirmed once."""
    target = MemoryTarget(silent(lambda message: not isinstance(message.get("params", {}), dict)))
    first = case("tools/list", "x")
    run = played(target, first, case("prompts/list", 5), case("resources/list", [1]))
    (finding,) = run.findings
    assert finding.cause == Cause("RPC-17", "request params:no-object", "*")
    assert finding.seen == 3
    alone = MemoryTarget(target.answers)
    played(alone, first)
    assert target.starts - alone.starts == 2, "the other two cases are played once"


def test_fault_of_a_valid_message_is_one_finding_for_malformed_ones_too() -> None:
    """The malformed one is played first, and its finding takes the case with the valid one."""
    run = played(MemoryTarget(broken("ping")), [OPEN, ("burst", 2, "ping", {})], PING)
    (finding,) = run.findings
    assert finding.cause == PING_CAUSE
    assert finding.case[1][0] == "request"
    assert finding.seen == 2


def test_two_shapes_of_one_method_are_two_findings() -> None:
    """Neither is shown by another method, nor by a valid request."""
    target = MemoryTarget(
        silent(lambda message: message.get("params") in ("x", 82) and is_list(message))
    )
    run = played(target, case("tools/list", "x"), case("tools/list", 82))
    assert [each.cause and each.cause.shape for each in run.findings] == [
        "request params:string",
        "request params:number",
    ]


def test_methods_beyond_the_limit_of_a_row_have_their_causes() -> None:
    """They are confirmed in another seed, whose baseline has to hold them."""
    methods = ("prompts/list", "resources/list", "tools/list", "resources/templates/list")
    run = played(MemoryTarget(broken(*methods)), *map(case, methods))
    assert [each.cause and each.cause.scope for each in run.findings] == list(methods[:3])
    assert run.findings[0].methods == [methods[3]]
    assert run.findings[0].also == [Cause("RPC-7", "request", methods[3])]


# -- What the user has accepted --------------------------------------------------------------------


def baseline(*causes: Cause) -> Baseline:
    return Baseline(form=2, causes=frozenset(causes))


@pytest.mark.parametrize(
    ("causes", "found"),
    [
        ([PING_CAUSE], 0),
        ([Cause("RPC-7", "request", "*")], 0),
        ([Cause("RPC-7", "request", "tools/list")], 1),
        ([Cause("RPC-7", "request params:string", "ping")], 1),
        ([Cause("RPC-35", "request", "ping")], 1),
        ([], 1),
    ],
)
def test_causes_of_the_baseline_are_left_out(causes: list[Cause], found: int) -> None:
    run = played(MemoryTarget(broken("ping")), PING, baseline=baseline(*causes))
    assert len(run.findings) == found
    assert sum(run.found.known.values()) == 1 - found
    assert ("RPC-7" in run.found.left_out) is not found


def test_baseline_of_version_1_leaves_out_a_row_and_method_of_each_message() -> None:
    known = Baseline(form=1, methods=frozenset({("RPC-7", "ping")}))
    target = MemoryTarget(broken("ping"))
    assert played(target, PING, baseline=known).findings == []
    other = Baseline(form=1, methods=frozenset({("RPC-7", "tools/list"), ("RPC-35", "ping")}))
    assert len(played(MemoryTarget(target.answers), PING, baseline=other).findings) == 1


def test_new_fault_beside_a_known_habit_of_the_same_method_is_found() -> None:
    """A baseline with a habit must not hide what another message of that method shows."""
    habit = Cause("RPC-17", "request params:string", "*")
    target = MemoryTarget(silent(lambda message: message.get("params") in ("x", [])))
    wrong, other = case("tools/list", "x"), case("tools/list", [])
    run = played(target, wrong, wrong, other, baseline=baseline(habit))
    assert causes_of(run) == [Cause("RPC-17", "request params:array", "*")]
    assert run.found.known == {habit: 2}


@pytest.mark.parametrize(
    ("row", "scope", "found"),
    [
        ("RPC-7", "", 0), ("RPC-7", "ping", 0), ("RPC-7", "tools/list", 1), ("RPC-35", "", 1),
        ("crash", "", 1),
    ],
)  # fmt: skip
def test_ignored_rows_are_left_out_and_counted(row: str, scope: str, found: int) -> None:
    entry = IgnoredRow(row=row, scope=scope, reason="known upstream")
    run = played(MemoryTarget(broken("ping")), PING, PING, ignored=(entry,))
    assert len(run.findings) == found
    assert run.found.ignored == {entry: 0 if found else 2}
    if not found:
        assert "known upstream" in run.found.left_out["RPC-7"]


def test_ignored_tool_is_left_out_and_no_other_one() -> None:
    entry = IgnoredRow(row="RPC-7", scope="nap")
    cases: list[Case] = [[OPEN, ("call", each, {}, ())] for each in ("nap", "run")]
    run = played(MemoryTarget(broken("tools/call")), *cases, tools=("nap", "run"), ignored=(entry,))
    assert [each.cause and each.cause.scope for each in run.findings] == ["run"]
    assert run.found.ignored[entry] == 1
