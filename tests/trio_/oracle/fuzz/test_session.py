"""A session of the fuzzer: its requests, what it keeps of the server, and which bytes are read."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core.trace import Finding, TraceLine, TruncatedMessage
from mcp_trio.oracle.fuzz import _session
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._interoperable_json import read_plain_request
from mcp_trio.oracle.fuzz._session import CUT_NOTE, MESSAGE_LIMIT, TargetSession
from mcp_trio.oracle.fuzz._shared_trace import MAX_KEPT, new_header
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
        (2**64 + 1, 2**64, True),
        (2**64, 2**64 + 1, False),
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


# -- A session by itself ---------------------------------------------------------------------------


class PlainSession(TargetSession):
    """A session with no more than every transport has."""

    async def send_text(self, text: str, message: Any) -> None:
        """Send nothing."""
        await trio.lowlevel.checkpoint()

    async def send_data(self, data: bytes) -> None:
        """Send nothing."""
        await trio.lowlevel.checkpoint()

    async def send_parts(self, body: bytes, message: Any, how: str, cut: int) -> None:
        """Send nothing."""

    async def disconnect(self) -> None:
        """Do nothing."""

    async def successor(self) -> TargetSession:
        """Return no other session."""
        return self

    async def fresh(self) -> TargetSession:
        """Return no other session."""
        return self

    async def aclose(self) -> None:
        """Do nothing."""


def plain_session(judge: Any = None, *, keep: bool = False) -> PlainSession:
    return PlainSession(new_header("client", "stdio", "server"), judge, keep=keep)


async def test_new_session_knows_nothing_of_its_server(autojump_clock: MockClock) -> None:
    """Each of these values is read before a step, or the server, sets it."""
    await trio.sleep(3)
    session = plain_session()
    for name in ("spent", "is_open", "is_second", "is_misled", "drops_some", "has_spoken",
                 "outlives_input", "is_busy", "may_be_busy"):  # fmt: skip
        assert getattr(session, name) is False, name
    for name in ("transport", "revision", "offers", "ended", "last_sent"):
        assert getattr(session, name) == "", name
    for name in ("answered", "vain_waits", "unread_errors", "messages", "played", "last_status"):
        assert getattr(session, name) == 0, name
    for name in ("lines", "recording", "cancelled_at", "exit_status", "longest_start"):
        assert getattr(session, name) is None, name
    for name in ("running", "notes", "steps", "quickest", "open", "requests", "asked", "updates",
                 "changers", "rounds", "tasks", "cursors"):  # fmt: skip
        assert not getattr(session, name), name
    assert (session.number, session.is_last_json, session.is_stateful) == (1, True, True)
    assert (session.began_at, session.opened_at) == (trio.current_time(), trio.current_time())
    assert session.call_times.longest == 10
    assert session.drops({}) is False
    assert plain_session(keep=True).lines == []


async def test_transport_without_more_has_no_process_and_no_second_client() -> None:
    session = plain_session()
    await session.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    await session.end_case()
    assert (session.describe(), session.stderr(), session.trouble()) == ("", b"", "")
    assert session.memory() == {}
    assert await session.cancel_exchange(session.requests[0]) is False
    assert await session.beside() is None


def test_limits_of_a_session_are_those_of_its_notes() -> None:
    assert MESSAGE_LIMIT == 4 * 1024 * 1024
    assert CUT_NOTE == "a message of more than 4 MiB was not judged"
    assert MAX_KEPT == 200
    assert _session.PART_INTERVAL < 0.1, "a case with parts may have many of them"


async def test_meta_is_whole_unless_a_step_says_otherwise() -> None:
    session = await silent_session()
    session.revision = NEW
    assert session.meta() == session.meta("whole")
    assert len(session.meta()) == 3


async def test_event_of_a_server_without_a_message_is_counted_as_none() -> None:
    session = plain_session()
    session.receive(TraceLine(t=0.0, sender="server", end="closed"))
    said(session, [1, {}, {}], 5)
    assert (session.messages, session.has_spoken) == (2, True)


async def test_session_with_what_may_still_run_is_busy() -> None:
    session = plain_session()
    session.cancelled_at = 0.0
    assert (session.is_busy, session.may_be_busy) == (False, True)
    session.cancelled_at = None
    session.running.add("tools/call nap")
    assert (session.is_busy, session.may_be_busy) == (True, True)


async def test_next_case_begins_without_what_belongs_to_the_last_one() -> None:
    session = await silent_session()
    await asked(session, "tools/list")
    said(session, {"jsonrpc": "2.0", "id": 5, "method": "roots/list"}, result(1), result(1))
    session.vain_waits, session.drops_some = 2, True
    session.cursors["tools/list"], session.tasks = ["c"], ["t"]
    assert session.asked
    session.begin_case()
    assert (session.requests, session.asked, session.take_faults()) == ([], [], [])
    assert (session.vain_waits, session.drops_some, session.played) == (0, False, 2)
    # What the server has handed out is of use in further cases.
    assert (session.cursors, session.tasks) == ({"tools/list": ["c"]}, ["t"])
    assert (session.answered, session.is_open) == (1, True)


@pytest.mark.parametrize(
    ("size", "is_noted"), [(MESSAGE_LIMIT, False), (MESSAGE_LIMIT + 1, True), (5, False)]
)
async def test_message_above_the_limit_is_noted_once(size: int, is_noted: bool) -> None:
    """A shorter one is whole: its end is the server's."""
    session = plain_session()
    for _ in range(2):
        session.receive(
            TraceLine(t=0.0, sender="server", raw="[", truncated=TruncatedMessage(size=size))
        )
    assert session.notes == [CUT_NOTE] * is_noted
    assert session.has_spoken
    session.receive(TraceLine(t=0.0, sender="server", raw="{}"))
    assert session.notes == [CUT_NOTE] * is_noted


class FoundBeforehand:
    """A judge that has the same findings about each line, and a recorder of lines."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings
        self.recorded: list[TraceLine] = []

    def receive(self, line: TraceLine) -> tuple[Finding, ...]:
        """Return the findings."""
        return self.findings

    def record(self, line: TraceLine) -> None:
        """Keep a line."""
        self.recorded.append(line)


def finding(row: str = "RPC-7", *lines: int, **members: Any) -> Finding:
    given = {"level": "MUST", "side": "server", "sentence": f"it broke {row}", "link": "l"}
    return Finding(row=row, lines=lines or (2,), conversation=1, **{**given, **members})


@pytest.mark.parametrize("keep", [False, True])
async def test_only_certain_obligations_of_the_server_are_its_faults(keep: bool) -> None:
    """The line is recorded in any case, and kept if it's wanted."""
    judge = FoundBeforehand(
        finding("RPC-1"),
        finding("RPC-2", is_certain=False),
        finding("RPC-3", side="client"),
        finding("RPC-4", level="SHOULD"),
        finding("RPC-5", level="MAY"),
    )
    session = plain_session(judge, keep=keep)
    session.recording = judge  # type: ignore[assignment]
    lines = [TraceLine(t=0.0, sender="client", raw="{}"), TraceLine(t=1.0, kind="exit")]
    for each in lines:
        assert [one.row for one in session.record(each)] == ["RPC-1", "RPC-4"]
    assert judge.recorded == lines
    assert session.lines == (lines if keep else None)


async def test_fault_says_how_many_cases_ago_it_was_shown() -> None:
    """By the first of its lines. Before the second case there was none that is another one."""
    session = plain_session(FoundBeforehand())
    found = []
    for _ in range(3):
        session.begin_case()
        session.record(TraceLine(t=0.0, sender="client", raw="{}"))
    # The header is line 1, and each case has one line.
    for number in (1, 2, 3, 4):
        session.add_findings([finding("RPC-7", 4, number)], f"m{number}", "{}")
        found += [each.cases_back for each in session.take_faults()]
    assert found == [2, 2, 1, 0]


@pytest.mark.parametrize(
    ("received", "sent"),
    [
        ('{"id": 1, "result": {}}', "tools/list"),
        ('{"id": 2, "result": {}}', ""),
        *((text, "") for text in ("", "{", "[]", "5", "{}", "[" * 100_000)),
    ],
)
async def test_fault_has_the_request_to_which_its_message_is_a_response(
    received: str, sent: str
) -> None:
    session = plain_session()
    await asked(session, "tools/list")
    session.add_findings([finding()], "ping", received)
    (fault,) = session.take_faults()
    assert (fault.kind, fault.method, fault.received) == ("row", "ping", received)
    assert (json.loads(fault.sent)["method"] if fault.sent else "") == sent
    assert not fault.is_cancellation_error
    assert not session.has_fault(fault.cause)


@pytest.mark.parametrize(
    ("message", "is_open", "state"),
    [
        # Whether it's plain, bounded, and sent after the opening.
        ({"method": "ping"}, True, (True, True, True)),
        ({"method": "ping"}, False, (True, True, False)),
        ({"method": "initialize"}, False, (True, True, True)),
        ({"method": "tools/call"}, True, (True, False, True)),
        ({"method": "tools/call", "params": {}}, True, (True, False, True)),
        ({"method": "tools/call", "params": []}, True, (False, True, True)),
        ({"method": "ping", "acme": 1}, True, (False, True, True)),
        ({}, True, (True, True, True)),
    ],
)
async def test_request_is_known_with_the_state_in_which_it_was_sent(
    message: Json, is_open: bool, state: tuple[bool, bool, bool], autojump_clock: MockClock
) -> None:
    session = plain_session()
    session.is_open = is_open
    session.drops = lambda each: each.get("method") == "ping"
    await trio.sleep(1)
    found = session.add_request({"id": 1, **message}, is_plain=True)
    assert (found.is_plain, found.is_bounded, found.was_open) == state
    assert found.is_dropped is (message.get("method") == "ping")
    assert found.sent_at == trio.current_time()
    assert (session.open, session.requests) == ({1: found}, [found])
    assert not session.add_request({"id": 2, **message}, is_plain=False).is_plain


async def test_error_without_an_id_before_a_message_belongs_to_none() -> None:
    session = plain_session(FoundBeforehand(finding()))
    said(session, {"id": None, "error": {}})
    assert [each.method for each in session.take_faults()] == [""]
    await session.send({"jsonrpc": "2.0", "method": "notifications/a"})
    assert session.last_sent == ""


async def test_quickest_successes_are_kept_of_as_many_names_as_the_limit() -> None:
    """A name that is known is kept up to date."""
    session = plain_session()
    for number in range(MAX_KEPT + 1):
        await asked(session, "tools/call", number, name=f"t{number}")
        said(session, result(number, content=[]))
    assert list(session.quickest) == [f"tools/call t{number}" for number in range(MAX_KEPT)]
    session.quickest["tools/call t5"] = session.quickest["tools/call t5"]._replace(seconds=9.0)
    await asked(session, "tools/call", "again", name="t5")
    said(session, result("again", content=[]))
    assert session.quickest["tools/call t5"].request.id == "again"


async def test_call_of_a_starting_process_takes_its_time_from_the_opening(
    autojump_clock: MockClock,
) -> None:
    session = plain_session()
    await asked(session, "tools/call", name="nap")
    await trio.sleep(2)
    session.opened_at = trio.current_time()
    await trio.sleep(1)
    said(session, result(1, content=[]))
    assert session.quickest["tools/call nap"].seconds == pytest.approx(1)
    assert session.call_times.timeout("tools/call nap") == pytest.approx(3)


@pytest.mark.parametrize(
    "change",
    [
        lambda session: session.wake(),
        lambda session: session.excuse_requests(),
        lambda session: session.end("over"),
        lambda session: said(session, note("message")),
    ],
)
async def test_each_change_wakes_what_waits_for_one(change: Any, autojump_clock: MockClock) -> None:
    session, woken = plain_session(), []
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            woken.append(await session.wait_changed(trio.current_time() + 5))

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        change(session)
    assert woken == [True]
    # One that came before isn't waited for again.
    assert await session.wait_changed(trio.current_time() + 5) is bool(session.ended)


async def test_wait_without_a_deadline_is_an_hour(autojump_clock: MockClock) -> None:
    """No wait is without an end, and a floating-point infinity is no time of the clock."""
    session, began = plain_session(), trio.current_time()
    assert not await session.wait_changed(math.inf)
    assert trio.current_time() - began == pytest.approx(3600)


async def test_time_of_a_line_has_microseconds_and_is_not_before_the_beginning(
    autojump_clock: MockClock,
) -> None:
    session = plain_session()
    session.began_at = trio.current_time() + 5
    assert session.time() == 0
    session.began_at = trio.current_time() - 1 / 3
    assert session.time() == 0.333333


async def test_second_client_counts_its_own_messages() -> None:
    first, second = plain_session(), plain_session()
    await asked(first, "ping")
    said(first, result(1))
    second.follow(first)
    assert (second.requests, second.messages) == (first.requests, 1)
    second.stand_beside(first)
    assert (second.requests, second.messages, second.is_second) == ([], 0, True)
    assert (first.take_messages(), second.take_messages()) == (1, 0)


async def test_faults_are_put_back_with_others_that_came_since() -> None:
    session = plain_session()
    one, two = (TargetFault(kind="row", row=each, variant=each) for each in ("A", "B"))
    other = TargetFault(kind="row", row="A", variant="C")
    session.add_fault(one)
    taken = session.take_faults()
    session.add_fault(two)
    session.add_fault(other)
    session.put_faults([*taken, two])
    assert session.take_faults() == [two, other, one]
    session.put_faults([one])
    assert session.has_fault(one.cause)
    assert not session.has_fault(two.cause)
