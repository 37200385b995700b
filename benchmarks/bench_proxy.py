"""The time that `mcp-trio proxy` adds to a call, in microseconds.

One client calls `echo` of `server.py`, one call at a time, directly and through the proxy:

- `direct`: the client and the server;
- `proxy`: through the proxy, which only passes bytes;
- `record`: with `--record`;
- `check`: with `--record` and `--check`.

The client writes bytes that were made before, over pipes or over one HTTP/1.1 connection, and reads
up to the end of the response, so that its own time is small. The four take turns in short rounds,
all processes running; the figures are the medians of all calls, p50 and p99, and `added`, the
difference of the medians from `direct`. The revision is 2026-07-28.

    python benchmarks/bench_proxy.py [--rounds 20] [--calls 200]

The last line is one JSON object with all figures.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
SERVER: Final = (sys.executable, str(HERE / "server.py"))
PROXY: Final = (sys.executable, "-m", "mcp_trio", "proxy")
GOAL: Final = 300.0  # microseconds at the median

_MESSAGE: Final = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            },
            "name": "echo",
            "arguments": {"text": "x" * 60},
        },
    }
).encode()


class Stdio:
    """A client on the pipes of a process."""

    def __init__(self, command: list[str], opened: ExitStack) -> None:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0, cwd=ROOT
        )
        opened.callback(_end, process)
        assert process.stdin is not None
        assert process.stdout is not None
        self._write = process.stdin.fileno()
        self._read = process.stdout.fileno()

    def call(self) -> None:
        """Send a call, and read its response."""
        os.write(self._write, _MESSAGE + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            more = os.read(self._read, 65_536)
            if not more:
                raise SystemExit("the server has ended")
            data += more
        assert b'"result"' in data, data


class Http:
    """A client on one HTTP/1.1 connection."""

    def __init__(self, url: str, opened: ExitStack) -> None:
        _, _, authority, path = url.split("/", 3)
        host, _, port = authority.partition(":")
        self._socket = opened.enter_context(socket.create_connection((host, int(port))))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = (
            f"POST /{path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
            "Mcp-Method: tools/call\r\nMcp-Name: echo\r\n"
            f"Content-Length: {len(_MESSAGE)}\r\n\r\n"
        ).encode() + _MESSAGE

    def call(self) -> None:
        """Send a call, and read its response."""
        self._socket.sendall(self._request)
        data = b""
        while not data.endswith(b"}"):  # the JSON object of the body
            more = self._socket.recv(65_536)
            if not more:
                raise SystemExit("the server has disconnected")
            data += more
        assert data.startswith(b"HTTP/1.1 200"), data


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()


def _options(place: str, name: str) -> dict[str, list[str]]:
    files = [str(Path(place) / f"{name}-{way}.mcp.jsonl") for way in ("record", "check")]
    return {
        "proxy": [],
        "record": ["--record", files[0]],
        "check": ["--record", files[1], "--check"],
    }


def stdio_clients(place: str, opened: ExitStack) -> dict[str, Callable[[], None]]:
    """Start a server for each way, and return what makes a call."""
    server = [*SERVER, "stdio"]
    found = {"direct": Stdio(server, opened).call}
    for name, options in _options(place, "stdio").items():
        found[name] = Stdio([*PROXY, *options, "--", *server], opened).call
    return found


def http_clients(place: str, opened: ExitStack) -> dict[str, Callable[[], None]]:
    """Start one server and a proxy for each way, and return what makes a call."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*SERVER, "http", "--port", str(port), "--mode", "modern"]
    opened.callback(_end, subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL))
    deadline = monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except ConnectionRefusedError:
            if monotonic() > deadline:
                raise
            sleep(0.02)
    target = f"http://127.0.0.1:{port}/mcp"
    found = {"direct": Http(target, opened).call}
    for name, options in _options(place, "http").items():
        proxy = [*PROXY, *options, "--http", "0", target]
        log = opened.enter_context((Path(place) / f"{name}.txt").open("w+b"))
        process = subprocess.Popen(proxy, cwd=ROOT, stderr=log)
        opened.callback(_end, process)
        greeting = b""
        while not greeting.endswith(b"\n"):
            if monotonic() > deadline + 20:
                raise SystemExit(f"the proxy does not start: {greeting!r}")
            sleep(0.02)
            log.seek(0)
            greeting = log.readline()
        found[name] = Http(greeting.split()[1].decode(), opened).call
    return found


def measure(
    clients: dict[str, Callable[[], None]], rounds: int, calls: int
) -> dict[str, list[float]]:
    """Return the microseconds of each call, by way. The first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in clients}
    for number in range(rounds + 1):
        for name, call in clients.items():
            for _ in range(calls):
                before = perf_counter()
                call()
                if number:
                    times[name].append((perf_counter() - before) * 1e6)
    return times


def main(rounds: int, calls: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    starts = {"stdio": stdio_clients, "http": http_clients}
    for carrier, start in starts.items():
        with tempfile.TemporaryDirectory() as place, ExitStack() as opened:
            times = measure(start(place, opened), rounds, calls)
        for name, values in times.items():
            figures[f"{carrier}_{name}_p50"] = median(values)
            figures[f"{carrier}_{name}_p99"] = quantiles(values, n=100)[98]
            if name != "direct":
                figures[f"{carrier}_{name}_added"] = median(values) - median(times["direct"])
    return {name: round(value, 1) for name, value in figures.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What the proxy adds to a call.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=200, help="in each round")
    found = parser.parse_args()
    result = main(found.rounds, found.calls)
    for figure, value in result.items():
        print(f"{figure:24} {value:9.1f} us")
    print(f"the goal is {GOAL:g} us added at the median over stdio")
    print(json.dumps(result))
