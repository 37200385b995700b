"""The values that are allowed where one isn't, for the model that chose it.

msgspec says which argument is invalid and why, but neither what an enum allows nor how a date is
written. Both are in the JSON Schema. Imported by the first argument that is invalid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from mcp_core._text import shorten_text

__all__ = ["add_allowed", "shown"]

_MAX_SHOWN: Final = 100  # characters of a value, which the model knows itself
_MAX_ALLOWED: Final = 30  # values; a model uses no longer list
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_MISSING: Final = object()
_ENUM: Final = "Invalid enum value "
# By the beginning of msgspec's text: the name and an example of what it expects.
_FORMATS: Final = {
    "Invalid RFC3339 encoded datetime": "a date and time such as 2026-01-31T12:30:00Z",
    "Invalid RFC3339 encoded date": "a date such as 2026-01-31",
    "Invalid RFC3339 encoded time": "a time such as 12:30:00",
    "Invalid ISO8601 duration": "a duration such as PT1H30M",
    "Invalid UUID": "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
    "Invalid decimal string": "a decimal number such as 12.50",
    "Invalid base64 encoded string": "base64 such as aGVsbG8=",
}


def shown(value: Any) -> str:
    """Return a value as JSON, cut to what an error text has room for."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return shorten_text(text, _MAX_SHOWN)


def add_allowed(reason: str, path: str, values: Any, schema: Mapping[str, Any]) -> str:
    """Return `reason`, msgspec's text, with the value that was given and what is allowed.

    Args:
        reason: the text without the path.
        path: where the invalid value is in `values`, as msgspec writes it: "" or ".a[0]".
        values: the value of JSON that was read.
        schema: its JSON Schema.
    """
    steps = [found[1] or found[2] for found in _STEP.finditer(path)]
    value = _find(values, steps)
    given = "the value" if value is _MISSING else shown(value)
    if reason.startswith((_ENUM, "Expected")):
        allowed = _allowed(schema, steps)
        if allowed:
            if value is _MISSING and reason.startswith(_ENUM):
                given = reason.removeprefix(_ENUM)
            return f"{given} is not {'one of ' * (len(allowed) > 1)}{', '.join(allowed)}"
    for text, format in _FORMATS.items():
        if reason.startswith(text):
            return f"{given} is not {format}"
    if "|" in reason and value is not _MISSING:
        return f"{reason}: {given}"
    return reason


def _find(value: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _allowed(schema: Mapping[str, Any], steps: list[str]) -> list[str]:
    """Return the values that an enum at that place allows, as JSON; [] if there are others."""
    nodes = list(_alternatives(schema, schema))
    for step in steps:
        nodes = [
            found
            for node in nodes
            for child in _children(node, step)
            for found in _alternatives(child, schema)
        ]
    allowed: dict[str, None] = {}
    for node in nodes:
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if values is None:
            if node.get("type") == "null":
                values = [None]
            else:
                return []
        allowed.update(dict.fromkeys(map(shown, values)))
    if len(allowed) > _MAX_ALLOWED:
        return [*list(allowed)[:_MAX_ALLOWED], "..."]
    return list(allowed) if len(allowed) > ("null" in allowed) else []


def _alternatives(
    node: Any, schema: Mapping[str, Any], seen: tuple[str, ...] = ()
) -> Iterator[Mapping[str, Any]]:
    """Yield a schema without references, or the members of its `anyOf`."""
    if not isinstance(node, dict):
        return
    name = str(node.get("$ref", "")).rpartition("/")[2]
    if name and name not in seen:
        yield from _alternatives(schema.get("$defs", {}).get(name), schema, (*seen, name))
    elif "anyOf" in node:
        for member in node["anyOf"]:
            yield from _alternatives(member, schema, seen)
    else:
        yield node


def _children(node: Mapping[str, Any], step: str) -> Iterator[Any]:
    if step == "...":
        yield node.get("additionalProperties")
    elif step in node.get("properties", {}):
        yield node["properties"][step]
    elif step.isdecimal():
        first = node.get("prefixItems", [])
        yield first[int(step)] if int(step) < len(first) else node.get("items")
