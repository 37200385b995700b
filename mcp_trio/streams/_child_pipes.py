"""The pipes of a child process on systems where a pipe has no descriptor to wait for, as Windows.

`_child.py` uses them in place of its own classes, which duplicate and poll descriptors.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Final

import trio
from trio.abc import ReceiveStream

from mcp_core.drivers import ByteEscaper

from ._threads import ThreadSendStream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio.abc import SendStream

    class ReceivePipe(ReceiveStream):
        """A stream that trio makes of the stdout or stderr of a process, on any system."""

        def close(self) -> None: ...

    class SendPipe(SendStream):
        """A stream that trio makes of a process's stdin."""

        def close(self) -> None: ...


__all__ = ["ReceivePipe", "SendPipe", "ThreadStderrForwarder", "UnpolledStdoutStream"]

_STALL_TIMEOUT: Final = 1.0  # seconds that our blocked stderr may hold up the child's, once
# Seconds without input after which a pipe is empty, once the child has exited: all that it wrote is
# in the pipe then, and a read of it returns at once.
_EMPTY_TIMEOUT: Final = 0.05


class UnpolledStdoutStream(ReceiveStream):
    """A child's stdout that can be ended while a task reads it; that task gets an end of file.

    Closing it leaves the pipe open for `discard`. `close_pipe` closes that.
    """

    def __init__(self, pipe: ReceivePipe, wait_for_end: Callable[[], Awaitable[None]]) -> None:
        self._pipe = pipe
        self._wait_for_end = wait_for_end
        self._ended = False
        self._closed = False
        self._timeout = math.inf  # seconds of a read
        self._read_scope = trio.CancelScope()  # of the read that a task waits in
        self._pipe_lock = trio.Lock()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data: bytes | bytearray | None = None
        while data is None:
            await trio.lowlevel.checkpoint()
            if self._closed:
                raise trio.ClosedResourceError("this stream was closed")
            if self._ended:
                return b""
            async with self._pipe_lock:
                with trio.move_on_after(self._timeout) as self._read_scope:
                    data = await self._pipe.receive_some(max_bytes)
                # A process that the child left behind may hold the pipe open.
                self._ended |= data is None and self._read_scope.deadline < math.inf
        if not data:
            await self._wait_for_end()
        return bytes(data)

    async def end_when_empty(self) -> None:
        """End it when the pipe is empty, because the child has exited. Do not wait for that."""
        self._timeout = _EMPTY_TIMEOUT
        self._read_scope.deadline = trio.current_time() + _EMPTY_TIMEOUT

    async def discard(self) -> None:
        """End it, and read the pipe to its end."""
        self.end()
        async with self._pipe_lock:  # once the task that reads it has noticed
            while await self._pipe.receive_some():
                pass

    def end(self) -> None:
        """End it: reading returns `b""` from now on."""
        self._ended = True
        self._read_scope.cancel()

    async def aclose(self) -> None:
        self._closed = True
        self._read_scope.cancel()
        await trio.lowlevel.checkpoint()

    def close_pipe(self) -> None:
        """End it, and close the pipe."""
        self.end()
        self._pipe.close()


class ThreadStderrForwarder:
    """A copier of a child's stderr to a descriptor, which it owns, by a thread.

    Bytes that it doesn't accept within a second are dropped. From then on, bytes are dropped until
    the thread has written its chunk. A terminal gets escapes in place of control characters.
    """

    def __init__(self, fd: int) -> None:
        self._escaper = ByteEscaper() if os.isatty(fd) else None
        self._stream = ThreadSendStream(fd)

    async def write(self, chunk: bytes) -> None:
        if self._escaper is not None:
            chunk = self._escaper.feed(chunk)
        if not self._stream.busy:
            with trio.move_on_after(_STALL_TIMEOUT):
                try:
                    await self._stream.send_all(chunk)
                except trio.BrokenResourceError:
                    return  # its reader is gone

    def close(self) -> None:
        self._stream.close()
