"""The session of a client: what it adds to the judge's findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._revisions import META
from mcp_trio.oracle.fuzz._shared_trace import MAX_KEPT, new_header
from mcp_trio.oracle.fuzz.client._client_session import ClientSession
from mcp_trio.oracle.fuzz.client._script import MAX_FOLLOWED
from mcp_trio.oracle.fuzz.client._wrong_answers import Action

if TYPE_CHECKING:
    from trio.testing import MockClock

OLD, NEW = "2025-11-25", "2026-07-28"
INFO = {"name": "c", "version": "1"}
META_OF_NEW = {
    META + "protocolVersion": NEW,
    META + "clientCapabilities": {},
    META + "clientInfo": INFO,
}


REFUSED = ", which the client has to refuse, was not answered within 2 s"


class StayingLink:
    """A connection that stays."""

    has_ended = False

    async def close(self) -> None:
        """Do nothing."""


class HandPlayedClient:
    """A client whose messages the test sends by hand, with a server that follows steps."""

    def __init__(self, revision: str, *steps: tuple[Any, ...]) -> None:
        self.session = ClientSession(new_header("server", "stdio", "client"), keep=True)
        self.session.begin_case([("serve", [revision], ["sum"]), *steps])
        self._revision = revision
        self._ids = 0

    def request(self, method: str, **params: Any) -> Any:
        """Send a request, and return the last message of the server."""
        self._ids += 1
        if self._revision == NEW:
            params["_meta"] = META_OF_NEW
        message = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        line = TraceLine(t=0.0, sender="client", raw=json.dumps(message))
        [reaction] = self.session.receive(line)
        self.actions = reaction.actions
        said = [each.data.decode() for each in self.actions if each.kind == "send"]
        for raw in said:
            self.session.record(TraceLine(t=0.0, sender="server", raw=raw))
        return json.loads(said[-1])

    def open(self) -> None:
        if self._revision == NEW:
            self.request("server/discover")
        else:
            self.request("initialize", protocolVersion=OLD, capabilities={}, clientInfo=INFO)
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            self.session.receive(TraceLine(t=0.0, sender="client", raw=json.dumps(note)))


async def test_waiter_goes_on_as_soon_as_something_happens(autojump_clock: MockClock) -> None:
    session = HandPlayedClient(OLD).session
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.wait_changed, 60.0)
        await trio.sleep(1.0)
        session.notify()
    assert trio.current_time() - began == pytest.approx(1.0)
    await session.wait_changed(60.0)
    assert trio.current_time() - began == pytest.approx(61.0)


async def test_client_that_reads_pages_without_end_is_advice() -> None:
    client = HandPlayedClient(OLD, ("always", "cursor", 1, 0))
    client.open()
    cursor: dict[str, str] = {}
    while not client.session.is_over_limits:
        cursor = {"cursor": client.request("tools/list", **cursor)["result"]["nextCursor"]}
    client.session.report_endless()
    [fault] = client.session.take_faults()
    assert (fault.row, fault.method, fault.is_advice) == ("endless", "tools/list", True)
    assert fault.sentence == f"{MAX_FOLLOWED} pages of tools/list were read, and the client goes on"


async def test_client_that_reads_few_pages_is_not_at_fault() -> None:
    client = HandPlayedClient(OLD, ("always", "cursor", 1, 1))
    client.open()
    for _ in range(MAX_FOLLOWED):
        client.request("tools/list")
    assert not client.session.is_over_limits
    client.session.report_endless()
    assert client.session.take_faults() == []


async def test_endless_client_with_a_fault_is_reported_for_that() -> None:
    client = HandPlayedClient(OLD, ("always", "cursor", 1, 0))
    client.open()
    for _ in range(MAX_FOLLOWED + 1):
        client.request("tools/list")
    client.session.report_silence("ping", 1.0)
    client.session.report_endless()
    assert [fault.row for fault in client.session.take_faults()] == ["PING-2"]


@pytest.mark.parametrize(
    ("revision", "cursors", "then", "rows"),
    [
        (NEW, [None, "second", "third"], "resources/list", ["PAGE-4"]),
        (NEW, [None, "second", "third", ""], "resources/list", []),
        (NEW, [None, "second"], "resources/list", []),  # it may have found what it wanted
        (NEW, [None, "second", "third"], None, []),  # it may have no time left
        (OLD, [None, "second", "third"], "resources/list", []),
    ],
)
async def test_empty_cursor_is_no_end_for_a_client_that_reads_on(
    revision: str, cursors: list[str | None], then: str | None, rows: list[str]
) -> None:
    client = HandPlayedClient(revision, ("always", "page", 1, 1))
    client.open()
    for cursor in cursors:
        client.request("tools/list", **({} if cursor is None else {"cursor": cursor}))
    if then is not None:
        client.request(then)
    client.session.report_skipped()
    assert [fault.row for fault in client.session.take_faults()] == rows


@pytest.mark.parametrize(
    ("step", "declared", "row"),
    [
        (("push", "ping", 1, 0), {}, "PING-2"),
        (("push", "unknown-request", 1, 0), {}, "RPC-35"),
        (("push", "sampling", 1, 0), {}, "RPC-35"),
        (("push", "sampling", 1, 0), {"sampling": {}}, None),  # its model takes time
    ],
)
async def test_question_that_needs_no_user_is_answered_in_time(
    step: tuple[Any, ...], declared: dict[str, Any], row: str | None, autojump_clock: MockClock
) -> None:
    client = HandPlayedClient(OLD, step)
    client.open()
    client.session.server.declared = declared
    client.request("tools/list")
    began = trio.current_time()
    for each in client.actions:
        if each.kind == "await":
            await client.session.wait_for_response(each, 2.0, StayingLink())
    assert (trio.current_time() - began >= 2) is (row is not None)
    assert [fault.row for fault in client.session.take_faults()] == ([row] if row else [])


async def test_client_that_leaves_owes_no_response(autojump_clock: MockClock) -> None:
    client = HandPlayedClient(OLD, ("push", "ping", 1, 0))
    client.open()
    client.request("tools/list")
    link = StayingLink()
    [wait] = [each for each in client.actions if each.kind == "await"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.session.wait_for_response, wait, 2.0, link)
        await trio.sleep(1)
        link.has_ended = True
    assert trio.current_time() < 2
    assert client.session.take_faults() == []


@pytest.mark.parametrize("id", [5_001, "5001"])
async def test_response_with_another_id_is_one_fault(
    id: int | str, autojump_clock: MockClock
) -> None:
    client = HandPlayedClient(OLD, ("push", "ping", 1, 0))
    client.open()
    client.request("tools/list")
    response: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "result": {}}
    client.session.receive(TraceLine(t=0.0, sender="client", raw=json.dumps(response)))
    [wait] = [each for each in client.actions if each.kind == "await"]
    await client.session.wait_for_response(wait, 2.0, StayingLink())
    found = [fault.row for fault in client.session.take_faults()]
    assert found == ([] if id == wait.id else ["RPC-7"])


# -- What the session notes ------------------------------------------------------------------------


def received(session: ClientSession, message: Any) -> list[Any]:
    raw = message if isinstance(message, str) else json.dumps(message)
    return session.receive(TraceLine(t=0.0, sender="client", raw=raw))


def fault(row: str, method: str = "") -> TargetFault:
    return TargetFault(kind="row", row=row, method=method)


async def test_faults_are_kept_once_for_each_key_and_up_to_a_limit() -> None:
    session = HandPlayedClient(OLD).session
    for _ in range(2):
        for number in range(MAX_KEPT + 5):
            session.add_fault(fault("RPC-7", f"acme/{number}"))
    assert session.has_fault(fault("RPC-7").cause)
    assert not session.has_fault(fault("ERR-1").cause)
    found = session.take_faults()
    assert [each.method for each in found] == [f"acme/{number}" for number in range(MAX_KEPT)]
    assert session.take_faults() == []
    for number in range(MAX_KEPT + 5):
        session.note(str(number))
    assert session.notes == [str(number) for number in range(MAX_KEPT)]


@pytest.mark.parametrize(("transport", "revision"), [("stdio", ""), ("http", OLD)])
async def test_connection_begins_anew_unless_it_is_one_of_http(
    transport: str, revision: str
) -> None:
    session = ClientSession(new_header("server", transport, "client"), keep=False)
    session.begin_case([("serve", [OLD], [])])
    assert session.begin_conversation() == 1
    message = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": INFO}
    received(session, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": message})
    assert session.begin_conversation() == 2
    assert session.server.revision == revision
    assert session.lines is None


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_lines_are_kept_and_steps_of_http_are_for_http(transport: str) -> None:
    session = ClientSession(new_header("server", transport, "client"), keep=True)
    session.begin_case([("serve", [OLD], []), ("http", "status", 0, 0)])
    [reaction] = received(session, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert bool(reaction.http) is (transport == "http")
    assert session.lines is not None
    assert [line.sender for line in session.lines] == ["client"]


async def test_request_is_waiting_until_its_response_is_sent() -> None:
    """A subscription has none, and a message without a valid id needs none."""
    session = HandPlayedClient(OLD).session
    received(session, {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    received(session, {"jsonrpc": "2.0", "id": "a", "method": "ping"})
    received(session, {"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen"})
    received(session, {"jsonrpc": "2.0", "id": 1.5, "method": "ping"})
    received(session, {"jsonrpc": "2.0", "id": 5, "result": {}})
    assert session.waiting == {1, "a"}
    session.note_sent(b'{"jsonrpc":"2.0","id":"a","method":"roots/list"}')
    session.note_sent(b'{"jsonrpc":"2.0","id":{},"result":{}}')
    assert session.waiting == {1, "a"}
    session.note_sent(b'[{"jsonrpc":"2.0","id":"a","result":{}}]')
    assert session.waiting == {1}
    session.note_sent(b'{"jsonrpc":"2.0","id":1,"error":{}}' + b" " * 5_000_000)
    assert session.waiting == {1}  # too long to be read
    assert session.messages == 5


@pytest.mark.parametrize(
    "raw", ["", "null", "{", "[" * 100_000, "[5]", '{"id": NaN}', '{"id": Infinity, "method": "a"}']
)
async def test_line_without_a_message_has_no_reaction(raw: str) -> None:
    session = HandPlayedClient(OLD).session
    assert received(session, raw) == []
    assert session.messages == 0


async def test_each_message_of_a_batch_has_its_reaction() -> None:
    session = HandPlayedClient("2025-03-26").session
    batch = [{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in (1, 2)]
    reactions = received(session, [*batch, 5])
    assert [each.place for each in reactions] == [0, 1]
    assert session.messages == 2


async def test_finding_names_the_method_of_its_line_or_of_the_question() -> None:
    """A response has the method of the server's request, and junk the last method."""
    client = HandPlayedClient(OLD, ("push", "roots", 1, 0))
    client.open()
    client.request("tools/list")
    [wait] = [each for each in client.actions if each.kind == "await"]
    client.session.take_faults()
    received(client.session, {"jsonrpc": "2.0", "id": wait.id, "result": {"roots": 5}})
    received(client.session, {"jsonrpc": "2.0", "id": 424_242, "result": {}})
    received(client.session, {"jsonrpc": "1.0", "id": 9, "method": "tools/call"})
    methods = [(each.row, each.method) for each in client.session.take_faults()]
    assert {("ROOT-2", "roots/list"), ("RPC-7", ""), ("RPC-1", "tools/call")} <= set(methods)
    received(client.session, "{")
    assert {each.method for each in client.session.take_faults()} == {"tools/call"}


@pytest.mark.parametrize(
    ("requests", "size", "is_over"),
    [(300, 0, False), (301, 0, True), (1, 64 << 20, True), (1, (64 << 20) - 100, False)],
)
async def test_client_has_limits(requests: int, size: int, is_over: bool) -> None:
    """Messages above them are judged, but get no response."""
    session = HandPlayedClient(OLD).session
    for id in range(requests - 1):
        session.server.receive({"jsonrpc": "2.0", "id": id, "method": "ping"})
    session._received = size  # a line of so many bytes would take long
    received(session, {"jsonrpc": "2.0", "id": -1, "method": "ping"})
    assert session.is_over_limits is is_over
    assert bool(received(session, {"jsonrpc": "2.0", "id": -2, "method": "ping"})) is not is_over


@pytest.mark.parametrize(
    ("status", "stderr", "text"),
    [
        (None, b"", ""),
        (3, b"", " (exit status 3)"),
        (None, b"first\nlast\n", ": last"),
        (1, b"ValueError: no\nbye \xff\x1b\n", " (exit status 1): ValueError: no"),
        (None, b"x" * 500, ": " + "x" * 200),
        (None, b"a\x1b[2J", ": a\\u001b[2J"),
    ],
)
async def test_end_of_a_client_is_its_status_and_its_error(
    status: int | None, stderr: bytes, text: str
) -> None:
    session = HandPlayedClient(OLD).session
    session.exit_status, session.stderr = status, stderr
    assert session.describe() == text


@pytest.mark.parametrize(
    ("disturbed", "method", "text"),
    [
        (set(), "ping", "a ping of the server was not answered within 2 s"),
        ({"tasks", "pages", "rounds"}, "ping", "a ping of the server was not answered within 2 s"),
        (set(), "acme/a", f"acme/a{REFUSED}"),
        (
            set(),
            "",
            f"a request without a method{REFUSED}",
        ),
        ({"pairing"}, "ping", None),
        ({"handshake", "tasks"}, "acme/a", None),
    ],
)
async def test_silence_is_a_fault_unless_the_case_can_be_the_reason(
    disturbed: set[str], method: str, text: str | None
) -> None:
    client = HandPlayedClient(OLD)
    client.open()
    client.session.server.disturbed |= disturbed
    client.session.report_silence(method, 2.0)
    found = client.session.take_faults()
    assert [each.sentence for each in found] == ([] if text is None else [text])
    assert [each.row for each in found] == (
        [] if text is None else ["PING-2" if method == "ping" else "RPC-35"]
    )
    assert all(OLD in each.link and each.level == "MUST" for each in found)


@pytest.mark.parametrize(
    ("seconds", "exit_status", "is_closed", "waited", "is_fault"),
    [
        (3_600.0, None, False, 2.0, True),
        (0.2, None, False, 0.2, False),  # code of the client's author
        (3_600.0, 1, False, 0.0, False),
        (3_600.0, None, True, 0.0, False),
    ],
)
async def test_response_is_waited_for_while_it_can_come(
    seconds: float,
    exit_status: int | None,
    is_closed: bool,
    waited: float,
    is_fault: bool,
    autojump_clock: MockClock,
) -> None:
    """Only a client that is there, and has no code to run, is at fault for its silence."""
    client = HandPlayedClient(OLD, ("push", "ping", 1, 0))
    client.open()
    client.request("tools/list")
    session = client.session
    session.exit_status, session.is_closed = exit_status, is_closed
    [wait] = [each for each in client.actions if each.kind == "await"]
    began = trio.current_time()
    action = Action(kind="await", id=wait.id, seconds=seconds)
    await session.wait_for_response(action, 2.0, StayingLink())
    assert trio.current_time() - began == pytest.approx(waited, abs=0.01)
    assert [each.row for each in session.take_faults()] == (["PING-2"] if is_fault else [])


async def test_response_ends_its_wait(autojump_clock: MockClock) -> None:
    client = HandPlayedClient(OLD, ("push", "ping", 1, 0))
    client.open()
    client.request("tools/list")
    [wait] = [each for each in client.actions if each.kind == "await"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.session.wait_for_response, wait, 2.0, StayingLink())
        await trio.sleep(1.0)
        received(client.session, {"jsonrpc": "2.0", "id": wait.id, "result": {}})
        answered = trio.current_time()
    assert trio.current_time() - answered < 0.01
    assert client.session.last_activity == answered
    assert client.session.take_faults() == []


async def test_session_counts_its_seconds(autojump_clock: MockClock) -> None:
    session = HandPlayedClient(OLD).session
    await trio.sleep(5.0)
    assert session.time() == 5.0
    session.begin_case([("serve", [OLD], [])])
    session.note_sent(b"{}")
    assert session.last_activity == session.began_at + 5.0
    session.began_at += 10.0
    assert session.time() == 0.0


async def test_session_before_its_first_message_has_nothing(autojump_clock: MockClock) -> None:
    """A run reads some attributes of any session: a client's is never played again."""
    await trio.sleep(3.0)
    session = ClientSession(new_header("server", "stdio", "client"), keep=True)
    assert (session.revision, session.ended, session.played) == ("", "", 0)
    assert (session.is_open, session.spent, session.is_closed) == (False, True, False)
    assert (session.began_at, session.last_activity, session.last_method) == (3.0, 3.0, "")
    assert (session.acting, session.waiting, session.messages) == (0, set(), 0)
    assert (session.exit_status, session.stderr, session.links) == (None, b"", set())
    assert (session.connections, session.notes, session.lines) == (0, [], [])
    assert (session.recording, session.transport) == (None, "stdio")
    assert (session.trouble(), session.memory(), session.take_faults()) == ("", {}, [])
    await session.aclose()
    assert not session.is_over_limits
    assert session.begin_conversation() == 1
