"""The records of one server's tasks: change them in the store, and call observers of a change."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from mcp_core.tasks._states import INTERNAL_ERROR, Fail, TaskExpired, transition
from mcp_core.tasks._store import TaskQuotaExceeded, TaskStoreError
from mcp_core.types import ErrorData

from ._reports import StoreReports

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator

    from mcp_core.tasks._record import TaskKey, TaskLimits, TaskQuota, TaskRecord
    from mcp_core.tasks._states import TaskAction
    from mcp_core.tasks._store import TaskLimitName, TaskStore

    from ._runtime import TaskRuntime

__all__ = ["STORE", "RecordObserver", "TaskRecords", "run_now"]

STORE: Final = "the store of tasks"  # its name in the log

# Called with each state of a record, and with None when the record is gone. A state may come twice,
# or after a later one: compare the serial numbers. An observer must not wait.
RecordObserver: TypeAlias = "Callable[[TaskRecord | None], object]"

# How often a change is tried again because another worker was faster. It fails only if as many
# workers change one task at the same moment.
_MAX_TRIES: Final = 10
# Seconds before a store whose `watch` has failed is watched again.
_WATCH_AGAIN: Final = 1.0
# Seconds before an observed record is read again that could not be read.
_READ_AGAIN: Final = 1.0


T = TypeVar("T")


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, outside of any task, and return its value.

    Raises:
        RuntimeError: it waits: a store says that it is immediate, and isn't.
    """
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    coroutine.close()
    raise RuntimeError("a task store with immediate=True has to end without waiting")


class TaskRecords:
    """The records in `store`, with `limits` and the clock of `runtime`.

    Args:
        store: keeps the records. It is open already.
        limits: upper bounds.
        runtime: has the time.
    """

    def __init__(self, store: TaskStore, limits: TaskLimits, runtime: TaskRuntime) -> None:
        self.store = store
        self.limits = limits
        self._runtime = runtime
        self._watchers: dict[TaskKey, list[Callable[[], object]]] = {}
        self._observers: dict[TaskKey, list[RecordObserver]] = {}
        self._reading: set[TaskKey] = set()  # observed records that are about to be read
        self.reports = StoreReports(runtime)

    def __repr__(self) -> str:
        return (
            f"<TaskRecords in {self.store!r}, {len(self._watchers)} watched,"
            f" {len(self._observers)} observed>"
        )

    def quota(self, key: str) -> TaskQuota:
        """Return the limits of the store for tasks of the quota `key`."""
        return self.limits.quota(key, durable=self.store.durable)

    async def create(self, record: TaskRecord) -> TaskLimitName | None:
        """Store a new record. Return the limit that refuses it, None if it is stored."""
        return await self.store.create(record, limits=self.quota(record.quota_key))

    async def get(self, key: TaskKey) -> TaskRecord | None:
        """Return the record, or None if the task is unknown or its time to live is over."""
        record = await self.store.get(key)
        if record is not None and self._runtime.wall_time() >= record.expires:
            await self._run_reported(partial(self.remove, record))
            return None
        return record

    async def apply(
        self, key: TaskKey, *actions: TaskAction, worker: str | None = None
    ) -> tuple[TaskRecord, TaskRecord] | None:
        """Apply actions to a record, all or none. Return it before and after them.

        With `worker`, do so only while this worker has the lease: another one may run the handler
        meanwhile. Return None if there is no record.

        Raises:
            LocalProtocolError: as for `transition`.
            TaskStoreError: the store failed, or other workers were faster each time.
        """
        for _ in range(_MAX_TRIES):
            before = await self.store.get(key)
            if before is None:
                return None
            if worker is not None and before.worker != worker:
                return before, before
            after = before
            try:
                for action in actions:
                    after = transition(after, action, self._runtime.wall_time(), self.limits)
            except TaskExpired:
                await self.remove(before)
                return None
            if after is before:
                return before, before
            try:
                stored = await self._change(before, after)
            except TaskQuotaExceeded as exc:
                # The record stays and says why the task failed. Its bytes are free.
                error = Fail(self._no_room(after, exc))
                after = transition(before, error, self._runtime.wall_time(), self.limits)
                stored = await self.store.change(key, before.serial, after)
            if stored:
                self.changed(key, after)
                return before, after
        raise TaskStoreError(f"a task was changed by other workers {_MAX_TRIES} times in a row")

    async def _change(self, before: TaskRecord, after: TaskRecord) -> bool:
        if after.size <= before.size:
            return await self.store.change(before.key, before.serial, after)
        quota = self.quota(before.quota_key)
        return await self.store.change(before.key, before.serial, after, limits=quota)

    def _no_room(self, record: TaskRecord, exc: TaskQuotaExceeded) -> ErrorData:
        limit = getattr(self.quota(record.quota_key), exc.limit)
        what = "what it returned is not kept" if record.ended else "the input is not kept"
        done = "the handler has run, and what it changed stays, but " if record.ended else ""
        whose = "your tasks" if exc.limit == "key_bytes" else "all tasks"
        text = f"{done}{what}: {whose} may have {limit} bytes together, and it takes {record.size}"
        return ErrorData(INTERNAL_ERROR, text)

    async def remove(self, record: TaskRecord) -> bool:
        """Remove a record, unless it has changed. Return True if it is removed."""
        removed = await self.store.change(record.key, record.serial, None)
        if removed:
            self.changed(record.key)
        return removed

    @contextmanager
    def watched(self, key: TaskKey, on_change: Callable[[], object]) -> Iterator[None]:
        """Call `on_change` after each change of a record, also by other workers, while entered.

        It may be called without a change, and must not wait. Read the record after entering.
        """
        watchers = self._watchers.setdefault(key, [])
        watchers.append(on_change)
        try:
            yield
        finally:
            watchers.remove(on_change)
            if not watchers:
                self._watchers.pop(key, None)

    def observe(self, key: TaskKey, observer: RecordObserver) -> None:
        """Pass each further state of a record to `observer`, also those by other workers.

        Of several states in a short time by another worker, only the last one may be passed.
        """
        self._observers.setdefault(key, []).append(observer)

    def stop_observing(self, key: TaskKey, observer: RecordObserver) -> None:
        """Undo `observe`. Idempotent."""
        observers = self._observers.get(key, [])
        if observer in observers:
            observers.remove(observer)
            if not observers:
                del self._observers[key]

    def stop_observers(self) -> None:
        """Undo each `observe`: the store is closed soon, and cannot be read any more."""
        self._observers.clear()

    def changed(self, key: TaskKey, record: TaskRecord | None = None) -> None:
        """Call those who watch or observe a record. Without `record` it is read first, soon."""
        for on_change in list(self._watchers.get(key, ())):
            on_change()
        if key not in self._observers:
            return
        if record is not None:
            self._publish(key, record)
        elif key not in self._reading:
            self._reading.add(key)
            self.start_soon(partial(self._read_observed, key))

    def start_soon(self, function: Callable[[], Awaitable[object]]) -> None:
        """Run `function`, which uses the store, in a background task. Log the store's failures."""
        self._runtime.start_soon(partial(self._run_reported, function))

    async def _run_reported(self, function: Callable[[], Awaitable[object]]) -> None:
        try:
            await function()
        except TaskStoreError as exc:
            self.reports.failed(STORE, exc)

    async def _read_observed(self, key: TaskKey) -> None:
        while True:
            self._reading.discard(key)  # what changes from now on is read again
            if key not in self._observers:
                return
            try:
                record = await self.get(key)
            except TaskStoreError as exc:
                self.reports.failed(STORE, exc)
                if key in self._reading:
                    return
                # The store says only once that it has changed.
                self._reading.add(key)
                await self._runtime.wait(self._runtime.new_event(), _READ_AGAIN)
            else:
                self._publish(key, record)
                return

    def _publish(self, key: TaskKey, record: TaskRecord | None) -> None:
        for observer in list(self._observers.get(key, ())):
            observer(record)

    async def watch_store(self) -> None:
        """Call those who watch records that other processes change, until cancelled."""
        while True:
            try:
                async with self.store.watch() as keys:
                    async for key in keys:
                        if key is None:
                            self._all_changed()
                        else:
                            self.changed(key)
            except TaskStoreError as exc:
                self.reports.failed(STORE, exc)
            await self._runtime.wait(self._runtime.new_event(), _WATCH_AGAIN)
            self._all_changed()  # something may have been missed

    def _all_changed(self) -> None:
        for key in {*self._watchers, *self._observers}:
            self.changed(key)
