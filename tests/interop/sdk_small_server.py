"""A small server of the official Python SDK, 1.x or 2.x, over stdio: `python sdk_small_server.py`.

It shares no module with the tests, since it runs in an environment of its own.
"""

from __future__ import annotations

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # 1.x
    from mcp.server.fastmcp import FastMCP as MCPServer  # type: ignore[attr-defined, no-redef]

server = MCPServer("small")


@server.tool()
def greet(name: str) -> str:
    """Return a greeting."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    server.run()
