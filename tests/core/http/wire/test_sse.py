"""Server-sent events: the rules of WHATWG as a table, any split, limits, and round trips."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.http.wire._sse import (
    COMMENT,
    EventTooLong,
    SseDecoder,
    SseEvent,
    encode_event,
    last_event_id,
)
from tests.harness.jsonrpc import chunks
from tests.levels import fewer_examples

MOST = 40


def decoded(
    pieces: Iterable[bytes], *, last_id: str = "", most: int = MOST
) -> tuple[list[SseEvent], str, int | None]:
    """Return the events, the last event id, and the reconnection time."""
    decoder = SseDecoder(last_id, limit=most)
    events = []
    for piece in pieces:
        decoder.feed(piece)
        while (event := decoder.next_event()) is not None:
            assert type(event.data) is bytes
            events.append(event)
    return events, decoder.last_id, decoder.retry


def sse_event(
    data: bytes, type: str = "message", id: str = "", retry: int | None = None
) -> SseEvent:
    return SseEvent(type, data, id, retry)


# bytes, events, last event id, reconnection time
STREAMS: list[Any] = [
    pytest.param(b"", [], "", None, id="nothing"),
    pytest.param(b"data: a\n\n", [sse_event(b"a")], "", None, id="an event"),
    pytest.param(b"data: a\n\ndata: b\n\n", [sse_event(b"a"), sse_event(b"b")], "", None, id="two"),
    pytest.param(b"data: a\r\n\r\n", [sse_event(b"a")], "", None, id="CRLF"),
    pytest.param(b"data: a\r\rdata: b\r\r", [sse_event(b"a"), sse_event(b"b")], "", None, id="CR"),
    pytest.param(b"data: a\r\n\n", [sse_event(b"a")], "", None, id="CRLF and LF"),
    pytest.param(b"data: a\n\r", [sse_event(b"a")], "", None, id="LF and CR"),
    pytest.param(
        b"data: a\r\ndata: b\r\n\r\n", [sse_event(b"a\nb")], "", None, id="CRLF is one end"
    ),
    pytest.param(
        b"data: a\n\r\ndata: b\n\n", [sse_event(b"a"), sse_event(b"b")], "", None, id="LF and CRLF"
    ),
    pytest.param(
        b"data: a\ndata: b\ndata: c\n\n",
        [sse_event(b"a\nb\nc")],
        "",
        None,
        id="lines are joined by LF",
    ),
    pytest.param(
        b"data: a\ndata\ndata:\ndata: b\n\n",
        [sse_event(b"a\n\n\nb")],
        "",
        None,
        id="empty lines of data",
    ),
    pytest.param(b"data\n\n", [sse_event(b"")], "", None, id="a name alone"),
    pytest.param(b"data:\n\n", [sse_event(b"")], "", None, id="no value"),
    pytest.param(b"data: \n\n", [sse_event(b"")], "", None, id="a space is no value"),
    pytest.param(b"data\ndata\n\n", [sse_event(b"\n")], "", None, id="two lines without a value"),
    pytest.param(b"data:a\n\n", [sse_event(b"a")], "", None, id="no space"),
    pytest.param(b"data:  a \n\n", [sse_event(b" a ")], "", None, id="one space is not part of it"),
    pytest.param(b"data:\ta\n\n", [sse_event(b"\ta")], "", None, id="a tab is"),
    pytest.param(b"data: a: b:\n\n", [sse_event(b"a: b:")], "", None, id="colons in the data"),
    pytest.param(b"data: a\0\xff\n\n", [sse_event(b"a\0\xff")], "", None, id="any bytes"),
    pytest.param(b"data : a\nDATA: b\n data: c\n\n", [], "", None, id="names are exact"),
    pytest.param(b"data: a", [], "", None, id="the end in a line"),
    pytest.param(b"data: a\n", [], "", None, id="the end in an event"),
    pytest.param(
        b"data: a\n\nid: 1\ndata: b\n",
        [sse_event(b"a")],
        "",
        None,
        id="the end in the second event",
    ),
    pytest.param(b"\n\n\n", [], "", None, id="blank lines"),
    pytest.param(b"\n\ndata: a\n\n\n\n", [sse_event(b"a")], "", None, id="blank lines around"),
    # Comments and unknown fields
    pytest.param(b":\n\n", [], "", None, id="a comment"),
    pytest.param(b": data: a\n:x\n\n", [], "", None, id="comments"),
    pytest.param(
        b"data: a\n: b\ndata: c\n\n", [sse_event(b"a\nc")], "", None, id="a comment in an event"
    ),
    pytest.param(b"colour: red\nx\ndata: a\n\n", [sse_event(b"a")], "", None, id="other fields"),
    # The byte order mark
    pytest.param(b"\xef\xbb\xbfdata: a\n\n", [sse_event(b"a")], "", None, id="a BOM"),
    pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", [], "", None, id="only one BOM"),
    pytest.param(b"\xef\xbb\xbf\ndata: a\n\n", [sse_event(b"a")], "", None, id="a BOM alone"),
    pytest.param(
        b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [sse_event(b"a")], "", None, id="a BOM later"
    ),
    pytest.param(
        b"data: \xef\xbb\xbfa\n\n", [sse_event(b"\xef\xbb\xbfa")], "", None, id="a BOM in the data"
    ),
    pytest.param(b"\xef\xbbdata: a\n\n", [], "", None, id="two thirds of a BOM"),
    # Types
    pytest.param(
        b"event: endpoint\ndata: /x\n\n", [sse_event(b"/x", "endpoint")], "", None, id="a type"
    ),
    pytest.param(
        b"data: /x\nevent: endpoint\n\n",
        [sse_event(b"/x", "endpoint")],
        "",
        None,
        id="a type behind the data",
    ),
    pytest.param(
        b"event: a\nevent: b\ndata\n\n", [sse_event(b"", "b")], "", None, id="the last type"
    ),
    pytest.param(b"event:\ndata: a\n\n", [sse_event(b"a")], "", None, id="no type"),
    pytest.param(
        b"event: x\n\ndata: a\n\n", [sse_event(b"a")], "", None, id="a type is of its block"
    ),
    pytest.param(
        b"event: x\ndata: a\n\ndata: b\n\n",
        [sse_event(b"a", "x"), sse_event(b"b")],
        "",
        None,
        id="and of no other",
    ),
    pytest.param(
        "event: é\ndata\n\n".encode(), [sse_event(b"", "é")], "", None, id="a type is UTF-8"
    ),
    pytest.param(
        b"event: \xff\ndata\n\n", [sse_event(b"", "\ufffd")], "", None, id="which may be broken"
    ),
    # Ids
    pytest.param(b"id: 1\ndata: a\n\n", [sse_event(b"a", id="1")], "1", None, id="an id"),
    pytest.param(
        b"id: 1\ndata: a\n\ndata: b\n\n",
        [sse_event(b"a", id="1"), sse_event(b"b", id="1")],
        "1",
        None,
        id="it stays",
    ),
    pytest.param(b"id: 1\n\n", [], "1", None, id="an id alone"),
    pytest.param(
        b"id: 1\ndata:\n\n",
        [sse_event(b"", id="1")],
        "1",
        None,
        id="an event that only sets the id",
    ),
    pytest.param(b"id: 1\n", [], "", None, id="an id without its blank line"),
    pytest.param(
        b"id: 1\ndata: a\n\nid: 2\ndata: b\n",
        [sse_event(b"a", id="1")],
        "1",
        None,
        id="the second without it",
    ),
    pytest.param(
        b"id: 1\ndata: a\n\nid\n\n", [sse_event(b"a", id="1")], "", None, id="an id is taken back"
    ),
    pytest.param(
        b"id: 1\nid: 2\0\ndata\n\n",
        [sse_event(b"", id="1")],
        "1",
        None,
        id="an id with NUL is none",
    ),
    *(
        pytest.param(
            b"id: 1\nid: 2%c3\ndata\n\n" % control,
            [sse_event(b"", id="1")],
            "1",
            None,
            id=f"an id with {control:#x} is none",
        )
        for control in (*range(1, 9), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)
    ),
    *(
        pytest.param(
            b"id: 1\nid: 2%b3\ndata\n\n" % broken,
            [sse_event(b"", id="1")],
            "1",
            None,
            id=f"an id with {broken!r} is none",
        )
        # Half of a surrogate pair, both halves encoded one by one, and other bytes.
        for broken in (
            b"\xed\xa0\x80",
            b"\xed\xbf\xbf",
            b"\xed\xa0\xbd\xed\xb8\x80",
            b"\xff",
            b"\xc3",
        )
    ),
    pytest.param(b"id: a\tb\n\n", [], "a\tb", None, id="a tab in an id"),
    pytest.param("id: é\n\n".encode(), [], "é", None, id="an id is UTF-8"),
    pytest.param(b"id:  1 \n\n", [], " 1 ", None, id="spaces in an id"),
    # Reconnection times
    pytest.param(b"retry: 300\n", [], "", 300, id="how long to wait"),
    pytest.param(
        b"retry: 300\ndata: a\n\ndata: b\n\n",
        [sse_event(b"a", retry=300), sse_event(b"b")],
        "",
        300,
        id="with an event",
    ),
    pytest.param(b"retry: 300\n\ndata: b\n\n", [sse_event(b"b")], "", 300, id="without one"),
    pytest.param(
        b"retry: 1\nretry: 2\ndata\n\n", [sse_event(b"", retry=2)], "", 2, id="the last counts"
    ),
    pytest.param(b"retry: 007\n", [], "", 7, id="zeros in front"),
    pytest.param(b"retry: 0\n", [], "", 0, id="not to wait"),
    pytest.param(
        b"retry: -1\nretry: 1.5\nretry: 1e3\nretry:\nretry\nretry: 1 \nretry:  1\n",
        [],
        "",
        None,
        id="no number",
    ),
    pytest.param("retry: ٣\n".encode(), [], "", None, id="digits of elsewhere"),
    pytest.param(b"retry: " + b"9" * 30 + b"\n", [], "", 10**15 - 1, id="for ever"),
]


@pytest.mark.requirement("HTTP-10", "SHM-16")
@pytest.mark.parametrize(("data", "events", "last_id", "retry"), STREAMS)
def test_sse_decoder_reads_whatwg_streams(
    data: bytes, events: list[SseEvent], last_id: str, retry: int | None
) -> None:
    assert decoded([data]) == (events, last_id, retry)
    assert decoded(data[i : i + 1] for i in range(len(data))) == (events, last_id, retry)
    assert decoded([data[:1], b"", data[1:], b""]) == (events, last_id, retry)


def test_sse_decoder_resumed_starts_with_last_id() -> None:
    assert decoded([b"data: a\n\n"], last_id="7") == ([sse_event(b"a", id="7")], "7", None)
    assert decoded([b"id: 8\ndata: a\n"], last_id="7") == ([], "7", None)


@pytest.mark.requirement("HTTP-11")
@pytest.mark.parametrize(
    ("before", "id"),
    [(b"", ""), (b"id: 7\ndata: a\n\n", ""), (b"id: 8\n", "8"), (b"data: a\n\nid: 8\n", "8")],
)
def test_sse_decoder_forgets_ids_of_complete_events_only(before: bytes, id: str) -> None:
    """An id that has arrived with the event that is being read belongs to that event."""
    decoder = SseDecoder("7", limit=100)
    decoder.feed(before)
    while decoder.next_event() is not None:
        pass
    decoder.forget_id()
    assert decoder.last_id == ""
    decoder.feed(b"data: b\n\n")
    assert decoder.next_event() == sse_event(b"b", id=id)
    assert decoder.last_id == id


@pytest.mark.parametrize(
    ("event", "is_message"),
    [
        (b"data: {}\n\n", True),
        (b"event: message\ndata: {}\n\n", True),
        (b"event: ping\ndata: {}\n\n", False),
        (b"event: Message\ndata: {}\n\n", False),
        (b"id: 1\ndata:\n\n", False),
    ],
)
def test_sse_event_is_message_only_with_data_and_type(event: bytes, is_message: bool) -> None:
    ((found,), _, _) = decoded([event])
    assert found.is_message is is_message


PARTS = (
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"data",
        b"data: a",
        b"id: 1",
        b"id",
        b"event: x",
        b"retry: 9",
        b":",
        b" ",
    ),
    *(b"\xef\xbb\xbf", b"\0", b"xyz", b"12345678901"),
)


@given(st.lists(st.sampled_from(PARTS)).map(b"".join), st.lists(st.integers(0, 80)))
def test_sse_decoder_any_split_gives_same_events(data: bytes, cuts: list[int]) -> None:
    def outcome(pieces: list[bytes]) -> Any:
        try:
            return decoded(pieces)
        except EventTooLong as exc:
            return str(exc)

    assert outcome(chunks(data, cuts)) == outcome([data])


# -- Limits --------------------------------------------------------------------------------------

LONGEST = b"x" * MOST

# bytes, whether they are within the limit
SIZES: list[Any] = [
    pytest.param(b"data: %b\n\n" % LONGEST, True, id="as long as allowed"),
    pytest.param(b"data: %b\r\n\r\n" % LONGEST, True, id="as long as allowed, CRLF"),
    pytest.param(b"data: %bx\n\n" % LONGEST, False, id="one too long"),
    pytest.param(b"data: %b\ndata\n\n" % LONGEST, False, id="the LF between lines counts"),
    pytest.param(b"data\n" * (MOST + 1) + b"\n", True, id="as many lines as allowed"),
    pytest.param(b"data\n" * (MOST + 2) + b"\n", False, id="one line too many"),
    pytest.param(b"data: %b" % (LONGEST * 2), False, id="a line without an end"),
    pytest.param(b": %b" % (LONGEST * 2), False, id="a comment without an end"),
    pytest.param(b": %b\n" % LONGEST * 10, True, id="any number of comments"),
    pytest.param(b"id: %b\n\n" % (LONGEST * 2), False, id="a long id"),
]


@pytest.mark.parametrize(("data", "taken"), SIZES)
@pytest.mark.parametrize("size", [1, 1000])
def test_sse_decoder_over_limit_raises(data: bytes, taken: bool, size: int) -> None:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    if taken:
        decoded(pieces)
        return
    with pytest.raises(EventTooLong, match=f"than {MOST} bytes"):
        decoded(pieces)


@pytest.mark.parametrize("more", [0, 1])
def test_sse_decoder_event_id_has_a_limit_of_its_own(more: int) -> None:
    """It is kept for as long as the stream, and returned to the server in a header."""
    decoder = SseDecoder(limit=1_000_000)
    decoder.feed(b"id: %b\ndata: x\n\n" % (b"7" * (8192 + more)))
    if more:
        with pytest.raises(EventTooLong, match="an event id of the stream has more than 8192 b"):
            decoder.next_event()
    else:
        assert decoder.next_event() == sse_event(b"x", id="7" * 8192)


def test_sse_decoder_returns_events_before_too_long_one() -> None:
    decoder = SseDecoder(limit=MOST)
    decoder.feed(b"id: 1\ndata: a\n\ndata: %bx\n\n" % LONGEST)
    assert decoder.next_event() == sse_event(b"a", id="1")
    with pytest.raises(EventTooLong, match="an event of the stream has more than 40 bytes"):
        decoder.next_event()
    assert decoder.last_id == "1"


@pytest.mark.parametrize(
    ("begun", "rest", "at_once"),
    [
        (b"", b"data: %bx" % LONGEST, True),
        (b"data: %b\n" % LONGEST[1:], b"data: xx", True),
        (b"data: %b\n" % LONGEST[1:], b"data: x", False),
        (b"data: %b\n" % LONGEST, b": a comment", False),
        (b"data: %b\n" % LONGEST, b"id: 12345678", False),
        (b"", b"data:%b" % LONGEST, False),
    ],
)
def test_sse_decoder_rejects_unfinished_long_line(begun: bytes, rest: bytes, at_once: bool) -> None:
    decoder = SseDecoder(limit=MOST)
    decoder.feed(begun)
    assert decoder.next_event() is None
    decoder.feed(rest)
    if at_once:
        with pytest.raises(EventTooLong):
            decoder.next_event()
    else:
        assert decoder.next_event() is None


def test_sse_decoder_short_lines_use_one_buffer() -> None:
    decoder = SseDecoder(limit=1_000_000)
    for _ in range(1_000):
        decoder.feed(b"data: ab\n" * 100)
        assert decoder.next_event() is None
    assert len(decoder) == 300_000 - 1
    decoder.feed(b"\n")
    event = decoder.next_event()
    assert event is not None
    assert event.data == b"\n".join([b"ab"] * 100_000)
    assert len(decoder) == 0


# -- Encoding ------------------------------------------------------------------------------------

WRITTEN: list[Any] = [
    ({"data": b"{}"}, b"data: {}\n\n"),
    ({"data": b""}, b"data: \n\n"),
    ({"data": b"", "id": b"1-0"}, b"id: 1-0\ndata: \n\n"),
    ({"data": b"", "id": b"1-0", "retry": 500}, b"id: 1-0\nretry: 500\ndata: \n\n"),
    ({"data": b"/m?s=1", "event": b"endpoint"}, b"event: endpoint\ndata: /m?s=1\n\n"),
    ({"data": b"a\nb\rc\r\nd"}, b"data: a\ndata: b\ndata: c\ndata: d\n\n"),
    ({"data": b"a\n\nid: 9"}, b"data: a\ndata: \ndata: id: 9\n\n"),
    ({"data": b"", "id": b""}, b"id: \ndata: \n\n"),
    ({"data": b"x", "retry": 0}, b"retry: 0\ndata: x\n\n"),
]


@pytest.mark.parametrize(("event", "written"), WRITTEN)
def test_encode_event_writes_fields(event: dict[str, Any], written: bytes) -> None:
    assert encode_event(**event) == written


@pytest.mark.parametrize(
    "wrong", [b"1\n", b"1\rdata: x", b"a\0b", b"\r\n\r\ndata: x", b"\x1b[2J", b"\x7f", b"\x01"]
)
def test_encode_event_control_character_in_field_raises(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="the id of an event has no control characters"):
        encode_event(b"{}", id=wrong)
    with pytest.raises(ValueError, match="the type of an event has no control characters"):
        encode_event(b"{}", event=wrong)


def test_encode_event_negative_retry_raises() -> None:
    with pytest.raises(ValueError, match="retry is a number of milliseconds, not -1"):
        encode_event(b"{}", retry=-1)


_CONTROLS = "".join(map(chr, (*range(9), *range(10, 32), 127)))
_WORDS = st.text(st.characters(exclude_characters=_CONTROLS, exclude_categories=["Cs"]), max_size=8)


@pytest.mark.parametrize(
    ("id", "value"), [("1", b"1"), (" a\tb \t", b"a\tb"), ("é", "é".encode()), (" ", b"")]
)
def test_last_event_id_is_a_header_value(id: str, value: bytes) -> None:
    assert last_event_id(id) == value


@fewer_examples(2)
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=20),
            st.none() | _WORDS,
            st.none() | _WORDS,
            st.none() | st.integers(0, 10**9),
        ),
        max_size=3,
    )
)
@example([(b"a\r", "", "", 0), (b"\n", " ", ":", None)])
def test_encode_event_round_trips(
    events: list[tuple[bytes, str | None, str | None, int | None]],
) -> None:
    """The decoder gives back data, id, type and retry, with each newline as LF."""
    stream, expected, last = b"", [], ""
    for data, id, event, retry in events:
        stream += encode_event(
            data,
            id=None if id is None else id.encode(),
            event=None if event is None else event.encode(),
            retry=retry,
        )
        stream += COMMENT
        last = last if id is None else id
        joined = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        expected.append(sse_event(joined, event or "message", last, retry))
    assert decoded([stream], most=1000)[:2] == (expected, last)


def test_sse_decoder_repr_shows_buffered_bytes() -> None:
    decoder = SseDecoder("3", limit=MOST)
    assert repr(decoder) == "<SseDecoder 0 bytes, last id '3'>"
    decoder.feed(b"data: a\ndat")
    assert decoder.next_event() is None
    assert repr(decoder) == "<SseDecoder 4 bytes, last id '3'>"
