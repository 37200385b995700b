"""The contract of task stores: a store that breaks it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import TaskKey
from tests.core.tasks import store_contract as contract
from tests.core.tasks.runtimes import run_trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.tasks import TaskLimitName, TaskQuota, TaskRecord


class _LyingStore(MemoryTaskStore):
    """Returns True without writing."""

    async def change(
        self, key: TaskKey, serial: int, record: TaskRecord | None, /, **_: Any
    ) -> bool:
        known = await self.get(key)
        return known is not None and known.serial == serial


class _SharingStore(MemoryTaskStore):
    """Finds the records of other owners."""

    async def get(self, key: TaskKey, /) -> TaskRecord | None:
        found = (record for record in self._records.values() if record.id == key.id)
        return next(found, None)


class _GrowingStore(MemoryTaskStore):
    """Lets a record grow as it likes."""

    async def change(
        self, key: TaskKey, serial: int, record: TaskRecord | None, /, **_: Any
    ) -> bool:
        return await super().change(key, serial, record)


class _BoundlessStore(MemoryTaskStore):
    """Forgets the limits."""

    async def create(self, record: TaskRecord, /, *, limits: TaskQuota) -> TaskLimitName | None:
        return await super().create(record, limits=contract.quota())


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (_LyingStore, contract.change_replaces_all_fields),
        (_LyingStore, contract.change_of_another_serial_has_no_effect),
        (_LyingStore, contract.removed_record_is_gone),
        (_LyingStore, contract.large_result_is_kept),
        (_LyingStore, contract.racing_changes_have_distinct_serials),
        (_SharingStore, contract.unknown_key_is_not_found),
        (_SharingStore, contract.same_id_of_two_owners_is_two_records),
        (_BoundlessStore, contract.limit_of_a_quota_key_is_kept),
        (_BoundlessStore, contract.limit_of_all_is_kept),
        (_BoundlessStore, contract.bytes_of_a_quota_key_are_kept),
        (_BoundlessStore, contract.bytes_of_all_are_kept),
        (_GrowingStore, contract.change_that_does_not_fit_has_no_effect),
        (_BoundlessStore, contract.limits_hold_for_creates_at_once),
    ],
)
def test_contract_with_broken_store_fails(
    broken: Callable[[], MemoryTaskStore],
    check: Callable[[contract.Stores], Awaitable[object]],
) -> None:
    store = broken()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run_trio(lambda runtime: contract.run_check(check, lambda: store, runtime))
