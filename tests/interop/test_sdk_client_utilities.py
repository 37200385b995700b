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
from mcp_trio import connect
from tests.conformance import everything_server
from tests.interop.official import (
    PAGE_SIZE,
    STDIO,
    Case,
    E,
    MessageQueue,
    cases,
    error_of,
    every_revision,
    every_stateful_revision,
    opened,
    pages,
    unfinished_streams,
)

if TYPE_CHECKING:
    from mcp import Client

# The client warns of features that the last revision removed, even in an older one.
pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    unfinished_streams,
]


# -- Log messages ----------------------------------------------------------------------------------


class LogRecorder:
    """The log messages of a client: `Client(..., logging_callback=log)`."""

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
async def test_sdk_client_sets_log_level(case: Case) -> None:
    async with opened(case, logging_callback=(log := LogRecorder())) as client:
        assert await log.of(client) == [*LOGGING_LEVELS[1:]]
        for level in LOGGING_LEVELS:
            await client.set_logging_level(level)
            assert await log.of(client) == [*LOGGING_LEVELS[LOGGING_LEVELS.index(level) :]]


@pytest.mark.requirement("LOG-7", "LOG-8")
@cases(E)
async def test_sdk_client_requests_log_level_per_request(case: Case) -> None:
    async with opened(case, logging_callback=(log := LogRecorder()), log_level="error") as client:
        assert await log.of(client) == ["error", "critical", "alert", "emergency"]
        assert await log.of(client, meta={LOG_LEVEL_META_KEY: "alert"}) == ["alert", "emergency"]
    async with opened(case, logging_callback=(log := LogRecorder())) as client:
        assert await log.of(client) == []
        assert await log.of(client, meta={LOG_LEVEL_META_KEY: "debug"}) == [*LOGGING_LEVELS]


# -- Completion ------------------------------------------------------------------------------------


@pytest.mark.requirement("COMP-1", "COMP-3", "COMP-4")
@every_revision
async def test_sdk_client_gets_completions(case: Case) -> None:
    """The client gets 100 of 150 matches, as the spec allows, and learns that there are more."""
    async with opened(case) as client:

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

        prompt = PromptReference(name="test_prompt_with_arguments")
        many = await client.complete(prompt, {"name": "arg2", "value": "a"})
        assert many.completion.values == [f"a{number}" for number in range(100)]
        assert (many.completion.total, many.completion.has_more) == (150, True)

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
async def test_sdk_client_follows_pages(case: Case) -> None:
    """The pages together equal the list without paging; made-up cursors are refused."""
    async with opened(case, cache=None) as client:
        lists: dict[str, tuple[Any, str]] = {
            "tools": (client.list_tools, "name"),
            "resources": (client.list_resources, "uri"),
            "resource_templates": (client.list_resource_templates, "uri_template"),
            "prompts": (client.list_prompts, "name"),
        }
        found = {member: await pages(ask, member, key) for member, (ask, key) in lists.items()}
        # The same lists on one page each, from another client and a server without paging.
        async with connect(everything_server.everything()) as own:
            whole = {
                "tools": [tool.name for tool in await own.list_tools()],
                "resources": [resource.uri for resource in await own.list_resources()],
                "resource_templates": [
                    template.uri_template for template in await own.list_resource_templates()
                ],
                "prompts": [prompt.name for prompt in await own.list_prompts()],
            }
        assert found == {
            member: [names[at : at + PAGE_SIZE] for at in range(0, len(names), PAGE_SIZE)]
            for member, names in whole.items()
        }
        assert found["resources"] == [
            ["test://static-text", "test://static-binary"],
            ["test://watched-resource"],
        ]
        assert min(len(each) for each in found.values()) > 1
        unsaid = (0, "private")  # the client's default in revisions without hints
        hints = (60_000, "public") if case.version == E else unsaid
        for ask, _ in lists.values():
            first = await ask()
            second = await ask(cursor=first.next_cursor)
            assert (first.ttl_ms, first.cache_scope) == (second.ttl_ms, second.cache_scope) == hints
            for wrong in "", "made up", f"{first.next_cursor}=":
                assert await error_of(ask(cursor=wrong)) == (-32602, None)
        read = await client.read_resource("test://static-text")
        assert (read.ttl_ms, read.cache_scope) == (
            (5_000, "private") if case.version == E else unsaid
        )


@pytest.mark.requirement("CACHE-1", "TOOL-23")
@cases(E)
async def test_sdk_client_caches_list_until_changed(case: Case) -> None:
    """Its cache hides a removed tool until it subscribes: the hint and the change both work."""
    async with opened(case) as client:

        async def first_tool() -> str:
            return (await client.list_tools()).tools[0].name

        discovered = client.session.discover_result
        assert discovered is not None
        assert (discovered.ttl_ms, discovered.cache_scope) == (60_000, "public")
        assert await first_tool() == "test_simple_text"
        await client.call_tool("forget", {"name": "test_simple_text"})
        assert await first_tool() == "test_simple_text"
        async with client.listen(tools_list_changed=True) as changes:
            await client.call_tool("forget", {"name": "weather"})
            assert await anext(changes) == ToolsListChanged()
            assert await first_tool() == "echo"


# -- Changes ---------------------------------------------------------------------------------------


@pytest.mark.requirement("TOOL-23", "PRM-5", "RES-14")
@every_stateful_revision
async def test_sdk_client_session_gets_list_changed(case: Case) -> None:
    async with opened(case, message_handler=(messages := MessageQueue())) as client:
        for what, method in (
            ("tools", "notifications/tools/list_changed"),
            ("prompts", "notifications/prompts/list_changed"),
            ("resources", "notifications/resources/list_changed"),
        ):
            await client.call_tool("change", {"what": what})
            assert (await messages.next()).method == method
        await client.call_tool("learn", {"name": "more"})
        assert isinstance(await messages.next(), ToolListChangedNotification)
        assert (await pages(client.list_tools, "tools"))[-1][-1] == "more"
        assert not (await client.call_tool("more")).is_error
        assert messages.nothing_else


@pytest.mark.requirement("RES-4", "RES-5")
@every_stateful_revision
async def test_sdk_client_session_gets_subscribed_updates(case: Case) -> None:
    """Changes before, beside and after the subscription must not produce a notification."""
    async with opened(case, message_handler=(messages := MessageQueue())) as client:

        async def changed(uri: str) -> None:
            await client.call_tool("change", {"what": uri})

        async def is_update_of(uri: str) -> bool:
            message = await messages.next()
            return isinstance(message, ResourceUpdatedNotification) and message.params.uri == uri

        await changed("test://static-text")
        for uri in "test://static-text", "test://watched-resource":
            await client.subscribe_resource(uri)
        await changed("test://static-binary")
        await changed("test://static-text")
        assert await is_update_of("test://static-text")
        await client.unsubscribe_resource("test://static-text")
        await changed("test://static-text")
        await changed("test://watched-resource")
        assert await is_update_of("test://watched-resource")
        assert messages.nothing_else


@pytest.mark.requirement("SUB-2", "SUB-3", "SUB-4")
@cases(E, transports=["stdio", "http", "http-sse", "http-json", "http-stateless"])
async def test_sdk_client_listen_gets_requested_changes(case: Case) -> None:
    """Two filters at once: each stream gets its own changes and none of the other's."""
    uri = "test://static-text"
    async with opened(case) as client:

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
                await change("resources", "test://static-binary", "prompts", "tools", uri)
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
@cases(E, transports=STDIO)
async def test_sdk_client_listen_at_server_shutdown_ends_in_order(case: Case) -> None:
    """A subscription without an orderly end would raise `SubscriptionLost`."""
    async with opened(case) as client, client.listen(tools_list_changed=True) as changes:
        await client.call_tool("change", {"what": "tools"})
        os.kill(await pid_of(client), signal.SIGTERM)
        assert [event async for event in changes] == [ToolsListChanged()]
