"""How long each wait of a play takes, with a session that is a table."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz.play._waiting import (
    _count_vain_wait,
    _start_timeout,
    answers_probe,
    begin_of,
    ends_early,
    exchange,
    exchange_probe,
    is_blocked,
    is_waiting,
    may_be_starting,
    note_blocked,
    open_requests,
    slow_start,
    wait_as_long,
    wait_for,
    wait_for_responses,
    wait_for_start,
    wait_until,
)
from tests.trio_.oracle.fuzz.play.stub_play import stub_call, stub_list, stub_play_of

RESULT: dict[str, Any] = {"result": {"content": []}}
FAULT = TargetFault(kind="row", row="RPC-4")


class SlowHost:
    """An echo whose machine is slow."""

    async def is_slow(self) -> bool:
        """Return True."""
        return True


def never() -> bool:
    return False


# -- Processes that start --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "played", "seconds"),
    [
        (None, 1, 0.0),
        (1.9, 1, 0.0),
        (2.0, 1, 4.0),
        (2.0, 0, 4.0),
        (2.0, 2, 0.0),
        (14.0, 1, 28.0),
        (16.0, 1, 30.0),
    ],
)
def test_first_case_of_a_slow_process_has_twice_its_start(
    start: float | None, played: int, seconds: float
) -> None:
    assert slow_start(stub_play_of(longest_start=start, played=played)) == seconds


@pytest.mark.parametrize(
    ("start", "seconds"), [(None, 30.0), (0.0, 2.0), (1.0, 5.0), (9.0, 29.0), (10.0, 30.0)]
)
def test_start_may_take_three_times_the_longest_one(start: float | None, seconds: float) -> None:
    assert _start_timeout(stub_play_of(longest_start=start)) == seconds


@pytest.mark.parametrize(
    ("transport", "has_spoken", "starts"),
    [("stdio", False, True), ("stdio", True, False), ("http", False, False)],
)
def test_process_is_starting_until_it_speaks(
    transport: str, has_spoken: bool, starts: bool
) -> None:
    assert may_be_starting(stub_play_of(transport=transport, has_spoken=has_spoken)) is starts


@pytest.mark.parametrize(
    ("has_spoken", "opened_at", "start", "begin"),
    [
        (True, 5.0, 2.0, 3.0),
        (False, 5.0, 2.0, 7.0),
        (False, 5.0, None, 5.0),
        (False, 0.0, 1.0, 3.0),
    ],
)
def test_time_of_a_request_begins_once_its_process_reads(
    has_spoken: bool, opened_at: float, start: float | None, begin: float
) -> None:
    play = stub_play_of(has_spoken=has_spoken, opened_at=opened_at, longest_start=start)
    assert begin_of(play, stub_call(sent_at=3.0)) == begin


async def test_start_is_waited_for_and_then_the_other_responses(autojump_clock: Any) -> None:
    """The request that asks for a sign of life isn't a part of the case."""
    for seconds, total in ((7.0, 8.5), (31.0, 30.0 + 2.0), (None, 30.0 + 2.0)):
        began = trio.current_time()
        request = stub_list(sent_at=began)
        replies = {} if seconds is None else {"server/discover": (seconds, RESULT)}
        play = stub_play_of(request, has_spoken=False, opened_at=began, replies=replies)
        if seconds == 7.0:
            play.session.arrivals.append((began + 8.5, request, RESULT))
        await wait_for_start(play)
        assert [each["method"] for each in play.session.sent] == ["server/discover"]
        assert play.session.last_sent == "before"
        assert list(play.session.open) == ([] if seconds == 7.0 else [1])
        if seconds != 31.0:
            assert trio.current_time() - began == pytest.approx(total)


# -- Waits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout", "messages", "seconds"),
    [
        (0.0, [], 2.0),
        (5.0, [], 5.0),
        (0.0, [1.0], 3.0),
        (0.0, [1.5, 3.0, 4.5, 6.0, 7.5], 8.0),  # four times 2 s
        (0.5, [0.4, 0.8, 1.2, 1.6, 2.0], 2.0),
        (10.0, [9.0], 10.0),  # a long one isn't prolonged
        (7.0, [3.0], 8.0),
        (0.0, [2.5], 2.0),
    ],
)
async def test_messages_prolong_a_short_wait(
    timeout: float, messages: list[float], seconds: float, autojump_clock: Any
) -> None:
    play = stub_play_of()
    play.session.arrivals += [(each, stub_list(), None) for each in messages]
    await wait_until(play, never, timeout)
    assert trio.current_time() == pytest.approx(seconds)


async def test_each_response_prolongs_a_wait(autojump_clock: Any) -> None:
    play = stub_play_of()
    for number in range(1, 11):
        play.session.arrivals.append((1.5 * number, stub_list(id=number), RESULT))
    await wait_until(play, never)
    assert trio.current_time() == pytest.approx(17.0)


async def test_question_of_the_server_is_answered_while_the_play_waits(autojump_clock: Any) -> None:
    asked = [{"id": 7, "method": "roots/list"}, {"id": 8, "method": "acme"}]
    play = stub_play_of(asked=asked)
    await wait_until(play, never)
    assert trio.current_time() == 2.0
    assert [("result" in each, each["id"]) for each in play.session.sent] == [(True, 7), (False, 8)]
    assert play.session.asked == []


@pytest.mark.parametrize(("is_done", "ended"), [(True, ""), (False, "it has ended")])
async def test_wait_that_is_over_takes_no_time(
    is_done: bool, ended: str, autojump_clock: Any
) -> None:
    play = stub_play_of(ended=ended, asked=[{"id": 7, "method": "roots/list"}])
    await wait_until(play, lambda: is_done)
    await wait_as_long(play, [] if is_done else [stub_list()], 9.0)
    assert trio.current_time() == 0.0
    assert play.session.sent == []


@pytest.mark.parametrize(("second", "seconds"), [(7.0, 7.0), (9.5, 9.0), (None, 9.0)])
async def test_wait_of_a_length_ends_with_the_last_response(
    second: float | None, seconds: float, autojump_clock: Any
) -> None:
    """Messages change nothing."""
    requests = [stub_list(answer=RESULT), stub_list(id=2)]
    play = stub_play_of(*requests)
    play.session.arrivals.append((3.0, requests[0], None))
    if second is not None:
        play.session.arrivals.append((second, requests[1], RESULT))
    await wait_as_long(play, requests, 9.0)
    assert trio.current_time() == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("timeout", "drops_some", "arrives", "seconds", "vain"),
    [
        (0.0, False, None, 2.0, 1),
        (0.0, True, None, 0.5, 1),
        (5.0, True, None, 5.0, 1),
        (0.0, False, 1.0, 1.0, 0),
    ],
)
async def test_wait_for_a_response_is_vain_without_it(
    timeout: float,
    drops_some: bool,
    arrives: float | None,
    seconds: float,
    vain: int,
    autojump_clock: Any,
) -> None:
    request = stub_list()
    play = stub_play_of(request, stub_list(id=2), drops_some=drops_some)
    if arrives is not None:
        play.session.arrivals.append((arrives, request, RESULT))
    await wait_for(play, request, timeout)
    assert trio.current_time() == pytest.approx(seconds)
    assert play.session.vain_waits == vain


@pytest.mark.parametrize(
    ("request_", "session", "count"),
    [
        ({}, {}, 1),
        ({"method": "tools/call"}, {}, 0),
        ({"is_plain": False}, {}, 0),
        ({"was_open": False}, {}, 0),
        ({"is_owed": False}, {}, 0),
        ({"cancelled": True}, {}, 0),
        ({}, {"longest_start": 2.0}, 0),
        ({}, {"has_spoken": False}, 0),
        ({}, {"has_spoken": False, "opened_at": -29.0}, 0),
        ({}, {"has_spoken": False, "opened_at": -30.0}, 1),
    ],
)
async def test_wait_counts_as_vain_if_the_server_owes_a_response(
    request_: Any, session: Any, count: int, autojump_clock: Any
) -> None:
    play = stub_play_of(stub_call(**{"method": "tools/list", **request_}), **session)
    _count_vain_wait(play)
    assert play.session.vain_waits == count


@pytest.mark.parametrize(
    ("request_", "unread", "waits", "is_open"),
    [
        ({}, 0, True, True),
        ({"cancelled": True}, 0, False, False),
        ({"overdue": "alone"}, 0, False, True),
        ({"is_dropped": True}, 0, False, False),
        ({"method": "subscriptions/listen"}, 0, False, False),
        ({"method": "tools/call", "sent_at": -9.9}, 0, True, True),
        ({"method": "tools/call", "sent_at": -10.0}, 0, False, True),
        ({"is_plain": False}, 0, True, True),
        ({"is_plain": False}, 1, False, True),
        ({"is_plain": False, "unread": 1}, 1, True, True),
        ({}, 1, True, True),
    ],
)
async def test_response_is_awaited_while_it_can_come(
    request_: Any, unread: int, waits: bool, is_open: bool, autojump_clock: Any
) -> None:
    request = stub_call(**{"method": "tools/list", **request_})
    play = stub_play_of(request, unread_errors=unread)
    assert is_waiting(play) is waits
    assert open_requests(play) == [request] * is_open
    play.session.open[2] = stub_list(id=2, unread=unread)  # a later one is seen, too
    assert is_waiting(play)


@pytest.mark.parametrize(
    ("requests", "seconds", "overdue", "vain", "late"),
    [
        ([stub_list], 2.0, ["alone"], 1, 0),
        ([stub_call], 10.0, ["behind"], 0, 1),
        ([stub_call, stub_list], 12.0, ["behind", "behind"], 1, 1),
        ([lambda **more: stub_call(batch=1, **more)], 10.0, ["behind"], 0, 0),
        ([lambda **more: stub_call(overdue="alone", **more)], 0.0, ["alone"], 0, 0),
    ],
)
async def test_requests_are_overdue_once_they_had_their_time(
    requests: Any,
    seconds: float,
    overdue: list[str],
    vain: int,
    late: int,
    autojump_clock: Any,
) -> None:
    """A call has 10 s. What came behind it has its own time after that."""
    sent = [make(id=number) for number, make in enumerate(requests)]
    play = stub_play_of(*sent)
    await wait_for_responses(play)
    assert trio.current_time() == pytest.approx(seconds, abs=0.01)
    assert [each.overdue for each in sent] == overdue
    assert play.session.vain_waits == vain
    assert play.call_times._late["tools/call nap"] == late


@pytest.mark.parametrize(("batch", "seconds"), [(2, 2.0), (0, 10.0)])
async def test_call_in_a_batch_is_waited_for_shortly_if_batches_are_dropped(
    batch: int, seconds: float, autojump_clock: Any
) -> None:
    """The request of an earlier batch, which runs no tool, has got no response."""
    earlier = stub_list(batch=1, overdue="alone", id=5)
    call = stub_call(batch=batch)
    play = stub_play_of(earlier, call)
    await wait_for_responses(play)
    assert trio.current_time() == pytest.approx(seconds)
    assert call.overdue == "behind"


# -- The probe -------------------------------------------------------------------------------------

BUSY = {"may_be_busy": True, "is_busy": True}


@pytest.mark.parametrize(
    ("session", "option", "seconds", "is_blocked_then"),
    [
        ({}, "", 2.0, False),
        ({"may_be_busy": True}, "", 12.0, False),
        (BUSY, "", 12.0, True),
        (BUSY, "was_blocked", 2.0, True),
        ({"may_be_busy": True}, "was_blocked", 12.0, False),
        ({}, "is_used", 6.0, False),
        ({}, "is_slow", 6.0, False),
        ({"longest_start": 3.0}, "", 8.0, False),
        ({"longest_start": 3.0, "played": 2}, "", 2.0, False),
        ({"has_spoken": False, "longest_start": 1.0}, "", 5.0, False),
        ({"has_spoken": True, "longest_start": 1.0}, "", 2.0, False),
        ({**BUSY, "ended": "it has ended"}, "", 0.0, False),
    ],
)
@pytest.mark.parametrize("early", [0.1, -0.1, None])
async def test_probe_has_more_time_if_the_server_may_be_slow(
    session: Any,
    option: str,
    seconds: float,
    is_blocked_then: bool,
    early: float | None,
    autojump_clock: Any,
) -> None:
    """It isn't a part of the case, so that it is never the last request of it."""
    replies = {} if early is None else {"ping": (seconds - early, RESULT)}
    play = stub_play_of(replies=replies, **session)
    play.was_blocked = option == "was_blocked"
    play.stress.is_used = option == "is_used"
    play.echo = SlowHost() if option == "is_slow" else None
    probe = await exchange_probe(play, "ping")
    is_answered = early == 0.1 and seconds > 0
    assert (probe.answer is not None) is is_answered
    assert trio.current_time() == pytest.approx(seconds - 0.1 if is_answered else seconds)
    assert play.session.last_sent == "before"
    assert is_blocked(play) is (is_blocked_then and (not is_answered or option == "was_blocked"))


@pytest.mark.parametrize(
    ("is_busy", "answer", "before", "found"),
    [
        (True, None, False, True),
        (True, RESULT, False, False),
        (False, None, False, False),
        (False, RESULT, True, True),
    ],
)
def test_server_is_blocked_if_a_call_runs_and_nothing_comes(
    is_busy: bool, answer: Any, before: bool, found: bool
) -> None:
    """After a `reconnect` the call is gone."""
    play = stub_play_of(is_busy=is_busy)
    play.was_blocked = before
    note_blocked(play, [stub_list(answer=RESULT), stub_list(answer=answer)])
    assert play.was_blocked is found
    assert is_blocked(play) is (found and is_busy)


@pytest.mark.parametrize(
    ("seconds", "loss", "is_alive", "total"),
    [
        (1.0, "", True, 1.0),
        (11.9, "", True, 11.9),
        (None, "", False, 12.0),
        (1.0, "broken", False, 1.0),
        (1.0, "cut", False, 1.0),
        (1.0, "missing", True, 1.0),
    ],
)
async def test_server_is_alive_if_it_answers_a_ping_in_ten_seconds_more(
    seconds: float | None, loss: str, is_alive: bool, total: float, autojump_clock: Any
) -> None:
    replies = {} if seconds is None else {"ping": (seconds, RESULT)}
    play = stub_play_of(replies=replies, loss=loss)
    assert await answers_probe(play) is is_alive
    assert trio.current_time() == pytest.approx(total)
    assert play.session.open == {}


@pytest.mark.parametrize(
    ("change", "ends", "probes", "drops_some"),
    [
        ({"vain_waits": 1}, False, 0, False),
        ({"vain_waits": 2, "ended": "it has ended"}, False, 0, False),
        ({"vain_waits": 2, "may_be_busy": True}, True, 0, False),
        ({"vain_waits": 2, "has_call": True}, True, 0, False),
        ({"vain_waits": 2}, True, 1, False),
        ({"vain_waits": 3}, True, 1, False),
        ({"vain_waits": 2, "replies": {"ping": (1.0, RESULT)}}, False, 1, True),
        (
            {"vain_waits": 2, "replies": {"ping": (1.0, RESULT)}, "overdue": ""},
            *(False, 1, False),
        ),
    ],
)
async def test_case_ends_early_after_two_vain_waits_if_the_server_is_silent(
    change: dict[str, Any], ends: bool, probes: int, drops_some: bool, autojump_clock: Any
) -> None:
    """A call that runs can be the reason, so it isn't asked then. Faults stay where they are."""
    change = dict(change)
    requests = [stub_list(overdue=change.pop("overdue", "alone"))]
    requests += [stub_call(id=2)] * bool(change.pop("has_call", False))
    play = stub_play_of(*requests, **change)
    play.session.found.append(FAULT)
    assert await ends_early(play) is ends
    assert len(play.session.sent) == probes
    assert play.session.vain_waits == (0 if probes or ends else change["vain_waits"])
    assert play.session.drops_some is drops_some
    assert play.session.found == [FAULT]
    assert list(play.session.open) == [each.id for each in requests]


@pytest.mark.parametrize(
    ("method", "session", "seconds"),
    [
        ("tools/list", {}, 2.0),
        ("tools/list", {"drops_some": True}, 0.5),
        ("initialize", {"drops_some": True}, 30.0),
        ("initialize", {"longest_start": 1.0}, 5.0),
        ("tools/list", {"has_spoken": False}, 30.0),
    ],
)
async def test_exchange_of_a_start_has_more_time(
    method: str, session: Any, seconds: float, autojump_clock: Any
) -> None:
    assert await exchange(stub_play_of(**session), method, {}) is None
    assert trio.current_time() == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("answer", "result"),
    [({"result": {"a": 1}}, {"a": 1}), ({"result": 5}, None), ({"error": {}}, None)],
)
async def test_exchange_returns_a_result_that_is_an_object(
    answer: Any, result: Any, autojump_clock: Any
) -> None:
    play = stub_play_of(replies={"tools/list": (1.0, answer)})
    assert await exchange(play, "tools/list", {"cursor": "a"}) == result
    [message] = play.session.sent
    assert message["params"] == {"cursor": "a"}
    assert trio.current_time() == 1.0
