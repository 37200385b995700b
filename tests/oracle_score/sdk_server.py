"""A right server on the official Python SDK."""

from __future__ import annotations

from typing import TypedDict

import anyio
from mcp.server.mcpserver import Context, MCPServer

__all__ = ["new_server"]


class SdkWeather(TypedDict):
    """The result of `weather`."""

    city: str
    celsius: float


def new_server() -> MCPServer:
    """Return a server with tools, a prompt and resources. No function runs in a thread."""
    server = MCPServer("sdk workshop", version="1.0", log_level="CRITICAL")

    @server.tool()
    async def echo(text: str) -> str:
        """Return the text."""
        return text

    @server.tool()
    async def weather(city: str) -> SdkWeather:
        """Return the weather of a city, as data."""
        return {"city": city, "celsius": 21.5}

    @server.tool()
    async def count(to: int, context: Context) -> int:
        """Count to ten at most, and report each step."""
        for step in range(1, min(to, 10) + 1):
            await context.report_progress(step, to)
        return to

    @server.tool()
    async def steep(minutes: int) -> str:
        """Steep a tea. A minute takes a hundredth of a second."""
        await anyio.sleep(max(0, min(minutes, 20)) / 100)
        return "ready"

    @server.resource("note:///one", mime_type="text/plain")
    async def one() -> str:
        """A note."""
        return "The note one."

    @server.resource("note:///{name}", mime_type="text/plain")
    async def note(name: str) -> str:
        """A note by its name."""
        return f"The note {name}."

    @server.prompt()
    async def greet(name: str) -> str:
        """Greet a guest."""
        return f"Greet {name}."

    return server
