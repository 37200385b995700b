"""A task of the server, as its client sees it: `ClientTask`, and the reference to find it again."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import UNSET, Struct

from mcp_core import types as t
from mcp_core.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.tasks._record import FINAL_STATUSES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
__all__ = ["ClientTask", "InvalidTaskReference", "TaskClientLike", "TaskState", "read_reference"]

_PREFIX: Final = "mcp-task:1:"
_REFERENCE: Final = re.compile(re.escape(_PREFIX) + r"[A-Za-z0-9_-]+={0,2}", re.ASCII)
# Seconds. Servers that name no interval are asked once a second. One that asks for a shorter one
# than 50 ms would keep both sides busy with asking.
_DEFAULT_INTERVAL: Final = 1.0
_MIN_INTERVAL: Final = 0.05
# Longer ones are cut, for the sum with a clock: no client lives as long.
_MAX_SECONDS: Final = 1e9


class InvalidTaskReference(ValueError):
    """The text is no reference of a task, or one that was cut or altered."""


class TaskReference(Struct, frozen=True):
    """What a reference of a task holds: no URL, and no secret but the id."""

    id: str
    tool: str
    revision: str
    created: str
    ttl: float | None = None


_read_reference = reader(TaskReference)


def read_reference(text: str) -> TaskReference:
    """Read `ClientTask.reference`.

    Raises:
        InvalidTaskReference: the text is no reference.
    """
    if not _REFERENCE.fullmatch(text):
        raise InvalidTaskReference(f"a reference of a task begins with {_PREFIX}")
    encoded = text.removeprefix(_PREFIX)
    try:
        reference: TaskReference = _read_reference(
            urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        )
    except (ValueError, InvalidPayload):
        raise InvalidTaskReference("the reference of a task was cut or altered") from None
    return reference


class TaskState(NamedTuple):
    """The state of a task at one time: its status, and a message for people, or None."""

    status: t.TaskStatus
    message: str | None


class TaskClientLike(Protocol):
    """The part of `AbstractClient` that a `ClientTask` needs."""

    def task_result(self, task: ClientTask, timeout: float | None, /) -> Coroutine[Any, Any, Any]:
        """Follow a task to its end, and return its result."""

    def next_task_state(self, task: ClientTask, /) -> Coroutine[Any, Any, object]:
        """Wait until the state of a task has changed, or it has ended."""

    def refresh_task(self, task: ClientTask, /) -> Coroutine[Any, Any, object]:
        """Request the state of a task once."""

    def cancel_task(self, task: ClientTask, /) -> Coroutine[Any, Any, None]:
        """Cancel a task."""


class ClientTask:
    """A call of a tool that the server runs as a task: from `Client.start_tool` or `Client.task`.

    It does nothing by itself: await `result`, or take `states`. The server keeps the task for
    `ttl` seconds, whether its client is connected or not.

    Attributes:
        id: the task id. It may be enough to read the result: treat it as a secret.
        tool: the name of the tool.
        status: the status when the server was last asked.
        message: the status message of that time, for people; None without one.
        ttl: seconds that the server keeps the task after it was created, None if it does not say.
        meanwhile: a text for the model to read while the task runs (2025-11-25), or None.
    """

    def __init__(
        self,
        client: TaskClientLike,
        task: t.Task,
        tool: str,
        revision: str,
        now: float,
        meanwhile: str | None = None,
    ) -> None:
        self._client = client
        self.id = task.task_id
        self.tool = tool
        self.status: t.TaskStatus = task.status
        self.message = task.status_message
        self.ttl: float | None = None
        self.meanwhile = meanwhile
        self.revision = revision
        self.interval = _DEFAULT_INTERVAL
        # Both for `TaskPoller`. The clock is the client's own: that of the server may be wrong.
        self.began = now
        self.answered: dict[str, bytes] = {}
        self.outcome: t.GetTaskResult | None = None  # of the extension, once the task has ended
        self.final: t.CallToolResult | None = None
        self._created = task.created_at
        self._ttl: float | None = None
        self.update(task)

    @classmethod
    def of_result(
        cls, client: TaskClientLike, result: t.CallToolResult, tool: str, revision: str, now: float
    ) -> ClientTask:
        """Return the ended task of a call that the server has answered at once. Its id is ""."""
        state = t.Task(task_id="", status="completed", created_at="", last_updated_at="")
        task = cls(client, state, tool, revision, now)
        task.final = result
        return task

    def __repr__(self) -> str:
        return f"<ClientTask of {self.tool!r} {self.status}>"

    @property
    def ended(self) -> bool:
        """True if the status is final: "completed", "failed" or "cancelled"."""
        return self.status in FINAL_STATUSES

    @property
    def state(self) -> TaskState:
        """The status and the message."""
        return TaskState(self.status, self.message)

    @property
    def reference(self) -> str:
        """A text with which `Client.task` finds the task on another connection, also tomorrow.

        Keep it as private as the result of the task.
        """
        reference = TaskReference(self.id, self.tool, self.revision, self._created, self._ttl)
        return _PREFIX + urlsafe_b64encode(encode(reference)).decode().rstrip("=")

    async def refresh(self) -> TaskState:
        """Ask the server for the state, and return it.

        Raises:
            PeerError: the server has no such task any more (-32602).
        """
        await self._client.refresh_task(self)
        return self.state

    async def states(self) -> AsyncIterator[TaskState]:
        """Yield the state, and each change of it until the task has ended. The last one is final.

        Meanwhile requests of the task for input are answered by the callbacks of the client. For
        the result await `result` afterwards.
        """
        seen = self.state
        yield seen
        while not self.ended:
            await self._client.next_task_state(self)
            if self.state != seen:
                seen = self.state
                yield seen

    async def result(self, *, timeout: float | None = None) -> t.CallToolResult:
        """Wait for the end of the task, and return the result of its call.

        Requests of the task for input are answered by the callbacks of the client. Any number of
        callers may wait. Giving up does not cancel the task.

        Args:
            timeout: seconds to wait in all; None, the default, for no limit but the time for which
                the server keeps the task.

        Raises:
            TaskCancelled: the task was cancelled.
            PeerError: the call failed with this error, or the server has no such task any more.
            CallTimeout: the task has not ended in time.
            RemoteProtocolError: the result does not fit the tool's output schema.
        """
        result: t.CallToolResult = await self._client.task_result(self, timeout)
        return result

    async def cancel(self) -> None:
        """Cancel the task. Do nothing if it has ended.

        The server may take some time for it: `status` is then still "working".
        """
        await self._client.cancel_task(self)

    def update(
        self, task: t.Task | t.GetTaskResult | t.TaskStatusParams | t.CancelTaskResult
    ) -> None:
        """Take over what the server has sent about the task. For `TaskPoller`."""
        if self.ended or task.status is None:
            return
        self.status = task.status
        self.message = task.status_message
        ttl: t.Ttl = getattr(task, "ttl_ms", UNSET)
        if ttl is UNSET:
            ttl = task.ttl
        if ttl is not UNSET:
            self._ttl = ttl
            self.ttl = None if ttl is None else min(max(ttl, 0) / 1000, _MAX_SECONDS)
        milliseconds = getattr(task, "poll_interval_ms", None) or task.poll_interval
        if milliseconds is not None:
            self.interval = min(max(milliseconds / 1000, _MIN_INTERVAL), _MAX_SECONDS)
