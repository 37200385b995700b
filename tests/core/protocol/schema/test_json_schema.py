"""JSON Schemas: which are accepted, which errors they find, and the limits of validation."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import example
from hypothesis import given as for_all
from hypothesis import strategies as st
from referencing import Registry, Resource

from mcp_core.protocol.schema import _json_schema
from mcp_core.protocol.schema._json_schema import (
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    MAX_VALUE_DEPTH,
    InvalidSchema,
    JsonSchema,
    SchemaTooComplex,
    UntrustedSchema,
    iter_subschemas,
)
from tests.levels import fewer_examples, long

Kind = type[JsonSchema]
KINDS: list[Kind] = [JsonSchema, UntrustedSchema]


def given(schema: Any) -> JsonSchema:
    return JsonSchema(schema)


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.requirement("JSCH-1")
@pytest.mark.parametrize("kind", KINDS)
def test_schema_without_dialect_is_draft_2020_12(kind: Kind) -> None:
    schema = kind({"type": "array", "prefixItems": [{"type": "integer"}]})
    assert schema.find_error([1, "x"]) is None
    assert schema.find_error(["x"]) == ("[0]", '"x" is not of type "integer"')
    assert repr(schema) == f"<{kind.__name__} https://json-schema.org/draft/2020-12/schema>"


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
@pytest.mark.parametrize("kind", KINDS)
def test_schema_each_dialect_resolves_and_validates(kind: Kind, dialect: str) -> None:
    schema = kind(
        {
            "$schema": dialect,
            "type": "object",
            "properties": {"n": {"$ref": "#/definitions/n"}},
            "definitions": {"n": {"type": "integer", "minimum": 1}},
        }
    )
    assert schema.find_error({"n": 1}) is None
    assert schema.find_error({"n": 0}) == ("n", "0 is less than the minimum of 1")
    assert schema.describes_object


@pytest.mark.requirement("JSCH-2")
@pytest.mark.parametrize("kind", KINDS)
def test_schema_items_list_depends_on_dialect(kind: Kind) -> None:
    """`items` as a list is an array's prefix up to 2019-09 and no schema at all since."""
    old = {"$schema": DRAFTS[3], "items": [{"type": "integer"}]}
    assert kind(old).find_error(["x"]) is not None
    with pytest.raises(InvalidSchema, match="not a valid JSON Schema"):
        kind({"items": [{"type": "integer"}]})


@pytest.mark.requirement("JSCH-2")
@pytest.mark.parametrize(
    "dialect", ["https://example.com/mine", "http://json-schema.org/draft-99/schema#", ""]
)
@pytest.mark.parametrize("kind", KINDS)
def test_schema_unknown_dialect_is_rejected(kind: Kind, dialect: str) -> None:
    with pytest.raises(InvalidSchema, match=r"dialect that is not supported"):
        kind({"$schema": dialect, "type": "object"})


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
def test_schema_invalid_is_rejected(schema: Any, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
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
@pytest.mark.parametrize("kind", KINDS)
def test_schema_external_reference_is_rejected(kind: Kind, reference: str, keyword: str) -> None:
    for place in (
        {keyword: reference},
        {"properties": {"a": {"anyOf": [True, {keyword: reference}]}}},
    ):
        with pytest.raises(InvalidSchema, match="only references within the schema"):
            kind(place)


@pytest.mark.requirement("JSCH-7")
@pytest.mark.parametrize("reference", ["#/$defs/none", "#none", "#/properties/a/items"])
@pytest.mark.parametrize("kind", KINDS)
def test_schema_unresolvable_reference_is_rejected(kind: Kind, reference: str) -> None:
    with pytest.raises(InvalidSchema, match="the schema has no"):
        kind({"properties": {"a": {"$ref": reference}}})


@pytest.mark.parametrize("draft", [DRAFTS[1], DRAFTS[6]])
@pytest.mark.parametrize("kind", KINDS)
def test_schema_nested_id_is_rejected(kind: Kind, draft: str) -> None:
    name = "id" if "draft-04" in draft else "$id"
    with pytest.raises(InvalidSchema, match="identifier of its own"):
        kind({"$schema": draft, "definitions": {"a": {name: "http://example.com/a"}}})


@pytest.mark.parametrize("kind", KINDS)
def test_schema_nested_dialect_is_rejected(kind: Kind) -> None:
    for inner in DRAFTS[6], DRAFTS[3]:
        with pytest.raises(InvalidSchema, match="#/properties/a has a dialect of its own"):
            kind({"$schema": DRAFTS[6], "properties": {"a": {"$schema": inner, "pattern": EVIL}}})
    kind({"properties": {"$schema": {"type": "string"}}})


@pytest.mark.parametrize("kind", KINDS)
def test_schema_data_that_resembles_reference_is_accepted(kind: Kind) -> None:
    """`$ref` is a reference only where a keyword can stand, not as a property or in a constant."""
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
    checked = kind(schema)
    assert checked.schema == schema
    assert checked.find_error({"default": "x"}) == ("default", '"x" is not of type "integer"')
    assert checked.find_error({"anchored": "x"}) == ("anchored", '"x" is not of type "integer"')
    assert checked.find_error({"$ref": "x"}) is None


def chain(length: int, width: int = 2) -> dict[str, Any]:
    """Build a schema in which each definition refers `width` times to the next.

    Its cost is `width ** length` steps.
    """
    defs: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * width} for i in range(length)
    }
    return {
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {**defs, f"d{length}": {"type": "integer"}},
    }


@pytest.mark.requirement("JSCH-8")
def test_schema_exponential_cost_ends_at_reference_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_core.protocol.schema._json_schema.MAX_REFERENCES", 1_000)
    assert given(chain(6)).find_error({"a": 1}) is None
    assert given(chain(40)).find_error({"a": 1}) == (
        "",
        "its schema takes too many steps to check it",
    )


@pytest.mark.slow
@pytest.mark.requirement("JSCH-8")
def test_a_schema_of_exponential_cost_ends_by_the_default_limit() -> None:
    assert given(chain(40)).find_error({"a": 1}) == (
        "",
        "its schema takes too many steps to check it",
    )


@pytest.mark.requirement("JSCH-8")
def test_schema_reference_count_restarts_per_value(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = given(chain(8))  # 511 references
    monkeypatch.setattr("mcp_core.protocol.schema._json_schema.MAX_REFERENCES", 511)
    for _ in range(3):
        assert schema.find_error({"a": 1}) is None
    monkeypatch.setattr("mcp_core.protocol.schema._json_schema.MAX_REFERENCES", 510)
    assert schema.find_error({"a": 1}) is not None


@pytest.mark.requirement("JSCH-8")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$dynamicAnchor": "me", "anyOf": [{"$dynamicRef": "#me"}]},
        {"$schema": DRAFTS[6], "$ref": "#"},
        {"$schema": DRAFTS[3], "allOf": [{"$ref": "#"}]},
        {"unevaluatedProperties": False, "$ref": "#"},
        # The deepest stack that fits between two references.
        {
            "allOf": [
                {
                    "allOf": [
                        {
                            "allOf": [
                                {
                                    "allOf": [
                                        {
                                            "not": {
                                                "not": {
                                                    "not": {
                                                        "if": {"not": {"anyOf": [{"$ref": "#"}]}}
                                                    }
                                                }
                                            }
                                        }
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
def test_schema_endless_recursion_is_rejected(schema: Any) -> None:
    with pytest.raises(InvalidSchema, match="refers to itself without end"):
        given(schema)


def test_schema_recursion_accepts_maximum_value_depth() -> None:
    schema = given(
        {
            "$ref": "#/$defs/tree",
            "$defs": {
                "tree": {
                    "anyOf": [
                        {"type": "integer"},
                        {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                    ]
                }
            },
        }
    )
    assert schema.find_error(nested(MAX_VALUE_DEPTH)) is None


@pytest.mark.requirement("JSCH-8")
def test_schema_loop_reached_by_value_ends() -> None:
    schema = given({"properties": {"a": {"$ref": "#/properties/a"}}})
    assert schema.find_error({"a": 1}) == ("", "its schema takes too many steps to check it")


@pytest.mark.requirement("JSCH-8")
@pytest.mark.parametrize("kind", KINDS)
def test_schema_over_depth_or_size_limit_is_rejected(kind: Kind) -> None:
    """Both limits are inclusive: the first schema beyond one is refused."""

    def deep(depth: int) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        for _ in range(depth):
            schema = {"not": schema}
        return schema

    kind(deep(MAX_SCHEMA_DEPTH - 1))
    kind(deep(MAX_SCHEMA_DEPTH))
    with pytest.raises(SchemaTooComplex, match="more than 32 deep"):
        kind(deep(MAX_SCHEMA_DEPTH + 1))

    def long(size: int) -> dict[str, Any]:
        return {"description": "x" * (size - len('{"description":""}'))}

    kind(long(MAX_SCHEMA_BYTES - 1))
    kind(long(MAX_SCHEMA_BYTES))
    with pytest.raises(SchemaTooComplex, match="has 262145 bytes"):
        kind(long(MAX_SCHEMA_BYTES + 1))


def test_schema_self_containing_dict_is_rejected() -> None:
    endless: dict[str, Any] = {}
    endless["not"] = endless
    with pytest.raises(InvalidSchema, match="more than 32 deep"):
        given(endless)


@pytest.mark.requirement("JSCH-8")
def test_schema_value_over_depth_limit_is_invalid() -> None:
    schema = given({"type": "array", "items": {"$ref": "#"}})
    # The innermost value is not an array, which is found last.
    assert given({}).find_error(nested(MAX_VALUE_DEPTH - 1)) is None
    assert given({}).find_error(nested(MAX_VALUE_DEPTH)) is None
    assert given({}).find_error(nested(MAX_VALUE_DEPTH + 1)) == ("", "nested more than 64 deep")
    assert schema.find_error(nested(MAX_VALUE_DEPTH)) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_schema_error_names_its_path(kind: Kind) -> None:
    schema = kind(
        {
            "properties": {"days": {"type": "array", "items": {"type": "integer"}}},
            "required": ["city"],
        }
    )
    assert schema.find_error({"city": "x", "days": [1, "b"]}) == (
        "days[1]",
        '"b" is not of type "integer"',
    )
    assert schema.find_error({"days": []}) == ("", '"city" is a required property')


@pytest.mark.parametrize("kind", KINDS)
def test_schema_long_error_is_truncated(kind: Kind) -> None:
    fault = kind({"type": "integer"}).find_error("x" * 100_000)
    assert fault is not None
    assert len(fault[1]) < 600
    assert fault[1].endswith('is not of type "integer"')


def test_schema_many_errors_are_not_all_collected() -> None:
    assert given({"items": {"type": "string"}}).find_error([0] * 100_000) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_schema_whole_float_is_integer(kind: Kind) -> None:
    assert kind({"type": "integer"}).find_error(3.0) is None
    assert kind({"type": "integer"}).find_error(3.5) is not None


# -- Schemas of a peer ---------------------------------------------------------------------------

EVIL = "(a+)+$"  # exponential backtracking before it fails
VICTIM = "a" * 64 + "b"


@pytest.mark.requirement("JSCH-3")
@pytest.mark.parametrize(
    "schema", [{"type": "objekt"}, {"type": 3}, {"properties": []}, {"$schema": 3}, [], None, "x"]
)
def test_untrusted_schema_invalid_is_rejected(schema: Any) -> None:
    with pytest.raises(InvalidSchema):
        UntrustedSchema(schema)


@pytest.mark.requirement("JSCH-8")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": EVIL}, VICTIM),
        ({"pattern": "("}, "x"),
        ({"pattern": "(" * 5000}, "x"),
        ({"pattern": r"^\\p{L}$"}, "x"),  # valid in other regular expression dialects
        ({"properties": {"a": {"items": {"pattern": EVIL}}}}, {"a": [VICTIM]}),
        ({"propertyNames": {"pattern": EVIL}}, {VICTIM: 1}),
        ({"patternProperties": {EVIL: {"type": "integer"}}}, {VICTIM: "x"}),
        ({"patternProperties": {EVIL: {}}, "additionalProperties": False}, {VICTIM: "x"}),
        ({"patternProperties": {EVIL: {}}, "unevaluatedProperties": False}, {VICTIM: "x"}),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1}]),
        # If these keywords were ignored as if they matched, a valid value would be rejected.
        ({"not": {"pattern": "x"}}, "a"),
        ({"oneOf": [{"pattern": "x"}, {"type": "string"}]}, "a"),
        ({"if": {"pattern": "x"}, "then": False}, "a"),
        ({"contains": {"pattern": "x"}, "maxContains": 1}, ["x", "a"]),
    ],
)
def test_untrusted_schema_skipped_keywords_find_no_error(schema: Any, value: Any) -> None:
    assert UntrustedSchema(schema).find_error(value) is None


def test_untrusted_schema_checks_keywords_beside_skipped_ones() -> None:
    schema = UntrustedSchema(
        {"properties": {"day": {"type": "string", "pattern": EVIL}}, "required": ["day"]}
    )
    assert schema.find_error({"day": VICTIM}) is None
    assert schema.find_error({"day": 1}) == ("day", '1 is not of type "string"')
    assert schema.find_error({}) == ("", '"day" is a required property')


@pytest.mark.requirement("JSCH-8")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        long(chain(40), {"a": 1}),
        ({"$ref": "#"}, "x"),
        ({"$schema": DRAFTS[6], "$ref": "#"}, "x"),
        ({"unevaluatedProperties": False, "$ref": "#"}, {"a": "x"}),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            },
            1,
        ),
        long({"items": {"type": "string"}}, ["x"] * 60_000 + [1]),
        ({"items": {"enum": list(range(900))}}, [*range(900), -1] * 10),
        ({"multipleOf": 0.1}, 10**400),  # which jsonschema cannot divide
        ({"type": "array"}, nested(MAX_VALUE_DEPTH + 1)),
        ({"type": "object"}, [0] * 200_000),
    ],
)
def test_untrusted_schema_too_many_steps_counts_as_valid(schema: Any, value: Any) -> None:
    checked = UntrustedSchema(schema)
    assert checked.find_error(value) is None
    assert checked.find_error(value) is None  # and the next value has steps of its own


@pytest.mark.requirement("JSCH-8")
def test_untrusted_schema_of_exponential_cost_ends_at_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_json_schema, "MAX_UNTRUSTED_STEPS", 10_000)
    assert UntrustedSchema(chain(40)).find_error({"a": 1}) is None


@pytest.mark.requirement("JSCH-8")
def test_untrusted_schema_step_limit_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = UntrustedSchema({"items": {"type": "string"}})
    value = ["x"] * 9 + [1]
    # 2 + 10 for `items`, and 1 for each `type`.
    monkeypatch.setattr(_json_schema, "MAX_UNTRUSTED_STEPS", 22)
    assert schema.find_error(value) == ("[9]", '1 is not of type "string"')
    monkeypatch.setattr(_json_schema, "MAX_UNTRUSTED_STEPS", 21)
    assert schema.find_error(value) is None


@pytest.mark.requirement("JSCH-8")
# -- Cost that grows with the square of the schema -------------------------------------------------


class CrawledParts:
    """Counts the objects of a schema that `referencing` visits in search of a name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        anchors = Resource.anchors

        def counting(resource: Any) -> Any:
            self.count += 1
            return anchors(resource)

        monkeypatch.setattr(Resource, "anchors", counting)


NAMED: dict[str, Any] = {f"n{i}": {"$anchor": f"n{i}"} for i in range(100)}


@pytest.mark.parametrize("kind", KINDS)
def test_schema_references_by_name_are_resolved_in_one_search(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled = CrawledParts(monkeypatch)
    kind({"$defs": NAMED, "properties": {name: {"$ref": f"#{name}"} for name in NAMED}})
    assert 200 <= crawled.count <= 1_000


@pytest.mark.parametrize("reference", ["#", "#/$defs/k"])
def test_untrusted_schema_references_without_search_are_followed(reference: str) -> None:
    """They are found without reading the schema, however many parts that has."""
    schema = UntrustedSchema(
        {
            "$defs": {**NAMED, "k": {"type": "integer"}},
            "type": ["array", "integer"],
            "items": {"$ref": reference},
        }
    )
    assert schema.find_error([*[1] * 999, "x"]) is not None
    assert schema.find_error([1] * 1_000) is None


@pytest.mark.parametrize(
    "reference", [{"$ref": "#n7"}, {"$dynamicRef": "#n7"}, {"$ref": "#/$defs/" + "k" * 9_000}]
)
@pytest.mark.parametrize("limit", [30_000, long(_json_schema.MAX_UNTRUSTED_STEPS)])
def test_untrusted_schema_costly_references_are_limited(
    reference: Any, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each item follows the reference anew, which must not read the whole schema each time."""
    schema = UntrustedSchema(
        {"$defs": {**NAMED, "k" * 9_000: {"type": "integer"}}, "items": reference}
    )
    assert schema.find_error([1, 2, 3]) is None
    crawled = CrawledParts(monkeypatch)
    looked_up = 0
    resolvers = type(Registry().resolver())
    lookup = resolvers.lookup

    def counting(resolver: Any, ref: str) -> Any:
        nonlocal looked_up
        looked_up += 1
        return lookup(resolver, ref)

    monkeypatch.setattr(resolvers, "lookup", counting)
    monkeypatch.setattr(_json_schema, "MAX_UNTRUSTED_STEPS", limit)
    assert schema.find_error([1] * (limit // 25)) is None
    assert limit / 1_000 < looked_up < limit / 100
    assert crawled.count < limit / 2


@pytest.mark.perf
def test_schema_places_of_long_keys_take_little_memory() -> None:
    schema: Any = {"properties": {f"p{i}": {} for i in range(900)}}
    for _ in range(10):
        schema = {"properties": {"k" * 10_000: schema}}
    tracemalloc.start()
    try:
        assert len(list(iter_subschemas(schema))) == 911
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_schema_error_shows_a_part_of_a_long_place(kind: Kind) -> None:
    schema = {"properties": {"k" * 1_000: {"$ref": "#/" + "r" * 1_000}}}
    with pytest.raises(InvalidSchema) as caught:
        kind(schema)
    assert "/kkk" in str(caught.value)
    assert "#/rrr" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_untrusted_schema_over_part_limit_is_rejected() -> None:
    assert UntrustedSchema({"enum": [*range(999)]}).find_error(-1) is not None
    with pytest.raises(SchemaTooComplex, match="more than 1000 parts"):
        UntrustedSchema({"enum": [*range(1000)]})


@pytest.mark.parametrize("schema", [{"allOf": [{}], "$ref": "#/allOf/x"}])
def test_untrusted_schema_unexpected_exception_is_rejected(schema: Any) -> None:
    with pytest.raises(InvalidSchema, match="cannot be read: ValueError"):
        UntrustedSchema(schema)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2)
    | st.sampled_from(["", "a", "ab", "#"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
_sizes = st.integers(0, 3)
SCHEMAS: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.booleans()
        | st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(
                    ["object", "array", "string", "integer", "number", "boolean", "null"]
                ),
                "enum": st.lists(JSON, min_size=1, max_size=3),
                "const": JSON,
                "multipleOf": st.sampled_from([0.5, 1, 2]),
                "maximum": _sizes,
                "exclusiveMinimum": _sizes,
                "maxLength": _sizes,
                "minLength": _sizes,
                "pattern": st.sampled_from(["a", "b$", "^$", "["]),
                "maxItems": _sizes,
                "uniqueItems": st.booleans(),
                "minItems": _sizes,
                "items": SCHEMAS,
                "prefixItems": st.lists(SCHEMAS, min_size=1, max_size=2),
                "contains": SCHEMAS,
                "maxContains": _sizes,
                "unevaluatedItems": SCHEMAS,
                "properties": st.dictionaries(st.sampled_from("abc"), SCHEMAS, max_size=2),
                "patternProperties": st.dictionaries(
                    st.sampled_from(["a", "[bc]"]), SCHEMAS, max_size=1
                ),
                "additionalProperties": SCHEMAS,
                "unevaluatedProperties": SCHEMAS,
                "propertyNames": SCHEMAS,
                "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
                "minProperties": _sizes,
                "not": SCHEMAS,
                "if": SCHEMAS,
                "then": SCHEMAS,
                "else": SCHEMAS,
                "anyOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "oneOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "allOf": st.lists(SCHEMAS, min_size=1, max_size=2),
                "$ref": st.sampled_from(["#", "#/properties/a", "#/items"]),
            },
        )
    )
)


@fewer_examples(10)
@for_all(st.tuples(SCHEMAS, st.lists(JSON, max_size=5)))
@example(({"type": "string"}, [1, "a"]))
@example(({"items": {"minimum": 2}}, [[1], [3]]))
def test_untrusted_schema_error_is_also_found_by_trusted_one(drawn: Any) -> None:
    check_errors_are_found(*drawn)


@pytest.mark.long
@for_all(st.tuples(SCHEMAS, st.lists(JSON, max_size=5)))
def test_untrusted_schema_error_is_also_found_by_trusted_one_long(drawn: Any) -> None:
    check_errors_are_found(*drawn)


def check_errors_are_found(schema: Any, values: list[Any]) -> None:
    """`UntrustedSchema` has no false positives: `JsonSchema` finds each of its errors too."""
    try:
        thorough = JsonSchema(schema)
    except InvalidSchema:  # `UntrustedSchema` accepts loops that a value may not reach
        return
    careful = UntrustedSchema(schema)
    for value in values:
        if careful.find_error(value) is not None:
            assert thorough.find_error(value) is not None


@fewer_examples(5)
@for_all(
    st.dictionaries(
        st.sampled_from(["$ref", "type", "items", "$id", "$defs", "allOf", "$schema"]), JSON
    ),
    JSON,
)
def test_untrusted_schema_any_json_raises_invalid_schema_only(schema: Any, value: Any) -> None:
    try:
        found = UntrustedSchema(schema).find_error(value)
    except InvalidSchema:
        return
    assert found is None or isinstance(found[1], str)


@pytest.mark.parametrize("kind", [JsonSchema, UntrustedSchema])
@pytest.mark.parametrize(
    ("step", "value", "is_multiple"),
    [
        (0.01, 19.99, True),
        (0.1, 0.3, True),
        (0.01, 19.995, False),
        (1e-300, 1e300, True),
        (3, 7, False),
    ],
)
def test_multiple_of_decimal_number_is_checked_in_decimal(
    kind: type[JsonSchema], step: float, value: float, is_multiple: bool
) -> None:
    assert (kind({"multipleOf": step}).find_error(value) is None) is is_multiple


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": ["integer", "null"]}, True, 'true is not of type "integer", "null"'),
        ({"enum": [None, "a"]}, False, 'false is not one of null, "a"'),
        ({"required": ["a", "ab"]}, {"a": 1}, '"ab" is a required property'),
        (
            {"additionalProperties": False, "properties": {"a": {}}},
            {"a": 1, "b": 2, "c": None},
            'additional properties are not allowed ("b", "c" were unexpected)',
        ),
        (
            {"additionalProperties": False, "patternProperties": {"^x": {}}},
            {"x": 1, "b": 2},
            'additional properties are not allowed ("b" was unexpected)',
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            True,
            "true fits none of the 2 given schemas",
        ),
        ({"const": None}, "{value}", 'null was expected, not "{value}"'),
        (
            {"properties": {"a": False}},
            {"a": None},
            "null is not allowed here: the schema is false",
        ),
        ({"contains": {"type": "null"}}, [1], '[1] does not fit contains: {"type": "null"}'),
    ],
)
def test_error_shows_values_as_json(schema: dict[str, Any], value: Any, text: str) -> None:
    found = JsonSchema(schema).find_error(value)
    assert found is not None
    assert found[1] == text


@pytest.mark.parametrize(
    ("reference", "cost"),
    [
        *[("#", 0), ("#/$defs/a", 0), ("#/" + 198 * "a", 2)],
        *[("#a", 4), ("other.json", 4), (200 * "a", 6)],
    ],
)
def test_untrusted_schema_reference_costs_its_search(reference: str, cost: int) -> None:
    """A pointer is followed; for any other reference all parts of the schema are looked at."""
    schema = UntrustedSchema({"items": {"type": "string"}})
    assert schema._lookup_cost(reference) == cost
