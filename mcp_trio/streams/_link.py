"""Run a `Connection` on a byte stream: one reader, one writer task, one timer task.

1. Only `write` calls `send_all`. A cancelled caller can therefore never leave half a message on
   the stream, and messages queued during one write leave together in the next.
2. Call `pump` after every call into the connection. It delivers events, wakes the writer and sets
   the timer, and it never waits.
3. Backpressure reaches the peer: while the connection is paused the link stops reading, and tasks
   that send much wait in `drain`.
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

__all__ = ["Link", "StreamTransport"]

_READ_SIZE: Final = 65_536  # a pipe's capacity on Linux
_CLOSED: Final = State.CLOSED
# Seconds in which a cancelled writer may still send what is queued. A peer that does not read
# delays the cancellation by no more than this.
_FLUSH_ON_CANCEL_TIMEOUT: Final = 0.2


class Link:
    """One connection on one stream.

    Run `write` and `tick` in a nursery and await `read`. Each event is passed to `on_event`, in
    order; `on_event` must not wait. The link knows neither requests nor handlers.

    *Resource handling*: the link never closes the stream. *Error handling*: a broken stream ends
    `read` and `write` without an exception. The connection is then closed with `ConnectionLost`,
    and its events report that to the calls in progress. Cancelling `write` has the same effect,
    since nothing can be sent any more.
    """

    def __init__(
        self, conn: Connection, stream: trio.abc.Stream, on_event: Callable[[Event], None]
    ) -> None:
        self.conn = conn
        self.broken = False
        self._stream = stream
        self._read_scope = trio.CancelScope()
        self._read_resumed = trio.lowlevel.ParkingLot()
        self._data_queued = trio.lowlevel.ParkingLot()
        self._data_written = trio.lowlevel.ParkingLot()
        self._deadline_changed = trio.lowlevel.ParkingLot()
        self._writing = False
        self._deadline: float | None = None
        # Handlers start inside `pump`, which may run in any task. They get the context in which
        # the link was created, not that of the task which happened to call.
        context = contextvars.copy_context()
        self._pump = Pump(conn, lambda event: context.run(on_event, event))

    def __repr__(self) -> str:
        paused = ", paused" if self._pump.paused else ""
        broken = ", broken" if self.broken else ""
        return f"<Link {self.conn!r}{paused}{broken}>"

    def pump(self) -> None:
        """Process events and wake the tasks that have work.

        Call it after any call into the connection, from any task of this run.
        """
        was_paused = self._pump.paused
        self._pump.run()
        if was_paused and not self._pump.paused:
            self._read_resumed.unpark_all()
        deadline = self.conn.next_deadline()
        if deadline != self._deadline:
            self._deadline = deadline
            self._deadline_changed.unpark_all()
        if self.conn.queued():
            self._data_queued.unpark()
        if self.conn.state is _CLOSED:
            self._read_scope.cancel()

    async def read(self) -> None:
        """Feed the connection until end of file, a broken stream, or `stop_reading`."""
        conn = self.conn
        try:
            with self._read_scope:
                while True:
                    data = await self._stream.receive_some(_READ_SIZE)
                    conn.receive_data(bytes(data), trio.current_time())
                    self.pump()
                    while self._pump.paused:
                        await self._read_resumed.park()
                    if not data:
                        return  # end of file; the connection has seen it too
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._abort()

    def stop_reading(self) -> None:
        """Make `read` return. The writer may still send what is queued."""
        self._read_scope.cancel()

    async def write(self) -> None:
        """Send what the connection queues, until cancelled or the stream breaks."""
        conn = self.conn
        try:
            while True:
                data = conn.data_to_send()
                if data:
                    self._writing = True
                    await self._stream.send_all(data)
                    # Not in a `finally`: after a cancelled `send_all` half a message may be out,
                    # and `_flush_on_cancel` has to know.
                    self._writing = False
                    if self._pump.paused:
                        self.pump()  # the queue has room again, so reading may resume
                    self._data_written.unpark_all()
                else:
                    await self._data_queued.park()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except trio.Cancelled:
            await self._flush_on_cancel()
            raise
        finally:
            # Also when cancelled: without a writer, tasks in `drain` and `flush`, which may be
            # shielded, would wait forever.
            self._abort()

    async def _flush_on_cancel(self) -> None:
        """Send what is queued, although cancelled. It may tell the peer to stop working for us."""
        if self._writing:
            return  # half a message may be out: anything after it would corrupt the stream
        with (
            trio.move_on_after(_FLUSH_ON_CANCEL_TIMEOUT, shield=True),
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
        ):
            # Tasks cancelled together with the writer may run after it and queue more, such as
            # `notifications/cancelled`. Let them run first.
            await trio.lowlevel.checkpoint()
            while data := self.conn.data_to_send():
                await self._stream.send_all(data)

    async def tick(self) -> None:
        """Call the connection's timeout handler at each deadline, until cancelled."""
        while True:
            if self._deadline is None:
                await self._deadline_changed.park()
                continue
            with trio.move_on_at(self._deadline):
                await self._deadline_changed.park()
            # Also runs when the deadline only moved: `handle_timeout` ignores early calls.
            self.conn.handle_timeout(trio.current_time())
            self.pump()

    @property
    def full(self) -> bool:
        """True if unsolicited messages, such as progress, should wait. Responses never do."""
        return self._pump.full

    async def drain(self) -> None:
        """Wait while more than the high-water mark is queued. No checkpoint if it is not."""
        while self._pump.full and not self.broken:
            await self._data_written.park()

    async def flush(self) -> None:
        """Wait until everything queued is written, or the stream is broken."""
        while (self._writing or self.conn.queued()) and not self.broken:
            self._data_queued.unpark()
            await self._data_written.park()

    def _abort(self) -> None:
        """Close the connection and release every waiting task. Idempotent."""
        if not self.broken:
            self.broken = True
            self.conn.close(ConnectionLost("the connection broke"))
            self.pump()
            self._data_written.unpark_all()
            self.stop_reading()


class StreamTransport(Link):
    """A client's link, which runs its own tasks and closes its stream."""

    protocol = ""

    def start(self, nursery: trio.Nursery) -> None:
        """Start the writer, the timer and the reader in `nursery`."""
        for run in (self.write, self.tick, self.read):
            nursery.start_soon(run)

    async def aclose(self) -> None:
        """Stop reading and close the stream. Call `flush` first to send what is queued."""
        self.stop_reading()
        await self._stream.aclose()
