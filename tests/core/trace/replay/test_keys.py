"""The parts of a request's params by which a replay finds the recorded request."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.replay._keys import (
    ANY,
    call_form,
    exact_form,
    parse_pointer,
    wild_form,
    without,
)

NESTED: Any = {"taskId": "a", "name": "n", "more": [{"requestState": 1, "taskIds": ["b"]}, None]}
META = {"progressToken": 1, "traceparent": "00-1", "io.modelcontextprotocol/logLevel": "info"}


@pytest.mark.parametrize(
    ("form", "wild"),
    [
        (
            NESTED,
            {"taskId": ANY, "name": "n", "more": [{"requestState": ANY, "taskIds": ["b"]}, None]},
        ),
        ({}, {}),
        ([{"taskId": {"a": 1}}], [{"taskId": ANY}]),
        ("taskId", "taskId"),
        (None, None),
    ],
)
def test_wild_form_leaves_pseudonyms_open(form: Any, wild: Any) -> None:
    assert wild_form(form) == wild


@pytest.mark.parametrize(
    ("params", "exact", "call"),
    [
        (None, {}, {}),
        ([1], [1], [1]),
        ({"name": "n", "_meta": META}, {"name": "n"}, {"name": "n"}),
        ({"a": 1, "_meta": {**META, "b": 2}}, {"a": 1, "_meta": {"b": 2}}, {"a": 1}),
        (
            {"name": "n", "requestState": "s", "inputResponses": {}},
            {"name": "n", "requestState": "s", "inputResponses": {}},
            {"name": "n"},
        ),
    ],
)
def test_forms_of_a_request_leave_out_what_is_of_one_exchange(
    params: Any, exact: Any, call: Any
) -> None:
    assert exact_form("tools/call", params) == exact
    assert call_form("tools/call", params) == call
    assert exact_form("initialize", params) == call_form("ping", params) == {}


@pytest.mark.parametrize(
    ("pointers", "left"),
    [
        ([], {"a": [1, {"b": 2, "c": 3}], "*": 4}),
        (["/a"], {"*": 4}),
        (["/a/0"], {"a": [{"b": 2, "c": 3}], "*": 4}),
        (["/a/1/b"], {"a": [1, {"c": 3}], "*": 4}),
        (["/a/*/b", "/a/1/c"], {"a": [1, {}], "*": 4}),
        (["/a/0", "/a/1/b"], {"a": [{"c": 3}], "*": 4}),
        (["/*"], {}),
        (["/*/1"], {"a": [1], "*": 4}),
        (["", "/b", "/a/b", "/a/0/b", "/a/7"], {"a": [1, {"b": 2, "c": 3}], "*": 4}),
    ],
)
def test_without_leaves_out_what_is_pointed_at(pointers: list[str], left: Any) -> None:
    value = {"a": [1, {"b": 2, "c": 3}], "*": 4}
    assert without(value, [parse_pointer(each) for each in pointers]) == left
    assert value == {"a": [1, {"b": 2, "c": 3}], "*": 4}
