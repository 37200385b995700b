"""The `Context` of a handler: what it reads, and what the peer receives."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mcp_core import McpError, ToolError
from mcp_core.registry import Context, ResourceNotFound, Server
from mcp_core.types import InputRequiredResult
from tests.harness import either
from tests.harness.jsonrpc import META_CLIENT, E, text_of
from tests.harness.wire.lines import ERAS, served

pytestmark = pytest.mark.usefixtures("each_driver", "waits_for_threads")

MIB = 1024 * 1024


def progress_of(message: Any) -> tuple[Any, ...]:
    assert message["method"] == "notifications/progress"
    assert "id" not in message
    params = message["params"]
    return params["progressToken"], params["progress"], params.get("total"), params.get("message")


@pytest.mark.requirement("PROG-1", "PROG-4")
@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("token", [7, "seven"])
async def test_context_progress_arrives_in_order_before_the_result(
    token: int | str, version: str
) -> None:
    """MCP wants progress to increase: steps that don't go further are left out."""
    server = Server("steps")

    @server.tool
    async def steps(context: Context) -> str:
        """Take steps."""
        await context.progress(1, 4, "one")
        await context.progress(2.5, 4)
        await context.progress(2.5, 4, "not further, so not sent")
        await context.progress(1, 4, "back, so not sent either")
        context.progress_nowait(4)
        return "there"

    async with served(server, version) as wire:
        await wire.send(wire.calling(1, "steps", progressToken=token))
        assert progress_of(await wire.receive()) == (token, 1, 4, "one")
        assert progress_of(await wire.receive()) == (token, 2.5, 4, None)
        assert progress_of(await wire.receive()) == (token, 4, None, None)
        assert text_of(await wire.receive()) == "there"


@pytest.mark.requirement("PROG-3")
@pytest.mark.parametrize("kind", ["def", "async def", "thread"])
async def test_context_progress_without_token_is_not_sent(kind: str) -> None:
    async with served(counting(kind)) as wire:
        assert text_of(await wire.call(1, "count", {"to": 3})) == "3"


@pytest.mark.parametrize("kind", ["def", "async def", "thread"])
async def test_context_progress_works_in_each_kind_of_handler(kind: str) -> None:
    async with served(counting(kind)) as wire:
        await wire.send(wire.calling(1, "count", {"to": 3}, progressToken="t"))
        assert [progress_of(await wire.receive())[1] for _ in range(3)] == [1, 2, 3]
        assert text_of(await wire.receive()) == "3"


def counting(kind: str) -> Server:
    server = Server("counting")

    def plain(to: int, context: Context) -> str:
        """Count."""
        for step in range(to):
            context.progress_nowait(step + 1, to)
        return str(to)

    async def asynchronous(to: int, context: Context) -> str:
        """Count."""
        for step in range(to):
            await context.progress(step + 1, to)
        return str(to)

    server.add_tool(
        asynchronous if kind == "async def" else plain, name="count", thread=kind == "thread"
    )
    return server


@pytest.mark.requirement("PROG-5")
@pytest.mark.parametrize("version", ERAS)
async def test_context_progress_after_the_result_is_dropped(version: str) -> None:
    """A handler may keep its context, but the client has forgotten the token by then."""
    server = Server("late")
    kept: list[Context] = []

    @server.tool
    async def keep(context: Context) -> str:
        """Keep the context."""
        kept.append(context)
        return ""

    async with served(server, version) as wire:
        await wire.send(wire.calling(1, "keep", progressToken=1))
        assert "result" in await wire.receive()
        await kept[0].progress(1)
        kept[0].progress_nowait(2)
        assert await wire.is_silent()
        assert await wire.is_alive()


async def test_context_progress_waits_for_a_slow_reader() -> None:
    """`progress` is awaited, so a handler can't fill the memory with messages."""
    server = Server("chatty")
    sent = 0

    @server.tool
    async def chat(context: Context) -> str:
        """Send many progress notifications."""
        nonlocal sent
        for sent in range(1, 101):
            await context.progress(sent, message="x" * 20_000)
        return "done"

    async with served(server) as wire:
        await wire.send(wire.calling(1, "chat", progressToken=1))
        await either.wait_all_tasks_blocked()
        assert sent < 20  # 64 KiB in the pipe, as much in the queue, and one write
        received = [progress_of(await wire.receive())[1] for _ in range(100)]
        assert received == list(range(1, 101))
        assert text_of(await wire.receive()) == "done"


async def test_context_progress_in_a_thread_raises() -> None:
    server = Server("plain")

    @server.tool(thread=True)
    def wait(context: Context) -> str:
        """Try to wait."""
        with pytest.raises(RuntimeError, match=r"use context\.progress_nowait"):
            _ = context.progress(1)
        raise ToolError(f"in {threading.current_thread() is threading.main_thread()}")

    async with served(server) as wire:
        assert text_of(await wire.call(1, "wait")) == "in False"


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("thread", [False, True])
async def test_context_attributes_describe_the_request(version: str, thread: bool) -> None:
    """A handler in a thread sees the same facts as one in the event loop."""
    server = Server("facts")

    @server.tool(thread=thread)
    def facts(context: Context) -> dict[str, Any]:
        """Return facts about the request."""
        assert context.server is server
        assert context.peer.info is not None
        return {
            "shown": repr(context),
            "id": context.request_id,
            "revision": context.peer.dialect.version,
            "client": context.peer.info.name,
            "mine": context.meta.get("com.example/mine"),
        }

    async with served(server, version) as wire:
        meta: dict[str, Any] = {"com.example/mine": [1]}
        if version == E:
            meta[META_CLIENT] = {"name": "client", "version": "1"}
        await wire.send(wire.calling("an id", "facts", **meta))
        assert (await wire.receive())["result"]["structuredContent"] == {
            "shown": "<Context tools/call id='an id'>",
            "id": "an id",
            "revision": version,
            "client": "client",
            "mine": [1],
        }


async def test_context_progress_nowait_to_an_unread_stream_is_dropped() -> None:
    """A plain `def` can't wait: it loses messages instead of filling the memory."""
    server = Server("flood")
    links: list[Any] = []

    @server.tool
    def flood(context: Context) -> str:
        """Send many progress notifications at once."""
        links.append(context)
        for step in range(10_000):
            context.progress_nowait(step, message="x" * 1000)
        return "done"

    async with served(server) as wire:
        await wire.send(wire.calling(1, "flood", progressToken=1))
        await either.wait_all_tasks_blocked()
        sent = 0
        while "result" not in (message := await wire.receive()):
            assert message["method"] == "notifications/progress"
            sent += 1
        assert 0 < sent < 200


async def test_context_progress_in_a_thread_waits_for_a_slow_reader() -> None:
    """A thread may block, so unlike in the event loop no message is lost."""
    server = Server("flood")
    sent = 0

    @server.tool(thread=True)
    def flood(context: Context) -> str:
        """Send many progress notifications from a thread."""
        nonlocal sent
        for step in range(100):
            context.progress_nowait(step, message="x" * 10_000)
            sent += 1
        return "done"

    async with served(server) as wire:
        await wire.send(wire.calling(1, "flood", progressToken=1))
        received = [progress_of(await wire.receive())[1]]
        assert sent < 50  # 64 KiB in the pipe, as much in the queue, and one write
        received += [progress_of(await wire.receive())[1] for _ in range(99)]
        assert received == list(range(100))
        assert text_of(await wire.receive()) == "done"


@pytest.mark.parametrize("version", ERAS)
async def test_context_close_stream_keeps_a_byte_stream_open(version: str) -> None:
    """Only a response over HTTP can end early; a handler must learn that this one goes on."""
    server = Server("closing")

    @server.tool
    async def close(context: Context) -> bool:
        """Try to end the response."""
        return context.close_stream(0.5)

    async with served(server, version) as wire:
        assert text_of(await wire.call(1, "close")) == "false"
        assert await wire.is_alive()


# -- Resources of the server -----------------------------------------------------------------------


def library() -> Server:
    """A server with resources of each kind, and a tool that reads them."""
    server = Server("library")
    loop_thread = threading.current_thread()

    @server.resource("book://a")
    def plain() -> str:
        """A book."""
        return "plain"

    @server.resource("book://async/{name}")
    async def asynchronous(name: str, context: Context) -> str:
        """A book by name."""
        await either.sleep(1)
        return f"{name} for {context.method}"

    @server.resource("book://thread", thread=True)
    def in_thread() -> bytes:
        """A book from a disk."""
        assert threading.current_thread() is not loop_thread
        return b"bytes"

    @server.resource("book://lost")
    def lost() -> str:
        """A book that is lost."""
        raise ResourceNotFound("book://lost was lent")

    @server.resource("book://burnt")
    def burnt() -> str:
        """A book that cannot be read."""
        raise KeyError("s3cret")

    @server.resource("book://asks")
    def asks() -> InputRequiredResult:
        """A book that asks by its return value."""
        return InputRequiredResult(request_state="page 2")

    @server.tool
    async def read(uri: str, context: Context) -> str:
        """Read a book."""
        try:
            [contents] = (await context.read_resource(uri)).contents
        except McpError as exc:
            return f"{exc.code} {exc.message}"
        return contents.text if contents.text is not None else str(contents.blob)

    return server


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("book://a", "plain"),
        ("BOOK://a", "plain"),
        ("book://async/dune", "dune for tools/call"),
        ("book://thread", "Ynl0ZXM="),
        ("book://lost", "CODE book://lost was lent"),
        ("book://none", "CODE Resource not found"),
        ("book://async/..%2Fx", "CODE Resource not found: "),
        ("", "CODE Resource not found"),
    ],
)
async def test_context_reads_a_resource_of_its_server(uri: str, text: str, version: str) -> None:
    """As a client would, by each spelling, and with the client's own errors."""
    code = "-32002" if version != E else "-32602"
    async with served(library(), version) as wire:
        found = text_of(await wire.call(1, "read", {"uri": uri}))
    assert found.startswith(text.replace("CODE", code))


@pytest.mark.parametrize(
    ("uri", "error"), [("book://burnt", "KeyError"), ("book://asks", "TypeError: ")]
)
async def test_context_read_that_fails_is_an_internal_error(
    uri: str, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The model gets a reference, as for any exception of the tool itself."""
    async with served(library()) as wire:
        answer = await wire.call(1, "read", {"uri": uri})
    assert answer["result"]["isError"]
    assert "s3cret" not in str(answer)
    [record] = caplog.records
    assert error in caplog.text
    assert record.exc_info is not None


@pytest.mark.parametrize("version", ERAS)
async def test_context_without_http_has_no_headers_and_no_address(version: str) -> None:
    server = Server("pipe")

    @server.tool
    def origin(context: Context) -> str:
        """Return who called."""
        return f"{dict(context.headers)} {context.client_address!r}"

    async with served(server, version) as wire:
        assert text_of(await wire.call(1, "origin")) == "{} ''"
