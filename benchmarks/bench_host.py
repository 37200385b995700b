"""How soon a host of many servers is ready, what its lists cost, and what it adds to a call.

1. Ten servers that sleep a second before their first word, and one of them alone, take turns. Their
   program is `peers/floor.py`, so nearly all of the time is the sleep and what the host does.
2. Ten servers of `mcp-trio run`, and one of them alone, take turns. Ten cannot be ready before the
   slowest is, nor before the processors have done the work of all: the bound is the larger of the
   time of one alone and the processor time of ten, measured in the same turn, over the number of
   processors. Their definitions were approved in a first run, which is reported by itself: at first
   sight the host waits a second for servers that announce changes of their lists.
3. 100 servers with 100 tools each, in this process. Merged means: from the lists of each server, as
   they were read, to one list of all. Garbage of what was before is collected first.
4. A call through the host takes turns with the same call on the client that the host uses, so the
   difference is the host's. Counted are the scheduling points, which are the steps of the task that
   calls, and the Python calls in our packages.

    python benchmarks/bench_host.py [--rounds 7] [--servers 10] [--sleep 1.0] [--many 100]
        [--tools 100] [--calls 500]

The last line is one JSON object with the medians of all rounds. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from mcp_core import Limits
from mcp_core.host import HostCatalog, ServerCatalog
from mcp_core.types import Tool
from mcp_trio import Server
from mcp_trio.host import Host, MemoryApprovals
from mcp_trio.testing._leaks import children

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp_trio.host import HostConfig

ROOT: Final = Path(__file__).parents[1]
PEERS: Final = ROOT / "benchmarks" / "peers"
SLEEPER: Final = """
import sys, time
sys.path.insert(0, sys.argv.pop(1))
import floor
time.sleep({})
floor.main()
"""
SERVER_FILE: Final = '''
from mcp_trio import Limits, Server

server = Server("notes", limits=Limits(tool_calls=None))


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.resource("notes://{name}")
def note(name: str) -> str:
    """Return a note."""
    return name
'''
# The host starts nothing and loads nothing for the first time while it is measured.
WARM: Final = 3


class Opened(NamedTuple):
    """The cost of opening a host: `seconds`, and seconds of the processors in its servers."""

    seconds: float
    processor: float


def sleepers(count: int, seconds: float) -> dict[str, list[str]]:
    """Return the commands of servers that sleep before their first word."""
    program = SLEEPER.format(seconds)
    argv = [sys.executable, "-c", program, str(PEERS), "blocking", "stdio"]
    return {f"sleeper{number}": argv for number in range(count)}


def write_config(directory: Path, count: int) -> Path:
    """Write a server, and a configuration file by which it is run as `count` servers."""
    server = directory / "server.py"
    server.write_text(SERVER_FILE)
    entry = {
        "command": sys.executable,
        "args": ["-m", "mcp_trio", "run", str(server)],
        "env": {"PYTHONPATH": str(ROOT)},  # a server inherits little, and may not be installed
    }
    file = directory / f"{count}.json"
    servers = {f"server{number}": entry for number in range(count)}
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


def processor_time(pids: set[int]) -> float:
    """Return the seconds that processes have spent on processors."""
    ticks = 0
    for pid in pids:
        _, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        user, system = rest.split()[11:13]
        ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


async def open_host(config: HostConfig, approvals: MemoryApprovals, count: int) -> Opened:
    """Measure from the beginning of the block until all servers are ready."""
    before = children().keys()
    start = perf_counter()
    async with Host(
        config, stderr="discard", approvals=approvals, on_approve_server=lambda _: True
    ) as host:
        seconds = perf_counter() - start
        assert [status.state for status in host.status().values()] == ["ready"] * count
        assert len(host.tools()) >= count
        return Opened(seconds, processor_time(children().keys() - before))


def measure_sleepers(rounds: int, count: int, seconds: float) -> dict[str, float]:
    """Compare many servers that sleep with one."""
    opened: dict[int, list[float]] = {1: [], count: []}
    for _ in range(rounds):
        for number, found in opened.items():
            host = partial(open_host, sleepers(number, seconds), MemoryApprovals(), number)
            found.append(trio.run(host).seconds)
    return {
        "sleepers_s": median(opened[count]),
        "sleepers_best_s": min(opened[count]),
        "sleeper_alone_s": median(opened[1]),
    }


def measure_servers(rounds: int, count: int) -> dict[str, float]:
    """Compare many servers with one, and with the work that they are."""
    turns: list[tuple[float, ...]] = []
    first = 0.0
    with tempfile.TemporaryDirectory() as directory:
        files = {number: write_config(Path(directory), number) for number in (1, count)}
        approvals = {number: MemoryApprovals() for number in files}
        for turn in range(rounds + 1):
            alone, together = (
                trio.run(open_host, file, approvals[number], number)
                for number, file in files.items()
            )
            if turn == 0:
                first = together.seconds
                continue
            bound = max(alone.seconds, together.processor / (os.cpu_count() or 1))
            ratio = together.seconds / bound
            turns.append((together.seconds, alone.seconds, together.processor, bound, ratio))
    medians = map(median, zip(*turns, strict=True))
    names = ("s", "alone_s", "processor_s", "bound_s", "ratio")
    return {
        **{f"servers_{name}": value for name, value in zip(names, medians, strict=True)},
        "servers_best_ratio": min(turn[-1] for turn in turns),
        "servers_first_sight_s": first,
    }


def many_servers(servers: int, tools: int) -> dict[str, Server]:
    """Return servers of this process with that many tools each."""

    def add(a: int, b: int = 0) -> int:
        """Add two numbers."""
        return a + b

    found = {}
    for number in range(servers):
        server = found[f"server{number}"] = Server(
            f"server{number}", limits=Limits(tool_calls=None)
        )
        for tool in range(tools):
            server.tool(name=f"tool_{tool}", description=f"Tool {tool} of {number}.")(add)
    return found


async def time_lists(servers: Mapping[str, Server], tools: int) -> tuple[float, ...]:
    """Return seconds: to open a host, to merge, to list after a change, and to list again."""
    start = perf_counter()
    async with Host(servers) as host:
        opened = perf_counter() - start
        assert len(host.tools()) == len(servers) * tools
        lists = {name: list(host.catalog(name).tools) for name in servers}
        start = perf_counter()
        for _ in range(100):
            host.tools()
        listed = (perf_counter() - start) / 100
    turns = [time_merging(lists) for _ in range(5)]
    return opened, *map(median, zip(*turns, strict=True)), listed


def time_merging(lists: Mapping[str, list[Tool]]) -> tuple[float, float]:
    """Return the seconds to merge the lists of all servers, and again after one has changed."""
    gc.collect()
    start = perf_counter()
    merged = HostCatalog()
    for name, tools in lists.items():
        merged.update(catalog_of(name, tools), is_available=True)
    assert len(merged.tools()) == sum(map(len, lists.values()))
    first = perf_counter() - start
    name, tools = next(iter(lists.items()))
    start = perf_counter()
    merged.update(catalog_of(name, tools[:-1]), is_available=True)
    merged.tools()
    return first, perf_counter() - start


def catalog_of(server: str, tools: list[Tool]) -> ServerCatalog:
    """Return what a server of this process offers."""
    catalog = ServerCatalog(server, needs_pins=False)
    catalog.set_list("tools", tools)
    return catalog


def measure_lists(rounds: int, servers: int, tools: int) -> dict[str, float]:
    """Time the merged lists of many servers in this process."""
    made = many_servers(servers, tools)
    turns = [trio.run(time_lists, made, tools) for _ in range(rounds)]
    opened, merged, changed, listed = map(median, zip(*turns, strict=True))
    return {
        "many_open_s": opened,
        "many_merged_ms": merged * 1e3,
        "many_changed_ms": changed * 1e3,
        "many_listed_us": listed * 1e6,
    }


class StepCounter(trio.abc.Instrument):
    """Counts how often a task is resumed."""

    def __init__(self) -> None:
        self.steps = 0
        self._task = trio.lowlevel.current_task()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += task is self._task


async def count_steps(call: Callable[[], Awaitable[object]], calls: int) -> float:
    """Return the scheduling points of one call."""
    counter = StepCounter()
    trio.lowlevel.add_instrument(counter)
    for _ in range(calls):
        await call()
    trio.lowlevel.remove_instrument(counter)
    return counter.steps / calls


async def count_frames(call: Callable[[], Awaitable[object]]) -> int:
    """Return the Python calls in our packages during one call. A server in memory is included."""
    frames = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal frames
        name: str = frame.f_code.co_filename
        frames += event == "call" and ("/mcp_core/" in name or "/mcp_trio/" in name)

    sys.setprofile(profile)
    try:
        await call()
    finally:
        sys.setprofile(None)
    return frames


async def time_calls(config: HostConfig, rounds: int, calls: int) -> tuple[float, ...]:
    """Return the time of a call through the host as a ratio to one on its client.

    After it come the seconds of both, their scheduling points, and their Python calls in our
    packages, each with the client first.
    """
    async with Host(
        config,
        stderr="discard",
        approve="all",
        approvals=MemoryApprovals(),  # else the user's
        on_approve_server=lambda _: True,
    ) as host:
        (name,) = (tool.name for tool in host.tools() if tool.tool.name == "add")
        client, arguments = host.client("server0"), {"a": 2, "b": 3}
        direct = partial(client.call_tool, "add", arguments)
        hosted = partial(host.call, name, arguments)
        for _ in range(WARM):
            assert (await direct()).content == (await hosted()).content
        turns = []
        for _ in range(rounds):
            seconds = []
            for call in direct, hosted:
                start = perf_counter()
                for _ in range(calls):
                    await call()
                seconds.append((perf_counter() - start) / calls)
            turns.append((seconds[1] / seconds[0], *seconds))
        steps = [await count_steps(call, calls) for call in (direct, hosted)]
        frames = [await count_frames(call) for call in (direct, hosted)]
    return *map(median, zip(*turns, strict=True)), *steps, *frames


def measure_calls(rounds: int, calls: int) -> dict[str, float]:
    """Compare calls through a host with calls on its client."""
    (server,) = many_servers(1, 0).values()

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory:
        file = write_config(Path(directory), 1)
        targets: dict[str, HostConfig] = {"memory": {"server0": server}, "stdio": file}
        for way, config in targets.items():
            ratio, *pairs = trio.run(time_calls, config, rounds * 3, calls)
            direct, hosted, direct_steps, steps, direct_frames, frames = pairs
            figures |= {
                f"call_{way}_ratio": ratio,
                f"call_{way}_us": hosted * 1e6,
                f"call_{way}_steps": steps,
                f"call_{way}_frames": frames,
                f"call_{way}_client_us": direct * 1e6,
                f"call_{way}_client_steps": direct_steps,
                f"call_{way}_client_frames": direct_frames,
            }
    return figures


def main() -> None:
    options = argparse.ArgumentParser(description="A host of many servers.")
    options.add_argument("--rounds", type=int, default=7, help="turns of each (7)")
    options.add_argument("--servers", type=int, default=10, help="servers, at least 2 (10)")
    options.add_argument("--sleep", type=float, default=1.0, help="seconds that they sleep (1.0)")
    options.add_argument("--many", type=int, default=100, help="servers in this process (100)")
    options.add_argument("--tools", type=int, default=100, help="tools of each of these (100)")
    options.add_argument("--calls", type=int, default=500, help="calls in a turn (500)")
    chosen = options.parse_args()
    figures = {
        **measure_sleepers(chosen.rounds, chosen.servers, chosen.sleep),
        **measure_servers(chosen.rounds, chosen.servers),
        **measure_lists(chosen.rounds, chosen.many, chosen.tools),
        **measure_calls(chosen.rounds, chosen.calls),
    }
    for name, value in figures.items():
        print(f"{name:28} {value:12.4f}")
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
