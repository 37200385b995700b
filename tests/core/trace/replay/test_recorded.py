"""Messages of a trace: sessions, what is missing, and limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core.trace import (
    DamagedLine,
    HttpHead,
    SseFields,
    TraceHeader,
    TraceLine,
    TraceTooLarge,
    TruncatedMessage,
    load_trace,
)
from mcp_core.trace.replay._recorded import describe_request, encode_message
from tests.core.trace.judge.conversations import C, S, Sent, ask, notify, result
from tests.core.trace.replay.traces import CALL, HANDSHAKE, call, lines_of, recorded

# Python reads it.
DEEP = '{"jsonrpc":"2.0","id":1,"method":' + "[" * 200 + "1" + "]" * 200 + "}"
HEADER = TraceHeader(format_version=1, transport="http")


def posted(message: Any, exchange: int, conversation: int = 1, method: str = "POST") -> TraceLine:
    raw = None if message is None else json.dumps(message)
    head = HttpHead(method=method, target="/mcp")
    return TraceLine(
        t=0.0, conversation=conversation, exchange=exchange, sender="client", raw=raw, http=head
    )


def answered(
    message: Any, exchange: int, conversation: int = 1, session: bool = False
) -> TraceLine:
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    if session:
        headers += (("mcp-session-id", "s"),)
    return TraceLine(
        t=0.0,
        conversation=conversation,
        exchange=exchange,
        sender="server",
        raw=json.dumps(message),
        http=HttpHead(status=200, headers=headers),
        end="complete",
    )


def test_handshake_begins_session() -> None:
    trace = recorded([*HANDSHAKE, *CALL, *HANDSHAKE, *CALL])
    assert [len(each.messages) for each in trace.sessions] == [5, 5]
    assert all(each.has_handshake for each in trace.sessions)


def test_probe_before_handshake_is_of_its_session() -> None:
    probe = [
        C(ask(1, "server/discover")),
        S({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601}}),
    ]
    trace = recorded([*probe, *HANDSHAKE])
    assert [len(each.messages) for each in trace.sessions] == [5]


def test_requests_without_handshake_are_one_session() -> None:
    lines = [
        posted(ask(1, "tools/list"), 1, 1),
        posted(ask(1, "prompts/list"), 2, 2),
        answered(result(1, prompts=[]), 2, 2),
        answered(result(1, tools=[]), 1, 1),
    ]
    trace = load_trace(HEADER, enumerate(lines, 2))
    (session,) = trace.sessions
    assert [each.line for each in session.messages] == [2, 3, 4, 5]


def test_session_without_handshake_has_the_ids_and_streams_of_all() -> None:
    """A recording that begins late: its stream can't be replayed, which is then a note."""
    lines = [
        *(posted(ask(1, "tools/list"), 1, 1), answered(result(1, tools=[]), 1, 1, session=True)),
        *(posted(ask(1, "prompts/list"), 2, 2), answered(result(1, prompts=[]), 2, 2)),
        posted(None, 3, 2, "GET"),
    ]
    (session,) = load_trace(HEADER, enumerate(lines, 2)).sessions
    assert (session.has_id, session.has_stream) == (True, True)
    (session,) = load_trace(HEADER, enumerate(lines[2:4], 2)).sessions
    assert (session.has_id, session.has_stream) == (False, False)


def test_sessions_side_by_side_stay_apart() -> None:
    first, second = HANDSHAKE[0].message, HANDSHAKE[1].message
    lines = [
        posted(first, 1, 1),
        posted(first, 2, 2),
        answered(second, 2, 2, session=True),
        answered(second, 1, 1),
        posted(None, 3, 1, "GET"),
    ]
    trace = load_trace(HEADER, enumerate(lines, 2))
    assert [[each.line for each in one.messages] for one in trace.sessions] == [[2, 5], [3, 4]]
    assert [each.has_id for each in trace.sessions] == [False, True]
    assert [each.has_stream for each in trace.sessions] == [True, False]


def redirected(exchange: int) -> TraceLine:
    head = HttpHead(status=307, headers=(("location", "/mcp/"),))
    return TraceLine(
        t=0.0, conversation=1, exchange=exchange, sender="server", http=head, end="complete"
    )


def test_redirected_messages_count_once() -> None:
    """Each is sent again on another exchange, which may begin before the redirect of a third."""
    stream = posted(None, 3, method="GET")
    lines = [
        *(posted(ask(1, "initialize"), 1), redirected(1)),
        *(posted(ask(1, "initialize"), 2), answered(result(1), 2, session=True)),
        *(stream, posted(call(2, "a"), 4), posted(call(3, "b"), 5)),
        *(redirected(4), redirected(3), posted(call(2, "a"), 6), redirected(5)),
        *(posted(call(3, "b"), 7), answered(result(2), 6), answered(result(3), 7)),
    ]
    [session] = load_trace(HEADER, list(enumerate(lines, 2))).sessions
    assert [(each.exchange, each.id) for each in session.messages] == [
        *((2, 1), (2, 1), (6, 2), (7, 3), (6, 2), (7, 3)),
    ]
    assert (session.has_handshake, session.is_initialized, session.has_id) == (True, True, True)


def test_batch_becomes_its_members() -> None:
    trace = recorded([C([ask(1, "ping"), notify("notifications/x")]), S([result(1)])])
    (session,) = trace.sessions
    assert [each.kind for each in session.messages] == ["request", "notification", "response"]
    assert [each.batch for each in session.messages] == [2, 2, 3]


@pytest.mark.parametrize("raw", ["no JSON", "[]", "17", '{"a": 1}', "NaN", "[" * 100_000, DEEP])
def test_text_without_message_is_junk(raw: str) -> None:
    (session,) = recorded([C(raw)]).sessions
    assert [each.kind for each in session.messages] == ["junk"]


def test_lines_of_other_programs_are_left_out() -> None:
    lines = [
        TraceLine(t=0.0, kind="something new", text="x"),
        TraceLine(t=0.0, sender="server", exchange=1, raw="<html>", http=HttpHead(status=502)),
        TraceLine(t=0.0, sender="server", exchange=2, raw="/mcp", sse=SseFields(event="endpoint")),
        TraceLine(t=0.0, sender="client", raw="  "),
        TraceLine(t=0.0, sender="client", end="closed"),
    ]
    assert load_trace(HEADER, enumerate(lines, 2)).sessions == []


def test_body_that_was_redacted_as_a_whole_is_left_out() -> None:
    """A proxy records logins beside the conversation."""
    head = HttpHead(method="POST", target="/token")
    login = TraceLine(
        t=0, exchange=9, sender="client", http=head, raw="‹redacted 9›", redacted=("",)
    )
    trace = load_trace(HEADER, [(2, login), (3, posted(call(1), 1))])
    (session,) = trace.sessions
    assert [each.line for each in session.messages] == [3]


def test_missing_parts_become_warnings() -> None:
    """A damaged trace can still be replayed in part; the user reads what it lacks."""
    cut = TraceLine(
        t=0.0,
        sender="server",
        raw='{"jsonrpc":"2.0","id":7,"result":{"content":[{"te',
        truncated=TruncatedMessage(size=10_000_000),
    )
    lines: list[TraceLine | DamagedLine] = [
        DamagedLine(reason="no", beginning="x"),
        TraceLine(t=0.0, kind="lost", count=3),
        cut,
    ]
    trace = load_trace(HEADER, enumerate(lines, 2))
    assert trace.warnings == [
        "lines that cannot be read were left out: 2",
        "3 lines were not recorded: responses may be missing",
        "messages were recorded in part, and cannot be replayed: line 4",
    ]
    (message,) = trace.sessions[0].messages
    assert (message.kind, message.id, message.is_truncated) == ("response", 7, True)


def test_beginning_of_request_has_its_method() -> None:
    cut = TraceLine(
        t=0.0,
        sender="client",
        raw='{"jsonrpc":"2.0","method":"tools/call","id":"a","params":{"na',
        truncated=TruncatedMessage(size=10_000_000),
    )
    (message,) = load_trace(HEADER, [(2, cut)]).sessions[0].messages
    assert (message.kind, message.id, message.method) == ("request", "a", "tools/call")


def test_trace_above_limit_is_an_error() -> None:
    lines = lines_of([C(call(number, x="y" * 1000)) for number in range(10)])
    with pytest.raises(TraceTooLarge, match="more than is kept in memory"):
        load_trace(HEADER, lines, limit=5_000)


def test_trace_within_its_limit_is_kept_to_the_byte() -> None:
    """Each message takes 200 bytes beside its own."""
    lines = lines_of([C(call(number)) for number in range(3)])
    size = sum(len(line.raw or "") + 200 for _, line in lines)
    assert len(load_trace(HEADER, lines, limit=size).sessions[0].messages) == 3
    with pytest.raises(TraceTooLarge):
        load_trace(HEADER, lines, limit=size - 1)
    assert load_trace(HEADER, lines).header is HEADER


@pytest.mark.parametrize("count", [1, 10, 11])
def test_missing_parts_are_counted_and_named_up_to_ten(count: int) -> None:
    cut = TraceLine(t=0, sender="client", raw='{"me', truncated=TruncatedMessage(size=9_999))
    damaged = DamagedLine(reason="no", beginning="x")
    trace = load_trace(HEADER, enumerate([damaged] * count + [cut] * count, 2))
    assert (trace.damaged_count, trace.lost) == (count, 0)
    assert trace.damaged == [*range(2, 2 + min(count, 10))]
    assert trace.truncated == [*range(2 + count, 2 + count + min(count, 10))]
    lines = ", ".join(map(str, trace.damaged))
    more = " and more" if count > 10 else ""
    assert trace.warnings[0] == f"lines that cannot be read were left out: {lines}{more}"
    assert len(trace.warnings) == 2


def test_whole_trace_has_no_warnings() -> None:
    trace = recorded([*HANDSHAKE, *CALL])
    assert (trace.warnings, trace.truncated, trace.damaged) == ([], [], [])
    lost = [TraceLine(t=0.0, kind="lost", count=count) for count in (0, 3)]
    assert load_trace(HEADER, enumerate(lost, 2)).warnings == [
        "4 lines were not recorded: responses may be missing"
    ]


@pytest.mark.parametrize(
    ("said", "has_requests"),
    [
        ([], False),
        (CALL, True),
        ([S(ask(1, "ping")), C(result(1))], False),
        ([C(notify("x")), S(result(1))], False),
        ([*HANDSHAKE, S(ask(1, "ping"))], True),
    ],
)
def test_trace_has_requests_if_a_client_has_sent_one(said: list[Any], has_requests: bool) -> None:
    assert recorded(said).has_requests is has_requests


@pytest.mark.parametrize(
    ("answer", "sender", "sessions"),
    [
        (result(1), "server", 2),
        (result(1), "client", 1),
        (result(2), "server", 1),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}, "server", 1),
        (notify("x", result=1), "server", 1),
    ],
)
def test_next_handshake_begins_a_session_after_a_result(
    answer: Any, sender: Any, sessions: int
) -> None:
    """A client may try again after an error, which is the same session."""
    begin = C(ask(1, "initialize"))
    said = [begin, Sent(sender, answer), C(call(5)), S(result(5)), begin]
    trace = recorded(said)
    assert [len(each.messages) for each in trace.sessions] == ([4, 1] if sessions == 2 else [5])
    assert trace.sessions[0].is_initialized is (sessions == 2)


@pytest.mark.parametrize("status", [299, 300, 399, 400])
def test_redirect_has_a_status_from_300_to_399(status: int) -> None:
    head = HttpHead(status=status, headers=())
    answer = TraceLine(t=0.0, conversation=1, exchange=1, sender="server", http=head)
    lines = [posted(call(1), 1), answer, posted(call(1), 2)]
    (session,) = load_trace(HEADER, enumerate(lines, 2)).sessions
    assert len(session.messages) == (1 if 300 <= status < 400 else 2)


def test_redirect_forgets_no_earlier_exchange() -> None:
    lines = [*(posted(call(id), id) for id in (1, 2)), posted(call(1), 1), posted(call(3), 3)]
    (session,) = load_trace(HEADER, enumerate([*lines, redirected(3)], 2)).sessions
    assert [each.exchange for each in session.messages] == [1, 2, 1]


def test_response_belongs_to_the_session_of_its_exchange_while_that_is_open() -> None:
    """Another session of the same client may have begun meanwhile."""
    begin, opened = ask(1, "initialize"), result(1)
    late = TraceLine(
        t=0, conversation=1, exchange=2, sender="server", raw=json.dumps(result(5)),
        http=HttpHead(status=200),
    )  # fmt: skip
    event = replace(late, http=None, sse=SseFields(), raw=json.dumps(notify("notifications/x")))
    ask_back = replace(event, raw=json.dumps(ask(9, "ping")), sender="client", exchange=0, sse=None)
    stream = [posted(None, 7, method="GET"), replace(event, exchange=7)]
    lines = [
        *(posted(begin, 1), answered(opened, 1), posted(call(5), 2), *stream),
        *(posted(begin, 3), answered(opened, 3), replace(event, exchange=7), late, event),
        *(replace(event, exchange=7, end="complete"), replace(event, exchange=7), ask_back),
    ]
    first, second = load_trace(HEADER, enumerate(lines, 2)).sessions
    assert [each.line for each in first.messages] == [2, 3, 4, 6, 9, 10, 11, 12]
    assert [each.line for each in second.messages] == [7, 8, 13, 14]


def test_members_of_a_batch_have_their_own_redacted_places() -> None:
    batch = json.dumps([call(1, key="a"), call(2, key="b")])
    places = ("/0/params/arguments/key", "/1/params", "/10/params", "/1")
    line = TraceLine(t=0, sender="client", raw=batch, redacted=places)
    first, second = load_trace(HEADER, [(2, line)]).sessions[0].messages
    assert (first.redacted, second.redacted) == (("/params/arguments/key",), ("/params",))


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"name": "a", "uri": "b"}, "a"),
        ({"uri": "b", "taskId": "c"}, "b"),
        ({"taskId": "c"}, "c"),
        ({"name": 5, "ref": {"name": "d", "uri": "e"}}, "d"),
        ({"ref": {"uri": "e"}}, "e"),
        ({"ref": {}}, ""),
        ({"ref": "f"}, ""),
        ({"name": "x" * 80}, "x" * 80),
        ({"name": "x" * 81}, "x" * 80 + "…"),
        ([], ""),
        (None, ""),
    ],
)
def test_request_is_described_by_its_method_and_name(params: Any, name: str) -> None:
    assert describe_request("m" * 81, params) == f"{'m' * 80} {name}".rstrip()


@pytest.mark.parametrize(
    ("raw", "kind", "id"),
    [
        ('{"jsonrpc":"2.0","id":7,"error":{"co', "response", 7),
        ('{"jsonrpc":"2.0","id":[7],"result":{"co', "response", None),
        ('{"jsonrpc":"2.0","method":"x","params":{"id":7,"re', "notification", None),
        ('{"jsonrpc":"2.0","params":{"method":"x","result":1', "junk", None),
        ('{"id":null,"method":"x","params":{', "request", None),
    ],
)
def test_beginning_is_classified_by_its_own_members(raw: str, kind: str, id: Any) -> None:
    cut = TraceLine(t=0, sender="client", raw=raw, truncated=TruncatedMessage(size=9_999))
    (message,) = load_trace(HEADER, [(2, cut)]).sessions[0].messages
    assert (message.kind, message.id, message.decode()) == (kind, id, {})


@pytest.mark.parametrize(
    ("line", "is_message"),
    [
        (
            TraceLine(t=0, sender="server", exchange=1, raw="{}", sse=SseFields(event="message")),
            True,
        ),
        (TraceLine(t=0, sender="server", exchange=1, raw="{}", sse=SseFields()), True),
        (TraceLine(t=0, sender="server", exchange=1, raw="{}", sse=SseFields(event="x")), False),
        (TraceLine(t=0, sender="server", exchange=1, raw="{}", http=HttpHead(status=200)), False),
        (
            TraceLine(t=0, sender="server", exchange=1, raw='"jsonrpc"', http=HttpHead(status=500)),
            True,
        ),
        (TraceLine(t=0, sender="client", exchange=1, raw="{}", http=HttpHead(method="POST")), True),
        (TraceLine(t=0, sender="client", raw="{}", http=HttpHead(status=200)), True),
        (TraceLine(t=0, sender="client", raw="{}", redacted=("",)), False),
        (TraceLine(t=0, sender="client", raw="{}", redacted=("/a",)), True),
        (TraceLine(t=0, raw="{}"), False),
    ],
)
def test_line_is_a_message_if_it_can_be_one(line: TraceLine, is_message: bool) -> None:
    assert bool(load_trace(HEADER, [(2, line)]).sessions) is is_message


def test_encoded_half_of_a_surrogate_pair_is_escaped() -> None:
    assert encode_message({"a": "é"}) == '{"a":"é"}'.encode()
    assert encode_message({"a": "\ud800"}) == b'{"a":"\\ud800"}'
