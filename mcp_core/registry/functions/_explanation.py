"""The values that are allowed where one isn't, for the model that chose it.

msgspec says which argument is invalid and why, but neither what an enum allows nor how a date is
written. Both are in the JSON Schema. Pydantic says it for each member of a union, but not that it
is one. Imported by the first argument that is invalid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from mcp_core._text import shorten_text

__all__ = ["add_allowed", "add_scalar", "describe_errors"]

_MAX_SHOWN: Final = 100  # characters of a value, which the model knows itself
_MAX_ALLOWED: Final = 30  # values; a model uses no longer list
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_MISSING: Final = object()
_SCALARS: Final = (bool, int, float, str)
_ENUM: Final = "Invalid enum value "
# By msgspec's name of a type: the beginning of its text about a wrong text, and what it expects.
_FORMATS: Final = {
    "datetime": (
        "Invalid RFC3339 encoded datetime",
        "a date and time such as 2026-01-31T12:30:00Z",
    ),
    "date": ("Invalid RFC3339 encoded date", "a date such as 2026-01-31"),
    "time": ("Invalid RFC3339 encoded time", "a time such as 12:30:00"),
    "duration": ("Invalid ISO8601 duration", "a duration such as PT1H30M"),
    "uuid": ("Invalid UUID", "a UUID such as 123e4567-e89b-12d3-a456-426614174000"),
    "decimal": ("Invalid decimal string", "a decimal number such as 12.50"),
    "bytes": ("Invalid base64 encoded string", "base64 such as aGVsbG8="),
}
# msgspec's text about another type, such as "Expected `date | null`, got `int`".
_EXPECTED: Final = re.compile(r"Expected `([\w| ]+)`, got `\w+`")
# The types of pydantic's errors about a value of a few, or of a notation.
_CHOICES: Final = tuple("enum literal union_tag date time uuid url decimal_parsing".split())
# Those about a value of another type, which don't say how a date is written.
_DATES: Final = {"date_type": "date", "datetime_type": "datetime", "time_type": "time"}
_MAX_ERRORS: Final = 10  # as many as a model can use; a list can have one for each item


def _shown(value: Any) -> str:
    """Return a value as JSON, cut to what an error text has room for."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return shorten_text(text, _MAX_SHOWN)


def _is_scalar(value: Any) -> bool:
    """Return True for a value that may be repeated: an object or array may have a secret in it."""
    return value is None or isinstance(value, _SCALARS)


def add_scalar(text: str, value: Any) -> str:
    """Return a text about an invalid value with the value, if it is neither object nor array."""
    return f"{text}, not {_shown(value)}" if _is_scalar(value) else text


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
    is_enum = reason.startswith(_ENUM)
    given = _shown(value) if _is_scalar(value) else "the value"
    if is_enum or reason.startswith("Expected"):
        allowed = _allowed(schema, steps, with_types=is_enum)
        if allowed:
            if value is _MISSING and is_enum:
                given = reason.removeprefix(_ENUM)
            return f"{given} is not {'one of ' * (len(allowed) > 1)}{', '.join(allowed)}"
    for text, format in _FORMATS.values():
        if reason.startswith(text):
            return f"{given} is not {format}"
    expected = _EXPECTED.fullmatch(reason)
    kinds = expected[1].split(" | ") if expected else []
    if _FORMATS.keys() & kinds:
        names = [_FORMATS[kind][1] if kind in _FORMATS else f"`{kind}`" for kind in kinds]
        return f"{given} is not {' or '.join(names)}"
    if len(kinds) > 1 and _is_scalar(value):
        return f"{reason}: {given}"
    return reason


def _find(value: Any, steps: Iterable[Any]) -> Any:
    """Return the part of a value of JSON at a path, whose steps may be texts or numbers."""
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and str(step).isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _allowed(schema: Mapping[str, Any], steps: list[str], *, with_types: bool) -> list[str]:
    """Return the values that an enum at that place allows, as JSON.

    If others are allowed too, return the names of their types after them, or nothing at all if
    `with_types` is False.
    """
    nodes = list(_alternatives(schema, schema))
    for step in steps:
        nodes = [
            found
            for node in nodes
            for child in _children(node, step)
            for found in _alternatives(child, schema)
        ]
    allowed: dict[str, None] = {}
    kinds: dict[str, None] = {}
    for node in nodes:
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if values is None:
            if node.get("type") == "null":
                values = [None]
            elif with_types and isinstance(node.get("type"), str):
                kinds[f"`{node['type']}`"] = None
            else:
                return []
        allowed.update(dict.fromkeys(map(_shown, values or ())))
    found = list(allowed) if len(allowed) > ("null" in allowed) else []
    if len(found) > _MAX_ALLOWED:
        found[_MAX_ALLOWED:] = ["..."]
    return found and [*found, *kinds]


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


def describe_errors(
    exc: Any, value: Any = _MISSING, *, has_secrets: bool = False
) -> tuple[str, str]:
    """Return the text of pydantic's `ValidationError` for the model, and one without values.

    A value is repeated only where it may help to choose another one: it could be a secret.

    Args:
        exc: the error, or the `ValueError` of an author's code.
        value: the value of JSON that was validated. Without one, the texts don't tell unions.
        has_secrets: True if a part of the type may be a secret, so that no value is repeated.
    """
    if not hasattr(exc, "errors"):
        return str(exc), str(exc)
    errors = exc.errors(include_url=False)
    places: dict[tuple[Any, ...], list[Any]] = {}
    for error in errors[:_MAX_ERRORS]:
        places.setdefault(_union_of(error, value), []).append(error)
    described = [_describe(place, group, value) for place, group in places.items()]
    if len(errors) > _MAX_ERRORS:
        described.append((f"and {len(errors) - _MAX_ERRORS} more errors",) * 2)
    with_values, without = map("; ".join, zip(*described, strict=True))
    return (without if has_secrets else with_values), without


def _union_of(error: Any, value: Any) -> tuple[Any, ...]:
    """Return the place of the union that an error is about, or the place of another error.

    In a union, pydantic puts the member's name into the path, where the value has no such part.
    """
    place: tuple[Any, ...] = error["loc"]
    if value is _MISSING:
        return place
    for number, step in enumerate(place):
        inner = _find(value, [step])
        if inner is _MISSING:
            # A number is of an item, in what a function of the author's made of the value.
            if not isinstance(step, str):
                return place
            for later in place[number + 1 :]:
                found = _find(value, [later])
                value = value if found is _MISSING else found
            is_missing = error["type"] == "missing" and number == len(place) - 1
            is_whole = type(value) is type(error["input"]) and value == error["input"]
            return place[:number] if is_whole and not is_missing else place
        value = inner
    return place


def _describe(place: tuple[Any, ...], errors: list[Any], value: Any) -> tuple[str, str]:
    """Return the text of the errors at a place, with the value and without it."""
    members = dict.fromkeys(error["loc"][len(place)] for error in errors if error["loc"] != place)
    is_union = len(members) > 1
    texts = []
    for error in errors:
        path = ".".join(map(str, error["loc"][len(place) if is_union else 0 :]))
        kind = _DATES.get(error["type"])
        text = f"Input should be {_FORMATS[kind][1]}" if kind else error["msg"]
        without = text
        if error["type"] == "union_tag_invalid":  # its text repeats the tag
            without = f"Input tag should be one of {error['ctx']['expected_tags']}"
        if error["type"].startswith(_CHOICES):
            text = add_scalar(text, error["input"])
        texts.append(tuple(f"{path}: {each}" if path else each for each in (text, without)))
    with_values, without = ("; ".join(each) for each in zip(*texts, strict=True))
    if not is_union:
        return with_values, without
    path = f"{'.'.join(map(str, place))}: " if place else ""
    expected = f"{path}Expected one of {', '.join(members)}"
    given = add_scalar(expected, _find(value, place))
    return f"{given} ({with_values})", f"{expected} ({without})"
