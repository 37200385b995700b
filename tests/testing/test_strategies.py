"""The public strategies: values of JSON Schemas, valid or almost, and schemas of strangers."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcp_trio.oracle.strategies import _mutations
from mcp_trio.testing import strategies

PLAIN = settings(
    max_examples=60, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

SCHEMAS: dict[str, Any] = {
    "anything": True,
    "no keyword": {},
    "type": {"type": "string"},
    "types": {"type": ["integer", "null"]},
    "enum": {"enum": ["a", 1, None]},
    "const": {"const": {"a": 1}},
    "range": {"type": "integer", "minimum": 3, "exclusiveMaximum": 6},
    "numbers": {"type": "number", "minimum": -1.5, "maximum": 2.5},
    "multiples": {"type": "integer", "multipleOf": 7, "minimum": 10, "maximum": 100},
    "number multiples": {"type": "number", "multipleOf": 5, "minimum": 1, "maximum": 100},
    "lengths": {"type": "string", "minLength": 3, "maxLength": 5},
    "pattern": {"type": "string", "pattern": "^[a-z]{2,4}-\\d+$"},
    "items": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
    "object": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "anyOf": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["x"]}]},
    "oneOf": {"oneOf": [{"const": 1}, {"const": "x"}]},
    "allOf": {
        "allOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    },
    "allOf numbers": {
        "allOf": [{"type": "integer", "minimum": 5, "maximum": 6}, {"minimum": 1, "maximum": 99}]
    },
    "allOf texts": {
        "allOf": [{"type": "string", "minLength": 4, "maxLength": 5}, {"minLength": 1}]
    },
    "allOf short texts": {"allOf": [{"type": "string", "maxLength": 2}, {"maxLength": 9}]},
    "allOf arrays": {
        "allOf": [{"type": "array", "minItems": 3, "maxItems": 3}, {"minItems": 1, "maxItems": 9}]
    },
    "allOf enums": {"allOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]},
    "reference": {
        "$defs": {"n": {"type": "integer"}},
        "type": "array",
        "items": {"$ref": "#/$defs/n"},
    },
}

HOSTILE: dict[str, Any] = {
    "recursive": {"$ref": "#"},
    "required recursion": {
        "type": "object",
        "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}},
        "required": ["a", "b"],
    },
    "bomb": {
        "$defs": {
            f"d{i}": {"type": "array", "minItems": 40, "items": {"$ref": f"#/$defs/d{i + 1}"}}
            for i in range(30)
        },
        "$ref": "#/$defs/d0",
    },
    "branches": {"anyOf": [{"allOf": [{"$ref": "#"}] * 1_000}] * 1_000},
    "impossible pattern": {"type": "string", "pattern": "a^b$c"},
    "no pattern": {"type": "string", "pattern": "(((("},
    "huge count": {"type": "string", "pattern": "(a{1000,2000}){1000}"},
    "nested repetition": {"type": "string", "pattern": "^(a+)+$"},
    "long": {"type": "string", "minLength": 10**9},
    "many items": {"type": "array", "minItems": 10**9, "items": {"type": "array", "minItems": 9}},
    "wrong keywords": {"type": 7, "enum": 3, "required": "a", "properties": [], "minimum": "x"},
    "empty range": {"type": "integer", "minimum": 5, "maximum": 1},
    "infinite": {"type": "number", "minimum": float("inf"), "maximum": float("nan")},
    "null": None,
    "many members": {
        "type": "object",
        "properties": {f"p{i}": {"type": "object"} for i in range(5_000)},
        "required": [f"p{i}" for i in range(5_000)],
    },
}
_deep: dict[str, Any] = {"type": "string"}
for _ in range(400):
    _deep = {"type": "object", "properties": {"a": _deep}, "required": ["a"]}
HOSTILE["deep"] = _deep


@pytest.mark.parametrize("name", SCHEMAS)
def test_value_of_schema_is_valid(name: str) -> None:
    schema = SCHEMAS[name]
    validator = Draft202012Validator(schema)

    @PLAIN
    @given(strategies.from_schema(schema))
    def holds(value: Any) -> None:
        assert validator.is_valid(value), value

    holds()


def test_nearly_valid_values_of_schema_are_often_invalid() -> None:
    """Over a third of the values are invalid, or they would test what `valid` does."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "string"}},
        "required": ["a"],
    }
    validator = Draft202012Validator(schema)
    found: list[bool] = []

    @PLAIN
    @given(strategies.nearly_valid(schema))
    def collect(value: Any) -> None:
        found.append(validator.is_valid(value))

    collect()
    assert found.count(False) > len(found) / 3
    assert True in found


@pytest.mark.perf
@pytest.mark.parametrize("name", HOSTILE)
def test_schema_of_stranger_takes_bounded_time(name: str) -> None:
    times: list[float] = []
    began = time.thread_time()
    strategy = strategies.from_schema(HOSTILE[name])
    assert time.thread_time() - began < 1.0

    @settings(PLAIN, max_examples=20)
    @given(strategy, strategies.nearly_valid(HOSTILE[name]))
    def collect(value: Any, other: Any) -> None:
        times.append(time.thread_time())

    collect()
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert max(steps, default=2.0) < 1.0  # two values, and what hypothesis does between them


KEYS = ['"a"', '"b"', '"c"']
VALUES = [b"1", b"[2]", b"null"]
MEMBERS = list(zip(KEYS, VALUES, strict=True))


@pytest.mark.parametrize(
    ("edit", "sizes", "is_right"),
    [
        (_mutations._drop, (2, 0), lambda new: set(new) < set(MEMBERS)),
        (_mutations._double, (4, 0), lambda new: new[:3] == MEMBERS and new[3][0] in "".join(KEYS)),
        (_mutations._add, (4, 1), lambda new: new[:3] == MEMBERS),
        (_mutations._change, (3, 0), lambda new: [key for key, _ in new] == KEYS),
        (_mutations._rename, (3, 0), lambda new: [value for _, value in new] == VALUES),
        (_mutations._escape, (3, 0), lambda new: [json.loads(key) for key, _ in new] == [*"abc"]),
        (_mutations._reverse, (3, 0), lambda new: new[::-1] == MEMBERS),
    ],
)
def test_edit_of_members_does_what_its_name_says(
    edit: Any, sizes: Any, is_right: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message has three members, or none, which nothing can be done with but to add one."""
    monkeypatch.setattr(_mutations, "_value", lambda draw: b"0")  # any JSON takes long to begin

    @settings(PLAIN, max_examples=5)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        new = edit(MEMBERS, data.draw)
        assert len(new) == sizes[0]
        assert is_right(new)
        assert len(edit([], data.draw)) == sizes[1]

    check()


@pytest.mark.process
def test_strategies_without_hypothesis_name_the_extra() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import mcp_trio.testing.strategies"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'mcp-trio[fuzz]'" in done.stderr.splitlines()[-1]
