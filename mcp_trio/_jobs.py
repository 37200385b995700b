"""A task and a cancel scope for each job of the core's: an answer to a peer that takes its time, a server's or a client's.

Rule of this file: what becomes of an exception is the job's to decide. Only trio's own cancellation travels on by itself, for
it belongs to whoever cancelled.

The task of a job is there anyway when the job is over: what has to be waited for then, such as the writing of its answer, may
use it, and costs no task of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcp_core.runtime import Job

    # What is called when a job is over, and gives what has to be waited for then.
    After = Callable[[], Callable[[], Coroutine[Any, Any, None]] | None]

__all__ = ["start_job"]


def start_job(
    job: Job, nursery: trio.Nursery, after: After, *, shutdown_timeout: float | None = None
) -> None:
    """Run `job` in `nursery`, and call `after` when it is over. What that returns is awaited, too,
    unless the nursery is cancelled.

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
    except BaseException as exc:  # noqa: BLE001 - the rule
        cancelled, rest = _split(exc)
        if rest is not None:
            job.failed(rest)
        if cancelled is not None:
            raise cancelled from None
    finally:
        job.dropped()
        finish = after()
    if finish is not None:
        await finish()


def _split(exc: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """The part of `exc` that is trio's cancellation, and the rest."""
    if trio.current_effective_deadline() > -math.inf:
        return None, exc  # nobody has cancelled this task: a handler kept a `Cancelled` and raised it again
    if isinstance(exc, BaseExceptionGroup):
        return exc.split(trio.Cancelled)
    return (exc, None) if isinstance(exc, trio.Cancelled) else (None, exc)
