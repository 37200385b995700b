"""Cancel a client's conversation, one of its calls, or the server, after any step of the loop.

The default run cancels after every third step, `-m long` after each.

The cancellation always arrives, no task is left, handlers have ended, and the rest continues to
work.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import Client, connect, serve_streams
from mcp_core import ConnectFailed, ConnectionLost
from mcp_core.registry import Context, Server
from mcp_core.trace import ReplayedServer
from tests.core.trace.replay import traces
from tests.harness import either
from tests.harness.asyncio_memory import asyncio_memory_pair
from tests.harness.jsonrpc import D, E
from tests.harness.world.virtual_time import run
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    Act = Callable[[Client], Awaitable[object]]

MOST_STEPS = 200


class Lab:
    """A server, and how many of its handlers run."""

    def __init__(self) -> None:
        self.running = 0
        self.server = Server("lab")

        @self.server.middleware
        async def count(context: Context, proceed: Callable[[], Awaitable[Any]]) -> Any:
            self.running += 1
            try:
                return await proceed()
            finally:
                self.running -= 1

        @self.server.tool
        async def steps(context: Context) -> str:
            """Take steps."""
            for step in range(3):
                await context.progress(step)
                await asyncio.sleep(0)
            return "there"

        @self.server.tool
        async def ask(context: Context) -> str:
            """Ask for the roots."""
            return str(len(await context.roots()))

    def start(self) -> tuple[Any, asyncio.Task[None]]:
        """Serve one client. Return its end and the task."""
        ours, theirs = asyncio_memory_pair()
        serving = asyncio.create_task(
            serve_streams(self.server, theirs.reader, theirs.writer, grace=0.1)
        )
        return ours, serving


async def call(client: Client) -> None:
    assert (await client.call_tool("steps", progress=lambda *_: None)).text == "there"


async def be_asked(client: Client) -> None:
    assert (await client.call_tool("ask")).text == "1"


async def listen(client: Client) -> None:
    async with client.listen(tools=True):
        await client.ping()


async def roots() -> list[str]:
    await asyncio.sleep(0)
    return ["file:///srv"]


async def cancel_after(steps: int, coroutine: Coroutine[Any, Any, None]) -> bool:
    """Run it in a task that is cancelled after so many steps. Return False if it was over then."""
    task = asyncio.create_task(coroutine)
    for _ in range(steps):
        await asyncio.sleep(0)
        if task.done():
            await task
            return False
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=100)
    assert done
    # A cancellation may come too late, but is not turned into something else.
    assert task.cancelled() or task.exception() is None
    return True


def at_many_steps(play: Callable[[Lab, int], Coroutine[Any, Any, bool]], stride: int) -> None:
    """Call `play` with a fresh server for each `stride`-th step, until all was over before it."""

    async def main(steps: int) -> bool:
        lab = Lab()
        cancelled = await play(lab, steps)
        assert lab.running == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return cancelled

    for steps in range(0, MOST_STEPS, stride):
        if not run(main(steps)):
            assert steps > 5
            return
    raise AssertionError("it never came to its end")


ACTS = pytest.mark.parametrize("act", [call, be_asked, listen])
VERSIONS = pytest.mark.parametrize("version", [D, E])
STRIDES = pytest.mark.parametrize("stride", [3, long(1)])


@ACTS
@VERSIONS
@STRIDES
def test_conversation_cancelled_at_any_step_leaves_nothing(
    act: Act, version: str, stride: int
) -> None:
    """Its stream is closed and its server ends, whether the client was open or not."""

    async def play(lab: Lab, steps: int) -> bool:
        ours, serving = lab.start()

        async def converse() -> None:
            async with either.connect_stream(ours, versions=[version], on_roots=roots) as client:
                await act(client)

        cancelled = await cancel_after(steps, converse())
        assert either.is_closed(ours) or not steps  # it had not begun
        ours.writer.close()
        await serving
        return cancelled

    at_many_steps(play, stride)


@pytest.mark.parametrize("recorded", [False, True])
@STRIDES
def test_conversation_in_this_process_cancelled_at_any_step_leaves_no_socket(
    recorded: bool, stride: int
) -> None:
    """The loop would go on to watch the descriptor, which another socket may get."""

    def watched() -> int:
        loop: Any = asyncio.get_running_loop()
        return len(loop._selector.get_map())

    async def play(lab: Lab, steps: int) -> bool:
        before = watched()

        async def converse() -> None:
            target = ReplayedServer(traces.recorded(traces.HANDSHAKE)) if recorded else lab.server
            async with connect(target, versions=[D] if recorded else [E]):
                await asyncio.sleep(0)

        cancelled = await cancel_after(steps, converse())
        assert watched() == before
        return cancelled

    at_many_steps(play, stride)


@ACTS
@VERSIONS
@STRIDES
def test_call_cancelled_at_any_step_leaves_its_client_alive(
    act: Act, version: str, stride: int
) -> None:
    async def play(lab: Lab, steps: int) -> bool:
        ours, serving = lab.start()
        async with either.connect_stream(ours, versions=[version], on_roots=roots) as client:
            cancelled = await cancel_after(steps, act(client))  # type: ignore[arg-type]
            await client.ping()
            assert not client._pending
            assert lab.running == 0  # the server has got the cancellation before the ping
            await call(client)
        await serving
        return cancelled

    at_many_steps(play, stride)


@VERSIONS
@STRIDES
def test_server_cancelled_at_any_step_ends_its_client(version: str, stride: int) -> None:
    """The client sees a failed or lost connection, never a hang, and the writer gets closed."""

    async def play(lab: Lab, steps: int) -> bool:
        ours, theirs = asyncio_memory_pair()

        async def converse() -> None:
            async with either.connect_stream(ours, versions=[version]) as client:
                await call(client)

        conversing = asyncio.create_task(converse())
        serve = partial(serve_streams, lab.server, theirs.reader, theirs.writer, grace=0.1)
        cancelled = await cancel_after(steps, serve())
        assert either.is_closed(theirs) or not steps
        theirs.writer.close()
        try:
            await conversing
        except (ConnectFailed, ConnectionLost):
            assert cancelled
        return cancelled

    at_many_steps(play, stride)
