"""A plain `def` that blocks is reported once, and `Server(threads=True)` runs it in a thread."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pydantic
import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.registry import Context, DeclarationError, Server


class Clock:
    """The time that the runtimes see; a function that blocks moves it. A busy machine does not."""

    now = 0.0

    @classmethod
    def block(cls) -> None:
        """Take 60 ms of the event loop, above the limit of 50 ms."""
        if threading.current_thread() is threading.main_thread():
            cls.now += 0.06


@pytest.fixture(autouse=True)
def _runtimes_look_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for runtime in "mcp_trio._runtime.TrioRuntime", "mcp_asyncio_shim._runtime.LoopRuntime":
        monkeypatch.setattr(f"{runtime}.monotonic", staticmethod(lambda: Clock.now))


def sleepy(**options: Any) -> Server:
    server = Server("sleepy", **options)

    @server.tool
    def nap() -> str:
        """Block."""
        Clock.block()
        return threading.current_thread().name

    @server.tool
    def quick() -> str:
        """Do not block."""
        return threading.current_thread().name

    @server.prompt
    def slow_prompt() -> str:
        """Block."""
        Clock.block()
        return "text"

    return server


def call_all(runtime: str, server: Server, *names: str) -> list[Any]:
    async def calls(module: Any) -> list[Any]:
        async with module.connect(server) as client:
            found = [(await client.call_tool(name)).content[0].text for name in names]
            await client.get_prompt("slow_prompt")
            return found

    if runtime == "trio":
        return trio.run(calls, mcp_trio)
    return asyncio.run(calls(mcp_asyncio_shim))


@pytest.mark.parametrize("runtime", ["trio", "asyncio"])
@pytest.mark.parametrize("with_middleware", [False, True])
def test_blocking_function_is_reported_once_with_the_cure(
    runtime: str, with_middleware: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """`nap` blocks twice and is logged once, with or without middleware around it."""
    server = sleepy()
    if with_middleware:

        @server.middleware
        async def through(context: Context, proceed: Any) -> Any:
            return await proceed()

    with caplog.at_level(logging.WARNING):
        call_all(runtime, server, "nap", "quick", "nap")
    tool, prompt = (record.getMessage() for record in caplog.records)
    assert tool.startswith("function 'nap' blocked all clients for 0.")
    assert prompt.startswith("function 'slow_prompt' blocked all clients for 0.")
    assert tool.endswith("with thread=True, or as an `async def` that awaits what takes long")


class Slow(pydantic.BaseModel):
    word: str

    @pydantic.field_validator("word")
    @classmethod
    def _check(cls, word: str) -> str:
        Clock.block()
        return word


@pytest.mark.parametrize("runtime", ["trio", "asyncio"])
def test_validator_that_blocks_is_reported_with_its_function(
    runtime: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It runs in the event loop before the function does, so all clients wait for it too."""
    server = Server("slow")

    @server.tool
    def count(word: Slow) -> int:
        """Count letters."""
        return len(word.word)

    async def call(module: Any) -> Any:
        async with module.connect(server) as client:
            return (await client.call_tool("count", {"word": {"word": "tea"}})).text

    with caplog.at_level(logging.WARNING):
        found = (
            trio.run(call, mcp_trio) if runtime == "trio" else asyncio.run(call(mcp_asyncio_shim))
        )
    assert found == "3"
    (record,) = caplog.records
    assert record.getMessage().startswith("function 'count' blocked all clients for 0.")


def items() -> Iterator[str]:
    Clock.block()
    yield threading.current_thread().name


@pytest.mark.parametrize("runtime", ["trio", "asyncio"])
def test_iterator_is_listed_where_its_function_runs(
    runtime: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In the thread, if there is one; otherwise a slow one is reported with its function."""
    server = sleepy(threads=True)

    @server.tool(thread=True)
    def threaded() -> Iterable[str]:
        """List."""
        return items()

    @server.tool(thread=False)
    def looped() -> Iterable[str]:
        """List."""
        return items()

    with caplog.at_level(logging.WARNING):
        threaded_name, looped_name = call_all(runtime, server, "threaded", "looped")
    main = threading.main_thread().name
    assert main not in threaded_name
    assert main in looped_name
    (record,) = caplog.records
    assert record.getMessage().startswith("function 'looped' blocked all clients for 0.")


@pytest.mark.parametrize("runtime", ["trio", "asyncio"])
def test_server_with_threads_keeps_the_loop_free_and_logs_nothing(
    runtime: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        names = call_all(runtime, sleepy(threads=True), "nap", "quick")
    assert caplog.records == []
    assert threading.main_thread().name not in names


def test_server_with_threads_leaves_async_and_declared_functions_alone() -> None:
    """Each other plain `def` moves to a thread; `thread=False` wins over the server."""
    server = Server("s", threads=True)

    @server.tool(thread=False)
    def here() -> str:
        """Stay in the event loop."""
        return threading.current_thread().name

    @server.tool
    async def waits() -> str:
        """Wait."""
        return threading.current_thread().name

    @server.prompt
    def slow_prompt(code: str = "") -> str:
        """Run in a thread."""
        return threading.current_thread().name

    @server.completion("slow_prompt", "code")
    def codes(typed: str) -> list[str]:
        return [threading.current_thread().name]

    @server.resource("a://b")
    def contents() -> str:
        """Run in a thread."""
        return threading.current_thread().name

    @server.method("acme/thread")
    def method() -> dict[str, str]:
        return {"name": threading.current_thread().name}

    async def main() -> None:
        async with mcp_trio.connect(server) as client:
            for tool in "here", "waits":
                (content,) = (await client.call_tool(tool)).content
                assert content.text == threading.main_thread().name  # type: ignore[union-attr]
            message = (await client.get_prompt("slow_prompt")).messages[0]
            completion = await client.complete("slow_prompt", "code", "")
            resource = (await client.read_resource("a://b")).contents[0]
            reply: Any = await client.request("acme/thread")
            names = [message.content.text, *completion.values, resource.text]  # type: ignore[union-attr]
            assert threading.main_thread().name not in names
            assert reply["name"] != threading.main_thread().name

    trio.run(main)


def test_thread_option_of_async_function_raises() -> None:
    async def waits() -> str:
        """Wait."""
        return ""

    with pytest.raises(DeclarationError, match="thread=True is for a plain def that blocks"):
        Server("s").add_tool(waits, thread=True)
