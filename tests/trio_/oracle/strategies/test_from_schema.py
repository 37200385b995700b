"""Values of a schema by their parts: bounds, references, types, and what is just outside."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_trio.oracle.strategies import _from_schema
from mcp_trio.oracle.strategies._from_schema import (
    MAX_BRANCHES,
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_TEXT,
    PATTERN_LENGTH,
    _bounds,
    _find_patterns,
    _lookup,
    _SchemaDraw,
    _smallest,
    _step_outside,
    _texts_of,
    from_schema,
    is_hard_pattern,
    nearly_valid,
)
from tests.trio_.oracle.strategies.played_draw import PlayedDraw

PLAIN = settings(
    max_examples=60, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def values_of(schema: Any, count: int = 60, *, nearly: bool = False) -> list[Any]:
    """Return values that are drawn for a schema, the same ones each time."""
    found: list[Any] = []

    @settings(PLAIN, max_examples=count)
    @given(nearly_valid(schema) if nearly else from_schema(schema))
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


@pytest.mark.parametrize(
    ("schema", "value", "outside"),
    [
        ({"minimum": 3, "maximum": 9}, 5, 2),
        ({"maximum": 9}, 5, 10),
        ({"exclusiveMinimum": 3}, 5, 3),
        ({"exclusiveMaximum": 9}, 5, 9),
        ({"minimum": -1.5}, 0.5, -2.5),
        ({}, 5, "5"),
        (True, 5, "5"),
        ({"maxLength": 3}, "abc", "aaaa"),
        ({"maxLength": 0}, "", "a"),
        ({"minLength": 1, "maxLength": 3}, "abc", ""),
        ({"minLength": 0, "maxLength": 3}, "abc", "aaaa"),
        ({}, "abc", ["abc"]),
        ({}, True, None),
        ({"minimum": 3}, True, None),
        ({}, [1], None),
        ({}, None, 0),
    ],
)
def test_value_just_outside_a_schema(schema: Any, value: Any, outside: Any) -> None:
    found = _step_outside(schema, value)
    assert (type(found), found) == (type(outside), outside)


@pytest.mark.parametrize(
    ("schema", "bounds"),
    [
        ({}, (None, None)),
        ({"minimum": 3, "maximum": 9}, (3, 9)),
        ({"exclusiveMinimum": 3, "exclusiveMaximum": 9}, (4, 8)),
        ({"minimum": 3, "exclusiveMinimum": 5, "maximum": 9, "exclusiveMaximum": 7}, (6, 6)),
        ({"minimum": 8, "exclusiveMinimum": 5, "maximum": 2, "exclusiveMaximum": 7}, (8, 2)),
        ({"minimum": True, "maximum": "9", "exclusiveMinimum": True}, (None, None)),
        ({"minimum": float("-inf"), "maximum": float("nan")}, (None, None)),
    ],
)
def test_bounds_of_numbers(schema: Any, bounds: Any) -> None:
    assert _bounds(schema) == bounds


ROOT = {
    "$defs": {"a/b": {"x": 1}, "m~n": 2, "~1": 3, "l": [10, {"y": 20}]},
    "properties": {"": 4},
}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", ROOT),
        ("#/$defs/a~1b", {"x": 1}),
        ("#/$defs/a~1b/x", 1),
        ("#/$defs/m~0n", 2),
        ("#/$defs/~01", 3),
        ("#/$defs/l/0", 10),
        ("#/$defs/l/1/y", 20),
        ("#/properties/", 4),
        ("#/$defs/l/2", None),
        ("#/$defs/l/-1", None),
        ("#/$defs/l/x", None),
        ("#/$defs/a~1b/x/y", None),
        ("#/missing", None),
        ("#anchor", None),
        ("other.json#/$defs/l", None),
        ("", None),
    ],
)
def test_reference_is_a_pointer_into_the_schema(reference: str, found: Any) -> None:
    """Nothing is fetched, and what isn't found is no schema."""
    assert _lookup(ROOT, reference) == found


@pytest.mark.parametrize(
    ("schema", "smallest"),
    [
        ({"type": "boolean"}, False),
        ({"type": "integer", "minimum": 5}, 0),
        ({"type": "number"}, 0),
        ({"type": "string", "minLength": 5}, ""),
        ({"type": "array", "minItems": 5}, []),
        ({"type": "object", "required": ["a"]}, {}),
        ({"type": "null"}, None),
        ({"type": ["string", "null"]}, ""),
        ({"type": []}, None),
        ({"type": [["x"]]}, None),
        ({"type": 7}, None),
        ({}, None),
        (True, None),
    ],
)
def test_smallest_value_has_the_type(schema: Any, smallest: Any) -> None:
    found = _smallest(schema)
    assert (type(found), found) == (type(smallest), smallest)


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"properties": {}}, {dict}),
        ({"required": []}, {dict}),
        ({"additionalProperties": False}, {dict}),
        ({"items": {"type": "null"}}, {list}),
        ({"prefixItems": [{"type": "null"}]}, {list}),
        ({"pattern": "^a$"}, {str}),
        ({"minLength": 1}, {str}),
        ({"maxLength": 1}, {str}),
        ({"format": "date"}, {str}),
        ({"minimum": 1}, {int, float}),
        ({"maximum": 1}, {int, float}),
        ({"type": ["integer", "unknown"]}, {int}),
        ({"type": ["unknown"]}, {dict}),
        ({"title": "any"}, {type(None), bool, int, float, str, list, dict}),
    ],
)
def test_keyword_implies_a_type(schema: Any, types: set[type]) -> None:
    found = {type(value) for value in values_of(schema, 60 if len(types) > 2 else 12)}
    assert found == types


def test_default_is_drawn_among_other_values() -> None:
    found = values_of({"type": "string", "default": "the default", "maxLength": 1})
    assert 0 < found.count("the default") < len(found) / 2
    assert max(len(each) for each in found if each != "the default") == 1


@pytest.mark.parametrize(
    ("schema", "edges"),
    [
        ({"minimum": 3, "maximum": 900}, {3, 900}),
        ({"minimum": -900, "maximum": 900}, {-900, 0, 1, 900}),
        ({"minimum": 2.5}, {3}),
        ({"maximum": -2.5}, {-3}),
        ({}, {0, 1}),
    ],
)
def test_edges_of_a_range_are_drawn_often(schema: Any, edges: set[int]) -> None:
    found = values_of({"type": "integer", **schema})
    assert edges <= set(found)
    assert set(found) - edges
    low, high = schema.get("minimum", -inf), schema.get("maximum", inf)
    assert all(low <= each <= high for each in found)


@pytest.mark.parametrize(
    ("schema", "possible"),
    [
        ({"multipleOf": 5, "minimum": 7, "maximum": 21}, {10, 15, 20}),
        ({"multipleOf": 5, "maximum": -3, "minimum": -11}, {-10, -5}),
        ({"multipleOf": 1, "minimum": 3, "maximum": 4}, {3, 4}),
        ({"multipleOf": 5, "minimum": 6, "maximum": 9}, {10}),  # the range has no multiple
        ({"multipleOf": 0, "minimum": 3, "maximum": 4}, {3, 4}),
        ({"multipleOf": 1.5, "minimum": 3, "maximum": 4}, {3, 4}),
        ({"minimum": 5, "maximum": 3}, {5}),  # the range is empty
        ({"minimum": 2.5, "maximum": 3.5}, {3}),
    ],
)
def test_whole_numbers_are_multiples_within_the_range(schema: Any, possible: set[int]) -> None:
    assert set(values_of({"type": "integer", **schema}, 20)) == possible


@pytest.mark.parametrize(
    ("schema", "least", "most"),
    [({}, -500, 500), ({"minimum": 1_000}, 1_000, 2_000), ({"maximum": 100}, -500, 100)],
)
def test_multiples_without_a_range_are_small(schema: Any, least: int, most: int) -> None:
    found = values_of({"type": "integer", "multipleOf": 5, **schema})
    assert all(each % 5 == 0 and least <= each <= most for each in found)
    assert len(set(found)) > 5


def test_numbers_are_within_their_range() -> None:
    schema = {"type": "number", "minimum": 1.25, "maximum": 2.5}
    found = values_of(schema)
    assert all(1.25 <= each <= 2.5 for each in found)
    assert {type(each) for each in found} == {int, float}
    assert set(values_of({"type": "number", "minimum": 5, "maximum": 3}, 10)) == {5}
    assert set(values_of({"type": "number", "multipleOf": 2, "minimum": 3, "maximum": 5}, 10)) == {
        4
    }


# All of its values are drawn by the type and the range alone.
SIX = {"type": "integer", "minimum": 6, "maximum": 6}


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [SIX]},
        {"oneOf": [SIX]},
        {"allOf": [{"type": "integer"}, {"minimum": 6}, {"maximum": 6}]},
        {"allOf": [{"anyOf": [{"type": "integer"}]}], "minimum": 6, "maximum": 6},
        {"type": "integer", "anyOf": [{"minimum": 6}], "maximum": 6},
        {"anyOf": [], **SIX},
        {"anyOf": 7, **SIX},
        {"enum": [6, 6]},
        {"enum": [], **SIX},
        {"const": 6, "type": "string"},
    ],
)
def test_part_that_several_schemas_describe_fulfils_them(schema: Any) -> None:
    assert set(values_of(schema, 10)) == {6}


@pytest.mark.parametrize(("steps", "resolved"), [(1, True), (3, True), (4, True), (5, False)])
def test_chain_of_references_is_followed_four_times(steps: int, resolved: bool) -> None:
    root: Any = {"$defs": {str(each): {"$ref": f"#/$defs/{each + 1}"} for each in range(steps)}}
    root["$defs"][str(steps - 1)] = SIX
    draw: Any = None
    found, _ = _SchemaDraw(draw, root)._resolved({"$ref": "#/$defs/0"}, 0)
    assert found == (SIX if resolved else {})
    # References that led here count.
    again, _ = _SchemaDraw(draw, root)._resolved({"$ref": "#/$defs/0"}, 5 - steps)
    assert again == {}


def test_texts_of_a_pattern_or_format_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_from_schema, "_texts_of", {"^[ab]$": ("a", "b"), "(a+)+": ()}.get)
    assert set(values_of({"type": "string", "pattern": "^[ab]$"}, 10)) == {"a", "b"}
    # A pattern without texts leaves the rest.
    hard = {"type": "string", "pattern": "(a+)+", "minLength": 3}
    assert all(len(each) >= 3 for each in values_of(hard, 10))
    dates = set(values_of({"type": "string", "format": "date"}, 20))
    assert dates <= set(_from_schema._FORMATS["date"])
    assert len(dates) > 1
    assert len(set(values_of({"type": "string", "format": "unknown"}, 20))) > 2


def kind_of(value: Any) -> str:
    """Return in which way a value misses `{"a": 1 to 3}`."""
    if not isinstance(value, dict):
        return "unrelated"
    if "a" not in value:
        return "missing" if value == {} else "unrelated"
    if value.keys() != {"a"}:
        return "added" if value["a"] in (1, 2, 3) else "unrelated"
    number = value["a"]
    if type(number) is int:
        return "valid" if number in (1, 2, 3) else "outside" if number == 0 else "unrelated"
    return "another type"


def test_value_that_nearly_fits_misses_by_one_detail() -> None:
    one_to_three = {"type": "integer", "minimum": 1, "maximum": 3}
    schema = {"type": "object", "properties": {"a": one_to_three}, "required": ["a"]}
    found = [kind_of(value) for value in values_of(schema, 90, nearly=True)]
    assert {*found} >= {"missing", "added", "outside", "another type", "unrelated"}
    assert found.count("unrelated") < len(found) / 3
    assert found.count("valid") < len(found) / 5


def test_value_that_nearly_fits_of_what_has_no_members() -> None:
    """Members are added to an empty object; anything may stand for another value."""
    empty = values_of({"type": "object"}, 40, nearly=True)
    assert any(isinstance(each, dict) and len(each) == 1 for each in empty)
    assert {} not in empty[5:] or empty.count({}) < len(empty) / 3
    texts = values_of({"type": "string"}, 40, nearly=True)
    assert len({type(each) for each in texts}) > 3


@pytest.mark.parametrize(
    ("schema", "longest"),
    [
        ({"type": "array", "items": {"type": "null"}}, MAX_ITEMS),
        ({"type": "array", "items": {"type": "null"}, "maxItems": 2}, 2),
        ({"type": "array", "items": {"type": "null"}, "minItems": 6, "maxItems": 99}, 6),
        ({"type": "array", "items": {"type": "null"}, "minItems": 10**9}, MAX_BRANCHES),
        ({"type": "array", "items": False, "prefixItems": [{"type": "null"}] * 3}, 3),
        ({"type": "array", "items": {"type": "null"}, "uniqueItems": True}, 1),
    ],
)
def test_arrays_are_short_unless_the_schema_wants_more(schema: Any, longest: int) -> None:
    assert max(map(len, values_of(schema))) == longest


@pytest.mark.parametrize(
    ("schema", "lengths"),
    [
        ({"minLength": 3}, lambda low, high: low == 3),
        ({"maxLength": 2}, lambda low, high: (low, high) == (0, 2)),
        ({"minLength": 10**9}, lambda low, high: low == MAX_TEXT),
        ({"minLength": -5, "maxLength": -5}, lambda low, high: (low, high) == (0, 0)),
        ({}, lambda low, high: low == 0),
    ],
)
def test_texts_have_the_length_of_the_schema(schema: Any, lengths: Any) -> None:
    found = [len(each) for each in values_of({"type": "string", **schema})]
    assert lengths(min(found), max(found))


def test_object_has_fifty_optional_members_at_most() -> None:
    properties = {f"p{number}": {"const": 1} for number in range(60)}
    draw = PlayedDraw(2**60 - 1)
    found = _SchemaDraw(draw, {}).draw({"type": "object", "properties": properties})  # type: ignore[arg-type]
    assert draw.asked == [f"0..{2**MAX_BRANCHES - 1}"]
    assert len(found) == MAX_BRANCHES == 50


def test_optional_members_come_and_go_and_required_ones_stay() -> None:
    names = [f"p{number}" for number in range(4)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "null"} for name in names},
        "required": ["p0", "p0", 7, "other"],
    }
    found = values_of(schema)
    assert all({"p0", "other"} <= set(each) <= {*names, "other"} for each in found)
    for name in names[1:]:
        count = sum(name in each for each in found)
        assert 0 < count < len(found)


def test_more_members_are_drawn_only_by_their_own_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}
    more = values_of({**schema, "additionalProperties": {"const": 5}})
    assert {5} == {value for each in more for name, value in each.items() if name != "a"}
    for closed in (True, False):
        found = values_of({**schema, "additionalProperties": closed})
        assert {name for each in found for name in each} == {"a"}


@pytest.mark.parametrize(
    ("schemas", "merged"),
    [
        (
            [{"properties": {"a": 1, "b": 2}}, {"properties": {"b": 3}}],
            {"properties": {"a": 1, "b": 3}},
        ),
        ([{"required": ["a"]}, {"required": ["b"]}], {"required": ["a", "b"]}),
        ([{"minimum": 5}, {"minimum": 1}], {"minimum": 5}),
        ([{"minimum": 1}, {"minimum": 5}], {"minimum": 5}),
        ([{"maxItems": 5}, {"maxItems": 1}], {"maxItems": 1}),
        ([{"maxItems": 1}, {"maxItems": 5}], {"maxItems": 1}),
        ([{"minLength": 5}, {"minLength": "x"}], {"minLength": 5}),
        ([{"minLength": "x"}, {"minLength": 5}], {"minLength": 5}),
        ([{"enum": [1, 2]}, {"enum": [2, 3]}], {"enum": [2]}),
        ([{"enum": [1]}, {"enum": [3]}], {"enum": [3]}),  # impossible: the last is taken
        ([{"title": "a"}, {"title": "b"}, True, 7], {"title": "b"}),
        ([{"$ref": "#/$defs/n", "maximum": 4}], {"type": "integer", "maximum": 4}),
    ],
)
def test_schemas_that_all_hold_are_merged(schemas: list[Any], merged: Any) -> None:
    root = {"$defs": {"n": {"type": "integer", "maximum": 9}}}
    draw: Any = None
    assert _SchemaDraw(draw, root)._merged(schemas, 0) == merged


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"properties": {"a": {"type": "null"}}}, {"type": "null"}),
        ({"$ref": "#/$defs/n"}, {"type": "null"}),
        ({"properties": {"b": {}}}, True),
        ({"properties": [1]}, True),
        (True, True),
    ],
)
def test_schema_of_a_member_is_found(schema: Any, found: Any) -> None:
    root = schema
    if isinstance(schema, dict) and "$ref" in schema:
        root = {**schema, "$defs": {"n": {"properties": {"a": {"type": "null"}}}}}
    draw: Any = None
    assert _SchemaDraw(draw, root).member("a") == found


def depth_of(value: Any) -> int:
    inner = [value] if isinstance(value, dict) else []
    inner = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inner), default=0) if isinstance(value, dict | list) else 0


def test_references_are_followed_to_a_depth_and_then_dropped() -> None:
    """Keywords beside a reference that isn't followed still hold."""
    schema = {
        "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1}},
        "$ref": "#/$defs/n",
    }
    assert max(map(depth_of, values_of(schema, 20))) <= _from_schema.MAX_REFERENCES + 3
    broken = {"$ref": "#/none", "type": "null"}
    assert set(values_of(broken, 5)) == {None}


def test_value_is_nested_to_a_depth() -> None:
    schema: Any = {"type": "string"}
    for _ in range(40):
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": 1}
    assert {depth_of(each) for each in values_of(schema, 5)} == {MAX_DEPTH + 2}


def test_patterns_of_a_schema_are_found_up_to_a_number() -> None:
    schema = {"a": [{"pattern": "x"}, {"pattern": 5}], "b": {"c": {"pattern": "y"}}, "d": "z"}
    assert sorted(_find_patterns(schema)) == ["x", "y"]
    many = [{"pattern": str(number)} for number in range(40)]
    assert len(_find_patterns(many)) == 10
    assert _find_patterns([{}] * 200 + [{"pattern": "x"}]) == []


@pytest.mark.parametrize(
    ("pattern", "hard"),
    [
        ("a{2,99}", False),
        ("(ab)+", False),
        ("a+b*", False),
        ("a{100}", True),
        ("a{1,100}", True),
        ("(a+)+", True),
        ("(a*)*", True),
        ("(a{2}){3}", True),
        ("([ab]+)*", True),
    ],
)
def test_pattern_that_takes_long_is_hard(pattern: str, hard: bool) -> None:
    assert is_hard_pattern(pattern) is hard
    assert not (hard and _texts_of(pattern))


def test_texts_for_a_pattern_match_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still: a busy machine finds fewer."""
    monkeypatch.setattr(_from_schema, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    found = _texts_of("^[ab]{2,6}$")
    assert len(found) == len(set(found)) > 1
    assert all(set(each) <= {*"ab", "\n"} for each in found)
    assert _texts_of("a" * PATTERN_LENGTH + "b") == ()
    assert _texts_of("[") == ()


@settings(PLAIN, max_examples=15)
@given(st.data())
def test_any_of_has_each_of_its_branches(data: st.DataObject) -> None:
    branches = [{"const": number} for number in range(3)]
    assert data.draw(from_schema({"anyOf": branches})) in (0, 1, 2)
    assert data.draw(from_schema({"oneOf": branches})) in (0, 1, 2)


# -- From which ranges parts are drawn -------------------------------------------------------------

NULL = {"type": "null"}
FINITE = "allow_nan=False, allow_infinity=False"


@pytest.mark.parametrize(
    ("schema", "choices", "asked", "value"),
    [
        ({"type": "integer"}, (False, 7), ["booleans()", "-1000..1000"], 7),
        ({"type": "integer"}, (True, 1), ["booleans()", "0..1"], 1),
        ({"type": "integer", "minimum": 3}, (False, 9), ["booleans()", "3"], 9),
        (
            {"type": "integer", "maximum": -3},
            (False, -9),
            ["booleans()", "integers(max_value=-3)"],
            -9,
        ),
        ({"type": "integer", "minimum": -4, "maximum": 0}, (True, 2), ["booleans()", "0..2"], 0),
        ({"type": "integer", "multipleOf": 5}, (2,), ["-100..100"], 10),
        ({"type": "integer", "multipleOf": 5, "minimum": 7}, (3,), ["2..202"], 15),
        ({"type": "integer", "multipleOf": 5, "maximum": 21}, (4,), ["-100..4"], 20),
        ({"type": "integer", "multipleOf": 1, "minimum": 2, "maximum": 3}, (2,), ["2..3"], 2),
        ({"type": "number"}, (True, False, 7), ["booleans()", "booleans()", "-1000..1000"], 7),
        ({"type": "number"}, (False, 0.5), ["booleans()", f"floats({FINITE})"], 0.5),
        (
            {"type": "number", "minimum": 1, "maximum": 1},
            (False, 1.0),
            ["booleans()", f"floats(min_value=1.0, max_value=1.0, {FINITE})"],
            1.0,
        ),
        ({"type": "string"}, ("hello",), ["text"], "hello"),
        ({"type": "string", "maxLength": 2}, ("hello",), ["text"], "he"),
        ({"type": "string", "minLength": 7}, ("hello",), ["text"], "helloaa"),
        ({"type": "string", "minLength": 5}, ("hello",), ["text"], "hello"),
        ({"type": "string", "format": "ipv4"}, (1,), ["0..1"], "192.0.2.1"),
        ({"type": "array", "items": NULL}, (2,), ["0..4"], [None, None]),
        ({"type": "array", "items": NULL, "minItems": 2}, (2,), ["2..4"], [None, None]),
        ({"type": "array", "items": NULL, "minItems": 6}, (6,), ["6..6"], [None] * 6),
        ({"type": "array", "items": NULL, "maxItems": 2}, (1,), ["0..2"], [None]),
        (
            {"type": "array", "minItems": 5, "maxItems": 3, "items": NULL},
            (3,),
            ["3..5"],
            [None] * 3,
        ),
        ({"type": "array", "prefixItems": [NULL]}, (2, "x"), ["0..4", "json 1"], [None, "x"]),
        ({"type": "object", "properties": {"a": NULL, "b": NULL}}, (2,), ["0..3"], {"b": None}),
        ({"type": "object", "properties": {"a": NULL}, "required": ["a"]}, (0,), [], {"a": None}),
        ({"type": "object", "required": ["a"]}, ("x",), ["json 1"], {"a": "x"}),
        (
            {"type": "object", "additionalProperties": NULL},
            (True, "k"),
            ["booleans()", "text"],
            {"k": None},
        ),
        (
            {"required": ["a"], "properties": {"a": {"const": 1}}, "additionalProperties": NULL},
            (True, "a"),
            ["booleans()", "text"],
            {"a": 1},
        ),
        ({"enum": [*range(60)]}, (49,), ["0..49"], 49),
        ({"enum": [*"ab"]}, (1,), ["0..1"], "b"),
        ({"anyOf": [{"const": number} for number in range(60)]}, (3,), ["0..49"], 3),
        ({"type": "null", "default": 9}, (0,), ["0..7"], 9),
        ({"type": "null", "default": 9}, (1,), ["0..7"], None),
        ({"type": ["null", "boolean"]}, (1, True), ["0..1", "booleans()"], True),
        ({"title": "any"}, (0,), ["0..6"], None),
        ({}, ("x",), ["json 1"], "x"),
        (True, ("x",), ["json 1"], "x"),
    ],
)
def test_part_is_drawn_from_the_range_of_its_schema(
    schema: Any, choices: tuple[Any, ...], asked: list[str], value: Any
) -> None:
    draw = PlayedDraw(*choices)
    found = _SchemaDraw(draw, schema).draw(schema)  # type: ignore[arg-type]
    assert (found, type(found)) == (value, type(value))
    assert draw.asked == asked


@pytest.mark.parametrize(("levels", "asked"), [(2, "json 1"), (3, "json 0")])
def test_anything_deep_in_a_value_is_flat(levels: int, asked: str) -> None:
    schema: Any = {}
    for _ in range(levels):
        schema = {"type": "array", "items": schema, "minItems": 1, "maxItems": 1}
    draw = PlayedDraw(*[1] * levels, "x")
    _SchemaDraw(draw, schema).draw(schema)  # type: ignore[arg-type]
    assert draw.asked == ["1..1"] * levels + [asked]


def test_value_has_at_most_150_parts_and_is_small_then() -> None:
    """The last part is invalid. A required member that is left out costs nothing."""
    names = [f"m{number}" for number in range(300)]
    member = {"type": "string", "minLength": 1}
    schema = {"required": names, "properties": dict.fromkeys(names, member)}
    found = _SchemaDraw(PlayedDraw("x"), schema).draw(schema)  # type: ignore[arg-type]
    assert list(found) == names[:150]
    assert list(found.values()) == ["x"] * 149 + [""]
    few = {"properties": dict.fromkeys(names, NULL)}
    found = _SchemaDraw(PlayedDraw(2**50 - 1), few).draw(few)  # type: ignore[arg-type]
    assert list(found) == names[:50]


@pytest.mark.parametrize(("least", "length"), [(0, 0), (2, 2), (4, 4), (10, 4)])
def test_array_that_is_reached_late_is_short(least: int, length: int) -> None:
    draw = _SchemaDraw(PlayedDraw(10), {})  # type: ignore[arg-type]
    draw._left = -1
    assert draw._array({"minItems": least, "maxItems": 10}, 0, 0) == [None] * length


@pytest.mark.parametrize(
    ("choices", "asked", "value"),
    [
        ((0, "any"), ["0..5", "json 1"], "any"),
        ((1, "new", 7), ["0..5", "text", "json 1"], {"a": 1, "b": 1, "new": 7}),
        ((2, 1), ["0..5", "0..1"], {"a": 1}),
        ((3, 0), ["0..5", "0..1"], {"a": 0, "b": 1}),
        ((3, 1), ["0..5", "0..1"], {"a": 1, "b": 5}),
        ((4, 1, "any"), ["0..5", "0..1", "json 1"], {"a": 1, "b": "any"}),
        ((5, 0, "any"), ["0..5", "0..1", "json 1"], {"a": "any", "b": 1}),
    ],
)
def test_value_that_nearly_fits_has_the_edit_that_was_drawn(
    choices: tuple[Any, ...], asked: list[str], value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(st, "composite", lambda build: lambda: build)
    member = {"type": "integer", "const": 1}
    properties = {"a": {**member, "minimum": 1}, "b": {**member, "maximum": 4}}
    schema = {"type": "object", "properties": properties, "required": ["a", "b"]}
    build: Any = nearly_valid(schema)
    draw = PlayedDraw(*choices)
    assert build(draw) == value
    assert draw.asked == asked


@pytest.mark.parametrize(
    ("schema", "choices", "value"),
    [
        ({"const": 1}, (5, "any"), "any"),
        ({"type": "object"}, (5, "new", 7), {"new": 7}),
    ],
)
def test_value_without_members_gets_another_one_or_a_first_one(
    schema: Any, choices: tuple[Any, ...], value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(st, "composite", lambda build: lambda: build)
    build: Any = nearly_valid(schema)
    assert build(PlayedDraw(*choices)) == value
