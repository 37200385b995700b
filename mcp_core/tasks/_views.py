"""The state of a task as a peer sees it, in the two forms that MCP has.

1. The form follows from the request's revision. 2025-11-25 has the state nested in the
   response to the call, and `tasks/result` for the outcome. The extension of 2026-07-28 has the
   state flat, and the outcome inside the state.
2. A tool result with `isError` is "failed" in 2025-11-25 and "completed" in the extension. In both
   it is the result that the client gets.

The values have the fields of both forms. `Dialect.fit` removes those that a revision lacks.
Pages: basic/utilities/tasks (2025-11-25); the extension `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from mcp_core import types as t
from mcp_core._errors import LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import MAX_SAFE_INTEGER, encode, reader
from mcp_core.types import TaskStatus

from ._states import INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.protocol.revisions._dialects import Dialect

    from ._record import TaskLimits, TaskRecord

__all__ = [
    "cancel_task_result",
    "create_task_result",
    "get_task_result",
    "listed_task",
    "poll_interval",
    "shown_status",
    "task_outcome",
    "task_status_params",
]

_TASK: Final = "task"
# The members stay encoded, so that the client gets them as they are, a large number for example.
_read_members: Final = reader(dict[str, Raw])
_read_meta: Final[Callable[[Raw | bytes], Any]] = reader(
    dict[str, Raw] | None  # type: ignore[arg-type]
)
# In the last millisecond of the year 9999: RFC 3339 has no later times.
_LATEST: Final = 253_402_300_799.9995


def poll_interval(record: TaskRecord, now: float, limits: TaskLimits) -> float:
    """Return the interval, in seconds, at which the client is asked to poll."""
    tenth = (now - record.created) / 10
    return min(max(tenth, limits.poll_interval), limits.max_poll_interval)


def shown_status(record: TaskRecord, dialect: Dialect) -> TaskStatus:
    """Return the status as the revision defines it: rule 2."""
    if record.is_error and dialect.tasks == "requested":
        return "failed"
    return record.status


def create_task_result(
    record: TaskRecord,
    dialect: Dialect,
    now: float,
    limits: TaskLimits,
    immediate_response: str | None = None,
) -> t.CreateTaskResult:
    """Return the response to the request that created the task.

    `immediate_response` is a text for the model, which it reads while the task runs. The extension
    has no such text.
    """
    state = _state(record, dialect, now, limits)
    if dialect.tasks == "requested":
        meta = (
            None if immediate_response is None else {t.META_IMMEDIATE_RESPONSE: immediate_response}
        )
        return t.CreateTaskResult(meta=meta, task=t.Task(**state))
    del state["ttl"], state["poll_interval"]
    return t.CreateTaskResult(result_type=_TASK, **state)


def get_task_result(
    record: TaskRecord, dialect: Dialect, now: float, limits: TaskLimits
) -> t.GetTaskResult:
    """Return the response to `tasks/get`."""
    return t.GetTaskResult(**_state(record, dialect, now, limits), **_outcome(record, dialect))


def task_status_params(
    record: TaskRecord, dialect: Dialect, now: float, limits: TaskLimits
) -> t.TaskStatusParams:
    """Return the params of a notification that the task has changed."""
    return t.TaskStatusParams(**_state(record, dialect, now, limits), **_outcome(record, dialect))


def listed_task(record: TaskRecord, dialect: Dialect, now: float, limits: TaskLimits) -> t.Task:
    """Return the entry of `tasks/list`."""
    return t.Task(**_state(record, dialect, now, limits))


def cancel_task_result(
    record: TaskRecord, dialect: Dialect, now: float, limits: TaskLimits
) -> t.CancelTaskResult:
    """Return the response to `tasks/cancel`: in the extension without any member."""
    state = _state(record, dialect, now, limits)
    del state["ttl_ms"], state["poll_interval_ms"]
    return t.CancelTaskResult(**state)


def task_outcome(record: TaskRecord) -> dict[str, Any] | t.ErrorData:
    """Return the response to `tasks/result` of an ended task: the original request's response.

    A result names its task in `_meta`; its members are encoded. A cancelled task has the error
    -32603.

    Raises:
        LocalProtocolError: the task hasn't ended, or the record is without its result.
        InvalidPayload: the result's `_meta` isn't an object.
    """
    if record.error is not None:
        return record.error
    if record.status == "cancelled":
        text = "The task was cancelled"
        return t.ErrorData(INTERNAL_ERROR, f"{text}: {record.message}" if record.message else text)
    if not isinstance(record.result, Raw):
        raise LocalProtocolError(f"a task that is {record.status} has no result here")
    members: dict[str, Any] = _read_members(record.result)
    meta = _read_meta(members.get("_meta", b"null")) or {}
    return {**members, "_meta": {**meta, t.META_RELATED_TASK: {"taskId": record.id}}}


def _state(record: TaskRecord, dialect: Dialect, now: float, limits: TaskLimits) -> dict[str, Any]:
    ttl = _milliseconds(record.ttl)
    interval = _milliseconds(poll_interval(record, now, limits))
    created = _iso(record.created)
    return {
        "task_id": record.id,
        "status": shown_status(record, dialect),
        "status_message": record.message,
        "created_at": created,
        "last_updated_at": created if record.updated == record.created else _iso(record.updated),
        "ttl": ttl,
        "ttl_ms": ttl,
        "poll_interval": interval,
        "poll_interval_ms": interval,
    }


def _outcome(record: TaskRecord, dialect: Dialect) -> dict[str, Any]:
    if dialect.tasks == "requested":
        return {}  # rule 1
    result = record.result
    if isinstance(result, Raw) and dialect.result_type:
        # It is the response that the request would have had, so it has its kind, as any response
        # of the revision. Clients that check it by the schema refuse one without.
        members = _read_members(result)
        if "resultType" not in members:
            result = Raw(encode({"resultType": dialect.result_type, **members}))
    return {
        "input_requests": record.open_requests or None,
        "result": result,
        "error": record.error,
    }


def _milliseconds(seconds: float) -> int:
    """Return a positive integer: 0 would be "already over", or "poll without a pause"."""
    return round(min(max(seconds * 1000, 1), MAX_SAFE_INTEGER))


def _iso(seconds: float) -> str:
    """Return a time as in RFC 3339, in milliseconds."""
    time = datetime.fromtimestamp(min(max(seconds, 0.0), _LATEST), UTC)
    return time.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
