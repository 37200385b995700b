"""`KEY=VALUE` arguments: conversion by the schema of the tool, and errors."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from mcp_trio.cli._arguments import describe_types, parse_arguments
from mcp_trio.cli._errors import CliError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "days": {"type": "integer"},
        "size": {"type": "number"},
        "wet": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "name": {"type": ["string", "null"]},
        "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "unit": {"enum": ["C", "F", 1]},
        "fixed": {"const": 2.5},
        "any": {},
        "point": {"$ref": "#/$defs/a~1b"},
        "both": {"allOf": [{"type": ["integer", "string"]}, {"type": ["integer", "null"]}]},
        "round": {"$ref": "#/$defs/round"},
        "lost": {"$ref": "#/nowhere"},
        "odd": True,
    },
    "$defs": {"a/b": {"type": "object"}, "round": {"$ref": "#/$defs/round"}},
}
READ = [
    ("text=007", "007"),
    ("text=", ""),
    ("text=a=b", "a=b"),
    ("text=null", "null"),
    ('text={"a": 1}', '{"a": 1}'),
    ("days=-3", -3),
    ("days=3.0", 3),
    ("size=3", 3),
    ("size=3.0", 3.0),
    ("size=1e3", 1000.0),
    ("wet=true", True),
    ('tags=["a"]', ["a"]),
    ('where={"a": null}', {"a": None}),
    ("maybe=null", None),
    ("maybe=4", 4),
    ("name=null", None),
    ("name=3", "3"),
    ("name=" + "[" * 100_000, "[" * 100_000),  # too deep to be JSON
    ("either=3", 3),
    ("either=three", "three"),
    ("unit=C", "C"),
    ("unit=1", 1),
    ("fixed=2.5", 2.5),
    ("any=3", 3),
    ("any=three", "three"),
    ("point={}", {}),
    ("both=3", 3),
    ("round=x", "x"),
    ("lost=[1]", [1]),
    ("odd=1", 1),
]


@pytest.mark.parametrize(("word", "value"), READ)
def test_argument_value_is_converted_by_schema(word: str, value: object) -> None:
    found = parse_arguments([word], SCHEMA, "the tool t")[word.partition("=")[0]]
    assert found == value
    assert type(found) is type(value)


MISFITS = [
    ("days=three", "days must be integer, not 'three'. Write for example days=3"),
    ("days=3.5", "days must be integer"),
    ("days=", "days must be integer, not ''"),
    ("days=true", "days must be integer"),
    ("size=NaN", "size must be number, not 'NaN'. Write for example size=3 or size=1.5"),
    ("size=1e999", "size must be number"),
    ("wet=yes", "wet must be boolean, not 'yes'. Write for example wet=true"),
    ("tags=a,b", "tags must be array of string, not 'a,b'. Write for example tags='[1, 2]'"),
    ("tags=" + "[" * 100_000, "tags must be array"),
    ("where=[]", "where must be object"),
    ("maybe=x", "maybe must be integer or null, not 'x'. Write for example maybe=3 or maybe=null"),
    (
        "unit=K",
        'unit must be "C" or "F" or 1, not \'K\'. Write for example unit=C or unit=F or unit=1',
    ),
    ("fixed=2", "fixed must be 2.5, not '2'"),
    ("tex=a", "the tool t has no argument tex; it takes text, days,"),
    ("tex=a", "Did you mean text?"),
    ("=a", "'=a' is not an argument"),
    ("a", "'a' is not an argument"),
    ("{a}", "'{a}' is not JSON"),
    ("text=\udcff", "is not UTF-8"),
]


@pytest.mark.parametrize(("word", "complaint"), MISFITS)
def test_argument_not_matching_schema_is_rejected_with_example(word: str, complaint: str) -> None:
    with pytest.raises(CliError) as caught:
        parse_arguments([word], SCHEMA, "the tool t")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "words", "arguments"),
    [
        ({"type": "object"}, ["a=1", "b=x"], {"a": 1, "b": "x"}),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}, ["b=1"], {"b": 1}),
        ({"properties": {"a": {}}, "required": ["a"]}, ["{}"], {}),
        ({"properties": {"a": {}}}, ["a=1", '{"b": 2}', '{"a": 3}'], {"a": 3, "b": 2}),
        ({"properties": ["nonsense"], "required": 3}, ["a=1"], {"a": 1}),
    ],
)
def test_arguments_as_json_object_or_for_open_schema_are_accepted(
    schema: dict[str, Any], words: list[str], arguments: dict[str, Any]
) -> None:
    assert parse_arguments(words, schema, "the tool t") == arguments


def test_argument_for_tool_without_arguments_is_rejected() -> None:
    with pytest.raises(CliError, match="has no argument a; it takes none"):
        parse_arguments(["a=1"], {"additionalProperties": False}, "the tool t")


def test_describe_names_allowed_types() -> None:
    words = {name: describe_types(schema, SCHEMA) for name, schema in SCHEMA["properties"].items()}
    assert words["tags"] == "array of string"
    assert words["name"] == "string or null"
    assert words["size"] == "number"
    assert words["any"] == words["odd"] == "anything"
    assert words["unit"] == '"C" or "F" or 1'


# -- Hostile schemas ---------------------------------------------------------------------------

CYCLE = {"anyOf": [{"$ref": "#"} for _ in range(12)], "allOf": [{"$ref": "#"}, {"$ref": "#"}]}
HOSTILE_SCHEMAS: list[tuple[dict[str, Any], str]] = [
    # the schema of the argument `a`, also as the whole schema, and its types
    (CYCLE, "anything"),
    ({"type": "array", "items": {"$ref": "#/properties/a"}}, "array of array of array"),
    ({"type": [["a"], {}, 1, None]}, "anything"),
    ({"type": {}, "enum": {}, "anyOf": 3, "$ref": ["#"]}, "anything"),
    ({"enum": [f"c{number}" for number in range(1000)]}, 'or "c29" and 970 more'),
    ({"enum": ["x" * 1000]}, "… (1002 characters)"),
    ({"const": "a\u202eb"}, '"a\\u202eb"'),
]


@pytest.mark.parametrize(("schema", "types"), HOSTILE_SCHEMAS)
def test_schema_hostile_is_described_in_time(schema: dict[str, Any], types: str) -> None:
    root = {**schema, "properties": {"a": schema}}
    assert types in describe_types(schema, root)
    with suppress(CliError):
        parse_arguments(["a=1"], root, "the tool t")


@pytest.mark.parametrize("required", [[1, None, ["a"]], {"a": 1}, 3, "a"])
@pytest.mark.parametrize("properties", [[1], 3, {"a": 3}, {"a": None}])
def test_schema_of_wrong_types_is_ignored(required: Any, properties: Any) -> None:
    schema = {"required": required, "properties": properties}
    assert parse_arguments(["a=1"], schema, "the tool t") == {"a": 1}


def test_schema_required_names_are_escaped_and_counted() -> None:
    required = ["a\nmcp-trio: b", *(f"c{number}" for number in range(100))]
    with pytest.raises(CliError) as caught:
        parse_arguments([], {"required": required}, "the tool t")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("the tool t needs a\\nmcp-trio: b and c0 and")
    assert "and 71 more" in str(caught.value)
