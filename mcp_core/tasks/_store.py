"""The protocol `TaskStore`: a place that keeps the records of tasks.

1. A store knows no rule of tasks. Every change is: `get` the record, compute the next one by
   `transition`, `change` it. If another worker was faster, `change` returns False, and all three
   are done again.
2. A store is an async context manager. Drivers enter it once for each process, before the first
   request, and leave it after the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence
    from contextlib import AbstractAsyncContextManager

    from ._record import TaskKey, TaskRecord

__all__ = ["TaskStore", "TaskStoreError"]


class TaskStore(Protocol):
    """A place that keeps the records of tasks.

    Every method raises `TaskStoreError` if the store cannot be reached or does not respond, and
    `RuntimeError` if the store is not open. A method that raised may have had its effect.
    """

    @property
    def durable(self) -> bool:
        """True if records outlive the process."""

    def opened(self, runtime: Any, /) -> AbstractAsyncContextManager[object]:
        """Return the context in which the store may be used. `runtime` is a `Runtime`."""

    def create(self, record: TaskRecord, /, *, per_owner: int, total: int) -> Awaitable[str | None]:
        """Store a new record, as durably as the store can, before this returns.

        Return None, or which limit there is in the way: `per_owner` tasks of this owner, or
        `total` tasks of the server. The limits are checked in one step with storing.
        """

    def get(self, key: TaskKey, /) -> Awaitable[TaskRecord | None]:
        """Return the record, None if there is none."""

    def change(self, key: TaskKey, serial: int, record: TaskRecord | None, /) -> Awaitable[bool]:
        """Replace the record with that serial number, or remove it if `record` is None.

        The serial number of `record` may be higher by more than one, after several actions. Return
        False, without any effect, if the stored record has another number, or there is
        none. A final status is stored as durably as `create` stores; a status message may be lost
        with the machine.
        """

    def page(self, owner: str, after: str, size: int, /) -> Awaitable[Sequence[TaskRecord]]:
        """Return up to `size` records of an owner by time and id, after the task id `after`.

        "" begins at the oldest. `result` is UNSET in all of them. An unknown `after` raises
        `KeyError`.
        """

    def stale(self, now: float, size: int, /) -> Awaitable[Sequence[TaskRecord]]:
        """Return up to `size` records that are expired at `now`, or have lost their worker.

        Those have not ended, and their `lease_until` is `now` or earlier. `result` is UNSET in all
        of them.
        """

    def watch(self) -> AbstractAsyncContextManager[AsyncIterator[TaskKey | None]]:
        """Return an iterator of the keys that this or another process has changed.

        Changes after entering are not missed. A key may come again without a change. None means
        that there was a gap, so that every record may have changed.
        """


class TaskStoreError(Exception):
    """The store of tasks cannot be reached, does not respond, or holds no valid record."""
