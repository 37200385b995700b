"""The errors of each value by each schema, and what each schema mirrors, in `checked_values.txt`.

    python -m tests.core.protocol.schema.checked_values

writes the file again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core import types as t
from mcp_core.protocol.input_requests._kinds import exact_form_schema, find_error, form_schema
from mcp_core.protocol.input_requests._lenient_form import simple_form
from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.protocol.schema._json_schema import InvalidSchema, JsonSchema, UntrustedSchema
from mcp_core.protocol.schema._param_headers import (
    format_value,
    header_matches,
    mirrored_values,
    param_headers,
    param_values,
)
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["checked_values", "errors_of", "kept_values"]

_FILE: Final = Path(__file__).with_name("checked_values.txt")
_TEXT: Final = {"type": "string"}
_SCHEMAS: Final[dict[str, Any]] = {
    "type": _TEXT,
    "types": {"type": ["integer", "null"]},
    "enum": {"enum": ["ä", 1, None]},
    "const": {"const": {"a": "ä"}},
    "length": {"minLength": 2, "maxLength": 3},
    "range": {"minimum": 1, "maximum": 3},
    "open range": {"exclusiveMinimum": 1, "exclusiveMaximum": 3},
    "multiple": {"multipleOf": 0.01},
    "pattern": {"pattern": "^a"},
    "items": {"items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    "unique": {"uniqueItems": True},
    "contains": {"contains": {"type": "integer"}},
    "first items": {"prefixItems": [_TEXT], "items": False},
    "required": {"required": ["a", "b"]},
    "properties": {"properties": {"a": {"type": "integer"}, "b": {"properties": {"c": _TEXT}}}},
    "no more": {"properties": {"a": {}}, "additionalProperties": False},
    "no more but patterns": {
        "patternProperties": {"^a": {"type": "integer"}},
        "additionalProperties": False,
    },
    "patterns": {"patternProperties": {"^a": _TEXT}},
    "more": {"additionalProperties": {"type": "integer"}},
    "names": {"propertyNames": {"maxLength": 1}},
    "dependent": {"dependentRequired": {"a": ["b"]}},
    "any": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "one": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
    "all": {"allOf": [{"minimum": 1}, {"maximum": 2}]},
    "not": {"not": {"type": "string"}},
    "not a pattern": {"not": {"pattern": "^a"}},
    "condition": {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}},
    "reference": {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}},
    "reference by name": {"$ref": "#n", "$defs": {"n": {"$anchor": "n", "type": "integer"}}},
    "itself": {"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"type": "integer"}},
    "without end": {"$ref": "#"},
    "unevaluated": {"properties": {"a": {}}, "unevaluatedProperties": False},
    "false": {"properties": {"a": False}},
    "format": {"format": "email"},
    "unknown keyword": {"odd": 1},
    "draft 4": {"$schema": "http://json-schema.org/draft-04/schema#", "divisibleBy": 2},
    "draft 3": {"$schema": "http://json-schema.org/draft-03/schema#", "disallow": "string"},
    "dialect": {"$schema": "https://example.com/odd"},
    "dialect of another type": {"$schema": 5},
    "dialect inside": {"properties": {"a": {"$schema": "x"}}},
    "name inside": {"properties": {"a": {"$id": "x"}}},
    "reference elsewhere": {"properties": {"a": {"$ref": "https://a/b"}}},
    "reference to nothing": {"items": [{"$ref": "#/$defs/x"}]},
    "reference as data": {"default": {"$ref": "https://a/b"}, "properties": {"$ref": {}}},
    "pattern that is wrong": {"properties": {"a": {"pattern": "["}}},
    "name that is wrong": {"patternProperties": {"[": {}}},
    "type that is wrong": {"type": "text"},
    "minimum that is wrong": {"properties": {"a": {"minimum": "x"}}},
    "long message": {"enum": ["x" * 600]},
}
_VALUES: Final[list[Any]] = [
    *(None, True, 0, 1, 1.0, 1.005, 2, 3, 19.99, 1e400, "", "a", "ab", "ä", "abcd"),
    *([], [1], ["a", 1], [1, 1], [1, "a", 2], {}, {"a": 1}, {"a": "x", "b": {"c": 1}}),
    *({"b": 1, "c": 2}, {"a": {"a": "x"}}, {"ab": "x", "": 1}, {"a": "ä"}),
]
_HEADERS: Final[list[Any]] = [
    {},
    {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}},
    {
        "properties": {
            "a": {"type": "integer", "x-mcp-header": "A-1"},
            "b": {"properties": {"c": {"type": "boolean", "x-mcp-header": "C"}, "d": {}}},
        }
    },
    {"properties": {"x-mcp-header": {"type": "string"}, "a": {"default": {"x-mcp-header": 5}}}},
    {"x-mcp-header": "A", "type": "string"},
    {"properties": {"a": {"type": "string", "x-mcp-header": 5}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
    {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
    {"properties": {"a": {"type": ["string"], "x-mcp-header": "A"}}},
    {"properties": {"a": {"x-mcp-header": "A"}}},
    {
        "properties": {
            "a": {"type": "string", "x-mcp-header": "A"},
            "b": {"type": "string", "x-mcp-header": "a"},
        }
    },
    {"items": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}},
    {"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
    {"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "A" * 128}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "A" * 129}}},
    {"properties": {"a" * 1024: {"type": "string", "x-mcp-header": "A"}}},
    {"properties": {"a" * 1025: {"type": "string", "x-mcp-header": "A"}}},
    {"properties": {f"p{n}": {"type": "string", "x-mcp-header": f"A{n}"} for n in range(64)}},
    {"properties": {f"p{n}": {"type": "string", "x-mcp-header": f"A{n}"} for n in range(65)}},
]
_ARGUMENTS: Final[list[Any]] = [
    *(None, b"{}", b"null", b"5", b"[1]", b'"x"', b"{", {}, {"a": 1j}),
    *({"a": "x"}, {"a": 5, "b": {"c": True}}, {"a": None, "b": 5}, {"a": 1.5}, {"a": 2.0}),
    *({"a": 2**53 - 1}, {"a": 2**53}, {"b": {"c": False, "d": 1}}, {"a": [1], "b": [1]}),
    *(b'{"a":1,"a":2}', b'{"b":{"c":true,"c":false}}', b'{"x":{"y":1,"y":2},"a":3}'),
]
_MIRRORED: Final = {("a",): "A", ("b", "c"): "C", ("b", "e"): "E"}
_FIELDS: Final[dict[str, Any]] = {
    "text": _TEXT,
    "length": {"type": "string", "minLength": 2, "maxLength": 3},
    "format": {"type": "string", "format": "email"},
    "other format": {"type": "string", "format": "uuid"},
    "choice": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
    "titles": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
    "choice without a type": {"enum": ["a", "b"]},
    "titles without a type": {"oneOf": [{"const": "a", "title": "A"}]},
    "choice of numbers": {"enum": [1, 2]},
    "choice with null": {"type": ["string", "null"], "enum": ["a", None]},
    "number": {"type": "number", "minimum": 1, "maximum": 2.5},
    "integer": {"type": "integer", "minimum": 1, "maximum": 2},
    "numbers": {"anyOf": [{"type": "integer"}, {"type": "number"}]},
    "text or number": {"anyOf": [{"type": "string"}, {"type": "number"}]},
    "types": {"type": ["integer", "number"]},
    "type and null": {"type": ["boolean", "null"]},
    "only null": {"type": ["null"]},
    "boolean": {"type": "boolean", "default": True},
    "text or null": {"anyOf": [{"type": "string", "title": "x"}, {"type": "null"}], "title": "y"},
    "null or text": {"oneOf": [{"const": None}, {"anyOf": [_TEXT, {"type": "null"}]}]},
    "text or nothing else": {"anyOf": [_TEXT]},
    "several": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1},
    "several with titles": {
        "type": "array",
        "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        "maxItems": 1,
    },
    "several without a type": {"type": "array", "items": {"enum": ["a", "b"]}},
    "several texts": {"type": "array", "items": _TEXT},
    "object": {"type": "object"},
    "nothing": {},
    "no schema": 5,
}
_CONTENTS: Final[list[Any]] = [
    *(None, True, 0, 1, 1.0, 1.5, 2, 2.5, 3, "", "a", "ab", "abc", "abcd", [], ["a"], ["a", "b"]),
]


def _tried(do: Callable[[], Any]) -> str:
    try:
        found = do()
    except (InvalidSchema, InvalidPayload, ValueError, TypeError) as exc:
        # The others have texts of msgspec, which another release may change.
        reason = f": {exc}" if isinstance(exc, ValueError) else ""
        return f"{type(exc).__name__}{reason}"[:260]
    return found if isinstance(found, str) else f"{found}"


def _grouped(found: dict[str, list[str]]) -> Iterator[str]:
    for error, values in found.items():
        yield f"{error}: {' '.join(values)}"


def _of_schema(name: str) -> Iterator[str]:
    own, of_a_peer = (list(_errors(_SCHEMAS[name], kind)) for kind in (JsonSchema, UntrustedSchema))
    yield from own
    yield "of a peer the same" if of_a_peer == own else "of a peer:"
    yield from of_a_peer if of_a_peer != own else ()


def _errors(schema: Any, kind: type[JsonSchema]) -> Iterator[str]:
    try:
        made = kind(schema)
    except InvalidSchema as exc:
        yield f"{type(exc).__name__}: {str(exc).partition(': $')[0]}"
        return
    yield f"{repr(made).partition(' ')[2]} {made.describes_object}"
    found: dict[str, list[str]] = {}
    for value in _VALUES:
        error = made.find_error(value)
        shown = "fits" if error is None else f"{error[0]!r} {error[1][:200]}"
        found.setdefault(shown, []).append(json.dumps(value, ensure_ascii=False))
    yield from (f"  {line}" for line in _grouped(found))


def _of_headers() -> Iterator[str]:
    for schema in _HEADERS:
        yield json.dumps(schema)[:120]
        yield f"  {_tried(lambda schema=schema: param_headers(schema))[:300]}"  # type: ignore[misc]
    for depth in (15, 16, 17):
        schema = {"type": "string", "x-mcp-header": "A"}
        for _ in range(depth):
            schema = {"properties": {"p": schema}}
        found = _tried(lambda schema=schema: param_headers(schema))  # type: ignore[misc]
        yield f"{depth} deep: {found}"


def _of_arguments() -> Iterator[str]:
    for arguments in _ARGUMENTS:
        yield "object" if isinstance(arguments, dict) and not arguments else str(arguments)[:60]
        for read in (mirrored_values, param_values):
            yield f"  {_tried(lambda read=read: read(_MIRRORED, arguments))}"  # type: ignore[misc]  # noqa: B023


def _of_texts() -> Iterator[str]:
    values: list[Any] = [
        *("x", "", "5", "true", True, False, 0, 5, -5, 5.0, 5.5, 2**53 - 1, 2**53, -(2**53)),
        *(None, [], {}, 1e300),
    ]
    texts = [
        *("x", "", "5", "5.0", "5.00", "5.5", "05", "+5", "-5", "-5.0", "-0", "0", "0.0", "5e0"),
        *("5.", ".5", "true", "True", "false", "9007199254740991", "9007199254740991.0", "5.01"),
        *("5." + "0" * 20, "5." + "0" * 21),
    ]
    for value in values:
        text = _tried(lambda value=value: repr(format_value(value)))  # type: ignore[misc]
        matching = (
            [] if "Error" in text else [each for each in texts if header_matches(each, value)]
        )
        yield f"{value!r}: {text} {matching}"


def _of_field(name: str) -> Iterator[str]:
    schema = {"type": "object", "properties": {"f": _FIELDS[name]}, "required": ["f"]}
    yield json.dumps(simple_form(schema)["properties"]["f"])
    question = t.ElicitRequest(t.ElicitParams(message="m", requested_schema=schema))
    for read in (exact_form_schema, form_schema):
        yield _tried(lambda read=read: read(question))  # type: ignore[misc]
    try:
        form_schema(question)
    except InvalidPayload:
        return
    found: dict[str, list[str]] = {}
    for value in _CONTENTS:
        answer = t.ElicitResult(action="accept", content={"f": value, "more": 1})
        error = find_error(question, answer)
        found.setdefault(error or "fits", []).append(json.dumps(value))
    without = t.ElicitResult(action="accept", content={"more": 1})
    found.setdefault(find_error(question, without) or "fits", []).append("nothing")
    yield from _grouped(found)


_TABLES: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "headers": _of_headers,
    "arguments": _of_arguments,
    "texts of headers": _of_texts,
}


def checked_values() -> list[str]:
    """Return the names of the schemas, fields of forms, and tables."""
    return [
        *(f"schema: {name}" for name in _SCHEMAS),
        *(f"field: {name}" for name in _FIELDS),
        *_TABLES,
    ]


def errors_of(name: str) -> str:
    """Return what is found by a schema or a field, or the lines of a table."""
    kind, _, rest = name.partition(": ")
    if kind in _TABLES:
        lines = _TABLES[kind]()
    else:
        lines = _of_schema(rest) if kind == "schema" else _of_field(rest)
    return "\n".join(f"  {line}" for line in lines).encode("ascii", "backslashreplace").decode()


def kept_values() -> dict[str, str]:
    """Return the texts in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: errors_of(name) for name in checked_values()})
