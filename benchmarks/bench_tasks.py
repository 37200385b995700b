"""How fast tasks are stored, in an SQLite file and in memory, and what a task costs a server.

1. The file and its lower bound take turns. The lower bound is `sqlite3` alone, without threads and
   without tasks: it inserts the same encoded records into one table, 64 in a transaction, and waits
   for the disk as the store does.
2. A record describes a task that has just begun. Its encoding is a part of the store's time.
3. Calls and tasks take turns on one connection in memory. A call runs an `async def` that
   returns at once; a task has a handler that sleeps. Both have our client at the other end.

    python benchmarks/bench_tasks.py [--rounds 5] [--creates 6400] [--records 10000]
        [--directory DIRECTORY]

4. An upkeep is what a server does every ten seconds: renew its lease, look for expired tasks, and
   for lost workers' tasks. All tasks run here, so that it finds none. Each step is timed alone:
   other tasks of the event loop run between steps.

The last line is one JSON object: creates a second, milliseconds of a step of the upkeep, bytes of
an open record and of an open task with its handler, microseconds of a `get`, and for each form of
tasks how many times as long as a call it takes to create one and to ask for its state. The disk
decides the most of what is about files, so choose the directory with `--directory`.
"""

from __future__ import annotations

import argparse
import gc
import json
import sqlite3
import tempfile
import tracemalloc
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from mcp_core import Limits
from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import TaskQuota, TaskRecord, encode_record
from mcp_trio import Server, SqliteTaskStore, TaskLimits, Tasks, connect
from mcp_trio._tasks import TrioTaskRuntime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp_core.tasks import TaskStore

AT_ONCE = 64
NOW = 1_800_000_000.0
UNLIMITED = 1_000_000_000
BOUNDLESS = TaskQuota(
    per_key=UNLIMITED, total=UNLIMITED, key_bytes=UNLIMITED, total_bytes=UNLIMITED
)
GETS = 2_000
UPKEEPS = 50
WORKER = "0123456789abcdef"
FORMS = ("2026-07-28", "2025-11-25")


def records(count: int) -> list[TaskRecord]:
    """Return that many records of new tasks, 100 for each owner."""
    return [
        TaskRecord(
            id=f"{number:032x}",
            owner=f"{number // 100:064x}",
            created=NOW + number / 1000,
            updated=NOW + number / 1000,
            ttl=3600.0,
            tool="research",
            revision="2026-07-28",
            worker=WORKER,
        )
        for number in range(count)
    ]


async def create_all(store: TaskStore, to_create: Iterable[TaskRecord], at_once: int) -> float:
    """Return the seconds that `at_once` callers need to create all records."""
    waiting = iter(to_create)

    async def work() -> None:
        for record in waiting:
            limit = await store.create(record, limits=BOUNDLESS)
            assert limit is None

    start = perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(work)
    return perf_counter() - start


async def time_sqlite(path: Path, creates: int, at_once: int) -> tuple[float, float]:
    """Return creates a second, and the seconds of a `get`."""
    to_create = records(creates)
    store = SqliteTaskStore(path)
    async with trio.open_nursery() as nursery:
        async with store.opened(TrioTaskRuntime(nursery)):
            seconds = await create_all(store, to_create, at_once)
            start = perf_counter()
            for number in range(GETS):
                assert await store.get(to_create[number % creates].key) is not None
            get = (perf_counter() - start) / GETS
        nursery.cancel_scope.cancel()
    return creates / seconds, get


async def time_upkeep(path: Path, count: int) -> dict[str, tuple[float, float]]:
    """Return the median and the longest of each step of the upkeep, in seconds."""
    store = SqliteTaskStore(path)
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "renew_lease": partial(store.renew_lease, WORKER, 30.0),
        "remove_expired": partial(store.remove_expired, NOW, 100),
        "lost": partial(store.lost, 100),
    }
    found: dict[str, list[float]] = {name: [] for name in steps}
    async with trio.open_nursery() as nursery:
        async with store.opened(TrioTaskRuntime(nursery)):
            await create_all(store, records(count), AT_ONCE)
            for _ in range(UPKEEPS):
                for name, step in steps.items():
                    start = perf_counter()
                    await step()
                    found[name].append(perf_counter() - start)
        nursery.cancel_scope.cancel()
    return {name: (median(times), max(times)) for name, times in found.items()}


def time_floor(path: Path, creates: int) -> float:
    """Return how many records a second `sqlite3` alone inserts."""
    rows = [(record.owner, record.id, encode_record(record)) for record in records(creates)]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(
            "CREATE TABLE tasks (owner TEXT, id TEXT, record BLOB, PRIMARY KEY (owner, id))"
        )
        start = perf_counter()
        for first in range(0, creates, AT_ONCE):
            connection.execute("BEGIN IMMEDIATE")
            for row in rows[first : first + AT_ONCE]:
                connection.execute("INSERT INTO tasks VALUES (?, ?, ?)", row)
            connection.execute("COMMIT")
        return creates / (perf_counter() - start)


async def time_memory(creates: int) -> float:
    """Return creates a second of the store in memory."""
    store = MemoryTaskStore()
    async with trio.open_nursery() as nursery, store.opened(TrioTaskRuntime(nursery)):
        return creates / await create_all(store, records(creates), 1)


async def bytes_in_memory(count: int) -> float:
    """Return the bytes of one of many open records, and of its places in the store."""
    store = MemoryTaskStore()
    async with trio.open_nursery() as nursery, store.opened(TrioTaskRuntime(nursery)):
        tracemalloc.start()
        await create_all(store, records(count), 1)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return held / count


def sleeping_server() -> Server:
    """Return a server with a tool that returns at once, and a task that never ends."""
    limits = TaskLimits(per_principal=UNLIMITED, total=UNLIMITED)
    server = Server("tasks", limits=Limits(tool_calls=None), tasks=Tasks(limits=limits))

    @server.tool
    async def now() -> str:
        """Return at once."""
        return "done"

    @server.tool(task="optional")
    async def later() -> str:
        """Never return."""
        await trio.Event().wait()
        return "done"

    return server


async def time_tasks(version: str, calls: int) -> tuple[float, float]:
    """Return the time of creating a task, and of asking for its state, as ratios to a call."""
    async with connect(sleeping_server(), versions=[version]) as client:
        await client.list_tools()
        best = [1e9] * 3
        for _ in range(5):
            task = await client.start_tool("later")
            steps: list[Callable[[], Awaitable[object]]] = [
                partial(client.call_tool, "now"),
                partial(client.start_tool, "later"),
                partial(client.request, "tasks/get", {"taskId": task.id}),
            ]
            for number, step in enumerate(steps):
                start = perf_counter()
                for _ in range(calls):
                    await step()
                best[number] = min(best[number], perf_counter() - start)
    return best[1] / best[0], best[2] / best[0]


async def bytes_of_open_task(count: int) -> float:
    """Return the bytes of one of many open tasks with a sleeping handler, all in all."""
    async with connect(sleeping_server()) as client:
        await client.start_tool("later")
        tracemalloc.start()
        for _ in range(count):
            await client.start_tool("later")
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return held / count


def main() -> None:
    options = argparse.ArgumentParser(description="Stores of tasks, beside bare sqlite3.")
    options.add_argument("--rounds", type=int, default=5, help="turns of each (5)")
    options.add_argument("--creates", type=int, default=6400, help="tasks in a turn (6400)")
    options.add_argument("--records", type=int, default=10_000, help="open tasks (10000)")
    options.add_argument("--calls", type=int, default=1000, help="calls in a turn (1000)")
    options.add_argument("--directory", help="where the files are (the one for temporary files)")
    chosen = options.parse_args()
    turns: list[tuple[float, ...]] = []
    for _ in range(chosen.rounds):
        with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
            path = Path(directory, "tasks.db")
            sqlite, get = trio.run(time_sqlite, path, chosen.creates, AT_ONCE)
            size = path.stat().st_size / chosen.creates
            floor = time_floor(Path(directory, "floor.db"), chosen.creates)
            few = max(chosen.creates // AT_ONCE, 1)
            single, _ = trio.run(time_sqlite, Path(directory, "single.db"), few, 1)
        turns.append((sqlite, size, get, floor, single, trio.run(time_memory, chosen.creates)))
    sqlite, size, get, floor, single, memory = map(median, zip(*turns, strict=True))
    with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
        upkeep = trio.run(time_upkeep, Path(directory, "tasks.db"), chosen.records)
    held = trio.run(bytes_in_memory, chosen.records)
    forms = {version: trio.run(time_tasks, version, chosen.calls) for version in FORMS}
    open_task = trio.run(bytes_of_open_task, chosen.records)
    for version, (create, state) in forms.items():
        print(f"{version}: creating a task {create:.2f} of a call, asking for it {state:.2f}")
    print(f"an open task with its handler: {open_task:,.0f} bytes")
    print(f"SQLite, {AT_ONCE} at once: {sqlite:,.0f} creates/s; bare {floor:,.0f}")
    print(f"SQLite, one by one: {single:,.0f} creates/s; a get {get * 1e6:.1f} us")
    for name, (step, longest) in upkeep.items():
        print(
            f"upkeep of {chosen.records:,} tasks in a file, {name}: {step * 1e3:.2f} ms,"
            f" {longest * 1e3:.2f} at most"
        )
    print(
        f"memory: {memory:,.0f} creates/s; an open record {held:,.0f} bytes, in a file {size:,.0f}"
    )
    print(
        json.dumps(
            {
                "sqlite_creates_per_s": round(sqlite),
                "sqlite_floor_per_s": round(floor),
                "sqlite_ratio": round(sqlite / floor, 3),
                "sqlite_single_creates_per_s": round(single),
                "sqlite_get_us": round(get * 1e6, 1),
                **{f"upkeep_{name}_ms": round(upkeep[name][0] * 1e3, 3) for name in upkeep},
                "memory_creates_per_s": round(memory),
                "memory_bytes_per_record": round(held),
                "sqlite_bytes_per_record": round(size),
                **{f"create_ratio_{version}": round(forms[version][0], 2) for version in forms},
                **{f"state_ratio_{version}": round(forms[version][1], 2) for version in forms},
                "open_task_bytes": round(open_task),
            }
        )
    )


if __name__ == "__main__":
    main()
