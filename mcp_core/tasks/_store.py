"""The protocol `TaskStore`: a place that keeps the records of tasks.

1. A store knows no rule of tasks. Every change is: `get` the record, compute the next one by
   `transition`, `change` it. If another worker was faster, `change` returns False, and all three
   are done again.
2. A store is an async context manager. Drivers enter it once for each process, before the first
   request, and leave it after the last one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

from ._record import TaskKey, TaskQuota, TaskRecord

__all__ = ["TaskLimitName", "TaskQuotaExceeded", "TaskStore", "TaskStoreError"]

# The fields of `TaskQuota`, which a store checks in this order.
TaskLimitName: TypeAlias = Literal["per_key", "total", "key_bytes", "total_bytes"]


class TaskStore(Protocol):
    """A place that keeps the records of tasks.

    Every method raises `TaskStoreError` if the store cannot be reached or doesn't respond, and
    `RuntimeError` if the store isn't open. A method that raised, or whose caller was cancelled,
    may have had its effect.
    """

    @property
    def durable(self) -> bool:
        """True if records outlive the process."""

    @property
    def immediate(self) -> bool:
        """True if no method ever waits: each ends before it lets another task run."""

    def opened(self, runtime: Any, /) -> AbstractAsyncContextManager[object]:
        """Return the context in which the store may be used. `runtime` is a `TaskRuntime`.

        It may be entered several times at once in one event loop, by several servers. The store is
        open until all of them have left it.
        """

    def create(
        self, record: TaskRecord, /, *, limits: TaskQuota
    ) -> Awaitable[TaskLimitName | None]:
        """Store the new `record`, as durably as the store can, before this returns.

        Return None, or the first of `limits` that the record would exceed: then it isn't stored.
        The limits are checked in one step with storing. Raise `TaskStoreError` if there is a record
        of that key already.
        """

    def get(self, key: TaskKey, /) -> Awaitable[TaskRecord | None]:
        """Return the record of `key`, or None if the store has no such task."""

    def change(
        self,
        key: TaskKey,
        serial: int,
        record: TaskRecord | None,
        /,
        *,
        limits: TaskQuota | None = None,
    ) -> Awaitable[bool]:
        """Replace the record of `key` and `serial`, or remove it if `record` is None.

        `record` has the same key, quota key and time of creation. Its serial number is higher,
        after several actions by more than one. Return False, without any effect, if the stored
        record has another number, or there is none. A final status is stored as durably as `create`
        stores; a status message may be lost with the machine.

        With `limits`, raise `TaskQuotaExceeded`, without any effect, if the sum of the sizes would
        exceed `key_bytes` or `total_bytes`.
        """

    def page(self, owner: str, after: str, size: int, /) -> Awaitable[Sequence[TaskRecord]]:
        """Return up to `size` records of `owner` by time and id, after the task id `after`.

        "" begins at the oldest. `result` is UNSET in all of them. An unknown `after` raises
        `KeyError`.
        """

    def remove_expired(self, now: float, size: int, /) -> Awaitable[Sequence[TaskKey]]:
        """Remove up to `size` records with `expires <= now`, and return their keys.

        None is left if it returns fewer. A store with a clock of its own uses that clock.
        """

    def renew_lease(self, worker: str, seconds: float, /) -> Awaitable[None]:
        """Believe `worker` to be alive for `seconds` from now on. 0.0 ends its lease at once.

        One lease is for all tasks of a worker. It is renewed before the worker creates a task.
        """

    def lost(self, size: int, /) -> Awaitable[Sequence[TaskRecord]]:
        """Return up to `size` records of tasks that have not ended, and whose worker is lost.

        A worker is lost when its lease is over, and at once if it has ended its lease or is "".
        Time is measured by a clock that is never set: a wall clock that jumps loses no worker.
        """

    def watch(self) -> AbstractAsyncContextManager[AsyncIterator[TaskKey | None]]:
        """Return an iterator of the keys that this or another process has changed or removed.

        Changes after entering aren't missed. A key may come again, or come without a change. None
        means that there was a gap, so that every record may have changed. The iterator raises
        nothing: while the store cannot be reached it waits, and then yields what it has missed.
        """


class TaskQuotaExceeded(Exception):
    """A changed record would take more bytes than there are. `limit` is the one in the way."""

    def __init__(self, limit: TaskLimitName) -> None:
        super().__init__(limit)
        self.limit: TaskLimitName = limit


class TaskStoreError(Exception):
    """The store of tasks cannot be reached, doesn't respond, or holds no valid record."""
