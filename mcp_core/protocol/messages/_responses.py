"""From a peer's response to our request's event.

1. An invalid result (wrong type, unknown `resultType`) fails its request with a
   `RemoteProtocolError`, and has no other effect.
2. A result without `resultType` is complete, because earlier servers send none (2026-07-28,
   basic/index, Results). Values that neither the revision nor an active extension defines are
   invalid. A `CreateTaskResult` is valid only for a request that may become a task.
3. A valid result is decoded once, directly to its type. Only one that isn't valid is read again, by
   its usable parts (`_lenient_results.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import UNSET, Struct, UnsetType, field

from mcp_core import types as t
from mcp_core._errors import PeerError, RemoteProtocolError
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.protocol.revisions._methods import Role

from ._events import NO_PROBLEMS, ErrorReceived, InputRequested, ResultReceived, TaskCreated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Raw

    from mcp_core.protocol.jsonrpc._codec import Envelope
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.protocol.revisions._methods import Method
    from mcp_core.types import RequestId

__all__ = ["OutgoingRequest", "decode_error", "read_leniently", "response_event"]

T = TypeVar("T")


class OutgoingRequest(Struct, gc=False):
    """Our own request that has no response yet."""

    method: str
    row: Method | None  # None for a custom method that isn't registered
    dialect: Dialect
    token: Any  # passed back on every event of the request
    related: RequestId | None = None  # the request of the peer during which it was sent
    wants_progress: bool = False
    progress: float | None = None  # the last value received
    may_become_task: bool = False  # the response may be a `CreateTaskResult`


class _ResultType(Struct):
    result_type: str | None = field(name="resultType", default=None)


class _FlatTask(t.Task, kw_only=True):
    """A `CreateTaskResult` of the extension."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)


class _NestedTask(Struct):
    """A `CreateTaskResult` of 2025-11-25, or the part of any other result that shows it is none."""

    task: t.Task | UnsetType = UNSET
    meta: dict[str, Any] | None = field(name="_meta", default=None)


_read_error = reader(t.ErrorData)
_read_result_type = reader(_ResultType)
_read_input_required = reader(t.InputRequiredResult)
_read_flat_task = reader(_FlatTask)
_read_nested_task = reader(_NestedTask)
_read_object = reader(dict[str, Any])

_COMPLETE: Final = "complete"
_INPUT_REQUIRED: Final = "input_required"
_TASK: Final = "task"


def response_event(
    id: RequestId, call: OutgoingRequest, envelope: Envelope
) -> ResultReceived | ErrorReceived | InputRequested | TaskCreated:
    """Return the event for the response `envelope` to our request."""
    if envelope.result is UNSET:
        assert envelope.error is not UNSET
        return ErrorReceived(id, decode_error(envelope.error), call.token)
    row = call.row
    try:
        read = row.read_result if row is not None else _read_object
        return _result_event(id, call, envelope.result, read)
    except InvalidPayload as exc:
        event = _lenient_event(id, call, envelope.result) if row is not None else None
        return event or ErrorReceived(
            id,
            RemoteProtocolError(f"the result of {call.method} is invalid: {exc}"),
            call.token,
        )


def decode_error(raw: Raw) -> PeerError | RemoteProtocolError:
    """Decode the error object of a response, and return it as an exception."""
    try:
        error = _read_error(raw)
    except InvalidPayload as exc:
        return RemoteProtocolError(f"the peer sent a malformed error object: {exc}")
    return PeerError(error.code, error.message, error.data)


def read_leniently(
    kind: type[T], raw: Raw | bytes, *, keeps_unknown: bool
) -> tuple[T, Mapping[str, str]]:
    """Decode a result that isn't valid, by its usable parts. Return it and what was left out.

    `keeps_unknown` is as for `LenientReader`.

    Raises:
        InvalidPayload: it has no usable part.
    """
    from ._lenient_results import LenientReader  # on first use: most peers need none

    lenient = LenientReader(keeps_unknown=keeps_unknown)
    return lenient.read(kind, raw), lenient.problems()


def _lenient_event(id: RequestId, call: OutgoingRequest, raw: Raw) -> ResultReceived | None:
    """Return the event for a result that isn't valid, or None if it has no usable part."""
    row = call.row
    assert row is not None
    assert row.result is not None
    kind = row.result
    problems = NO_PROBLEMS

    def read(data: Raw | bytes) -> Any:
        nonlocal problems
        # A server would send on what its client has sent, and nothing has such a block.
        found, problems = read_leniently(kind, data, keeps_unknown=row.to is not Role.CLIENT)
        return found

    try:
        event = _result_event(id, call, raw, read)
    except InvalidPayload:
        return None
    if not isinstance(event, ResultReceived):
        return None
    event.problems = problems
    return event


def _result_event(
    id: RequestId, call: OutgoingRequest, raw: Raw, read: Callable[[Raw | bytes], Any]
) -> ResultReceived | InputRequested | TaskCreated:
    if not call.dialect.result_type:
        if call.may_become_task:
            created = _read_nested_task(raw)
            if created.task is not UNSET:
                return TaskCreated(id, created.task, created.meta, call.token)
        return ResultReceived(id, read(raw), call.token)
    try:
        result = read(raw)
    except InvalidPayload:
        # A value that isn't a complete result may be an `input_required` result, or a task.
        if _read_result_type(raw).result_type in (None, _COMPLETE):
            raise
    else:
        kind = (
            result.result_type
            if isinstance(result, t.Result)
            else _read_result_type(raw).result_type
        )
        if kind is None or kind == _COMPLETE:
            return ResultReceived(id, result, call.token)
        # Two examples of the extension have this type on a task's state, against its text.
        if kind == _TASK and isinstance(result, t.GetTaskResult):
            return ResultReceived(id, result, call.token)
    return _other_event(id, call, raw)


def _other_event(id: RequestId, call: OutgoingRequest, raw: Raw) -> InputRequested | TaskCreated:
    """Return the event for a result that isn't complete. Raise `InvalidPayload` if it is invalid.

    It is an `input_required` result, or the state of the task that the request has become.
    """
    kind = _read_result_type(raw).result_type
    if kind == _TASK:
        if not call.may_become_task:
            raise InvalidPayload("this request cannot become a task")
        created = _read_flat_task(raw)
        task = t.Task(**{name: getattr(created, name) for name in t.Task.__struct_fields__})
        return TaskCreated(id, task, created.meta, call.token)
    if kind != _INPUT_REQUIRED:
        raise InvalidPayload(f"unknown resultType {kind!r}")
    if call.row is None or not call.row.input_ok:
        raise InvalidPayload("it cannot ask for input")
    result = _read_input_required(raw)
    if result.input_requests is None and result.request_state is None:
        raise InvalidPayload("input_required with neither inputRequests nor requestState")
    return InputRequested(id, result.input_requests, result.request_state, call.token)
