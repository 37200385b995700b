"""The trio side of `Context`: what a running handler can say to its peer.

The facts are the registry's; here is only what sends or waits. A handler that was cancelled may still call these: nothing
is sent for a request that is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from mcp_core.registry import Context

if TYPE_CHECKING:
    from mcp_core import RequestReceived
    from mcp_core.registry import Server

    from ._link import Link

__all__ = ["TrioContext"]


class TrioContext(Context):
    """A `Context` whose request came over a `Link`. Good only while the handler runs."""

    def __init__(self, request: RequestReceived, server: Server, link: Link) -> None:
        super().__init__(request, server)
        self._link = link

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._link.conn.send_progress(self.request_id, progress, total, message):
            self._link.pump()
        await self._link.drain()

    def progress_nowait(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        # Who cannot wait for a peer that does not read is not heard by it.
        if not self._link.full and self._link.conn.send_progress(self.request_id, progress, total, message):
            self._link.pump()


class ThreadContext(TrioContext):
    """The same for a handler in a worker thread: sending is handed over to trio's thread."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        raise RuntimeError("a plain def cannot await: use progress_nowait")

    def progress_nowait(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        # It may block, and so can wait for a peer that does not read.
        trio.from_thread.run(super().progress, progress, total, message)
