"""The SQLite file of a task store: opening it safely, its tables, and every statement.

1. All methods block. Those that read use a connection of their own, in the thread of the event
   loop; `write` may run in any thread, one call at a time.
2. An error is a `TaskStoreError` that names the file, the cause and what to do.
3. The file and its directory have to belong to this user, and only this user may write to them: the
   results of tasks are the user's data.
"""

from __future__ import annotations

import math
import os
import shlex
import stat
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.tasks import TaskKey, TaskQuotaExceeded, TaskStoreError
from mcp_core.tasks._leases import LeaseObserver, WorkerLease
from mcp_core.tasks._record import join_record, split_record

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mcp_core.tasks import TaskLimitName, TaskQuota, TaskRecord

    # What one write does in a transaction of the given number.
    Operation = Callable[[int], Any]

__all__ = ["DamagedRow", "FileIsBusy", "TaskFile"]

# Seconds to wait for another process that writes. A transaction takes milliseconds.
_BUSY_TIMEOUT: Final = 5.0
# Seconds between attempts where SQLite itself doesn't wait.
_RETRY_INTERVAL: Final = 0.01
# Identifies this store's files. The version says which tables they have.
_APPLICATION_ID: Final = int.from_bytes(b"mcpt")
_SCHEMA_VERSION: Final = 2
_OLDEST_VERSION: Final = 1  # `_add_missing` adds what it lacks
_SCHEMA: Final = (
    # `sequence` is the number of the transaction that wrote the row last, `writer` the connection.
    # The large columns come last: SQLite reads no further than to the last column of a query.
    # `stale_at` is the expiry. `worker` is NULL for a task that has ended.
    """
    CREATE TABLE tasks (
        owner TEXT NOT NULL, id TEXT NOT NULL, serial INTEGER NOT NULL, created REAL NOT NULL,
        stale_at REAL NOT NULL, sequence INTEGER NOT NULL, writer TEXT NOT NULL, worker TEXT,
        quota_key TEXT NOT NULL DEFAULT '', size INTEGER NOT NULL DEFAULT 0,
        record BLOB NOT NULL, result BLOB,
        PRIMARY KEY (owner, id)
    )
    """,
    "CREATE INDEX tasks_created ON tasks (owner, created, id)",
    "CREATE INDEX tasks_stale ON tasks (stale_at)",
    "CREATE INDEX tasks_sequence ON tasks (sequence)",
    # The rows that were removed lately, for other processes that watch.
    """
    CREATE TABLE removed (
        sequence INTEGER NOT NULL, writer TEXT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL
    )
    """,
    "CREATE INDEX removed_sequence ON removed (sequence)",
    "CREATE TABLE last (sequence INTEGER NOT NULL)",
    "INSERT INTO last VALUES (0)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
)
# The quota key of the row that sums up all others.
_ALL: Final = "all"
# The number of tasks and their bytes by quota key, which triggers keep: to count 10,000 rows for
# each new one would take as long as storing it.
_USAGE: Final = (
    """
    CREATE TABLE usage (
        quota_key TEXT PRIMARY KEY, tasks INTEGER NOT NULL, size INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TRIGGER tasks_inserted AFTER INSERT ON tasks BEGIN
        INSERT OR IGNORE INTO usage VALUES (NEW.quota_key, 0, 0);
        UPDATE usage SET tasks = tasks + 1, size = size + NEW.size
        WHERE quota_key IN (NEW.quota_key, 'all');
    END
    """,
    """
    CREATE TRIGGER tasks_resized AFTER UPDATE OF size ON tasks WHEN NEW.size <> OLD.size BEGIN
        UPDATE usage SET size = size + NEW.size - OLD.size
        WHERE quota_key IN (NEW.quota_key, 'all');
    END
    """,
    """
    CREATE TRIGGER tasks_deleted AFTER DELETE ON tasks BEGIN
        UPDATE usage SET tasks = tasks - 1, size = size - OLD.size
        WHERE quota_key IN (OLD.quota_key, 'all');
        DELETE FROM usage WHERE quota_key = OLD.quota_key AND tasks <= 0;
    END
    """,
    "INSERT INTO usage SELECT quota_key, count(*), sum(size) FROM tasks GROUP BY quota_key",
    "INSERT INTO usage SELECT 'all', count(*), coalesce(sum(size), 0) FROM tasks",
)
# What a file of version 1 lacks. Its tasks have the key of the one user: whose they are isn't
# known.
_SIZES: Final = (
    "ALTER TABLE tasks ADD COLUMN quota_key TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE tasks ADD COLUMN size INTEGER NOT NULL DEFAULT 0",
    "UPDATE tasks SET size = length(record) + coalesce(length(result), 0)",
)
# What a file of version 1 lacks, besides the column `worker`.
_LEASES: Final = (
    "CREATE INDEX IF NOT EXISTS tasks_worker ON tasks (worker) WHERE worker IS NOT NULL",
    # `renewal` is the number of the transaction that renewed the lease last.
    """
    CREATE TABLE IF NOT EXISTS workers (
        name TEXT PRIMARY KEY, renewal INTEGER NOT NULL, seconds REAL NOT NULL
    )
    """,
)
# Each worker of a task that hasn't ended, by one step in the index for each, and its lease.
_SELECT_LEASES: Final = """
    WITH RECURSIVE held (name) AS (
        SELECT min(worker) FROM tasks WHERE worker IS NOT NULL
        UNION ALL
        SELECT (SELECT min(worker) FROM tasks WHERE worker > name) FROM held WHERE name IS NOT NULL
    )
    SELECT held.name, CAST(renewal AS INTEGER), CAST(seconds AS REAL)
    FROM held LEFT JOIN workers ON workers.name = held.name WHERE held.name IS NOT NULL
"""
# The lease of a worker that has none, in a file from before workers had leases.
_DEFAULT_LEASE: Final = 30.0
# Free pages are used again, and given back to the file system above this part of the file, in steps
# that take some milliseconds. A smaller file isn't worth the work.
_MOST_FREE: Final = 0.25
_MIN_FREE_PAGES: Final = 256
_PAGES_AT_ONCE: Final = 200
# Bytes that the write-ahead log keeps after it was merged into the file.
_KEPT_LOG: Final = 4 * 1024 * 1024
# Transactions after which a removed row is forgotten. Other processes look four times a second.
_REMEMBERED: Final = 10_000

_HAS_OWNERS: Final = hasattr(os, "geteuid")  # files have an owner and permission bits
_GROUP_AND_OTHERS: Final = 0o077  # permission bits
_WRITABLE_BY_OTHERS: Final = 0o022

# By the primary result code of SQLite (https://sqlite.org/rescode.html): cause and cure.
_NOT_READABLE: Final = (
    "it is damaged, or no SQLite database",
    "restore it, or remove it and start the server again: the tasks in it are lost",
)
_CAUSES: Final = {
    5: (
        "another process has locked it for too long",
        "end that process, or give each server a file of its own",
    ),
    8: ("it is read-only", "let this user write to the file and its directory"),
    10: ("the disk cannot be read or written", "check the disk and its file system"),
    11: _NOT_READABLE,
    13: ("the disk is full", "free space on it"),
    14: (
        "it cannot be opened",
        "let this user read and write the file and create files in its directory",
    ),
    26: _NOT_READABLE,
}
_BUSY: Final = 5
_CORRUPT: Final = 11


class FileIsBusy(Exception):
    """A read would have to wait for another process."""


class DamagedRow(NamedTuple):
    """A row whose record cannot be decoded, and why. `data` is what it has for one."""

    row: int
    data: bytes
    reason: str


class TaskFile:
    """An open SQLite file with the records of tasks.

    Args:
        path: the file, which is created if it is missing.

    Raises:
        TaskStoreError: the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        import sqlite3

        self._sqlite = sqlite3
        # The second one is the fault of a message that quotes the file's damaged bytes.
        self._failures = (sqlite3.Error, UnicodeDecodeError)
        self.path = path.resolve()
        self._identity = _check_file(self.path)
        self._connections: list[sqlite3.Connection] = []
        self._durable = True
        self._last_counter = -1
        self._leases = LeaseObserver()
        self._lease = _DEFAULT_LEASE
        # Rows that were read and are to be removed: a read cannot.
        self.damaged: list[DamagedRow] = []
        try:
            self._writer = self._connect(_BUSY_TIMEOUT)
            self._create_tables()
            self._reader = self._connect(0)
            self._reader.execute("PRAGMA query_only = TRUE")
            # Distinguishes the rows that this process has written from other processes' rows.
            self._name: str = self._one(self._reader, "SELECT hex(randomblob(8))")[0]
        except self._failures as exc:
            self.close()
            raise self._explained(exc) from exc
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file. The last process that does so merges the write-ahead log into it."""
        for connection in self._connections:
            connection.close()

    # What reads: `wait` is True in a transaction of `write`, which has waited for other processes.

    def get(self, key: TaskKey, *, wait: bool = False) -> TaskRecord | None:
        """Return the record, or None if the file has no such task."""
        # A value of another type is damage, which `_decode` finds.
        query = """
            SELECT rowid, owner, id, serial, CAST(record AS BLOB), CAST(result AS BLOB)
            FROM tasks WHERE owner = ? AND id = ?
        """
        rows = self._select(query, key, wait=wait)
        return self._decode(*rows[0]) if rows else None

    def page(self, owner: str, after: str, size: int, *, wait: bool = False) -> list[TaskRecord]:
        """Return what `TaskStore.page` returns."""
        start = (-math.inf, "")
        if after:
            query = "SELECT created FROM tasks WHERE owner = ? AND id = ?"
            rows = self._select(query, (owner, after), wait=wait)
            if not rows:
                raise KeyError(after)
            start = (rows[0][0], after)
        query = """
            SELECT created, rowid, owner, id, serial, CAST(record AS BLOB)
            FROM tasks WHERE owner = ? AND (created, id) > (?, ?) ORDER BY created, id LIMIT ?
        """
        records: list[TaskRecord] = []
        while True:
            wanted = size - len(records)
            rows = self._select(query, (owner, *start, wanted), wait=wait)
            records += self._decode_all(row[1:] for row in rows)
            # A damaged row must not make the page look like the last one.
            if len(rows) < wanted or len(records) == size:
                return records
            start = (rows[-1][0], rows[-1][3])

    def expired(self, now: float, size: int, *, wait: bool = False) -> list[TaskKey]:
        """Return the keys of up to `size` records that are over their time to live."""
        query = "SELECT owner, id FROM tasks WHERE stale_at <= ? ORDER BY stale_at LIMIT ?"
        return [TaskKey(*row) for row in self._select(query, (now, size), wait=wait)]

    def lost(self, now: float, size: int, *, wait: bool = False) -> list[TaskRecord]:
        """Return what `TaskStore.lost` returns. `now` is the monotonic time."""
        unknown = self._lease  # of a worker that was never seen to renew its lease
        leases = [
            WorkerLease(name, renewal, seconds if seconds is not None else unknown if name else 0.0)
            for name, renewal, seconds in self._select(_SELECT_LEASES, (), wait=wait)
        ]
        records: list[TaskRecord] = []
        for worker in self._leases.lost_workers(leases, now):
            query = """
                SELECT rowid, owner, id, serial, CAST(record AS BLOB)
                FROM tasks WHERE worker = ? LIMIT ?
            """
            rows = self._select(query, (worker, size - len(records)), wait=wait)
            records += self._decode_all(rows)
            if len(records) >= size:
                break
        return records

    def wants_vacuum(self, *, wait: bool = False) -> bool:
        """Return True if a large part of the file is free."""
        (free,) = self._select("PRAGMA freelist_count", (), wait=wait)[0]
        if free < _MIN_FREE_PAGES:
            return False
        (pages,) = self._select("PRAGMA page_count", (), wait=wait)[0]
        return bool(free > pages * _MOST_FREE)

    def sequence(self) -> int:
        """Return the last transaction's number."""
        sequence: int
        [(sequence,)] = self._select("SELECT CAST(sequence AS INTEGER) FROM last", ())
        return sequence

    def changed_by_others(self, seen: int) -> tuple[int, list[TaskKey | None]]:
        """Return the last transaction's number, and the keys that others changed after `seen`.

        None among the keys means that some of them aren't known any more.
        """
        # Changes with every transaction of another connection, and costs less than a query.
        [(counter,)] = self._select("PRAGMA data_version", ())
        if counter == self._last_counter:
            return seen, []
        sequence = self.sequence()
        query = """
            SELECT owner, id FROM tasks WHERE sequence > ? AND writer <> ?
            UNION SELECT owner, id FROM removed WHERE sequence > ? AND writer <> ?
        """
        rows = self._select(query, (seen, self._name) * 2)
        keys: list[TaskKey | None] = [TaskKey(*row) for row in rows]
        if seen < sequence - _REMEMBERED:
            keys.append(None)
        self._last_counter = counter
        return sequence, keys

    # What writes. Each method below returns an operation for `write`.

    def create(self, record: TaskRecord, limits: TaskQuota) -> Operation:
        """Return the operation that does what `TaskStore.create` does."""
        key = record.key
        data, result = split_record(record)

        def run(sequence: int) -> TaskLimitName | None:
            query = "SELECT 1 FROM tasks WHERE owner = ? AND id = ?"
            if self._select(query, key, wait=True):
                raise TaskStoreError(
                    "there is a task with this id already; create it with another id"
                )
            limit = self._find_excess(record.quota_key, 1, record.size, limits)
            if limit is not None:
                return limit
            self._writer.execute(
                """
                INSERT INTO tasks (owner, id, serial, created, stale_at, sequence, writer, worker,
                quota_key, size, record, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                (
                    *key,
                    record.serial,
                    record.created,
                    record.expires,
                    sequence,
                    self._name,
                    None if record.ended else record.worker,
                    record.quota_key,
                    record.size,
                    data,
                    result,
                ),
            )
            return None

        return run

    def _find_excess(
        self, quota_key: str, tasks: int, size: int, limits: TaskQuota
    ) -> TaskLimitName | None:
        """Return which of `limits` is in the way of so many more tasks and bytes."""
        query = "SELECT quota_key, tasks, size FROM usage WHERE quota_key IN (?, ?)"
        rows = self._select(query, (quota_key, _ALL), wait=True)
        used = {key: (count, used_size) for key, count, used_size in rows}
        own_tasks, own_size = used.get(quota_key, (0, 0))
        all_tasks, all_size = used.get(_ALL, (0, 0))
        # A change adds no task, and may be of one that is above a limit which was lowered.
        if tasks and own_tasks >= limits.per_key:
            return "per_key"
        if tasks and all_tasks >= limits.total:
            return "total"
        if own_size + size > limits.key_bytes:
            return "key_bytes"
        return "total_bytes" if all_size + size > limits.total_bytes else None

    def change(
        self, key: TaskKey, serial: int, record: TaskRecord, limits: TaskQuota | None = None
    ) -> Operation:
        """Return the operation that replaces a record, and returns whether it has.

        With `limits` it raises `TaskQuotaExceeded`, as `TaskStore.change` does.
        """
        data, result = split_record(record)

        def run(sequence: int) -> bool:
            if limits is not None:
                query = "SELECT size FROM tasks WHERE owner = ? AND id = ? AND serial = ?"
                rows = self._select(query, (*key, serial), wait=True)
                if not rows:
                    return False
                more = record.size - rows[0][0]
                limit = self._find_excess(record.quota_key, 0, more, limits)
                if limit is not None:
                    raise TaskQuotaExceeded(limit)
            cursor = self._writer.execute(
                """
                UPDATE tasks SET serial = ?, stale_at = ?, sequence = ?, writer = ?, worker = ?,
                size = ?, record = ?, result = ? WHERE owner = ? AND id = ? AND serial = ?
                """,
                (
                    record.serial,
                    record.expires,
                    sequence,
                    self._name,
                    None if record.ended else record.worker,
                    record.size,
                    data,
                    result,
                    *key,
                    serial,
                ),
            )
            return cursor.rowcount == 1

        return run

    def remove(self, key: TaskKey, serial: int) -> Operation:
        """Return the operation that removes a record, and returns whether it has."""

        def run(sequence: int) -> bool:
            execute = self._writer.execute
            query = "DELETE FROM tasks WHERE owner = ? AND id = ? AND serial = ?"
            if not execute(query, (*key, serial)).rowcount:
                return False
            execute("DELETE FROM removed WHERE sequence <= ?", (sequence - _REMEMBERED,))
            execute("INSERT INTO removed VALUES (?, ?, ?, ?)", (sequence, self._name, *key))
            return True

        return run

    def forget_removed(self) -> Operation:
        """Return the operation that forgets the rows that were removed long ago."""

        def run(sequence: int) -> None:
            query = "DELETE FROM removed WHERE sequence <= ?"
            self._writer.execute(query, (sequence - _REMEMBERED,))

        return run

    def remove_expired(self, now: float, size: int) -> Operation:
        """Return the operation that removes up to `size` expired records."""

        def run(sequence: int) -> None:
            execute = self._writer.execute
            # Without a writer: this process's watches have yet to see them, too.
            query = """
                INSERT INTO removed SELECT ?, '', owner, id FROM tasks
                WHERE stale_at <= ? ORDER BY stale_at LIMIT ?
            """
            execute(query, (sequence, now, size))
            query = """
                DELETE FROM tasks WHERE rowid IN
                (SELECT rowid FROM tasks WHERE stale_at <= ? ORDER BY stale_at LIMIT ?)
            """
            execute(query, (now, size))

        return run

    def renew_lease(self, worker: str, seconds: float) -> Operation:
        """Return the operation that does what `TaskStore.renew_lease` does."""
        if seconds > 0:
            self._lease = seconds

        def run(sequence: int) -> None:
            execute = self._writer.execute
            execute("INSERT OR REPLACE INTO workers VALUES (?, ?, ?)", (worker, sequence, seconds))
            # A worker without tasks has nothing to lose: it is here again at its next renewal.
            execute(
                """
                DELETE FROM workers WHERE name <> ?
                AND NOT EXISTS (SELECT 1 FROM tasks WHERE worker = name)
                """,
                (worker,),
            )

        return run

    def remove_damaged(self, rows: Sequence[DamagedRow]) -> Operation:
        """Return the operation that removes rows, unless they have changed meanwhile."""

        def run(sequence: int) -> None:
            self._writer.executemany(
                "DELETE FROM tasks WHERE rowid = ? AND CAST(record AS BLOB) = ?",
                [row[:2] for row in rows],
            )

        return run

    def vacuum(self) -> Operation:
        """Return the operation that gives some free pages back, and returns whether it has."""

        def run(sequence: int) -> bool:
            before = self._one(self._writer, "PRAGMA freelist_count")
            for _ in range(_PAGES_AT_ONCE):
                # One at a time: `sqlite3` ends a statement without columns after its first step.
                self._writer.execute("PRAGMA incremental_vacuum(1)")
            return self._one(self._writer, "PRAGMA freelist_count") < before

        return run

    def write(self, operations: Sequence[Operation], *, durable: bool) -> list[Any]:
        """Run all operations in one transaction, and return what they return.

        A `TaskStoreError` or `TaskQuotaExceeded` of an operation is returned, not raised; then it
        had no effect, and the others have theirs.

        Args:
            operations: what to do, in order.
            durable: True if the transaction has to outlive a failure of the machine. Every one
                outlives the process.

        Raises:
            TaskStoreError: nothing was written.
        """
        self._check_identity()
        try:
            return self._run(operations, durable)
        except self._failures as exc:
            raise self._explained(exc) from exc

    def _run(self, operations: Sequence[Operation], durable: bool) -> list[Any]:
        execute = self._writer.execute
        if durable is not self._durable:
            # FULL waits for the disk at each commit, NORMAL doesn't. Both keep the file whole.
            execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        with self._transaction("BEGIN IMMEDIATE"):
            execute("UPDATE last SET sequence = sequence + 1")
            query = "SELECT CAST(sequence AS INTEGER) FROM last"
            sequence: int = self._one(self._writer, query)[0]
            results = []
            for operation in operations:
                try:
                    results.append(operation(sequence))
                except (TaskStoreError, TaskQuotaExceeded, KeyError) as exc:
                    results.append(exc)
        return results

    def _connect(self, timeout: float) -> sqlite3.Connection:
        connection = self._sqlite.connect(
            self.path, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        self._connections.append(connection)
        # A damaged text must not fail the query that finds it.
        connection.text_factory = _to_text
        return connection

    def _create_tables(self) -> None:
        """Create the tables in a new file. Do not touch a file that isn't ours."""
        execute = self._writer.execute
        with self._transaction("BEGIN"):
            found = self._find_tables()
        if not found:
            execute("PRAGMA auto_vacuum = INCREMENTAL")  # before there is a table
        self._use_write_ahead_log()
        execute("PRAGMA synchronous = FULL")
        execute(f"PRAGMA journal_size_limit = {_KEPT_LOG}")
        with self._transaction("BEGIN IMMEDIATE"):
            if not self._find_tables():  # another process may have been faster
                for statement in _SCHEMA:
                    execute(statement)
            self._add_missing()
        if found:
            self._allow_vacuum()

    def _add_missing(self) -> None:
        """Add what a new file lacks, or one of an earlier version. Idempotent."""
        execute = self._writer.execute
        columns = {row[1] for row in execute("PRAGMA table_info(tasks)")}
        if "quota_key" not in columns:
            for statement in _SIZES:
                execute(statement)
        tables = {row[0] for row in execute("SELECT name FROM sqlite_master")}
        if "usage" not in tables:
            for statement in _USAGE:
                execute(statement)
        if "worker" not in columns:
            execute("ALTER TABLE tasks ADD COLUMN worker TEXT")
            # Each task had a lease of its own. Its worker has none now: it is believed to be alive
            # for as long as any other that was never seen to renew its lease.
            query = "SELECT rowid, owner, id, serial, CAST(record AS BLOB) FROM tasks"
            for row in execute(query).fetchall():
                record = self._decode(*row)
                if record is not None:
                    execute(
                        "UPDATE tasks SET stale_at = ?, worker = ? WHERE rowid = ?",
                        (record.expires, None if record.ended else record.worker, row[0]),
                    )
        for statement in _LEASES:
            execute(statement)
        if self._one(self._writer, "PRAGMA user_version")[0] != _SCHEMA_VERSION:
            execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _allow_vacuum(self) -> None:
        """Let a file that was made without it give free pages back. Else it only grows."""
        execute = self._writer.execute
        try:
            if self._one(self._writer, "PRAGMA auto_vacuum")[0] == 0:
                execute("PRAGMA auto_vacuum = INCREMENTAL")
                execute("VACUUM")
        except self._failures:
            pass  # another process uses it, or the disk is full: the next start tries again

    def _use_write_ahead_log(self) -> None:
        deadline = time.monotonic() + _BUSY_TIMEOUT
        while True:
            try:
                mode = self._one(self._writer, "PRAGMA journal_mode = WAL")[0]
            except self._sqlite.OperationalError as exc:
                # Here SQLite doesn't wait for a process that creates the same file.
                if _result_code(exc) != _BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(_RETRY_INTERVAL)
                continue
            if mode == "wal":
                return
            cause = "its file system does not support a write-ahead log (WAL)"
            raise self._error(cause, "use a local disk")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        execute = self._writer.execute
        execute(begin)
        try:
            yield
            execute("COMMIT")
        except BaseException:
            # SQLite has rolled back already after some errors, such as a full disk.
            if self._writer.in_transaction:
                execute("ROLLBACK")
            raise

    def _find_tables(self) -> bool:
        """Return True if the file has the tables, False if it is empty.

        In a transaction, because another process may be creating them.
        """
        (schema,) = self._one(self._writer, "PRAGMA user_version")
        (application_id,) = self._one(self._writer, "PRAGMA application_id")
        if application_id != _APPLICATION_ID:
            if schema or self._one(self._writer, "SELECT count(*) FROM sqlite_master")[0]:
                raise self._error("it is a database of another program", "name another file")
            return False
        if not _OLDEST_VERSION <= schema <= _SCHEMA_VERSION:
            raise self._error(
                f"its tables have version {schema}, and this version of mcp-trio knows"
                f" version {_SCHEMA_VERSION}",
                "upgrade mcp-trio, or name another file",
            )
        return True

    def _select(
        self, query: str, values: Sequence[object], *, wait: bool = False
    ) -> list[tuple[Any, ...]]:
        if wait:
            return self._writer.execute(query, values).fetchall()
        self._check_identity()
        try:
            # Fetching all rows ends the read transaction, so that the next query sees new data.
            return self._reader.execute(query, values).fetchall()
        except self._failures as exc:
            if _result_code(exc) == _BUSY:
                raise FileIsBusy from None
            raise self._explained(exc) from exc

    def _one(
        self, connection: sqlite3.Connection, query: str, values: Sequence[object] = ()
    ) -> tuple[Any, ...]:
        row: tuple[Any, ...] = connection.execute(query, values).fetchone()
        return row

    def _decode_all(self, rows: Iterable[Sequence[Any]]) -> list[TaskRecord]:
        records = (self._decode(*row) for row in rows)
        return [record for record in records if record is not None]

    def _decode(
        self, row: int, owner: str, id: str, serial: int, data: bytes, result: bytes | None = None
    ) -> TaskRecord | None:
        """Return a row's record, or None if it cannot be decoded. Then note it."""
        try:
            record = join_record(data, result)
            # With another key or number than its row it could never be changed.
            if (*record.key, record.serial) == (owner, id, serial):
                return record
            reason = "it is not the record of its row"
        except InvalidPayload as exc:
            reason = str(exc)
        self.damaged.append(DamagedRow(row, data, reason))
        return None

    def _check_identity(self) -> None:
        """Check that the path still leads to the open file: what is written to it isn't lost."""
        try:
            state = self.path.stat()
        except OSError:
            state = None
        if state is None or (state.st_dev, state.st_ino) != self._identity:
            raise self._error(
                "it was removed or replaced while the server uses it",
                "restart the server, and end it before touching the file",
            )

    def _error(self, cause: str, cure: str) -> TaskStoreError:
        return _store_error(self.path, cause, cure)

    def _explained(self, exc: sqlite3.Error | UnicodeDecodeError) -> TaskStoreError:
        cause, cure = _CAUSES.get(_result_code(exc), ("SQLite failed", "see the cause"))
        return self._error(f"{cause} ({exc})", cure)


def _to_text(data: bytes) -> str:
    return str(data, "utf-8", "replace")


def _result_code(exc: sqlite3.Error | UnicodeDecodeError) -> int:
    """Return the primary result code of an error: the lower byte of what SQLite returned."""
    if isinstance(exc, UnicodeDecodeError):
        return _CORRUPT
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF


def _store_error(path: Path, cause: str, cure: str) -> TaskStoreError:
    return TaskStoreError(f"the task file {path} cannot be used: {cause}; {cure}")


def _check_file(path: Path) -> tuple[int, int]:
    """Create the file if it is missing, check who may use it, and return its identity."""
    try:
        _check_directory(path)
        try:
            # Its write-ahead log gets the same permissions.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            pass
        # Never open a file that exists: closing it again would drop the locks of SQLite in this
        # process (POSIX; https://sqlite.org/howtocorrupt.html, section 2.2).
        state = path.lstat()
    except OSError as exc:
        raise _store_error(
            path,
            f"{exc.strerror or exc}",
            "name a file in a directory that exists and belongs to this user",
        ) from exc
    if not stat.S_ISREG(state.st_mode):
        raise _store_error(path, "it is not a regular file", "name another file")
    if not state.st_mode & stat.S_IWUSR:
        raise _store_error(path, *_CAUSES[8])
    if _HAS_OWNERS and (state.st_mode & _GROUP_AND_OTHERS or state.st_uid != os.geteuid()):
        raise _store_error(
            path,
            "other users may use it",
            f"make it a file of this user, and run `chmod 600 {shlex.quote(str(path))}`",
        )
    return state.st_dev, state.st_ino


def _check_directory(path: Path) -> None:
    state = path.parent.stat()
    if not _HAS_OWNERS:
        return
    if state.st_uid != os.geteuid():
        raise _store_error(
            path,
            "its directory belongs to another user, who could replace the file",
            "name a file in a directory of this user",
        )
    if state.st_mode & _WRITABLE_BY_OTHERS:
        raise _store_error(
            path,
            "other users may write to its directory and replace the file",
            f"run `chmod go-w {shlex.quote(str(path.parent))}`",
        )
