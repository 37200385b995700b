"""The store of tasks beside a Redis that a test plays. `test_redis_tasks.py` has a real one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.adapters import RedisTaskStore
from mcp_core.adapters._redis_client import StreamRead
from mcp_core.adapters._redis_errors import RedisFailure
from mcp_core.protocol.input_requests._request_state import KeyRing
from mcp_core.tasks import TaskKey, TaskQuotaExceeded, TaskStoreError
from mcp_core.tasks._layout import member_of
from tests.core.tasks.runtimes import RUNS, run_trio
from tests.core.tasks.store_contract import MANY, completed, new_record, quota

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_core._redis_calls import RedisCall
    from tests.core.tasks.runtimes import StoreRuntime

KEYS = KeyRing({"a": b"a" * 32})
OUTAGE = RedisFailure("Redis at there: it hangs")


class PreparedClient:
    """A client whose replies a test has written: an exception is raised.

    Attributes:
        replies: to `run`, in order.
        reads: to `read`.
        calls: the calls that `run` got.
        after: the positions that `read` got.
        seconds: the times that `read` got.
    """

    def __init__(self, *replies: Any) -> None:
        self.replies = [b"", *replies]
        self.reads: list[Any] = []
        self.calls: list[RedisCall] = []
        self.after: list[str] = []
        self.seconds: list[float] = []
        self.is_open = False

    @asynccontextmanager
    async def opened(self, runtime: StoreRuntime) -> AsyncIterator[PreparedClient]:
        self.is_open = True
        try:
            yield self
        finally:
            self.is_open = False

    async def check_server(self, probe: RedisCall, commands: object) -> None:
        assert probe.keys == ("mcp:{lab}:task-probe",)

    async def run(self, call: RedisCall) -> Any:
        self.calls.append(call)
        if call.keys == ("mcp:{lab}:task-keys",) and self.replies[0] == b"":
            self.replies.pop(0)
            return call.arguments[0]
        return _played(self.replies)

    async def read(self, stream: str, after: str, *, seconds: float, size: int) -> Any:
        assert stream == "mcp:{lab}:task-changes"
        self.after.append(after)
        self.seconds.append(seconds)
        entries = _played(self.reads)
        return entries if isinstance(entries, StreamRead) else StreamRead(entries=entries)


def _played(replies: list[Any]) -> Any:
    reply = replies.pop(0)
    if isinstance(reply, Exception):
        raise reply
    return reply


def play(
    client: PreparedClient,
    scene: Callable[[RedisTaskStore, StoreRuntime], Awaitable[None]],
    run: Callable[..., list[str]] = run_trio,
) -> list[str]:
    """Run `scene` with an open store. Return the warnings. All replies have to be used."""

    async def main(runtime: StoreRuntime) -> list[str]:
        runtime.keys = KEYS
        store = RedisTaskStore(client, "lab")  # type: ignore[arg-type]
        async with store.opened(runtime):
            await scene(store, runtime)
        return runtime.warnings

    warnings = run(main)
    assert client.replies == client.reads == []
    return warnings


@pytest.mark.parametrize("run", RUNS)
def test_server_without_keys_is_refused(run: Callable[..., None]) -> None:
    client = PreparedClient()

    async def main(runtime: StoreRuntime) -> None:
        with pytest.raises(TaskStoreError, match=r"state_keys= .*--state-keys-env .*token_urlsafe"):
            async with RedisTaskStore(client, "lab").opened(runtime):  # type: ignore[arg-type]
                raise AssertionError("opened")

    run(main)
    assert client.calls == []


def test_keys_of_another_server_are_refused() -> None:
    client = PreparedClient()
    client.replies = [b"m" * 32]

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        raise AssertionError("opened")

    with pytest.raises(TaskStoreError, match="another server with other state_keys"):
        play(client, scene)
    assert not client.is_open


def test_redis_that_refuses_for_good_refuses_the_start() -> None:
    client = PreparedClient()
    client.replies = [RedisFailure("it needs a password", is_final=True)]

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        raise AssertionError("opened")

    with pytest.raises(TaskStoreError, match="it needs a password"):
        play(client, scene)


def test_keys_are_compared_when_redis_is_back() -> None:
    """A server starts without Redis. Until its keys are compared it stores nothing."""
    client = PreparedClient()
    client.replies = [OUTAGE, OUTAGE, b"", b"created", b"created"]

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        with pytest.raises(TaskStoreError, match="hangs"):
            await store.create(new_record(), **MANY)
        for id in "ab":
            assert await store.create(new_record(id), **MANY) is None

    assert play(client, scene) == ["tasks cannot be stored yet: Redis at there: it hangs"]
    assert [len(call.keys) for call in client.calls] == [1, 1, 1, 7, 7]


def test_failure_is_an_error_of_the_store_in_every_method() -> None:
    """`TaskStoreError` with the cause, which the service of tasks logs and answers with -32603."""
    record = new_record()
    calls: list[Callable[[RedisTaskStore], Awaitable[object]]] = [
        lambda store: store.create(record, **MANY),
        lambda store: store.get(record.key),
        lambda store: store.change(record.key, 1, None),
        lambda store: store.change(record.key, 1, completed(record)),
        lambda store: store.page("ada", "", 1),
        lambda store: store.remove_expired(0.0, 1),
        lambda store: store.renew_lease("w1", 1.0),
        lambda store: store.lost(1),
    ]

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        for call in calls:
            with pytest.raises(TaskStoreError, match="hangs"):
                await call(store)
        with pytest.raises(TaskStoreError, match="hangs"):
            async with store.watch():
                raise AssertionError("watched")

    assert play(PreparedClient(*[OUTAGE] * 9), scene) == []


def test_limit_in_the_way_is_named() -> None:
    record = new_record()

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        assert await store.create(record, limits=quota(1)) == "per_key"
        with pytest.raises(TaskQuotaExceeded, match="key_bytes"):
            await store.change(record.key, 1, completed(record), limits=quota())
        with pytest.raises(TaskStoreError, match="already"):
            await store.create(record, **MANY)

    play(PreparedClient(b"per_key", b"key_bytes", b"exists"), scene)


@pytest.mark.parametrize("run", RUNS)
def test_watch_reads_on_and_has_a_gap_after_an_outage(
    run: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change comes once. After a failure the place in the stream isn't trusted any more."""
    monkeypatch.setattr("mcp_core.adapters._redis_tasks._READ_AGAIN", 0.001)
    client = PreparedClient(b"5-7", b"5-9", OUTAGE, b"5-3", b"5-3")
    keys = [TaskKey("ada", id) for id in "abc"]
    found: list[TaskKey | None] = []

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        message = [store._message(key) for key in keys]
        client.reads = [
            [(b"5-8", message[0]), (b"5-9", message[0])],  # one task, twice
            [],  # the last entry is ours
            OUTAGE,
            [(b"5-4", message[1]), (b"5-5", b"garbage"), (b"5-6", message[2])],
            [],  # the last entry is before ours: the stream was lost
        ]
        async with store.watch() as watch:
            found.extend([await anext(watch) for _ in range(6)])

    (line,) = play(client, scene, run)
    assert line.startswith("Redis has a message that is skipped: it isn't signed")
    assert found == [None, keys[0], None, keys[1], keys[2], None]
    assert client.after == ["5-7", "5-9", "5-9", "5-3", "5-6"]


def test_watch_notices_that_a_number_was_used_again() -> None:
    """Without any failure: the connection was lost between two reads."""
    client = PreparedClient(b"5-7", b"5-9")
    client.reads = [StreamRead(b"a", b"a"), StreamRead(b"b", b"c", [(b"5-8", b"x")])]
    client.replies.insert(2, b"5-7")

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        async with store.watch() as watch:
            assert await anext(watch) is None
            assert await anext(watch) is None

    play(client, scene)
    assert client.after == ["5-7", "5-7"]


def test_task_of_a_living_worker_is_not_lost() -> None:
    """Though the set, which isn't signed, says so: it is put right."""
    living, ended = new_record("a", worker="w1"), completed(new_record("b"))
    free, dead = new_record("c", worker=""), new_record("d", worker="w2")
    records = [living, ended, free, dead]
    members = [member_of(each.key).encode() for each in records]
    client = PreparedClient([b"w1", b"1 1 30", b"w2", b"2 2 0"], members, [], None)

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        rows = []
        for record in records:
            signed = store._signed(record)
            rows.append([b"%d" % record.serial, signed.data])
        client.replies[2] = rows
        assert [each.id for each in await store.lost(10)] == ["c", "d"]

    assert play(client, scene) == []
    running = client.calls[-1]
    assert running.arguments == (member_of(living.key), "w1", member_of(ended.key), "-")


def test_watch_of_a_closed_store_waits_for_its_end() -> None:
    client = PreparedClient(b"5-7")

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        async with store.watch() as watch:
            pass
        client.is_open = False
        runtime.start_soon(lambda: anext(watch))  # what it raises would end the run
        await runtime.checkpoint()

    assert play(client, scene) == []


def test_store_that_is_not_open_says_so_in_every_method() -> None:
    """Also while its client is open, which something else may use too, and the other way round."""
    record = new_record()
    calls: list[Callable[[RedisTaskStore], Awaitable[object]]] = [
        lambda store: store.get(record.key),
        lambda store: store.create(record, **MANY),
        lambda store: store.change(record.key, 1, None),
        lambda store: store.page("ada", "", 1),
        lambda store: store.renew_lease("w1", 1.0),
        lambda store: store.lost(1),
    ]

    async def fail(store: RedisTaskStore) -> None:
        for call in calls:
            with pytest.raises(RuntimeError, match="is not open"):
                await call(store)

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        client.is_open = False
        await fail(store)
        client.is_open = True
        await fail(RedisTaskStore(client, "lab"))  # type: ignore[arg-type]

    client = PreparedClient()
    assert play(client, scene) == []
    assert len(client.calls) == 1  # of the keys, when it was opened


def test_expired_task_that_another_worker_removed_is_not_removed_here() -> None:
    """Its events would be reported twice."""
    records = [new_record("a"), new_record("b")]
    members = [member_of(each.key).encode() for each in records]
    client = PreparedClient(members, [], [0, 1])

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        signed = [(b"%d" % each.serial, store._signed(each).data) for each in records]
        client.replies[1] = [list(row) for row in signed]
        assert await store.remove_expired(0.0, 3) == [records[1].key]

    assert play(client, scene) == []


def test_nothing_is_read_where_there_is_no_task() -> None:
    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        assert await store.page("ada", "", 3) == []

    client = PreparedClient([])
    play(client, scene)
    assert len(client.calls) == 2  # of the keys, and of the page


def test_watch_waits_in_redis_for_five_seconds_and_a_second_after_an_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An outage costs a request a second, and a change is found without a delay."""
    client = PreparedClient(b"5-7", OUTAGE, b"5-7")
    client.reads = [OUTAGE]
    waits: list[float | None] = []

    async def scene(store: RedisTaskStore, runtime: StoreRuntime) -> None:
        async def wait(event: object, seconds: float | None = None) -> bool:
            waits.append(seconds)
            return False

        monkeypatch.setattr(runtime, "wait", wait)
        async with store.watch() as watch:
            assert [await anext(watch), await anext(watch)] == [None, None]

    play(client, scene)
    assert waits == [1.0, 1.0]
    assert client.seconds == [5.0]


def test_store_says_what_its_workers_can_count_on() -> None:
    """Tasks outlive a worker, and no method is over before Redis has replied."""
    assert RedisTaskStore.durable
    assert not RedisTaskStore.immediate
