"""Steps that send something, one step alone: what is sent, and what the session is made to note."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from mcp_trio.oracle.fuzz._sent_request import SentRequest
from mcp_trio.oracle.fuzz.play._play import Play, ToolNotAllowed
from mcp_trio.oracle.fuzz.play._request_steps import REQUEST_STEPS
from tests.trio_.oracle.fuzz.play.stub_play import StubSession, stub_call, stub_list, stub_play_of

WITH_BATCHES = "2025-03-26"
STATELESS = "2026-07-28"


class SendingSession(StubSession):
    """A session that notes its bytes, texts and parts, and drops or refuses batches if told."""

    is_dropping = False
    last_status = 200

    def add_request(self, message: dict[str, Any], *, is_plain: bool) -> SentRequest:
        request = SentRequest(message, is_plain=is_plain, is_bounded=True)
        self.requests.append(request)
        self.open[request.id] = request
        return request

    def drops(self, messages: list[dict[str, Any]]) -> bool:
        return self.is_dropping and bool(messages)

    async def send_text(self, text: str, headers: dict[str, str]) -> None:
        await trio.lowlevel.checkpoint()
        assert headers == {}
        self.sent.append(text)

    async def send_bytes(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append(data)

    async def send_parts(self, *args: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append(args)


def play_of(session: Any, **options: Any) -> Play:
    return Play(session, 2.0, **options)


# -- Batches ---------------------------------------------------------------------------------------

MEMBERS = [
    ["tools/list", "absent", "int"],
    ["notifications/x", {}, None],
    ["prompts/list", {"a": 1}, "int"],
    ["no member"],
]


async def test_batch_sends_its_members_as_one_text() -> None:
    """In a revision with batches its requests have the batch's number, and are open."""
    session = SendingSession(revision=WITH_BATCHES, requests=[stub_list(id=5)])
    await REQUEST_STEPS["batch"](play_of(session), MEMBERS)
    [text] = session.sent
    assert json.loads(text) == [
        {"jsonrpc": "2.0", "id": 1_001, "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "id": 1_002, "method": "prompts/list", "params": {"a": 1}},
    ]
    assert " " not in text
    added = session.requests[1:]
    assert [(each.id, each.batch, each.is_plain, each.is_dropped) for each in added] == [
        (1_001, 2, False, False),
        (1_002, 2, False, False),
    ]
    assert list(session.open) == [1_001, 1_002]
    assert session.last_sent == "batch"


async def test_batch_in_a_revision_without_batches_expects_no_responses() -> None:
    session = SendingSession(revision="2025-11-25", is_dropping=True)
    await REQUEST_STEPS["batch"](play_of(session), MEMBERS)
    assert len(json.loads(session.sent[0])) == 3
    assert session.requests == []


@pytest.mark.parametrize(
    ("transport", "status", "is_open"),
    [
        ("http", 200, True),
        ("http", 299, True),
        ("http", 300, False),
        ("http", 400, False),
        ("stdio", 400, True),
    ],
)
async def test_batch_that_is_rejected_over_http_has_no_open_requests(
    transport: str, status: int, is_open: bool
) -> None:
    session = SendingSession(revision=WITH_BATCHES, transport=transport, last_status=status)
    await REQUEST_STEPS["batch"](play_of(session), MEMBERS)
    assert bool(session.open) is is_open
    assert len(session.requests) == 2


async def test_batch_that_may_be_dropped_is_dropped_whole() -> None:
    session = SendingSession(revision=WITH_BATCHES, is_dropping=True)
    await REQUEST_STEPS["batch"](play_of(session), MEMBERS)
    assert [each.is_dropped for each in session.requests] == [True, True]


@pytest.mark.parametrize("id", [None, "int"])
async def test_batch_calls_no_tool_that_may_not_be_called(id: str | None) -> None:
    guard: Any = SimpleNamespace(allows_message=lambda message: message["method"] != "tools/call")
    session = SendingSession(revision=WITH_BATCHES)
    with pytest.raises(ToolNotAllowed):
        await REQUEST_STEPS["batch"](play_of(session, guard=guard), [["tools/call", {}, id]])
    assert session.sent == []


# -- Parts, bytes and responses --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "ends", "begins"),
    [
        (0, b"\xc3", b"\xa9"),
        (1, b"\xf0\x9f", b"\x8d\xb5"),
        (2, b"\\u0", b"069st"),
        (3, b"{", b'"jsonrpc"'),
        (4, b"}", b"}"),
        (6, b"\xc3", b"\xa9"),
    ],
)
async def test_parts_are_cut_within_characters_and_escapes(
    place: int, ends: bytes, begins: bytes
) -> None:
    session = SendingSession()
    await REQUEST_STEPS["parts"](play_of(session), "wait", place)
    [(body, message, how, cut)] = session.sent
    assert (json.loads(body), how) == (message, "wait")
    assert body[:cut].endswith(ends)
    assert body[cut:].startswith(begins)
    [request] = session.open.values()
    assert (request.method, request.is_plain) == ("tools/list", True)
    assert session.last_sent == "tools/list"


async def test_bytes_are_sent_as_they_are() -> None:
    session = SendingSession()
    await REQUEST_STEPS["mutate"](play_of(session), "\xe9\ud800")
    await REQUEST_STEPS["damage"](play_of(session), b"\xff")
    assert session.sent == [b"\xc3\xa9\xed\xa0\x80", b"\xff"]


async def test_response_to_no_request_is_sent_where_clients_respond() -> None:
    session = SendingSession()
    await REQUEST_STEPS["reply"](play_of(session), 7, {"result": {}})
    assert session.sent == [{"jsonrpc": "2.0", "id": 7, "result": {}}]
    assert session.last_sent == "a response"
    session = SendingSession(revision=STATELESS)
    await REQUEST_STEPS["reply"](play_of(session), 7, {"result": {}})
    assert (session.sent, session.last_sent) == ([], "before")


# -- Cancellation and checks -----------------------------------------------------------------------


async def test_cancellation_notes_what_was_open_and_overdue_before_it() -> None:
    calls = [stub_call(id=1, overdue=True), stub_call(id=2), stub_call(id=3, cancelled=True)]
    play = stub_play_of(*calls)
    await REQUEST_STEPS["cancel"](play, 3)
    assert [each.cancelled for each in calls] == [False, True, True]
    assert play.before_cancel == 3
    assert play.overdue_before_cancel == [calls[0]]
    [sent] = play.session.sent
    assert sent["params"]["requestId"] == 2


async def test_cancellation_of_nothing_or_of_the_handshake_sends_nothing() -> None:
    play = stub_play_of()
    await REQUEST_STEPS["cancel"](play, 0)
    handshake = stub_play_of(stub_call(method="initialize"))
    await REQUEST_STEPS["cancel"](handshake, 0)
    assert play.session.sent == handshake.session.sent == []
    await REQUEST_STEPS["cancel"](play, -1)  # of a request that was never sent
    [sent] = play.session.sent
    assert (sent["method"], sent["params"]) == ("notifications/cancelled", {"requestId": 1_001})


class NotingChecks:
    """Checks that change the arguments of a call, and note what they are given."""

    def __init__(self) -> None:
        self.noted: list[Any] = []

    async def prepare(self, session: Any, tool: str, arguments: Any) -> tuple[Any, dict[str, Any]]:
        await trio.lowlevel.checkpoint()
        return {**arguments, "b": tool}, {"handed": 1}

    def note_handed(self, request: SentRequest, handed: dict[str, Any]) -> None:
        self.noted.append((request.id, handed))

    def hand(self, *args: Any) -> None:
        self.noted.append(args)


async def test_checks_prepare_a_call_and_note_what_it_handed_on() -> None:
    checks: Any = NotingChecks()
    session = SendingSession()
    play = play_of(session, checks=checks)
    await REQUEST_STEPS["call"](play, "echo", {"a": 1})
    [sent] = session.sent
    assert sent["params"] == {"name": "echo", "arguments": {"a": 1, "b": "echo"}}
    await REQUEST_STEPS["hand"](play, "echo", "a", "x", 2)
    assert checks.noted == [(1_001, {"handed": 1}), (session, "echo", "a", "x", 2)]
    without = play_of(SendingSession())
    await REQUEST_STEPS["call"](without, "echo", {"a": 1})
    await REQUEST_STEPS["hand"](without, "echo", "a", "x", 2)
    [sent] = without.session.sent
    assert sent["params"]["arguments"] == {"a": 1}
