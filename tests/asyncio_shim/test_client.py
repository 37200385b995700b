"""The client on asyncio: every call in every revision, and early ends of calls and connections."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio
from mcp_asyncio_shim import Client, connect
from mcp_asyncio_shim._link import Link
from mcp_core import ALL, CallTimeout, ConnectionLost, PeerError
from mcp_core.drivers import ClientConfigOptions, client_config
from mcp_core.registry import Context, Server
from mcp_core.types import TextContent
from tests.asyncio_shim.socket_wire import SocketWire
from tests.conformance.everything_server import everything
from tests.harness.jsonrpc import (
    VERSIONS,
    C,
    E,
    line,
    notification,
    result,
)
from tests.harness.world.loop import run
from tests.harness.world.virtual_time import advance_clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine


class WaitingServer:
    """A server whose tool waits, and its fate."""

    def __init__(self) -> None:
        self.started, self.gone = asyncio.Event(), asyncio.Event()
        self.server = Server("waiting")

        @self.server.tool
        async def wait(context: Context) -> str:
            """Never return by itself."""
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
            """Report progress, number times, each after 50 ms."""
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
def test_calls_work_in_every_revision(version: str, capfd: pytest.CaptureFixture[str]) -> None:
    """One long conversation with the `everything` server covers each kind of call."""

    async def use(client: Client) -> None:
        assert client.peer.dialect.version == version
        assert client.peer.info is not None
        assert client.peer.info.name == "everything"
        assert client.peer.instructions == "Call anything."
        names = [tool.name for tool in await client.list_tools()]
        assert names[:3] == ["test_simple_text", "weather", "echo"]
        assert len(names) == len(set(names)) > 40
        assert (await client.call_tool("echo", {"text": "☃"})).content == [TextContent("☃")]
        weather = await client.call_tool("weather", {"city": "Rome"})
        if ALL.index(version) <= ALL.index(C):
            assert weather.structured_content == {"city": "Rome", "celsius": 21.5}
        received: list[tuple[float, float | None, str | None]] = []
        for tool in ("count", "block"):
            await client.call_tool(tool, {"to": 2}, progress=lambda *args: received.append(args))
        assert [(progress, total) for progress, total, _ in received] == [(1, 2), (2, 2)] * 2
        assert (await client.call_tool("meta", meta={"com.example/word": "hello"})).content == [
            TextContent("hello")
        ]
        assert [resource.uri for resource in await client.list_resources()] == [
            "test://static-text",
            "test://static-binary",
            "test://watched-resource",
        ]
        templates = [found.uri_template for found in await client.list_resource_templates()]
        assert templates == ["test://template/{id}/data", "book://{author}/{title}", "memo://{day}"]
        [contents] = (await client.read_resource("book://austen/emma")).contents
        assert contents.text == "emma, by austen."
        assert "review" in [prompt.name for prompt in await client.list_prompts()]
        prompt = await client.get_prompt("review", {"code": "x"})
        assert prompt.messages[0].content == TextContent("Review this, be kind: x")
        assert (await client.request("acme/reindex", {"shelf": "A"}))["shelf"] == "A"
        await client.ping()
        assert (await client.call_tool("fail", {"how": "reason"})).is_error
        with pytest.raises(PeerError, match="not today"):
            await client.call_tool("fail", {"how": "error"})
        assert repr(client).startswith(f"<Client of <Connection client READY {version}")

    with_client(everything("asyncio"), use, version)


@pytest.mark.parametrize("breaks", [False, True], ids=["open", "broken"])
def test_server_in_memory_ends_with_its_block(breaks: bool) -> None:
    """A call that runs is cancelled at once, and its cleanup is waited for: nothing outlives it.

    Over a broken connection nothing tells the server to cancel it.
    """

    async def main() -> None:
        loop = asyncio.get_running_loop()
        started = asyncio.Event()
        log: list[float | str] = []
        server = Server("tea")

        @server.tool
        async def brew() -> str:
            """Brew for ten minutes, and then clean the pot."""
            started.set()
            try:
                await asyncio.sleep(600)
            finally:
                log.append(loop.time())
                await asyncio.sleep(0.25)
                log.append("clean")
            return ""

        async with connect(server) as client:
            calling = asyncio.create_task(client.call_tool("brew"))
            await started.wait()
            if breaks:
                client._transport._abort()  # type: ignore[union-attr]
            began = loop.time()
        assert log == [began, "clean"]
        assert loop.time() == began + 0.25
        with pytest.raises(ConnectionLost):
            await calling

    run(main())


def test_server_in_memory_ends_if_the_client_has_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a cancellation it would wait for ever: its own connection stays open."""
    connect_loop, opened = asyncio.open_connection, []

    async def fail_at_second(**options: Any) -> Any:
        opened.append(options)
        if len(opened) == 2:
            await asyncio.sleep(1)  # the server has begun
            raise OSError("no memory")
        return await connect_loop(**options)

    async def main() -> None:
        with pytest.raises(OSError, match="no memory"):
            async with connect(Server("tea")):
                raise AssertionError

    monkeypatch.setattr(asyncio, "open_connection", fail_at_second)
    run(main())


def test_client_info_equals_that_of_trio() -> None:
    server = Server("s")

    @server.tool
    def who(context: Context) -> str:
        """Return the name of the client."""
        assert context.peer.info is not None
        return f"{context.peer.info.name} {context.peer.info.version}"

    async def use(client: Client) -> Any:
        return (await client.call_tool("who")).content

    assert with_client(server, use) == [TextContent(f"mcp-trio {mcp_trio.__version__}")]


# -- Early ends of calls ---------------------------------------------------------------------------


async def by_cancelling_the_task(client: Client, waiting: WaitingServer) -> None:
    task = asyncio.create_task(client.call_tool("wait"))
    await waiting.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_a_timeout_of_the_callers(client: Client, waiting: WaitingServer) -> None:
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.05):
            await client.call_tool("wait")
    assert type(caught.value) is TimeoutError


async def by_the_timeout_of_the_call(client: Client, waiting: WaitingServer) -> None:
    with pytest.raises(CallTimeout, match=r"no answer to tools/call within 0\.05 s"):
        await client.call_tool("wait", timeout=0.05)


async def by_a_callback_that_fails(client: Client, waiting: WaitingServer) -> None:
    def fail(*_: object) -> None:
        raise StopIteration("enough")

    with pytest.raises(RuntimeError) as caught:
        await client.call_tool("wait", progress=fail)
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
def test_call_ended_early_is_cancelled_at_server(
    give_up: Callable[[Client, WaitingServer], Coroutine[Any, Any, None]], version: str
) -> None:
    async def main() -> None:
        waiting = WaitingServer()
        async with connect(waiting.server, versions=[version]) as client:
            await give_up(client, waiting)
            await waiting.gone.wait()
            await client.ping()

    run(main())


# -- With the test as the server -------------------------------------------------------------------


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[tuple[Client, SocketWire]]:
    """Yield a client whose server is the test, in the stateless revision."""
    ours, theirs = socket.socketpair()
    wire = SocketWire(*await asyncio.open_connection(sock=theirs), E)
    given: ClientConfigOptions = {"versions": [E], **options}  # type: ignore[typeddict-item]
    streams = await asyncio.open_connection(sock=ours)
    carry = partial(Link, streams)
    async with aclosing(Client(client_config(given), given, carry)) as client:
        opening = asyncio.create_task(client.open())
        discovered = {"supportedVersions": [E], "capabilities": {"tools": {}, "logging": {}}}
        await wire.send(result((await wire.receive())["id"], discovered))
        await opening
        yield client, wire
    wire.writer.close()
    await wire.writer.wait_closed()


def test_progress_between_timeout_and_its_task_is_reported() -> None:
    """Progress comes after the deadline but before the task wakes: its callback still runs."""

    async def main() -> None:
        async with connected() as (client, wire):
            received: list[object] = []
            call = asyncio.create_task(
                client.call_tool(
                    "t", timeout=0.05, progress=lambda *progress: received.append(progress)
                )
            )
            request_sent = await wire.receive()
            loop = asyncio.get_running_loop()

            def receive_late() -> None:  # after the timer and before the task
                late = notification(
                    "notifications/progress", {"progressToken": request_sent["id"], "progress": 1}
                )
                client._conn.receive_data(line(late), loop.time())
                client._transport.pump()

            advance_clock(0.1)  # the timer is due when the loop looks again
            loop.call_soon(loop.call_soon, receive_late)
            with pytest.raises(CallTimeout):
                await call
            assert received == [(1, None, None)]

    run(main())


# -- Ends of connections ---------------------------------------------------------------------------


def test_connect_block_exception_is_unchanged() -> None:
    """No exception group wraps it, and the call left behind gets `ConnectionLost`."""

    async def main() -> None:
        waiting = WaitingServer()
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


def test_connect_block_cancelled_ends() -> None:
    """The in-memory server's handler is cancelled too, before the block ends."""

    async def main() -> None:
        waiting = WaitingServer()

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


@pytest.mark.parametrize("target", ["python server.py", b"python", [], 5, None])
def test_connect_other_type_of_target_raises(target: Any) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="list of words"):
            async with connect(target):
                pass

    run(main())


def test_connect_server_lifespan_failing_raises_it() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        if server.info.name:
            raise FileNotFoundError("the database is gone")
        yield

    async def main() -> None:
        async with connect(Server("s", lifespan=lifespan)):
            raise AssertionError

    with pytest.raises(FileNotFoundError, match="the database is gone"):
        asyncio.run(main())
