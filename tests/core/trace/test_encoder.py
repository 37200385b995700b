"""The bytes of a trace file, up to its limit."""

from __future__ import annotations

import pytest

from mcp_core.trace import (
    Redactor,
    TraceEncoder,
    TraceHeader,
    TraceLine,
    encode_line,
    read_trace,
)

HEADER = TraceHeader(format_version=1)
LINE = TraceLine(t=0, sender="client", raw="x" * 1000)


def test_trace_without_losses_has_no_line_for_them() -> None:
    encoder = TraceEncoder(HEADER, None, 10_000)
    data = encoder.begin() + encoder.encode([LINE, LINE]) + encoder.end(1)
    header, lines = read_trace([data])
    assert header == HEADER
    assert [line for _, line in lines] == [LINE, LINE]


def test_secrets_are_redacted_unless_told_otherwise() -> None:
    line = TraceLine(t=0, kind="stderr", text="Bearer abcdefgh")
    assert b"abcdefgh" in TraceEncoder(HEADER, None, 10_000).encode([line])
    assert b"abcdefgh" not in TraceEncoder(HEADER, Redactor(b""), 10_000).encode([line])


def test_file_over_the_limit_ends_with_the_number_of_lost_lines() -> None:
    encoder = TraceEncoder(HEADER, None, 4_000)
    data = encoder.begin() + encoder.encode([LINE] * 4)
    assert encoder.is_full
    data += encoder.encode([TraceLine(t=2)])  # it would fit, but it would hide the hole
    data += encoder.encode([TraceLine(t=3, kind="lost", count=7)])
    encoder.add_lost(3)
    data += encoder.end(5)
    assert len(data) <= 4_000
    *lines, last = [line for _, line in read_trace([data])[1]]
    assert lines == [LINE, LINE]
    assert last == TraceLine(t=5, kind="lost", count=13)


def test_lines_are_reported_without_secrets_and_above_the_limit() -> None:
    seen: list[TraceLine] = []
    encoder = TraceEncoder(HEADER, Redactor(b""), 4_000, seen.append)
    secret = TraceLine(t=0, kind="stderr", text="Bearer abcdefgh")
    encoder.encode([secret, *[LINE] * 4, LINE])
    assert len(seen) == 6
    assert "abcdefgh" not in (seen[0].text or "")
    assert b'"count":3' in encoder.end(1)


@pytest.mark.parametrize("limit", range(1_000, 5_000, 97))
def test_lines_that_are_encoded_together_are_the_same(limit: int) -> None:
    """The limit ends the trace at the same line, whether lines come in one batch or alone."""
    lines = [TraceLine(t=number, raw="é" * 50 * number) for number in range(8)]
    together = TraceEncoder(HEADER, None, limit)
    alone = TraceEncoder(HEADER, None, limit)
    assert together.begin() == alone.begin()
    assert together.encode(lines) == b"".join(alone.encode([line]) for line in lines)
    assert together.is_full == alone.is_full
    assert together.end(9) == alone.end(9)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (TraceLine(t=2), 1),
        (TraceLine(t=2, kind="lost"), 1),
        (TraceLine(t=2, kind="lost", count=7), 7),
        (TraceLine(t=2, kind="note", count=7), 1),
    ],
)
def test_dropped_line_counts_as_the_lines_that_it_stands_for(line: TraceLine, count: int) -> None:
    encoder = TraceEncoder(HEADER, None, 100)
    encoder.encode([LINE])
    encoder.encode([line])
    assert encoder.end(5) == encode_line(TraceLine(t=5, kind="lost", count=1 + count))
