"""The task store of one process: records in dicts, which end with the process.

1. A method that has nothing to wait for doesn't let other tasks run, so that creating a task
   costs little more than a call. Each takes effect in one step, because all tasks share a thread.
2. Records are never copied: they don't change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heapify, heappop, heappush
from itertools import count, islice
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from mcp_core.tasks import (
    TaskKey,
    TaskLimitName,
    TaskQuota,
    TaskQuotaExceeded,
    TaskRecord,
    TaskStoreError,
)
from mcp_core.tasks._leases import LeaseObserver, WorkerLease

from ._runtime import TaskRuntime
from ._watch import TaskWatch

__all__ = ["NOT_OPEN", "MemoryTaskStore"]

NOT_OPEN: Final = (
    "the task store is not open; pass it to a server, which opens it while it is served,"
    " or use it inside `async with store.opened(runtime)`"
)
# The queue isn't rebuilt for fewer superfluous entries than this.
_MIN_SUPERFLUOUS: Final = 64


class _Usage:
    """The number of tasks of one quota key, and their bytes."""

    __slots__ = ("size", "tasks")

    def __init__(self) -> None:
        self.tasks = 0
        self.size = 0


class MemoryTaskStore:
    """A `TaskStore` in the process's memory: the default.

    Tasks are lost with the process. They stay if the server stops and is served again.
    """

    durable = False
    immediate = True

    def __init__(self) -> None:
        self._records: dict[TaskKey, TaskRecord] = {}
        # By owner: creation time and id of each record, sorted.
        self._created: dict[str, list[tuple[float, str]]] = {}
        self._used: dict[str, _Usage] = {}  # by quota key
        self._size = 0  # bytes of all records
        # A heap with the expiry of each record, and of some that are removed already.
        self._expiry_queue: list[tuple[float, TaskKey]] = []
        # By worker: its tasks that haven't ended, in order.
        self._held: dict[str, dict[TaskKey, None]] = {}
        self._leases: dict[str, WorkerLease] = {}
        self._observer = LeaseObserver()
        self._renewals = count(1)
        self._watches: list[TaskWatch] = []
        self._runtimes: list[TaskRuntime] = []

    def __repr__(self) -> str:
        return f"<MemoryTaskStore of {len(self._records)}>"

    @asynccontextmanager
    async def opened(self, runtime: TaskRuntime, /) -> AsyncIterator[MemoryTaskStore]:
        self._runtimes.append(runtime)
        try:
            yield self
        finally:
            self._runtimes.remove(runtime)

    async def create(self, record: TaskRecord, /, *, limits: TaskQuota) -> TaskLimitName | None:
        self._check_open()
        key = record.key
        if key in self._records:
            raise TaskStoreError("there is a task with this id already; create it with another id")
        used = self._used.get(record.quota_key) or _Usage()
        if used.tasks >= limits.per_key:
            return "per_key"
        if len(self._records) >= limits.total:
            return "total"
        excess = self._find_excess(used, record.size, limits)
        if excess is not None:
            return excess
        self._records[key] = record
        self._used[record.quota_key] = used
        used.tasks += 1
        used.size += record.size
        self._size += record.size
        insort(self._created.setdefault(key.owner, []), (record.created, record.id))
        self._hold(record)
        heappush(self._expiry_queue, (record.expires, key))
        return None

    def _find_excess(self, used: _Usage, more: int, limits: TaskQuota) -> TaskLimitName | None:
        """Return the limit that refuses `more` bytes, if one does."""
        if used.size + more > limits.key_bytes:
            return "key_bytes"
        return "total_bytes" if self._size + more > limits.total_bytes else None

    async def get(self, key: TaskKey, /) -> TaskRecord | None:
        self._check_open()
        return self._records.get(key)

    async def change(
        self,
        key: TaskKey,
        serial: int,
        record: TaskRecord | None,
        /,
        *,
        limits: TaskQuota | None = None,
    ) -> bool:
        self._check_open()
        old = self._records.get(key)
        if old is None or old.serial != serial:
            return False
        if record is None:
            self._remove(old)
        else:
            used = self._used[old.quota_key]
            more = record.size - old.size
            excess = None if limits is None else self._find_excess(used, more, limits)
            if excess is not None:
                raise TaskQuotaExceeded(excess)
            used.size += more
            self._size += more
            self._records[old.key] = record
            self._release(old)
            self._hold(record)
        for watch in self._watches:
            watch.add(key)
        return True

    async def page(self, owner: str, after: str, size: int, /) -> list[TaskRecord]:
        self._check_open()
        created = self._created.get(owner, [])
        start = 0
        if after:
            last = self._records[TaskKey(owner, after)]
            start = bisect_right(created, (last.created, last.id))
        page = created[start : start + size]
        return [_without_result(self._records[TaskKey(owner, id)]) for _, id in page]

    async def remove_expired(self, now: float, size: int, /) -> list[TaskKey]:
        self._check_open()
        queue = self._expiry_queue
        removed: list[TaskKey] = []
        while queue and queue[0][0] <= now and len(removed) < size:
            expires, key = heappop(queue)
            record = self._records.get(key)
            # Otherwise it was removed before, and the id may have been used again.
            if record is not None and record.expires == expires:
                self._remove(record)
                removed.append(key)
                for watch in self._watches:
                    watch.add(key)
        return removed

    async def renew_lease(self, worker: str, seconds: float, /) -> None:
        self._check_open()
        if seconds > 0:
            self._leases[worker] = WorkerLease(worker, next(self._renewals), seconds)
        else:
            self._leases.pop(worker, None)

    async def lost(self, size: int, /) -> list[TaskRecord]:
        self._check_open()
        leases = [
            self._leases.get(worker) or WorkerLease(worker, None, 0.0) for worker in self._held
        ]
        found: list[TaskRecord] = []
        for worker in self._observer.lost_workers(leases, self._runtimes[-1].monotonic()):
            keys = islice(self._held[worker], size - len(found))
            found += [self._records[key] for key in keys]
        return found

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[TaskKey | None]]:
        self._check_open()
        watch = TaskWatch(self._runtimes[-1])
        self._watches.append(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)

    def _check_open(self) -> None:
        if not self._runtimes:
            raise RuntimeError(NOT_OPEN)

    def _remove(self, record: TaskRecord) -> None:
        del self._records[record.key]
        self._size -= record.size
        used = self._used[record.quota_key]
        used.tasks -= 1
        used.size -= record.size
        if not used.tasks:
            del self._used[record.quota_key]
        created = self._created[record.owner]
        del created[bisect_left(created, (record.created, record.id))]
        if not created:
            del self._created[record.owner]
        self._release(record)
        if len(self._expiry_queue) > 2 * len(self._records) + _MIN_SUPERFLUOUS:
            self._expiry_queue = [(kept.expires, key) for key, kept in self._records.items()]
            heapify(self._expiry_queue)

    def _hold(self, record: TaskRecord) -> None:
        if not record.ended:
            self._held.setdefault(record.worker, {})[record.key] = None

    def _release(self, record: TaskRecord) -> None:
        held = self._held.get(record.worker)
        if held is not None:
            held.pop(record.key, None)
            if not held:
                del self._held[record.worker]


def _without_result(record: TaskRecord) -> TaskRecord:
    return record if record.result is UNSET else replace(record, result=UNSET)
