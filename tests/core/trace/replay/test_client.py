"""The client of a trace: what it sends to a live server, and after what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.trace.judge.conversations import C, S, ask, error, notify, result
from tests.core.trace.replay.traces import HANDSHAKE, call, live_server, recorded, text
from tests.levels import long

OPENED = HANDSHAKE[1].message
ELICIT = "elicitation/create"
CHANGED = "notifications/tools/list_changed"


def methods(messages: list[Any]) -> list[str]:
    return [each.get("method", "response") for each in messages]


def test_messages_are_sent_after_what_the_recorded_client_had_seen() -> None:
    said = [*HANDSHAKE, C(call(1)), C(call(2)), S(text(2, "B")), S(text(1, "A")), C(call(3))]
    server = live_server(recorded(said))
    assert methods(server.received()) == ["initialize"]
    assert methods(server.say(OPENED)) == ["notifications/initialized", "tools/call", "tools/call"]
    assert server.say(text(1, "A")) == []
    assert server.say(text(2, "B")) == [call(3)]
    assert server.client.is_over
    assert (server.client.sent, server.client.answered) == (5, 3)
    assert server.client.problems == []


def test_request_of_server_is_answered_with_its_live_id() -> None:
    said = [
        C(call(1)),
        S(ask(1, ELICIT, message="how many?")),
        C(result(1, action="accept", content={"n": 1})),
        S(text(1, "done")),
    ]
    server = live_server(recorded(said))
    server.received()
    assert server.say(ask("live", ELICIT, message="other words")) == [
        result("live", action="accept", content={"n": 1})
    ]
    server.say(text(1, "done"))
    assert server.client.is_over


@pytest.mark.parametrize(
    ("first", "recorded_result", "live_result", "second", "sent"),
    [
        (
            ask(1, "tools/list"),
            result(1, tools=[], nextCursor="old"),
            result(1, tools=[], nextCursor="new"),
            ask(2, "tools/list", cursor="old"),
            ask(2, "tools/list", cursor="new"),
        ),
        (
            call(1),
            result(1, task={"taskId": "t-old", "status": "working"}),
            result(1, task={"taskId": "t-new", "status": "working"}),
            ask(2, "tasks/result", taskId="t-old"),
            ask(2, "tasks/result", taskId="t-new"),
        ),
        (
            call(1),
            result(1, requestState="old", inputRequests={"k1": {"method": ELICIT}}),
            result(1, requestState="new", inputRequests={"k2": {"method": ELICIT}}),
            ask(2, "tools/call", requestState="old", inputResponses={"k1": {"action": "accept"}}),
            ask(2, "tools/call", requestState="new", inputResponses={"k2": {"action": "accept"}}),
        ),
        (
            call(1),
            text(1, "cart-1234"),
            text(1, "cart-9876"),
            call(2, "use", cart="cart-1234"),
            call(2, "use", cart="cart-9876"),
        ),
        (
            call(1),
            text(1, "a plain text"),
            text(1, "another text"),
            call(2, "use", cart="a plain text"),
            call(2, "use", cart="a plain text"),
        ),
        (
            ask(1, "tools/list"),
            result(1, tools=[{"name": "tool_v1"}]),
            result(1, tools=[{"name": "tool_v2"}]),
            call(2, "tool_v1"),
            call(2, "tool_v1"),
        ),
    ],
)
def test_values_of_the_server_are_replaced_by_live_ones(
    first: Any, recorded_result: Any, live_result: Any, second: Any, sent: Any
) -> None:
    said = [C(first), S(recorded_result), C(second), S(result(2))]
    server = live_server(recorded(said))
    assert server.received() == [first]
    assert server.say(live_result) == [sent]


def test_response_is_awaited_three_times_as_long_as_recorded() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A")), C(call(2))], gap=20.0))
    server.received()
    assert server.client.next_deadline == 60.0
    assert server.wait(59.0) == []
    assert server.wait(60.0) == [call(2)]
    assert server.client.problems == ["no response to tools/call echo within 60 s (line 2)"]
    assert server.client.unanswered == 1


def test_response_with_a_timeout_is_not_awaited_longer() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A")), C(call(2))], gap=20.0), timeout=1.0)
    server.received()
    assert server.client.next_deadline == 1.0
    assert server.wait(1.0) == [call(2)]


def test_response_is_awaited_longer_if_nothing_could_be_sent() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A")), C(call(2))]), timeout=1.0)
    server.received()
    server.client.postpone(5.0)
    assert server.client.next_deadline == 6.0
    assert server.wait(5.9) == []
    assert server.wait(6.0) == [call(2)]


def test_server_that_answers_nothing_is_given_up() -> None:
    said = []
    for id in range(1, 6):
        said += [C(call(id)), S(text(id, "A"))]
    server = live_server(recorded(said), timeout=1.0)
    for now in 1.0, 2.0, 3.0:
        server.wait(now)
    assert server.client.is_over
    assert server.client.sent == 3
    assert server.client.problems[-1] == ("the server did not answer 3 requests in a row: stopped")


def test_end_of_server_is_a_problem() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A")), C(call(2))]))
    server.client.disconnected()
    assert server.client.is_over
    assert server.client.problems == [
        "the server ended the conversation before line 3: 1 messages were not sent"
    ]


def test_end_of_server_before_the_last_response_is_a_problem() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A"))]))
    server.client.disconnected()
    [problem] = server.client.problems
    assert problem.endswith(": 0 messages were not sent")
    assert server.client.unanswered == 1


def test_end_of_server_after_the_last_message_is_none() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A"))]))
    server.say(text(1, "A"))
    server.client.disconnected()
    assert server.client.problems == []


def test_unexpected_request_of_server_is_refused() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A"))]))
    server.received()
    assert server.say(ask(5, "ping")) == [result(5)]
    assert server.say(ask(6, "roots/list")) == [error(6, -32601, "not in the trace: roots/list")]
    assert server.client.problems == [
        "the server sent a request that is not in the trace: roots/list"
    ]


def test_request_of_server_may_come_after_the_response() -> None:
    said = [C(call(1)), S(ask(9, "roots/list")), C(result(9, roots=[])), S(text(1, "A"))]
    server = live_server(recorded(said))
    server.received()
    assert server.say(text(1, "A"), now=5.0) == []
    assert not server.client.is_over
    assert server.say(ask(3, "roots/list"), now=5.5) == [result(3, roots=[])]
    assert server.client.is_over


def test_missing_request_of_server_is_awaited_for_a_second() -> None:
    said = [C(call(1)), S(ask(9, "roots/list")), C(result(9, roots=[])), S(text(1, "A"))]
    server = live_server(recorded(said))
    server.say(text(1, "A"), now=5.0)
    assert server.client.next_deadline == 6.0
    assert server.wait(6.0) == []
    assert server.client.is_over
    assert "the server did not send roots/list, as in line 3" in server.client.problems[0]


def test_missing_request_of_server_before_all_others_is_awaited_for_the_timeout() -> None:
    said = [S(ask(9, "roots/list")), C(result(9, roots=[])), C(call(1)), S(text(1, "A"))]
    server = live_server(recorded(said), timeout=7.0)
    assert server.received() == []
    assert server.client.next_deadline == 7.0
    assert server.wait(7.0) == [call(1)]
    assert "the server did not send roots/list, as in line 2" in server.client.problems[0]


def test_change_is_awaited_shortly_and_once() -> None:
    said = [C(call(1)), S(text(1, "A")), S(notify(CHANGED)), C(ask(2, "tools/list"))]
    server = live_server(recorded(said, gap=0.1))
    server.received()
    assert server.say(text(1, "A"), now=1.0) == []
    assert server.say(notify(CHANGED), now=1.5) == [ask(2, "tools/list")]
    late = live_server(recorded(said, gap=0.1))
    late.say(text(1, "A"), now=1.0)
    assert late.client.next_deadline == 2.0
    assert late.wait(2.0) == [ask(2, "tools/list")]
    assert late.client.problems == []


def test_running_task_is_asked_for_again() -> None:
    said = [
        C(ask(1, "tasks/get", taskId="t")),
        S(result(1, taskId="t", status="completed")),
        C(call(2)),
    ]
    server = live_server(recorded(said))
    server.received()
    assert server.say(result(1, taskId="t", status="working", pollInterval=500), now=1.0) == []
    (again,) = server.wait(1.5)
    assert (again["method"], again["params"]) == ("tasks/get", {"taskId": "t"})
    assert server.say(result(again["id"], taskId="t", status="completed"), now=2.0) == [call(2)]


def test_used_id_becomes_another_one() -> None:
    said = [
        C(call(1)),
        S(text(1, "A")),
        C(call(1)),
        C(notify("notifications/cancelled", requestId=1)),
    ]
    server = live_server(recorded(said))
    server.received()
    request, cancelled = server.say(text(1, "A"))
    assert request["id"] == "replay-1"
    assert cancelled["params"]["requestId"] == "replay-1"


def test_recorded_junk_is_sent_as_it_is() -> None:
    server = live_server(recorded([C("{junk"), C(call(1))]))
    assert server.client.messages_to_send() == [
        b"{junk",
        json.dumps(call(1), separators=(",", ":")).encode(),
    ]


def test_recorded_batch_is_sent_as_batch() -> None:
    server = live_server(recorded([C([call(1), call(2)]), S([text(1, "A"), text(2, "B")])]))
    assert server.received() == [[call(1), call(2)]]
    server.say([text(2, "B"), text(1, "A")])
    assert server.client.is_over


@pytest.mark.parametrize("live", [b"junk", b"17", b"[]", b"[1, 2]", b'{"id": 5}', b"[" * 100_000])
def test_live_junk_does_no_harm(live: bytes) -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A"))]))
    server.say(live)
    assert not server.client.is_over
    server.say(text(1, "A"))
    assert server.client.is_over


def test_redacted_messages_are_named() -> None:
    trace = recorded([C(call(1, key="‹redacted 6›")), C(call(2, key="open"))])
    assert live_server(trace).client.hidden == [2]


@pytest.mark.parametrize("count", [1_000, long(10_000)])
def test_thousands_of_requests_are_sent(count: int) -> None:
    said = [C(call(id)) for id in range(count)]
    said += [S(text(id, "A")) for id in range(count)]
    server = live_server(recorded(said))
    assert len(server.received()) == count
    server.say(*(text(id, "A") for id in reversed(range(count))))
    assert server.client.is_over
    assert server.client.problems == []
