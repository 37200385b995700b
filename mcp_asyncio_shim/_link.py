"""Run a `Connection` on a pair of asyncio's streams: one task reads, one task writes.

1. Only the writing task writes. A cancelled caller can therefore never leave half a message on the
   stream.
2. Backpressure reaches the peer: while the connection is paused the link doesn't read. Much
   queued output is one reason for that, and output stays queued while the writing task waits in
   `drain`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_core import Connection, ConnectionLost, Pump, State
from mcp_core.runtime import READ_SIZE

from ._driver import ConnectionDriver, in_new_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import Event
    from mcp_core.adapters import StreamRecorder

    from ._websocket import _FramedWebSocket

__all__ = ["FLUSH_TIMEOUT", "Link", "PeerProcess", "Streams"]

# Seconds that a peer gets to read what is queued when its connection is closed.
FLUSH_TIMEOUT: Final = 1.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class PeerProcess(Protocol):
    """The process at the other end."""

    def describe(self) -> str:
        """Return its exit status and the end of its stderr, to append to an error, or ""."""

    async def wait_for_end(self) -> None:
        """Wait for its exit, which explains the end of the input. It must have a limit."""


class Link(ConnectionDriver):
    """One connection on one pair of streams.

    Each event is passed to `on_event`, which must not wait. The task `reading` ends with the input,
    and with a `Connection` that has closed itself.
    `record` records the bytes; None for no recording. Errors describe the process `peer`.

    *Resource handling*: `aclose` closes the writer. *Error handling*: a broken stream closes the
    connection with `ConnectionLost`, and raises nothing. After `aclose`, `write_error` is the error
    of the system with which writing failed, None if it did not.
    """

    def __init__(
        self,
        streams: Streams,
        conn: Connection | _FramedWebSocket,
        on_event: Callable[[Event], object],
        record: StreamRecorder | None = None,
        peer: PeerProcess | None = None,
    ) -> None:
        self._record = record
        self._peer = peer
        if peer is not None:
            assert isinstance(conn, Connection)
            conn.describe_peer = peer.describe
        self._events = Pump(conn, in_new_context(on_event))
        super().__init__(conn, self._events.run)
        self.conn = conn
        self.write_error: OSError | None = None
        self._reader, self._writer = streams
        self.reading = self.loop.create_task(self._read())
        self._writing = self.loop.create_task(self._write())

    def pump(self) -> None:
        """Do what the base class does, and stop reading once the connection is closed."""
        super().pump()
        if self._is_closed:
            self.reading.cancel()

    @property
    def _is_closed(self) -> bool:
        # A WebSocket reads on: the peer closes it, too.
        return isinstance(self.conn, Connection) and self.conn.state is State.CLOSED

    async def _read(self) -> None:
        try:
            while True:
                data = await self._reader.read(READ_SIZE)
                if not data and self._peer is not None:
                    await self._peer.wait_for_end()
                if self._record is not None:
                    self._record.received(data)
                self.conn.receive_data(data, self.loop.time())
                self.pump()
                await self.wait_until(lambda: not self._events.paused)
                if not data:
                    return  # end of file; the connection has seen it too
        except BaseException as exc:
            if not self._is_closed:  # else what is queued may still be sent
                self._abort()
            if not isinstance(exc, OSError):
                raise

    async def _write(self) -> None:
        try:
            with suppress(OSError):
                while True:
                    await self.wait_until(self.conn.queued)
                    self._write_queued()
                    await self._writer.drain()
                    self.pump()
        finally:
            self._abort()

    def _write_queued(self) -> None:
        data = self.conn.data_to_send()
        if self._record is not None and data:
            self._record.sent(bytes(data))
        self._writer.write(data)

    def _abort(self) -> None:
        self.conn.close(ConnectionLost("the connection broke"))
        self.conn.data_to_send()  # discarded: nothing can be sent any more
        self.pump()
        self.reading.cancel()

    def write_blocked(self, id: object) -> bool:
        """Return True if progress and logs should wait. All requests of a link share one queue."""
        return self._events.write_blocked

    async def aclose(self, timeout: float = FLUSH_TIMEOUT) -> None:
        """Close the connection. The peer has `timeout` seconds to read the rest. Idempotent."""
        self.conn.close()
        self.pump()
        self.reading.cancel()
        self._writing.cancel()
        self._write_queued()
        if self._record is not None:
            self._record.sent(b"")
            self._record = None  # this may be called again
        self._writer.close()
        closed = asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
        ends: set[asyncio.Future[Any]] = {closed, self.reading, self._writing}
        try:
            await asyncio.wait(ends, timeout=timeout)
        finally:
            # Also if cancelled: a transport that still has data would stay open.
            if self._writer.transport.get_write_buffer_size():
                self._writer.transport.abort()
        await asyncio.wait(ends, timeout=FLUSH_TIMEOUT)
        error = closed.result()[0] if closed.done() else None  # `drain` raises another one
        self.write_error = error if isinstance(error, OSError) else None
