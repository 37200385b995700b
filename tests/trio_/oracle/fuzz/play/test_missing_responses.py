"""How a play examines requests without a response, with a session that is a table."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from mcp_core import ConnectFailed
from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz.play import _unanswered
from mcp_trio.oracle.fuzz.play._play import ToolNotAllowed
from mcp_trio.oracle.fuzz.play._unanswered import (
    _are_answered_elsewhere,
    _call_again,
    _examine_bounded,
    _examine_hung,
    _examine_lost,
    _examine_owed,
    serves_calls_again,
    settle,
)
from tests.trio_.oracle.fuzz.play.stub_play import StubSession, stub_call, stub_list, stub_play_of

RESULT: dict[str, Any] = {"result": {"content": []}}
ERROR: dict[str, Any] = {"error": {"code": 1, "message": "no"}}
NEW = "2026-07-28"


class SlowMachine:
    """An echo whose machine is slow."""

    async def is_slow(self) -> bool:
        """Return True."""
        return True


def at_once(monkeypatch: pytest.MonkeyPatch, name: str, value: Any, seconds: float = 0.0) -> Any:
    """Replace a function of the module by one that returns a value. Return its calls."""
    calls: list[Any] = []

    async def found(*arguments: Any) -> Any:
        calls.append(arguments)
        await trio.sleep(seconds)
        return value

    monkeypatch.setattr(_unanswered, name, found)
    return calls


def prompt(**more: Any) -> Any:
    return stub_call(method="prompts/get", **more)


# -- The end of a case -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "arrives", "seconds", "rows"),
    [
        ({}, None, 2.0, ["RPC-35"]),
        ({"was_open": False}, None, 0.3, []),
        ({"is_owed": False}, None, 0.3, []),
        ({"was_open": False, "is_owed": False}, None, 0.3, []),
        ({"was_open": False}, 0.25, 0.25, []),
    ],
)
async def test_response_that_is_not_owed_is_waited_for_shortly(
    request_: Any, arrives: float | None, seconds: float, rows: list[str], autojump_clock: Any
) -> None:
    request = stub_list(**request_)
    play = stub_play_of(request)
    if arrives is not None:
        play.session.arrivals.append((arrives, request, RESULT))
    await settle(play)
    assert trio.current_time() == pytest.approx(seconds)
    assert [each.row for each in play.session.found] == rows
    assert request.id not in play.session.open or rows


@pytest.mark.parametrize(
    ("transport", "revision", "count"),
    [("stdio", NEW, 1), ("http", NEW, 0), ("stdio", "2025-11-25", 0)],
)
async def test_cancelled_call_is_watched_where_it_may_send_no_more(
    transport: str,
    revision: str,
    count: int,
    autojump_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that takes too long is cancelled, and noted as one that may still run."""
    watched = at_once(monkeypatch, "_watch_cancelled", None)
    call = stub_call()
    play = stub_play_of(call, transport=transport, revision=revision)
    await settle(play)
    assert len(watched) == count
    assert call.cancelled
    assert play.session.open == {}
    assert play.session.running == {"tools/call nap"}
    assert play.outcome.slow == ["tools/call nap"]
    [note] = play.session.sent
    assert note["method"] == "notifications/cancelled"


async def test_requests_that_had_a_part_of_their_time_get_the_rest(autojump_clock: Any) -> None:
    """Once a server drops some, a step waits for a quarter of the time."""
    for arrives, rows in ((1.9, []), (2.1, ["RPC-35"])):
        began = trio.current_time()
        request = stub_list(overdue="alone")
        play = stub_play_of(request, drops_some=True)
        play.session.arrivals.append((began + arrives, request, RESULT))
        await settle(play)
        assert [each.row for each in play.session.found] == rows


@pytest.mark.parametrize(
    ("session", "options", "arrives", "seconds", "is_reported"),
    [
        ({}, {}, None, 0.0, True),
        ({"longest_start": 1.9}, {}, None, 0.0, True),
        ({"longest_start": 3.0}, {}, None, 6.0, True),
        ({"longest_start": 3.0}, {}, 5.0, 5.0, False),
        ({"longest_start": 3.0, "played": 2}, {}, None, 0.0, True),
        ({"longest_start": 20.0}, {}, None, 30.0, True),
        ({}, {"is_busy": True}, None, 10.0, True),
        ({}, {"is_busy": True}, 9.0, 9.0, False),
        ({"is_busy": True}, {"is_busy": True}, None, 10.0, False),
        ({"is_busy": True}, {"is_busy": True, "was_blocked": True}, None, 0.0, False),
        ({}, {"is_busy": True, "was_blocked": True}, None, 10.0, True),
        ({}, {"is_slow": True}, None, 10.0, True),
        ({}, {"is_slow": True}, 9.0, 9.0, False),
    ],
)
async def test_request_of_no_tool_is_reported_unless_the_server_has_a_reason(
    session: Any,
    options: Any,
    arrives: float | None,
    seconds: float,
    is_reported: bool,
    autojump_clock: Any,
) -> None:
    """A slow start, a call that may run, and a slow machine: each gives more time."""
    request = stub_list()
    play = stub_play_of(request, **session)
    play.was_blocked = options.get("was_blocked", False)
    play.echo = SlowMachine() if options.get("is_slow") else None
    if arrives is not None:
        play.session.arrivals.append((arrives, request, RESULT))
    await _examine_bounded(play, [request], is_busy=options.get("is_busy", False))
    assert trio.current_time() == pytest.approx(seconds)
    assert [each.row for each in play.session.found] == ["RPC-35"] * is_reported
    assert play.session.spent is (arrives is None)
    assert play.was_blocked is bool(options.get("was_blocked") or session.get("is_busy"))


@pytest.mark.parametrize(("ended", "answer"), [("", None), ("it has ended", None), ("", RESULT)])
async def test_request_to_a_process_that_starts_is_reported_after_its_start(
    ended: str, answer: Any, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = stub_list()
    play = stub_play_of(request, has_spoken=False)

    async def start(play: Any) -> None:
        await trio.sleep(7.0)
        play.session.has_spoken = True
        play.session.ended, request.answer = ended, answer

    monkeypatch.setattr(_unanswered, "wait_for_start", start)
    await _examine_bounded(play, [request])
    assert trio.current_time() == 7.0
    assert bool(play.session.found) is (not ended and answer is None)


async def test_nothing_is_waited_for_without_a_missing_response(autojump_clock: Any) -> None:
    play = stub_play_of(has_spoken=False, longest_start=9.0, is_busy=True)
    await _examine_bounded(play, [], is_busy=True)
    assert trio.current_time() == 0.0
    assert (play.session.sent, play.session.spent, play.was_blocked) == ([], False, False)


# -- Requests that run the author's code, but no tool ----------------------------------------------


@pytest.mark.parametrize(
    ("change", "probe", "seconds", "found", "is_silent"),
    [
        ({}, True, 10.0, 1, False),
        ({}, False, 10.0, 0, True),
        ({"arrives": 9.0}, True, 9.0, 0, False),
        ({"is_slow": True}, True, 10.0, 0, False),
        ({"ended": "it has ended"}, True, 0.0, 0, False),
        ({"is_misled": True}, True, 0.0, 0, False),
        ({"may_be_busy": True}, True, 0.0, 0, False),
        ({"is_plain": False}, True, 0.0, 0, False),
        ({"was_open": False}, True, 0.0, 0, False),
        ({"stopped": 3}, True, 0.0, 0, False),
        ({"stopped": 3, "is_wanted": True}, True, 10.0, 1, False),
        ({"beside": True}, True, 0.0, 0, False),
        ({"is_closed": True}, True, 0.0, 0, False),
    ],
)
async def test_prompt_is_owed_its_response_while_nothing_is_in_its_way(
    change: dict[str, Any],
    probe: bool,
    seconds: float,
    found: int,
    is_silent: bool,
    autojump_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The longest time of a call is 10 s. If the server answers nothing, the case's end says so."""
    probed = at_once(monkeypatch, "answers_probe", probe)
    of_session = {"is_misled", "may_be_busy", "ended"}
    of_request = {"is_plain", "was_open"}
    request = prompt(**{key: each for key, each in change.items() if key in of_request})
    session = {key: each for key, each in change.items() if key in of_session}
    running = [request, *([stub_call(id=2)] if "beside" in change else [])]
    play = stub_play_of(*running, **session)
    if "is_closed" in change:
        play.session.open.clear()
    play.echo = SlowMachine() if "is_slow" in change else None
    play.wanted = ("RPC-35", "") if "is_wanted" in change else None
    for _ in range(change.get("stopped", 0)):
        play.call_times.add_stopped(request.name)
    if "arrives" in change:
        play.session.arrivals.append((change["arrives"], request, RESULT))
    assert await _examine_owed(play, running) is is_silent
    assert trio.current_time() == pytest.approx(seconds)
    assert [each.sentence for each in play.session.found] == (
        ["the request prompts/get was not answered within 10 s"] * found
    )
    assert len(probed) == (found or is_silent)
    assert (request.id in play.session.open) is not bool(probed or "arrives" in change) or (
        "is_closed" in change
    )


@pytest.mark.parametrize(("second", "seconds", "found"), [(2.5, 12.5, 2), (2.6, 10.0, 1)])
async def test_prompts_that_were_sent_together_are_reported_together(
    second: float,
    seconds: float,
    found: int,
    autojump_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A later one isn't waited for as long again, and isn't examined any more."""
    at_once(monkeypatch, "answers_probe", value=True)
    running = [prompt(sent_at=0.0), prompt(id=2, sent_at=second, name="other")]
    play = stub_play_of(*running)
    assert await _examine_owed(play, running) is False
    assert trio.current_time() == pytest.approx(seconds)
    assert len(play.session.found) == found
    stopped = [play.call_times._stopped[each.name] for each in running]
    assert sum(stopped) == found
    assert play.session.open == {}


# -- Calls since which the server answers nothing --------------------------------------------------


@pytest.mark.parametrize(
    ("change", "seconds", "is_reported"),
    [
        ({}, 65.0, True),
        ({"arrives": 64.0}, 64.0, False),
        ({"is_slow": True}, 65.0, False),
        ({"probe": True}, 65.0, False),
        ({"ended": "it has ended"}, 0.0, False),
        ({"is_misled": True}, 0.0, False),
        ({"may_be_busy": True}, 0.0, False),
        ({"beside": True}, 0.0, False),
        ({"is_closed": True}, 0.0, False),
        ({"stopped": 3}, 0.0, False),
        ({"stopped": 3, "wanted": ("RPC-35", "hung")}, 65.0, True),
        ({"stopped": 3, "wanted": ("RPC-35", "")}, 0.0, False),
    ],
)
async def test_server_hangs_since_a_call_unless_something_else_can_be_the_reason(
    change: dict[str, Any],
    seconds: float,
    is_reported: bool,
    autojump_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call gets the longest time, and only then is the server asked whether it answers."""
    at_once(monkeypatch, "answers_probe", change.get("probe", False))
    times = CallTimes(65.0)
    times.add("tools/call nap", 0.1)
    for _ in range(change.get("stopped", 0)):
        times.add_stopped("tools/call nap hung")
    call = stub_call(id=2)
    running = [call, *([stub_call("other", id=3)] if "beside" in change else [])]
    of_session = {"is_misled", "may_be_busy", "ended"}
    session = {key: each for key, each in change.items() if key in of_session}
    play = stub_play_of(stub_call(answer=RESULT), *running, times=times, **session)
    if "is_closed" in change:
        play.session.open.clear()
    if "arrives" in change:
        play.session.arrivals.append((change["arrives"], call, RESULT))
    play.echo = SlowMachine() if "is_slow" in change else None
    play.wanted = change.get("wanted")
    await _examine_hung(play, running)
    assert trio.current_time() == pytest.approx(seconds)
    assert [each.kind for each in play.session.found] == ["hang"] * is_reported


@pytest.mark.parametrize(
    ("proves", "slowest", "is_certain"),
    [(True, 0.6, True), (True, 0.7, False), (False, 0.6, False)],
)
async def test_hang_is_certain_after_calls_that_were_very_quick(
    proves: bool,
    slowest: float,
    is_certain: bool,
    autojump_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A play that proves it needs 3 % of the longest time. The lost call isn't a second fault."""
    at_once(monkeypatch, "answers_probe", value=False)
    times = CallTimes(65.0, proves=proves)
    times.add("tools/call nap", slowest)
    call = stub_call(id=2)
    play = stub_play_of(stub_call(answer=RESULT), call, times=times)
    sent = '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "nap",'
    sent += ' "arguments": {}}}'
    others = [
        TargetFault(kind="row", row="RPC-35", detail=detail, sent=text)
        for detail, text in (("never", sent), ("never", "other"), ("stopped", sent))
    ]
    for each in others:
        play.session.add_fault(each)
    await _examine_hung(play, [call])
    *kept, fault = play.session.found
    assert kept == others[1:]
    assert (fault.sent, fault.detail, fault.is_certain) == (sent, "hung", is_certain)
    assert fault.sentence.startswith("the server answers nothing within 65 s, not even ping, since")
    assert fault.sentence.endswith(": to look at, unless the tool may take so long") is (
        not is_certain
    )


# -- Requests that are lost with a cancelled one ---------------------------------------------------


@pytest.mark.parametrize(
    ("change", "seconds", "is_reported"),
    [
        ({}, 30.0, True),
        ({"transport": "http"}, 30.0, True),
        ({"arrives": 29.0}, 29.0, False),
        ({"probe": False}, 30.0, False),
        ({"elsewhere": False}, 5.0, False),
        ({"is_slow": True}, 0.0, False),
        ({"is_misled": True}, 0.0, False),
        ({"has_slow_twin": True}, 0.0, False),
        ({"stopped": 3}, 0.0, False),
        ({"stopped": 3, "wanted": ("RPC-35", "with the cancelled")}, 30.0, True),
        ({"was_overdue": True}, 0.0, False),
        ({"was_open": False}, 0.0, False),
        ({"is_odd": True}, 0.0, False),
        ({"second": True}, 0.0, False),
        ({"before": 17}, 30.0, True),
        ({"before": 18}, 0.0, False),
        ({"before_cancel": 1}, 0.0, False),
    ],
    ids=str,
)
async def test_request_is_lost_with_another_one_unless_something_else_can_be_the_reason(
    change: dict[str, Any],
    seconds: float,
    is_reported: bool,
    autojump_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two other sessions answer in 5 s each, so it gets 10 s more than the longest time."""
    elsewhere = at_once(
        monkeypatch, "_are_answered_elsewhere", change.get("elsewhere", True), seconds=5.0
    )
    at_once(monkeypatch, "answers_probe", change.get("probe", True))
    cancelled = stub_call(cancelled=True)
    lost = stub_call(id=2, was_open=change.get("was_open", True))
    more = [stub_list(id=10 + each, answer=RESULT) for each in range(change.get("before", 0))]
    odd = stub_list(id=3, is_plain="is_odd" not in change, answer=RESULT)
    of_session = {"is_misled", "transport"}
    session = {key: each for key, each in change.items() if key in of_session}
    play = stub_play_of(cancelled, lost, odd, *more, stub_list(id=99), **session)
    play.before_cancel = change.get("before_cancel", 3 + len(more))
    play.overdue_before_cancel = [lost] * ("was_overdue" in change)
    play.has_slow_twin = "has_slow_twin" in change
    play.echo = SlowMachine() if "is_slow" in change else None
    play.wanted = change.get("wanted")
    if "second" in change:
        play.clients.first = StubSession()
    for _ in range(change.get("stopped", 0)):
        play.call_times.add_stopped("tools/call nap with the cancelled")
    if "arrives" in change:
        play.session.arrivals.append((change["arrives"], lost, RESULT))
    await _examine_lost(play, [lost])
    assert trio.current_time() == pytest.approx(seconds)
    assert play.session.spent is is_reported
    assert play.has_slow_twin is ("elsewhere" in change or "has_slow_twin" in change)
    if is_reported:
        [fault] = play.session.found
        assert (fault.detail, fault.is_certain) == ("with the cancelled", True)
        other = "another session" if "transport" in change else "a fresh process"
        assert fault.sentence == (
            "the request tools/call gets no response within 10 s, after the cancellation of another"
            f" one; {other} gets it, among the same requests without the cancellation"
        )
        assert 2 not in play.session.open
        without, all_of_them = (arguments[1] for arguments in elsewhere)
        assert (without[0], all_of_them[:2]) == (lost, [cancelled, lost])
    else:
        assert play.session.found == []


# -- The same again --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "options", "serves"),
    [
        (RESULT, {}, True),
        (ERROR, {}, False),
        (None, {}, False),
        (RESULT, {"is_unknown": True}, False),
        (RESULT, {"is_forbidden": True}, False),
        (RESULT, {"ended": "it has ended"}, False),
    ],
)
async def test_calls_are_served_again_once_a_quick_one_is_quick(
    answer: Any,
    options: dict[str, Any],
    serves: bool,
    autojump_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call, again = stub_call(), stub_call(id=2, answer=answer)
    quick = {} if "is_unknown" in options else {call.name: SimpleQuickest(call)}
    play = stub_play_of(quickest=quick, running={call.name}, ended=options.get("ended", ""))
    made = at_once(monkeypatch, "_call_again", None if "is_forbidden" in options else again)
    assert await serves_calls_again(play) is serves
    assert play.session.running == (set() if serves else {call.name})
    assert again.cancelled is (answer is None)
    assert made == ([] if "is_unknown" in options else [(play, call)])


class SimpleQuickest:
    """The quickest call of a tool."""

    def __init__(self, request: Any) -> None:
        self.request = request


@pytest.mark.parametrize("token", [None, 7])
async def test_call_is_sent_again_with_a_token_of_its_own(token: Any, autojump_clock: Any) -> None:
    """It has the time of any call of its name."""
    times = CallTimes()
    times.add("tools/call nap", 1.0)
    request = stub_call(token=token, arguments={"a": 1})
    request.message["params"]["_meta"] = {"progressToken": token}
    for seconds, answer in ((2.9, RESULT), (3.1, None)):
        began = trio.current_time()
        play = stub_play_of(times=times, replies={"tools/call": (seconds, RESULT)})
        play.session.new_token = lambda: "new"
        again = await _call_again(play, request)
        assert again is not None
        assert again.answer == answer
        assert trio.current_time() - began == pytest.approx(min(seconds, 3.0))
        params = again.message["params"]
        meta = {} if token is None else {"_meta": {"progressToken": "new"}}
        assert params == {"name": "nap", "arguments": {"a": 1}, **meta}


@pytest.mark.parametrize(
    ("options", "seconds", "is_answered"),
    [
        ({"replies": {"tools/call": (2.9, RESULT)}}, 2.9, True),
        ({"replies": {"tools/call": (3.1, RESULT)}}, 3.0, False),
        ({"replies": {"tools/call": (1.0, ERROR)}}, 1.0, False),
        ({"replies": {"tools/call": (9.0, RESULT)}, "among": True}, 9.0, True),
        ({"replies": {"tools/call": (11.0, RESULT)}, "among": True}, 10.0, False),
        ({"is_open": False}, 0.0, False),
        ({"error": ToolNotAllowed("nap")}, 0.0, False),
        ({"error": ValueError("no")}, 0.0, None),
    ],
)
async def test_another_session_is_asked_for_the_same_result(
    options: dict[str, Any],
    seconds: float,
    is_answered: bool | None,
    autojump_clock: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Alone a call has its own time, and among others the longest one. The session is closed."""
    error, is_among = options.pop("error", None), options.pop("among", False)
    fresh = StubSession(**options)

    async def open_fresh() -> StubSession:
        return fresh

    async def begin(other: Any, revision: str, how: str, offers: Any) -> None:
        assert (revision, how, offers) == ("2025-11-25", "whole", "its offers")
        if error is not None:
            raise error

    monkeypatch.setattr(_unanswered, "open_conversation", begin)
    times = CallTimes()
    times.add("tools/call nap", 1.0)
    call = stub_call()
    sent = [stub_list(id=5), call] if is_among else [call]
    play = stub_play_of(*sent, times=times, fresh=open_fresh, offers="its offers")
    if is_answered is None:
        with pytest.raises(ValueError, match="no"):
            await _are_answered_elsewhere(play, sent, [call])
    else:
        assert await _are_answered_elsewhere(play, sent, [call]) is is_answered
    assert trio.current_time() == pytest.approx(seconds)
    assert fresh.closed == 1
    assert play.session.closed == 0


async def test_target_that_starts_no_other_session_answers_nowhere_else() -> None:
    async def open_fresh() -> StubSession:
        raise ConnectFailed("no")

    play = stub_play_of(fresh=open_fresh)
    assert not await _are_answered_elsewhere(play, [stub_call()], [stub_call()])


async def test_first_of_two_calls_is_the_one_since_which_a_server_hangs(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(monkeypatch, "answers_probe", value=False)
    times = CallTimes(65.0)
    times.add("tools/call nap", 0.1)
    running = [stub_call(id=2), stub_call(id=3)]
    play = stub_play_of(stub_call(answer=RESULT), *running, times=times)
    await _examine_hung(play, running)
    [fault] = play.session.found
    assert '"id": 2,' in fault.sent
