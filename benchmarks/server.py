"""The server that the benchmarks start: `python benchmarks/server.py stdio [--tools N]`.

`echo`, `add` and `progress` are answered in three ways: text at once, data at once, and after a number of messages. The N
further tools are there to be listed. `peers/` has the same server written with other libraries; a change here is a change
there.

It reads its arguments without argparse, which a server has no use for and which would be timed with it.
"""

from __future__ import annotations

import sys

import mcp_trio

server = mcp_trio.Server("benchmark", "1.0.0")


@server.tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def progress(n: int, context: mcp_trio.Context) -> str:
    """Tell of `n` steps, one after the other."""
    for step in range(1, n + 1):
        await context.progress(step, n)
    return "done"


def filler(query: str, limit: int = 10, exact: bool = False) -> str:
    """Look something up. There are many of these, so that a list is long."""
    return f"{query} {limit} {exact}"


def main() -> None:
    match sys.argv[1:]:
        case ["stdio"]:
            more = 0
        case ["stdio", "--tools", count]:
            more = int(count)
        case _:
            sys.exit("usage: server.py stdio [--tools N]")
    for number in range(more):
        server.add_tool(filler, name=f"filler_{number}")
    mcp_trio.run(server)


if __name__ == "__main__":
    main()
