"""The client that `hostile.py` attacks:

    python benchmarks/attacked_client.py URL call|list

It calls a tool or lists all tools, and prints when it begins, and then the error or "answered". It
stays until its stdin is closed, so that its memory can be read. `peers/sdk_attacked_client.py` is
the same client written with the official SDK: change both.
"""

from __future__ import annotations

import sys

import trio

import mcp_trio


async def main(url: str, action: str) -> None:
    async with mcp_trio.connect_http(url, versions=["2025-11-25"]) as client:
        print("begins", flush=True)
        try:
            if action == "call":
                await client.call_tool("t")
            else:
                await client.list_tools()
        except mcp_trio.McpTrioError as exc:
            print(f"{type(exc).__name__}: {exc}".replace("\n", " "), flush=True)
        else:
            print("answered", flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
