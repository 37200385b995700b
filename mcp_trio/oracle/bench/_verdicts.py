"""Whether a response is the result of its request, and the cause if it isn't."""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["Body", "decode_json", "find_cause", "find_response", "has_id"]

# The data of an event stream, or the whole body of a JSON response.
Body = bytes | bytearray
_EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_MAX_CAUSE: Final = 40  # characters of a cause that the target has chosen


def decode_json(data: Body) -> Any:
    """Return the value of JSON, or None if it isn't JSON."""
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError):
        return None


def has_id(message: Any, digits: bytes) -> bool:
    """Return True if a message is the response to the request with this id."""
    return (
        isinstance(message, dict)
        and message.get("id") == int(digits)
        and ("result" in message or "error" in message)
    )


def events(body: Body) -> list[bytes]:
    """Return the data of the complete events of an event stream."""
    found, at = [], 0
    while end := _EVENT_END.search(body, at):
        if data := event_data(body[at : end.start()]):
            found.append(data)
        at = end.end()
    return found


def event_data(event: Body) -> bytes:
    """Return the data of one event, b"" if it has none."""
    lines = bytes(event).splitlines()
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))


def find_response(body: Body, digits: bytes, *, is_stream: bool) -> Any:
    """Return the decoded response in a body, or None if it isn't JSON.

    In an event stream it is the last response, or None without one. It may have another id.
    """
    if not is_stream:
        return decode_json(body)
    found = None
    for data in events(body):
        message = decode_json(data)
        if isinstance(message, dict) and "method" not in message:
            found = message
            if has_id(message, digits):
                break
    return found


def find_cause(message: Any, digits: bytes, *, may_continue: bool = False) -> str:
    """Return the cause by which a call failed, or "" if this is its result.

    Args:
        message: the decoded response, None if it isn't JSON.
        digits: the request's id.
        may_continue: whether a result that isn't the last one is no error.
    """
    if not isinstance(message, dict) or not ("result" in message or "error" in message):
        return "no JSON" if message is None else "no response"
    error = message.get("error")
    if message.get("id") != int(digits):
        # An error response to a request whose id could not be read has no id.
        is_error = isinstance(error, dict) and message.get("id") is None
        return _code(error) if is_error else "wrong id"
    if error is not None:
        return _code(error)
    result = message.get("result")
    if not isinstance(result, dict):
        return "no response"
    if result.get("isError") is True:
        return "isError"
    kind = result.get("resultType", "complete")
    return "" if may_continue or kind == "complete" else _shown(str(kind))


def _code(error: Any) -> str:
    code = error.get("code") if isinstance(error, dict) else None
    return _shown(str(code)) if isinstance(code, int) else "no response"


def _shown(text: str) -> str:
    return ascii(text)[1:-1][:_MAX_CAUSE]
