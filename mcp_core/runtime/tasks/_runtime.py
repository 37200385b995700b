"""The methods that a driver adds to run tasks: jobs that outlive their connection, and waits."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.runtime._job import Job
from mcp_core.runtime._runtime import EventLike, Runtime, missing

__all__ = ["TaskRuntime"]

T = TypeVar("T")


class TaskRuntime(Runtime):
    """The runtime of all tasks of one served `Server`.

    It lives as long as the server's lifespan. All methods but `call_soon` belong to the thread of
    the event loop.

    `keys` are the server's `state_keys`, None if it was declared without. A store that other
    processes can write to signs with them.
    """

    keys: KeyRing | None = None
    event_loop: object = None  # in which it runs, to compare by identity

    @abc.abstractmethod
    def new_event(self) -> EventLike:
        """Return a new one-shot event."""

    @abc.abstractmethod
    def wait(self, event: EventLike, seconds: float | None = None) -> Coroutine[Any, Any, bool]:
        """Wait until `event` is set, or for `seconds` at most. Return True if it is set."""

    def within(
        self, seconds: float, function: Callable[[], Awaitable[T]]
    ) -> Coroutine[Any, Any, T]:
        """Await `function()`, and return its value. After `seconds` it is cancelled.

        Raises:
            TimeoutError: it was cancelled.
            Exception: any exception of `function`. A cancellation that it raises by itself isn't
                one of the caller: on asyncio it is a `RuntimeError`.
        """
        missing("limit the time of a call")

    def time_limit(self, seconds: float) -> AbstractContextManager[Callable[[], bool]]:
        """Return a block that is cancelled after `seconds`, without an exception.

        The function that it gives lifts the limit, and returns False if that was too late.
        """
        missing("limit the time of a block")

    @abc.abstractmethod
    def in_store_thread(self, function: Callable[[], T]) -> Awaitable[T]:
        """Run `function`, which blocks, in a thread that no handler can occupy."""

    @abc.abstractmethod
    def start_soon(self, function: Callable[[], Awaitable[object]]) -> None:
        """Run `function` in a background task, until it returns or the server's lifespan ends."""

    @abc.abstractmethod
    def checkpoint(self) -> Coroutine[Any, Any, None]:
        """Let other tasks run, if they have not for a while."""

    @abc.abstractmethod
    def start_job(self, job: Job) -> None:
        """Run `job` in a task of its own that outlives all connections."""

    @abc.abstractmethod
    def shielded(self, function: Callable[[], Awaitable[None]]) -> Coroutine[Any, Any, None]:
        """Await `function()` to its end, even if the caller is cancelled meanwhile."""
