"""A process that writes tasks into an SQLite file, for tests with several processes.

    sqlite_worker.py PATH race NAME COUNT   change the task "a" COUNT times, beside others
    sqlite_worker.py PATH fill NAME         create and complete tasks until it is killed

It prints a line for each write that was confirmed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from msgspec import Raw

from mcp_core.adapters import SqliteTaskStore
from mcp_core.tasks import (
    Complete,
    SetMessage,
    TaskKey,
    TaskLimits,
    TaskQuota,
    TaskRecord,
    transition,
)
from tests.core.tasks.runtimes import run_trio, together

if TYPE_CHECKING:
    from tests.core.tasks.runtimes import StoreRuntime

LIMITS = TaskLimits()
NOW = 1_800_000_000.0
PLENTY = TaskQuota(per_key=100_000, total=100_000, key_bytes=1 << 40, total_bytes=1 << 40)


async def race(store: SqliteTaskStore, name: str, count: int) -> None:
    key = TaskKey("ada", "a")
    for number in range(count):
        while True:
            record = await store.get(key)
            assert record is not None
            after = transition(record, SetMessage(f"{name} {number}"), NOW, LIMITS)
            if await store.change(key, record.serial, after):
                break
        print(after.serial, after.message, flush=True)


def result_of(id: str) -> bytes:
    return b'{"content":[{"type":"text","text":"%b"}]}' % (id.encode() * 500)


async def fill(store: SqliteTaskStore, runtime: StoreRuntime, name: str) -> None:
    async def work(worker: int) -> None:
        for number in range(10_000):
            id = f"{name}-{worker}-{number}"
            record = TaskRecord(
                id=id, created=NOW, updated=NOW, ttl=60.0, tool="fill", revision="2026-07-28"
            )
            await store.create(record, limits=PLENTY)
            print("created", id, flush=True)
            after = transition(record, Complete(Raw(result_of(id))), NOW, LIMITS)
            assert await store.change(record.key, 1, after)
            print("completed", id, flush=True)

    await together(runtime, *(lambda worker=worker: work(worker) for worker in range(8)))


async def main(runtime: StoreRuntime) -> None:
    path, command, name, *rest = sys.argv[1:]
    store = SqliteTaskStore(path)
    async with store.opened(runtime):
        if command == "race":
            await race(store, name, int(rest[0]))
        else:
            await fill(store, runtime, name)


if __name__ == "__main__":
    run_trio(main)
