"""Requests without a response: which of them are faults."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._session import MESSAGE_LIMIT
from mcp_trio.oracle.fuzz.play import _unanswered
from mcp_trio.oracle.fuzz.play._player import Player
from mcp_trio.oracle.fuzz.play._unanswered import (
    _examine_stopped,
    _is_same_each_time,
    _should_be_quick,
    _without_meta,
    _without_texts,
    report_missing,
)
from tests.trio_.oracle.fuzz.memory_http import (
    EMPTY_STREAM,
    SSE,
    HttpResponse,
    faults_of,
    played_over_http,
    responds_with,
    response_to,
)
from tests.trio_.oracle.fuzz.memory_target import OLD
from tests.trio_.oracle.fuzz.play.stub_play import stub_call, stub_list, stub_play_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.fuzz._case import Case

OPEN = ("open", OLD, "whole", "all")
LIST: tuple[str, str, Any] = ("request", "tools/list", {})
LARGE = {"jsonrpc": "2.0", "id": 1_003, "result": {"tools": [], "a": "a" * MESSAGE_LIMIT}}


@pytest.mark.parametrize(("id", "is_certain"), [(2**53 + 1, False), (2**53 - 1, True)])
async def test_request_with_an_id_beyond_doubles_may_get_no_response(
    autojump_clock: Any, id: int, is_certain: bool
) -> None:
    case: Case = [OPEN, ("request", "tools/list", {}, [id])]
    outcome, _ = await played_over_http(responds_with(EMPTY_STREAM), case)
    found = [each.is_certain for each in outcome.faults if each.row == "RPC-35"]
    assert found == [is_certain]


CALL: tuple[Any, ...] = ("call", "nap", {}, ("progress",))
WAIT = ("wait",)


def on_second(*steps: Any) -> list[Any]:
    return [("on", 1, *each) for each in steps]


@pytest.mark.parametrize(
    ("served", "times", "is_certain"),
    [
        ("first", CallTimes(65.0, proves=True), True),
        ("first", CallTimes(), False),
        ("both", CallTimes(65.0, proves=True), None),
        # Then the tool can be slow at this moment.
        ("three calls", CallTimes(65.0, proves=True), False),
    ],
)
async def test_tool_that_answers_the_first_client_only_has_stopped_for_the_second(
    autojump_clock: Any, served: str, times: CallTimes, is_certain: bool | None
) -> None:
    """A further session may hang like the second one. So the first client calls again."""
    sessions = itertools.count()
    called = itertools.count()

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        response = response_to(message)
        if message.get("method") == "initialize":
            found = json.loads(response.body)
            found["result"]["capabilities"] = {"tools": {}}
            session = f"session-{next(sessions)}-0123456789"
            return response._replace(session=session, body=json.dumps(found).encode())
        if message.get("method") != "tools/call":
            return response
        is_first = not str(message["params"]["_meta"]["progressToken"]).startswith("second")
        is_served = {"first": is_first, "both": True, "three calls": next(called) < 3}[served]
        result = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        body = json.dumps(result).encode()
        return HttpResponse(body=body, after=None if is_served else trio.Event())

    turn = [CALL, WAIT]
    case = [OPEN, *on_second(OPEN), *turn, *turn, *on_second(*turn), *on_second(*turn)]
    outcome, _ = await played_over_http(respond, case, Player(call_times=times))
    found = [each for each in outcome.faults if each.row == "RPC-35"]
    assert [each.is_certain for each in found] == ([] if is_certain is None else [is_certain])
    if served == "first":
        assert found[0].detail == "stopped"
        assert found[0].sentence.startswith(
            '"nap" has answered the other client before, and does not answer a call within'
        )
        assert "while the other client gets a result for the same call" in found[0].sentence
        assert found[0].sentence.endswith(", for the second client")


@pytest.mark.parametrize(
    "response", [EMPTY_STREAM, HttpResponse(), HttpResponse(202), HttpResponse(204)]
)
async def test_request_whose_exchange_ends_without_response_is_a_fault(
    autojump_clock: Any, response: HttpResponse
) -> None:
    assert ("row", "RPC-35", "tools/list") in await faults_of(responds_with(response), OPEN, LIST)


@pytest.mark.parametrize(
    "response",
    [
        *(HttpResponse(status) for status in (400, 401, 404, 429, 500, 503)),
        HttpResponse(type=SSE, body=b"id: 1\ndata:\n\n"),
        HttpResponse(type=SSE, is_cut=True),
        HttpResponse(body=json.dumps(LARGE).encode()),
    ],
    ids=["400", "401", "404", "429", "500", "503", "resumable", "cut", "large"],
)
async def test_request_that_is_rejected_or_may_get_its_response_elsewhere_is_no_fault(
    autojump_clock: Any, response: HttpResponse
) -> None:
    assert ("row", "RPC-35", "tools/list") not in await faults_of(
        responds_with(response), OPEN, LIST
    )


async def test_response_that_is_cut_off_is_a_fault_and_not_taken_for_a_long_one(
    autojump_clock: Any,
) -> None:
    cut = HttpResponse(body=b'{"jsonrpc": "2.0", "id"', is_cut=True)
    outcome, _ = await played_over_http(responds_with(cut), [OPEN, LIST])
    (fault,) = outcome.faults
    assert (fault.row, fault.is_certain) == ("RPC-35", True)
    assert fault.sentence.endswith("got no response: the server has cut off the HTTP response")
    assert outcome.notes == []


@pytest.mark.parametrize(
    "case",
    [
        [OPEN, LIST, ("cancel", 0), ("page", "prompts/list", "first")],
        [OPEN, LIST, ("delete", "own")],
        [OPEN, LIST, ("disconnect",)],
    ],
    ids=["cancel", "delete", "disconnect"],
)
async def test_request_whose_stream_ends_because_of_the_case_is_no_fault(
    autojump_clock: Any, case: Case
) -> None:
    is_over = trio.Event()

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        if message.get("method") == "tools/list":
            return EMPTY_STREAM._replace(after=is_over)
        if not message or message.get("method") == "notifications/cancelled":
            is_over.set()
        return response_to(message)

    assert await faults_of(respond, *case) == []


@pytest.mark.parametrize(
    "case", [[OPEN, ("head", "accept", "tools/list")], [("open", OLD, "late", "all")]]
)
async def test_request_to_which_no_response_is_owed_is_no_fault(
    autojump_clock: Any, case: Case
) -> None:
    assert await faults_of(responds_with(EMPTY_STREAM), *case) == []


# -- Tables of what makes a missing response a fault -----------------------------------------------

RESULT: dict[str, Any] = {"result": {"content": []}}


@pytest.mark.parametrize(
    ("former", "request_", "is_quick"),
    [
        ({"arguments": {"a": "x"}}, {"arguments": {"a": "y"}}, True),
        ({"arguments": {"a": 1}}, {"arguments": {"a": 2}}, False),
        ({"arguments": {"a": "1"}}, {"arguments": {"a": 1}}, False),
        ({}, {"method": "prompts/get"}, False),
        ({}, {"is_plain": False}, False),
        ({}, {"batch": 1}, False),
        ({"name": "other"}, {}, False),
        ({"answer": None}, {}, False),
        ({"answer": {"error": {"code": 1, "message": "no"}}}, {}, False),
        ({"answer": {"result": 5}}, {}, False),
        ({"answer": {"result": {"isError": True}}}, {}, False),
        ({"answer": {"result": {"isError": False}}}, {}, True),
    ],
)
def test_call_should_be_quick_if_the_last_one_differs_only_in_texts(
    former: Any, request_: Any, is_quick: bool
) -> None:
    times = CallTimes()
    for name in ("tools/call nap", "prompts/get nap"):
        times.add(name, 0.1)
    first = stub_call(**{"answer": RESULT, **former})
    assert (
        _should_be_quick(stub_play_of(first, times=times), stub_call(id=2, **request_)) is is_quick
    )


@pytest.mark.parametrize(
    ("slowest", "is_quick"), [(None, False), (0.1, True), (0.33, True), (0.34, False)]
)
def test_call_should_be_quick_if_the_slowest_one_was(slowest: float | None, is_quick: bool) -> None:
    """It may take three times as long, up to a tenth of the 10 s of any call."""
    times = CallTimes()
    if slowest is not None:
        times.add("tools/call nap", slowest)
    play = stub_play_of(stub_call(answer=RESULT), times=times)
    assert _should_be_quick(play, stub_call(id=2)) is is_quick


@pytest.mark.parametrize("is_last", [True, False])
def test_call_is_compared_with_the_last_result_of_its_tool(is_last: bool) -> None:
    times = CallTimes()
    times.add("tools/call nap", 0.1)
    answered = [stub_call(arguments={"a": each}, answer=RESULT) for each in (1, 2)]
    play = stub_play_of(*answered, stub_call("other", id=5, answer=RESULT), times=times)
    assert _should_be_quick(play, stub_call(arguments={"a": 2 if is_last else 1}, id=9)) is is_last


@pytest.mark.parametrize("is_first", [True, False])
def test_call_after_a_failed_one_may_take_long(is_first: bool) -> None:
    """Only the last result counts."""
    times = CallTimes()
    times.add("tools/call nap", 0.1)
    answers = [{"result": {"isError": True}}, RESULT]
    answered = [stub_call(answer=each) for each in (answers if is_first else answers[::-1])]
    assert _should_be_quick(stub_play_of(*answered, times=times), stub_call(id=9)) is is_first


def in_levels(levels: int, value: Any) -> Any:
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("a", ""),
        (5, 5),
        (None, None),
        ({"a": "b", "c": ["d", 1]}, {"a": "", "c": ["", 1]}),
        (in_levels(6, "a"), in_levels(6, "")),
        (in_levels(7, "a"), in_levels(7, "a")),
    ],
)
def test_texts_are_left_out_of_six_levels(value: Any, found: Any) -> None:
    assert _without_texts(value) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [({"_meta": {"a": 1}, "b": {"_meta": 2}}, {"b": {"_meta": 2}}), ([1], [1]), (None, None)],
)
def test_meta_is_left_out_of_an_object(value: Any, found: Any) -> None:
    assert _without_meta(value) == found


OTHER = {"result": {"content": [1]}}
SAME = [{"answer": RESULT}, {"answer": RESULT}]


@pytest.mark.parametrize(
    ("calls", "is_same"),
    [
        (SAME, True),
        ([*SAME, {"answer": None}], True),
        ([*SAME, {"method": "initialize", "name": "x", "answer": OTHER}], True),
        ([*SAME, {"method": "ping", "name": "x", "answer": OTHER}], True),
        ([*SAME, {"method": "tools/list", "name": "x", "answer": OTHER}], False),
        ([{"answer": RESULT}], False),
        ([], False),
        ([{"answer": RESULT}, {"answer": OTHER}], False),
        ([*SAME, {"arguments": {"a": 1}, "answer": RESULT}], False),
        ([{"answer": {"error": 1}}] * 2, False),
        ([{"answer": {"result": 5}}] * 2, False),
    ],
)
def test_tool_is_the_same_each_time_if_nothing_else_was_sent(calls: Any, is_same: bool) -> None:
    """Both clients of the case count."""
    for count in range(len(calls) + 1):
        play = stub_play_of(*(stub_call(**each) for each in calls[:count]))
        play.clients.other = stub_play_of(*(stub_call(**each) for each in calls[count:])).session
        assert _is_same_each_time(play, stub_call()) is is_same
        assert not _is_same_each_time(play, stub_call(arguments={"b": 1}))


NOT_EVERY = "not every reader has numbers that large, or values nested so deeply"


@pytest.mark.parametrize(
    ("request_", "seconds", "sentence", "detail"),
    [
        ({}, 0.0, "was not answered within 2 s", ""),
        ({}, 7.5, "was not answered within 7.5 s", ""),
        ({"loss": "missing"}, 0.0, "got no response: its HTTP exchange is complete", ""),
        (
            {"loss": "cut"},
            0.0,
            "got no response: the server has cut off the HTTP response",
            "",
        ),
        ({"batch": 1}, 0.0, "was not answered within 2 s; it was in a batch", "batch"),
        (
            {"id": 2**53 + 1},
            0.0,
            f"was not answered within 2 s: {NOT_EVERY}",
            "large",
        ),
        (
            {"id": 2**53 + 1, "batch": 1},
            0.0,
            f"was not answered within 2 s; it was in a batch: {NOT_EVERY}",
            "batch large",
        ),
    ],
)
def test_missing_response_is_reported_with_its_reason(
    request_: Any, seconds: float, sentence: str, detail: str
) -> None:
    request = stub_list(**request_)
    play = stub_play_of(request)
    report_missing(play, request, seconds)
    [fault] = play.session.found
    assert fault.sentence == f"the request tools/list {sentence}"
    assert (fault.row, fault.method, fault.detail) == ("RPC-35", "tools/list", detail)
    assert json.loads(fault.sent) == request.message
    assert fault.is_certain is (detail == "")
    assert play.session.spent
    assert OLD in fault.link


@pytest.mark.parametrize(
    ("request_", "unread", "is_reported"),
    [
        ({"is_plain": False}, 0, True),
        ({"is_plain": False}, 1, False),
        ({"is_plain": False, "unread": 1}, 1, True),
        ({}, 1, True),
    ],
)
def test_error_without_an_id_can_be_the_response_to_an_odd_request(
    request_: Any, unread: int, is_reported: bool
) -> None:
    request = stub_list(**request_)
    play = stub_play_of(request, unread_errors=unread)
    report_missing(play, request)
    assert bool(play.session.found) is is_reported
    assert play.session.spent is is_reported


def test_request_that_is_known_to_be_dropped_leaves_its_session_as_it_is() -> None:
    for was_spent in (False, True):
        request = stub_call(method="m" * 100, is_dropped=True)
        play = stub_play_of(request, spent=was_spent)
        report_missing(play, request)
        assert play.session.spent is was_spent
        assert play.session.found[0].sentence.startswith(f"the request {'m' * 80} was not")


def test_malformed_message_without_a_response_breaks_a_row_of_its_own() -> None:
    request = stub_list()
    request.message = {**request.message, "params": []}
    play = stub_play_of(request)
    report_missing(play, request)
    [fault] = play.session.found
    assert fault.row == "RPC-17"
    assert fault.sentence.startswith(
        "the request tools/list was not answered within 2 s; the message was malformed: "
    )


@pytest.mark.parametrize("loss", ["", "cut"])
def test_call_that_may_still_run_makes_a_missing_response_advice(loss: str) -> None:
    """A response that is cut off is a fault nevertheless."""
    request = stub_list(loss=loss)
    play = stub_play_of(request, may_be_busy=True)
    report_missing(play, request)
    [fault] = play.session.found
    assert (fault.detail, fault.is_certain) == (("", True) if loss else ("cancelled", False))
    excuse = ", after the cancellation of a call that may still run"
    assert fault.sentence.endswith(excuse) is (not loss)


# -- Tools that have stopped -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"method": "prompts/get"},
        {"is_plain": False},
        {"is_unknown": True},
        {"may_be_busy": True},
        {"before_cancel": 1},
        {"is_misled": True},
        {"stopped": 3},
        {"ended": "it has ended"},
        {"is_slow": True},
        {"comes": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("other", ["", "a fresh process"])
async def test_tool_has_stopped_unless_something_else_can_be_the_reason(
    change: dict[str, Any], other: str, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is waited for up to the longest time, and as long as the other session took."""
    change = dict(change)
    is_unknown, is_slow = change.pop("is_unknown", False), change.pop("is_slow", False)
    before, stopped = change.pop("before_cancel", 0), change.pop("stopped", 0)
    comes = change.pop("comes", False)
    of_session = {"may_be_busy", "is_misled", "ended"}
    request = stub_call(**{key: each for key, each in change.items() if key not in of_session})
    known = {} if is_unknown else {request.name: request}
    session = {key: each for key, each in change.items() if key in of_session}
    play = stub_play_of(request, quickest=known, **session)
    play.before_cancel = before
    for _ in range(stopped):
        play.call_times.add_stopped(request.name)

    async def find_answered(*_: Any) -> str:
        await trio.sleep(30.0)
        request.answer = RESULT if comes else None
        return other

    async def slow() -> bool:
        return bool(is_slow)

    monkeypatch.setattr(_unanswered, "_find_answered", find_answered)
    monkeypatch.setattr(play, "is_slow", slow)
    began = trio.current_time()
    await _examine_stopped(play, request)
    seconds = trio.current_time() - began
    if change or is_unknown or is_slow or before or stopped:
        assert (seconds, play.session.found) == (0.0, [])
    elif comes:
        assert (seconds, play.session.found) == (30.0, [])
    else:
        assert seconds == 60.0
        [fault] = play.session.found
        assert (fault.detail, fault.is_certain) == ("stopped" if other else "never", False)
        assert json.loads(fault.sent) == request.message
        assert fault.sentence == (
            '"nap" has answered before, and does not answer a call within 10 s, while a fresh'
            " process gets a result for the same call: to look at, unless the tool may wait"
            if other
            else '"nap" has answered other calls, and never answers this one within 10 s: to look'
            " at, unless the tool may take so long"
        )


@pytest.mark.parametrize(
    "change",
    [{}, {"proves": False}, {"slowest": 4.0}, {"others": 1}, {"probe": False}],
    ids=str,
)
async def test_tool_has_certainly_stopped_only_with_each_proof(
    change: dict[str, Any], autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of nothing else, quick ones, a time that proves it, and a server that answers."""
    times = CallTimes(65.0, proves=change.get("proves", True))
    times.add("tools/call nap", change.get("slowest", 0.1))
    before = [stub_call(answer=RESULT, id=id) for id in (1, 2)]
    more = [stub_call("other", answer=RESULT, id=3)] * change.get("others", 0)
    request = stub_call(id=4)
    play = stub_play_of(*before, *more, request, times=times, quickest={request.name: before[0]})
    probed = []

    async def answers_probe(play: Any) -> bool:
        probed.append(play)
        return change.get("probe") is not False

    async def find_answered(*_: Any) -> str:
        return "a fresh process"

    monkeypatch.setattr(_unanswered, "answers_probe", answers_probe)
    monkeypatch.setattr(_unanswered, "_find_answered", find_answered)
    await _examine_stopped(play, request)
    [fault] = play.session.found
    assert fault.is_certain is (not change)
    assert fault.sentence.endswith(": to look at, unless the tool may wait") is bool(change)
    assert bool(probed) is (not change or "probe" in change)
    assert trio.current_time() >= 65.0
