"""`benchmarks/client.py` without a library: trio and msgspec.

    python benchmarks/peers/floor_client.py SECONDS COMMAND...
    python benchmarks/peers/floor_client.py SECONDS memory

A call is an encoded request, a place in a dict, and a task that sleeps until its response has been
read. Nothing is checked, and nothing has a deadline. In memory a task answers the encoded requests
with plain dicts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import msgspec
import trio
from outcome import Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CONCURRENT = 32
ARGUMENTS = {"text": "x" * 100}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1.0.0"},
}

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


class FloorClient:
    """The open calls, and what is still to be sent.

    Args:
        write: sends data at once, as the only call on its way.
        send: sends what several calls have left.
    """

    def __init__(
        self, write: Callable[[bytes], None], send: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._write = write
        self._send = send
        self._next = 0
        self._waiting: dict[int, trio.lowlevel.Task] = {}
        self._unsent: list[bytes] = []
        self._writer = trio.lowlevel.ParkingLot()

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and wait for its result."""
        self._next = id = self._next + 1
        data = encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + b"\n"
        if self._waiting:
            self._unsent.append(data)
            self._writer.unpark()
        else:
            self._write(data)
        self._waiting[id] = trio.lowlevel.current_task()

        def abort(_: Any) -> trio.lowlevel.Abort:
            del self._waiting[id]
            return trio.lowlevel.Abort.SUCCEEDED

        result: dict[str, Any] = await trio.lowlevel.wait_task_rescheduled(abort)
        return result

    def receive(self, lines: bytes) -> None:
        """Wake the calls that these responses are for."""
        for line in lines.splitlines():
            message = decode(line)
            if task := self._waiting.pop(message["id"], None):
                trio.lowlevel.reschedule(task, Value(message["result"]))

    async def run_writer(self) -> None:
        while True:
            if not self._unsent:
                await self._writer.park()
            data = b"".join(self._unsent)
            self._unsent.clear()
            await self._send(data)


async def calls(client: FloorClient, until: float, made: list[int]) -> None:
    call = {"name": "echo", "arguments": ARGUMENTS}
    while True:
        await client.request("tools/call", call)
        made[0] += 1
        if perf_counter() >= until:
            return


async def rate(client: FloorClient, tasks: int, seconds: float) -> tuple[float, float]:
    """Return calls a second, and the processor time of each in microseconds."""
    made = [0]
    start, cpu = perf_counter(), process_time()
    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(calls, client, start + seconds, made)
    return made[0] / (perf_counter() - start), 1e6 * (process_time() - cpu) / made[0]


async def measure(client: FloorClient, seconds: float) -> None:
    await client.request("initialize", HELLO)
    await rate(client, CONCURRENT, 2 * seconds)  # not counted
    print(*await rate(client, 1, seconds), *await rate(client, CONCURRENT, seconds))


async def over_stdio(seconds: float, command: list[str]) -> None:
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    stdin, stdout = process.stdin, process.stdout
    assert isinstance(stdin, trio.lowlevel.FdStream)
    assert isinstance(stdout, trio.lowlevel.FdStream)

    def write(data: bytes) -> None:
        assert os.write(stdin.fileno(), data) == len(data)  # it fits into an empty pipe

    client = FloorClient(write, stdin.send_all)

    async def read() -> None:
        rest = b""
        async for chunk in stdout:
            lines, newline, left = (rest + chunk).rpartition(b"\n")
            rest = left
            client.receive(lines + newline)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(client.run_writer)
        await measure(client, seconds)
        nursery.cancel_scope.cancel()
    await stdin.aclose()
    await process.wait()


async def in_memory(seconds: float) -> None:
    to_server, requests = trio.open_memory_channel[bytes](64)
    to_client, responses = trio.open_memory_channel[bytes](64)

    async def serve() -> None:
        async for lines in requests:
            answers = []
            for request in map(decode, lines.splitlines()):
                text = request["params"].get("arguments", {}).get("text", "")
                result = {"content": [{"type": "text", "text": text}]}
                answers.append(encode({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            await to_client.send(b"\n".join(answers))

    client = FloorClient(to_server.send_nowait, to_server.send)

    async def read() -> None:
        async for lines in responses:
            client.receive(lines)

    async with trio.open_nursery() as nursery:
        for task in (serve, read, client.run_writer):
            nursery.start_soon(task)
        await measure(client, seconds)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    length, *target = sys.argv[1:]
    if target == ["memory"]:
        trio.run(in_memory, float(length))
    else:
        trio.run(over_stdio, float(length), target)
