"""A `Connection` on asyncio's streams: one task reads and feeds it, one task empties it.

Rules: only one task writes, so that a cancelled caller
cannot leave half a message behind. While the connection says `PAUSED` nothing is read; much that is queued is a reason for it,
and comes soon when the transport holds more than it likes, for then the writing task waits in `drain`.

It makes no decision of the protocol and knows neither requests nor handlers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from mcp_core import Connection, ConnectionLost, Event, Pump

from ._carrier import Carrier, apart

READ_SIZE: Final = 65_536
LAST_WRITE: Final = 1.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link(Carrier):
    """Carries `conn` over `streams`; `take` gets each event and must not wait. The task `reading` ends with the input.

    *Resource handling*: `aclose` closes the writer. *Error handling*: a broken stream closes the connection, no more.
    """

    def __init__(self, conn: Connection, streams: Streams, take: Callable[[Event], object]) -> None:
        self._events = Pump(conn, apart(take))
        super().__init__(conn, self._events.run)
        self.conn = conn
        self._reader, self._writer = streams
        self.reading = self.loop.create_task(self._read())
        self._writing = self.loop.create_task(self._write())

    async def _read(self) -> None:
        try:
            data = b"not the end"
            while data:
                data = await self._reader.read(READ_SIZE)
                self.conn.receive_data(data, self.loop.time())
                self.pump()
                await self.until(lambda: not self._events.paused)
        except BaseException as exc:
            self._break()
            if not isinstance(exc, OSError):
                raise

    async def _write(self) -> None:
        try:
            while True:
                await self.until(self.conn.queued)
                self._writer.write(self.conn.data_to_send())
                await self._writer.drain()
                self.pump()
        except OSError:
            pass
        finally:
            self._break()

    def _break(self) -> None:
        self.conn.close(ConnectionLost("the connection broke"))
        self.conn.data_to_send()  # nobody will read it
        self.pump()
        self.reading.cancel()

    def full(self, id: object) -> bool:
        return self._events.full

    async def aclose(self, patience: float = LAST_WRITE) -> None:
        """End the conversation; the peer has `patience` seconds to read what is queued. May be called any number of times."""
        self.conn.close()
        last = self.conn.data_to_send()
        self.pump()
        self.reading.cancel()
        self._writing.cancel()
        self._writer.write(last)
        self._writer.close()
        closed = asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
        ends: set[asyncio.Future[Any]] = {closed, self.reading, self._writing}
        try:
            await asyncio.wait(ends, timeout=patience)
        finally:
            if self._writer.transport.get_write_buffer_size():
                self._writer.transport.abort()
        await asyncio.wait(ends, timeout=LAST_WRITE)
