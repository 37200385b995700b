"""One address for two servers, each of which is whole by itself.

A team that has several servers declares each in a module of its own, with its own lifespan and
tests, and mounts them in one. Names get a prefix, so that they stay apart; URIs don't. What a
mounted server declares later, or removes, appears in the outer one and disappears from it.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

import mcp_trio
from mcp_core import ALL

# --- notes.py -------------------------------------------------------------------------------------


@asynccontextmanager
async def open_notes(server: mcp_trio.Server) -> AsyncIterator[dict[str, str]]:
    yield {"tea": "Buy oolong."}


notes = mcp_trio.Server("notes", lifespan=open_notes, instructions="Read before you write.")


@notes.tool
def read(title: str, context: mcp_trio.Context[dict[str, str]]) -> str:
    """Read a note."""
    return context.lifespan.get(title, "There is no such note.")


@notes.tool
def write(title: str, text: str, context: mcp_trio.Context[dict[str, str]]) -> str:
    """Write a note."""
    context.lifespan[title] = text
    return "Written."


# --- units.py -------------------------------------------------------------------------------------

units = mcp_trio.Server("units")


@units.tool
def fahrenheit(celsius: float) -> float:
    """Convert a temperature."""
    return celsius * 9 / 5 + 32


# --- main.py --------------------------------------------------------------------------------------

server = mcp_trio.Server("desk")
server.mount(notes, "notes")
server.mount(units, "units")


async def main() -> None:
    async with mcp_trio.connect(server, versions=sys.argv[1:] or ALL) as client:
        print(*[tool.name for tool in await client.list_tools()])
        print((await client.call_tool("notes_read", {"title": "tea"})).text)
        print((await client.call_tool("units_fahrenheit", {"celsius": 95})).text)
        units.remove_tool("fahrenheit")
        print(*[tool.name for tool in await client.list_tools()])


if __name__ == "__main__":
    trio.run(main)
