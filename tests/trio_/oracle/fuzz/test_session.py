"""A session of the fuzzer: its requests, what it keeps of the server, and which bytes are read."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._interoperable_json import read_plain_request
from mcp_trio.oracle.fuzz._shared_trace import MAX_KEPT
from tests.trio_.oracle.fuzz.memory_target import (
    NEW,
    OLD,
    MemorySession,
    MemoryTarget,
    answers,
    same_each_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trio.testing import MockClock

    from mcp_trio.oracle.fuzz._session import TargetSession


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', True),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":82}', True),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","extra":{}}', True),
        (b'{"jsonrpc":"2.0",\r"id":1,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}', False),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"\\ud800"}', False),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 90 + b"]" * 90 + b"}",
            False,
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', False),
        (b'{"jsonrpc":"2.0","method":"ping"}', False),
        (b"[]", False),
        (b"", False),
    ],
)
def test_request_that_each_server_reads_is_plain(line: bytes, plain: bool) -> None:
    assert (read_plain_request(line) is not None) is plain


def test_faults_of_one_cause_can_have_two_rows() -> None:
    one = TargetFault(kind="row", row="RPC-8", method="a")
    other = TargetFault(kind="row", row="RPC-14", method="b")
    assert one.cause == other.cause
    assert one.key != other.key


def test_reading_of_the_text_is_advice() -> None:
    assert TargetFault(kind="row", row="LIFE-10", level="reading").is_advice
    assert TargetFault(kind="row", row="MRTR-13", is_certain=False).is_advice
    assert not TargetFault(kind="row", row="RPC-7").is_advice


async def test_further_session_continues_the_trace_with_the_next_number() -> None:
    """The requests of the case and the times of the server's tools go with it."""
    first = await MemoryTarget(lambda message, start: answers(message)).open(keep=True)
    first.drops, first.messages, first.is_second = bool, 3, True
    second = await first.successor()
    third = await second.successor()
    assert [each.number for each in (first, second, third)] == [1, 2, 3]
    for name in ("judge", "lines", "began_at", "recording", "requests", "drops", "call_times"):
        assert getattr(third, name) is getattr(first, name), name
    assert (third.messages, third.is_second) == (3, True)


def served_calls(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}


async def test_quickest_success_of_a_tool_is_kept(autojump_clock: MockClock) -> None:
    """It is sent again after a slow call: see `serves_calls_again`."""
    target = MemoryTarget(same_each_time(served_calls))
    session = await target.open()
    for id, seconds in enumerate((2.0, 1.0, 3.0)):
        target.times = {"tools/call": seconds}
        params = {"name": "nap", "_meta": None}
        await session.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        await session.wait_changed(math.inf)
    (kept,) = session.quickest.values()
    assert (kept.request.id, kept.request.name, kept.request.answer) == (1, "tools/call nap", None)
    assert kept.seconds == pytest.approx(1.0)
    await session.aclose()


# -- What a session knows of its conversation ------------------------------------------------------

Json = dict[str, Any]


async def silent_session() -> MemorySession:
    """Return a session with a server that answers nothing. The test plays the server."""
    session = await MemoryTarget(lambda message, start: iter(())).open(keep=True)
    session.revision, session.is_open = OLD, True
    session.begin_case()
    return session


async def asked(session: TargetSession, method: str, id: int | str = 1, **params: Any) -> None:
    await session.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def said(session: TargetSession, *messages: Any) -> None:
    for each in messages:
        session.receive(TraceLine(t=0.0, sender="server", raw=json.dumps(each)))


def note(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def result(id: int | str, **members: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "result": members}


@pytest.mark.parametrize(
    ("method", "params", "changers"),
    [
        ("tools/call", {"name": "add"}, ["add"]),
        ("tools/call", {}, []),
        ("prompts/get", {"name": "add"}, []),
    ],
)
async def test_tool_before_a_change_may_have_made_it(
    method: str, params: Json, changers: list[str]
) -> None:
    """Only the last call before a change counts, and only in its case."""
    session = await silent_session()
    said(session, note("tools/list_changed"))
    assert session.changers == []
    await asked(session, method, **params)
    await asked(session, "tools/list", 2)
    said(session, note("tools/list_changed"), note("resources/updated", uri="a:b"))
    assert session.changers == changers
    said(session, note("message", level="info"))
    assert session.updates == [{"uri": "a:b"}]
    await asked(session, "tools/call", 3, name="sub")
    said(session, note("resources/list_changed"), note("prompts/list_changed"))
    assert session.changers == [*changers, "sub"]
    session.begin_case()
    assert (session.changers, session.updates, session.requests) == ([], [], [])


async def test_messages_of_a_server_are_kept_up_to_a_limit() -> None:
    """The last ones are the most useful."""
    session = await silent_session()
    more = range(MAX_KEPT + 5)
    for number in more:
        await asked(session, "tools/list", number)
        members: Json = {"nextCursor": f"c{number}", "task": {"taskId": f"t{number}"}}
        said(session, result(number, resultType="input_required", **members))
        said(session, note("resources/updated", uri=f"a:{number}"))
        said(session, {"jsonrpc": "2.0", "id": number, "method": "roots/list"})
    last = more[-MAX_KEPT:]
    assert session.cursors == {"tools/list": [f"c{number}" for number in last]}
    assert session.tasks == [f"t{number}" for number in last]
    assert [each.id for each in session.rounds] == list(last)
    assert [each["uri"] for each in session.updates] == [f"a:{number}" for number in last]
    assert [each["id"] for each in session.asked] == list(last)
    assert len(session.take_faults()) <= MAX_KEPT


@pytest.mark.parametrize(
    ("members", "tasks", "cursors"),
    [
        ({"taskId": "a"}, ["a"], {}),
        ({"task": {"taskId": "a"}}, ["a"], {}),
        ({"task": {"taskId": 5}}, [], {}),
        ({"task": 5, "taskId": "a"}, [], {}),
        ({"nextCursor": ""}, [], {"tasks/list": [""]}),
        ({"nextCursor": 5}, [], {}),
    ],
)
async def test_ids_and_cursors_are_texts(
    members: Json, tasks: list[str], cursors: dict[str, list[str]]
) -> None:
    session = await silent_session()
    for id in (1, 2):
        await asked(session, "tasks/list", id)
    said(session, result(1, **members))
    assert (session.tasks, session.cursors) == (tasks, cursors)
    said(session, result(2, **members))
    assert session.tasks == tasks  # once each


@pytest.mark.parametrize(
    ("id", "received", "is_answered"),
    [
        (2**53 + 1, 2**53, True),  # as a double
        (2**53 + 1, 2**53 + 4, False),
        (-(2**60) - 1, -(2**60), True),
        (2**53 - 1, 2**53 - 2, False),
        (2**65 + 1, 2**65, False),
        ("9007199254740993", 2**53, False),
        (7, "7", False),
        (7, 7, True),
    ],
)
async def test_response_has_the_id_or_its_double(
    id: int | str, received: Any, is_answered: bool
) -> None:
    session = await silent_session()
    await asked(session, "tools/list", id)
    session.vain_waits = 1
    said(session, result(received))
    [request] = session.requests
    assert (request.answer is not None) is is_answered
    assert (request.responses, session.answered) == (is_answered, is_answered)
    assert bool(session.open) is not is_answered
    assert session.waits() is not is_answered
    assert session.vain_waits == (not is_answered)


async def test_second_response_is_counted_and_belongs_to_its_request() -> None:
    session = await silent_session()
    await asked(session, "tools/list")
    said(session, note("message", level="info"), result(1, tools=[]), result(1, tools=[]))
    [request] = session.requests
    assert (request.responses, request.answered_at, session.take_messages()) == (2, 2, 3)
    assert session.take_messages() == 0
    found = [each for each in session.take_faults() if each.row == "RPC-7"]
    assert [each.method for each in found] == ["tools/list"]
    assert json.loads(found[0].sent) == request.message
    for _ in range(2):
        session.put_faults(found)
    assert session.has_fault(found[0].cause)
    assert session.take_faults() == found


async def test_error_without_an_id_belongs_to_what_was_sent_last() -> None:
    session = await silent_session()
    await session.send_bytes(b"junk")
    said(session, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}})
    await asked(session, "tools/list")
    assert (session.unread_errors, session.requests[0].unread) == (1, 1)
    assert session.last_sent == "tools/list"


@pytest.mark.parametrize(
    ("data", "is_json", "last", "requests"),
    [
        (b"{}", True, "bytes", 0),
        (b"{}\n{", False, "bytes", 0),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping"}', True, "ping", 1),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping"}\n[]', True, "ping", 1),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping"}\n' * 2 + b"[]", True, "ping", 1),
        (b"[" * 100_000, False, "bytes", 0),
    ],
)
async def test_bytes_may_have_requests(
    data: bytes, is_json: bool, last: str, requests: int
) -> None:
    session = await silent_session()
    await session.send_bytes(data)
    assert (session.is_last_json, session.last_sent) == (is_json, last)
    assert len(session.requests) == requests
    assert not any(each.is_plain for each in session.requests)


async def test_method_of_bytes_that_some_read_is_known_for_their_response() -> None:
    """Only the last ones are kept."""
    session = await silent_session()
    for id in range(MAX_KEPT + 1):
        await session.send_bytes(b'{"id":%d,"method":"acme/%d"}' % (id, id))
    said(session, *({"id": id, "result": 5} for id in (0, 1, MAX_KEPT)))
    methods = {each.method for each in session.take_faults()}
    assert methods == {"", "acme/1", f"acme/{MAX_KEPT}"}


@pytest.mark.parametrize(
    ("kind", "ids"),
    [("int", [1001, 1002]), ("digits", ["1001", "1002"]), ("text", ["id-1001", "id-1002"])],
)
async def test_new_id_was_not_used_before(kind: str, ids: list[int | str]) -> None:
    session = await silent_session()
    assert [session.new_id(kind) for _ in range(2)] == ids
    assert session.new_id(["old"]) == "old"
    assert session.new_token() == 1003
    second = await silent_session()
    second.stand_beside(session)
    assert (second.new_token(), second.new_id("int")) == ("second-1004", 1005)


@pytest.mark.parametrize(
    ("revision", "how", "members"),
    [
        (OLD, "whole", set()),
        (NEW, "absent", set()),
        (NEW, "bare", {"protocolVersion", "clientInfo"}),
        (NEW, "whole", {"protocolVersion", "clientInfo", "clientCapabilities"}),
        (NEW, "old", {"protocolVersion", "clientInfo", "clientCapabilities"}),
    ],
)
async def test_meta_is_whole_or_lacks_something(revision: str, how: str, members: set[str]) -> None:
    session = await silent_session()
    session.revision = revision
    found = session.meta(how)
    assert found.keys() == {f"io.modelcontextprotocol/{each}" for each in members}
    if members:
        version = found["io.modelcontextprotocol/protocolVersion"]
        assert version == ("1999-12-31" if how == "old" else revision)


@pytest.mark.parametrize(
    ("offers", "revision", "members"),
    [
        ("", OLD, {"roots", "sampling", "elicitation"}),
        ("all", OLD, {"roots", "sampling", "elicitation", "tasks"}),
        ("all", NEW, {"roots", "sampling", "elicitation", "extensions"}),
        ("all", "2025-06-18", {"roots", "sampling", "elicitation"}),
        ("none", NEW, set()),
        ("acme", NEW, set()),
    ],
)
async def test_client_declares_what_it_offers(
    offers: str, revision: str, members: set[str]
) -> None:
    session = await silent_session()
    session.offers, session.revision = offers, revision
    assert session.capabilities().keys() == members
    params = session.initialize_params("2025-06-18")
    assert params["capabilities"].keys() == members
    assert params["protocolVersion"] == "2025-06-18"


async def test_request_after_a_cancelled_call_shows_that_it_no_longer_runs(
    autojump_clock: MockClock,
) -> None:
    session = await silent_session()
    await asked(session, "tools/list", 1)
    await trio.sleep(1)
    session.cancelled_at = trio.current_time()
    said(session, result(1))
    assert session.may_be_busy
    await trio.sleep(1)
    await asked(session, "tools/list", 2)
    said(session, result(2))
    assert not session.may_be_busy


@pytest.mark.parametrize("members", [{"isError": True}, {"isError": False}, {}])
async def test_only_a_success_tells_how_quick_a_tool_is(members: Json) -> None:
    session = await silent_session()
    await asked(session, "tools/call", 1, name="nap")
    await asked(session, "tools/list", 2)
    said(session, result(1, content=[], **members), result(2, tools=[]))
    assert list(session.quickest) == ([] if members.get("isError") else ["tools/call nap"])


async def test_fault_of_the_second_client_says_so_and_is_kept_once() -> None:
    session = await silent_session()
    session.is_second = True
    for _ in range(2):
        for number in range(MAX_KEPT + 5):
            session.add_fault(TargetFault(kind="row", row="A", detail=f"{number}", sentence="no"))
    found = session.take_faults()
    assert len(found) == MAX_KEPT
    assert {each.sentence for each in found} == {"no, for the second client"}


async def test_lost_responses_are_expected_no_more() -> None:
    session = await silent_session()
    await asked(session, "tools/list")
    session.excuse_requests()
    assert not session.waits()
    assert (session.requests[0].loss, session.open) == ("excused", {})


async def test_wait_ends_at_the_end_of_the_conversation(autojump_clock: MockClock) -> None:
    session = await silent_session()
    began = trio.current_time()
    assert not await session.wait_changed(began + 1.5)
    assert trio.current_time() == began + 1.5
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.wait_changed, math.inf)
        await trio.testing.wait_all_tasks_blocked()
        session.end("first")
        session.end("second")
    assert await session.wait_changed(0.0)
    assert session.ended == "first"
    assert session.time() == 1.5
