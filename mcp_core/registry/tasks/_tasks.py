"""A server's tasks: the option `Server(tasks=...)`, and a task as its handler sees it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Raw, Struct

from mcp_core.protocol.messages._events import RequestReceived
from mcp_core.tasks._record import TaskLimits
from mcp_core.tasks._store import TaskStore

if TYPE_CHECKING:
    from mcp_core.types import InputRequest, LoggingLevel

__all__ = ["CurrentTask", "DetachableJob", "RunningTaskLike", "TaskOwner", "Tasks"]

# Returns the owner of a request's tasks, given the default one.
TaskOwner: TypeAlias = Callable[[RequestReceived, str], str]


class Tasks(Struct, frozen=True, kw_only=True):
    """Where a server keeps its tasks, and how many.

    Args:
        store: keeps the records; in the process's memory if None. A store is opened and
            closed with the server's lifespan.
        limits: upper bounds, the defaults of `TaskLimits` if None.
        owner: called with a request and the default owner of its tasks, to return another one. A
            task is visible to requests of its owner only. By default the owner is the authorized
            user with their client; without authorization it is one session of 2025-11-25 over
            HTTP, whose end removes its tasks, and else a single owner, "": then the task's id,
            which cannot be guessed, is what gives access to it.
    """

    store: TaskStore | None = None
    limits: TaskLimits | None = None
    owner: TaskOwner | None = None


class CurrentTask(Protocol):
    """A handler's task, as `Context.task`."""

    @property
    def id(self) -> str:
        """The task id."""

    @property
    def cancelled(self) -> bool:
        """True if the task has ended already, so that what the handler returns is dropped.

        Its client has cancelled it, or it is over its time to live.
        """

    def message(self, text: str) -> Coroutine[Any, Any, None]:
        """Set the status message to `text`, which clients show to their users.

        Of several messages within a second the last one is stored.
        """


class RunningTaskLike(CurrentTask, Protocol):
    """The part of `mcp_core.runtime.tasks.RunningTask` that a `Context` needs."""

    def progress(
        self, progress: float, total: float | None, message: str | None, /
    ) -> Coroutine[Any, Any, None]:
        """Report progress, as the status message."""

    def progress_nowait(self, progress: float, total: float | None, message: str | None, /) -> None:
        """Report progress without waiting."""

    def log(
        self, level: LoggingLevel, data: Any, logger: str | None, /
    ) -> Coroutine[Any, Any, None]:
        """Send a log message to the client that has created the task, if it can get one."""

    def log_nowait(self, level: LoggingLevel, data: Any, logger: str | None, /) -> None:
        """Send a log message without waiting."""

    def request_input(
        self, requests: Mapping[str, InputRequest], /
    ) -> Coroutine[Any, Any, dict[str, Raw]]:
        """Show input requests to the client, and return their responses by key.

        If the task has ended, the handler is cancelled.

        Raises:
            LocalProtocolError: there are too many input requests.
        """


class DetachableJob(Protocol):
    """The part of `mcp_core.runtime.tasks.TaskJob` that a `Context` needs."""

    def detach(self) -> Coroutine[Any, Any, bool]:
        """Make the call a task, and answer its request. Return False if it stays a call."""
