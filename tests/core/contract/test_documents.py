"""Documents of a schema: which are valid, beside jsonschema's verdicts, and small valid ones."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from mcp_core.contract._documents import (
    MAX_HOPS,
    NAMES_OF_TYPES,
    NO_SCHEMA,
    SchemaRoot,
    TooComplex,
    has_type,
    same,
)
from tests.core.contract.schemas import DOCUMENTS

MORE: Final = [
    *DOCUMENTS,
    3,
    4,
    5,
    -2,
    1.5,
    2.5,
    "aaaa",
    [1, 1.0],
    [1, True],
    [0, 1, 2, 3],
    {"d": 1},
]
# All of them are evaluated, so the answer is never unclear.
EVALUATED: Final[list[Any]] = [
    *({"type": name} for name in NAMES_OF_TYPES),
    *({"type": ["string", "null"]}, {"type": []}),
    *({key: bound} for key in ("minimum", "maximum") for bound in (0, 1, 1.5, -1)),
    *({f"exclusive{key}": bound} for key in ("Minimum", "Maximum") for bound in (0, 1, 1.5, -1)),
    *({f"{key}{what}": 1} for key in ("min", "max") for what in ("Length", "Items", "Properties")),
    *({f"{key}{what}": 2} for key in ("min", "max") for what in ("Length", "Items", "Properties")),
    *({"multipleOf": step} for step in (1, 2, 0.5, 1.5)),
    *({"uniqueItems": wanted} for wanted in (True, False)),
    *({"required": names} for names in ([], ["a"], ["a", "b"])),
    *({"const": value} for value in (1, 1.0, True, "x", None, [0], {"a": "x"})),
    *({"enum": values} for values in ([1], [True, "x"], [[0], {"a": "x"}, None], [])),
    {"properties": {"a": {"type": "string"}, "b": False}},
    {"additionalProperties": {"type": "integer"}},
    {"properties": {"a": {"type": "string"}}, "additionalProperties": False},
    {"items": {"type": "integer"}},
    {"prefixItems": [{"type": "integer"}, False]},
    {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
    {"prefixItems": [{"type": "string"}, True], "items": False},
    {"not": {"type": "integer"}},
    *({key: [{"type": "integer"}, {"minimum": 1}]} for key in ("allOf", "anyOf", "oneOf")),
    *({key: [{"type": "object"}, False]} for key in ("allOf", "anyOf", "oneOf")),
    {"$defs": {"d": {"type": "integer"}}, "$ref": "#/$defs/d"},
    {"$defs": {"d": {"type": "integer"}}, "$ref": "#/$defs/d", "allOf": [{"maximum": 2}]},
    {"title": "x", "description": "y", "default": 1, "unknown": 5},
    True,
    False,
]  # fmt: skip


@pytest.mark.parametrize("schema", EVALUATED, ids=str)
def test_document_is_valid_if_jsonschema_says_so(schema: Any) -> None:
    known = Draft202012Validator(schema)
    root = SchemaRoot(schema, 1_000_000)
    for document in MORE:
        assert root.fits(document, schema) is known.is_valid(document), document


@pytest.mark.parametrize("name", NAMES_OF_TYPES)
def test_value_has_the_types_that_jsonschema_knows(name: str) -> None:
    known = Draft202012Validator({"type": name})
    for document in MORE:
        assert has_type(document, name) is known.is_valid(document), document


def test_values_are_the_same_as_in_json_schema() -> None:
    """1 and 1.0 are one value, 1 and true aren't; on all levels."""
    for one in MORE:
        known = Draft202012Validator({"const": one})
        for other in MORE:
            assert same(one, other) is known.is_valid(other), (one, other)


@pytest.mark.parametrize(
    ("schema", "concerned", "others"),
    [
        *(({key: 1}, [], {}) for key in ("contains", "minContains", "maxContains")),
        *(({key: "x"}, "text", 5) for key in ("contentEncoding", "contentMediaType")),
        *(({key: {}}, {}, []) for key in ("dependentSchemas", "propertyNames", "dependencies")),
        *(({key: {}}, {}, 5) for key in ("patternProperties", "unevaluatedProperties")),
        ({"unevaluatedItems": False}, [1], {}),
        ({"format": "date"}, "today", 5),
        ({"pattern": "(a|b)"}, "a", 5),
        ({"pattern": 5}, "a", 5),
        ({"enum": 5}, 5, None),
        ({"minimum": "1"}, 5, "a"),
        ({"maxLength": "1"}, "a", 5),
        ({"minItems": True}, [], 5),
        ({"uniqueItems": 1}, [1], 5),
        ({"required": "a"}, {}, 5),
        ({"required": [[]]}, {}, 5),
        ({"type": "text"}, 5, None),
        ({"type": ["text"]}, 5, None),
        ({"properties": 5}, {}, 5),
        *(({key: {}}, 5, None) for key in ("anyOf", "allOf", "oneOf")),
        *(({key: True}, 5, None) for key in ("if", "$dynamicRef", "disallow", "extends")),
        ({"properties": {"a": True}, "patternProperties": {"b": False}}, {"b": 1}, None),
        ({"uniqueItems": True}, [*range(201)], [*range(200)]),
        ({"additionalProperties": {"$id": "x"}}, {"a": 1}, {}),
        ({"additionalProperties": {"$schema": "x"}}, {"a": 1}, {}),
        ({"items": [True]}, [1], None),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "prefixItems": []}, [], None),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/a", "a": {}}, 1, None),
        ({"$ref": "#/nothing"}, 1, None),
        (5, 1, None),
    ],
)  # fmt: skip
def test_keyword_that_is_not_evaluated_is_unclear_for_its_type(
    schema: Any, concerned: Any, others: Any
) -> None:
    """`others` is a document that it doesn't concern, or None if it concerns all."""
    assert SchemaRoot(schema).fits(concerned, schema) is None
    assert others is None or SchemaRoot(schema).fits(others, schema) is True


@pytest.mark.parametrize(
    ("parts", "any_of", "one_of", "all_of"),
    [
        ([True, {"if": 1}], True, None, None),
        ([False, {"if": 1}], None, None, False),
        ([True, True, {"if": 1}], True, False, None),
        ([{"if": 1}, False, False], None, None, False),
        ([], False, False, True),
    ],
)
def test_unclear_part_decides_nothing_that_others_decide(
    parts: Any, any_of: Any, one_of: Any, all_of: Any
) -> None:
    for key, expected in {"anyOf": any_of, "oneOf": one_of, "allOf": all_of}.items():
        schema = {key: parts}
        assert SchemaRoot(schema).fits(1, schema) is expected
    assert SchemaRoot({}).fits(1, {"not": {"if": 1}}) is None


DEFINED: Final = {
    "$defs": {"a/b": {"const": 1}, "c~d": {"const": 2}, "e%25": True, "own": {"$id": "x", "f": {}}},
    "allOf": [{"const": 3}, {"const": 4}],
    "properties": {"10": {"const": 5}},
}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", DEFINED),
        ("#/$defs/a~1b", {"const": 1}),
        ("#/$defs/c~0d", {"const": 2}),
        ("#/allOf/1", {"const": 4}),
        ("#/properties/10", {"const": 5}),
        ("#/allOf/2", None),
        ("#/allOf/-1", None),
        ("#/allOf/0000001", None),
        ("#/allOf/000001", {"const": 4}),
        ("#/allOf/\u0661", None),
        ("#/$defs/e%25", None),
        ("#/$defs/own", {"$id": "x", "f": {}}),
        ("#/$defs/own/f", None),
        ("#/$defs/none", None),
        ("#/$defs/a~1b/const", None),
        ("#anchor", None),
        ("https://a.test/x", None),
        (5, None),
    ],
)
def test_reference_is_a_json_pointer_within_the_schema(reference: Any, found: Any) -> None:
    assert SchemaRoot(DEFINED).resolve({"$ref": reference}) == found


@pytest.mark.parametrize("hops", [MAX_HOPS - 1, MAX_HOPS])
def test_references_to_references_are_followed_so_far(hops: int) -> None:
    chain: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(hops)}
    schema = {"$defs": {**chain, f"d{hops}": {"const": 1}}}
    found = SchemaRoot(schema).resolve(schema["$defs"]["d0"])
    assert found == ({"const": 1} if hops < MAX_HOPS else None)


@pytest.mark.parametrize("dialect", ["draft-06", "draft-07", "2019-09", "2020-12"])
def test_keywords_beside_a_reference_count_since_2019(dialect: str) -> None:
    """Validators of the time before ignore them. The newest dialect has no list of items."""
    is_old = dialect.startswith("draft")
    middle, end = ("", "#") if is_old else ("draft/", "")
    scheme = "http" if is_old else "https"
    schema = {
        "$schema": f"{scheme}://json-schema.org/{middle}{dialect}/schema{end}",
        "$defs": {"d": {"minimum": 1}},
    }
    root = SchemaRoot(schema)
    assert root.problem == ""
    reference = {"$ref": "#/$defs/d", "title": "x"}
    assert root.resolve(reference) == {"minimum": 1}
    more = root.resolve({**reference, "maximum": 2, "allOf": [{"type": "integer"}]})
    assert more == (
        None if is_old else {"maximum": 2, "allOf": [{"minimum": 1}, {"type": "integer"}]}
    )
    assert root.resolve({**reference, "allOf": 5}) is None
    # A list of items is a prefix in all but the newest, which has `prefixItems` for it.
    items = root.fits([1], {"items": [{"type": "string"}], "additionalItems": False})
    assert items is (None if dialect == "2020-12" else False)
    fitting = root.fits(["a"], {"items": [{"type": "string"}], "additionalItems": False})
    longer = root.fits(["a", 1], {"items": [{"type": "string"}], "additionalItems": False})
    assert (fitting, longer) == ((None, None) if dialect == "2020-12" else (True, False))


def nested(levels: int) -> Any:
    found: Any = {}
    for _ in range(levels):
        found = {"x": found}
    return found


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "its $schema is not supported"),
        ({"$schema": 5}, "its $schema is not supported"),
        (nested(100), ""),
        (nested(101), "it is nested more than 100 deep"),
        (True, ""),
    ],
)
def test_schema_that_cannot_be_judged_has_a_problem(schema: Any, problem: str) -> None:
    assert SchemaRoot(schema).problem == problem


def test_steps_are_counted_to_the_last() -> None:
    root = SchemaRoot({}, 3)
    root.spend()
    root.spend(2)
    assert root.steps == 0
    with pytest.raises(TooComplex):
        root.spend()


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("a", ("a",)),
        ("^ab$", ("ab",)),
        ("a?b", ("b", "ab")),
        ("a*", ("", "a", "aaaaaaa")),
        ("a+b", ("ab", "aab", "a" * 8 + "b")),
        ("a{2}", ("aa",)),
        ("a{2,}", ("aa", "aaa", "a" * 9)),
        ("a{2,4}", ("aa", "aaa", "aaaa")),
        (r"\d{3}-\w", ("000-a",)),
        (r"[\d-]x", ("0x",)),
        (r"[\w.]", ("a",)),
        (r"[\.\-]", (".",)),
        ("[b-d ]", ("b",)),
        (r"\.\/", ("./",)),
        ("x" * 200, ("x" * 200,)),
        ("x" * 201, ()),
        ("a{9999}b{1}", ("a" * 9999 + "b",)),
        ("a{9999}b{2}", ()),
        ("[z-a]", ()),
        ("a{5,2}", ()),
        ("a--b", ()),
        ("(a)", ()),
        ("[^a]", ()),
        (".", ()),
        ("", ()),
    ],
)
def test_texts_of_a_pattern_are_built_from_its_parts(pattern: str, texts: tuple[str, ...]) -> None:
    schema = {"type": "string", "pattern": pattern}
    root = SchemaRoot(schema, 1_000_000)
    assert all(re.search(pattern, text) for text in texts)
    assert tuple(root.examples(schema)) == texts
    assert root.example(schema) == (texts[0] if texts else NO_SCHEMA)


# Each has few documents.
NARROW: Final[list[Any]] = [
    {"type": "integer", "minimum": 7, "maximum": 7},
    {"type": "number", "exclusiveMinimum": 7, "maximum": 7.5},
    {"type": "number", "minimum": 7, "exclusiveMaximum": 7.5},
    {"type": "integer", "minimum": -9, "maximum": -9},
    {"type": "integer", "minimum": 2.5, "maximum": 3.5},
    {"type": "integer", "exclusiveMinimum": 7, "exclusiveMaximum": 9},
    {"type": "integer", "multipleOf": 4, "minimum": 9, "maximum": 12},
    {"type": "integer", "multipleOf": 4, "exclusiveMinimum": 8, "maximum": 12},
    {"type": "integer", "multipleOf": 4, "minimum": 5, "exclusiveMaximum": 12},
    {"type": "integer", "multipleOf": 5, "minimum": -5, "maximum": -1},
    {"type": "string", "minLength": 9, "maxLength": 9},
    {"type": "string", "minLength": 9},
    {"type": "array", "items": {"const": 1}, "minItems": 3, "maxItems": 3},
    {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2, "items": False},
    {"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 3},
    {"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}},
    {"type": "object", "required": ["z"], "additionalProperties": {"const": 1}},
    {"type": "object", "minProperties": 3, "properties": {"a": {"const": 1}}},
    {"type": "object", "minProperties": 2, "required": ["a"], "properties": {"a": True, "b": True},
     "additionalProperties": False},
    {"type": "object", "properties": {"a": {"const": 1}}, "not": {"maxProperties": 0}},
    {"enum": [[1], {"a": 2}]},
    {"const": "only"},
    {"type": "array", "minItems": 3, "items": True, "not": {"items": {"enum": [None, True, 0]}}},
    {"type": "array", "items": {"type": "string"}, "maxItems": 0},
    {"type": "string", "minLength": 10_000},
    {"type": "integer", "exclusiveMinimum": 7, "multipleOf": 7, "maximum": 14},
    {"type": "number", "exclusiveMinimum": 3.25, "exclusiveMaximum": 3.8},
    {"type": "number", "exclusiveMinimum": 3.2, "exclusiveMaximum": 3.75},
    {"type": "integer", "exclusiveMinimum": 3, "maximum": 4},
    {"type": "object", "minProperties": 2, "required": ["a"], "properties": {"a": True, "b": True,
     "c": False}, "maxProperties": 2},
    {"type": "null"},
    {"type": "boolean", "const": False},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "date-time"},
    {"anyOf": [{"type": "string", "minLength": 5}, {"type": "null"}], "not": {"type": "null"}},
    {"oneOf": [{"const": "a"}, {"const": 5}]},
    {"allOf": [{"const": {"k": 1}}]},
    {"type": "object", "required": ["a"], "properties": {"a": {"const": 1}},
     "anyOf": [{"required": ["b"], "properties": {"b": {"const": 2}}}]},
    {"$defs": {"d": {"const": 9}}, "type": "array", "minItems": 1, "items": {"$ref": "#/$defs/d"}},
]  # fmt: skip


@pytest.mark.parametrize("schema", NARROW, ids=str)
def test_schema_with_few_documents_has_an_example(schema: Any) -> None:
    root = SchemaRoot(schema)
    found = root.examples(schema)
    assert 1 <= len(found) <= 12
    known = Draft202012Validator(schema)
    assert all(map(known.is_valid, found))
    assert not any(same(a, b) for n, a in enumerate(found) for b in found[:n])
    assert root.example(schema) == found[0]


@pytest.mark.parametrize(
    "schema", [False, {"type": []}, {"minimum": 1, "maximum": 0, "type": "integer"}]
)
def test_schema_without_documents_has_no_example(schema: Any) -> None:
    assert SchemaRoot(schema).examples(schema) == []
    assert SchemaRoot(schema).example(schema) is NO_SCHEMA


@pytest.mark.parametrize(
    ("schema", "length", "found"),
    [
        ({"items": {"const": 1}}, 0, []),
        ({"items": {"const": 1}}, 3, [1, 1, 1]),
        ({"items": {"enum": [1, 2]}}, 3, [1, 2, 1]),
        ({"items": {"enum": [1, 2]}, "uniqueItems": True}, 2, [1, 2]),
        ({"items": {"enum": [1, 2]}, "uniqueItems": True}, 3, [0, 1, 2]),
        ({"prefixItems": [{"const": 5}, {"const": 6}], "items": False}, 1, [5]),
        ({"prefixItems": [{"const": 5}], "items": {"const": 6}}, 3, [5, 6, 6]),
        ({"prefixItems": [{"const": 5}], "items": False}, 2, None),
        ({"prefixItems": [False]}, 1, None),
    ],
)
def test_array_is_filled_with_items_that_differ_if_they_can(
    schema: Any, length: int, found: Any
) -> None:
    assert SchemaRoot(schema).filled(schema, length) == found


def test_members_have_values_of_their_schemas() -> None:
    schema = {"properties": {"a": {"const": 1}}, "additionalProperties": {"const": 2}}
    root = SchemaRoot(schema)
    assert root.members(schema, ["a", "b"]) == {"a": 1, "b": 2}
    assert root.members({"properties": {"a": False}}, ["a"]) is None
    assert root.members({"additionalProperties": False}, []) == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {"type": "array", "minItems": 1, "prefixItems": [{"$ref": "#"}]},
    ],
)
def test_schema_that_needs_itself_has_no_example(schema: dict[str, Any]) -> None:
    root = SchemaRoot(schema, 100_000)
    assert root.example(schema) is NO_SCHEMA
