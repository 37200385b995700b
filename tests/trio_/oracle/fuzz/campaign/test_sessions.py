"""Shared sessions: which cases share one, and how few starts a run takes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock

from mcp_core import ALL, ConnectFailed
from mcp_core.trace import StreamChannel
from mcp_trio.oracle.fuzz._damage import has_damage
from mcp_trio.oracle.fuzz._http import UrlTarget
from mcp_trio.oracle.fuzz._interoperable_json import read_plain_request
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign import _campaign
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.campaign._sessions import MAX_WAIT, CaseGroup, SessionPool, group_of
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.play._player import Player
from tests.trio_.oracle.fuzz.memory_http import MemoryHttpServer, response_to
from tests.trio_.oracle.fuzz.memory_target import (
    NEW,
    OLD,
    MemorySession,
    MemoryTarget,
    answers,
    played,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Outcome, Step
    from mcp_trio.oracle.fuzz._session import TargetSession

OLDEST = ALL[-1]
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
OPEN: Step = ("open", OLD, "whole", "all")
OPEN_NONE: Step = ("open", OLD, "whole", "none")
OPEN_NEW: Step = ("open", NEW, "whole", "all")
PING: Step = ("request", "ping", {}, "int")
BROKEN: Step = ("damage", b"{")


class RecordingSession(MemorySession):
    """A session whose judge gets damaged bytes too, as over stdio."""

    def __init__(self, *args: Any, **members: Any) -> None:
        super().__init__(*args, **members)
        self._channel = StreamChannel(1, 1 << 20)

    async def send_data(self, data: bytes) -> None:
        for line in self._channel.client_data(self.time(), data + b"\n"):
            self.record(line)
        for each in map(read_plain_request, data.split(b"\n")):
            if each is not None and self.revision == NEW and each["method"] == "ping":
                self._inbox.append({**each, "method": "x/ping"})  # which this revision hasn't
            elif each is not None:
                self._inbox.append(each)
        await trio.lowlevel.checkpoint()
        self._answer()


class RecordingTarget(MemoryTarget):
    session_class = RecordingSession


# -- Groups ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "group"),
    [
        ([OPEN, PING], CaseGroup(OLD, "all", is_damaged=False)),
        ([OPEN_NONE, PING], CaseGroup(OLD, "none", is_damaged=False)),
        ([OPEN, PING, BROKEN], CaseGroup(OLD, "all", is_damaged=True)),
        # Each request of this revision says what its client can.
        ([OPEN_NEW, PING], CaseGroup(NEW, "", is_damaged=False)),
        ([("open", NEW, "whole", "none")], CaseGroup(NEW, "", is_damaged=False)),
        ([("open", OLD, "half", "all"), PING], None),
        ([("open", OLD, "late", "all")], None),
        ([PING], None),
        ([], None),
    ],
)
def test_cases_of_one_group_share_a_session(case: Case, group: CaseGroup | None) -> None:
    assert group_of(case) == group


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (("mutate", "{}"), True),
        (BROKEN, True),
        (("request", "ping", {}, "int"), False),
        (("request", "ping"), False),
        (("request", "ping", "absent"), False),
        (("request", "ping", None, "int"), True),
        (("request", "ping", [1], "int"), True),
        (("request", "", {}), True),
        (("request", "ping", {}, "int", "absent"), True),
        (("request", "ping", {}, "int", "bare"), False),
        (("request", "ping", {}, [2**60]), True),
        (("batch", [["ping", {}, "int"]]), True),
        (("reply", 7, {"result": {}}), True),
        (("parts", "body", 0), False),
        (("notify", "a", 82), True),
        (("notify", "a", "absent"), False),
        (("burst", 3, "ping", {}), False),
        (("burst", 3, "ping", 82), True),
        (("respond", 0, "right"), False),
        (("respond", 0, "id"), True),
        (("respond", 0, "twice"), True),
        (("respond", 0), False),
        (("head", "origin", "ping", {}), False),
        (("head", "name", "tools/call", 7), True),
        (("large", "message", 9), True),
        (("large", "header", 9), False),
        (("deep", "array", 9), True),
        (("wait",), False),
        (("call", "a", {}, ()), False),
        (("call", "a", 7, ()), False),
        (("on", 1, "damage", b"{"), True),
        (("on", 1, "request", "ping", {}), False),
    ],
)
def test_step_is_damage_if_a_receiver_need_not_take_it_for_a_message(
    step: Step, expected: bool
) -> None:
    assert has_damage([OPEN, step]) is expected
    assert has_damage([OPEN]) is False


# -- The pool --------------------------------------------------------------------------------------


async def end(session: TargetSession) -> None:
    await session.aclose()


def new_pool(target: MemoryTarget, lanes: int = 2) -> SessionPool:
    return SessionPool(target, lanes, [NEW, OLD], end)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ([OPEN], 2),
        ([OPEN_NEW], 2),
        ([OPEN_NONE], 1),
        ([OPEN, BROKEN], 1),
        ([("open", OLDEST, "whole", "all")], 1),
    ],
)
async def test_group_has_as_many_sessions_as_its_cases_are_common(
    autojump_clock: MockClock, case: Case, expected: int
) -> None:
    """Three tasks play such cases in a run of two lanes: none waits as long as it may."""
    target = MemoryTarget(same_each_time(answers))
    pool = new_pool(target)

    async def play() -> None:
        for _ in range(10):
            shared = await pool.take(case)
            await trio.sleep(0.1)
            await pool.give_back(shared)
            await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(play)
    assert pool.starts == target.starts == expected
    await pool.aclose()
    assert target.open_sessions == set()


async def test_lane_does_not_wait_long_for_a_session(autojump_clock: MockClock) -> None:
    """It opens another one then, and later both are used."""
    target = MemoryTarget(same_each_time(answers))
    pool = new_pool(target)
    first = await pool.take([OPEN_NONE])
    began = trio.current_time()
    second = await pool.take([OPEN_NONE])
    assert trio.current_time() - began == pytest.approx(MAX_WAIT)
    assert second.session is not first.session
    await pool.give_back(first)
    await pool.give_back(second)
    third = await pool.take([OPEN_NONE])
    assert third.session is second.session
    assert trio.current_time() - began == pytest.approx(MAX_WAIT)
    await pool.end(third)
    await pool.aclose()
    assert target.open_sessions == set()


async def test_session_that_is_spent_or_has_ended_is_replaced(autojump_clock: MockClock) -> None:
    target = MemoryTarget(same_each_time(answers))
    pool = new_pool(target)
    shared = await pool.take([OPEN_NONE])
    shared.session.spent = True
    await pool.give_back(shared)
    shared = await pool.take([OPEN_NONE])
    await pool.give_back(shared)
    shared.session.end("its stdout has ended")
    shared = await pool.take([OPEN_NONE])
    await pool.give_back(shared)
    assert (await pool.take([OPEN_NONE])).session is shared.session
    assert target.starts == 3


async def test_sessions_that_wait_are_limited(autojump_clock: MockClock) -> None:
    """The first one that waits is ended, and its group may have another one."""
    target = MemoryTarget(same_each_time(answers))
    pool = new_pool(target, lanes=1)
    cases: list[Case] = [[("open", OLD, "whole", str(number))] for number in range(20)]
    for case in cases:
        await pool.give_back(await pool.take(case))
    assert len(target.open_sessions) == 13
    began = trio.current_time()
    await pool.take(cases[0])
    assert trio.current_time() == began
    assert pool.starts == 21


async def test_session_that_cannot_be_opened_leaves_its_room(autojump_clock: MockClock) -> None:
    class Failing(MemoryTarget):
        async def open(self, *, keep: bool = False) -> MemorySession:
            await trio.lowlevel.checkpoint()
            if not self.starts:
                self.starts += 1
                raise ConnectFailed("the disk is full")
            return await super().open(keep=keep)

    pool = new_pool(Failing(same_each_time(answers)))
    with pytest.raises(ConnectFailed):
        await pool.take([OPEN_NONE])
    await pool.take([OPEN_NONE])
    assert trio.current_time() < MAX_WAIT


async def test_session_in_which_the_judge_could_not_read_a_message_gets_damage_only(
    autojump_clock: MockClock,
) -> None:
    """Such as after a step that is new, or one whose message depends on the server."""
    target = RecordingTarget(same_each_time(answers))
    pool = new_pool(target)
    shared = await pool.take([OPEN_NONE])
    await shared.session.send_data(b"{")
    await pool.give_back(shared)
    other = await pool.take([OPEN_NONE])
    assert other.session is not shared.session
    damaged = await pool.take([OPEN_NONE, BROKEN])
    assert damaged.session is shared.session
    assert trio.current_time() == 0
    # Each of the two has its place among those that may be open.
    assert damaged.group is not None
    assert pool._open == {damaged.group: 1, other.group: 1}


# -- Runs ------------------------------------------------------------------------------------------


def reports_progress_of_others(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a server sends that names an unknown token in the progress of a call (PROG-3)."""
    if message.get("method") == "tools/call":
        params = {"progressToken": "mine", "progress": 1}
        yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        yield {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
    else:
        yield from answers(message)


@pytest.mark.parametrize(
    "damage",
    [
        BROKEN,
        ("mutate", '{"jsonrpc":"2.0","id":1073741824,"method":7}'),
        ("request", "tools/list", 82, "int"),
        ("notify", "notifications/acme", []),
    ],
)
def test_fault_that_only_progress_shows_is_found_after_damage(damage: Step) -> None:
    """The token could be one of a damaged request, so a conversation with both proves nothing."""
    call: Step = ("call", "count", {}, ("progress",))
    target = RecordingTarget(same_each_time(reports_progress_of_others))
    cases: list[Case] = [[OPEN, damage, ("wait",)] for _ in range(3)]
    run = played(target, *cases, [OPEN, call, ("wait",)], tools=("count",), shrinks=False)
    assert "PROG-3" in [each.fault.row for each in run.findings]
    together: Case = [OPEN, damage, call, ("wait",)]
    target = RecordingTarget(same_each_time(reports_progress_of_others))
    blind = played(target, together, tools=("count",), shrinks=False)
    assert "PROG-3" not in [each.fault.row for each in blind.findings]


class LoggingPlayer(Player):
    """A player that notes which case is played on which session."""

    log: list[tuple[TargetSession, Case]]

    async def play(self, case: Case, session: TargetSession) -> Outcome:
        self.log.append((session, case))
        return await super().play(case, session)


def drawn_run(
    monkeypatch: pytest.MonkeyPatch, cases: int, lanes: int, seed: int = 5
) -> tuple[Campaign, MemoryTarget, list[tuple[TargetSession, Case]]]:
    """Play drawn cases against a correct server of all revisions."""
    log: list[tuple[TargetSession, Case]] = []
    monkeypatch.setattr(LoggingPlayer, "log", log, raising=False)
    monkeypatch.setattr(_campaign, "Player", LoggingPlayer)
    tools = [{"name": "count", "inputSchema": {"type": "object"}}]
    choices = CaseChoices(Offers(revisions=list(ALL), tools=tools), ("count",))
    target = RecordingTarget(same_each_time(answers_all))
    limits = CampaignOptions(seconds=None, cases=cases, lanes=lanes, shrinks=False)
    run = Campaign(target, CaseSource(choices, seed), choices, limits)
    trio.run(run.run, clock=MockClock(autojump_threshold=0))
    return run, target, log


def answers_all(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a correct server of all revisions sends for a message."""
    params = message.get("params")
    meta = params.get("_meta", {}) if isinstance(params, dict) else {}
    if message.get("method") == "server/discover" and CAPABILITIES not in meta:
        message = {**message, "params": 7}
    for each in answers(message):
        if message.get("method") == "initialize" and isinstance(params, dict):
            asked = params.get("protocolVersion")
            each["result"]["protocolVersion"] = asked if asked in ALL[1:] else OLD
        elif not isinstance(message.get("params", {}), dict):
            each = {**each, "error": {"code": -32602, "message": "invalid params"}}
            each.pop("result", None)
        yield each


@pytest.mark.long
@pytest.mark.parametrize("lanes", [1, 4])
def test_no_ordinary_case_shares_a_session_with_damage(
    monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    """The judge says what was damage, so a step that is forgotten in the list of damage shows."""
    run, _, log = drawn_run(monkeypatch, 250, lanes)
    assert run.findings == []
    sessions = {id(session): session for session, _ in log}
    kinds = {"ordinary": 0, "damaged": 0}
    for key, session in sessions.items():
        own = [case for each, case in log if id(each) == key]
        damaged = [case for case in own if has_damage(case)]
        if len(damaged) < len(own):
            assert damaged == []
            assert session.judge.unread("client") == 0
            kinds["ordinary"] += len(own)
        else:
            kinds["damaged"] += len(own)
    assert sum(kinds.values()) >= 250
    assert kinds["damaged"] > 20
    assert kinds["ordinary"] > 150


@pytest.mark.long
async def test_case_over_http_without_damage_leaves_the_judge_knowing_all(
    autojump_clock: MockClock,
) -> None:
    """So a step that is forgotten in the list of damage shows."""
    tools = [{"name": "count", "inputSchema": {"type": "object"}}]
    choices = CaseChoices(Offers(revisions=list(ALL), tools=tools), ("count",), http=True)
    unread: Counter[bool] = Counter()
    async with trio.open_nursery() as nursery:
        target = UrlTarget("http://127.0.0.1:1/mcp", nursery)
        target._connector = MemoryHttpServer(nursery, response_to)  # type: ignore[assignment]
        for case in CaseSource(choices, 3).draw(100):
            session = await target.open()
            await Player().play(case, session)
            unread[has_damage(case)] += session.judge.unread("client")
            await session.aclose()
        nursery.cancel_scope.cancel()
    assert unread[False] == 0
    assert unread[True] > 5


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, 4])
def test_run_that_finds_nothing_starts_one_process_in_forty_cases(
    monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    """Beside that, a lane has a process of its own for each of the two main groups."""
    run, target, _ = drawn_run(monkeypatch, 1_500, lanes)
    assert run.findings == []
    assert run.starts == target.starts
    assert run.starts <= run.cases / 40 + 2 * (lanes - 1)


@pytest.mark.long
def test_starts_are_counted_and_examinations_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    run, target, _ = drawn_run(monkeypatch, 100, 1)
    assert 5 < run.starts < 25
    assert run.starts == target.starts


def test_reconnection_counts_as_a_start() -> None:
    target = MemoryTarget(same_each_time(answers))
    run = played(target, [OPEN, PING, ("reconnect",), OPEN, PING])
    assert run.starts == target.starts == 2


def test_each_request_has_the_capabilities_of_its_case() -> None:
    """Cases with and without them share a session if the revision has no handshake."""
    sent: list[Any] = []

    def noting(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if message.get("method") == "tools/list":
            meta = message["params"]["_meta"]
            sent.append(meta["io.modelcontextprotocol/clientCapabilities"])
        yield from answers(message)

    listing: Step = ("request", "tools/list", {}, "int")
    target = MemoryTarget(same_each_time(noting))
    cases: list[Case] = [[("open", NEW, "whole", each), listing] for each in ("all", "none", "all")]
    run = played(target, *cases)
    assert run.starts == 1
    assert [bool(each) for each in sent] == [True, False, True]
