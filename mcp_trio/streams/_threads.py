"""Streams over descriptors that the system cannot wait for: a thread reads, and another one writes.

They are for Windows, where the pipes of a process's own stdin and stdout block. Elsewhere
`trio.lowlevel.FdStream` needs no thread.

1. A thread blocked in the system can be neither cancelled nor interrupted. A cancelled task leaves
   it, and what the thread then reads is for the next `receive_some`.
2. A thread reads only if a task has asked for input, one chunk. So the peer is held back, as on a
   pipe, and the process takes no input that is for its successor, but for one chunk.
3. The thread closes the descriptor if it uses it at that time: on Windows closing would wait.

The threads are trio's own, and daemons: the process ends without them.
"""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import trio
from trio.abc import ReceiveStream, SendStream

from mcp_core.runtime import READ_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HAS_POLLABLE_PIPES", "ThreadReceiveStream", "ThreadSendStream"]

# False on Windows. Tests set it to run this code elsewhere.
HAS_POLLABLE_PIPES = hasattr(trio.lowlevel, "FdStream")

# Bytes of one write. After a cancellation or the closing, the thread writes no further chunk.
_WRITE_SIZE: Final = 65_536

T = TypeVar("T")


class _ThreadDescriptor(Generic[T]):
    """A descriptor that one thread at a time uses, and that is closed when no thread uses it."""

    def __init__(self, fd: int) -> None:
        self.closed = False
        self.busy = False  # a thread uses the descriptor
        # The result of the last use, None until one has ended.
        self.result: T | OSError | None = None
        self._fd = fd
        self._changed = trio.lowlevel.ParkingLot()
        self._token = trio.lowlevel.current_trio_token()

    def start(self, use: Callable[[int], T]) -> None:
        """Run `use(fd)` in a thread. Its result, or its `OSError`, will be in `result`."""
        self.busy = True

        def run() -> T | OSError:
            try:
                return use(self._fd)
            except OSError as exc:
                return exc

        def finish(result: Any) -> None:
            self.busy = False
            self.result = result.unwrap()
            if self.closed:
                os.close(self._fd)
            self._changed.unpark_all()

        def deliver(result: Any) -> None:
            try:
                self._token.run_sync_soon(finish, result)
            except trio.RunFinishedError:
                if self.closed:
                    os.close(self._fd)

        trio.lowlevel.start_thread_soon(run, deliver, "mcp-trio stdio")

    async def wait(self) -> None:
        """Wait until no thread uses the descriptor. Raise `ClosedResourceError` if it is closed."""
        while self.busy and not self.closed:
            await self._changed.park()
        if self.closed:
            raise trio.ClosedResourceError("this stream was closed")

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if not self.busy:
                os.close(self._fd)
            self._changed.unpark_all()


class ThreadReceiveStream(ReceiveStream):
    """A stream that reads a descriptor, which it owns, in a thread. For one task at a time.

    Cancelling `receive_some` loses nothing. Closing it ends a `receive_some` in another task; the
    thread ends with the next input, or with the process.
    """

    def __init__(self, fd: int) -> None:
        self._descriptor = _ThreadDescriptor[bytes](fd)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes, at most `max_bytes`, by default 64 KiB; `b""` at the end of input.

        Raises:
            trio.BrokenResourceError: the system cannot read; its error is the cause.
            trio.ClosedResourceError: this stream was closed, before or meanwhile.
        """
        if max_bytes is not None and max_bytes < 1:
            raise ValueError("max_bytes must be at least 1")
        descriptor = self._descriptor
        size = max_bytes or READ_SIZE
        await trio.lowlevel.checkpoint()
        await descriptor.wait()
        if descriptor.result is None:
            descriptor.start(lambda fd: os.read(fd, size))
            await descriptor.wait()
        data, descriptor.result = descriptor.result, None
        if isinstance(data, OSError):
            raise trio.BrokenResourceError(str(data)) from data
        assert data is not None
        if len(data) > size:  # read for a cancelled call, which accepted more
            descriptor.result = data[size:]
            data = data[:size]
        return data

    def close(self) -> None:
        """Close it without waiting."""
        self._descriptor.close()

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()


class ThreadSendStream(SendStream):
    """A stream that writes to a descriptor, which it owns, in a thread. For one task at a time.

    After a cancelled `send_all` the thread may still write up to 64 KiB, and the next `send_all`
    waits for that. Closing it ends a `send_all` in another task.
    """

    def __init__(self, fd: int) -> None:
        self._descriptor = _ThreadDescriptor[int](fd)

    @property
    def busy(self) -> bool:
        """True if a write isn't finished, perhaps a cancelled `send_all`'s."""
        return self._descriptor.busy

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write all bytes.

        Raises:
            trio.BrokenResourceError: the system cannot write; its error is the cause.
            trio.ClosedResourceError: this stream was closed, before or meanwhile.
        """
        await self.wait_send_all_might_not_block()
        descriptor = self._descriptor
        rest = bytes(data)  # the thread has it even after a cancellation
        while rest:
            descriptor.start(partial(_write, data=rest[:_WRITE_SIZE]))
            await descriptor.wait()
            written = descriptor.result
            if isinstance(written, OSError):
                raise trio.BrokenResourceError(str(written)) from _as_broken_pipe(written)
            rest = rest[written:]

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until no write of a cancelled `send_all` is left."""
        await trio.lowlevel.checkpoint()
        await self._descriptor.wait()

    def close(self) -> None:
        """Close it without waiting."""
        self._descriptor.close()

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()


def _write(fd: int, data: bytes) -> int:
    return os.write(fd, data)


def _as_broken_pipe(error: OSError) -> OSError:
    """Return `BrokenPipeError` for the error with which Windows reports a pipe without a reader."""
    if error.errno == errno.EINVAL:
        return BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    return error
