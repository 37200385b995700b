"""The client on asyncio: every call in every revision over memory; and what ends a call, or a conversation, too early."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio
from mcp_asyncio_shim import Client, connect
from mcp_core import ALL, CallTimeout, ConnectFailed, ConnectionLost, LocalProtocolError, PeerError
from mcp_core.registry import Context, Server
from mcp_core.types import TextContent
from tests.asyncio_shim.everything import everything
from tests.asyncio_shim.loop import run
from tests.core.helpers import VERSIONS, C, E

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine


class Waiting:
    """A server whose tool waits, and what became of it."""

    def __init__(self) -> None:
        self.started, self.gone = asyncio.Event(), asyncio.Event()
        self.server = Server("waiting")

        @self.server.tool
        async def wait(context: Context) -> str:
            """Never come back by itself."""
            self.started.set()
            await context.progress(1)
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                self.gone.set()
                raise
            return "woken"

        @self.server.tool
        async def steps(number: int, context: Context) -> str:
            """Tell of a step, number times, each after 50 ms."""
            for step in range(number):
                await asyncio.sleep(0.05)
                await context.progress(step + 1)
            return "done"


def with_client(server: Server, use: Callable[[Client], Awaitable[Any]], *versions: str) -> Any:
    async def main() -> Any:
        async with connect(server, versions=versions or ALL) as client:
            return await use(client)

    return run(main())


@pytest.mark.parametrize("version", VERSIONS)
def test_every_call_in_every_revision(version: str, capfd: pytest.CaptureFixture[str]) -> None:
    async def use(client: Client) -> None:
        assert client.peer.dialect.version == version
        assert client.peer.info is not None
        assert client.peer.info.name == "everything"
        assert client.peer.instructions == "Call."
        names = [tool.name for tool in await client.list_tools()]
        assert names == ["echo", "weather", "picture", "count", "block", "fail", "meta"]
        assert (await client.call_tool("echo", {"text": "☃"})).content == [TextContent("☃")]
        weather = await client.call_tool("weather", {"city": "Rome"})
        if ALL.index(version) <= ALL.index(C):
            assert weather.structured_content == {"city": "Rome", "celsius": 21.5}
        told: list[tuple[float, float | None, str | None]] = []
        for tool in ("count", "block"):
            await client.call_tool(tool, {"to": 2}, progress=lambda *args: told.append(args))
        assert [(progress, total) for progress, total, _ in told] == [(1, 2), (2, 2)] * 2
        assert (await client.call_tool("meta", meta={"com.example/word": "hello"})).content == [
            TextContent("hello")
        ]
        assert [resource.uri for resource in await client.list_resources()] == ["memo://today", "memo://logo"]
        (template,) = await client.list_resource_templates()
        assert template.uri_template == "memo://{day}/notes"
        assert (await client.read_resource("memo://may-1/notes")).contents[0].text == "Notes of may-1."
        assert [prompt.name for prompt in await client.list_prompts()] == ["review"]
        prompt = await client.get_prompt("review", {"code": "x"})
        assert prompt.messages[0].content == TextContent("Review this, be kind: x")
        assert (await client.request("acme/reindex", {"shelf": "A"}))["shelf"] == "A"
        await client.ping()
        assert (await client.call_tool("fail", {"how": "reason"})).is_error
        with pytest.raises(PeerError, match="not today"):
            await client.call_tool("fail", {"how": "error"})
        assert repr(client).startswith(f"<Client of <Connection client READY {version}")

    with_client(everything(), use, version)


def test_the_newest_common_revision_is_found() -> None:
    async def use(client: Client) -> str:
        return client.peer.dialect.version

    assert with_client(everything(), use) == E
    for version in VERSIONS:
        assert with_client(everything(version), use) == version


def test_it_calls_itself_what_the_other_runtime_does() -> None:
    server = Server("s")

    @server.tool
    def who(context: Context) -> str:
        """Say who asks."""
        assert context.peer.info is not None
        return f"{context.peer.info.name} {context.peer.info.version}"

    async def use(client: Client) -> Any:
        return (await client.call_tool("who")).content

    assert with_client(server, use) == [TextContent(f"mcp-trio {mcp_trio.__version__}")]


def test_many_calls_cross() -> None:
    async def use(client: Client) -> None:
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(client.call_tool("count", {"to": number})) for number in range(200)]
        texts = [call.result().content for call in calls]
        assert texts == [[TextContent(str(number))] for number in range(200)]

    with_client(everything(), use)


# -- What ends a call too early ----------------------------------------------------------------------------------------------


async def by_cancelling_the_task(client: Client, waiting: Waiting) -> None:
    task = asyncio.create_task(client.call_tool("wait"))
    await waiting.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_a_timeout_of_the_callers(client: Client, waiting: Waiting) -> None:
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.05):
            await client.call_tool("wait")
    assert type(caught.value) is TimeoutError


async def by_the_timeout_of_the_call(client: Client, waiting: Waiting) -> None:
    with pytest.raises(CallTimeout, match=r"no answer to tools/call within 0\.05 s"):
        await client.call_tool("wait", timeout=0.05)


async def by_a_callback_that_fails(client: Client, waiting: Waiting) -> None:
    def hear(*_: object) -> None:
        raise StopIteration("enough")

    with pytest.raises(RuntimeError) as caught:
        await client.call_tool("wait", progress=hear)
    assert isinstance(caught.value.__cause__, StopIteration)


@pytest.mark.parametrize(
    "give_up",
    [
        by_cancelling_the_task,
        by_a_timeout_of_the_callers,
        by_the_timeout_of_the_call,
        by_a_callback_that_fails,
    ],
)
@pytest.mark.parametrize("version", [E, C])
def test_a_call_that_is_given_up_is_cancelled_at_the_server(
    give_up: Callable[[Client, Waiting], Coroutine[Any, Any, None]], version: str
) -> None:
    async def main() -> None:
        waiting = Waiting()
        async with connect(waiting.server, versions=[version]) as client:
            await give_up(client, waiting)
            await waiting.gone.wait()
            await client.ping()

    run(main())


def test_progress_prolongs_a_call() -> None:
    async def main() -> None:
        async with connect(Waiting().server) as client:
            told: list[float] = []
            arguments = {"number": 6}
            await client.call_tool(
                "steps", arguments, timeout=0.2, progress=lambda step, *_: told.append(step)
            )
            assert told == [1, 2, 3, 4, 5, 6]
            await client.call_tool("steps", arguments, timeout=None, progress=lambda *_: None)
            with pytest.raises(CallTimeout):
                await client.call_tool("steps", arguments, timeout=0.2)  # nobody listens, so none is sent

    run(main())


def test_a_call_that_may_not_be_made_sends_nothing() -> None:
    async def use(client: Client) -> None:
        with pytest.raises(LocalProtocolError):
            await client.request("logging/setLevel", {"level": "info"})
        await client.ping()

    with_client(everything(), use)


# -- What ends a conversation ------------------------------------------------------------------------------------------------


def test_closing_ends_every_pending_call() -> None:
    async def main() -> None:
        waiting = Waiting()
        async with connect(waiting.server) as client:
            calls = [asyncio.create_task(client.call_tool("wait")) for _ in range(3)]
            await waiting.started.wait()
            await asyncio.gather(client.aclose(), client.aclose())
            for call in calls:
                with pytest.raises(ConnectionLost, match="the client was closed"):
                    await call
            with pytest.raises(ConnectionLost, match="the client was closed"):
                await client.ping()
            await client.aclose()
        await waiting.gone.wait()

    run(main())


def test_what_the_block_raises_comes_out_as_it_is() -> None:
    async def main() -> None:
        waiting = Waiting()
        calls: list[asyncio.Task[Any]] = []

        async def use() -> None:
            async with connect(waiting.server) as client:
                calls.append(asyncio.create_task(client.call_tool("wait")))
                await waiting.started.wait()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await use()
        with pytest.raises(ConnectionLost):
            await calls[0]
        assert waiting.gone.is_set()

    run(main())


def test_a_block_that_is_cancelled_ends() -> None:
    async def main() -> None:
        waiting = Waiting()

        async def use() -> None:
            async with connect(waiting.server) as client:
                await client.call_tool("wait")

        task = asyncio.create_task(use())
        await waiting.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert waiting.gone.is_set()

    run(main())


def test_no_common_revision() -> None:
    async def main() -> None:
        with pytest.raises(ConnectFailed, match="no common revision"):
            async with connect(everything(C), versions=[E]):
                pass

    run(main())


def test_a_command_is_not_one_string() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="list of words"):
            async with connect("python server.py"):
                pass

    run(main())
