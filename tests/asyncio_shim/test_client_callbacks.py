"""The tasks of callbacks and subscriptions of the client on asyncio."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import connect
from mcp_core import Change, ConnectionLost, FormSchema, McpError, PeerError
from mcp_core import types as t
from mcp_core.registry import Context, Server
from tests.harness.jsonrpc import (
    VERSIONS,
    C,
    D,
    E,
)
from tests.harness.world.loop import run

if TYPE_CHECKING:
    from mcp_asyncio_shim import Client

every_revision = pytest.mark.parametrize("version", VERSIONS)
both_eras = pytest.mark.parametrize("version", [D, E])
SAID = t.CreateMessageResult(role="assistant", content=t.TextContent("hi"), model="m")


@dataclass
class Guest:
    name: str
    nights: int = 1


class Hotel:
    """A server that asks for input. `gone` is set when such a handler is cancelled."""

    def __init__(self) -> None:
        self.server = Server("hotel")
        self.gone = asyncio.Event()

        @self.server.tool
        async def book(context: Context) -> str:
            """Ask who comes."""
            answer = await context.elicit("Who comes?", Guest)
            return (
                f"{answer.data.name}, {answer.data.nights}"
                if answer.action == "accept"
                else answer.action
            )

        @self.server.tool
        async def describe(context: Context) -> str:
            """Ask the model and for the roots."""
            try:
                sampled = await context.sample("Describe the room.", max_tokens=9)
            except asyncio.CancelledError:
                self.gone.set()
                raise
            assert isinstance(sampled.content, t.TextContent)
            return f"{sampled.content.text} {[root.uri for root in await context.roots()]}"

        @self.server.tool
        def touch() -> None:
            """Change something."""
            self.server.changed(tools=True, resource="x:1")

        @self.server.resource("x:{n}")
        def read(n: str) -> str:
            return n


class Thinking:
    """An `on_sample` that never returns by itself, and its fate."""

    def __init__(self) -> None:
        self.started, self.cancelled = asyncio.Event(), asyncio.Event()

    async def __call__(self, params: t.CreateMessageParams) -> t.CreateMessageResult:
        self.started.set()
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return SAID


async def fill(message: str, form: FormSchema) -> dict[str, str]:
    assert (message, list(form.properties)) == ("Who comes?", ["name", "nights"])
    await asyncio.sleep(0)
    return {"name": "Ada"}


@both_eras
def test_callback_cancelling_itself_ends_call(version: str) -> None:
    async def give_up(params: Any) -> Any:
        raise asyncio.CancelledError

    async def main() -> None:
        async with connect(Hotel().server, versions=[version], on_sample=give_up) as client:
            with pytest.raises(McpError if version == E else PeerError, match="was cancelled"):
                await client.call_tool("describe")
            await client.ping()

    run(main())


@both_eras
def test_callback_may_close_client(version: str) -> None:
    clients: list[Client] = []

    async def close(params: Any) -> Any:
        await clients[0].aclose()

    async def main() -> None:
        async with connect(Hotel().server, versions=[version], on_sample=close) as client:
            clients.append(client)
            with pytest.raises(ConnectionLost):
                await client.call_tool("describe")

    run(main())


def test_connect_block_waits_for_cancelled_callbacks() -> None:
    """The callback's cleanup takes time, and no task may outlive the block."""
    ends: list[str] = []

    async def slow_to_end(params: Any) -> Any:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0.05)
            ends.append("callback")

    async def main() -> None:
        async with connect(Hotel().server, versions=[D], on_sample=slow_to_end) as client:
            call = asyncio.create_task(client.call_tool("describe"))
            await asyncio.sleep(0.05)
        ends.append("block")
        with pytest.raises(ConnectionLost):
            await call

    run(main())
    assert ends == ["callback", "block"]


def test_change_arriving_with_cancellation_is_kept() -> None:
    """`anext` is cancelled in the step that delivers the change: the next `anext` returns it."""

    async def main() -> None:
        async with (
            connect(Hotel().server, versions=[C]) as client,
            client.listen(tools=True) as changes,
        ):

            async def wait() -> Change:
                return await anext(changes)

            waiting = asyncio.create_task(wait())
            await asyncio.sleep(0)
            line = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
            client._conn.receive_data(line, asyncio.get_running_loop().time())
            client._transport.pump()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await anext(changes) == Change("tools")

    run(main())


@both_eras
def test_roots_requested_ends_after_its_timeout(version: str) -> None:
    async def main() -> None:
        options: Any = {"versions": [version], "on_roots": ["file:///srv"]}
        async with connect(Hotel().server, **options) as client:
            assert await client.roots_requested(timeout=0.01) is (version == E)

    run(main())
