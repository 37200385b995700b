"""Mirrored parameters: which properties, in which headers, with which text."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.protocol.schema._param_headers import (
    MAX_DEPTH,
    MAX_HEADERS,
    format_value,
    header_matches,
    mirrored_values,
    param_headers,
    param_values,
)


def prop(name: Any = "Region", type: Any = "string", **more: Any) -> dict[str, Any]:
    return {"type": type, "x-mcp-header": name, **more}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def nested(depth: int, inner: Any) -> Any:
    for _ in range(depth):
        inner = schema(a=inner)
    return inner


# schema, mirrored properties
GOOD: list[Any] = [
    pytest.param({}, {}, id="nothing"),
    pytest.param(schema(city={"type": "string"}, any=True), {}, id="no annotation"),
    pytest.param(schema(region=prop()), {("region",): "Region"}, id="a string"),
    pytest.param(schema(n=prop("N", "integer")), {("n",): "N"}, id="an integer"),
    pytest.param(schema(b=prop("B", "boolean")), {("b",): "B"}, id="a boolean"),
    pytest.param(
        schema(b=prop("B"), a=prop("A")), {("b",): "B", ("a",): "A"}, id="two, in their order"
    ),
    pytest.param(schema(a=schema(b=schema(c=prop()))), {("a", "b", "c"): "Region"}, id="inside"),
    pytest.param(
        nested(MAX_DEPTH, prop()), {("a",) * MAX_DEPTH: "Region"}, id="as deep as allowed"
    ),
    pytest.param(
        schema(a=prop("!#$%&'*+-.^_`|~09azAZ")), {("a",): "!#$%&'*+-.^_`|~09azAZ"}, id="a token"
    ),
    pytest.param(schema(a=prop("Method")), {("a",): "Method"}, id="a name that MCP uses elsewhere"),
    pytest.param(schema(a=prop("N" * 128)), {("a",): "N" * 128}, id="a long name"),
    # Not annotations, although they look like one.
    pytest.param(schema(**{"x-mcp-header": {"type": "object"}}), {}, id="a property of that name"),
    pytest.param(
        {"$defs": {"x-mcp-header": {"type": "string"}}}, {}, id="a definition of that name"
    ),
    pytest.param(schema(a={"default": {"x-mcp-header": 1}}), {}, id="a default"),
    pytest.param(schema(a={"const": [{"x-mcp-header": 1}]}), {}, id="a constant"),
    pytest.param(
        {"examples": [{"x-mcp-header": 1}], "enum": [{"x-mcp-header": 1}]}, {}, id="other data"
    ),
    # Not valid schemas; reporting that is not the task of this function.
    pytest.param({"properties": ["a"], "items": 5, "$defs": None}, {}, id="odd"),
    pytest.param(schema(a={"properties": 7}, b=[1, "x", None]), {}, id="odder"),
]


@pytest.mark.requirement("HDR-12")
@pytest.mark.parametrize(("given", "mirrored"), GOOD)
def test_param_headers_valid_schema_maps_paths_to_names(
    given: Any, mirrored: dict[tuple[str, ...], str]
) -> None:
    assert param_headers(given) == mirrored
    assert list(param_headers(given)) == list(mirrored)


UNREACHED = "not on a property that is reached from the root through `properties` alone"
PART = "cannot be part of a header's name"
TYPE = "is for properties of the types string, integer or boolean: of 'a' "
BAD: list[Any] = [
    # Invalid names.
    pytest.param(schema(a=prop("")), PART, id="empty"),
    pytest.param(schema(a=prop("My Region")), PART, id="space"),
    pytest.param(schema(a=prop("Region:")), PART, id="colon"),
    pytest.param(schema(a=prop("Région")), PART, id="not ASCII"),
    pytest.param(schema(a=prop("a\tb")), PART, id="tab"),
    pytest.param(schema(a=prop("a\r\nX-Evil: 1")), PART, id="line break"),
    pytest.param(schema(a=prop("a\n")), PART, id="line break at the end"),
    pytest.param(schema(a=prop("a\0")), PART, id="NUL"),
    pytest.param(schema(a=prop("N" * 129)), PART, id="endless"),
    pytest.param(schema(a=prop(None)), "x-mcp-header is a string, not NoneType", id="null"),
    pytest.param(schema(a=prop(["A"])), "x-mcp-header is a string, not list", id="a list"),
    pytest.param(
        schema(a=prop(10**5000)), "x-mcp-header is a string, not int", id="a large number"
    ),
    pytest.param(schema(a=prop("A"), b=prop("A")), "'A' is used twice", id="twice"),
    pytest.param(
        schema(a=prop("region"), b=prop("REGION")),
        "'REGION' is used twice",
        id="twice but for case",
    ),
    pytest.param(
        schema(a=prop("A"), b=schema(c=prop("a"))), "'a' is used twice", id="twice, one inside"
    ),
    # Invalid types.
    pytest.param(schema(a=prop(type="number")), TYPE + "its type is 'number'", id="number"),
    pytest.param(schema(a=prop(type="object")), TYPE + "its type is 'object'", id="object"),
    pytest.param(schema(a=prop(type="array")), TYPE + "its type is 'array'", id="array"),
    pytest.param(schema(a=prop(type="null")), TYPE + "its type is 'null'", id="null as a type"),
    pytest.param(schema(a=prop(type="String")), TYPE + "its type is 'String'", id="upper case"),
    pytest.param(
        schema(a=prop(type=["string", "null"])), TYPE + "it has no single type", id="two types"
    ),
    pytest.param(
        schema(a=prop(type=["string"])), TYPE + "it has no single type", id="a list of one"
    ),
    pytest.param(schema(a=prop(type=None)), TYPE + "it has no single type", id="no type"),
    pytest.param(
        schema(a={"x-mcp-header": "A", "enum": ["x"]}),
        TYPE + "it has no single type",
        id="only values",
    ),
    # Invalid places.
    pytest.param(prop(type="object"), UNREACHED, id="the root"),
    pytest.param(schema(a={"type": "array", "items": prop()}), UNREACHED, id="items"),
    pytest.param(schema(a={"prefixItems": [prop()]}), UNREACHED, id="prefixItems"),
    pytest.param({"$defs": {"A": prop()}, **schema(a={"$ref": "#/$defs/A"})}, UNREACHED, id="$ref"),
    pytest.param({"$defs": {"A": prop()}}, UNREACHED, id="an unused definition"),
    pytest.param({"definitions": {"A": prop()}}, UNREACHED, id="definitions"),
    pytest.param({"patternProperties": {"^a": prop()}}, UNREACHED, id="patternProperties"),
    pytest.param({"additionalProperties": prop()}, UNREACHED, id="additionalProperties"),
    pytest.param({"dependentSchemas": {"a": schema(b=prop())}}, UNREACHED, id="dependentSchemas"),
    pytest.param({"propertyNames": prop()}, UNREACHED, id="propertyNames"),
    *(
        pytest.param({key: [schema(a=prop())]}, UNREACHED, id=key)
        for key in ("oneOf", "anyOf", "allOf")
    ),
    *(
        pytest.param({key: schema(a=prop())}, UNREACHED, id=key)
        for key in ("not", "if", "then", "else", "contains", "unevaluatedProperties", "x-unknown")
    ),
    pytest.param(
        schema(a={"anyOf": [prop(), {"type": "null"}]}), UNREACHED, id="anyOf of a property"
    ),
    pytest.param({"x-unknown": [[{"x": [prop()]}]]}, UNREACHED, id="in lists of lists"),
    pytest.param(nested(MAX_DEPTH + 1, prop()), UNREACHED, id="too deep"),
    pytest.param(nested(500, prop()), UNREACHED, id="much too deep"),
    pytest.param(
        schema(**{"p" * 1025: prop()}), "is longer than 1024 characters", id="a long name"
    ),
    pytest.param(
        schema(**{"p" * 513: schema(**{"q" * 512: prop()})}),
        "is longer than 1024 characters",
        id="a long path",
    ),
    # Too many.
    pytest.param(
        schema(**{f"p{i}": prop(f"P{i}") for i in range(MAX_HEADERS + 1)}),
        "it has more than 64 properties with x-mcp-header",
        id="many",
    ),
    pytest.param(
        schema(**{f"p{i}": True for i in range(100_001)}), "more than 100000 parts", id="large"
    ),
    pytest.param({"oneOf": [{}] * 100_001}, "more than 100000 parts", id="long"),
    pytest.param({"oneOf": [{"not": {}}] * 60_000}, "more than 100000 parts", id="large in all"),
]


@pytest.mark.requirement("HDR-12")
@pytest.mark.parametrize(("given", "problem"), BAD)
def test_param_headers_invalid_annotation_raises(given: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=r"^.{1,400}$") as caught:
        param_headers(given)
    assert problem in str(caught.value)


def test_param_headers_at_header_limit_is_accepted() -> None:
    assert (
        len(param_headers(schema(**{f"p{i}": prop(f"P{i}") for i in range(MAX_HEADERS)})))
        == MAX_HEADERS
    )


@pytest.mark.perf
def test_param_headers_hostile_schema_takes_linear_time() -> None:
    """Wide objects at the end of long paths."""
    wide = schema(**{"k" * 100 + str(i): {} for i in range(40_000)})
    started = time.process_time()
    assert param_headers(nested(900, wide)) == {}
    assert time.process_time() - started < 2


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.sampled_from(["string", "Region", "x-mcp-header"])
        | st.integers()
        | st.just({"type": "string", "x-mcp-header": "Region"}),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "x-mcp-header", "properties", "items", "$defs", "default", "a"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
def test_param_headers_any_json_returns_map_or_raises(value: Any) -> None:
    try:
        found = param_headers({"properties": value})
    except ValueError:
        return
    assert all(0 < len(path) <= MAX_DEPTH and name for path, name in found.items())


# -- Values --------------------------------------------------------------------------------------

MAP = {("region",): "Region", ("n",): "N", ("deep", "flag"): "Flag"}

# arguments, header names and texts
CALLS: list[Any] = [
    pytest.param({}, [], id="nothing"),
    pytest.param({"other": "x"}, [], id="nothing that is mirrored"),
    pytest.param({"region": "us-west1"}, [("Region", "us-west1")], id="text as it is"),
    pytest.param({"region": ""}, [("Region", "")], id="empty text"),
    pytest.param({"region": " é\n"}, [("Region", " é\n")], id="any text"),
    pytest.param({"n": 42}, [("N", "42")], id="an integer"),
    pytest.param({"n": -7}, [("N", "-7")], id="a negative one"),
    pytest.param({"n": 0}, [("N", "0")], id="zero"),
    pytest.param({"n": 42.0}, [("N", "42")], id="a whole number"),
    pytest.param({"n": -0.0}, [("N", "0")], id="zero with a sign"),
    pytest.param({"n": 2**53 - 1}, [("N", "9007199254740991")], id="a large one"),
    pytest.param({"n": -(2**53) + 1}, [("N", "-9007199254740991")], id="a small one"),
    pytest.param({"deep": {"flag": True}}, [("Flag", "true")], id="true, inside"),
    pytest.param({"deep": {"flag": False}}, [("Flag", "false")], id="false"),
    pytest.param({"region": None, "n": None, "deep": {"flag": None}}, [], id="null"),
    pytest.param({"deep": None}, [], id="null on the way"),
    pytest.param({"deep": [{"flag": True}]}, [], id="a list on the way"),
    pytest.param({"deep": "flag"}, [], id="text on the way"),
    pytest.param({"deep.flag": True, "flag": True}, [], id="other paths"),
    pytest.param(
        {"n": 1, "region": "x"}, [("Region", "x"), ("N", "1")], id="in the order of the schema"
    ),
    # Arguments that violate the schema are rejected by the tool, not here.
    pytest.param({"region": 5}, [("Region", "5")], id="a number for a text"),
    pytest.param({"region": ["x"], "n": {}, "deep": {"flag": 1.5}}, [], id="what has no text"),
]


@pytest.mark.requirement("HDR-8", "HDR-9")
@pytest.mark.parametrize(("arguments", "values"), CALLS)
def test_param_values_arguments_become_texts(
    arguments: dict[str, Any], values: list[tuple[str, str]]
) -> None:
    assert param_values(MAP, arguments) == values
    assert param_values(MAP, encode(arguments)) == values
    assert param_values(MAP, Raw(b" " + encode(arguments))) == values


@pytest.mark.parametrize(
    "arguments", [UNSET, None, b"null", b"[]", b'[{"region":"x"}]', b'"x"', b"5", b"1.5", b"true"]
)
def test_param_values_of_non_object_are_empty(arguments: Any) -> None:
    assert param_values(MAP, arguments) == []


def test_param_values_siblings_in_nested_object() -> None:
    given = param_headers(schema(a=schema(b=prop("B"), c=prop("C"))))
    assert param_values(given, b'{"a":{"b":"1","c":"2"}}') == [("B", "1"), ("C", "2")]
    assert mirrored_values(given, b'{"a":{"b":"1"}}') == [
        (("a", "b"), "B", "1"),
        (("a", "c"), "C", None),
    ]


@pytest.mark.requirement("HDR-12")
@pytest.mark.parametrize("n", [2**53, -(2**53), 10**40, 1e300])
def test_param_values_unsafe_integer_raises(n: float) -> None:
    with pytest.raises(ValueError, match=r"cannot be mirrored|cannot be read"):
        param_values(MAP, {"n": n})


@pytest.mark.parametrize(
    "arguments",
    [
        b"{",
        b'{"region":"\\ud800"}',
        b'{"region":1e999}',
        b'{"deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_param_values_invalid_json_raises(arguments: bytes) -> None:
    with pytest.raises(ValueError, match="the arguments cannot be read: "):
        param_values(MAP, arguments)


def test_param_values_unencodable_argument_raises() -> None:
    with pytest.raises(TypeError):
        param_values(MAP, {"region": object()})


# header text, value, whether they match
PAIRS: list[Any] = [
    ("x", "x", True),
    ("X", "x", False),
    ("", "", True),
    ("42", "42", True),
    ("42.0", "42", False),
    ("true", "true", True),
    ("true", True, True),
    ("false", False, True),
    ("True", True, False),
    ("1", True, False),
    ("true", 1, False),
    ("42", 42, True),
    ("42.0", 42, True),
    ("42.000", 42, True),
    ("42.00000000000000000001", 42, False),
    ("42", 42.0, True),
    ("42.0", 42.0, True),
    ("42.5", 42, False),
    ("42.5", 42.5, True),
    ("42.50", 42.5, True),
    ("42", 42.5, False),
    ("-7", -7, True),
    ("-0", 0, True),
    ("0", -0.0, True),
    ("9007199254740991", 2**53 - 1, True),
    ("9007199254740990.9", 2**53 - 1, False),
    ("042", 42, False),
    ("+42", 42, False),
    (" 42", 42, False),
    ("4_2", 42, False),
    ("٤٢", 42, False),
    ("42.", 42, False),
    ("4.2e1", 42, False),
    ("0x2a", 42, False),
    ("", 0, False),
    ("9" * 400, 42, False),
    ("null", None, False),
    ("[]", [], False),
]


@pytest.mark.parametrize(("text", "value", "good"), PAIRS)
def test_header_matches_compares_text_and_value(text: str, value: Any, good: bool) -> None:
    assert header_matches(text, value) is good


@given(st.text() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1))
def test_format_value_matches_its_own_value(value: Any) -> None:
    text = format_value(value)
    assert text is not None
    assert header_matches(text, value)


@pytest.mark.requirement("HDR-18")
@pytest.mark.parametrize(
    ("arguments", "ambiguous"),
    [
        (b'{"a":"x","b":{"c":1,"d":2}}', False),
        (b'{"a":"x","a":"y"}', True),
        (b'{"z":1,"z":2,"a":"x"}', True),
        (b'{"a":"x","b":{"c":1,"c":2}}', True),
        (b'{"a":"x","b":{"c":1,"\\u0063":2}}', True),
        (b'{"b":{"e":{"f":1,"f":2}}}', True),
        (b'{"a":"x","other":{"c":1,"c":2}}', False),  # not on the way to a mirrored property
        (b'{"b":[{"c":1,"c":2}]}', False),
        (b'["a","a"]', False),
        (rb'{"a":"x","\"":1,"\u0001":2}', False),
    ],
)
def test_mirrored_values_of_ambiguous_arguments_are_rejected(
    arguments: bytes, ambiguous: bool
) -> None:
    headers = {("a",): "A", ("b", "c"): "C", ("b", "e", "f"): "F"}
    if ambiguous:
        with pytest.raises(ValueError, match="twice"):
            mirrored_values(headers, arguments)
    else:
        assert len(mirrored_values(headers, arguments)) == 3


def test_schema_has_as_many_parts_as_are_read() -> None:
    """Members and items count. One more is too many."""
    for count, is_read in ((99_999, True), (100_000, False)):
        schema = {"anyOf": [0] * count}
        if is_read:
            assert param_headers(schema) == {}
            continue
        with pytest.raises(ValueError, match="the schema has more than 100000 parts"):
            param_headers(schema)
