"""Where a schema breaks its users: a table, and any two schemas beside jsonschema's own verdict."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from mcp_core.contract._documents import MAX_DEPTH, SchemaRoot
from mcp_core.contract._keywords import merge_parts
from mcp_core.contract._schemas import Direction, compare_schemas, new_members
from tests.core.contract.schemas import (
    DOCUMENTS,
    is_endless,
    pairs_of_schemas,
    schemas,
    without_undescribed,
)
from tests.examples.pages import read
from tests.levels import fewer_examples

S, W, F, N = ({"type": name} for name in ("string", "integer", "number", "null"))
B = {"type": "boolean"}


def obj(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def closed(**properties: Any) -> dict[str, Any]:
    return {**obj(**properties), "additionalProperties": False}


def a(schema: Any) -> dict[str, Any]:
    return obj(a=schema)


def array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def ref(schema: Any, definition: Any) -> dict[str, Any]:
    return {**schema, "$defs": {"d": definition}}


def tagged(*tags: str) -> dict[str, Any]:
    return {"oneOf": [obj("k", k={"const": tag}, x=S) for tag in tags]}


def parts(**properties: Any) -> dict[str, Any]:
    """Return an `allOf` of these members, and of others of which one is the same but for a text."""
    shared = {name: {**each, "title": "x"} for name, each in properties.items() if name == "id"}
    return {"allOf": [obj(**properties), obj(**shared, b=W)]}


D = {"$ref": "#/$defs/d"}
TREE: dict[str, Any] = {"type": "object", "properties": {"value": S, "kids": array(D)}}

# What is narrow accepts no more than what is wide: changes from narrow to wide are compatible for
# an input, and the other way round for an output. In the other direction each is certain to break.
NARROW_AND_WIDE: dict[str, tuple[Any, Any]] = {
    "a member becomes optional": (obj("a", a=S), obj(a=S)),
    "a value of an enum more": (a({"enum": ["x"]}), a({"enum": ["x", "y"]})),
    "an enum becomes any text": (a({"enum": ["x", "y"]}), a(S)),
    "a constant becomes one of two": (a({"const": 1}), a({"enum": [1, 2]})),
    "other members are permitted": (closed(a=S), obj(a=S)),
    "null is permitted": (a(S), a({"anyOf": [S, N]})),
    "null is permitted by a list of types": (a(S), a({"type": ["string", "null"]})),
    "a member without any type": (a(S), a({})),
    "an integer becomes a number": (a(W), a(F)),
    "a boolean may be a text, too": (a(B), a({"type": ["boolean", "string"]})),
    "a lower minimum": (a({**W, "minimum": 1}), a({**W, "minimum": 0})),
    "an exclusive maximum becomes one": (
        a({**F, "exclusiveMaximum": 9}),
        a({**F, "maximum": 9}),
    ),
    "no longer a multiple": (a({**W, "multipleOf": 4}), a({**W, "multipleOf": 2})),
    "a shorter text": (a({**S, "minLength": 2}), a({**S, "minLength": 1})),
    "a longer text": (a({**S, "maxLength": 2}), a({**S, "maxLength": 3})),
    "an empty array": (a(array(S, minItems=1)), a(array(S))),
    "a longer array": (a(array(S, maxItems=1)), a(array(S, maxItems=2))),
    "equal items": (a(array(S, uniqueItems=True)), a(array(S))),
    "another type of item": (a(array(S)), a(array({"type": ["string", "null"]}))),
    "a first item of any type": (
        a({"type": "array", "prefixItems": [S]}),
        a({"type": "array"}),
    ),
    "a nested member becomes optional": (a(obj("b", b=S)), a(obj(b=S))),
    "fewer members are enough": (
        {**obj(a=S), "minProperties": 1},
        {**obj(a=S), "minProperties": 0},
    ),
    "more members": (
        {**obj(a=S, b=S), "maxProperties": 1},
        {**obj(a=S, b=S), "maxProperties": 2},
    ),
    "values of a dictionary": (
        a({"type": "object", "additionalProperties": S}),
        a({"type": "object"}),
    ),
    "any object in place of one that is described": (a(obj(b=S)), a({"type": "object"})),
    "a definition becomes wider": (ref(a(D), {"enum": [1]}), ref(a(D), {"enum": [1, 2]})),
    "a definition instead of its copy": (a({"enum": [1]}), ref(a(D), {"enum": [1, 2]})),
    "a recursive definition": (
        ref(D, TREE),
        ref(D, {**TREE, "properties": {**TREE["properties"], "value": {}}}),
    ),
    "an alternative more": (tagged("x", "y"), tagged("x", "y", "z")),
    "one part of allOf less": (a({"allOf": [S, {"minLength": 2}]}), a({"allOf": [S]})),
    "nothing becomes something": (a(False), a(S)),
    "items of an array that has two": (a(array(W, minItems=2)), a(array(F, minItems=2))),
    "the second item": (
        a({"type": "array", "prefixItems": [S, W], "minItems": 2}),
        a({"type": "array", "prefixItems": [S, F], "minItems": 2}),
    ),
    "the third item of an array that has four": (
        a({"type": "array", "prefixItems": [S, S, W], "minItems": 4}),
        a({"type": "array", "prefixItems": [S, S, F], "minItems": 4}),
    ),
    "items after a first one": (
        a({"type": "array", "prefixItems": [S], "items": False}),
        a({"type": "array", "prefixItems": [S], "items": W}),
    ),
    "items that a limit excluded": (
        a({"type": "array", "prefixItems": [W], "maxItems": 1}),
        a({"type": "array", "prefixItems": [W], "items": S}),
    ),
    "an upper bound that is a fraction": (a({**F, "maximum": 1.5}), a({**F, "maximum": 1.75})),
    "a bound between two others": (
        a({**F, "minimum": 1.2, "maximum": 3}),
        a({**F, "exclusiveMinimum": 1.1, "maximum": 3}),
    ),
    "an integer's bound that is a fraction": (a({**W, "minimum": 1.5}), a({**W, "minimum": 0.5})),
    "a lower bound beside a step": (
        a({**F, "multipleOf": 0.25, "minimum": 1}),
        a({**F, "multipleOf": 0.25, "minimum": 0.75}),
    ),
    "a member of a dictionary of any names": (
        a(closed(b=W)),
        a({"type": "object", "additionalProperties": F}),
    ),
    "equal alternatives beside a bound": (
        a({"anyOf": [S, N], "minLength": 2}),
        a({"anyOf": [S, N], "minLength": 1}),
    ),
    "one of two booleans": (a({"const": True}), a(B)),
    "a member beside a required one": (obj("b", a=W, b=S), obj("b", a=F, b=S)),
    "a member of the only item": (
        a(array(obj("c", b=W, c=S), minItems=1)),
        a(array(obj("c", b=F, c=S), minItems=1)),
    ),
    "an alternative told by its type": (
        obj("t", t=W),
        {"oneOf": [obj("t", t=S), obj("t", t=W)]},
    ),
    "an alternative that accepts nothing": (
        obj("k", k={"const": "x"}),
        {"oneOf": [obj("k", k=S), obj("k", k=False)]},
    ),
    "a member of one of two parts that share one": (parts(id=S, a=W), parts(id=S, a={})),
    "the same in a member": (a(parts(id=S, a=W)), a(parts(id=S, a={}))),
    "the same in parts that say they are open": (
        {"allOf": [{**each, "additionalProperties": {}} for each in parts(a=W)["allOf"]]},
        {"allOf": [{**each, "additionalProperties": {}} for each in parts(a={})["allOf"]]},
    ),
}

# Neither of the two is certain.
UNCLEAR: dict[str, tuple[Any, Any]] = {
    "another pattern": (a({**S, "pattern": "a"}), a({**S, "pattern": "b"})),
    "another format": (a({**S, "format": "uri"}), a({**S, "format": "date"})),
    "a condition": (a({"if": S, "then": {"minLength": 1}}), a({"if": S, "then": {"maxLength": 9}})),
    "another dialect": (a(S), {**a(W), "$schema": "http://json-schema.org/draft-04/schema#"}),
    "a reference elsewhere": (a({"$ref": "https://a.test/x"}), a({"$ref": "https://a.test/y"})),
    "a reference to nothing": (a(D), a({"$ref": "#/$defs/e"})),
    "a reference to itself": (ref(a(D), D), ref(a({}), {"anyOf": [D, S]})),
    "a dynamic reference": (a({"$dynamicRef": "#x"}), a({"$dynamicRef": "#y"})),
    "patterns of names": (
        a({"type": "object", "patternProperties": {"x": S}}),
        a({"type": "object", "patternProperties": {"y": W}}),
    ),
    "names that depend": (
        {**obj(a=S), "dependentRequired": {"a": ["b"]}},
        {**obj(a=S), "dependentRequired": {"b": ["a"]}},
    ),
    "an unknown type": (a({"type": "text"}), a({"type": "file"})),
    "a name that a pattern covered": (
        {"patternProperties": {"^a": W}, "additionalProperties": False},
        {"properties": {"ab": S}, "patternProperties": {"^a": W}, "additionalProperties": False},
    ),
    "one item at least": (
        a({"type": "array", "contains": W, "minContains": 0}),
        a({"type": "array", "contains": W}),
    ),
    "a bound that is exclusive as in draft-04": (
        a({**W, "minimum": 0}),
        a({**W, "minimum": 0, "exclusiveMinimum": True}),
    ),
    "a count that is none": (obj(a=S), {**obj(a=S), "minProperties": "1"}),
    "members that are none": (obj(a=S), {**obj(a=S), "allOf": {}}),
    "alternatives that are none": (a(S), a({"anyOf": 5})),
    "an alternative that refers to nothing": (a(S), a({"anyOf": [{"$ref": "#/$defs/e"}]})),
    "an alternative that only another one accepts": (
        a({"anyOf": [obj("b", b=W), obj(c=W)]}),
        a({"anyOf": [obj("b", b=S), obj(c=W)]}),
    ),
    "a member that a condition describes": (
        {**obj(k=S), "if": obj(k={"const": "x"}), "then": obj(v=W)},
        obj(k=S, v=S),
    ),
}


@pytest.mark.parametrize("name", NARROW_AND_WIDE)
def test_wider_schema_breaks_outputs_only(name: str) -> None:
    narrow, wide = NARROW_AND_WIDE[name]
    assert compare_schemas(narrow, wide, Direction(is_input=True))[0] == []
    assert compare_schemas(wide, narrow, Direction(is_input=False))[0] == []
    for direction, pair in (Direction(True), (wide, narrow)), (Direction(False), (narrow, wide)):
        found, _ = compare_schemas(*pair, direction)
        assert [each.is_certain for each in found] == [True] * len(found) != []
        for each in found:
            assert Draft202012Validator(wide).is_valid(each.example)
            assert not Draft202012Validator(narrow).is_valid(each.example)


@pytest.mark.parametrize("name", UNCLEAR)
def test_difference_beyond_proof_is_unclear(name: str) -> None:
    for pair in UNCLEAR[name], UNCLEAR[name][::-1]:
        found, _ = compare_schemas(*pair, Direction(is_input=True))
        assert {each.is_certain for each in found} <= {False}
    found, _ = compare_schemas(*UNCLEAR[name], Direction(is_input=True))
    assert found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (obj(a=S), obj(a=S, b=W)),
        (closed(a=S), closed(a=S, b=W)),
        (obj(), obj(b=obj("c", c=S))),
        ({"type": "object"}, obj(b=W)),
        (a({**S, "pattern": "x"}), a(S)),
        (a({"anyOf": [S, N]}), a({"type": ["null", "string"], "default": None})),
        (a({"oneOf": [S, W]}), a({"anyOf": [W, S]})),
        (a(S), a({"anyOf": [True, W]})),
        (a({**S, "minLength": 2}), a({"oneOf": [S, {"const": "x"}]})),
        (a({"allOf": [D], "title": "x"}) | {"$defs": {"d": S}}, a(D) | {"$defs": {"d": S}}),
        (a({"const": 1}), a({"const": 1.0})),
        (a(array(S, maxItems=1)), a(array(S, maxItems=1, uniqueItems=True))),
        (closed(a=S, b=S), {**closed(a=S, b=S), "maxProperties": 2}),
        (obj("a", "b", a=S, b=S), {**obj(a=S, b=S), "minProperties": 2}),
        (a(array(W, contains=W)), a(array(F, contains=W, minContains=1))),
        (a(S), a({**S, "contains": W})),
        (a({"type": "array", "maxItems": 0}), a(array(W))),
        (
            {"properties": {"a": W}, "patternProperties": {"^x": S}},
            {"properties": {"a": F}, "patternProperties": {"^x": S}},
        ),
        (a({"allOf": [{"title": "x"}, S]}), a({"allOf": [S, {}, True]})),
        # What has no reference is the same beside other definitions.
        (a({"not": S}) | {"$defs": {"d": S}}, a({"not": S}) | {"$defs": {"d": W}}),
        (a({"not": S}) | {"$defs": {"d": S}}, a({"not": S})),
        (
            a({**S, "if": S, "then": {"minLength": 1}}),
            a({**S, "if": S, "then": {"minLength": 1}, "title": "x"}),
        ),
    ],
)
def test_another_spelling_or_new_optional_argument_is_compatible(old: Any, new: Any) -> None:
    assert compare_schemas(old, new, Direction(is_input=True))[0] == []


@pytest.mark.parametrize(
    ("old", "new", "place", "sentence", "example"),
    [
        (a(W), a({**W, "minimum": 1}), "a", "has a narrower minimum: none → 1", {"a": 0}),
        (
            a(array(obj("q", q=S, r=S))),
            a(array(obj("q", q=S, r=W))),
            "a[].r",
            "no longer accepts string",
            {"a": [{"q": "", "r": ""}]},
        ),
        (a(F), a(W), "a", "no longer accepts fractions", {"a": 0.5}),
        (obj("a"), obj("a", a={"minimum": 1}), "a", "has a narrower minimum: none → 1", {"a": 0}),
        (obj(a=S), obj("b", b=S, a=S), "", "requires b now", {}),
        (a(W), a({"enum": [1, 2]}), "a", "accepts only 1, 2 now", {"a": 0}),
        (a(B), a({"enum": [True]}), "a", "no longer accepts false", {"a": False}),
        (a(S), a({**S, "maxLength": 0}), "a", "has a narrower maxLength: none → 0", {"a": "a"}),
        (
            a(array(S, minItems=2)),
            a(array(W, minItems=2)),
            "a[]",
            "no longer accepts string",
            {"a": ["", ""]},
        ),
    ],
)
def test_finding_has_place_sentence_and_example(
    old: Any, new: Any, place: str, sentence: str, example: Any
) -> None:
    [found], _ = compare_schemas(old, new, Direction(is_input=True))
    assert found == (place, sentence, True, example)


@pytest.mark.parametrize(
    ("old", "alternatives"),
    [
        (a({"enum": ["x"]}), [a(S), a({"enum": ["x", "y"]})]),
        (obj(t=S), [obj(t=S), obj(t=W)]),
        (obj("t", t=S), [obj("t", t=S), obj("t", t={"type": ["string", "null"]})]),
    ],
)
def test_document_of_two_alternatives_is_refused_by_one_of(old: Any, alternatives: Any) -> None:
    assert verdict(old, {"oneOf": alternatives}, Direction(is_input=True)) == "breaking"
    assert verdict(old, {"anyOf": alternatives}, Direction(is_input=True)) == "compatible"


def test_findings_are_limited_and_members_of_items_are_named() -> None:
    names = [f"m{number}" for number in range(101)]
    old, new = (obj(**{name: {**each} for name in names}) for each in (S, W))
    assert len(compare_schemas(old, new, Direction(is_input=True))[0]) == 100
    old, new = a(array(obj(x=S, y=S))), a(array(obj(x=S)))
    [found], _ = compare_schemas(old, new, Direction(is_input=True))
    assert found == ("a[]", "no longer describes y, and may ignore it", False, None)
    assert new_members(new, old)[0] == [("a[]", "y")]
    assert new_members(new, a(array(S)))[0] == []
    assert new_members({}, obj(x=S))[0] == [("", "x")]
    assert new_members({"$schema": "unknown:"}, obj(x=S), steps=7) == ([], 7)


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
def test_change_in_the_only_alternative_of_a_type_is_named_like_any_other(key: str) -> None:
    narrower = {**W, "minimum": 1}
    [found], _ = compare_schemas(a(W), a({key: [narrower, S]}), Direction(is_input=True))
    [plain], _ = compare_schemas(a(W), a(narrower), Direction(is_input=True))
    assert found == plain


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
def test_type_that_no_alternative_has_is_named_like_any_other(key: str) -> None:
    alternatives = a({key: [W, B]})
    [found], _ = compare_schemas(a(S), alternatives, Direction(is_input=True))
    [plain], _ = compare_schemas(a(S), a(W), Direction(is_input=True))
    assert found == plain


@pytest.mark.parametrize(
    ("parts", "merged"),
    [
        ([{"required": ["a"]}, {"required": ["b"]}], {"required": ["a", "b"]}),
        ([{"allOf": [S]}, {"allOf": [W]}], {"allOf": [S, W]}),
        (
            [{"properties": {"a": S, "b": S}}, {"properties": {"a": W, "b": S}}],
            {"properties": {"a": {"allOf": [S, W]}, "b": S}},
        ),
        ([{"minimum": 1}, {"minimum": 1}], {"minimum": 1}),
        ([{"minimum": 1}, {"minimum": 2}], None),
    ],
)
def test_parts_that_all_hold_are_merged_if_that_is_simple(parts: Any, merged: Any) -> None:
    assert merge_parts(parts) == merged


@pytest.mark.parametrize(("depth", "expected"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, None)])
@pytest.mark.parametrize("wrap", ["allOf", "anyOf", "oneOf", "items", "not"])
def test_value_of_a_deep_schema_is_unclear(wrap: str, depth: int, expected: Any) -> None:
    """No schema may exhaust Python's stack."""
    schema: Any = W
    value: Any = 1
    for _ in range(depth):
        schema = {wrap: schema if wrap in ("items", "not") else [schema]}
        value = [value] if wrap == "items" else value
    found = SchemaRoot(schema, 1_000_000).fits(value, schema)
    assert found is (expected if wrap != "not" or depth % 2 == 0 or expected is None else False)


@pytest.mark.parametrize(
    "schema",
    [
        a({"type": "array", "prefixItems": [S]}),
        a({"if": S, "then": {"minLength": 2}}),
        {**obj(a=S), "dependentRequired": {"a": ["b"]}},
    ],
)
def test_same_keywords_in_another_dialect_are_unclear(schema: Any) -> None:
    """draft-06 has none of them, and ignores them."""
    old = {**schema, "$schema": "http://json-schema.org/draft-06/schema#"}
    assert verdict(old, schema, Direction(is_input=True)) == "unclear"
    plain = {**obj(a=S), "$schema": "http://json-schema.org/draft-07/schema#"}
    assert verdict(plain, obj(a=S), Direction(is_input=True)) == "compatible"


def test_argument_that_is_no_longer_described_is_unclear() -> None:
    """The server may ignore it, which no schema shows."""
    [found], _ = compare_schemas(obj(a=S, b=S), obj(a=S), Direction(is_input=True))
    assert found == ("", "no longer describes b, and may ignore it", False, None)
    assert compare_schemas(obj(a=S, b=S), obj(a=S), Direction(is_input=False))[0] == []


# By a row of the page's table: a schema before and one after the change.
PAGE: Final = "docs/howto/contracts.md"
PAGE_ROWS: dict[str, tuple[Any, Any]] = {
    "a member becomes required": (obj(a=S), obj("a", a=S)),
    "a member is no longer required": (obj("a", a=S), obj(a=S)),
    "a value of an `enum` is gone": (a({"enum": [1, 2]}), a({"enum": [1]})),
    "a value of an `enum` is new": (a({"enum": [1]}), a({"enum": [1, 2]})),
    "null is no longer accepted": (a({"anyOf": [S, N]}), a(S)),
    "null is accepted": (a(S), a({"anyOf": [S, N]})),
    "a number, length or count gets a tighter limit": (a(S), a({**S, "maxLength": 9})),
    "`additionalProperties` becomes false": (obj(a=S), closed(a=S)),
    "a new optional member": (obj(a=S), obj(a=S, b=S)),
    "a member is no longer described, and others are permitted": (obj(a=S, b=S), obj(a=S)),
    "an alternative that only one accepts which doesn't describe its members": (
        a({"anyOf": [obj("b", b=W), obj(c=W)]}),
        a({"anyOf": [obj("b", b=S), obj(c=W)]}),
    ),
    "`pattern`, `format`, `contains`, `if` or `patternProperties` differ": (
        a({"pattern": "a"}),
        a({"pattern": "b"}),
    ),
    "a reference outside of the schema, a schema that is too complex": (
        a({"$ref": "https://a.test/x"}),
        a({"$ref": "https://a.test/y"}),
    ),
}


def verdict(old: Any, new: Any, direction: Direction) -> str:
    found, _ = compare_schemas(old, new, direction)
    if any(each.is_certain for each in found):
        return "breaking"
    return "unclear" if found else "compatible"


def test_table_of_page_has_the_verdicts() -> None:
    """Each row's first cell is one of `PAGE_ROWS`, and the others are what we say about it."""
    rows = re.findall(r"^\| (.+?) \| (\w+) \| (\w+)(?:; .*)? \|$", read(PAGE), re.MULTILINE)
    found = {text: (one, other) for text, one, other in rows}
    assert found == {
        text: (verdict(*pair, Direction(True)), verdict(*pair, Direction(False)))
        for text, pair in PAGE_ROWS.items()
    }
    assert verdict(closed(a=S), closed(a=S, b=S), Direction(False)) == "breaking"


def bomb(leaf: Any) -> dict[str, Any]:
    """Return a schema with 2^40 ways to its only leaf."""
    doors = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    return {"$defs": {**doors, "d40": leaf}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


@pytest.mark.parametrize("wrap", ["allOf", "anyOf", "oneOf", "items", "deep"])
def test_bomb_is_unclear_within_bounds(wrap: str) -> None:
    """However a schema multiplies its references, the steps are counted."""
    old, new = bomb(S), bomb(W)
    for schema in old, new:
        for door in schema["$defs"].values():
            if "allOf" in door and wrap in ("anyOf", "oneOf"):
                door[wrap] = door.pop("allOf")
            elif "allOf" in door and wrap == "items":
                door |= {"prefixItems": door.pop("allOf")}
    if wrap == "deep":
        for schema in old, new:
            for _ in range(5000):
                schema["properties"] = {"a": {"properties": dict(schema["properties"])}}
    found, left = compare_schemas(old, new, Direction(is_input=True), steps=10_000)
    assert found
    assert not any(each.is_certain for each in found)
    assert left >= 0  # the time is what the steps take, some microseconds each


def is_valid(schema: Any, document: Any) -> bool | None:
    """Return jsonschema's verdict; None for a schema that refers to itself without end."""
    try:
        return Draft202012Validator(schema).is_valid(document)
    except RecursionError:
        return None


def check_pair(old: Any, new: Any) -> None:
    found, _ = compare_schemas(old, new, Direction(is_input=True))
    if is_endless(old) or is_endless(new):
        return  # jsonschema may take hours
    for each in found:
        if each.is_certain:
            assert is_valid(old, each.example) is not False
            assert is_valid(new, each.example) is not True
    # An alternative of `oneOf` that is narrower may make the whole wider: both have to accept it.
    described = Draft202012Validator(without_undescribed(old))
    before, after = Draft202012Validator(old), Draft202012Validator(new)
    if not found:
        for document in DOCUMENTS:
            if described.is_valid(document) and before.is_valid(document):
                assert after.is_valid(document), document


@fewer_examples(10)
@given(pairs_of_schemas())
def test_no_counter_example_to_compatible_and_each_example_is_one(pair: tuple[Any, Any]) -> None:
    """Our verdict beside jsonschema's: see 1 and 2 of the module that is tested."""
    check_pair(*pair)


@pytest.mark.long
@settings(max_examples=300)
@given(pairs_of_schemas())
def test_no_counter_example_in_many_pairs(pair: tuple[Any, Any]) -> None:
    check_pair(*pair)


@fewer_examples(10)
@given(schemas())
def test_verdict_about_document_is_that_of_jsonschema(schema: Any) -> None:
    root = SchemaRoot(schema, 1_000_000)
    for document in DOCUMENTS[::3]:
        found = root.fits(document, schema)
        if found is not None:
            assert is_valid(schema, document) in (found, None), document


@fewer_examples(10)
@given(schemas())
def test_equal_schemas_have_no_finding(schema: Any) -> None:
    copy = {**schema, "title": "text"}
    assert not any(each.is_certain for each in compare_schemas(schema, copy, Direction(True))[0])


def of_text(keyword: str, argument: str) -> Any:
    return obj("a", "m", a={**S, keyword: argument}, m={"enum": [1, 2]}, n=W)


@pytest.mark.parametrize(
    ("keyword", "argument"),
    [
        *(("format", name) for name in ("date", "date-time", "email", "uri", "uuid", "ipv4")),
        *(
            ("pattern", text)
            for text in ("^[a-z0-9-]{3,5}$", r"^v\d+\.[0-9]+$", "x?y*", r"^[\w.]+@a$")
        ),
    ],
)
def test_change_beside_a_required_format_or_pattern_breaks(keyword: str, argument: str) -> None:
    """An example needs a text of the format."""
    old = of_text(keyword, argument)
    for change in (
        {"required": ["a", "m", "b"]},
        {"properties": {**old["properties"], "m": {"enum": [1]}}},
        {"properties": {**old["properties"], "n": S}},
    ):
        [found], _ = compare_schemas(old, {**old, **change}, Direction(is_input=True))
        assert found.is_certain
        assert Draft202012Validator(
            old, format_checker=Draft202012Validator.FORMAT_CHECKER
        ).is_valid(found.example)


@pytest.mark.parametrize(
    "pattern", ["(a|b)", "[z-a]", "a{5,2}", "[^a]", ".", "[+--]", "a{9999}b{9999}"]
)
def test_change_beside_a_pattern_that_is_not_simple_is_unclear(pattern: str) -> None:
    old = of_text("pattern", pattern)
    assert verdict(old, {**old, "required": ["a", "m", "b"]}, Direction(True)) == "unclear"


@pytest.mark.parametrize("values", [[f"v{n}" for n in range(3000)], [[n] for n in range(300)]])
def test_long_enum_in_another_order_takes_few_steps_or_is_unclear(values: list[Any]) -> None:
    """Each value is looked up in the other list, or what that takes is counted."""
    _, left = compare_schemas({"enum": values}, {"enum": values[::-1]}, Direction(True))
    assert compare_schemas({"enum": values}, {"enum": values[::-1]}, Direction(True))[0] == []
    work = len(values) if isinstance(values[0], str) else len(values) ** 2
    assert 50_000 - left >= work // 16


def test_equal_schemas_have_no_findings_and_cost_no_steps() -> None:
    """Also those that can't be compared with others."""
    for schema in ({"$ref": "https://example.com/schema"}, {"$schema": "unknown:"}, obj("a", a=S)):
        assert compare_schemas(schema, dict(schema), Direction(is_input=True), steps=7) == ([], 7)
