"""The load of `mcp-trio bench` beside wrk, a load generator in C, and beside bare loops.

All of them send the same call to a server over HTTP that is slower than they are: ours, or the
low-level one of the official SDK. Each is a process of its own on one core, and the server has
another core. They take turns, and medians of the rounds are compared.

- `wrk`, with one thread;
- `engine`: the load of `mcp-trio bench`, which checks each response;
- `trio`, `asyncio`, `selectors`, `blocking`: loops in Python with one connection. Each only writes
  prepared bytes and reads until it has as many as a response has. `trio` uses a `SocketStream`,
  `asyncio` a protocol, `selectors` a socket and epoll, `blocking` a socket only.

So `blocking` shows what the interpreter takes, and the difference to `selectors` what waiting by
epoll takes. What `trio` and `asyncio` take beyond that is their schedulers' part.

Figures are calls a second, latencies, and the processor time of each call, in microseconds.
`..._ratio` is a rate divided by wrk's.

    python benchmarks/bench_wrk.py [--rounds 5] [--seconds 2] [--targets ours mcp] [--only WAY ...]

It needs wrk (`apt install wrk`) unless `--only` leaves it out. The last line is one JSON object
with all medians.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.targets import ENVIRONMENT, TARGETS, Programs
from mcp_trio.oracle.bench._requests import Mix, PreparedCall
from mcp_trio.oracle.bench._turn import Pace
from mcp_trio.oracle.bench.engine._load import Address, open_load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Figures = dict[str, float]

REVISION: Final = "2025-11-25"
PARAMS: Final = {"name": "echo", "arguments": {"text": "x" * 100}}
BODY: Final = json.dumps(
    {"jsonrpc": "2.0", "id": 1_000_000_001, "method": "tools/call", "params": PARAMS},
    separators=(",", ":"),
)
HEADERS: Final = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": REVISION,
}
READ: Final = 65_536
CALLERS: Final = (1, 16)
UNITS: Final = {"us": 1.0, "ms": 1e3, "s": 1e6}  # wrk's, in microseconds
_START: Final = 30.0  # seconds for a server


# -- The bare loops, each in a process of its own --------------------------------------------------


class Loop:
    """The bytes of a call, and the latencies of the calls so far.

    Args:
        port: the server's.
        seconds: how long calls start.
    """

    def __init__(self, port: int, seconds: float) -> None:
        self.port = port
        lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += [f"{name}: {value}" for name, value in HEADERS.items()]
        lines += [f"Content-Length: {len(BODY)}", "", BODY]
        self.request = "\r\n".join(lines).encode()
        self.latencies: list[float] = []
        with socket.create_connection(("127.0.0.1", port)) as once:
            self.size = self._call_once(once)
        self._cpu, self._began = time.process_time(), time.perf_counter()
        self.deadline = self._began + seconds

    def _call_once(self, connection: socket.socket) -> int:
        """Return how many bytes a response has."""
        connection.sendall(self.request)
        data = b""
        while True:
            received = connection.recv(READ)
            data += received
            head, end, body = data.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            if not received or not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"the server responds with {data[:200]!r}")
            if end and length and len(body) == int(length[1]):
                return len(data)

    def figures(self) -> Figures:
        """Return what the calls have shown."""
        seconds = time.perf_counter() - self._began
        cpu = time.process_time() - self._cpu
        times = sorted(1e6 * latency for latency in self.latencies)
        return {
            "rate": len(times) / seconds,
            "p50": times[len(times) // 2],
            "p99": times[len(times) * 99 // 100],
            "cpu": 1e6 * cpu / len(times),
        }


def call_blocking(loop: Loop) -> None:
    now = time.perf_counter
    with socket.create_connection(("127.0.0.1", loop.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while (start := now()) < loop.deadline:
            connection.sendall(loop.request)
            missing = loop.size
            while missing > 0:
                missing -= len(connection.recv(READ))
            loop.latencies.append(now() - start)


def call_selectors(loop: Loop) -> None:
    now = time.perf_counter
    with (
        socket.create_connection(("127.0.0.1", loop.port)) as connection,
        selectors.DefaultSelector() as selector,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
        while (start := now()) < loop.deadline:
            connection.send(loop.request)
            missing = loop.size
            while missing > 0:
                selector.select()
                missing -= len(connection.recv(READ))
            loop.latencies.append(now() - start)


def call_asyncio(loop: Loop) -> None:
    asyncio.run(_call_asyncio(loop))


async def _call_asyncio(loop: Loop) -> None:
    done = asyncio.get_running_loop().create_future()
    now = time.perf_counter

    class Caller(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            self.call()

        def call(self) -> None:
            self.start, self.missing = now(), loop.size
            if self.start < loop.deadline:
                self.transport.write(loop.request)
            else:
                self.transport.close()
                done.set_result(None)

        def data_received(self, data: bytes) -> None:
            self.missing -= len(data)
            if self.missing <= 0:
                loop.latencies.append(now() - self.start)
                self.call()

    await asyncio.get_running_loop().create_connection(Caller, "127.0.0.1", loop.port)
    await done


def call_trio(loop: Loop) -> None:
    trio.run(_call_trio, loop)


async def _call_trio(loop: Loop) -> None:
    now = time.perf_counter
    async with await trio.open_tcp_stream("127.0.0.1", loop.port) as stream:
        while (start := now()) < loop.deadline:
            await stream.send_all(loop.request)
            missing = loop.size
            while missing > 0:
                missing -= len(await stream.receive_some(READ))
            loop.latencies.append(now() - start)


LOOPS: Final[dict[str, Callable[[Loop], None]]] = {
    "trio": call_trio,
    "asyncio": call_asyncio,
    "selectors": call_selectors,
    "blocking": call_blocking,
}
WAYS: Final = ("wrk", "engine", *LOOPS)


async def call_engine(port: int, seconds: float, callers: int) -> Figures:
    work = Mix([PreparedCall("tools/call", PARAMS, "echo")])
    async with open_load(Address(f"http://127.0.0.1:{port}/mcp"), era=REVISION) as load:
        turn = await load.turn(work, Pace(None, callers), seconds)
    if turn.failed:
        raise SystemExit(f"calls failed: {dict(turn.errors)}, {turn.timeouts} timeouts")
    return {
        "rate": turn.rate,
        "p50": 1e6 * turn.histogram.percentile(50),
        "p99": 1e6 * turn.histogram.percentile(99),
        "cpu": 1e6 * turn.load_cpu / turn.answered,
    }


def play(way: str, port: int, seconds: float, callers: int) -> Figures:
    """Call in one way, in this process."""
    if way == "engine":
        return trio.run(call_engine, port, seconds, callers)
    loop = Loop(port, seconds)
    LOOPS[way](loop)
    return loop.figures()


# -- wrk -------------------------------------------------------------------------------------------


def run_wrk(port: int, seconds: float, callers: int) -> Figures:
    lines = ['wrk.method = "POST"', f"wrk.body = [==[{BODY}]==]"]
    lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in HEADERS.items()]
    before = children_cpu()
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write("\n".join(lines))
        script.flush()
        options = ["-t1", f"-c{callers}", f"-d{max(round(seconds), 1)}s", "--latency"]
        argv = ["wrk", *options, "-s", script.name, f"http://127.0.0.1:{port}/mcp"]
        shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in shown:
        raise SystemExit(shown)
    made = re.search(r"(\d+) requests in", shown)
    rate = re.search(r"Requests/sec: *([\d.]+)", shown)
    times = dict(re.findall(r"(\d+)% +([\d.]+[mu]?s)", shown))
    assert made is not None
    assert rate is not None
    return {
        "rate": float(rate[1]),
        "p50": microseconds(times["50"]),
        "p99": microseconds(times["99"]),
        "cpu": 1e6 * (children_cpu() - before) / int(made[1]),
    }


def microseconds(text: str) -> float:
    """Return a time that wrk shows, as 1.65ms."""
    number = text.rstrip("mus")
    return float(number) * UNITS[text.removeprefix(number)]


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# -- The rounds ------------------------------------------------------------------------------------


@contextmanager
def on_core(number: int) -> Iterator[None]:
    """Give what is started in the block a core: 0 for the loads, 1 for the servers."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(cores)[number % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def serving(name: str) -> Iterator[int]:
    """Start a server, and yield its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    options = ["http", "--port", str(port), "--mode", "stateless-json"]
    with on_core(1):
        process = subprocess.Popen(Programs(None).server(name, *options), env=ENVIRONMENT)
    deadline = time.monotonic() + _START
    with process:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise SystemExit(f"{name} doesn't listen") from None
                    time.sleep(0.02)
            yield port
        finally:
            process.kill()


def take(way: str, port: int, seconds: float, callers: int) -> Figures:
    """Call in one way, in a process of its own."""
    with on_core(0):
        if way == "wrk":
            return run_wrk(port, seconds, callers)
        argv = [sys.executable, __file__, "--play", way, "--port", str(port)]
        argv += ["--seconds", str(seconds), "--callers", str(callers)]
        found: Figures = json.loads(subprocess.check_output(argv, env=ENVIRONMENT))
        return found


def measure(targets: list[str], ways: list[str], rounds: int, seconds: float) -> Figures:
    """Return the medians of all rounds, and print them."""
    found: Figures = {}
    print("| server | callers | by | calls/s | p50 us | p99 us | cpu us | rate to wrk's |")
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for name in targets:
        with serving(name) as port:
            for callers in CALLERS:
                taking = [way for way in ways if callers == 1 or way not in LOOPS]
                taken: dict[str, list[Figures]] = {way: [] for way in taking}
                for number in range(rounds + 1):  # the first isn't counted
                    for way in taking:
                        figures = take(way, port, seconds, callers)
                        if number:
                            taken[way].append(figures)
                for way, rows in taken.items():
                    middle = {key: median(row[key] for row in rows) for key in rows[0]}
                    text = " | ".join(f"{value:,.0f}" for value in middle.values())
                    if "wrk" in taken:
                        # The two of a round have met the same machine.
                        pairs = zip(rows, taken["wrk"], strict=True)
                        middle["ratio"] = median(a["rate"] / b["rate"] for a, b in pairs)
                    ratio = f"{middle.get('ratio', 0.0):.2f}" if "ratio" in middle else ""
                    print(f"| {TARGETS[name].title} | {callers} | {way} | {text} | {ratio} |")
                    places = 3 if "ratio" in middle else 1
                    found |= {
                        f"{name}_{callers}_{way}_{key}": round(value, places)
                        for key, value in middle.items()
                    }
    return found


def main() -> None:
    options = argparse.ArgumentParser(description="The load beside wrk and bare loops.")
    options.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    options.add_argument("--seconds", type=float, default=2.0, help="length of a turn (2)")
    options.add_argument("--targets", nargs="+", choices=TARGETS, default=["ours", "mcp"])
    options.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS))
    options.add_argument("--play", choices=WAYS[1:], help=argparse.SUPPRESS)
    options.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options.add_argument("--callers", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.play:
        print(json.dumps(play(chosen.play, chosen.port, chosen.seconds, chosen.callers)))
        return
    if "wrk" in chosen.only and shutil.which("wrk") is None:
        options.error("wrk isn't on the PATH; install it, or leave it out by --only")
    print(json.dumps(measure(chosen.targets, chosen.only, chosen.rounds, chosen.seconds)))


if __name__ == "__main__":
    main()
