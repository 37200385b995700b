"""The store of tasks in a real Redis and Valkey: the contract, outages, and every bad record."""

from __future__ import annotations

import re
import time
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from mcp_core.adapters import RedisTaskStore
from mcp_core.adapters._redis_client import RedisClient
from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.tasks import TaskStoreError
from mcp_core.tasks._layout import member_of, stored_leases
from mcp_core.tasks._signed_records import PURPOSE, RecordSigner
from tests.core.tasks.runtimes import RUNS, run_trio
from tests.core.tasks.store_contract import (
    CONTRACT,
    MANY,
    NOW,
    completed,
    new_record,
    quota,
    run_check,
    same,
)
from tests.core.tasks.store_lockstep import Lockstep, Operation, operations, random_operation
from tests.harness.redis_server import PROGRAMS, RedisServer
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

    from mcp_core._redis_calls import RedisCall
    from mcp_core.tasks import TaskKey, TaskRecord
    from tests.core.tasks.runtimes import StoreRuntime
    from tests.core.tasks.store_contract import Stores

pytestmark = pytest.mark.process

KEYS = KeyRing({"a": b"a" * 32})
PAGE = Path(__file__).parents[3] / "docs" / "howto" / "workers.md"


DURABLE = ("--appendonly", "yes", "--appendfsync", "no")  # it keeps all over a restart


@pytest.fixture(scope="module", params=PROGRAMS)
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    directory = tmp_path_factory.mktemp("redis")
    with RedisServer(directory, request.param, *DURABLE) as server:
        yield server


@pytest.fixture
def server(started: RedisServer) -> RedisServer:
    started.run("FLUSHALL")
    return started


@pytest.fixture(params=PROGRAMS)
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServer]:
    """Yield a server that the test may restart."""
    with RedisServer(tmp_path, request.param, *DURABLE) as server:
        yield server


class ContractStore(RedisTaskStore):
    """A store in a Redis whose clock shows the time that `remove_expired` gets."""

    _now = NOW

    async def remove_expired(self, now: float, size: int, /) -> Any:
        self._now = now
        return await super().remove_expired(now, size)

    async def _run(self, call: RedisCall) -> Any:
        time = f"{{{int(self._now)}, {round(self._now % 1 * 1_000_000)}}}"
        if "append" not in call.script:
            call = call._replace(script=call.script.replace("redis.call('TIME')", time))
        return await super()._run(call)


def new_store(
    server: RedisServer, type: type[RedisTaskStore] = RedisTaskStore, user: str = ""
) -> RedisTaskStore:
    return type(RedisClient(server.url.replace("//", f"//{user}"), "lab"), "lab")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("check", CONTRACT)
def test_redis_store_keeps_the_contract(
    run: Callable[..., None], check: Callable[[Stores], Awaitable[object]], server: RedisServer
) -> None:
    async def main(runtime: StoreRuntime) -> None:
        runtime.keys = KEYS
        await run_check(check, lambda: new_store(server, ContractStore), runtime)

    run(main)


# -- Random operations -----------------------------------------------------------------------------


async def check_lockstep(
    servers: Iterable[RedisServer], operations: Iterable[Operation], runtime: StoreRuntime
) -> None:
    """Do the operations on a store in memory and one in each of `servers`. Check their sums."""
    runtime.keys = KEYS
    async with AsyncExitStack() as stack:
        stores: list[Any] = [MemoryTaskStore()]
        for server in servers:
            server.run("FLUSHALL")
            stores.append(new_store(server, ContractStore))
        for store in stores:
            await stack.enter_async_context(store.opened(runtime))
        lockstep = Lockstep(stores, runtime)
        for operation in operations:
            await lockstep.run(operation)
        for server in servers:
            assert usage(server) == expected_usage(lockstep.kept.values())


def usage(server: RedisServer) -> dict[str, int]:
    """Return the sums that the scripts have kept: tasks and bytes, by quota key."""
    reply = server.run("HGETALL", "mcp:{lab}:task-usage")
    return {name.decode(): int(value) for name, value in zip(reply[::2], reply[1::2], strict=True)}


def expected_usage(records: Iterable[TaskRecord]) -> dict[str, int]:
    """Return what the sums have to be."""
    found: dict[str, int] = {}
    for record in records:
        for name in (record.quota_key, "all"):
            found[f"tasks:{name}"] = found.get(f"tasks:{name}", 0) + 1
            found[f"size:{name}"] = found.get(f"size:{name}", 0) + record.size
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(RedisServer(tmp_path_factory.mktemp("redis"), program))
            for program in PROGRAMS
        ]


@settings(max_examples=25)
@given(operations=operations)
def test_random_operations_have_equal_outcomes_in_memory_redis_and_valkey(
    both: list[RedisServer], operations: list[Operation]
) -> None:
    run_trio(partial(check_lockstep, both, operations))


@pytest.mark.parametrize(
    "count", [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
def test_sums_of_quotas_equal_the_records_after_many_operations(
    both: list[RedisServer], count: int
) -> None:
    random = Random(count)
    run_trio(partial(check_lockstep, both, (random_operation(random) for _ in range(count))))


# -- What others have written ----------------------------------------------------------------------

OLDER = new_record(owner="", quota_key="ada", size=10)
RECORD = completed(replace(OLDER, ttl=NOW))  # kept for long
HASH = f"mcp:{{lab}}:task:{member_of(RECORD.key)}"


def signed_for(record: TaskRecord, key: str, ring: KeyRing = KEYS) -> bytes:
    return RecordSigner(ring.signing_keys(PURPOSE), "lab").encode(record, key).data


def later_form() -> bytes:
    """Return what a later version of this code may store."""
    body = b'{"form":2,"record":"sealed"}'
    keys = KEYS.signing_keys(PURPOSE)
    return RecordSigner(keys, "lab")._signer.sign(body, HASH)


OTHER_RING = KeyRing({"b": b"b" * 32})
DAMAGE: dict[str, list[tuple[str | bytes, ...]]] = {
    "garbage": [("HSET", HASH, "record", b"\xff\0garbage")],
    "nothing": [("HSET", HASH, "record", "")],
    "4 MiB": [("HSET", HASH, "record", b"x" * 4 * 1024 * 1024)],
    "unsigned": [("HSET", HASH, "record", bytes(32) + signed_for(RECORD, HASH)[32:])],
    "signed with other keys": [("HSET", HASH, "record", signed_for(RECORD, HASH, OTHER_RING))],
    "moved from another key": [("HSET", HASH, "record", signed_for(RECORD, HASH + "b"))],
    "without a record": [("HDEL", HASH, "record")],
    "without a serial number": [("HDEL", HASH, "serial")],
    "another serial number": [("HSET", HASH, "serial", "9")],
    "another result": [("HSET", HASH, "result", '{"content":[1]}')],
    "without its result": [("HDEL", HASH, "result")],
    "another type": [("DEL", HASH), ("SET", HASH, "x")],
}
# What only `get` can see, because nothing else reads the result.
ONLY_IN_RESULTS = {"another result", "without its result"}


def play(
    server: RedisServer, scene: Callable[[RedisTaskStore, StoreRuntime], Awaitable[None]]
) -> list[str]:
    """Run `scene` under trio with an open store, and return the warnings."""

    async def main(runtime: StoreRuntime) -> list[str]:
        runtime.keys = KEYS
        store = new_store(server)
        async with store.opened(runtime):
            await scene(store, runtime)
        return runtime.warnings

    return run_trio(main)


@pytest.mark.parametrize("damage", DAMAGE)
def test_record_that_others_have_written_is_no_task(server: RedisServer, damage: str) -> None:
    """It is removed with all that it counts for, and one line says why, once."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(RECORD, **MANY)
        assert usage(server) == expected_usage([RECORD])
        for command in DAMAGE[damage]:
            server.run(*command)
        assert await store.get(RECORD.key) is None
        assert usage(server) == {}
        assert sorted(server.run("KEYS", "*")) == LEFT
        assert await store.get(RECORD.key) is None
        assert await store.create(RECORD, **MANY) is None
        assert same(await store.get(RECORD.key), RECORD)

    (line,) = play(server, scene)
    assert line.startswith("Redis has a record that is no task of this server, which is removed: ")


LEFT = [b"mcp:{lab}:task-keys"]


@pytest.mark.parametrize("damage", [each for each in DAMAGE if each not in ONLY_IN_RESULTS])
def test_damaged_record_is_neither_listed_nor_run_again(server: RedisServer, damage: str) -> None:
    """A page goes on behind it, and a lost task beside it is found."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        good = new_record("b", owner="", created=NOW + 1, worker="")
        lost = replace(OLDER, worker="", size=RECORD.size)
        for record in (lost, good):
            await store.create(record, **MANY)
        for command in DAMAGE[damage]:
            server.run(*command)
        assert [each.id for each in await store.page("", "", 1)] == ["b"]
        for record in (lost, good):
            await store.change(record.key, 1, None)
        for record in (lost, good):
            await store.create(record, **MANY)
        for command in DAMAGE[damage]:
            server.run(*command)
        assert [each.id for each in await store.lost(10)] == ["b"]
        assert usage(server) == expected_usage([good])

    assert len(play(server, scene)) == 1


def test_record_of_a_later_form_is_left_to_later_workers(server: RedisServer) -> None:
    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(replace(OLDER, worker=""), **MANY)
        server.run("HSET", HASH, "record", later_form())
        assert await store.get(OLDER.key) is None
        assert await store.page("", "", 10) == []
        assert await store.lost(10) == []
        assert server.run("HGET", HASH, "record") == later_form()
        assert usage(server)["tasks:all"] == 1
        server.run("ZADD", "mcp:{lab}:tasks", "5", member_of(OLDER.key))  # it has expired
        assert await store.remove_expired(NOW, 10) == []
        assert sorted(server.run("KEYS", "*")) == LEFT

    (line,) = play(server, scene)
    assert "which is left as it is: it has form 2 of a later version" in line


def test_older_record_that_is_put_back_is_changed_by_its_own_number_only(
    server: RedisServer,
) -> None:
    """It looks like one of a server that has lost its last writes, and is taken for that.

    The worker that has written the later one cannot change it as if it were that one, and it
    expires when that one would have.
    """

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        created = replace(OLDER, created=time.time() - 100, ttl=50.0)
        await store.create(created, **MANY)
        data = server.run("HGET", HASH, "record")
        ended = replace(RECORD, created=created.created, ttl=created.ttl)
        assert await store.change(created.key, 1, ended)
        server.run("HSET", HASH, "record", data, "serial", "1")
        server.run("HDEL", HASH, "result")
        assert same(await store.get(created.key), created)
        assert not await store.change(created.key, ended.serial, replace(ended, serial=9))
        server.run("HSET", HASH, "serial", str(ended.serial))  # or not even that
        assert await store.get(created.key) is None
        assert server.run("EXISTS", HASH) == 0
        await store.create(created, **MANY)
        assert await store.remove_expired(time.time(), 10) == [created.key]

    assert len(play(server, scene)) == 1


def test_sets_that_others_have_written_run_nothing_again(server: RedisServer) -> None:
    """A task that has ended isn't lost, and members without a record are forgotten."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(RECORD, **MANY)
        for name in ("running", "tasks", "tasks:" + member_of(RECORD.key).partition(":")[0]):
            for member in (b"\xff", b"x:y", b"", b"0:" + b"z" * 10_000):
                server.run("ZADD", f"mcp:{{lab}}:{name}", "0", member)
        server.run("ZADD", "mcp:{lab}:running", "0", member_of(RECORD.key))
        assert await store.lost(10) == []
        assert await store.lost(10) == []
        assert [each.id for each in await store.page("", "", 10)] == ["a"]
        assert await store.remove_expired(NOW, 3) == []
        assert same(await store.get(RECORD.key), RECORD)
        assert server.run("ZRANGE", "mcp:{lab}:running", "0", "-1") in ([], [b"\xff"])
        server.run("HSET", "mcp:{lab}:workers", "w1", "garbage", b"\xff", "1 1 30")
        await store.renew_lease("w1", 30.0)
        assert await store.lost(10) == []

    assert play(server, scene) == []


def test_living_worker_keeps_its_task_against_the_set(server: RedisServer) -> None:
    """The task is in its place again, and is found once its worker is lost."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.renew_lease("w1", 30.0)
        await store.create(new_record(worker="w1"), **MANY)
        member = member_of(new_record().key)
        server.run("ZADD", "mcp:{lab}:running", "0", member)
        assert await store.lost(10) == []
        assert server.run("ZSCORE", "mcp:{lab}:running", member) == b"1"
        await store.renew_lease("w1", 0.0)
        assert [each.id for each in await store.lost(10)] == ["a"]

    assert play(server, scene) == []


def test_removed_change_keeps_no_task_from_ending(server: RedisServer) -> None:
    """Redis would refuse the id of the next one, now and for ever."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(OLDER, **MANY)
        assert await store.change(OLDER.key, 1, replace(OLDER, serial=2))
        assert await store.change(OLDER.key, 2, replace(OLDER, serial=3))
        async with store.watch() as watch:
            assert await anext(watch) is None
            [[last, _]] = server.run("XREVRANGE", CHANGES, "+", "-", "COUNT", "1")
            server.run("XDEL", CHANGES, last)
            assert await store.change(OLDER.key, 3, replace(OLDER, serial=4))
            with anyio.fail_after(PATIENCE):
                assert await anext(watch) is None

    assert play(server, scene) == []


def test_message_that_others_have_written_wakes_no_one(server: RedisServer) -> None:
    """The entries between ours are a gap, or garbage, and the changes after them arrive."""
    stream = "mcp:{lab}:task-changes"

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(OLDER, **MANY)
        async with store.watch() as watch:
            assert await anext(watch) is None  # what was before isn't known
            assert await store.change(OLDER.key, 1, replace(OLDER, serial=2))
            assert await anext(watch) == OLDER.key
            entry = server.run("XREVRANGE", stream, "+", "-", "COUNT", "1")[0]
            epoch, number = entry[0].split(b"-")
            follower = b"%b-%d" % (epoch, int(number) + 1)
            server.run("XADD", stream, follower, "m", b"x" * 2 * 1024 * 1024)
            assert await store.change(OLDER.key, 2, replace(OLDER, serial=3))
            assert await anext(watch) == OLDER.key
            server.run("XADD", stream, "*", "other", "x")
            assert await store.change(OLDER.key, 3, None)
            assert await anext(watch) is None

    lines = play(server, scene)
    assert all("a message that is skipped" in line for line in lines)


def test_entries_that_were_trimmed_are_a_gap(server: RedisServer) -> None:
    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(OLDER, **MANY)
        async with store.watch() as watch:
            assert await anext(watch) is None
            for serial in range(1, 4):
                assert await store.change(OLDER.key, serial, replace(OLDER, serial=serial + 1))
            server.run("XTRIM", "mcp:{lab}:task-changes", "MAXLEN", "1")
            assert await anext(watch) is None

    assert play(server, scene) == []


# -- Keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_server_without_keys_is_refused_with_the_cure(
    run: Callable[..., None], server: RedisServer
) -> None:
    async def main(runtime: StoreRuntime) -> None:
        with pytest.raises(TaskStoreError, match=r"state_keys= .*--state-keys-env .*token_urlsafe"):
            async with new_store(server).opened(runtime):
                raise AssertionError("opened")

    run(main)
    assert server.run("KEYS", "*") == []


def test_servers_with_one_name_and_other_keys_are_refused(server: RedisServer) -> None:
    """Otherwise each would remove the other one's records as forged ones."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(RECORD, **MANY)
        runtime.keys = OTHER_RING
        for other in (new_store(server), store):
            with pytest.raises(TaskStoreError, match=r"'lab'.* name of its own"):
                async with other.opened(runtime):
                    raise AssertionError("opened")
        assert same(await store.get(RECORD.key), RECORD)

    assert play(server, scene) == []


def test_keys_may_be_changed_one_after_the_other(server: RedisServer) -> None:
    """Workers with the old, both and the new keys follow each other; the record stays one."""
    old, new = {"a": b"a" * 32}, {"b": b"b" * 32}

    async def main(runtime: StoreRuntime) -> None:
        record = OLDER
        for ring in (old, old | new, new | old, old | new, new | old, new):
            runtime.keys = KeyRing(ring)
            store = new_store(server)
            async with store.opened(runtime):
                if ring is old:
                    await store.create(record, **MANY)
                before = await store.get(record.key)
                assert same(before, record)
                record = replace(record, serial=record.serial + 1)
                assert await store.change(record.key, record.serial - 1, record)
        runtime.keys = KeyRing(old)
        with pytest.raises(TaskStoreError, match="other state_keys"):
            async with new_store(server).opened(runtime):
                raise AssertionError("opened")

    run_trio(main)


# -- Outages ---------------------------------------------------------------------------------------


async def changed(store: RedisTaskStore, record: TaskRecord) -> TaskRecord:
    """Change `record` as soon as Redis responds. Return it with its next serial number."""
    with anyio.fail_after(PATIENCE):
        while True:
            try:
                found = await store.get(record.key)
                assert same(found, record)
                after = replace(record, serial=record.serial + 1)
                assert await store.change(record.key, record.serial, after)
            except TaskStoreError:
                await anyio.sleep(0.05)
            else:
                return after


async def woken(watch: AsyncIterator[TaskKey | None], key: TaskKey) -> None:
    with anyio.fail_after(PATIENCE):
        assert await anext(watch) in (key, None)


@pytest.mark.parametrize("run", RUNS)
def test_outages_lose_no_record_and_no_wake(
    run: Callable[..., None], own_server: RedisServer
) -> None:
    """A restart, cut connections, a server that hangs, and one that was stopped for a while."""
    server = own_server

    async def main(runtime: StoreRuntime) -> None:
        runtime.keys = KEYS
        store, other = new_store(server), new_store(server)
        record = replace(OLDER, ttl=1e6)
        async with store.opened(runtime), other.opened(runtime):
            await store.create(record, **MANY)
            async with other.watch() as watch:
                assert await anext(watch) is None
                record = await changed(store, record)
                await woken(watch, record.key)

                server.run("CLIENT", "KILL", "TYPE", "normal")
                record = await changed(store, record)
                await woken(watch, record.key)

                server.run("SCRIPT", "FLUSH")
                record = await changed(store, record)
                await woken(watch, record.key)

                server.kill()
                for _ in range(5):
                    with pytest.raises(TaskStoreError, match=r"refuses|closed"):
                        await store.get(record.key)
                server.start()
                record = await changed(store, record)
                await woken(watch, record.key)

                server.stop()
                try:
                    with anyio.fail_after(PATIENCE), pytest.raises(TaskStoreError, match="2 s"):
                        await store.get(record.key)
                finally:
                    server.go_on()
                record = await changed(store, record)
                await woken(watch, record.key)
                assert same(await other.get(record.key), record)

    run(main)


def test_store_that_is_emptied_begins_anew_and_a_watch_has_a_gap(server: RedisServer) -> None:
    """Its records are gone, and its limits count from zero."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(RECORD, **MANY)
        async with store.watch() as watch:
            assert await anext(watch) is None
            after = replace(RECORD, serial=RECORD.serial + 1)
            assert await store.change(RECORD.key, RECORD.serial, after)
            assert await anext(watch) == RECORD.key
            server.run("FLUSHALL")
            assert await store.get(RECORD.key) is None
            assert await store.lost(10) == []
            assert await store.create(RECORD, limits=quota(1, 1)) is None
            assert await store.change(RECORD.key, RECORD.serial, after)
            assert await anext(watch) is None

    assert play(server, scene) == []


def test_stream_that_begins_anew_at_an_earlier_time_is_a_gap(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a clock was set. The reader would wait for ever for an entry after its own."""
    monkeypatch.setattr("mcp_core.adapters._redis_tasks._WAIT", 0.05)

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.create(OLDER, **MANY)
        server.run("XADD", "mcp:{lab}:task-changes", "9000000000000-5", "m", "x")
        async with store.watch() as watch:
            assert await anext(watch) is None
            server.run("DEL", "mcp:{lab}:task-changes")
            assert await store.change(OLDER.key, 1, replace(OLDER, serial=2))
            with anyio.fail_after(PATIENCE):
                assert await anext(watch) is None
            assert await store.change(OLDER.key, 2, replace(OLDER, serial=3))
            with anyio.fail_after(PATIENCE):
                assert await anext(watch) == OLDER.key

    assert play(server, scene) == []


@pytest.mark.parametrize("run", RUNS)
def test_server_may_start_before_redis(run: Callable[..., None], own_server: RedisServer) -> None:
    async def main(runtime: StoreRuntime) -> None:
        runtime.keys = KEYS
        own_server.kill()
        store = new_store(own_server)
        async with store.opened(runtime):
            with pytest.raises(TaskStoreError, match="refuses connections"):
                await store.create(RECORD, **MANY)
        own_server.start()
        assert runtime.warnings[0].startswith("tasks cannot be stored yet: Redis at")
        async with store.opened(runtime):
            await store.create(RECORD, **MANY)
            assert same(await store.get(RECORD.key), RECORD)

    run(main)


def test_redis_that_was_stopped_ends_no_lease(server: RedisServer) -> None:
    """All workers were silent meanwhile. The first to go on must not take the others' tasks."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        for worker in ("w1", "w2"):
            await store.renew_lease(worker, 1.0)
            await store.create(new_record(worker, worker=worker), **MANY)
        assert await store.lost(10) == []
        server.stop()
        runtime.ahead += 60.0
        server.go_on()
        await store.renew_lease("w1", 1.0)
        assert await store.lost(10) == []
        await store.renew_lease("w2", 1.0)
        for expected in ([], [], ["w2"]):
            assert [each.id for each in await store.lost(10)] == expected
            runtime.ahead += 0.9
            await store.renew_lease("w1", 1.0)

    assert play(server, scene) == []


# -- What Redis keeps ------------------------------------------------------------------------------


def test_record_that_redis_has_removed_leaves_the_sums(server: RedisServer) -> None:
    """Redis removes it an hour after its expiry, when no worker has. Then it counts for a while."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        now = time.time()
        for number in range(7):
            record = replace(OLDER, id=str(number), created=now - 60, ttl=50.0)
            await store.create(record, **MANY)
            key = f"mcp:{{lab}}:task:{member_of(record.key)}"
            assert round(int(server.run("PEXPIRETIME", key)) / 1000 - now) == -10 + 3600
            if number != 3:
                server.run("DEL", key)
        assert await store.create(replace(OLDER, id="new"), limits=quota(7)) == "per_key"
        assert [key.id for key in await store.remove_expired(now, 2)] == ["3"]
        assert usage(server) == {}
        assert set(server.run("KEYS", "*")) <= {*LEFT, b"mcp:{lab}:workers", CHANGES}

    assert play(server, scene) == []


CHANGES = b"mcp:{lab}:task-changes"


def test_keys_that_are_left_when_all_records_are_removed_hold_no_record(
    server: RedisServer,
) -> None:
    """Two have no time to live: by what the keys are recognized, and the last number."""

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.renew_lease("w1", 30.0)
        await store.create(OLDER, **MANY)
        assert await store.change(OLDER.key, 1, RECORD)
        assert not await store.change(OLDER.key, 1, None)
        assert await store.change(OLDER.key, 2, None)
        await store.renew_lease("w1", 0.0)
        assert await store.lost(10) == []
        assert set(server.run("KEYS", "*")) == {*LEFT, b"mcp:{lab}:workers", CHANGES}
        assert server.run("HKEYS", "mcp:{lab}:workers") == [b""]  # the last number
        assert [server.run("TTL", key) for key in (*LEFT, b"mcp:{lab}:workers")] == [-1, -1]
        assert 3500 < server.run("TTL", CHANGES) <= 3600

    assert play(server, scene) == []


def test_lost_worker_that_renews_meanwhile_is_not_forgotten(server: RedisServer) -> None:
    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        await store.renew_lease("w1", 0.0)
        await store.create(OLDER, **MANY)
        (stored,) = stored_leases(server.run("HGETALL", "mcp:{lab}:workers"))
        await store.change(OLDER.key, 1, None)
        await store.renew_lease("w1", 30.0)
        await store._run(store._layout.lost(10, [stored]))
        assert server.run("HEXISTS", "mcp:{lab}:workers", "w1") == 1
        assert await store.lost(10) == []

    assert play(server, scene) == []


def test_acl_that_forbids_a_command_is_reported_at_the_start(server: RedisServer) -> None:
    """Without a task. A user whose ACL allows them all leaves nothing behind by the trial."""
    server.run("ACL", "SETUSER", "worker", "reset", "on", ">pw", "~*", "+@all", "-zrank")
    store = new_store(server, user="worker:pw@")

    async def open_store(runtime: StoreRuntime) -> None:
        runtime.keys = KEYS
        async with store.opened(runtime):
            assert server.run("KEYS", "*") == LEFT

    with pytest.raises(TaskStoreError, match=r"forbids what workers need: ZRANK"):
        run_trio(open_store)
    server.run("ACL", "SETUSER", "worker", "+zrank")
    run_trio(open_store)


def test_acl_of_the_page_is_all_that_tasks_need(server: RedisServer) -> None:
    """The howto page about workers has a rule for one deployment."""
    [rule] = re.findall(
        r"> ACL SETUSER notes reset on >PASSWORD (.*)$", PAGE.read_text(), re.MULTILINE
    )
    rule = rule.replace("{notes}", "{lab}")
    server.run("ACL", "SETUSER", "worker", "reset", "on", ">pw", *rule.split())

    async def main(runtime: StoreRuntime) -> None:
        runtime.keys = KEYS
        for check in CONTRACT:
            server.run("FLUSHALL")
            await run_check(check, lambda: new_store(server, ContractStore, "worker:pw@"), runtime)

    run_trio(main)
