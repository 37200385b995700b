"""The client that `bench_stdio.py` and `bench_http.py` start:

    python benchmarks/client.py SECONDS COMMAND...
    python benchmarks/client.py SECONDS URL REVISION

It starts the command as its server, or connects to the URL, and calls `echo` one at a time, then 32
at a time, each for SECONDS. For both it prints the calls a second, and the processor time of each
in microseconds. `peers/sdk_client.py` is the same client written with the official SDK: change
both.
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import trio

import mcp_trio

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


def connect(target: list[str]) -> AbstractAsyncContextManager[mcp_trio.Client]:
    if target[0].startswith("http://"):
        url, version = target
        return mcp_trio.connect_http(url, versions=[version])
    return mcp_trio.connect_stdio(target, inherit_env=True, versions=["2025-11-25"])


async def main(seconds: float, target: list[str]) -> None:
    async with connect(target) as client:
        await rate(client, CONCURRENT, seconds / 10)  # not counted
        print(*await rate(client, 1, seconds), *await rate(client, CONCURRENT, seconds))


if __name__ == "__main__":
    trio.run(main, float(sys.argv[1]), sys.argv[2:])
