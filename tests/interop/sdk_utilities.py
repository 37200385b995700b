"""A server of the official Python SDK's low-level part: `python sdk_utilities.py`.

It has what the high-level part cannot do or does not declare: pages, log levels, subscriptions,
caching hints. There are five of everything, `n0` to `n4`, two on a page. Cursors are unusual but
allowed: one is the empty string. The first prompts cursor that comes back is rejected, as if the
list had changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import anyio
import mcp_types as t
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.subscriptions import ServerEvent

Context = ServerRequestContext[Any, Any]

LEVELS: tuple[t.LoggingLevel, ...] = get_args(t.LoggingLevel)  # the least severe first
NAMES = [f"n{number}" for number in range(5)]
CURSORS = {None: 0, "": 2, "four": 4}  # the start of each page
stale = {"prompts/list"}
level = "info"
subscribed: set[str] = set()
bus = InMemorySubscriptionBus()
listening = ListenHandler(bus)
ended = anyio.Semaphore(0)


def page(context: Context, params: t.PaginatedRequestParams | None) -> tuple[list[str], str | None]:
    """Return the names on the requested page, and the next cursor."""
    cursor = params.cursor if params is not None else None
    if cursor not in CURSORS or (cursor is not None and context.method in stale):
        stale.discard(context.method)
        raise MCPError(t.INVALID_PARAMS, "there is no such cursor")
    start = CURSORS[cursor]
    following = next((cursor for cursor, place in CURSORS.items() if place == start + 2), None)
    return NAMES[start : start + 2], following


async def list_tools(
    context: Context, params: t.PaginatedRequestParams | None
) -> t.ListToolsResult:
    names, cursor = page(context, params)
    tools = [t.Tool(name=name, input_schema={"type": "object"}) for name in names]
    return t.ListToolsResult(tools=tools, next_cursor=cursor)


async def list_resources(
    context: Context, params: t.PaginatedRequestParams | None
) -> t.ListResourcesResult:
    names, cursor = page(context, params)
    return t.ListResourcesResult(
        resources=[t.Resource(name=name, uri=f"x://{name}") for name in names], next_cursor=cursor
    )


async def list_templates(
    context: Context, params: t.PaginatedRequestParams | None
) -> t.ListResourceTemplatesResult:
    names, cursor = page(context, params)
    templates = [t.ResourceTemplate(name=name, uri_template=f"x://{name}/{{y}}") for name in names]
    return t.ListResourceTemplatesResult(resource_templates=templates, next_cursor=cursor)


async def list_prompts(
    context: Context, params: t.PaginatedRequestParams | None
) -> t.ListPromptsResult:
    names, cursor = page(context, params)
    return t.ListPromptsResult(prompts=[t.Prompt(name=name) for name in names], next_cursor=cursor)


async def read_resource(
    context: Context, params: t.ReadResourceRequestParams
) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, text="text")])


async def call_tool(context: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
    await TOOLS[params.name](context, **(params.arguments or {}))
    return t.CallToolResult(content=[])


async def log(context: Context) -> None:
    """Log on every level."""
    for each in LEVELS:
        # Before 2026-07-28 the SDK leaves the log level to the server's author.
        if context.protocol_version >= "2026" or LEVELS.index(each) >= LEVELS.index(level):
            await context.session.send_log_message(
                each,
                {"severity": each},
                logger="their.server",
                related_request_id=context.request_id,
            )


async def count(context: Context) -> None:
    """Report two steps, without a total and with fractions."""
    await context.session.report_progress(0.5)
    await context.session.report_progress(0.75, message="nearly")


async def change(context: Context, what: str) -> None:
    """Announce a change."""
    session = context.session
    if context.protocol_version >= "2026":
        await bus.publish(EVENTS[what]() if what in EVENTS else ResourceUpdated(what))
    elif what == "tools":
        await session.send_tool_list_changed()
    elif what == "prompts":
        await session.send_prompt_list_changed()
    elif what == "resources":
        await session.send_resource_list_changed()
    elif what in subscribed:
        await session.send_resource_updated(what)


async def end(context: Context) -> None:
    """End the subscriptions, as a server does at shutdown."""
    listening.close()


async def subscriptions_ended(context: Context, times: int) -> None:
    """Return when `times` subscriptions have ended."""
    for _ in range(times):
        await ended.acquire()


TOOLS: dict[str, Callable[..., Awaitable[None]]] = {
    "log": log,
    "count": count,
    "change": change,
    "end": end,
    "subscriptions_ended": subscriptions_ended,
}
EVENTS: dict[str, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}


async def complete(context: Context, params: t.CompleteRequestParams) -> t.CompleteResult:
    """Return values that describe the request."""
    ref = params.ref.name if isinstance(params.ref, t.PromptReference) else params.ref.uri
    if ref == "nothing":
        raise MCPError(t.INVALID_PARAMS, "there is no such prompt")
    chosen = params.context.arguments if params.context is not None else None
    values = [ref, params.argument.name, params.argument.value, f"{chosen}"]
    return t.CompleteResult(completion=t.Completion(values=values, total=7, has_more=True))


async def set_level(context: Context, params: t.SetLevelRequestParams) -> t.EmptyResult:
    global level  # noqa: PLW0603 - one process is one session
    level = params.level
    return t.EmptyResult()


async def subscribe(context: Context, params: t.SubscribeRequestParams) -> t.EmptyResult:
    subscribed.add(params.uri)
    return t.EmptyResult()


async def unsubscribe(context: Context, params: t.UnsubscribeRequestParams) -> t.EmptyResult:
    subscribed.discard(params.uri)
    return t.EmptyResult()


async def listen(
    context: Context, params: t.SubscriptionsListenRequestParams
) -> t.SubscriptionsListenResult:
    try:
        return await listening(context, params)
    finally:
        ended.release()


server = Server(
    "utilities",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_completion=complete,
    on_set_logging_level=set_level,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=listen,
    cache_hints={
        "tools/list": CacheHint(60_000, "public"),
        "resources/read": CacheHint(60_000, "private"),
    },
)


async def main() -> None:
    changing = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(changing))


if __name__ == "__main__":
    anyio.run(main)
