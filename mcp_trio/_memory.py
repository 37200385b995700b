"""Two streams joined in memory, for a client and a server in one process.

A write waits when more than `capacity` bytes have not been read, as on a pipe, so that what works here works there; and two
tasks that write or read at once are told so, as by every stream of trio's. Nothing else of a transport is imitated: no delay,
no partial reads on purpose, no loss.
"""

from __future__ import annotations

from contextlib import contextmanager
from operator import index
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["memory_pair"]

_CAPACITY = 65_536


class _Pipe:
    """One direction: a bounded buffer between a writer and a reader."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.writer_closed = False
        self.reader_closed = False
        self.changed = trio.lowlevel.ParkingLot()
        self._busy: set[str] = set()

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        while True:
            await self.wait_send_all_might_not_block()
            if self.reader_closed:
                raise trio.BrokenResourceError("the other end was closed")
            room = _CAPACITY - len(self.buffer)
            self.buffer += rest[:room]
            self.changed.unpark_all()
            rest = rest[room:]
            if not rest:
                return

    async def wait_send_all_might_not_block(self) -> None:
        with self._only_one("writes to"):
            await trio.lowlevel.checkpoint()
            while len(self.buffer) >= _CAPACITY and not self.reader_closed and not self.writer_closed:
                await self.changed.park()
        if self.writer_closed:
            raise trio.ClosedResourceError("this end was closed")

    async def end(self) -> None:
        with self._only_one("writes to"):
            await trio.lowlevel.checkpoint()
        self.writer_closed = True
        self.changed.unpark_all()

    async def read(self, max_bytes: int | None) -> bytes:
        if max_bytes is not None and index(max_bytes) < 1:
            raise ValueError("max_bytes must be at least 1")
        with self._only_one("reads from"):
            await trio.lowlevel.checkpoint()
            while not self.buffer and not self.writer_closed and not self.reader_closed:
                await self.changed.park()
        if self.reader_closed:
            raise trio.ClosedResourceError("this end was closed")
        data = bytes(self.buffer if max_bytes is None else self.buffer[:max_bytes])
        del self.buffer[: len(data)]
        self.changed.unpark_all()
        return data

    @contextmanager
    def _only_one(self, act: str) -> Iterator[None]:
        if act in self._busy:
            raise trio.BusyResourceError(f"another task {act} this stream")
        self._busy.add(act)
        try:
            yield
        finally:
            self._busy.discard(act)


class _End(trio.abc.HalfCloseableStream):
    """One end of the pair."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
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
    """Two ends of one two-way byte stream inside this process.

    Each direction holds 64 KiB; a writer waits beyond that. Closing one end gives the other end of file on reading and
    `trio.BrokenResourceError` on writing.
    """
    there, back = _Pipe(), _Pipe()
    return _End(back, there), _End(there, back)
