"""The upkeep of tasks: leases, expired and lost tasks, and stores that fail.

With both drivers, in memory and on SQLite. Their clocks jump, so nothing here waits; SQLite writes
in the thread of the event loop.
"""

from __future__ import annotations

import logging
import random
import re
import sqlite3
import time
from contextlib import AsyncExitStack, closing, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import pytest
from msgspec import Raw
from msgspec.structs import replace

from mcp_asyncio_shim._tasks import AsyncioTaskRuntime
from mcp_core.adapters import SqliteTaskStore, _sqlite_file
from mcp_core.registry import Context, Server, TaskOptions, Tasks
from mcp_core.tasks import TaskCall, TaskLimits, TaskRecord, TaskStoreError, encode_record
from mcp_core.types import ClientCapabilities
from mcp_trio._tasks import TrioTaskRuntime
from tests.asyncio_shim.conftest import _asyncio_has_nothing_to_complain_of  # noqa: F401
from tests.core.tasks.store_contract import quota
from tests.levels import long
from tests.task_play.lab import make_lab
from tests.task_play.stores import FaultyStore
from tests.task_play.wires import D, E
from tests.test_task_stores import KINDS, code_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.task_play.wires import WireClient

    Scene = Callable[[AsyncExitStack], Awaitable[None]]

T = TypeVar("T")

LIMITS: Final = TaskLimits(message_interval=0.001)
MINUTES: Final = 60.0
BUSY: Final = {D: -32000, E: 429}
LONGEST_PAUSE: Final = 30.0  # seconds, between two attempts to store an end


class Clock:
    """A wall clock that is set by `jump`, in seconds."""

    def __init__(self) -> None:
        self._now = time.time
        self.jump = 0.0

    def __call__(self) -> float:
        return self._now() + self.jump


class FaultySqliteStore(SqliteTaskStore):
    """A store in a file whose methods all fail while `is_failing`. `calls` are their names."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_failing = False
        self.calls: list[str] = []

    def _open_file(self) -> Any:
        if self.is_failing:
            raise TaskStoreError("the disk is on fire")
        return super()._open_file()


class ServersOfOneStore:
    """Opens servers with one store, and a client of each.

    Attributes:
        clock: the wall clock.
        path: the file of the store.
        version: the revision of the clients.
        store: the store of the server that was opened last.
    """

    def __init__(self, driver: str, kind: str, path: Path, clock: Clock) -> None:
        self.run_main, self._wire = KINDS[driver]
        self._memory = FaultyStore() if kind == "memory" else None
        self.clock = clock
        self.path = path
        self.version = E
        self.store: Any = None

    def run(self, scene: Scene, version: str = E) -> None:
        self.version = version

        async def main() -> None:
            async with AsyncExitStack() as stack:
                await scene(stack)

        self.run_main(main)

    def new_store(self) -> Any:
        return self._memory or FaultySqliteStore(self.path)

    async def open(
        self, stack: AsyncExitStack, server: Callable[[Tasks], Server] = make_lab, **limits: Any
    ) -> WireClient:
        """Start a server, and return its client."""
        self.store = self.new_store()
        known = {name: getattr(LIMITS, name) for name in LIMITS.__struct_fields__}
        tasks = Tasks(
            store=self.store,
            limits=TaskLimits(**{**known, **limits}),
            owner=lambda request, owner: "us",
        )
        client = await stack.enter_async_context(self._wire(self.version, server(tasks)))
        await client.request("tools/list")  # then the store is open
        return client

    async def fill(self, *records: TaskRecord) -> None:
        """Store records while a server is open."""
        if self._memory is not None:
            for record in records:
                assert await self.store.create(record, limits=quota(10**6, 10**6)) is None
            return
        with closing(sqlite3.connect(self.path)) as database, database:
            database.executemany(
                "INSERT INTO tasks (owner, id, serial, created, stale_at, sequence, writer, worker,"
                " record) VALUES (?, ?, 1, ?, ?, 1, '', ?, ?)",
                [
                    (
                        *record.key,
                        record.created,
                        record.expires,
                        record.worker,
                        encode_record(record),
                    )
                    for record in records
                ],
            )

    def fail(self, is_failing: bool = True) -> None:
        """Let every method of the store fail, or none."""
        if self._memory is None:
            self.store.is_failing = is_failing
        elif is_failing:
            names = {"create", "get", "change", "page", "remove_expired", "renew_lease", "lost"}
            self._memory.failing |= names
        else:
            self._memory.failing.clear()

    def record(self, id: str, **members: Any) -> TaskRecord:
        """Return the record of a task of a worker that is gone."""
        now = self.clock()
        known = {"created": now, "updated": now, "ttl": 3600.0, "worker": "gone", "owner": "us"}
        return TaskRecord(id=id, tool="copy", revision=self.version, **{**known, **members})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.time", clock)
    return clock


@pytest.fixture(params=["memory", "SQLite"])
def store_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(params=list(KINDS))
def play(
    request: pytest.FixtureRequest,
    store_kind: str,
    tmp_path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> ServersOfOneStore:
    async def run_here(self: object, function: Callable[[], T]) -> T:
        return function()

    for runtime in (TrioTaskRuntime, AsyncioTaskRuntime):
        monkeypatch.setattr(runtime, "in_store_thread", run_here)
    return ServersOfOneStore(request.param, store_kind, tmp_path / "tasks.db", clock)


versions = pytest.mark.parametrize("version", [D, E])
only_sqlite = pytest.mark.parametrize("store_kind", ["SQLite"], indirect=True)


def make_library(tasks: Tasks) -> Server:
    """Return a server that runs lost tasks again. Its tool `copies` says how often it did."""
    server = Server("library", tasks=tasks)
    copies: list[str] = []

    @server.tool(task=TaskOptions(rerun=True))
    async def copy(context: Context, name: str) -> str:
        """Copy a book."""
        copies.append(name)
        return f"A copy of {name}"

    @server.tool(name="copies")
    def count_copies() -> str:
        """Return how many books were copied, and how many of them are different."""
        return f"{len(copies)} {len(set(copies))}"

    return server


def call(name: str) -> TaskCall:
    params = b'{"name":"copy","arguments":{"name":"%b"}}' % name.encode()
    return TaskCall(params=Raw(params), capabilities=ClientCapabilities())


# A task that runs here is not lost.


@versions
@pytest.mark.parametrize("seconds", [10 * MINUTES, -10 * MINUTES])
def test_clock_that_jumps_leaves_running_tasks_to_their_worker(
    play: ServersOfOneStore, version: str, seconds: float
) -> None:
    """Jumps past the lease in both directions must not make a task look lost."""

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack)
        waiting = await client.create("wait")
        asking = await client.create("ask")
        for step in range(20):
            # After and before what is due, whenever that is.
            await anyio.sleep(3.0 + step / 7)
            play.clock.jump += seconds if step % 2 else -seconds
            await anyio.sleep(7.0)
        assert (await client.state(waiting))["status"] == "working"
        assert (await client.state(asking))["status"] == "input_required"
        assert "cancelled" not in await client.call("journal")
        client.answer = lambda request: {"action": "decline"}
        assert await client.text(asking) == "decline"

    play.run(scene, version)


@pytest.mark.parametrize(("seed", "jumps"), [(0, 10), *(long(seed, 40) for seed in range(3))])
def test_clock_that_jumps_takes_no_task_from_another_server(
    play: ServersOfOneStore, seed: int, jumps: int
) -> None:
    """Two servers share one store, as two processes of one machine do."""
    times = random.Random(seed)

    async def scene(stack: AsyncExitStack) -> None:
        clients = []
        tasks = []
        for _ in range(2):
            clients.append(await play.open(stack))
            await anyio.sleep(times.uniform(0, 10))
            tasks.append(await clients[-1].create("wait"))
        for _ in range(jumps):
            await anyio.sleep(times.uniform(0, 20))
            play.clock.jump += times.choice([10.0, -9.0, 1.0, -1.0]) * MINUTES
            play.clock.jump = min(play.clock.jump, 30 * MINUTES)  # tasks are kept for an hour
        for client, task_id in zip(clients, tasks, strict=True):
            assert (await client.state(task_id))["status"] == "working"
            assert "cancelled" not in await client.call("journal")

    play.run(scene)


@versions
def test_store_that_fails_for_minutes_loses_no_running_task(
    play: ServersOfOneStore, version: str
) -> None:
    """The store fails for longer than a lease: the server's own tasks aren't lost to itself."""

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack)
        task_id = await client.create("work", held=True)
        for seconds in (13.0, 2 * MINUTES):
            play.fail()
            await anyio.sleep(seconds)
            play.fail(False)
            await anyio.sleep(21.0)
            assert (await client.state(task_id))["status"] == "working"
        await client.go()
        assert await client.text(task_id) == "called by work"

    play.run(scene, version)


@pytest.mark.parametrize("times", [1, long(2)])
def test_store_that_fails_for_all_servers_takes_no_task_from_any(
    play: ServersOfOneStore, times: int
) -> None:
    """The other servers are silent because the store fails."""

    async def scene(stack: AsyncExitStack) -> None:
        first = await play.open(stack)
        stores = [play.store]
        task_id = await first.create("wait")
        second = await play.open(stack)
        stores.append(play.store)
        for is_failing in [True, False] * times:
            for play.store in stores:
                play.fail(is_failing)
            await anyio.sleep(1 * MINUTES)  # two leases
        assert (await second.state(task_id))["status"] == "working"
        assert "cancelled" not in await first.call("journal")

    play.run(scene)


@pytest.mark.parametrize("count", [20, long(120)])
def test_upkeep_of_many_running_tasks_is_three_calls(
    play: ServersOfOneStore, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, each task was read and written every ten seconds."""
    calls: list[str] = []

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack, per_principal=500)
        for _ in range(count):
            await client.create("wait")
        await anyio.sleep(1.0)
        for name in ("get", "change", "page", "remove_expired", "renew_lease", "lost"):
            spy_on(monkeypatch, play.store, name, calls)
        await anyio.sleep(10.0)
        assert sorted(calls) == ["lost", "remove_expired", "renew_lease"]
        assert calls[0] == "renew_lease"  # before anything is looked for
        del calls[:]
        await anyio.sleep(100.0)
        assert len(calls) == 30

    play.run(scene)


def spy_on(monkeypatch: pytest.MonkeyPatch, store: Any, name: str, calls: list[str]) -> None:
    method = getattr(store, name)

    def spy(*args: Any) -> Any:
        calls.append(name)
        return method(*args)

    monkeypatch.setattr(store, name, spy)


# Expired and lost tasks.


@versions
def test_expired_tasks_are_removed_by_the_next_upkeep(
    play: ServersOfOneStore, version: str
) -> None:
    """Before, only 100 were removed in ten seconds, however short their `ttl` was."""

    async def scene(stack: AsyncExitStack) -> None:
        await play.open(stack)
        await play.fill(*(play.record(f"{n}", ttl=1.0 + n % 5) for n in range(1_234)))
        await play.fill(play.record("kept"))
        play.clock.jump += 6.0
        await anyio.sleep(11.0)
        assert [record.id for record in await play.store.page("us", "", 9)] == ["kept"]

    play.run(scene, version)


@pytest.mark.parametrize("store_kind", ["memory"], indirect=True)
def test_record_of_a_cancelled_task_is_not_read_when_it_expires(
    play: ServersOfOneStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handler has ended, which was all that had to know what others do with the record."""
    calls: list[str] = []

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack)
        for tool in ("wait", "ask"):
            await client.request("tasks/cancel", {"taskId": await client.create(tool)})
        await client.until_journal("cancelled")
        await anyio.sleep(1.0)
        spy_on(monkeypatch, play.store, "get", calls)
        play.clock.jump += 3601.0
        await anyio.sleep(11.0)
        assert await play.store.page("us", "", 9) == []
        assert calls == []

    play.run(scene)


# The clients over HTTP here have no address, and so no quota of their own.
LIMITS_OF_TEN: dict[str, dict[str, Any]] = {
    "per_principal": {"per_principal": 10, "total": 10},
    "total": {"per_principal": 40, "total": 10},
}


@versions
@pytest.mark.parametrize("limit", LIMITS_OF_TEN)
def test_task_is_created_when_others_have_expired(
    play: ServersOfOneStore, version: str, limit: str
) -> None:
    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack, make_lab, **LIMITS_OF_TEN[limit])
        for _ in range(3):
            for _ in range(10):
                await client.create("wait")
            assert await code_of(client.create("wait")) == BUSY[version]
            play.clock.jump += 3601.0
        await client.create("work")
        await client.until_journal("after wait")  # their handlers have ended, too

    play.run(scene, version)


@versions
@pytest.mark.parametrize(("count", "failing"), [(150, 30), long(700, 150)])
def test_lost_tasks_run_again_within_a_minute(
    play: ServersOfOneStore, version: str, count: int, failing: int
) -> None:
    """The dead worker's calls run again exactly once; those that may not run twice fail."""

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack, make_library)
        await play.store.renew_lease("gone", 30.0)
        await play.fill(*(play.record(f"{n}", call=call(f"book {n}")) for n in range(count)))
        await play.fill(*(play.record(f"once {n}") for n in range(failing)))
        await anyio.sleep(29.0)
        assert await client.call("copies") == "0 0"
        await anyio.sleep(12.0)
        assert await client.call("copies") == f"{count} {count}"
        assert await client.text("0") == "A copy of book 0"
        state = await client.state(f"once {failing - 1}")
        assert state["status"] == "failed"
        assert "the process that ran this task is gone" in state["statusMessage"]
        await anyio.sleep(5 * MINUTES)
        assert await client.call("copies") == f"{count} {count}"

    play.run(scene, version)


def test_tasks_of_a_server_that_ended_run_again_at_once(play: ServersOfOneStore) -> None:
    async def scene(stack: AsyncExitStack) -> None:
        await play.open(stack, make_library)
        records = [play.record(f"{n}", call=call(f"book {n}")) for n in range(3)]
        await play.store.renew_lease("gone", 30.0)
        await play.fill(*records)
        await play.store.renew_lease("gone", 0.0)
        client = await play.open(stack, make_library)
        await anyio.sleep(0.1)
        assert await client.call("copies") == "3 3"

    play.run(scene)


@only_sqlite
def test_record_that_cannot_be_decoded_does_not_stop_the_upkeep(play: ServersOfOneStore) -> None:
    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack, make_library)
        await play.fill(*(play.record(f"{n}", call=call(f"{n}"), worker="") for n in range(9)))
        await play.fill(*(play.record(f"old {n}", ttl=1.0) for n in range(3)))
        with closing(sqlite3.connect(play.path)) as database, database:
            damaged = "UPDATE tasks SET record = x'ff' WHERE id IN ('0', '5', 'old 1')"
            assert database.execute(damaged).rowcount == 3
        play.clock.jump += 2.0
        await anyio.sleep(20.0)
        assert await client.call("copies") == "7 7"
        left = await play.store.page("us", "", 99)
        assert sorted(record.id for record in left) == ["1", "2", "3", "4", "6", "7", "8"]

    play.run(scene)


@versions
@only_sqlite
def test_damaged_result_is_not_sent(play: ServersOfOneStore, version: str) -> None:
    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack)
        task_id = await client.create("work")
        await client.until(task_id, "completed")
        with closing(sqlite3.connect(play.path)) as database, database:
            database.execute("UPDATE tasks SET result = x'7b22636f6e74656e74223a'")
        assert await code_of(client.state(task_id)) == -32602
        if version == D:
            assert await code_of(client.outcome(task_id)) == -32602

    play.run(scene, version)


# A store that fails.


@versions
def test_failing_store_is_one_line_for_each_cause_and_minute(
    play: ServersOfOneStore, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A broken disk must not fill the log: no traceback, and a count of what was left out."""

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack)
        running = await client.create("wait")
        held = await client.create("work", held=True)
        asking = await client.create("ask")
        await client.until(asking, "input_required")
        caplog.clear()
        play.fail()
        await client.go()
        for _ in range(14):
            for task_id in (running, held, asking):
                assert await code_of(client.state(task_id)) == -32603
            with suppress(Exception):
                await client.create("work")
            await anyio.sleep(9.0)
        lines = [record.getMessage() for record in caplog.records]
        assert len(lines) <= 3 * causes_of(lines)
        assert causes_of(lines) <= 8  # in memory each method has its own
        assert any("the disk is on fire" in line for line in lines)
        assert any("times more since the last line" in line for line in lines)
        assert not [record for record in caplog.records if record.exc_info]
        assert not [record for record in caplog.records if record.levelno < logging.WARNING]
        play.fail(False)
        await anyio.sleep(LONGEST_PAUSE)
        assert await client.text(held) == "called by work"

    play.run(scene, version)


def causes_of(lines: list[str]) -> int:
    return len({re.sub(r" \(\d+ times more.*", "", line) for line in lines})


@only_sqlite
@pytest.mark.parametrize("fault", ["removed", "locked", "full", "read-only", "damaged"])
def test_broken_file_fails_requests_and_the_server_goes_on(
    play: ServersOfOneStore,
    fault: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every fault but damage heals: the task's result arrives once the file works again."""
    monkeypatch.setattr(_sqlite_file, "_BUSY_TIMEOUT", 0.001)

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack)
        task_id = await client.create("work", held=True)
        await client.until_journal("work")
        await anyio.sleep(1.0)
        writer = play.store._file._writer
        other = stack.enter_context(closing(sqlite3.connect(play.path, isolation_level=None)))
        before = play.path.read_bytes()
        if fault == "removed":
            play.path.rename(play.path.with_name("moved.db"))
        elif fault == "locked":
            other.execute("BEGIN IMMEDIATE")
        elif fault == "full":
            writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            pages = writer.execute("PRAGMA page_count").fetchone()[0]
            writer.execute(f"PRAGMA max_page_count = {pages}")
        elif fault == "read-only":
            writer.execute("PRAGMA query_only = TRUE")
        else:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            play.path.write_bytes(before[:4096] + b"\xff" * (len(before) - 4096))
        await client.go()
        for _ in range(5):
            with suppress(Exception):
                await client.state(task_id)
            await anyio.sleep(10.0)
        assert "after work" in await client.call("journal")  # it answers
        assert not [record for record in caplog.records if record.exc_info]
        lines = [record.getMessage() for record in caplog.records]
        assert len(lines) == causes_of(lines)  # one for each, within a minute
        if fault == "removed":
            play.path.with_name("moved.db").rename(play.path)
        elif fault == "locked":
            other.execute("COMMIT")
        elif fault == "full":
            writer.execute("PRAGMA max_page_count = 100000")
        elif fault == "read-only":
            writer.execute("PRAGMA query_only = FALSE")
        else:
            return
        await anyio.sleep(LONGEST_PAUSE)
        assert await client.text(task_id) == "called by work"

    play.run(scene)


@versions
@pytest.mark.requirement("TSK-21", "TX-17")
def test_cancel_stops_the_handler_although_the_store_fails(
    play: ServersOfOneStore, version: str
) -> None:
    """2025-11-25 must store the status before it responds, so there the request itself fails."""

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack)
        task_id = await client.create("wait")
        play.fail()
        if version == D:
            # The status has to be "cancelled" before the response says so.
            cancelled = client.request("tasks/cancel", {"taskId": task_id})
            assert await code_of(cancelled) == -32603
        else:
            result = await client.request("tasks/cancel", {"taskId": task_id})
            assert result.keys() == {"resultType", "_meta"}
        await client.until_journal("cancelled, after wait")
        assert await code_of(client.state(task_id)) == -32603
        play.fail(False)
        await client.until(task_id, "cancelled")

    play.run(scene, version)


@versions
def test_cancel_by_another_owner_stops_nothing(play: ServersOfOneStore, version: str) -> None:
    """The owner is checked before the handler is stopped, also while the store can't be read."""

    async def scene(stack: AsyncExitStack) -> None:
        owner = "us"

        def make_shared(tasks: Tasks) -> Server:
            return make_lab(replace(tasks, owner=lambda request, known: owner))

        client = await play.open(stack, make_shared)
        task_id = await client.create("wait")
        owner = "them"
        for is_failing, code in ((False, -32602), (True, -32603)):
            play.fail(is_failing)
            cancelled = client.request("tasks/cancel", {"taskId": task_id})
            assert await code_of(cancelled) == code
        play.fail(False)
        owner = "us"
        assert (await client.state(task_id))["status"] == "working"
        assert "cancelled" not in await client.call("journal")

    play.run(scene, version)


@versions
def test_task_that_could_not_be_created_leaves_no_record(
    play: ServersOfOneStore, version: str
) -> None:
    """The record is stored, and then neither that nor its removal gets through."""

    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack)
        create = play.store.create

        async def create_and_fail(*args: Any, **options: Any) -> None:
            assert await create(*args, **options) is None
            play.fail()
            raise TaskStoreError("the disk caught fire")

        play.store.create = create_and_fail
        assert await code_of(client.create("work")) == -32603
        await anyio.sleep(30.0)
        play.fail(False)
        del play.store.create
        await anyio.sleep(10.0)
        assert await play.store.page("us", "", 1) == []

    play.run(scene, version)


@only_sqlite
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ten_thousand_lost_tasks_run_again_within_a_minute(play: ServersOfOneStore) -> None:
    async def scene(stack: AsyncExitStack) -> None:
        client = await play.open(stack, make_library)
        await play.store.renew_lease("gone", 30.0)
        await play.fill(*(play.record(f"{n}", call=call(f"{n}")) for n in range(10_000)))
        begin = time.perf_counter()
        await anyio.sleep(41.0)
        assert await client.call("copies") == "10000 10000"
        print(f"10,000 tasks in {time.perf_counter() - begin:.1f} s of a real clock")

    play.run(scene)
