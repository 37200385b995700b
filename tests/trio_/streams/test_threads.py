"""Streams over descriptors that block, read and written by threads."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_trio.streams import _threads
from mcp_trio.streams._threads import ThreadReceiveStream, ThreadSendStream
from tests.harness.world.waiting import cancel_once_blocked, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

MUCH = b"x" * 300_000  # more than a pipe holds


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe. A test gives one end to a stream, which closes it."""
    source, sink = os.pipe()
    yield source, sink
    for fd in source, sink:
        with suppress(OSError):
            os.close(fd)


async def test_thread_read_cancelled_loses_nothing(pipe: tuple[int, int]) -> None:
    async with ThreadReceiveStream(pipe[0]) as stream:
        await cancel_once_blocked(stream.receive_some)
        os.write(pipe[1], b"abc")
        assert await stream.receive_some(2) == b"ab"
        assert await stream.receive_some(2) == b"c"
        with pytest.raises(ValueError, match="at least 1"):
            await stream.receive_some(0)
        os.close(pipe[1])
        assert await stream.receive_some() == b""
        assert await stream.receive_some() == b""


async def test_thread_read_cancelled_is_read_later_as_a_whole(pipe: tuple[int, int]) -> None:
    """Nothing is left of it then: no bytes would mean the end."""
    async with ThreadReceiveStream(pipe[0]) as stream:
        await cancel_once_blocked(stream.receive_some)
        os.write(pipe[1], b"ab")
        assert await stream.receive_some(2) == b"ab"
        os.write(pipe[1], b"c")
        assert await stream.receive_some(1) == b"c"


async def test_thread_streams_always_checkpoint(pipe: tuple[int, int]) -> None:
    """Also if there is nothing to wait for."""
    source, sink = ThreadReceiveStream(pipe[0]), ThreadSendStream(pipe[1])
    await cancel_once_blocked(source.receive_some)
    await sink.send_all(b"ab")
    await until(lambda: source._descriptor.result is not None)
    with trio.testing.assert_checkpoints():
        assert await source.receive_some(1) == b"a"
    with trio.testing.assert_checkpoints():
        await sink.wait_send_all_might_not_block()
    with trio.testing.assert_checkpoints():
        await sink.send_all(b"")
    for stream in (source, sink):
        with trio.testing.assert_checkpoints():
            await stream.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await source.receive_some()


async def test_thread_reads_only_what_was_asked_for(pipe: tuple[int, int]) -> None:
    os.set_blocking(pipe[1], False)
    async with ThreadReceiveStream(pipe[0]) as stream:
        os.write(pipe[1], b"12345678")
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert await stream.receive_some(4) == b"1234"
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert os.read(pipe[0], 100) == b"5678"


async def test_thread_read_ends_when_another_task_closes(pipe: tuple[int, int]) -> None:
    stream = ThreadReceiveStream(pipe[0])
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def _() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await stream.receive_some()

        await trio.testing.wait_all_tasks_blocked(0.02)
        await stream.aclose()
    os.fstat(pipe[0])  # the thread is still in it
    os.close(pipe[1])
    await until(lambda: not is_open(pipe[0]))


@pytest.mark.parametrize("kind", [ThreadReceiveStream, ThreadSendStream])
async def test_thread_stream_closed_twice_closes_its_descriptor_once(
    kind: type[ThreadReceiveStream | ThreadSendStream], pipe: tuple[int, int]
) -> None:
    """The number may be another file's by then."""
    fd = os.dup(pipe[0])
    stream = kind(fd)
    await stream.aclose()
    assert not is_open(fd)
    os.dup2(pipe[1], fd)
    await stream.aclose()
    assert is_open(fd)
    os.close(fd)


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_thread_that_outlives_its_run_closes_the_descriptor(pipe: tuple[int, int]) -> None:
    async def main() -> None:
        async with ThreadReceiveStream(pipe[0]) as stream:
            await cancel_once_blocked(stream.receive_some)

    trio.run(main)
    assert is_open(pipe[0])
    os.write(pipe[1], b"too late")
    wait_until(lambda: not is_open(pipe[0]))  # outside trio, which might reuse the number


async def test_thread_write_waits_for_the_reader(pipe: tuple[int, int]) -> None:
    received = bytearray()
    async with (
        ThreadReceiveStream(pipe[0]) as source,
        ThreadSendStream(pipe[1]) as sink,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sink.send_all, MUCH)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert sink.busy
        while len(received) < len(MUCH):
            received += await source.receive_some()
    assert received == MUCH


async def test_thread_write_cancelled_sends_no_further_chunk(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blocked write can't be undone, but its thread must not send the rest behind our back."""
    begun: list[int] = []
    write = _threads._write

    def noted(fd: int, data: bytes) -> int:
        begun.append(len(data))
        return write(fd, data)

    monkeypatch.setattr(_threads, "_write", noted)
    async with ThreadReceiveStream(pipe[0]) as source:
        async with ThreadSendStream(pipe[1]) as sink:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sink.send_all, MUCH)
                await until(lambda: len(begun) == 2)  # the pipe holds the first chunk only
                nursery.cancel_scope.cancel()
            assert sink.busy
            received = bytearray()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sink.send_all, b"next")
                while not received.endswith(b"next"):
                    received += await source.receive_some()
        assert begun == [65_536, 65_536, 4]
        assert len(received) == 131_076
        assert set(received[:131_072]) == {ord("x")}
        assert await source.receive_some() == b""


@pytest.mark.parametrize("windows", [False, True])
async def test_thread_write_without_reader_is_a_broken_pipe(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, windows: bool
) -> None:
    def write(fd: int, data: bytes) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")  # what Windows reports

    os.close(pipe[0])
    if windows:
        monkeypatch.setattr(_threads, "_write", write)
    async with ThreadSendStream(pipe[1]) as sink:
        with pytest.raises(trio.BrokenResourceError) as error:
            await sink.send_all(b"anyone?")
    assert isinstance(error.value.__cause__, BrokenPipeError)
    with pytest.raises(trio.ClosedResourceError):
        await sink.send_all(b"closed")


async def test_thread_write_that_fails_keeps_the_error_of_the_system(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one error of Windows stands for a pipe without a reader."""

    def write(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_threads, "_write", write)
    async with ThreadSendStream(pipe[1]) as sink:
        with pytest.raises(trio.BrokenResourceError, match="No space left") as error:
            await sink.send_all(b"x")
    assert isinstance(error.value.__cause__, OSError)
    assert error.value.__cause__.errno == errno.ENOSPC


async def test_thread_read_that_fails_is_a_broken_resource(tmp_path: os.PathLike[str]) -> None:
    async with ThreadReceiveStream(os.open(tmp_path, os.O_RDONLY)) as stream:
        with pytest.raises(trio.BrokenResourceError) as error:
            await stream.receive_some()
    assert isinstance(error.value.__cause__, IsADirectoryError)
