"""The server on asyncio: how it ends, and backpressure on a socket.

`tests/drivers` has its handlers.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcp_asyncio_shim import serve_streams
from mcp_asyncio_shim._runtime import AsyncioRuntime
from mcp_core import Limits
from mcp_core.registry import Context, Server
from tests.asyncio_shim.socket_wire import served_on_a_socket as served
from tests.harness.asyncio_memory import asyncio_memory_pair
from tests.harness.forms import Seats
from tests.harness.jsonrpc import (
    META_CAPABILITIES,
    D,
    E,
    cancelled,
    line,
    ping,
    result,
    text_of,
)
from tests.harness.world.loop import descriptors, run
from tests.harness.world.virtual_time import thread_waiting
from tests.levels import long


class Handlers:
    """A server whose handlers wait for the test, and the list of what they saw."""

    def __init__(self, **limits: Any) -> None:
        self.server = Server("handlers", limits=Limits(**limits))
        self.started, self.go = asyncio.Event(), asyncio.Event()
        self.seen: list[str] = []
        loop = asyncio.get_running_loop()

        @self.server.tool
        async def wait() -> str:
            """Wait for the test."""
            self.started.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.seen.append("cancelled")
                raise
            self.seen.append("went on")
            return "gone on"

        @self.server.tool
        async def flood(number: int, context: Context, size: int = 1000) -> int:
            """Report much progress."""
            self.started.set()
            for step in range(number):
                await context.progress(step, message="x" * size)
                self.seen.append("reported")
            return number

        @self.server.tool(thread=True)
        def flood_from_a_thread(number: int, context: Context, size: int = 1000) -> int:
            """Report much progress from a thread."""
            loop.call_soon_threadsafe(self.started.set)
            for step in range(number):
                context.progress_nowait(step, message="x" * size)
                self.seen.append("reported")
            return number


# -- Input -----------------------------------------------------------------------------------------


def asking() -> tuple[Server, list[str]]:
    server = Server("asking")
    came: list[str] = []

    @server.tool
    async def ask(context: Context) -> str:
        """Ask two questions side by side."""
        try:
            answer, roots = await asyncio.gather(
                context.elicit("How many?", Seats), context.roots()
            )
        except BaseException as exc:
            came.append(type(exc).__name__)
            raise
        return f"{answer.data.count if answer.action == 'accept' else answer.action} {len(roots)}"

    return server, came


ANSWERS: dict[str, Any] = {
    "elicitation/create": {"action": "accept", "content": {"count": 2}},
    "roots/list": {"roots": [{"uri": "file:///a"}]},
}
OFFERS: dict[str, Any] = {META_CAPABILITIES: {"roots": {}, "elicitation": {}}}


def test_handler_asks_client_in_two_tasks() -> None:
    """With a session both requests are open at once; without one both go into a single round."""

    async def with_a_session() -> None:
        server, _ = asking()
        async with served(server, D) as wire:
            await wire.send(wire.calling(1, "ask"))
            while "method" in (message := await wire.receive()):
                await wire.send(result(message["id"], ANSWERS[message["method"]]))
            assert text_of(message) == "2 1"

    async def without() -> None:
        server, came = asking()
        async with served(server, E) as wire:
            await wire.send(wire.calling(1, "ask", **OFFERS))
            rounds = []
            while (message := await wire.receive())["result"]["resultType"] == "input_required":
                questions = message["result"].get("inputRequests", {})
                rounds.append(len(questions))
                again = wire.calling(1, "ask", **OFFERS)
                again["params"] |= {
                    "requestState": message["result"]["requestState"],
                    "inputResponses": {
                        key: ANSWERS[question["method"]] for key, question in questions.items()
                    },
                }
                await wire.send(again)
            assert text_of(message) == "2 1"
            assert rounds == [2]
            assert came == ["NeedInput"]

    run(with_a_session())
    run(without())


# -- Shutdown --------------------------------------------------------------------------------------


def test_handlers_after_end_of_input_still_respond() -> None:
    async def main() -> None:
        handlers = Handlers()
        async with served(handlers.server) as wire:
            await wire.send(wire.calling(1, "wait"), wire.calling(2, "wait"))
            wire.writer.write_eof()
            await handlers.started.wait()
            handlers.go.set()
            assert [answer["id"] for answer in await wire.receive_all()] == [1, 2]

    run(main())


def test_handlers_after_grace_are_cancelled() -> None:
    async def main() -> None:
        handlers = Handlers()
        async with served(handlers.server, grace=0.05) as wire:
            await wire.send(wire.calling(1, "wait"))
            wire.writer.write_eof()
            [answer] = await wire.receive_all()
            assert answer["error"]["message"] == "the server is being shut down"
        assert handlers.seen == ["cancelled"]

    run(main())


def test_handler_cleaning_up_is_not_cancelled_again() -> None:
    """asyncio has no shield: a second cancellation would interrupt its `finally` block."""
    server, seen = Server("tidy"), list[str]()

    @server.tool
    async def tidy() -> None:
        """Wait, and clean up."""
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0.5)
            seen.append("clean")

    async def main() -> None:
        async with served(server, grace=0.1) as wire:
            await wire.send(wire.calling(1, "tidy"))
            await asyncio.sleep(1)
            await wire.send(cancelled(1))
            assert await wire.is_alive()  # it is being cleaned up when the grace is over
        assert seen == ["clean"]

    run(main())


def test_client_closing_ends_server() -> None:
    async def main() -> None:
        handlers = Handlers()
        async with served(handlers.server, grace=0.05) as wire:
            await wire.send(
                wire.calling(1, "wait"), wire.calling(2, "flood", {"number": 100}, progressToken=1)
            )
            await handlers.started.wait()
            wire.writer.transport.abort()
        assert handlers.seen.count("cancelled") == 1

    run(main())


def test_client_not_reading_does_not_block_shutdown() -> None:
    async def main() -> None:
        handlers = Handlers()
        async with served(handlers.server, grace=0.05) as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await wire.send(wire.calling(1, "flood", {"number": 3000}, progressToken=1))
            wire.writer.write_eof()
            async with asyncio.timeout(5):
                await wire.serving  # output that the client has not read is dropped
        assert 64 < len(handlers.seen) < 2000

    run(main())


def test_serve_streams_may_be_cancelled() -> None:
    async def main() -> None:
        handlers = Handlers()

        async def use() -> None:
            async with served(handlers.server) as wire:
                await wire.send(wire.calling(1, "wait"))
                await handlers.started.wait()
                wire.serving.cancel()

        with pytest.raises(asyncio.CancelledError):
            await use()
        assert handlers.seen == ["cancelled"]

    run(main())


# -- Backpressure ----------------------------------------------------------------------------------


# `tests/drivers/test_runtime_context.py` has less of it from a thread.
@pytest.mark.parametrize("tool", ["flood", long("flood_from_a_thread")])
def test_client_not_reading_blocks_progress(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler stops at what the buffers hold and loses nothing once the client reads on."""
    drain = AsyncioRuntime.drain

    async def drain_for_thread(runtime: AsyncioRuntime, id: Any) -> None:
        with thread_waiting():
            await drain(runtime, id)

    if tool == "flood_from_a_thread":
        monkeypatch.setattr(AsyncioRuntime, "drain", drain_for_thread)

    async def main() -> None:
        handlers = Handlers()
        async with served(handlers.server) as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            arguments = {"number": 600, "size": 3000}  # few messages, since each takes time
            await wire.send(wire.calling(1, tool, arguments, progressToken=1))
            await handlers.started.wait()
            await asyncio.sleep(1)  # until nothing goes on
            seen = len(handlers.seen)
            assert 64 < seen < 300  # what the socket, the transport and the queue hold
            await asyncio.sleep(1)
            assert len(handlers.seen) == seen
            wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
            messages = [await wire.receive() for _ in range(601)]
            assert [message["params"]["progress"] for message in messages[:-1]] == list(range(600))
            assert text_of(messages[-1]) == "600"

    run(main())


def test_unread_responses_stop_reading() -> None:
    """Nothing asks the client to stop but TCP, and each ping is still answered."""

    async def main() -> None:
        async with served(Handlers(queued=10_000).server) as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            pings, sent = line(ping("x" * 200)) * 100, 0
            while True:
                wire.writer.write(pings)
                sent += 100
                try:
                    async with asyncio.timeout(0.2):
                        await wire.writer.drain()
                except TimeoutError:
                    break
            assert sent < 20_000
            wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
            for _ in range(sent):
                assert (await wire.receive())["result"] == {}

    run(main())


def test_server_with_a_stop_that_is_never_set_leaves_no_task() -> None:
    async def main() -> None:
        ours, theirs = asyncio_memory_pair()
        await ours.send_eof()
        await serve_streams(Server("s"), theirs.reader, theirs.writer, stop=asyncio.Event())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_server_leaves_nothing_open() -> None:
    before = descriptors()

    async def main() -> None:
        for _ in range(3):
            async with served(Handlers().server) as wire:
                assert await wire.is_alive()

    run(main())
    assert descriptors() == before
