"""Our client with a server of the official Python SDK (`mcp` 2.3), over stdio, in every revision.

The server is a child on asyncio. Its stderr is dropped, because it prints a traceback for each
error that the tests cause.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_core import ALL
from mcp_core.types import (
    ImageContent,
    PromptArgument,
    PromptMessage,
    ResourceContents,
    TextContent,
)
from mcp_trio import LocalProtocolError, PeerError, ToolError, connect_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio import Client

SERVER = Path(__file__).with_name("sdk_server.py")
E, D, C, B, A = ALL
# The revisions of the client, and the negotiated one.
CASES = [(ALL, E), ((D, C, B, A), D), ((E,), E), ((C,), C), ((B,), B), ((A,), A)]
every_case = pytest.mark.parametrize(
    ("versions", "version"),
    CASES,
    ids=[f"{len(versions)}-to-{version}" for versions, version in CASES],
)


@asynccontextmanager
async def opened(versions: tuple[str, ...], version: str) -> AsyncIterator[Client]:
    with trio.fail_after(20):
        async with connect_stdio(
            [sys.executable, SERVER], versions=versions, stderr="discard"
        ) as client:
            assert client.peer.dialect.version == version
            yield client


@every_case
async def test_sdk_server_lists_are_read(versions: tuple[str, ...], version: str) -> None:
    """The server's own library encodes these lists, in every revision it has."""
    async with opened(versions, version) as client:
        peer = client.peer
        assert peer.info is not None
        assert (peer.info.name, peer.info.version) == ("everything", "1.2.3")
        assert peer.instructions == "Call anything."
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert {"echo", "weather", "picture", "count", "wait", "cancelled", "fail"} < tools.keys()
        assert tools["echo"].input_schema["required"] == ["text"]
        assert tools["echo"].description == "Give the text back."

        assert [found.uri for found in await client.list_resources()] == [
            "memo://today",
            "memo://logo",
        ]
        [template] = await client.list_resource_templates()
        assert (template.uri_template, template.mime_type) == ("memo://{day}/notes", "text/plain")
        for uri, text in ("memo://today", "Buy milk."), ("memo://may-1/notes", "Notes of may-1."):
            [contents] = (await client.read_resource(uri)).contents
            assert contents == ResourceContents(uri=uri, mime_type="text/plain", text=text)
        [contents] = (await client.read_resource("memo://logo")).contents
        assert contents.blob is not None
        assert b64decode(contents.blob).startswith(b"\x89PNG")

        [prompt] = await client.list_prompts()
        assert prompt.arguments == [
            PromptArgument(name="code", required=True),
            PromptArgument(name="tone", required=False),
        ]
        got = await client.get_prompt("review", {"code": "x = 1", "tone": "frank"})
        assert got.messages == [
            PromptMessage(role="user", content=TextContent("Review this, be frank: x = 1")),
            PromptMessage(role="assistant", content=TextContent("Gladly.")),
        ]
        await client.ping()


@every_case
async def test_sdk_server_tools_are_called(versions: tuple[str, ...], version: str) -> None:
    """Four kinds of errors become four different exceptions or results of our client."""
    async with opened(versions, version) as client:
        echoed = await client.call_tool("echo", {"text": "naïve ☃ \U0001f600"})
        assert echoed.content == [TextContent("naïve ☃ \U0001f600")]
        assert not echoed.is_error
        rome = await client.call_tool("weather", {"city": "Rome"})
        assert rome.structured_content == {"city": "Rome", "celsius": 21.5}
        [picture] = (await client.call_tool("picture")).content
        assert isinstance(picture, ImageContent)
        assert picture.mime_type == "image/png"
        assert b64decode(picture.data).startswith(b"\x89PNG")

        failed = await client.call_tool("fail")
        assert failed.is_error
        with pytest.raises(ToolError, match="the disk is full"):
            failed.raise_for_error()
        with pytest.raises(PeerError, match="not today") as refused:
            await client.call_tool("refuse")
        assert (refused.value.code, refused.value.data) == (4001, {"tomorrow": True})
        with pytest.raises(PeerError) as missing:
            await client.read_resource("memo://nothing")
        assert missing.value.code == -32602
        with pytest.raises(PeerError) as unknown:
            await client.request("acme/nothing")
        assert unknown.value.code == -32601
        with pytest.raises(LocalProtocolError):
            await client.request("roots/list")

        received: list[tuple[float, float | None, str | None]] = []
        counted = await client.call_tool(
            "count", {"to": 3}, progress=lambda *step: received.append(step)
        )
        assert counted.content == [TextContent("3")]
        assert received == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.requirement("CXL-13")
@every_case
async def test_sdk_server_cancelled_call_is_cancelled_on_server(
    versions: tuple[str, ...], version: str
) -> None:
    async with opened(versions, version) as client:
        with trio.CancelScope() as scope:
            await client.call_tool("wait", progress=lambda *_: scope.cancel())
        assert scope.cancelled_caught
        # `cancelled` returns when the handler was cancelled.
        assert (await client.call_tool("cancelled")).content == [TextContent("yes")]


async def test_sdk_server_many_concurrent_calls_are_answered() -> None:
    async with opened(ALL, E) as client, trio.open_nursery() as nursery:

        async def call(number: int) -> None:
            result = await client.call_tool("echo", {"text": str(number)})
            assert result.content == [TextContent(str(number))]

        for number in range(100):
            nursery.start_soon(call, number)
