"""The server's side of one conversation over a `Link`: its handlers, each in a task with a cancel scope if it needs one.

Rules of this file:

1. Nothing that a handler does crosses the boundary of its task, `SystemExit` and the like included. Only trio's own
   cancellation travels on, for it belongs to whoever cancelled.
2. A request costs one task and one cancel scope, and a plain `def` neither: it runs at once, where the message was read.

Which requests there are, and how each is answered, is `mcp_core.runtime.Service`.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

import trio

from mcp_core.runtime import Service

from ._jobs import start_job
from ._runtime import TrioRuntime, act_on

if TYPE_CHECKING:
    from mcp_core import Event
    from mcp_core.registry import Server
    from mcp_core.types import RequestId

    from ._link import Link

__all__ = ["Dispatch"]


class _LinkRuntime(TrioRuntime):
    """One conversation over a `Link`."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link

    def pump(self) -> None:
        self._link.pump()

    def full(self, id: RequestId) -> bool:
        return self._link.full

    async def drain(self, id: RequestId) -> None:
        await self.breathe()
        await self._link.drain()


class Dispatch:
    """Runs the handlers of one conversation in `nursery`. Call `serve` before the first event.

    `lifespan` is the value of the server's lifespan.
    """

    def __init__(self, server: Server, nursery: trio.Nursery, lifespan: Any) -> None:
        self._server = server
        self._nursery = nursery
        self._lifespan = lifespan
        self._idle = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<Dispatch of {self._service!r}>"

    def serve(self, link: Link) -> None:
        """Say over which link the conversation goes."""
        self._link = link
        self._service = Service(self._server, link.conn, _LinkRuntime(link), self._lifespan)

    def take(self, event: Event) -> None:
        """Act on one event, without waiting."""
        job = contextvars.copy_context().run(act_on, event, self._service)
        if job is not None:
            start_job(job, self._nursery, self._after)

    def stop(self) -> None:
        """Cancel all handlers."""
        self._service.stop()

    async def idle(self) -> None:
        """Wait until no handler runs."""
        while not self._service.idle:
            await self._idle.park()

    def _after(self) -> None:
        self._link.pump()
        if self._service.idle:
            self._idle.unpark_all()
