"""The client of a trace: what it sends to a live server, and after what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.trace import ReplayClient
from tests.core.trace.judge.conversations import META, C, S, ask, error, notify, result
from tests.core.trace.replay.traces import CALL, HANDSHAKE, call, live_server, recorded, text
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
    assert live_server(recorded(said, gap=20.0)).client.next_deadline == 10.0


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


def test_timeout_counts_from_the_sending_of_each_request() -> None:
    """The time of one that has come, or was given up, is not that of the next one."""
    said = [each for id in (1, 2, 3) for each in (C(call(id)), S(text(id, "A")))]
    server = live_server(recorded(said, gap=5.0))
    assert server.client.next_deadline == 15.0
    server.say(text(1, "A"), now=9.0)
    assert server.client.next_deadline == 24.0
    assert methods(server.wait(24.0)) == ["tools/call"]
    assert server.client.next_deadline == 39.0
    server.wait(39.0)
    assert server.client.problems == [
        "no response to tools/call echo within 15 s (line 4)",
        "no response to tools/call echo within 15 s (line 6)",
    ]
    assert server.client.next_deadline == float("inf")


def test_each_missing_response_in_a_row_has_its_time() -> None:
    said = [C(call(1)), C(call(2)), S(text(1, "A")), S(text(2, "B"))]
    server = live_server(recorded(said), timeout=1.0)
    server.wait(1.0)
    assert (server.client.next_deadline, server.client.unanswered) == (2.0, 1)


def test_answer_in_between_keeps_a_slow_server() -> None:
    said = [each for id in range(6) for each in (C(call(id)), S(text(id, "A")))]
    server = live_server(recorded(said), timeout=1.0)
    for id in range(5):
        if id == 2:
            server.say(text(id, "A"), now=2.0)
        else:
            server.wait(1.0 + server.client.next_deadline)
    assert (server.client.unanswered, server.client.answered) == (4, 1)
    assert not server.client.is_over
    server.wait(99.0)
    assert server.client.problems[-1] == "the server did not answer 3 requests in a row: stopped"


@pytest.mark.parametrize(
    ("gap", "timeout", "seconds"), [(2.0, None, 6.0), (9.0, None, 10.0), (2.0, 4.0, 4.0)]
)
def test_change_is_awaited_three_times_as_long_as_recorded(
    gap: float, timeout: float | None, seconds: float
) -> None:
    said = [C(call(1)), S(text(1, "A")), S(notify(CHANGED)), C(call(2)), S(text(2, "B"))]
    server = live_server(recorded(said, gap=gap), timeout=timeout)
    server.say(text(1, "A"), now=1.0)
    assert server.client.next_deadline == 1.0 + seconds


@pytest.mark.parametrize("said", [[S(notify(CHANGED))], [S(notify(CHANGED)), C(call(1))]])
def test_change_before_all_others_is_awaited_for_a_second(said: list[Any]) -> None:
    server = live_server(recorded(said, gap=5.0))
    assert server.client.next_deadline == 1.0
    assert len(server.wait(1.0)) == len(said) - 1


def test_each_recorded_change_is_awaited_until_one_has_not_come() -> None:
    said = [C(call(1)), S(text(1, "A")), *[S(notify(CHANGED))] * 2, C(call(2))]
    server = live_server(recorded(said, gap=0.1))
    server.say(text(1, "A"), now=1.0)
    assert server.say(notify(CHANGED), now=1.2) == []
    assert server.say(notify(CHANGED), now=1.4) == [call(2)]
    early = live_server(recorded(said, gap=0.1))
    early.received()
    assert early.say(notify(CHANGED), notify(CHANGED), text(1, "A")) == [call(2)]
    late = live_server(recorded(said, gap=0.1))
    late.say(text(1, "A"), now=1.0)
    assert late.wait(2.0) == [call(2)]


@pytest.mark.parametrize(
    ("method", "params", "is_awaited"),
    [
        ("notifications/resources/updated", {"uri": "a:a"}, True),
        ("notifications/resources/updated", {"uri": "a:b"}, False),
        ("notifications/resources/updated", {"uri": ["a:a"]}, False),
        ("notifications/resources/list_changed", {"uri": "a:a"}, False),
    ],
)
def test_change_is_known_by_its_method_and_uri(method: str, params: Any, is_awaited: bool) -> None:
    change = S(notify("notifications/resources/updated", uri="a:a"))
    server = live_server(recorded([C(call(1)), S(text(1, "A")), change, C(call(2))], gap=0.1))
    server.received()
    server.say(text(1, "A"))
    assert server.say(notify(method, **params)) == ([call(2)] if is_awaited else [])


def test_other_notification_and_stray_response_are_not_awaited() -> None:
    log = notify("notifications/message", level="info", data="x")
    server = live_server(recorded([C(call(1)), S(log), S(result(77)), S(text(1, "A")), C(call(2))]))
    server.received()
    assert server.say(text(1, "A")) == [call(2)]
    assert server.client.problems == []


def test_failed_request_is_not_awaited() -> None:
    """An HTTP server may reject it; the rest of the conversation goes on."""
    said = [C(call(1)), C(call(2, "b")), S(text(1, "A")), S(text(2, "B")), C(call(3))]
    server = live_server(recorded(said))
    server.received()
    client = server.client
    assert [client.is_waiting_for(ids) for ids in ([1], [2], [1, 2], [7], [], [7, 2])] == [
        *(True, True, True, False, False, True)
    ]
    client.request_failed([2, 7], "HTTP status 500", 1.0)
    assert client.problems == ["no response to tools/call b: HTTP status 500 (line 3)"]
    assert (client.unanswered, client.answered) == (1, 0)
    assert (client.is_waiting_for([2]), client.is_waiting_for([1])) == (False, True)
    assert server.received() == []
    client.request_failed([1], "HTTP status 500", 1.0)
    assert server.received() == [call(3)]
    assert (client.unanswered, client.is_over) == (2, True)
    assert not client.is_waiting_for([3])


def test_request_that_was_given_up_is_not_waited_for() -> None:
    said = [each for id in (1, 2) for each in (C(call(id)), S(text(id, "A")))]
    server = live_server(recorded(said), timeout=1.0)
    server.wait(1.0)
    assert (server.client.is_waiting_for([1]), server.client.is_waiting_for([2])) == (False, True)


def test_subscription_is_not_waited_for_at_the_end() -> None:
    """It has no response as long as the client wants its changes."""
    listen = ask(1, "subscriptions/listen", notifications={})
    acknowledged = notify(
        "notifications/subscriptions/acknowledged", _meta={META + "subscriptionId": 1}
    )
    server = live_server(recorded([C(listen), S(acknowledged)]))
    server.received()
    assert not server.client.is_waiting_for([1])
    server.client.disconnected()
    assert (server.client.problems, server.client.unanswered) == ([], 0)
    assert (server.client.is_over, server.client.next_deadline) == (True, float("inf"))


def test_end_after_the_replay_is_over_adds_nothing() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A"))]), timeout=1.0)
    server.wait(1.0)
    assert server.client.is_over
    server.client.disconnected()
    assert (server.client.unanswered, len(server.client.problems)) == (1, 1)


def test_problems_are_limited_and_name_what_came() -> None:
    server = live_server(recorded([C(call(1)), S(text(1, "A"))]))
    server.say(b"17", result(9), result(None))
    assert server.client.problems == [
        "the server sent something that is not a message: b'17'",
        *["the server sent a response to no request"] * 2,
    ]
    for number in range(1_000):
        server.client.note(f"n{number}")
    assert (len(server.client.problems), server.client.problems[-1]) == (1_000, "n996")


def test_responses_of_another_kind_than_recorded_end_the_wait() -> None:
    said = [C(call(1)), S(text(1, "A")), C(call(2)), C(call(3)), S(error(3)), C(call(4))]
    server = live_server(recorded(said))
    server.received()
    assert server.say(error(1)) == [call(2), call(3)]
    assert server.say(text(2, "not recorded")) == []
    assert server.say(text(3, "A")) == [call(4)]
    assert server.client.problems == []


def test_tasks_are_asked_for_again_at_their_times_and_with_their_live_ids() -> None:
    """Each one once at its time, until it is over or was given up."""
    said = [
        *(C(call(1)), S(result(1, taskId="old-1")), C(call(2)), S(result(2, taskId="old-2"))),
        *(C(ask(3, "tasks/get", taskId="old-1")), C(ask(4, "tasks/get", taskId="old-2"))),
        *(S(result(3, status="completed")), S(result(4, status="completed")), C(call(5))),
    ]
    server = live_server(recorded(said))
    server.say(result(1, taskId="new-1"))
    assert [each["params"]["taskId"] for each in server.say(result(2, taskId="new-2"))] == [
        *("new-1", "new-2")
    ]
    for id, poll in (3, 500), (4, 1000):
        assert server.say(result(id, status="working", pollInterval=poll), now=1.0) == []
    assert (server.client.next_deadline, server.wait(1.4)) == (1.5, [])
    (first,) = server.wait(1.5)
    assert first["params"] == {"taskId": "new-1"}
    assert (server.client.next_deadline, server.wait(1.5)) == (2.0, [])
    (second,) = server.wait(2.0)
    assert second["params"] == {"taskId": "new-2"}
    assert server.say(result(first["id"], status="completed"), now=2.0) == []
    assert server.say(result(second["id"], status="completed"), now=2.0) == [call(5)]


def test_task_that_was_given_up_is_not_asked_for_again() -> None:
    said = [C(ask(1, "tasks/get", taskId="t")), S(result(1, status="completed")), C(call(2))]
    server = live_server(recorded(said), timeout=1.0)
    server.received()
    server.say(result(1, status="working", pollInterval=3000), now=0.5)
    assert server.wait(1.0) == [call(2)]
    assert server.wait(3.5) == []


def test_answer_to_the_server_has_its_live_values() -> None:
    said = [
        *(C(call(1)), S(ask(1, ELICIT, elicitationId="form-1234", message="m"))),
        *(C(result(1, action="accept", content={"form": "form-1234"})), S(text(1, "A"))),
    ]
    server = live_server(recorded(said))
    server.received()
    (answer,) = server.say(ask(8, ELICIT, elicitationId="form-9876", message="m"))
    assert answer == result(8, action="accept", content={"form": "form-9876"})
    said[2] = C(error(1, -1, "form-1234"))
    server = live_server(recorded(said))
    server.received()
    assert server.say(ask(8, ELICIT, elicitationId="form-9876")) == [error(8, -1, "form-1234")]


def test_server_s_request_that_was_given_up_is_refused_later() -> None:
    said = [
        *(C(call(1)), S(ask(8, "roots/list")), C(result(8, roots=[8]))),
        *(S(ask(9, "roots/list")), C(result(9, roots=[9])), S(text(1, "A"))),
    ]
    server = live_server(recorded(said), timeout=1.0)
    server.received()
    assert server.wait(1.0) == []
    assert server.client.problems == [
        "the server did not send roots/list, as in line 3",
        "the server did not send roots/list, as in line 3: there is nothing to answer",
    ]
    assert server.say(ask(5, "roots/list"), now=1.5) == [result(5, roots=[9])]
    (refused,) = server.say(ask(6, "roots/list"), now=1.6)
    assert refused["error"]["code"] == -32601


def test_live_request_is_not_taken_for_a_recorded_notification() -> None:
    log = notify("notifications/message", level="info", data="x")
    server = live_server(recorded([C(call(1)), S(log), S(text(1, "A"))]))
    server.received()
    (refused,) = server.say({**log, "id": 5})
    assert (refused["id"], refused["error"]["code"]) == (5, -32601)


@pytest.mark.parametrize(
    "said",
    [
        result(77),
        ask([], "x"),
        ask(None, "x"),
        notify("notifications/x", requestId=1),
        notify("notifications/cancelled"),
        notify("notifications/cancelled", requestId=[]),
        notify("notifications/cancelled", requestId=9),
    ],
)
def test_message_without_live_counterpart_is_sent_as_recorded(said: Any) -> None:
    """The id 1 is another one by then."""
    server = live_server(recorded([C(call(1)), S(text(1, "A")), C(call(1)), C(said)]))
    server.received()
    assert server.say(text(1, "A"))[1:] == [said]


def test_batches_are_sent_apart_from_each_other_and_from_answers() -> None:
    said = [C([call(1)]), C([call(2), call(3)]), C(call(4)), C([call(5)])]
    server = live_server(recorded(said))
    server.client.receive(json.dumps(ask(9, "ping")).encode(), 0.0)
    assert server.received() == [
        *([call(1)], [call(2), call(3)], call(4), [call(5)]),
        result(9),
    ]


def test_ten_lines_with_hidden_values_are_named() -> None:
    hidden = [C(call(id, key="‹redacted 6›")) for id in range(12)]
    plain = [C(call(20, key="open")), C(call(21, key="redacted")), S(text(20, "‹redacted 6›"))]
    assert live_server(recorded([*plain, *hidden])).client.hidden == [*range(5, 15)]


@pytest.mark.parametrize(
    ("gap", "timeout", "deadline"), [(1.0, None, 10.0), (5.0, None, 15.0), (5.0, 4.0, 4.0)]
)
def test_response_is_awaited_ten_seconds_by_default(
    gap: float, timeout: float | None, deadline: float
) -> None:
    """It is three times the recorded time if that is more, unless another timeout is given."""
    session = recorded(CALL, gap=gap).sessions[0]
    client = ReplayClient(session, response_timeout=timeout) if timeout else ReplayClient(session)
    client.begin(0.0)
    assert (client.response_timeout, client.next_deadline) == (timeout or 10.0, deadline)
