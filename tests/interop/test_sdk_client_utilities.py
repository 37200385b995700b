"""The official Python client (`mcp` 2.3) with our server over stdio and HTTP: log messages,
completion, pages, caching hints and changes.

The client runs each callback in its own task, so notifications are handled in any order, even after
the result. A test that expects *no* notification first sends another request: by its result, all
earlier tasks have run.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
import trio
from mcp.client.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged
from mcp_types import (
    LOG_LEVEL_META_KEY,
    LoggingMessageNotificationParams,
    PromptReference,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    SubscriptionFilter,
    TextContent,
    ToolListChangedNotification,
)

from mcp_core.types import LOGGING_LEVELS
from tests.interop.official import (
    PIPES,
    E,
    Way,
    error_of,
    every_revision,
    every_stateful_revision,
    opened,
    pages,
    unfinished_streams,
    ways,
)

if TYPE_CHECKING:
    from mcp import Client

# The client warns of features that the last revision removed, even in an older one.
pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    unfinished_streams,
]


# -- Log messages ----------------------------------------------------------------------------------


class Heard:
    """The log messages of a client: `Client(..., logging_callback=heard)`."""

    def __init__(self) -> None:
        self.messages: list[LoggingMessageNotificationParams] = []

    async def __call__(self, message: LoggingMessageNotificationParams) -> None:
        self.messages.append(message)

    async def of(self, client: Client, **options: Any) -> list[str]:
        """Return the levels of the messages that one call of `log` causes."""
        self.messages.clear()
        await client.call_tool("log", **options)
        await client.call_tool("weather", {"city": "Rome"})
        for message in self.messages:
            assert message.data == {"severity": message.level}
            assert message.logger == "our.server"
        return sorted((message.level for message in self.messages), key=LOGGING_LEVELS.index)


@pytest.mark.requirement("LOG-1", "LOG-2", "LOG-3", "LOG-4")
@every_stateful_revision
async def test_sdk_client_sets_log_level(way: Way) -> None:
    async with opened(way, logging_callback=(heard := Heard())) as client:
        assert await heard.of(client) == [*LOGGING_LEVELS[1:]]
        for level in LOGGING_LEVELS:
            await client.set_logging_level(level)
            assert await heard.of(client) == [*LOGGING_LEVELS[LOGGING_LEVELS.index(level) :]]


@pytest.mark.requirement("LOG-7", "LOG-8")
@ways(E)
async def test_sdk_client_requests_log_level_per_request(way: Way) -> None:
    async with opened(way, logging_callback=(heard := Heard()), log_level="error") as client:
        assert await heard.of(client) == ["error", "critical", "alert", "emergency"]
        assert await heard.of(client, meta={LOG_LEVEL_META_KEY: "alert"}) == ["alert", "emergency"]
    async with opened(way, logging_callback=(heard := Heard())) as client:
        assert await heard.of(client) == []
        assert await heard.of(client, meta={LOG_LEVEL_META_KEY: "debug"}) == [*LOGGING_LEVELS]


# -- Completion ------------------------------------------------------------------------------------


@pytest.mark.requirement("COMP-1", "COMP-3", "COMP-4")
@every_revision
async def test_sdk_client_gets_completions(way: Way) -> None:
    async with opened(way) as client:

        async def suggested(ref: Any, argument: str, typed: str, **chosen: str) -> list[str]:
            completed = await client.complete(
                ref, {"name": argument, "value": typed}, chosen or None
            )
            assert completed.completion.total == len(completed.completion.values)
            assert not completed.completion.has_more
            return completed.completion.values

        review = PromptReference(name="review")
        assert await suggested(review, "tone", "fr") == ["frank", "friendly"]
        assert await suggested(review, "tone", "x") == []
        assert await suggested(review, "code", "x") == []  # no completer
        book = ResourceTemplateReference(uri="book://{author}/{title}")
        assert await suggested(book, "author", "m") == ["melville", "morrison"]
        # `context` exists since 2025-06-18 (COMP-2). The client sends it in earlier revisions too,
        # and our server reads it.
        assert await suggested(book, "title", "b", author="morrison") == ["beloved"]
        assert await suggested(book, "title", "b") == []

        greet = await client.complete(PromptReference(name="greet"), {"name": "name", "value": "a"})
        assert greet.completion.values == [f"a{number}" for number in range(100)]
        assert (greet.completion.total, greet.completion.has_more) == (150, True)

        for ref, argument in (
            (PromptReference(name="nothing"), "tone"),
            (review, "nothing"),
            (book, "notes"),
        ):
            complaint = error_of(client.complete(ref, {"name": argument, "value": ""}))
            assert await complaint == (-32602, None)


# -- Pages and hints -------------------------------------------------------------------------------


@pytest.mark.requirement("PAGE-1", "PAGE-6", "CACHE-1", "CACHE-8")
@every_revision
async def test_sdk_client_follows_pages(way: Way) -> None:
    async with opened(way, cache=None) as client:
        lists: dict[str, tuple[Any, str]] = {
            "tools": (client.list_tools, "name"),
            "resources": (client.list_resources, "uri"),
            "resource_templates": (client.list_resource_templates, "uri_template"),
            "prompts": (client.list_prompts, "name"),
        }
        found = {member: await pages(ask, member, key) for member, (ask, key) in lists.items()}
        assert found == {
            "tools": [
                ["echo", "weather"],
                ["picture", "count"],
                ["wait", "cancelled"],
                ["fail", "log"],
                ["learn", "forget"],
                ["change", "pid"],
            ],
            "resources": [["memo://today", "memo://logo"], ["memo://later"]],
            "resource_templates": [
                ["memo://{day}/notes", "book://{author}/{title}"],
                ["page://{number}"],
            ],
            "prompts": [["review", "greet"], ["thank"]],
        }
        unsaid = (0, "private")  # the client's default in revisions without hints
        hints = (60_000, "public") if way.spoken == E else unsaid
        for ask, _ in lists.values():
            first = await ask()
            second = await ask(cursor=first.next_cursor)
            assert (first.ttl_ms, first.cache_scope) == (second.ttl_ms, second.cache_scope) == hints
            for wrong in "", "made up", f"{first.next_cursor}=":
                assert await error_of(ask(cursor=wrong)) == (-32602, None)
        read = await client.read_resource("memo://today")
        assert (read.ttl_ms, read.cache_scope) == (
            (5_000, "private") if way.spoken == E else unsaid
        )


@pytest.mark.requirement("CACHE-1", "TOOL-23")
@ways(E)
async def test_sdk_client_caches_list_until_changed(way: Way) -> None:
    async with opened(way) as client:

        async def first_tool() -> str:
            return (await client.list_tools()).tools[0].name

        discovered = client.session.discover_result
        assert discovered is not None
        assert (discovered.ttl_ms, discovered.cache_scope) == (60_000, "public")
        assert await first_tool() == "echo"
        await client.call_tool("forget", {"name": "echo"})
        assert await first_tool() == "echo"
        async with client.listen(tools_list_changed=True) as changes:
            await client.call_tool("forget", {"name": "weather"})
            assert await anext(changes) == ToolsListChanged()
            assert await first_tool() == "picture"


# -- Changes ---------------------------------------------------------------------------------------


class Told:
    """The changes that a client gets, in order: `Client(..., message_handler=told)`."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Any](100)

    async def __call__(self, message: Any) -> None:
        self._send.send_nowait(message)

    async def next(self) -> Any:
        return await self._receive.receive()

    @property
    def nothing_else(self) -> bool:
        return self._receive.statistics().current_buffer_used == 0


@pytest.mark.requirement("TOOL-23", "PRM-5", "RES-14")
@every_stateful_revision
async def test_sdk_client_session_gets_list_changed(way: Way) -> None:
    async with opened(way, message_handler=(told := Told())) as client:
        for what, method in (
            ("tools", "notifications/tools/list_changed"),
            ("prompts", "notifications/prompts/list_changed"),
            ("resources", "notifications/resources/list_changed"),
        ):
            await client.call_tool("change", {"what": what})
            assert (await told.next()).method == method
        await client.call_tool("learn", {"name": "more"})
        assert isinstance(await told.next(), ToolListChangedNotification)
        assert (await pages(client.list_tools, "tools"))[-1] == ["more"]
        assert not (await client.call_tool("more")).is_error
        assert told.nothing_else


@pytest.mark.requirement("RES-4", "RES-5")
@every_stateful_revision
async def test_sdk_client_session_gets_subscribed_updates(way: Way) -> None:
    async with opened(way, message_handler=(told := Told())) as client:

        async def changed(uri: str) -> None:
            await client.call_tool("change", {"what": uri})

        async def told_of(uri: str) -> bool:
            message = await told.next()
            return isinstance(message, ResourceUpdatedNotification) and message.params.uri == uri

        await changed("memo://today")
        for uri in "memo://today", "memo://later":
            await client.subscribe_resource(uri)
        await changed("memo://logo")
        await changed("memo://today")
        assert await told_of("memo://today")
        await client.unsubscribe_resource("memo://today")
        await changed("memo://today")
        await changed("memo://later")
        assert await told_of("memo://later")
        assert told.nothing_else


@pytest.mark.requirement("SUB-2", "SUB-3", "SUB-4")
@ways(E, places=["stdio", "http", "http-sse", "http-json", "http-stateless"])
async def test_sdk_client_listen_gets_requested_changes(way: Way) -> None:
    uri = "memo://today"
    async with opened(way) as client:

        async def change(*what: str) -> None:
            for each in what:
                await client.call_tool("change", {"what": each})

        await change("prompts", uri)
        async with client.listen(prompts_list_changed=True, resource_subscriptions=[uri]) as some:
            assert some.honored == SubscriptionFilter(
                prompts_list_changed=True, resource_subscriptions=[uri]
            )
            async with client.listen(tools_list_changed=True) as tools:
                assert tools.honored == SubscriptionFilter(tools_list_changed=True)
                await change("resources", "memo://logo", "prompts", "tools", uri)
                assert await anext(tools) == ToolsListChanged()
                assert await anext(some) == PromptsListChanged()
                assert await anext(some) == ResourceUpdated(uri)
            await change("tools", "prompts")
            assert await anext(some) == PromptsListChanged()


async def pid_of(client: Client) -> int:
    [content] = (await client.call_tool("pid")).content
    assert isinstance(content, TextContent)
    return int(content.text)


@pytest.mark.requirement("SUB-8")
@ways(E, places=PIPES)
async def test_sdk_client_listen_at_server_shutdown_ends_in_order(way: Way) -> None:
    """A subscription without an orderly end would raise `SubscriptionLost`."""
    async with opened(way) as client, client.listen(tools_list_changed=True) as changes:
        await client.call_tool("change", {"what": "tools"})
        os.kill(await pid_of(client), signal.SIGTERM)
        assert [event async for event in changes] == [ToolsListChanged()]
