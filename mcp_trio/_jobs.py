"""A task and a cancel scope for each job of the core's: an answer to a peer that takes its time, a server's or a client's.

Rule of this file: what becomes of an exception is the job's to decide. Only trio's own cancellation travels on by itself, for
it belongs to whoever cancelled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import Answering
    from mcp_core.registry import Job

__all__ = ["start_job"]


def start_job(job: Job | Answering, nursery: trio.Nursery, after: Callable[[], object]) -> None:
    """Run `job` in `nursery`, and call `after` when it is over."""
    scope = trio.CancelScope()
    job.stop = scope.cancel
    nursery.start_soon(_run, job, scope, after)


async def _run(job: Job | Answering, scope: trio.CancelScope, after: Callable[[], object]) -> None:
    try:
        with scope:
            job.done(await job)
    except BaseException as exc:  # noqa: BLE001 - the rule
        cancelled, rest = _split(exc)
        if rest is not None:
            job.failed(rest)
        if cancelled is not None:
            raise cancelled from None
    finally:
        job.dropped()
        after()


def _split(exc: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """The part of `exc` that is trio's cancellation, and the rest."""
    if trio.current_effective_deadline() > -math.inf:
        return None, exc  # nobody has cancelled this task: a handler kept a `Cancelled` and raised it again
    if isinstance(exc, BaseExceptionGroup):
        return exc.split(trio.Cancelled)
    return (exc, None) if isinstance(exc, trio.Cancelled) else (None, exc)
