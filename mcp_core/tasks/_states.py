"""The states of a task as a table, and the one function that changes a task.

1. Role, revision and store play no part here. `_views.py` shows a record to a peer, a `TaskStore`
   keeps it.
2. There is no clock: callers pass `now`, in seconds since 1970. A clock that was set back never
   makes `updated` fall.
3. A final state is final. What a handler returns after its task was cancelled, or a response to an
   input request that has one, changes nothing.
4. A record can always be encoded. A text with half of a surrogate pair, or an error with `data`
   that isn't JSON, is refused here, not when a store or a response encodes it.

Read the table as `TRANSITIONS[status][kind of action] -> next status`. A missing cell changes
nothing. The one exception is `ReceiveResponse`: the status becomes "working" with the last open
input request, and stays "input_required" before.

Sources: basic/utilities/tasks, Task Status Lifecycle (2025-11-25); the extension
`io.modelcontextprotocol/tasks`, Task Status Lifecycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_core._errors import Fault, LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import encode
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
    "transition",
]

# -32603 in every revision (JSON-RPC 2.0, section 5.1).
INTERNAL_ERROR: Final = -32603


class SetMessage(Struct, frozen=True):
    """Set the status message to `text`. A longer one than `TaskLimits.message` is cut off."""

    text: str


class RequestInput(Struct, frozen=True):
    """Open the input request `request` under a new `key`. Nothing if the key was used before."""

    key: str
    request: InputRequest


class ReceiveResponse(Struct, frozen=True):
    """Store the `response` to the open input request `key`. Nothing for any other key."""

    key: str
    response: Raw


class Complete(Struct, frozen=True):
    """End the task with the result of its call, and a summary if there is one.

    Attributes:
        result: an encoded JSON object, valid because it was encoded or checked by the caller.
        is_error: True if it is a tool result with `isError`.
        message: the status message from then on, None for none.
    """

    result: Raw
    is_error: bool = False
    message: str | None = None


class Fail(Struct, frozen=True):
    """End the task with `error`, the JSON-RPC error of its call."""

    error: ErrorData


class Cancel(Struct, frozen=True):
    """End the task because its requestor, or the server, has cancelled it, with a `message`."""

    message: str | None = None


# What can happen to a task.
TaskAction: TypeAlias = SetMessage | RequestInput | ReceiveResponse | Complete | Fail | Cancel

_OPEN: Final[Mapping[type[TaskAction], TaskStatus]] = {
    RequestInput: "input_required",
    Complete: "completed",
    Fail: "failed",
    Cancel: "cancelled",
}
# The next status of a task, by its status and the kind of an action. A missing one changes nothing.
TRANSITIONS: Final[Mapping[TaskStatus, Mapping[type[TaskAction], TaskStatus]]] = {
    "working": {SetMessage: "working", **_OPEN},
    "input_required": {
        SetMessage: "input_required",
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
    """Return `record` after `action`: the same object if the action changes nothing.

    `now` is the time in seconds since 1970.

    A result or error above `limits.result`, or responses above `limits.responses`, fail the task
    instead.

    Raises:
        TaskExpired: the record's time to live is over.
        LocalProtocolError: the handler has requested more input than `limits` allow, or a text has
            half of a surrogate pair.
        TypeError, ValueError: an input request or `ErrorData.data` isn't JSON.
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
        text = _message(action.text, limits)
        return record if text == record.message else replace(record, message=text)
    if isinstance(action, RequestInput):
        return _request_input(record, action, limits)
    if isinstance(action, ReceiveResponse):
        return _receive_response(record, action, limits)
    if isinstance(action, Complete):
        size = _size(action.result)
        if size > limits.result:
            return _fail(record, _too_large("result", size, limits.result), limits)
        message = _message(action.message, limits)
        ended = _end(record, status, message)
        return replace(ended, result=action.result, is_error=action.is_error, size=size)
    if isinstance(action, Fail):
        size = _encoded_size(action.error)
        if size > limits.result:
            return _fail(record, _too_large("error", size, limits.result), limits)
        return _fail(record, action.error, limits)
    assert isinstance(action, Cancel)
    return _end(record, status, _message(action.message, limits))


def _end(record: TaskRecord, status: TaskStatus, message: str | None) -> TaskRecord:
    # The earlier message is about progress: "page 3 of 9" is no reason and no summary. The
    # responses aren't read again, and what the call has taken is free for others.
    return replace(
        record,
        status=status,
        message=message,
        open_requests={},
        responses={},
        size=0,
        worker="",
        call=None,
    )


def _fail(record: TaskRecord, error: ErrorData, limits: TaskLimits) -> TaskRecord:
    ended = _end(record, "failed", _message(error.message, limits))
    return replace(ended, error=error, size=_encoded_size(error))


def _too_large(what: str, size: int, limit: int) -> ErrorData:
    text = f"the {what} of the task has {size} bytes, the limit is {limit}"
    if what != "input":
        text += ": the handler has run, and what it changed stays"
    return ErrorData(INTERNAL_ERROR, text)


def _message(text: str | None, limits: TaskLimits) -> str | None:
    """Return the status message for `text`, None for none."""
    if text is None:
        return None
    text = text[: limits.message]
    _encoded_size(text)
    return text


def _encoded_size(value: Any) -> int:
    """Return the size of `value` as JSON."""
    try:
        return len(encode(value))
    except UnicodeEncodeError as exc:
        raise LocalProtocolError(f"a task cannot have this text: {exc}", Fault.INTERNAL) from None


def _size(json: Raw) -> int:
    return memoryview(json).nbytes


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
    size = record.size + _encoded_size((action.key, action.request))
    requests = {**record.open_requests, action.key: action.request}
    return replace(record, status="input_required", open_requests=requests, size=size)


def _receive_response(
    record: TaskRecord, action: ReceiveResponse, limits: TaskLimits
) -> TaskRecord:
    if action.key not in record.open_requests:
        return record
    responses = {**record.responses, action.key: action.response}
    size = sum(map(_size, responses.values()))
    if size > limits.responses:
        return _fail(record, _too_large("input", size, limits.responses), limits)
    requests = {key: value for key, value in record.open_requests.items() if key != action.key}
    answered = _encoded_size((action.key, record.open_requests[action.key]))
    return replace(
        record,
        status="input_required" if requests else "working",
        open_requests=requests,
        responses=responses,
        # Not below 0: a record of an earlier version did not count what it has.
        size=max(record.size - answered, 0) + _size(action.response),
    )
