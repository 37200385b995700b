"""The outline of a message: its kind and its first wrong member, without any value.

Two messages with one outline are wrong in the same way. It names members by the words of the
specification only, because any other key, as any value, is different in each conversation.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ._revisions import is_known
from ._shape_table import SHAPES
from ._shapes import find_shape_error, has_shape
from .rules._shapes import NEED_PARAMS

__all__ = ["json_type", "message_outline"]

_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
# The members that a request and a notification have, in this order.
_OF_REQUESTS: Final = ("jsonrpc", "id", "method", "params")
_NAMED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"\??:')
# All members that a shape names.
_KNOWN: Final = frozenset(
    name for variants in SHAPES.values() for _, text in variants for name in _NAMED.findall(text)
)
_LACKS: Final = "lacks "  # how a shape's error begins if a member is missing
_MISSING: Final = "absent"


def json_type(value: Any) -> str:
    """Return the JSON type of a decoded value: null, boolean, number, string, array or object."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def message_outline(revision: str, message: Any) -> str:
    """Return a message's kind, and the path and the JSON type of its first wrong member.

    For example: `request` for a valid one, `request params:string`, `request params/cursor:number`,
    `request params/name:absent`, `notification`, `response id:null`, `message:array`. A key that
    the specification doesn't have is `*`, and a member that no message has is `*:any`.

    Args:
        revision: the conversation's revision; one that isn't known has no shapes of params.
        message: a decoded JSON value.
    """
    if not isinstance(message, dict):
        return f"message:{json_type(message)}"
    if "method" in message:
        kind = "request" if "id" in message else "notification"
    else:
        kind = "response" if {"result", "error"} & message.keys() else "message"
    wrong = _wrong_member(revision, kind, message)
    return f"{kind} {wrong}" if wrong else kind


def _wrong_member(revision: str, kind: str, message: dict[str, Any]) -> str:
    if message.get("jsonrpc") != "2.0":
        return _typed(message, "jsonrpc")
    is_id = "id" not in message or _is_id(message["id"])
    if kind == "response":
        if not is_id or "id" not in message:
            return _typed(message, "id")
        if {"result", "error"} <= message.keys():
            return _typed(message, "error")
        name = "result" if "result" in message else "error"
        return "" if isinstance(message[name], dict) else _typed(message, name)
    if kind == "message":
        return _typed(message, "method")
    if not is_id:
        return _typed(message, "id")
    method = message["method"]
    if not isinstance(method, str):
        return _typed(message, "method")
    params = message.get("params", {})
    if not isinstance(params, dict):
        return _typed(message, "params")
    others = sorted(message.keys() - set(_OF_REQUESTS))
    if others:
        return _typed(message, others[0])
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        return f"params/_meta:{json_type(meta)}"
    token = meta.get("progressToken", "")
    if not _is_id(token):
        return f"params/_meta/progressToken:{json_type(token)}"
    name = f">{method}"
    if not is_known(revision) or not has_shape(revision, name):
        return ""
    if "params" not in message and name not in NEED_PARAMS:
        return ""
    error = find_shape_error(revision, name, params)
    return "" if error is None else _wrong_part(params, error.pointer, error.text)


def _wrong_part(params: dict[str, Any], pointer: str, text: str) -> str:
    """Return the path and the type of a wrong part of the params.

    Args:
        params: the params.
        pointer: the JSON pointer of the part (RFC 6901).
        text: the error; it can be that the part lacks a member.
    """
    value: Any = params
    path = ["params"]
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
        path.append(_named(key))
    if not text.startswith(_LACKS):
        return f"{'/'.join(path)}:{json_type(value)}"
    path.append(_named(str(json.loads(text.removeprefix(_LACKS)))))
    return f"{'/'.join(path)}:{_MISSING}"


def _typed(message: dict[str, Any], name: str) -> str:
    if name not in _MEMBERS:
        return "*:any"  # no type of it is right
    return f"{name}:{json_type(message[name]) if name in message else _MISSING}"


def _named(key: str) -> str:
    return key if key in _KNOWN else "*"


def _is_id(id: Any) -> bool:
    return isinstance(id, str) or (isinstance(id, int) and not isinstance(id, bool))
