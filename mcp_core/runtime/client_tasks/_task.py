"""A task of the server, as its client sees it: `ClientTask`, and the reference to find it again."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import UNSET, Struct

from mcp_core import types as t
from mcp_core._errors import LocalProtocolError, McpTrioError
from mcp_core._patterns import compile_on_first_use
from mcp_core.client._calls import CallOptions, CallSteps
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.tasks._record import FINAL_STATUSES

if TYPE_CHECKING:
    from msgspec import Raw

    from mcp_core.client._calls import PendingCall

__all__ = ["ClientTask", "InvalidTaskReference", "TaskReference", "TaskState", "TaskSteps"]

_PREFIX: Final = "mcp-task:1:"
_REFERENCE: Final = compile_on_first_use(re.escape(_PREFIX) + r"[A-Za-z0-9_-]+={0,2}", re.ASCII)
# Seconds. Servers that name no interval are polled once a second. An interval below 50 ms would
# keep both sides busy with polling.
_DEFAULT_INTERVAL: Final = 1.0
_MIN_INTERVAL: Final = 0.05
# A longer one is a mistake, such as nanoseconds for milliseconds. One request an hour costs
# nothing.
_MAX_INTERVAL: Final = 3600.0
# A longer time to live is cut, so that it can be added to a clock: no client lives as long.
_MAX_TTL: Final = 1e9


class InvalidTaskReference(McpTrioError, ValueError):
    """The text isn't a reference of a task, or it was cut or altered."""

    __module__ = "mcp_core.runtime"  # which exports it, for tracebacks and pickle


class TaskReference(Struct, frozen=True):
    """The content of `ClientTask.reference`: no URL, and no secret but the id.

    `str()` of it is the reference.

    Args:
        id: the task id.
        tool: the tool's name; "" if it isn't known.
        revision: the revision in which the task was created. No other revision finds it.
        created: when the server created the task, by its clock (RFC 3339).
        ttl: milliseconds that the server keeps it after that; None if it doesn't say.
    """

    id: str
    tool: str
    revision: str
    created: str
    # An integer stays one, so that the text doesn't change when it is read and written again.
    ttl: int | float | None = None

    @classmethod
    def parse(cls, text: str) -> TaskReference:
        """Read a reference.

        Args:
            text: the reference.

        Raises:
            InvalidTaskReference: the text isn't a reference.
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

    def __repr__(self) -> str:
        return f"<TaskReference of {self.tool!r}>"  # the id may be enough to read the result

    def __str__(self) -> str:
        return _PREFIX + urlsafe_b64encode(encode(self)).decode().rstrip("=")


_read_reference = reader(TaskReference)


class TaskState(NamedTuple):
    """The state of a task at one time."""

    # As in the specification.
    status: t.TaskStatus
    # The status message, for people, or None.
    message: str | None


class TaskSteps(Protocol):
    """The part of `TaskPoller` that a `ClientTask` needs. `TaskPoller` documents each member."""

    def follow(self, task: ClientTask, /) -> CallSteps[t.CallToolResult]: ...

    def advance(self, task: ClientTask, /) -> CallSteps[None]: ...

    def refresh(self, task: ClientTask, /) -> CallSteps[None]: ...

    def cancel(self, task: ClientTask, /) -> CallSteps[None]: ...


class ClientTask:
    """A call of a tool that the server runs as a task: from `Client.start_tool` or `Client.task`.

    It does nothing by itself: await `result`, or take `states`. The server keeps the task for
    `ttl` seconds, whether its client is connected or not.

    Args:
        steps: the steps for calls about it.
        run: runs the steps of a call.
        task: the task's state.
        tool: the tool's name.
        revision: the revision in which the task was created.
        now: the time, monotonic, in seconds.
        meanwhile: a text for the model to read while the task runs, or None.
        options: the options of each call about the task.

    Attributes:
        id: the task id. It may be enough to read the result: treat it as a secret.
        tool: the tool's name.
        status: the status when the server was last asked.
        message: the status message of that time, for people, or None.
        ttl: seconds that the server keeps the task after it was created, None if it doesn't say.
        meanwhile: a text for the model to read while the task runs (2025-11-25), or None.
    """

    def __init__(
        self,
        steps: TaskSteps,
        run: Callable[[CallSteps[Any], CallOptions], Coroutine[Any, Any, Any]],
        task: t.Task,
        tool: str,
        revision: str,
        now: float,
        meanwhile: str | None = None,
        options: CallOptions | None = None,
    ) -> None:
        self._steps = steps
        self._run = run
        self.id = task.task_id
        self.tool = tool
        self.status: t.TaskStatus = task.status
        self.message = task.status_message
        self.ttl: float | None = None
        self.meanwhile = meanwhile
        self.revision = revision
        self.interval = _DEFAULT_INTERVAL
        self.final: t.CallToolResult | None = None
        self.error: t.ErrorData | None = None
        # The rest is for `TaskPoller`. The clock is the client's own: the server's may be wrong.
        self._began = now
        self.options: CallOptions = options or {}
        self.wake: Callable[[], object] = _nothing  # ends the wait for the next poll
        self.end_progress: Callable[[], object] = _nothing  # its progress isn't followed any more
        self.waiting: list[PendingCall[Any]] | None = None  # while another call takes the next step
        self.polls = 0
        self.failures = 0  # of requests about this task, in a row
        # The last full state, from `tasks/get` of the extension; None if it isn't known.
        self.latest: t.GetTaskResult | None = None
        # For each input request that has a response: the digest of its key, and its own digest.
        self.answered: dict[bytes, bytes] = {}
        self.responses: dict[str, Raw] = {}  # those that the server hasn't confirmed
        self._created = task.created_at
        self._updated: str | None = None
        self._ttl: float | None = None
        self.update(task)

    def __repr__(self) -> str:
        return f"<ClientTask of {self.tool!r} {self.status}>"

    @property
    def ended(self) -> bool:
        """True if the status is final: "completed", "failed" or "cancelled"."""
        return self.status in FINAL_STATUSES

    @property
    def settled(self) -> bool:
        """True if the task has ended, and its result or error is known."""
        return self.final is not None or self.error is not None or self.status == "cancelled"

    @property
    def state(self) -> TaskState:
        """The status and the message."""
        return TaskState(self.status, self.message)

    @property
    def reference(self) -> str:
        """A text that `Client.task` takes to find the task on another connection, even tomorrow.

        Keep it as private as the task's result.

        Raises:
            LocalProtocolError: the server has answered at once, so that no task was created.
        """
        if not self.id:
            raise LocalProtocolError("the server has answered at once: no task was created")
        return str(TaskReference(self.id, self.tool, self.revision, self._created, self._ttl))

    async def refresh(self) -> TaskState:
        """Ask the server for the state, and return it.

        Raises:
            PeerError: the server has no such task any more (-32602).
        """
        if not self.ended:
            await self._run(self._steps.refresh(self), self.options)
        return self.state

    async def states(self) -> AsyncIterator[TaskState]:
        """Yield the state, and each change of it until the task has ended. The last one is final.

        Meanwhile requests of the task for input are answered by the client's callbacks. For
        the result await `result` afterwards.
        """
        seen = self.state
        yield seen
        while not self.ended:
            await self._run(self._steps.advance(self), {**self.options, "max_timeout": None})
            if self.state != seen:
                seen = self.state
                yield seen

    async def result(self, *, timeout: float | None = None) -> t.CallToolResult:
        """Wait for the task's end, and return its call's result.

        Requests of the task for input are answered by the client's callbacks. Any number of
        callers may wait. Giving up doesn't cancel the task.

        Args:
            timeout: seconds to wait in all; None, the default, for no limit but the time for which
                the server keeps the task.

        Raises:
            TaskCancelled: the task was cancelled.
            PeerError: the call failed with this error, or the server has no such task any more.
            CallTimeout: the task hasn't ended in time.
            InvalidToolResult: the result doesn't fit the tool's output schema.
        """
        result: t.CallToolResult = await self._run(
            self._steps.follow(self), {**self.options, "max_timeout": timeout}
        )
        return result

    async def cancel(self) -> None:
        """Cancel the task. Do nothing if it has ended.

        The server may take some time for it: `status` is then still "working".
        """
        await self._run(self._steps.cancel(self), self.options)

    def update(
        self, task: t.Task | t.GetTaskResult | t.TaskStatusParams | t.CancelTaskResult
    ) -> None:
        """Take over the state `task` that the server has sent. A final status stays (TSK-11)."""
        details = task if isinstance(task, t.GetTaskResult) else None
        if self.ended:
            if details is not None and details.status == self.status:
                self.latest = details
            return
        if task.status is None:
            return
        self.status = task.status
        self.message = task.status_message
        self._updated = task.last_updated_at
        self.latest = None if self.status == "working" else details
        if self.status in FINAL_STATUSES:
            self.end_progress()
        ttl: t.Ttl = getattr(task, "ttl_ms", UNSET)
        if ttl is UNSET:
            ttl = task.ttl
        if ttl is not UNSET:
            # Zero or less isn't a time in which a result could be fetched: it counts as no limit.
            self._ttl = None if ttl is None or ttl <= 0 else ttl
            self.ttl = None if self._ttl is None else min(self._ttl, _MAX_TTL * 1000) / 1000
        interval = getattr(task, "poll_interval_ms", None)
        if interval is None:
            interval = task.poll_interval
        if interval is not None:
            seconds = min(interval, _MAX_INTERVAL * 1000) / 1000
            self.interval = max(seconds, _MIN_INTERVAL)

    def knows(self, status: t.TaskStatusParams) -> bool:
        """Return True if the notification `status` has nothing new."""
        return (
            status.status == self.status
            and status.status_message == self.message
            and status.last_updated_at == self._updated
        )

    def end_with(self, outcome: t.CallToolResult | t.ErrorData) -> None:
        """Take over `outcome`, the response to `tasks/result` (2025-11-25)."""
        status: t.TaskStatus = "completed"
        if isinstance(outcome, t.ErrorData):
            self.error = None if self.status == "cancelled" else outcome
            status = "failed"
        else:
            self.final = outcome
            if outcome.is_error:
                status = "failed"
        if not self.ended:
            self.status = status
            self.message = None  # it was about the earlier status
            self.end_progress()

    def seconds_left(self, now: float) -> float | None:
        """Return the seconds that are left of the time to live, or None if it has no limit."""
        return None if self.ttl is None else self._began + self.ttl - now


def _nothing() -> None:
    """Wake no call: none waits for the task."""
