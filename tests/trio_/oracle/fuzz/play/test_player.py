"""The player of cases: a step calls no tool that may not be called."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET

from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._sent_request import LOST
from mcp_trio.oracle.fuzz.play._play import ToolNotAllowed
from mcp_trio.oracle.fuzz.play._player import (
    FreshPlays,
    Player,
    _count_requests,
    _play_step,
    play_case,
)
from mcp_trio.oracle.fuzz.play._step_table import STEPS
from tests.trio_.oracle.fuzz.memory_http import played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import (
    OLD,
    MemoryTarget,
    NotingSession,
    answers,
    answers_ping_twice,
    same_each_time,
    sent_with,
)
from tests.trio_.oracle.fuzz.play.stub_play import stub_call, stub_play_of

RESULT: dict[str, Any] = {"result": {"content": []}}
ERROR = {"error": {"code": 1, "message": "no"}}

OPEN = ("open", OLD, "whole", "all")
CALL: dict[str, Any] = {"name": "wipe", "arguments": {}}
CALL_TEXT = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": CALL})


@pytest.mark.parametrize("is_allowed", [False, True])
@pytest.mark.parametrize(
    "step",
    [
        ("call", "wipe", {}),
        ("request", "tools/call", CALL),
        ("burst", 3, "tools/call", CALL),
        ("mutate", CALL_TEXT),
        ("mutate", f"[{CALL_TEXT}]"),
        ("damage", CALL_TEXT.encode()),
    ],
)
async def test_tool_is_called_by_no_step_unless_it_may_be_called(
    autojump_clock: Any, step: tuple[Any, ...], is_allowed: bool
) -> None:
    player = Player(guard=CallGuard({"wipe"} if is_allowed else set(), lambda: {"wipe"}))
    _, received = await played_over_http(response_to, [OPEN, step], player)
    assert ("wipe" in json.dumps(received)) == is_allowed


# -- A play and its outcome ------------------------------------------------------------------------


def with_twice(message: Any, start: int) -> Any:
    return answers_ping_twice(message)


@pytest.mark.parametrize(
    ("wanted", "steps", "pings"), [(None, None, 3), (("RPC-7", ""), 2, 1), (("RPC-8", ""), None, 3)]
)
async def test_play_ends_with_the_step_that_has_shown_the_wanted_fault(
    wanted: Any, steps: int | None, pings: int, autojump_clock: Any
) -> None:
    target = MemoryTarget(with_twice)
    target.session_class = NotingSession
    session: Any = await target.open(keep=True)
    times = CallTimes()
    player = Player(wanted=wanted, call_times=times, probes=False)
    ping: list[Any] = [("request", "ping", {}), ("wait",)]
    outcome = await player.play([OPEN, *ping, *ping, *ping], session)
    await session.aclose()
    assert session.call_times is times
    assert len(sent_with(session, "ping")) == pings
    assert outcome.steps == steps
    assert [each.row for each in outcome.faults] == ["RPC-7"]


@pytest.mark.parametrize(("revision", "versions"), [("2026-07-28", ("2026-07-28",)), (OLD, UNSET)])
async def test_header_has_the_revision_that_no_handshake_shows(
    revision: str, versions: Any, autojump_clock: Any
) -> None:
    target = MemoryTarget(same_each_time(answers))
    outcome = await play_case(target, [("open", revision, "whole", "all"), ("wait",)])
    assert outcome.header is not None
    assert outcome.header.server_versions == versions
    assert target.open_sessions == set()
    assert outcome.lines
    other = await play_case(target, [("open", revision, "whole", "all")], keep=False)
    assert other.lines == []


@pytest.mark.parametrize("ended", ["", "it has ended"])
@pytest.mark.parametrize("name", ["acme", "reconnect"])
async def test_step_after_the_end_does_nothing_unless_it_connects_again(
    ended: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that may not be called stops a step, but not the play."""
    played: list[Any] = []

    async def act(play: Any, *arguments: Any) -> None:
        played.append(arguments)
        raise ToolNotAllowed("no")

    monkeypatch.setitem(STEPS, "reconnect", act)
    play = stub_play_of(ended=ended, steps={"acme": act})
    await _play_step(play, (name, "x", 1))
    await _play_step(play, ("unknown", 2))
    assert played == ([] if ended and name == "acme" else [("x", 1)])


@pytest.mark.parametrize(
    ("request_", "answered", "results", "calls"),
    [
        ({"answer": RESULT}, 1, 1, 1),
        ({"answer": ERROR}, 1, 0, 1),
        ({"answer": LOST}, 0, 0, 0),
        ({}, 0, 0, 0),
        ({"answer": RESULT, "method": "prompts/get"}, 1, 1, 0),
        ({"answer": RESULT, "name": "unknown"}, 1, 1, 0),
    ],
)
def test_outcome_counts_the_requests_of_both_clients(
    request_: Any, answered: int, results: int, calls: int
) -> None:
    """A call counts if its tool exists and may be called. Each changer is named once."""
    more: dict[str, Any] = {"changers": ["a", "b"], "notes": ["odd"], "take_messages": lambda: 3}
    play = stub_play_of(stub_call(**request_), **more)
    play.guard = CallGuard({"nap"}, lambda: {"nap"})
    play.clients.other = stub_play_of(**more).session
    _count_requests(play)
    found = play.outcome
    assert (found.answered, found.results, found.calls) == (answered, results, calls)
    assert (found.changers, found.notes, found.messages) == (["a", "b"], ["odd"] * 2, 6)
    assert found.is_owed


@pytest.mark.parametrize(("was_open", "is_owed"), [(True, True), (False, False)])
def test_outcome_owes_responses_to_requests_of_an_open_conversation(
    was_open: bool, is_owed: bool
) -> None:
    more: dict[str, Any] = {"changers": [], "notes": [], "take_messages": lambda: 0}
    play = stub_play_of(stub_call("x", was_open=was_open, answer=RESULT), **more)
    _count_requests(play)
    assert play.outcome.is_owed is is_owed
    assert play.outcome.calls == 1  # any tool may be called


@pytest.mark.parametrize(("drops", "is_set"), [(None, False), (lambda _: True, True)])
async def test_session_gets_the_requests_that_its_server_drops(
    drops: Any, is_set: bool, autojump_clock: Any
) -> None:
    target = MemoryTarget(same_each_time(answers))
    session = await target.open()
    before = session.drops
    await Player(drops=drops).play([OPEN], session)
    assert (session.drops is drops) is is_set
    assert is_set or session.drops == before
    await session.aclose()


@pytest.mark.parametrize(("kind", "has_processes"), [("stdio", True), ("http", False)])
@pytest.mark.parametrize(("timeout", "seconds"), [(None, 3.0), (5.0, 5.0), (0.0, 0.0)])
async def test_fresh_play_has_a_player_and_a_session_of_its_own(
    kind: str, has_processes: bool, timeout: float | None, seconds: float, autojump_clock: Any
) -> None:
    """The player gets all options of the play. Without a timeout it has the usual one."""
    made: list[tuple[Any, ...]] = []

    def new_player(timeout: float, **options: Any) -> Player:
        made.append((timeout, options))
        return Player(timeout)

    target = MemoryTarget(same_each_time(answers))
    target.kind = kind
    plays = FreshPlays(target, new_player, 3.0)
    assert (plays.has_processes, plays.response_timeout) == (has_processes, 3.0)
    times = CallTimes()
    await plays.play([OPEN], timeout)
    await plays.play([OPEN], timeout, probes=False, wanted=("a", "b"), call_times=times)
    assert made == [
        (seconds, {"probes": True, "wanted": None, "call_times": None}),
        (seconds, {"probes": False, "wanted": ("a", "b"), "call_times": times}),
    ]
    await plays.play([OPEN])
    assert made[-1] == (3.0, made[0][1])
    assert (target.starts, target.open_sessions) == (3, set())
