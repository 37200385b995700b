"""Arguments made from the schemas of strangers."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_trio.oracle.fuzz.classics import _samples
from mcp_trio.oracle.fuzz.classics._samples import ToolSample, sample_of

TEXT = {"type": "string"}


def sample(**schema: Any) -> ToolSample:
    found = sample_of({"name": "t", "inputSchema": {"type": "object", **schema}})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("member", "value"),
    [
        (TEXT, "a"),
        ({"type": "string", "minLength": 3}, "aaa"),
        ({"type": "string", "format": "date"}, "2026-07-28"),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "number", "maximum": -2.5}, -2.5),
        ({"type": "boolean"}, False),
        ({"type": ["integer", "null"]}, 1),
        ({"type": "null"}, None),
        ({"enum": ["x", "y"]}, "x"),
        ({"const": 7}, 7),
        ({"type": "array", "items": TEXT, "minItems": 2}, ["a", "a"]),
        ({"type": "object", "properties": {"b": TEXT}, "required": ["b"]}, {"b": "a"}),
        ({"anyOf": [{"type": "integer"}, TEXT]}, 1),
        ({"allOf": [{"type": "integer"}, {"minimum": 4}]}, 4),
        ({"$ref": "#/$defs/word"}, "w"),
        (True, {}),
    ],
)
def test_smallest_arguments_are_valid(member: Any, value: Any) -> None:
    defs = {"word": {"enum": ["w"]}}
    found = sample(properties={"a": member, "b": TEXT}, required=["a"], **{"$defs": defs})
    assert found.arguments == {"a": value}


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [],
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"required": ["a"], "properties": {"a": {"type": "string", "maxLength": 0}}},
        {"type": "array"},
        {"type": "object", "properties": {"a": {"type": 7}}, "required": ["a"]},
        {"$ref": "#/$defs/none", "not": {}},
    ],
)
def test_schema_without_arguments_that_are_found_has_no_sample(schema: Any) -> None:
    assert sample_of({"name": "t", "inputSchema": schema}) is None


def test_schema_that_refers_to_itself_has_a_sample() -> None:
    found = sample(properties={"a": {"$ref": "#"}, "b": TEXT}, required=["b"])
    assert found.arguments == {"b": "a"}


def test_text_goes_where_the_schema_takes_it() -> None:
    properties = {"n": {"type": "integer"}, "word": {"enum": ["x"]}, "s": {**TEXT, "maxLength": 4}}
    found = sample(properties=properties)
    assert found.with_text("\0") == {"s": "\0"}
    assert found.with_text("too long") is None
    assert found.with_number(7) == {"n": 7}
    assert found.with_number(0.5) is None


def test_each_value_of_an_enumeration_is_chosen() -> None:
    found = sample(properties={"what": {"enum": ["a", "b"]}, "on": {"type": "boolean"}})
    assert list(found.choices()) == [{"what": "a"}, {"what": "b"}, {"on": False}, {"on": True}]
    assert list(sample().choices()) == [{}]


def test_largest_arguments_have_the_maximum_of_each_bounded_number() -> None:
    found = sample(properties={"n": {"type": "integer", "maximum": 9}, "m": {"type": "integer"}})
    assert found.largest == {"n": 9}


def test_wrong_arguments_are_refused_each_for_another_reason() -> None:
    found = sample(
        properties={"n": {"type": "integer", "minimum": 1, "maximum": 3}, "s": {"enum": ["a"]}},
        required=["n"],
        additionalProperties=False,
    )
    wrong = list(found.wrong())
    assert not any(map(found.accepts, wrong))
    for each in ({}, {"n": 0}, {"n": 4}, {"n": "x"}, {"n": 1, "mcp-trio-fuzz": 1}):
        assert each in wrong
    assert {"n": 1, "s": "mcp-trio-fuzz-none"} in wrong


def test_sample_has_the_name_of_its_tool_and_whether_it_can_be_a_task() -> None:
    schema = {"type": "object"}
    for support, is_task in (("optional", True), ("required", True), ("forbidden", False)):
        tool = {"name": "t", "inputSchema": schema, "execution": {"taskSupport": support}}
        found = sample_of(tool)
        assert found is not None
        assert (found.name, found.is_task) == ("t", is_task)
    others: list[Any] = [None, 5, {}]
    for execution in others:
        found = sample_of({"name": "t", "inputSchema": schema, "execution": execution})
        assert found is not None
        assert not found.is_task


def test_only_the_first_values_and_members_are_looked_at() -> None:
    found = sample(properties={"what": {"enum": list(range(25))}})
    assert list(found.choices()) == [{"what": each} for each in range(20)]
    found = sample(properties={f"m{each}": TEXT for each in range(25)})
    assert list(found.with_texts(["x", "y"])) == [
        {f"m{each}": text} for each in range(20) for text in ("x", "y")
    ]


@pytest.mark.parametrize("member", [True, {"enum": "ab"}, {"enum": None}, {"type": "string"}])
def test_member_without_an_enumeration_has_no_choices(member: Any) -> None:
    found = sample_of({"name": "t", "inputSchema": {"properties": {"a": member}}})
    assert found is None or list(found.choices()) == [found.arguments]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer", "minimum": -5}, 1),
        ({"type": "integer", "maximum": 0}, 0),
        ({"type": "integer", "maximum": 1}, 1),
        ({"type": "integer", "minimum": 1, "maximum": 9}, 1),
        ({"type": "number", "exclusiveMinimum": 2.5}, 3),
        ({"type": "number", "minimum": -9, "maximum": -7}, -9),
        ({"type": "array", "minItems": 0}, []),
        ({"properties": {"b": TEXT}}, {}),
        ({"minLength": 2}, "aa"),
        ({"type": []}, "a"),
        ({"$ref": "#/$defs/a~1b", "maximum": 3}, 1),
        ({"$ref": "#/$defs/c~0d"}, 1),
    ],
)
def test_smallest_value_is_near_one(schema: Any, value: Any) -> None:
    defs = {"a/b": {"type": "integer"}, "c~d": {"type": "integer"}}
    tool = {"properties": {"a": schema}, "required": ["a"], "$defs": defs, "type": "object"}
    found = sample_of({"name": "t", "inputSchema": tool})
    if found is None:
        assert schema == {"type": []}  # no schema
    else:
        assert found.arguments == {"a": value}


def test_values_beside_a_range_are_wrong() -> None:
    found = sample(
        properties={
            "n": {"type": "integer", "minimum": 3, "maximum": 5},
            "s": {"type": "string", "minLength": 1, "maxLength": 4},
        }
    )
    wrong = list(found.wrong())
    numbers = [each["n"] for each in wrong if type(each.get("n")) is int]
    assert set(numbers) == {7, 2, 6}
    assert {"", "aaaaa"} <= {each["s"] for each in wrong if isinstance(each.get("s"), str)}
    open_ended = sample(properties={"s": {**TEXT, "maxLength": 100_000}})
    assert all(len(str(each)) < 1_000 for each in open_ended.wrong())


@pytest.mark.parametrize(("levels", "is_found"), [(5, True), (10, False)])
@pytest.mark.parametrize("kind", ["array", "object"])
def test_arguments_have_a_limited_depth(kind: str, levels: int, is_found: bool) -> None:
    nested: Any = {"type": "integer"}
    for _ in range(levels):
        if kind == "array":
            nested = {"type": "array", "items": nested, "minItems": 1}
        else:
            nested = {"type": "object", "properties": {"a": nested}, "required": ["a"]}
    schema = {"type": "object", "properties": {"a": nested}, "required": ["a"]}
    assert (sample_of({"name": "t", "inputSchema": schema}) is not None) is is_found


def test_property_of_any_type_has_no_wrong_value() -> None:
    found = sample(properties={"a": True}, additionalProperties=False)
    assert list(found.wrong()) == [{"mcp-trio-fuzz": 1}]
    assert list(found.choices()) == [{}]
    assert found.largest == {}


# -- The parts of a schema that is read ------------------------------------------------------------

FIRST = "abcdefghijklmnopqrst"  # twenty members


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "minItems": "2"}, []),
        ({"type": "array"}, []),
        ({"type": "array", "minItems": 21, "items": {"type": "null"}}, [None] * 20),
        ({"type": "string", "minLength": "2"}, "a"),
        ({"type": "string", "minLength": 0}, "a"),
        ({"type": "string", "minLength": 2}, "aa"),
        ({"type": "string", "format": "ipv6", "minLength": 9}, "::1"),
        ({"type": []}, "a"),
        ({"type": "unknown"}, None),
        ({"enum": [], "type": "null"}, None),
        ({"properties": {}}, {}),
        ({}, "a"),
        ({"type": "object", "required": "ab"}, {}),
        ({"type": "object", "required": [7, "b"], "properties": 7}, {"b": "a"}),
        (
            {"type": "object", "required": [f"m{n}" for n in range(21)]},
            {f"m{n}": "a" for n in range(20)},
        ),
    ],
)
def test_smallest_value_of_a_part_may_be_invalid(schema: Any, value: Any) -> None:
    found = _samples._smallest(schema, {}, 1)
    assert (type(found), found) == (type(value), value)


def test_smallest_value_of_no_schema_is_an_object_for_arguments_only() -> None:
    assert _samples._smallest({}, {}, 0) == {}
    assert _samples._smallest({}, {}, 1) == "a"


@pytest.mark.parametrize(
    ("schema", "number"),
    [
        ({}, 1),
        ({"minimum": 0}, 1),
        ({"minimum": -5}, 1),
        ({"minimum": "5"}, 1),
        ({"maximum": 0.5}, 0),
        ({"maximum": 1}, 1),
        ({"minimum": -5, "maximum": -2}, -5),
        ({"exclusiveMinimum": 2.5}, 3),
        ({"exclusiveMinimum": 2, "minimum": 9}, 3),
        ({"minimum": 7, "maximum": 5}, 5),
    ],
)
def test_smallest_number_is_one_where_it_fits(schema: Any, number: float) -> None:
    assert _samples._smallest_number(schema) == number


@pytest.mark.parametrize(
    ("schema", "resolved"),
    [
        ({"$ref": "#/$defs/text", "maxLength": 3}, {"type": "string", "maxLength": 3}),
        ({"$ref": "#/$defs/none", "maxLength": 3}, {"maxLength": 3}),
        ({"$ref": 7}, {"$ref": 7}),
        ({"anyOf": [], "type": "null"}, {"anyOf": [], "type": "null"}),
        ({"anyOf": 7, "oneOf": [{"type": "null"}]}, {"anyOf": 7, "type": "null"}),
        (
            {"title": "x", "allOf": [{"minimum": 1}, {"maximum": 2}, True]},
            {"title": "x", "minimum": 1, "maximum": 2},
        ),
        ({"title": "x", "anyOf": [{"minimum": 1}, {"maximum": 2}]}, {"title": "x", "minimum": 1}),
        ({"oneOf": [{"$ref": "#/$defs/text"}]}, {"type": "string"}),
        (True, True),
    ],
)
def test_reference_and_first_alternative_are_merged(schema: Any, resolved: Any) -> None:
    root = {"$defs": {"text": {"type": "string"}}}
    assert _samples._resolved(schema, root, 0) == resolved


@pytest.mark.parametrize(("steps", "is_followed"), [(7, True), (8, False)])
def test_references_are_followed_to_a_depth_of_six(steps: int, is_followed: bool) -> None:
    defs: dict[str, Any] = {str(each): {"$ref": f"#/d/{each + 1}"} for each in range(steps)}
    defs[str(steps - 1)] = {"type": "null"}
    found = _samples._resolved({"$ref": "#/d/0"}, {"d": defs}, 0)
    assert (found == {"type": "null"}) is is_followed


NO_VALUE = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "depth", "resolved"),
    [
        ({"allOf": [NO_VALUE]}, 6, NO_VALUE),
        ({"allOf": [NO_VALUE]}, 7, {"allOf": [NO_VALUE]}),
        ({"allOf": [{"allOf": [NO_VALUE]}]}, 5, NO_VALUE),
        ({"allOf": [{"allOf": [NO_VALUE]}]}, 6, {"allOf": [NO_VALUE]}),
        ({"allOf": [{}], "anyOf": [NO_VALUE]}, 5, NO_VALUE),
        ({"allOf": [{}], "anyOf": [NO_VALUE]}, 6, {"anyOf": [NO_VALUE]}),
    ],
)
def test_alternatives_are_merged_to_a_depth_of_six(schema: Any, depth: int, resolved: Any) -> None:
    assert _samples._resolved(schema, {}, depth) == resolved


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#/a/b~1c", {"x": {}}),
        ("#/a/b~1c/x", {}),
        ("#/a/m~0n", {"y": {}}),
        ("#/a/list", None),
        ("#/a/none", None),
        ("#/a/none/x", None),
        ("#", {"a": {"b/c": {"x": {}}, "m~n": {"y": {}}, "list": [1]}}),
    ],
)
def test_reference_leads_to_an_object_or_nowhere(reference: str, found: Any) -> None:
    root = {"a": {"b/c": {"x": {}}, "m~n": {"y": {}}, "list": [1]}}
    assert _samples._lookup(root, reference) == found


def test_reference_has_at_most_twenty_parts() -> None:
    root: dict[str, Any] = {"end": {}}
    for _ in range(30):
        root = {"a": root}
    inner: Any = root
    for _ in range(20):
        inner = inner["a"]
    assert _samples._lookup(root, "#" + "/a" * 20) is inner
    assert _samples._lookup(root, "#" + "/a" * 25) is inner


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"minimum": 3}, [2]),
        ({"maximum": 3}, [4]),
        ({"minimum": "3", "maximum": None}, []),
        ({"maxLength": 3}, ["aaaa"]),
        ({"maxLength": 99_999}, ["a" * 100_000]),
        ({"maxLength": 100_000}, []),
        ({"minLength": 1}, [""]),
        ({"minLength": 0}, []),
        ({"enum": ["a"]}, ["mcp-trio-fuzz-none"]),
        ({"enum": 7}, []),
    ],
)
def test_wrong_values_are_of_other_types_or_just_outside(schema: Any, values: list[Any]) -> None:
    others = [7, "x", [], {}, None, True]
    assert list(_samples._wrong_values(schema)) == [*others, *values]
    assert list(_samples._wrong_values(True)) == []


def test_wrong_arguments_lack_only_members_that_are_required() -> None:
    found = sample(properties={"a": TEXT, "b": TEXT}, required=["b", "a"])
    lacking = [each for each in found.wrong() if len(each) == 1]
    assert lacking == [{"a": "a"}, {"b": "a"}]
    odd = sample_of({"name": "t", "inputSchema": {"const": {"a": 1}}})
    assert odd is not None
    assert odd.arguments == {"a": 1}
    assert list(odd.wrong()) == [{"a": 1, "mcp-trio-fuzz": 1}]


def test_text_is_put_into_each_member_that_takes_it() -> None:
    found = sample(properties={"a": TEXT, "n": {"type": "integer"}, "c": {"const": "x"}, "b": TEXT})
    assert list(found.with_texts(["x", "y"])) == [{"a": "x"}, {"a": "y"}, {"b": "x"}, {"b": "y"}]
