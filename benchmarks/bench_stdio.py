"""Servers and clients over real pipes: ours and the official SDK's.

Measures of a server, over stdin and stdout of its process:

- `pipelined`: `echo` of 100 bytes with 64 open requests at any time, in calls a second;
- `p50`, `p99`: the same call sequentially, from the write of a request to the end of its response,
  in microseconds;
- `ten_kb`: `echo` of 10,000 bytes, 64 open requests; `one_mb`: of 1,000,000 bytes, 8 open requests;
  in calls a second;
- `progress`: one call that reports 10,000 steps, in events a second;
- `..._cpu` (Linux): the processor time of the server's process for each of those calls or events,
  in microseconds. Other load hardly affects it, so it is the figure to trust on a busy machine.

Measures of a client: calls of `echo` a second, one at a time (`sequential`) and 32 at a time
(`concurrent`), with `peers/floor.py` as the server, which is faster than any of the clients.

1. The load costs little: it writes prepared bytes to a pipe, and only counts the lines of what it
   reads. It decodes and compares responses after the clock has stopped.
2. Every server takes a turn in each round, in a fresh process, after uncounted calls. Medians of
   the rounds are compared, so neither a busy moment nor a lucky process decides. All turns last
   equally long, but for the stream of progress, which is one call.
3. The load and the measured program share one core. An idle kernel puts two processes that wake
   each other onto one core anyway. Where it does not, a call's time is mostly the time to wake a
   sleeping core, and chance decides which program has it. With `--apart` the load has one core and
   the programs have the others; `bare` then shows the cost of waking.

Both eras are measured: `legacy` is revision 2025-11-25 after a handshake, the headline, because
every peer speaks it and the goals are stated for it; `modern` is 2026-07-28, in which each request
names its revision and client.

    python benchmarks/bench_stdio.py [--rounds 5] [--seconds 0.4] [--events 10000] [--apart]

The last line is one JSON object with all medians (`legacy_pipelined_ours` and the like).
`..._ratio` is how many times better `ours` is than `sdk`: more calls, or less time.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles
from time import clock_gettime, perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent
ENVIRONMENT: Final = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")])),
}
BARE: Final = [str(HERE / "peers" / "floor.py"), "blocking", "stdio"]
# In the order of the columns. The handler of `echo` is a plain `def` in `ours`, which runs in the
# task that read the request, and an `async def` in `ours_async` and in `sdk`, which needs one.
SERVERS: Final = {
    "ours": [str(HERE / "server.py"), "stdio"],
    "ours_async": [str(HERE / "server.py"), "stdio", "--async"],
    "sdk": [str(HERE / "peers" / "sdk_lowlevel.py"), "stdio"],
    "sdk_mcpserver": [str(HERE / "peers" / "sdk_mcpserver.py"), "stdio"],
    "bare": BARE,
}
CLIENTS: Final = {"ours": str(HERE / "client.py"), "sdk": str(HERE / "peers" / "sdk_client.py")}

HANDSHAKE: Final = (
    b'{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"benchmark","version":"1.0.0"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
META: Final = (
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"benchmark","version":"1.0.0"},'
    b'"io.modelcontextprotocol/clientCapabilities":{}'
)


class Era(NamedTuple):
    """The requests of a revision: the bytes of the handshake, and the members of each `_meta`."""

    opening: bytes
    meta: bytes


ERAS: Final = {"legacy": Era(HANDSHAKE, b""), "modern": Era(b"", META)}


class Load(NamedTuple):
    """Calls of `echo` with `size` bytes, of which at most `window` are open."""

    size: int
    window: int


LOADS: Final = {
    "pipelined": Load(100, 64),
    "ten_kb": Load(10_000, 64),
    "one_mb": Load(1_000_000, 8),
}
_MAX_BYTES: Final = 64_000_000  # bytes of requests in one turn


class Goal(NamedTuple):
    """How many times better than the SDK: the goal, and a stretch goal."""

    wanted: float
    stretch: float


GOALS: Final = {
    "pipelined": Goal(15, 20),
    "p50": Goal(3, 3.5),
    "one_mb": Goal(1, 1.3),
    "progress": Goal(12, 20),
    "sequential": Goal(1.7, 2),
    "concurrent": Goal(10, 15),
}
# For these a higher figure is worse, as for processor times.
TIMES: Final = ("p50", "p99")


class Server:
    """A server process on `cores`, and its pipes. The end of its `with` block ends the process."""

    # Received bytes stay here until the clock has stopped. New memory costs more than the reads.
    _buffer = bytearray(2 * _MAX_BYTES)

    def __init__(self, argv: list[str], cores: set[int]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *argv],
            env=ENVIRONMENT,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if cores:
            os.sched_setaffinity(self._process.pid, cores)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            if self._process.wait() != 0:
                raise SystemExit(f"{self._process.args!r} ended with {self._process.returncode}")

    def cpu(self) -> float:
        """Return the processor time of the process so far, in microseconds; 0 except on Linux."""
        if sys.platform != "linux":
            return 0.0
        return 1e6 * clock_gettime(
            ~self._process.pid << 3 | 2
        )  # as clock_getcpuclockid(3) makes it

    def ask(self, data: bytes, lines: int = 1) -> bytes:
        """Send `data`, which fits into a pipe, and read `lines` lines."""
        os.set_blocking(self._stdin, True)
        os.set_blocking(self._stdout, True)
        os.write(self._stdin, data)
        end = 0
        while lines > 0:
            start, end = end, self._read(end)
            lines -= self._lines(start, end)
        return bytes(memoryview(self._buffer)[:end])

    def stream(self, requests: list[bytes], window: int) -> tuple[float, bytes]:
        """Send all `requests`, at most `window` of them open at any time, and read as many lines.

        Return the seconds that it took, and the received bytes.
        """
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        data = memoryview(b"".join(requests))
        ends = [0, *accumulate(map(len, requests))]
        total = len(requests)
        answered = sent = end = 0
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        began = perf_counter()
        while answered < total:
            allowed = ends[min(answered + window, total)]
            if sent < allowed:
                try:
                    sent += os.write(self._stdin, data[sent:allowed])
                except BlockingIOError:
                    pass
            poll.register(self._stdin, select.POLLOUT if sent < allowed else 0)
            poll.poll()
            try:
                start, end = end, self._read(end)
            except BlockingIOError:
                continue
            answered += self._lines(start, end)
        return perf_counter() - began, bytes(memoryview(self._buffer)[:end])

    def _read(self, start: int) -> int:
        """Read into the buffer at `start`. Return the end of the data."""
        n = os.readv(self._stdout, [memoryview(self._buffer)[start : start + 65_536]])
        if not n:
            raise SystemExit(
                f"{self._process.args!r} ended, or sent more than fits into the buffer"
            )
        return start + n

    def _lines(self, start: int, end: int) -> int:
        # `count` is slow on data without a newline, as in the middle of a megabyte; `find` is not.
        return (
            self._buffer.count(b"\n", start, end)
            if self._buffer.find(b"\n", start, end) >= 0
            else 0
        )


def call(id: int, tool: bytes, arguments: bytes, era: Era, token: bytes = b"") -> bytes:
    """Return one request as a line."""
    members = b",".join(filter(None, [era.meta, token]))
    meta = b'"_meta":{%b},' % members if members else b""
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%b"name":"%b","arguments":%b}}\n'
        % (
            id,
            meta,
            tool,
            arguments,
        )
    )


def echoes(ids: Iterator[int], n: int, size: int, era: Era) -> list[bytes]:
    arguments = b'{"text":"%b"}' % (b"x" * size)
    return [call(next(ids), b"echo", arguments, era) for _ in range(n)]


def check(answers: bytes, requests: list[bytes]) -> None:
    """Check that every request got a response with its text."""
    wanted = {}
    for request in map(msgspec.json.decode, requests):
        wanted[request["id"]] = [("text", request["params"]["arguments"]["text"])]
    for answer in map(msgspec.json.decode, answers.splitlines()):
        content = answer.get("result", {}).get("content", ())
        if [(part["type"], part["text"]) for part in content] != wanted.pop(answer["id"]):
            raise SystemExit(f"a wrong answer: {answer!r:.200}")
    if wanted:
        raise SystemExit(f"{len(wanted)} requests have no answer")


def turn(
    argv: list[str], cores: set[int], era: Era, seconds: float, events: int
) -> dict[str, float]:
    """Measure one server in a fresh process."""
    figures: dict[str, float] = {}
    ids = iter(range(1, sys.maxsize))
    with Server(argv, cores) as server:
        if era.opening:
            server.ask(era.opening)
        for name, load in LOADS.items():
            size, window = load
            trial = echoes(ids, 2 * window, size, era)
            took, answers = server.stream(trial, window)
            check(answers, trial)
            n = max(min(int(len(trial) * seconds / took), _MAX_BYTES // size), window)
            requests = echoes(ids, n, size, era)
            before = server.cpu()
            took, answers = server.stream(requests, window)
            figures |= {name: n / took, f"{name}_cpu": (server.cpu() - before) / n}
            check(answers, requests)
        figures |= sequential(server, ids, era, seconds)
        figures |= progress(server, next(ids), era, events)
    return {measure: figure for measure, figure in figures.items() if figure}


def sequential(server: Server, ids: Iterator[int], era: Era, seconds: float) -> dict[str, float]:
    """Measure sequential calls for `seconds`."""
    times: list[float] = []
    requests = echoes(ids, 20, 100, era)
    answers = [server.ask(request) for request in requests]  # not counted
    before = server.cpu()
    deadline = perf_counter() + seconds
    while len(times) < 10 or perf_counter() < deadline:
        request = echoes(ids, 1, 100, era)[0]
        start = perf_counter()
        answer = server.ask(request)
        times.append(1e6 * (perf_counter() - start))
        requests.append(request)
        answers.append(answer)
    cpu = (server.cpu() - before) / len(times)
    check(b"".join(answers), requests)
    return {"p50": median(times), "p99": quantiles(times, n=100)[-1], "sequential_cpu": cpu}


def progress(server: Server, id: int, era: Era, events: int) -> dict[str, float]:
    """Measure one call that reports progress."""
    request = call(id, b"progress", b'{"n":%d}' % events, era, b'"progressToken":"it"')
    before, start = server.cpu(), perf_counter()
    lines = server.ask(request, events + 1)
    took, cpu = perf_counter() - start, server.cpu() - before
    *notifications, last = map(msgspec.json.decode, lines.splitlines())
    steps = [message["params"]["progress"] for message in notifications]
    if steps != list(range(1, events + 1)) or last["id"] != id:
        raise SystemExit(f"{len(steps)} events of {events}, and then {last!r}")
    return {"progress": events / took, "progress_cpu": cpu / events}


def client_turn(script: str, seconds: float) -> dict[str, float]:
    argv = [sys.executable, script, str(seconds), sys.executable, *BARE]
    output = subprocess.run(
        argv, env=ENVIRONMENT, check=True, capture_output=True, text=True
    ).stdout
    measures = ("sequential", "sequential_cpu", "concurrent", "concurrent_cpu")
    return dict(zip(measures, map(float, output.split()), strict=True))


def ratio(measure: str, ours: float, sdk: float) -> float:
    """Return how many times better `ours` is."""
    return sdk / ours if measure in TIMES or measure.endswith("_cpu") else ours / sdk


def verdict(measure: str, reached: float) -> str:
    goal = GOALS.get(measure)
    if goal is None:
        return "-"
    if reached >= goal.stretch:
        return f"{goal.wanted:g}: reached, and {goal.stretch:g} too"
    if reached >= goal.wanted:
        return f"{goal.wanted:g}: reached ({goal.stretch:g} not)"
    return f"{goal.wanted:g}: missed by {100 * (1 - reached / goal.wanted):.0f} %"


def table(title: str, columns: dict[str, dict[str, float]]) -> None:
    """Print medians as a table. `columns` has the figures of each program."""
    others = [name for name in columns if name.startswith("ours_")]
    versus = [f"{name} / sdk" for name in ("ours", *others)]
    print(f"\n{title}\n")
    print("| | " + " | ".join([*columns, *versus, "goal"]) + " |")
    print("|---|" + "--:|" * (len(columns) + len(versus)) + "---|")
    for measure in columns["ours"]:
        ratios = [
            ratio(measure, columns[n][measure], columns["sdk"][measure]) for n in ("ours", *others)
        ]
        digits = 1 if measure.endswith("_cpu") else 0
        cells = [f"{figures[measure]:,.{digits}f}" for figures in columns.values()]
        cells += [f"{times:.1f}" for times in ratios]
        print(f"| {measure} | " + " | ".join([*cells, verdict(measure, ratios[0])]) + " |")


def take_core(*, apart: bool) -> set[int]:
    """Pin this process to one core. Return the cores for the measured programs, if supported."""
    if not hasattr(os, "sched_setaffinity"):
        return set()
    own, *rest = sorted(os.sched_getaffinity(0), reverse=True)
    os.sched_setaffinity(0, {own})
    return set(rest) if apart and rest else {own}


def medians(turns: list[dict[str, float]]) -> dict[str, float]:
    return {measure: median(turn[measure] for turn in turns) for measure in turns[0]}


def main() -> None:
    options = argparse.ArgumentParser(
        description="Servers and clients over pipes, beside the official SDK's."
    )
    options.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    options.add_argument(
        "--seconds", type=float, default=0.4, help="length of a measure in a turn (0.4)"
    )
    options.add_argument(
        "--events", type=int, default=10_000, help="progress events in a call (10,000)"
    )
    options.add_argument("--apart", action="store_true", help="the load on a core of its own")
    chosen = options.parse_args()
    gc.disable()  # of the load, not of the measured programs
    cores = take_core(apart=chosen.apart)
    turns: dict[str, dict[str, list[dict[str, float]]]] = {
        **{era: {name: [] for name in SERVERS} for era in ERAS},
        "client": {name: [] for name in CLIENTS},
    }
    for _ in range(chosen.rounds):
        for era in ERAS:
            for name, argv in SERVERS.items():
                turns[era][name].append(turn(argv, cores, ERAS[era], chosen.seconds, chosen.events))
        for name, script in CLIENTS.items():
            turns["client"][name].append(client_turn(script, chosen.seconds))
    titles = {
        "legacy": "Servers, 2025-11-25 after a handshake",
        "modern": "Servers, 2026-07-28",
        "client": "Clients, 2025-11-25, calls a second",
    }
    figures: dict[str, Any] = {}
    for part, by_name in turns.items():
        columns = {name: medians(of_one) for name, of_one in by_name.items()}
        # A processor time may be too short to be measured, for one program and not for another.
        seen = set.intersection(*map(set, columns.values()))
        columns = {
            name: {measure: figure for measure, figure in figures.items() if measure in seen}
            for name, figures in columns.items()
        }
        table(titles[part], columns)
        for measure, ours in columns["ours"].items():
            figures |= {
                f"{part}_{measure}_{name}": round(column[measure], 2)
                for name, column in columns.items()
            }
            figures[f"{part}_{measure}_ratio"] = round(
                ratio(measure, ours, columns["sdk"][measure]), 2
            )
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
