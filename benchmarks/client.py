"""The client that `compare.py` measures:

    python benchmarks/client.py SECONDS COMMAND...
    python benchmarks/client.py SECONDS URL REVISION
    python benchmarks/client.py SECONDS memory

It starts the command as its server, connects to the URL, or has a server in this process. It calls
`echo` one at a time, then 32 at a time, each for SECONDS. For both it prints the calls a second,
and the processor time of each in microseconds. `peers/` has the same client written with other
libraries: change all of them.
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import trio

import mcp_trio
from mcp_core import Limits

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

CONCURRENT = 32
ARGUMENTS = {"text": "x" * 100}


async def calls(client: mcp_trio.Client, until: float, made: list[int]) -> None:
    while True:
        result = await client.call_tool("echo", ARGUMENTS)
        assert not result.is_error
        made[0] += 1
        if perf_counter() >= until:
            return


async def rate(client: mcp_trio.Client, tasks: int, seconds: float) -> tuple[float, float]:
    """Return calls a second, and the processor time of each in microseconds."""
    made = [0]
    start, cpu = perf_counter(), process_time()
    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(calls, client, start + seconds, made)
    return made[0] / (perf_counter() - start), 1e6 * (process_time() - cpu) / made[0]


def echo(text: str) -> str:
    """Give the text back."""
    return text


def connect(target: list[str]) -> AbstractAsyncContextManager[mcp_trio.Client]:
    if target == ["memory"]:
        server = mcp_trio.Server("benchmark", "1.0.0", limits=Limits(tool_calls=None))
        server.add_tool(echo)
        return mcp_trio.connect(server, versions=["2025-11-25"])
    if target[0].startswith("http://"):
        url, version = target
        return mcp_trio.connect_http(url, versions=[version])
    return mcp_trio.connect_stdio(target, inherit_env=True, versions=["2025-11-25"])


async def main(seconds: float, target: list[str]) -> None:
    async with connect(target) as client:
        await rate(client, CONCURRENT, 2 * seconds)  # not counted
        print(*await rate(client, 1, seconds), *await rate(client, CONCURRENT, seconds))


if __name__ == "__main__":
    trio.run(main, float(sys.argv[1]), sys.argv[2:])
