"""Messages of a trace: sessions, what is missing, and limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
from tests.core.trace.judge.conversations import C, S, ask, notify, result
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
