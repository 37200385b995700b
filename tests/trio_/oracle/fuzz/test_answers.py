"""The fuzzer's answers as a client: right results, and input responses that are made wrong."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.judge._shapes import find_shape_error
from mcp_trio.oracle.fuzz._answers import client_result, input_responses, result_of_input

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
