"""`benchmarks/attacked_client.py` with the official Python SDK (`mcp` 2.3) and the same arguments.

The SDK lists one page at a time: the loop over them is the caller's.
"""

from __future__ import annotations

import sys

import anyio
from mcp import Client, MCPError


async def list_tools(client: Client) -> None:
    tools = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return


async def main(url: str, action: str) -> None:
    async with Client(url, mode="legacy") as client:
        print("begins", flush=True)
        try:
            if action == "call":
                await client.call_tool("t")
            else:
                await list_tools(client)
        except MCPError as exc:
            print(f"{type(exc).__name__}: {exc}".replace("\n", " "), flush=True)
        else:
            print("answered", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
