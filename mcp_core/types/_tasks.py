"""Tasks: requests that outlive their connection, as 2025-11-25 and as the extension of 2026-07-28 have them.

Rules: the two name the same facts differently (`ttl` and `ttlMs`, `pollInterval` and `pollIntervalMs`) and
nest them differently. A value has the fields of both; the gates leave out what the peer's kind lacks. All
durations are milliseconds and all times ISO 8601. This file does not know which states follow each other.
Pages: basic/utilities/tasks (2025-11-25); the extension `io.modelcontextprotocol/tasks`.
"""

from typing import Literal, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from ._base import Cursor, ErrorData, NotificationParams, RequestParams, Result, Shape
from ._client import InputRequest

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
# How long a task is kept; None is for ever, UNSET is not said.
Ttl: TypeAlias = int | UnsetType | None


class Task(Shape, kw_only=True):
    """The state of a task. `ttl` / `ttl_ms`: how long it is kept after `created_at`, None for ever."""

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    status_message: str | None = None
    ttl: Ttl = UNSET
    ttl_ms: Ttl = UNSET
    poll_interval: int | None = None
    poll_interval_ms: int | None = None


class CreateTaskResult(Result, kw_only=True):
    """A request was accepted and runs as a task.

    2025-11-25 nests the state in `task`; the extension has it flat, with the `result_type` "task". Who
    answers gives both.
    """

    task: Task | None = None
    task_id: str | None = None
    status: TaskStatus | None = None
    created_at: str | None = None
    last_updated_at: str | None = None
    status_message: str | None = None
    ttl_ms: Ttl = UNSET
    poll_interval_ms: int | None = None


class GetTaskParams(RequestParams, kw_only=True):
    """Asks for the state of a task."""

    task_id: str


class GetTaskResult(Result, kw_only=True):
    """The state of a task; in the extension with what came of it.

    That is `input_requests` while it is "input_required", `result` (undecoded, of the request that made the
    task) once it is "completed", `error` once it is "failed".
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    status_message: str | None = None
    ttl: Ttl = UNSET
    ttl_ms: Ttl = UNSET
    poll_interval: int | None = None
    poll_interval_ms: int | None = None
    input_requests: dict[str, InputRequest] | None = None
    result: Raw | UnsetType = UNSET
    error: ErrorData | None = None


class GetTaskPayloadParams(RequestParams, kw_only=True):
    """Waits for a task's end and asks for its result (2025-11-25 only)."""

    task_id: str


class GetTaskPayloadResult(Result, kw_only=True):
    """The result of the request that made the task: read the JSON again as its type (2025-11-25 only)."""


class ListTasksResult(Result, kw_only=True):
    """One page of tasks (2025-11-25 only). `next_cursor` is there if more follow."""

    tasks: list[Task]
    next_cursor: Cursor | None = None


class CancelTaskParams(RequestParams, kw_only=True):
    """Asks for a task to be given up."""

    task_id: str


class CancelTaskResult(Result, kw_only=True):
    """The wish was taken note of. 2025-11-25 has the state of the task here, the extension has nothing."""

    task_id: str | None = None
    status: TaskStatus | None = None
    created_at: str | None = None
    last_updated_at: str | None = None
    status_message: str | None = None
    ttl: Ttl = UNSET
    poll_interval: int | None = None


class UpdateTaskParams(RequestParams, kw_only=True):
    """Answers the questions of a task (extension). `input_responses` as in `InputResponseParams`."""

    task_id: str
    input_responses: dict[str, Raw]


class UpdateTaskResult(Result, kw_only=True):
    """The answers were taken (extension)."""


class TaskStatusParams(NotificationParams, kw_only=True):
    """The state of a task has changed: `notifications/tasks/status`, in the extension `notifications/tasks`.

    The last three fields are those of `GetTaskResult` and belong to the extension.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    status_message: str | None = None
    ttl: Ttl = UNSET
    ttl_ms: Ttl = UNSET
    poll_interval: int | None = None
    poll_interval_ms: int | None = None
    input_requests: dict[str, InputRequest] | None = None
    result: Raw | UnsetType = UNSET
    error: ErrorData | None = None
