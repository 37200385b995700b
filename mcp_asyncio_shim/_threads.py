"""Transports of asyncio over descriptors that its loop cannot wait for: a thread each.

They are for Windows, where the pipes of a process's own stdin and stdout block.

1. A thread blocked in the system cannot be interrupted. Closing a transport doesn't wait for it:
   the thread closes the descriptor, because on Windows closing would wait.
2. The reader reads one chunk, and the next one when the loop has taken it and isn't paused. So the
   peer is held back, as on a pipe.

The threads are daemons: the process ends without them.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections import deque
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

from mcp_core.runtime import READ_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._link import Streams

__all__ = ["open_thread_streams"]

_WRITE_SIZE: Final = 65_536  # bytes of one write; after `abort` no further one begins


@contextmanager
def open_thread_streams(source: int, sink: int) -> Iterator[Streams]:
    """Yield streams that read `source` and write to `sink`, which are closed at the end.

    Call it inside a running loop. What isn't written at the end is written later, if the process
    goes on so long.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    reading = ReadThread(source, asyncio.StreamReaderProtocol(reader), loop)
    unused = asyncio.StreamReader()  # a StreamWriter needs a reader's protocol
    protocol = asyncio.StreamReaderProtocol(unused)
    writing = WriteThread(sink, protocol, loop)
    with closing(reading), closing(writing):
        yield reader, asyncio.StreamWriter(writing, protocol, unused, loop)


class ReadThread(asyncio.ReadTransport):
    """A transport that reads the descriptor `fd`, which it owns, until the end of input."""

    def __init__(
        self, fd: int, protocol: asyncio.StreamReaderProtocol, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__()
        self._fd = fd
        self._protocol = protocol
        self._loop = loop
        self._closed = False
        self._may_read = threading.Event()
        self._may_read.set()
        self._paused = False
        protocol.connection_made(self)
        threading.Thread(target=self._run, name="mcp stdin", daemon=True).start()

    def _run(self) -> None:
        data = b"first"
        try:
            while data and not self.is_closing():
                error = None
                try:
                    data = os.read(self._fd, READ_SIZE)
                except OSError as exc:
                    data, error = b"", exc
                self._may_read.clear()
                if self.is_closing():  # `close` has set the event, perhaps before it was cleared
                    return
                self._loop.call_soon_threadsafe(self._received, data, error)
                self._may_read.wait()
        except RuntimeError:
            pass  # the loop is closed
        finally:
            os.close(self._fd)

    def _received(self, data: bytes, error: OSError | None) -> None:
        if self._closed:
            return
        if data:
            self._protocol.data_received(data)
            if not self._paused:  # by the protocol, because it has much that isn't read
                self._may_read.set()
        else:
            if error is None:
                self._protocol.eof_received()
            self._end(error)

    def _end(self, error: OSError | None) -> None:
        self._closed = True
        self._may_read.set()
        self._protocol.connection_lost(error)

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._may_read.set()

    def is_reading(self) -> bool:
        return not self._paused and not self._closed

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._may_read.set()
            self._loop.call_soon(self._protocol.connection_lost, None)


class WriteThread(asyncio.WriteTransport):
    """A transport that writes to the descriptor `fd`, which it owns."""

    def __init__(
        self, fd: int, protocol: asyncio.StreamReaderProtocol, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__()
        self._fd = fd
        self._protocol = protocol
        self._loop = loop
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._size = 0  # bytes that aren't written, in the queue and in the thread
        self._closing = False
        self._aborted = False
        self._lost = False
        self._protocol_paused = False
        protocol.connection_made(cast("asyncio.Transport", self))
        threading.Thread(target=self._run, name="mcp stdout", daemon=True).start()

    def _run(self) -> None:
        error = None
        try:
            while error is None and (data := self._next()):
                for start in range(0, len(data), _WRITE_SIZE):
                    error = self._write(data[start : start + _WRITE_SIZE])
                    if error is not None or self._aborted:
                        break
        finally:
            os.close(self._fd)
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._lose, error)

    def _next(self) -> bytes:
        """Wait for data. Return `b""` at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            return b"" if self._aborted or not self._queue else self._queue.popleft()

    def _write(self, data: bytes) -> OSError | None:
        rest = data
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as exc:
            if exc.errno == errno.EINVAL:  # so Windows reports a pipe without a reader
                return BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            return exc
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._written, len(data))
        return None

    def _written(self, size: int) -> None:
        self._size -= size
        if self._protocol_paused and not self._size and not self._lost:
            self._protocol_paused = False
            self._protocol.resume_writing()

    def _lose(self, error: OSError | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._size = 0
            self._protocol.connection_lost(error)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not data or self._closing:
            return
        with self._changed:
            self._queue.append(bytes(data))
            self._changed.notify()
        self._size += len(data)
        # `drain` waits until all is written. It raises if that fails, as with asyncio's own pipes,
        # where the first write fails at once.
        if not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self._size

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Close it when all is written."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def abort(self) -> None:
        """Close it at once. What the thread writes at this time may still be written."""
        self._aborted = True
        self.close()
        self._loop.call_soon(self._lose, None)
