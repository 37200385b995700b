"""Line framing: chunks of any size give the same lines, and lines over the limit use no memory."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.protocol.jsonrpc._excerpt import Excerpt
from mcp_core.protocol.jsonrpc._framing import LineBuffer
from tests.harness.jsonrpc import chunks

LIMIT = 8


def long(line: bytes, *, ended: bool = True) -> list[Excerpt]:
    """Return the reports of a line over the limit: at the limit, and at its newline."""
    beginning = line[: LIMIT + 1]
    reports = [Excerpt(beginning, too_long=True)]
    if ended:
        end = line[-LIMIT - 1 :]
        reports.append(Excerpt(beginning, end, len(line), too_long=True, is_rest=True))
    return reports


# input, its lines, whether it ends inside a line
STREAMS: list[Any] = [
    pytest.param(b"", [], False, id="nothing"),
    pytest.param(b"a\n", [b"a"], False, id="a line"),
    pytest.param(b"a\nb\n", [b"a", b"b"], False, id="two"),
    pytest.param(b"a\nb", [b"a"], True, id="one and a half"),
    pytest.param(b"\n", [b""], False, id="an empty line"),
    pytest.param(b"\n\n\na\n", [b"", b"", b"", b"a"], False, id="empty lines"),
    pytest.param(b"a\r\nb\r\n", [b"a", b"b"], False, id="CRLF"),
    pytest.param(b"a\r\r\n", [b"a\r"], False, id="one CR is dropped"),
    pytest.param(b"\r\n", [b""], False, id="CRLF alone"),
    pytest.param(b"a\rb\n", [b"a\rb"], False, id="a CR inside"),
    pytest.param(b"a\r", [], True, id="a CR is no end"),
    pytest.param(
        "a\u2028b\u0085c\n".encode(), ["a\u2028b\u0085c".encode()], False, id="other line ends"
    ),
    pytest.param(b"\xff\x00\n", [b"\xff\x00"], False, id="any bytes"),
    pytest.param(b"12345678\n", [b"12345678"], False, id="as long as allowed"),
    pytest.param(b"12345678\r\n", [b"12345678"], False, id="as long as allowed, CRLF"),
    pytest.param(b"123456789\n", long(b"123456789"), False, id="one too long"),
    pytest.param(b"12345678\rx\n", long(b"12345678\rx"), False, id="one too long, CR"),
    pytest.param(b"123456789\r\n", long(b"123456789"), False, id="one too long, CRLF"),
    pytest.param(
        b"x" * 100 + b"\na\n", [*long(b"x" * 100), b"a"], False, id="much too long, and one behind"
    ),
    pytest.param(
        b"a\n" + b"x" * 100 + b"\nb\n",
        [b"a", *long(b"x" * 100), b"b"],
        False,
        id="much too long in the middle",
    ),
    pytest.param(
        b"x" * 100 + b"\n" + b"y" * 100 + b"\n",
        [*long(b"x" * 100), *long(b"y" * 100)],
        False,
        id="two too long",
    ),
    pytest.param(b"a" + b"x" * 5000 + b"\n", long(b"a" + b"x" * 5000), False, id="two excerpts"),
    pytest.param(b"123456789", [], True, id="perhaps too long"),
    pytest.param(
        b"1234567890", long(b"1234567890", ended=False), True, id="too long, without an end"
    ),
]


def lines_of(*pieces: bytes, limit: int = LIMIT) -> tuple[list[bytes | Excerpt], bool]:
    """Return the lines, and whether the input ends inside a line."""
    buffer = LineBuffer(limit)
    lines: list[bytes | Excerpt] = []
    for piece in pieces:
        buffer.feed(piece)
        while (line := buffer.next_line()) is not None:
            assert type(line) in (bytes, Excerpt)
            lines.append(line)
    return lines, buffer.has_partial_line


@pytest.mark.requirement("STDIO-1", "STDIO-6", "STDIO-14")
@pytest.mark.parametrize(("data", "lines", "in_line"), STREAMS)
def test_line_buffer_splits_lines(data: bytes, lines: list[bytes | Excerpt], in_line: bool) -> None:
    assert lines_of(data) == (lines, in_line)
    assert lines_of(*(data[i : i + 1] for i in range(len(data)))) == (lines, in_line)


@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"a", b"bc", b"12345678"])).map(b"".join),
    st.lists(st.integers(0, 60)),
)
def test_line_buffer_chunking_does_not_matter(data: bytes, cuts: list[int]) -> None:
    expected: list[bytes | Excerpt] = []
    *whole, rest = data.split(b"\n")
    for line in whole:
        line = line.removesuffix(b"\r")
        expected += [line] if len(line) <= LIMIT else long(line)
    if len(rest) > LIMIT + 1:
        expected += long(rest, ended=False)
    assert lines_of(*chunks(data, cuts)) == (expected, bool(rest))


def test_line_buffer_too_long_reported_once_without_memory() -> None:
    buffer = LineBuffer(LIMIT)
    reported = []
    for _ in range(1000):
        buffer.feed(b"x" * 100)
        reported.append(buffer.next_line())
        assert len(buffer) == 0
        assert buffer.has_partial_line
    assert reported == long(b"x" * 100, ended=False) + [None] * 999
    buffer.feed(b"x\nok\n")
    assert buffer.next_line() == long(b"x" * 100_001)[1]
    assert buffer.next_line() == b"ok"
    assert not buffer.has_partial_line


def test_line_buffer_too_long_reported_before_newline() -> None:
    buffer = LineBuffer(LIMIT)
    buffer.feed(b"x" * (LIMIT + 1))
    assert buffer.next_line() is None  # the last byte may be a CR, which does not count
    buffer.feed(b"x")
    assert [buffer.next_line()] == long(b"x" * 10, ended=False)
    assert buffer.next_line() is None


@pytest.mark.perf
@pytest.mark.parametrize("size", [1, 7, 4096, 10**9])
def test_line_buffer_many_lines_take_linear_time(size: int) -> None:
    """The cost is linear, for one chunk or many, and returned lines are not kept."""
    count = 20_000
    data = b"".join(b"line %06d\n" % i for i in range(count)) + b"the rest"
    buffer = LineBuffer(100)
    started = time.perf_counter()
    for start in range(0, len(data), size):
        buffer.feed(data[start : start + size])
    assert len(buffer) == len(data)
    for i in range(count):
        assert buffer.next_line() == b"line %06d" % i
    assert len(buffer) == len(b"the rest")
    assert buffer.next_line() is None
    assert buffer.has_partial_line
    assert buffer.unfinished == b"the rest"
    buffer.feed(b"\n")
    assert buffer.next_line() == b"the rest"
    assert len(buffer) == 0
    assert time.perf_counter() - started < 5


@pytest.mark.perf
def test_line_buffer_long_line_in_chunks_takes_linear_time() -> None:
    size = 4 * 1024 * 1024
    buffer = LineBuffer(size)
    started = time.perf_counter()
    for _ in range(size // 512):
        buffer.feed(b"x" * 512)
        assert buffer.next_line() is None
    buffer.feed(b"\n")
    line = buffer.next_line()
    assert isinstance(line, bytes)
    assert len(line) == size
    assert time.perf_counter() - started < 2  # repeated searches take half a minute


def test_line_buffer_counts_chunks_that_wait() -> None:
    buffer = LineBuffer(LIMIT)
    counts = []
    for chunk in (b"a", b"b\nc", b"d\n", b"ef"):
        buffer.feed(chunk)
        counts.append(len(buffer))
    while buffer.next_line() is not None:
        counts.append(len(buffer))
    assert counts == [1, 4, 6, 8, 5, 2]
    assert buffer.unfinished == b"ef"


def test_line_buffer_repr_shows_buffered_bytes() -> None:
    buffer = LineBuffer(LIMIT)
    assert repr(buffer) == "<LineBuffer 0 of 8 bytes>"
    buffer.feed(b"abc")
    assert repr(buffer) == "<LineBuffer 3 of 8 bytes>"
    buffer.feed(b"x" * 100)
    buffer.next_line()
    assert repr(buffer) == "<LineBuffer 0 of 8 bytes, skipping>"
