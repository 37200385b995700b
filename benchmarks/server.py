"""The server that the benchmarks start: `python benchmarks/server.py stdio [--tools N | --async]`.

`echo`, `add` and `progress` are answered in three ways: text at once, data at once, and after a number of messages. The N
further tools are there to be listed. With `--async` the function behind `echo` is an `async def`, which is given a task for each
call; else it is a plain `def`. `peers/` has the same server written with other libraries; a change here is a change there.

It reads its arguments without argparse, which a server has no use for and which would be timed with it.
"""

from __future__ import annotations

import sys

import mcp_trio
from mcp_core import Limits

# No pace is kept for the peer: what is measured is how many calls there can be, not how many a server would put up with.
server = mcp_trio.Server("benchmark", "1.0.0", limits=Limits(tool_calls=None))


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


async def echo_async(text: str) -> str:
    """Give the text back."""
    return text


def filler(query: str, limit: int = 10, exact: bool = False) -> str:
    """Look something up. There are many of these, so that a list is long."""
    return f"{query} {limit} {exact}"


def main() -> None:
    match sys.argv[1:]:
        case ["stdio"]:
            more = 0
        case ["stdio", "--tools", count]:
            more = int(count)
        case ["stdio", "--async"]:
            more = 0
            server.remove_tool("echo")
            server.add_tool(echo_async, name="echo")
        case _:
            sys.exit("usage: server.py stdio [--tools N | --async]")
    for number in range(more):
        server.add_tool(filler, name=f"filler_{number}")
    mcp_trio.run(server)


if __name__ == "__main__":
    main()
