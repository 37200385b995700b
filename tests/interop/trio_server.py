"""A server of ours with one of everything, for clients of other makers: `python trio_server.py [REVISION ...]`.

The words name the only revisions that it speaks; without any it speaks all. `cancelled` answers once a call of `wait` was
cancelled: so a test sees a cancellation in the handler, and not only in the client that asked for it.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from typing import TypedDict

import trio

import mcp_trio
from mcp_core import ALL
from mcp_core.registry import Image
from mcp_core.types import PromptMessage, TextContent

# One pixel.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Weather(TypedDict):
    """What `weather` gives."""

    city: str
    celsius: float


server = mcp_trio.Server(
    "everything",
    "1.2.3",
    title="One of everything",
    instructions="Call anything.",
    versions=sys.argv[1:] or ALL,
)
gone = trio.Event()


@server.tool
def echo(text: str) -> str:
    """Give the text back.

    Args:
        text: any text.
    """
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
async def count(to: int, context: mcp_trio.Context) -> int:
    """Count, and tell of each step."""
    for step in range(1, to + 1):
        await context.progress(step, to, f"step {step}")
    return to


@server.tool
async def wait(context: mcp_trio.Context) -> str:
    """Never come back by itself; tell of the start."""
    await context.progress(0)
    try:
        await trio.sleep_forever()
    except trio.Cancelled:
        gone.set()
        raise


@server.tool
async def cancelled() -> str:
    """Come back when a call of `wait` was cancelled."""
    await gone.wait()
    return "yes"


@server.tool
def fail(how: str) -> str:
    """Fail: with a reason that was written to be read, or with an accident."""
    if how == "reason":
        raise mcp_trio.ToolError("the disk is full")
    raise RuntimeError("a secret of the server")


@server.resource("memo://today", mime_type="text/plain")
def today() -> str:
    """What is to be done today."""
    return "Buy milk."


@server.resource("memo://logo", mime_type="image/png")
def logo() -> bytes:
    """A picture as a resource."""
    return PNG


@server.resource("memo://{day}/notes", mime_type="text/plain")
def notes(day: str) -> str:
    """The notes of a day."""
    return f"Notes of {day}."


@server.prompt
def review(code: str, tone: str = "kind") -> list[PromptMessage]:
    """Ask for a review.

    Args:
        code: what to look at.
        tone: how to say it.
    """
    return [
        PromptMessage(role="user", content=TextContent(f"Review this, be {tone}: {code}")),
        PromptMessage(role="assistant", content=TextContent("Gladly.")),
    ]


if __name__ == "__main__":
    mcp_trio.run(server)
