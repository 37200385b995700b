"""A piece of work that needs a task of its own. A driver starts every job in the same way.

In the task, a driver awaits `run` and reports the outcome. `dropped` comes last in any case::

    job.stop = cancel_the_task
    try:
        job.done(await job.run())
    except BaseException as exc:  # but not the runtime's own cancellation, which propagates
        job.failed(exc)
    finally:
        job.dropped()
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Job"]


class Job(abc.ABC):
    """A piece of work for one task. The module docstring shows how a driver runs it.

    `stop` cancels the task: the driver sets it, and anyone may call it. The driver sets
    `shutting_down` if the task starts although the conversation is already cancelled; then the job
    must not wait for a user.
    """

    __slots__ = ("shutting_down", "stop")

    def __init__(self) -> None:
        self.stop: Callable[[], object] = _nothing
        self.shutting_down = False

    @abc.abstractmethod
    async def run(self) -> Any:
        """Do the work. Await this once."""

    @abc.abstractmethod
    def done(self, result: Any) -> None:
        """Report what `run` returned."""

    @abc.abstractmethod
    def failed(self, exc: BaseException) -> None:
        """Report what `run` raised.

        Raises:
            BaseException: `exc` itself, if it must also end the driver. Each class says when.
        """

    @abc.abstractmethod
    def dropped(self) -> None:
        """Report that the task has ended: cancelled, if without `done` and `failed`."""


def _nothing() -> None:
    """Stop nothing: no driver has started the job."""
