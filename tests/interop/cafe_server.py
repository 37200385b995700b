"""One of our servers, with URIs outside ASCII and questions: `python cafe_server.py trio|asyncio`.

Clients that parse URIs write them in another spelling than the one here.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

import mcp_asyncio_shim
import mcp_trio
from mcp_core import ToolError
from mcp_core.registry import Context, Server

# As they are declared. Three are in another spelling than their normal form.
URIS = ["note://café", "https://Example.com", "note:///crème%20br%C3%BBl%C3%A9e", "note:///menu"]


class Dish(Struct):
    """An order of the user."""

    dish: Annotated[str, Meta(min_length=1)]
    count: Annotated[int, Meta(ge=1, le=8)] | None = None
    where: str = "inside"


def place(uri: str) -> str:
    return f"at {uri}"


def make_server() -> Server:
    server = Server("café", version="1.0", instructions="Order something.")
    for uri in URIS:
        server.add_resource(uri, partial(place, uri), name=uri, mime_type="text/plain")

    @server.resource("note://café/{day}/list")
    def notes(day: str) -> str:
        """The notes of a day."""
        return f"Notes of {day}."

    @server.completion("note://café/{day}/list", "day")
    def days(value: str) -> list[str]:
        return [day for day in ("monday", "tuesday") if day.startswith(value)]

    @server.prompt
    def greet(name: str) -> str:
        """Greet someone."""
        return f"Say hello to {name}."

    @server.tool
    def echo(text: str) -> str:
        """Give the text back."""
        return text

    @server.tool
    async def order(context: Context) -> str:
        """Ask for an order."""
        answer = await context.elicit("What would you like?", Dish)
        if answer.action != "accept":
            return answer.action
        return f"{answer.data.count} × {answer.data.dish} {answer.data.where}"

    @server.tool
    async def count(context: Context) -> int:
        """Count to three, and log each step."""
        for step in range(1, 4):
            await context.progress(step, 3, f"step {step}")
            await context.log("info", f"step {step}")
        return 3

    @server.tool
    async def touch(context: Context) -> str:
        """Report that each resource has changed, and say where the client works."""
        for uri in URIS:
            server.changed(resource=uri)
        return " ".join(root.uri for root in await context.roots())

    @server.tool
    def fail() -> str:
        """Fail."""
        raise ToolError("the oven is cold")

    return server


if __name__ == "__main__":
    {"trio": mcp_trio, "asyncio": mcp_asyncio_shim}[sys.argv[1]].run(make_server())
