"""`benchmarks/server.py` with the official Python SDK (`mcp` 2.3): the faster, low-level server.

    python benchmarks/peers/sdk_lowlevel.py stdio [--tools N]
    python benchmarks/peers/sdk_lowlevel.py http --port P --mode MODE [--tools N]

Its responses equal our server's, field by field, as far as the SDK allows. Schemas are
written out, because the low-level server derives none. Over HTTP it is an ASGI app under uvicorn,
as in the SDK: on asyncio, with h11. The schema of a tool whose headers it has to check is looked up
directly, which saves the SDK a search through its own list in each call of 2026-07-28.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

INTEGER = {"type": "integer"}
STRING = {"type": "string"}
WRAPPED = {"type": "object", "properties": {"result": INTEGER}, "required": ["result"]}


def tool(
    name: str,
    description: str,
    required: dict[str, Any],
    optional: dict[str, Any] | None = None,
    output: dict[str, Any] | None = None,
) -> Tool:
    schema = {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
    return Tool(name=name, description=description, input_schema=schema, output_schema=output)


def text(words: str, structured: Any = None) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=words)], structured_content=structured
    )


TOOLS = [
    tool("echo", "Give the text back.", {"text": STRING}),
    tool("add", "Add two numbers.", {"a": INTEGER, "b": INTEGER}, output=WRAPPED),
    tool("progress", "Report `n` steps of progress.", {"n": INTEGER}),
]
SCHEMAS: dict[str, dict[str, Any]] = {}


async def list_tools(
    context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
) -> ListToolsResult:
    return ListToolsResult(tools=TOOLS)


async def call_tool(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams
) -> CallToolResult:
    given = params.arguments or {}
    match params.name:
        case "echo":
            return text(given["text"])
        case "add":
            total = given["a"] + given["b"]
            return text(str(total), {"result": total})
        case "progress":
            for step in range(1, given["n"] + 1):
                await context.session.report_progress(step, given["n"])
            return text("done")
        case _:
            raise MCPError(-32602, f"Unknown tool: {params.name}")


server: Server[Any] = Server(
    "benchmark",
    version="1.0.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    get_tool_input_schema=SCHEMAS.get,
)


async def serve_stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def serve_http(port: int, mode: str) -> None:
    import uvicorn

    how, _, answers = mode.partition("-")
    app = server.streamable_http_app(
        stateless_http=how == "stateless", json_response=answers == "json"
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


def main() -> None:
    arguments = sys.argv[1:]
    more = 0
    if arguments[-2:-1] == ["--tools"]:
        more = int(arguments[-1])
        del arguments[-2:]
    what = "Look something up. There are many of these, so that a list is long."
    optional = {"limit": {**INTEGER, "default": 10}, "exact": {"type": "boolean", "default": False}}
    TOOLS.extend(
        tool(f"filler_{number}", what, {"query": STRING}, optional) for number in range(more)
    )
    SCHEMAS.update((tool.name, tool.input_schema) for tool in TOOLS)
    match arguments:
        case ["stdio"]:
            anyio.run(serve_stdio)
        case ["http", "--port", port, "--mode", mode]:
            serve_http(int(port), mode)
        case _:
            sys.exit("usage: sdk_lowlevel.py stdio|http [--port P --mode MODE] [--tools N]")


if __name__ == "__main__":
    main()
