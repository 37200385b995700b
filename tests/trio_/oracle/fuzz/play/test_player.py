"""The player of cases: what it sends, and what it reports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz._session import MESSAGE_LIMIT
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from tests.trio_.oracle.fuzz.memory_http import (
    EMPTY_STREAM,
    SSE,
    HttpResponse,
    played_over_http,
    response_to,
)
from tests.trio_.oracle.fuzz.memory_target import (
    NEW,
    OLD,
    MemorySession,
    MemoryTarget,
    answers,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio.oracle.fuzz._case import Case

OPEN = ("open", OLD, "whole", "all")
LIST: tuple[str, str, Any] = ("request", "tools/list", {})
CALL: dict[str, Any] = {"name": "wipe", "arguments": {}}
CALL_TEXT = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": CALL})


@pytest.mark.parametrize("is_allowed", [False, True])
@pytest.mark.parametrize(
    "step",
    [
        ("call", "wipe", {}),
        ("request", "tools/call", CALL),
        ("burst", 3, "tools/call", CALL),
        ("mutate", CALL_TEXT),
        ("mutate", f"[{CALL_TEXT}]"),
        ("damage", CALL_TEXT.encode()),
    ],
)
async def test_tool_is_called_by_no_step_unless_it_may_be_called(
    autojump_clock: Any, step: tuple[Any, ...], is_allowed: bool
) -> None:
    player = Player(guard=CallGuard({"wipe"} if is_allowed else set(), lambda: {"wipe"}))
    _, received = await played_over_http(response_to, [OPEN, step], player)
    assert ("wipe" in json.dumps(received)) == is_allowed


# -- Results for what doesn't exist ----------------------------------------------------------------

UNKNOWN = "mcp-trio-fuzz-none"
NO_URI = "mcp-trio-fuzz://none"
NO_CURSOR = "bm90IGEgY3Vyc29y"
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


def chooses(version: str) -> Callable[[Mapping[str, Any]], HttpResponse]:
    """Return the behaviour of a server that selects this revision."""

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        response = response_to(message)
        if message.get("method") == "initialize":
            return response._replace(body=response.body.replace(OLD.encode(), version.encode()))
        return response

    return respond


@pytest.mark.parametrize(("version", "rows"), [("2199-01-01", ["LIFE-4"]), (OLD, [])])
async def test_revision_that_does_not_exist_must_not_be_selected(
    autojump_clock: Any, version: str, rows: list[str]
) -> None:
    outcome, _ = await played_over_http(chooses(version), [("open", OLD, "unknown", "all")])
    assert [each.row for each in outcome.faults if each.row == "LIFE-4"] == rows


# -- The end of a process --------------------------------------------------------------------------


class MortalSession(MemorySession):
    """A conversation with a process that ends at a message."""

    status = 0
    deadly = ("initialize", 1)  # a method, and how many earlier requests have it
    received = 0

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        method, earlier = self.deadly
        if message.get("method") == method:
            self.received += 1
            if self.received > earlier:
                self.exit_status = self.status
                self.end("its stdout has ended")
                return
        if not self.ended:
            await super().send_text(text, message)


@pytest.mark.parametrize(
    ("how", "deadly", "status", "kinds"),
    [
        ("twice", ("initialize", 1), 1, ["crash"]),
        ("twice", ("initialize", 1), -6, ["crash"]),
        ("twice", ("initialize", 1), 0, []),
        ("late", ("tools/list", 0), 1, []),
        ("late", ("tools/list", 0), -6, ["crash"]),
        ("whole", ("tools/list", 0), 0, ["crash"]),
    ],
)
async def test_process_that_ends_after_an_unusual_beginning_has_crashed_if_its_status_says_so(
    autojump_clock: Any, how: str, deadly: tuple[str, int], status: int, kinds: list[str]
) -> None:
    target = MemoryTarget(same_each_time(answers))

    class Mortal(MortalSession):
        pass

    Mortal.status, Mortal.deadly = status, deadly
    target.session_class = Mortal
    outcome = await play_case(target, [("open", OLD, how, "all"), LIST])
    assert [each.kind for each in outcome.faults if each.kind == "crash"] == kinds


async def test_process_that_ends_after_its_input_has_not_crashed(autojump_clock: Any) -> None:
    class Ending(MemorySession):
        async def disconnect(self) -> None:
            self.exit_status, self.spent = 1, True
            await super().disconnect()

    target = MemoryTarget(same_each_time(answers))
    target.session_class = Ending
    outcome = await play_case(target, [OPEN, ("disconnect",)])
    assert outcome.faults == []


@pytest.mark.parametrize(("id", "is_certain"), [(2**53 + 1, False), (2**53 - 1, True)])
async def test_request_with_an_id_beyond_doubles_may_get_no_response(
    autojump_clock: Any, id: int, is_certain: bool
) -> None:
    case: Case = [OPEN, ("request", "tools/list", {}, [id])]
    outcome, _ = await played_over_http(responds_with(EMPTY_STREAM), case)
    found = [each.is_certain for each in outcome.faults if each.row == "RPC-35"]
    assert found == [is_certain]


# -- Requests without a response -------------------------------------------------------------------

LARGE = {"jsonrpc": "2.0", "id": 1_003, "result": {"tools": [], "a": "a" * MESSAGE_LIMIT}}


def responds_with(
    response: HttpResponse, method: str = "tools/list"
) -> Callable[[Mapping[str, Any]], HttpResponse]:
    """Return the behaviour of a correct server, but for the requests of a method."""
    return lambda message: (
        response if message.get("method") == method and "id" in message else response_to(message)
    )


async def faults_of(
    respond: Callable[[Mapping[str, Any]], HttpResponse], *case: Any
) -> list[tuple[str, str, str]]:
    """Return kind, row and method of the faults that a case shows."""
    outcome, _ = await played_over_http(respond, list(case))
    return [(each.kind, each.row, each.method) for each in outcome.faults]


@pytest.mark.parametrize(
    "response", [EMPTY_STREAM, HttpResponse(), HttpResponse(202), HttpResponse(204)]
)
async def test_request_whose_exchange_ends_without_response_is_a_fault(
    autojump_clock: Any, response: HttpResponse
) -> None:
    assert ("row", "RPC-35", "tools/list") in await faults_of(responds_with(response), OPEN, LIST)


@pytest.mark.parametrize(
    ("revision", "method"), [(OLD, "ping"), (NEW, "server/discover")], ids=["old", "new"]
)
async def test_probe_whose_exchange_ends_without_response_is_a_fault(
    autojump_clock: Any, revision: str, method: str
) -> None:
    respond = responds_with(EMPTY_STREAM, method)
    found = await faults_of(respond, ("open", revision, "whole", "all"))
    assert ("row", "RPC-35", method) in found


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


@pytest.mark.parametrize("status", [404, 429, 503])
async def test_probe_that_is_rejected_with_a_status_is_no_fault(
    autojump_clock: Any, status: int
) -> None:
    assert await faults_of(responds_with(HttpResponse(status), "ping"), OPEN) == []


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


@pytest.mark.parametrize(("cuts", "found"), [(1, []), (2, [("hang", "RPC-35", "ping")])])
async def test_probe_that_is_cut_off_twice_is_a_hang(
    autojump_clock: Any, cuts: int, found: list[tuple[str, str, str]]
) -> None:
    left = cuts

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        nonlocal left
        if message.get("method") == "ping" and left:
            left -= 1
            return HttpResponse(is_cut=True)
        return response_to(message)

    assert await faults_of(respond, OPEN) == found
