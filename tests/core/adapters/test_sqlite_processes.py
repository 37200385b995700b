"""Several processes with one SQLite file: races, watches, and processes that are killed."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_core.adapters import SqliteTaskStore
from mcp_core.tasks import TaskKey
from tests.core.adapters.opened_store import with_store
from tests.core.adapters.sqlite_worker import result_of
from tests.core.tasks.store_contract import MANY, new_record, quota

if TYPE_CHECKING:
    from tests.core.tasks.runtimes import StoreRuntime

pytestmark = pytest.mark.process

WORKER = Path(__file__).with_name("sqlite_worker.py")
CHANGES = 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


def start(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), str(path), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_racing_processes_have_distinct_serials(path: Path) -> None:
    """Three processes race for each serial: every one is won once, and the last one is stored."""

    async def create(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        await store.create(new_record(), **MANY)

    with_store(path, create)
    workers = [start(path, "race", name, str(CHANGES)) for name in "xyz"]
    won: list[tuple[int, str]] = []
    for worker in workers:
        output = worker.communicate()[0]
        assert worker.returncode == 0
        won += [(int(line.split()[0]), line.partition(" ")[2]) for line in output.splitlines()]
    assert sorted(serial for serial, _ in won) == list(range(2, 2 + 3 * CHANGES))

    async def check(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        record = await store.get(TaskKey("ada", "a"))
        assert record is not None
        assert (record.serial, record.message) == max(won)

    with_store(path, check)


def test_change_of_another_process_wakes_a_watch(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        await store.create(new_record(), **MANY)
        async with store.watch() as watch:
            with start(path, "race", "x", "1") as worker:
                assert await anext(watch) == TaskKey("ada", "a")
            assert worker.returncode == 0

    with_store(path, main)


def test_killed_process_leaves_whole_records_and_all_it_has_confirmed(path: Path) -> None:
    """Two processes write at once. One after the other is killed, at random moments."""
    confirmed: dict[str, str] = {}
    moments = random.Random(1)
    for turn in range(4):
        workers = [start(path, "fill", f"{name}{turn}") for name in "xy"]
        lines = moments.randrange(1, 120)
        for worker in workers:
            assert worker.stdout is not None
            for _ in range(lines):
                status, id = worker.stdout.readline().split()
                confirmed[id] = status
            worker.kill()
            rest, _ = worker.communicate()
            for line in rest.splitlines(keepends=True):
                if line.endswith("\n"):
                    status, id = line.split()
                    confirmed[id] = status
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    async def check(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        found = await store.page("", "", 100_000)
        assert {record.id for record in found} >= set(confirmed)
        for listed in found:
            record = await store.get(listed.key)
            assert record is not None
            if record.ended:
                assert bytes(record.result) == result_of(record.id)  # type: ignore[arg-type]
            else:
                assert confirmed.get(record.id) != "completed"
        # No lock is left.
        assert await store.create(new_record("new"), limits=quota(200_000, 200_000)) is None

    with_store(path, check)
