"""Recorded conversations of our client with our server, judged: in memory, and over HTTP."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL, PeerError
from mcp_core.trace import DamagedLine, Finding, Judge, read_trace
from mcp_trio import Context, Server, connect, serve_http
from tests.harness import either

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("each_driver")


def make_server() -> Server:
    server = Server("judged")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    async def steps(context: Context) -> str:
        """Report progress and log messages."""
        for step in range(3):
            await context.progress(step, 3)
            await context.log("info", step)
        return "done"

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for the roots of the client."""
        return str(await context.roots())

    @server.resource("a://b")
    def text() -> str:
        """Return some text."""
        return "text"

    @server.prompt
    def greet(name: str) -> str:
        """Greet someone."""
        return f"Hello {name}"

    return server


async def play(client: Any) -> None:
    await client.list_tools()
    await client.list_resources()
    await client.list_prompts()
    await client.call_tool("add", {"a": 1, "b": 2})
    await client.call_tool("steps", {}, progress=lambda *_: None)
    await client.read_resource("a://b")
    await client.get_prompt("greet", {"name": "Ada"})
    for tool, arguments in (("missing", {}), ("add", {"a": "x"})):
        with suppress(PeerError):
            await client.call_tool(tool, arguments)


def judged(path: Path, *, from_start: bool) -> tuple[list[Finding], Judge]:
    header, lines = read_trace([path.read_bytes()])
    judge = Judge(header, from_start=from_start)
    found: list[Finding] = []
    for number, line in lines:
        assert not isinstance(line, DamagedLine)
        found += judge.receive(line, number)
    return found + judge.close(), judge


@either.trio_only  # servers of HTTP belong to mcp_trio
@pytest.mark.usefixtures("waits_for_threads")  # and for sockets
@pytest.mark.parametrize("version", ALL)
async def test_conversation_over_http_is_clean_at_both_ends(version: str, tmp_path: Path) -> None:
    """Both ends record one conversation, and the judge must find no certain fault in either."""
    ours, theirs = tmp_path / "client.jsonl", tmp_path / "server.jsonl"
    async with trio.open_nursery() as nursery:

        async def serve(task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
            await serve_http(make_server(), record=theirs, task_status=task_status)

        address = await nursery.start(serve)
        async with connect(address.url, record=ours, versions=[version]) as client:
            await play(client)
        nursery.cancel_scope.cancel()
    for path in ours, theirs:
        found, judge = judged(path, from_start=path == ours)
        assert [each for each in found if each.is_certain] == []
        assert judge.messages > 15
        assert judge.opportunities["RPC-7"] > 5


@pytest.mark.parametrize("version", ALL)
async def test_conversation_in_memory_is_clean(version: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    async with either.connect(make_server(), record=path, versions=[version]) as client:
        await play(client)
    found, judge = judged(path, from_start=True)
    assert found == []
    assert len(judge.opportunities) > 25
