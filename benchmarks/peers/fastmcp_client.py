# mypy: ignore-errors
"""`benchmarks/client.py` with FastMCP 4 and the same arguments."""

from __future__ import annotations

import sys
from time import perf_counter, process_time
from typing import Any

import anyio
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport

CONCURRENT = 32
ARGUMENTS = {"text": "x" * 100}


async def calls(client: Client[Any], until: float, made: list[int]) -> None:
    while True:
        result = await client.call_tool("echo", ARGUMENTS)
        assert not result.is_error
        made[0] += 1
        if perf_counter() >= until:
            return


async def rate(client: Client[Any], tasks: int, seconds: float) -> tuple[float, float]:
    """Return calls a second, and the processor time of each in microseconds."""
    made = [0]
    start, cpu = perf_counter(), process_time()
    async with anyio.create_task_group() as group:
        for _ in range(tasks):
            group.start_soon(calls, client, start + seconds, made)
    return made[0] / (perf_counter() - start), 1e6 * (process_time() - cpu) / made[0]


def echo(text: str) -> str:
    """Give the text back."""
    return text


def connect(target: list[str]) -> Client[Any]:
    if target == ["memory"]:
        server = FastMCP("benchmark", version="1.0.0")
        server.tool(echo, output_schema=None)
        return Client(server)
    if target[0].startswith("http://"):
        url, version = target
        return Client(url, mode="legacy" if version < "2026" else version)
    return Client(StdioTransport(target[0], target[1:]), mode="legacy")


async def main(seconds: float, target: list[str]) -> None:
    async with connect(target) as client:
        await rate(client, CONCURRENT, 2 * seconds)  # not counted
        print(*await rate(client, 1, seconds), *await rate(client, CONCURRENT, seconds))


if __name__ == "__main__":
    anyio.run(main, float(sys.argv[1]), sys.argv[2:])
