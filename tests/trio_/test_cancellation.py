"""Cancellation at every point of a scenario: run it once and count the steps of all its tasks, then run it again for each
of them and cancel the whole just before that step.

Whatever the point: nothing but the cancellation comes out, no task is left, every stream is closed, no handler is left
without its `finally`, nothing waits for the clock, and the same server serves the next client as if nothing had been.

Trio takes the tasks that are ready in an order of chance. Its dice are seeded here, so that a failure comes again.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from trio._core import _run

from mcp_core.registry import Context, Server
from mcp_trio import _connect, connect, connect_stream, memory_pair, serve_stream
from tests.core.helpers import D, E, cancelled
from tests.trio_.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Scenario = Callable[["World"], Awaitable[object]]


class CancelAt(trio.abc.Instrument):
    """Cancels `scope` just before step number `at` of any task that belongs to the scenario; counts them."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.steps = 0
        self.time: float | None = None
        self.scope: trio.CancelScope | None = None
        self.tasks: set[trio.lowlevel.Task] = set()

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self.tasks.add(task)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self.tasks.discard(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self.scope is not None:
            self.steps += 1
            if self.steps == self.at:
                self.time = trio.current_time()
                self.scope.cancel()


class World:
    """What a scenario acts in, and what is left when it is over."""

    def __init__(self) -> None:
        self.ends: list[Any] = []
        self.entered = self.left = 0
        self.server = Server("world")
        self.server.add_tool(self.hello)
        self.server.add_tool(self.wait)
        self.server.add_tool(self.steps)
        self.server.add_tool(self.nested)

    def hello(self) -> str:
        """Greet."""
        return "hello"

    @contextmanager
    def inside(self) -> Iterator[None]:
        self.entered += 1
        try:
            yield
        finally:
            self.left += 1

    async def wait(self) -> None:
        """Wait."""
        with self.inside():
            await trio.sleep_forever()

    async def steps(self, context: Context) -> str:
        """Take steps."""
        with self.inside():
            for step in range(5):
                await context.progress(step)
        return "there"

    async def nested(self, context: Context) -> str:
        """Do several things at once."""
        with self.inside():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 0.001)
                nursery.start_soon(context.progress, 1)
                with trio.move_on_after(0.001):
                    await trio.sleep_forever()
                nursery.cancel_scope.cancel()
        return "there"

    def pair(self) -> tuple[Any, Any]:
        ends = memory_pair()
        self.ends += ends
        return ends


async def connect_and_call(world: World) -> None:
    async with connect(world.server) as client:
        assert (await client.call_tool("hello")).content
        await client.list_tools()


async def connect_in_the_stateful_era(world: World) -> None:
    async with connect(world.server, versions=[D]) as client:
        assert (await client.call_tool("hello")).content


async def call_with_progress(world: World) -> None:
    heard: list[float] = []
    async with connect(world.server) as client:
        await client.call_tool("steps", progress=lambda progress, *_: heard.append(progress))
    assert heard == list(range(5))


async def many_calls(world: World) -> None:
    async with connect(world.server) as client, trio.open_nursery() as nursery:
        for tool in "hello", "steps", "nested", "hello":
            nursery.start_soon(client.call_tool, tool)


async def cancel_calls(world: World) -> None:
    async with connect(world.server) as client:
        with trio.move_on_after(0.001):
            await client.call_tool("wait")
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(client.call_tool, "wait")
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await client.ping()


async def close_during_calls(world: World) -> None:
    async def call(client: Any) -> None:
        with pytest.raises(Exception, match="the client was closed"):
            await client.call_tool("wait", timeout=None)

    async with connect(world.server) as client, trio.open_nursery() as nursery:
        nursery.start_soon(call, client)
        nursery.start_soon(call, client)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(client.aclose)
        await client.aclose()


async def a_server_that_goes_away(world: World) -> None:
    ours, theirs = world.pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, world.server, theirs)
        async with connect_stream(ours) as client:
            await client.call_tool("hello")
            await theirs.aclose()
            with pytest.raises(Exception, match=r"closed the connection|connection broke"):
                await client.ping()


async def serve_a_stream(world: World) -> None:
    ours, theirs = world.pair()
    wire = Wire(ours, E)
    async with ours, trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, world.server, theirs)
        await wire.tell(
            wire.calling(1, "nested"), wire.calling(2, "steps", progressToken=2), wire.calling(3, "wait")
        )
        await trio.testing.wait_all_tasks_blocked()
        await wire.tell(cancelled(3), "no JSON", wire.calling(4, "hello"))
        answers = 0
        while answers < 4:
            answers += "method" not in await wire.hear()
        await wire.tell(wire.calling(5, "wait"))
        await ours.send_eof()
        assert await wire.hear_all() == []


async def serve_one_who_does_not_read(world: World) -> None:
    ours, theirs = world.pair()
    wire = Wire(ours, E)
    with trio.move_on_after(10):
        async with ours, trio.open_nursery() as nursery:
            nursery.start_soon(serve_stream, world.server, theirs)
            await wire.tell(wire.calling(0, "steps", progressToken=1))
            for n in range(10):
                await wire.tell(*(wire.asking(100 * n + m, "server/discover") for m in range(100)))
            await trio.sleep_forever()


SCENARIOS: list[Scenario] = [
    connect_and_call,
    connect_in_the_stateful_era,
    call_with_progress,
    many_calls,
    cancel_calls,
    close_during_calls,
    a_server_that_goes_away,
    serve_a_stream,
    serve_one_who_does_not_read,
]


def play(scenario: Scenario, at: int | None, seed: int, monkeypatch: pytest.MonkeyPatch) -> CancelAt:
    """Run the scenario, cancelled before step `at`, and look at what is left."""
    world, cancel = World(), CancelAt(at)
    monkeypatch.setattr(_connect, "memory_pair", world.pair)
    _run._r.seed(seed)

    async def main() -> None:
        before = set(cancel.tasks)
        with trio.CancelScope() as cancel.scope:
            await scenario(world)
        cancel.scope = None
        assert cancel.tasks == before
        assert world.entered == world.left
        if cancel.time is not None:
            assert trio.current_time() - cancel.time <= 0.2  # what a peer gets who does not read
        for end in world.ends:
            with pytest.raises(trio.ClosedResourceError):
                await end.send_all(b"")
        async with connect(world.server) as client:
            assert (await client.call_tool("hello")).content

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=[cancel])
    return cancel


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_cancelled_at_every_step(scenario: Scenario, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = play(scenario, None, seed, monkeypatch).steps
    assert steps > 20
    for at in range(1, steps + 1):
        play(scenario, at, seed, monkeypatch)
