"""The link: a connection on a byte stream. One task reads, one task writes, and one timer runs."""

from __future__ import annotations

import asyncio
import contextvars
import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim._link import Link as AsyncioLink
from mcp_core import (
    ConnectFailed,
    Connection,
    ConnectionClosed,
    Event,
    Limits,
    MessageRejected,
    RequestCancelled,
    RequestReceived,
    Role,
    State,
)
from mcp_core import types as t
from mcp_trio.streams._link import Link as TrioLink
from tests.harness import either
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    cancelled,
    client_config,
    initialize,
    line,
    ping,
    request,
    server_config,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("each_driver")

CALL = {"name": "t"}
SMALL = Limits(in_flight=1, waiting=1, pause=5.0)


class WrittenConnection(Connection):
    """A connection that notes what is written at a time."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.writes: list[bytes] = []

    def data_to_send(self) -> bytes:
        data = super().data_to_send()
        if data:
            self.writes.append(data)
        return data


def open_link(conn: Connection, stream: Any, on_event: Callable[[Event], Any]) -> Any:
    """Return a driver's link. On asyncio its tasks run already."""
    if either.on_trio():
        return TrioLink(conn, stream, on_event)
    return AsyncioLink((stream.reader, stream.writer), conn, on_event)


class RunningLink:
    """A link of a server's connection, with its events and the other end of the stream."""

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.other, self.ours = either.memory_pair()
        self.events: list[Event] = []
        self.conn = WrittenConnection(Role.SERVER, server_config(limits=limits))
        self.link = open_link(self.conn, self.ours, self.events.append)
        self.read_ended = False
        self.rest = b""

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def start(self, nursery: either.Nursery) -> None:
        """Run the link, and perform the handshake."""
        run_link(self.link, nursery, self.read)
        await self.send(initialize(D), INITIALIZED)
        assert "result" in (await self.receive())[0]
        self.events.clear()
        self.conn.writes.clear()

    async def read(self) -> None:
        if either.on_trio():
            await self.link.read()
        else:
            await asyncio.wait({self.link.reading})
        self.read_ended = True

    async def send(self, *messages: Any) -> None:
        await self.other.send_all(b"".join(map(line, messages)))
        await either.wait_all_tasks_blocked()

    async def receive(self) -> list[Any]:
        await either.wait_all_tasks_blocked()
        data = self.rest + await self.other.receive_some()
        whole, _, self.rest = data.rpartition(b"\n")
        return [json.loads(each) for each in whole.splitlines()]

    def answer(self, *ids: int) -> None:
        for id in ids:
            self.conn.send_result(id, t.EmptyResult())
        self.link.pump()


def run_link(link: Any, nursery: either.Nursery, read: Callable[[], Any] | None = None) -> None:
    """Run the tasks of a link, as far as it does not run them itself."""
    if either.on_trio():
        nursery.start_soon(link.write)
        nursery.start_soon(link.tick)
    if read is not None:
        nursery.start_soon(read)


async def test_link_reads_events_and_writes_responses(nursery: either.Nursery) -> None:
    here = RunningLink()
    await here.start(nursery)
    await here.send(request(7, "tools/call", CALL))
    assert [(event.id, event.method.name) for event in here.of(RequestReceived)] == [
        (7, "tools/call")
    ]
    here.answer(7)
    assert await here.receive() == [{"jsonrpc": "2.0", "id": 7, "result": {}}]


async def test_link_queued_messages_leave_in_one_write(nursery: either.Nursery) -> None:
    here = RunningLink()
    await here.start(nursery)
    await here.send(ping(1), ping(2), ping(3))
    assert [write.count(b"\n") for write in here.conn.writes] == [3]


async def test_link_messages_queued_during_a_write_leave_in_the_next(
    nursery: either.Nursery,
) -> None:
    """While the peer doesn't read, output stays queued, and leaves together."""
    here = RunningLink()
    await here.start(nursery)
    await here.send(request(1, "tools/call", CALL))
    large = t.CallToolResult(content=[t.TextContent("x" * 200_000)])  # more than the stream holds
    here.conn.send_result(1, large)
    here.link.pump()
    await either.wait_all_tasks_blocked()
    for id in 2, 3, 4:
        here.conn.receive_data(line(ping(id)), 0.0)
        here.link.pump()
    await either.wait_all_tasks_blocked()
    assert len(here.conn.writes) == 1
    received: list[Any] = []
    while len(received) < 4:
        received += await here.receive()
    assert [message["id"] for message in received] == [1, 2, 3, 4]
    assert [write.count(b"\n") for write in here.conn.writes] == [1, 3]


async def test_link_end_of_input_does_not_stop_writing(nursery: either.Nursery) -> None:
    here = RunningLink()
    await here.start(nursery)
    await here.send(request(1, "tools/call", CALL))
    await here.other.send_eof()
    await either.wait_all_tasks_blocked()
    assert here.read_ended
    assert here.conn.state is State.CLOSING
    here.answer(1)
    assert await here.receive() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert here.conn.state is State.CLOSING


async def test_link_closed_connection_ends_the_reader_and_sends_what_is_queued(
    nursery: either.Nursery,
) -> None:
    here = RunningLink()
    await here.start(nursery)
    await here.send(request(1, "tools/call", CALL))
    here.conn.send_result(1, t.EmptyResult())
    here.conn.close()
    here.link.pump()
    await either.wait_all_tasks_blocked()
    assert here.read_ended
    assert [each["id"] for each in await here.receive()] == [1]
    assert [str(each.error) for each in here.of(ConnectionClosed)] == ["None"]


async def test_link_whose_writing_fails_closes_the_connection(nursery: either.Nursery) -> None:
    """The reader ends too, and the event is emitted once."""
    here = RunningLink()
    await here.start(nursery)
    await here.send(request(1, "tools/call", CALL))
    either.stop_reading(here.other)
    here.answer(1)
    await either.wait_all_tasks_blocked()
    assert here.read_ended
    assert here.conn.state is State.CLOSED
    assert [str(event.error) for event in here.of(ConnectionClosed)] == ["the connection broke"]


async def test_link_broken_stream_ends_running_requests(nursery: either.Nursery) -> None:
    here = RunningLink()
    await here.start(nursery)
    await here.send(request(1, "tools/call", CALL))
    await here.other.aclose()
    await either.wait_all_tasks_blocked()
    assert here.of(RequestCancelled) == []  # the input has ended, but the client may still read
    assert here.conn.send_progress(1, 1.0) is False  # the request has no progress token
    here.conn.receive_data(line(ping(2)), 0.0)
    here.answer(1)  # no peer can read it
    await either.wait_all_tasks_blocked()
    assert here.conn.state is State.CLOSED


async def test_link_paused_stops_reading_until_answered(nursery: either.Nursery) -> None:
    """Even a ping waits, since it is behind a request that isn't read yet."""
    here = RunningLink(limits=SMALL)
    await here.start(nursery)
    await here.send(*(request(id, "tools/call", CALL) for id in (1, 2)))
    assert [event.id for event in here.of(RequestReceived)] == [1]
    await here.send(ping("late"))
    assert here.conn.queued() == 0
    here.answer(1)
    received = await here.receive()
    assert [message["id"] for message in received] == [1, "late"]
    assert [event.id for event in here.of(RequestReceived)] == [1, 2]
    here.answer(2)
    assert (await here.receive())[0]["id"] == 2


@pytest.mark.may_leave("connection")
async def test_link_paused_too_long_rejects_requests(nursery: either.Nursery) -> None:
    here = RunningLink(limits=SMALL)
    await here.start(nursery)
    await here.send(*(request(id, "tools/call", CALL) for id in (1, 2, 3)), cancelled(1))
    await either.sleep(4.9)
    assert here.of(RequestCancelled) == []
    await either.sleep(0.2)
    [refused] = await here.receive()
    assert (refused["id"], refused["error"]["code"]) == (3, -32000)
    assert [event.id for event in here.of(RequestCancelled)] == [1]


async def test_link_unread_responses_stop_reading(nursery: either.Nursery) -> None:
    """A client that never reads could otherwise fill our memory with pings."""
    here = RunningLink(limits=Limits(queued=1000))
    await here.start(nursery)
    sent = 0

    async def send_for_ever() -> None:
        nonlocal sent
        while True:
            await here.other.send_all(b"".join(line(ping(sent + n)) for n in range(100)))
            sent += 100

    nursery.start_soon(send_for_ever)
    await either.wait_all_tasks_blocked()
    assert here.conn.queued() < 1100  # the writer may have as much again
    stopped, received = sent, 0
    while sent == stopped:
        received += len(await here.receive())
    assert received > 1000


async def test_link_end_of_input_during_a_pause_is_seen_afterwards(nursery: either.Nursery) -> None:
    here = RunningLink(limits=SMALL)
    await here.start(nursery)
    await here.send(*(request(id, "tools/call", CALL) for id in (1, 2)))
    await here.other.send_eof()
    await either.wait_all_tasks_blocked()
    assert not here.read_ended
    here.answer(1)
    here.answer(2)
    await either.wait_all_tasks_blocked()
    assert here.read_ended


async def test_link_timer_ends_an_unanswered_initialize(nursery: either.Nursery) -> None:
    """After 15 silent seconds the client tries the older handshake, which has 30 of its own."""
    other, ours = either.memory_pair()
    asked: list[tuple[float, str]] = []
    events: list[tuple[float, Event]] = []
    conn = Connection(Role.CLIENT, client_config(initialize_timeout=30.0))
    link = open_link(conn, ours, lambda event: events.append((either.current_time(), event)))
    began = either.current_time()
    conn.open(began)

    async def listen() -> None:
        while data := await other.receive_some():
            now = either.current_time() - began
            asked.extend((now, json.loads(each)["method"]) for each in data.splitlines())

    run_link(link, nursery)
    nursery.start_soon(listen)
    link.pump()
    await either.sleep(100)
    assert asked == [(0, "server/discover"), (15, "initialize")]
    [(ended, closed)] = events
    assert isinstance(closed, ConnectionClosed)
    assert isinstance(closed.error, ConnectFailed)
    assert ended - began == 45


color: contextvars.ContextVar[str] = contextvars.ContextVar("color", default="none")


@pytest.mark.may_leave("connection")
async def test_link_events_run_in_the_context_of_its_creation(nursery: either.Nursery) -> None:
    """Any task may pump, and its context variables must not leak into handlers."""
    color.set("of the link")
    seen: list[str] = []
    _, ours = either.memory_pair()
    conn = Connection(Role.SERVER, server_config())
    link = open_link(conn, ours, lambda event: seen.append(color.get()))

    async def somebody_else() -> None:
        color.set("of somebody else")
        conn.receive_data(b"no JSON\n", 0.0)
        link.pump()
        assert color.get() == "of somebody else"

    nursery.start_soon(somebody_else)
    await either.wait_all_tasks_blocked()
    assert seen == ["of the link"]


@pytest.mark.may_leave("connection")
async def test_link_pump_inside_a_pump_returns_at_once() -> None:
    order: list[str] = []
    _, ours = either.memory_pair()
    conn = Connection(Role.SERVER, server_config())

    def take(event: Event) -> None:
        if isinstance(event, MessageRejected):
            order.append("in")
            link.pump()
            order.append("out")

    link = open_link(conn, ours, take)
    conn.receive_data(b"no JSON\n" * 2, 0.0)
    link.pump()
    assert order == ["in", "out"] * 2


@pytest.mark.may_leave("connection")
async def test_link_pump_survives_an_exception_of_on_event() -> None:
    """The failing event counts as delivered, and the next pump goes on behind it."""
    _, ours = either.memory_pair()
    conn = Connection(Role.SERVER, server_config())
    taken: list[Event] = []

    def take(event: Event) -> None:
        taken.append(event)
        if len(taken) == 1:
            raise ValueError("an error of the callback")

    link = open_link(conn, ours, take)
    conn.receive_data(b"no JSON\n" * 2, 0.0)
    with pytest.raises(ValueError, match="an error of the callback"):
        link.pump()
    link.pump()
    assert len(taken) == 2
