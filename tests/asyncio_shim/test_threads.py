"""Transports over descriptors that block, read and written by threads."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import _threads
from mcp_asyncio_shim._stdio import unread_bytes
from mcp_asyncio_shim._threads import ReadThread, WriteThread, open_thread_streams
from tests.harness.world import virtual_time
from tests.harness.world.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

MUCH = bytes(range(256)) * 1200  # more than a pipe holds


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `main` in virtual time."""
    virtual_time.run(main())


async def until(ready: Callable[[], object]) -> None:
    """Wait until `ready` returns True, while threads run, and the loop is busy."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.0005)  # noqa: ASYNC251  the loop has nothing else to do
        await asyncio.sleep(0)


class Protocol(asyncio.Protocol):
    """Notes what a transport calls. It pauses the reading after the data `pauses_at`."""

    def __init__(self, pauses_at: bytes = b"") -> None:
        self.calls: list[Any] = []
        self.pauses_at = pauses_at

    def connection_made(self, transport: Any) -> None:
        self.calls.append("made")
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.calls.append(data)
        if data == self.pauses_at:
            self.transport.pause_reading()

    def eof_received(self) -> None:
        self.calls.append("end of input")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append(("lost", exc))

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    async def until(self, count: int) -> None:
        """Wait until there were so many calls."""
        await until(lambda: len(self.calls) >= count)


def reading(fd: int, protocol: Protocol) -> ReadThread:
    return ReadThread(fd, protocol, asyncio.get_running_loop())  # type: ignore[arg-type]


def writing(fd: int, protocol: Protocol) -> WriteThread:
    return WriteThread(fd, protocol, asyncio.get_running_loop())  # type: ignore[arg-type]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe. A test gives one end to a transport, whose thread closes it."""
    source, sink = os.pipe()
    yield source, sink
    for fd in source, sink:
        with suppress(OSError):
            os.close(fd)


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def read_all(fd: int) -> bytes:
    return b"".join(iter(lambda: os.read(fd, 65_536), b""))


# -- Reading ---------------------------------------------------------------------------------------


def test_read_thread_passes_data_then_end(pipe: tuple[int, int]) -> None:
    """The protocol sees a pipe's usual order of calls, and the descriptor closes once."""

    async def main() -> None:
        protocol = Protocol()
        transport = reading(pipe[0], protocol)
        for text in (b"one", b"two"):
            os.write(pipe[1], text)
            await until(partial(protocol.calls.__contains__, text))
        assert transport.is_reading()
        assert not transport.is_closing()
        os.close(pipe[1])
        await protocol.until(5)
        assert protocol.calls == ["made", b"one", b"two", "end of input", ("lost", None)]
        assert transport.is_closing()
        assert not transport.is_reading()
        transport.close()
        await until(lambda: not is_open(pipe[0]))
        assert len(protocol.calls) == 5

    run(main)


def test_read_thread_that_fails_loses_the_connection(tmp_path: os.PathLike[str]) -> None:
    async def main() -> None:
        protocol = Protocol()
        fd = os.open(tmp_path, os.O_RDONLY)
        reading(fd, protocol)
        await protocol.until(2)
        [_, (what, error)] = protocol.calls  # and no end of input
        assert what == "lost"
        assert isinstance(error, IsADirectoryError)
        await until(lambda: not is_open(fd))

    run(main)


def test_read_thread_paused_leaves_the_rest_in_the_pipe(pipe: tuple[int, int]) -> None:
    """Backpressure must reach the writer, so the thread takes nothing from the pipe meanwhile."""

    async def main() -> None:
        protocol = Protocol(pauses_at=b"one")
        transport = reading(pipe[0], protocol)
        os.write(pipe[1], b"one")
        await protocol.until(2)
        assert not transport.is_reading()
        for text in (b"two", b"three"):
            os.write(pipe[1], text)
            await asyncio.sleep(0)
        assert unread_bytes(pipe[0]) == 8
        transport.resume_reading()
        assert transport.is_reading()
        await protocol.until(3)
        os.write(pipe[1], b"four")
        os.close(pipe[1])
        await until(lambda: protocol.calls[-1] == ("lost", None))
        assert b"".join(protocol.calls[1:-2]) == b"onetwothreefour"
        assert protocol.calls[2] == b"twothree"
        await until(lambda: not is_open(pipe[0]))

    run(main)


def test_read_thread_reads_one_chunk_ahead_of_the_loop(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One chunk is the bound on memory while the event loop is busy."""
    monkeypatch.setattr(_threads, "READ_SIZE", 4)

    async def main() -> None:
        os.write(pipe[1], b"12345678")
        protocol = Protocol()
        transport = reading(pipe[0], protocol)
        wait_until(lambda: unread_bytes(pipe[0]) == 4)  # the loop does not go on meanwhile
        wait_until(lambda: not transport._may_read.is_set())
        assert unread_bytes(pipe[0]) == 4
        await protocol.until(3)
        assert protocol.calls == ["made", b"1234", b"5678"]
        transport.close()
        os.close(pipe[1])
        await until(lambda: not is_open(pipe[0]))

    run(main)


def test_read_thread_closed_drops_what_arrives(pipe: tuple[int, int]) -> None:
    """The blocked thread owns the descriptor until it wakes; closing it earlier is unsafe."""

    async def main() -> None:
        protocol = Protocol()
        transport = reading(pipe[0], protocol)
        transport.close()
        transport.close()
        assert transport.is_closing()
        assert not transport.is_reading()
        assert protocol.calls == ["made"]  # not from within `close`
        await protocol.until(2)
        assert is_open(pipe[0])  # the thread is still in it
        os.write(pipe[1], b"too late")
        await until(lambda: not is_open(pipe[0]))
        transport._received(b"read before", None)
        assert protocol.calls == ["made", ("lost", None)]

    run(main)


def test_read_thread_paused_ends_when_closed(pipe: tuple[int, int]) -> None:
    async def main() -> None:
        protocol = Protocol(pauses_at=b"one")
        transport = reading(pipe[0], protocol)
        os.write(pipe[1], b"one")
        await protocol.until(2)
        transport.close()
        await until(lambda: not is_open(pipe[0]))

    run(main)


def test_read_thread_outlives_its_loop(pipe: tuple[int, int]) -> None:
    async def main() -> None:
        reading(pipe[0], Protocol())

    # The transport is not closed: a program may end its loop at any time.
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    [thread] = [each for each in threading.enumerate() if each.name == "mcp stdin"]
    assert thread.daemon  # the process ends without it
    os.write(pipe[1], b"too late")
    thread.join(PATIENCE)
    assert not is_open(pipe[0])


# -- Writing ---------------------------------------------------------------------------------------


def test_write_thread_writes_all_and_then_resumes(pipe: tuple[int, int]) -> None:
    """`resume_writing` comes only once all is written, and each long write pauses again."""

    async def main() -> None:
        protocol = Protocol()
        transport = writing(pipe[1], protocol)
        transport.write(b"")
        assert protocol.calls == ["made"]
        transport.write(MUCH)
        transport.write(bytearray(b"end"))
        assert transport.get_write_buffer_size() == len(MUCH) + 3
        assert protocol.calls == ["made", "pause"]
        received = b""
        while len(received) < len(MUCH) + 3:
            received += os.read(pipe[0], 65_536)
            assert "resume" not in protocol.calls
        assert received == MUCH + b"end"
        await protocol.until(3)
        assert transport.get_write_buffer_size() == 0
        transport.write(b"again")
        await protocol.until(5)
        assert protocol.calls == ["made", "pause", "resume", "pause", "resume"]
        assert not transport.is_closing()
        assert not transport.can_write_eof()
        transport.close()
        await until(lambda: not is_open(pipe[1]))
        await protocol.until(6)

    run(main)


def test_write_thread_continues_after_a_partial_write(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe may take fewer bytes than given, and the rest must follow in order."""
    write = os.write

    def write_little(fd: int, data: bytes) -> int:
        return write(fd, data[:10_000] if fd == pipe[1] else data)

    monkeypatch.setattr(os, "write", write_little)

    async def main() -> None:
        transport = writing(pipe[1], Protocol())
        transport.write(MUCH)
        transport.close()
        assert read_all(pipe[0]) == MUCH

    run(main)


def test_write_thread_closed_writes_the_rest(pipe: tuple[int, int]) -> None:
    """`close` returns at once, drops later writes, and reports the loss after the last byte."""

    async def main() -> None:
        protocol = Protocol()
        transport = writing(pipe[1], protocol)
        for data in (MUCH, b"end"):
            transport.write(data)
        transport.close()
        assert transport.is_closing()
        transport.write(b"too late")
        assert await asyncio.to_thread(read_all, pipe[0]) == MUCH + b"end"
        await until(lambda: protocol.calls[-1] == ("lost", None))
        assert protocol.calls.count(("lost", None)) == 1
        assert not is_open(pipe[1])
        assert transport.get_write_buffer_size() == 0

    run(main)


def test_write_thread_aborted_writes_no_further_chunk(pipe: tuple[int, int]) -> None:
    """The write under way can't be taken back; the protocol hears of the loss without waiting."""

    async def main() -> None:
        protocol = Protocol()
        transport = writing(pipe[1], protocol)
        transport.write(MUCH)
        transport.write(b"next")
        # The pipe is full, and the thread waits in its second write.
        await until(lambda: transport.get_write_buffer_size() == len(MUCH) + 4 - 65_536)
        transport.abort()
        assert protocol.calls == ["made", "pause"]
        await protocol.until(3)
        assert protocol.calls == ["made", "pause", ("lost", None)]
        assert transport.get_write_buffer_size() == 0
        assert is_open(pipe[1])  # the thread is still in it
        assert await asyncio.to_thread(read_all, pipe[0]) == MUCH[: 2 * 65_536]
        await asyncio.sleep(0)
        assert protocol.calls == ["made", "pause", ("lost", None)]

    run(main)


def test_write_thread_aborted_while_idle_ends(pipe: tuple[int, int]) -> None:
    async def main() -> None:
        protocol = Protocol()
        writing(pipe[1], protocol).abort()
        await until(lambda: not is_open(pipe[1]))
        await protocol.until(2)
        await asyncio.sleep(0)
        assert protocol.calls == ["made", ("lost", None)]

    run(main)


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EINVAL, errno.EIO])
def test_write_thread_that_fails_loses_the_connection(
    number: int, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The protocol sees one `connection_lost` with the error, and later writes are ignored."""
    write = os.write

    def fail(fd: int, data: bytes) -> int:
        if fd == pipe[1]:
            raise OSError(number, os.strerror(number))
        return write(fd, data)

    monkeypatch.setattr(os, "write", fail)

    async def main() -> None:
        protocol = Protocol()
        transport = writing(pipe[1], protocol)
        transport.write(b"anyone?")
        await protocol.until(3)
        [_, _, (_, error)] = protocol.calls
        assert isinstance(error, OSError)
        # EINVAL: so Windows reports a pipe without a reader.
        assert error.errno == (errno.EIO if number == errno.EIO else errno.EPIPE)
        assert isinstance(error, BrokenPipeError) is (number != errno.EIO)
        assert transport.is_closing()
        assert transport.get_write_buffer_size() == 0
        assert not is_open(pipe[1])
        transport.write(b"too late")
        transport._written(7)  # of a write before
        assert protocol.calls[:2] == ["made", "pause"]
        assert len(protocol.calls) == 3

    run(main)


def test_write_thread_outlives_its_loop(pipe: tuple[int, int]) -> None:
    async def main() -> None:
        transport = writing(pipe[1], Protocol())
        transport.write(MUCH)
        transport.close()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    [thread] = [each for each in threading.enumerate() if each.name == "mcp stdout"]
    assert thread.daemon
    loop.close()
    assert read_all(pipe[0]) == MUCH
    thread.join(PATIENCE)


# -- Streams ---------------------------------------------------------------------------------------


def test_thread_streams_close_their_descriptors() -> None:
    """The reader's thread is still blocked at the end, and frees its descriptor when it wakes."""

    async def main() -> None:
        (source, its_stdout), (its_stdin, sink) = os.pipe(), os.pipe()
        with open_thread_streams(source, sink) as (reader, writer):
            os.write(its_stdout, b"hello\n")
            assert await reader.readline() == b"hello\n"
            writer.write(b"you\n")
            await writer.drain()
            assert os.read(its_stdin, 100) == b"you\n"
        await writer.wait_closed()
        os.close(its_stdout)
        assert await reader.read() == b""
        await until(lambda: not (is_open(source) or is_open(sink)))
        os.close(its_stdin)

    run(main)


def test_thread_streams_without_a_reader_raise_in_drain(pipe: tuple[int, int]) -> None:
    async def main() -> None:
        source, its_stdout = os.pipe()
        os.close(pipe[0])
        with open_thread_streams(source, pipe[1]) as (_, writer):
            writer.write(b"anyone?")
            with pytest.raises(BrokenPipeError):
                await writer.drain()
            with pytest.raises(BrokenPipeError):
                await writer.wait_closed()
        os.close(its_stdout)
        await until(lambda: not is_open(source))

    run(main)
