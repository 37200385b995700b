"""The server that the benchmarks start, over pipes or over HTTP:

    python benchmarks/server.py stdio [--tools N] [--async]
    python benchmarks/server.py http --port P --mode MODE [--tools N] [--async]

`echo`, `add` and `progress` return text at once, data at once, and text after N progress
notifications. The N further tools make the list of tools long. With `--async` the function behind
`echo` is an `async def`, which runs in a task for each call; otherwise it is a plain `def`.
`peers/` has the same server written with other libraries: change all of them.

Over HTTP it is at http://127.0.0.1:P/mcp. The modes `session-sse`, `session-json`, `stateless-sse`
and `stateless-json` are for revisions with a handshake: with sessions or not, responses as SSE or
JSON. `modern` is a server with default options.

Arguments are read without argparse, whose import would be timed too.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Final, Literal

import trio

import mcp_trio
from mcp_core import Limits

# No rate limit: the benchmarks measure how many calls are possible.
server = mcp_trio.Server("benchmark", "1.0.0", limits=Limits(tool_calls=None))

# For each mode: with sessions or not, and the format of responses.
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
    """Report `n` steps of progress."""
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
            from mcp_core.http import HttpLimits  # not timed in a server on a pipe

            serve = partial(
                mcp_trio.serve_http,
                server,
                port=int(port),
                sessions=sessions,
                reply=reply,
                limits=HttpLimits(client_share=1),  # all load comes from one address
            )
            trio.run(serve)
        case _:
            sys.exit("usage: server.py stdio|http [--port P --mode MODE] [--tools N] [--async]")


if __name__ == "__main__":
    main()
