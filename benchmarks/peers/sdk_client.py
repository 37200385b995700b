"""`benchmarks/client.py`, written with the official Python SDK (`mcp` 2.3): `python benchmarks/peers/sdk_client.py SECONDS COMMAND...`."""

from __future__ import annotations

import sys
from time import perf_counter, process_time

import anyio
from mcp import Client, StdioServerParameters

CONCURRENT = 32
ARGUMENTS = {"text": "x" * 100}


async def calls(client: Client, until: float, made: list[int]) -> None:
    while perf_counter() < until:
        result = await client.call_tool("echo", ARGUMENTS)
        assert not result.is_error
        made[0] += 1


async def rate(client: Client, tasks: int, seconds: float) -> tuple[float, float]:
    """Calls a second, and microseconds of processor time for each."""
    made = [0]
    start, cpu = perf_counter(), process_time()
    async with anyio.create_task_group() as group:
        for _ in range(tasks):
            group.start_soon(calls, client, start + seconds, made)
    return made[0] / (perf_counter() - start), 1e6 * (process_time() - cpu) / made[0]


async def main(seconds: float, command: list[str]) -> None:
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    async with Client(parameters, mode="legacy") as client:
        await rate(client, CONCURRENT, seconds / 10)  # not counted
        print(*await rate(client, 1, seconds), *await rate(client, CONCURRENT, seconds))


if __name__ == "__main__":
    anyio.run(main, float(sys.argv[1]), sys.argv[2:])
