"""The store in memory: the contract, no needless waiting, and no growth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import given
from msgspec.structs import replace

from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import Cancel, SetMessage, TaskKey, transition
from tests.core.tasks.runtimes import RUNS, run_trio
from tests.core.tasks.store_contract import (
    CONTRACT,
    LIMITS,
    MANY,
    NOW,
    Step,
    check_steps,
    new_record,
    quota,
    run_check,
    steps,
)
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from tests.core.tasks.runtimes import StoreRuntime
    from tests.core.tasks.store_contract import Stores

T = TypeVar("T")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("check", CONTRACT)
def test_memory_store_keeps_the_contract(
    run: Callable[..., None], check: Callable[[Stores], Awaitable[object]]
) -> None:
    store = MemoryTaskStore()
    run(lambda runtime: run_check(check, lambda: store, runtime))


@fewer_examples(2)
@given(script=steps)
def test_memory_store_is_a_dict(script: list[Step]) -> None:
    store = MemoryTaskStore()
    run_trio(
        lambda runtime: run_check(
            lambda stores: check_steps(stores, script), lambda: store, runtime
        )
    )


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    raise AssertionError("it waits")


def with_open_store(main: Callable[[MemoryTaskStore], Awaitable[None]]) -> None:
    async def run(runtime: StoreRuntime) -> None:
        store = MemoryTaskStore()
        async with store.opened(runtime):
            await main(store)

    run_trio(run)


def test_methods_never_let_other_tasks_run() -> None:
    """Creating a task has to cost little more than a call."""

    async def main(store: MemoryTaskStore) -> None:
        record = new_record()
        assert at_once(store.create(record, **MANY)) is None
        assert at_once(store.get(record.key)) is record
        assert at_once(store.page("ada", "", 1)) == [record]
        assert at_once(store.lost(1)) == [record]
        at_once(store.renew_lease("w1", 30.0))
        assert at_once(store.lost(1)) == []
        assert at_once(store.change(record.key, 1, None))
        assert at_once(store.remove_expired(NOW + 9_999, 1)) == []

    with_open_store(main)


def test_changed_and_removed_records_leave_nothing() -> None:
    """The indexes of the store shrink with the records, or a busy server grows for ever."""

    async def main(store: MemoryTaskStore) -> None:
        record = new_record()
        await store.create(record, **MANY)
        for number in range(1_000):  # up and down
            after = replace(record, worker=f"w{number}", serial=record.serial + 1)
            assert await store.change(record.key, record.serial, after)
            record = after
        for number in range(1_000):
            other = new_record(str(number), f"owner {number}", worker=f"v{number}")
            await store.create(other, **MANY)
            assert await store.change(other.key, 1, None)
        assert len(store._expiry_queue) < 100
        assert list(store._held) == ["w999"]
        assert list(store._created) == ["ada"]
        assert await store.change(record.key, record.serial, None)
        assert not store._records
        assert not store._created

    with_open_store(main)


def test_watcher_far_behind_gets_a_gap() -> None:
    async def main(store: MemoryTaskStore) -> None:
        keys = [TaskKey("ada", str(number)) for number in range(1_500)]
        async with store.watch() as watch:
            for key in keys:
                await store.create(new_record(key.id), limits=quota(9_999, 9_999))
                cancelled = transition(new_record(key.id), Cancel(), NOW, LIMITS)
                assert await store.change(key, 1, cancelled)
            assert await anext(watch) is None
            assert await store.change(keys[0], 2, None)
            assert await anext(watch) == keys[0]

    with_open_store(main)


def test_watcher_gets_a_key_once_until_it_has_read_it() -> None:
    async def main(store: MemoryTaskStore) -> None:
        record = new_record()
        await store.create(record, **MANY)
        async with store.watch() as watch:
            for number in range(3):
                after = transition(record, SetMessage(str(number)), NOW, LIMITS)
                assert await store.change(record.key, record.serial, after)
                record = after
            assert await anext(watch) == record.key
            assert await store.change(record.key, record.serial, None)
            assert await anext(watch) == record.key
            assert not watch._keys  # type: ignore[attr-defined]

    with_open_store(main)


def test_record_takes_few_objects_beside_itself() -> None:
    async def main(store: MemoryTaskStore) -> None:
        before = sys.getallocatedblocks()
        records = [new_record(f"{number:032x}") for number in range(1_000)]
        alone = sys.getallocatedblocks() - before
        for record in records:
            await store.create(record, **MANY)
        stored = sys.getallocatedblocks() - before - alone
        assert stored < 8 * len(records)  # objects

    with_open_store(main)


def test_repr_shows_no_id() -> None:
    assert repr(MemoryTaskStore()) == "<MemoryTaskStore of 0>"
