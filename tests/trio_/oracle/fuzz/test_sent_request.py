"""A request that was sent: what it says of itself, and a response after its cancellation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_trio.oracle.fuzz._call_guard import UNKNOWN_TOOLS
from mcp_trio.oracle.fuzz._sent_request import (
    LOST,
    USER_CODE,
    SentRequest,
    is_cancellation_error,
)


def sent(method: Any = "tools/call", **members: Any) -> SentRequest:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, **members}
    return SentRequest(message, is_plain=True, is_bounded=False)


def test_request_begins_open_owed_and_without_a_response() -> None:
    found = sent("ping")
    assert (found.id, found.method, found.is_plain, found.is_bounded) == (7, "ping", True, False)
    assert (found.sent_at, found.answer, found.answered_at, found.responses) == (0, None, 0, 0)
    assert (found.cancelled, found.is_dropped, found.is_owed, found.was_open) == (
        *(False, False),
        *(True, True),
    )
    assert (found.overdue, found.loss, found.batch, found.unread) == ("", "", 0, 0)
    assert LOST == {"lost": True}


@pytest.mark.parametrize(
    ("members", "method", "token", "name"),
    [
        ({}, "tools/call", None, "tools/call"),
        ({"method": 5}, "5", None, "5"),
        ({"params": [1]}, "tools/call", None, "tools/call"),
        ({"params": {"_meta": 5, "name": "a"}}, "tools/call", None, "tools/call a"),
        ({"params": {"_meta": {}, "uri": "b"}}, "tools/call", None, "tools/call b"),
        ({"params": {"_meta": {"progressToken": 5}, "name": "a", "uri": "b"}}, "tools/call", 5,
         "tools/call a"),
        ({"params": {"name": "x" * 90}}, "tools/call", None, "tools/call " + "x" * 80),
    ],
)  # fmt: skip
def test_request_has_its_method_token_and_name(
    members: Any, method: str, token: Any, name: str
) -> None:
    found = sent(**members)
    assert (found.method, found.token, found.name) == (method, token, name)


def test_request_without_a_method_has_an_empty_one() -> None:
    found = SentRequest({"id": 1}, is_plain=False, is_bounded=True)
    assert (found.method, found.name, found.is_plain, found.is_bounded) == ("", "", False, True)


@pytest.mark.parametrize(
    ("method", "params", "is_owed_soon"),
    [
        *(("tools/call", {"name": each}, True) for each in UNKNOWN_TOOLS),
        ("tools/call", {"name": "add"}, False),
        ("tools/call", {}, False),
        ("tools/call", [UNKNOWN_TOOLS[0]], False),
        ("prompts/get", {"name": "add"}, True),
        ("resources/read", None, True),
        ("completion/complete", {}, True),
        ("tasks/result", {}, False),
        ("subscriptions/listen", {}, False),
        ("tools/list", {}, False),
    ],
)
def test_response_is_owed_soon_if_code_of_the_author_runs_but_no_tool(
    method: str, params: Any, is_owed_soon: bool
) -> None:
    assert sent(method, params=params).is_owed_soon is is_owed_soon
    assert (method in USER_CODE) is (method != "tools/list")


def test_defect_is_the_clause_without_its_kind() -> None:
    assert sent().defect == ""
    assert sent(params=None).defect == "its params are null, not an object"


def error(text: Any) -> dict[str, Any]:
    return {"id": 7, "error": {"code": 0, "message": text}}


@pytest.mark.parametrize(
    ("text", "is_usual"),
    [
        ("cancelled", True),
        ("Canceled.", True),
        ("Request cancelled", True),
        ("The request was canceled.", True),
        ("the call has been cancelled", True),
        ("it was cancelled", False),
        ("request cancelled by me", False),
        ("", False),
        (5, False),
    ],
)
def test_error_for_a_cancelled_request_has_the_usual_words(text: Any, is_usual: bool) -> None:
    request = sent()
    request.cancelled, request.answer, request.responses = True, {"id": 7, "result": {}}, 2
    assert is_cancellation_error(request, json.dumps(error(text))) is is_usual
    # The first response was it already.
    request.answer = error("cancelled")
    assert not is_cancellation_error(request, json.dumps(error(text)))
    assert not is_cancellation_error(request, json.dumps({"id": 7, "error": text}))
    assert not is_cancellation_error(request, json.dumps({"id": 7, "result": {}}))


@pytest.mark.parametrize(
    ("cancelled", "answer", "responses"),
    [(False, {}, 2), (True, None, 2), (True, {}, 1), (True, {}, 3)],
)
def test_only_the_second_response_of_a_cancelled_request_is_its_cancellation(
    cancelled: bool, answer: Any, responses: int
) -> None:
    request = sent()
    request.cancelled, request.answer, request.responses = cancelled, answer, responses
    assert not is_cancellation_error(request, json.dumps(error("cancelled")))
