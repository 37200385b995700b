"""The trio side of a `Runtime`: its clocks, threads and waits, and a task for each of its jobs.

1. Nothing here knows a transport. Each transport adds `pump`, `write_blocked` and `drain`.
2. Context variables that one handler sets aren't visible to the next one. Handle each event in its
   own copy of the context, because a plain `def` handler runs in the task that read the message.
3. A job (a server's handler, or a client's callback) runs in a task with its own cancel scope, and
   decides what becomes of an exception. Only trio's cancellation propagates, because it belongs to
   the scope that was cancelled.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from mcp_core import (
    ConnectionClosed,
    InputProblem,
    LocalProtocolError,
    MessageRejected,
    RequestCancelled,
)
from mcp_core.runtime import Runtime, Sources

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from mcp_core import Event, RequestReceived
    from mcp_core.registry import NestedRequests
    from mcp_core.runtime import Clock, Job, Reschedule, Service

    # Called when a job has ended. It may return a function that still has to be awaited, such as
    # one that writes the response.
    OnJobEnded = Callable[[], Callable[[], Coroutine[Any, Any, None]] | None]

__all__ = [
    "SYSTEM_SOURCES",
    "TrioRuntime",
    "check_trio",
    "handle_event",
    "start_job",
]

T = TypeVar("T")

_log = logging.getLogger("mcp_trio")

SYSTEM_SOURCES: Final = Sources(secrets.token_bytes, lambda: time.time())  # noqa: PLW0108 - tests replace it


def check_trio() -> None:
    """Check that the caller is a trio task.

    Raises:
        RuntimeError: it isn't.
    """
    if not trio.lowlevel.in_trio_run():
        raise RuntimeError("mcp_trio needs trio.run(); in asyncio use the package mcp_asyncio_shim")


class TrioRuntime(Runtime):
    """The runtime of one conversation.

    A subclass for each transport adds `pump`, `write_blocked` and `drain`.
    """

    sources: Sources = SYSTEM_SOURCES

    # Seconds that a handler may send without a task switch, which costs more than sending most
    # messages.
    checkpoint_interval = 0.001

    # Not trio's clock, which a test may stop: what counts is how long other tasks really waited.
    monotonic = staticmethod(time.perf_counter)

    _last_switch = 0.0  # time of the last switch to other tasks
    _trio: trio.lowlevel.TrioToken  # of the run; a transport's subclass sets it

    async def checkpoint_if_due(self) -> None:
        """Execute a checkpoint that yields to other tasks at most once per millisecond.

        Cancellation is always noticed.
        """
        # Not trio's clock, which a test may stop: the time that other tasks really waited counts.
        if time.perf_counter() - self._last_switch < self.checkpoint_interval:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await trio.lowlevel.checkpoint()
            self._last_switch = time.perf_counter()

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        _note(exc)
        _log.error("%s failed (reference %s)", request.method.name, reference, exc_info=exc)

    def report_hook(self, name: str, exc: BaseException) -> None:
        _note(exc)
        _log.error("%s failed", name, exc_info=exc)

    def warn(self, text: str) -> None:
        _log.warning("%s", text)

    def call_soon(self, function: Callable[[], object]) -> None:
        with suppress(trio.RunFinishedError):
            self._trio.run_sync_soon(function, idempotent=True)

    async def in_time(
        self, seconds: float, function: Callable[[Clock, Reschedule], Awaitable[T]]
    ) -> tuple[T] | None:
        with trio.move_on_after(seconds) as scope:

            def reschedule(deadline: float | None) -> None:
                scope.deadline = math.inf if deadline is None else deadline

            return (await function(trio.current_time, reschedule),)
        return None

    def in_thread(self, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        return trio.to_thread.run_sync(function, abandon_on_cancel=True)

    async def send_nested(self, requests: NestedRequests[T]) -> T:
        answered = trio.Event()
        timeout = math.inf if requests.seconds is None else requests.seconds
        try:
            with requests.entered(answered.set), trio.move_on_after(timeout):
                await answered.wait()
        except LocalProtocolError:
            await trio.lowlevel.checkpoint_if_cancelled()  # as below
            raise
        # A cancelled handler gets `Cancelled`, rather than the error that the client is gone.
        await trio.lowlevel.checkpoint_if_cancelled()
        return requests.result()

    def wall_time(self) -> float:
        return self.sources.wall_time()

    def entropy(self, size: int) -> bytes:
        return self.sources.entropy(size)

    @property
    def in_worker_thread(self) -> bool:
        return not trio.lowlevel.in_trio_run()

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return trio.from_thread.run(function)


def _note(exc: BaseException) -> None:
    from mcp_core.runtime import note_other_loop  # on first use: few need it

    note_other_loop(exc, "trio")


def handle_event(event: Event, service: Service) -> Job | None:
    """Handle one event as `Service.handle_event` does, and log it. This never waits.

    Run it in a context of its own (rule 2). The returned job, if any, is for `start_job`.
    """
    job = service.handle_event(event)
    if job is None:
        if isinstance(event, RequestCancelled):
            _log.debug("request %r cancelled: %s", event.id, event.reason)
        elif isinstance(event, MessageRejected):
            _log.debug("message rejected: %s", event.error)
        elif isinstance(event, InputProblem):
            _log.info("%s", event.problem)  # a flood of clients may have it
        elif isinstance(event, ConnectionClosed):
            _log.debug("conversation ended: %s", event.error)
    return job


def start_job(
    job: Job,
    nursery: trio.Nursery,
    on_ended: OnJobEnded,
    *,
    shutdown_timeout: float | None = None,
    shield: bool = False,
) -> None:
    """Run `job` in `nursery`, and call `on_ended` when it has ended.

    A function that `on_ended` returns is awaited in the same task, so that writing a response costs
    no task of its own. Cancelling the job doesn't cancel that function; cancelling the nursery
    does.

    With `shutdown_timeout` a job that starts in a cancelled nursery still gets so many seconds.
    With `shield` only `job.stop` cancels it.
    """
    scope = trio.CancelScope(shield=shield)
    job.stop = scope.cancel
    nursery.start_soon(_run, job, scope, on_ended, shutdown_timeout)


async def _run(
    job: Job, scope: trio.CancelScope, on_ended: OnJobEnded, shutdown_timeout: float | None
) -> None:
    if shutdown_timeout is not None and trio.current_effective_deadline() == -math.inf:
        job.shutting_down = True
        scope.shield = True
        scope.deadline = trio.current_time() + shutdown_timeout
    try:
        with scope:
            job.done(await job.run())
    except BaseException as exc:  # noqa: BLE001 - the job decides what becomes of it
        cancelled, rest = _split_cancelled(exc)
        try:
            if rest is not None:
                job.failed(rest)
            if cancelled is not None:
                raise cancelled from None
        finally:
            # Their tracebacks refer to this frame. In such a cycle all that the handler has held
            # would wait for the garbage collector.
            del cancelled, rest
    finally:
        job.dropped()
        finish = on_ended()
    if finish is not None:
        await finish()


def _split_cancelled(exc: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """Return the part of `exc` that is trio's cancellation, and the rest."""
    if trio.current_effective_deadline() > -math.inf:
        # This task isn't cancelled: a handler kept an old `Cancelled` and raised it again.
        return None, exc
    if isinstance(exc, BaseExceptionGroup):
        return exc.split(trio.Cancelled)
    return (exc, None) if isinstance(exc, trio.Cancelled) else (None, exc)
