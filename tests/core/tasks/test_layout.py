"""The layout in Redis: keys as text, and the contract of stores with a real server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.runtime.tasks._memory_store import NOT_OPEN
from mcp_core.runtime.tasks._watch import TaskWatch
from mcp_core.tasks import TaskKey, TaskQuotaExceeded, TaskStoreError
from mcp_core.tasks._layout import RedisLayout, changed_key, join_record, split_record
from tests.core.tasks.runtimes import RUNS
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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from mcp_core._redis_calls import RedisCall
    from mcp_core.tasks import TaskLimitName, TaskQuota, TaskRecord
    from tests.core.tasks.runtimes import StoreRuntime
    from tests.core.tasks.store_contract import Stores

LAYOUT = RedisLayout("lab")


def test_record_is_split_and_joined() -> None:
    for record in (new_record(), completed(new_record())):
        data, result = split_record(record)
        assert (result is None) == (record.status == "working")
        assert b"content" not in data
        assert same(join_record(data, result), record)


def test_keys_of_owners_and_ids_never_collide() -> None:
    keys = [TaskKey(*pair) for pair in (("a", "b:c"), ("a:b", "c"), ("", "a:b:c"), ("a", "b"))]
    assert len({LAYOUT.record_key(key) for key in keys}) == 4
    assert {LAYOUT.record_key(key).split("}")[0] for key in keys} == {"mcp:{lab"}


def test_owner_is_in_no_key() -> None:
    record = new_record(owner="ada@example.com")
    assert "ada" not in "".join(LAYOUT.create(record, **MANY).keys)


@pytest.mark.parametrize("name", ["", "a{b", "a}b"])
def test_name_that_breaks_the_hash_tag_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="braces"):
        RedisLayout(name)


def test_message_names_the_changed_key() -> None:
    key = TaskKey("ada", "a")
    assert changed_key(LAYOUT.remove(key, 1).arguments[-1]) == key  # type: ignore[arg-type]
    with pytest.raises(InvalidPayload):
        changed_key(b'["a"]')


# With a real server.


class RedisClient:
    """A connection that speaks as much of RESP as the scripts need. It blocks."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._socket.settimeout(5)
        self._file = self._socket.makefile("rb")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def run(self, *command: str | bytes) -> Any:
        parts = [part.encode() if isinstance(part, str) else part for part in command]
        text = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        self._socket.sendall(b"*%d\r\n%b" % (len(parts), text))
        return self.read()

    def call(self, call: RedisCall) -> Any:
        return self.run("EVAL", call.script, str(len(call.keys)), *call.keys, *call.arguments)

    def read(self) -> Any:
        line = self._file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if int(rest) < 0:
            return None
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return self._file.read(int(rest) + 2)[:-2]

    def messages(self) -> list[bytes]:
        """Return the messages of the channel that have arrived."""
        found: list[bytes] = []
        while True:
            self._socket.setblocking(False)
            try:
                if not self._file.peek(1):
                    return found
            finally:
                self._socket.settimeout(5)
            found.append(self.read()[2])


class ScriptedRedisStore:
    """A `TaskStore` of nothing but the layout and a blocking client."""

    durable = True
    immediate = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runtimes: list[StoreRuntime] = []
        self._client: RedisClient | None = None

    @asynccontextmanager
    async def opened(self, runtime: StoreRuntime, /) -> AsyncIterator[ScriptedRedisStore]:
        if self._client is None:
            self._client = RedisClient(self._path)
        self._runtimes.append(runtime)
        try:
            yield self
        finally:
            self._runtimes.remove(runtime)
            if not self._runtimes:
                self._client.close()
                self._client = None

    async def create(self, record: TaskRecord, /, *, limits: TaskQuota) -> TaskLimitName | None:
        outcome = self._call(LAYOUT.create(record, limits=limits))
        if outcome == b"exists":
            raise TaskStoreError("there is a task with this id already")
        return None if outcome == b"created" else outcome.decode()

    async def get(self, key: TaskKey, /) -> TaskRecord | None:
        data, result = self._open().run("HMGET", LAYOUT.record_key(key), "record", "result")
        return None if data is None else join_record(data, result)

    async def change(
        self,
        key: TaskKey,
        serial: int,
        record: TaskRecord | None,
        /,
        *,
        limits: TaskQuota | None = None,
    ) -> bool:
        if record is None:
            return bool(self._call(LAYOUT.remove(key, serial)))
        outcome = self._call(LAYOUT.change(key, serial, record, limits=limits))
        if isinstance(outcome, bytes):
            raise TaskQuotaExceeded(outcome.decode())  # type: ignore[arg-type]
        return bool(outcome)

    async def page(self, owner: str, after: str, size: int, /) -> list[TaskRecord]:
        ids = self._call(LAYOUT.page(owner, after, size))
        if ids is None:
            raise KeyError(after)
        keys = (LAYOUT.record_key(TaskKey(owner, id.decode())) for id in ids)
        return [join_record(self._open().run("HGET", key, "record"), None) for key in keys]

    async def remove_expired(self, now: float, size: int, /) -> list[TaskKey]:
        found = self._records(self._call(LAYOUT.expired(size), now))
        for record in found:
            self._call(LAYOUT.remove(record.key, record.serial))
        return [record.key for record in found]

    async def renew_lease(self, worker: str, seconds: float, /) -> None:
        self._call(LAYOUT.renew_lease(worker, seconds))

    async def lost(self, size: int, /) -> list[TaskRecord]:
        return self._records(self._call(LAYOUT.lost(size)))

    def _records(self, members: list[bytes]) -> list[TaskRecord]:
        keys = (LAYOUT.member_key(member.decode()) for member in members)
        return [join_record(self._open().run("HGET", key, "record"), None) for key in keys]

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[TaskKey | None]]:
        self._open()
        with closing(RedisClient(self._path)) as client:
            client.run("SUBSCRIBE", LAYOUT.channel)

            def poll() -> None:
                for message in client.messages():
                    watch.add(changed_key(message))

            watch = TaskWatch(self._runtimes[-1], poll, 0.01)
            yield watch

    def _open(self) -> RedisClient:
        if self._client is None:
            raise RuntimeError(NOT_OPEN)
        return self._client

    def _call(self, call: RedisCall, now: float = NOW) -> Any:
        # The contract has a clock of its own.
        client = self._open()
        now += self._runtimes[-1].ahead
        seconds = f"{{{int(now)}, {round(now % 1 * 1_000_000)}}}"
        return client.call(call._replace(script=call.script.replace("redis.call('TIME')", seconds)))


@pytest.fixture(scope="module")
def redis_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the socket of a Redis server that keeps nothing on disk."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs redis-server")
    directory = tmp_path_factory.mktemp("redis")
    path = directory / "socket"
    options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no"]
    with subprocess.Popen(
        [program, *options, "--dir", str(directory)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b"Ready to accept connections" in line or b"ready to accept connections" in line:
                break
        try:
            yield path
        finally:
            process.terminate()


@pytest.fixture
def redis(redis_path: Path) -> Iterator[RedisClient]:
    with closing(RedisClient(redis_path)) as client:
        client.run("FLUSHALL")
        yield client


@pytest.mark.interop
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("check", CONTRACT)
def test_scripts_keep_the_contract(
    run: Callable[..., None],
    check: Callable[[Stores], Awaitable[object]],
    redis: RedisClient,
    redis_path: Path,
) -> None:
    run(lambda runtime: run_check(check, lambda: ScriptedRedisStore(redis_path), runtime))


@pytest.mark.interop
def test_lease_is_measured_by_the_clock_of_the_server(redis: RedisClient) -> None:
    """Two workers whose clocks differ by a day give leases that end at the same time."""
    for id, now in (("early", time.time() - 86_400), ("late", time.time() + 86_400)):
        redis.call(LAYOUT.renew_lease(id, 30.0))
        record = new_record(id, created=now, ttl=200_000.0, worker=id)
        assert redis.call(LAYOUT.create(record, **MANY)) == b"created"
    assert redis.call(LAYOUT.lost(10)) == []
    scores = redis.run("ZRANGE", "mcp:{lab}:leases", "0", "-1", "WITHSCORES")[1::2]
    assert [round((float(score) - time.time()) / 10) for score in scores] == [3, 3]


@pytest.mark.interop
def test_ended_record_is_found_when_it_expires(redis: RedisClient) -> None:
    now = time.time()
    for id, ttl in (("over", 10.0), ("kept", 60.0)):
        record = new_record(id, created=now - 20, ttl=ttl, status="cancelled")
        assert redis.call(LAYOUT.create(record, **MANY)) == b"created"
    assert redis.call(LAYOUT.lost(10)) == []
    members = redis.call(LAYOUT.expired(10))
    assert [member.split(b":")[1] for member in members] == [b"over"]


@pytest.mark.interop
def test_redis_removes_an_expired_record_later(redis: RedisClient) -> None:
    now = time.time()
    record = new_record(created=now, ttl=60.0)
    redis.call(LAYOUT.create(record, **MANY))
    key = LAYOUT.record_key(record.key)
    assert int(redis.run("PEXPIRETIME", key)) == round((now + 60 + 3600) * 1000)
    longer = new_record(created=now, ttl=90.0)
    assert redis.call(LAYOUT.change(record.key, 1, longer)) == 1
    assert int(redis.run("PEXPIRETIME", key)) == round((now + 90 + 3600) * 1000)
    redis.run("PEXPIRE", key, "0")
    assert redis.run("EXISTS", key) == 0
    # Its places in the sets count until a worker removes them.
    assert redis.call(LAYOUT.create(record, limits=quota(1, 9))) == b"per_key"
    assert redis.call(LAYOUT.remove(record.key, 1)) == 0
    assert redis.call(LAYOUT.create(record, limits=quota(1, 9))) == b"created"


@pytest.mark.interop
def test_no_key_is_left_when_all_records_are_removed(redis: RedisClient) -> None:
    record = new_record()
    redis.call(LAYOUT.create(record, **MANY))
    after = completed(record)
    assert redis.call(LAYOUT.change(record.key, 1, after)) == 1
    assert redis.call(LAYOUT.remove(record.key, 1)) == 0
    assert redis.call(LAYOUT.remove(record.key, 2)) == 1
    assert redis.run("KEYS", "*") == [b"mcp:{lab}:workers"]  # the last number
    redis.call(LAYOUT.renew_lease("w1", 0.0))
    assert redis.call(LAYOUT.lost(9)) == []
    assert redis.run("HKEYS", "mcp:{lab}:workers") == [b""]
