"""Around conversations: orderly shutdown, and listeners. The rest is in `tests/drivers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import PeerError
from mcp_trio import connect_stream, memory_pair, serve_listeners, serve_stream
from tests.drivers.test_server_lifespan import build
from tests.harness.jsonrpc import text_of
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from pathlib import Path

MockClock = trio.testing.MockClock


# -- Shutdown ------------------------------------------------------------------------------------


class StoppedServer:
    """A server that can be stopped, a client's end, and the time at which it ended."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.stop = trio.Event()
        self.ended: float | None = None
        ours, self.theirs = memory_pair()
        self.wire = Wire(ours)

    async def serve(self) -> None:
        self.start = trio.current_time()
        await serve_stream(build(self.events), self.theirs, stop=self.stop, grace=5.0)
        self.ended = round(trio.current_time() - self.start, 2)

    async def receive_all_by_id(self) -> dict[Any, Any]:
        return {message["id"]: message for message in await self.wire.receive_all()}


@pytest.fixture
async def stopping(nursery: trio.Nursery) -> StoppedServer:
    stopping = StoppedServer()
    nursery.start_soon(stopping.serve)
    await stopping.wire.shake_hands()
    return stopping


async def test_serving_stop_ends_an_idle_server_at_once(
    stopping: StoppedServer, autojump_clock: MockClock
) -> None:
    stopping.stop.set()
    assert await stopping.wire.receive_all() == []
    assert stopping.ended == 0


async def test_serving_stop_finishes_running_and_rejects_new_requests(
    stopping: StoppedServer, autojump_clock: MockClock
) -> None:
    """Pings are still answered, so the client doesn't take a shutdown for a dead server."""
    wire = stopping.wire
    await wire.send(wire.calling(1, "wait", {"seconds": 3}))
    await trio.testing.wait_all_tasks_blocked()
    stopping.stop.set()
    await trio.testing.wait_all_tasks_blocked()
    await wire.send(wire.calling(2, "rows"), wire.asking(3, "ping"))
    answers = await stopping.receive_all_by_id()
    assert text_of(answers[1]) == "in time"
    assert answers[2]["error"] == {
        "code": -32000,
        "message": "the server is being shut down and takes no more requests",
    }
    assert answers[3]["result"] == {}
    assert stopping.ended == 3
    assert stopping.events == ["enter s", "waited", "leave"]


async def test_serving_stop_cancels_handlers_after_the_grace(
    stopping: StoppedServer, autojump_clock: MockClock
) -> None:
    wire = stopping.wire
    await wire.send(wire.calling(1, "wait", {"seconds": 30}))
    await trio.testing.wait_all_tasks_blocked()
    stopping.stop.set()
    answers = await stopping.receive_all_by_id()
    assert answers[1]["error"] == {"code": -32000, "message": "the server is being shut down"}
    assert stopping.ended == 5
    assert stopping.events == ["enter s", "waited", "leave"]


async def test_serving_stop_ends_at_end_of_input_during_the_grace(
    stopping: StoppedServer, autojump_clock: MockClock
) -> None:
    wire = stopping.wire
    await wire.send(wire.calling(1, "wait", {"seconds": 3}))
    await trio.testing.wait_all_tasks_blocked()
    stopping.stop.set()
    await trio.sleep(1)
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    answers = await stopping.receive_all_by_id()
    assert text_of(answers[1]) == "in time"
    assert stopping.ended == 3


async def test_serving_stop_does_not_wait_for_an_unread_client(
    stopping: StoppedServer, autojump_clock: MockClock
) -> None:
    wire = stopping.wire
    await wire.send(*(wire.asking(n, "ping") for n in range(10_000)))
    await trio.sleep(1)
    stopping.stop.set()
    await trio.sleep(10)
    assert stopping.ended == 2


# -- Listeners -----------------------------------------------------------------------------------


async def test_serving_listeners_share_one_lifespan() -> None:
    """Four connections cause one setup and one teardown, and the port is closed at the end."""
    events: list[str] = []
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def serve(task_status: Any) -> None:
            await serve_listeners(build(events), listeners, stop=stop, task_status=task_status)

        assert await nursery.start(serve) == listeners
        port = listeners[0].socket.getsockname()[1]
        for _ in range(2):
            one, two = (
                await trio.open_tcp_stream("127.0.0.1", port),
                await trio.open_tcp_stream("127.0.0.1", port),
            )
            async with connect_stream(one) as first, connect_stream(two) as second:
                assert (await first.call_tool("rows")).structured_content == ["one"]
                assert (await second.call_tool("rows")).structured_content == ["one"]
        stop.set()
    assert events == ["enter s", "leave"]
    with pytest.raises(OSError, match=r"all attempts to connect to .* failed"):
        await trio.open_tcp_stream("127.0.0.1", port)


async def test_serving_listeners_stop_ends_every_conversation() -> None:
    """After the grace period, the waiting call fails with an explanation."""
    events: list[str] = []
    stop = trio.Event()
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    outcomes: list[Any] = []
    first = trio.Event()
    async with trio.open_nursery() as nursery:

        async def serve() -> None:
            await serve_listeners(build(events), listeners, stop=stop, grace=0.1)

        nursery.start_soon(serve)

        async def call(seconds: float) -> None:
            async with connect_stream(await trio.open_tcp_stream("127.0.0.1", port)) as client:
                try:
                    outcomes.append((await client.call_tool("wait", {"seconds": seconds})).text)
                    first.set()
                except PeerError as exc:
                    outcomes.append(exc.message)

        nursery.start_soon(call, 0.05)
        nursery.start_soon(call, 60)
        await first.wait()
        stop.set()
    assert outcomes == ["in time", "the server is being shut down"]
    assert events == ["enter s", "waited", "waited", "leave"]


async def test_serving_listeners_cancelled_are_closed(tmp_path: Path) -> None:
    events: list[str] = []
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_listeners, build(events), listeners)
        async with connect_stream(await trio.open_tcp_stream("127.0.0.1", port)) as client:
            assert (await client.call_tool("rows")).structured_content == ["one"]
            nursery.cancel_scope.cancel()
    assert events == ["enter s", "leave"]
    assert listeners[0].socket.fileno() == -1
