"""The server that the benchmarks start, over pipes or over HTTP:

    python benchmarks/server.py stdio [--tools N] [--async]
    python benchmarks/server.py http --port P --mode MODE [--tools N] [--async]

`echo`, `add` and `progress` are answered in three ways: text at once, data at once, and after a number of messages. The N
further tools are there to be listed. With `--async` the function behind `echo` is an `async def`, which is given a task for each
call; else it is a plain `def`. `peers/` has the same server written with other libraries; a change here is a change there.

Over HTTP it is at http://127.0.0.1:P/mcp. Of the modes `session-sse`, `session-json`, `stateless-sse` and `stateless-json` say
whether revisions with a handshake get sessions, and how requests are answered; `modern` is how a server is without a word about it.

It reads its arguments without argparse, which a server has no use for and which would be timed with it.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Final, Literal

import trio

import mcp_trio
from mcp_core import Limits

# No pace is kept for the peer: what is measured is how many calls there can be, not how many a server would put up with.
server = mcp_trio.Server("benchmark", "1.0.0", limits=Limits(tool_calls=None))

# Whether there are sessions, and how requests are answered.
MODES: Final[dict[str, tuple[bool, Literal["auto", "json", "sse"]]]] = {
    "session-sse": (True, "sse"),
    "session-json": (True, "json"),
    "stateless-sse": (False, "sse"),
    "stateless-json": (False, "json"),
    "modern": (True, "auto"),
}


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
    arguments = sys.argv[1:]
    if "--async" in arguments:
        arguments.remove("--async")
        server.remove_tool("echo")
        server.add_tool(echo_async, name="echo")
    if arguments[-2:-1] == ["--tools"]:
        for number in range(int(arguments.pop())):
            server.add_tool(filler, name=f"filler_{number}")
        arguments.pop()
    match arguments:
        case ["stdio"]:
            mcp_trio.run(server)
        case ["http", "--port", port, "--mode", mode] if mode in MODES:
            sessions, reply = MODES[mode]
            serve = partial(mcp_trio.serve_http, server, port=int(port), sessions=sessions, reply=reply)
            trio.run(serve)
        case _:
            sys.exit("usage: server.py stdio|http [--port P --mode MODE] [--tools N] [--async]")


if __name__ == "__main__":
    main()
