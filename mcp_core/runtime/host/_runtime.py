"""The part of a host that a driver adds: clocks, waits, tasks and threads."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mcp_core.runtime._job import Job
from mcp_core.runtime._runtime import EventLike

__all__ = ["HostRuntime", "Signal"]

T = TypeVar("T")


class HostRuntime(abc.ABC):
    """The runtime of one host while its block runs."""

    @abc.abstractmethod
    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock."""

    @abc.abstractmethod
    def wall_time(self) -> float:
        """Return the seconds since 1970."""

    @abc.abstractmethod
    def new_event(self) -> EventLike:
        """Return an event that isn't set."""

    @abc.abstractmethod
    async def wait(self, event: EventLike, seconds: float | None) -> None:
        """Wait until `event` is set, for `seconds` at most; None for no limit."""

    @abc.abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""

    @abc.abstractmethod
    def start_job(self, job: Job) -> None:
        """Run `job` in a task that is cancelled when the block of the host ends."""

    @abc.abstractmethod
    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run `function`, which may block, in a worker thread, and return its result."""

    @abc.abstractmethod
    def log_error(self, problem: str, error: BaseException) -> None:
        """Log `error`, which no caller gets; `problem` says what has failed."""

    @abc.abstractmethod
    def log_warning(self, text: str) -> None:
        """Log the warning `text` for the program's author."""


class Signal:
    """Wakes all tasks that wait, any number of times.

    Args:
        new_event: makes an event, as `HostRuntime.new_event`.
    """

    def __init__(self, new_event: Callable[[], EventLike]) -> None:
        self._new_event = new_event
        self._event = new_event()

    def notify(self) -> None:
        """Wake the tasks that wait now."""
        event, self._event = self._event, self._new_event()
        event.set()

    def wait(
        self, wait: Callable[[EventLike, float | None], Awaitable[None]], seconds: float | None
    ) -> Awaitable[None]:
        """Wait for the next `notify`, for `seconds` at most, with `HostRuntime.wait`."""
        return wait(self._event, seconds)
