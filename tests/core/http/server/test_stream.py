"""Streams as numbered logs: how much is retained, how long, and that the counts are right."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from mcp_core.http import HttpLimits
from mcp_core.http.server._stream import _MESSAGE, _STREAM, EventLog, EventStream
from mcp_core.protocol.jsonrpc._codec import encode, encode_notification, encode_result

COST = _STREAM + _MESSAGE


class Owner:
    """A session, as far as its streams know it."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.forgotten: list[EventStream] = []

    def forget(self, stream: EventStream) -> None:
        self.forgotten.append(stream)
        self.log.forget(stream)


def response(cursor: int = 0) -> Any:
    """An exchange that has taken so much."""
    return SimpleNamespace(cursor=cursor)


def filled(count: int, *, owner: Any = None, lasting: bool = True, size: int = 1) -> EventStream:
    stream = EventStream(b"7", owner=owner, long_lived=lasting)
    for _ in range(count):
        stream.add_message(b"x" * size)
    return stream


def stream_fields(stream: EventStream) -> dict[str, Any]:
    return {name: getattr(stream, name) for name in EventStream.__slots__ if name != "messages"}


def test_stream_begins_with_nothing() -> None:
    """Without requests it is over at once, unless it lives as long as its session."""
    first: dict[str, Any] = {
        "batch": False,
        "bytes": 0,
        "counted_bytes": 0,
        "ended": False,
        "exchange": None,
        "has_messages_before_response": False,
        "last": 0,
        "last_evicted": 0,
        "last_taken": 0,
        "long_lived": False,
        "name": b"7",
        "needed_scopes": frozenset(),
        "over": True,
        "owner": None,
        "pending": set(),
        "rejection": None,
        "unsent": 0,
    }
    stream = EventStream(b"7")
    assert stream_fields(stream) == first
    assert len(stream.messages) == 0
    long_lived = EventStream(b"7", long_lived=True)
    assert stream_fields(long_lived) == first | {"long_lived": True, "over": False}
    assert stream_fields(EventStream(b"7", [1])) == first | {"pending": {1}, "over": False}


def test_stream_numbers_its_messages() -> None:
    """Numbers are event ids; `1` and `"1"` are different requests; an error keeps its code."""
    stream = EventStream(b"7", [1, "1"], batch=True)
    assert repr(stream) == "<EventStream 7, 0 messages, 2 pending>"
    assert (list(stream.after(0)), stream.over, stream.has_messages_before_response) == (
        [],
        False,
        False,
    )
    stream.add_message(b"note")
    stream.add_response(b"one", 1, 0)
    stream.add_response(b"nobody's", None, -32700)
    assert list(stream.after(0)) == [(1, b"note", 0), (2, b"one", 0), (3, b"nobody's", -32700)]
    assert list(stream.after(2)) == [(3, b"nobody's", -32700)]
    assert list(stream.after(3)) == []
    assert (stream.bytes, stream.unsent, stream.has_messages_before_response, stream.over) == (
        15,
        15,
        True,
        False,
    )
    stream.drop_request("1")
    stream.drop_request("1")
    assert (stream.over, stream.abandoned) == (True, True)
    stream.exchange = response()
    assert (stream.over, stream.abandoned) == (True, False)


@pytest.mark.parametrize(
    ("lasting", "ended", "over"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_stream_is_over_when_nothing_more_can_come(lasting: bool, ended: bool, over: bool) -> None:
    stream = EventStream(b"0", long_lived=lasting)
    if ended:
        stream.end()
    assert stream.over is over


def test_stream_does_not_reach_evicted_messages() -> None:
    stream = filled(5)
    assert [stream.reaches(cursor) for cursor in (-1, 0, 5, 6)] == [False, True, True, False]
    assert stream.evict()
    assert stream.evict()
    assert [stream.reaches(cursor) for cursor in (0, 1, 2, 5)] == [False, False, True, True]
    assert [number for number, _, _ in stream.after(2)] == [3, 4, 5]
    stream.clear()
    assert [stream.reaches(cursor) for cursor in (4, 5)] == [False, True]
    assert (stream.bytes, stream.evict(), stream.bytes) == (0, False, 0)
    stream.add_message(b"more")
    assert list(stream.after(5)) == [(6, b"more", 0)]


def test_stream_does_not_evict_what_a_response_needs() -> None:
    stream = filled(5)
    stream.exchange = response(2)
    stream.clear()
    assert [number for number, _, _ in stream.after(2)] == [3, 4, 5]
    assert (stream.evict(), stream.bytes) == (False, 3)
    stream.exchange.cursor = 5
    stream.clear()
    assert (stream.bytes, stream.last_evicted) == (0, 5)


# -- What is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "evicted"), [(-1, 0), (0, 0), (1, 1)])
def test_log_evicts_above_the_event_limit(more: int, evicted: int) -> None:
    log = EventLog(HttpLimits(events=10))
    stream = filled(10 + more)
    log.retain(stream, 0)
    assert stream.last_evicted == evicted
    assert log.bytes == stream.counted_bytes == _STREAM + len(stream.messages) * (_MESSAGE + 1)
    assert repr(log) == f"<EventLog of 1 streams, {log.bytes} bytes>"


@pytest.mark.parametrize(("more", "evicted"), [(-1, 0), (0, 0), (1, 1)])
def test_log_evicts_above_the_session_limit(more: int, evicted: int) -> None:
    log = EventLog(HttpLimits(session_bytes=COST + _MESSAGE + 100))
    stream = filled(2, size=50)
    other = filled(1, size=1000, owner=Owner(log))
    log.retain(other, 0)
    log.retain(stream, 0)
    assert stream.last_evicted == 0
    stream = filled(1, size=50 + more)
    stream.add_message(b"x" * 50)
    log = EventLog(HttpLimits(session_bytes=COST + _MESSAGE + 100))
    log.retain(stream, 0)
    assert stream.last_evicted == evicted


@pytest.mark.parametrize(("more", "evicted"), [(-1, 0), (0, 0), (1, 1)])
def test_log_evicts_above_the_total_limit(more: int, evicted: int) -> None:
    log = EventLog(HttpLimits(all_bytes=2 * (COST + 100)))
    first, second = (filled(1, size=100, owner=Owner(log)) for _ in range(2))
    log.retain(first, 0)
    second = filled(1, size=100 + more, owner=Owner(log))
    log.retain(second, 0)
    assert (first.last_evicted, second.last_evicted) == (evicted, 0)
    assert log.bytes <= 2 * (COST + 100)


@pytest.mark.parametrize(("later", "kept"), [(9.999, True), (10.0, False), (10.001, False)])
def test_log_forgets_streams_that_are_too_old(later: float, kept: bool) -> None:
    log = EventLog(HttpLimits(event_age=10))
    owner = Owner(log)
    over, going_on = filled(1, owner=owner, lasting=False), filled(1, owner=owner)
    log.retain(over, 5)
    log.retain(going_on, 5)
    assert log.next_deadline() == 15
    log.expire(5 + later)
    assert [bool(each.messages) for each in (over, going_on)] == [kept, kept]
    assert owner.forgotten == ([] if kept else [over])  # what goes on is still the session's
    assert (log.bytes == 0) is not kept
    assert (log.next_deadline() is None) is not kept


def test_log_evicts_the_least_recently_used_stream_first() -> None:
    log = EventLog(HttpLimits(session_bytes=3 * COST + 10))
    owner = Owner(log)
    streams = [filled(1, owner=owner, lasting=False) for _ in range(3)]
    for stream in streams:
        log.retain(stream, 0)
    streams[0].add_message(b"again")
    log.retain(streams[0], 1)
    assert owner.forgotten == [streams[1]]
    assert [bool(stream.messages) for stream in streams] == [True, False, True]


def test_log_keeps_an_empty_stream_behind_those_that_it_evicts() -> None:
    """A client may still ask for what comes after the last event that it has got."""
    log = EventLog(HttpLimits(session_bytes=2 * COST + _MESSAGE + 2))
    owner = Owner(log)
    long, empty, last = (filled(count, owner=owner, lasting=False) for count in (2, 0, 1))
    for stream in (long, empty, last):
        log.retain(stream, 0)
    assert (long.last_evicted, owner.forgotten) == (1, [])


def test_log_never_evicts_what_a_reader_waits_for() -> None:
    log = EventLog(HttpLimits(events=2, event_age=10, session_bytes=COST + 1, all_bytes=COST + 1))
    stream = filled(5, size=100)
    stream.exchange = response(1)
    log.retain(stream, 0)
    assert [number for number, _, _ in stream.after(1)] == [2, 3, 4, 5]
    log.expire(10)
    assert log.next_deadline() == 20
    log.forget(stream)
    assert [number for number, _, _ in stream.after(1)] == [2, 3, 4, 5]
    assert (log.bytes, log.next_deadline()) == (0, None)


def test_log_evicts_others_beside_a_stalled_reader() -> None:
    log = EventLog(HttpLimits(all_bytes=3 * COST))
    unread = filled(1, owner=Owner(log))
    unread.exchange = response(0)
    old = filled(1, owner=Owner(log), lasting=False)
    for stream in (unread, old, filled(1, owner=Owner(log))):
        log.retain(stream, 0)
    assert (len(unread.messages), len(old.messages)) == (1, 0)
    assert log.bytes == 2 * (COST + 1)


def test_log_does_not_retain_a_message_over_the_limit() -> None:
    log = EventLog(HttpLimits(session_bytes=1000))
    owner = Owner(log)
    stream = filled(1, owner=owner, lasting=False, size=2000)
    log.retain(stream, 0)
    assert (owner.forgotten, log.bytes, stream.reaches(0)) == ([stream], 0, False)


def test_log_forget_of_an_unknown_stream_does_nothing() -> None:
    log = EventLog(HttpLimits())
    stream, other = filled(2), filled(2, owner=Owner(log))
    log.forget(stream)
    log.retain(other, 0)
    log.forget(filled(1, owner=other.owner))
    assert (len(stream.messages), len(other.messages)) == (2, 2)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ("send", "send", "send", "read", "connect", "disconnect", "forget", "wait")
            ),
            st.integers(0, 5),
            st.sampled_from((0, 10, 500, 3000)),
        ),
        max_size=60,
    )
)
def test_log_counts_what_it_holds(steps: list[tuple[str, int, int]]) -> None:
    """Any mix of sends, reads and breaks: the byte counts fit, and the caps hold."""
    limits = HttpLimits(events=3, event_age=10, session_bytes=6000, all_bytes=9000)
    log = EventLog(limits)
    owners = [Owner(log) for _ in range(3)]
    streams = [filled(0, owner=owners[number % 3]) for number in range(6)]
    now = 0.0
    for step, which, size in steps:
        stream = streams[which]
        match step:
            case "send":
                stream.add_message(b"x" * size)
                log.retain(stream, now)
            case "read" if stream.exchange is not None:
                stream.exchange.cursor = stream.last
                stream.unsent = 0
            case "connect":
                stream.exchange = response(stream.last_evicted)
            case "disconnect":
                stream.exchange, stream.unsent = None, 0
                log.retain(stream, now)  # as its session does
            case "forget":
                log.forget(stream)
            case "wait":
                now += size / 100
                log.expire(now)
                due = log.next_deadline()
                assert due is None or due > now
        kept = list(log._expiry)
        assert log.bytes == sum(each.counted_bytes for each in kept)
        for each in streams:
            held = sum(len(data) for _, data, _ in each.messages)
            assert each.bytes == held
            assert [number for number, _, _ in each.messages] == list(
                range(each.last_evicted + 1, each.last + 1)
            )
            if each.exchange is not None:
                assert each.last_evicted <= each.exchange.cursor
            if each in kept and not (each.exchange is not None and step == "forget"):
                assert len(each.messages) <= limits.events or each.exchange is not None
        unread = sum(each.counted_bytes for each in kept if each.exchange is not None)
        assert log.bytes <= limits.all_bytes + unread
    for stream in streams:
        stream.exchange = None
        log.forget(stream)
    assert (log.bytes, log._retained, len(log._expiry)) == (0, {}, 0)


# -- Responses that are not read -------------------------------------------------------------------


def test_long_responses_that_were_not_sent_are_dropped() -> None:
    """The client still gets a response per request, and numbers don't shift; short ones stay."""
    long = "x" * 70_000
    stream = EventStream(b"1", [1, "1", 3])
    stream.add_response(result(1, long), 1, 0)
    stream.add_message(encode_notification("notifications/message", encode({"data": long})))
    stream.add_response(result("1", long), "1", 0)
    stream.add_response(result(3, "short"), 3, 0)
    before = [data for _, data, _ in stream.messages]
    stream.drop_responses(1)
    first, notification, dropped, short = stream.messages
    assert [each[1] for each in (first, notification, short)] == [before[0], before[1], before[3]]
    error = json.decode(dropped[1])
    assert (error["id"], error["error"]["code"], dropped[2]) == ("1", -32603, -32603)
    assert "too much of unread responses" in error["error"]["message"]
    assert [number for number, _, _ in stream.messages] == [1, 2, 3, 4]
    assert stream.bytes == sum(len(data) for _, data, _ in stream.messages)
    assert stream.unsent == stream.bytes - len(before[0])


def result(id: int | str, text: str) -> bytes:
    return encode_result(id, encode({"text": text}))


def test_log_counts_nothing_for_a_stream_without_messages() -> None:
    log = EventLog(HttpLimits())
    stream = filled(0)
    log.retain(stream, 0.0)
    assert (log.bytes, stream.counted_bytes) == (0, 0)
    stream.add_message(b"abc")
    log.retain(stream, 0.0)
    assert log.bytes == stream.counted_bytes == COST + 3
    stream.clear()
    log.retain(stream, 0.0)
    assert (log.bytes, stream.counted_bytes) == (0, 0)
