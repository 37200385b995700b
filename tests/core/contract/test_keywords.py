"""Keywords of one schema: what it says about types, members, counts and bounds."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mcp_core.contract import _keywords as keywords
from mcp_core.contract._documents import NAMES_OF_TYPES, SchemaRoot

UPPER, LOWER = ("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")


@pytest.mark.parametrize(
    ("schema", "keys", "sign", "is_whole", "bound"),
    [
        ({}, LOWER, 1, False, (-math.inf, False)),
        ({"minimum": 1.5}, LOWER, 1, False, (1.5, False)),
        ({"exclusiveMinimum": 1.5}, LOWER, 1, False, (1.5, True)),
        ({"minimum": 2, "exclusiveMinimum": 2}, LOWER, 1, False, (2, True)),
        ({"minimum": 3, "exclusiveMinimum": 2}, LOWER, 1, False, (3, False)),
        ({"minimum": 1.5}, LOWER, 1, True, (2, False)),
        ({"minimum": 2}, LOWER, 1, True, (2, False)),
        ({"exclusiveMinimum": 1.5}, LOWER, 1, True, (2, False)),
        ({"exclusiveMinimum": 2}, LOWER, 1, True, (3, False)),
        ({"maximum": 1.5}, UPPER, -1, False, (-1.5, False)),
        ({"maximum": 1.5}, UPPER, -1, True, (-1, False)),
        ({"exclusiveMaximum": 2}, UPPER, -1, True, (-1, False)),
        ({"minimum": True, "exclusiveMinimum": "1"}, LOWER, 1, False, (-math.inf, False)),
    ],
)
def test_bound_is_the_narrower_of_two(
    schema: Any, keys: Any, sign: int, is_whole: bool, bound: Any
) -> None:
    assert keywords.bound_of(schema, keys, sign, is_whole) == bound


@pytest.mark.parametrize(
    ("mine", "step", "is_whole", "expected"),
    [
        (4, 2, False, True),
        (2, 4, False, False),
        (0.3, 0.1, False, True),
        (None, 1, True, True),
        (None, 0.5, True, True),
        (None, 2, True, False),
        (None, 1, False, False),
        (4, 0, False, False),
        (4, -2, False, False),
        (4, "2", False, False),
        ("4", 2, False, False),
        (True, 1, False, False),
        (1e300, 1e-300, False, False),
    ],
)
def test_multiples_of_a_multiple_are_multiples(
    mine: Any, step: Any, is_whole: bool, expected: bool
) -> None:
    schema = {} if mine is None else {"multipleOf": mine}
    assert keywords.is_multiple_of(schema, step, is_whole) is expected


@pytest.mark.parametrize(
    ("value", "is_length"),
    [
        (0, True),
        (10_000, True),
        (10_001, False),
        (-1, False),
        (1.5, True),
        (True, False),
        ("1", False),
    ],
)
def test_length_of_an_example_is_a_number_up_to_ten_thousand(value: Any, is_length: bool) -> None:
    assert keywords.is_length(value) is is_length


def test_length_beyond_a_bound_is_the_nearest() -> None:
    assert [keywords.beyond(key, 3) for key in ("minLength", "maxItems")] == [2, 4]
    assert keywords.beyond("minLength", "3") is None
    assert keywords.count_of({"a": 2}, "a", 5) == 2
    assert keywords.count_of({"a": "2"}, "a", 5) == keywords.count_of({}, "a", 5) == 5


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "number"}, ("integer", "number")),
        ({"type": ["string", "null"]}, ("null", "string")),
        ({"type": "integer"}, ("integer",)),
        ({"type": []}, ()),
        ({"type": "text"}, NAMES_OF_TYPES),
        ({}, NAMES_OF_TYPES),
        (True, NAMES_OF_TYPES),
    ],
)
def test_types_are_what_type_says(schema: Any, types: Any) -> None:
    assert keywords.types_of(schema) == types


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"const": 1, "enum": [2]}, [1]),
        ({"enum": [2, 3]}, [2, 3]),
        ({"enum": 5}, None),
        ({"type": "null"}, [None]),
        ({"type": "boolean"}, [True, False]),
        ({"type": ["null", "boolean"]}, [None, True, False]),
        ({"type": ["null", "string"]}, None),
        ({"type": []}, None),
        ({}, None),
    ],
)
def test_listed_values_are_all_that_a_schema_accepts(schema: Any, values: Any) -> None:
    assert keywords.listed_values(schema) == values


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], ""),
        (["é", 1, None], '"é", 1, null'),
        ([1, 2, 3, 4, 5], "1, 2, 3, 4, 5"),
        ([1, 2, 3, 4, 5, 6], "1, 2, 3, 4, 5 and 1 more"),
        (["x" * 58], f'"{"x" * 58}"'),
        (["x" * 59], f'"{"x" * 59}...'),
    ],
)
def test_first_values_are_shown(values: Any, shown: str) -> None:
    assert keywords.show_values(values) == shown


def test_unused_name_is_in_no_object() -> None:
    assert keywords.unused_name({}, {"a": 1}) == "other"
    assert keywords.unused_name({"other": 1}, {"other1": 1}) == "other2"
    assert keywords.required_names(["a", 5, "b"]) == ["a", "b"]
    assert keywords.required_names("ab") == keywords.required_names(None) == []
    assert keywords.has_kind(1, int)
    assert not keywords.has_kind(True, int)
    assert not keywords.has_kind("1", (int, float))


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"properties": {"a": 1}, "required": ["b"]}, "ab"),
        *(({key: [{"required": ["a"]}, {"required": ["b"]}]}, "ab") for key in ("allOf", "anyOf")),
        ({"oneOf": [True, {"required": ["a"]}, True]}, "a"),
        *(({key: {"required": ["a"]}}, "a") for key in ("if", "then", "else", "not")),
        *(({key: {"x": {"required": ["a"]}}}, "a") for key in ("dependentSchemas", "dependencies")),
        ({"allOf": {"required": ["a"]}, "items": {"required": ["b"]}}, ""),
        ({"$defs": {"d": {"required": ["a"], "not": {"$ref": "#"}}}, "$ref": "#/$defs/d"}, "a"),
        ({"anyOf": [5, {"$ref": "#/none"}, {"required": ["a"]}]}, "a"),
    ],
)
def test_described_members_are_those_of_all_parts(schema: Any, names: str) -> None:
    assert keywords.described_members(SchemaRoot(schema), schema) == set(names)


def test_parts_are_found_eight_levels_deep() -> None:
    schema: Any = {"title": "9"}
    for level in range(8, -1, -1):
        schema = {"title": str(level), ("allOf", "anyOf", "oneOf")[level % 3]: [schema, True]}
    found = keywords.with_parts(SchemaRoot(schema), schema)
    assert [each["title"] for each in found] == [*"012345678"]
    assert keywords.with_parts(SchemaRoot(True), True) == []
    assert keywords.with_parts(SchemaRoot({}), {"allOf": {"a": 1}}) == [{"allOf": {"a": 1}}]


def test_members_and_items_of_several_schemas() -> None:
    parts: Any = [{"properties": {"a": 1, "b": 1}}, {"properties": {"b": 2}}, {"properties": 5}]
    assert keywords.all_members(parts) == {"a": 1, "b": 2}
    assert keywords.first_items([{"items": True}, {"items": {"a": 1}}, {"items": {}}]) == {"a": 1}
    assert keywords.first_items([{}]) is None
    assert keywords.counted_items({"contains": 1, "maxContains": 3}) == {
        "contains": 1,
        "minContains": 1,
        "maxContains": 3,
    }
    assert keywords.counted_items({"contains": 1, "minContains": 0})["minContains"] == 0
    assert keywords.counted_items({"minContains": 2, "items": 1}) == {}


@pytest.mark.parametrize(
    ("part", "is_root", "properties"),
    [
        ({"properties": {"a": 1}}, False, {"a": 1, "b": True}),
        ({}, True, {"a": True, "b": True}),
        ({}, False, None),
        ({"properties": {"a": 1}, "additionalProperties": True}, True, {"a": 1}),
    ],
)
def test_part_knows_the_members_of_the_whole(part: Any, is_root: bool, properties: Any) -> None:
    found = keywords.with_names(part, ["a", "b"], is_root=is_root)
    assert found.get("properties") == properties
    assert keywords.with_names(True, ["a"], is_root=True) is True


@pytest.mark.parametrize(
    ("schema", "refers", "has"),
    [
        ({"$ref": "#/$defs/a"}, True, True),
        ({"a": [{"$ref": "#/definitions/a"}]}, True, True),
        ({"a": [{"$ref": "#/properties/a"}]}, False, True),
        ({"$dynamicRef": "#a"}, False, True),
        ({"$recursiveRef": "#"}, False, True),
        ({"properties": {"$ref": {"type": "string"}}}, False, True),
        ({"$ref": None}, True, True),
        ({"a": {"b": 1}}, True, False),
        (True, True, False),
    ],
)
def test_references_are_found_at_all_levels(schema: Any, refers: bool, has: bool) -> None:
    assert keywords.refers_to_definitions(schema) is refers
    assert keywords.has_references(schema) is has


def test_size_counts_the_members_of_all_levels() -> None:
    assert keywords.size_of({"a": [{"b": 1, "c": {"d": 1}}, 5], "e": {}}) == 5
    assert keywords.size_of(True) == 0


@pytest.mark.parametrize(
    ("parts", "merged"),
    [
        ([{"a": 1}], {"a": 1}),
        ([{"a": 1}, True], None),
        ([{"additionalProperties": {}}, {"properties": {"a": 1}}],
         {"properties": {"a": 1}, "additionalProperties": True}),
        ([{"additionalProperties": True}, {"minimum": 1}],
         {"minimum": 1, "additionalProperties": True}),
        ([{"additionalProperties": False}, {"minimum": 1}],
         {"additionalProperties": False, "minimum": 1}),
        ([{"additionalProperties": False}, {"properties": {}}], None),
        ([{"if": 1}, {"then": 1}], None),
        ([{"if": 1}, {"title": "x", "minimum": 1}], {"if": 1, "minimum": 1}),
        ([{"properties": {"a": 1}}, {"properties": {"b": 1}}], {"properties": {"a": 1, "b": 1}}),
        ([{"properties": {"a": 1}}, {"properties": 5}], {"properties": {"a": 1}}),
        ([{"required": ["a"]}, {"required": 5}], None),
        ([{"required": 5}, {"required": ["a"]}], None),
        ([{"allOf": 5}, {"allOf": [1]}], None),
        ([{"allOf": [1]}, {"allOf": 5}], None),
        ([{"title": "x"}, {"title": "y"}], {}),
    ],
)  # fmt: skip
def test_parts_are_one_schema_if_no_keyword_looks_at_another(parts: Any, merged: Any) -> None:
    before = repr(parts)
    assert keywords.merge_parts(parts) == merged
    assert repr(parts) == before
