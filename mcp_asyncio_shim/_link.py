"""What a machine of the core needs in asyncio, whatever feeds it: one timer, and a task for each job that comes of its events. And a
`Connection` on asyncio's streams: one task reads and feeds it, one task empties it.

Rules: whoever calls into the machine calls `pump` next, which never waits. Nothing that a job raises leaves its task, and only a
cancellation that somebody asked for travels on. A job is settled by the callback of its task, for a task that is cancelled before
its first step never runs.

Only one task writes, so that a cancelled caller cannot leave half a message behind. While the connection says `PAUSED` nothing is
read; much that is queued is a reason for it, and comes soon when the transport holds more than it likes, for then the writing
task waits in `drain`. It makes no decision of the protocol and knows neither requests nor handlers.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from mcp_core import ConnectionLost, Event, Pump
from mcp_core.runtime import Job

READ_SIZE: Final = 65_536
LAST_WRITE: Final = 1.0
T = TypeVar("T")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Carrier:
    """Serves `machine`: `run` is called after each call into it, takes the events out and acts on them; there is one timer for its
    deadlines, and a task for each of the `jobs` that come of it.
    """

    def __init__(self, machine: Any, run: Callable[[], object]) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = self.loop.time
        self.jobs: set[asyncio.Task[None]] = set()
        self._machine, self._run = machine, run
        self._moved = asyncio.Event()
        self._timer = self.loop.call_soon(self._tick)

    def pump(self) -> None:
        self._run()
        self._moved.set()
        self._moved = asyncio.Event()
        self._timer.cancel()
        deadline = self._machine.next_deadline()
        if deadline is not None:
            self._timer = self.loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._machine.handle_timeout(self.loop.time())
        self.pump()

    async def until(self, ready: Callable[[], object], seconds: float | None = None) -> None:
        """Wait for what only an event, or a call with a `pump`, can bring about; for so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not ready():
                    await self._moved.wait()

    def start_job(self, job: Job | None, pump: Callable[[], object] | None = None) -> None:
        """Run `job` in a task, if there is one, and `pump` when it is over."""
        if job is None:
            return

        def settle(task: asyncio.Task[None]) -> None:
            self.jobs.discard(task)
            job.dropped()
            (pump or self.pump)()

        task = self.loop.create_task(_work(job))
        job.stop = task.cancel
        self.jobs.add(task)
        task.add_done_callback(settle)


async def _work(job: Job) -> None:
    try:
        job.done(await job.run())
    except BaseException as exc:
        task = asyncio.current_task()
        if isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        job.failed(exc)


def apart(take: Callable[..., T]) -> Callable[..., T]:
    """`take`, in the variables of this moment. Handlers start wherever `pump` is called, out of other handlers too, whose
    variables are none of their business."""
    context = contextvars.copy_context()
    return lambda *event: context.copy().run(take, *event)


class Link(Carrier):
    """Carries `conn` over `streams`; `take` gets each event and must not wait. The task `reading` ends with the input.

    *Resource handling*: `aclose` closes the writer. *Error handling*: a broken stream closes the connection, no more.
    """

    def __init__(self, streams: Streams, conn: Any, take: Callable[[Event], object]) -> None:
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
            with suppress(OSError):
                while True:
                    await self.until(self.conn.queued)
                    self._writer.write(self.conn.data_to_send())
                    await self._writer.drain()
                    self.pump()
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
        self.pump()
        self.reading.cancel()
        self._writing.cancel()
        self._writer.write(self.conn.data_to_send())
        self._writer.close()
        closed = asyncio.gather(self._writer.wait_closed(), return_exceptions=True)
        ends: set[asyncio.Future[Any]] = {closed, self.reading, self._writing}
        try:
            await asyncio.wait(ends, timeout=patience)
        finally:
            if self._writer.transport.get_write_buffer_size():
                self._writer.transport.abort()
        await asyncio.wait(ends, timeout=LAST_WRITE)
