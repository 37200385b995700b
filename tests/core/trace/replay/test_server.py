"""The server of a trace: which response a live request gets."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mcp_core.trace import TraceHeader, TraceLine, TruncatedMessage, load_trace
from mcp_core.trace.replay import _server
from tests.core.trace.judge.conversations import META, C, S, Sent, ask, error, notify, result
from tests.core.trace.replay.traces import (
    AT,
    CALL,
    HANDSHAKE,
    call,
    lines_of,
    live_client,
    recorded,
    text,
)

PROGRESS = "notifications/progress"
ELICIT = "elicitation/create"
MODERN = {META + "protocolVersion": "2026-07-28"}


def test_equal_request_gets_recorded_response_with_its_id() -> None:
    client = live_client(recorded([*HANDSHAKE, *CALL]))
    (opened,) = client.say(ask(7, "initialize", protocolVersion="x", clientInfo={"name": "other"}))
    assert opened["id"] == 7
    assert opened["result"]["protocolVersion"] == "2025-11-25"
    assert client.say(notify("notifications/initialized")) == []
    assert client.say(call("a", x="a")) == [text("a", "A")]
    assert client.server.missing == []


@pytest.mark.parametrize(
    "meta",
    [
        {"progressToken": 5},
        {"traceparent": "00-1", "tracestate": "x", "baggage": "y"},
        {META + "clientInfo": {"name": "x"}, META + "clientCapabilities": {}},
        {META + "protocolVersion": "2026-07-28"},
        {},
    ],
)
def test_volatile_meta_does_not_count(meta: dict[str, Any]) -> None:
    client = live_client(recorded(CALL))
    live = call(1, x="a")
    live["params"]["_meta"] = meta
    assert client.say(live) == [text(1, "A")]


def test_equal_requests_get_their_responses_in_order_and_then_the_last() -> None:
    said = [C(ask(1, "x")), S(result(1, n=1)), C(ask(2, "x")), S(result(2, n=2))]
    client = live_client(recorded(said))
    found = [client.say(ask(9, "x"))[0]["result"]["n"] for _ in range(4)]
    assert found == [1, 2, 2, 2]


def test_request_with_other_meta_gets_the_unused_response() -> None:
    said = []
    for id, tag in (1, "a"), (2, "b"):
        said += [C(ask(id, "x", _meta={"tag": tag}, y=1)), S(result(id, tag=tag))]
    client = live_client(recorded(said))
    assert client.say(ask(1, "x", y=1, _meta={"tag": "b"}))[0]["result"] == {"tag": "b"}
    assert client.say(ask(2, "x", y=1))[0]["result"] == {"tag": "a"}
    assert client.say(ask(3, "x", y=1.0))[0]["result"] == {"tag": "b"}


def test_request_of_another_round_gets_the_unused_response() -> None:
    """The user's input differs from the recorded one, yet the conversation must go on."""
    said = [
        C(call(1)),
        S(result(1, resultType="input_required", inputRequests={}, requestState="s")),
        C(
            ask(
                2,
                "tools/call",
                name="echo",
                arguments={},
                requestState="s",
                inputResponses={"k": 1},
            )
        ),
        S(text(2, "done")),
    ]
    client = live_client(recorded(said))
    assert client.say(call(1))[0]["result"]["requestState"] == "s"
    again = ask(
        2, "tools/call", name="echo", arguments={}, requestState="s", inputResponses={"k": 2}
    )
    assert client.say(again) == [text(2, "done")]


@pytest.mark.parametrize(
    ("recorded_value", "redacted"),
    [
        ("‹redacted 6›", ("/params/arguments/key",)),
        ("‹redacted 6›", ()),
        (0, ("/params/arguments/key",)),
    ],
)
def test_redacted_value_equals_any_other(recorded_value: Any, redacted: tuple[str, ...]) -> None:
    line = TraceLine(
        t=0.0,
        sender="client",
        raw=json.dumps(call(1, key=recorded_value, x=1), ensure_ascii=False),
        redacted=redacted,
    )
    client = live_client(recorded([Sent("client", line), S(text(1, "A"))]))
    assert client.say(call(1, key="hunter2", x=1)) == [text(1, "A")]
    assert "error" in client.say(call(1, key="hunter2", x=2))[0]


def test_pseudonym_equals_any_other() -> None:
    said = [C(ask(1, "tasks/get", taskId="pseudo")), S(result(1, status="working"))]
    hides = live_client(recorded(said, "message:taskId"))
    assert "result" in hides.say(ask(1, "tasks/get", taskId="real"))[0]
    shows = live_client(recorded(said))
    assert "error" in shows.say(ask(1, "tasks/get", taskId="real"))[0]


def test_notifications_come_before_response_with_live_token() -> None:
    """The order around the response is as recorded; only the progress token is the client's."""
    asked = call(1, x="a")
    asked["params"]["_meta"] = {"progressToken": "old"}
    said = [
        C(asked),
        S(notify(PROGRESS, progressToken="old", progress=1)),
        S(notify("notifications/message", level="info", data="log")),
        S(notify("notifications/tools/list_changed")),
        S(text(1, "A")),
        S(notify("notifications/prompts/list_changed")),
    ]
    client = live_client(recorded(said))
    live = call(2, x="a")
    live["params"]["_meta"] = {"progressToken": 77}
    found = client.say(live)
    assert [each.get("method", "response") for each in found] == [
        PROGRESS,
        "notifications/message",
        "notifications/tools/list_changed",
        "response",
        "notifications/prompts/list_changed",
    ]
    assert found[0]["params"]["progressToken"] == 77


def test_progress_without_live_token_is_left_out() -> None:
    asked = call(1, x="a")
    asked["params"]["_meta"] = {"progressToken": 1}
    said = [C(asked), S(notify(PROGRESS, progressToken=1, progress=1)), S(text(1, "A"))]
    assert live_client(recorded(said)).say(call(1, x="a")) == [text(1, "A")]


def test_request_of_server_is_sent_and_its_response_awaited() -> None:
    """A response that differs from the recorded one becomes a note; the replay goes on."""
    said = [
        C(call(1)),
        S(ask(1, ELICIT, message="how many?")),
        C(result(1, action="accept", content={"n": 1})),
        S(text(1, "done")),
    ]
    client = live_client(recorded(said))
    (asked,) = client.say(call(5))
    assert (asked["method"], asked["id"]) == (ELICIT, 1)
    assert client.say(result(1, action="accept", content={"n": 1})) == [text(5, "done")]
    assert client.server.notes == []
    # A second time, the id of the request is another one.
    (again,) = client.say(call(6))
    assert again["id"] != 1
    assert client.say(result(again["id"], action="decline")) == [text(6, "done")]
    (note,) = client.server.notes
    assert note == (
        "the client responds to elicitation/create otherwise than in line 4: /result/action,"
        " /result/content"
    )


def test_unknown_request_gets_error_that_names_the_nearest() -> None:
    client = live_client(recorded([*CALL, C(call(2, "other", x="a")), S(text(2, "B"))]))
    (found,) = client.say(call(3, x="b"))
    assert found["error"]["code"] == -32603
    assert found["error"]["message"] == (
        "not in the trace: tools/call echo; the nearest is tools/call echo in line 2, which differs"
        " at /params/arguments/x"
    )
    assert found["error"]["data"]["nearest"]["line"] == 2
    client.say(ask(4, "tool/call"))
    assert client.server.missing[1] == "tool/call; the nearest is tools/call echo in line 2"
    assert client.server.missing_count == 2


def test_every_server_answers_ping_and_probe() -> None:
    client = live_client(recorded([*HANDSHAKE, *CALL]))
    assert client.say(ask(1, "ping")) == [result(1)]
    assert client.say(ask(2, "server/discover"))[0]["error"]["code"] == -32601
    assert client.server.missing == []


def test_handshake_with_trace_without_one_is_an_error() -> None:
    version = {META + "protocolVersion": "2026-07-28"}
    client = live_client(recorded([C(ask(1, "tools/list", _meta=version)), S(result(1, tools=[]))]))
    (found,) = client.say(ask(1, "initialize", protocolVersion="2025-11-25"))
    assert found["error"]["code"] == -32022
    assert found["error"]["data"]["supported"] == ["2026-07-28"]
    assert client.server.missing == ["initialize: the trace has no handshake"]


def test_truncated_and_missing_responses_are_errors() -> None:
    cut = TraceLine(
        t=0.0,
        sender="server",
        raw='{"jsonrpc":"2.0","id":1,"result":{"con',
        truncated=TruncatedMessage(size=9_999_999),
    )
    client = live_client(recorded([C(call(1)), Sent("server", cut), C(call(2, x=1))]))
    assert "only the beginning of the response" in client.say(call(1))[0]["error"]["message"]
    assert "has no response to tools/call" in client.say(call(2, x=1))[0]["error"]["message"]
    assert client.server.missing_count == 2


def test_cancelled_request_gets_no_response() -> None:
    said = [C(call(1)), C(notify("notifications/cancelled", requestId=1)), *CALL]
    client = live_client(recorded(said))
    assert client.say(call(1)) == []
    assert client.say(notify("notifications/cancelled", requestId=1)) == []
    assert client.server.missing == []


def test_change_goes_to_live_subscription_after_its_cause() -> None:
    """A change that comes before its call would be a lie: it waits, with the live id."""
    meta = {META + "subscriptionId": 1}
    said = [
        C(ask(1, "subscriptions/listen", notifications={"toolsListChanged": True})),
        S(notify("notifications/subscriptions/acknowledged", _meta=meta, notifications={})),
        C(call(2)),
        S(notify("notifications/tools/list_changed", _meta=meta)),
        S(text(2, "added")),
    ]
    client = live_client(recorded(said))
    (acknowledged,) = client.say(
        ask("live", "subscriptions/listen", notifications={"toolsListChanged": True})
    )
    assert acknowledged["params"]["_meta"] == {META + "subscriptionId": "live"}
    changed, response = client.say(call(3))
    assert changed["params"]["_meta"] == {META + "subscriptionId": "live"}
    assert response == text(3, "added")


def test_change_without_live_subscription_is_left_out() -> None:
    meta = {META + "subscriptionId": 1}
    said = [
        C(ask(1, "subscriptions/listen")),
        C(call(2)),
        S(notify("notifications/tools/list_changed", _meta=meta)),
        S(text(2, "added")),
    ]
    assert live_client(recorded(said)).say(call(3)) == [text(3, "added")]


def test_pace_keeps_recorded_gaps() -> None:
    said = [C(call(1)), S(notify("notifications/message", data=1)), S(text(1, "A"))]
    client = live_client(recorded(said), pace=2.0)
    assert client.say(call(1), now=100.0) == []
    assert client.session.next_deadline == 102.0
    client.session.advance(102.0)
    assert [each["method"] for each in client.received()] == ["notifications/message"]
    client.session.advance(104.0)
    assert client.received() == [text(1, "A")]
    assert client.session.next_deadline == float("inf")


@pytest.mark.parametrize(
    ("live", "code"),
    [
        (b"no JSON", -32700),
        (b"[]", -32600),
        (b"17", -32600),
        (b'{"jsonrpc": "2.0"}', -32600),
        (b'{"jsonrpc": "2.0", "id": [], "method": "x"}', -32600),
        (b"[" * 100_000, -32700),
        (b"\xff", -32700),
    ],
)
def test_live_junk_gets_an_error(live: bytes, code: int) -> None:
    (found,) = live_client(recorded(CALL)).say(live)
    assert (found["id"], found["error"]["code"]) == (None, code)


def test_live_batch_gets_each_response() -> None:
    client = live_client(recorded([*CALL, C(call(2, x="b")), S(text(2, "B"))]))
    assert client.say([call(1, x="b"), call(2, x="a"), notify("notifications/x")]) == [
        text(1, "B"),
        text(2, "A"),
    ]


def test_sessions_of_a_trace_are_given_out_in_order() -> None:
    first = [*HANDSHAKE, C(ask(1, "who")), S(result(1, n=1))]
    second = [*HANDSHAKE, C(ask(1, "who")), S(result(1, n=2))]
    trace = recorded([*first, *second])
    one = live_client(trace)
    one.say(ask(1, "initialize"))
    other = one.server.open()
    for session, number in (other, 2), (one.session, 1):
        if session is other:
            session.receive(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}', 0.0)
        session.receive(b'{"jsonrpc":"2.0","id":9,"method":"who"}', 0.0)
        assert b'"n":%d' % number in session.outputs_to_send()[-1].data


def test_error_response_is_replayed() -> None:
    client = live_client(recorded([C(call(1)), S(error(1, -32602, "no"))]))
    assert client.say(call(3)) == [error(3, -32602, "no")]


@pytest.mark.parametrize(
    ("ignore", "live", "is_found"),
    [
        ([], {"x": "a", "at": 1}, True),
        ([], {"x": "a", "at": 2}, False),
        ([], {"x": "a"}, False),
        (["/params/arguments/at"], {"x": "a", "at": 2}, True),
        (["/params/arguments/at"], {"x": "a", "at": {"deep": []}}, True),
        (["/params/arguments/at"], {"x": "a"}, True),
        (["/params/arguments/at"], {"x": "b", "at": 1}, False),
        (["/params/arguments/*"], {}, True),
        (["/params/*/at", "/result/x"], {"x": "a", "at": 2}, True),
        (["/*/arguments/at"], {"x": "a", "at": 2}, True),
        (["/arguments/at", "/params/arguments/at/x"], {"x": "a", "at": 2}, False),
        ([""], {"x": "a", "at": 2}, False),
    ],
)
def test_ignored_value_of_a_request_does_not_count(
    ignore: list[str], live: dict[str, Any], *, is_found: bool
) -> None:
    trace = recorded([C(call(1, x="a", at=1)), S(text(1, "A"))])
    client = live_client(trace, ignore=ignore)
    assert ("result" in client.say(call(7, **live))[0]) == is_found


def test_ignored_value_is_not_named_as_a_difference() -> None:
    client = live_client(
        recorded([C(call(1, x="a", at=[1, 2])), S(text(1, "A"))]),
        ignore=["/params/arguments/at/*"],
    )
    client.say(call(1, x="b", at=[3]))
    (missing,) = client.server.missing
    assert missing.endswith("in line 2, which differs at /params/arguments/x")


def test_ignored_value_does_not_shift_a_redacted_one() -> None:
    """The recorder's pointers are to the whole list, with the entry that is left out."""
    line = TraceLine(
        t=0.0,
        sender="client",
        raw=json.dumps(call(1, each=[1, "‹redacted 6›", 3])),
        redacted=("/params/arguments/each/1",),
    )
    trace = recorded([Sent("client", line), S(text(1, "A"))])
    client = live_client(trace, ignore=["/params/arguments/each/0"])
    assert client.say(call(1, each=[9, "hunter2", 3])) == [text(1, "A")]
    assert "error" in client.say(call(1, each=[9, "hunter2", 4]))[0]


def test_ignored_value_of_a_response_is_no_difference() -> None:
    said = [C(call(1)), S(ask(1, ELICIT)), C(result(1, action="accept")), S(text(1, "done"))]
    client = live_client(recorded(said), ignore=["/result/action"])
    client.say(call(1))
    assert client.say(result(1, action="decline", n=1)) == [text(1, "done")]
    assert client.server.notes == [
        "the client responds to elicitation/create otherwise than in line 4: /result/n"
    ]


@pytest.mark.parametrize("pointer", ["params", "x/y"])
def test_ignored_text_that_is_no_pointer_is_an_error(pointer: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON pointer"):
        live_client(recorded(CALL), ignore=[pointer])


@pytest.mark.parametrize(
    ("ignore", "live", "notes"),
    [
        ([], {"k": {"action": "accept"}}, []),
        ([], {"k": {"action": "decline"}}, ["/params/inputResponses/k/action"]),
        ([], {"other": {}}, ["/params/inputResponses/k, /params/inputResponses/other"]),
        (["/params/inputResponses/*/action"], {"k": {"action": "decline"}}, []),
    ],
)
def test_other_input_of_a_later_round_is_noted(
    ignore: list[str], live: dict[str, Any], notes: list[str]
) -> None:
    """As for a response to a server's request, which the earlier revisions have instead."""

    def later(id: int, responses: Any) -> dict[str, Any]:
        return ask(id, "tools/call", name="echo", requestState="s", inputResponses=responses)

    said = [C(later(2, {"k": {"action": "accept"}})), S(text(2, "done"))]
    client = live_client(recorded(said), ignore=ignore)
    assert client.say(later(3, live)) == [text(3, "done")]
    start = "the client responds to input_required otherwise than in line 2: "
    assert client.server.notes == [start + each for each in notes]
    assert client.server.missing == []


@pytest.mark.parametrize("conversation", [1, 2])
def test_probe_without_response_has_the_answer_of_a_server_with_a_handshake(
    conversation: int,
) -> None:
    """The recorded server ended at the probe, and was started again; or it was silent."""
    probe = ask(0, "server/discover", _meta={META + "protocolVersion": "2026-07-28"})
    lines = [(2, TraceLine(t=0.0, sender="client", raw=json.dumps(probe)))]
    for number, line in lines_of([*HANDSHAKE, *CALL]):
        lines.append((number + 1, msgspec.structs.replace(line, conversation=conversation)))
    client = live_client(load_trace(TraceHeader(format_version=1, at=AT), lines))
    assert client.say(probe)[0]["error"]["code"] == -32601
    assert "result" in client.say(ask(1, "initialize"))[0]
    assert client.say(call(2, x="a")) == [text(2, "A")]
    assert client.server.missing == []


def test_trace_without_messages_answers_with_errors() -> None:
    client = live_client(recorded([]))
    assert client.say(notify("notifications/x")) == []
    (found,) = client.say(ask(1, "tools/list"))
    assert found["error"]["message"] == "not in the trace: tools/list"
    assert "data" in found["error"]
    assert (client.server.found_count, client.server.missing) == (0, ["tools/list"])


def test_answered_requests_are_counted() -> None:
    client = live_client(recorded(CALL))
    client.say(call(1, x="a"))
    client.say(call(2, x="a"))
    client.say(call(3, x="b"))
    assert (client.server.found_count, client.server.missing_count) == (2, 1)


def test_server_s_first_messages_come_before_any_request_and_once() -> None:
    """Another live session with the trace gets none, nor does a repeated beginning."""
    first = notify("notifications/tools/list_changed")
    client = live_client(recorded([S(first), *CALL]))
    assert client.received() == [first]
    client.session.begin(0.0)
    again = client.server.open()
    again.begin(0.0)
    assert (client.received(), again.outputs_to_send()) == ([], [])
    assert client.say(call(2, x="a")) == [text(2, "A")]


def test_notification_brings_its_messages_once() -> None:
    changed = notify("notifications/tools/list_changed")
    said = [C(notify("notifications/x", n=1)), S(changed), *CALL]
    client = live_client(recorded(said))
    assert client.say(notify("notifications/y")) == client.say(notify("notifications/x", n=2)) == []
    assert client.say(notify("notifications/x", n=1)) == [changed]
    assert client.say(notify("notifications/x", n=1)) == []
    assert client.say(ask(5, "notifications/x", n=1))[0]["error"]["code"] == -32603


def test_messages_of_another_session_begin_with_its_handshake() -> None:
    """A notification is looked for in the live client's session, requests in all."""
    first, second = (
        [C(notify("notifications/x")), S(notify("notifications/message", level="info", data=n))]
        for n in (1, 2)
    )
    client = live_client(recorded([*HANDSHAKE, *first, *CALL, *HANDSHAKE, *second]))
    for _ in range(2):
        client.say(ask(1, "initialize"))
    assert client.say(call(4, x="a")) == [text(4, "A")]
    (found,) = client.say(notify("notifications/x"))
    assert found["params"]["data"] == 2
    assert client.say(notify("notifications/x")) == []


def test_message_in_part_hides_no_later_one() -> None:
    cut = TraceLine(
        t=0.0,
        sender="client",
        raw='{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"na',
        truncated=TruncatedMessage(size=9_999_999),
    )
    client = live_client(recorded([Sent("client", cut), *CALL]))
    assert client.say(call(1, x="a")) == [text(1, "A")]
    (found,) = client.say(ask(2, "tools/call"))
    assert found["error"]["message"].startswith("not in the trace: ")


def test_server_s_message_in_part_is_left_out_with_a_note() -> None:
    """A response in part is an error for the live client instead."""
    cut = TraceLine(
        t=0.0,
        sender="server",
        raw='{"jsonrpc":"2.0","method":"notifications/message","params":{"da',
        truncated=TruncatedMessage(size=9_999_999),
    )
    client = live_client(recorded([CALL[0], Sent("server", cut), CALL[1]]))
    assert client.say(call(1, x="a")) == [text(1, "A")]
    assert client.server.notes == ["line 3 was recorded in part: it is left out"]
    cut = TraceLine(
        t=0.0,
        sender="server",
        raw='{"jsonrpc":"2.0","id":1,"result":{"con',
        truncated=TruncatedMessage(size=9_999_999),
    )
    client = live_client(recorded([CALL[0], Sent("server", cut)]))
    client.say(call(1, x="a"))
    assert client.server.notes == []


@pytest.mark.parametrize(
    ("said", "is_modern"),
    [
        ([C(ask(1, "x", _meta=MODERN)), S(result(1))], True),
        ([C(ask(1, "x", _meta=MODERN))], True),
        ([C(ask(1, "server/discover", _meta=MODERN)), S(result(1))], True),
        ([C(ask(1, "server/discover", _meta=MODERN))], False),
        ([C(ask(1, "x")), S(result(1))], False),
        ([*HANDSHAKE, C(ask(1, "x", _meta=MODERN)), S(result(1))], False),
    ],
)
def test_revision_without_handshake_is_seen_in_requests(said: Any, is_modern: bool) -> None:
    server = live_client(recorded(said)).server
    assert server.has_modern is is_modern
    assert server.has_handshake is (len(said) > 2)


def test_texts_about_missing_requests_and_notes_are_limited() -> None:
    server = live_client(recorded(CALL)).server
    for number in range(1_001):
        server.note_missing(f"m{number}")
        server.note(f"n{number}")
    assert (len(server.missing), server.missing_count, len(server.notes)) == (1_000, 1_001, 1_000)
    assert (server.missing[-1], server.notes[-1]) == ("m999", "n999")


@pytest.mark.parametrize(
    ("count", "more"), [(4, ""), (5, ""), (6, " and 1 more"), (9, " and 4 more")]
)
def test_differences_from_the_nearest_are_named_up_to_five(count: int, more: str) -> None:
    old, new = (call(1, "echo", **{f"a{n}": value for n in range(count)}) for value in (1, 2))
    client = live_client(recorded([C(old), S(text(1, "A"))]))
    (found,) = client.say(new)
    named = [f"/params/arguments/a{n}" for n in range(count)][:5]
    assert found["error"]["message"].endswith(f"which differs at {', '.join(named)}{more}")
    assert found["error"]["data"]["nearest"]["differences"] == named


def test_live_answer_is_compared_up_to_five_places_without_meta_and_hidden_values() -> None:
    """Otherwise a note about one answer would fill the report."""
    hidden = json.dumps(result(1, key="x", _meta={"a": 1}, **{f"n{n}": 1 for n in range(6)}))
    line = TraceLine(t=0, sender="client", raw=hidden, redacted=("/result/key",))
    said = [C(call(1)), S(ask(1, ELICIT)), Sent("client", line), S(text(1, "done"))]
    client = live_client(recorded(said))
    client.say(call(2))
    live = result(1, key="y", _meta={"a": 2}, **{f"n{n}": 2 for n in range(6)})
    assert client.say(live) == [text(2, "done")]
    where = ", ".join(f"/result/n{n}" for n in range(5))
    assert client.server.notes == [
        f"the client responds to {ELICIT} otherwise than in line 4: {where}"
    ]


@pytest.mark.parametrize(
    "live", [result(8), result(None), {"id": [1], "result": {}}, {"id": 1}, {"result": {}}]
)
def test_other_response_leaves_the_server_s_request_open(live: Any) -> None:
    said = [C(call(1)), S(ask(1, ELICIT)), C(result(1)), S(text(1, "done"))]
    client = live_client(recorded(said))
    client.say(call(5))
    assert [each for each in client.say(live) if "result" in each] == []
    assert client.say(error(1, -1)) == [text(5, "done")]
    assert client.server.notes == [
        f"the client responds to {ELICIT} otherwise than in line 4: /result, /error"
    ]


def test_request_that_the_recorded_client_left_open_needs_no_response() -> None:
    """Then nothing waited for one, and nothing is compared."""
    client = live_client(recorded([C(call(1)), S(ask(1, ELICIT)), S(text(1, "done"))]))
    asked, response = client.say(call(5))
    assert (asked["method"], response) == (ELICIT, text(5, "done"))
    assert client.say(result(1)) == []
    assert client.server.notes == []


@pytest.mark.parametrize(
    ("cancelled", "is_stopped"), [(5, True), (5.0, False), ("5", False), (6, False), (None, False)]
)
def test_cancelled_request_stops(cancelled: Any, is_stopped: bool) -> None:
    said = [C(call(1)), S(ask(9, ELICIT)), C(result(9)), S(text(1, "done"))]
    client = live_client(recorded(said))
    client.say(call(5))
    client.say(notify("notifications/cancelled", requestId=cancelled))
    assert client.say(result(9)) == ([] if is_stopped else [text(5, "done")])
    other = live_client(recorded(said))
    other.say(call(5))
    other.say(notify("notifications/other", requestId=5))
    assert other.say(result(9)) == [text(5, "done")]


def test_disconnected_stream_stops_its_messages_alone() -> None:
    said = [C(call(1)), S(ask(9, ELICIT)), C(result(9)), S(text(1, "done"))]
    client = live_client(recorded(said))
    client.session.receive(json.dumps(call(5)).encode(), 0.0, "one")
    client.session.receive(json.dumps(call(6)).encode(), 0.0, "other")
    (first, second) = client.received()
    client.session.disconnected("one")
    assert client.say(result(first["id"])) == []
    assert client.say(result(second["id"])) == [text(6, "done")]


def test_server_s_junk_is_sent_as_it_is_and_other_responses_are_not() -> None:
    said = [C(call(1)), S("{junk"), S(result(77)), S(text(1, "A")), S(text(1, "again"))]
    client = live_client(recorded(said))
    client.session.receive(json.dumps(call(5)).encode(), 0.0)
    found = [each.data for each in client.session.outputs_to_send()]
    assert found[0] == b"{junk"
    assert [json.loads(each) for each in found[1:]] == [text(5, "A")]


def test_cancelled_request_of_the_server_has_its_live_id() -> None:
    cancel = notify("notifications/cancelled", requestId=9)
    stray = notify("notifications/cancelled", requestId=[])
    said = [C(call(1)), S(ask(9, ELICIT)), S(cancel), S(stray), S(text(1, "A"))]
    client = live_client(recorded(said))
    assert client.say(call(5))[1:] == [cancel, stray, text(5, "A")]
    asked, cancelled, same, _ = client.say(call(6))
    assert asked["id"] == "replay-1"
    assert cancelled == notify("notifications/cancelled", requestId="replay-1")
    assert same == stray
    other = live_client(recorded([C(call(1)), S(cancel), S(text(1, "A"))]))
    assert other.say(call(5)) == [cancel, text(5, "A")]


def test_server_s_request_without_an_id_gets_one() -> None:
    said = [C(call(1)), S(ask([], ELICIT)), S(ask(None, ELICIT)), S(text(1, "A"))]
    client = live_client(recorded(said))
    assert [each["id"] for each in client.say(call(5))] == [1, 2, 5]
    said = [C(call(1)), S(ask(1, ELICIT)), S(ask([], ELICIT)), S(text(1, "A"))]
    client = live_client(recorded(said))
    assert [each["id"] for each in client.say(call(5))] == [1, "replay-2", 5]


def test_pace_of_messages_that_wait_begins_with_their_request() -> None:
    """Not with the recording, nor before the response that they wait for."""
    said = [
        *(C(call(1)), S(text(1, "B")), C(call(2, "ask"))),
        *(S(ask(9, ELICIT)), C(result(9)), S(text(2, "A"))),
    ]
    client = live_client(recorded(said), pace=1.0)
    assert client.say(call(7, "ask"), now=100.0) == []
    assert client.session.next_deadline == 101.0
    client.session.advance(101.0)
    assert [each["method"] for each in client.received()] == [ELICIT]
    assert client.session.next_deadline == float("inf")
    assert client.say(result(9), now=102.0) == []
    assert client.session.next_deadline == 103.0
    unhurried = live_client(recorded(said))
    unhurried.say(call(7, "ask"), now=100.0)
    assert unhurried.session.next_deadline == float("inf")
    first = live_client(recorded([S(notify("notifications/x")), *CALL]), pace=9.0)
    assert first.received() == [notify("notifications/x")]


def test_ten_thousand_requests_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A further one is not answered from the trace; those whose messages were sent do not count."""
    monkeypatch.setattr(_server, "_MAX_PLAYING", 2)
    said = [C(call(1)), S(ask(9, ELICIT)), C(result(9)), S(text(1, "done"))]
    client = live_client(recorded([*said, C(call(2, "b")), S(text(2, "B"))]))
    for id in range(5):
        assert client.say(call(id, "b")) == [text(id, "B")]
    assert [client.say(call(id))[0].get("method") for id in (5, 6)] == [ELICIT, ELICIT]
    assert client.say(call(7, "b"))[0]["error"]["code"] == -32603
    client.say(result(9))
    assert client.say(call(8, "b")) == [text(8, "B")]


def test_pointer_outside_of_params_ignores_no_param() -> None:
    trace = recorded([C(call(1, x="a")), S(text(1, "A"))])
    assert "error" in live_client(trace, ignore=["/result/arguments"]).say(call(2, x="b"))[0]


def test_later_round_is_compared_with_no_earlier_one() -> None:
    later = ask(1, "tools/call", name="echo", arguments={}, inputResponses={"k": {}})
    client = live_client(recorded([C(later), S(text(1, "A"))]))
    assert client.say(call(2)) == [text(2, "A")]
    assert client.server.notes == []
