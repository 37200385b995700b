"""A `Connection` on a byte stream: whoever reads feeds it, one writer empties it, one timer serves it.

Rules of this file:

1. `send_all` is called by one task only. So no cancelled caller can leave half a message on the stream, and messages that
   are queued while a write is under way leave together in the next one.
2. After every call into the connection comes `pump`: it takes the events out, wakes the writer and sets the timer. It never
   waits, so a reader that answers by itself needs no other task.
3. Back-pressure reaches the peer: while the connection says `PAUSED` nothing is read, and who sends much waits in `drain`.

It makes no decision of the protocol and knows neither requests nor handlers: `take` gets every event. A client's link has its
stream for itself, and is a `StreamCarrier`.
"""

from __future__ import annotations

import contextvars
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectionLost, Pump, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import Connection, Event

__all__ = ["Link", "StreamCarrier"]

_READ_SIZE: Final = 65_536  # a pipe's capacity on Linux
_CLOSED: Final = State.CLOSED
_LAST_WORDS: Final = 0.2  # seconds for a peer to take what is said to it last, however we are hurried


class Link:
    """Carries one conversation over `stream`.

    Run `write` and `tick` in a nursery and await `read`. `take` is called for each event, in order, without waiting.

    *Resource handling*: the link never closes the stream. *Error handling*: a broken stream ends `read` and `write`
    silently; the connection is closed then, and its events tell who is concerned. The same happens when `write` is cancelled,
    for nothing could be said any more.
    """

    def __init__(self, conn: Connection, stream: trio.abc.Stream, take: Callable[[Event], None]) -> None:
        self.conn = conn
        self.broken = False
        self._stream = stream
        self._reading = trio.CancelScope()
        self._resumed = trio.lowlevel.ParkingLot()
        self._to_write = trio.lowlevel.ParkingLot()
        self._written = trio.lowlevel.ParkingLot()
        self._rearmed = trio.lowlevel.ParkingLot()
        self._writing = False
        self._deadline: float | None = None
        # Handlers start out of `pump`, which may run in any task: they get this context, not that task's.
        context = contextvars.copy_context()
        self._pump = Pump(conn, lambda event: context.run(take, event))

    def __repr__(self) -> str:
        return f"<Link {self.conn!r}{', paused' if self._pump.paused else ''}{', broken' if self.broken else ''}>"

    def pump(self) -> None:
        """To be called after any call into the connection, from any task of this run."""
        was_paused = self._pump.paused
        self._pump.run()
        if was_paused and not self._pump.paused:
            self._resumed.unpark_all()
        deadline = self.conn.next_deadline()
        if deadline != self._deadline:
            self._deadline = deadline
            self._rearmed.unpark_all()
        if self.conn.queued():
            self._to_write.unpark()
        if self.conn.state is _CLOSED:
            self._reading.cancel()

    async def read(self) -> None:
        """Feed the connection until the input ends, the stream breaks or `stop_reading` is called."""
        conn = self.conn
        try:
            with self._reading:
                while True:
                    data = await self._stream.receive_some(_READ_SIZE)
                    conn.receive_data(bytes(data), trio.current_time())
                    self.pump()
                    while self._pump.paused:
                        await self._resumed.park()
                    if not data:
                        return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._break()

    def stop_reading(self) -> None:
        self._reading.cancel()

    async def write(self) -> None:
        """Empty the connection until cancelled or the stream breaks."""
        conn = self.conn
        try:
            while True:
                data = conn.data_to_send()
                if data:
                    self._writing = True
                    await self._stream.send_all(data)
                    self._writing = False
                    if self._pump.paused:
                        self.pump()
                    self._written.unpark_all()
                else:
                    await self._to_write.park()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except trio.Cancelled:
            await self._last_words()
            raise
        finally:
            # Also when cancelled: whoever waits in `drain` or `flush`, perhaps shielded, would wait for ever.
            self._break()

    async def _last_words(self) -> None:
        """Send what is queued although we are cancelled: it may tell the peer that it need not work on for us."""
        if self._writing:
            return  # half a message may be out, and nothing can follow it
        with (
            trio.move_on_after(_LAST_WORDS, shield=True),
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
        ):
            # Whoever is cancelled with us, and has its turn after us, may have something to say.
            await trio.lowlevel.checkpoint()
            while data := self.conn.data_to_send():
                await self._stream.send_all(data)

    async def tick(self) -> None:
        """Serve the connection's timer until cancelled."""
        while True:
            if self._deadline is None:
                await self._rearmed.park()
                continue
            with trio.move_on_at(self._deadline):
                await self._rearmed.park()
            self.conn.handle_timeout(trio.current_time())  # early calls do nothing
            self.pump()

    @property
    def full(self) -> bool:
        """Whether to wait before sending what nobody asked for."""
        return self._pump.full

    async def drain(self) -> None:
        """Wait while more than the high-water mark is queued. No checkpoint if it is not."""
        while self._pump.full and not self.broken:
            await self._written.park()

    async def flush(self) -> None:
        """Wait until everything queued is written or the stream is broken."""
        while (self._writing or self.conn.queued()) and not self.broken:
            self._to_write.unpark()
            await self._written.park()

    def _break(self) -> None:
        if not self.broken:
            self.broken = True
            self.conn.close(ConnectionLost("the connection broke"))
            self.pump()
            self._written.unpark_all()
            self.stop_reading()


class StreamCarrier(Link):
    """The link of a client, which runs by itself and closes its stream."""

    protocol = ""

    def start(self, nursery: trio.Nursery) -> None:
        for run in (self.write, self.tick, self.read):
            nursery.start_soon(run)

    async def aclose(self) -> None:
        self.stop_reading()
        await self._stream.aclose()
