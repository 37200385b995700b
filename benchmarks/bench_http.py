"""Servers and clients over HTTP: ours, the official SDK's, and a server that only moves the bytes.

Measures of a server in each mode (`MODES`), over TCP on this machine:

- `calls`: `echo` of 100 bytes from 16 callers, each on a kept-alive connection of its own, and in a
  session of its own if the mode has sessions. Each sends its next request when it has its response.
  In calls a second;
- `p50`, `p99`: the time of one of those calls, from the write of the request to the end of its
  response, in microseconds;
- `varied`: the same with 61 lengths of the text, from 50 bytes up, in calls a second. In `calls`
  all requests of a connection have equal headers, which a server may cache; here `Content-Length`
  differs each time;
- `progress`: one call that reports 10,000 steps by SSE, in events a second;
- `..._cpu` (Linux): the processor time of the server's process for each of those calls or events,
  in microseconds. Other load hardly affects it, so it is the figure to trust on a busy machine.

Measures of sessions, in a server of their own:

- `session_kib` (Linux): the growth of the process for each open session, in KiB, with 10,000
  sessions;
- `few`, `many`: the time of a call, as `p50`, of ten callers while ten, or 10,000, sessions are
  open.

Measures of a client, with our server: calls of `echo` a second, one at a time (`sequential`) and 32
at a time (`concurrent`), and the processor time of the client's process for each.

1. The load costs little: it writes prepared bytes to a socket, and searches received bytes only for
   their end. It decodes and compares responses after the clock has stopped.
2. Every server takes a turn in each round, in a fresh process, after uncounted calls. Medians of
   the rounds are compared, so neither a busy moment nor a lucky process decides.
3. All turns last equally long, but for the stream of progress, which is one call.
4. The load has a core of its own if there are several; 16 callers keep the server busy.
5. `bare` sends to every request a response that our server gave in the same mode, byte for byte.

    python benchmarks/bench_http.py [--rounds 5] [--seconds 0.5] [--events 10000] [--sessions 10000]

The last line is one JSON object with all medians (`modern_calls_ours` and the like). `..._ratio` is
how many times better `ours` is than `sdk`, and `..._floor` the share of `bare` that it reaches.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from time import clock_gettime, perf_counter, sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE: Final = Path(__file__).parent
ENVIRONMENT: Final = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")])),
}
# In the order of the columns; `--port P --mode MODE` is appended. The handler of `echo` is a plain
# `def` in `ours`, and an `async def` in `ours_async` and in `sdk`, which supports no other.
SERVERS: Final = {
    "ours": [str(HERE / "server.py"), "http"],
    "ours_async": [str(HERE / "server.py"), "http", "--async"],
    "sdk": [str(HERE / "peers" / "sdk_lowlevel.py"), "http"],
    "sdk_mcpserver": [str(HERE / "peers" / "sdk_mcpserver.py"), "http"],
}
BARE: Final = [str(HERE / "peers" / "bare_h11.py"), "http"]
CLIENTS: Final = {"ours": str(HERE / "client.py"), "sdk": str(HERE / "peers" / "sdk_client.py")}
# The mode of our server for clients of each revision.
SERVED: Final = {"2025-11-25": "session-json", "2026-07-28": "modern"}

CONNECTIONS: Final = 16
FEW: Final = 10
# Request `id` sends `texts[id % len(texts)]`. Their number is prime: every caller sends all.
SAME: Final = ["x" * 100]
VARIED: Final = ["x" * size for size in range(50, 111)]
# Ids have equal lengths, and therefore the requests too.
FIRST_ID: Final = 1_000_000

META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: Final = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1.0.0"},
}
LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
SESSION: Final = re.compile(rb"\r\nmcp-session-id: *([^\r]+)\r\n", re.IGNORECASE)
LAST_CHUNK: Final = b"\r\n0\r\n\r\n"


class Mode(NamedTuple):
    """How a server is run: with sessions, in the modern revision, with event streams."""

    sessions: bool
    modern: bool
    streams: bool


MODES: Final = {
    "session-sse": Mode(sessions=True, modern=False, streams=True),
    "session-json": Mode(sessions=True, modern=False, streams=False),
    "stateless-json": Mode(sessions=False, modern=False, streams=False),
    "modern": Mode(sessions=False, modern=True, streams=True),
}
# The goals: how many times better than the SDK.
GOALS: Final = {
    ("session-sse", "calls"): 4.5,
    ("session-sse", "p99"): 5.0,
    ("session-json", "calls"): 2.7,
    ("session-sse", "progress"): 4.0,
    ("modern", "progress"): 4.0,
}
# For these a higher figure is better; all others are times or memory.
RATES: Final = ("calls", "varied", "progress", "sequential", "concurrent")


class Server:
    """A server process on a port of this machine. The end of its `with` block ends the process."""

    def __init__(self, argv: Sequence[str], cores: set[int]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        program, kind, *options = argv
        self._process = subprocess.Popen(
            [sys.executable, program, kind, "--port", str(self.port), *options], env=ENVIRONMENT
        )
        if cores:
            os.sched_setaffinity(self._process.pid, cores)

    def __enter__(self) -> Self:
        deadline = perf_counter() + 30
        while self._process.poll() is None and perf_counter() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                sleep(0.02)
            else:
                return self
        self.__exit__()
        raise SystemExit(f"{self._process.args!r} does not listen")

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def cpu(self) -> float:
        """Return the processor time of the process so far, in microseconds; 0 except on Linux."""
        if sys.platform != "linux":
            return 0.0
        return 1e6 * clock_gettime(
            ~self._process.pid << 3 | 2
        )  # as clock_getcpuclockid(3) makes it

    def rss(self) -> float:
        """Return the resident memory of the process in KiB; 0 except on Linux."""
        if sys.platform != "linux":
            return 0.0
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1024


class LoadConnection:
    """One kept-alive connection, and the headers of its requests."""

    def __init__(self, port: int, mode: Mode) -> None:
        self._port = port
        self.connect()
        self._modern = mode.modern
        self._head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: benchmark/1.0.0\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        ).encode()
        self._headers = b"Mcp-Protocol-Version: %b\r\n" % (
            b"2026-07-28" if mode.modern else b"2025-11-25"
        )
        self._received = bytearray()
        self.started = 0.0

    def connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self._port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def open_session(self) -> None:
        """Open a session for the following requests."""
        answer = self.ask(self._post({"id": 1, "method": "initialize", "params": HELLO}, b""))
        found = SESSION.search(answer)
        if not found:
            raise SystemExit(f"no session: {answer!r:.300}")
        headers = b"Mcp-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %b\r\n"
        self._headers = headers % found[1]
        answer = self.ask(self._post({"method": "notifications/initialized"}, self._headers))
        if not answer.startswith(b"HTTP/1.1 202 "):
            raise SystemExit(f"not accepted: {answer!r:.300}")

    def template(self, tool: str, arguments: dict[str, Any], *, token: str | None = None) -> bytes:
        """Return a request without its id: use `template % id`, with ids of seven digits."""
        meta = {**(META if self._modern else {}), **({"progressToken": token} if token else {})}
        params = {**({"_meta": meta} if meta else {}), "name": tool, "arguments": arguments}
        headers = self._headers
        if self._modern:
            headers += b"Mcp-Method: tools/call\r\nMcp-Name: %b\r\n" % tool.encode()
        request = self._post({"id": FIRST_ID, "method": "tools/call", "params": params}, headers)
        return request.replace(b'"id":%d' % FIRST_ID, b'"id":%d')

    def ask(self, request: bytes) -> bytes:
        """Send a request and return the complete response."""
        self.socket.setblocking(True)
        self.send(request)
        while not (answer := self.read()):
            pass
        return answer

    def send(self, request: bytes) -> None:
        self.started = perf_counter()
        if self.socket.send(request) != len(request):
            raise SystemExit("a request does not fit into the buffers of a socket")

    def read(self) -> bytes:
        """Return the response if it is complete, else empty bytes. One request is open at most."""
        data = self.socket.recv(262_144)
        if not data:
            raise SystemExit(
                f"the server closed the connection after {bytes(self._received)!r:.300}"
            )
        if self._received or not whole(data):
            self._received += data
            if not whole(self._received):
                return b""
            data = bytes(self._received)
            self._received.clear()
        return data

    def _post(self, message: dict[str, Any], headers: bytes) -> bytes:
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (self._head, headers, len(body), body)


def whole(data: bytes | bytearray) -> bool:
    """Return True if this is a complete response, by its length or its last chunk."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    if data.endswith(LAST_CHUNK):
        return True
    length = LENGTH.search(data, 0, end + 2)
    return length is not None and len(data) >= end + 4 + int(length[1])


def messages(answer: bytes) -> list[Any]:
    """Return all JSON-RPC messages of a response: JSON or SSE, chunked or not."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(f"a wrong answer: {answer!r:.500}")
    if not LENGTH.search(head + b"\r\n"):
        chunks, at = [], 0
        while size := int(body[at : (end := body.index(b"\r\n", at))], 16):
            chunks.append(body[end + 2 : end + 2 + size])
            at = end + 2 + size + 2
        body = b"".join(chunks)
    if b"text/event-stream" in head.lower():
        lines = [line[5:] for line in body.splitlines() if line.startswith(b"data:")]
    else:
        lines = [body]
    return [msgspec.json.decode(line) for line in lines if line.strip()]


def check(answers: list[tuple[int, bytes]], texts: list[str] = SAME) -> None:
    """Check that every request got a response with its text."""
    for id, answer in answers:
        *_, last = messages(answer)
        content = last.get("result", {}).get("content", ())
        if last.get("id") != id or [part["text"] for part in content] != [texts[id % len(texts)]]:
            raise SystemExit(f"a wrong answer to {id}: {answer!r:.500}")


class Calls(NamedTuple):
    """The result of a time under load."""

    took: float
    times: list[float]
    answers: list[tuple[int, bytes]]


def load(
    connections: list[LoadConnection], seconds: float, ids: Iterator[int], texts: list[str] = SAME
) -> Calls:
    """Let all `connections` call for `seconds`, then wait for their last responses."""
    poll = select.poll()
    lines: dict[int, tuple[LoadConnection, list[bytes]]] = {}
    pending: dict[int, int] = {}
    times: list[float] = []
    answers: list[tuple[int, bytes]] = []
    kinds = len(texts)
    for connection in connections:
        connection.socket.setblocking(False)
        poll.register(connection.socket, select.POLLIN)
        lines[connection.socket.fileno()] = (
            connection,
            [connection.template("echo", {"text": text}) for text in texts],
        )
    began = perf_counter()
    deadline = began + seconds
    for fd, (connection, templates) in lines.items():
        pending[fd] = id = next(ids)
        connection.send(templates[id % kinds] % id)
    while pending:
        for fd, _ in poll.poll():
            connection, templates = lines[fd]
            if not (answer := connection.read()):
                continue
            now = perf_counter()
            times.append(1e6 * (now - connection.started))
            answers.append((pending.pop(fd), answer))
            if now < deadline:
                pending[fd] = id = next(ids)
                connection.send(templates[id % kinds] % id)
    return Calls(perf_counter() - began, times, answers)


def calls(
    server: Server, connections: list[LoadConnection], seconds: float, ids: Iterator[int]
) -> tuple[dict[str, float], Calls]:
    """Measure calls of one length, after uncounted ones."""
    load(connections, seconds / 4, ids)
    before = server.cpu()
    made = load(connections, seconds, ids)
    n = len(made.times)
    cpu = (server.cpu() - before) / n
    p99 = quantiles(made.times, n=100)[-1]
    return {"calls": n / made.took, "calls_cpu": cpu, "p50": median(made.times), "p99": p99}, made


def varied(
    server: Server, connections: list[LoadConnection], seconds: float, ids: Iterator[int]
) -> tuple[dict[str, float], Calls]:
    """Measure calls of many lengths."""
    before = server.cpu()
    made = load(connections, seconds, ids, VARIED)
    n = len(made.times)
    return {"varied": n / made.took, "varied_cpu": (server.cpu() - before) / n}, made


def progress(server: Server, connection: LoadConnection, events: int, id: int) -> dict[str, float]:
    """Measure one call that reports progress."""
    request = connection.template("progress", {"n": events}, token="it") % id
    before, start = server.cpu(), perf_counter()
    answer = connection.ask(request)
    took, cpu = perf_counter() - start, server.cpu() - before
    *notifications, last = messages(answer)
    steps = [message["params"]["progress"] for message in notifications]
    if steps != list(range(1, events + 1)) or last["id"] != id:
        raise SystemExit(f"{len(steps)} events of {events}, and then {last!r}")
    return {"progress": events / took, "progress_cpu": cpu / events}


def turn(
    argv: list[str], cores: set[int], mode: str, seconds: float, events: int
) -> tuple[dict[str, float], bytes]:
    """Measure one server in one mode, in a fresh process. Return one of its responses too."""
    ids = iter(range(FIRST_ID, 10 * FIRST_ID))
    with Server([*argv, "--mode", mode], cores) as server:
        connections = [LoadConnection(server.port, MODES[mode]) for _ in range(CONNECTIONS)]
        for connection in connections:
            if MODES[mode].sessions:
                connection.open_session()
        figures, made = calls(server, connections, seconds, ids)
        of_lengths, others = varied(server, connections, seconds, ids)
        figures |= of_lengths
        if MODES[mode].streams:
            figures |= progress(server, connections[0], events, next(ids))
        for connection in connections:
            connection.socket.close()
    check(made.answers)
    check(others.answers, VARIED)
    return figures, made.answers[-1][1]


def bare_turn(cores: set[int], mode: str, seconds: float, answer: bytes) -> dict[str, float]:
    """Measure the server that sends the same response to every request."""
    ids = iter(range(FIRST_ID, 10 * FIRST_ID))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer"
        file.write_bytes(answer)
        with Server([*BARE, "--answer", str(file)], cores) as server:
            connections = [LoadConnection(server.port, MODES[mode]) for _ in range(CONNECTIONS)]
            figures, made = calls(server, connections, seconds, ids)
            figures |= varied(server, connections, seconds, ids)[0]
            for connection in connections:
                connection.socket.close()
    if {data for _, data in made.answers} != {answer}:
        raise SystemExit(f"{made.answers[0][1]!r} instead of {answer!r}")
    return figures


def sessions_turn(
    argv: list[str], cores: set[int], seconds: float, sessions: int
) -> dict[str, float]:
    """Measure the cost of idle sessions: memory, and the time of calls in other sessions."""
    ids = iter(range(FIRST_ID, 10 * FIRST_ID))
    mode = "session-json"
    with Server([*argv, "--mode", mode], cores) as server:
        connections = [LoadConnection(server.port, MODES[mode]) for _ in range(FEW)]
        for connection in connections:
            connection.open_session()
        few, made = calls(server, connections, seconds, ids)
        check(made.answers)
        before = server.rss()
        opener = LoadConnection(server.port, MODES[mode])
        for _ in range(sessions - FEW):
            opener.open_session()
        grown = server.rss() - before
        for connection in connections:
            # The server may have closed an idle connection; its session is still open.
            connection.socket.close()
            connection.connect()
        many, made = calls(server, connections, seconds, ids)
        check(made.answers)
        for connection in [*connections, opener]:
            connection.socket.close()
    return {
        "session_kib": grown / (sessions - FEW),
        "few": few["p50"],
        "few_cpu": few["calls_cpu"],
        "many": many["p50"],
        "many_cpu": many["calls_cpu"],
    }


def client_turn(script: str, version: str, cores: set[int], seconds: float) -> dict[str, float]:
    """Measure a client, which runs on the core of the load."""
    with Server([*SERVERS["ours"], "--mode", SERVED[version]], cores) as server:
        argv = [
            sys.executable,
            script,
            str(seconds),
            f"http://127.0.0.1:{server.port}/mcp",
            version,
        ]
        output = subprocess.run(
            argv, env=ENVIRONMENT, check=True, capture_output=True, text=True
        ).stdout
    measures = ("sequential", "sequential_cpu", "concurrent", "concurrent_cpu")
    return dict(zip(measures, map(float, output.split()), strict=True))


def ratio(measure: str, ours: float, other: float) -> float:
    """Return how many times better `ours` is."""
    return ours / other if measure in RATES else other / ours


def table(
    title: str, goals: dict[str, float], columns: dict[str, dict[str, float]]
) -> dict[str, float]:
    """Print medians as a table and return the ratios. `columns` has the figures of each program."""
    ratios: dict[str, float] = {}
    print(f"\n{title}\n")
    print("| | " + " | ".join([*columns, "ours / sdk", "ours / bare", "goal"]) + " |")
    print("|---|" + "--:|" * (len(columns) + 2) + "---|")
    for measure, ours in columns["ours"].items():
        digits = 1 if measure.endswith(("_cpu", "_kib")) else 0
        cells = [
            f"{figures[measure]:,.{digits}f}" if measure in figures else ""
            for figures in columns.values()
        ]
        for key, other in (("ratio", "sdk"), ("floor", "bare")):
            if measure in columns.get(other, ()):
                ratios[f"{measure}_{key}"] = times = ratio(measure, ours, columns[other][measure])
                cells.append(f"{times:.2f}")
            else:
                cells.append("")
        goal, reached = goals.get(measure), ratios.get(f"{measure}_ratio", 0.0)
        cells.append(
            "" if goal is None else f"{goal:g}, {'reached' if reached >= goal else 'missed'}"
        )
        print(f"| {measure} | " + " | ".join(cells) + " |")
    return ratios


def take_core() -> set[int]:
    """Pin this process to one core. Return the cores for the measured programs, if supported."""
    if not hasattr(os, "sched_setaffinity"):
        return set()
    own, *rest = sorted(os.sched_getaffinity(0), reverse=True)
    os.sched_setaffinity(0, {own})
    return set(rest) or {own}


def medians(turns: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each measure, without those too small to be measured."""
    found = {measure: median(turn[measure] for turn in turns) for measure in turns[0]}
    return {measure: figure for measure, figure in found.items() if figure > 0}


def main() -> None:
    options = argparse.ArgumentParser(
        description="Servers and clients over HTTP, beside the official SDK's."
    )
    options.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    options.add_argument(
        "--seconds", type=float, default=0.5, help="length of a measure in a turn (0.5)"
    )
    options.add_argument(
        "--events", type=int, default=10_000, help="progress events in a call (10,000)"
    )
    options.add_argument(
        "--sessions", type=int, default=10_000, help="open sessions; one turn (10,000)"
    )
    chosen = options.parse_args()
    gc.disable()  # of the load, not of the measured programs
    cores = take_core()
    turns: dict[str, dict[str, list[dict[str, float]]]] = {
        mode: {name: [] for name in [*SERVERS, "bare"]} for mode in MODES
    }
    for _ in range(chosen.rounds):
        for mode, by_name in turns.items():
            bytes_of_ours = b""
            for name, argv in SERVERS.items():
                figures, answer = turn(argv, cores, mode, chosen.seconds, chosen.events)
                by_name[name].append(figures)
                bytes_of_ours = bytes_of_ours or answer
            by_name["bare"].append(bare_turn(cores, mode, chosen.seconds, bytes_of_ours))
    turns["sessions"] = {
        name: [sessions_turn(SERVERS[name], cores, chosen.seconds, chosen.sessions)]
        for name in ("ours", "sdk")
    }
    for version, mode in SERVED.items():
        turns[f"client-{mode}"] = {name: [] for name in CLIENTS}
        for _ in range(chosen.rounds):
            for name, script in CLIENTS.items():
                turns[f"client-{mode}"][name].append(
                    client_turn(script, version, cores, chosen.seconds)
                )
    report: dict[str, float] = {}
    for part, by_name in turns.items():
        columns = {name: medians(of_one) for name, of_one in by_name.items()}
        goals = {measure: goal for (mode, measure), goal in GOALS.items() if mode == part}
        prefix = part.replace("-", "_")
        for name, column in columns.items():
            report |= {
                f"{prefix}_{measure}_{name}": round(figure, 2) for measure, figure in column.items()
            }
        for measure, times in table(part, goals, columns).items():
            report[f"{prefix}_{measure}"] = round(times, 2)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
