"""The parts of a request's params by which a replay finds the recorded request."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.replay._keys import (
    ANY,
    call_form,
    digest,
    exact_form,
    hide,
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


def nested(depth: int, value: Any, *, in_lists: bool) -> Any:
    for _ in range(depth):
        value = [value] if in_lists else {"a": value}
    return value


@pytest.mark.parametrize("in_lists", [True, False])
def test_forms_are_read_down_to_a_depth(in_lists: bool) -> None:
    """No message may exhaust Python's stack."""
    deep, wild = {"taskId": "a"}, {"taskId": ANY}
    for depth, found in ((100, wild), (101, deep)):
        form = nested(depth, deep, in_lists=in_lists)
        assert wild_form(form) == nested(depth, found, in_lists=in_lists)
    # A float that is an integer is the same number, as far down.
    for depth, is_same in ((100, True), (101, False)):
        pair = [nested(depth, [each], in_lists=in_lists) for each in (1.0, 1)]
        assert (digest(pair[0]) == digest(pair[1])) is is_same


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", ANY),
        ("/a", {"a": ANY, "b": [1, 2]}),
        ("/b/1", {"a": {"c": 1}, "b": [1, ANY]}),
        ("/a/c", {"a": {"c": ANY}, "b": [1, 2]}),
        ("/b/2", {"a": {"c": 1}, "b": [1, 2]}),
        ("/b/x", {"a": {"c": 1}, "b": [1, 2]}),
        ("/x", {"a": {"c": 1}, "b": [1, 2]}),
        ("/a/c/d", {"a": {"c": 1}, "b": [1, 2]}),
    ],
)
def test_hidden_value_is_any_value(pointer: str, expected: Any) -> None:
    value = {"a": {"c": 1}, "b": [1, 2]}
    assert hide(value, [parse_pointer(pointer)]) == expected
    assert value == {"a": {"c": 1}, "b": [1, 2]}
