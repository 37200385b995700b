"""A run of the fuzzer: what is confirmed, called flaky, made small, left out, and cancelled."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._probe import Offers, probe
from mcp_trio.oracle.fuzz._sent_request import SentRequest
from mcp_trio.oracle.fuzz.campaign import _campaign, _memory
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from tests.trio_.oracle.fuzz.memory_target import (
    NEW,
    OLD,
    MemorySession,
    MemoryTarget,
    answers,
    answers_ping_twice,
    broken_in,
    played,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Step

START_TIME = 10.0  # seconds

OPEN_NEW = ("open", NEW, "whole", "all")
COMPLETE = {"resultType": "complete", "content": []}
PING: Case = [("open", OLD, "whole", "all"), ("request", "ping", {}, "int", "whole"), ("wait",)]


@pytest.mark.parametrize(
    "steps",
    [
        [("open", OLD, "whole", "all"), ("request", "ping", {}, "int", "whole"), ("wait",)],
        [("open", OLD, "half", "all")],
        [("open", OLD, "twice", "all")],
        [("open", NEW, "whole", "all"), ("request", "tools/list", {}, "int", "whole"), ("wait",)],
        [("open", NEW, "whole", "all"), ("request", "tools/list", {}, "int", "whole")],
        [("open", NEW, "whole", "all"), ("request", "tools/list", [1], "int", "whole")],
        [("open", NEW, "whole", "all"), ("notify", "a", {})],
    ],
)
def test_target_that_starts_in_ten_seconds_has_no_fault(steps: list[tuple[Any, ...]]) -> None:
    target = MemoryTarget(same_each_time(answers), START_TIME)
    run = played(target, steps)
    assert run.findings == []
    assert not run.unconfirmed
    assert run.messages > 0


def test_target_that_starts_slowly_and_is_silent_is_found() -> None:
    """The time for the start hides no request that the server ignores."""

    def ignores_lists(message: Any, start: int) -> Any:
        return iter(()) if message.get("method") == "tools/list" else answers(message)

    target = MemoryTarget(ignores_lists, START_TIME)
    run = played(
        target, [("open", NEW, "whole", "all"), ("request", "tools/list", {}, "int", "whole")]
    )
    assert [each.fault.row for each in run.findings] == ["RPC-35"]


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize(
    ("params", "shown"),
    [(None, "null"), (True, "true"), ("a", '"a"'), ([1, None], "[1, null]"), (82, "82")],
)
def test_silence_to_a_request_without_an_object_as_params_is_a_reading(
    revision: str, params: Any, shown: str
) -> None:
    """The official SDKs drop such a request. The specification doesn't say that they may not."""

    def drops(message: Any, start: int) -> Any:
        return answers(message) if isinstance(message.get("params", {}), dict) else iter(())

    step: Step = ("request", "tools/list", params, "int", "absent")
    case: Case = [("open", revision, "whole", "all"), step]
    run = played(MemoryTarget(drops), case, shrinks=False)
    (finding,) = run.findings
    assert (finding.fault.row, finding.fault.level) == ("RPC-17", "reading")
    assert finding.is_solid
    assert not finding.is_failure
    assert finding.fault.sentence == (
        "the request tools/list was not answered within 2 s; the message was malformed: its params"
        f" are {shown}, not an object"
    )


@pytest.mark.parametrize(
    ("more", "defect"),
    [
        ({}, ""),
        ({"params": {"name": 7}}, ""),
        ({"extra": 1}, 'it has the member "extra"'),
        ({"params": ["a" * 99]}, f'its params are ["{"a" * 55}..., not an object'),
        ({"params": {"_meta": {"progressToken": 7, "acme": []}}}, ""),
        ({"params": {"_meta": 1}}, "its params have the _meta 1, not an object"),
        ({"params": {"_meta": None}}, "its params have the _meta null, not an object"),
        (
            {"params": {"_meta": {"progressToken": 1.5}}},
            "its progressToken is 1.5, not a string or an integer",
        ),
    ],
)
def test_request_has_a_defect_if_strict_servers_do_not_take_it(
    more: dict[str, Any], defect: str
) -> None:
    message = {"jsonrpc": "2.0", "id": 7, "method": "ping", **more}
    assert SentRequest(message, is_plain=False, is_bounded=True).defect == defect


def test_server_that_waits_for_its_tool_is_noted_and_has_no_fault() -> None:
    busy: set[int] = set()

    def one_at_a_time(message: Any, start: int) -> Any:
        if message.get("method") == "tools/call":
            busy.add(start)
        return iter(()) if start in busy else answers(message)

    case: Case = [("open", OLD, "whole", "all"), ("call", "nap", {})]
    run = played(MemoryTarget(one_at_a_time), case, tools=("nap",))
    assert run.findings == []
    assert run.slow == {"tools/call nap": 1}
    assert run.notes == ["the server answers nothing while a call runs"]


class SlowStart(MemorySession):
    """A session of a process that is known to start in a second."""

    longest_start = 1.0


class SlowTarget(MemoryTarget):
    session_class = SlowStart


@pytest.mark.parametrize("tool", ["quick", "slow"])
def test_start_of_a_process_does_not_count_as_time_of_its_tool(tool: str) -> None:
    def quick_only(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if message.get("method") != "tools/call":
            yield from answers(message)
        elif message["params"]["name"] == "quick":
            yield {"jsonrpc": "2.0", "id": message["id"], "result": COMPLETE}

    case: Case = [OPEN_NEW, ("call", tool, {}, ())]
    run = played(SlowTarget(quick_only, start_time=0.9), case, tools=("quick", "slow"))
    assert run.findings == []
    assert dict(run.slow) == ({"tools/call slow": 1} if tool == "slow" else {})


class SlowStartSession(MemorySession):
    """A conversation with a process that took `longest_start` seconds to start."""

    longest_start = 5.0


class SlowStartTarget(MemoryTarget):
    """A server in memory that starts slowly."""

    session_class = SlowStartSession


@pytest.mark.parametrize(("seconds", "found"), [(7.0, []), (30.0, ["RPC-35"])])
def test_first_responses_of_a_slow_process_may_take_as_long_as_its_start(
    seconds: float, found: list[str]
) -> None:
    """It loads what it needs then, and the machine can be slow from the beginning of the run."""
    case: Case = [("open", OLD, "whole", "all"), ("request", "prompts/list", {}, "int")]
    target = SlowStartTarget(same_each_time(answers), times={"prompts/list": seconds})
    run = played(target, case)
    assert [each.fault.row for each in run.findings] == found
    assert not run.unconfirmed
    usual = MemoryTarget(same_each_time(answers), times={"prompts/list": 7.0})
    assert [each.fault.row for each in played(usual, case).findings] == ["RPC-35"]


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("more", [(), (("call", "nap", {}),)])
def test_server_that_handles_one_request_at_a_time_has_no_fault(
    revision: str, more: tuple[Any, ...]
) -> None:
    target = MemoryTarget(same_each_time(answers), times={"tools/list": 1.5})
    case = [("open", revision, "whole", "all"), ("burst", 10, "tools/list", {}), *more]
    run = played(target, case, tools=("nap",))
    assert run.findings == []
    assert not run.unconfirmed


CANCELLED: Case = [("open", OLD, "whole", "all"), ("call", "nap", {}), ("cancel", 0)]


@pytest.mark.parametrize("more", [(), (("request", "tools/list", {}, "int", "whole"),)])
@pytest.mark.parametrize(("seconds", "rows"), [(5.0, []), (60.0, ["RPC-35"])])
def test_server_that_ends_a_cancelled_call_first_has_no_failure(
    more: tuple[Any, ...], seconds: float, rows: list[str]
) -> None:
    """A call that takes very long looks like a hang: that is something to look at."""
    target = MemoryTarget(same_each_time(answers), times={"tools/call": seconds})
    run = played(target, [*CANCELLED, *more], tools=("nap",), shrinks=False)
    assert [each.fault.row for each in run.findings] == rows
    assert not any(each.is_failure for each in run.findings)


class LateSession(MemorySession):
    """A session with a server that answers a call after 0.7 s, and all else meanwhile."""

    call: Mapping[str, Any] | None = None
    answers_at = 0.0

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        if message.get("method") == "tools/call":
            self.record(TraceLine(t=self.time(), sender="client", raw=text))
            self.call, self.answers_at = message, trio.current_time() + 0.7
            await trio.lowlevel.checkpoint()
        else:
            await super().send_text(text, message)

    async def wait_changed(self, deadline: float) -> bool:
        if self.call is None or deadline < self.answers_at:
            return await super().wait_changed(deadline)
        await trio.sleep_until(self.answers_at)
        response = {"jsonrpc": "2.0", "id": self.call["id"], "result": COMPLETE}
        self.call = None
        self.receive(TraceLine(t=self.time(), sender="server", raw=json.dumps(response)))
        return True


class LateTarget(MemoryTarget):
    session_class = LateSession


@pytest.mark.parametrize(("revision", "rows"), [(NEW, ["CXL-7"]), (OLD, [])])
def test_response_to_a_call_that_was_cancelled_for_its_time_is_found(
    revision: str, rows: list[str]
) -> None:
    """The response comes 0.4 s after the cancellation. Before 2026-07-28 that is no fault."""
    case: Case = [("open", revision, "whole", "all"), ("call", "nap", {})]
    target = LateTarget(same_each_time(answers))
    run = played(target, case, tools=("nap",), shrinks=False, call_timeout=0.3)
    found = [each for each in run.findings if each.fault.row == "CXL-7"]
    assert [each.fault.row for each in found] == rows
    assert all(each.is_solid for each in found)


class UrlSession(MemorySession):
    """A session with a server that goes on when the session ends."""

    transport = "http"


class UrlMemoryTarget(MemoryTarget):
    kind = "http"
    session_class = UrlSession


def test_url_that_waits_for_its_tool_has_no_fault_in_the_next_case() -> None:
    """A URL can't be restarted, so the fuzzer waits until the server has finished the tool."""
    busy_until = 0.0

    def one_at_a_time(message: Any, start: int) -> Any:
        nonlocal busy_until
        if trio.current_time() < busy_until:
            return iter(())
        if message.get("method") == "tools/call":
            busy_until = trio.current_time() + 25
            return iter(())
        return answers(message)

    opening = ("open", NEW, "whole", "all")
    cases: list[Case] = [[opening, ("call", "nap", {})], [opening, ("request", "tools/list", {})]]
    run = played(UrlMemoryTarget(one_at_a_time), *cases, tools=("nap",))
    assert run.findings == []
    assert not run.unconfirmed
    assert not run.is_away


def test_hang_after_a_response_to_a_later_request_is_a_failure() -> None:
    def hangs(message: Any, start: int) -> Any:
        return iter(()) if message.get("method") == "tools/list" else answers(message)

    case: Case = [*CANCELLED, ("request", "ping", {}, "int", "whole"), ("wait",)]
    case.append(("request", "tools/list", {}, "int", "whole"))
    run = played(MemoryTarget(hangs), case, tools=("nap",))
    assert [each.fault.row for each in run.findings] == ["RPC-35"]
    assert run.findings[0].is_failure


def test_fault_of_each_play_is_solid_and_made_small() -> None:
    target = MemoryTarget(same_each_time(answers_ping_twice))
    noise = ("request", "tools/list", {"cursor": "x"}, "text", "whole")
    run = played(target, [PING[0], noise, noise, PING[1], noise, ("wait",)])
    (finding,) = run.findings
    assert (finding.fault.row, finding.hits, finding.plays) == ("RPC-7", 3, 3)
    assert finding.case == [("open", NEW, "whole", "all"), PING[1]]
    assert finding.steps_before == 6
    assert finding.is_solid
    assert finding.is_failure
    assert target.open_sessions == set()


@pytest.mark.parametrize(
    ("broken_starts", "hits"), [({0, 1}, 1), ({0, 2, 3}, 2), ({0, 3}, 1), ({0, 1, 2}, 2)]
)
def test_fault_of_some_plays_is_flaky_with_its_rate(broken_starts: set[int], hits: int) -> None:
    target = MemoryTarget(broken_in(broken_starts))
    run = played(target, PING, shrinks=False)
    (finding,) = run.findings
    assert (finding.hits, finding.plays) == (hits, 3)
    assert not finding.is_solid
    assert not finding.is_failure
    assert finding.lines, "the trace is of a play that has shown it"
    assert sum('"result":{}' in (each.raw or "").replace(" ", "") for each in finding.lines) == 2


def test_fault_that_waiting_shows_each_time_is_solid_with_waits() -> None:
    """Starts 1 to 3 play the case as it was drawn, 4 to 6 wait after each step."""
    run = played(MemoryTarget(broken_in({0, 1, 4, 5, 6})), PING[:2], shrinks=False)
    (finding,) = run.findings
    assert finding.is_solid
    assert finding.case == [PING[0], ("wait",), PING[1]]


def test_flaky_fault_is_replaced_by_a_case_that_shows_it_each_time() -> None:
    """Start 0 plays the first case, 1 to 6 confirm it; the second case is always answered twice."""
    twice = broken_in({0, 1})

    def broken(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        is_second = message.get("id") in ("1001", "1002") and message.get("method") == "ping"
        yield from answers_ping_twice(message) if is_second else twice(message, start)

    second: Case = [PING[0], ("request", "ping", {}, "digits", "whole"), ("wait",)]
    run = played(MemoryTarget(broken), PING, second, second, shrinks=False)
    (finding,) = run.findings
    assert finding.is_solid
    assert finding.case == second[:2]
    assert (finding.number, finding.seen) == (1, 3)


@pytest.mark.parametrize(
    ("first_starts", "second_starts", "kept", "hits"),
    [
        ({1, 2}, {7}, "first", 2),  # worse
        ({1, 2}, {7, 8}, "first", 2),  # as good: it was reported already
        ({1, 2}, {7, 8, 9}, "second", 3),
        ({1}, {7, 8}, "second", 2),
    ],
)
def test_flaky_finding_is_replaced_by_a_better_one_only(
    first_starts: set[int], second_starts: set[int], kept: str, hits: int
) -> None:
    """Start 0 plays both cases; 1 to 6 confirm the first one, 7 to 12 the second."""

    def broken(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        is_second = isinstance(message.get("id"), str)
        twice = start in {0} | (second_starts if is_second else first_starts)
        yield from (answers_ping_twice if twice else answers)(message)

    second: Case = [PING[0], ("request", "ping", {}, "digits", "whole"), ("wait",)]
    run = played(MemoryTarget(broken), PING, second, shrinks=False)
    (finding,) = run.findings
    assert (finding.hits, finding.number, finding.seen) == (hits, 1, 2)
    assert finding.case == (PING if kept == "first" else second)[:2]


def test_shrunk_case_that_is_not_shown_again_gives_way_to_a_larger_one() -> None:
    """A process answers twice the first ping after two lists, and after one list by chance."""
    lists: dict[int, int] = {}
    shown: list[int] = []

    def chance(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        yield from answers(message)
        if message.get("method") == "tools/list":
            lists[start] = lists.get(start, 0) + 1
        elif message.get("method") == "ping" and lists.get(start, 0) == 1 and len(shown) < 2:
            shown.append(start)
            yield from answers(message)
        elif message.get("method") == "ping" and lists.get(start, 0) >= 2:
            yield from answers(message)

    one: Case = [("request", "tools/list", {}, "int", "whole"), ("wait",)]
    run = played(MemoryTarget(chance), [PING[0], *one * 4, *PING[1:]])
    (finding,) = run.findings
    assert len(shown) == 2, "two plays have shown a case that is too small"
    assert finding.is_solid
    assert sum(step[:2] == ("request", "tools/list") for step in finding.case) == 2


def answers_late(method: str) -> Callable[..., Iterator[dict[str, Any]]]:
    """Return a server that answers a cancelled call when it has a request with `method`."""
    held: dict[int, Any] = {}

    def late(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if message.get("method") == "tools/call":
            held[start] = message
            return
        yield from answers(message)
        if message.get("method") == method and start in held:
            yield {"jsonrpc": "2.0", "id": held.pop(start)["id"], "result": COMPLETE}

    return late


HOLD: Case = [OPEN_NEW, ("call", "hold", {"a": 1}, ("progress",)), ("cancel", 0)]
LIST_TOOLS: Step = ("request", "tools/list", {}, "int")
LIST_PROMPTS: Step = ("request", "prompts/list", {}, "int")


def test_fault_of_a_request_of_the_case_before_is_found_with_that_case_only() -> None:
    other: Case = [OPEN_NEW, LIST_TOOLS]
    asked: Case = [OPEN_NEW, LIST_PROMPTS]
    target = MemoryTarget(answers_late("prompts/list"))
    run = played(target, other, other, HOLD, asked, tools=("hold",), shrinks=False)
    finding = next(each for each in run.findings if each.fault.row == "CXL-7")
    assert finding.is_solid
    assert finding.steps_before == len(HOLD) + len(asked)


def test_fault_of_a_cancelled_request_is_shown_by_that_request_alone() -> None:
    case: Case = [OPEN_NEW, LIST_PROMPTS, ("wait",), *HOLD[1:], LIST_PROMPTS, ("wait",), LIST_TOOLS]
    target = MemoryTarget(answers_late("tools/list"))
    run = played(target, case, tools=("hold",))
    finding = next(each for each in run.findings if each.fault.row == "CXL-7")
    assert finding.is_solid
    assert finding.case[1:] == [("call", "hold", {}, ()), ("cancel", 0), LIST_TOOLS]
    assert finding.steps_before == len(case)


def test_late_response_to_a_cancelled_call_is_waited_for_when_it_is_confirmed() -> None:
    """The case has a request that takes 0.9 s, without which it ends before the response."""
    case: Case = [OPEN_NEW, ("call", "nap", {}), ("cancel", 0), LIST_TOOLS, LIST_PROMPTS]
    target = LateTarget(same_each_time(answers), times={"prompts/list": 0.9})
    run = played(target, case, tools=("nap",))
    finding = next(each for each in run.findings if each.fault.row == "CXL-7")
    assert finding.is_solid
    assert finding.case[1:] == [("call", "nap", {}, ()), ("cancel", 0), LIST_TOOLS]


@pytest.mark.parametrize("recovers", [True, False])
def test_server_at_url_that_hangs_for_good_ends_the_run_with_all_steps(recovers: bool) -> None:
    """Otherwise each smaller case seems to show the fault."""
    hung: set[int] = set()

    def hangs(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if message.get("method") == "prompts/list":
            hung.add(start)
        if not (start in hung if recovers else hung):
            yield from answers(message)

    ping: Case = [PING[0], ("request", "ping", {}, "int", "whole")]
    hang: Case = [PING[0], ("request", "prompts/list", {}, "int", "whole"), ping[1]]
    run = played(UrlMemoryTarget(hangs), ping, hang, ping, shrinks=False)
    (finding,) = run.findings
    assert finding.fault.row == "RPC-35"
    assert run.is_away is not recovers
    assert finding.case == (hang if recovers else [*ping, *hang])


def test_fault_of_no_further_play_is_only_counted() -> None:
    run = played(MemoryTarget(broken_in({0})), PING)
    assert run.findings == []
    assert run.unconfirmed == {"RPC-7 ping": 1}


def test_fault_that_needs_earlier_cases_is_found_with_them() -> None:
    """The server answers the third list of a process twice."""
    lists: dict[int, int] = {}

    def answers_third_twice(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        yield from answers(message)
        if message.get("method") == "tools/list":
            lists[start] = lists.get(start, 0) + 1
            if lists[start] == 3:
                yield from answers(message)

    case: Case = [PING[0], ("request", "tools/list", {}, "int", "whole")]
    run = played(MemoryTarget(answers_third_twice), case, case, case)
    (finding,) = run.findings
    assert (finding.fault.row, finding.is_solid) == ("RPC-7", True)
    assert finding.case == [("open", NEW, "whole", "all"), *[case[1]] * 3]
    assert finding.steps_before == 6


@pytest.mark.parametrize(
    ("revision", "method"), [(OLD, "ping"), (NEW, "server/discover")], ids=["ping", "discover"]
)
def test_fault_that_only_the_probe_shows_is_confirmed(revision: str, method: str) -> None:
    def answers_probe_twice(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        yield from answers(message)
        if message.get("method") == method:
            yield from answers(message)

    opening = ("open", revision, "whole", "all")
    run = played(MemoryTarget(answers_probe_twice), [opening, ("notify", "notifications/x", {})])
    (finding,) = run.findings
    assert (finding.fault.row, finding.fault.method, finding.is_solid) == ("RPC-7", method, True)
    assert finding.case[1:] == [("request", method, {}, "int", "whole")]
    assert not run.unconfirmed


def test_activity_has_the_beginning_of_a_long_method() -> None:
    """The method is the word of the server, which can be megabytes."""
    shown: set[str] = set()

    def asks(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        shown.add(run.activity)
        if message.get("method") == "ping":
            yield {"jsonrpc": "1.0", "id": 1, "method": "a" * 5_000}
        yield from answers(message)

    target = MemoryTarget(same_each_time(asks))
    choices = CaseChoices(Offers(revisions=[OLD]), ())
    run = _campaign.Campaign(target, None, choices, _campaign.CampaignOptions())
    trio.run(run.run, [PING], clock=trio.testing.MockClock(autojump_threshold=0))
    assert len(run.findings[0].fault.method) == 5_000
    assert {each.partition(" ")[0] for each in shown} == {"", "confirming", "shrinking"}
    assert any("aaa" in each for each in shown)
    assert all(len(each) < 120 for each in shown)
    assert run.activity == ""


@pytest.mark.parametrize("shrinks", [True, False])
@pytest.mark.parametrize(
    ("method", "step"),
    [
        ("prompts/get", ("request", "prompts/get", {}, "int", "whole")),
        ("tools/call", ("call", "nap", {}, ())),
    ],
)
def test_fault_of_one_request_is_shown_by_that_request_alone(
    method: str, step: Step, shrinks: bool
) -> None:
    """A guess keeps only the opening and the faulty request, which saves most of the shrinking."""

    def twice(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        yield from answers(message)
        if message.get("method") == method:
            yield from answers(message)

    case: Case = [OPEN_NEW, LIST_TOOLS, step, LIST_PROMPTS, ("wait",)]
    target = MemoryTarget(same_each_time(twice))
    (finding,) = played(target, case, tools=("nap",), shrinks=shrinks).findings
    assert finding.is_solid
    assert finding.steps_before == len(case)
    if shrinks:
        assert finding.case == [OPEN_NEW, step]
        assert finding.shrink_plays <= 1
    else:
        assert finding.case == case[:3], "what was played until it was seen"


def test_fault_that_is_seen_again_is_counted_once() -> None:
    run = played(MemoryTarget(same_each_time(answers_ping_twice)), PING, PING, PING)
    (finding,) = run.findings
    assert finding.seen == 3


@pytest.mark.parametrize("start", range(12))
def test_run_cancelled_at_any_start_keeps_what_was_found(start: int) -> None:
    """Start 0 plays the case, 1 the ping alone, 2 to 4 confirm that; later ones make it small."""

    def interrupts(message: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
        if number == start and message.get("method") == "ping":
            target.scope.cancel()
        yield from answers_ping_twice(message)

    target = MemoryTarget(interrupts)
    noise = ("request", "tools/list", {"cursor": "x"}, "text", "whole")
    run = played(target, [PING[0], noise, noise, PING[1], noise, ("wait",)])
    assert target.open_sessions == set()
    assert [each.fault.row for each in run.findings] == (["RPC-7"] if start > 3 else [])
    for finding in run.findings:
        assert finding.is_solid
        assert finding.lines


def test_drawn_case_whose_confirmation_is_cancelled_is_left_for_the_next_run() -> None:
    """Ctrl+C strikes before the finding is certain, and it must not get lost."""

    def interrupts(message: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
        if number == 2 and message.get("method") == "ping":
            target.scope.cancel()
        yield from answers_ping_twice(message)

    class OneCase:
        fixed = 0

        def draw(self, count: int) -> list[Case]:
            return [PING]

    target = MemoryTarget(interrupts)
    choices = CaseChoices(Offers(revisions=[OLD]), ())
    run = _campaign.Campaign(target, OneCase(), choices, _campaign.CampaignOptions())

    async def main() -> None:
        with target.scope:
            await run.run()

    trio.run(main)
    assert run.findings == []
    assert run.unplayed == [PING]


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_server_that_refuses_the_only_revision_is_no_target(
    revision: str, autojump_clock: Any
) -> None:
    def refuses(message: Any, start: int) -> Any:
        if "id" in message:
            yield {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -1, "message": "no"}}

    with pytest.raises(ConnectFailed, match=f": it does not speak {revision}"):
        await probe(MemoryTarget(refuses), (revision,))


def test_server_that_ignores_a_list_is_probed_in_seconds() -> None:
    """One missing answer must not hold up the run: the probe ends within 15 seconds."""

    def ignores_lists(message: Any, start: int) -> Any:
        if message.get("method") == "tools/list":
            return
        for each in answers(message):
            if message.get("method") == "initialize":
                each["result"]["capabilities"] = {"tools": {}}
            yield each

    async def main() -> tuple[Offers, float]:
        offers = await probe(MemoryTarget(ignores_lists), (OLD,))
        return offers, trio.current_time()

    clock = trio.testing.MockClock(autojump_threshold=0)
    began = clock.current_time()
    offers, end = trio.run(main, clock=clock)
    assert offers.revisions == [OLD]
    assert end - began < 15


# -- Notes -----------------------------------------------------------------------------------------


class NotedSession(MemorySession):
    """A session of a process that grows with each case, and writes an error to stderr."""

    def memory(self) -> dict[int, int]:
        return {1: self.played * 1024 * 1024}

    def trouble(self) -> str:
        return "panicked"


class NotedTarget(MemoryTarget):
    session_class = NotedSession


def test_memory_that_grows_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"INTERVAL": 1, "WARM_UP": 2, "MIN_CASES": 5}.items():
        monkeypatch.setattr(_memory, name, value)
    run = played(NotedTarget(same_each_time(answers)), *[PING] * 14)
    note = "memory of the server grows by 1024 KiB a case, without end (measured in 1 process)"
    assert note in run.notes
    assert run.findings == []


def test_error_on_stderr_is_noted() -> None:
    run = played(NotedTarget(same_each_time(answers)), PING, PING)
    assert run.notes == ["stderr of the server has: panicked"]


def test_tool_that_takes_long_is_noted_and_not_called_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slow tool isn't a fault, but would use up the time of the whole run."""
    monkeypatch.setattr(_campaign, "MAX_SLOW", 3)
    called = 0

    def naps(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        nonlocal called
        if message.get("method") == "tools/call":
            called += 1
            return iter(())
        return answers(message)

    call: Case = [PING[0], ("call", "nap", {}, ())]
    run = played(MemoryTarget(naps), *[call] * 5, tools=("nap",))
    assert called == 3
    assert run.slow == {"tools/call nap": 3}
    (note,) = run.notes
    assert note == (
        "the tool nap was too slow 3 times, and is not called any more; allow more time with"
        " --call-timeout"
    )
    assert run.findings == []


def after(seconds: float) -> dict[str, float]:
    return {"tools/call": seconds}


def serves_calls(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a server with tools sends that answers each call."""
    if message.get("method") == "tools/call":
        yield {"jsonrpc": "2.0", "id": message["id"], "result": COMPLETE}
        return
    for response in answers(message):
        if message["method"] == "initialize":
            response["result"]["capabilities"] = {"tools": {}}
        yield response


NAP: Case = [PING[0], ("call", "nap", {}, ())]


@pytest.mark.parametrize(
    ("seconds", "options", "answered"),
    [
        (9.0, {}, True),
        (11.0, {}, False),
        (1.5, {"call_timeout": 1.0}, False),
        (15.0, {"call_timeout": 20.0}, True),
    ],
)
def test_first_call_of_a_tool_may_take_long(
    seconds: float, options: dict[str, Any], answered: bool
) -> None:
    target = MemoryTarget(same_each_time(serves_calls), times=after(seconds))
    run = played(target, NAP, tools=("nap",), **options)
    assert run.calls == answered
    assert dict(run.slow) == ({} if answered else {"tools/call nap": 1})
    assert run.findings == []


@pytest.mark.parametrize("is_everywhere", [False, True])
def test_server_that_answers_slower_and_slower_ends_in_time(
    monkeypatch: pytest.MonkeyPatch, is_everywhere: bool
) -> None:
    """Each message takes 20 ms longer than the one before it, in its process or in all of them."""
    received: Counter[int] = Counter()

    class SlowingSession(MemorySession):
        def _begin_first(self) -> None:
            key = 0 if is_everywhere else id(self)
            received[key] += 1
            self._ready_at = max(self._ready_at, trio.current_time() + 0.02 * received[key])

    target = MemoryTarget(same_each_time(serves_calls))
    monkeypatch.setattr(target, "session_class", SlowingSession)
    run = played(target, *[NAP] * 300, tools=("nap",), seconds=60.0)
    assert run.cases > 10
    assert run.messages > 10
    assert run.seconds < 60 + _campaign.MAX_EXAMINATION
    assert [each for each in run.findings if each.is_failure and each.fault.row == "crash"] == []


def stops_after(count: int, *, everywhere: bool = False) -> Any:
    """Return the answers of a server whose tool answers so many calls of each start, or of all."""
    called: Counter[int] = Counter()

    def some(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if message.get("method") == "tools/call":
            key = 0 if everywhere else start
            called[key] += 1
            if called[key] > count:
                return iter(())
        return serves_calls(message)

    return some


def test_tool_that_answered_and_stops_is_a_finding_with_the_calls_before_it() -> None:
    run = played(MemoryTarget(stops_after(3)), *[NAP] * 5, tools=("nap",))
    (finding,) = run.findings
    assert (finding.fault.row, finding.fault.detail) == ("RPC-35", "stopped")
    assert finding.fault.sentence == (
        '"nap" has answered before, and does not answer a call within 10 s, while a fresh process'
        " gets a result for the same call: to look at, unless the tool may wait"
    )
    assert finding.is_solid
    assert not finding.is_failure
    assert sum(step[0] == "call" for step in finding.case) == 4


CLOSED = {"openWorldHint": False}
READ_ONLY = {**CLOSED, "readOnlyHint": True}


def counts_up(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
    """Yield what a server sends whose results are all different."""
    for response in serves_calls(message):
        if message.get("method") == "tools/call":
            text = {"type": "text", "text": str(message["id"])}
            response["result"] = {**COMPLETE, "content": [text]}
        yield response


@pytest.mark.parametrize(
    ("hints", "served", "is_proven"),
    [
        (READ_ONLY, serves_calls, True),
        ({**CLOSED, "idempotentHint": True}, serves_calls, True),
        ({"readOnlyHint": True}, serves_calls, False),  # it can wait for what is outside
        (CLOSED, serves_calls, False),  # it can wait for what a call has begun
        (READ_ONLY, counts_up, False),  # the results can have been in a queue
    ],
)
@pytest.mark.parametrize("shrinks", [True, False])
def test_tool_that_stops_fails_the_run_if_nothing_can_be_waited_for(
    hints: dict[str, bool], served: Any, is_proven: bool, shrinks: bool
) -> None:
    """Its calls are equal, read only, and alone; and the last one gets more than a minute."""
    stops = stops_after(3)

    def some(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        for _ in stops(message, start):
            yield from served(message) if served is serves_calls else served(message, start)

    target = MemoryTarget(some)
    run = played(target, *[NAP] * 5, tools=("nap",), hints=hints, shrinks=shrinks)
    (finding,) = run.findings
    assert (finding.fault.detail, finding.is_failure) == ("stopped", is_proven)
    if is_proven:
        assert finding.fault.sentence == (
            '"nap" has answered before, and does not answer a call within 65 s, while a fresh'
            " process gets a result for the same call"
        )


@pytest.mark.parametrize(("seconds", "is_proven"), [(60.0, False), (150.0, True)])
def test_tool_that_stops_is_proven_only_if_there_is_time(seconds: float, is_proven: bool) -> None:
    target = MemoryTarget(stops_after(3))
    case = [NAP[0], *[NAP[1], ("wait",)] * 4]
    run = played(target, case, tools=("nap",), hints=READ_ONLY, seconds=seconds, lanes=4)
    assert [each.is_failure for each in run.findings] == [is_proven]
    assert run.seconds <= seconds + 60


class WaitingSession(MemorySession):
    """A conversation with a server whose calls wait, but no other request."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._held: list[tuple[float, Mapping[str, Any]]] = []
        self._called = 0

    def due(self, count: int) -> float:
        """Return when the next call is answered, after so many ones."""
        raise NotImplementedError

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        """Take a message. A call is held."""
        if message.get("method") != "tools/call":
            await super().send_text(text, message)
            return
        self.record(TraceLine(t=self.time(), sender="client", raw=text))
        self._held.append((self.due(self._called), message))
        self._called += 1
        await trio.lowlevel.checkpoint()

    async def wait_changed(self, deadline: float) -> bool:
        """Wait for a message."""
        if not self._held or deadline < self._held[0][0]:
            return await super().wait_changed(deadline)
        await trio.sleep_until(self._held[0][0])
        for each in serves_calls(self._held.pop(0)[1]):
            self.receive(TraceLine(t=self.time(), sender="server", raw=json.dumps(each)))
        return True


class LimitedSession(WaitingSession):
    """Three calls are answered at once, and then three a minute later."""

    def due(self, count: int) -> float:
        return max(trio.current_time(), self.began_at + 60.0 * (count // 3))


class SlowerSession(WaitingSession):
    """Each call takes four times as long as the one before."""

    def due(self, count: int) -> float:
        return float(trio.current_time() + 0.1 * 4**count)


@pytest.mark.parametrize("session_class", [LimitedSession, SlowerSession])
def test_tool_that_waits_or_gets_slower_fails_no_run(session_class: type[WaitingSession]) -> None:
    target = MemoryTarget(same_each_time(serves_calls))
    target.session_class = session_class
    run = played(target, *[NAP] * 9, tools=("nap",), hints=READ_ONLY)
    assert {each.fault.row for each in run.findings} <= {"RPC-35"}
    assert not any(each.is_failure for each in run.findings)


class LoadingSession(WaitingSession):
    """The first call of all takes 12 s, and the later ones half a second."""

    loaded = False

    def due(self, count: int) -> float:
        seconds = 0.5 if LoadingSession.loaded else 12.0
        LoadingSession.loaded = True
        return trio.current_time() + seconds


def test_tool_whose_first_call_is_slow_is_judged_by_its_later_ones() -> None:
    LoadingSession.loaded = False
    target = MemoryTarget(same_each_time(serves_calls))
    target.session_class = LoadingSession
    run = played(target, *[NAP] * 10, tools=("nap",))
    assert (run.calls, dict(run.slow)) == (9, {"tools/call nap": 1})


class ThrottledSession(MemorySession):
    """A conversation with a server whose tool answers at once, and then every four seconds."""

    def _begin_first(self) -> None:
        if self._inbox[0].get("method") == "tools/call":
            due = getattr(self, "_due", 0.0)
            self._ready_at = max(self._ready_at, due)
            self._due = max(trio.current_time(), due) + 4.0


class HTTPSession(MemorySession):
    """A conversation over HTTP, as far as a sentence tells."""

    transport = "http"


def test_tool_that_answers_every_four_seconds_is_no_finding() -> None:
    """A fresh process answers at once. The other call gets the time of a first one."""
    target = MemoryTarget(same_each_time(serves_calls))
    target.session_class = ThrottledSession
    run = played(target, *[NAP] * 9, tools=("nap",))
    assert (run.findings, dict(run.unconfirmed), dict(run.slow)) == ([], {}, {})


def test_url_whose_tool_stops_is_compared_with_another_session() -> None:
    target = MemoryTarget(stops_after(1))
    target.session_class = HTTPSession
    run = played(target, *[NAP] * 3, tools=("nap",), shrinks=False)
    assert "while another session gets a result" in run.findings[0].fault.sentence


def test_tool_that_stops_in_each_process_is_no_finding() -> None:
    """It waits for something outside of the process: a fresh one doesn't answer either."""
    target = MemoryTarget(stops_after(3, everywhere=True))
    run = played(target, *[NAP] * 8, tools=("nap",))
    assert run.findings == []
    assert run.slow["tools/call nap"] == 5


def test_tool_that_never_answers_some_arguments_is_something_to_look_at() -> None:
    """It may take as long as it wants, so it isn't certain. It is examined three times at most."""

    def slow_with_one(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        is_call = message.get("method") == "tools/call"
        if is_call and message["params"]["arguments"]:
            return iter(())
        return serves_calls(message)

    slow: Case = [PING[0], ("call", "nap", {"a": 1}, ())]
    run = played(MemoryTarget(slow_with_one), NAP, *[slow] * 9, tools=("nap",))
    (finding,) = run.findings
    assert (finding.fault.row, finding.fault.detail) == ("RPC-35", "never")
    assert finding.fault.sentence == (
        '"nap" has answered other calls, and never answers this one within 10 s: to look at, unless'
        " the tool may take so long"
    )
    assert [step for step in finding.case if step[0] == "call"] == [NAP[1], slow[1]]
    assert finding.is_solid
    assert not finding.is_failure


class FloodingSession(MemorySession):
    """A conversation whose server never ends a call, and sends messages about it for ever."""

    async def wait_changed(self, deadline: float) -> bool:
        """Wait for the next message, which comes after a twentieth of a second."""
        if not any(each.method == "tools/call" for each in self.requests):
            return await super().wait_changed(deadline)
        await trio.sleep_until(min(deadline, trio.current_time() + 0.05))
        if trio.current_time() < deadline:
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": LOG}
            self.receive(TraceLine(t=self.time(), sender="server", raw=json.dumps(note)))
        return trio.current_time() < deadline


LOG = {"level": "info", "data": "still here"}


def test_server_that_sends_messages_for_ever_costs_half_a_minute_once() -> None:
    """Each wait was prolonged by the messages, in the following cases, too."""
    ends: list[float] = []

    class Target(MemoryTarget):
        session_class = FloodingSession

    def respond(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        ends.append(trio.current_time())
        for each in () if message.get("method") == "tools/call" else answers(message):
            each.get("result", {}).get("capabilities", {})["logging"] = {}
            yield each

    case: Case = [("open", OLD, "whole", "all"), ("call", "long", {}, ()), PING[1], ("wait",)]
    target = Target(respond)
    run = played(target, case, PING, tools=("long",), capabilities=("logging",), shrinks=False)
    assert run.findings == []
    assert ends[-1] - ends[0] < 30
    assert target.starts == 2


def test_target_that_begins_no_conversation_is_lost_after_five_cases() -> None:
    def refuses(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if message.get("method") == "initialize":
            error = {"code": -32000, "message": "locked"}
            yield {"jsonrpc": "2.0", "id": message["id"], "error": error}

    run = played(MemoryTarget(refuses), *[PING] * 9)
    assert run.is_lost
    assert "the target failed 5 times in a row to begin a conversation" in run.notes


def waits_for(
    *slow: int, after: int | None = None
) -> Callable[[Mapping[str, Any], int], Iterator[dict[str, Any]]]:
    """Return the answers of a server whose tool never answers these minutes.

    After a call of `after` minutes, it answers no call of the same start.
    """
    blocked: set[int] = set()

    def some(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if message.get("method") == "tools/call":
            minutes = message["params"]["arguments"]["minutes"]
            if start in blocked or minutes in slow:
                blocked.update({start} if minutes == after else set())
                return iter(())
        return serves_calls(message)

    return some


@pytest.mark.parametrize(
    ("answers", "minutes", "starts"),
    [
        (waits_for(9), (1, 9, 2, 9, 1), 1),
        (waits_for(9, after=9), (1, 9, 1), 2),  # as a server that handles one call at a time
        (waits_for(9), (9, 1, 1), 2),  # no call has shown how quick the tool is
        (waits_for(8, 9, after=8), (1, 9, 8, 1), 2),
    ],
)
def test_session_after_a_slow_call_is_used_again_if_calls_are_quick_again(
    answers: Callable[[Mapping[str, Any], int], Iterator[dict[str, Any]]],
    minutes: tuple[int, ...],
    starts: int,
) -> None:
    cases: list[Case] = [[PING[0], ("call", "nap", {"minutes": each}, ())] for each in minutes]
    run = played(MemoryTarget(answers), *cases, tools=("nap",))
    assert run.starts == starts
    assert run.slow == {"tools/call nap": sum(each > 2 for each in minutes)}
    assert not any(each.is_failure for each in run.findings)


def test_process_that_ends_after_a_slow_call_has_not_crashed() -> None:
    """It ends in order, as it does for a client that takes no answer in time for a fault."""

    class EndingSession(MemorySession):
        async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
            await super().send_text(text, message)
            if message["method"] == "notifications/cancelled":
                self.end("its stdout has ended")
                self.exit_status = 0

    target = MemoryTarget(waits_for(9))
    target.session_class = EndingSession
    call = ("call", "nap", {"minutes": 9}, ())
    run = played(target, [PING[0], call], tools=("nap",))
    assert run.slow == {"tools/call nap": 1}
    assert run.findings == []
