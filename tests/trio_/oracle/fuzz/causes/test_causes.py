"""Findings by cause: one for each, and none that the user has accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz.campaign import _campaign
from mcp_trio.oracle.fuzz.campaign._findings import Findings, FuzzFinding
from mcp_trio.oracle.fuzz.causes._baseline import Baseline, IgnoredRow
from mcp_trio.oracle.fuzz.causes._cause import Cause, smallest_cause
from tests.trio_.oracle.fuzz.memory_target import (
    BATCHED,
    OLD,
    BatchTarget,
    MemoryTarget,
    answers,
    answers_batches,
    answers_ping_twice,
    played,
    same_each_time,
)
from tests.trio_.oracle.fuzz.sdk_servers import ReadingTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Step
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign

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


def test_types_of_a_wrong_meta_are_one_cause() -> None:
    def is_wrong(message: Mapping[str, Any]) -> bool:
        params = message.get("params", {})
        return not isinstance(params, dict) or not isinstance(params.get("_meta", {}), dict)

    values: list[Any] = [0, "", []]
    shown = [case("tools/list", {"_meta": each}) for each in values]
    for each in shown:
        run = played(MemoryTarget(silent(is_wrong)), each)
        assert causes_of(run) == [Cause("RPC-17", "request params/_meta:no-object", "*")]


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


def test_tools_beyond_the_limit_of_a_row_are_confirmed_in_its_first_finding() -> None:
    """A baseline doesn't hold for a tool what another one shows: it has to name each of them."""
    tools = tuple(f"tool{number}" for number in range(6))
    target = MemoryTarget(broken("tools/call"))
    calls: list[Case] = [[OPEN, ("call", name, {}, ())] for name in tools]
    run = played(target, *calls, tools=tools)
    assert [each.cause and each.cause.scope for each in run.findings] == list(tools[:3])
    first = run.findings[0]
    assert (first.methods, first.also) == (list(tools[3:]), [])
    assert first.further == [Cause("RPC-7", "request", each) for each in tools[3:]]
    causes = [each.cause for each in run.findings if each.cause is not None]
    known = Baseline(form=2, causes=frozenset([*causes, *first.further]))
    assert played(MemoryTarget(target.answers), *calls, tools=tools, baseline=known).findings == []


def test_calls_as_unsupported_tasks_are_one_finding_of_each_tool() -> None:
    """The tool may run nevertheless, and what it responds is its own."""
    tools = ("one", "two")
    target = MemoryTarget(doubling(lambda message: "task" in message.get("params", {})))
    calls: list[Case] = [[OPEN, ("call", name, {}, ("unsupported task",))] for name in tools]
    run = played(target, *calls, tools=tools)
    shape = "request params/task:object"
    assert causes_of(run) == [Cause("RPC-7", shape, name) for name in tools]


def test_unsupported_tasks_that_are_run_are_one_finding_of_all_tools() -> None:
    tools = ("one", "two")
    fault = TargetFault(kind="row", row="TSK-7", method="tools/call")
    findings = Findings(tools=tools)
    for name in tools:
        case_: Case = [OPEN, ("call", name, {}, ("unsupported task",))]
        findings.add(found(fault, case_, smallest_cause(fault, case_, tools)))
    (finding,) = findings.items
    assert finding.cause == Cause("TSK-7", "request params/task:object", "tools/call")
    assert finding.seen == len(tools)


def test_unsupported_task_is_a_finding_of_its_tool_if_a_valid_call_shows_it() -> None:
    target = MemoryTarget(broken("tools/call"))
    case_: Case = [OPEN, ("call", "one", {}, ("unsupported task",))]
    run = played(target, case_, tools=("one",))
    assert causes_of(run) == [Cause("RPC-7", "request", "one")]


def test_second_response_after_a_cancellation_is_one_cause_for_all_requests() -> None:
    """It depends on the time, so that cases with other requests beside it show it."""
    heard: list[Any] = []

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if message.get("method") == "notifications/cancelled":
            id = message["params"]["requestId"]
            yield {"jsonrpc": "2.0", "id": id, "error": {"code": 0, "message": "cancelled"}}
        heard.append(message)
        yield from answers(message)

    calls: list[Case] = [
        [OPEN, *case("prompts/list")[1:], ("call", name, {}, ()), ("cancel", 0)]
        for name in ("one", "two")
    ]
    for seconds in (0.0, 60.0):
        for each in calls:
            run = played(
                MemoryTarget(same_each_time(respond), times={"tools/call": 0.1}),
                each,
                tools=("one", "two"),
                shrinks=bool(seconds),
            )
            found = [each for each in run.findings if each.fault.row == "RPC-7"]
            assert [(each.cause, each.is_unclear) for each in found] == [(TWICE, False)]


@pytest.mark.parametrize("errors", [0, 1])
def test_tool_that_responds_twice_has_its_own_cause_despite_a_cancellation(errors: int) -> None:
    """One that's known of another request must not hide it."""
    heard: list[Any] = []

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if message.get("method") == "notifications/cancelled":
            id = message["params"]["requestId"]
            error = {"code": 0, "message": "Request cancelled"}
            yield from [{"jsonrpc": "2.0", "id": id, "error": error}] * errors
        elif message.get("method") == "tools/call":
            yield from [{"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}] * 2
        heard.append(message)
        yield from answers(message) if message.get("method") != "tools/call" else ()

    target = MemoryTarget(same_each_time(respond), times={"tools/call": 0.1})
    case_: Case = [OPEN, ("call", "one", {}, ()), ("cancel", 0), ("wait",)]
    run = played(target, case_, tools=("one",), baseline=baseline(TWICE), shrinks=False)
    twice = [each for each in run.findings if each.fault.row == "RPC-7"]
    assert [each.cause and each.cause.scope for each in twice] == ["one"]


def test_response_to_bytes_that_only_some_read_as_a_request_is_of_their_method() -> None:
    """Otherwise the last message of a case that isn't small would seem to be the cause."""
    respond = doubling(lambda message: message.get("id") == 7)
    target = ReadingTarget(lambda message: respond(message, 0))
    raw = '{"jsonrpc":"2.0","\\u0069d":7,"method":"prompts/list"}'
    run = played(target, [OPEN, ("mutate", raw), *PING[1:], ("wait",)], shrinks=False)
    assert [each.fault.method for each in run.findings] == ["prompts/list"]


TWICE = Cause("RPC-7", "request, answered again after its cancellation", "*")


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


def test_cause_of_several_messages_is_left_out_in_a_case_that_is_not_small() -> None:
    """The time may be too short to make it as small as the baseline's."""

    def answers_late(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        yield from answers(message)
        seen.append(message.get("method"))
        if message.get("method") == "ping" and "prompts/list" in seen:
            yield from answers(message)

    seen: list[Any] = []
    long: Case = [*case("prompts/list"), ("wait",), *case("tools/list")[1:], *PING[1:]]
    known = Cause("RPC-7", "request, beside prompts/list request", "ping")
    target = MemoryTarget(same_each_time(answers_late))
    run = played(target, long, baseline=baseline(known), shrinks=False)
    assert run.findings == []
    assert run.found.known == {known: 1}


def test_finding_that_is_not_small_is_left_out_although_another_fault_led_to_it() -> None:
    """The case was examined because of its `tools/list`, which isn't in the baseline."""
    long: Case = [*PING, ("wait",), ("notify", "notifications/acme"), *case("tools/list")[1:]]
    known = Cause("RPC-35", "request, beside notifications/acme notification", "ping")
    fault = TargetFault(kind="row", row="RPC-35", method="ping")
    for accepted, is_new in ((known, False), (Cause("RPC-35", known.shape, "tools/list"), True)):
        findings = Findings(baseline=baseline(accepted))
        assert findings.add(found(fault, long)) is is_new
        assert findings.known[accepted] == (not is_new)


LISTS: Step = ("request", "tools/list", {}, "int", "whole")


def batch(*methods: str) -> Step:
    return ("batch", [[each, {}, "int"] for each in methods])


@pytest.mark.parametrize("shrinks", [True, False])
def test_dropped_batches_are_one_finding_whose_baseline_hides_no_dropped_request(
    shrinks: bool,
) -> None:
    """SDKs drop batches, so most baselines have them. What was sent alone is the server's."""

    def drops_batches(message: Any) -> Iterator[dict[str, Any]]:
        return iter(()) if isinstance(message, list) else answers_batches(message)

    def drops_lists(message: Any) -> Iterator[dict[str, Any]]:
        is_dropped = isinstance(message, list) or message.get("method") == "tools/list"
        return iter(()) if is_dropped else answers_batches(message)

    opening: Step = ("open", BATCHED, "whole", "all")
    some = (batch("tools/list"), batch("ping", "tools/list"), batch("tools/list", "prompts/list"))
    long: Case = [opening, *(step for each in some for step in (each, ("wait",))), LISTS]
    target = BatchTarget(same_each_time(drops_batches))
    run = played(target, [opening, batch("tools/list")], long, shrinks=shrinks)
    assert {each.fault.is_advice for each in run.findings} == {True}
    causes = [each for each in causes_of(run) if each is not None]
    assert {each.shape for each in causes} == {"batch of request"}
    if shrinks:
        assert causes == [Cause("RPC-35", "batch of request", "*")]
    worse = BatchTarget(same_each_time(drops_lists))
    run = played(worse, long, baseline=baseline(*causes), shrinks=shrinks)
    failures = [each.fault for each in run.findings if not each.fault.is_advice]
    assert [each.method for each in failures] == ["tools/list"]


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


# -- A cause is no wider than what was shown -------------------------------------------------------


def triggered(is_trigger: Callable[[Mapping[str, Any]], bool]) -> Any:
    """Return the answers of a server that responds twice to all after a message."""
    spoilt: set[int] = set()

    def respond(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        yield from answers(message)
        if start in spoilt and message.get("method") != "initialize":
            yield from answers(message)
        if is_trigger(message):
            spoilt.add(start)

    return respond


def test_fault_that_an_earlier_message_causes_is_not_one_of_any_method() -> None:
    """Any method shows it after that message. A baseline hides nothing without the message."""
    trigger = ("request", "prompts/get", {"name": "p"}, "int", "whole")
    shown: Case = [OPEN, trigger, ("request", "tools/list", {}, "int", "whole")]
    run = played(MemoryTarget(triggered(lambda message: message["method"] == "prompts/get")), shown)
    (finding,) = run.findings
    assert finding.cause is not None
    assert "beside" in finding.cause.shape
    assert finding.cause.scope != "*"
    known = baseline(finding.cause)
    again = played(MemoryTarget(triggered(lambda each: each["method"] == "prompts/get")), shown,
                   baseline=known)  # fmt: skip
    assert again.findings == []
    assert again.found.known[finding.cause] > 0
    call: Case = [OPEN, ("call", "nap", {}, ())]
    for new in (case("tools/list"), call, [OPEN, trigger, call[1]]):
        other = MemoryTarget(doubling(lambda message: message["method"].startswith("tools/")))
        assert len(played(other, new, tools=("nap",), baseline=known).findings) == 1


def test_fault_that_the_opening_shows_too_is_not_widened() -> None:
    """Without its step, the case shows the fault as well: nothing is known of the step."""
    fault = same_each_time(answers_ping_twice)
    run = played(MemoryTarget(fault), [OPEN, ("request", "ping", 5, "int", "whole")])
    assert causes_of(run) == [PING_CAUSE]


@pytest.mark.parametrize("shrinks", [True, False])
def test_flaky_or_long_case_has_no_cause_that_a_baseline_could_hold(*, shrinks: bool) -> None:
    """Without shrinking, and of a flaky fault, the other messages are there by chance."""
    starts = {0, 1} if shrinks else set(range(99))

    def respond(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        yield from answers(message)
        if start in starts and message.get("params", {}).get("name") == "bar":
            yield from answers(message)

    drawn = calls("foo", "bar")
    run = played(MemoryTarget(respond), drawn, tools=("foo", "bar"), shrinks=shrinks)
    (finding,) = run.findings
    assert finding.is_solid is not shrinks
    assert finding.is_unclear


@pytest.mark.parametrize("extras", [("task",), ("progress",), ("progress", "task", "text")])
def test_fault_of_a_call_is_one_cause_with_and_without_a_task(extras: tuple[str, ...]) -> None:
    call: Case = [OPEN, ("call", "nap", {}, extras)]
    run = played(MemoryTarget(broken("tools/call")), call, tools=("nap",))
    assert causes_of(run) == [Cause("RPC-7", "request", "nap")]


def hanging(is_last: Callable[[Mapping[str, Any]], bool]) -> Any:
    """Return the answers of a server that answers nothing any more from a message on."""
    hung: set[int] = set()

    def respond(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if start in hung or is_last(message):
            hung.add(start)
            return
        yield from answers(message)

    return respond


CHANGED: Case = [OPEN, ("notify", "notifications/roots/list_changed", "absent")]
ACME: Case = [OPEN, ("notify", "notifications/acme", "absent")]


def test_two_hangs_are_two_findings_and_a_baseline_of_one_shows_the_other() -> None:
    methods = ("notifications/roots/list_changed", "notifications/acme")

    def run(**options: Any) -> list[Cause | None]:
        target = MemoryTarget(hanging(lambda message: message["method"] in methods))
        return causes_of(played(target, CHANGED, ACME, **options))

    hangs = [Cause("hang", "notification", each) for each in (methods[0], "unknown method")]
    assert run() == hangs
    for known, new in (hangs, reversed(hangs)):
        assert run(baseline=baseline(known)) == [new]


@pytest.mark.parametrize(
    ("scope", "found"), [("", 0), ("notifications/roots/list_changed", 0), ("ping", 1)]
)
def test_ignored_hang_is_that_of_its_message_and_not_of_the_ping_after_it(
    scope: str, found: int
) -> None:
    target = MemoryTarget(hanging(lambda each: str(each["method"]).endswith("list_changed")))
    run = played(target, CHANGED, ignored=(IgnoredRow(row="hang", scope=scope),))
    assert len(run.findings) == found


def test_faults_of_tools_beyond_the_limit_of_a_row_are_named_and_not_known() -> None:
    """No play has confirmed them: the next run, with this one as its baseline, finds them."""
    tools = ("t0", "t1", "t2", "t3", "t4")
    cases: list[Case] = [[OPEN, ("call", each, {}, ())] for each in tools]
    run = played(MemoryTarget(broken("tools/call")), *cases, tools=tools)
    assert [each.cause and each.cause.scope for each in run.findings] == ["t0", "t1", "t2"]
    assert run.findings[0].methods == ["t3", "t4"]
    assert run.findings[0].also == []
    known = baseline(*(each.cause for each in run.findings if each.cause))
    again = played(MemoryTarget(broken("tools/call")), *cases, tools=tools, baseline=known)
    assert [each.cause and each.cause.scope for each in again.findings] == ["t3", "t4"]


def fault_of(kind: Any, method: str = "tools/call") -> TargetFault:
    row = {"crash": "crash", "hang": "RPC-35", "row": "SAMP-2"}[kind]
    return TargetFault(kind=kind, row=row, detail="1" if kind == "crash" else "", method=method)


def found(fault: TargetFault, case: Case, cause: Cause | None = None, hits: int = 3) -> FuzzFinding:
    return FuzzFinding(fault=fault, case=case, hits=hits, plays=3, cause=cause)


def calls(*tools: str) -> Case:
    return [OPEN, *(("call", each, {}, ()) for each in tools)]


@pytest.mark.parametrize("is_certain", [True, False])
def test_failure_is_never_named_in_findings_that_do_not_fail_the_run(is_certain: bool) -> None:
    """Three flaky or uncertain findings of its row are no reason to stop looking."""
    tools = ("a", "b", "c", "d", "e", "f", "g")
    findings = Findings(tools=tools)
    for tool in tools[:3]:
        weak = replace(fault_of("row"), is_certain=is_certain)
        assert findings.add(found(weak, calls(tool), hits=1 if is_certain else 3))
    for tool in tools[3:6]:
        assert findings.wants(fault_of("row"), calls(tool))
        failure = found(fault_of("row"), calls(tool))
        assert findings.add(failure)
        assert failure.is_failure
    further = found(fault_of("row"), calls("g"), Cause("SAMP-2", "request", "g"))
    assert not findings.add(further)
    assert findings.items[3].further == [further.cause]
    assert [each.is_failure for each in findings.items] == [False] * 3 + [True] * 3


def test_failure_of_a_method_is_examined_despite_three_uncertain_findings() -> None:
    methods = ("ping", "tools/list", "prompts/list")
    findings = Findings()
    for each in methods:
        weak = replace(fault_of("row", each), is_certain=False)
        assert findings.add(found(weak, case(each)))
    other = fault_of("row", "resources/list")
    assert findings.wants(other, case("resources/list"))
    assert not findings.wants(replace(other, is_certain=False), case("resources/list"))


def test_failure_takes_the_place_of_an_uncertain_finding_of_its_cause() -> None:
    findings = Findings(tools=("a",))
    weak = replace(fault_of("row"), is_certain=False)
    assert findings.add(found(weak, calls("a")))
    assert findings.wants(fault_of("row"), calls("a"))
    assert findings.add(found(fault_of("row"), calls("a")))
    assert [each.is_failure for each in findings.items] == [True]
    assert not findings.wants(weak, calls("a"))
    assert not findings.add(found(weak, calls("a")))
    assert [each.is_failure for each in findings.items] == [True]


@pytest.mark.parametrize("kind", ["crash", "hang"])
def test_each_tool_that_ends_or_hangs_a_server_is_a_finding(kind: str) -> None:
    tools = [f"t{number}" for number in range(7)]
    findings = Findings(tools=tools)
    for each in tools:
        assert findings.wants(fault_of(kind), calls(each))
        assert findings.add(found(fault_of(kind), calls(each)))
    assert [each.cause and each.cause.scope for each in findings.items] == tools


def test_faults_that_turn_out_to_be_known_use_up_no_examination_of_others() -> None:
    known = Cause("crash", "exit status 1 after request", "foo")
    findings = Findings(baseline(known), tools=("foo", "bar"))
    for _ in range(5):
        assert not findings.add(found(fault_of("crash"), calls("foo"), known))
        assert findings.wants(fault_of("crash"), calls("bar"))


def test_flaky_crash_of_one_tool_is_not_replaced_by_that_of_another() -> None:
    findings = Findings(tools=("foo", "bar"))
    fault = fault_of("crash")
    assert findings.add(found(fault, calls("foo"), hits=1))
    assert findings.find_flaky(fault, calls("foo")) is findings.items[0]
    assert findings.find_flaky(fault, calls("bar")) is None


@pytest.mark.parametrize("kind", ["row", "crash", "hang"])
def test_finding_whose_case_was_not_made_small_is_in_no_baseline(kind: str) -> None:
    """Another of its row is joined to it if they have a possible cause in common."""
    tools = ("foo", "bar", "baz")
    fault = fault_of(kind, "sampling/createMessage" if kind == "row" else "tools/call")
    findings = Findings(tools=tools)
    assert findings.add(found(fault, calls("foo", "bar")))
    assert not findings.add(found(fault, calls("foo", "baz")))
    (finding,) = findings.items
    assert [each.scope for each in finding.likely] == ["foo"]
    assert finding.is_unclear
    assert findings.add(found(fault, calls("baz"), smallest_cause(fault, calls("baz"), tools)))


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_cause_of_a_case_that_was_not_made_small_for_want_of_time_is_unclear(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """It would name messages that have nothing to do with the fault."""
    monkeypatch.setattr(_campaign, "MAX_SECONDS", seconds)
    heard: dict[int, list[Any]] = {}

    def respond(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        heard.setdefault(start, []).append(message.get("method"))
        yield from answers(message)
        if message.get("method") == "tools/call" and "prompts/list" in heard[start]:
            yield from answers(message)

    steps: Case = [*case("prompts/list"), *case("tools/list")[1:], *case("ping")[1:]]
    run = played(MemoryTarget(respond), [*steps, ("call", "foo", {}, ())], tools=("foo",))
    (finding,) = run.findings
    assert finding.is_unclear is (seconds == 0.0)
    if seconds:
        assert finding.cause == Cause("RPC-7", "request, beside prompts/list request", "foo")


@pytest.mark.parametrize("first", [0, 1])
def test_finding_of_a_simpler_message_takes_the_place_of_the_other_one(first: int) -> None:
    """A file outside of the process can hide it from the first examination."""
    fault = fault_of("row")
    calls_: list[Case] = [[OPEN, ("call", "foo", {}, each)] for each in ((), ("progress",))]
    two = [found(fault, each, smallest_cause(fault, each, ("foo",))) for each in calls_]
    findings = Findings(tools=("foo",))
    findings.add(two[first])
    findings.add(two[1 - first])
    (finding,) = findings.items
    assert finding.cause == Cause("SAMP-2", "request", "foo")
    assert finding.case == calls_[0]
    assert finding.number == 1


def test_known_crash_of_an_sdk_is_clear_in_any_case() -> None:
    fault = TargetFault(kind="crash", row="crash", detail="1 https://a/1", method="tools/call")
    findings = Findings(tools=("foo", "bar"))
    finding = found(fault, calls("foo", "bar"))
    assert findings.add(finding)
    assert finding.cause == Cause("crash", "exit status 1: https://a/1", "*")
    assert not finding.is_unclear
    assert findings.wants(fault_of("crash"), calls("bar")), "another crash is another finding"


@pytest.mark.parametrize(
    ("steps", "shape"),
    [
        ([("request", "prompts/get", {"name": "p"}, "int")], "request"),
        ([("burst", 3, "prompts/get", {"name": "p"})], "burst of request"),
        (
            [
                ("burst", 3, "prompts/get", {"name": "p"}),
                ("request", "prompts/get", {"name": "p"}, "int"),
            ],
            "burst of request",
        ),
    ],
)
def test_case_of_one_method_that_was_not_made_small_has_the_shape_of_what_was_sent(
    steps: Case, shape: str
) -> None:
    """No play has shown that one request of a burst is enough, so no baseline hides that one."""
    fault = TargetFault(kind="row", row="PRM-4", method="prompts/get")
    drawn: Case = [OPEN, ("call", "t", {}, ()), *steps]
    findings = Findings()
    finding = found(fault, drawn)
    assert findings.add(finding)
    assert finding.cause == Cause("PRM-4", shape, "prompts/get")
    assert not finding.is_unclear
