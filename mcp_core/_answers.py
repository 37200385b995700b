"""What the peer's answer to one of our requests means.

Rules of this file:

1. An answer that cannot be believed (wrong type, unknown `resultType`) fails its request with a `RemoteProtocolError`. It is
   not dressed up as an error that the peer sent, and it harms nothing else.
2. A result without `resultType` is complete, as older servers send it (2026-07-28, basic/index, Results). Any other value
   than those that the revision and the active extensions define is invalid.
3. In the good case a result is decoded once, straight into its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct, field

from . import types as t
from ._errors import PeerError, RemoteProtocolError
from ._events import ErrorReceived, InputRequested, ResultReceived
from ._jsonrpc import Unreadable, reader

if TYPE_CHECKING:
    from msgspec import Raw

    from ._dialects import Dialect
    from ._jsonrpc import Envelope
    from ._methods import Method
    from .types import RequestId

__all__ = ["Call", "answer", "error_of"]


class Call(Struct, gc=False):
    """A request of ours that has no answer yet."""

    method: str
    row: Method | None  # None for a method that MCP does not define and nobody registered
    dialect: Dialect
    token: Any
    related: RequestId | None = None
    wants_progress: bool = False
    progress: float | None = None  # the last one heard


class _ResultType(Struct):
    result_type: str | None = field(name="resultType", default=None)


_read_error = reader(t.ErrorData)
_read_result_type = reader(_ResultType)
_read_input_required = reader(t.InputRequiredResult)
_read_object = reader(dict[str, Any])

_COMPLETE: Final = "complete"
_INPUT_REQUIRED: Final = "input_required"


def answer(id: RequestId, call: Call, envelope: Envelope) -> ResultReceived | ErrorReceived | InputRequested:
    """The event that the response `envelope` to `call` means."""
    if envelope.result is UNSET:
        assert envelope.error is not UNSET
        return ErrorReceived(id, error_of(envelope.error), call.token)
    try:
        return _result(id, call, envelope.result)
    except Unreadable as exc:
        return ErrorReceived(
            id,
            RemoteProtocolError(f"the answer to {call.method} is no result of its kind: {exc}"),
            call.token,
        )


def error_of(raw: Raw) -> PeerError | RemoteProtocolError:
    """The error object of a response as an exception."""
    try:
        error = _read_error(raw)
    except Unreadable as exc:
        return RemoteProtocolError(f"the peer answered with an error object that is none: {exc}")
    return PeerError(error.code, error.message, error.data)


def _result(id: RequestId, call: Call, raw: Raw) -> ResultReceived | InputRequested:
    read = call.row.read_result if call.row is not None else _read_object
    if not call.dialect.result_type:
        return ResultReceived(id, read(raw), call.token)
    try:
        result = read(raw)
    except Unreadable:
        # What is not a complete result may still be another kind of answer.
        if _read_result_type(raw).result_type in (None, _COMPLETE):
            raise
    else:
        kind = result.result_type if isinstance(result, t.Result) else _read_result_type(raw).result_type
        if kind is None or kind == _COMPLETE:
            return ResultReceived(id, result, call.token)
    return _other_kind(id, call, raw)


def _other_kind(id: RequestId, call: Call, raw: Raw) -> InputRequested:
    kind = _read_result_type(raw).result_type
    if kind != _INPUT_REQUIRED:
        raise Unreadable(f"unknown resultType {kind!r}")
    if call.row is None or not call.row.input_ok:
        raise Unreadable("it cannot ask for input")
    asked = _read_input_required(raw)
    if asked.input_requests is None and asked.request_state is None:
        raise Unreadable("input_required with neither inputRequests nor requestState")
    return InputRequested(id, asked.input_requests, asked.request_state, call.token)
