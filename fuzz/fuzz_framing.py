# Invariant: however bytes are split, the lines are the same as from splitting the whole at
# newlines; a line over the limit is reported at the limit and at its end; memory and time grow at
# most linearly with the input.
"""Newline framing by `mcp_core.protocol.jsonrpc`. Nothing may be raised, for any input.

The oracle is `bytes.split` of the whole input.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.targets import Target
from fuzz.timing import run_within
from mcp_core.protocol.jsonrpc._excerpt import EXCERPT_SIZE, Excerpt
from mcp_core.protocol.jsonrpc._framing import LineBuffer
from mcp_trio.oracle.strategies._mutations import damage, split
from mcp_trio.oracle.strategies._values import weighted

# limit; chunks; how many times they are repeated; how many lines are read after each chunk, 0 for
# all
Case: TypeAlias = tuple[int, list[bytes], int, int]

# For the objects themselves; a growing array allocates a little more than it needs.
SLACK: Final = 2_000
# Seconds.
PER_CHUNK: Final = 50e-6
PER_BYTE: Final = 100e-9
START: Final = 0.05


def check(case: Case) -> Iterable[str]:
    limit, chunks, repeats, maximum = case
    data = b"".join(chunks) * repeats
    expected = _expected(data, limit)
    assert _lines(limit, [data]) == expected, "the whole input gives other lines"
    allowed = START + PER_CHUNK * len(chunks) * repeats + PER_BYTE * len(data)
    found = run_within(allowed, lambda: _lines(limit, chunks * repeats, maximum))
    assert found == expected, "the split, or the time of reading, changes the lines"
    if len(data) <= 64:
        assert _lines(limit, [data[i : i + 1] for i in range(len(data))]) == expected, (
            "byte by byte"
        )
    lines, in_line = expected
    yield f"{min(len(lines), 3)} lines, {'in a line' if in_line else 'at an end'}"
    yield f"{min(sum(isinstance(line, Excerpt) for line in lines), 3)} reports of overlong lines"
    returns = any(b"\r" in line for line in lines if not isinstance(line, Excerpt))
    yield f"returns {returns}"
    yield f"{len(str(len(data)))} digits of bytes"


def _expected(data: bytes, limit: int) -> tuple[list[Any], bool]:
    """Return the lines, and whether the input ends inside one."""
    *complete, rest = data.split(b"\n")
    stripped = [line.removesuffix(b"\r") for line in complete]
    lines: list[Any] = []
    for line in stripped:
        lines += _excerpts(line, limit) if len(line) > limit else [line]
    # The last byte may be a CR that does not count. One byte more makes the line too long in any
    # case.
    if len(rest) > limit + 1:
        lines.append(_excerpts(rest, limit)[0])
    return lines, bool(rest)


def _excerpts(line: bytes, limit: int) -> list[Excerpt]:
    """Return the reports of a line over the limit: when it passes the limit, and at its end."""
    size = min(EXCERPT_SIZE, limit + 1)
    beginning, end = line[:size], line[-size:]
    return [
        Excerpt(beginning, too_long=True),
        Excerpt(beginning, end, len(line), too_long=True, is_rest=True),
    ]


def _lines(limit: int, chunks: list[bytes], maximum: int = 0) -> tuple[list[Any], bool]:
    buffer = LineBuffer(limit)
    lines: list[Any] = []
    for chunk in chunks:
        buffer.feed(chunk)
        lines += _next_lines(buffer, maximum)
        if not maximum:
            assert _memory(buffer) <= 2 * limit + len(chunk) + SLACK, (
                f"{buffer!r} keeps what it has read"
            )
    lines += _next_lines(buffer, 0)
    assert buffer.next_line() is None, "there was another line"
    return lines, buffer.has_partial_line


def _next_lines(buffer: LineBuffer, maximum: int) -> list[Any]:
    """Return the next lines, at most `maximum`, or all for 0."""
    lines: list[Any] = []
    while (not maximum or len(lines) < maximum) and (line := buffer.next_line()) is not None:
        lines.append(line)
    return lines


def _memory(buffer: LineBuffer) -> int:
    """Return the memory that a buffer holds, in bytes."""
    parts = [getattr(buffer, name) for name in LineBuffer.__slots__]
    inner = [item for part in parts if isinstance(part, deque) for item in part]
    return sum(map(sys.getsizeof, [*parts, *inner]))


@functools.cache
def _input(limit: int) -> SearchStrategy[list[bytes]]:
    """Lines about as long as the limit, in chunks."""
    sizes = range(max(0, limit - 2), limit + 4)
    near = [b"x" * size + end for size in sizes for end in (b"\r\n", b"\n")]
    odd = (b"\n", b"\r\n", b"\r", b"", b"{}\n", b"\r\r\n", b"\n\n")
    line = st.one_of(st.sampled_from(near), st.sampled_from(odd), st.binary(max_size=6))
    return split(st.lists(line, max_size=6).map(b"".join))


@st.composite
def _case(draw: DrawFn) -> Case:
    limit = draw(st.integers(0, 12))
    return limit, draw(_input(limit)), draw(st.integers(1, 2)), draw(st.integers(0, 2))


@st.composite
def _large(draw: DrawFn) -> Case:
    limit = draw(st.sampled_from((0, 10, 1_000, 65_536, 100_000)))
    chunk = draw(
        st.sampled_from((b"x", b"x" * 1_000, b"x\n", b"\n", b"\r\n", b"x" * 70_000 + b"\n"))
    )
    repeats = draw(st.sampled_from((10, 1_000, 100_000 // len(chunk) + 1)))
    return limit, [chunk], min(repeats, 300_000 // len(chunk)), draw(st.integers(0, 1))


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    made = weighted((999, _case()), (1, _large()))
    small = [seed for seed in seeds if seed[2] <= 2]
    if not small:
        return made

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        limit, chunks, repeats, maximum = draw(st.sampled_from(small))
        again = draw(split(st.just(damage(draw, b"".join(chunks)))))
        return limit, again, repeats, draw(st.sampled_from((maximum, 0, 1)))

    return weighted((3, made), (1, recorded()))


TARGET: Final = Target("framing", cases, check)
