"""A server with one of everything, written with the official Python SDK: `python sdk_server.py`.

It has what the tests of our clients call, and runs on asyncio, so that two runtimes talk to each
other. It differs from ours where the SDK does: an unknown tool is a result there, and every tool
has an output schema. `refuse` is here because of the first.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, TypedDict

import anyio
from mcp import MCPError
from mcp.server.mcpserver import (
    AssistantMessage,
    Context,
    Elicit,
    ElicitationResult,
    Image,
    MCPServer,
    Message,
    Resolve,
    UserMessage,
)
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

# One pixel.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Weather(TypedDict):
    """The result of `weather`."""

    city: str
    celsius: float


server = MCPServer(
    "everything", version="1.2.3", title="One of everything", instructions="Call anything."
)
gone = anyio.Event()


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
def weather(city: str) -> Weather:
    """The weather of a city, as data."""
    return {"city": city, "celsius": 21.5}


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=PNG, format="png")


@server.tool()
async def count(to: int, context: Context) -> int:
    """Count, and report each step."""
    for step in range(1, to + 1):
        await context.report_progress(step, to, f"step {step}")
    return to


@server.tool()
async def wait(context: Context) -> str:
    """Report the start, and never return."""
    await context.report_progress(0)
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        gone.set()
        raise
    return "woken"


@server.tool()
async def cancelled() -> str:
    """Return when a call of `wait` was cancelled."""
    await gone.wait()
    return "yes"


@server.tool()
async def say(context: Context) -> None:
    """Send two log messages."""
    await context.debug("a detail")
    await context.warning("a surprise", logger_name="their.server")


@server.tool()
def fail() -> str:
    """Fail with a reason."""
    raise ToolError("the disk is full")


@server.tool()
def refuse() -> str:
    """Raise a protocol error."""
    raise MCPError(4001, "not today", {"tomorrow": True})


class SeatsModel(BaseModel):
    """The first form of `book`."""

    count: int = Field(ge=1, le=8)
    where: str = "aisle"


class Sure(BaseModel):
    """The second form of `book`."""

    sure: bool


def seats(flight: str) -> Elicit[SeatsModel]:
    return Elicit(f"Seats on {flight}", SeatsModel)


def sure(wanted: Annotated[SeatsModel, Resolve(seats)]) -> Elicit[Sure]:
    return Elicit(f"Really {wanted.count}?", Sure)


@server.tool()
def book(
    flight: str,
    wanted: Annotated[SeatsModel, Resolve(seats)],
    sure: Annotated[ElicitationResult[Sure], Resolve(sure)],
) -> str:
    """Request input twice, the second time because of the first response, which is sealed
    (2026-07-28).
    """
    return f"{wanted.count} by the {wanted.where} on {flight}: {sure.action}"


@server.resource("memo://today", mime_type="text/plain")
def today() -> str:
    """Today's tasks."""
    return "Buy milk."


@server.resource("memo://logo", mime_type="image/png")
def logo() -> bytes:
    """A picture as a resource."""
    return PNG


@server.resource("memo://{day}/notes", mime_type="text/plain")
def notes(day: str) -> str:
    """The notes of a day."""
    return f"Notes of {day}."


@server.prompt()
def review(code: str, tone: str = "kind") -> list[Message]:
    """Ask for a review."""
    return [UserMessage(f"Review this, be {tone}: {code}"), AssistantMessage("Gladly.")]


if __name__ == "__main__":
    server.run("stdio")
