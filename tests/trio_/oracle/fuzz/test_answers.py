"""The fuzzer's answers as a client: right results, and input responses that are made wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core.trace.judge._shapes import find_shape_error
from mcp_trio.oracle.fuzz._answers import (
    altered_state,
    client_result,
    input_responses,
    name_of,
    result_of_input,
)

FORM = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
OLD = "2025-11-25"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", None),
        ("roots/list", None),
        ("sampling/createMessage", {"messages": [], "maxTokens": 5}),
        ("elicitation/create", {"message": "?", "requestedSchema": FORM}),
        ("elicitation/create", {"message": "?", "mode": "url"}),
    ],
)
def test_result_of_a_client_has_the_shape_of_its_method(method: str, params: Any) -> None:
    found = client_result(method, params)
    assert found is not None
    assert find_shape_error(OLD, f"<{method}", found) is None
    assert result_of_input({"method": method, "params": params}) == found


@pytest.mark.parametrize("params", [None, {}, [], {"requestedSchema": None}, {"mode": "url"}])
def test_question_without_a_form_is_declined(params: Any) -> None:
    assert client_result("elicitation/create", params) == {"action": "decline"}


def test_form_is_filled_in() -> None:
    found = client_result("elicitation/create", {"requestedSchema": FORM})
    assert found is not None
    assert found["action"] == "accept"
    assert isinstance(found["content"]["a"], str)


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        ({}, {}),
        ({"required": "a"}, {}),
        ({"required": ["a", 5], "properties": []}, {"a": "text", "5": "text"}),
        ({"required": ["a"], "properties": {"a": 5, "b": {}}}, {"a": "text"}),
        *(
            ({"required": ["a"], "properties": {"a": {"type": kind}}}, {"a": value})
            for kind, value in (
                *(("boolean", True), ("integer", 1), ("number", 1.5), ("array", [])),
                *(("string", "text"), (None, "text"), ([], "text")),
            )
        ),
        ({"required": ["a"], "properties": {"a": {"enum": ["x", "y"]}}}, {"a": "x"}),
        ({"required": ["a"], "properties": {"a": {"enum": []}}}, {"a": "text"}),
        ({"required": ["a"], "properties": {"a": {"enum": "xy"}}}, {"a": "text"}),
    ],
)
def test_required_members_of_a_form_are_filled_in_by_their_types(schema: Any, content: Any) -> None:
    """JSON tells true from 1, and 1 from 1.0."""
    found = client_result("elicitation/create", {"requestedSchema": schema})
    assert json.dumps(found) == json.dumps({"action": "accept", "content": content})


@pytest.mark.parametrize(
    ("state", "altered"), [("", "x"), ("b", "A"), ("A", "B"), ("abc", "aAc"), ("abAd", "abBd")]
)
def test_altered_state_differs_in_its_middle(state: str, altered: str) -> None:
    assert altered_state(state) == altered


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"name": "a", "uri": "b"}, "a"),
        ({"uri": "b"}, "b"),
        ({"name": 5}, "5"),
        ({"name": "x" * 81}, "x" * 80),
        ({}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_name_of_a_request_is_short(params: Any, name: str) -> None:
    assert name_of({"params": params}) == name
    assert name_of({}) == ""


def test_method_that_no_client_serves_has_no_result() -> None:
    assert client_result("tools/list", {}) is None
    requests: list[Any] = [{"method": "acme"}, {}, None, 5, []]
    for request in requests:
        assert result_of_input(request) == {}


def test_input_responses_are_right_declined_wrong_or_too_many() -> None:
    asked = {
        "form": {"method": "elicitation/create", "params": {"requestedSchema": FORM}},
        "roots": {"method": "roots/list"},
    }
    right = {key: result_of_input(each) for key, each in asked.items()}
    assert input_responses(asked, "right") == right
    assert input_responses(asked, "declined") == {**right, "form": {"action": "decline"}}
    assert input_responses(asked, "wrong") == {"form": 7, "roots": 7}
    assert input_responses(asked, "unknown") == {
        **right,
        "mcp-trio-fuzz-none": {"action": "cancel"},
    }
