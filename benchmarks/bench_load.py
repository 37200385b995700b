"""The load of `mcp-trio bench` beside a bare trio loop that moves the same bytes.

A stand-in answers each request at once with prepared bytes, over TCP or over pipes, so what is
measured is the load. Each kind of target is called with prepared bytes in two ways:

- `lean`: the engine of `mcp-trio bench`. It draws calls, finds ids and ends, counts latencies,
  watches timeouts, and decodes one response in a hundred;
- `bare`: as many trio tasks as there are callers, each of which only writes a request and reads
  until it has as many bytes as the response has. Over pipes, which the callers share, one task
  reads, and writes a request for each line.

The figure is the processor time of this process for each call, in microseconds. The two ways take
turns in each round, with the same stand-in, and medians of the rounds are compared: `..._ratio` is
how many times the processor time of the bare loop the engine costs. At most 1.3 is wanted.

With 16 callers over a pipe both read and write 16 calls at once. That costs the bare loop 2.5 us
each, so the engine's own microsecond for a call shows most there. Over HTTP the engine takes less
than the bare loop, since it doesn't let other tasks run after each write.

    python benchmarks/bench_load.py [--rounds 7] [--seconds 0.5]

The last line is one JSON object with all medians.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sys
import time
from contextlib import asynccontextmanager
from statistics import median
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_trio.oracle.bench._requests import Mix, PreparedCall
from mcp_trio.oracle.bench._turn import Pace
from mcp_trio.oracle.bench.engine._load import Address, Program, open_load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio.oracle.bench.engine._templates import Template

# A session's era: the stand-ins speak only it.
ERA: Final = "2025-11-25"
CALL: Final = PreparedCall(
    "tools/call", {"name": "echo", "arguments": {"text": "x" * 100}}, "tools/call echo"
)
TEXT: Final = b'"result":{"content":[{"type":"text","text":"%b"}]}}' % (b"x" * 100)
LINE: Final = b'{"jsonrpc":"2.0","id":%b,' + TEXT
CALLERS: Final = (1, 16)
PREPARED: Final = 1000
GOAL: Final = 1.3
ID: Final = re.compile(rb'"id":(\d+)')
RESULT: Final = re.compile(rb"content-length: (\d+)\r\n", re.IGNORECASE)


# -- The stand-ins, which run in a process of their own ------------------------------------------


def answer(body: bytes) -> bytes:
    """Return the response to a request, b"" to a notification."""
    found = ID.search(body)
    if found is None:
        return b""
    if b'"initialize"' in body:
        result = {"protocolVersion": ERA, "capabilities": {}, "serverInfo": {"name": "stand-in"}}
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (found[1], json.dumps(result).encode())
    return LINE % found[1]


def serve_stdio() -> None:
    """Answer lines on stdin."""
    rest = b""
    while data := os.read(0, 65_536):
        *lines, rest = (rest + data).split(b"\n")
        answers = b"".join(answer(line) + b"\n" for line in lines if b'"id":' in line)
        while answers:
            answers = answers[os.write(1, answers) :]


def serve_http() -> None:
    """Answer POSTs on a port, which is printed."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)

    async def serve(stream: trio.SocketStream) -> None:
        data = b""
        async with stream:
            while received := await stream.receive_some(65_536):
                data += received
                end = data.find(b"\r\n\r\n") + 4
                length = RESULT.search(data, 0, end)
                size = end + (int(length[1]) if length else 0)
                if end < 4 or len(data) < size:
                    continue
                body = answer(data[end:size])
                data = data[size:]
                status = b"200 OK" if body else b"202 Accepted"
                head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\n" % status
                await stream.send_all(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))

    async def run() -> None:
        listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(listener))]
        await trio.serve_listeners(serve, listeners)

    trio.run(run)


# -- The bare loops ------------------------------------------------------------------------------


async def bare_http(
    port: int, requests: list[bytes], size: int, callers: int, seconds: float
) -> float:
    """Return the processor time of a call, in microseconds."""
    made = 0

    async def call(stream: trio.SocketStream) -> None:
        nonlocal made
        while trio.current_time() < deadline:
            await stream.send_all(requests[made % PREPARED])
            missing = size
            while missing > 0:
                missing -= len(await stream.receive_some(65_536))
            made += 1

    streams = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(callers)]
    before, deadline = time.process_time(), trio.current_time() + seconds
    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(call, stream)
    used = time.process_time() - before
    for stream in streams:
        await stream.aclose()
    return 1e6 * used / made


async def bare_stdio(
    process: trio.Process, requests: list[bytes], callers: int, seconds: float
) -> float:
    """Return the processor time of a call, in microseconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    made = 0
    before, deadline = time.process_time(), trio.current_time() + seconds
    await process.stdin.send_all(b"".join(requests[:callers]))
    open_calls = callers
    while open_calls:
        data = await process.stdout.receive_some(65_536)
        lines = data.count(b"\n")
        made += lines
        if trio.current_time() < deadline:
            at = made % PREPARED
            await process.stdin.send_all(b"".join(requests[at : at + lines]))
        else:
            open_calls -= lines
    return 1e6 * (time.process_time() - before) / made


def prepared(template: Template) -> list[bytes]:
    """Return requests with different ids, and as many more as a read may answer."""
    ids = range(1_000_000_000, 1_000_000_000 + PREPARED + max(CALLERS))
    return [b"%b%d%b" % (template.head, id, template.tail) for id in ids]


# -- The rounds ----------------------------------------------------------------------------------


async def lean(load: Any, callers: int, seconds: float) -> float:
    """Return the processor time of a call, in microseconds."""
    turn = await load.turn(Mix([CALL]), Pace(None, callers), seconds)
    if turn.failed:
        raise SystemExit(f"calls failed: {turn.errors}, {turn.timeouts} timeouts")
    return float(1e6 * turn.load_cpu / turn.answered)


@asynccontextmanager
async def http_target() -> AsyncIterator[int]:
    with Popen(  # noqa: ASYNC220  starting it takes a millisecond
        [sys.executable, __file__, "--serve", "http"], stdout=PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield int(await trio.to_thread.run_sync(process.stdout.readline))
        finally:
            process.kill()


async def http_rounds(rounds: int, seconds: float) -> dict[str, list[float]]:
    figures: dict[str, list[float]] = {}
    async with http_target() as port, open_load(Address(f"http://127.0.0.1:{port}/mcp")) as load:
        # The bytes that the engine sends, and as many as it gets.
        lines: Any = load
        template = lines._connections[0].templates.of(CALL)
        requests = prepared(template)
        response = len(LINE % b"1000000000")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        size = len(head % response) + response
        for number in range(rounds + 1):  # the first isn't counted
            for callers in CALLERS:
                ours = await lean(load, callers, seconds)
                bare = await bare_http(port, requests, size, callers, seconds)
                if number:
                    figures.setdefault(f"http_{callers}_lean", []).append(ours)
                    figures.setdefault(f"http_{callers}_bare", []).append(bare)
    return figures


async def stdio_rounds(rounds: int, seconds: float) -> dict[str, list[float]]:
    figures: dict[str, list[float]] = {}
    argv = [sys.executable, __file__, "--serve", "stdio"]
    program = Program(argv, inherit_env=True)
    # Typed for the system of the type checker only.
    process = await trio.lowlevel.open_process(argv, stdin=PIPE, stdout=PIPE)
    try:
        async with open_load(program, era=ERA) as load:
            lines: Any = load
            template = lines._templates.of(CALL)
            requests = prepared(template)
            for number in range(rounds + 1):  # the first isn't counted
                for callers in CALLERS:
                    ours = await lean(load, callers, seconds)
                    bare = await bare_stdio(process, requests, callers, seconds)
                    if number:
                        figures.setdefault(f"stdio_{callers}_lean", []).append(ours)
                        figures.setdefault(f"stdio_{callers}_bare", []).append(bare)
    finally:
        process.kill()
        await process.wait()
    return figures


async def measure(rounds: int, seconds: float) -> None:
    found = {**await http_rounds(rounds, seconds), **await stdio_rounds(rounds, seconds)}
    medians = {name: round(median(values), 2) for name, values in found.items()}
    print("| callers | lean us | bare us | ratio | goal |")
    print("|---|--:|--:|--:|---|")
    for name in [name.removesuffix("_lean") for name in medians if name.endswith("_lean")]:
        pairs = zip(found[f"{name}_lean"], found[f"{name}_bare"], strict=True)
        # The two of a round have met the same machine.
        ratio = median(ours / bare for ours, bare in pairs)
        medians[f"{name}_ratio"] = round(ratio, 3)
        ours, bare = medians[f"{name}_lean"], medians[f"{name}_bare"]
        verdict = "reached" if ratio <= GOAL else "missed"
        print(f"| {name} | {ours:.1f} | {bare:.1f} | {ratio:.2f} | {GOAL}: {verdict} |")
    print(json.dumps(medians))


def main() -> None:
    options = argparse.ArgumentParser(description="The load beside a bare trio loop.")
    options.add_argument("--rounds", type=int, default=7, help="turns of each (7)")
    options.add_argument("--seconds", type=float, default=0.5, help="length of a turn (0.5)")
    options.add_argument("--serve", choices=["http", "stdio"], help=argparse.SUPPRESS)
    chosen = options.parse_args()
    match chosen.serve:
        case "http":
            serve_http()
        case "stdio":
            serve_stdio()
        case _:
            trio.run(measure, chosen.rounds, chosen.seconds)


if __name__ == "__main__":
    main()
