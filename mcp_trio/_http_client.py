"""A client's conversation over HTTP, on trio: a task for each request that is made, and one for the timer.

Rules of this file:

1. After every call into the machine comes `pump`: it starts and drops calls, takes the events out and sets the timer. It never
   waits.
2. What is begun although we are cancelled are last words, as that a session is over. They have a second.

How a call is made, on which connection, and what the machine is told of it is the core's `HttpRequestRunner`.
"""

from __future__ import annotations

import contextvars
import math
from typing import TYPE_CHECKING, Final

import trio

from mcp_core.runtime import HttpRequestRunner

from ._jobs import start_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import Event
    from mcp_core.http import HttpClient
    from mcp_core.runtime import HttpRequestJob

    from ._authorization import Authorization
    from ._dial import Way
    from ._h2_client import H2Client
    from ._h11_client import H11Client

__all__ = ["HttpCarrier"]

_LAST_WORDS: Final = 1.0


class HttpCarrier:
    """Carries the conversation of `http` on connections that are made by `way`. `take` is called for each event, in order, without
    waiting; `sent` with the body of each request. `authorization` gets the right to make requests, if the machine wants that shown.

    *Resource handling*: `aclose` closes every connection. *Error handling*: no connection is the conversation; what happens to one
    is told to the machine.
    """

    def __init__(
        self,
        http: HttpClient,
        way: Way,
        take: Callable[[Event], None],
        sent: Callable[[bytes], object] | None = None,
        authorization: Authorization | None = None,
    ) -> None:
        self._authorization = authorization
        self._way = way
        self._ended = trio.lowlevel.ParkingLot()
        self._rearmed = trio.lowlevel.ParkingLot()
        # When there is something to do, and until when `_tick` sleeps.
        self._deadline = self._armed = math.inf
        self._nursery: trio.Nursery
        # What an event leads to may start in any task, also in a caller's: it gets this context, not that task's.
        context = contextvars.copy_context()
        self._carriage: HttpRequestRunner[H11Client | H2Client] = HttpRequestRunner(
            http,
            self,
            lambda event: context.run(take, event),
            sent=sent,
            address=way.address,
            rights=authorization,
        )

    def __repr__(self) -> str:
        return f"<HttpCarrier by {self._way!r}: {self._carriage!r}>"

    @property
    def protocol(self) -> str:
        return self._carriage.protocol

    def start(self, nursery: trio.Nursery) -> None:
        self._nursery = self._way.nursery = nursery
        if self._authorization is not None:
            self._authorization.start(nursery)
        nursery.start_soon(self._tick)

    def pump(self) -> None:
        self._carriage.run()
        deadline = self._carriage.next_deadline()
        self._deadline = math.inf if deadline is None else deadline
        # It nearly always moves away, call by call; then waking for nothing once costs less than each time.
        if self._deadline < self._armed:
            self._rearmed.unpark_all()

    async def flush(self) -> None:
        while not self._carriage.idle:
            await self._ended.park()

    async def aclose(self) -> None:
        self._carriage.stop()
        try:
            await self.flush()
        finally:
            await _close(self._carriage.pool.clear())

    async def _tick(self) -> None:
        """Serve the timers until cancelled."""
        while True:
            self._armed = self._deadline
            with trio.move_on_at(self._armed):
                await self._rearmed.park()
            self._carriage.handle_timeout(trio.current_time())
            self.pump()

    async def dial(self) -> H11Client | H2Client:
        line = await self._way.dial()
        if self._authorization is not None:
            self._authorization.met_at(self._way.reached)
        return line

    clock = staticmethod(trio.current_time)
    new_event = trio.Event

    def discard(self, lines: list[H11Client | H2Client]) -> None:
        self._nursery.start_soon(_close, lines)

    def start_job(self, job: HttpRequestJob) -> None:
        start_job(job, self._nursery, self._after_job, shutdown_timeout=_LAST_WORDS)

    def _after_job(self) -> None:
        self.pump()
        self._ended.unpark_all()


async def _close(connections: list[H11Client | H2Client]) -> None:
    """Close them all, also if cancelled."""
    if connections:
        async with trio.open_nursery() as nursery:
            for connection in connections:
                nursery.start_soon(connection.aclose)
