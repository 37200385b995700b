"""Run each job of the core in a task with its own cancel scope.

A job is the answer to a request that takes time: a server's handler, or a client's callback. The
job decides what becomes of an exception. Only trio's cancellation propagates, because it belongs to
the scope that was cancelled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcp_core.runtime import Job

    # Called when a job has ended. It may return a function that still has to be awaited, such as
    # one that writes the response.
    After = Callable[[], Callable[[], Coroutine[Any, Any, None]] | None]

__all__ = ["start_job"]


def start_job(
    job: Job, nursery: trio.Nursery, after: After, *, shutdown_timeout: float | None = None
) -> None:
    """Run `job` in `nursery`, and call `after` when it has ended.

    A function that `after` returns is awaited in the same task, so that writing a response costs no
    task of its own. Cancelling the job does not cancel that function; cancelling the nursery does.

    With `shutdown_timeout` a job that starts in a cancelled nursery still gets so many seconds.
    """
    scope = trio.CancelScope()
    job.stop = scope.cancel
    nursery.start_soon(_run, job, scope, after, shutdown_timeout)


async def _run(job: Job, scope: trio.CancelScope, after: After, shutdown_timeout: float | None) -> None:
    if shutdown_timeout is not None and trio.current_effective_deadline() == -math.inf:
        job.shutting_down = True
        scope.shield = True
        scope.deadline = trio.current_time() + shutdown_timeout
    try:
        with scope:
            job.done(await job.run())
    except BaseException as exc:  # noqa: BLE001 - the job decides what becomes of it
        cancelled, rest = _split_cancelled(exc)
        if rest is not None:
            job.failed(rest)
        if cancelled is not None:
            raise cancelled from None
    finally:
        job.dropped()
        finish = after()
    if finish is not None:
        await finish()


def _split_cancelled(exc: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """Return the part of `exc` that is trio's cancellation, and the rest."""
    if trio.current_effective_deadline() > -math.inf:
        # This task is not cancelled: a handler kept an old `Cancelled` and raised it again.
        return None, exc
    if isinstance(exc, BaseExceptionGroup):
        return exc.split(trio.Cancelled)
    return (exc, None) if isinstance(exc, trio.Cancelled) else (None, exc)
