"""Arguments made from the schemas of strangers."""

from __future__ import annotations

from typing import Any

import pytest

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
