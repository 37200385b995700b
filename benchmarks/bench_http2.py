"""Calls over one HTTP/2 connection, and over kept-alive HTTP/1.1 connections, both to our server.

- `h1_cpu`, `h2_cpu` (Linux): the processor time of the server's process for a call of `echo` with
  100 bytes, in microseconds, with 200 concurrent calls: each on a connection of its own, or all on
  one connection, as many of them as its stream limit allows. `cpu_ratio` is the second by the
  first.
- `alone_p50`, `alone_p99`: the time of sequential calls, in microseconds. `beside_p50`,
  `beside_p99`: the same while a stream of progress fills the same connection, of which the client
  reads 1 MiB a second. `apart_p50`, `apart_p99`: the same with that stream on another connection.
  `beside` minus `apart` is the cost of sharing a connection; `apart` minus `alone` is the cost of a
  server with other work.

The rules are the same as in `compare.py`: prepared bytes as load, all received bytes counted, a
turn for each in every round, and medians.

    python benchmarks/bench_http2.py [--rounds 5] [--calls 5000]

The last line is one JSON object with all figures.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from time import clock_gettime, perf_counter, sleep
from typing import TYPE_CHECKING, Any, Final

from hpack import Encoder

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent
ENVIRONMENT: Final = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")])),
}
AT_ONCE: Final = 200
STREAMS: Final = 100
META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
FIELDS: Final = {
    "user-agent": "benchmark/1.0.0",
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
}
DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE = 0, 1, 3, 4, 8
END_STREAM, END_HEADERS = 1, 4
RATE: Final = 2**20  # bytes a second that the client reads from the stream


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


def call(tool: str, arguments: dict[str, Any], **meta: str) -> bytes:
    params = {"_meta": {**META, **meta}, "name": tool, "arguments": arguments}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    ).encode()


ECHO: Final = call("echo", {"text": "x" * 100})


class Wire:
    """One HTTP/2 connection. `ended` counts ended streams, `read` the bytes of the first stream."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        window = frame(WINDOW_UPDATE, 0, 0, (2**30).to_bytes(4, "big"))
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0) + window)
        self.ended = self.read = 0
        self._port = port
        self._encoder = Encoder()
        self._buffer = bytearray()
        self._stream = -1

    def request(self, body: bytes, tool: str) -> bytes:
        self._stream += 2
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":authority": f"127.0.0.1:{self._port}",
            ":path": "/mcp",
            **FIELDS,
            "mcp-name": tool,
            "content-length": str(len(body)),
        }
        head = frame(HEADERS, END_HEADERS, self._stream, self._encoder.encode(fields.items()))
        return head + frame(DATA, END_STREAM, self._stream, body)

    def receive(self) -> None:
        data = self.socket.recv(262_144)
        if not data:
            raise SystemExit("the server closed the connection")
        received = self._buffer
        received += data
        at = 0
        while len(received) - at >= 9:
            size = int.from_bytes(received[at : at + 3], "big")
            if len(received) - at < 9 + size:
                break
            kind, flags = received[at + 3], received[at + 4]
            if kind == RST_STREAM:
                raise SystemExit("the server has reset a stream")
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.ended += 1
            if kind == DATA and received[at + 8] == 1 and received[at + 5 : at + 8] == b"\0\0\0":
                self.read += size
            at += 9 + size
        del received[:at]


@contextmanager
def serving(cores: set[int]) -> Iterator[tuple[int, int]]:
    """Run our server; yields its port and its process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    argv = [
        sys.executable,
        str(HERE / "server.py"),
        "http",
        "--port",
        str(port),
        "--mode",
        "modern",
    ]
    with subprocess.Popen(argv, env=ENVIRONMENT) as process:
        if cores:
            os.sched_setaffinity(process.pid, cores)
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    sleep(0.02)
            yield port, process.pid
        finally:
            process.kill()


def cpu(process: int) -> float:
    """Return the processor time of a process so far, in microseconds; 0 except on Linux."""
    return 1e6 * clock_gettime(~process << 3 | 2) if sys.platform == "linux" else 0.0


def h1(port: int, process: int, calls: int) -> float:
    fields = "".join(f"{name}: {value}\r\n" for name, value in FIELDS.items())
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{fields}mcp-name: echo\r\n"
        f"content-length: {len(ECHO)}\r\n\r\n"
    )
    request = head.encode() + ECHO
    poll, sockets = select.poll(), {}
    for _ in range(AT_ONCE):
        each = socket.create_connection(("127.0.0.1", port))
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[each.fileno()] = each
        poll.register(each, select.POLLIN)
    began = 0.0
    for part in calls // 5, calls:  # the first part is not counted
        began = cpu(process)
        sent = answered = 0
        for each in sockets.values():
            each.sendall(request)
            sent += 1
        while answered < sent:
            for fd, _ in poll.poll():
                if not sockets[fd].recv(65_536).startswith(b"HTTP/1.1 200 "):
                    raise SystemExit("a wrong answer")
                answered += 1
                if sent < part:
                    sockets[fd].sendall(request)
                    sent += 1
    took = cpu(process) - began
    for each in sockets.values():
        each.close()
    return took / max(calls, AT_ONCE)


def h2(port: int, process: int, calls: int) -> float:
    wire = Wire(port)
    began = 0.0
    for part in calls // 5, calls:
        began, before, sent = cpu(process), wire.ended, 0
        while (answered := wire.ended - before) < part:
            # Keep as many requests open as the server's stream limit allows.
            more = min(STREAMS - (sent - answered), part - sent)
            if more:
                wire.socket.sendall(b"".join([wire.request(ECHO, "echo") for _ in range(more)]))
                sent += more
            wire.receive()
    took = cpu(process) - began
    wire.socket.close()
    return took / calls


def one_by_one(port: int, calls: int, where: str) -> tuple[float, float]:
    wire = Wire(port)
    stream = Wire(port) if where == "apart" else wire
    if where != "alone":
        stream.socket.sendall(
            stream.request(call("progress", {"n": 10**7}, progressToken="it"), "progress")
        )
    times: list[float] = []
    moved = perf_counter()
    for number in range(calls):
        request, more = wire.request(ECHO, "echo"), b""
        if where != "alone" and (room := int(RATE * (perf_counter() - moved))) > 16_384:
            moved = perf_counter()
            more = frame(WINDOW_UPDATE, 0, 1, room.to_bytes(4, "big"))
        began = perf_counter()
        if stream is not wire and more:
            stream.socket.sendall(more)
            more = b""
        wire.socket.sendall(more + request)
        while wire.ended <= number:
            wire.receive()
        times.append(1e6 * (perf_counter() - began))
        if stream is not wire and select.select([stream.socket], [], [], 0)[0]:
            stream.receive()
    if where != "alone" and not stream.read:
        raise SystemExit("there was no stream")
    wire.socket.close()
    stream.socket.close()
    times = times[calls // 5 :]
    return median(times), quantiles(times, n=100)[-1]


def main() -> None:
    options = argparse.ArgumentParser(description="HTTP/2 beside HTTP/1.1.")
    options.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    options.add_argument("--calls", type=int, default=5_000, help="calls in a turn (5,000)")
    chosen = options.parse_args()
    gc.disable()  # of the load, not of the server
    cores: set[int] = set()
    if hasattr(os, "sched_setaffinity"):
        own, *rest = sorted(os.sched_getaffinity(0), reverse=True)
        os.sched_setaffinity(0, {own})
        cores = set(rest) or {own}
    turns: dict[str, list[float]] = {}
    for _ in range(chosen.rounds):
        with serving(cores) as (port, process):
            turns.setdefault("h1_cpu", []).append(h1(port, process, chosen.calls))
            turns.setdefault("h2_cpu", []).append(h2(port, process, chosen.calls))
            for name in "alone", "beside", "apart":
                p50, p99 = one_by_one(port, chosen.calls, name)
                turns.setdefault(f"{name}_p50", []).append(p50)
                turns.setdefault(f"{name}_p99", []).append(p99)
    report = {
        measure: round(figure, 1)
        for measure, figures in turns.items()
        if (figure := median(figures))
    }
    if "h1_cpu" in report:
        report["cpu_ratio"] = round(report["h2_cpu"] / report["h1_cpu"], 2)
    for measure, figure in report.items():
        print(f"{measure:12} {figure:>10,}")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
