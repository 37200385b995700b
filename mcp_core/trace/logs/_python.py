"""Messages as the official Python SDK logs them: pydantic's `repr` and `str` of a message.

    root=JSONRPCRequest(method='ping', params=None, jsonrpc='2.0', id=1)           1.x
    jsonrpc='2.0' id=1 method='ping' params=None                                    2.x
    SessionMessage(message=JSONRPCRequest(jsonrpc='2.0', id=1, ...), metadata=None)

Nothing is evaluated: only literals, and the keyword arguments of calls, are read.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Final

__all__ = ["read_python_message"]

_MAX_SIZE: Final = 1024 * 1024  # characters; a syntax tree takes a hundred times as much
_FIELD: Final = re.compile(r"[A-Za-z_]\w*=")
_SIGN: Final = re.compile(r"""["'(\[{)\]} ]""")
_SESSION_MESSAGE: Final = "SessionMessage(message="
_METADATA: Final = ", metadata="
_OPENING: Final = "([{"
_MEMBERS: Final = ("jsonrpc", "id", "method", "params", "result", "error")


def read_python_message(text: str) -> dict[str, Any] | None:
    """Return the message, or None if the text isn't one, or is cut.

    Args:
        text: what the SDK has logged after the words that introduce it.
    """
    if len(text) > _MAX_SIZE:
        return None
    if text.startswith(_SESSION_MESSAGE) and _METADATA in text:
        text = text[len(_SESSION_MESSAGE) : text.rindex(_METADATA)]  # it can have any object
    try:
        if _FIELD.match(text):
            text = f"_({', '.join(_split_fields(text))})"
        value = _value_of(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if isinstance(value, dict) and isinstance(value.get("root"), dict):
        value = value["root"]
    if not isinstance(value, dict) or "jsonrpc" not in value:
        return None
    # The SDK's classes have a field for each member. None stands for one that isn't there.
    found = {key: value[key] for key in _MEMBERS if value.get(key) is not None}
    error = found.get("error")
    if isinstance(error, dict):
        found["error"] = {key: each for key, each in error.items() if each is not None}
    return found


def _split_fields(text: str) -> list[str]:
    """Return the parts of `a=1 b={'c': 2}`, split at spaces outside of brackets and quotes."""
    fields, begin, place, depth = [], 0, 0, 0
    while (found := _SIGN.search(text, place)) is not None:
        sign, place = found[0], found.end()
        if sign in "\"'":
            place = _end_of_string(text, place, sign)
        elif sign != " ":
            depth += 1 if sign in _OPENING else -1
        elif not depth and _FIELD.match(text, place):
            fields.append(text[begin : place - 1])
            begin = place
    return [*fields, text[begin:]]


def _end_of_string(text: str, place: int, quote: str) -> int:
    """Return the place after the string that has begun before `place`.

    Raises:
        ValueError: it doesn't end.
    """
    while text[place] != quote if place < len(text) else _raise_unended():
        place += 2 if text[place] == "\\" else 1
    return place + 1


def _raise_unended() -> bool:
    raise ValueError("a string does not end")


def _value_of(node: ast.expr) -> Any:
    """Return a literal's value. A call becomes a dict of its keyword arguments.

    Raises:
        ValueError: it is neither.
    """
    match node:
        case ast.Constant(value=str() | int() | float() | None):
            return node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List() | ast.Tuple():
            return [_value_of(each) for each in node.elts]
        case ast.Dict():
            keys = [_value_of(each) if each is not None else None for each in node.keys]
            if not all(isinstance(each, str) for each in keys):
                raise ValueError("a key is not a string")
            return dict(zip(keys, map(_value_of, node.values), strict=True))
        case ast.Call(func=ast.Name(), args=[]):
            return {each.arg: _value_of(each.value) for each in node.keywords if each.arg}
        case _:
            raise ValueError("it is no literal")
