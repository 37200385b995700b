"""The outline of a message: what is wrong with it, without any value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import message_outline
from tests.levels import fewer_examples

OLD, NEW = "2025-11-25", "2026-07-28"


def request(method: Any = "tools/list", params: Any = None, **others: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **others}
    return {key: value for key, value in message.items() if value is not ...}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (request(params=...), "request"),
        (request(params={}), "request"),
        (request(params="x"), "request params:string"),
        (request(params=82), "request params:number"),
        (request(params=True), "request params:boolean"),
        (request(params=[]), "request params:array"),
        (request(params=None), "request params:null"),
        (request(params={"cursor": 5}), "request params/cursor:number"),
        (request("tools/call", ...), "request params/name:absent"),
        (request("tools/call", {"name": "a", "arguments": []}), "request params/arguments:array"),
        (request("tools/call", {"name": "a", "arguments": {"b": 1}}), "request"),
        (request("prompts/get", {"name": "a", "arguments": {"b~/c": 1}}),
         "request params/arguments/*:number"),
        (request("acme/none", {"a": 1}), "request"),
        (request("acme/none", "x"), "request params:string"),
        (request("acme/none", {"_meta": 1}), "request params/_meta:number"),
        (request("acme/none", {"_meta": {"progressToken": []}}),
         "request params/_meta/progressToken:array"),
        (request(5), "request method:number"),
        (request(params={}, id=None), "request id:null"),
        (request(params={}, id=1.5), "request id:number"),
        (request(params={}, id=True), "request id:boolean"),
        (request(params={}, jsonrpc="1.0"), "request jsonrpc:string"),
        (request(params={}, jsonrpc=...), "request jsonrpc:absent"),
        (request(params={}, acme=[]), "request *:any"),
        (request(params={}, acme=[], result={}), "request *:any"),
        (request(params={}, result={}), "request result:object"),
        (request("notifications/initialized", {}, id=...), "notification"),
        (request("notifications/initialized", [], id=...), "notification params:array"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, "response"),
        ({"jsonrpc": "2.0", "id": 1, "result": 5}, "response result:number"),
        ({"jsonrpc": "2.0", "result": {}}, "response id:absent"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, "response error:object"),
        ({"jsonrpc": "2.0", "id": 1}, "message method:absent"),
        ({}, "message jsonrpc:absent"),
        ([], "message:array"),
        ("x", "message:string"),
        (None, "message:null"),
    ],
)  # fmt: skip
def test_outline_has_the_kind_and_the_first_wrong_member(message: Any, expected: str) -> None:
    assert message_outline(OLD, message) == expected


@pytest.mark.parametrize("revision", ["", "1999-12-31", "acme"])
def test_outline_in_an_unknown_revision_has_no_wrong_part_of_params(revision: str) -> None:
    assert message_outline(revision, request(params={"cursor": 5})) == "request"
    assert message_outline(revision, request(params="x")) == "request params:string"


def test_outline_follows_the_shapes_of_the_revision() -> None:
    message = request("notifications/cancelled", {}, id=...)
    assert message_outline(OLD, message) == "notification"
    assert message_outline(NEW, message) == "notification params/requestId:absent"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
METHODS = st.sampled_from(["tools/list", "tools/call", "prompts/get", "completion/complete"])


@fewer_examples(10)
@given(st.sampled_from([OLD, NEW, ""]), METHODS, JSON, JSON)
def test_outline_of_any_json_shows_no_value(
    revision: str, method: str, params: Any, other: Any
) -> None:
    """A key or a text that the fuzzer drew isn't in it."""
    marked = json.loads(json.dumps({"k\u2603": [params, "v\u2603"], "name": params}))
    for message in (params, request(method, params), request(method, marked, acme=other), marked):
        outline = message_outline(revision, message)
        assert "\u2603" not in outline
        assert len(outline) < 120
