"""The server on asyncio, as the child of clients that others wrote, or that run on trio; and our client with theirs as a child."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp import Client, MCPError, StdioServerParameters

import mcp_asyncio_shim
import mcp_trio
from mcp_core import PeerError
from mcp_core.types import TextContent
from tests.asyncio_shim.loop import run
from tests.core.helpers import VERSIONS, D, E

HERE = Path(__file__).parent
OURS = [sys.executable, str(HERE / "everything.py"), "asyncio"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_on_trio(version: str) -> None:
    with trio.fail_after(20):
        async with mcp_trio.connect(OURS, versions=[version]) as client:
            assert client.peer.dialect.version == version
            assert (await client.call_tool("echo", {"text": "☃"})).content == [TextContent("☃")]
            for tool in ("count", "block"):
                told: list[tuple[Any, ...]] = []
                await client.call_tool(tool, {"to": 3}, progress=lambda *args, told=told: told.append(args))
                assert [(progress, total) for progress, total, _ in told] == [(1, 3), (2, 3), (3, 3)]
            with trio.move_on_after(0.02):
                await client.call_tool("count", {"to": 1_000_000}, progress=lambda *_: None)
            with pytest.raises(PeerError, match="not today"):
                await client.call_tool("fail", {"how": "error"})
            assert (await client.read_resource("memo://may-1/notes")).contents[0].text == "Notes of may-1."


@pytest.mark.parametrize(("mode", "version"), [("auto", E), ("legacy", D)])
def test_the_official_client(mode: str, version: str) -> None:
    async def main() -> None:
        # The client gives a child little of its own environment; the tree under test has to be added.
        environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}
        target = StdioServerParameters(command=OURS[0], args=OURS[1:], env=environment)
        async with Client(target, mode=mode) as client:
            assert client.protocol_version == version
            assert len((await client.list_tools()).tools) == 7
            told: list[float] = []

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                told.append(progress)

            counted = await client.call_tool("count", {"to": 3}, progress_callback=hear)
            assert counted.content[0].text == "3"  # type: ignore[union-attr]
            assert (await client.call_tool("echo", {"txt": "typo"})).is_error
            with pytest.raises(MCPError, match="not today"):
                await client.call_tool("fail", {"how": "error"})
            assert (await client.read_resource("memo://today")).contents[0].text == "Buy milk."  # type: ignore[union-attr]
            assert sorted(told) == [1, 2, 3]

    run(main())


@pytest.mark.parametrize("version", [E, D])
def test_the_official_server(version: str) -> None:
    async def main() -> None:
        argv = [sys.executable, str(HERE.parent / "interop" / "sdk_server.py")]
        async with mcp_asyncio_shim.connect(argv, versions=[version]) as client:
            told: list[float] = []
            counted = await client.call_tool("count", {"to": 3}, progress=lambda step, *_: told.append(step))
            assert counted.content == [TextContent("3")]
            assert told == [1, 2, 3]
            with pytest.raises(TimeoutError):
                await client.call_tool("wait", timeout=0.1)
            assert (await client.call_tool("cancelled")).content == [TextContent("yes")]  # it has heard of it

    run(main())
