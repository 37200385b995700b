"""Ours beside the other SDKs and the floors, in one run, by the engine of `mcp-trio bench`.

    python benchmarks/peers/prepare.py ../peers
    python benchmarks/compare.py --peers ../peers [--rounds 5] [--seconds 0.5] [--warm-up 15]
        [--pause 0] [--only ROW ...] [--targets NAME ...] [--output benchmarks/compared.json]

`ROWS` says what is measured, and `targets.py` what it is measured with. Without `--peers` there are
ours, the floors, and the official SDK if this Python has it.

1. All targets of a row are started, and called until they are warm: over HTTP, V8 is three times
   faster after 25,000 calls. Then they take turns: a busy moment of the machine hits all of them,
   and the order changes with each round.
2. A figure is the median of the rounds. A ratio is the median of the rounds' ratios to the official
   SDK, `mcp`: how many times better, so over 1 is better for times and memory too.
3. The load has a core of its own if there are several, and the targets have the others. Where one
   call follows the other over stdio they share one: else its time is that of waking a core. In
   `load_bound` are the targets beside which the load itself was always busy: they are faster.
4. `cpu` is the processor time of the target alone. Other work on the machine hardly affects it.
5. On a machine that has other work, run it by `chrt --rr 1`, and with `--pause 1`: nothing else
   runs in a turn then, and everything else after it.

The last line is one JSON object with all figures, and `--output` writes it to a file after each
row. Rows that the file has of the same day and programs stay: `--only` measures some again.
The picture and the tables of the documentation are made from it by `python -m docs.pictures`.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import json
import math
import os
import platform
import resource
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, Final, Self

import trio

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.bench_startup import first_answer  # noqa: E402
from benchmarks.compared import MEASURES, row_table  # noqa: E402
from benchmarks.peers.prepare import ENVIRONMENTS  # noqa: E402
from benchmarks.targets import ENVIRONMENT, TARGETS, Programs  # noqa: E402
from mcp_core import McpTrioError, __version__  # noqa: E402
from mcp_trio.oracle.bench._requests import Mix, PreparedCall, varied  # noqa: E402
from mcp_trio.oracle.bench._turn import Pace  # noqa: E402
from mcp_trio.oracle.bench.engine._load import Address, Program, open_load  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from mcp_trio.oracle.bench._turn import BenchTurn, TargetLoad

    Figures = dict[str, float]

HANDSHAKE: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
REFERENCE: Final = "mcp"
# The server that clients are measured with over stdio.
BLOCKING: Final = [sys.executable, str(ROOT / "benchmarks/peers/floor.py"), "blocking", "stdio"]
TOOLS: Final = 1_000  # in a long list
_OWN_TOOLS: Final = 3  # of which each server has these without `--tools`
_BUSY: Final = 0.85  # of a core
_PYTHON_WARM_UP: Final = 0.15  # of the time for V8


class Failure(Exception):
    """One target can't be measured by one row."""


@dataclass
class Run:
    """The options and the state that all rows share."""

    programs: Programs
    names: Sequence[str]
    rounds: int
    seconds: float
    events: int
    sessions: int
    pause: float
    warm_up: float
    core: frozenset[int]
    cores: frozenset[int]
    failures: list[str] = field(default_factory=list)
    load_bound: set[str] = field(default_factory=set)

    def pinned(self, argv: Sequence[str], *, shared: bool) -> list[str]:
        """Return a command that runs on the cores of the targets, or on the core of the load."""
        cores = self.core if shared else self.cores
        if not cores:
            return list(argv)
        return [sys.executable, "-c", _PINNED, ",".join(map(str, cores)), *argv]

    @contextmanager
    def on_cores(self) -> Iterator[None]:
        """Let the processes that are started in the block run on the cores of the targets."""
        if self.cores:
            os.sched_setaffinity(0, self.cores)
        try:
            yield
        finally:
            if self.core:
                os.sched_setaffinity(0, self.core)


_PINNED: Final = (
    "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(',')));"
    "os.execvp(sys.argv[2], sys.argv[2:])"
)


# -- Rows ------------------------------------------------------------------------------------------


class Row(ABC):
    """Something that is measured, for all targets that can take part."""

    title: str

    @abstractmethod
    def takes(self, name: str) -> bool:
        """Return whether a target can take part."""

    @abstractmethod
    async def measure(self, run: Run, names: Sequence[str]) -> dict[str, list[Figures]]:
        """Return the figures of each round, by target. A target that fails is left out."""


@dataclass
class Called(Row):
    """A server that is called by the engine of `mcp-trio bench`."""

    title: str
    call: Callable[[Run], Sequence[PreparedCall]]
    concurrency: int
    mode: str = ""  # over HTTP; "" for stdio
    revision: str = HANDSHAKE
    tools: int = 0
    floors: bool = True
    shared: bool = False  # the server has the core of the load
    events: bool = False  # counts the events of each call, not calls

    def takes(self, name: str) -> bool:
        target = TARGETS[name]
        if target.is_floor and not self.floors:
            return False
        if self.mode:
            return self.mode in target.modes
        return target.stdio and (self.revision == HANDSHAKE or "modern" in target.modes)

    def words(self) -> list[str]:
        return ["--tools", str(self.tools)] if self.tools else []

    async def measure(self, run: Run, names: Sequence[str]) -> dict[str, list[Figures]]:
        found: dict[str, list[Figures]] = {}
        work, pace = Mix(self.call(run)), Pace(None, self.concurrency)
        async with AsyncExitStack() as stack:
            loads: dict[str, TargetLoad] = {}
            for name in names:
                with failing(run, self.title, name):
                    loads[name] = await stack.enter_async_context(self.open(run, name))
                    await self.warm_up(run, name, loads[name], work, pace)
                await trio.sleep(run.pause)
            for number in range(run.rounds):
                for name in turned(loads, number):
                    with failing(run, self.title, name):
                        turn = await loads[name].turn(work, pace, run.seconds)
                        found.setdefault(name, []).append(self.figures(run, name, turn))
                    await trio.sleep(run.pause)
        return found

    async def warm_up(self, run: Run, name: str, load: TargetLoad, work: Mix, pace: Pace) -> None:
        """Make calls that aren't counted, in turns like the counted ones."""
        left = run.warm_up * (1 if is_node(name) else _PYTHON_WARM_UP)
        while left > 0:
            left -= (await load.turn(work, pace, run.seconds)).seconds
            await trio.sleep(run.pause)

    def figures(self, run: Run, name: str, turn: BenchTurn) -> Figures:
        """Return what a turn shows."""
        if turn.failed or not turn.answered:
            causes = dict(turn.errors) or f"{turn.timeouts} timeouts"
            raise Failure(f"{turn.failed} of {turn.sent} calls failed: {causes}")
        if turn.load_cpu > _BUSY * turn.seconds:
            run.load_bound.add(name)
        events = run.events if self.events else 1
        cpu = 1e6 * (turn.target_cpu or 0.0) / turn.answered / events
        if self.events:
            return {"events": events * turn.rate, "cpu": cpu}
        times = turn.histogram
        return {"rate": turn.rate, "cpu": cpu, "p50": p(times, 50), "p99": p(times, 99)}

    @asynccontextmanager
    async def open(self, run: Run, name: str) -> AsyncIterator[TargetLoad]:
        """Start a server, and connect the load."""
        if not self.mode:
            argv = run.programs.server(name, "stdio", *self.words())
            program = Program(run.pinned(argv, shared=self.shared), env=ENVIRONMENT)
            async with open_load(program, era=self.revision) as load:
                yield load
            return
        with HttpServer(run, name, self.mode, self.words()) as server:
            async with open_load(Address(server.url), era=self.revision) as load:
                yield load


def p(histogram: Any, percent: float) -> float:
    """Return a percentile in microseconds."""
    return 1e6 * float(histogram.percentile(percent))


def turned(names: Sequence[str] | dict[str, Any], number: int) -> list[str]:
    """Return the names in the order of round `number`."""
    order = list(names)
    at = number % len(order) if order else 0
    return order[at:] + order[:at]


@contextmanager
def failing(run: Run, title: str, name: str) -> Iterator[None]:
    """Note that a target failed, and go on with the others."""
    try:
        yield
    except (Failure, McpTrioError, OSError, subprocess.SubprocessError) as exc:
        run.failures.append(f"{title}: {name}: {exc}")
        print(f"failed: {run.failures[-1]}", file=sys.stderr, flush=True)


class HttpServer:
    """A server process on a port of this machine. The end of its `with` block ends the process."""

    def __init__(self, run: Run, name: str, mode: str, words: Sequence[str] = ()) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        options = ["--port", str(self.port), "--mode", mode, *words]
        argv = run.programs.server(name, "http", *options)
        with run.on_cores():
            self._process = subprocess.Popen(argv, env=ENVIRONMENT)
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def __enter__(self) -> Self:
        deadline = perf_counter() + 60
        while self._process.poll() is None and perf_counter() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                sleep(0.02)
            else:
                return self
        self.__exit__()
        raise Failure(f"{self._process.args!r} does not listen")

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()


@dataclass
class Each(Row):
    """Something that one short program after the other shows, in each round once for each target.

    Attributes:
        take: returns the figures of one turn.
        who: whether a target can take part.
        at_most: rounds at most, for what takes long.
    """

    title: str
    take: Callable[[Run, str], Awaitable[Figures]]
    who: Callable[[str], bool]
    at_most: int = sys.maxsize

    def takes(self, name: str) -> bool:
        return self.who(name)

    async def measure(self, run: Run, names: Sequence[str]) -> dict[str, list[Figures]]:
        found: dict[str, list[Figures]] = {}
        for number in range(min(run.rounds, self.at_most)):
            for name in turned(names, number):
                with failing(run, self.title, name):
                    found.setdefault(name, []).append(await self.take(run, name))
                await trio.sleep(run.pause)
        return found


def start(*words: str) -> Callable[[Run, str], Awaitable[Figures]]:
    """Return what measures the time from the start of a process to its response to `initialize`."""

    async def take(run: Run, name: str) -> Figures:
        argv = run.programs.server(name, "stdio", *words)
        with run.on_cores(), Children() as used:
            took = first_answer(argv)
        return {"start": 1e3 * took, "start_cpu": 1e3 * used.cpu}

    return take


class Children:
    """The processor time of the processes that ended in a `with` block, in seconds."""

    cpu = 0.0

    def __enter__(self) -> Self:
        self.cpu -= self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu += self._now()

    def _now(self) -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


async def take_import(run: Run, name: str) -> Figures:
    """Measure the processor time of a server's imports, without the time of Python's own start."""

    def cpu(statement: str) -> float:
        with Children() as used:
            argv = [run.programs.python(name), "-c", statement]
            subprocess.run(argv, env=ENVIRONMENT, check=True)
        return used.cpu

    return {"import": 1e3 * max(cpu(TARGETS[name].imports) - cpu("pass"), 0.0)}


async def take_memory(run: Run, name: str) -> Figures:
    """Measure the memory of a server over stdio after some calls."""
    row = Called("", echo(100), 1)
    async with row.open(run, name) as load:
        turn = await load.turn(Mix(row.call(run)), Pace(None, 1), 0.05)
    return {"memory": memory_of(turn) / 1e6}


def memory_of(turn: BenchTurn) -> int:
    if turn.memory is None:
        raise Failure("the system doesn't say how much memory a process has")
    return turn.memory


def client(*where: str) -> Callable[[Run, str], Awaitable[Figures]]:
    """Return what measures a client. `where` is `memory`, or a mode of the server over HTTP.

    Without it the server is a floor over stdio, which is faster than any client.
    """

    async def take(run: Run, name: str) -> Figures:
        if where == ("memory",):
            return ask(run, name, "memory")
        if not where:
            return ask(run, name, *BLOCKING)
        mode, revision = where
        with HttpServer(run, "ours", mode) as server:
            return ask(run, name, server.url, revision)

    def ask(run: Run, name: str, *target: str) -> Figures:
        argv = run.programs.client(name, str(run.seconds), *target)
        done = subprocess.run(argv, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE)
        names = ("sequential", "sequential_cpu", "concurrent", "concurrent_cpu")
        return dict(zip(names, map(float, done.stdout.split()), strict=True))

    return take


async def take_sessions(run: Run, name: str) -> Figures:
    """Measure what open sessions cost: memory, and the time of calls in ten others."""
    row = Called("", echo(100), 10, "session-json")
    work, pace = Mix(row.call(run)), Pace(None, row.concurrency)
    with HttpServer(run, name, row.mode) as server:
        async with open_load(Address(server.url), era=HANDSHAKE) as load:
            await row.warm_up(run, name, load, work, pace)
            few = await load.turn(work, pace, run.seconds)
            await trio.to_thread.run_sync(open_sessions, server.port, run.sessions)
            many = await load.turn(work, pace, run.seconds)
    grown = (memory_of(many) - memory_of(few)) / 1024
    return {
        "session": grown / run.sessions,
        "few_cpu": row.figures(run, name, few)["cpu"],
        "many_cpu": row.figures(run, name, many)["cpu"],
    }


def open_sessions(port: int, count: int) -> None:
    """Open sessions one after the other, and leave them open."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }

    def post(message: dict[str, Any], **more: str) -> http.client.HTTPResponse:
        body = json.dumps({"jsonrpc": "2.0", **message})
        connection.request("POST", "/mcp", body, {**headers, **more})
        response = connection.getresponse()
        response.read()
        if response.status not in {200, 202}:
            raise Failure(f"a session was answered by {response.status}")
        return response

    hello = {
        "protocolVersion": HANDSHAKE,
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1.0.0"},
    }
    for _ in range(count):
        opened = post({"id": 1, "method": "initialize", "params": hello})
        session = opened.getheader("Mcp-Session-Id") or ""
        post(
            {"method": "notifications/initialized"},
            **{"Mcp-Session-Id": session, "Mcp-Protocol-Version": HANDSHAKE},
        )
    connection.close()


def echo(size: int, *, vary: bool = False) -> Callable[[Run], Sequence[PreparedCall]]:
    """Return calls of `echo` with a text of `size` bytes, or with 61 lengths around it."""
    text = "x" * (size - 30 if vary else size)
    call = PreparedCall("tools/call", {"name": "echo", "arguments": {"text": text}}, "echo")
    calls = varied(call) if vary else [call]
    return lambda _: calls


def progress(run: Run) -> Sequence[PreparedCall]:
    params = {
        "name": "progress",
        "arguments": {"n": run.events},
        "_meta": {"progressToken": "steps"},
    }
    return [PreparedCall("tools/call", params, "progress")]


def tools_list(_: Run) -> Sequence[PreparedCall]:
    return [PreparedCall("tools/list", {}, "tools/list")]


def is_node(name: str) -> bool:
    return bool(TARGETS[name].environment) and ENVIRONMENTS[TARGETS[name].environment].node


def is_library(name: str) -> bool:
    return not TARGETS[name].is_floor


def has_client(name: str) -> bool:
    return bool(TARGETS[name].client)


def starts_over_stdio(name: str) -> bool:
    return TARGETS[name].stdio and name != "ours_async"


SMALL: Final = echo(100, vary=True)
ROWS: Final[dict[str, Row]] = {
    "stdio": Called("stdio, 100 B, 64 in flight", SMALL, 64),
    "stdio_sequential": Called("stdio, 100 B, one by one", SMALL, 1, shared=True),
    "stdio_modern": Called("stdio, 2026-07-28, 100 B, 64 in flight", SMALL, 64, "", MODERN),
    "stdio_10kb": Called("stdio, 10 KB, 64 in flight", echo(10_000), 64),
    "stdio_1mb": Called("stdio, 1 MB, 8 in flight", echo(1_000_000), 8),
    "http_sse": Called("HTTP, sessions, SSE, 16 callers", SMALL, 16, "session-sse"),
    "http_json": Called("HTTP, sessions, JSON, 16 callers", SMALL, 16, "session-json"),
    "http_stateless": Called("HTTP, no sessions, JSON, 16 callers", SMALL, 16, "stateless-json"),
    "http_modern": Called("HTTP, 2026-07-28, 16 callers", SMALL, 16, "modern", MODERN),
    "progress_stdio": Called("stdio, progress in one call", progress, 1, floors=False, events=True),
    "progress_http": Called(
        "HTTP, sessions, progress in one call",
        progress,
        1,
        "session-sse",
        floors=False,
        events=True,
    ),
    "tools_list": Called(
        "stdio, a list of 1,000 tools", tools_list, 1, tools=TOOLS - _OWN_TOOLS, floors=False
    ),
    "client_stdio": Each("client, stdio", client(), has_client),
    "client_http": Each(
        "client, HTTP, sessions, JSON",
        client("session-json", HANDSHAKE),
        lambda name: has_client(name) and is_library(name),
    ),
    "in_process": Each("client and server in one process", client("memory"), has_client),
    "start": Each("start of the process to its first answer", start(), starts_over_stdio),
    "start_tools": Each(
        "... with 1,000 tools",
        start("--tools", str(TOOLS - _OWN_TOOLS)),
        lambda name: starts_over_stdio(name) and is_library(name),
    ),
    "import": Each("import", take_import, lambda name: bool(TARGETS[name].imports)),
    "memory": Each("memory after some calls over stdio", take_memory, starts_over_stdio),
    "sessions": Each(
        "idle sessions over HTTP",
        take_sessions,
        lambda name: is_library(name) and name != "ours_async",
        at_most=1,
    ),
}


# -- A run -----------------------------------------------------------------------------------------


def summary(rounds: dict[str, list[Figures]]) -> dict[str, Any]:
    """Return the median of each measure for each target, and the ratios to the official SDK."""
    found: dict[str, Any] = {}
    for measure in dict.fromkeys(key for turns in rounds.values() for key in turns[0]):
        unit = MEASURES[measure]
        figures = {name: [turn[measure] for turn in turns] for name, turns in rounds.items()}
        medians = {name: median(values) for name, values in figures.items()}
        ratios = {
            name: median(
                unit.times_better(value, reference)
                for value, reference in zip(values, figures[REFERENCE], strict=False)
            )
            for name, values in figures.items()
            if REFERENCE in figures and min(values) > 0 and min(figures[REFERENCE]) > 0
        }
        found[measure] = {
            "figures": {name: rounded(value) for name, value in medians.items() if value > 0},
            "ratios": {name: rounded(value) for name, value in ratios.items()},
        }
    return found


def rounded(value: float) -> float:
    """Return four digits."""
    digits = max(3 - math.floor(math.log10(value)), 0) if value > 0 else 0
    return round(value, digits)


def facts(run: Run) -> dict[str, Any]:
    """Return what the figures depend on, and nothing that names the machine."""
    own = {"mcp-trio": __version__}
    own |= {name: version(name) for name in ("trio", "msgspec", "h11")}
    found: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": f"{platform.system()}, {platform.machine()}",
        "cores": os.cpu_count(),
        "real_time": is_real_time(),
        "rounds": run.rounds,
        "seconds": run.seconds,
        "events": run.events,
        "sessions": run.sessions,
        "versions": own | run.programs.versions(),
    }
    if any(map(is_node, run.names)):
        node = subprocess.check_output(["node", "--version"], text=True)
        found["node"] = node.strip().lstrip("v")
    return found


def take_core() -> tuple[frozenset[int], frozenset[int]]:
    """Pin this process to one core, and return it and the cores for the targets.

    A single core is for both. Both are empty on a system that can't pin processes.
    """
    if not hasattr(os, "sched_setaffinity"):
        return frozenset(), frozenset()
    own, *rest = sorted(os.sched_getaffinity(0), reverse=True)
    os.sched_setaffinity(0, {own})
    return frozenset([own]), frozenset(rest or [own])


def is_real_time() -> bool:
    """Return whether ordinary processes can't interrupt this one and what it starts."""
    if not hasattr(os, "sched_getscheduler"):
        return False
    return os.sched_getscheduler(0) in {os.SCHED_FIFO, os.SCHED_RR}


def load_average() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


async def compare(run: Run, rows: Sequence[str], file: Path | None) -> dict[str, Any]:
    """Measure rows. After each, `file` is written, which keeps the rows that it has besides."""
    found = kept_rows(run, file)
    loads = [load_average()]
    data: dict[str, Any] = {}
    for key in rows:
        row = ROWS[key]
        run.load_bound.clear()
        gc.collect()
        rounds = await row.measure(run, [name for name in run.names if row.takes(name)])
        # A target that has failed once has no figure.
        done = max(map(len, rounds.values()), default=0)
        rounds = {name: turns for name, turns in rounds.items() if len(turns) == done}
        found[key] = {"title": row.title, "measures": summary(rounds)}
        if run.load_bound:
            found[key]["load_bound"] = sorted(run.load_bound)
        print(f"\n{row_table(found[key])}", flush=True)
        loads.append(load_average())
        data = report(run, found, loads)
        write(file, data)
    return data


def report(run: Run, found: dict[str, Any], loads: list[float]) -> dict[str, Any]:
    """Return all that is known, with the rows in the order of `ROWS`."""
    rows = {key: found[key] for key in ROWS if key in found}
    return {**facts(run), "load": [round(min(loads), 1), round(max(loads), 1)], "rows": rows}


def write(file: Path | None, data: dict[str, Any]) -> None:
    if file is not None:
        file.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def kept_rows(run: Run, file: Path | None) -> dict[str, Any]:
    """Return the rows of a file that were measured today with the same programs."""
    if file is None or not file.exists():
        return {}
    data = json.loads(file.read_text("utf-8"))
    same = ("date", "python", "system", "cores", "versions")
    now = facts(run)
    return data["rows"] if all(data.get(fact) == now[fact] for fact in same) else {}


def main() -> None:
    options = argparse.ArgumentParser(
        description="Ours beside the other SDKs and the floors, in one run."
    )
    options.add_argument("--peers", type=Path, help="a directory that peers/prepare.py has made")
    options.add_argument("--rounds", type=int, default=5, help="turns of each target (5)")
    options.add_argument("--seconds", type=float, default=0.5, help="length of a turn (0.5)")
    options.add_argument("--pause", type=float, default=0.0, help="seconds between turns (0)")
    options.add_argument(
        "--warm-up", type=float, default=15.0, help="seconds before turns of a V8 (15)"
    )
    options.add_argument("--events", type=int, default=10_000, help="of progress, a call (10,000)")
    options.add_argument("--sessions", type=int, default=2_000, help="that are idle (2,000)")
    options.add_argument("--only", metavar="ROW", nargs="+", choices=ROWS, default=list(ROWS))
    options.add_argument("--targets", metavar="NAME", nargs="+", choices=TARGETS)
    options.add_argument("--output", type=Path, help="write the figures to this file")
    chosen = options.parse_args()
    peers = chosen.peers.resolve() if chosen.peers else None
    programs = Programs(peers)
    names = chosen.targets or programs.names()
    if missing := sorted(set(names) - set(programs.names())):
        options.error(f"{', '.join(missing)}: not here; see --peers and peers/prepare.py")
    gc.disable()  # of the load, not of the measured programs
    run = Run(
        programs,
        names,
        chosen.rounds,
        chosen.seconds,
        chosen.events,
        chosen.sessions,
        chosen.pause,
        chosen.warm_up,
        *take_core(),
    )
    figures = trio.run(compare, run, chosen.only, chosen.output)
    print(json.dumps(figures))
    if run.failures:
        raise SystemExit("\n".join(["", *run.failures]))


if __name__ == "__main__":
    main()
