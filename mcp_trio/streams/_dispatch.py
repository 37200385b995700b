"""Run the request handlers of one server conversation over a `Link`.

1. No exception of a handler leaves its task, `SystemExit` and `KeyboardInterrupt` included. Only
   trio's cancellation propagates, because it belongs to the scope that was cancelled.
2. An `async def` handler costs one task and one cancel scope. A plain `def` handler costs neither:
   it runs at once, in the task that read the message.

`mcp_core.runtime.Service` decides which requests exist and how each is answered.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING

import trio

from mcp_core.runtime import LAST_GRACE
from mcp_trio._runtime import TrioRuntime, handle_event, start_job

if TYPE_CHECKING:
    from mcp_core import Event
    from mcp_core.runtime import ServedServer
    from mcp_core.types import RequestId

    from ._link import Link

__all__ = ["Dispatch"]


class _LinkRuntime(TrioRuntime):
    """The runtime of one conversation over a `Link`."""

    def __init__(self, link: Link) -> None:
        self._trio = trio.lowlevel.current_trio_token()
        self._link = link

    def pump(self) -> None:
        self._link.pump()

    def write_blocked(self, id: RequestId | None) -> bool:
        return self._link.write_blocked

    async def drain(self, id: RequestId) -> None:
        await self.checkpoint_if_due()
        await self._link.drain()


class Dispatch:
    """The running handlers of one conversation, as tasks of `nursery`.

    Call `serve` before the first event.
    """

    def __init__(self, served: ServedServer, nursery: trio.Nursery) -> None:
        self._served = served
        self._nursery = nursery
        self._became_idle = trio.lowlevel.ParkingLot()

    def __repr__(self) -> str:
        return f"<Dispatch of {self._service!r}>"

    def serve(self, link: Link) -> None:
        """Attach the link that carries the conversation. Call it once."""
        self._link = link
        self._service = self._served.service(link.conn, _LinkRuntime(link))

    def handle_event(self, event: Event) -> None:
        """Handle one event of the connection. It may start a task, and never waits."""
        job = contextvars.copy_context().run(handle_event, event, self._service)
        if job is not None:
            start_job(job, self._nursery, self._job_ended)

    def stop(self) -> None:
        """Cancel all running handlers."""
        self._service.stop()

    async def end(self) -> None:
        """Wait until the handlers, which are cancelled, have ended. Report those that don't."""
        if self._service.idle:
            return
        # Shielded: the nursery waits for them anyway, and so the log says for which.
        with trio.move_on_after(LAST_GRACE, shield=True):
            await self.idle()
        self._service.warn_of_running()

    async def idle(self) -> None:
        """Wait until no handler runs."""
        while not self._service.idle:
            await self._became_idle.park()

    def _job_ended(self) -> None:
        self._link.pump()
        if self._service.idle:
            self._became_idle.unpark_all()
