"""Schemas: those of types, and given ones - what of them is accepted, and that checking with them has an
end.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jsonschema
import msgspec
import pytest

from mcp_core.registry import DeclarationError
from mcp_core.registry._schema import (
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    MAX_VALUE_DEPTH,
    GivenSchema,
    depth_exceeds,
    schema_of,
    wrapped,
)


class Leaf(msgspec.Struct):
    x: int


class Node(msgspec.Struct):
    leaf: Leaf
    next: Node | None = None


def test_a_root_is_written_out() -> None:
    leaf = {"title": "Leaf", "type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    assert schema_of(int) == {"type": "integer"}
    assert schema_of(Leaf) == leaf
    assert schema_of(list[Leaf]) == {
        "type": "array",
        "items": {"$ref": "#/$defs/Leaf"},
        "$defs": {"Leaf": leaf},
    }


def test_a_type_that_contains_itself() -> None:
    schema = schema_of(Node)
    assert schema["type"] == "object"
    assert set(schema["$defs"]) == {"Leaf", "Node"}
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"leaf": {"x": 1}, "next": {"leaf": {"x": 2}}})
    assert not validator.is_valid({"leaf": {"x": 1}, "next": {"leaf": {"x": "2"}}})


@pytest.mark.requirement("TOOL-8")
def test_wrapping_keeps_references_whole() -> None:
    schema = wrapped(schema_of(list[Node]))
    assert schema["type"] == "object"
    assert schema["required"] == ["result"]
    jsonschema.Draft202012Validator(schema).validate({"result": [{"leaf": {"x": 1}}]})
    assert wrapped({"type": "integer"}) == {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
    }


def given(schema: Any) -> GivenSchema:
    return GivenSchema(schema, "tool 't'")


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.requirement("JSCH-1")
def test_without_a_dialect_it_is_2020_12() -> None:
    schema = given({"type": "array", "prefixItems": [{"type": "integer"}]})
    assert schema.fault_of([1, "x"]) is None
    assert schema.fault_of(["x"]) == ("[0]", "'x' is not of type 'integer'")
    assert repr(schema) == "<GivenSchema https://json-schema.org/draft/2020-12/schema>"


DRAFTS = [
    "http://json-schema.org/draft-03/schema#",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]


@pytest.mark.requirement("JSCH-1", "JSCH-2")
@pytest.mark.parametrize("dialect", DRAFTS)
def test_dialects(dialect: str) -> None:
    schema = given(
        {
            "$schema": dialect,
            "type": "object",
            "properties": {"n": {"$ref": "#/definitions/n"}},
            "definitions": {"n": {"type": "integer", "minimum": 1}},
        }
    )
    assert schema.fault_of({"n": 1}) is None
    assert schema.fault_of({"n": 0}) == ("n", "0 is less than the minimum of 1")
    assert schema.describes_object


@pytest.mark.requirement("JSCH-2")
def test_a_dialect_decides() -> None:
    """`items` as a list is an array's prefix up to 2019-09 and no schema at all since."""
    old = {"$schema": DRAFTS[3], "items": [{"type": "integer"}]}
    assert given(old).fault_of(["x"]) is not None
    with pytest.raises(DeclarationError, match="not a valid JSON Schema"):
        given({"items": [{"type": "integer"}]})


@pytest.mark.requirement("JSCH-2")
@pytest.mark.parametrize(
    "dialect", ["https://example.com/mine", "http://json-schema.org/draft-99/schema#", ""]
)
def test_an_unknown_dialect_is_told_at_once(dialect: str) -> None:
    with pytest.raises(DeclarationError, match=r"tool 't'.*dialect that is not supported"):
        given({"$schema": dialect, "type": "object"})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "objekt"}, "not a valid JSON Schema"),
        ({"type": 3}, "not a valid JSON Schema"),
        ({"properties": []}, "not a valid JSON Schema"),
        ({"$schema": 3}, "is 3, a dialect"),
        ([], "a schema is a dict, not list"),
        (None, "a schema is a dict, not NoneType"),
        ({"pattern": "("}, r"the pattern '\(' at # is wrong"),
        ({"patternProperties": {"[": {}}}, r"the pattern '\[' at # is wrong"),
        ({"default": object()}, "not JSON"),
        ({"default": float("nan"), (1, 2): 3}, "not JSON"),
    ],
)
@pytest.mark.requirement("JSCH-3")
def test_what_is_no_schema(schema: Any, why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        given(schema)


OUTSIDE = [
    "http://127.0.0.1:9/schema.json",
    "https://example.com/s",
    "file:///etc/passwd",
    "other.json",
    "other.json#/x",
    "//host/x",
    "https://json-schema.org/draft/2020-12/schema",
]


@pytest.mark.requirement("JSCH-5", "JSCH-7")
@pytest.mark.parametrize("reference", OUTSIDE)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_references_to_elsewhere_are_refused(reference: str, keyword: str) -> None:
    for place in ({keyword: reference}, {"properties": {"a": {"anyOf": [True, {keyword: reference}]}}}):
        with pytest.raises(DeclarationError, match="only references within the schema"):
            given(place)


@pytest.mark.requirement("JSCH-7")
@pytest.mark.parametrize("reference", ["#/$defs/none", "#none", "#/properties/a/items"])
def test_references_to_nothing_are_refused(reference: str) -> None:
    with pytest.raises(DeclarationError, match="the schema has no"):
        given({"properties": {"a": {"$ref": reference}}})


@pytest.mark.parametrize("draft", [DRAFTS[1], DRAFTS[6]])
def test_an_inner_identifier_would_move_references(draft: str) -> None:
    name = "id" if "draft-04" in draft else "$id"
    with pytest.raises(DeclarationError, match="identifier of its own"):
        given({"$schema": draft, "definitions": {"a": {name: "http://example.com/a"}}})


def test_what_only_looks_like_a_reference() -> None:
    schema = {
        "$id": "https://example.com/mine",
        "type": "object",
        "properties": {
            "$ref": {"type": "string"},
            "default": {"$ref": "#/$defs/d"},
            "id": {"type": "string", "id": "no keyword any more"},
            "e": {"const": {"$ref": "http://x"}, "examples": [{"$ref": "http://x"}]},
            "anchored": {"$ref": "#here"},
        },
        "$defs": {"d": {"type": "integer", "$anchor": "here"}},
    }
    checked = given(schema)
    assert checked.schema == schema
    assert checked.fault_of({"default": "x"}) == ("default", "'x' is not of type 'integer'")
    assert checked.fault_of({"anchored": "x"}) == ("anchored", "'x' is not of type 'integer'")
    assert checked.fault_of({"$ref": "x"}) is None


def chain(length: int, width: int = 2) -> dict[str, Any]:
    """A schema of `length` definitions in which each is `width` times the next: width**length steps in one
    line each.
    """
    defs: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * width} for i in range(length)
    }
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, f"d{length}": {"type": "integer"}}}


@pytest.mark.requirement("JSCH-8")
def test_a_schema_of_exponential_cost_ends() -> None:
    assert given(chain(6)).fault_of({"a": 1}) is None
    assert given(chain(40)).fault_of({"a": 1}) == ("", "its schema takes too many steps to check it")


@pytest.mark.requirement("JSCH-8")
def test_steps_are_counted_for_each_value_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = given(chain(8))  # 511 references
    monkeypatch.setattr("mcp_core.registry._schema.MAX_REFERENCES", 511)
    for _ in range(3):
        assert schema.fault_of({"a": 1}) is None
    monkeypatch.setattr("mcp_core.registry._schema.MAX_REFERENCES", 510)
    assert schema.fault_of({"a": 1}) is not None


@pytest.mark.requirement("JSCH-8")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$dynamicAnchor": "me", "anyOf": [{"$dynamicRef": "#me"}]},
        # As much as fits between two references.
        {
            "allOf": [
                {
                    "allOf": [
                        {
                            "allOf": [
                                {
                                    "allOf": [
                                        {"not": {"not": {"not": {"if": {"not": {"anyOf": [{"$ref": "#"}]}}}}}}
                                    ]
                                }
                            ]
                        }
                    ]
                }
            ]
        },
    ],
)
def test_a_schema_that_never_ends_is_refused(schema: Any) -> None:
    with pytest.raises(DeclarationError, match="refers to itself without end"):
        given(schema)


def test_a_legitimate_recursion_works_to_the_depth_of_values() -> None:
    schema = given(
        {
            "$ref": "#/$defs/tree",
            "$defs": {
                "tree": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]}
            },
        }
    )
    assert schema.fault_of(nested(MAX_VALUE_DEPTH)) is None


@pytest.mark.requirement("JSCH-8")
def test_a_loop_that_only_a_value_reaches_ends() -> None:
    schema = given({"properties": {"a": {"$ref": "#/properties/a"}}})
    assert schema.fault_of({"a": 1}) == ("", "its schema takes too many steps to check it")


@pytest.mark.requirement("JSCH-8")
def test_limits_of_schemas() -> None:
    def deep(depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        for _ in range(depth):
            schema = {"not": schema}
        return schema

    given(deep(MAX_SCHEMA_DEPTH - 1))
    given(deep(MAX_SCHEMA_DEPTH))
    with pytest.raises(DeclarationError, match="more than 32 deep"):
        given(deep(MAX_SCHEMA_DEPTH + 1))

    def long(size: int) -> dict[str, Any]:
        return {"description": "x" * (size - len('{"description":""}'))}

    given(long(MAX_SCHEMA_BYTES - 1))
    given(long(MAX_SCHEMA_BYTES))
    with pytest.raises(DeclarationError, match="has 262145 bytes"):
        given(long(MAX_SCHEMA_BYTES + 1))


def test_a_schema_that_contains_itself_as_a_dict() -> None:
    endless: dict[str, Any] = {}
    endless["not"] = endless
    with pytest.raises(DeclarationError, match="more than 32 deep"):
        given(endless)


@pytest.mark.requirement("JSCH-8")
def test_limits_of_values() -> None:
    schema = given({"type": "array", "items": {"$ref": "#"}})
    # The innermost value is no array, which is noticed last.
    assert given({}).fault_of(nested(MAX_VALUE_DEPTH - 1)) is None
    assert given({}).fault_of(nested(MAX_VALUE_DEPTH)) is None
    assert given({}).fault_of(nested(MAX_VALUE_DEPTH + 1)) == ("", "nested more than 64 deep")
    assert schema.fault_of(nested(MAX_VALUE_DEPTH)) is not None


def test_depth() -> None:
    assert not depth_exceeds(1, 0)
    assert depth_exceeds([1], 0)
    assert not depth_exceeds({"a": [1]}, 2)
    assert depth_exceeds({"a": [1]}, 1)
    assert not depth_exceeds([], 1)


def test_a_fault_is_told_where_it_is() -> None:
    schema = given(
        {"properties": {"days": {"type": "array", "items": {"type": "integer"}}}, "required": ["city"]}
    )
    assert schema.fault_of({"city": "x", "days": [1, "b"]}) == ("days[1]", "'b' is not of type 'integer'")
    assert schema.fault_of({"days": []}) == ("", "'city' is a required property")


def test_a_long_fault_is_cut() -> None:
    fault = given({"type": "integer"}).fault_of("x" * 100_000)
    assert fault is not None
    assert len(fault[1]) < 600
    assert fault[1].endswith("is not of type 'integer'")


def test_many_faults_are_not_all_looked_at() -> None:
    assert given({"items": {"type": "string"}}).fault_of([0] * 100_000) is not None


def test_whole_numbers_are_integers() -> None:
    assert given({"type": "integer"}).fault_of(3.0) is None
    assert given({"type": "integer"}).fault_of(3.5) is not None


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    """`import mcp_core.registry`, and tools without a given schema, leave `jsonschema` alone."""
    program = (
        "import sys\n"
        "from mcp_core.registry import Server\n"
        "server = Server('s')\n"
        "@server.tool(description='d')\n"
        "def f(x: int) -> list[int]: ...\n"
        "print(sorted({'jsonschema', 'referencing', 'asyncio', 'threading', 'logging', 'socket'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
