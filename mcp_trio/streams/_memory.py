"""A pair of streams joined in memory, for a client and a server in one process.

A write waits while 64 KiB are unread, as on a pipe: code that works here then works on a pipe too.
Two tasks that write, or read, at once get `trio.BusyResourceError`, as from every stream of trio.
Nothing else of a transport is imitated: no delay, no loss, no partial reads on purpose.
"""

from __future__ import annotations

from operator import index

import trio

__all__ = ["memory_pair"]

_CAPACITY = 65_536  # bytes; a pipe's capacity on Linux


class _OneTask:
    """A context that one task at a time may be in.

    A class, since a generator as context manager costs a call in process 4 % more.
    """

    __slots__ = ("_text", "_used")

    def __init__(self, text: str) -> None:
        self._text = text
        self._used = False

    def __enter__(self) -> None:
        if self._used:
            raise trio.BusyResourceError(self._text)
        self._used = True

    def __exit__(self, *_: object) -> None:
        self._used = False


class _MemoryPipe:
    """One direction: a bounded buffer between a writer and a reader."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.writer_closed = False
        self.reader_closed = False
        self.changed = trio.lowlevel.ParkingLot()
        self._reading = _OneTask("another task reads from this stream")
        self._writing = _OneTask("another task writes to this stream")

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        while True:
            await self.wait_send_all_might_not_block()
            if self.reader_closed:
                raise trio.BrokenResourceError("the other end was closed")
            capacity = _CAPACITY - len(self.buffer)
            self.buffer += rest[:capacity]
            self.changed.unpark_all()
            rest = rest[capacity:]
            if not rest:
                return

    async def wait_send_all_might_not_block(self) -> None:
        with self._writing:
            await trio.lowlevel.checkpoint()
            while (
                len(self.buffer) >= _CAPACITY and not self.reader_closed and not self.writer_closed
            ):
                await self.changed.park()
        if self.writer_closed:
            raise trio.ClosedResourceError("this end was closed")

    async def end(self) -> None:
        with self._writing:
            await trio.lowlevel.checkpoint()
        self.writer_closed = True
        self.changed.unpark_all()

    async def read(self, max_bytes: int | None) -> bytes:
        if max_bytes is not None and index(max_bytes) < 1:
            raise ValueError("max_bytes must be at least 1")
        with self._reading:
            await trio.lowlevel.checkpoint()
            while not self.buffer and not self.writer_closed and not self.reader_closed:
                await self.changed.park()
        if self.reader_closed:
            raise trio.ClosedResourceError("this end was closed")
        data = bytes(self.buffer if max_bytes is None else self.buffer[:max_bytes])
        del self.buffer[: len(data)]
        self.changed.unpark_all()
        return data


class _MemoryStreamEnd(trio.abc.HalfCloseableStream):
    """One end of the pair."""

    def __init__(self, incoming: _MemoryPipe, outgoing: _MemoryPipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._outgoing.write(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._outgoing.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._outgoing.end()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self._incoming.read(max_bytes)

    async def aclose(self) -> None:
        self._outgoing.writer_closed = True
        self._incoming.reader_closed = True
        self._outgoing.changed.unpark_all()
        self._incoming.changed.unpark_all()
        await trio.lowlevel.checkpoint()


def memory_pair() -> tuple[trio.abc.HalfCloseableStream, trio.abc.HalfCloseableStream]:
    """Return the two ends of one bidirectional byte stream inside this process.

    Each direction buffers 64 KiB; beyond that a write waits. After one end is closed, the other
    reads end of file, and its writes raise `trio.BrokenResourceError`. The caller closes both ends,
    or passes them to a function that does, such as `serve_stream` and `connect_stream`.
    """
    there = _MemoryPipe()
    back = _MemoryPipe()
    return _MemoryStreamEnd(back, there), _MemoryStreamEnd(there, back)
