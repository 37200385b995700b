"""A second opinion on messages: what JSON-RPC 2.0 and MCP make of some bytes, by the standard library's JSON.

Rules of this file:

1. It imports nothing of the core. Where the two disagree, one of them is wrong, and it is not always the core.
2. It says `UNSURE` where the two readers may differ with right: text that no UTF-8 can hold, written as an escape, and
   input that goes over a limit of the standard library itself.

Sources: RFC 8259; JSON-RPC 2.0, sections 4 and 5; MCP basic/index, Messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

__all__ = ["Kind", "Verdict", "judge", "judge_batch"]

Kind: TypeAlias = Literal["request", "notification", "response", "bad", "unsure"]

MOST: Final = 2**53 - 1
_MEMBERS: Final = ("jsonrpc", "id", "method", "params", "result", "error")


class Verdict(NamedTuple):
    """What a message is. `id` is the one it carries, if it is a usable one and the only one; `members` are those of
    JSON-RPC."""

    kind: Kind
    id: int | str | None = None
    members: Mapping[str, Any] = MappingProxyType({})
    why: str = ""


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written."""


class _NotJson(Exception):
    pass


_UNREADABLE: Final = object()


def judge(data: bytes, *, id_limit: int = 256, method_limit: int = 256) -> Verdict:
    """What a message is that is no batch."""
    try:
        value = _read(data)
    except _NotJson as exc:
        return Verdict("bad", why=str(exc))
    return _judge_value(value, id_limit, method_limit)


def judge_batch(data: bytes, *, id_limit: int = 256, method_limit: int = 256) -> list[Verdict] | None:
    """What the members of a batch are; None if it is no array, or nobody can tell."""
    try:
        value = _read(data)
    except _NotJson:
        return None
    if not isinstance(value, list) or isinstance(value, _Pairs):
        return None
    return [_judge_value(item, id_limit, method_limit) for item in value]


def _read(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _NotJson("not UTF-8") from None
    if text.startswith("\ufeff"):
        raise _NotJson("a byte order mark")
    try:
        return json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refuse)
    except RecursionError:
        return _UNREADABLE
    except ValueError as exc:
        # The standard library has a limit of its own on the digits of an integer.
        if "integer string conversion" in str(exc):
            return _UNREADABLE
        raise _NotJson(f"not JSON: {getattr(exc, 'msg', exc)}") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _judge_value(value: Any, id_limit: int, method_limit: int) -> Verdict:
    if value is _UNREADABLE:
        return Verdict("unsure")
    if not isinstance(value, _Pairs):
        return Verdict("bad", why="no object")
    keys = [key for key, _ in value]
    members = {key: item for key, item in value if key in _MEMBERS}
    id = members.get("id")
    named = id if _usable(id, id_limit) and keys.count("id") == 1 else None
    if _has_surrogate(value):
        return Verdict("unsure", named)
    problem = _problem(keys, members, id_limit, method_limit)
    if problem:
        return Verdict("bad", named, members, problem)
    if "method" in members:
        return Verdict("request" if "id" in members else "notification", named, members)
    return Verdict("response", named, members)


def _problem(keys: list[str], members: dict[str, Any], id_limit: int, method_limit: int) -> str:
    """What is wrong with the outline of a message, "" if nothing is."""
    if len(set(keys)) < len(keys):
        return "a member stands twice"
    if any('"' in key for key in keys):
        return "a name with a quotation mark, which the core does not take apart"
    if members.get("jsonrpc") != "2.0":
        return "jsonrpc is not 2.0"
    asks, answers = "method" in members, "result" in members or "error" in members
    if asks and not _is_text(members["method"], method_limit):
        return "no usable method"
    if asks and answers:
        return "a request and a response"
    if not asks and not answers:
        return "neither a request nor a response"
    if "result" in members and "error" in members:
        return "a result and an error"
    if "id" not in members:
        return "a result without an id" if "result" in members else ""
    if members["id"] is None:
        # Only who could not read a message has no name for it.
        return "" if "error" in members else "id is null"
    return "" if _usable(members["id"], id_limit) else "no usable id"


def _usable(id: Any, limit: int) -> bool:
    if type(id) is int:
        return -MOST <= id <= MOST
    return _is_text(id, limit)


def _is_text(value: Any, limit: int) -> bool:
    return isinstance(value, str) and len(value.encode("utf-8", "surrogatepass")) <= limit


def _has_surrogate(value: Any) -> bool:
    """Whether half of a surrogate pair stands anywhere in it."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if not item.isascii() and any("\ud800" <= character <= "\udfff" for character in item):
                return True
        elif isinstance(item, list | tuple):
            waiting.extend(item)
    return False
