"""Results for what doesn't exist, and updates for subscriptions to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.oracle.fuzz._call_guard import INVENTED_METHODS
from mcp_trio.oracle.fuzz._revisions import META
from mcp_trio.oracle.fuzz._sent_request import SentRequest
from mcp_trio.oracle.fuzz.play._unknown import served_cursor, served_unknown, unasked_updates
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import NEW, OLD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio.oracle.fuzz._case import Case

UNKNOWN = "mcp-trio-fuzz-none"
NO_URI = "mcp-trio-fuzz://none"
NO_CURSOR = "bm90IGEgY3Vyc29y"
OPEN = ("open", OLD, "whole", "all")
OPEN_NEW = ("open", NEW, "whole", "all")


def serves(
    method: str, result: Mapping[str, Any] | None, cursor: str | None = None
) -> Callable[[Mapping[str, Any]], HttpResponse]:
    """Return the behaviour of a server that has a result for each request of a method.

    With a cursor, that is the result of requests with a cursor; the first page gives `cursor`.
    """

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        if message.get("method") != method or "id" not in message:
            return response_to(message)
        found = result
        if cursor is not None and "cursor" not in message.get("params", {}):
            found = {"tools": [], "nextCursor": cursor} if cursor else {"tools": []}
        if found is None:
            error = {"code": -32602, "message": "no"}
            body: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        else:
            body = {"jsonrpc": "2.0", "id": message["id"], "result": found}
        return HttpResponse(body=json.dumps(body).encode())

    return respond


PROMPT = ("request", "prompts/get", {"name": UNKNOWN})
NO_TOOL = ("request", "tools/call", {"name": UNKNOWN, "arguments": {}})
READ = ("request", "resources/read", {"uri": NO_URI})
PAGE = ("page", "tools/list", "invented")


@pytest.mark.parametrize(
    ("respond", "case", "row"),
    [
        (serves("prompts/get", {"messages": []}), [OPEN, PROMPT], "PRM-4"),
        (serves("prompts/get", None), [OPEN, PROMPT], ""),
        (
            serves("prompts/get", {"messages": []}),
            [OPEN, ("request", "prompts/get", {"name": "a"})],
            "",
        ),
        (serves("tools/call", {"content": []}), [OPEN, NO_TOOL], "TOOL-17"),
        (serves("tools/call", {"content": [], "isError": True}), [OPEN, NO_TOOL], ""),
        (serves("resources/read", {"contents": []}), [OPEN, READ], "RES-7"),
        (serves("resources/read", {"contents": []}), [OPEN_NEW, READ], "RES-9"),
        (serves("resources/read", {"contents": [{"uri": NO_URI, "text": ""}]}), [OPEN, READ], ""),
        (serves("tools/list", {"tools": []}, "2"), [OPEN, PAGE], "PAGE-6"),
        (serves("tools/list", None, "2"), [OPEN, PAGE], ""),
        (serves("tools/list", {"tools": []}, NO_CURSOR), [OPEN, PAGE], ""),
        (serves("tools/list", {"tools": []}, ""), [OPEN, PAGE], ""),
    ],
)
async def test_result_for_what_does_not_exist_is_a_fault(
    autojump_clock: Any,
    respond: Callable[[Mapping[str, Any]], HttpResponse],
    case: Case,
    row: str,
) -> None:
    outcome, _ = await played_over_http(respond, case)
    rows = {"PRM-4", "TOOL-17", "RES-7", "RES-9", "PAGE-6"}
    assert [each.row for each in outcome.faults if each.row in rows] == ([row] if row else [])
    assert all(each.is_certain for each in outcome.faults)


def answered(method: str, params: Any, answer: dict[str, Any]) -> SentRequest:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = SentRequest(message, is_plain=True, is_bounded=True)
    request.answer = answer
    return request


@pytest.mark.parametrize(
    ("method", "params", "result", "row"),
    [
        (INVENTED_METHODS[0], {}, {}, "ERR-1"),
        (INVENTED_METHODS[0], {}, None, "ERR-1"),
        ("tools/list", {}, {}, ""),
        ("prompts/get", {"name": UNKNOWN}, {}, "PRM-4"),
        ("prompts/get", {"name": ""}, {}, ""),
        ("prompts/get", {"name": UNKNOWN}, 5, ""),
        ("prompts/get", [UNKNOWN], {}, ""),
        ("prompts/list", {"name": UNKNOWN}, {}, ""),
        ("tools/call", {"name": UNKNOWN}, {}, "TOOL-17"),
        ("tools/call", {"name": UNKNOWN}, {"resultType": "complete"}, "TOOL-17"),
        ("tools/call", {"name": UNKNOWN}, {"resultType": "input_required"}, ""),
        ("tools/call", {"name": UNKNOWN}, {"isError": True}, ""),
        ("tools/call", {"name": UNKNOWN}, {"isError": False}, "TOOL-17"),
        ("tools/call", {"name": UNKNOWN, "task": {}}, {}, ""),
        ("tools/call", {"name": "add"}, {}, ""),
        ("tools/call", {"name": ""}, {}, ""),
        ("resources/read", {"uri": NO_URI}, {"contents": []}, "RES-7"),
        ("resources/read", {"uri": NO_URI}, {}, ""),
        ("resources/read", {"uri": "note:///one"}, {"contents": []}, ""),
        ("resources/subscribe", {"uri": NO_URI}, {"contents": []}, ""),
    ],
)
def test_only_a_result_for_a_made_up_name_is_a_fault(
    method: str, params: Any, result: Any, row: str
) -> None:
    fault = served_unknown(answered(method, params, {"id": 1, "result": result}), OLD)
    assert (fault.row if fault is not None else "") == row
    for answer in ({"id": 1, "error": {}}, {}):
        assert served_unknown(answered(method, params, answer), OLD) is None
    silent = answered(method, params, {})
    silent.answer = None
    assert served_unknown(silent, OLD) is None


def test_long_method_is_shown_in_part() -> None:
    method = max(INVENTED_METHODS, key=len)
    fault = served_unknown(answered(method, {}, {"result": {}}), OLD)
    assert fault is not None
    assert f"the method {method[:80]}, which" in fault.sentence


@pytest.mark.parametrize(
    ("given", "answer", "is_fault"),
    [
        (["2"], {"result": {}}, True),
        (["2"], {"error": {}}, False),
        (["2"], None, False),
        ([], {"result": {}}, False),
        (["2", NO_CURSOR], {"result": {}}, False),
    ],
)
def test_page_of_a_made_up_cursor_is_a_fault_if_the_list_has_cursors(
    given: list[str], answer: dict[str, Any] | None, is_fault: bool
) -> None:
    request = answered("tools/list", {"cursor": NO_CURSOR}, {})
    request.answer = answer
    fault = served_cursor(request, given, OLD)
    assert (fault is not None) is is_fault
    if fault is not None:
        assert (fault.row, json.loads(fault.sent)) == ("PAGE-6", request.message)


# -- Updates ---------------------------------------------------------------------------------------


def listens(*uris: str) -> SentRequest:
    params = {"notifications": {"resourceSubscriptions": list(uris)}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    return SentRequest(message, is_plain=True, is_bounded=False)


def update(uri: Any, id: Any = 1) -> dict[str, Any]:
    return {"uri": uri, "_meta": {META + "subscriptionId": id}}


@pytest.mark.parametrize(
    ("uris", "params", "is_fault"),
    [
        ([NO_URI], update("note:///one"), True),
        ([NO_URI], update(NO_URI), False),
        ([NO_URI], update(NO_URI + "/part"), False),
        ([NO_URI], update("note:///one", 2), False),
        ([NO_URI], update("note:///one", [1]), False),
        ([NO_URI], update(7), False),
        ([NO_URI], {"uri": "note:///one"}, False),
        (["note:///all"], update("note:///one"), False),
        ([NO_URI, "note:///all"], update("note:///one"), False),
    ],
)
def test_update_of_another_resource_is_a_fault_only_if_the_own_one_does_not_exist(
    uris: list[str], params: dict[str, Any], is_fault: bool
) -> None:
    fault = unasked_updates([params], [listens(*uris)], NEW)
    assert (fault is not None) is is_fault
    if fault is not None:
        assert (fault.row, fault.is_certain) == ("SUB-2", True)
