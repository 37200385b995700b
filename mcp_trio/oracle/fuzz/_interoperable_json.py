"""JSON and requests that every reader understands in the same way (RFC 8259; JSON-RPC 2.0).

A server may answer, refuse or ignore anything else, and none of these is a fault.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "MAX_INTEGER",
    "find_defect",
    "is_id",
    "is_interoperable",
    "is_json",
    "read_plain_request",
    "shown_value",
]

_MAX_ID: Final = 200  # characters of an id that every server should read
MAX_INTEGER: Final = 2**53 - 1  # larger ones aren't all doubles, which readers may take (RFC 8259)
_MAX_LEVELS: Final = 30  # of nesting that every parser reads
_REQUEST_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})
_SHOWN: Final = 60  # characters of a value in a sentence


def find_defect(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return why strict receivers don't take a message for a request: the defect's kind, a clause.

    The kind is "params", "null params", "meta" or "member". Both are "" without a defect.
    """
    params = message.get("params", {})
    if not isinstance(params, dict):
        kind = "params" if params is not None else "null params"
        return kind, f"its params are {shown_value(params)}, not an object"
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        return "meta", f"its params have the _meta {shown_value(meta)}, not an object"
    token = meta.get("progressToken", "")
    if not is_id(token):
        return "meta", f"its progressToken is {shown_value(token)}, not a string or an integer"
    others = sorted(message.keys() - _REQUEST_MEMBERS)
    return ("member", f"it has the member {shown_value(others[0])}") if others else ("", "")


def is_interoperable(value: Any, level: int = 0) -> bool:
    """Return True if every JSON reader reads `value` as it was written (RFC 8259).

    Some readers round large integers or refuse them, and some limit the nesting. `level` is the
    number of arrays and objects that `value` is in.
    """
    if isinstance(value, dict):
        return level < _MAX_LEVELS and all(
            is_interoperable(each, level + 1) for each in value.values()
        )
    if isinstance(value, list | tuple):
        return level < _MAX_LEVELS and all(is_interoperable(each, level + 1) for each in value)
    return not isinstance(value, int) or abs(value) <= MAX_INTEGER


def read_plain_request(line: bytes) -> dict[str, Any] | None:
    """Return the request in `line`, or None if some servers may read the line in another way."""
    is_doubled = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_doubled
        members = dict(pairs)
        is_doubled |= len(members) < len(pairs)
        return members

    try:
        message = json.loads(
            line.decode(), object_pairs_hook=collect, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or is_doubled or message.get("jsonrpc") != "2.0":
        return None
    if b"\r" in line:
        return None  # some readers end a line here
    id, method = message.get("id"), message.get("method")
    if not isinstance(method, str) or not method or not is_id(id):
        return None
    if isinstance(id, str) and (len(id) > _MAX_ID or not id.isascii()):
        return None
    if isinstance(id, int) and abs(id) >= 2**53:
        return None
    if {"result", "error"} & message.keys() or "\\u" in line.decode():
        return None
    if not math.isfinite(_largest(message)):
        return None
    return message


def is_json(data: bytes) -> bool:
    """Return True if `data` is JSON (RFC 8259), even if not every reader understands it."""
    try:
        json.loads(data.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def is_id(id: Any) -> bool:
    """Return True if `id` may be the id of a request: a string or an integer."""
    return isinstance(id, str) or (isinstance(id, int) and not isinstance(id, bool))


def shown_value(value: Any) -> str:
    """Return `value` as JSON for a sentence, at most 60 characters of it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _largest(value: Any, depth: int = 0) -> float:
    """Return the largest number in a value, infinity if the value is nested too deeply."""
    if depth > 30:
        return math.inf
    if isinstance(value, float | int):
        try:
            return abs(float(value))
        except OverflowError:
            return math.inf
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return max((_largest(each, depth + 1) for each in value), default=0.0)
    return 0.0
