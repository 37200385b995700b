# Invariant: however an event stream is split, its events, last id and retry are the same as from
# reading the whole line by line. Input over the limit is an error, in memory bounded by the limit
# and in linear time. An encoded event decodes to the same event, for any data.
"""Server-sent events by `mcp_core.http`. Only `EventTooLong` may be raised, for input over the
limit.

The oracle reads the whole stream byte by byte, as WHATWG HTML, 9.2 describes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.targets import Target
from fuzz.timing import run_within
from mcp_core.http.wire._sse import EventTooLong, SseDecoder, encode_event
from mcp_trio.oracle.strategies._mutations import damage, split
from mcp_trio.oracle.strategies._values import weighted

# limit; chunks; how many times they are repeated; events to encode: data, id, type, retry
Case: TypeAlias = tuple[
    int, list[bytes], int, list[tuple[bytes, bytes | None, bytes | None, int | None]]
]

# For the objects themselves.
SLACK: Final = 3_000
# A line may exceed its data by the field name, for which the decoder allows so many bytes.
MAX_FIELD_NAME: Final = 16
# Seconds.
PER_CHUNK: Final = 100e-6
PER_BYTE: Final = 1e-6
START: Final = 0.05
# Stands for EventTooLong, in place of the last event.
TOO_LONG: Final = "too long"


def check(case: Case) -> Iterable[str]:
    limit, chunks, repeats, written = case
    data = b"".join(chunks) * repeats
    expected = _expected(data, limit) if len(data) <= 100_000 else _outcome([data], limit)
    assert _outcome([data], limit) == expected, "the whole input gives other events"
    allowed = START + PER_CHUNK * len(chunks) * repeats + PER_BYTE * len(data)
    found = run_within(allowed, lambda: _outcome(chunks * repeats, limit))
    assert found == expected, "the split changes the events"
    if len(data) <= 64:
        assert _outcome([data[i : i + 1] for i in range(len(data))], limit) == expected, (
            "byte by byte"
        )
    events, last_id, retry = expected
    yield (
        f"{min(len(events), 3)} events, {'an id' if last_id else 'no id'},"
        f" {'retry' if retry else 'no retry'}"
    )
    yield "too long" if TOO_LONG in events else "accepted"
    if written:
        yield from _check_encoded(written)


def _check_encoded(
    events: list[tuple[bytes, bytes | None, bytes | None, int | None]],
) -> Iterable[str]:
    stream, expected, last = b"", [], b""
    for data, id, type, retry in events:
        wrong = bool(set((id or b"") + (type or b"")) & set(b"\r\n\0"))
        try:
            stream += encode_event(data, id=id, event=type, retry=retry)
        except ValueError:
            assert wrong or (retry is not None and retry < 0), "a valid event was rejected"
            yield "rejected"
            continue
        assert not wrong, "an ambiguous event was encoded"
        last = last if id is None or not _is_utf8(id) else id
        joined = b"\n".join(_lines(data + b"."))[:-1]
        expected.append((_text(type) or "message", joined, _text(last), retry))
    found, last_id, _ = _outcome([stream], sum(len(event[0]) for event in events) + 1_000)
    assert found == expected, f"{stream!r} was encoded, and is decoded as {found}"
    assert last_id == _text(last)
    yield f"{len(expected)} read back"


def _is_utf8(value: bytes) -> bool:
    return value.decode("utf-8", "ignore").encode() == value


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


# -- The oracle ------------------------------------------------------------------------------------


def _lines(data: bytes) -> list[bytes]:
    """Split at CR, LF and CRLF. A last line without an end is included."""
    lines, line, previous = [], b"", b""
    for byte in (data[i : i + 1] for i in range(len(data))):
        if byte == b"\n" and previous == b"\r":
            pass
        elif byte in (b"\r", b"\n"):
            lines.append(line)
            line = b""
        else:
            line += byte
        previous = byte
    return [*lines, line] if line else lines


def _expected(stream: bytes, limit: int) -> Any:
    lines = _lines(stream)
    rest = b"" if not stream or stream[-1:] in b"\r\n" else lines.pop()
    events: list[Any] = []
    last_id = id = type = b""
    retry = event_retry = None
    data: bytes | None = None
    for number, line in enumerate([*lines, rest]):
        # An unfinished line may have one byte more: it may be a CR that does not count.
        if len(line) > limit + MAX_FIELD_NAME + (number == len(lines)):
            return [*events, TOO_LONG], _text(last_id), retry
        if number == len(lines):
            # Data over the limit are rejected before the end of their line.
            if line.startswith(b"data:") and len(data or b"") + len(line) - len(b"data: ") > limit:
                return [*events, TOO_LONG], _text(last_id), retry
            break
        if number == 0 and line[:3] == b"\xef\xbb\xbf":
            line = line[3:]
        if not line:
            last_id = id
            if data is not None:
                events.append((_text(type) or "message", data, _text(id), event_retry))
            data, type, event_retry = None, b"", None
            continue
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if name == b"data":
            data = value if data is None else data + b"\n" + value
            if len(data) > limit:
                return [*events, TOO_LONG], _text(last_id), retry
        elif name == b"event":
            type = value
        elif name == b"id" and 0 not in value and _is_utf8(value):
            id = value
        elif name == b"retry" and value and not set(value) - set(b"0123456789"):
            retry = event_retry = int(value.lstrip(b"0")[:15] or b"0")
    return events, _text(last_id), retry


# -- The decoder -----------------------------------------------------------------------------------


def _outcome(chunks: list[bytes], limit: int) -> Any:
    decoder = SseDecoder(limit=limit)
    events: list[Any] = []
    try:
        for chunk in chunks:
            decoder.feed(chunk)
            while (event := decoder.next_event()) is not None:
                events.append((event.type, event.data, event.id, event.retry))
            assert _memory(decoder) <= 6 * (limit + MAX_FIELD_NAME) + len(chunk) + SLACK, (
                f"{decoder!r} keeps what it has read"
            )
    except EventTooLong:
        events.append(TOO_LONG)
    else:
        assert decoder.next_event() is None, "there was another event"
    return events, decoder.last_id, decoder.retry


def _memory(decoder: SseDecoder) -> int:
    """Return the memory that a decoder holds, in bytes."""
    parts = [getattr(decoder, name) for name in SseDecoder.__slots__]
    return sum(map(sys.getsizeof, parts)) + len(decoder)


# -- Cases -----------------------------------------------------------------------------------------

_ENDS: Final = st.sampled_from(
    (b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r")
)
_FIELDS: Final = (
    *(
        b"data: {}",
        b"data: ",
        b"data:",
        b"data",
        b"data: a",
        b"data:  b",
        b"data: \xef\xbb\xbf",
        b"data: \xff\0",
    ),
    *(
        b"id: 1",
        b"id: 2-7",
        b"id",
        b"id: a\0",
        b"id: \xc3\xa9",
        b"id: \xff",
        b"event: x",
        b"event",
        b"event: message",
    ),
    *(
        b"retry: 10",
        b"retry: 007",
        b"retry: -1",
        b"retry: 1e3",
        b"retry",
        b"retry: " + b"9" * 20,
        b"retry: \xd9\xa3",
    ),
    *(
        b":",
        b": comment",
        b"colour: red",
        b"DATA: x",
        b" data: x",
        b"",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbfdata: a",
        b"\0",
    ),
)


@st.composite
def _line(draw: DrawFn, limit: int) -> bytes:
    if draw(st.integers(0, 4)):
        line = draw(st.sampled_from(_FIELDS))
    else:
        # About as long as the limit: the data, or the line.
        line = draw(st.sampled_from((b"data: ", b":", b"id:"))) + b"x" * (
            limit + draw(st.integers(-2, MAX_FIELD_NAME + 2))
        )
    return line + draw(_ENDS)


_STREAMS: Final = {limit: st.lists(_line(limit), max_size=8).map(b"".join) for limit in range(24)}
_FIELD: Final = st.none() | st.sampled_from(
    (
        b"",
        b"1",
        b" 1",
        b"1-2",
        b"endpoint",
        b"a\nb",
        b"a\rdata: x",
        b"\0",
        b"\xc3\xa9",
        b"\xff",
        b":",
        b"a: b",
    )
)
_DATA: Final = st.one_of(
    st.sampled_from(
        (
            b"",
            b"{}",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b"a\n",
            b"\na",
            b"a\r\n\r\nid: 1",
            b"data: x",
            b" x",
            b":\n",
        )
    ),
    st.binary(max_size=8),
)
_EVENTS: Final = st.lists(
    st.tuples(_DATA, _FIELD, _FIELD, st.none() | st.integers(-1, 5_000)), max_size=3
)


@st.composite
def _case(draw: DrawFn) -> Case:
    limit = draw(st.integers(0, 23))
    return limit, draw(split(_STREAMS[limit])), draw(st.integers(1, 2)), draw(_EVENTS)


@st.composite
def _large(draw: DrawFn) -> Case:
    limit = draw(st.sampled_from((0, 10, 1_000, 65_536, 100_000)))
    chunk = draw(
        st.sampled_from(
            (
                b"x",
                b"data: ab\n",
                b"data\n",
                b"\r",
                b"\n",
                b":\n",
                b"id: 1\r\n",
                b"data: a\n\n",
                b"data: " + b"x" * 70_000,
            )
        )
    )
    repeats = draw(st.sampled_from((10, 1_000, 100_000 // len(chunk) + 1)))
    return limit, [chunk], min(repeats, 200_000 // len(chunk) + 1), []


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    made = weighted((999, _case()), (1, _large()))
    small = [seed for seed in seeds if seed[2] <= 2]
    if not small:
        return made

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        limit, chunks, repeats, written = draw(st.sampled_from(small))
        again = draw(split(st.just(damage(draw, b"".join(chunks)))))
        return limit, again, repeats, written

    return weighted((3, made), (1, recorded()))


TARGET: Final = Target("sse", cases, check)
