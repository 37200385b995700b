"""A pair of streams in memory for asyncio, with the capacity of `mcp_trio.memory_pair`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AsyncioEnd", "MemoryEnd", "asyncio_memory_pair"]

_CAPACITY: Final = 65_536  # unread bytes, per direction


class _Transport(asyncio.Transport):
    """One end. What it writes goes to the protocol of `peer`, until that pauses it."""

    peer: _Transport

    def __init__(self, protocol: asyncio.StreamReaderProtocol) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._unsent = bytearray()
        self._flushing: asyncio.Handle | None = None
        self._blocked = False  # our protocol was told not to write
        self._paused = False  # our protocol does not want to read
        self._ending = False  # no more is written
        self._closing = False
        self._lost = False
        # A test sets them.
        self.fails_at_next_write = False
        self.on_line: Callable[[bytes], object] = lambda line: None

    # -- Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._ending or self._lost or not data:
            return
        for line in bytes(data).splitlines():  # the drivers write whole lines
            self.on_line(line)
        self._unsent += data
        self._flush()
        if self._unsent and not self._blocked and not self._lost:
            self._blocked = True
            self._protocol.pause_writing()

    def _flush(self) -> None:
        """Give the peer what it takes."""
        if self._lost:
            return
        if self._unsent and (self.peer._closing or self.fails_at_next_write):
            self._lose(BrokenPipeError("the other end was closed"))
            return
        while self._unsent and not self.peer._paused:
            piece = bytes(self._unsent[:_CAPACITY])
            del self._unsent[:_CAPACITY]
            self.peer._protocol.data_received(piece)
        if self._unsent:
            return
        if self._blocked:
            self._blocked = False
            self._protocol.resume_writing()
        if self._closing:
            self._lose(None)
        elif self._ending and not self.peer._closing:
            self.peer._protocol.eof_received()

    def write_eof(self) -> None:
        if not self._ending:
            self._ending = True
            self._loop.call_soon(self._flush)

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    # -- Reading

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._loop.call_soon(self.peer._flush)

    def is_reading(self) -> bool:
        return not self._paused and not self._closing

    # -- The end

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Close it when the peer has taken all."""
        if not self._closing:
            self._closing = self._ending = True
            self._loop.call_soon(self._flush)
            self._loop.call_soon(self.peer._flush)

    def abort(self) -> None:
        self._lose(None)

    def break_(self, error: OSError) -> None:
        """Let the connection break here, with the error."""
        self._lose(error)

    def _lose(self, error: OSError | None) -> None:
        if self._lost:
            return
        self._lost = self._closing = self._ending = True
        self._unsent.clear()
        self._loop.call_soon(self._protocol.connection_lost, error)
        self._loop.call_soon(self.peer._flush)
        if not self.peer._closing:
            self._loop.call_soon(self.peer._protocol.eof_received)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class _Writer(asyncio.StreamWriter):
    def __del__(self) -> None:
        """Do not complain: memory need not be closed, on trio neither."""


class AsyncioEnd:
    """A reader and a writer of asyncio, with trio's methods for the test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send_all(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self.reader.read(max_bytes or _CAPACITY)

    async def send_eof(self) -> None:
        self.writer.write_eof()

    async def aclose(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


class MemoryEnd(AsyncioEnd):
    """One end of a pair in memory."""

    def __init__(self) -> None:
        # A reader pauses its transport at twice its limit.
        reader = asyncio.StreamReader(limit=_CAPACITY // 2 - 1)
        protocol = asyncio.StreamReaderProtocol(reader)
        self.transport = _Transport(protocol)
        loop = asyncio.get_running_loop()
        super().__init__(reader, _Writer(self.transport, protocol, reader, loop))


def asyncio_memory_pair() -> tuple[MemoryEnd, MemoryEnd]:
    """Return two ends, each the other's peer."""
    ours, theirs = MemoryEnd(), MemoryEnd()
    ours.transport.peer, theirs.transport.peer = theirs.transport, ours.transport
    for end in (ours, theirs):
        end.transport._protocol.connection_made(end.transport)
    return ours, theirs
