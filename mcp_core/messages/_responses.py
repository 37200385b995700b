"""From a response of the peer to the event of our request.

1. An invalid result (wrong type, unknown `resultType`) fails its request with a
   `RemoteProtocolError`, and has no other effect.
2. A result without `resultType` is complete, because earlier servers send none (2026-07-28,
   basic/index, Results). Values that neither the revision nor an active extension defines are
   invalid.
3. A valid result is decoded once, directly to its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct, field

from mcp_core import types as t
from mcp_core._errors import PeerError, RemoteProtocolError
from mcp_core.jsonrpc._codec import InvalidPayload, reader

from ._events import ErrorReceived, InputRequested, ResultReceived

if TYPE_CHECKING:
    from msgspec import Raw

    from mcp_core.jsonrpc._codec import Envelope
    from mcp_core.revisions._dialects import Dialect
    from mcp_core.revisions._methods import Method
    from mcp_core.types import RequestId

__all__ = ["OutgoingRequest", "decode_error", "response_event"]


class OutgoingRequest(Struct, gc=False):
    """Our own request that has no response yet."""

    method: str
    row: Method | None  # None for a custom method that is not registered
    dialect: Dialect
    token: Any  # passed back on every event of the request
    related: RequestId | None = None  # the request of the peer during which it was sent
    wants_progress: bool = False
    progress: float | None = None  # the last value received


class _ResultType(Struct):
    result_type: str | None = field(name="resultType", default=None)


_read_error = reader(t.ErrorData)
_read_result_type = reader(_ResultType)
_read_input_required = reader(t.InputRequiredResult)
_read_object = reader(dict[str, Any])

_COMPLETE: Final = "complete"
_INPUT_REQUIRED: Final = "input_required"


def response_event(
    id: RequestId, call: OutgoingRequest, envelope: Envelope
) -> ResultReceived | ErrorReceived | InputRequested:
    """Return the event for the response `envelope` to our request."""
    if envelope.result is UNSET:
        assert envelope.error is not UNSET
        return ErrorReceived(id, decode_error(envelope.error), call.token)
    try:
        return _result_event(id, call, envelope.result)
    except InvalidPayload as exc:
        return ErrorReceived(
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


def _result_event(
    id: RequestId, call: OutgoingRequest, raw: Raw
) -> ResultReceived | InputRequested:
    read = call.row.read_result if call.row is not None else _read_object
    if not call.dialect.result_type:
        return ResultReceived(id, read(raw), call.token)
    try:
        result = read(raw)
    except InvalidPayload:
        # A value that is no complete result may be an `input_required` result.
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
    return _input_event(id, call, raw)


def _input_event(id: RequestId, call: OutgoingRequest, raw: Raw) -> InputRequested:
    """Return the event for an `input_required` result. Raise `InvalidPayload` if it is invalid."""
    kind = _read_result_type(raw).result_type
    if kind != _INPUT_REQUIRED:
        raise InvalidPayload(f"unknown resultType {kind!r}")
    if call.row is None or not call.row.input_ok:
        raise InvalidPayload("it cannot ask for input")
    result = _read_input_required(raw)
    if result.input_requests is None and result.request_state is None:
        raise InvalidPayload("input_required with neither inputRequests nor requestState")
    return InputRequested(id, result.input_requests, result.request_state, call.token)
