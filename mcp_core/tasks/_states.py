"""The states of a task as a table, and the one function that changes a task.

1. Role, revision and store play no part here. `_views.py` shows a record to a peer, a `TaskStore`
   keeps it.
2. There is no clock: callers pass `now`, in seconds since 1970. A clock that was set back never
   makes `updated` fall.
3. A final state is final. What a handler returns after its task was cancelled, or a response to an
   input request that has one, changes nothing.

Read the table as `TRANSITIONS[status][kind of action] -> next status`. A missing cell changes
nothing. The one exception is `ReceiveResponse`: the status becomes "working" with the last open
input request, and stays "input_required" before.

Sources: basic/utilities/tasks, Task Status Lifecycle (2025-11-25); the extension
`io.modelcontextprotocol/tasks`, Task Status Lifecycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_core._errors import Fault, LocalProtocolError
from mcp_core.types import ErrorData, InputRequest, TaskStatus

from ._record import TaskLimits, TaskRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "INTERNAL_ERROR",
    "TRANSITIONS",
    "Cancel",
    "Complete",
    "Fail",
    "ReceiveResponse",
    "RequestInput",
    "SetMessage",
    "TaskAction",
    "TaskExpired",
    "TaskLease",
    "transition",
]

# -32603 in every revision (JSON-RPC 2.0, section 5.1).
INTERNAL_ERROR: Final = -32603


class SetMessage(Struct, frozen=True):
    """Set the status message. A longer one than `TaskLimits.message` is cut off."""

    text: str


class RequestInput(Struct, frozen=True):
    """Open an input request under a new key. Does nothing if the key was used before."""

    key: str
    request: InputRequest


class ReceiveResponse(Struct, frozen=True):
    """Store the response to an open input request. Does nothing for any other key."""

    key: str
    response: Raw


class Complete(Struct, frozen=True):
    """End the task with the encoded result of its call, and a status message if there is one."""

    result: Raw
    is_error: bool = False
    message: str | None = None


class Fail(Struct, frozen=True):
    """End the task with the JSON-RPC error of its call."""

    error: ErrorData


class Cancel(Struct, frozen=True):
    """End the task because its requestor, or the server, has cancelled it."""

    message: str | None = None


class TaskLease(Struct, frozen=True):
    """Set the worker that runs the handler, and until when it is believed to be alive."""

    worker: str
    until: float


TaskAction: TypeAlias = (
    SetMessage | RequestInput | ReceiveResponse | Complete | Fail | Cancel | TaskLease
)

_OPEN: Final[Mapping[type[TaskAction], TaskStatus]] = {
    RequestInput: "input_required",
    Complete: "completed",
    Fail: "failed",
    Cancel: "cancelled",
}
TRANSITIONS: Final[Mapping[TaskStatus, Mapping[type[TaskAction], TaskStatus]]] = {
    "working": {SetMessage: "working", TaskLease: "working", **_OPEN},
    "input_required": {
        SetMessage: "input_required",
        TaskLease: "input_required",
        ReceiveResponse: "working",
        **_OPEN,
    },
    "completed": {},
    "failed": {},
    "cancelled": {},
}


class TaskExpired(Exception):
    """The task is over its time to live: it has to be removed, and is unknown to its client."""


def transition(
    record: TaskRecord, action: TaskAction, now: float, limits: TaskLimits
) -> TaskRecord:
    """Return the record after an action: the same object if the action changes nothing.

    A result above `limits.result` fails the task instead.

    Raises:
        TaskExpired: the record's time to live is over.
        LocalProtocolError: the handler has requested more input than `limits` allow.
    """
    if now >= record.expires:
        raise TaskExpired
    status = TRANSITIONS[record.status].get(type(action))
    if status is None:
        return record
    changed = _apply(record, action, status, limits)
    if changed is record:
        return record
    return replace(changed, serial=record.serial + 1, updated=max(record.updated, now))


def _apply(
    record: TaskRecord, action: TaskAction, status: TaskStatus, limits: TaskLimits
) -> TaskRecord:
    if isinstance(action, SetMessage):
        changed = _with_message(record, action.text, limits)
        return record if changed.message == record.message else changed
    if isinstance(action, TaskLease):
        return replace(record, worker=action.worker, lease_until=action.until)
    if isinstance(action, RequestInput):
        return _request_input(record, action, limits)
    if isinstance(action, ReceiveResponse):
        return _receive_response(record, action)
    ended = replace(record, status=status, open_requests={}, worker="", lease_until=0.0, call=None)
    if isinstance(action, Complete):
        size = len(bytes(action.result))
        if size > limits.result:
            error = ErrorData(
                INTERNAL_ERROR,
                f"the result of the task has {size} bytes, the limit is {limits.result}",
            )
            return _apply(record, Fail(error), "failed", limits)
        ended = replace(ended, result=action.result, is_error=action.is_error)
        return _with_message(ended, action.message, limits)
    if isinstance(action, Fail):
        return _with_message(replace(ended, error=action.error), action.error.message, limits)
    return _with_message(ended, action.message, limits)


def _with_message(record: TaskRecord, text: str | None, limits: TaskLimits) -> TaskRecord:
    return record if text is None else replace(record, message=text[: limits.message])


def _request_input(record: TaskRecord, action: RequestInput, limits: TaskLimits) -> TaskRecord:
    if action.key in record.open_requests or action.key in record.responses:
        return record
    open_count = len(record.open_requests)
    if open_count >= limits.open_requests:
        raise LocalProtocolError(
            f"the task waits for {open_count} responses already, the limit is"
            f" {limits.open_requests}",
            Fault.INTERNAL,
        )
    if open_count + len(record.responses) >= limits.requests:
        raise LocalProtocolError(
            f"the task has requested input {limits.requests} times, which is the limit",
            Fault.INTERNAL,
        )
    requests = {**record.open_requests, action.key: action.request}
    return replace(record, status="input_required", open_requests=requests)


def _receive_response(record: TaskRecord, action: ReceiveResponse) -> TaskRecord:
    if action.key not in record.open_requests:
        return record
    requests = {key: value for key, value in record.open_requests.items() if key != action.key}
    return replace(
        record,
        status="input_required" if requests else "working",
        open_requests=requests,
        responses={**record.responses, action.key: action.response},
    )
