"""The state of a run: its times, why it is incomplete, and the notes that it keeps."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from mcp_core import ConnectFailed
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign import (
    _agenda,
    _campaign,
    _examination,
    _feed,
    _findings,
    _memory,
    _sessions,
    _shrink,
)
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from tests.trio_.oracle.fuzz.memory_target import (
    NEW,
    OLD,
    MemorySession,
    MemoryTarget,
    answers,
    answers_ping_twice,
    played,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case

OPENING: Any = ("open", OLD, "whole", "all")
PING_ONCE: Case = [OPENING, ("request", "ping", {}, "int", "whole")]
MORE_TIME = "allow more time with --seconds"


def idle_run(
    target: MemoryTarget | None = None,
    source: Any = None,
    *,
    tools: tuple[str, ...] = (),
    revisions: tuple[str, ...] = (OLD,),
    on_finding: Callable[[FuzzFinding], object] = lambda finding: None,
    **options: Any,
) -> Campaign:
    """Return a run that hasn't begun, against a server whose tools may be called."""
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in tools]
    choices = CaseChoices(Offers(revisions=list(revisions), tools=listed), tools)
    target = target or MemoryTarget(same_each_time(answers))
    return Campaign(target, source, choices, CampaignOptions(**options), on_finding=on_finding)


def timed(main: Callable[[], Any]) -> None:
    clock = MockClock(autojump_threshold=0)
    clock.jump(-clock.current_time())
    trio.run(main, clock=clock)


# -- Limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "limits"),
    [
        (
            _campaign,
            {
                "DEFAULT_LANES": 4,
                "MIN_EXAMINATION": 10.0,
                "MAX_EXAMINATION": 60.0,
                "EXAMINED_PART": 0.4,
                "CONFIRMED_PART": 0.3,
                "AWAY_TIMEOUT": 30.0,
                "AWAY_INTERVAL": 1.0,
                "MAX_FAILED_STARTS": 5,
                "SERVER_ERROR": 500,
                "BUSY": 503,
                "MAX_SLOW": 100,
                "_SHOWN": 80,
            },
        ),
        (_agenda, {"MAX_TRIES": 10, "MAX_WAITING": 10}),
        (
            _examination,
            {
                "CONFIRMATIONS": 3,
                "TRIES": 2,
                "MAX_SHRINKS": 3,
                "HISTORIES": (8, 64),
                "MAX_HISTORY": 64,
                "SHRINK_TIMEOUT": 0.5,
                "_MAX_CANCELLED": 8,
                "_MANY_STEPS": 4,
                "_MAX_ALONE": 3,
                "_MANY_CALLS": 32,
                "_PATIENCE": 6.5,
                "_PROOF_PART": 1.3,
            },
        ),
        (
            _feed,
            {
                "FIRST_BATCHES": (8, 8, 8, 8, 16, 16),
                "BATCH": 32,
                "MIN_LAG": 2,
                "MAX_LAG": 8,
                "BATCHES_PER_LAG": 4,
                "MIN_SIGHTINGS": 3,
                "MIN_GUILT": 0.5,
                "MIN_LIFT": 3.0,
            },
        ),
        (_findings, {"MAX_PER_ROW": 3, "MAX_FINDINGS": 50, "MAX_PER_METHOD": 3, "MAX_SEEN": 10}),
        (
            _memory,
            {
                "INTERVAL": 10,
                "WARM_UP": 20,
                "MAX_READINGS": 400,
                "MIN_READINGS": 6,
                "MIN_CASES": 100,
                "MIN_SLOPE": 10_240,
                "MIN_GROWTH": 4_194_304,
                "STEADY_PART": 0.5,
            },
        ),
        (_sessions, {"MAX_OTHERS": 12, "MAX_WAIT": 2.0}),
        (_shrink, {"MAX_PLAYS": 500, "MAX_SECONDS": 60.0, "_COUNTED": 100}),
    ],
    ids=lambda each: getattr(each, "__name__", "").rpartition(".")[2],
)
def test_limit_of_a_run_has_its_value(module: Any, limits: Mapping[str, Any]) -> None:
    """They decide together how long a run takes: who changes one measures whole runs."""
    assert {name: getattr(module, name) for name in limits} == limits


def test_option_of_a_run_has_its_default() -> None:
    found = CampaignOptions()
    assert (found.seconds, found.cases, found.lanes, found.examination) == (60.0, None, 1, None)
    assert (found.response_timeout, found.call_timeout) == (2.0, 10.0)
    assert (found.shrinks, found.keep_going, found.ignored) == (True, True, ())


# -- Before the run, and its times -----------------------------------------------------------------


def test_run_that_has_not_begun_has_found_nothing() -> None:
    run = idle_run()
    names = "cases reconnects messages calls starts repaired unexamined seconds drawing_seconds"
    assert [getattr(run, name) for name in names.split()] == [0] * 9
    assert [run.findings, run.habits, run.notes, run.unplayed, run.kept] == [[]] * 5
    assert [run.unconfirmed, run.missing, run.opportunities, run.slow] == [{}] * 4
    assert [run.is_away, run.is_lost, run.is_drawn, run.calls_tools] == [False] * 4
    assert [run.interrupted, run.activity, run.broken] == [""] * 3
    assert [run.left, run.failure, run.checks] == [None] * 3
    assert run.rows_seen() == 0


class EndlessSource:
    """A source of one case, without an end. Its runs have no limit of time.

    A mock clock would jump to that limit while the source draws in its thread.
    """

    fixed = 0

    def draw(self, count: int) -> list[Case]:
        return [PING_ONCE] * count


@pytest.mark.parametrize("lanes", [1, 4])
def test_time_that_is_left_ends_with_the_drawing_and_with_the_run(lanes: int) -> None:
    """It is counted without the pauses for examinations, which one lane makes.

    A fresh process needs 3 s, so the finding's examination goes on after the drawing.
    """

    class SlowAgain(MemoryTarget):
        async def open(self, *, keep: bool = False) -> MemorySession:
            self.start_time = 3.0 if self.starts else 0.0
            return await super().open(keep=keep)

    samples: list[tuple[bool, float, float, float]] = []

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        assert run.left is not None
        samples.append((run.is_drawn, run.seconds, run.drawing_seconds, run.left))
        yield from answers_ping_twice(message)

    target = SlowAgain(same_each_time(respond), times={"ping": 1.0})
    run = idle_run(target, seconds=5.0, examination=24.0, lanes=lanes)
    case: Case = [OPENING, ("request", "tools/list", {}, "int"), PING_ONCE[1]]

    async def main() -> None:
        await trio.sleep(7)
        await run.run([case] * 20)
        ended = run.seconds, run.drawing_seconds
        await trio.sleep(100)
        assert (run.seconds, run.drawing_seconds) == ended
        assert run.left == 0.0

    timed(main)
    assert samples[0] == (False, 0.0, 0.0, 5.0)
    assert (False, 1.0, 1.0, 4.0) in samples
    early = [each for each in samples if not each[0]]
    late = [each for each in samples if each[0]]
    assert early
    assert late
    assert all(left == pytest.approx(max(0.0, 5.0 - drawing)) for _, _, drawing, left in early)
    assert all(left == pytest.approx(29.0 - seconds) for _, seconds, _, left in late)
    assert {drawing for _, _, drawing, _ in late} == {run.drawing_seconds}
    assert 5.0 <= run.drawing_seconds < 7.0
    assert (max(seconds - drawing for _, seconds, drawing, _ in early) > 1) is (lanes == 1)


def test_run_without_a_limit_has_no_time_left_to_say() -> None:
    left: list[float | None] = []

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        left.append(run.left)
        yield from answers(message)

    run = idle_run(MemoryTarget(same_each_time(respond)), EndlessSource(), seconds=None, cases=3)
    timed(run.run)
    assert set(left) == {None}
    assert run.cases == 3


# -- Why a run is incomplete -----------------------------------------------------------------------


def shown_finding(kind: Any = "row", hits: int = 3) -> FuzzFinding:
    fault = TargetFault(kind=kind, row="RPC-7", method="ping")
    return FuzzFinding(fault=fault, case=PING_ONCE, hits=hits, plays=3)


NO_CASE = f"no case was played; {MORE_TIME}, or give --cases"
NO_CALL = f"and no call was answered; {MORE_TIME}, or more cases with --cases"


@pytest.mark.parametrize(
    ("tools", "changes", "why"),
    [
        ("", {}, NO_CASE),
        ("", {"opportunities": Counter({"RPC-7": 0})}, NO_CASE),
        ("", {"opportunities": Counter({"RPC-7": 1})}, ""),
        ("", {"cases": 1}, "the server has sent no message in any case"),
        ("", {"cases": 1, "messages": 1}, ""),
        ("a", {"cases": 1, "messages": 1}, f"1 tool was allowed, {NO_CALL}"),
        ("ab", {"cases": 1, "messages": 1}, f"2 tools were allowed, {NO_CALL}"),
        ("ab", {"cases": 1, "messages": 1, "calls": 1}, ""),
        (
            "",
            {"unexamined": 1},
            f"a fault was seen, and the run has ended before a further play; {MORE_TIME}",
        ),
        (
            "",
            {"unexamined": 2, "cases": 1, "messages": 1},
            f"2 faults were seen, and the run has ended before a further play; {MORE_TIME}",
        ),
    ],
)
def test_run_that_says_nothing_has_its_reason(
    tools: str, changes: Mapping[str, Any], why: str
) -> None:
    run = idle_run(tools=tuple(tools))
    for name, value in changes.items():
        setattr(run, name, value)
    assert (run.unjudged, run.incomplete) == (why, why)
    run.checks = SimpleNamespace(failure="", unjudged="nothing was checked")  # type: ignore[assignment]
    assert run.unjudged == (why or "nothing was checked")
    run.found.items.append(shown_finding(hits=2))
    assert run.unjudged == (why or "nothing was checked")
    run.found.items.append(shown_finding())
    assert run.unjudged == "", "a failure says enough"


GONE = "the server does not answer any more"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"failure": ValueError("a"), "interrupted": "b"}, "an internal error of the fuzzer: Val"),
        ({"interrupted": "by SIGTERM", "is_lost": True}, "by SIGTERM"),
        ({"is_lost": True}, GONE),
        ({"is_away": True}, GONE),
        ({"is_away": True, "notes": ["a", "b"]}, "b"),
        ({"is_lost": True, "notes": ["a", "b"], "checks": "c"}, "b"),
        ({"notes": ["a"], "checks": "c"}, "c"),
        ({"notes": ["a"]}, NO_CASE),
    ],
)
def test_run_that_has_ended_early_says_why(changes: dict[str, Any], why: str) -> None:
    run = idle_run()
    if failure := changes.pop("checks", None):
        run.checks = SimpleNamespace(failure=failure, unjudged="")  # type: ignore[assignment]
        assert run.broken == failure
    for name, value in changes.items():
        setattr(run, name, value)
    assert run.incomplete[: len(why)] == why
    if "failure" in changes:
        assert run.incomplete == "an internal error of the fuzzer: ValueError"


# -- Stored cases ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "lacks"),
    [
        ([OPENING, ("call", "nap", {}, ())], ""),
        ([("open", "2025-06-18", "whole", "all")], ""),  # a handshake can be refused
        ([("open", NEW, "whole", "all")], f"the server does not speak {NEW}, or --era leaves it"),
        ([OPENING, ("reconnect",), ("open", NEW, "whole", "all")], "the server does not speak"),
        ([OPENING, ("call", "other", {}, ())], "its steps may call tools that are not allowed"),
        ([OPENING, ("request", "resources/read", {"uri": "a:b"}, "int")], "its steps may call"),
    ],
)
def test_stored_case_lacks_what_this_run_cannot_play(steps: Case, lacks: str) -> None:
    found = idle_run(tools=("nap",)).lacks(steps)
    assert (found[: len(lacks)], bool(found)) == (lacks, bool(lacks))


def test_stored_case_is_repaired_if_its_whole_play_shows_no_fault() -> None:
    """Case 1 is as stored, 2 loses a step that isn't allowed, 3 is in a revision not spoken."""
    sent: list[str] = []

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        sent.append(message["method"])
        yield from answers(message)

    run = idle_run(MemoryTarget(same_each_time(respond)), seconds=None, tools=("nap",))
    stored: list[Case] = [
        PING_ONCE,
        [OPENING, ("call", "other", {}, ()), ("request", "prompts/list", {}, "int")],
        [("open", NEW, "whole", "all"), ("request", "tools/list", {}, "int")],
    ]
    timed(lambda: run.run(stored))
    assert (run.repaired, run.cases, run.unplayed) == (1, 2, [])
    assert "prompts/list" in sent
    assert "tools/list" not in sent
    faulty = idle_run(MemoryTarget(same_each_time(answers_ping_twice)), seconds=None)
    timed(lambda: faulty.run([PING_ONCE]))
    assert (faulty.repaired, len(faulty.findings)) == (0, 1)


@pytest.mark.parametrize(("cases", "stored", "played_cases"), [(5, 2, 5), (2, 2, 2), (1, 3, 3)])
def test_limit_of_cases_counts_the_stored_ones(cases: int, stored: int, played_cases: int) -> None:
    """But all stored ones are played, since each says whether its fault is repaired."""
    run = idle_run(source=EndlessSource(), seconds=None, cases=cases)
    timed(lambda: run.run([PING_ONCE] * stored))
    assert run.cases == played_cases
    assert run.repaired == stored


# -- What ends a run -------------------------------------------------------------------------------


@pytest.mark.parametrize(("keep_going", "most"), [(True, 20), (False, 3)])
def test_first_finding_ends_a_run_that_should_not_go_on(keep_going: bool, most: int) -> None:
    found: list[FuzzFinding] = []
    target = MemoryTarget(same_each_time(answers_ping_twice))
    run = idle_run(
        target,
        EndlessSource(),
        seconds=None,
        cases=20,
        keep_going=keep_going,
        on_finding=found.append,
    )
    timed(run.run)
    assert found == run.findings
    assert len(found) == 1
    assert (run.cases <= most, run.cases == 20) == (True, keep_going)


def test_run_ends_with_its_fiftieth_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is two here. The faults are two rows' in one case, which is played once."""
    monkeypatch.setattr(_campaign, "MAX_FINDINGS", 2)

    def respond(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for each in answers_ping_twice(message):
            yield each if message["method"] != "ping" else {**each, "result": {"_meta": 1}}

    run = idle_run(MemoryTarget(same_each_time(respond)), EndlessSource(), seconds=None, cases=9)
    timed(run.run)
    assert len(run.findings) >= 2
    assert run.cases == 1


class NoisySession(MemorySession):
    """A session of a process with another error on stderr each time, some of them long."""

    def trouble(self) -> str:
        return f"{self._place % 3} {'a' * 300}"


def test_notes_are_kept_once_and_up_to_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server decides how many there are, and how long."""

    class NoisyTarget(MemoryTarget):
        session_class = NoisySession

    cases: list[Case] = [[("open", OLD, "half", "all")]] * 7  # each has a session of its own
    run = played(NoisyTarget(same_each_time(answers)), *cases)
    assert run.notes == [f"stderr of the server has: {n} {'a' * 198}" for n in range(3)]
    monkeypatch.setattr(_campaign, "MAX_FINDINGS", 2)
    assert len(played(NoisyTarget(same_each_time(answers)), *cases).notes) == 2


@pytest.mark.parametrize(("good", "is_lost"), [(4, False), (5, True), (None, True)])
def test_target_is_lost_after_five_failed_starts_in_a_row(good: int | None, is_lost: bool) -> None:
    """A start that succeeds in between begins a new row."""

    def refuses(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if message.get("method") == "initialize" and start != good:
            error = {"code": -32000, "message": "locked"}
            yield {"jsonrpc": "2.0", "id": message["id"], "error": error}
        else:
            yield from answers(message)

    # Each case has a process of its own.
    cases: list[Case] = [[*PING_ONCE, ("disconnect",)]] * 9
    run = played(MemoryTarget(refuses), *cases)
    assert run.is_lost is is_lost
    assert run.cases == (9 if not is_lost else 5)


class StalledSession(MemorySession):
    """A session with a server that goes on when the session ends."""

    transport = "http"


class StalledTarget(MemoryTarget):
    """A server at a URL, which can be away for a while and refuse to be opened meanwhile."""

    kind = "http"
    session_class = StalledSession
    refused_until = 0.0

    async def open(self, *, keep: bool = False) -> MemorySession:
        if trio.current_time() < self.refused_until:
            await trio.lowlevel.checkpoint()
            raise ConnectFailed("connection refused")
        return await super().open(keep=keep)


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize(("seconds", "is_away"), [(25.0, False), (100.0, True)])
def test_url_that_waits_for_its_tool_is_away_after_half_a_minute(
    seconds: float, is_away: bool, refuses: bool
) -> None:
    """The call is no fault, but nothing can be judged while it runs."""
    busy_until = 0.0

    def one_at_a_time(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        nonlocal busy_until
        if trio.current_time() < busy_until:
            return
        if message.get("method") == "tools/call":
            busy_until = trio.current_time() + 10 + seconds  # a call has 10 s
            target.refused_until = busy_until if refuses else 0.0
            return
        yield from answers(message)

    target = StalledTarget(one_at_a_time)
    call: Case = [("open", NEW, "whole", "all"), ("call", "nap", {}, ())]
    run = played(target, call, PING_ONCE, PING_ONCE, tools=("nap",))
    assert run.findings == []
    assert not run.unconfirmed
    assert run.is_away is is_away
    assert run.cases == (1 if is_away else 3)
    note = "the server does not answer any more since a call takes long"
    assert (note in run.notes) is is_away
    assert (run.incomplete == note) is is_away
