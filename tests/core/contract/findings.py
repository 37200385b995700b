"""All that is found between each two of a table of schemas, in `findings.txt`.

    python -m tests.core.contract.findings

writes the file again. A change of the comparison shows in it which findings, examples and verdicts
it changes, also of keywords that the change isn't about: read that difference before you commit it.

Below each schema are the examples that are made for it, its verdicts on documents (`+`, `-`, and
`?` if it is unclear), and for each other schema what is found if an input changes to that one:
the new members, and the findings, `!` if they are certain. The number is the steps it takes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from mcp_core.contract._documents import NO_SCHEMA, SchemaRoot
from mcp_core.contract._schemas import Direction, compare_schemas, new_members
from tests.core.contract.schemas import DOCUMENTS
from tests.kept import read_kept, write_kept

__all__ = ["SCHEMAS", "findings_from", "kept_findings"]

_FILE: Final = Path(__file__).with_name("findings.txt")
_STEPS: Final = 2_000
_S: Final = {"type": "string"}
_W: Final = {"type": "integer"}
_A: Final = {"$ref": "#/$defs/a"}
_TREE: Final = {"properties": {"value": _S, "kids": {"type": "array", "items": _A}}}
_DRAFT_4: Final = "http://json-schema.org/draft-04/schema#"
_DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"
# More documents for keywords that those of other tests rarely meet.
_MORE: Final = [
    *(["x", "x"], ["x", "y", "z"], [1, 2, 3], [1, 1.0], [True, 1], [0.5, 2], [{"a": 1}, {"a": 1}]),
    *({"k": "x", "v": 1}, {"k": "y", "v": "z"}, {"k": "x"}, {"k": "y", "w": 2}, {"v": 3}),
    *({"xa": 1}, {"xa": "x"}, {"a": "x", "b": "y", "c": 1}, {"a": {"b": "x"}}, {"a": {"b": 1}}),
    *({"value": 1}, {"value": "x", "kids": [{"value": "y"}]}, {"kids": [{"kids": [5]}]}),
    *(3, 4, 5, 9, 10, 2.5, -0.5, 1e300, "a", "ab", "abc", "abcd", "2020-01-02", "a@b.c"),
]

SCHEMAS: Final[dict[str, Any]] = {
    "any": {},
    "nothing": False,
    "text": _S,
    "integer": _W,
    "texts or null": {"type": ["string", "null"]},
    "lengths": {**_S, "minLength": 2, "maxLength": 3},
    "pattern": {**_S, "pattern": "^[a-c]{2,3}$"},
    "format": {**_S, "format": "date"},
    "values": {"enum": ["x", 1, None, {"a": "x"}]},
    "constant": {"const": "x"},
    "typed values": {**_S, "enum": ["x", "yy", 5]},
    "number": {"type": "number", "minimum": 1, "exclusiveMaximum": 9},
    "exclusive": {"type": "number", "exclusiveMinimum": 1, "maximum": 9.5},
    "steps": {**_W, "multipleOf": 2, "minimum": -0.5},
    "steps of numbers": {"type": "number", "multipleOf": 0.5},
    "draft-04": {"$schema": _DRAFT_4, **_W, "minimum": 1, "exclusiveMinimum": True},
    "array": {"type": "array", "items": _S},
    "long array": {"type": "array", "items": _W, "minItems": 2, "maxItems": 3},
    "unique": {"type": "array", "uniqueItems": True, "maxItems": 2},
    "tuple": {"type": "array", "prefixItems": [_S, _W], "items": False, "minItems": 1},
    "open tuple": {"type": "array", "prefixItems": [_S], "items": {"type": ["integer", "string"]}},
    "draft-07": {"$schema": _DRAFT_7, "type": "array", "items": [_S, _W], "additionalItems": _S},
    "contains": {"type": "array", "contains": _W, "minContains": 2, "maxContains": 3},
    "object": {"type": "object", "properties": {"a": _S, "b": _W}, "required": ["a"]},
    "closed": {"properties": {"a": _S, "b": _S, "c": {}}, "additionalProperties": False},
    "dictionary": {"type": "object", "additionalProperties": _W},
    "counted": {"type": "object", "minProperties": 1, "maxProperties": 2, "required": ["a"]},
    "by pattern": {"type": "object", "patternProperties": {"^x": _W}, "properties": {"a": _S}},
    "nested": {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": _S, "d": _W}}, "c": _W},
    },
    "names": {"type": "object", "propertyNames": {"maxLength": 1}},
    "depends": {"type": "object", "dependentRequired": {"a": ["b"]}},
    "any of": {"anyOf": [_S, {**_W, "minimum": 1}, {"type": "object", "required": ["b"]}]},
    "one of": {"oneOf": [_S, {"enum": ["x", 1]}, {"type": "array"}]},
    "tags": {
        "oneOf": [
            {"properties": {"k": {"const": "x"}, "v": _W}, "required": ["k"], "type": "object"},
            {"properties": {"k": {"const": "y"}, "v": _S}, "required": ["k"], "type": "object"},
        ]
    },
    "alternatives": {
        "type": "object",
        "anyOf": [{"properties": {"k": _S, "v": _W}}, {"properties": {"k": _S, "w": _W}}],
    },
    "all of": {"allOf": [{"properties": {"a": _S}}, {"properties": {"b": _W}, "required": ["b"]}]},
    "not": {"not": {"type": ["array", "object"]}},
    "condition": {
        "type": "object",
        "if": {"properties": {"k": {"const": "x"}}, "required": ["k"]},
        "then": {"required": ["v"]},
        "else": {"properties": {"w": _S}},
    },
    "reference": {**_A, "$defs": {"a": {"type": "object", "properties": {"a": _S}}}},
    "old reference": {"$ref": "#/definitions/a", "definitions": {"a": _W}},
    "tree": {**_A, "$defs": {"a": _TREE}},
    "other tree": {**_A, "$defs": {"a": {**_TREE, "type": "object", "required": ["value"]}}},
    "endless": {**_A, "$defs": {"a": _A}},
    "elsewhere": {"$ref": "https://a.test/x"},
    "unevaluated": {"allOf": [{"properties": {"a": _S}}], "unevaluatedProperties": False},
    "wrong": {"type": "text", "properties": [], "required": "a", "allOf": {}, "anyOf": 5},
    "wrong bounds": {"minLength": "1", "minimum": None, "maxItems": -1, "minProperties": 1.5},
}


def findings_from(name: str) -> str:
    """Return what is found about a schema, and if an input changes from it, in lines."""
    schema = SCHEMAS[name]
    root = SchemaRoot(schema, 100_000)
    verdicts = "".join(
        {True: "+", False: "-", None: "?"}[root.fits(each, schema)] for each in (*DOCUMENTS, *_MORE)
    )
    made = [_shown(each) for each in root.examples(schema)]
    lines = [f"  examples {' '.join(made)}", f"  {verdicts}"]
    for other, new in SCHEMAS.items():
        found, left = compare_schemas(schema, new, Direction(is_input=True), steps=_STEPS)
        members, more = new_members(schema, new, steps=_STEPS)
        lines.append(f"  to {other}: {_STEPS - left}, {_STEPS - more}")
        lines += [f"    + {place} {member}" for place, member in members]
        lines += [
            f"    {each.place} {each.sentence}" + f" ! {_shown(each.example)}" * each.is_certain
            for each in found
        ]
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def _shown(value: Any) -> str:
    return "no example" if value is NO_SCHEMA else json.dumps(value)


def kept_findings() -> dict[str, str]:
    """Return the findings that are kept, by the schema's name."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: findings_from(name) for name in SCHEMAS})
