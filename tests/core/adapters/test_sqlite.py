"""The store in an SQLite file: the contract, durability, cancellation, and every broken file."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
import tempfile
import threading
from contextlib import AsyncExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import trio
import trio.lowlevel
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace as with_members

from mcp_core.adapters import SqliteTaskStore, _sqlite, _sqlite_file
from mcp_core.tasks import (
    Cancel,
    SetMessage,
    TaskKey,
    TaskStoreError,
    encode_record,
    transition,
)
from tests.core.adapters.opened_store import with_store
from tests.core.tasks.runtimes import (
    RUNS,
    AsyncioStoreRuntime,
    TrioStoreRuntime,
    run_trio,
    together,
)
from tests.core.tasks.store_contract import (
    CONTRACT,
    LIMITS,
    MANY,
    NOW,
    Step,
    check_steps,
    completed,
    new_record,
    quota,
    run_check,
    same,
    steps,
)
from tests.harness.world.waiting import PATIENCE
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.tasks import TaskRecord
    from tests.core.tasks.runtimes import StoreRuntime
    from tests.core.tasks.store_contract import Stores

T = TypeVar("T")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("check", CONTRACT)
def test_sqlite_store_keeps_the_contract(
    run: Callable[..., None], check: Callable[[Stores], Awaitable[object]], path: Path
) -> None:
    run(lambda runtime: run_check(check, lambda: SqliteTaskStore(path), runtime))


@given(script=steps)
@hypothesis_settings(max_examples=4)
def test_sqlite_store_is_a_dict(script: list[Step]) -> None:
    check_script(script)


@pytest.mark.long
@given(script=steps)
@hypothesis_settings(max_examples=100)
def test_sqlite_store_is_a_dict_long(script: list[Step]) -> None:
    """More scripts than the default run has, to find what only a long one breaks."""
    check_script(script)


def check_script(script: list[Step]) -> None:
    """Play a script with a store in a new file and with a dict, and compare them."""
    with tempfile.TemporaryDirectory() as directory:
        run_trio(
            lambda runtime: run_check(
                lambda stores: check_steps(stores, script),
                lambda: SqliteTaskStore(Path(directory, "tasks.db")),
                runtime,
            )
        )


def open_error(path: Path) -> str:
    """Return the text of the error with which the store cannot be opened."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        raise AssertionError("it was opened")

    with pytest.raises(TaskStoreError) as caught:
        with_store(path, main)
    assert str(path) in str(caught.value)
    return str(caught.value)


def fill(path: Path, *records: TaskRecord) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        for record in records:
            await store.create(record, **MANY)

    with_store(path, main)


# The file.


VERSION_1 = (Path(__file__).parents[2] / "stored" / "tasks.sql").read_text("utf-8")


def usage(path: Path) -> dict[str, tuple[int, int]]:
    """Return what the file says that each quota key uses, and check it against its rows."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT quota_key, tasks, size FROM usage").fetchall()
        counted = connection.execute(
            "SELECT quota_key, count(*), sum(size) FROM tasks GROUP BY quota_key"
            " UNION SELECT 'all', count(*), coalesce(sum(size), 0) FROM tasks"
        ).fetchall()
    assert sorted(rows) == sorted(counted)
    return {key: (tasks, size) for key, tasks, size in rows}


def test_file_of_version_1_gets_what_it_lacks_once(path: Path) -> None:
    """Only the size of its tasks is known: they count for all, and for no user."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
        (size,) = connection.execute("SELECT length(record) + length(result) FROM tasks").fetchone()
    path.chmod(0o600)
    for _ in range(2):
        fill(path)
        assert usage(path) == {"all": (1, size), "": (1, size)}
    fill(path, new_record(quota_key="ada", size=7))
    assert usage(path)["all"] == (2, size + 7)


def test_file_that_has_a_part_of_a_later_version_gets_the_rest(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
        connection.execute("ALTER TABLE tasks ADD COLUMN quota_key TEXT NOT NULL DEFAULT ''")
        connection.execute("ALTER TABLE tasks ADD COLUMN size INTEGER NOT NULL DEFAULT 0")
    path.chmod(0o600)
    fill(path)
    assert usage(path)["all"] == (1, 0)


def test_usage_follows_every_write(path: Path) -> None:
    """The quota reads a table of sums: a write that loses its race must not change it."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        records = [new_record(id, quota_key=id, size=10) for id in "abc"]
        for record in records:
            assert await store.create(record, **MANY) is None
        assert usage(path) == {"all": (3, 30), "a": (1, 10), "b": (1, 10), "c": (1, 10)}
        after = with_members(records[0], serial=2, size=4)
        assert await store.change(after.key, 1, after)
        assert not await store.change(after.key, 1, with_members(after, size=99))
        assert await store.change(records[1].key, 1, None)
        assert not await store.change(records[1].key, 1, None)
        assert usage(path) == {"all": (2, 14), "a": (1, 4), "c": (1, 10)}
        assert await store.change(after.key, 2, None)
        assert await store.change(records[2].key, 1, None)
        assert usage(path) == {"all": (0, 0)}

    with_store(path, main)


@pytest.mark.parametrize("name", ["", ":memory:"])
def test_path_without_file_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="use MemoryTaskStore"):
        SqliteTaskStore(name)


def test_relative_path_begins_at_the_directory_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteTaskStore("tasks.db")
    monkeypatch.chdir("/")
    assert store.path == tmp_path / "tasks.db"
    assert repr(store) == f"SqliteTaskStore({str(tmp_path / 'tasks.db')!r})"


def test_files_are_readable_by_their_user_only(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        await store.create(new_record(), **MANY)
        names = {file.name for file in path.parent.iterdir()}
        assert names == {"tasks.db", "tasks.db-wal", "tasks.db-shm"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}

    mask = os.umask(0)
    try:
        with_store(path, main)
    finally:
        os.umask(mask)
    assert [file.name for file in path.parent.iterdir()] == ["tasks.db"]  # one file


def test_link_to_a_file_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    fill(link, new_record())
    assert path.is_file()


def test_file_open_to_others_is_refused(path: Path) -> None:
    path.touch()
    path.chmod(0o640)
    assert "chmod 600" in open_error(path)


def test_directory_writable_by_others_is_refused(path: Path) -> None:
    path.parent.chmod(0o770)
    assert "chmod go-w" in open_error(path)
    assert not path.exists()


@pytest.mark.parametrize("owned", ["file", "directory"])
def test_file_of_another_user_is_refused(
    path: Path, owned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch(0o600)
    if owned == "directory":
        monkeypatch.setattr(_sqlite_file, "_check_directory", _sqlite_file._check_directory)
    else:
        monkeypatch.setattr(_sqlite_file, "_check_directory", lambda path: None)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert "user" in open_error(path)


def test_directory_that_is_missing_is_named(path: Path) -> None:
    assert "No such file or directory; name a file in a directory" in open_error(path / "x.db")


def test_directory_in_place_of_a_file_is_refused(path: Path) -> None:
    path.mkdir()
    assert "not a regular file" in open_error(path)


def test_read_only_file_is_refused(path: Path) -> None:
    fill(path)
    path.chmod(0o400)
    assert "read-only" in open_error(path)


def make_newer(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def make_database_of_others(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")


def make_no_database(path: Path) -> None:
    path.write_bytes(b"no database" * 1_000)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (make_newer, "its tables have version 99"),
        (make_database_of_others, "another program"),
        (make_no_database, "damaged, or no SQLite database"),
    ],
)
def test_file_that_is_not_ours_is_left_alone(
    make: Callable[[Path], None], error: str, path: Path
) -> None:
    make(path)
    path.chmod(0o600)
    before = path.read_bytes()
    assert error in open_error(path)
    assert path.read_bytes() == before


def test_locked_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sqlite_file, "_BUSY_TIMEOUT", 0.05)
    fill(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        assert "another process has locked it" in open_error(path)
    fill(path)


def test_file_system_without_write_ahead_log_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = _sqlite_file.TaskFile._one

    def answer(self: _sqlite_file.TaskFile, connection: Any, query: str, values: Any = ()) -> Any:
        return ("delete",) if "journal_mode" in query else one(self, connection, query, values)

    monkeypatch.setattr(_sqlite_file.TaskFile, "_one", answer)
    assert "does not support a write-ahead log (WAL); use a local disk" in open_error(path)


def test_many_stores_open_a_new_file_at_once(path: Path) -> None:
    """Each of them wants to create the tables. More than one attempt, because it is a race."""
    ready = threading.Barrier(4)
    failures: list[BaseException] = []
    paths = [path.with_name(f"{number}.db") for number in range(10)]

    def run() -> None:
        for path in paths:
            ready.wait()
            try:
                _sqlite_file.TaskFile(path).close()
            except BaseException as exc:  # noqa: BLE001 - the test examines it
                failures.append(exc)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Faults while the file is open.


def move(path: Path, name: str) -> Path:
    """Rename a file in its directory."""
    return path.rename(path.with_name(name))


async def fails(call: Awaitable[object], text: str) -> None:
    with pytest.raises(TaskStoreError, match=text):
        await call


def test_file_removed_in_use_fails_each_method(path: Path) -> None:
    """A replaced file must fail too, and the original one works again without a restart."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        record = new_record()
        await store.create(record, **MANY)
        moved = move(path, "other.db")
        for replace in (True, False):
            await fails(store.create(new_record("b"), **MANY), "removed or replaced.*restart")
            await fails(store.change(record.key, 1, None), "removed or replaced")
            await fails(store.get(record.key), "removed or replaced")
            await fails(store.page("ada", "", 1), "removed or replaced")
            await fails(store.remove_expired(NOW, 1), "removed or replaced")
            await fails(store.renew_lease("w1", 1.0), "removed or replaced")
            await fails(store.lost(1), "removed or replaced")
            if replace:
                os.close(os.open(path, os.O_CREAT))
        move(moved, path.name)
        assert await store.get(TaskKey("ada", "b")) is None
        assert await store.create(new_record("b"), **MANY) is None

    with_store(path, main)


def test_full_disk_fails_the_write_and_nothing_else(path: Path) -> None:
    """Records that fit are still written, and the store works as before once there is space."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        record = new_record()
        await store.create(record, **MANY)
        assert store._file is not None
        pages = store._file._writer.execute("PRAGMA page_count").fetchone()[0]
        store._file._writer.execute(f"PRAGMA max_page_count = {pages}")
        large = completed(record, b'"%b"' % (b"x" * 100_000))
        await fails(store.change(record.key, 1, large), "the disk is full.*free space")
        assert same(await store.get(record.key), record)
        small = transition(record, Cancel(), NOW, LIMITS)
        assert await store.change(record.key, 1, small)
        assert same(await store.get(record.key), small)
        store._file._writer.execute("PRAGMA max_page_count = 1000000")
        assert await store.create(new_record("b"), **MANY) is None

    with_store(path, main)


def test_damaged_file_fails_with_the_cure(path: Path) -> None:
    fill(path, *(new_record(f"{number}", tool="x" * 1_000) for number in range(100)))
    data = bytearray(path.read_bytes())
    page = 4096
    assert len(data) > 10 * page
    data[page:] = b"\xff" * (len(data) - page)
    path.write_bytes(data)

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        await fails(store.get(TaskKey("ada", "1")), "damaged.*restore it, or remove it")
        await fails(store.create(new_record("new"), **MANY), "damaged")

    with_store(path, main)


DAMAGES = {
    "no task": "record = x'7b7d'",
    "no JSON": "record = x'7b'",
    "not UTF-8": "record = CAST(x'7b22ff' AS TEXT)",
    "a number": "record = 5",
    "another id": 'record = replace(CAST(record AS TEXT), \'"id":"b"\', \'"id":"c"\')',
    "another serial": "serial = 7",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("found_by", ["get", "page", "lost"])
def test_damaged_record_is_removed_and_others_are_found(
    path: Path, damage: str, found_by: str
) -> None:
    """The damaged record leaves the quota as well, and the log says so in one line."""
    fill(path, *(new_record(id, worker="") for id in "abcd"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE tasks SET {damage} WHERE id = 'b'")

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        if found_by == "get":
            assert await store.get(TaskKey("ada", "b")) is None
        elif found_by == "page":
            # Neither is the page the last one because of it, nor longer.
            assert [record.id for record in await store.page("ada", "", 2)] == ["a", "c"]
        else:
            assert {record.id for record in await store.lost(10)} == {"a", "c", "d"}
        await until_settled(store)
        (warning,) = runtime.warnings
        assert "records that are no tasks, which are removed" in warning
        assert await store.create(new_record("b"), limits=quota(4, 4)) is None

    with_store(path, main)


@pytest.mark.parametrize("result", ["x'7b'", "x'7b7d7d'", "x'7b22ff223a317d'", "'[]'", "1"])
def test_damaged_result_is_never_returned(path: Path, result: str) -> None:
    fill(path, completed(new_record(serial=0)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE tasks SET result = {result}")

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert await store.get(TaskKey("ada", "a")) is None
        await until_settled(store)
        assert await store.page("ada", "", 1) == []
        assert "the result is not a JSON object" in runtime.warnings[0]

    with_store(path, main)


async def until_settled(store: SqliteTaskStore) -> None:
    """Wait until background tasks have written what they want to."""
    with trio.fail_after(PATIENCE):
        await trio.testing.wait_all_tasks_blocked()
        while store._writing or store._vacuuming:  # noqa: ASYNC110 - in a thread
            await trio.sleep(0.001)


def check_damaged_file(damage: list[tuple[int, int]]) -> None:
    """Assert that a file with other bytes at some places fails with our error, or works."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        for id in "abc":
            with suppress(TaskStoreError):
                record = await store.get(TaskKey("ada", id))
                if record is not None and record.ended:
                    assert isinstance(record.result, Raw)
                    json.loads(bytes(record.result))
        for call in (
            lambda: store.page("ada", "", 10),
            lambda: store.renew_lease("w2", 30.0),
            lambda: store.lost(10),
            lambda: store.create(new_record("d"), **MANY),
            lambda: store.change(TaskKey("ada", "a"), 1, None),
            lambda: store.remove_expired(NOW + 10_000, 10),
        ):
            with suppress(TaskStoreError):
                await call()
        async with AsyncExitStack() as stack:
            with suppress(TaskStoreError):
                await stack.enter_async_context(store.watch())
                store._look()
        with trio.fail_after(PATIENCE):
            await until_settled(store)

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "tasks.db")
        records = [
            new_record("a"),
            completed(new_record("b", serial=0)),
            new_record("c", worker=""),
        ]
        fill(path, *records)
        data = bytearray(path.read_bytes())
        for place, byte in damage:
            data[place % len(data)] = byte
        path.write_bytes(data)
        with suppress(TaskStoreError):
            with_store(path, main)


DAMAGE = st.lists(
    # Most of a file is empty: the first page has the tables, and records end their pages.
    st.tuples(
        st.integers(0, 110) | st.integers(0, 2**16) | st.integers(-600, -1), st.integers(0, 255)
    ),
    min_size=1,
    max_size=8,
)


@given(DAMAGE)
@example([(2541, 128)])  # in the name of a column, which SQLite's message quotes
@hypothesis_settings(max_examples=7, deadline=None)
def test_file_damaged_anywhere_fails_with_the_error_of_stores(
    damage: list[tuple[int, int]],
) -> None:
    check_damaged_file(damage)


@pytest.mark.slow
@pytest.mark.timeout(600)
@given(DAMAGE)
@hypothesis_settings(max_examples=1_500, deadline=None)
def test_file_damaged_anywhere_fails_with_the_error_of_stores_long(
    damage: list[tuple[int, int]],
) -> None:
    check_damaged_file(damage)


def test_damaged_record_that_cannot_be_removed_is_one_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only file brings the same damage at each read: the log counts it per minute."""
    fill(path, new_record())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE tasks SET record = x'7b7d'")

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert store._file is not None

        def fail(*args: object, **options: object) -> None:
            raise TaskStoreError("the file is read-only")

        monkeypatch.setattr(store._file, "write", fail)
        for _ in range(50):
            assert await store.get(TaskKey("ada", "a")) is None
            await until_settled(store)
        assert len(runtime.warnings) == 1
        runtime.ahead += 60
        assert await store.get(TaskKey("ada", "a")) is None
        await until_settled(store)
        assert "(49 times more since the last line)" in runtime.warnings[1]

    with_store(path, main)


# Older files.


V1 = Path(__file__).parents[2] / "stored" / "tasks_of_workers.sql"


def test_file_of_an_older_version_keeps_its_tasks(path: Path) -> None:
    """Leases of tasks become leases of workers, which count as alive for a while."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert {record.id for record in await store.lost(10)} == {"given"}
        records = {record.id: record for record in await store.page("", "", 10)}
        assert {id: record.status for id, record in records.items()} == {
            "ended": "completed",
            "given": "working",
            "held": "input_required",
        }
        runtime.ahead += 15
        assert {record.id for record in await store.lost(10)} == {"given"}
        runtime.ahead += 15
        assert {record.id for record in await store.lost(10)} == {"given", "held"}
        assert [key.id for key in await store.remove_expired(3e9, 1)] == ["held"]
        await until_settled(store)

    for _ in range(2):  # a file that was migrated is not migrated again
        with closing(sqlite3.connect(path)) as database:
            database.executescript(V1.read_text("utf-8"))
        path.chmod(0o600)
        with_store(path, main)
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("PRAGMA user_version").fetchone() == (2,)
            assert database.execute("PRAGMA auto_vacuum").fetchone() == (2,)  # incremental
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        path.unlink()


def test_record_that_cannot_be_migrated_is_removed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(V1.read_text("utf-8"))
        with database:
            database.execute("UPDATE tasks SET record = x'00' WHERE id = 'held'")
    path.chmod(0o600)

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert len(await store.page("", "", 10)) == 2
        await until_settled(store)
        assert await store.create(new_record("x"), limits=quota(3, 3)) is None

    with_store(path, main)


def test_half_migrated_file_is_migrated_on(path: Path) -> None:
    """As another branch of this project, or a later version, may have left it."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(V1.read_text("utf-8"))
        database.execute("CREATE TABLE workers (name TEXT PRIMARY KEY, renewal, seconds)")
        database.execute("ALTER TABLE tasks ADD COLUMN other INTEGER NOT NULL DEFAULT 0")
    path.chmod(0o600)
    fill(path, new_record("x"))

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert len(await store.page("", "", 10)) == 3
        await store.renew_lease("w1", 30.0)
        assert {record.id for record in await store.lost(10)} == {"given"}

    with_store(path, main)


def test_creation_and_end_of_a_task_outlive_a_failure_of_the_machine(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client knows them. Other changes need no sync of the disk, which takes milliseconds."""
    write = _sqlite_file.TaskFile.write
    durable: list[bool] = []

    def recorded(file: Any, operations: Any, **options: Any) -> list[Any]:
        durable.append(options["durable"])
        return write(file, operations, **options)

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        durable.clear()
        first = new_record()
        assert await store.create(first, **MANY) is None
        assert durable == [True]
        later = transition(first, SetMessage("half"), NOW, LIMITS)
        assert await store.change(first.key, first.serial, later)
        assert durable == [True, False]
        ended = transition(later, Cancel("by request"), NOW, LIMITS)
        assert await store.change(first.key, later.serial, ended)
        assert durable == [True, False, True]
        assert await store.change(first.key, ended.serial, None)
        await store.renew_lease("w1", 30.0)
        assert durable == [True, False, True, False, False]

    monkeypatch.setattr(_sqlite_file.TaskFile, "write", recorded)
    with_store(path, main)


# Vacuum.


def test_file_shrinks_when_tasks_expire(path: Path) -> None:
    """The space goes back in small transactions, so that other writes get their turn."""
    result = b'{"a":"%b"}' % (b"x" * 250_000)
    count = 14

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        for number in range(count):
            record = new_record(str(number))
            await store.create(record, **MANY)
            assert await store.change(record.key, 1, completed(record, result))
        while await store.remove_expired(NOW + 9_999, 10):
            pass
        statements = spy_on_statements(store)
        await store.remove_expired(NOW + 9_999, 10)
        await until_settled(store)
        assert statements.count("COMMIT") > 3  # in steps, between which tasks are written
        assert await store.create(new_record(), **MANY) is None

    with_store(path, main)
    assert path.stat().st_size < count * len(result) / 4


def test_small_file_is_not_vacuumed(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        await store.create(new_record(ttl=1.0), **MANY)
        statements = spy_on_statements(store)
        while await store.remove_expired(NOW + 9, 10):
            pass
        await until_settled(store)
        assert not [text for text in statements if "vacuum" in text]

    with_store(path, main)


def test_write_waits_for_another_process(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(store.create, new_record(), **MANY))
                while store._queued or not store._writing:
                    await trio.lowlevel.checkpoint()
                # Readers do not wait for writers.
                assert await store.get(TaskKey("ada", "a")) is None
                other.execute("COMMIT")
            assert await store.get(TaskKey("ada", "a")) is not None

    with_store(path, main)


def test_write_to_locked_file_fails_after_the_timeout(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite_file, "_BUSY_TIMEOUT", 0.05)

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await fails(store.create(new_record(), **MANY), "another process has locked it")
            other.execute("COMMIT")
        assert await store.create(new_record(), **MANY) is None

    with_store(path, main)


def test_reader_never_blocks_the_event_loop(path: Path) -> None:
    with closing(_sqlite_file.TaskFile(path)) as file:
        assert file._reader.execute("PRAGMA busy_timeout").fetchone() == (0,)
        assert file._writer.execute("PRAGMA busy_timeout").fetchone() == (5_000,)


def test_read_of_busy_file_waits_in_the_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer never makes a reader wait; another program may take the file for itself."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        record = new_record()
        await store.create(record, **MANY)
        file = store._file
        assert file is not None
        select = file._select

        def busy(query: str, values: Any, *, wait: bool = False) -> Any:
            if not wait:
                raise _sqlite_file.FileIsBusy
            return select(query, values, wait=True)

        monkeypatch.setattr(file, "_select", busy)
        assert same(await store.get(record.key), record)
        assert [found.id for found in await store.page("ada", "", 10)] == ["a"]
        assert [found.id for found in await store.lost(10)] == []
        assert await store.remove_expired(NOW, 10) == []
        with pytest.raises(KeyError):
            await store.page("ada", "x", 1)
        async with store.watch():
            store._look()

    with_store(path, main)


def test_operation_that_fails_leaves_others_of_its_transaction(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        await store.create(new_record("a"), **MANY)

        async def create(id: str) -> str:
            try:
                return str(await store.create(new_record(id), **MANY))
            except TaskStoreError:
                return "failed"

        results = await together(runtime, *(partial(create, id) for id in ("b", "a", "c")))
        assert results == ["None", "failed", "None"]

    with_store(path, main)


def test_write_that_raises_leaves_no_transaction(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        def broken(sequence: int) -> None:
            raise ZeroDivisionError

        with pytest.raises(TaskStoreError, match="ZeroDivisionError"):
            await store._write(broken, durable=True)
        assert await store.create(new_record(), **MANY) is None

    with_store(path, main)


# Durability, and how writes are put together.


def spy_on_statements(store: SqliteTaskStore) -> list[str]:
    statements: list[str] = []
    assert store._file is not None
    store._file._writer.set_trace_callback(statements.append)
    return statements


@pytest.mark.parametrize(
    ("after", "mode"),
    [
        (completed(new_record()), "FULL"),
        (transition(new_record(), Cancel(), NOW, LIMITS), "FULL"),
        (transition(new_record(), SetMessage("x"), NOW, LIMITS), "NORMAL"),
        (None, "NORMAL"),
    ],
)
def test_ended_task_waits_for_the_disk_and_a_message_does_not(
    path: Path, after: TaskRecord | None, mode: str
) -> None:
    """Losing an end would run a handler twice; a message isn't worth an fsync."""
    modes = {1: "NORMAL", 2: "FULL"}

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert store._file is not None

        def synchronous() -> str:
            assert store._file is not None
            return modes[store._file._writer.execute("PRAGMA synchronous").fetchone()[0]]

        await store.create(new_record(), **MANY)
        assert synchronous() == "FULL"
        assert await store.change(TaskKey("ada", "a"), 1, after)
        assert synchronous() == mode
        await store.create(new_record("b"), **MANY)
        assert synchronous() == "FULL"

    with_store(path, main)


def test_transaction_with_one_durable_write_waits_for_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes that wait for the thread share a transaction, and the most careful one decides."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        record = new_record()
        await store.create(record, **MANY)
        file = store._file
        assert file is not None
        stopped = StoppedThread(store, monkeypatch)
        second = transition(record, SetMessage("2"), NOW, LIMITS)
        third = transition(second, SetMessage("3"), NOW, LIMITS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.change, record.key, 1, second)
            await stopped.wait_until_reached()
            nursery.start_soon(partial(store.create, new_record("b"), **MANY))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(store.change, record.key, 2, third)
            await trio.testing.wait_all_tasks_blocked()
            assert len(store._queued) == 2
            stopped.go.set()
        assert file._writer.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL

    with_store(path, main)


def test_writes_that_wait_become_one_transaction(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        statements = spy_on_statements(store)
        results = await together(
            runtime,
            *(partial(store.create, new_record(str(number)), **MANY) for number in range(64)),
        )
        assert results == [None] * 64
        # The first may go alone, while the others arrive.
        assert statements.count("COMMIT") <= 2

    with_store(path, main)


def test_transaction_has_256_writes_at_most(path: Path) -> None:
    """Other processes wait for its end, and their writes fail if that takes too long."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        statements = spy_on_statements(store)
        calls = (partial(store.renew_lease, str(number), 30) for number in range(600))
        assert await together(runtime, *calls) == [None] * 600
        assert statements.count("COMMIT") >= 3

    with_store(path, main)


def test_writes_of_a_cancelled_task_are_reported_by_itself(path: Path) -> None:
    """Its loop may not run long enough for another task to report them."""

    class EndedError(BaseException):
        pass

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        async def cancelled(function: object) -> None:
            raise EndedError

        changed: Any = runtime
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(changed, "in_store_thread", cancelled)
            patch.setattr(changed, "call_soon", lambda function: None)
            patch.setattr(store, "_writing", True)  # by the task that this plays
            write: Any = _sqlite._Write(lambda file: 7, runtime.new_event(), True, None)
            store._queued.append(write)
            with pytest.raises(EndedError):
                await store._write_queued(runtime)
        assert write.done.is_set()

    with_store(path, main)


def test_results_are_not_read_by_page(path: Path) -> None:
    fill(path, completed(new_record(serial=0)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE tasks SET result = 'no blob and no JSON'")

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert len(await store.page("ada", "", 1)) == 1

    with_store(path, main)


@pytest.mark.parametrize("count", [1_000, long(10_000)])
def test_no_step_of_the_upkeep_of_many_tasks_is_long(path: Path, count: int) -> None:
    """At most two statements, beside those that number a transaction, and 200 records."""
    fill(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany(
            "INSERT INTO tasks (owner, id, serial, created, stale_at, sequence, writer, worker,"
            " record) VALUES (?, ?, 1, ?, ?, 1, '', ?, ?)",
            (
                (*record.key, record.created, record.expires, "w1", encode_record(record))
                for record in (new_record(str(number)) for number in range(count))
            ),
        )

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        statements: list[str] = []
        file = store._file
        assert file is not None
        for connection in file._connections:
            connection.set_trace_callback(statements.append)

        async def step(call: Awaitable[T]) -> T:
            del statements[:]
            found = await call
            numbering = ("BEGIN", "COMMIT", "UPDATE last", "SELECT CAST(sequence", "PRAGMA sync")
            own = [text for text in statements if not text.startswith(numbering)]
            assert len(own) <= 2, own
            return found

        await step(store.renew_lease("w1", 30.0))
        assert await step(store.lost(100)) == []
        assert await step(store.remove_expired(NOW, 100)) == []
        # What is lost or expired is taken in steps, too.
        await step(store.renew_lease("w1", 0.0))
        assert len(await step(store.lost(100))) == 100

    with_store(path, main)


def test_worker_without_tasks_is_forgotten_at_the_renewal_of_another(path: Path) -> None:
    """Each start of a server is a new worker, so the file would grow for ever."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        await store.create(new_record(), **MANY)  # of w1
        for worker in "w1", "w2", "w3":
            await store.renew_lease(worker, 30.0)
        assert store._file is not None
        names = store._file._writer.execute("SELECT name FROM workers ORDER BY name").fetchall()
        assert [name for (name,) in names] == ["w1", "w3"]

    with_store(path, main)


def test_queries_use_an_index(path: Path) -> None:
    """The query plans allow no scan of the tasks and no sort, however many there are."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        statements: list[str] = []
        assert store._file is not None
        for connection in store._file._connections:
            connection.set_trace_callback(statements.append)
        await store.create(new_record(), **MANY)
        await store.create(new_record("b"), **MANY)
        await store.get(TaskKey("ada", "a"))
        await store.page("ada", "a", 10)
        await store.renew_lease("w2", 30.0)
        await store.lost(10)
        await store.renew_lease("w1", 0.0)
        await store.lost(10)
        await store.create(new_record("c", ttl=1.0), **MANY)
        await store.remove_expired(NOW + 9, 10)
        store._file.changed_by_others(0)
        await store.change(TaskKey("ada", "a"), 1, None)
        plans = [
            row[3]
            for statement in statements
            if statement.split()[0] in ("SELECT", "INSERT", "DELETE", "UPDATE", "WITH")
            for row in store._file._writer.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        ]
        assert len(plans) > 8
        scans = [plan for plan in plans if plan.startswith("SCAN") and "INDEX" not in plan]
        assert {plan for plan in scans if "CONSTANT" not in plan} <= {
            "SCAN last",
            "SCAN held",
            "SCAN workers",
        }
        assert not [plan for plan in plans if "TEMP B-TREE FOR ORDER BY" in plan]

    with_store(path, main)


# Cancellation.


class StoppedThread:
    """Stops the writing thread before its transaction, until `go` is set."""

    def __init__(self, store: SqliteTaskStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Event()
        self.go = threading.Event()
        file = store._file
        assert file is not None
        write = file.write

        def stop(*args: Any, **options: Any) -> Any:
            self.reached.set()
            assert self.go.wait(PATIENCE)
            return write(*args, **options)

        monkeypatch.setattr(file, "write", stop)

    async def wait_until_reached(self) -> None:
        assert await trio.to_thread.run_sync(self.reached.wait, PATIENCE)


def test_cancelled_caller_leaves_its_write_and_no_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write is under way in a thread: it is completed, as are those that waited for it."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        stopped = StoppedThread(store, monkeypatch)
        async with trio.open_nursery() as nursery:
            for id in "abc":
                nursery.start_soon(partial(store.create, new_record(id), **MANY))
            await stopped.wait_until_reached()
            nursery.cancel_scope.cancel()
        assert await store.get(TaskKey("ada", "a")) is None
        stopped.go.set()
        assert await store.create(new_record("d"), **MANY) is None
        assert len(await store.page("ada", "", 10)) == 4
        assert not store._queued
        assert not store._written

    with_store(path, main)


@pytest.mark.parametrize("queued", [False, True])
def test_store_left_with_a_thread_writing_waits_for_it(
    path: Path, queued: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Background tasks may end after the store is closed."""

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            store = SqliteTaskStore(path)
            async with store.opened(TrioStoreRuntime(nursery)):
                stopped = StoppedThread(store, monkeypatch)
                nursery.start_soon(partial(store.create, new_record("a"), **MANY))
                await stopped.wait_until_reached()
                if queued:
                    nursery.start_soon(partial(store.create, new_record("b"), **MANY))
                    await trio.testing.wait_all_tasks_blocked()
                threading.Timer(0.05, stopped.go.set).start()

    trio.run(run)

    async def check(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        found = [record.id for record in await store.page("ada", "", 10)]
        assert found == (["a", "b"] if queued else ["a"])

    with_store(path, check)


def with_cancelled_store(
    path: Path, main: Callable[[SqliteTaskStore, trio.Nursery], Awaitable[None]]
) -> None:
    """Run `main`, which cancels the nursery of itself and of the background tasks."""

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            store = SqliteTaskStore(path)
            async with store.opened(TrioStoreRuntime(nursery)):
                await main(store, nursery)

    trio.run(run)


def test_store_closed_with_a_thread_writing_waits_for_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends with a write in the thread and another in the queue: both are written."""

    async def main(store: SqliteTaskStore, nursery: trio.Nursery) -> None:
        stopped = StoppedThread(store, monkeypatch)
        nursery.start_soon(partial(store.create, new_record("a"), **MANY))
        await stopped.wait_until_reached()
        nursery.start_soon(partial(store.create, new_record("b"), **MANY))
        await trio.testing.wait_all_tasks_blocked()
        assert len(store._queued) == 1
        threading.Timer(0.05, stopped.go.set).start()
        nursery.cancel_scope.cancel()
        await trio.lowlevel.checkpoint()

    with_cancelled_store(path, main)

    async def check(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert [record.id for record in await store.page("ada", "", 10)] == ["a", "b"]

    with_store(path, check)


def test_write_whose_background_task_never_ran_is_written_when_the_store_is_left(
    path: Path,
) -> None:
    """On asyncio a task that is cancelled before its first step does nothing at all."""

    async def main(runtime: StoreRuntime) -> None:
        store = SqliteTaskStore(path)
        created: list[object] = []

        async def create() -> None:
            created.append(await store.create(new_record("a"), **MANY))

        async with store.opened(runtime):
            runtime.start_soon(create)
            runtime.start_soon = lambda function: None  # type: ignore[method-assign]
            while not store._queued:
                await runtime.checkpoint()
        while not created:
            await runtime.checkpoint()
        assert created == [None]

    run_trio(main)

    async def check(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        assert [record.id for record in await store.page("ada", "", 10)] == ["a"]

    with_store(path, check)


def test_write_after_the_end_of_background_tasks_is_written_at_once(path: Path) -> None:
    """The last status of a task is stored while the server is cancelled."""
    found: list[TaskRecord | None] = []

    async def main(store: SqliteTaskStore, nursery: trio.Nursery) -> None:
        record = new_record()
        await store.create(record, **MANY)
        nursery.cancel_scope.cancel()
        with trio.move_on_after(5, shield=True):
            assert await store.change(record.key, 1, completed(record))
            found.append(await store.get(record.key))

    with_cancelled_store(path, main)
    assert [record and record.status for record in found] == ["completed"]


def test_asyncio_tasks_cancelled_in_the_thread_leave_the_store_usable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next writer takes over what the cancelled tasks left, so no caller waits for ever."""

    async def run() -> None:
        runtime = AsyncioStoreRuntime()
        store = SqliteTaskStore(path)
        async with store.opened(runtime):
            stopped = StoppedThread(store, monkeypatch)
            caller = asyncio.create_task(store.create(new_record("a"), **MANY))
            assert await asyncio.to_thread(stopped.reached.wait, PATIENCE)
            waiting = asyncio.create_task(store.create(new_record("b"), **MANY))
            await asyncio.sleep(0)
            threading.Timer(0.05, stopped.go.set).start()
            caller.cancel()
            for task in runtime.tasks:
                task.cancel()
            # Written by the event loop, after the thread that was left behind.
            assert await waiting is None
            assert await store.create(new_record("c"), **MANY) is None
            assert [record.id for record in await store.page("ada", "", 10)] == ["a", "b", "c"]

    asyncio.run(run())


@pytest.mark.parametrize("checkpoints", range(6))
def test_create_cancelled_at_any_checkpoint_leaves_the_store_usable(
    path: Path, checkpoints: int
) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(store.create, new_record("a"), **MANY))
            for _ in range(checkpoints):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert await store.create(new_record("b"), **MANY) is None
        found = {record.id for record in await store.page("ada", "", 10)}
        assert found in ({"a", "b"}, {"b"})
        assert not store._writing or not store._queued

    with_store(path, main)


# Watching.


def test_watch_sees_other_connections_by_looking(path: Path) -> None:
    """SQLite notifies no other connection: polling finds their changes, and repeats no own one."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        other = SqliteTaskStore(path)
        async with other.opened(runtime), store.watch() as watch:
            a, b = new_record("a"), new_record("b")
            await store.create(a, **MANY)
            await other.create(b, **MANY)
            store._look()
            assert await anext(watch) == b.key
            assert await store.change(a.key, 1, transition(a, SetMessage("x"), NOW, LIMITS))
            assert await anext(watch) == a.key
            store._look()  # yields no change of this process again
            assert await other.change(b.key, 1, None)
            assert await anext(watch) == b.key

    with_store(path, main)


def test_watch_sees_each_task_that_another_connection_removes(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        other = SqliteTaskStore(path)
        async with other.opened(runtime), store.watch() as watch:
            records = [new_record(id) for id in "abc"]
            for each in records:
                await other.create(each, **MANY)
            store._look()
            assert {await anext(watch) for _ in records} == {each.key for each in records}
            for each in records:
                assert await other.change(each.key, 1, None)
            store._look()
            assert {await anext(watch) for _ in records} == {each.key for each in records}

    with_store(path, main)


def test_watch_looks_for_changes_of_others_four_times_a_second(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of this process hears of a task in another one without a delay that it notices."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        async def wait(event: object, seconds: float | None = None) -> bool:
            waits.append(seconds)
            return False

        waits: list[float | None] = []
        other = SqliteTaskStore(path)
        async with other.opened(runtime), store.watch() as watch:
            await other.create(new_record(), **MANY)
            with monkeypatch.context() as patch:
                patch.setattr(runtime, "wait", wait)
                assert await anext(watch) == TaskKey("ada", "a")
        assert waits == [0.25]

    with_store(path, main)


def test_second_watch_takes_no_change_from_the_first(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        other = SqliteTaskStore(path)
        async with other.opened(runtime), store.watch() as first:
            await other.create(new_record(), **MANY)
            async with store.watch():
                assert await anext(first) == TaskKey("ada", "a")

    with_store(path, main)


def test_watch_that_begins_while_the_file_is_busy_takes_everything_as_new(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can't know which changes are older than itself, so it leaves none of them out."""

    def busy() -> int:
        raise _sqlite_file.FileIsBusy

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        other = SqliteTaskStore(path)
        async with other.opened(runtime):
            async with store.watch() as watch:
                await other.create(new_record("a"), **MANY)
                store._look()
                assert await anext(watch) == TaskKey("ada", "a")
            with monkeypatch.context() as patch:
                patch.setattr(store._open_file(), "sequence", busy)
                opening = store.watch()
                watch = await opening.__aenter__()
            await other.create(new_record("b"), **MANY)
            store._look()
            found = {await anext(watch), await anext(watch)}
            assert found == {TaskKey("ada", "a"), TaskKey("ada", "b")}
            await opening.__aexit__(None, None, None)

    with_store(path, main)


def test_watch_that_is_never_idle_sees_other_connections_too(path: Path) -> None:
    """An own change is always there at once, and must not postpone the look at the others'."""

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        other = SqliteTaskStore(path)
        async with other.opened(runtime), store.watch() as watch:
            record, theirs = new_record(), new_record("theirs")
            await store.create(record, **MANY)
            await other.create(theirs, **MANY)
            with trio.fail_after(PATIENCE):
                while True:
                    await trio.sleep(0.01)  # or it takes a core until the next look
                    after = transition(record, SetMessage(str(record.serial)), NOW, LIMITS)
                    assert await store.change(record.key, record.serial, after)
                    record = after
                    if await anext(watch) == theirs.key:
                        break

    with_store(path, main)


def test_watch_of_a_broken_file_waits_until_it_is_whole(path: Path) -> None:
    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        other = SqliteTaskStore(path)
        async with other.opened(runtime), store.watch() as watch:
            await other.create(new_record(), **MANY)
            moved = move(path, "other.db")
            store._look()
            move(moved, path.name)
            assert await anext(watch) == TaskKey("ada", "a")

    with_store(path, main)


def test_watch_that_missed_removals_gets_a_gap(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sqlite_file, "_REMEMBERED", 3)

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        other = SqliteTaskStore(path)
        async with other.opened(runtime), store.watch() as watch:
            for _ in range(5):
                await other.create(new_record(), **MANY)
                assert await other.change(TaskKey("ada", "a"), 1, None)
            store._look()
            assert await anext(watch) is None

    with_store(path, main)


def test_removed_rows_are_forgotten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sqlite_file, "_REMEMBERED", 3)

    async def main(store: SqliteTaskStore, runtime: StoreRuntime) -> None:
        for _ in range(10):
            await store.create(new_record(), **MANY)
            assert await store.change(TaskKey("ada", "a"), 1, None)
        assert store._file is not None
        rows = store._file._select("SELECT count(*) FROM removed", ())
        assert rows[0][0] <= 3

    with_store(path, main)
