"""A conversation of lines: what is recorded, what each action does, and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_one_way_pair, wait_all_tasks_blocked

from mcp_trio import memory_pair
from mcp_trio.oracle.fuzz._shared_trace import new_header
from mcp_trio.oracle.fuzz.client._client_session import ClientSession
from mcp_trio.oracle.fuzz.client._lines import LineConversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

OLD = "2025-11-25"
PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}


def ping(id: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode() + b"\n"


def session_of_lines(*steps: Any) -> ClientSession:
    session = ClientSession(new_header("server", "stdio", "client"), keep=True)
    session.begin_case([("serve", [OLD], []), *steps])
    return session


def recorded_lines(session: ClientSession) -> list[tuple[int, Any, Any, Any]]:
    """Return conversation, sender, text and end of each line."""
    lines = session.lines or ()
    return [(line.conversation, line.sender, line.raw, line.end) for line in lines]


async def test_lines_of_both_sides_are_recorded_up_to_the_end(autojump_clock: MockClock) -> None:
    """A line may arrive in parts. The second conversation of a session has the next number."""
    session = session_of_lines()
    for number in (1, 2):
        ours, theirs = memory_pair()
        conversation = LineConversation(session, ours, 2.0)
        assert session.links >= {conversation}
        states = [conversation.has_ended]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(conversation.run)
            await theirs.send_all(ping()[:9])
            await wait_all_tasks_blocked()
            assert session.acting == 0
            await theirs.send_all(ping()[9:])
            sent = bytes(await theirs.receive_some())
            assert json.loads(sent) == PONG
            assert sent.endswith(b"}\n")
            assert session.waiting == set()
            await theirs.aclose()
        assert [*states, conversation.has_ended] == [False, True]
        assert recorded_lines(session)[-3:] == [
            (number, "client", ping()[:-1].decode(), None),
            (number, "server", sent[:-1].decode(), None),
            (number, "client", None, "closed"),
        ]
    assert (session.acting, len(session.links), session.messages) == (0, 2, 2)


async def test_waiter_goes_on_after_a_reaction_and_after_the_end(autojump_clock: MockClock) -> None:
    """The player waits for changes, and looks then whether the case is over."""
    session = session_of_lines(("answer", "late", 0, 0))
    ours, theirs = memory_pair()
    times: list[tuple[float, int]] = []

    async def wait() -> None:
        while len(times) < 3:
            await session.wait_changed(60.0)
            times.append((round(trio.current_time() - began, 3), session.acting))

    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        nursery.start_soon(LineConversation(session, ours, 2.0).run)
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        await theirs.send_all(ping())
        await trio.sleep(1.0)
        await theirs.aclose()
    assert times == [(0.0, 1), (0.1, 0), (1.0, 0)]


@pytest.mark.parametrize(
    ("how", "sent"), [("close", b""), ("half", b"{"), ("never", None), ("spaced", b" {")]
)
async def test_answer_of_an_odd_end_has_its_bytes_and_no_line_feed(
    how: str, sent: bytes | None, autojump_clock: MockClock
) -> None:
    """Some answers end the connection; without one it stays."""
    session = session_of_lines(("answer", how, 0, 0))
    ours, theirs = memory_pair()
    found = b""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LineConversation(session, ours, 2.0).run)
        await theirs.send_all(ping())
        with trio.move_on_after(5):
            while data := bytes(await theirs.receive_some()):
                found += data
        await theirs.aclose()
    ends = [(sender, end) for _, sender, _, end in recorded_lines(session) if end is not None]
    if how in ("close", "half"):
        assert (found, ends) == (sent, [("server", "closed")])
    elif how == "never":
        assert (found, ends) == (b"", [("client", "closed")])
    else:
        assert found.startswith(b" {")
        assert found.endswith(b"}  \n")


async def test_reaction_stops_once_the_session_is_closed(autojump_clock: MockClock) -> None:
    """The pause before a late response goes on, but the response isn't sent."""
    for close in (True, False):
        session = session_of_lines(("answer", "late", 0, 0))
        ours, theirs = memory_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(LineConversation(session, ours, 2.0).run)
            await theirs.send_all(ping())
            await wait_all_tasks_blocked()
            session.is_closed = close
            await trio.sleep(1.0)
            assert session.acting == 0
            assert session.waiting == ({1} if close else set())
            await theirs.aclose()
        assert len(recorded_lines(session)) == 2 + (not close)


async def test_later_request_is_answered_while_an_earlier_one_waits(
    autojump_clock: MockClock,
) -> None:
    session = session_of_lines(("answer", "late", 0, 0))
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LineConversation(session, ours, 2.0).run)
        await theirs.send_all(ping(1) + ping(2))
        ids = [json.loads(bytes(await theirs.receive_some()))["id"] for _ in range(2)]
        await theirs.aclose()
    assert ids == [2, 1]


async def test_question_is_waited_for_up_to_the_timeout(autojump_clock: MockClock) -> None:
    session = session_of_lines(("push", "ping", 1, 0))
    opening = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "c"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LineConversation(session, ours, 3.0).run)
        await theirs.send_all(json.dumps(message).encode() + b"\n")
        await theirs.receive_some()
        began = trio.current_time()
        await theirs.send_all(ping(2))
        assert json.loads(bytes(await theirs.receive_some()))["method"] == "ping"
        assert json.loads(bytes(await theirs.receive_some()))["id"] == 2
        assert trio.current_time() - began == pytest.approx(3.0, abs=0.01)
        await theirs.aclose()


async def test_client_that_reads_nothing_stops_a_reaction_after_ten_seconds(
    autojump_clock: MockClock,
) -> None:
    """The response is larger than what the stream takes."""
    session = session_of_lines(("answer", "huge", 0, 1))
    ours, theirs = memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LineConversation(session, ours, 2.0).run)
        await theirs.send_all(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"%b"}}\n'
            % OLD.encode()
        )
        await trio.sleep(9.9)
        assert session.acting == 1
        await trio.sleep(0.2)
        assert session.acting == 0
        await theirs.aclose()


class FailingLineStream(trio.abc.Stream):
    """A stream that reads what is given, and fails with `error` then, and when it is written."""

    def __init__(self, error: Callable[[], Exception], *data: bytes) -> None:
        self.closed = 0
        self._error = error
        self._data = list(data)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        if self._data:
            return self._data.pop(0)
        raise self._error()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        raise self._error()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait for nothing."""

    async def aclose(self) -> None:
        self.closed += 1
        await trio.sleep(50)


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
async def test_connection_that_breaks_has_ended_by_the_client_once(
    error: Callable[[], Exception], autojump_clock: MockClock
) -> None:
    session = session_of_lines()
    await LineConversation(session, FailingLineStream(error, ping()), 2.0).run()
    ends = [(sender, end) for _, sender, _, end in recorded_lines(session) if end is not None]
    assert ends == [("client", "closed")]
    assert session.acting == 0


async def test_connection_is_closed_by_the_server_once_and_in_a_second(
    autojump_clock: MockClock,
) -> None:
    session = session_of_lines()
    stream = FailingLineStream(trio.ClosedResourceError)
    conversation = LineConversation(session, stream, 2.0)
    began = trio.current_time()
    await conversation.close()
    assert trio.current_time() - began == 1.0
    await conversation.close()
    assert conversation.has_ended
    assert recorded_lines(session) == [(1, "server", None, "closed")]
    assert stream.closed == 2


async def test_end_of_pipes_is_that_of_the_clients_input(autojump_clock: MockClock) -> None:
    """The client can still send something until it has ended."""
    sending, theirs = memory_stream_one_way_pair()
    writing, receiving = memory_stream_one_way_pair()
    session = session_of_lines()
    conversation = LineConversation(session, trio.StapledStream(sending, receiving), 2.0)
    await conversation.close()
    assert await theirs.receive_some() == b""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(conversation.run)
        await writing.send_all(ping())
        await writing.aclose()
    assert [sender for _, sender, _, _ in recorded_lines(session)] == ["server", "client"]
