"""A served conversation that `stop=` ends: running handlers finish, new requests are refused."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.runtime import SHUTDOWN_GRACE
from tests.drivers.test_server_lifespan import build
from tests.harness import either
from tests.harness.jsonrpc import E, text_of
from tests.harness.wire.lines import Wire

pytestmark = pytest.mark.usefixtures("each_driver")


class StoppedServer:
    """A server that can be stopped, a client's end, and the time at which it ended."""

    def __init__(self, grace: float | None = 5.0) -> None:
        self.options = {} if grace is None else {"grace": grace}
        self.events: list[str] = []
        self.stop = either.Event()
        self.ended: float | None = None
        ours, self.theirs = either.memory_pair()
        self.wire = Wire(ours)

    async def serve(self) -> None:
        self.start = either.current_time()
        await either.serve_stream(build(self.events), self.theirs, stop=self.stop, **self.options)
        self.ended = round(either.current_time() - self.start, 2)

    async def receive_all_by_id(self) -> dict[Any, Any]:
        return {message["id"]: message for message in await self.wire.receive_all()}

    async def open(self, nursery: either.Nursery) -> Wire:
        """Serve, and return the client's end after the handshake."""
        nursery.start_soon(self.serve)
        await self.wire.shake_hands()
        return self.wire

    async def stop_during_call(self, nursery: either.Nursery, seconds: float) -> Wire:
        """Serve a call that takes so long, and begin to stop while it runs."""
        wire = await self.open(nursery)
        await wire.send(wire.calling(1, "wait", {"seconds": seconds}))
        await either.wait_all_tasks_blocked()
        self.stop.set()
        return wire


async def test_serving_stop_ends_an_idle_server_at_once(
    nursery: either.Nursery,
) -> None:
    stopping = StoppedServer()
    wire = await stopping.open(nursery)
    stopping.stop.set()
    assert await wire.receive_all() == []
    assert stopping.ended == 0


async def test_serving_stop_finishes_running_and_rejects_new_requests(
    nursery: either.Nursery,
) -> None:
    """Pings are still answered, so the client doesn't take a shutdown for a dead server."""
    stopping = StoppedServer()
    wire = await stopping.stop_during_call(nursery, 3)
    await either.wait_all_tasks_blocked()
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
    nursery: either.Nursery,
) -> None:
    stopping = StoppedServer()
    await stopping.stop_during_call(nursery, 30)
    answers = await stopping.receive_all_by_id()
    assert answers[1]["error"] == {"code": -32000, "message": "the server is being shut down"}
    assert stopping.ended == 5
    assert stopping.events == ["enter s", "waited", "leave"]


async def test_serving_stop_ends_at_end_of_input_during_the_grace(
    nursery: either.Nursery,
) -> None:
    stopping = StoppedServer()
    wire = await stopping.stop_during_call(nursery, 3)
    await either.sleep(1)
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    answers = await stopping.receive_all_by_id()
    assert text_of(answers[1]) == "in time"
    assert stopping.ended == 3


async def test_serving_stop_does_not_wait_for_an_unread_client(
    nursery: either.Nursery,
) -> None:
    stopping = StoppedServer()
    wire = await stopping.open(nursery)
    await wire.send(*(wire.asking(n, "ping") for n in range(5_000)))
    await either.sleep(1)
    stopping.stop.set()
    await either.sleep(10)
    assert stopping.ended == 2


@either.asyncio_only
@pytest.mark.parametrize(("grace", "seconds"), [(None, SHUTDOWN_GRACE), (2.0, 2.0), (0.0, 1.0)])
async def test_serving_end_of_input_gives_handlers_and_their_reader_the_grace(
    grace: float | None, seconds: float, nursery: either.Nursery
) -> None:
    """The reader has a second at least. On trio it always has five."""
    stopping = StoppedServer(grace)
    wire = await stopping.open(nursery)
    await wire.send(*(wire.asking(n, "ping") for n in range(5_000)))
    await either.sleep(100)
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    await either.sleep(10)
    assert stopping.ended == 100 + seconds

    stopping = StoppedServer(grace)
    wire = await stopping.open(nursery)
    await wire.send(wire.calling(1, "wait", {"seconds": 30}))
    await wire.stream.send_eof()  # type: ignore[attr-defined]
    [answer] = await wire.receive_all()
    assert answer["error"]["message"] == "the server is being shut down"
    assert stopping.ended == (SHUTDOWN_GRACE if grace is None else grace)


async def test_serving_stop_ends_subscriptions_at_once(nursery: either.Nursery) -> None:
    """The client needn't wait for other requests to learn that no change comes any more."""
    stopping = StoppedServer()
    wire = stopping.wire = Wire(stopping.wire.stream, E)
    nursery.start_soon(stopping.serve)
    wanted = {"notifications": {"toolsListChanged": True}}
    await wire.send(
        wire.calling(1, "wait", {"seconds": 3}), wire.asking(2, "subscriptions/listen", wanted)
    )
    assert (await wire.receive())["method"] == "notifications/subscriptions/acknowledged"
    stopping.stop.set()
    assert (await wire.receive())["id"] == 2
    assert either.current_time() - stopping.start == 0
    assert text_of(await wire.receive()) == "in time"


async def test_serving_stop_set_before_the_client_speaks_refuses_its_requests(
    nursery: either.Nursery,
) -> None:
    stopping = StoppedServer()
    stopping.stop.set()
    nursery.start_soon(stopping.serve)
    assert await stopping.wire.receive_all() == []
    assert stopping.ended == 0
    assert stopping.events == ["enter s", "leave"]


async def test_serving_cancelled_during_the_grace_ends_at_once(nursery: either.Nursery) -> None:
    stopping = StoppedServer()
    with either.CancelScope() as scope:
        async with either.open_nursery() as serving:
            await stopping.stop_during_call(serving, 30)
            await either.sleep(1)
            scope.cancel()
    assert either.current_time() - stopping.start == pytest.approx(1)
    assert stopping.events == ["enter s", "waited", "leave"]
    assert either.is_closed(stopping.theirs)
