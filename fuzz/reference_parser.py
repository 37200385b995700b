"""A reference parser: what JSON-RPC 2.0 and MCP make of some bytes, by the standard library's JSON.

Rules of this file:

1. It imports nothing of the core. Where the two disagree, one of them is wrong, and it is not
   always the core.
2. It says "unsure" where two correct parsers may differ: text with unpaired surrogates, written as
   escapes, and input over a limit of the standard library itself.

Sources: RFC 8259; JSON-RPC 2.0, sections 4 and 5; MCP basic/index, Messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

__all__ = ["Classification", "Kind", "classify", "classify_batch"]

Kind: TypeAlias = Literal["request", "notification", "response", "bad", "unsure"]

MAX_INTEGER: Final = 2**53 - 1
_MEMBERS: Final = ("jsonrpc", "id", "method", "params", "result", "error")


class Classification(NamedTuple):
    """The kind of a message.

    `id` is the one that it carries, if it is usable and occurs once. `members` are JSON-RPC's.
    """

    kind: Kind
    id: int | str | None = None
    members: Mapping[str, Any] = MappingProxyType({})
    why: str = ""


class _Pairs(list[tuple[str, Any]]):
    """An object as a list of its members, with duplicates."""


class _NotJson(Exception):
    pass


_UNREADABLE: Final = object()


def classify(data: bytes, *, id_limit: int = 256, method_limit: int = 256) -> Classification:
    """Classify a message that is not a batch."""
    try:
        value = _read(data)
    except _NotJson as exc:
        return Classification("bad", why=str(exc))
    return _classify_value(value, id_limit, method_limit)


def classify_batch(
    data: bytes, *, id_limit: int = 256, method_limit: int = 256
) -> list[Classification] | None:
    """Classify the members of a batch. Return None if it is not an array, or is undecidable."""
    try:
        value = _read(data)
    except _NotJson:
        return None
    if not isinstance(value, list) or isinstance(value, _Pairs):
        return None
    return [_classify_value(item, id_limit, method_limit) for item in value]


def _read(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _NotJson("not UTF-8") from None
    if text.startswith("\ufeff"):
        raise _NotJson("a byte order mark")
    try:
        return json.loads(text, object_pairs_hook=_Pairs, parse_constant=_reject_constant)
    except RecursionError:
        return _UNREADABLE
    except ValueError as exc:
        # The standard library has a limit of its own on the digits of an integer.
        if "integer string conversion" in str(exc):
            return _UNREADABLE
        raise _NotJson(f"not JSON: {getattr(exc, 'msg', exc)}") from None


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _classify_value(value: Any, id_limit: int, method_limit: int) -> Classification:
    if value is _UNREADABLE:
        return Classification("unsure")
    if not isinstance(value, _Pairs):
        return Classification("bad", why="no object")
    keys = [key for key, _ in value]
    members = {key: item for key, item in value if key in _MEMBERS}
    id = members.get("id")
    usable_id = id if _usable(id, id_limit) and keys.count("id") == 1 else None
    if _has_surrogate(value):
        return Classification("unsure", usable_id)
    error = _find_error(keys, members, id_limit, method_limit)
    if error:
        return Classification("bad", usable_id, members, error)
    if "method" in members:
        return Classification("request" if "id" in members else "notification", usable_id, members)
    return Classification("response", usable_id, members)


def _find_error(keys: list[str], members: dict[str, Any], id_limit: int, method_limit: int) -> str:
    """Return what is wrong with the envelope of a message, or ""."""
    if len(set(keys)) < len(keys):
        return "a member occurs twice"
    if members.get("jsonrpc") != "2.0":
        return "jsonrpc is not 2.0"
    is_request = "method" in members
    is_response = "result" in members or "error" in members
    if is_request and not _is_text(members["method"], method_limit):
        return "no usable method"
    if is_request and is_response:
        return "a request and a response"
    if not is_request and not is_response:
        return "neither a request nor a response"
    if "result" in members and "error" in members:
        # Serializers write null for the one that is absent.
        absent = next((name for name in ("error", "result") if members[name] is None), None)
        if absent is None:
            return "a result and an error"
        del members[absent]
    if "id" not in members:
        return "a result without an id" if "result" in members else ""
    if members["id"] is None:
        # Only the response to an unparsable message has a null id.
        return "" if "error" in members else "id is null"
    return "" if _usable(members["id"], id_limit) else "no usable id"


def _usable(id: Any, limit: int) -> bool:
    if type(id) is int:
        return -MAX_INTEGER <= id <= MAX_INTEGER
    return _is_text(id, limit)


def _is_text(value: Any, limit: int) -> bool:
    return isinstance(value, str) and len(value.encode("utf-8", "surrogatepass")) <= limit


def _has_surrogate(value: Any) -> bool:
    """True if a text anywhere in the value has an unpaired surrogate."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if not item.isascii() and any("\ud800" <= character <= "\udfff" for character in item):
                return True
        elif isinstance(item, list | tuple):
            waiting.extend(item)
    return False
