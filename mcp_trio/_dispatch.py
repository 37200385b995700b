"""What trio adds to a `Service`: a task and a cancel scope for each handler that needs one, threads, a log, names for faults.

Rules of this file:

1. Nothing that a handler does crosses the boundary of its task, `SystemExit` and the like included. Only trio's own
   cancellation travels on, for it belongs to whoever cancelled.
2. A request costs one task and one cancel scope, and a plain `def` neither: it runs at once, where the message was read.

Which requests there are, and how each is answered, is `mcp_core.registry.Service`.
"""

from __future__ import annotations

import contextvars
import logging
import math
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from mcp_core import ConnectionClosed, LocalProtocolError, MessageRejected, RequestCancelled
from mcp_core.registry import Runtime, Service

from ._jobs import start_job

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcp_core import Event, RequestReceived
    from mcp_core.registry import Round, Server

    from ._link import Link

__all__ = ["Dispatch"]

T = TypeVar("T")

_log = logging.getLogger("mcp_trio")


class _TrioRuntime(Runtime):
    """One conversation over a `Link`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._trio = trio.lowlevel.current_trio_token()

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        _log.error("%s failed (reference %s)", request.method.name, reference, exc_info=exc)

    def reference(self) -> str:
        return secrets.token_hex(4)

    def pump(self) -> None:
        self._link.pump()

    def soon(self, function: Callable[[], object]) -> None:
        with suppress(trio.RunFinishedError):
            self._trio.run_sync_soon(function, idempotent=True)

    @property
    def full(self) -> bool:
        return self._link.full

    def drain(self) -> Coroutine[Any, Any, None]:
        return self._link.drain()

    def in_thread(self, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        return trio.to_thread.run_sync(function, abandon_on_cancel=True)

    async def ask(self, asked: Round[T]) -> T:
        awake = trio.Event()
        limit = math.inf if asked.seconds is None else asked.seconds
        try:
            with asked.under_way(awake.set), trio.move_on_after(limit):
                await awake.wait()
        except LocalProtocolError:
            await trio.lowlevel.checkpoint_if_cancelled()  # as below
            raise
        # Who was cancelled is to hear of that, and not that there is nobody to answer any more.
        await trio.lowlevel.checkpoint_if_cancelled()
        return asked.result()

    def wall_time(self) -> float:
        return time.time()

    def entropy(self, size: int) -> bytes:
        return secrets.token_bytes(size)

    @property
    def in_worker_thread(self) -> bool:
        return not trio.lowlevel.in_trio_run()

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return trio.from_thread.run(function)


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
        self._service = Service(self._server, link.conn, _TrioRuntime(link), self._lifespan)

    def take(self, event: Event) -> None:
        """Act on one event, without waiting."""
        # What runs at once gets a context of its own, as a task would: what it sets is not for the next one.
        job = contextvars.copy_context().run(self._service.take, event)
        if job is not None:
            start_job(job, self._nursery, self._after)
        elif isinstance(event, RequestCancelled):
            _log.debug("request %r cancelled: %s", event.id, event.reason)
        elif isinstance(event, MessageRejected):
            _log.debug("message rejected: %s", event.error)
        elif isinstance(event, ConnectionClosed):
            _log.debug("conversation ended: %s", event.error)

    def close(self) -> None:
        """The conversation is over."""
        self._service.close()

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
