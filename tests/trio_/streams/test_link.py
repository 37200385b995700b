"""The link on trio: breaks of one direction, and tasks that wait for the writer.

`tests/drivers/test_link.py` has what it does on both drivers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import (
    Connection,
    ConnectionClosed,
    Event,
    Limits,
    Role,
    State,
)
from mcp_core import types as t
from mcp_trio import memory_pair
from mcp_trio.streams._link import Link
from tests.harness.jsonrpc import (
    INITIALIZED,
    D,
    initialize,
    line,
    ping,
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


async def test_link_cancelled_writer_waits_a_fifth_of_a_second_for_its_peer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Tasks that are cancelled with it may queue a message, which a peer may not read."""
    stream = Counting()
    stream.gate = trio.Event()
    here = LinkRecorder(stream=stream)

    async def queue_at_the_end() -> None:
        try:
            await trio.sleep_forever()
        finally:
            here.conn.receive_data(line(ping(1)), 0.0)
            here.link.pump()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.link.write)
        nursery.start_soon(queue_at_the_end)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert trio.current_time() == pytest.approx(0.2)
    assert len(stream.writes) == 1


async def test_link_writer_cancelled_in_a_message_sends_nothing_after_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Half of it may be out. Until then `flush` waits, although the queue is empty."""
    stream = Counting()
    stream.gate = trio.Event()
    here = LinkRecorder(stream=stream)
    flushed = trio.Event()

    async def flush() -> None:
        await here.link.flush()
        flushed.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.link.write)
        here.conn.receive_data(line(ping(1)), 0.0)
        here.link.pump()
        nursery.start_soon(flush)
        await trio.testing.wait_all_tasks_blocked()
        assert not flushed.is_set()
        here.conn.receive_data(line(ping(2)), 0.0)
        here.link.pump()
        nursery.cancel_scope.cancel()
    assert trio.current_time() == 0
    assert len(stream.writes) == 1


class FailingLinkStream(Counting):
    """A stream that raises `error` in both directions."""

    def __init__(self, error: Exception, cause: Exception | None = None) -> None:
        super().__init__()
        self.error = error
        self.error.__cause__ = cause

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        raise self.error

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        raise self.error


def with_answer(error: Exception, cause: Exception | None = None) -> LinkRecorder:
    """Return a link on a stream that fails, with an answer to write."""
    here = LinkRecorder(stream=FailingLinkStream(error, cause))
    here.conn.receive_data(line(ping(1)), 0.0)
    here.link.pump()
    return here


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
@pytest.mark.parametrize(
    ("cause", "noted"), [(OSError(32, "Broken pipe"), True), (ValueError(), False), (None, False)]
)
async def test_link_write_error_is_the_error_of_the_system(
    error: type[Exception], cause: Exception | None, noted: bool
) -> None:
    here = with_answer(error(), cause)
    assert here.link.write_error is None
    await here.link.write()
    assert here.link.write_error is (cause if noted else None)
    assert here.link.broken
    here = with_answer(error(), cause)
    await here.link.read()
    assert here.link.broken


@pytest.mark.parametrize("direction", ["read", "write"])
async def test_link_error_of_the_stream_itself_is_raised(direction: str) -> None:
    """It is a bug of the stream or of its user, and not the end of the connection."""
    here = with_answer(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await getattr(here.link, direction)()
    here.link.abort()


async def test_link_flush_returns_when_all_is_written(nursery: trio.Nursery) -> None:
    here = LinkRecorder()
    await here.start(nursery)
    await here.link.flush()
    here.conn.receive_data(line(ping(1)), 0.0)
    here.link.pump()
    await here.link.flush()
    assert (await here.other.receive_some()).count(b"\n") == 1


async def test_link_repr_shows_connection() -> None:
    here = LinkRecorder()
    assert repr(here.link) == f"<Link {here.conn!r}>"
    here.link.abort()
    assert repr(here.link) == f"<Link {here.conn!r}, broken>"
    here.link.abort()  # only the first call has an effect
    assert len(here.of(ConnectionClosed)) == 1


async def test_link_writer_that_is_cancelled_passes_it_on() -> None:
    """The task that runs it must not go on as if the stream had broken."""
    recorder = LinkRecorder()
    steps: list[str] = []
    scope = trio.CancelScope()

    async def run() -> None:
        with scope:
            await recorder.link.write()
            steps.append("went on")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
    assert scope.cancelled_caught
    assert steps == []
