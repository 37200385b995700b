"""Limits on the memory that the calls of running tasks take in this process, with any store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_core.tasks._record import TaskKey, TaskLimits, TaskRecord
    from mcp_core.tasks._store import TaskLimitName

__all__ = ["HeldCalls"]


class HeldCalls:
    """The calls that this process holds until their handlers have ended.

    A store counts a task until its record has ended. A handler that is cancelled, and goes on in a
    thread, holds its arguments longer than that.

    Args:
        limits: upper bounds. Only `total`, `stored_bytes` and `client_share` apply here.
    """

    def __init__(self, limits: TaskLimits) -> None:
        self._limits = limits
        self._calls: dict[TaskKey, tuple[str, int]] = {}  # the quota key of each, and bytes
        self._sizes: dict[str, int] = {}  # by quota key
        self._size = 0

    def __repr__(self) -> str:
        return f"<HeldCalls: {len(self._calls)} of {self._size} bytes>"

    def find_excess(self, record: TaskRecord) -> TaskLimitName | None:
        """Return which limit refuses a new record's call, or None if it fits."""
        quota = self._limits.quota(record.quota_key, durable=False)
        # As many more may be expired or cancelled while their handlers still run.
        if len(self._calls) >= 2 * quota.total:
            return "total"
        if self._sizes.get(record.quota_key, 0) + record.size > quota.key_bytes:
            return "key_bytes"
        return "total_bytes" if self._size + record.size > quota.total_bytes else None

    def hold(self, record: TaskRecord) -> None:
        """Count a record's call."""
        key, size = record.quota_key, record.size
        self._calls[record.key] = key, size
        self._sizes[key] = self._sizes.get(key, 0) + size
        self._size += size

    def release(self, task: TaskKey) -> None:
        """Stop counting the call of a task. Idempotent."""
        key, size = self._calls.pop(task, ("", -1))
        if size < 0:
            return
        self._size -= size
        left = self._sizes.get(key, 0) - size
        if left:
            self._sizes[key] = left
        else:
            self._sizes.pop(key, None)  # calls from old files count no bytes
