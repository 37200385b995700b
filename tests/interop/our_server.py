"""Our server with one of everything, for clients of others: `python our_server.py trio|asyncio
[REVISION ...]`.

The first argument names the runtime. The others restrict the revisions; without any, all are
served. Pages are short and results may be cached for a minute, so that a client meets both.

`cancelled` returns once a call of `wait` was cancelled, so that a test sees the cancellation in the
handler and not only in the client.
"""

from __future__ import annotations

import os
import sys
from base64 import b64decode
from importlib import import_module
from typing import TypedDict

from mcp_core import ALL, McpError, ToolError
from mcp_core.registry import CacheHint, Context, Image, Server
from mcp_core.types import LOGGING_LEVELS, PromptMessage, TextContent

runtime, *spoken = sys.argv[1:]
Event = import_module(runtime).Event

# One pixel.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
BOOKS = {
    "austen": ["emma", "persuasion"],
    "melville": ["moby-dick"],
    "morrison": ["beloved", "jazz"],
}


class Weather(TypedDict):
    """The result of `weather`."""

    city: str
    celsius: float


server = Server(
    "everything",
    "1.2.3",
    title="One of everything",
    instructions="Call anything.",
    versions=spoken or ALL,
    page_size=2,
    cache=CacheHint(60, "public"),
)
gone = Event()


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
async def count(to: int, context: Context) -> int:
    """Count, and report each step."""
    for step in range(1, to + 1):
        await context.progress(step, to, f"step {step}")
    return to


@server.tool
async def wait(context: Context) -> None:
    """Report the start, and never return."""
    await context.progress(0)
    try:
        await Event().wait()
    finally:
        gone.set()


@server.tool
async def cancelled() -> str:
    """Return when a call of `wait` was cancelled."""
    await gone.wait()
    return "yes"


@server.tool
def fail(how: str) -> str:
    """Fail: with a tool error, with a protocol error, or with an unexpected exception."""
    raise {
        "reason": ToolError("the disk is full"),
        "error": McpError(4001, "not today", {"tomorrow": True}),
        "accident": RuntimeError("a secret of the server"),
    }[how]


@server.tool
async def log(context: Context) -> None:
    """Log on every level, the least severe first."""
    for level in LOGGING_LEVELS:
        await context.log(level, {"severity": level}, logger="our.server")


@server.tool
def learn(name: str) -> None:
    """Add a tool of that name."""
    server.add_tool(lambda: "learned", name=name, description="It was learned.")


@server.tool
def forget(name: str) -> None:
    """Remove the tool of that name."""
    server.remove_tool(name)


@server.tool
def change(what: str) -> None:
    """Announce a change: `tools`, `prompts`, `resources`, or the resource with that URI."""
    if "://" in what:
        server.changed(resource=what)
    else:
        server.changed(**{what: True})  # type: ignore[arg-type]


@server.tool
def pid() -> int:
    """Return the process id."""
    return os.getpid()


@server.resource("memo://today", mime_type="text/plain", cache=CacheHint(5))
def today() -> str:
    """Today's tasks."""
    return "Buy milk."


@server.resource("memo://logo", mime_type="image/png")
def logo() -> bytes:
    """A picture as a resource."""
    return PNG


@server.resource("memo://later", mime_type="text/plain")
def later() -> str:
    """Later tasks."""
    return "Sell milk."


@server.resource("memo://{day}/notes", mime_type="text/plain")
def notes(day: str) -> str:
    """The notes of a day."""
    return f"Notes of {day}."


@server.resource("book://{author}/{title}")
def book(author: str, title: str) -> str:
    """A book."""
    return f"{title}, by {author}."


@server.resource("page://{number}")
def page(number: int) -> str:
    """A page."""
    return str(number)


@server.prompt
def review(code: str, tone: str = "kind") -> list[PromptMessage]:
    """Ask for a review.

    Args:
        code: the code.
        tone: the tone of the review.
    """
    return [
        PromptMessage(role="user", content=TextContent(f"Review this, be {tone}: {code}")),
        PromptMessage(role="assistant", content=TextContent("Gladly.")),
    ]


@server.prompt
def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello {name}."


@server.prompt
def thank() -> str:
    """Thank."""
    return "Thank you."


@server.completion("review", "tone")
def tones(typed: str) -> list[str]:
    return [tone for tone in ("frank", "friendly", "kind") if tone.startswith(typed)]


@server.completion("greet", "name")
async def names(typed: str) -> list[str]:
    return [f"{typed}{number}" for number in range(150)]


@server.completion("book://{author}/{title}", "author")
def authors(typed: str) -> list[str]:
    return [author for author in BOOKS if author.startswith(typed)]


@server.completion("book://{author}/{title}", "title")
def titles(typed: str, chosen: dict[str, str]) -> list[str]:
    return [title for title in BOOKS.get(chosen.get("author", ""), ()) if title.startswith(typed)]


if __name__ == "__main__":
    import_module({"trio": "mcp_trio", "asyncio": "mcp_asyncio_shim"}[runtime]).run(server)
