"""The trio side of a `Runtime`: threads, clocks, waiting for a client's answers, and the log.

1. Nothing here knows a transport. Each transport adds `pump`, `full` and `drain`.
2. Context variables that one handler sets are not visible to the next one. Handle each event in its
   own copy of the context, because a plain `def` handler runs in the task that read the message.
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
    from mcp_core.registry import NestedRequests
    from mcp_core.runtime import RequestJob, Service

__all__ = ["TrioRuntime", "act_on"]

T = TypeVar("T")

_log = logging.getLogger("mcp_trio")


class TrioRuntime(Runtime):
    """The runtime of one conversation. A transport's subclass adds `pump`, `full` and `drain`."""

    # Seconds that a handler may send without a task switch, which costs more than sending most
    # messages.
    breath = 0.001

    _last_switch = 0.0  # time of the last switch to other tasks
    _trio: trio.lowlevel.TrioToken  # of the run; a transport's subclass sets it

    async def breathe(self) -> None:
        """Execute a checkpoint that yields to other tasks at most once per millisecond.

        Cancellation is always noticed.
        """
        # Not trio's clock, which a test may stop: the time that other tasks really waited counts.
        if time.perf_counter() - self._last_switch < self.breath:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await trio.lowlevel.checkpoint()
            self._last_switch = time.perf_counter()

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        _log.error("%s failed (reference %s)", request.method.name, reference, exc_info=exc)

    def soon(self, function: Callable[[], object]) -> None:
        with suppress(trio.RunFinishedError):
            self._trio.run_sync_soon(function, idempotent=True)

    def in_thread(self, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        return trio.to_thread.run_sync(function, abandon_on_cancel=True)

    async def ask(self, asked: NestedRequests[T]) -> T:
        answered = trio.Event()
        timeout = math.inf if asked.seconds is None else asked.seconds
        try:
            with asked.under_way(answered.set), trio.move_on_after(timeout):
                await answered.wait()
        except LocalProtocolError:
            await trio.lowlevel.checkpoint_if_cancelled()  # as below
            raise
        # A cancelled handler gets `Cancelled`, rather than the error that the client is gone.
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
    """Handle one event as `Service.take` does, and log it. This never waits.

    Run it in a context of its own (rule 2). The returned job, if any, is for `start_job`.
    """
    job = service.take(event)
    if job is None:
        if isinstance(event, RequestCancelled):
            _log.debug("request %r cancelled: %s", event.id, event.reason)
        elif isinstance(event, MessageRejected):
            _log.debug("message rejected: %s", event.error)
        elif isinstance(event, ConnectionClosed):
            _log.debug("conversation ended: %s", event.error)
    return job
