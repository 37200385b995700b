"""Write the schemas of `mcp`, and of FastMCP in a venv of its own, into `signatures.jsonl`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

from tests.core.registry.published import SIGNATURES, function_of, read_signatures


def schemas_of_mcp(tool: dict[str, Any]) -> Any:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("peer")
    server.add_tool(function_of(tool))
    (found,) = asyncio.run(server.list_tools())
    return [found.input_schema, found.output_schema]


def schemas_of_fastmcp(tool: dict[str, Any]) -> Any:
    from fastmcp import FastMCP  # type: ignore[import-not-found]  # in an environment of its own

    server = FastMCP("peer")
    server.tool(function_of(tool))
    (found,) = asyncio.run(server.list_tools())
    made = found.to_mcp_tool()
    return [made.input_schema, made.output_schema]


def schemas_of(peer: str, tool: dict[str, Any]) -> Any:
    """Return the input and the output schema, or the text of the peer's exception."""
    try:
        return (schemas_of_fastmcp if peer == "fastmcp" else schemas_of_mcp)(tool)
    except Exception as exc:  # noqa: BLE001 - the peer refuses the types
        return f"{type(exc).__name__}: {str(exc).splitlines()[0]}"


def main() -> None:
    tools = read_signatures()
    if sys.argv[1:] == ["fastmcp"]:
        print(json.dumps([schemas_of("fastmcp", tool) for tool in tools]))
        return
    words = [os.environ["MCP_TRIO_FASTMCP_PYTHON"], "-m", __spec__.name, "fastmcp"]
    done = subprocess.run(words, capture_output=True, check=True)
    for tool, found in zip(tools, json.loads(done.stdout), strict=True):
        tool["mcp"] = schemas_of("mcp", tool)
        tool["fastmcp"] = found
    lines = [json.dumps(tool, separators=(",", ":"), ensure_ascii=False) for tool in tools]
    SIGNATURES.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
