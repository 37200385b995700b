"""Requests without a response: which are certain, and for which a server may take long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._call_guard import UNKNOWN_TOOLS, UNKNOWN_URI
from mcp_trio.oracle.fuzz.causes._cause import Cause
from tests.trio_.oracle.fuzz.memory_target import (
    OLD,
    MemorySession,
    MemoryTarget,
    answers,
    played,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Step
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign

    Json = Mapping[str, Any]

OPEN: Step = ("open", OLD, "whole", "all")
CALL: Step = ("call", "nap", {}, ())
COMPLETE = {"content": [], "resultType": "complete"}
RESULTS = {
    "tools/call": COMPLETE,
    "prompts/get": {"messages": []},
    "resources/read": {"contents": []},
    "completion/complete": {"completion": {"values": []}},
}


def request(method: str, **params: Any) -> Step:
    return ("request", method, params, "int")


PROMPT = request("prompts/get", name="plan")
READ = request("resources/read", uri=UNKNOWN_URI)
COMPLETION = request(
    "completion/complete",
    ref={"type": "ref/prompt", "name": "plan"},
    argument={"name": "a", "value": ""},
)
LIST = request("tools/list")
NO_TOOL = request("tools/call", name=UNKNOWN_TOOLS[0], arguments={})


def serves(message: Json) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that has a result for each request of the author's code."""
    method = message.get("method")
    if method in RESULTS:
        yield {"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[method]}
        return
    for response in answers(message):
        if method == "initialize":
            names = ("tools", "prompts", "resources", "completions")
            response["result"]["capabilities"] = {each: {} for each in names}
        yield response


def drops(*methods: str) -> Callable[[Json, int], Iterator[dict[str, Any]]]:
    """Return the answers of a server that has none to requests of these methods."""

    def some(message: Json, start: int) -> Iterator[dict[str, Any]]:
        return iter(()) if message.get("method") in methods else serves(message)

    return some


def hangs_at(method: str) -> Callable[[Json, int], Iterator[dict[str, Any]]]:
    """Return the answers of a server whose process does nothing any more after a request."""
    hung: set[int] = set()

    def some(message: Json, start: int) -> Iterator[dict[str, Any]]:
        if message.get("method") == method:
            hung.add(start)
        return iter(()) if start in hung else serves(message)

    return some


def run_of(target: MemoryTarget, *cases: Case, **options: Any) -> Campaign:
    return played(target, *cases, tools=("nap",), **options)


class HoldingSession(MemorySession):
    """A conversation with a server whose calls take a while, beside each other.

    Attributes:
        holds: the method of the calls.
        seconds: how long they take.
        loses: a cancellation takes all calls away. Otherwise it takes the one that it names.
        serves_twins: it answers two calls that run at the same time.
    """

    holds = "tools/call"
    seconds = 0.1
    loses = True
    serves_twins = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.held: list[tuple[float, Mapping[str, Any]]] = []

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        """Take a message. A call is held."""
        if message.get("method") not in (self.holds, "notifications/cancelled"):
            await super().send_text(text, message)
            return
        self.record(TraceLine(t=self.time(), sender="client", raw=text))
        if message["method"] == self.holds and (self.serves_twins or not self.held):
            self.held.append((trio.current_time() + self.seconds, message))
        elif message["method"] == "notifications/cancelled":
            id = message["params"]["requestId"]
            self.held = [] if self.loses else [each for each in self.held if each[1]["id"] != id]
        await trio.lowlevel.checkpoint()

    async def wait_changed(self, deadline: float) -> bool:
        """Wait for a message."""
        if not self.held or deadline < self.held[0][0]:
            return await super().wait_changed(deadline)
        await trio.sleep_until(self.held[0][0])
        reply = {"jsonrpc": "2.0", "id": self.held.pop(0)[1]["id"]}
        response = {**reply, "result": RESULTS[self.holds]}
        self.receive(TraceLine(t=self.time(), sender="server", raw=json.dumps(response)))
        return True


class KeepingSession(HoldingSession):
    loses = False


class SingleSession(HoldingSession):
    """A conversation with a server whose tool waits for an event if it runs twice."""

    serves_twins = False


def holding(session_class: type[HoldingSession]) -> MemoryTarget:
    target = MemoryTarget(same_each_time(serves))
    target.session_class = session_class
    return target


# -- Requests for which no tool runs ---------------------------------------------------------------


@pytest.mark.parametrize("step", [PROMPT, READ, COMPLETION, NO_TOOL])
def test_request_for_which_no_tool_runs_is_owed_a_response(step: Step) -> None:
    run = run_of(MemoryTarget(drops(step[1])), [OPEN, step], shrinks=False)
    (finding,) = run.findings
    assert finding.is_failure
    assert finding.fault.sentence == f"the request {step[1]} was not answered within 10 s"
    assert finding.cause == Cause("RPC-35", "request", step[1])
    assert not run.slow


@pytest.mark.parametrize(
    ("seconds", "options", "rows"),
    [
        (9.0, {}, []),
        (11.0, {}, ["RPC-35"]),
        (11.0, {"call_timeout": 12.0}, []),
        (3.0, {"call_timeout": 1.0}, ["RPC-35"]),
    ],
)
def test_request_for_which_no_tool_runs_has_the_time_of_a_call(
    monkeypatch: pytest.MonkeyPatch, seconds: float, options: dict[str, Any], rows: list[str]
) -> None:
    monkeypatch.setattr(HoldingSession, "holds", "prompts/get")
    monkeypatch.setattr(HoldingSession, "seconds", seconds)
    run = run_of(holding(HoldingSession), [OPEN, PROMPT], shrinks=False, **options)
    assert [each.fault.row for each in run.findings] == rows


@pytest.mark.parametrize(("seconds", "kinds"), [(11.0, []), (19.0, []), (30.0, ["hang"])])
def test_server_that_handles_one_request_at_a_time_may_take_longer(
    seconds: float, kinds: list[str]
) -> None:
    """It answers a ping as late, so it can be busy. If it takes much longer, it hangs."""
    target = MemoryTarget(same_each_time(serves), times={"prompts/get": seconds})
    run = run_of(target, [OPEN, PROMPT], shrinks=False)
    assert [each.fault.kind for each in run.findings] == kinds


@pytest.mark.parametrize("step", [PROMPT, NO_TOOL])
def test_server_that_answers_nothing_any_more_hangs(step: Step) -> None:
    run = run_of(MemoryTarget(hangs_at(step[1])), [OPEN, step], shrinks=False)
    (finding,) = run.findings
    assert (finding.fault.kind, finding.is_failure) == ("hang", True)
    assert not run.notes


@pytest.mark.parametrize(
    "case",
    [
        [OPEN, CALL, PROMPT],  # the call may be in the way
        [OPEN, CALL, ("cancel", 0), PROMPT],
        [OPEN, ("request", "prompts/get", {"name": "plan"}, "int"), ("cancel", 0)],
    ],
)
def test_request_beside_a_call_that_may_run_is_not_judged(case: Case) -> None:
    run = run_of(MemoryTarget(drops("tools/call", "prompts/get")), case, shrinks=False)
    assert not [each for each in run.findings if each.is_failure]


def asks_first(message: Json, start: int) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that asks the client before it has a prompt."""
    if message.get("method") == "prompts/get":
        waiting[start] = message["id"]
        yield {"jsonrpc": "2.0", "id": "roots-1", "method": "roots/list"}
    elif "result" in message and message.get("id") == "roots-1" and start in waiting:
        if isinstance(message["result"].get("roots"), list):
            reply = {"jsonrpc": "2.0", "id": waiting.pop(start)}
            yield {**reply, "result": RESULTS["prompts/get"]}
    else:
        yield from serves(message)


waiting: dict[int, Any] = {}


@pytest.mark.parametrize("how", ["right", "wrong", "id"])
def test_server_that_got_a_wrong_response_may_wait_for_the_right_one(how: str) -> None:
    waiting.clear()
    case: Case = [OPEN, PROMPT, ("respond", 0, how)]
    run = run_of(MemoryTarget(asks_first), case, shrinks=False)
    assert run.findings == []


def test_request_that_is_never_answered_is_waited_for_three_times_only() -> None:
    """A slow resource would use up the time of the whole run."""
    run = run_of(MemoryTarget(drops("resources/read")), *[[OPEN, READ]] * 30, shrinks=False)
    (finding,) = run.findings
    assert finding.is_failure
    assert run.seconds < 100


# -- Calls since which the server answers nothing --------------------------------------------------


def nap(**arguments: Any) -> Step:
    return ("call", "nap", arguments, ())


TEA = "\u8336"
LONG = "x" * 2_000
QUICK: Case = [OPEN, nap(text="a", n=1), ("wait",)]
LETTERS: Case = [*QUICK, nap(text=TEA, n=1), ("wait",)]
LENGTH: Case = [*QUICK, nap(text=LONG, n=1), ("wait",)]
CLOSED = {"readOnlyHint": True, "openWorldHint": False}
FOR_EVER = 1e9


class BlockingSession(MemorySession):
    """A conversation with a server that does nothing else while it handles a call."""

    has_loaded = False

    def _begin_first(self) -> None:
        super()._begin_first()
        text = self._inbox[0].get("params", {}).get("arguments", {}).get("text")
        if text is not None:
            self._ready_at += self.seconds(text)

    def seconds(self, text: str) -> float:
        """Return how long a call with a text takes."""
        raise NotImplementedError


class HangsAtLetters(BlockingSession):
    """It hangs at a letter beyond Latin."""

    def seconds(self, text: str) -> float:
        return FOR_EVER if TEA in text else 0.0


class HangsAtLength(BlockingSession):
    """It hangs at a text of more than 1,500 letters."""

    def seconds(self, text: str) -> float:
        return FOR_EVER if len(text) > 1_500 else 0.0


class NeedsSquareOfLength(BlockingSession):
    """The text of 2,000 letters takes 100 s."""

    def seconds(self, text: str) -> float:
        return len(text) ** 2 / 40_000


class NeedsPowerOfLength(BlockingSession):
    """Each letter takes a hundredth more time than the one before."""

    def seconds(self, text: str) -> float:
        return float(min(FOR_EVER, 1e-6 * 1.01 ** len(text)))


class LoadsAtLetters(BlockingSession):
    """The first text beyond Latin takes 40 s in each process."""

    def seconds(self, text: str) -> float:
        seconds = 0.0 if self.has_loaded or TEA not in text else 40.0
        self.has_loaded |= TEA in text
        return seconds


class SleepsByText(BlockingSession):
    """The text says how long it takes."""

    def seconds(self, text: str) -> float:
        return float(text) if text.isdigit() else 0.0


class IsSlowAtLetters(BlockingSession):
    """A letter beyond Latin takes 15 s."""

    def seconds(self, text: str) -> float:
        return 15.0 if TEA in text else 0.0


@pytest.mark.parametrize(
    ("session_class", "case", "hints", "found"),
    [
        (HangsAtLetters, LETTERS, CLOSED, [("hung", True)]),
        (HangsAtLetters, [*LETTERS, nap(text="a", n=1), ("wait",), LIST], CLOSED, [("hung", True)]),
        (HangsAtLetters, LETTERS, {"readOnlyHint": True}, [("hung", False)]),  # it may name a host
        (HangsAtLetters, [*QUICK, nap(text=f"a {TEA}", n=1), ("wait",)], CLOSED, [("hung", True)]),
        (HangsAtLetters, [*QUICK, nap(text=TEA, n=2)], CLOSED, [("never", False)]),
        (HangsAtLength, LENGTH, CLOSED, [("hung", True)]),
        (HangsAtLength, LENGTH, {}, [("hung", False)]),
        (NeedsSquareOfLength, LENGTH, CLOSED, [("hung", False)]),
        (NeedsPowerOfLength, LENGTH, CLOSED, [("hung", False)]),
        (LoadsAtLetters, LETTERS, CLOSED, [("hung", False)]),
        (SleepsByText, [*QUICK, nap(text="9999", n=1), ("wait",)], CLOSED, [("hung", False)]),
        (IsSlowAtLetters, LETTERS, CLOSED, []),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_server_that_answers_nothing_since_an_odd_text_hangs_if_its_time_does_not_explain_it(
    session_class: type[MemorySession],
    case: Case,
    hints: Mapping[str, bool],
    found: list[tuple[str, bool]],
) -> None:
    """A quick call differs from the last one only in its text."""
    target = MemoryTarget(same_each_time(serves))
    target.session_class = session_class
    run = run_of(target, case, shrinks=False, hints=hints)
    assert [(each.fault.detail, each.is_failure) for each in run.findings] == found


def test_hang_at_a_text_is_told_with_the_proof_and_is_made_small() -> None:
    target = MemoryTarget(same_each_time(serves))
    target.session_class = HangsAtLength
    (finding,) = run_of(target, LENGTH, hints=CLOSED).findings
    assert (finding.fault.kind, finding.fault.row) == ("hang", "RPC-35")
    assert finding.fault.sentence == (
        "the server answers nothing within 65 s, not even ping, since a call of"
        ' "nap" that differs only in its text from a quick one'
    )
    assert sum(step[0] == "call" for step in finding.case) == 2


def test_tool_that_waits_for_a_text_while_the_server_answers_is_no_hang() -> None:
    def some(message: Json, start: int) -> Iterator[dict[str, Any]]:
        return iter(()) if TEA in str(message) else serves(message)

    run = run_of(MemoryTarget(some), LETTERS, shrinks=False, hints=CLOSED)
    assert not [each for each in run.findings if each.is_failure]


# -- Requests that are lost with a cancelled one ---------------------------------------------------


TWINS: Case = [OPEN, CALL, CALL, ("cancel", 0), ("request", "tools/list", {}, "int"), ("wait",)]


@pytest.mark.parametrize("case", [TWINS, TWINS[:4]])
def test_request_that_is_lost_with_a_cancelled_one_is_a_finding(case: Case) -> None:
    run = run_of(holding(HoldingSession), case, shrinks=False)
    (finding,) = run.findings
    assert finding.is_failure
    assert finding.fault.sentence == (
        "the request tools/call gets no response within 10 s, after the cancellation of another"
        " one; a fresh process gets it, among the same requests without the cancellation"
    )


@pytest.mark.parametrize("session_class", [KeepingSession, SingleSession])
def test_request_that_is_not_lost_by_the_cancellation_is_no_finding(
    session_class: type[HoldingSession],
) -> None:
    """The one server answers it, and the other doesn't without a cancellation either."""
    run = run_of(holding(session_class), TWINS, shrinks=False)
    assert run.findings == []
