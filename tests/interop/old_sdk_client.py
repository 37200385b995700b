# mypy: ignore-errors
# This SDK is not in the environment of the type checker.
"""The client of the official Python SDK of 2025 (`mcp` 1.20) with one of our servers.

    python old_sdk_client.py http URL | sse URL | stdio COMMAND ARGUMENT ...

Prints one JSON report of what it received. It checks nothing: that is for the test that reads the
report. It needs `mcp` 1.20, and nothing of this repository.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import (
    ElicitResult,
    ListRootsResult,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
)
from pydantic import AnyUrl

report = {"questions": [], "progress": [], "logs": [], "updated": []}


@asynccontextmanager
async def connected(transport, target):
    if transport == "http":
        async with streamablehttp_client(target[0]) as (read, write, _):
            yield read, write
    elif transport == "sse":
        async with sse_client(target[0]) as streams:
            yield streams
    else:
        command, *args = target
        server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
        async with stdio_client(server) as streams:
            yield streams


async def answer(_, params):
    report["questions"].append(params.model_dump(by_alias=True, mode="json", exclude_none=True))
    return ElicitResult(action="accept", content={"dish": "soup", "count": 2})


async def list_roots(_):
    return ListRootsResult(roots=[{"uri": "file:///home/me/caf%C3%A9", "name": "home"}])


async def note_log(params):
    report["logs"].append(params.data)


async def note_message(message):
    if isinstance(getattr(message, "root", None), ResourceUpdatedNotification):
        report["updated"].append(str(message.root.params.uri))
        updated.release()


updated = asyncio.Semaphore(0)


def dumped(result):
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def outcome(awaitable):
    try:
        return dumped(await awaitable)
    except McpError as error:
        return {"code": error.error.code, "message": error.error.message}


async def use(session):
    report["initialized"] = dumped(await session.initialize())
    report["tools"] = [tool.name for tool in (await session.list_tools()).tools]
    report["prompts"] = [prompt.name for prompt in (await session.list_prompts()).prompts]
    # The SDK parses each URI, and writes it in another spelling.
    listed = (await session.list_resources()).resources
    report["resources"] = [str(resource.uri) for resource in listed]
    report["read"] = [await outcome(session.read_resource(resource.uri)) for resource in listed]
    templates = (await session.list_resource_templates()).resourceTemplates
    report["templates"] = [template.uriTemplate for template in templates]
    report["filled"] = await outcome(session.read_resource(AnyUrl("note://café/naïve day/list")))
    report["missing"] = await outcome(session.read_resource(AnyUrl("note://caf%C3%89")))
    reference = ResourceTemplateReference(type="ref/resource", uri=templates[0].uriTemplate)
    report["completed"] = dumped(await session.complete(reference, {"name": "day", "value": "m"}))
    for resource in listed:
        await session.subscribe_resource(resource.uri)

    async def note_progress(progress, total, message):
        report["progress"].append([progress, total, message])

    async def call(name, **arguments):
        return await outcome(session.call_tool(name, arguments, progress_callback=note_progress))

    report["echo"] = await call("echo", text="naïve ☃")
    report["order"] = await call("order")
    report["count"] = await call("count")
    report["touch"] = await call("touch")
    for _ in listed:
        await asyncio.wait_for(updated.acquire(), 10)
    report["failed"] = await call("fail")
    report["unknown"] = await call("unknown")
    report["pinged"] = dumped(await session.send_ping())
    for resource in listed:
        await session.unsubscribe_resource(resource.uri)


async def main():
    transport, *target = sys.argv[1:]
    async with (
        connected(transport, target) as (read, write),
        ClientSession(
            read,
            write,
            elicitation_callback=answer,
            list_roots_callback=list_roots,
            logging_callback=note_log,
            message_handler=note_message,
        ) as session,
    ):
        await use(session)
    print(json.dumps(report))


asyncio.run(main())
