"""Types for tasks, requests that outlive their connection: of 2025-11-25, and of the extension.

The extension belongs to 2026-07-28. Both have the same data under different names (`ttl` and
`ttlMs`, `pollInterval` and `pollIntervalMs`) and nest it differently. A value has the fields of
both, and `_revisions.py` lists those that a revision lacks. All durations are in milliseconds, all
times in ISO 8601.
Pages: basic/utilities/tasks (2025-11-25); the extension `io.modelcontextprotocol/tasks`.
"""

from typing import Literal, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from ._base import Cursor, ErrorData, NotificationParams, RequestParams, Result, Shape
from ._client import InputRequest

# A task's state. The last three are final.
TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
# Integers in the schema. A peer that computes them may send `60000.0`, which is no reason to fail.
Milliseconds: TypeAlias = int | float
# How long a task is retained. None is unlimited, UNSET is unspecified.
Ttl: TypeAlias = Milliseconds | UnsetType | None


class Task(Shape, kw_only=True):
    """A task's state.

    `ttl` or `ttl_ms` is how long it is retained after `created_at`, None for unlimited.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    status_message: str | None = None
    ttl: Ttl = UNSET
    ttl_ms: Ttl = UNSET
    poll_interval: Milliseconds | None = None
    poll_interval_ms: Milliseconds | None = None


class CreateTaskResult(Result, kw_only=True):
    """The response to a request that runs as a task.

    2025-11-25 has the state nested in `task`. The extension has it flat, with the `result_type`
    "task". A handler sets both.
    """

    task: Task | None = None
    task_id: str | None = None
    status: TaskStatus | None = None
    created_at: str | None = None
    last_updated_at: str | None = None
    status_message: str | None = None
    ttl_ms: Ttl = UNSET
    poll_interval_ms: Milliseconds | None = None


class GetTaskParams(RequestParams, kw_only=True):
    """A request for a task's state."""

    task_id: str


class GetTaskResult(Result, kw_only=True):
    """A task's state; in the extension also its outcome.

    The outcome is `input_requests` in the status "input_required", `result` in "completed"
    (undecoded, of the original request's type), and `error` in "failed".
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    status_message: str | None = None
    ttl: Ttl = UNSET
    ttl_ms: Ttl = UNSET
    poll_interval: Milliseconds | None = None
    poll_interval_ms: Milliseconds | None = None
    input_requests: dict[str, InputRequest] | None = None
    result: Raw | UnsetType = UNSET
    error: ErrorData | None = None


class GetTaskPayloadParams(RequestParams, kw_only=True):
    """A request for a task's result, answered when the task ends (2025-11-25 only)."""

    task_id: str


class GetTaskPayloadResult(Result, kw_only=True):
    """The original request's result (2025-11-25 only). Decode the JSON again as its type."""


class ListTasksResult(Result, kw_only=True):
    """One page of tasks (2025-11-25 only). `next_cursor` is set if there are more."""

    tasks: list[Task]
    next_cursor: Cursor | None = None


class CancelTaskParams(RequestParams, kw_only=True):
    """A request to cancel a task."""

    task_id: str


class CancelTaskResult(Result, kw_only=True):
    """The response to a cancellation. It has the task's state in 2025-11-25 only."""

    task_id: str | None = None
    status: TaskStatus | None = None
    created_at: str | None = None
    last_updated_at: str | None = None
    status_message: str | None = None
    ttl: Ttl = UNSET
    poll_interval: Milliseconds | None = None


class UpdateTaskParams(RequestParams, kw_only=True):
    """The input that a task requested (extension). See `InputResponseParams`."""

    task_id: str
    input_responses: dict[str, Raw]


class UpdateTaskResult(Result, kw_only=True):
    """The input was accepted (extension)."""


class TaskStatusParams(NotificationParams, kw_only=True):
    """A notification that a task's state has changed.

    Its method is `notifications/tasks/status`, in the extension `notifications/tasks`. The last
    three fields are the same as in `GetTaskResult` and belong to the extension.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    status_message: str | None = None
    ttl: Ttl = UNSET
    ttl_ms: Ttl = UNSET
    poll_interval: Milliseconds | None = None
    poll_interval_ms: Milliseconds | None = None
    input_requests: dict[str, InputRequest] | None = None
    result: Raw | UnsetType = UNSET
    error: ErrorData | None = None
