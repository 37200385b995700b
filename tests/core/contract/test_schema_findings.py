"""All findings of a pair of schemas: places, sentences, and the examples of those that are certain.

`test_schemas.py` has the verdicts.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_core.contract._documents import MAX_DEPTH
from mcp_core.contract._schemas import Direction, compare_schemas, new_members

S, W, F, N = ({"type": each} for each in ("string", "integer", "number", "null"))
UNCLEAR: Final = object()  # in place of an example
UNKNOWN: Final = "has a reference or a keyword that cannot be followed"
NO_OTHER: Final = "no longer accepts null or boolean or object or array or string or number"


def obj(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def found_in(old: Any, new: Any, *, is_input: bool) -> list[tuple[str, str, Any]]:
    """Return the findings of two schemas: the place, the sentence, and the example."""
    found, _ = compare_schemas(old, new, Direction(is_input))
    return [
        (each.place, each.sentence, each.example if each.is_certain else UNCLEAR) for each in found
    ]


@pytest.mark.parametrize(
    ("old", "new", "findings"),
    [
        (S, {**S, "minLength": 2}, [("", "has a narrower minLength: none → 2", "a")]),
        (
            {"type": "integer", "exclusiveMinimum": -3, "multipleOf": 3},
            {"type": "integer", "exclusiveMinimum": 8, "multipleOf": 3},
            # The half of what is left out is 3.5.
            [("", "has a narrower exclusiveMinimum: -3 → 8", 3)],
        ),
        (
            {**S, "minLength": 1},
            {**S, "minLength": 2},
            [("", "has a narrower minLength: 1 → 2", "a")],
        ),
        (
            {**S, "minLength": 2},
            {**S, "minLength": 2, "maxLength": 3},
            [("", "has a narrower maxLength: none → 3", "aaaa")],
        ),
        (
            {**S, "maxLength": 4},
            {**S, "maxLength": 3},
            [("", "has a narrower maxLength: 4 → 3", "aaaa")],
        ),
        (S, {**S, "minLength": 0}, []),
        (S, {**S, "minLength": "2"}, [("", 'has a narrower minLength: none → "2"', UNCLEAR)]),
        (W, {**W, "exclusiveMinimum": 0}, [("", "has a narrower exclusiveMinimum: none → 0", 0)]),
        (
            {**W, "minimum": 1},
            {**W, "exclusiveMinimum": 1},
            [("", "has a narrower exclusiveMinimum: none → 1", 1)],
        ),
        (
            {**F, "minimum": 1},
            {**F, "exclusiveMinimum": 1},
            [("", "has a narrower exclusiveMinimum: none → 1", 1)],
        ),
        (
            {**F, "minimum": 1, "maximum": 2},
            {**F, "minimum": 1.25},
            [("", "has a narrower minimum: 1 → 1.25", 1)],
        ),
        (
            {**F, "maximum": 2},
            {**F, "exclusiveMaximum": 2},
            [("", "has a narrower exclusiveMaximum: none → 2", 2)],
        ),
        (W, {**W, "multipleOf": 2}, [("", "has a narrower multipleOf: none → 2", 1)]),
        (
            {**F, "multipleOf": 0.5},
            {**F, "multipleOf": 1},
            [("", "has a narrower multipleOf: 0.5 → 1", 0.5)],
        ),
        (array(S), array(S, minItems=1), [("", "has a narrower minItems: none → 1", [])]),
        (
            array(S, minItems=1),
            array(S, minItems=2),
            [("", "has a narrower minItems: 1 → 2", [""])],
        ),
        (
            array(S, maxItems=3),
            array(S, maxItems=2),
            [("", "has a narrower maxItems: 3 → 2", ["", "a", "b"])],
        ),
        (array(S), array(S, uniqueItems=True), [("", "accepts no equal items now", ["", ""])]),
        (
            array(S, maxItems=2),
            array(S, maxItems=2, uniqueItems=True),
            [("", "accepts no equal items now", ["", ""])],
        ),
        (array(S), array(W), [("[]", "no longer accepts string", [""])]),
        (array(S, minItems=2), array(W), [("[]", "no longer accepts string", ["", ""])]),
        (
            {"type": "array", "prefixItems": [S, S]},
            {"type": "array", "prefixItems": [S, W]},
            [("[1]", "no longer accepts string", ["", ""])],
        ),
        (
            {"type": "array", "prefixItems": [S, S]},
            {"type": "array", "prefixItems": [S], "items": W},
            [("[1]", "no longer accepts string", ["", ""]), ("[]", NO_OTHER, ["", "", None])],
        ),
        (
            {"type": "array", "prefixItems": [S]},
            {"type": "array", "prefixItems": [S], "items": W},
            [("[]", NO_OTHER, ["", None])],
        ),
        (
            {"type": "array", "prefixItems": [S, S], "maxItems": 1},
            {"type": "array", "prefixItems": [S, W]},
            [],
        ),
        (
            obj(a=obj("b", b={**S, "pattern": "(a|b)"}, c=W)),
            obj(a=obj("b", b={**S, "pattern": "(a|b)"}, c=S)),
            [("a.c", "no longer accepts integer", UNCLEAR)],  # there is no example of `b`
        ),
        (array(W), array(W, contains={"const": 1}), [("", "has another contains", UNCLEAR)]),
        (
            obj(a=S),
            {**obj(a=S), "minProperties": 1},
            [("", "has a narrower minProperties: none → 1", {})],
        ),
        (
            obj("a", a=S),
            {**obj("a", a=S), "minProperties": 2},
            [("", "has a narrower minProperties: none → 2", {"a": ""})],
        ),
        (
            obj(a=S, b=S),
            {**obj(a=S, b=S), "maxProperties": 1},
            [("", "has a narrower maxProperties: none → 1", {"a": "", "b": ""})],
        ),
        (
            obj("b", a=S, b=S),
            {**obj("b", a=S, b=S), "maxProperties": 1},
            [("", "has a narrower maxProperties: none → 1", {"b": "", "a": ""})],
        ),
        (
            {**obj(a=S), "additionalProperties": False},
            {**obj(a=S), "maxProperties": 0},
            [("", "has a narrower maxProperties: none → 0", {"a": ""})],
        ),
        (obj(a=S), {**obj(a=S), "required": "a"}, [("", UNKNOWN, UNCLEAR)]),
        (obj(a=S), obj("a", "b", a=S), [("", "requires a now", {}), ("", "requires b now", {})]),
        (
            obj(a=S, b=S),
            {**obj(a=S), "additionalProperties": False},
            [
                ("", "no longer accepts the member b", {"b": ""}),
                ("", "accepts no other members now", {"other": None}),
                ("", "no longer describes b, and may ignore it", UNCLEAR),
            ],
        ),
        (
            {**obj(a=S), "additionalProperties": S},
            {**obj(a=S), "additionalProperties": W},
            [(".*", "no longer accepts string", {"other": ""})],
        ),
        (
            {**obj(a=S), "additionalProperties": S},
            obj(a=S, b=W),
            [("b", "no longer accepts string", {"b": ""})],
        ),
        (
            obj(a=obj(c=S)),
            obj(a={**obj(c=S), "additionalProperties": W}),
            [("a.*", NO_OTHER, {"a": {"other": None}})],
        ),
        (
            obj(a=array(obj("c", c=S))),
            obj(a=array(obj("c", c=W))),
            [("a[].c", "no longer accepts string", {"a": [{"c": ""}]})],
        ),
        (
            obj("b", a=obj(c=S), b=N),
            obj("b", a=obj("c", c=S), b=N),
            [("a", "requires c now", {"b": None, "a": {}})],
        ),
        (
            {**obj(a=S), "patternProperties": {"^x": S}},
            {**obj(a=S, b=S), "patternProperties": {"^x": S}},
            [("", "has another patternProperties", UNCLEAR)],
        ),
        (
            {**obj(a=S, b=S), "patternProperties": {"^x": S}},
            {**obj(a=S), "patternProperties": {"^x": S}},
            [
                ("", "has another patternProperties", UNCLEAR),
                ("", "no longer describes b, and may ignore it", UNCLEAR),
            ],
        ),
        (
            {**obj(a=S), "patternProperties": {"^x": S}},
            {**obj(a=S), "patternProperties": {"^x": W}},
            [("", "has another patternProperties", UNCLEAR)],
        ),
        (
            obj(a=S),
            {**obj(a=S), "propertyNames": {"maxLength": 1}},
            [("", "has another propertyNames", UNCLEAR)],
        ),
        (S, {**S, "pattern": "a"}, [("", "has another pattern", UNCLEAR)]),
        (S, {**S, "format": "date"}, [("", "has another format", UNCLEAR)]),
        (W, {**W, "pattern": "a"}, []),
        (S, {**S, "not": {"const": ""}}, [("", "has another not", "")]),
        (
            S,
            {**S, "if": S, "then": {"minLength": 1}},
            [("", "has another if", UNCLEAR), ("", "has another then", UNCLEAR)],
        ),
        (S, {**S, "then": {"minLength": 1}}, []),
        (S, {"const": "a"}, [("", 'accepts only "a" now', "")]),
        ({"type": ["integer", "number"]}, S, [("", "no longer accepts number", 0)]),
        ({"allOf": [{"type": "text"}, S]}, {**S, "minLength": 1}, [("", UNKNOWN, UNCLEAR)]),
        (
            {"type": "array", "prefixItems": [S], "items": S, "minItems": 3},
            {"type": "array", "prefixItems": [S], "items": W, "minItems": 3},
            [("[]", "no longer accepts string", ["", "", ""])],
        ),
        (
            {"type": ["array", "null"], "items": {**S, "pattern": "(a|b)"}, "minItems": 1},
            {"type": "array", "items": {**S, "pattern": "(a|b)"}, "minItems": 2},
            [
                ("", "no longer accepts null", None),
                ("", "has a narrower minItems: 1 → 2", UNCLEAR),
            ],
        ),
        (S, {"enum": ["", "a"]}, [("", 'accepts only "", "a" now', "b")]),
        ({"enum": ["a", "b", 1]}, {"enum": ["a"]}, [("", 'no longer accepts "b", 1', "b")]),
        (
            {"enum": ["a", "b"]},
            {**S, "pattern": "(a|b)"},
            [("", "has another constraint", UNCLEAR)],
        ),
        (
            {"type": ["boolean", "null"]},
            {"enum": [True, None]},
            [("", "no longer accepts false", False)],
        ),
        ({"type": ["string", "number"]}, S, [("", "no longer accepts number", 0)]),
        ({"type": ["string", "number"]}, W, [("", "no longer accepts string or number", "")]),
        (
            {"type": ["string", "null"]},
            {"type": ["string", "null"], "minLength": 1},
            [("", "has a narrower minLength: none → 1", "")],
        ),
        (True, S, [("", "no longer accepts null or boolean or object or array or number", None)]),
        (S, False, [("", "accepts nothing now", "")]),
        ({"anyOf": [S, W]}, S, [("", "no longer accepts integer", 0)]),
        (
            {"anyOf": [S, W], "minLength": 1},
            {"anyOf": [S, W], "minLength": 2},
            [("", "has a narrower minLength: 1 → 2", "a")],
        ),
        (
            {"anyOf": [S, W]},
            {"anyOf": [S, W], "minLength": 2},
            [("", "has a narrower minLength: none → 2", "a")],
        ),
        (
            {**S, "anyOf": [{"minLength": 1}, {"maxLength": 3}]},
            {**S, "minLength": 1},
            [("", "has a narrower minLength: none → 1", "")],
        ),
        (
            S,
            {"anyOf": [{**S, "minLength": 1}, {**S, "minLength": 2}]},
            [("", "has other alternatives in anyOf", "")],
        ),
        (
            obj(k=S),
            {"oneOf": [obj(k=S), obj(k=S, b=S)]},
            [("", "has other alternatives in oneOf", {})],
        ),
        (
            {"allOf": [{**S, "minLength": 1}, {**S, "minLength": 2}]},
            {**S, "minLength": 3},
            [("", "has other alternatives in allOf", "aa")],
        ),
        ({"allOf": [{**S, "minLength": 1}, {**S, "minLength": 2}]}, {**S, "minLength": 2}, []),
        (
            S,
            {"allOf": [S, {"minLength": 1}], "unevaluatedProperties": False},
            [("", "has another allOf", UNCLEAR)],
        ),
        (S, {"allOf": [S, {"minLength": 1}]}, [("", "has a narrower minLength: none → 1", "")]),
        (
            obj(a=S),
            {**obj(a=S), "unevaluatedProperties": False},
            [("", "has another unevaluatedProperties", UNCLEAR)],
        ),
        (
            obj(a=obj(b=S, c=S)),
            obj(a=obj(b=S)),
            [("a", "no longer describes c, and may ignore it", UNCLEAR)],
        ),
        (obj(a=obj(b=S)), obj(a={"type": "object"}), []),
        (
            obj(a=array(obj(b=S, c=S))),
            obj(a=array(obj(b=S))),
            [("a[]", "no longer describes c, and may ignore it", UNCLEAR)],
        ),
        (
            {"anyOf": [obj(a=S), obj(b=S)]},
            {"anyOf": [obj(a=S), obj(c=S)]},
            [("", "no longer describes b, and may ignore it", UNCLEAR)],
        ),
    ],
)
def test_findings_of_an_input_have_their_place_sentence_and_example(
    old: Any, new: Any, findings: Any
) -> None:
    """An output that changes the other way round has the same ones, with sentences of its own.

    Only an input can have members that are no longer described.
    """
    assert found_in(old, new, is_input=True) == findings
    outputs = found_in(new, old, is_input=False)
    assert [(place, example) for place, _, example in outputs] == [
        (place, example)
        for place, sentence, example in findings
        if "no longer describes" not in sentence
    ]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (S, {"type": ["string", "null"]}, "can be null now"),
        ({"enum": [1]}, {"enum": [1, 2]}, "can be 2 now"),
        ({"enum": ["a"]}, S, 'can be other than "a" now'),
        (obj("a"), obj(), "can be without a now"),
        (
            {**obj(), "additionalProperties": False, "maxProperties": 0},
            {**obj(a=S), "additionalProperties": False, "maxProperties": 0},
            "can have the member a now",
        ),
        ({**S, "maxLength": 1}, S, "has a wider maxLength: 1 \u2192 none"),
        (array(S, uniqueItems=True), array(S), "can have equal items now"),
        ({**S, "pattern": "a"}, S, "has another pattern"),
        (False, S, "can have a value now"),
    ],
)
def test_findings_of_an_output_say_what_it_can_be_now(old: Any, new: Any, sentence: str) -> None:
    assert [each for _, each, _ in found_in(old, new, is_input=False)] == [sentence]


def nested(depth: int, inner: Any) -> Any:
    for _ in range(depth):
        inner = {"type": "array", "items": inner}
    return inner


def test_schema_that_is_too_deep_is_unclear_at_its_place() -> None:
    """The deepest level that is compared, and the next one."""
    deepest = MAX_DEPTH
    [(place, sentence, example)] = found_in(nested(deepest, S), nested(deepest, W), is_input=True)
    assert (place, example) == ("[]" * deepest, nested_value(deepest))
    assert sentence == "no longer accepts string"
    [found] = found_in(nested(deepest + 1, S), nested(deepest + 1, W), is_input=True)
    assert found == ("[]" * (deepest + 1), "is too deep to be compared", UNCLEAR)


def nested_value(depth: int) -> Any:
    value: Any = ""
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("old", "new", "members"),
    [
        (obj(a=S), obj(a=S, b=S, c=S), [("", "b"), ("", "c")]),
        ({"anyOf": [obj(a=S)]}, {"anyOf": [obj(a=S), obj(b=S)]}, [("", "b")]),
        (obj(a=obj(b=S)), obj(a=obj(b=S, c=S)), [("a", "c")]),
        (obj(a=obj(b=obj(c=S))), obj(a=obj(b=obj(c=S, d=S))), [("a.b", "d")]),
        (array(obj(a=S)), array(obj(a=S, b=S)), [("[]", "b")]),
        (obj(a={"type": "object"}), obj(a=obj(b=S)), []),  # a dictionary
        (obj(a=S), obj(a=obj(b=S)), []),
        (obj(a=S), obj(a=S), []),
    ],
)
def test_new_members_are_those_that_only_the_new_schema_describes(
    old: Any, new: Any, members: Any
) -> None:
    assert new_members(old, new)[0] == members


def test_members_of_a_recursive_schema_are_found_once() -> None:
    """Each pair of schemas is looked at once. Otherwise the steps would run out."""
    tree = {"$defs": {"d": obj(x={"$ref": "#/$defs/d"}, y={"$ref": "#/$defs/d"})}}
    more = {"$defs": {"d": obj(x={"$ref": "#/$defs/d"}, y={"$ref": "#/$defs/d"}, z=S)}}
    old, new = ({**each, "properties": {"a": {"$ref": "#/$defs/d"}}} for each in (tree, more))
    found, left = new_members(old, new, steps=1000)
    assert found == [("a", "z")]
    assert left > 900
    assert new_members(old, new, steps=3) == ([], 0)


def nested_tag(depth: int, tag: str) -> Any:
    inner: Any = {"const": tag}
    for _ in range(depth):
        inner = obj("k", k=inner)
    return inner


@pytest.mark.parametrize(("depth", "is_proved"), [(MAX_DEPTH - 1, True), (MAX_DEPTH, False)])
def test_alternatives_are_told_by_a_tag_as_deep_as_schemas_are_compared(
    depth: int, is_proved: bool
) -> None:
    one, other = nested_tag(depth, "x"), nested_tag(depth, "y")
    changed = {"oneOf": [{**one, "title": "x"}, other]}
    assert (found_in(one, changed, is_input=True) == []) is is_proved


def test_definition_that_is_used_often_is_compared_once() -> None:
    """Two references to each of 20 definitions in a chain are a million ways."""
    schemas: list[Any] = []
    for leaf in S, {"type": ["string", "null"]}:
        refs = [{"$ref": f"#/$defs/d{n + 1}"} for n in range(20)]
        definitions = {f"d{n}": obj(a=refs[n], b=refs[n]) for n in range(20)}
        schemas.append({"$ref": "#/$defs/d0", "$defs": {**definitions, "d20": leaf}})
    found, left = compare_schemas(schemas[0], schemas[1], Direction(True), steps=5_000)
    assert (found, left > 0) == ([], True)
