"""A trace's requests as load: which are sent again, and which values are live ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_core.trace import CallCopy, TraceHeader, load_trace, recorded_load
from mcp_core.trace._format import HttpHead, TraceLine, TruncatedMessage
from mcp_core.trace.replay import _load
from tests.core.trace.judge.conversations import C, S, Sent, ask, error, notify, result
from tests.core.trace.replay.traces import AT, HANDSHAKE, call, lines_of, recorded, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.trace import RecordedLoad

META = "io.modelcontextprotocol/"
NEW = "2026-07-28"


def modern(id: Any, method: str, revision: str = NEW, **params: Any) -> dict[str, Any]:
    return ask(id, method, **params, _meta={f"{META}protocolVersion": revision})


def names(load: RecordedLoad) -> list[list[str]]:
    return [[call.name for call in calls] for calls in load.conversations]


def left_out(load: RecordedLoad) -> dict[str, tuple[int, list[int]]]:
    return {each.what: (each.count, each.lines) for each in load.left_out}


def play(load: RecordedLoad, answers: Sequence[Any]) -> list[Any]:
    """Send the first conversation to a server with `answers`. Return the params it was sent."""
    copy = CallCopy()
    sent = []
    for call_, answer in zip(load.conversations[0], answers, strict=True):
        sent.append(copy.params(call_))
        assert copy.receive(call_, answer) is None
    return sent


def test_requests_come_in_their_order_without_the_handshake() -> None:
    load = recorded_load(
        recorded([*HANDSHAKE, C(call(1)), C(call(2, "b")), S(text(2, "B")), S(text(1, "A"))])
    )
    assert names(load) == [["tools/call echo", "tools/call b"]]
    assert (load.left_out, load.hidden) == ([], [])
    assert load.revisions == {"2025-11-25": 2}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([C(notify("notifications/roots/list_changed"))], {"notifications": (1, [7])}),
        (
            [C(ask(2, "tools/list")), C(notify("notifications/cancelled", requestId=2))],
            {"cancelled calls": (1, [7])},
        ),
        ([C(ask(2, "tools/list"))], {"requests without a recorded response": (1, [7])}),
        (
            [C(ask(None, "tools/list")), S(error(None, -32600))],
            {"requests that no server can answer": (1, [7])},
        ),
        ([C("[7]"), C("{]")], {"lines that are not messages": (2, [7, 8])}),
        (
            [C(call(2, n=2**64)), S(text(2, "B")), C(call(3, n="\ud800")), S(text(3, "C"))],
            {"requests with text that is not Unicode": (1, [9])},
        ),
        (
            [C(call(2)), S(ask(1, "roots/list")), C(result(1, roots=[])), S(text(2, "B"))],
            {"calls during which the server asked the client": (1, [7])},
        ),
        ([C(call(2)), S(ask(1, "ping")), C(result(1)), S(text(2, "B"))], {}),
        (
            [C(modern(2, "subscriptions/listen")), S(result(2))],
            {"subscriptions, which stay open": (1, [7])},
        ),
        (
            [C(modern(2, "tools/list")), S(result(2, tools=[]))],
            {"requests of 2026-07-28, while the target speaks 2025-11-25": (1, [7])},
        ),
    ],
)
def test_message_that_cannot_be_sent_again_is_left_out_alone(
    said: list[Sent], expected: Any
) -> None:
    """The request before it is kept."""
    said = [*HANDSHAKE, C(call(1)), S(text(1, "A")), *said]
    load = recorded_load(recorded(said), revision="2025-11-25")
    assert names(load)[0][0] == "tools/call echo"
    assert left_out(load) == expected


def test_damaged_and_partial_lines_are_counted() -> None:
    said = [*HANDSHAKE, C(call(1)), S(text(1, "A")), C(call(2)), S(text(2, "B"))]
    lines = lines_of(said)
    cut = TruncatedMessage(size=9_000, sha256="")
    lines[5] = lines[5][0], replace(lines[5][1], truncated=cut)
    trace = load_trace(TraceHeader(format_version=1, at=AT, transport="stdio"), lines)
    trace.damaged, trace.damaged_count = [4, 5, 6, 7, 8, 9], 6
    load = recorded_load(trace)
    assert left_out(load) == {
        "messages that were recorded in part": (1, [7]),
        "lines that cannot be read": (6, [4, 5, 6, 7, 8]),
    }


def test_other_revisions_leave_the_rest_of_a_conversation() -> None:
    said = [
        C(modern(1, "tools/list")),
        S(result(1, tools=[])),
        C(modern(2, "prompts/list", "2027-01-01")),
        S(result(2, prompts=[])),
    ]
    assert names(recorded_load(recorded(said), revision=NEW)) == [["tools/list"]]
    both = recorded_load(recorded(said))
    assert both.revisions == {NEW: 1, "2027-01-01": 1}
    assert recorded_load(recorded(said), revision="2024-11-05").conversations == []


def test_revisions_with_a_handshake_take_each_others_requests() -> None:
    """A recording outlives the server's update. Requests of 2026-07-28 name their revision."""
    said = [*HANDSHAKE, C(call(1)), S(text(1, "A"))]
    for revision, count in (("2025-11-25", 1), ("2024-11-05", 1), (NEW, 0), ("2027-01-01", 0)):
        assert len(recorded_load(recorded(said), revision=revision).conversations) == count


CHAIN = [
    *HANDSHAKE,
    C(ask(1, "tools/list")),
    S(result(1, tools=[], nextCursor="old-1")),
    C(ask(2, "tools/list", cursor="old-1")),
    S(result(2, tools=[], nextCursor="old-2")),
    C(ask(3, "tools/list", cursor="old-2")),
    S(result(3, tools=[])),
    C(call(4)),
    S(text(4, "A")),
]


def test_chain_of_cursors_sends_the_live_ones() -> None:
    load = recorded_load(recorded(CHAIN))
    (calls,) = load.conversations
    assert [each.is_fixed for each in calls] == [True, False, False, True]
    assert [each.is_source for each in calls] == [True, True, False, False]
    answers = [{"result": {"nextCursor": f"live-{n}"}} for n in (1, 2)]
    sent = play(load, [*answers, {"result": {}}, {"result": {}}])
    assert [params and params.get("cursor") for params in sent] == [None, "live-1", "live-2", None]


def test_copies_have_values_of_their_own() -> None:
    load = recorded_load(recorded(CHAIN))
    first, second = CallCopy(), CallCopy()
    calls = load.conversations[0]
    first.receive(calls[0], {"result": {"nextCursor": "a"}})
    second.receive(calls[0], {"result": {"nextCursor": "b"}})
    assert first.params(calls[1]) == {"cursor": "a"}
    assert second.params(calls[1]) == {"cursor": "b"}
    assert CallCopy().params(calls[1]) == {"cursor": "old-1"}


@pytest.mark.parametrize(
    ("given", "live", "second", "sent"),
    [
        (
            {"task": {"taskId": "old", "status": "completed"}},
            {"task": {"taskId": "new", "status": "completed"}},
            {"taskId": "old"},
            {"taskId": "new"},
        ),
        (
            {"structuredContent": {"order": "order-17"}},
            {"structuredContent": {"order": "order-99"}},
            {"name": "pay", "arguments": {"order": "order-17"}},
            {"name": "pay", "arguments": {"order": "order-99"}},
        ),
        (
            {"requestState": "s", "inputRequests": {"a": {"method": "elicitation/create"}}},
            {"requestState": "t", "inputRequests": {"z": {"method": "elicitation/create"}}},
            {"name": "x", "requestState": "s", "inputResponses": {"a": {"action": "accept"}}},
            {"name": "x", "requestState": "t", "inputResponses": {"z": {"action": "accept"}}},
        ),
    ],
)
def test_values_that_a_server_made_up_are_the_live_ones(
    given: Any, live: Any, second: Any, sent: Any
) -> None:
    said = [C(call(1)), S(result(1, **given)), C(ask(2, "tools/call", **second)), S(text(2, "B"))]
    load = recorded_load(recorded(said))
    assert [each.is_source for each in load.conversations[0]] == [True, False]
    assert play(load, [{"result": live}, {"error": {"code": 1}}])[1] == sent


def test_request_that_needs_one_that_is_left_out_is_left_out() -> None:
    """It would send a value that only the recorded server knows; so would one that needs it."""
    said = [
        C(call(1, "order")),
        S(ask(1, "elicitation/create")),
        C(result(1, action="accept")),
        S(result(1, structuredContent={"order": "order-17"})),
        C(call(2, "pay", order="order-17")),
        S(result(2, structuredContent={"receipt": "receipt-3"})),
        C(call(3, "keep", receipt="receipt-3")),
        S(text(3, "C")),
        C(call(4)),
        S(text(4, "D")),
    ]
    load = recorded_load(recorded(said))
    assert names(load) == [["tools/call echo"]]
    assert left_out(load) == {
        "calls during which the server asked the client": (1, [2]),
        "requests that need the response to one that is left out": (2, [6, 8]),
    }


def test_sender_that_answers_itself_keeps_questions_and_sends_no_answers() -> None:
    """Otherwise each question would be answered twice, by the client and by the recording."""
    said = [
        C(call(1)),
        S(ask(1, "elicitation/create")),
        C(result(1, action="accept")),
        S(text(1, "A")),
        C(call(2)),
        S(result(2, requestState="s", inputRequests={"a": {"method": "elicitation/create"}})),
        C(ask(3, "tools/call", name="x", requestState="s", inputResponses={"a": {}})),
        S(text(3, "C")),
    ]
    load = recorded_load(recorded(said), answers_itself=True)
    assert names(load) == [["tools/call echo", "tools/call echo"]]
    assert left_out(load) == {
        "requests that carry answers, which the client sends itself": (1, [8])
    }


def test_client_writes_its_own_meta_and_asks_for_its_own_tasks() -> None:
    """It would refuse to send a recorded revision or capability."""
    said = [
        C(modern(1, "tools/list", cursor="c")),
        S(result(1, tools=[])),
        C(ask(2, "x/y", _meta={"own": 1, "progressToken": 5})),
        S(result(2)),
        C(modern(3, "tasks/get", taskId="t")),
        S(result(3, status="completed")),
    ]
    load = recorded_load(recorded(said), answers_itself=True)
    params = [each.params for each in load.conversations[0]]
    assert params == [{"cursor": "c"}, {"_meta": {"own": 1}}]
    assert left_out(load) == {"requests about a task, which the client sends itself": (1, [6])}


def test_live_value_that_cannot_be_encoded_is_not_sent() -> None:
    copy = CallCopy()
    calls = recorded_load(recorded(CHAIN)).conversations[0]
    copy.receive(calls[0], {"result": {"nextCursor": "\ud800"}})
    assert copy.params(calls[1]) == {"cursor": "old-1"}


def test_task_that_still_works_is_asked_for_again_for_a_while() -> None:
    """A live task may be slower than the recorded one, but may also never end."""
    said = [
        C(call(1)),
        S(result(1, taskId="old", status="working")),
        C(ask(2, "tasks/get", taskId="old")),
        S(result(2, taskId="old", status="completed")),
    ]
    load = recorded_load(recorded(said))
    (start, get), copy = load.conversations[0], CallCopy()
    copy.receive(start, {"result": {"taskId": "new"}})
    working = {"result": {"status": "working", "pollIntervalMs": 1500}}
    assert copy.receive(get, working) == 1.5
    assert copy.receive(get, {"result": {"status": "working", "pollIntervalMs": 10**9}}) == 5.0
    assert copy.receive(get, {"result": {"status": "completed"}}) is None
    # A task that never ends stops after a limit.
    for each in copy, CallCopy():
        asked = [each.receive(get, working) for _ in range(1_001)]
        assert asked.index(None) == 1_000


def test_redacted_values_are_named() -> None:
    said = [*HANDSHAKE]
    for id in range(6):
        said += [C(call(id, token="‹redacted 1›")), S(text(id, "A"))]
    assert recorded_load(recorded(said)).hidden == [5, 7, 9, 11, 13]


def test_lines_that_are_left_out_are_named_up_to_five() -> None:
    said = [C(notify("notifications/x"))] * 7
    assert left_out(recorded_load(recorded(said))) == {"notifications": (7, [2, 3, 4, 5, 6])}
    get = HttpHead(method="GET", target="/mcp")
    stream = TraceLine(t=0, exchange=1, sender="client", http=get)
    trace = recorded([*HANDSHAKE, Sent("client", stream), C(call(1)), S(text(1, "A"))])
    assert left_out(recorded_load(trace)) == {"streams for server messages (GET)": (1, [])}


@pytest.mark.parametrize("version", [5, None, NEW])
def test_revision_is_that_of_a_handshake_with_a_text(version: Any) -> None:
    handshake = [C(ask(0, "initialize")), S(result(0, protocolVersion=version))]
    other = [C(call(1)), S(result(1, protocolVersion=NEW))]
    load = recorded_load(recorded([*handshake, *other]))
    expected = version if isinstance(version, str) else ""
    assert [each.revision for each in load.conversations[0]] == [expected]
    assert load.revisions == ({expected: 1} if expected else {})
    load = recorded_load(recorded(other))
    assert ([each.revision for each in load.conversations[0]], load.revisions) == ([""], {})


def test_requests_beyond_a_size_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All copies share the recorded messages, of which there may be any number."""
    said = [each for id in (1, 2, 3) for each in (C(call(id)), S(text(id, "A")))]
    size = len(json.dumps(call(1)))
    monkeypatch.setattr(_load, "_MAX_BYTES", 2 * size)
    load = recorded_load(recorded(said))
    assert [each.line for each in load.conversations[0]] == [2, 4]
    assert left_out(load) == {"requests beyond the first 0 MiB": (1, [6])}


def test_params_without_live_values_are_sent_as_recorded() -> None:
    """With all their members, and without a copy."""
    said = [C(call(1, x=5)), S(result(1, taskId="a"))]
    said[0].message["params"]["_meta"] = {"progressToken": 1}
    said += [C(ask(2, "tasks/cancel", taskId="a")), S(result(2))]
    load = recorded_load(recorded(said))
    first, second = load.conversations[0]
    assert first.params == said[0].message["params"]
    copy = CallCopy()
    copy.receive(first, {"result": {"taskId": "b"}})
    assert copy.params(first) is first.params
    assert copy.params(second) == {"taskId": "b"}


INPUT = {"a": {"method": "elicitation/create", "params": {"elicitationId": "form-1234"}}}


@pytest.mark.parametrize(
    ("given", "params", "is_fixed"),
    [
        ({"inputRequests": INPUT}, {"inputResponses": {"a": {}}}, False),
        ({"inputRequests": INPUT}, {"name": "x", "form": ["form-1234"]}, False),
        ({"inputRequests": INPUT}, {"inputResponses": {"b": {}}}, True),
        ({"content": [[{"text": "cart-17"}]]}, {"arguments": {"all": [5, "cart-17"]}}, False),
        ({"content": [{"text": "cart-17"}]}, {"arguments": {"n": 1, "all": "cart-18"}}, True),
        ({"content": [{"text": "no id"}]}, {"arguments": {"all": "no id"}}, True),
        ({"cart": "cart-17"}, {"all": "cart-17", "mine": "~live~000000002"}, False),
        ({"cart": "cart-17"}, {"all": "cart-17", "mine": "~live~000000099"}, False),
        ({"cart": "cart-17"}, {"mine": "~live~000000001"}, True),
    ],
)
def test_request_with_a_value_of_an_earlier_result_has_a_source(
    given: Any, params: Any, is_fixed: bool
) -> None:
    """Anywhere in it. The last rows have texts that look like our own marks."""
    said = [C(call(1)), S(result(1, **given)), C(ask(2, "tools/call", **params)), S(result(2))]
    first, second = recorded_load(recorded(said)).conversations[0]
    assert (second.is_fixed, first.is_source) == (is_fixed, not is_fixed)


def test_clients_without_a_handshake_are_one_conversation_others_one_each() -> None:
    said = [*HANDSHAKE, C(call(1)), S(text(1, "A")), *HANDSHAKE, C(call(2, "b")), S(text(2, "B"))]
    assert names(recorded_load(recorded(said))) == [["tools/call echo"], ["tools/call b"]]


def test_error_in_the_recording_is_kept_and_marked() -> None:
    load = recorded_load(recorded([C(call(1)), S(error(1))]))
    assert [each.failed for each in load.conversations[0]] == [True]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("~live~000000000"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "method", "params", "result", "error", "cursor", "nextCursor"])
            | st.sampled_from(
                ["_meta", "taskId", "inputRequests", "inputResponses", "status", "name"]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
METHOD = st.sampled_from(["tools/call", "tools/list", "tasks/get", "initialize", "subscriptions"])
MESSAGE = st.one_of(
    st.builds(lambda id, method, params: ask(id, method) | {"params": params}, JSON, METHOD, JSON),
    st.builds(lambda id, value: {"id": id, "result": value}, st.integers(0, 3), JSON),
    st.builds(
        lambda id, method, params: ask(id, method) | {"params": params},
        st.integers(0, 3),
        METHOD,
        JSON,
    ),
    JSON,
)


@pytest.mark.long
@given(
    st.lists(st.builds(Sent, st.sampled_from(["client", "server"]), MESSAGE), max_size=8),
    st.lists(JSON, max_size=8),
    st.booleans(),
)
def test_any_recording_and_any_server_is_played(
    said: list[Sent], answers: list[Any], itself: bool
) -> None:
    load = recorded_load(
        recorded([Sent(each.sender, json.dumps(each.message)) for each in said]),
        answers_itself=itself,
    )
    for calls in load.conversations:
        copy = CallCopy()
        for index, each in enumerate(calls):
            msgspec.json.encode(copy.params(each))
            copy.receive(each, answers[index] if index < len(answers) else {"result": {}})
