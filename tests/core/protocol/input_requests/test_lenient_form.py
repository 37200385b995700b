"""Forms that mean simple fields: what a client reads, and what a server may not send."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import DIALECTS, LocalProtocolError, Peer, RemoteProtocolError
from mcp_core import types as t
from mcp_core.protocol.input_requests._kinds import (
    check_input_request,
    check_response,
    find_error,
    form_schema,
    require_capabilities,
)
from mcp_core.protocol.input_requests._lenient_form import simple_form
from tests.harness.jsonrpc import D
from tests.levels import fewer_examples

FORMS = t.ClientCapabilities(elicitation=t.ElicitationCapability())


def asking(field: Any) -> t.ElicitRequest:
    schema = {"type": "object", "properties": {"x": field}}
    return t.ElicitRequest(t.ElicitParams(message="?", requested_schema=schema))


TEXT = {"type": "string"}
NULL = {"type": "null"}
# A field as libraries write it, and the simple one.
MEANT: list[tuple[Any, t.PrimitiveSchema]] = [
    # pydantic: `str | None`, zod: `.nullable()`
    ({"anyOf": [TEXT, NULL], "default": None, "title": "X"}, t.StringSchema(title="X")),
    ({"anyOf": [NULL, {"type": "integer", "minimum": 1}]}, t.IntegerSchema(minimum=1)),
    ({"oneOf": [{"type": "boolean"}, NULL], "default": True}, t.BooleanSchema(default=True)),
    ({"anyOf": [{**TEXT, "title": "inner"}, NULL], "title": "X"}, t.StringSchema(title="X")),
    ({"anyOf": [{"anyOf": [{"type": "number"}, NULL]}, NULL]}, t.NumberSchema()),
    ({"anyOf": [{"enum": ["a", "b"]}, NULL]}, t.StringSchema(enum=["a", "b"])),
    ({"type": ["string", "null"]}, t.StringSchema()),
    ({"type": ["null", "integer"], "maximum": 3}, t.IntegerSchema(maximum=3)),
    ({"type": ["integer", "number"]}, t.NumberSchema()),
    ({"type": ["boolean"]}, t.BooleanSchema()),
    # pydantic: `int | float`, and with None
    (
        {"anyOf": [{"type": "integer"}, {"type": "number"}], "default": 1, "title": "X"},
        t.NumberSchema(title="X", default=1),
    ),
    ({"anyOf": [{"type": "integer"}, {"type": "number"}, NULL]}, t.NumberSchema()),
    ({"enum": ["a", "b"]}, t.StringSchema(enum=["a", "b"])),
    ({"enum": ["a", None]}, t.StringSchema(enum=["a"])),
    ({"type": ["string", "null"], "enum": ["a", None]}, t.StringSchema(enum=["a"])),
    (
        {"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        t.StringSchema(one_of=[t.EnumOption("a", "A"), t.EnumOption("b", "B")]),
    ),
    ({"type": "string", "format": "uuid", "minLength": 3}, t.StringSchema(min_length=3)),
    ({"type": "string", "format": "email"}, t.StringSchema(format="email")),
    (
        {"anyOf": [{"type": "array", "items": {"enum": ["a"]}}, NULL]},
        t.MultiSelectSchema(items=t.EnumItems(type="string", enum=["a"])),
    ),
]


@pytest.mark.parametrize(("field", "meant"), MEANT)
def test_client_reads_a_field_that_means_a_simple_one(field: Any, meant: t.PrimitiveSchema) -> None:
    question = asking(field)
    check_input_request(question, FORMS)
    assert form_schema(question).properties == {"x": meant}


@pytest.mark.parametrize(
    "field",
    [
        1,
        NULL,
        {"type": ["string", "integer"]},
        {"type": []},
        {"anyOf": [TEXT, {"type": "integer"}]},
        {"anyOf": [TEXT, {"type": "integer"}, NULL]},
        {"anyOf": [NULL, NULL]},
        {"anyOf": []},
        {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 1}]},
        {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        {"enum": [1, 2]},
        {"enum": ["a", 1]},
        {"enum": []},
        {"type": "object", "properties": {}},
        {"type": "array", "items": {"type": "integer"}},
        {"$ref": "#/$defs/X"},
        {},
    ],
)
def test_client_refuses_a_field_that_means_several_things_or_none(field: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="no flat object of simple fields"):
        check_input_request(asking(field), FORMS)


def test_refused_form_names_the_field_that_means_nothing() -> None:
    """The error isn't about a field that would be read, such as one with an unknown format."""
    fields = {"x": {"type": "string", "format": "uuid"}, "y": {"type": "object"}}
    schema = {"type": "object", "properties": fields}
    question = t.ElicitRequest(t.ElicitParams(message="?", requested_schema=schema))
    with pytest.raises(RemoteProtocolError, match=r"no flat object .*'object'"):
        check_input_request(question, FORMS)


@pytest.mark.parametrize("field", [field for field, _ in MEANT if field.get("format") != "email"])
def test_server_may_not_send_what_only_means_a_simple_field(field: Any) -> None:
    with pytest.raises(LocalProtocolError, match="no flat object of simple fields"):
        require_capabilities([asking(field)], Peer(DIALECTS[D], FORMS))


def test_content_is_checked_against_the_simple_field() -> None:
    question = asking({"anyOf": [{"enum": ["a", "b"]}, NULL]})
    accepted = t.ElicitResult(action="accept", content={"x": "a"})
    assert check_response(question, accepted) == accepted
    assert find_error(question, t.ElicitResult(action="accept", content={"x": "c"})) == (
        "content.x is none of the choices"
    )
    with pytest.raises(LocalProtocolError):
        check_response(question, t.ElicitResult(action="accept", content={"x": "c"}))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["string", "null", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "anyOf", "oneOf", "enum", "const", "items", "properties", "format"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@fewer_examples(2)
@given(st.dictionaries(st.sampled_from(["type", "properties", "required"]), ANY))
def test_any_schema_is_simplified_or_left(schema: dict[str, Any]) -> None:
    simple_form(schema)
