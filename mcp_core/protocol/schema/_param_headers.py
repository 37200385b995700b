"""Tool arguments that are repeated in HTTP headers: which, in which header, with which text.

A property with `"x-mcp-header": "Region"` in a tool's input schema makes its argument travel as
`Mcp-Param-Region` too, for intermediaries that route requests without reading bodies (2026-07-28,
basic/transports/streamable-http, Custom Headers from Tool Parameters).

1. A schema with one invalid annotation is rejected as a whole. If two annotations conflict, it is
   unknown on which of them an intermediary relies.
2. A header repeats the value at exactly the path of its property, as the JSON is sent. No argument,
   or null, means no header.
3. Schemas come from peers too. Reading one takes time linear in its size, up to a bound.

How a header value is encoded is in `http`, and so is which side made an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from mcp_core._patterns import compile_on_first_use
from mcp_core.protocol.jsonrpc._codec import (
    MAX_SAFE_INTEGER,
    InvalidPayload,
    encode,
    has_duplicates,
    reader,
)

from ._json_schema import DATA_KEYWORDS, SCHEMA_MAP_KEYWORDS

__all__ = [
    "ANNOTATION",
    "HEADER_TOKEN",
    "Arguments",
    "ParamHeaders",
    "format_value",
    "header_matches",
    "mirrored_values",
    "param_headers",
    "param_values",
]

ANNOTATION: Final = "x-mcp-header"

# From the path of each mirrored property to the part of its header's name after `Mcp-Param-`.
ParamHeaders: TypeAlias = Mapping[tuple[str, ...], str]
# The arguments of one call: encoded, as in a message, or as a program passes them.
Arguments: TypeAlias = Raw | bytes | Mapping[str, Any] | UnsetType | None

# Containers and their members. A schema of a megabyte has fewer; reading that many takes some
# hundredths of a second.
MAX_PARTS: Final = 100_000
# Properties nested in properties. Intermediaries have no use for deeper ones.
MAX_DEPTH: Final = 16
# HTTP servers accept about a hundred headers per request, with names of some hundred characters.
MAX_HEADERS: Final = 64
MAX_NAME: Final = 128
# Characters of the names of the properties that lead to a mirrored one. A client keeps them.
MAX_PATH: Final = 1024

HEADER_TOKEN: Final = compile_on_first_use(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TYPES: Final = ("string", "integer", "boolean")
# Integers up to 2**53, with a fraction for clients that have only floats. No other notation: a
# header that can be read in several ways matches nothing.
_NUMBER: Final = compile_on_first_use(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,20})?")

# Arguments that aren't an object have no members. Rejecting them is the task of the tool call.
_read_members = reader(dict[str, Raw] | list[Raw] | str | float | bool | None)  # type: ignore[arg-type]
_read_value = reader(Any)


# -- Schemas -------------------------------------------------------------------------------------


def param_headers(schema: dict[str, Any]) -> dict[tuple[str, ...], str]:
    """Return the mirrored properties of an input schema; `{}` for most schemas.

    Args:
        schema: the `inputSchema` of a tool, decoded.

    Returns:
        for the path of each property its header's name, without `Mcp-Param-`.

    Raises:
        ValueError: an annotation is invalid or its path too long, and the text says why; or the
            schema has more than 100,000 parts.
    """
    found: dict[tuple[str, ...], str] = {}
    names: set[str] = set()
    for path, node in _annotated(schema):
        name = _name(path, node)
        assert path is not None
        if name.lower() in names:
            raise ValueError(f"{ANNOTATION} {name!r} is used twice (case does not matter)")
        if len(found) == MAX_HEADERS:
            raise ValueError(f"it has more than {MAX_HEADERS} properties with {ANNOTATION}")
        names.add(name.lower())
        found[path] = name
    return found


def _annotated(schema: dict[str, Any]) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Yield every schema object with an annotation, and the path of properties that leads to it.

    The path is None if the object isn't reached through `properties` alone. Keywords whose value
    is data are skipped. A property that is merely named `x-mcp-header` doesn't count.
    """
    queue: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    parts = 0
    for path, node in queue:  # the loop appends to it
        parts = _add_parts(parts, node)
        if isinstance(node, list):
            queue += [(None, item) for item in node if isinstance(item, dict | list)]
            continue
        if ANNOTATION in node:
            yield path, node
        for key, value in node.items():
            if key in SCHEMA_MAP_KEYWORDS and isinstance(value, dict):
                parts = _add_parts(parts, value)
                # No paths for deeper properties: a path could be as long as the schema is deep.
                inner = (
                    path
                    if key == "properties" and path is not None and len(path) < MAX_DEPTH
                    else None
                )
                queue += [
                    (None if inner is None else (*inner, name), child)
                    for name, child in value.items()
                    if isinstance(child, dict)
                ]
            elif key not in DATA_KEYWORDS and isinstance(value, dict | list):
                queue.append((None, value))


def _add_parts(parts: int, node: dict[str, Any] | list[Any]) -> int:
    parts += len(node)
    if parts > MAX_PARTS:
        raise ValueError(f"the schema has more than {MAX_PARTS} parts")
    return parts


def _name(path: tuple[str, ...] | None, node: dict[str, Any]) -> str:
    name = node[ANNOTATION]
    kind = node.get("type")
    if not isinstance(name, str):
        raise ValueError(f"{ANNOTATION} is a string, not {type(name).__name__}")
    if not path:
        raise ValueError(
            f"{ANNOTATION} {name[:MAX_NAME]!r} is not on a property that is reached from the root "
            f"through `properties` alone ({MAX_DEPTH} of them at most)"
        )
    if sum(map(len, path)) > MAX_PATH:
        raise ValueError(f"the path of {_path_text(path)} is longer than {MAX_PATH} characters")
    if not HEADER_TOKEN.fullmatch(name) or len(name) > MAX_NAME:
        raise ValueError(
            f"{ANNOTATION} {name[:MAX_NAME]!r} of {_path_text(path)} "
            "cannot be part of a header's name"
        )
    if kind not in _TYPES:
        actual = (
            f"its type is {str(kind)[:64]!r}" if isinstance(kind, str) else "it has no single type"
        )
        raise ValueError(
            f"{ANNOTATION} {name!r} is for properties of the types string, integer or boolean: "
            f"of {_path_text(path)} {actual}"
        )
    return name


def _path_text(path: tuple[str, ...]) -> str:
    return repr(".".join(path)[:MAX_NAME])


# -- Values --------------------------------------------------------------------------------------


def param_values(headers: ParamHeaders, arguments: Arguments) -> list[tuple[str, str]]:
    """Return for each property that has a value its name, as annotated, and its text.

    Raises:
        ValueError: the arguments aren't JSON, or one is an integer beyond 2**53-1, which not every
            reader of a header can represent.
        TypeError: JSON cannot represent the arguments.
    """
    texts = ((name, format_value(value)) for _, name, value in mirrored_values(headers, arguments))
    return [(name, text) for name, text in texts if text is not None]


def mirrored_values(
    headers: ParamHeaders, arguments: Arguments
) -> list[tuple[tuple[str, ...], str, Any]]:
    """Return path, name and value of each mirrored property; the value is None if absent.

    Raises:
        ValueError: the arguments aren't JSON, or an object in which a mirrored property is has a
            member twice: a proxy may see another value than the tool.
        TypeError: JSON cannot represent the arguments.
    """
    if arguments is UNSET or arguments is None:
        arguments = b"{}"
    elif not isinstance(arguments, Raw | bytes):
        # Through their JSON, because the header has to match that.
        arguments = encode(arguments)
    values: dict[str, Any] = {}
    try:
        members = _read_members(arguments)
        if isinstance(members, dict):
            # Decode only the members that are needed: the others may be large.
            needed = dict.fromkeys(path[0] for path in headers if path[0] in members)
            values = {key: _read_value(members[key]) for key in needed}
            if _has_duplicates_on(headers, arguments):
                raise ValueError("an object in the arguments has a member twice")
    except InvalidPayload as exc:
        raise ValueError(f"the arguments cannot be read: {exc}") from None
    return [(path, name, _value(values, path)) for path, name in headers.items()]


def _has_duplicates_on(paths: Iterable[tuple[str, ...]], data: Raw | bytes) -> bool:
    """Return True if an object on one of `paths` through the object `data` has a member twice."""
    if has_duplicates(data):
        return True
    longer = [path for path in paths if len(path) > 1]
    members = _read_members(data) if longer else {}
    return isinstance(members, dict) and any(
        _has_duplicates_on([path[1:] for path in longer if path[0] == key], members[key])
        for key in dict.fromkeys(path[0] for path in longer)
        if key in members
    )


def _value(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def format_value(value: Any) -> str | None:
    """Return the text of a value, or None if it has none.

    Null, lists, objects and numbers with a fraction have no text.

    Raises:
        ValueError: the value is an integer beyond 2**53-1.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)  # JSON doesn't distinguish 42.0 from 42
    if not isinstance(value, int):
        return None
    if abs(value) > MAX_SAFE_INTEGER:
        raise ValueError("an integer beyond 2^53-1 cannot be mirrored in a header")
    return str(value)


def header_matches(text: str, value: Any) -> bool:
    """Return True if a header with this text matches a value that `format_value` accepts.

    Numbers are compared as numbers: `42.0` matches 42.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not _NUMBER.fullmatch(text):
            return False
        whole, _, fraction = text.partition(".")
        if isinstance(value, float) and not value.is_integer():
            return float(text) == value
        return int(whole) == value and not fraction.strip("0")
    return text == format_value(value)
