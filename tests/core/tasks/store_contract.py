"""The contract of every `TaskStore`, as checks that a test runs with each store and runtime.

A check gets `Stores`: the same records through two connections, which in memory are one store. It
raises an `AssertionError` if the store breaks the contract.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from msgspec.structs import replace

from mcp_core.tasks import (
    Cancel,
    Complete,
    Fail,
    ReceiveResponse,
    RequestInput,
    SetMessage,
    TaskCall,
    TaskKey,
    TaskLimits,
    TaskQuota,
    TaskQuotaExceeded,
    TaskRecord,
    TaskStoreError,
    transition,
)
from mcp_core.types import ClientCapabilities, ElicitParams, ElicitRequest, ErrorData
from tests.core.tasks.runtimes import StoreRuntime, together

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_core.tasks import TaskStore

__all__ = [
    "CONTRACT",
    "Stores",
    "check_steps",
    "comparable",
    "new_record",
    "quota",
    "run_check",
    "steps",
]

LIMITS: Final = TaskLimits()
NOW: Final = 1_800_000_000.0
PLENTY: Final = 1 << 40  # bytes


def quota(
    per_key: int = 1_000,
    total: int = 1_000,
    *,
    key_bytes: int = PLENTY,
    total_bytes: int = PLENTY,
) -> TaskQuota:
    return TaskQuota(per_key=per_key, total=total, key_bytes=key_bytes, total_bytes=total_bytes)


MANY: Final[dict[str, Any]] = {"limits": quota()}


@dataclass
class Stores:
    """One set of records, with two connections to it."""

    make: Callable[[], TaskStore]
    runtime: StoreRuntime
    _context: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def open(self) -> None:
        """Open both connections, again if they are open."""
        await self._context.aclose()
        self.one = self.make()
        self.two = self.make()
        for store in (self.one, self.two):
            await self._context.enter_async_context(store.opened(self.runtime))

    async def close(self) -> None:
        await self._context.aclose()


async def run_check(
    check: Callable[[Stores], Awaitable[object]],
    make: Callable[[], TaskStore],
    runtime: StoreRuntime,
) -> None:
    stores = Stores(make, runtime)
    try:
        await stores.open()
        await check(stores)
    finally:
        await stores.close()


def new_record(id: str = "a", owner: str = "ada", **fields: Any) -> TaskRecord:
    """Return a new record of a task that the worker w1 runs."""
    known: dict[str, Any] = {
        "created": NOW,
        "updated": NOW,
        "ttl": 3600.0,
        "tool": "research",
        "revision": "2026-07-28",
        "worker": "w1",
    }
    return TaskRecord(id=id, owner=owner, **{**known, **fields})


def full_record() -> TaskRecord:
    """Return a record in which no field has its default, as far as they go together."""
    question = ElicitRequest(
        ElicitParams(message="Which?", requested_schema={"type": "object", "properties": {}})
    )
    record = new_record(
        owner="Ünïcode :{}\0",
        call=TaskCall(
            params=Raw(b'{"name":"research"}'), capabilities=ClientCapabilities(), principal="ada"
        ),
    )
    for action in (
        SetMessage("Reading ☃"),
        RequestInput("first", question),
        RequestInput("second", question),
        ReceiveResponse("first", Raw(b'{"action":"decline"}')),
    ):
        record = transition(record, action, NOW + 1, LIMITS)
    return record


def completed(record: TaskRecord, result: bytes = b'{"content":[]}') -> TaskRecord:
    return transition(record, Complete(Raw(result)), NOW + 2, LIMITS)


def same(one: TaskRecord | None, two: TaskRecord | None) -> bool:
    """Return True if the records are equal. `Raw` has no equality of its own."""
    if one is None or two is None:
        return one is two
    return comparable(one) == comparable(two)


def comparable(record: TaskRecord) -> list[object]:
    values: list[object] = []
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if name == "responses":
            value = {key: bytes(raw) for key, raw in value.items()}
        elif name == "call" and value is not None:
            value = (bytes(value.params), value.capabilities, value.client, value.principal)
        elif isinstance(value, Raw):
            value = bytes(value)
        values.append(value)
    return values


async def created_record_is_found_by_both(stores: Stores) -> None:
    for record in (new_record(), full_record(), new_record(owner="")):
        assert await stores.one.create(record, **MANY) is None
        assert same(await stores.one.get(record.key), record)
        assert same(await stores.two.get(record.key), record)


async def unknown_key_is_not_found(stores: Stores) -> None:
    await stores.one.create(new_record(), **MANY)
    for key in (TaskKey("ada", "b"), TaskKey("", "a"), TaskKey("ad", "aa"), TaskKey("ada", "")):
        assert await stores.one.get(key) is None
        assert not await stores.one.change(key, 1, new_record())
        assert not await stores.one.change(key, 1, None)
    assert await stores.one.get(TaskKey("ada", "A")) is None  # ids have two cases


async def key_that_exists_is_not_created_again(stores: Stores) -> None:
    record = new_record()
    await stores.one.create(record, **MANY)
    for store in (stores.one, stores.two):
        with pytest.raises(TaskStoreError, match="already"):
            await store.create(new_record(tool="other"), **MANY)
    assert same(await stores.one.get(record.key), record)


async def same_id_of_two_owners_is_two_records(stores: Stores) -> None:
    mine, theirs = new_record(), new_record(owner="bob", tool="other")
    await stores.one.create(mine, **MANY)
    await stores.one.create(theirs, **MANY)
    assert await stores.one.change(mine.key, 1, None)
    assert await stores.one.get(mine.key) is None
    assert same(await stores.one.get(theirs.key), theirs)


async def change_replaces_all_fields(stores: Stores) -> None:
    record = full_record()
    after = replace(record, serial=1)
    await stores.one.create(after, **MANY)
    for action in (
        ReceiveResponse("second", Raw(b"{}")),
        SetMessage("Writing"),
        Complete(Raw(b'{"content":[{"type":"text","text":"\\u2603"}]}'), is_error=True),
    ):
        before = await stores.one.get(record.key)
        assert before is not None
        after = transition(before, action, NOW + 3, LIMITS)
        assert await stores.two.change(record.key, before.serial, after)
        assert same(await stores.one.get(record.key), after)
    # No rule of tasks is the store's: it also replaces a result by none.
    again = new_record(record.id, record.owner, serial=after.serial + 1)
    assert await stores.one.change(record.key, after.serial, again)
    assert same(await stores.two.get(record.key), again)


async def failure_and_cancellation_are_stored(stores: Stores) -> None:
    for id, action in (("a", Fail(ErrorData(-32603, "broken", {"a": 1}))), ("b", Cancel("enough"))):
        record = new_record(id)
        await stores.one.create(record, **MANY)
        after = transition(record, action, NOW + 1, LIMITS)
        assert await stores.one.change(record.key, 1, after)
        assert same(await stores.two.get(record.key), after)


async def change_of_another_serial_has_no_effect(stores: Stores) -> None:
    record = new_record()
    await stores.one.create(record, **MANY)
    second = transition(record, SetMessage("second"), NOW, LIMITS)
    assert await stores.one.change(record.key, 1, second)
    for store in (stores.one, stores.two):
        assert not await store.change(record.key, 1, completed(record))
        assert not await store.change(record.key, 1, None)
        assert not await store.change(record.key, 3, completed(second))
    assert same(await stores.two.get(record.key), second)


async def removed_record_is_gone(stores: Stores) -> None:
    record = new_record()
    await stores.one.create(record, **MANY)
    assert await stores.two.change(record.key, 1, None)
    for store in (stores.one, stores.two):
        assert await store.get(record.key) is None
        assert not await store.change(record.key, 1, completed(record))
        assert list(await store.page("ada", "", 10)) == []
        assert list(await store.remove_expired(NOW + 10_000, 10)) == []
        assert list(await store.lost(10)) == []
    assert await stores.one.create(record, **MANY) is None


async def large_result_is_kept(stores: Stores) -> None:
    record = new_record()
    await stores.one.create(record, **MANY)
    after = completed(record, b'{"text":"%b"}' % (b"x" * LIMITS.result)[:-11])
    assert after.status == "completed"
    assert await stores.one.change(record.key, 1, after)
    assert same(await stores.two.get(record.key), after)


async def limit_of_a_quota_key_is_kept(stores: Stores) -> None:
    """For all owners with that key: the clients of a user are owners of their own."""
    for id in "abc":
        record = new_record(id, owner=f"client {id}", quota_key="ada")
        assert await stores.one.create(record, limits=quota(3, 10)) is None
    record = new_record("d", quota_key="ada")
    for store in (stores.one, stores.two):
        assert await store.create(record, limits=quota(3, 10)) == "per_key"
    assert await stores.one.get(record.key) is None
    other = new_record("d", "bob", quota_key="bob")
    assert await stores.two.create(other, limits=quota(3, 10)) is None
    assert await stores.two.change(TaskKey("client a", "a"), 1, None)
    assert await stores.one.create(record, limits=quota(3, 10)) is None


async def limit_of_all_is_kept(stores: Stores) -> None:
    for owner in ("ada", "bob", ""):
        assert await stores.one.create(new_record(owner=owner), limits=quota(9, 3)) is None
    for store in (stores.one, stores.two):
        assert await store.create(new_record(owner="eve"), limits=quota(9, 3)) == "total"
    assert await stores.two.change(TaskKey("bob", "a"), 1, None)
    assert await stores.one.create(new_record(owner="eve"), limits=quota(9, 3)) is None


async def bytes_of_a_quota_key_are_kept(stores: Stores) -> None:
    limits = quota(key_bytes=100, total_bytes=250)
    for id, size in (("a", 60), ("b", 40)):
        record = new_record(id, owner=id, quota_key="ada", size=size)
        assert await stores.one.create(record, limits=limits) is None
    record = new_record("c", quota_key="ada", size=1)
    for store in (stores.one, stores.two):
        assert await store.create(record, limits=limits) == "key_bytes"
    assert await stores.one.get(record.key) is None
    # The bytes of a task are free before its record is gone, and its place is not.
    a = new_record("a", owner="a", quota_key="ada", size=60)
    ended = replace(completed(a), size=20)
    assert await stores.two.change(a.key, 1, ended)
    assert await stores.one.create(replace(record, size=40), limits=limits) is None
    for store in (stores.one, stores.two):
        few = quota(3, key_bytes=100, total_bytes=250)
        assert await store.create(new_record("e", quota_key="ada"), limits=few) == "per_key"
    assert await stores.two.change(TaskKey("b", "b"), 1, None)
    last = new_record("e", quota_key="ada", size=40)
    assert await stores.two.create(last, limits=limits) is None
    assert await stores.one.change(a.key, ended.serial, None)
    for kept in (record, last):
        assert await stores.one.change(kept.key, 1, None)
    full = new_record("f", quota_key="ada", size=100)
    assert await stores.one.create(full, limits=limits) is None


async def bytes_of_all_are_kept(stores: Stores) -> None:
    limits = quota(key_bytes=100, total_bytes=250)
    for owner in ("ada", "bob"):
        record = new_record(owner=owner, quota_key=owner, size=100)
        assert await stores.one.create(record, limits=limits) is None
    record = new_record("a", "eve", quota_key="eve", size=51)
    for store in (stores.one, stores.two):
        assert await store.create(record, limits=limits) == "total_bytes"
    assert await stores.two.create(replace(record, size=50), limits=limits) is None


async def change_that_does_not_fit_has_no_effect(stores: Stores) -> None:
    limits = quota(key_bytes=100, total_bytes=150)
    a, b = (new_record(id, quota_key=id, size=60) for id in "ab")
    for record in (a, b):
        assert await stores.one.create(record, limits=limits) is None
    for size, limit in ((101, "key_bytes"), (91, "total_bytes")):
        larger = replace(completed(a), size=size)
        for store in (stores.one, stores.two):
            with pytest.raises(TaskQuotaExceeded, match=limit) as caught:
                await store.change(a.key, 1, larger, limits=limits)
            assert caught.value.limit == limit
            assert not await store.change(a.key, 7, larger, limits=limits)
            assert not await store.change(TaskKey("ada", "z"), 1, larger, limits=limits)
    assert same(await stores.two.get(a.key), a)
    fits = replace(completed(a), size=90)
    assert await stores.two.change(a.key, 1, fits, limits=limits)
    assert same(await stores.one.get(a.key), fits)
    # Without limits it is stored all the same, as a failure would be.
    assert await stores.two.change(b.key, 1, replace(completed(b), size=101))


async def limits_hold_for_creates_at_once(stores: Stores) -> None:
    def create(index: int) -> Awaitable[str | None]:
        store = (stores.one, stores.two)[index % 2]
        return store.create(new_record(str(index)), limits=quota(7, 100))

    results = await together(stores.runtime, *(partial(create, index) for index in range(20)))
    assert sorted(map(str, results)) == ["None"] * 7 + ["per_key"] * 13
    assert len(await stores.one.page("ada", "", 100)) == 7


async def page_is_sorted_by_time_and_id(stores: Stores) -> None:
    order = [("c", 1.0), ("a", 2.0), ("b", 2.0), ("d", 2.5), ("A", 1.5), ("e", 0.25)]
    for id, created in order:
        await stores.one.create(new_record(id, created=NOW + created), **MANY)
    await stores.one.create(new_record("z", "bob"), **MANY)
    assert [record.id for record in await stores.two.page("ada", "", 10)] == list("ecAabd")
    assert [record.id for record in await stores.two.page("ada", "", 2)] == ["e", "c"]
    assert [record.id for record in await stores.two.page("ada", "c", 3)] == list("Aab")
    assert [record.id for record in await stores.two.page("ada", "a", 10)] == list("bd")
    assert list(await stores.two.page("ada", "d", 10)) == []
    assert list(await stores.two.page("eve", "", 10)) == []


async def page_after_unknown_id_raises(stores: Stores) -> None:
    await stores.one.create(new_record("a"), **MANY)
    await stores.one.create(new_record("b", "bob"), **MANY)
    for after in ("c", "b", "A", "a\0"):
        with pytest.raises(KeyError):
            await stores.one.page("ada", after, 10)


async def page_leaves_results_out(stores: Stores) -> None:
    record = new_record()
    await stores.one.create(record, **MANY)
    after = completed(record)
    await stores.one.change(record.key, 1, after)
    found = await stores.two.page("ada", "", 10)
    assert same(found[0], replace(after, result=UNSET))
    assert same(await stores.one.get(record.key), after)


async def expired_records_are_removed(stores: Stores) -> None:
    records = [new_record(str(number), ttl=10.0 + number) for number in range(5)]
    records.append(completed(new_record("ended", serial=0, ttl=13.0)))
    records.append(new_record("kept", "bob"))
    for record in records:
        await stores.one.create(record, **MANY)

    async def removed(now: float, size: int = 10) -> list[str]:
        return [key.id for key in await stores.two.remove_expired(now, size)]

    assert await removed(NOW + 9.9) == []
    assert await removed(NOW + 10) == ["0"]
    assert await removed(NOW + 10) == []
    assert await removed(NOW + 13, 2) == ["1", "2"]
    assert sorted(await removed(NOW + 13, 2)) == ["3", "ended"]
    assert await removed(NOW + 13, 2) == []
    assert [record.id for record in await stores.one.page("ada", "", 10)] == ["4"]
    for record in records[:4]:
        assert await stores.one.get(record.key) is None
    assert len(await removed(NOW + 3600)) == 2
    assert await stores.one.create(new_record("kept", "bob"), limits=quota(1, 1)) is None


async def expired_records_wake_watchers(stores: Stores) -> None:
    record = new_record(ttl=10.0)
    await stores.one.create(record, **MANY)
    async with stores.one.watch() as mine, stores.two.watch() as other:
        await stores.one.remove_expired(NOW + 10, 10)
        for watch in (mine, other):
            await _until_seen(watch, record.key, stores.runtime)


async def lost_ids(stores: Stores, seconds: float = 0.0, size: int = 10) -> set[str]:
    """Return the ids of lost tasks after some seconds, during which the stores look for them."""
    for _ in range(4):
        stores.runtime.ahead += seconds / 4
        await stores.two.lost(size)
    return {record.id for record in await stores.two.lost(size)}


async def tasks_of_lost_workers_are_found(stores: Stores) -> None:
    records = {
        "first": new_record("first"),
        "other": new_record("other", worker="w2"),
        "free": new_record("free", worker=""),
        "ended": completed(new_record("ended", serial=0)),
    }
    await stores.one.renew_lease("w1", 30.0)
    await stores.one.renew_lease("w2", 30.0)
    for record in records.values():
        await stores.one.create(record, **MANY)
    assert await lost_ids(stores) == {"free"}
    assert await lost_ids(stores, 20) == {"free"}
    await stores.one.renew_lease("w2", 30.0)
    assert await lost_ids(stores, 20) == {"free", "first"}
    assert await lost_ids(stores) == {"free", "first"}  # asking changes nothing
    assert len(await stores.two.lost(1)) == 1
    await stores.one.renew_lease("w1", 30.0)  # it was only slow
    assert await lost_ids(stores, 5) == {"free"}
    await stores.one.renew_lease("w1", 0.0)  # it gives its tasks back
    await stores.one.renew_lease("w2", 30.0)
    assert await lost_ids(stores) == {"free", "first"}
    taken = replace(records["first"], worker="w2", serial=2)
    assert await stores.two.change(taken.key, 1, taken)
    assert await lost_ids(stores) == {"free"}
    assert await stores.two.change(taken.key, 2, completed(taken))
    assert await lost_ids(stores, 60) == {"free", "other"}
    (found,) = (record for record in await stores.one.lost(10) if record.id == "free")
    assert same(found, records["free"])


async def renewed_lease_is_never_lost(stores: Stores) -> None:
    """Neither by time, nor if wall clocks jump, since they play no part."""
    await stores.one.renew_lease("w1", 30.0)
    await stores.one.create(new_record(), **MANY)
    for _ in range(8):
        assert await lost_ids(stores, 20) == set()
        await stores.one.renew_lease("w1", 30.0)
        await stores.one.renew_lease("w3", 30.0)
    assert await lost_ids(stores, 40) == {"a"}


async def changes_wake_watchers(stores: Stores) -> None:
    a, b = new_record("a"), new_record("b")
    for record in (a, b):
        await stores.one.create(record, **MANY)
    for store in (stores.one, stores.two):
        async with store.watch() as mine, stores.one.watch() as other:
            for watch in (mine, other):
                current = await stores.one.get(a.key)
                assert current is not None
                after = transition(current, SetMessage(str(current.serial)), NOW, LIMITS)
                assert await stores.one.change(a.key, current.serial, after)
                await _until_seen(watch, a.key, stores.runtime)
    async with stores.two.watch() as watch:
        assert await stores.one.change(b.key, 1, None)
        await _until_seen(watch, b.key, stores.runtime)


async def _until_seen(
    watch: AsyncIterator[TaskKey | None], key: TaskKey, runtime: StoreRuntime
) -> None:
    """Read `watch` until it yields `key`, or a gap."""

    async def read() -> None:
        async for found in watch:
            if found is None or found == key:
                return
        raise AssertionError("a watch does not end")

    await together(runtime, read)


async def watch_may_be_cancelled_and_read_again(stores: Stores) -> None:
    record = new_record()
    await stores.one.create(record, **MANY)
    async with stores.two.watch():
        pass
    async with stores.two.watch() as watch:
        after = transition(record, SetMessage("x"), NOW, LIMITS)
        assert await stores.one.change(record.key, 1, after)
        await _until_seen(watch, record.key, stores.runtime)


async def racing_changes_have_distinct_serials(stores: Stores) -> None:
    """Two connections change one record at once: of each serial number one of them wins."""
    record = new_record()
    await stores.one.create(record, **MANY)
    won: list[tuple[int, str]] = []

    async def work(store: TaskStore, name: str) -> None:
        for step in range(15):
            for _ in range(1_000):
                current = await store.get(record.key)
                assert current is not None
                text = f"{name}{step}"
                after = transition(current, SetMessage(text), NOW, LIMITS)
                if await store.change(record.key, current.serial, after):
                    won.append((after.serial, text))
                    break
            else:
                raise AssertionError("another worker was always faster")

    await together(
        stores.runtime,
        *(
            partial(work, store, name)
            for store, name in ((stores.one, "a"), (stores.two, "b"), (stores.one, "c"))
        ),
    )
    assert sorted(serial for serial, _ in won) == list(range(2, 47))
    last = await stores.two.get(record.key)
    assert last is not None
    assert (last.serial, last.message) == max(won)


async def unopened_store_names_the_cure(stores: Stores) -> None:
    record = new_record()
    await stores.one.create(record, **MANY)
    await stores.close()
    for call in (
        lambda: stores.one.create(record, **MANY),
        lambda: stores.one.get(record.key),
        lambda: stores.one.change(record.key, 1, None),
        lambda: stores.one.page("ada", "", 1),
        lambda: stores.one.remove_expired(NOW, 1),
        lambda: stores.one.renew_lease("w1", 1.0),
        lambda: stores.one.lost(1),
    ):
        with pytest.raises(RuntimeError, match="opened"):
            await call()
    with pytest.raises(RuntimeError, match="opened"):
        async with stores.one.watch():
            pass


async def two_servers_may_open_one_store(stores: Stores) -> None:
    async with stores.one.opened(stores.runtime):
        await stores.one.create(new_record("a"), **MANY)
    await stores.one.create(new_record("b"), **MANY)
    assert len(await stores.one.page("ada", "", 10)) == 2


async def durable_records_outlive_the_store(stores: Stores) -> None:
    records = {
        "open": full_record(),
        "rerun": new_record(
            "rerun", call=TaskCall(params=Raw(b"{}"), capabilities=ClientCapabilities())
        ),
        "ended": completed(new_record("ended", serial=0)),
    }
    for record in records.values():
        await stores.one.create(record, **MANY)
    if not stores.one.durable:
        return
    await stores.open()
    for record in records.values():
        assert same(await stores.one.get(record.key), record)
    assert len(await stores.two.page("ada", "", 10)) == 2
    await stores.one.renew_lease("w1", 0.0)
    assert await lost_ids(stores) == {"a", "rerun"}
    assert await stores.one.create(new_record("x"), limits=quota(2, 10)) == "per_key"
    assert await stores.one.create(new_record("x"), limits=quota(10, 3)) == "total"


CONTRACT: Final = [
    created_record_is_found_by_both,
    unknown_key_is_not_found,
    key_that_exists_is_not_created_again,
    same_id_of_two_owners_is_two_records,
    change_replaces_all_fields,
    failure_and_cancellation_are_stored,
    change_of_another_serial_has_no_effect,
    removed_record_is_gone,
    large_result_is_kept,
    limit_of_a_quota_key_is_kept,
    limit_of_all_is_kept,
    bytes_of_a_quota_key_are_kept,
    bytes_of_all_are_kept,
    change_that_does_not_fit_has_no_effect,
    limits_hold_for_creates_at_once,
    page_is_sorted_by_time_and_id,
    page_after_unknown_id_raises,
    page_leaves_results_out,
    expired_records_are_removed,
    expired_records_wake_watchers,
    tasks_of_lost_workers_are_found,
    renewed_lease_is_never_lost,
    changes_wake_watchers,
    watch_may_be_cancelled_and_read_again,
    racing_changes_have_distinct_serials,
    unopened_store_names_the_cure,
    two_servers_may_open_one_store,
    durable_records_outlive_the_store,
]


@dataclass(frozen=True)
class Step:
    """One operation through one of the two connections.

    `lag` is how many changes ago its worker has read the record.
    """

    connection: int
    operation: str
    id: str
    owner: str
    lag: int
    reopen: bool


steps = st.lists(
    st.builds(
        Step,
        connection=st.integers(0, 1),
        operation=st.sampled_from(
            ["create", "message", "complete", "remove", "take", "expire", "read"]
        ),
        id=st.sampled_from("ab"),
        owner=st.sampled_from(["", "ada"]),
        lag=st.sampled_from([0, 0, 0, 1, 2]),
        reopen=st.sampled_from([False] * 9 + [True]),
    ),
    max_size=25,
)


async def check_steps(stores: Stores, script: list[Step]) -> None:
    """Do the steps one after the other, and compare each with a dict."""
    await stores.one.renew_lease("w1", 1e6)
    model: dict[TaskKey, TaskRecord] = {}
    serials: dict[TaskKey, set[int]] = {}
    for number, step in enumerate(script):
        if step.reopen and stores.one.durable:
            await stores.open()
        store = (stores.one, stores.two)[step.connection]
        key = TaskKey(step.owner, step.id)
        known = model.get(key)
        if step.operation == "read":
            pass
        elif step.operation == "expire":
            now = NOW + 3600 + number / 2  # about half of them
            gone = {record.key for record in model.values() if record.expires <= now}
            assert set(await store.remove_expired(now, 10)) == gone
            model = {key: record for key, record in model.items() if key not in gone}
            known = model.get(key)
        elif step.operation == "create":
            record = new_record(step.id, step.owner, created=NOW + number)
            if known is not None:
                with pytest.raises(TaskStoreError):
                    await store.create(record, limits=quota(9, 3))
            elif len(model) >= 3:
                assert await store.create(record, limits=quota(9, 3)) == "total"
            else:
                assert await store.create(record, limits=quota(9, 3)) is None
                model[key] = record
                serials[key] = {1}
        else:
            read = known if known is not None else new_record(step.id, step.owner)
            serial = read.serial - step.lag
            changed = _changed(replace(read, serial=serial), step.operation, number)
            assert await store.change(key, serial, changed) is (known is not None and not step.lag)
            if known is not None and not step.lag:
                if changed is None:
                    del model[key]
                else:
                    assert changed.serial not in serials[key]
                    serials[key].add(changed.serial)
                    model[key] = changed
        for owner in ("", "ada"):
            mine = [record for record in model.values() if record.owner == owner]
            mine.sort(key=lambda record: (record.created, record.id))
            found = await stores.two.page(owner, "", 10)
            assert [record.id for record in found] == [record.id for record in mine]
        assert same(await stores.one.get(key), model.get(key))
        assert {record.key for record in await stores.one.lost(10)} == {
            record.key for record in model.values() if not (record.ended or record.worker)
        }


def _changed(record: TaskRecord, operation: str, number: int) -> TaskRecord | None:
    if operation == "remove":
        return None
    if operation == "message":
        return replace(record, message=str(number), serial=record.serial + 1)
    if operation == "take":
        return replace(record, worker="w1" if number % 2 else "", serial=record.serial + 1)
    return replace(
        record, status="completed", result=Raw(b'{"n":%d}' % number), serial=record.serial + 1
    )
