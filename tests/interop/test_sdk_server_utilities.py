"""Our client with servers of the official Python SDK (`mcp` 2.3), over stdio: log messages,
progress, completion, pages, caching hints and changes.

Starting such a server is slow, so each test uses one for much.
"""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio
from mcp_types import LOG_LEVEL_META_KEY as META_LOG_LEVEL

from mcp_core import ALL, Change
from mcp_core.types import (
    LOGGING_LEVELS,
    Completion,
    LoggingMessageParams,
    PromptReference,
    ResourceTemplateReference,
)
from mcp_trio import LocalProtocolError, PeerError, connect_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio import Client

HERE = Path(__file__).parent
E, D, C, B, A = ALL
NAMES = [f"n{number}" for number in range(5)]
every_revision = pytest.mark.parametrize("version", ALL)


class Crossed:
    """The methods of the messages that our client sends: `connect(..., trace=crossed)`."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def __call__(self, direction: Literal["sent", "received"], line: bytes) -> None:
        if direction == "sent":
            self.requests.append(json.loads(line)["method"])


@asynccontextmanager
async def opened(
    version: str, server: str = "sdk_utilities.py", **options: Any
) -> AsyncIterator[Client]:
    argv = [sys.executable, str(HERE / server)]
    with trio.fail_after(20):
        async with connect_stdio(argv, versions=[version], stderr="discard", **options) as client:
            yield client


# -- In every revision -----------------------------------------------------------------------------


@pytest.mark.requirement(
    "LOG-2", "LOG-3", "PROG-1", "COMP-2", "PAGE-1", "PAGE-4", "PAGE-5", "CACHE-5", "CACHE-9"
)
@every_revision
async def test_sdk_server_notifications_and_results_arrive(version: str) -> None:
    logged: list[LoggingMessageParams] = []
    crossed = Crossed()
    async with opened(version, on_log=logged.append, trace=crossed) as client:
        await log_messages(client, logged)
        await progress(client)
        await suggestions(client, version)
        await all_pages(client)
        await what_is_kept(client, crossed, version)


async def log_messages(client: Client, logged: list[LoggingMessageParams]) -> None:
    async def log() -> list[LoggingMessageParams]:
        logged.clear()
        await client.call_tool("log")
        return logged

    def least(level: str) -> list[LoggingMessageParams]:
        severe = LOGGING_LEVELS[LOGGING_LEVELS.index(level) :]
        return [
            LoggingMessageParams(level=each, data={"severity": each}, logger="their.server")
            for each in severe
        ]

    assert await log() == least("info")
    for level in LOGGING_LEVELS:
        await client.set_log_level(level)
        assert await log() == least(level)


async def progress(client: Client) -> None:
    received: list[tuple[float, float | None, str | None]] = []
    await client.call_tool("count", progress=lambda *step: received.append(step))
    # `message` exists since 2025-03-26 (PROG-1), but the server sends it in 2024-11-05 too, and our
    # client passes it on.
    assert received == [(0.5, None, None), (0.75, None, "nearly")]


async def suggestions(client: Client, version: str) -> None:
    prompt = await client.complete("review", "tone", "k")
    assert prompt == Completion(["review", "tone", "k", "None"], total=7, has_more=True)
    chosen = {"owner": "me"}
    template = await client.complete("x://{owner}/{name}", "name", "", arguments=chosen)
    # `context` exists since 2025-06-18.
    assert template.values == [
        "x://{owner}/{name}",
        "name",
        "",
        f"{chosen if ALL.index(version) <= ALL.index(C) else None}",
    ]
    assert (await client.complete(PromptReference("x://y"), "a", "")).values[0] == "x://y"
    assert (await client.complete(ResourceTemplateReference("plain"), "a", "")).values[0] == "plain"
    with pytest.raises(PeerError) as refused:
        await client.complete("nothing", "tone", "")
    assert refused.value.code == -32602


async def all_pages(client: Client) -> None:
    assert [tool.name for tool in await client.list_tools()] == NAMES
    assert [resource.name for resource in await client.list_resources()] == NAMES
    assert [template.name for template in await client.list_resource_templates()] == NAMES
    # The first cursor is rejected, so our client starts the list again.
    assert [prompt.name for prompt in await client.list_prompts()] == NAMES
    for what in "tools", "resources", "resources/templates", "prompts":
        with pytest.raises(PeerError) as refused:
            await client.request(f"{what}/list", {"cursor": "made up"})
        assert refused.value.code == -32602


async def what_is_kept(client: Client, crossed: Crossed, version: str) -> None:
    async def ask() -> list[str]:
        crossed.requests.clear()
        for _ in range(2):
            await client.list_tools()
            await client.list_resources()
            await client.read_resource("x://n0")
        return crossed.requests

    pages = {"tools/list": 3, "resources/list": 3, "resources/read": 1}
    if version == E:
        lists = ["resources/list"] * 3
        assert await ask() == [*lists, "resources/read", *lists]  # the tools were requested before
    else:
        assert await ask() == [method for method, count in pages.items() for _ in range(count)] * 2


@pytest.mark.requirement("CAP-3")
@pytest.mark.parametrize("version", [E, D])
async def test_sdk_server_without_logging_capability_sends_logs(version: str) -> None:
    """The SDK's high-level part has `context.log` but never declares `logging` (LOG-1).

    Our client does not request an undeclared feature (CAP-3). In 2026-07-28, where each request
    names its log level, no messages arrive; in earlier revisions all do.
    """
    logged: list[LoggingMessageParams] = []
    async with opened(version, "sdk_server.py", on_log=logged.append, log_level="error") as client:
        await client.call_tool("say")
        assert [message.level for message in logged] == (
            [] if version == E else ["debug", "warning"]
        )
        with pytest.raises(LocalProtocolError, match="did not declare the capability logging"):
            await client.set_log_level("debug")
        # The caller can request it explicitly.
        logged.clear()
        await client.call_tool("say", meta={META_LOG_LEVEL: "debug"})
        assert [message.level for message in logged] == ["debug", "warning"]


# -- Changes ---------------------------------------------------------------------------------------


@pytest.mark.requirement("SUB-1", "SUB-5", "SUB-7", "RES-4", "CACHE-10")
@pytest.mark.parametrize("version", [E, D, A])
async def test_sdk_server_changes_arrive_by_listen(version: str) -> None:
    """A change also empties our cache, so the next list is requested again, all three pages."""
    crossed = Crossed()
    async with opened(version, trace=crossed) as client:

        async def change(*what: str) -> None:
            for each in what:
                await client.call_tool("change", {"what": each})

        await client.list_tools()
        await client.read_resource("x://n0")
        async with client.listen(tools=True, uris=["x://n0"]) as some:
            assert some.honoured == (Change("tools"), Change(uri="x://n0"))
            async with client.listen(prompts=True) as prompts:
                await change("resources", "x://n1", "tools", "prompts", "x://n0")
                assert await anext(prompts) == Change("prompts")
                assert await anext(some) == Change("tools")
                assert await anext(some) == Change(uri="x://n0")
                crossed.requests.clear()
                await client.list_tools()
                await client.read_resource("x://n0")
                assert crossed.requests == ["tools/list"] * 3 + ["resources/read"]
            await change("prompts", "tools")
            assert await anext(some) == Change("tools")
        if version == E:
            await client.call_tool("subscriptions_ended", {"times": 2})
        else:
            await client.ping()
            assert crossed.requests[-2:] == ["resources/unsubscribe", "ping"]


async def test_sdk_server_ended_subscription_ends_listen() -> None:
    async with opened(E) as client, client.listen(tools=True) as changes:
        await client.call_tool("change", {"what": "tools"})
        await client.call_tool("end")
        assert [change async for change in changes] == [Change("tools")]


@pytest.mark.requirement("CAP-3")
async def test_sdk_server_without_list_changed_capability() -> None:
    """The SDK's high-level part declares `listChanged` in 2026-07-28 only."""
    async with opened(D, "sdk_server.py") as client:
        with pytest.raises(LocalProtocolError, match="announces no changes"):
            async with client.listen(tools=True, uris=["memo://today"]):
                pass
