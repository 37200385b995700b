"""The link: one reader, one writer, one timer, on a memory pair."""

from __future__ import annotations

import contextvars
import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

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
from mcp_trio import memory_pair
from mcp_trio.streams._link import Link
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
    from collections.abc import Iterable

HIGH_WATER = 64 * 1024
CALL = {"name": "t"}


class LinkRecorder:
    """A link of a server's connection, with its events and the other end of the stream."""

    def __init__(
        self, *, limits: Limits | None = None, stream: trio.abc.Stream | None = None
    ) -> None:
        self.other, ours = memory_pair()
        self.events: list[Event] = []
        self.conn = Connection(Role.SERVER, server_config(limits=limits))
        self.link = Link(self.conn, stream or ours, self.events.append)
        self.read_ended = False
        self.rest = b""

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def start(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self.link.write)
        nursery.start_soon(self.link.tick)
        nursery.start_soon(self.read)
        await self.send(initialize(D), INITIALIZED)
        assert "result" in (await self.receive())[0]
        self.events.clear()

    async def read(self) -> None:
        await self.link.read()
        self.read_ended = True

    async def send(self, *messages: Any) -> None:
        await self.other.send_all(b"".join(map(line, messages)))
        await trio.testing.wait_all_tasks_blocked()

    async def receive(self) -> list[Any]:
        await trio.testing.wait_all_tasks_blocked()
        data = self.rest + await self.other.receive_some()
        whole, _, self.rest = data.rpartition(b"\n")
        return [json.loads(each) for each in whole.splitlines()]

    def answer(self, *ids: int) -> None:
        for id in ids:
            self.conn.send_result(id, t.EmptyResult())
        self.link.pump()


class Counting(trio.abc.Stream):
    """A stream that counts writes. It returns `reads`, and then blocks."""

    def __init__(self, reads: Iterable[bytes] = ()) -> None:
        self.reads = list(reads)
        self.writes: list[bytes] = []
        self.gate = trio.Event()
        self.gate.set()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))
        await self.gate.wait()

    async def wait_send_all_might_not_block(self) -> None:
        await self.gate.wait()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self.reads:
            await trio.sleep_forever()
        return self.reads.pop(0)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class Broken(Counting):
    """A stream that breaks at the first use of one direction."""

    def __init__(self, direction: str) -> None:
        super().__init__()
        self.direction = direction

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await super().send_all(data)
        if self.direction == "write":
            raise trio.BrokenResourceError

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self.direction == "read":
            raise trio.BrokenResourceError
        return await super().receive_some(max_bytes)


async def test_link_reads_events_and_writes_responses(nursery: trio.Nursery) -> None:
    here = LinkRecorder()
    await here.start(nursery)
    await here.send(request(7, "tools/call", CALL))
    assert [(event.id, event.method.name) for event in here.of(RequestReceived)] == [
        (7, "tools/call")
    ]
    here.answer(7)
    assert await here.receive() == [{"jsonrpc": "2.0", "id": 7, "result": {}}]


async def test_link_queued_messages_leave_in_one_write(nursery: trio.Nursery) -> None:
    stream = Counting([b"".join(map(line, [ping(1), ping(2), ping(3)]))])
    here = LinkRecorder(stream=stream)
    nursery.start_soon(here.link.write)
    nursery.start_soon(here.link.read)
    await trio.testing.wait_all_tasks_blocked()
    assert [write.count(b"\n") for write in stream.writes] == [3]


async def test_link_messages_queued_during_a_write_leave_in_the_next(nursery: trio.Nursery) -> None:
    stream = Counting([line(ping(1))])
    stream.gate = trio.Event()
    here = LinkRecorder(stream=stream)
    nursery.start_soon(here.link.write)
    nursery.start_soon(here.link.read)
    await trio.testing.wait_all_tasks_blocked()
    for id in 2, 3, 4:
        here.conn.receive_data(line(ping(id)), 0.0)
        here.link.pump()
    await trio.testing.wait_all_tasks_blocked()
    assert len(stream.writes) == 1
    stream.gate.set()
    await trio.testing.wait_all_tasks_blocked()
    assert [write.count(b"\n") for write in stream.writes] == [1, 3]


async def test_link_end_of_input_does_not_stop_writing(nursery: trio.Nursery) -> None:
    here = LinkRecorder()
    await here.start(nursery)
    await here.send(request(1, "tools/call", CALL))
    await here.other.send_eof()
    await trio.testing.wait_all_tasks_blocked()
    assert here.read_ended
    assert here.conn.state is State.CLOSING
    here.answer(1)
    assert await here.receive() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert not here.link.broken


async def test_link_closed_connection_ends_the_reader_and_sends_what_is_queued(
    nursery: trio.Nursery,
) -> None:
    here = LinkRecorder()
    await here.start(nursery)
    await here.send(request(1, "tools/call", CALL))
    here.conn.send_result(1, t.EmptyResult())
    here.conn.close()
    here.link.pump()
    await trio.testing.wait_all_tasks_blocked()
    assert here.read_ended
    assert not here.link.broken
    assert [each["id"] for each in await here.receive()] == [1]


@pytest.mark.parametrize("direction", ["read", "write"])
async def test_link_broken_stream_closes_the_connection(direction: str) -> None:
    """Whichever task meets the break, the reader ends and the event is emitted once."""
    stream = Broken(direction)
    stream.reads.append(line(ping(1)))
    here = LinkRecorder(stream=stream)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.link.tick)
        nursery.start_soon(here.read)
        await (
            here.link.write()
        ) if direction == "write" else await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        assert here.read_ended
        nursery.cancel_scope.cancel()
    assert here.link.broken
    assert here.conn.state is State.CLOSED
    assert [str(event.error) for event in here.of(ConnectionClosed)] == ["the connection broke"]
    await here.link.flush()  # returns at once


async def test_link_broken_stream_ends_running_requests(nursery: trio.Nursery) -> None:
    here = LinkRecorder()
    await here.start(nursery)
    await here.send(request(1, "tools/call", CALL))
    await here.other.aclose()
    await trio.testing.wait_all_tasks_blocked()
    assert here.of(RequestCancelled) == []  # the input has ended, but the client may still read
    assert here.conn.send_progress(1, 1.0) is False  # the request has no progress token
    here.conn.receive_data(line(ping(2)), 0.0)
    here.answer(1)  # no peer can read it
    await trio.testing.wait_all_tasks_blocked()
    assert here.link.broken
    assert here.conn.state is State.CLOSED


# --- pausing ------------------------------------------------------------------------------------

SMALL = Limits(in_flight=1, waiting=1, pause=5.0)


async def test_link_paused_stops_reading_until_answered(
    nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    """Even a ping waits, since it is behind a request that isn't read yet."""
    here = LinkRecorder(limits=SMALL)
    await here.start(nursery)
    await here.send(*(request(id, "tools/call", CALL) for id in (1, 2)))
    assert [event.id for event in here.of(RequestReceived)] == [1]
    assert repr(here.link).endswith(", paused>")
    await here.send(ping("late"))
    assert here.conn.queued() == 0
    here.answer(1)
    received = await here.receive()
    assert [message["id"] for message in received] == [1, "late"]
    assert [event.id for event in here.of(RequestReceived)] == [1, 2]
    here.answer(2)
    assert (await here.receive())[0]["id"] == 2
    assert "paused" not in repr(here.link)


@pytest.mark.may_leave("connection")
async def test_link_paused_too_long_rejects_requests(
    nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    here = LinkRecorder(limits=SMALL)
    await here.start(nursery)
    await here.send(*(request(id, "tools/call", CALL) for id in (1, 2, 3)), cancelled(1))
    mock_clock.jump(4.9)
    await trio.testing.wait_all_tasks_blocked()
    assert here.of(RequestCancelled) == []
    mock_clock.jump(0.2)
    [refused] = await here.receive()
    assert (refused["id"], refused["error"]["code"]) == (3, -32000)
    assert [event.id for event in here.of(RequestCancelled)] == [1]


async def test_link_unread_responses_stop_reading(nursery: trio.Nursery) -> None:
    """A client that never reads could otherwise fill our memory with pings."""
    here = LinkRecorder(limits=Limits(queued=1000))
    await here.start(nursery)
    sent = 0

    async def send_for_ever() -> None:
        nonlocal sent
        while True:
            await here.other.send_all(b"".join(line(ping(sent + n)) for n in range(100)))
            sent += 100

    nursery.start_soon(send_for_ever)
    await trio.testing.wait_all_tasks_blocked()
    assert repr(here.link).endswith(", paused>")
    assert here.conn.queued() < 1100  # the writer may have as much again
    stopped, received = sent, 0
    while sent == stopped:
        received += len(await here.receive())
    assert received > 1000


async def test_link_end_of_input_during_a_pause_is_seen_afterwards(nursery: trio.Nursery) -> None:
    here = LinkRecorder(limits=SMALL)
    await here.start(nursery)
    await here.send(*(request(id, "tools/call", CALL) for id in (1, 2)))
    await here.other.send_eof()
    await trio.testing.wait_all_tasks_blocked()
    assert not here.read_ended
    here.answer(1)
    here.answer(2)
    await trio.testing.wait_all_tasks_blocked()
    assert here.read_ended


# --- the timer ----------------------------------------------------------------------------------


async def test_link_timer_ends_an_unanswered_initialize(
    nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    """After 15 silent seconds the client tries the older handshake, which has 30 of its own."""
    other, ours = memory_pair()
    events: list[Event] = []
    conn = Connection(Role.CLIENT, client_config(initialize_timeout=30.0))
    link = Link(conn, ours, events.append)
    nursery.start_soon(link.write)
    nursery.start_soon(link.tick)
    await trio.testing.wait_all_tasks_blocked()
    conn.open(trio.current_time())

    methods: list[str] = []

    async def listen() -> None:
        async for data in other:
            methods.extend(json.loads(each)["method"] for each in data.splitlines())

    async def asked_after(seconds: float) -> list[str]:
        methods.clear()
        mock_clock.jump(seconds)
        await trio.testing.wait_all_tasks_blocked()
        return methods

    nursery.start_soon(listen)
    link.pump()

    assert await asked_after(0) == ["server/discover"]
    assert await asked_after(14.9) == []
    assert await asked_after(0.2) == ["initialize"]
    assert await asked_after(29.8) == []
    assert events == []
    assert await asked_after(0.3) == []
    [closed] = events
    assert isinstance(closed, ConnectionClosed)
    assert isinstance(closed.error, ConnectFailed)


# --- waiting for the writer ---------------------------------------------------------------------


async def test_link_drain_waits_above_the_high_water_mark(nursery: trio.Nursery) -> None:
    """This is the backpressure for handlers that send much."""
    stream = Counting()
    stream.gate = trio.Event()
    here = LinkRecorder(stream=stream)
    nursery.start_soon(here.link.write)
    here.conn.receive_data(line(ping("x" * 200)), 0.0)
    here.link.pump()
    await trio.testing.wait_all_tasks_blocked()  # the writer is blocked on the first response
    await here.link.drain()  # the queue has room
    for n in range(HIGH_WATER // 100):
        here.conn.receive_data(line(ping(f"{n:100}")), 0.0)
    here.link.pump()
    drained = False

    async def drain() -> None:
        nonlocal drained
        await here.link.drain()
        drained = True

    nursery.start_soon(drain)
    await trio.testing.wait_all_tasks_blocked()
    assert not drained
    stream.gate.set()
    await trio.testing.wait_all_tasks_blocked()
    assert drained


@pytest.mark.parametrize("wait", ["drain", "flush"])
async def test_link_writer_cancelled_releases_shielded_waiters(
    wait: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Without a writer the queue never empties, so waiting on would be a deadlock."""
    stream = Counting()
    stream.gate = trio.Event()
    here = LinkRecorder(stream=stream)
    waited = trio.Event()

    async def shielded() -> None:
        with trio.CancelScope(shield=True):
            await getattr(here.link, wait)()
        waited.set()

    with trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(here.link.write)
            for n in range(2 * HIGH_WATER // 100):
                here.conn.receive_data(line(ping(f"{n:100}")), 0.0)
                if n == 0:
                    here.link.pump()
                    await trio.testing.wait_all_tasks_blocked()
            here.link.pump()
            nursery.start_soon(shielded)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert waited.is_set()
    assert here.conn.state is State.CLOSED


async def test_link_flush_returns_when_all_is_written(nursery: trio.Nursery) -> None:
    here = LinkRecorder()
    await here.start(nursery)
    await here.link.flush()
    here.conn.receive_data(line(ping(1)), 0.0)
    here.link.pump()
    await here.link.flush()
    assert (await here.other.receive_some()).count(b"\n") == 1


# --- pump ---------------------------------------------------------------------------------------

color: contextvars.ContextVar[str] = contextvars.ContextVar("color", default="none")


@pytest.mark.may_leave("connection")
async def test_link_events_run_in_the_context_of_its_creation(nursery: trio.Nursery) -> None:
    """Any task may pump, and its context variables must not leak into handlers."""
    color.set("of the link")
    seen: list[str] = []
    _, ours = memory_pair()
    conn = Connection(Role.SERVER, server_config())
    link = Link(conn, ours, lambda event: seen.append(color.get()))

    async def somebody_else() -> None:
        color.set("of somebody else")
        conn.receive_data(b"no JSON\n", 0.0)
        link.pump()
        assert color.get() == "of somebody else"

    nursery.start_soon(somebody_else)
    await trio.testing.wait_all_tasks_blocked()
    assert seen == ["of the link"]


@pytest.mark.may_leave("connection")
async def test_link_pump_inside_a_pump_returns_at_once() -> None:
    order: list[str] = []
    _, ours = memory_pair()
    conn = Connection(Role.SERVER, server_config())

    def take(event: Event) -> None:
        assert isinstance(event, MessageRejected)
        order.append("in")
        link.pump()
        order.append("out")

    link = Link(conn, ours, take)
    conn.receive_data(b"no JSON\n" * 2, 0.0)
    link.pump()
    assert order == ["in", "out"] * 2


@pytest.mark.may_leave("connection")
async def test_link_pump_survives_an_exception_of_on_event() -> None:
    """The failing event counts as delivered, and the next pump goes on behind it."""
    _, ours = memory_pair()
    conn = Connection(Role.SERVER, server_config())
    taken: list[Event] = []

    def take(event: Event) -> None:
        taken.append(event)
        if len(taken) == 1:
            raise ValueError("an error of the callback")

    link = Link(conn, ours, take)
    conn.receive_data(b"no JSON\n" * 2, 0.0)
    with pytest.raises(ValueError, match="an error of the callback"):
        link.pump()
    link.pump()
    assert len(taken) == 2


async def test_link_repr_shows_connection() -> None:
    here = LinkRecorder()
    assert repr(here.link) == f"<Link {here.conn!r}>"
    here.link.abort()
    assert repr(here.link) == f"<Link {here.conn!r}, broken>"
    here.link.abort()  # only the first call has an effect
    assert len(here.of(ConnectionClosed)) == 1
