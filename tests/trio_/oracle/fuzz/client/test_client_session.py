"""The session of a client: what it adds to the judge's findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._revisions import META
from mcp_trio.oracle.fuzz._shared_trace import new_header
from mcp_trio.oracle.fuzz.client._client_session import ClientSession
from mcp_trio.oracle.fuzz.client._script import MAX_FOLLOWED

if TYPE_CHECKING:
    from trio.testing import MockClock

OLD, NEW = "2025-11-25", "2026-07-28"
INFO = {"name": "c", "version": "1"}
META_OF_NEW = {
    META + "protocolVersion": NEW,
    META + "clientCapabilities": {},
    META + "clientInfo": INFO,
}


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
