"""A client: starts the greeter next to this file, lists its tools and calls one."""

import sys
from pathlib import Path

import trio

import mcp_trio
from mcp_core.types import TextContent

GREETER = Path(__file__).with_name("greeter.py")


async def main() -> None:
    async with mcp_trio.connect([sys.executable, GREETER]) as client:
        for tool in await client.list_tools():
            print(f"{tool.name}: {tool.description}")
        result = await client.call_tool("greet", {"name": "World"})
        for block in result.content:
            if isinstance(block, TextContent):
                print(block.text)


if __name__ == "__main__":
    trio.run(main)
