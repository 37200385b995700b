"""The memory pair: trio's stream contract, checked by trio's own tests, and backpressure."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from mcp_trio import memory_pair

CAPACITY = 65_536

Pair = tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]


async def new() -> Pair:
    return memory_pair()


async def clogged() -> Pair:
    """A pair that is full in both directions."""
    pair = memory_pair()
    for end in pair:
        await end.send_all(bytes(CAPACITY))
    return pair


async def test_memory_pair_passes_trios_stream_checks() -> None:
    await trio.testing.check_half_closeable_stream(new, clogged)


async def test_memory_pair_ends_are_crossed() -> None:
    left, right = memory_pair()
    await left.send_all(b"to the right")
    await right.send_all(b"to the left")
    assert await left.receive_some() == b"to the left"
    assert await right.receive_some(2) == b"to"
    assert await right.receive_some() == b" the right"


async def test_memory_pair_write_waits_for_space(nursery: trio.Nursery) -> None:
    """Memory pairs replace pipes in tests, so they need a pipe's backpressure."""
    writer, reader = memory_pair()
    await writer.send_all(bytes(CAPACITY))
    written = False

    async def write() -> None:
        nonlocal written
        await writer.send_all(b"last")
        written = True

    nursery.start_soon(write)
    await trio.testing.wait_all_tasks_blocked()
    assert not written
    await reader.receive_some(100)
    await trio.testing.wait_all_tasks_blocked()
    assert written


async def test_memory_pair_cancelled_write_sends_nothing() -> None:
    writer, reader = await clogged()
    with trio.CancelScope() as scope:
        scope.cancel()
        await writer.send_all(b"never")
    assert b"never" not in await reader.receive_some()


@pytest.mark.parametrize("closes", ["writer", "reader"])
async def test_memory_pair_closing_an_end_wakes_a_writer(
    closes: str, nursery: trio.Nursery
) -> None:
    writer, reader = await clogged()
    expected = trio.ClosedResourceError if closes == "writer" else trio.BrokenResourceError

    async def write() -> None:
        with pytest.raises(expected):
            await writer.send_all(b"x")

    nursery.start_soon(write)
    await trio.testing.wait_all_tasks_blocked()
    await (writer if closes == "writer" else reader).aclose()


async def test_memory_pair_data_before_the_end_is_read() -> None:
    writer, reader = memory_pair()
    await writer.send_all(b"last words")
    await writer.send_eof()
    with pytest.raises(trio.ClosedResourceError):
        await writer.send_all(b"more")
    assert await reader.receive_some() == b"last words"
    assert await reader.receive_some() == b""
    await reader.send_all(b"an answer")
    assert await writer.receive_some() == b"an answer"


async def test_memory_pair_large_write_waits_for_its_reader() -> None:
    ours, theirs = await new()
    data = bytes(range(256)) * 1024
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.send_all, data)
        await trio.testing.wait_all_tasks_blocked()
        assert nursery.child_tasks
        got = bytearray(await theirs.receive_some())
        assert len(got) == CAPACITY
        while len(got) < len(data):
            got += await theirs.receive_some()
    assert got == data
