"""A server of every feature, for both drivers: `python everything.py trio|asyncio [REVISION ...]`.

The words after the runtime name the only revisions that it speaks; without any it speaks all.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from importlib import import_module
from typing import TypedDict

from mcp_core import ALL, McpError, ToolError
from mcp_core.registry import Context, Image, Server
from mcp_core.types import PromptMessage, RequestParams, TextContent

# One pixel.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Weather(TypedDict):
    """The result of `weather`."""

    city: str
    celsius: float


class Reindex(RequestParams):
    """The params of `acme/reindex`."""

    shelf: str = "all"


def everything(*versions: str) -> Server:
    """The server."""
    server = Server(
        "everything", "1.2.3", title="One of all", instructions="Call.", versions=versions or ALL
    )

    @server.tool
    def echo(text: str) -> str:
        """Give the text back."""
        print("this must not reach the client's parser")
        return text

    @server.tool
    def weather(city: str) -> Weather:
        """The weather of a city, as data."""
        return {"city": city, "celsius": 21.5}

    @server.tool
    def picture() -> Image:
        """A picture."""
        return Image(PNG)

    @server.tool
    async def count(to: int, context: Context) -> int:
        """Count, and report each step."""
        for step in range(1, to + 1):
            await context.progress(step, to, f"step {step}")
        return to

    @server.tool(thread=True)
    def block(to: int, context: Context) -> list[int]:
        """Count in a thread."""
        for step in range(1, to + 1):
            context.progress_nowait(step, total=to)
        return list(range(to))

    @server.tool
    async def fail(how: str) -> str:
        """Fail: with a text for the model, an error of the protocol, or an unexpected exception."""
        raise {
            "reason": ToolError("the disk is full"),
            "error": McpError(4001, "not today", {"tomorrow": True}),
            "accident": SystemExit("a secret of the server"),
        }[how]

    @server.tool
    def meta(context: Context) -> str:
        """Give the member `com.example/word` of the request's `_meta`."""
        return str(context.meta["com.example/word"])

    @server.resource("memo://today", mime_type="text/plain")
    def today() -> str:
        """Return the tasks of today."""
        return "Buy milk."

    @server.resource("memo://logo", mime_type="image/png")
    async def logo() -> bytes:
        """A picture as a resource."""
        return PNG

    @server.resource("memo://{day}/notes", mime_type="text/plain")
    def notes(day: str) -> str:
        """The notes of a day."""
        return f"Notes of {day}."

    @server.prompt
    async def review(code: str, tone: str = "kind") -> list[PromptMessage]:
        """Ask for a review."""
        return [PromptMessage(role="user", content=TextContent(f"Review this, be {tone}: {code}"))]

    @server.method("acme/reindex", params=Reindex)
    async def reindex(params: Reindex) -> dict[str, str]:
        return {"shelf": params.shelf}

    return server


if __name__ == "__main__":
    runtime, *spoken = sys.argv[1:]
    import_module({"trio": "mcp_trio", "asyncio": "mcp_asyncio_shim"}[runtime]).run(
        everything(*spoken)
    )
