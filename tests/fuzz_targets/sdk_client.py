# mypy: ignore-errors
# Two versions of this SDK fit, and the type checker has one of them at most.
"""The client of the official Python SDK, `mcp` 1.x or 2.x, for the fuzzer of clients.

    python sdk_client.py URL | COMMAND ARGUMENT ...

It declares forms, sampling and roots, reads at most ten pages of tools, calls a tool twice, and
ends. It needs nothing of this repository.
"""

import asyncio
import importlib.util
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

IS_2 = importlib.util.find_spec("mcp_types") is not None
if IS_2:
    import mcp_types as t
    from mcp import Client, MCPError, StdioServerParameters
else:
    import mcp.types as t
    from mcp import ClientSession, McpError, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    MCPError = McpError

TIMEOUT = 3.0  # seconds for each request


async def fill_in(context, params):
    return t.ElicitResult(action="decline")


def has_tools(params):
    """The SDK does not check it."""
    if any(getattr(params, name, None) for name in ("tools", "tool_choice", "toolChoice")):
        return True
    contents = [each.content for each in params.messages]
    blocks = [block for each in contents for block in (each if isinstance(each, list) else [each])]
    return any(block.type.startswith("tool_") for block in blocks)


async def sample(context, params):
    if has_tools(params):
        return t.ErrorData(code=-32602, message="tools were not declared")
    content = t.TextContent(type="text", text="yes")
    return t.CreateMessageResult(role="assistant", content=content, model="none")


async def list_roots(context):
    return t.ListRootsResult(roots=[t.Root(uri="file:///srv/fuzz")])


HANDLERS = {
    "elicitation_callback": fill_in,
    "sampling_callback": sample,
    "list_roots_callback": list_roots,
}


@asynccontextmanager
async def connected(words):
    is_url = "://" in words[0]
    server = None if is_url else StdioServerParameters(command=words[0], args=words[1:])
    async with AsyncExitStack() as stack:
        if IS_2:
            client = Client(
                words[0] if is_url else server, read_timeout_seconds=TIMEOUT, **HANDLERS
            )
            yield await stack.enter_async_context(client)
            return
        transport = streamablehttp_client(words[0]) if is_url else stdio_client(server)
        streams = (await stack.enter_async_context(transport))[:2]
        limit = timedelta(seconds=TIMEOUT)
        session = ClientSession(*streams, read_timeout_seconds=limit, **HANDLERS)
        await stack.enter_async_context(session)
        await session.initialize()
        yield session


async def attempt(request):
    try:
        return await request
    except Exception as error:  # noqa: BLE001 - as an agent would: the next request is another one
        print(f"{type(error).__name__}: {error}"[:200], file=sys.stderr)
        return None


async def list_tools(client):
    cursor = None
    for _ in range(10):
        page = await attempt(client.list_tools(cursor=cursor))
        cursor = None if page is None else page.next_cursor if IS_2 else page.nextCursor
        if cursor is None:
            return


async def main():
    async with connected(sys.argv[1:]) as client:
        await list_tools(client)
        await attempt(client.call_tool("sum", {"a": 1}))
        await attempt(client.list_resources())
        await attempt(client.read_resource("note:///one"))
        await attempt(client.list_prompts())
        await attempt(client.call_tool("sum", {"a": 2}))


try:
    asyncio.run(main())
except* Exception as errors:  # noqa: BLE001 - this is the end of the program
    print(repr(errors.exceptions[0])[:500], file=sys.stderr)
    sys.exit(1)
