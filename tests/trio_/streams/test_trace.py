"""The traced stream: it reports the same lines in any chunks, and changes nothing else."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import mcp_trio
from mcp_core import ALL
from mcp_trio import memory_pair
from mcp_trio.streams import _trace
from mcp_trio.streams._trace import TracedStream

if TYPE_CHECKING:
    from collections.abc import Sequence

CROSSED = b'{"a":1}\n{"b":2}\r\n\n{"c":3}\nno mess\xffage'
LINES = [b'{"a":1}', b'{"b":2}', b'{"c":3}', b"no mess\xffage"]


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = [0, *sorted(set(cuts) - {0, len(data)}), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


async def received(chunks: Sequence[bytes]) -> tuple[list[tuple[str, bytes]], bytes]:
    """Return what a trace reports of these chunks, and what the reader gets."""
    ours, theirs = memory_pair()
    traced: list[tuple[str, bytes]] = []
    stream = TracedStream(ours, lambda direction, line: traced.append((direction, line)))
    got = b""
    for chunk in chunks:
        await theirs.send_all(chunk)
        got += await stream.receive_some()
    await theirs.aclose()
    got += await stream.receive_some()
    await stream.aclose()
    return traced, got


@given(st.lists(st.integers(0, len(CROSSED))))
def test_trace_reports_lines_in_any_chunks(cuts: list[int]) -> None:
    traced, got = trio.run(received, pieces(CROSSED, cuts))
    assert traced == [("received", line) for line in LINES]
    assert got == CROSSED


async def test_trace_reports_sent_lines_before_they_are_written() -> None:
    ours, theirs = memory_pair()
    traced: list[tuple[str, bytes]] = []
    stream = TracedStream(ours, lambda direction, line: traced.append((direction, line)))
    await stream.wait_send_all_might_not_block()
    await stream.send_all(b'{"a":1}\n{"b":2}\n')
    assert traced == [("sent", b'{"a":1}'), ("sent", b'{"b":2}')]
    assert await theirs.receive_some() == b'{"a":1}\n{"b":2}\n'
    await stream.aclose()
    assert await theirs.receive_some() == b""


async def test_trace_reports_an_endless_line_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_trace, "_MAX_LINE", 5)
    traced, got = await received([b"123", b"456", b"789\n"])
    assert traced == [("received", b"123456"), ("received", b"789")]
    assert got == b"123456789\n"
    traced, _ = await received([b"12345", b"6\n"])  # up to the limit it is one line
    assert traced == [("received", b"123456")]


async def test_trace_keeps_the_directions_apart() -> None:
    """Both may be in the middle of a line."""
    ours, theirs = memory_pair()
    traced: list[tuple[str, bytes]] = []
    stream = TracedStream(ours, lambda direction, line: traced.append((direction, line)))
    await stream.send_all(b"se")
    await theirs.send_all(b"receiv")
    await stream.receive_some()
    assert traced == []
    await stream.send_all(b"nt\n")
    await theirs.send_all(b"ed\n")
    await stream.receive_some()
    assert traced == [("sent", b"sent"), ("received", b"received")]
    await stream.aclose()


async def test_trace_that_raises_is_not_called_again(caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    def trace(direction: str, line: bytes) -> None:
        nonlocal calls
        calls += 1
        raise ValueError("no")

    async with mcp_trio.connect(mcp_trio.Server("silent"), trace=trace) as client:
        await client.ping()
    assert calls == 1
    assert "failed and is not called again" in caplog.text


@pytest.mark.parametrize("version", ALL)
async def test_trace_of_a_client_has_all_messages(version: str) -> None:
    traced: list[tuple[str, bytes]] = []
    async with mcp_trio.connect(
        mcp_trio.Server("silent"), versions=[version], trace=lambda *crossed: traced.append(crossed)
    ) as client:
        await client.ping()
    assert [direction for direction, _ in traced[:2]] == ["sent", "received"]
    assert {direction for direction, line in traced if b'"id":2' in line} == {"sent", "received"}
    assert all(line.startswith(b"{") for _, line in traced)
