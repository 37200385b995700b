"""`benchmarks/client.py` with the official Python SDK (`mcp` 2.3) and the same arguments."""

from __future__ import annotations

import sys
from time import perf_counter, process_time
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

CONCURRENT = 32
ARGUMENTS = {"text": "x" * 100}


async def calls(client: Client, until: float, made: list[int]) -> None:
    while True:
        result = await client.call_tool("echo", ARGUMENTS)
        assert not result.is_error
        made[0] += 1
        if perf_counter() >= until:
            return


async def rate(client: Client, tasks: int, seconds: float) -> tuple[float, float]:
    """Return calls a second, and the processor time of each in microseconds."""
    made = [0]
    start, cpu = perf_counter(), process_time()
    async with anyio.create_task_group() as group:
        for _ in range(tasks):
            group.start_soon(calls, client, start + seconds, made)
    return made[0] / (perf_counter() - start), 1e6 * (process_time() - cpu) / made[0]


async def list_tools(
    context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    return ListToolsResult(tools=[Tool(name="echo", input_schema=schema)])


async def call_tool(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams
) -> CallToolResult:
    text = (params.arguments or {})["text"]
    return CallToolResult(content=[TextContent(type="text", text=text)])


def connect(target: list[str]) -> Client:
    if target == ["memory"]:
        server: Server[Any] = Server(
            "benchmark", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool
        )
        return Client(server, mode="legacy")
    if target[0].startswith("http://"):
        url, version = target
        return Client(url, mode="legacy" if version < "2026" else version)
    return Client(StdioServerParameters(command=target[0], args=target[1:]), mode="legacy")


async def main(seconds: float, target: list[str]) -> None:
    async with connect(target) as client:
        await rate(client, CONCURRENT, 2 * seconds)  # not counted
        print(*await rate(client, 1, seconds), *await rate(client, CONCURRENT, seconds))


if __name__ == "__main__":
    anyio.run(main, float(sys.argv[1]), sys.argv[2:])
