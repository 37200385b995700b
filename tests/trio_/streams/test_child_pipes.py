"""A child's pipes where the system has no descriptor to wait for, in memory and on a pipe."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing
from trio.abc import ReceiveStream

from mcp_trio import memory_pair
from mcp_trio.streams._child_pipes import ThreadStderrForwarder, UnpolledStdoutStream

MockClock = trio.testing.MockClock


class PlayedPipe(ReceiveStream):
    """A child's pipe, whose other end is `sink`."""

    def __init__(self) -> None:
        self.sink, self._source = memory_pair()
        self.is_closed = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._source.receive_some(max_bytes)

    def close(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.close()


class PlayedStdout:
    """The stream on a played pipe, and how often its end was waited for."""

    def __init__(self) -> None:
        self.pipe = PlayedPipe()
        pipe: Any = self.pipe
        self.stream = UnpolledStdoutStream(pipe, self._wait_for_end)
        self.ends = 0
        self.received: list[bytes] = []

    async def _wait_for_end(self) -> None:
        await trio.lowlevel.checkpoint()
        self.ends += 1

    async def read(self) -> None:
        self.received.append(await self.stream.receive_some())


async def test_unpolled_stdout_waits_for_the_explanation_of_its_end() -> None:
    played = PlayedStdout()
    await played.pipe.sink.send_all(b"hello")
    assert await played.stream.receive_some(2) == b"he"
    assert await played.stream.receive_some() == b"llo"
    assert played.ends == 0
    await played.pipe.sink.send_eof()
    assert await played.stream.receive_some() == b""
    assert played.ends == 1


async def test_unpolled_stdout_of_a_child_that_has_exited_ends_when_empty(
    autojump_clock: MockClock,
) -> None:
    """A read that waits, and each later one, takes bytes or a twentieth of a second."""
    played = PlayedStdout()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.read)
        await trio.sleep(1)
        await played.stream.end_when_empty()
    assert played.received == [b""]
    assert trio.current_time() == pytest.approx(1.05)
    assert played.ends == 0
    # Nothing is read any more.
    await played.pipe.sink.send_all(b"late")
    assert await played.stream.receive_some() == b""
    assert trio.current_time() == pytest.approx(1.05)


async def test_unpolled_stdout_of_a_child_that_has_exited_is_read_to_its_end(
    autojump_clock: MockClock,
) -> None:
    played = PlayedStdout()
    await played.pipe.sink.send_all(b"ab")
    await played.stream.end_when_empty()
    assert await played.stream.receive_some(1) == b"a"
    assert await played.stream.receive_some(1) == b"b"
    assert trio.current_time() == 0
    assert await played.stream.receive_some() == b""
    assert trio.current_time() == pytest.approx(0.05)


async def test_unpolled_stdout_discarded_ends_its_reader_and_empties_the_pipe(
    autojump_clock: MockClock,
) -> None:
    """The child could otherwise block in a write, and not exit."""
    played = PlayedStdout()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.read)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(played.stream.discard)
        await trio.testing.wait_all_tasks_blocked()
        await played.pipe.sink.send_all(b"x" * 300_000)
        await played.pipe.sink.send_eof()
    assert played.received == [b""]
    assert await played.stream.receive_some() == b""
    assert played.ends == 0
    assert not played.pipe.is_closed
    played.stream.close_pipe()
    assert played.pipe.is_closed


async def test_unpolled_stdout_closed_by_its_user_leaves_the_pipe_open() -> None:
    """It is still to be discarded. Closing wins over an end."""
    played = PlayedStdout()

    async def read() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await played.stream.receive_some()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        await played.stream.aclose()
    await read()
    assert not played.pipe.is_closed
    played.stream.end()
    await read()


async def test_unpolled_stdout_read_that_is_cancelled_is_no_end() -> None:
    played = PlayedStdout()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(played.read)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    await played.pipe.sink.send_all(b"a")
    assert await played.stream.receive_some() == b"a"


async def test_thread_forwarder_waits_a_second_once_for_stderr_that_takes_nothing(
    mock_clock: MockClock,
) -> None:
    """Until the blocked chunk is written, all others are dropped at once."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"x" * 4096):
            pass
    os.set_blocking(writer, True)
    forwarder = ThreadStderrForwarder(writer)
    written = trio.Event()

    async def write() -> None:
        await forwarder.write(b"kept")
        written.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(0.9)
        await trio.testing.wait_all_tasks_blocked()
        assert not written.is_set()
        mock_clock.jump(0.2)
        await written.wait()
    await forwarder.write(b"dropped")
    received = b""
    while not received.endswith(b"kept"):
        received += os.read(reader, 65_536)
    while forwarder._stream.busy:
        await trio.lowlevel.checkpoint()
    await forwarder.write(b"\x1btaken")
    assert os.read(reader, 100) == b"\x1btaken"
    forwarder.close()
    os.close(reader)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writer)


async def test_thread_forwarder_to_a_stderr_without_reader_goes_on() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    forwarder = ThreadStderrForwarder(writer)
    await forwarder.write(b"x")
    await forwarder.write(b"x")
    forwarder.close()
