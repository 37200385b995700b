"""Requests without a response: which of them are faults."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._session import MESSAGE_LIMIT
from mcp_trio.oracle.fuzz.play._player import Player
from tests.trio_.oracle.fuzz.memory_http import (
    EMPTY_STREAM,
    SSE,
    HttpResponse,
    faults_of,
    played_over_http,
    responds_with,
    response_to,
)
from tests.trio_.oracle.fuzz.memory_target import OLD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.fuzz._case import Case

OPEN = ("open", OLD, "whole", "all")
LIST: tuple[str, str, Any] = ("request", "tools/list", {})
LARGE = {"jsonrpc": "2.0", "id": 1_003, "result": {"tools": [], "a": "a" * MESSAGE_LIMIT}}


@pytest.mark.parametrize(("id", "is_certain"), [(2**53 + 1, False), (2**53 - 1, True)])
async def test_request_with_an_id_beyond_doubles_may_get_no_response(
    autojump_clock: Any, id: int, is_certain: bool
) -> None:
    case: Case = [OPEN, ("request", "tools/list", {}, [id])]
    outcome, _ = await played_over_http(responds_with(EMPTY_STREAM), case)
    found = [each.is_certain for each in outcome.faults if each.row == "RPC-35"]
    assert found == [is_certain]


CALL: tuple[Any, ...] = ("call", "nap", {}, ("progress",))
WAIT = ("wait",)


def on_second(*steps: Any) -> list[Any]:
    return [("on", 1, *each) for each in steps]


@pytest.mark.parametrize(
    ("served", "times", "is_certain"),
    [
        ("first", CallTimes(65.0, proves=True), True),
        ("first", CallTimes(), False),
        ("both", CallTimes(65.0, proves=True), None),
        # Then the tool can be slow at this moment.
        ("three calls", CallTimes(65.0, proves=True), False),
    ],
)
async def test_tool_that_answers_the_first_client_only_has_stopped_for_the_second(
    autojump_clock: Any, served: str, times: CallTimes, is_certain: bool | None
) -> None:
    """A further session may hang like the second one. So the first client calls again."""
    sessions = itertools.count()
    called = itertools.count()

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        response = response_to(message)
        if message.get("method") == "initialize":
            found = json.loads(response.body)
            found["result"]["capabilities"] = {"tools": {}}
            session = f"session-{next(sessions)}-0123456789"
            return response._replace(session=session, body=json.dumps(found).encode())
        if message.get("method") != "tools/call":
            return response
        is_first = not str(message["params"]["_meta"]["progressToken"]).startswith("second")
        is_served = {"first": is_first, "both": True, "three calls": next(called) < 3}[served]
        result = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        body = json.dumps(result).encode()
        return HttpResponse(body=body, after=None if is_served else trio.Event())

    turn = [CALL, WAIT]
    case = [OPEN, *on_second(OPEN), *turn, *turn, *on_second(*turn), *on_second(*turn)]
    outcome, _ = await played_over_http(respond, case, Player(call_times=times))
    found = [each for each in outcome.faults if each.row == "RPC-35"]
    assert [each.is_certain for each in found] == ([] if is_certain is None else [is_certain])
    if served == "first":
        assert found[0].detail == "stopped"
        assert found[0].sentence.startswith(
            '"nap" has answered the other client before, and does not answer a call within'
        )
        assert "while the other client gets a result for the same call" in found[0].sentence
        assert found[0].sentence.endswith(", for the second client")


@pytest.mark.parametrize(
    "response", [EMPTY_STREAM, HttpResponse(), HttpResponse(202), HttpResponse(204)]
)
async def test_request_whose_exchange_ends_without_response_is_a_fault(
    autojump_clock: Any, response: HttpResponse
) -> None:
    assert ("row", "RPC-35", "tools/list") in await faults_of(responds_with(response), OPEN, LIST)


@pytest.mark.parametrize(
    "response",
    [
        *(HttpResponse(status) for status in (400, 401, 404, 429, 500, 503)),
        HttpResponse(type=SSE, body=b"id: 1\ndata:\n\n"),
        HttpResponse(type=SSE, is_cut=True),
        HttpResponse(body=json.dumps(LARGE).encode()),
    ],
    ids=["400", "401", "404", "429", "500", "503", "resumable", "cut", "large"],
)
async def test_request_that_is_rejected_or_may_get_its_response_elsewhere_is_no_fault(
    autojump_clock: Any, response: HttpResponse
) -> None:
    assert ("row", "RPC-35", "tools/list") not in await faults_of(
        responds_with(response), OPEN, LIST
    )


async def test_response_that_is_cut_off_is_a_fault_and_not_taken_for_a_long_one(
    autojump_clock: Any,
) -> None:
    cut = HttpResponse(body=b'{"jsonrpc": "2.0", "id"', is_cut=True)
    outcome, _ = await played_over_http(responds_with(cut), [OPEN, LIST])
    (fault,) = outcome.faults
    assert (fault.row, fault.is_certain) == ("RPC-35", True)
    assert fault.sentence.endswith("got no response: the server has cut off the HTTP response")
    assert outcome.notes == []


@pytest.mark.parametrize(
    "case",
    [
        [OPEN, LIST, ("cancel", 0), ("page", "prompts/list", "first")],
        [OPEN, LIST, ("delete", "own")],
        [OPEN, LIST, ("disconnect",)],
    ],
    ids=["cancel", "delete", "disconnect"],
)
async def test_request_whose_stream_ends_because_of_the_case_is_no_fault(
    autojump_clock: Any, case: Case
) -> None:
    is_over = trio.Event()

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        if message.get("method") == "tools/list":
            return EMPTY_STREAM._replace(after=is_over)
        if not message or message.get("method") == "notifications/cancelled":
            is_over.set()
        return response_to(message)

    assert await faults_of(respond, *case) == []


@pytest.mark.parametrize(
    "case", [[OPEN, ("head", "accept", "tools/list")], [("open", OLD, "late", "all")]]
)
async def test_request_to_which_no_response_is_owed_is_no_fault(
    autojump_clock: Any, case: Case
) -> None:
    assert await faults_of(responds_with(EMPTY_STREAM), *case) == []
