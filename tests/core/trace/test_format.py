"""The format of traces: what is written is read again, and bad files are reported by the line."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import (
    MAX_TRACE_LINE,
    DamagedLine,
    HttpHead,
    InvalidTrace,
    SseFields,
    TraceHeader,
    TraceLine,
    TraceReader,
    TruncatedMessage,
    WebSocketClose,
    _format,
    encode_header,
    encode_line,
    read_header,
    read_line,
    read_trace,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = TraceHeader(
    format_version=1,
    at="2026-11-22T14:26:18.900000Z",
    by="x 1",
    transport="stdio",
    target="node s.js",
)
PING = TraceLine(t=0.25, sender="client", raw='{"jsonrpc":"2.0","id":1,"method":"ping"}')
LINES = (
    PING,
    TraceLine(t=0.3, conversation=2, sender="server", data=b"\xff"),
    TraceLine(
        t=0.4,
        exchange=1,
        sender="client",
        raw="{}",
        http=HttpHead(version="1.1", method="POST", target="/mcp", headers=(("a", "b"),)),
    ),
    TraceLine(t=0.5, exchange=1, sender="server", http=HttpHead(version="1.1", status=200)),
    TraceLine(t=0.6, exchange=1, sender="server", sse=SseFields(id="", retry=500), raw="é\n"),
    TraceLine(t=0.7, exchange=1, sender="server", end="complete"),
    TraceLine(t=0.8, sender="server", websocket=WebSocketClose(code=1000, reason="done")),
    TraceLine(t=0.9, kind="exit", status=-11),
    TraceLine(t=1.0, kind="stderr", text="boom"),
    TraceLine(t=1.1, kind="lost", count=3),
    TraceLine(t=1.2, sender="server", raw="{", truncated=TruncatedMessage(size=9, sha256="00")),
    TraceLine(t=1.3, sender="client", raw='{"a":1}', redacted=("/a",)),
)
TRACE = encode_header(HEADER) + b"".join(map(encode_line, LINES))


def read_all(*chunks: bytes) -> list[tuple[int, TraceLine | DamagedLine]]:
    return list(read_trace(chunks)[1])


def test_trace_written_is_read_again() -> None:
    header, lines = read_trace([TRACE])
    assert header == HEADER
    assert list(lines) == list(enumerate(LINES, start=2))


def test_line_has_only_members_that_say_something() -> None:
    assert json.loads(encode_line(PING)) == {"t": 0.25, "from": "client", "raw": PING.raw}
    assert encode_line(PING).count(b"\n") == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [(PING, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), (LINES[1], b"\xff"), (LINES[7], None)],
)
def test_message_of_a_line_is_bytes(line: TraceLine, message: bytes | None) -> None:
    assert line.message == message


def test_members_and_kinds_that_are_unknown_are_ignored() -> None:
    header = read_header(b'{"mcp-trace":1,"new":{"a":[1]}}\n')
    assert header == TraceHeader(format_version=1)
    assert read_line(b'{"t":1,"kind":"weather","wind":3}') == TraceLine(t=1, kind="weather")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"GET / HTTP/1.1\n", "is not a JSON object"),
        (b"[1]\n", "is not a JSON object"),
        (b"\xff\xfe\n", "is not a JSON object"),
        (b'{"log":{"version":"1.2"}}\n', 'has no member "mcp-trace"'),
        (b'{"mcp-trace":"one"}\n', "header of the trace is invalid"),
        (b'{"mcp-trace":1,"observer":"moon"}\n', "header of the trace is invalid"),
        (b'{"mcp-trace":2,"by":"mcp-trio 9"}\n', r"version 2 .* \(mcp-trio 9\)"),
        (b'{"mcp-trace":1', "is not a JSON object"),
        (b"x" * 100, "is not a JSON object"),
    ],
)
def test_file_that_is_no_trace_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidTrace, match=problem):
        read_trace([data])


@pytest.mark.parametrize("value", ["\x1b]0;x\x07", "\u202e", "x" * 100_000])
def test_value_of_the_file_in_an_error_is_escaped_and_cut(value: str) -> None:
    for header in ({"observer": value}, {"finding": {"row": "x", "side": value}}):
        with pytest.raises(InvalidTrace) as failure:
            read_header(json.dumps({"mcp-trace": 1} | header, ensure_ascii=False).encode())
        assert str(failure.value).isprintable()
        assert len(str(failure.value)) < 400
    line = json.dumps({"t": 1, "from": value}, ensure_ascii=False).encode()
    with pytest.raises(InvalidTrace) as failure:
        read_line(line)
    _, lines = read_trace([b'{"mcp-trace":1}\n', line + b"\n"])
    damaged = next(lines)[1]
    assert isinstance(damaged, DamagedLine)
    assert damaged.reason == str(failure.value)
    assert damaged.reason.isprintable()
    assert len(damaged.reason) < 400


def test_first_line_without_end_is_refused_early() -> None:
    reader = TraceReader(max_line=10)
    reader.feed(b"x" * 12)
    with pytest.raises(InvalidTrace, match="is not a JSON object"):
        reader.next_line()


def test_byte_order_mark_and_crlf_are_accepted() -> None:
    header, lines = read_trace([b"\xef\xbb\xbf" + TRACE.replace(b"\n", b"\r\n")])
    assert header == HEADER
    assert [line for _, line in lines] == list(LINES)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"garbage", "malformed"),
        (b"[]", "Expected `object`"),
        (b"{}", "`t`"),
        (b'{"t":"soon"}', "`float`"),
        (b'{"t":1,"from":"moon"}', "moon"),
        (b'{"t":1,"raw":"\\ud800"}', ""),
        (b'{"t":1,"b64":"%"}', ""),
        (b'{"t":1,"raw":"\xff"}', ""),
        (b'{"mcp-trace":1}', "`t`"),
        (b"[" * 100_000, ""),
    ],
)
def test_line_that_is_damaged_is_reported_with_its_number(line: bytes, reason: str) -> None:
    found = read_all(encode_header(HEADER) + b"\n" + line + b"\n" + encode_line(PING))
    assert [number for number, _ in found] == [3, 4]
    damaged = found[0][1]
    assert isinstance(damaged, DamagedLine)
    assert reason in damaged.reason
    assert damaged.beginning.startswith(repr(line[:5])[:-1])
    assert found[1][1] == PING
    with pytest.raises(InvalidTrace):
        read_line(line)


def test_trace_that_is_cut_says_so() -> None:
    found = read_all(encode_header(HEADER) + encode_line(PING) + encode_line(PING)[:-5])
    assert found[0] == (2, PING)
    damaged = found[1][1]
    assert isinstance(damaged, DamagedLine)
    assert damaged.reason == "the trace ends in this line"


def test_last_line_without_line_feed_is_read() -> None:
    assert read_all(encode_header(HEADER) + encode_line(PING)[:-1]) == [(2, PING)]
    assert read_all(encode_header(HEADER)[:-1]) == []


def test_line_over_the_limit_is_skipped() -> None:
    long = encode_line(TraceLine(t=1, sender="client", raw="x" * MAX_TRACE_LINE))
    found = read_all(encode_header(HEADER), long, encode_line(PING))
    damaged = found[0][1]
    assert isinstance(damaged, DamagedLine)
    assert damaged.reason == "it is too long"
    assert found[1] == (3, PING)
    # Its end is missing: it is reported once.
    assert len(read_all(encode_header(HEADER), long[:-1])) == 1


@given(data=st.data())
def test_trace_in_any_chunks_is_read_the_same(data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(TRACE))).map(sorted))
    chunks = [TRACE[i:j] for i, j in itertools.pairwise([0, *cuts, len(TRACE)])]
    header, lines = read_trace(chunks)
    assert header == HEADER
    assert list(lines) == list(enumerate(LINES, start=2))


@given(st.binary())
def test_any_bytes_are_lines_or_an_error(junk: bytes) -> None:
    found = read_all(encode_header(HEADER) + junk)
    assert all(isinstance(line, TraceLine | DamagedLine) for _, line in found)
    try:
        read_trace([junk])
    except InvalidTrace:
        pass


@pytest.mark.perf
def test_trace_of_any_size_takes_constant_memory() -> None:
    """30 MB, of which one line has most: memory does not grow with either."""
    block = encode_line(PING) * 1000

    def chunks() -> Iterator[bytes]:
        yield encode_header(HEADER)
        for _ in range(40):
            yield block
        for _ in range(400):
            yield b"x" * 65_536
        yield b"\n"

    tracemalloc.start()
    try:
        count = sum(1 for _ in read_trace(chunks())[1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 40_001
    assert peak < 2.5 * MAX_TRACE_LINE  # the beginning of the long line, and its copy


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_reader_has_number_and_bytes_of_each_line(size: int) -> None:
    """A line that is too long has its beginning; empty lines have numbers, and are not returned."""
    ping = encode_line(PING).rstrip()
    long = b'{"t":1,"from":"client","raw":"' + b"x" * 200
    data = b"\n".join([encode_header(HEADER).rstrip(), ping, b"", long, b"?", b"", ping])
    reader = TraceReader(max_line=180)
    assert (reader.header, reader.header_data, reader.line_data) == (None, b"", b"")
    assert reader.line_number == 0
    found = []
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
        while (line := reader.next_line()) is not None:
            reason = line.reason if isinstance(line, DamagedLine) else None
            found.append((reader.line_number, reason, reader.line_data))
    assert [number for number, _, _ in found] == [2, 4, 5]  # the last line may go on
    reader.feed(b"")
    while (line := reader.next_line()) is not None:
        found.append((reader.line_number, None, reader.line_data))
    assert reader.header_data == encode_header(HEADER).rstrip()
    beginning = found[1][2]
    assert long.startswith(beginning)
    assert beginning
    assert [(number, data) for number, _, data in found] == [
        (2, ping),
        (4, beginning),
        (5, b"?"),
        (7, ping),
    ]
    assert found[1][1] == "it is too long"


def test_header_that_says_nothing_more_has_the_defaults() -> None:
    header = read_header(b'{"mcp-trace":1}')
    assert (header.at, header.by, header.transport, header.target) == ("", "", "", "")


def test_header_error_that_is_not_of_the_file_is_raised_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(data: bytes) -> None:
        raise LookupError

    for name in "_has_version", "_decode_header":
        with monkeypatch.context() as patched:
            patched.setattr(_format, name, fail)
            with pytest.raises(LookupError):
                read_header(encode_header(HEADER))
