"""The task store in an SQLite file: tasks outlive the process, and processes share them.

1. A read takes microseconds, less than going to a thread and back, so it runs in the thread of the
   event loop. In the WAL mode of SQLite it doesn't wait for writers.
2. A write waits for the disk, so it runs in a worker thread. All writes that wait become one
   transaction, because waiting for the disk once costs as much for one as for many.
3. Cancelling the caller of a write doesn't take the write back.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_core.runtime.tasks._memory_store import NOT_OPEN
from mcp_core.runtime.tasks._reports import StoreReports
from mcp_core.runtime.tasks._runtime import TaskRuntime
from mcp_core.runtime.tasks._watch import TaskWatch
from mcp_core.tasks import TaskKey, TaskLimitName, TaskQuota, TaskRecord, TaskStoreError

from ._sqlite_file import FileIsBusy, TaskFile

if TYPE_CHECKING:
    from mcp_core.runtime import EventLike

    from ._sqlite_file import DamagedRow, Operation

__all__ = ["SqliteTaskStore"]

T = TypeVar("T")

# Seconds between looks for changes of other processes. A look takes some microseconds.
_LOOK_INTERVAL: Final = 0.25
# Writes of one transaction. More don't make it cheaper, and other processes wait for its end.
_MAX_BATCH: Final = 256


class _Write:
    """A write that waits for its transaction, and its outcome."""

    __slots__ = ("changed", "done", "durable", "operation", "outcome")

    def __init__(
        self, operation: Operation, done: EventLike, durable: bool, changed: TaskKey | None
    ) -> None:
        self.operation = operation
        self.done = done
        self.durable = durable
        self.changed = changed
        self.outcome: Any = None


class SqliteTaskStore:
    """A `TaskStore` in a file: tasks outlive the process, also one that is killed.

    Several processes of one machine may use the file at once; it has to be on a local disk. It is
    created with its first use, readable by this user only. What clients send and tools return lies
    in it unencrypted. While it is open, the files `PATH-wal` and `PATH-shm` are parts of it.

    New tasks and ended ones are on the disk before a client gets a response about them. A change
    between, such as a status message, outlives the process, but may be lost if the machine fails.

    The methods belong to the thread of one event loop.

    Args:
        path: the file. A relative path begins at the working directory of now.

    Raises:
        ValueError: the path is empty or ":memory:".
    """

    durable = True
    immediate = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        if name in ("", ":memory:"):
            raise ValueError(f"{name!r} names no file; use MemoryTaskStore to keep tasks in memory")
        self.path = Path(name).absolute()
        self._file: TaskFile | None = None
        self._runtimes: list[TaskRuntime] = []
        self._watches: list[TaskWatch] = []
        # A write moves from the event loop to a thread and back through these two.
        self._queued: deque[_Write] = deque()
        self._written: deque[_Write] = deque()
        self._writing = False  # there is a task in `_write_queued`
        self._vacuuming = False
        self._reports: StoreReports | None = None
        self._write_lock = threading.Lock()
        self._seen = 0  # the last transaction whose changes the watches have
        self._last_look = 0.0

    def __repr__(self) -> str:
        return f"SqliteTaskStore({str(self.path)!r})"

    @asynccontextmanager
    async def opened(self, runtime: TaskRuntime, /) -> AsyncIterator[SqliteTaskStore]:
        """Return the context in which the store may be used, as `TaskStore.opened`.

        Raises:
            TaskStoreError: the file cannot be used. The text says why, and what to do.
        """
        if self._file is None:
            # Blocks the event loop. A server that isn't open yet has nothing else to do.
            self._file = TaskFile(self.path)
            self._reports = None
            self._vacuuming = False
        self._runtimes.append(runtime)
        try:
            yield self
        finally:
            self._runtimes.remove(runtime)
            if not self._runtimes:
                self._close()

    async def create(self, record: TaskRecord, /, *, limits: TaskQuota) -> TaskLimitName | None:
        operation = self._open_file().create(record, limits)
        result: TaskLimitName | None = await self._write(operation, durable=True)
        return result

    async def get(self, key: TaskKey, /) -> TaskRecord | None:
        return await self._read(partial(self._open_file().get, key))

    async def change(
        self,
        key: TaskKey,
        serial: int,
        record: TaskRecord | None,
        /,
        *,
        limits: TaskQuota | None = None,
    ) -> bool:
        file = self._open_file()
        if record is None:
            operation = file.remove(key, serial)
        else:
            operation = file.change(key, serial, record, limits)
        durable = record is not None and record.ended
        result: bool = await self._write(operation, durable=durable, changed=key)
        return result

    async def page(self, owner: str, after: str, size: int, /) -> list[TaskRecord]:
        return await self._read(partial(self._open_file().page, owner, after, size))

    async def remove_expired(self, now: float, size: int, /) -> list[TaskKey]:
        file = self._open_file()
        keys = await self._read(partial(file.expired, now, size))
        if keys:
            await self._write(file.remove_expired(now, size), durable=False)
            await self._write(file.forget_removed(), durable=False)
        elif not self._vacuuming and await self._read(file.wants_vacuum):
            self._vacuuming = True
            self._runtimes[-1].start_soon(self._vacuum)
        return keys

    async def renew_lease(self, worker: str, seconds: float, /) -> None:
        await self._write(self._open_file().renew_lease(worker, seconds), durable=False)

    async def lost(self, size: int, /) -> list[TaskRecord]:
        now = self._runtimes[-1].monotonic() if self._runtimes else 0.0
        return await self._read(partial(self._open_file().lost, now, size))

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[TaskKey | None]]:
        file = self._open_file()
        if self._watches:
            self._look()
        else:
            try:
                self._seen = file.sequence()
            except FileIsBusy:
                self._seen = 0  # everything is new
        watch = TaskWatch(self._runtimes[-1], self._look, _LOOK_INTERVAL)
        self._watches.append(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)

    def _open_file(self) -> TaskFile:
        if self._file is None:
            raise RuntimeError(NOT_OPEN)
        return self._file

    async def _read(self, read: Callable[..., T]) -> T:
        try:
            result = read()
        except FileIsBusy:
            # Rare: another program has the file for itself. The writer waits until it hasn't.
            result = await self._write(lambda sequence: read(wait=True), durable=False)
        file = self._file
        if file is not None and file.damaged:
            rows, file.damaged = file.damaged, []
            text = f"the task file {self.path} has records that are no tasks, which are removed"
            runtime = self._runtimes[-1]
            if self._reports is None:
                self._reports = StoreReports(runtime)
            self._reports.warn(f"{text}: {rows[0].reason}")
            runtime.start_soon(partial(self._remove_damaged, rows))
        return result

    async def _remove_damaged(self, rows: list[DamagedRow]) -> None:
        # A file that cannot be written keeps them: who reads them next tries again.
        with suppress(TaskStoreError, RuntimeError):
            await self._write(self._open_file().remove_damaged(rows), durable=False)

    async def _vacuum(self) -> None:
        """Give free pages back, a few at a time: writes of tasks come between."""
        try:
            with suppress(TaskStoreError, RuntimeError):
                while await self._read(self._open_file().wants_vacuum):
                    if not await self._write(self._open_file().vacuum(), durable=False):
                        return
        finally:
            self._vacuuming = False

    async def _write(
        self, operation: Operation, *, durable: bool, changed: TaskKey | None = None
    ) -> Any:
        """Write it with the next transaction, and return what the operation returns."""
        runtime = self._runtimes[-1]
        write = _Write(operation, runtime.new_event(), durable, changed)
        self._queued.append(write)
        if not self._writing:
            self._writing = True
            runtime.start_soon(partial(self._write_queued, runtime))
        await write.done.wait()
        if isinstance(write.outcome, Exception):
            raise write.outcome
        return write.outcome

    async def _write_queued(self, runtime: TaskRuntime) -> None:
        try:
            while self._queued:
                await runtime.in_store_thread(partial(self._write_batches, runtime))
        finally:
            self._writing = False
            if self._queued:
                # Cancelled, because the server ends. Others, that aren't, may still wait for their
                # writes, such as the last status of a task: write these here and now.
                self._write_batches(runtime)
                self._report_written()

    def _write_batches(self, runtime: TaskRuntime) -> None:
        """Write what is queued. This blocks, and may be called in any thread.

        A thread may still be here after its task was cancelled, hence the lock.
        """
        while self._queued:
            with self._write_lock:
                self._write_batch()
            runtime.call_soon(self._report_written)

    def _write_batch(self) -> None:
        batch: list[_Write] = []
        # The event loop may append meanwhile; with the lock only this thread takes.
        while self._queued and len(batch) < _MAX_BATCH:
            batch.append(self._queued.popleft())
        try:
            outcomes = self._open_file().write(
                [write.operation for write in batch],
                durable=any(write.durable for write in batch),
            )
        except Exception as exc:  # noqa: BLE001 - every caller raises it, and none waits forever
            # One exception for each caller: raising it changes its traceback.
            outcomes = [_copy(exc) for _ in batch]
        for write, outcome in zip(batch, outcomes, strict=True):
            write.outcome = outcome
        self._written += batch

    def _report_written(self) -> None:
        """Wake the callers of what was written, in the thread of the event loop."""
        while self._written:
            write = self._written.popleft()
            write.done.set()
            if write.changed is not None and write.outcome is True:
                for watch in self._watches:
                    watch.add(write.changed)
        if self._file is not None and self._watches:
            # A watch that always has something to yield never looks for more.
            idle = self._runtimes[-1].monotonic() - self._last_look
            if idle > _LOOK_INTERVAL:
                self._look()

    def _look(self) -> None:
        """Add the changes of other processes to the watches."""
        if self._file is None:
            return  # closed
        self._last_look = self._runtimes[-1].monotonic()
        try:
            self._seen, keys = self._file.changed_by_others(self._seen)
        except (FileIsBusy, TaskStoreError):
            return  # the next look finds the same changes
        for key in keys:
            for watch in self._watches:
                watch.add(key)

    def _close(self) -> None:
        """Write what is queued, and close the file.

        This blocks the event loop, but not longer than one transaction takes.
        """
        while self._queued:
            with self._write_lock:
                self._write_batch()
        with self._write_lock:  # a cancelled task has left its thread behind, which still writes
            file = self._file
            self._file = None
        self._report_written()
        if file is not None:
            file.close()


def _copy(exc: Exception) -> Exception:
    copy = TaskStoreError(str(exc) if isinstance(exc, TaskStoreError) else repr(exc))
    copy.__cause__ = exc.__cause__ or exc
    return copy
