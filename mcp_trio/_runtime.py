"""What trio adds to a `Service`, whatever carries the conversation: a log, threads, the waiting for answers, names for faults.

Rules of this file:

1. Nothing here knows a wire. How what was queued gets out is said by each carrier, in `pump`, `full` and `drain`.
2. What a handler sets in its context is not for the next one, whether it has a task of its own or runs where its request was
   read: each event is acted on in a copy of the context.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from mcp_core import ConnectionClosed, LocalProtocolError, MessageRejected, RequestCancelled
from mcp_core.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcp_core import Event, RequestReceived
    from mcp_core.registry import Round
    from mcp_core.runtime import RequestJob, Service

__all__ = ["TrioRuntime", "act_on"]

T = TypeVar("T")

_log = logging.getLogger("mcp_trio")


class TrioRuntime(Runtime):
    """One conversation in this run of trio. Who carries it adds `pump`, `full` and `drain`."""

    # Seconds. A task switch costs more than most of what a handler says; who says much at once is not stopped at every word.
    breath = 0.001

    def __init__(self) -> None:
        self._trio = trio.lowlevel.current_trio_token()
        self._breathed = 0.0

    async def breathe(self) -> None:
        """A checkpoint, which lets others run only if they have not had their turn within the last millisecond."""
        # By the clock of the machine: what matters is how long others have waited, also where time stands still.
        if time.perf_counter() - self._breathed < self.breath:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await trio.lowlevel.checkpoint()
            self._breathed = time.perf_counter()

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        _log.error("%s failed (reference %s)", request.method.name, reference, exc_info=exc)

    def soon(self, function: Callable[[], object]) -> None:
        with suppress(trio.RunFinishedError):
            self._trio.run_sync_soon(function, idempotent=True)

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


def act_on(event: Event, service: Service) -> RequestJob | None:
    """Act on one event, without waiting, as `Service.take`. To be run in a context that nobody else has."""
    job = service.take(event)
    if job is None:
        if isinstance(event, RequestCancelled):
            _log.debug("request %r cancelled: %s", event.id, event.reason)
        elif isinstance(event, MessageRejected):
            _log.debug("message rejected: %s", event.error)
        elif isinstance(event, ConnectionClosed):
            _log.debug("conversation ended: %s", event.error)
    return job
