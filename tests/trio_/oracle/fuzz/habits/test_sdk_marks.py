"""The marks of SDKs one by one: what each needs, and what a server is asked to show them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz.habits._sdk_marks import (
    PYTHON_1,
    PYTHON_2,
    TYPESCRIPT,
    find_marks,
    list_method,
    mark_steps,
    zod_issues,
)

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Step

UNKNOWN_METHOD = "mcp-trio-fuzz/none"
ISSUE: dict[str, Any] = {"code": "invalid_type", "path": ["params", "cursor"], "message": "text"}
NOT_FOUND: dict[str, Any] = {"code": -32601, "message": "Method not found"}
INVALID: dict[str, Any] = {"code": -32602, "message": "Invalid request parameters", "data": ""}


def shown_marks(*answers: Any, raw: str = "") -> dict[str, frozenset[str]]:
    """Return the marks of responses to a list, an unknown method, and a list at a wrong cursor."""
    asked: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "method": UNKNOWN_METHOD, "params": {}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": 5}},
    ]
    found = [TraceLine(t=0.0, sender="client", raw=json.dumps(each)) for each in asked]
    texts = [raw] if raw else [json.dumps(each) for each in answers]
    found += [TraceLine(t=0.0, sender="server", raw=each) for each in texts]
    return find_marks(found)


def result_of(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def error_of(id: int, error: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": error}


def zod_error(*issues: Any, before: str = "MCP error: ") -> dict[str, Any]:
    return error_of(3, {"code": -32602, "message": before + json.dumps(issues)})


PYTHON_TEXT = "the error of a wrong cursor is `Invalid request parameters` with empty data"


@pytest.mark.parametrize(
    ("answers", "marks"),
    [
        (
            [{"result": {}, "jsonrpc": "2.0", "id": 1}],
            {"responses are result, jsonrpc, id, in this order": {TYPESCRIPT}},
        ),
        ([{"result": {}, "jsonrpc": "2.0", "id": 1}, result_of()], {}),
        ([{"result": {}, "id": 1, "jsonrpc": "2.0"}], {}),
        (
            [error_of(2, NOT_FOUND)],
            {"the error of an unknown method has no data": {TYPESCRIPT}},
        ),
        ([error_of(3, NOT_FOUND)], {}),
        ([error_of(1, NOT_FOUND)], {}),
        ([error_of(2, {**NOT_FOUND, "data": "x"})], {}),
        (
            [error_of(2, {**NOT_FOUND, "data": UNKNOWN_METHOD})],
            {"the error of an unknown method has the method as its data": {PYTHON_2}},
        ),
        (
            [error_of(2, INVALID)],
            {"the error of an unknown method is `Invalid request parameters`": {PYTHON_1}},
        ),
        ([error_of(3, INVALID)], {PYTHON_TEXT: {PYTHON_1, PYTHON_2}}),
        ([error_of(3, {**INVALID, "data": None})], {}),
        ([error_of(3, {**INVALID, "code": -32600})], {}),
        ([error_of(1, INVALID)], {}),  # of a list without a cursor
        (
            [zod_error(ISSUE)],
            {"the error of a wrong cursor is a list of zod's problems": {TYPESCRIPT}},
        ),
        ([zod_error({**ISSUE, "path": ["params", "name"]})], {}),
        ([zod_error({**ISSUE, "path": ["params", "name"]}, ISSUE)], None),
        (
            [result_of(capabilities={"experimental": {}})],
            {"an empty capability experimental": {PYTHON_1}},
        ),
        ([result_of(capabilities={"experimental": {"a": {}}})], {}),
        ([result_of(capabilities=["experimental"])], {}),
        (
            [result_of(tools=[{"b": 1, "a": 2}, {"_meta": {}, "a": 1, "b": 2, "c": 3}])],
            {"members of lists' entries are sorted": {PYTHON_2}},
        ),
        ([result_of(tools=[{"a": 1, "b": 2, "c": 3}, {"c": 1, "a": 2, "b": 3}])], {}),
        ([result_of(tools=[{"a": 1, "b": 2, "_meta": {}}])], {}),  # sorted by chance
        ([result_of(tools=["a", 5], other={"a": 1, "b": 2, "c": 3})], {}),
        ([{"jsonrpc": "2.0", "id": 1, "result": 5}, error_of(2, "x"), error_of(9, INVALID)], {}),
    ],
)
def test_mark_is_shown_by_exactly_what_its_sdk_writes(
    answers: list[Any], marks: dict[str, set[str]] | None
) -> None:
    if marks is None:  # one problem of the cursor is enough
        marks = {"the error of a wrong cursor is a list of zod's problems": {TYPESCRIPT}}
    assert shown_marks(*answers) == marks


@pytest.mark.parametrize("raw", ["", "{nothing", "[1]", "[" * 100_000, '{"id":true}', "5"])
def test_bytes_without_a_message_show_no_mark(raw: str) -> None:
    assert shown_marks(raw=raw) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (json.dumps([ISSUE]), [ISSUE]),
        ("words before: " + json.dumps([ISSUE, ISSUE]), [ISSUE, ISSUE]),
        (json.dumps([ISSUE]) + " words after", []),
        (json.dumps({**ISSUE, "path": []}), []),
        (json.dumps([{**ISSUE, "code": 5}]), []),
        (json.dumps([{**ISSUE, "message": None}]), []),
        (json.dumps([{**ISSUE, "path": "params"}]), []),
        (json.dumps([ISSUE, 5]), []),
        ("[" * 100_000, []),
        ("[]", []),
        ("no list", []),
        (None, []),
    ],
)
def test_problems_of_zod_are_a_list_at_the_end_of_a_text(text: Any, found: list[Any]) -> None:
    assert zod_issues(text) == found


@pytest.mark.parametrize(
    ("capabilities", "method"),
    [
        ({}, ""),
        ({"logging": {}}, ""),
        ({"resources": {}}, "resources/list"),
        ({"resources": {}, "prompts": {}}, "prompts/list"),
        ({"resources": {}, "prompts": {}, "tools": {}}, "tools/list"),
    ],
)
def test_server_is_asked_for_a_list_that_it_has(capabilities: Any, method: str) -> None:
    assert list_method(capabilities) == method
    lists = [("request", method, each, "int") for each in ({}, {"cursor": 5}) if method]
    unknown: Step = ("request", UNKNOWN_METHOD, {}, "int")
    assert mark_steps(capabilities) == [unknown, *lists, ("wait",)]
