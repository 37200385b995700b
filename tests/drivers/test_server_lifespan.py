"""The lifespan of a server, around its conversations, and changes that it announces to them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.registry import Context, Server
from tests.harness import either
from tests.harness.jsonrpc import text_of
from tests.harness.wire.lines import served
from tests.harness.world import virtual_time
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.usefixtures("each_driver")


class Database:
    def __init__(self) -> None:
        self.rows = ["one"]


def build(events: list[str]) -> Server:
    """A server with a lifespan that records events."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[Database]:
        events.append(f"enter {server.info.name}")
        async with either.open_nursery() as nursery:  # a lifespan may run tasks
            nursery.start_soon(either.sleep_forever)
            try:
                yield Database()
            finally:
                events.append("leave")
                nursery.cancel_scope.cancel()

    server = Server("s", lifespan=lifespan)

    @server.tool
    def rows(context: Context[Database]) -> list[str]:
        """Return the rows."""
        return context.lifespan.rows

    @server.tool
    async def wait(seconds: float) -> str:
        """Wait."""
        try:
            await either.sleep(seconds)
        finally:
            events.append("waited")
        return "in time"

    return server


async def test_serving_lifespan_surrounds_the_conversation() -> None:
    events: list[str] = []
    async with either.connect(build(events)) as client:
        assert (await client.call_tool("rows")).structured_content == ["one"]
        assert events == ["enter s"]
        with either.move_on_after(1):
            await client.call_tool("wait", {"seconds": 30})
        async with either.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "wait", {"seconds": 1})
    assert events == ["enter s", "waited", "waited", "leave"]


async def test_serving_lifespan_failure_propagates() -> None:
    """The author sees the plain exception, not a group, and the stream is closed."""

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if server.info.name:
            raise FileNotFoundError("the database is gone")
        yield

    server = Server("s", lifespan=lifespan)
    ours, theirs = either.memory_pair()
    with pytest.raises(FileNotFoundError, match="the database is gone"):
        await either.serve_stream(server, theirs)
    assert either.is_closed(theirs)
    await ours.aclose()
    with pytest.raises(FileNotFoundError, match="the database is gone"):
        async with either.connect(server):
            raise AssertionError


async def test_serving_without_lifespan_has_no_value() -> None:
    server = Server("s")

    @server.tool
    def value(context: Context) -> str:
        """Return the value."""
        return repr(context.lifespan)

    async with served(server) as wire:
        assert text_of(await wire.call(1, "value")) == "None"


# -- Changes -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("waits_for_threads")
@pytest.mark.parametrize("where", ["a handler", "another task", "a thread"])
async def test_serving_change_reaches_the_client_from_any_thread(where: str) -> None:
    """`changed` needs no token of a loop, and does nothing once all conversations have ended."""
    server = Server("s")

    @server.tool
    async def change() -> str:
        """Change."""
        if where == "a handler":
            server.changed(tools=True)
        return "changed"

    if not either.on_trio():
        loop = asyncio.get_running_loop()
        loop.set_debug(True)  # what another thread may not call raises
        loop.slow_callback_duration = PATIENCE
    async with served(server) as wire:
        assert text_of(await wire.call(1, "change")) == "changed"
        if where == "another task":
            server.changed(tools=True)
        elif where == "a thread":
            await either.in_thread(lambda: server.changed(tools=True))
        assert await wire.receive() == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {},
        }
    server.changed(tools=True)  # no conversation is left


def test_serving_change_after_the_run_is_ignored(each_driver: str) -> None:
    """So is what a thread does that a handler has left behind."""
    server = Server("s")
    kept: list[Any] = []
    server.add_tool(lambda: "x", name="t", description="Do.", input_schema={"type": "object"})

    async def main() -> None:
        async with either.connect(server) as client:
            await client.list_tools()
            kept.extend(server._listeners)

    if each_driver == "trio":
        trio.run(main)
    else:
        virtual_time.run(main())
    server.changed(tools=True)
    (service,) = kept
    service.runtime.call_soon(service.runtime.pump)
