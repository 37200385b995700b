"""Arguments of tools that are repeated in HTTP headers: which of them, under which names, and what the headers say.

A property of a tool's input schema with `"x-mcp-header": "Region"` makes its argument travel as `Mcp-Param-Region` too, for
those on the way who route requests and do not read bodies (2026-07-28, basic/transports/streamable-http, Custom Headers from
Tool Parameters).

Rules of this file:

1. A schema either keeps all rules for annotations or is wrong as a whole: of two that contradict each other nobody knows which
   one somebody on the way relies on.
2. What is read is the value at exactly the path of the property, out of the JSON as it is sent. No argument, or null, is no
   header.
3. Schemas come from peers as well: whatever they are, looking at one takes time in proportion to its size, and no more of it
   than a bound.

Beside http and registry, which both need this, and knowing neither: not how a header is spelled, nor who is at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from ._jsonrpc import MAX_SAFE_INTEGER, Unreadable, encode, reader
from ._schema import DATA, MAPS

__all__ = [
    "ANNOTATION",
    "Arguments",
    "ParamHeaders",
    "agrees",
    "param_headers",
    "param_values",
    "said",
    "values_at",
]

ANNOTATION: Final = "x-mcp-header"

# The path of each property that is mirrored, and what follows `Mcp-Param-` in the name of its header.
ParamHeaders: TypeAlias = Mapping[tuple[str, ...], str]
# Of one call: as a message carries them, or as a program gives them.
Arguments: TypeAlias = Raw | bytes | Mapping[str, Any] | UnsetType | None

# Of containers and their members. A schema of a megabyte has fewer; looking at so many takes some hundredths of a second.
MAX_PARTS: Final = 100_000
# Properties inside of properties. Who routes requests by what is deeper has other worries.
MAX_DEPTH: Final = 16
# HTTP servers take about a hundred headers in a request, and names of some hundred characters.
MAX_HEADERS: Final = 64
MAX_NAME: Final = 128

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES: Final = ("string", "integer", "boolean")
# What integers up to 2**53 look like, with a fraction for those who have no other numbers. No more than that: a header that
# can be read in several ways agrees with nothing.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,20})?")

# Arguments that are no object have no members; that they are wrong is for those to say who know what they are for.
_read_members = reader(dict[str, Raw] | list[Raw] | str | float | bool | None)  # type: ignore[arg-type]
_read_value = reader(Any)


# -- Schemas -----------------------------------------------------------------------------------------------------------


def param_headers(schema: dict[str, Any]) -> dict[tuple[str, ...], str]:
    """The properties of an input schema that are mirrored; `{}` for most schemas.

    Raises:
        ValueError: an annotation breaks a rule; the text says which one. Or the schema has more than 100,000 parts.
    """
    found: dict[tuple[str, ...], str] = {}
    taken: set[str] = set()
    for path, node in _annotated(schema):
        name = _name(path, node)
        assert path is not None
        if name.lower() in taken:
            raise ValueError(f"{ANNOTATION} {name!r} stands twice (upper and lower case are the same)")
        if len(found) == MAX_HEADERS:
            raise ValueError(f"it has more than {MAX_HEADERS} properties with {ANNOTATION}")
        taken.add(name.lower())
        found[path] = name
    return found


def _annotated(schema: dict[str, Any]) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Every schema object with an annotation, and the properties that lead to it; None if that is not all that does.

    Values that are data are left out, and so is a property that merely has the name of the annotation.
    """
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    parts = 0
    for path, node in waiting:  # which grows meanwhile
        parts = _counted(parts, node)
        if isinstance(node, list):
            waiting += [(None, item) for item in node if isinstance(item, dict | list)]
            continue
        if ANNOTATION in node:
            yield path, node
        for key, value in node.items():
            if key in MAPS and isinstance(value, dict):
                parts = _counted(parts, value)
                # Deeper ones are not told by their path, which could be as long as the schema is deep.
                inner = path if key == "properties" and path is not None and len(path) < MAX_DEPTH else None
                waiting += [
                    (None if inner is None else (*inner, name), child)
                    for name, child in value.items()
                    if isinstance(child, dict)
                ]
            elif key not in DATA and isinstance(value, dict | list):
                waiting.append((None, value))


def _counted(parts: int, node: dict[str, Any] | list[Any]) -> int:
    parts += len(node)
    if parts > MAX_PARTS:
        raise ValueError(f"the schema has more than {MAX_PARTS} parts")
    return parts


def _name(path: tuple[str, ...] | None, node: dict[str, Any]) -> str:
    name, kind = node[ANNOTATION], node.get("type")
    if not isinstance(name, str):
        raise ValueError(f"{ANNOTATION} is a string, not {type(name).__name__}")
    if not path:
        raise ValueError(
            f"{ANNOTATION} {name[:MAX_NAME]!r} is not on a property that is reached from the root through `properties` alone "
            f"({MAX_DEPTH} of them at most)"
        )
    if not _TOKEN.fullmatch(name) or len(name) > MAX_NAME:
        raise ValueError(
            f"{ANNOTATION} {name[:MAX_NAME]!r} of {_place(path)} cannot be part of a header's name"
        )
    if kind not in _TYPES:
        said = f"its type is {str(kind)[:64]!r}" if isinstance(kind, str) else "it says no single type"
        raise ValueError(
            f"{ANNOTATION} {name!r} is for properties of the types string, integer or boolean: of {_place(path)} {said}"
        )
    return name


def _place(path: tuple[str, ...]) -> str:
    return repr(".".join(path)[:MAX_NAME])


# -- Values ------------------------------------------------------------------------------------------------------------


def param_values(headers: ParamHeaders, arguments: Arguments) -> list[tuple[str, str]]:
    """What to say for these arguments: the name of each property that has a value, as the annotation gives it, and its text.

    Raises:
        ValueError: the arguments are no JSON, or an integer among them is larger than all readers of a header can be trusted
            with. TypeError: JSON cannot say them.
    """
    texts = ((name, said(value)) for _, name, value in values_at(headers, arguments))
    return [(name, text) for name, text in texts if text is not None]


def values_at(headers: ParamHeaders, arguments: Arguments) -> list[tuple[tuple[str, ...], str, Any]]:
    """Of each property that is mirrored its path, its name and its value, None if it has none.

    Raises:
        ValueError: the arguments are no JSON. TypeError: JSON cannot say them.
    """
    if arguments is UNSET or arguments is None:
        arguments = b"{}"
    elif not isinstance(arguments, Raw | bytes):
        # By the way of its JSON, for that is what the header has to agree with.
        arguments = encode(arguments)
    values: dict[str, Any] = {}
    try:
        members = _read_members(arguments)
        if isinstance(members, dict):
            # Only what is asked for is decoded, since what stands beside it may be large.
            wanted = dict.fromkeys(path[0] for path in headers if path[0] in members)
            values = {key: _read_value(members[key]) for key in wanted}
    except Unreadable as exc:
        raise ValueError(f"the arguments cannot be read: {exc}") from None
    return [(path, name, _value(values, path)) for path, name in headers.items()]


def _value(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def said(value: Any) -> str | None:
    """The text of a value, None for one that has none: null, a list, an object, or a number that is not whole.

    Raises:
        ValueError: it is an integer beyond 2**53-1.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)  # JSON has one kind of numbers
    if not isinstance(value, int):
        return None
    if abs(value) > MAX_SAFE_INTEGER:
        raise ValueError("an integer beyond 2^53-1 cannot be mirrored in a header")
    return str(value)


def agrees(text: str, value: Any) -> bool:
    """Whether a header with this text is right for a value that `said` does not refuse. Numbers are compared as numbers: `42.0`
    is 42."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not _NUMBER.fullmatch(text):
            return False
        whole, _, fraction = text.partition(".")
        if isinstance(value, float) and not value.is_integer():
            return float(text) == value
        return int(whole) == value and not fraction.strip("0")
    return text == said(value)
