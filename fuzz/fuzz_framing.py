# Invariant: however bytes are split, the lines are the same, and they are what splitting the whole at newlines gives; a
# line over the limit is told once; what is held, and the time it takes, grow no faster than what came in.
"""Newline framing by `mcp_core._framing`. Nothing may be raised, whatever comes.

The second opinion is `bytes.split` of the whole input.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcp_core._framing import OVERLONG, LineBuffer

from .mutations import damage, split
from .targets import Target
from .timing import run_within
from .values import weighted

# limit; chunks; how many times they come one after the other; how many lines are taken after each chunk, 0 for all
Case: TypeAlias = tuple[int, list[bytes], int, int]

# For the objects themselves; a growing array takes a little more than it needs.
SLACK: Final = 2_000
# Seconds.
PER_CHUNK: Final = 50e-6
PER_BYTE: Final = 100e-9
START: Final = 0.05


def check(case: Case) -> Iterable[str]:
    limit, chunks, times, taken = case
    data = b"".join(chunks) * times
    wanted = _expected(data, limit)
    assert _lines(limit, [data]) == wanted, "the whole is read in another way"
    allowed = START + PER_CHUNK * len(chunks) * times + PER_BYTE * len(data)
    found = run_within(allowed, lambda: _lines(limit, chunks * times, taken))
    assert found == wanted, "it matters how the bytes are split, or when lines are taken"
    if len(data) <= 64:
        assert _lines(limit, [data[i : i + 1] for i in range(len(data))]) == wanted, "byte by byte"
    lines, in_line = wanted
    yield f"{min(len(lines), 3)} lines, {'in a line' if in_line else 'at an end'}"
    yield f"{min(lines.count(OVERLONG), 3)} overlong"
    returns = any(b"\r" in line for line in lines if line is not OVERLONG)
    yield f"returns {returns}"
    yield f"{len(str(len(data)))} digits of bytes"


def _expected(data: bytes, limit: int) -> tuple[list[Any], bool]:
    """The lines, and whether the input stops in the middle of one."""
    *whole, rest = data.split(b"\n")
    stripped = [line.removesuffix(b"\r") for line in whole]
    lines: list[Any] = [OVERLONG if len(line) > limit else line for line in stripped]
    # The last byte may be a return that does not count; another one makes the line overlong, however it goes on.
    if len(rest) > limit + 1:
        lines.append(OVERLONG)
    return lines, bool(rest)


def _lines(limit: int, chunks: list[bytes], taken: int = 0) -> tuple[list[Any], bool]:
    buffer = LineBuffer(limit)
    lines: list[Any] = []
    for chunk in chunks:
        buffer.feed(chunk)
        lines += _taken(buffer, taken)
        if not taken:
            assert _held(buffer) <= 2 * limit + len(chunk) + SLACK, f"{buffer!r} keeps what it has read"
    lines += _taken(buffer, 0)
    assert buffer.next_line() is None, "there was another line"
    return lines, buffer.in_line


def _taken(buffer: LineBuffer, most: int) -> list[Any]:
    """The next lines, all of them for 0."""
    lines: list[Any] = []
    while (not most or len(lines) < most) and (line := buffer.next_line()) is not None:
        lines.append(line)
    return lines


def _held(buffer: LineBuffer) -> int:
    """Bytes of memory that it holds on to, whatever they are for."""
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
    chunk = draw(st.sampled_from((b"x", b"x" * 1_000, b"x\n", b"\n", b"\r\n", b"x" * 70_000 + b"\n")))
    times = draw(st.sampled_from((10, 1_000, 100_000 // len(chunk) + 1)))
    return limit, [chunk], min(times, 300_000 // len(chunk)), draw(st.integers(0, 1))


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    made = weighted((999, _case()), (1, _large()))
    small = [seed for seed in seeds if seed[2] <= 2]
    if not small:
        return made

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        limit, chunks, times, taken = draw(st.sampled_from(small))
        again = draw(split(st.just(damage(draw, b"".join(chunks)))))
        return limit, again, times, draw(st.sampled_from((taken, 0, 1)))

    return weighted((3, made), (1, recorded()))


TARGET: Final = Target("framing", cases, check)
