"""The task store in Redis or Valkey: tasks outlive their worker, and machines share them.

1. What has to happen in one step is one script of `mcp_core.tasks._layout`.
2. A record is signed, and so are the messages about changes. Who can write to Redis can remove
   tasks, or put an older record back under its key, and cannot make up a result or a call.
3. A record that isn't one of this server is no task: it is removed, and the log says so. One of a
   later form is left to later versions of this code.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from mcp_core._redis_calls import StreamPosition, last_entry, unread
from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.runtime.tasks._memory_store import NOT_OPEN
from mcp_core.runtime.tasks._reports import StoreReports
from mcp_core.runtime.tasks._runtime import TaskRuntime
from mcp_core.sharing import InvalidWorkerMessage, MessageCodec, TaskChanged
from mcp_core.tasks import (
    TaskKey,
    TaskLimitName,
    TaskQuota,
    TaskQuotaExceeded,
    TaskRecord,
    TaskStoreError,
)
from mcp_core.tasks._layout import RedisLayout, Removal, member_of, stored_leases
from mcp_core.tasks._leases import LeaseObserver
from mcp_core.tasks._signed_records import PURPOSE, LaterForm, RecordSigner

from ._redis_client import RedisClient
from ._redis_errors import RedisFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeAlias

    from mcp_core._redis_calls import RedisCall
    from mcp_core.protocol.input_requests._request_state import KeyRing
    from mcp_core.tasks._layout import StoredRecord

    ReadChanges: TypeAlias = Callable[
        [StreamPosition, bytes | None],
        Awaitable[tuple[StreamPosition, bytes | None, list[TaskKey | None]]],
    ]

__all__ = ["RedisTaskStore"]

_CHANGES: Final = "changes of tasks"  # the purpose of the keys that sign messages
# Seconds of one wait for changes, and between attempts while Redis cannot be reached.
_WAIT: Final = 5.0
_READ_AGAIN: Final = 1.0
_AT_ONCE: Final = 1_000  # changes of one read
# The keys sign this, so that workers recognize them.
_MARK: Final = b"these keys sign the tasks"
_DAMAGED: Final = "Redis has a record that is no task of this server"
_NO_KEYS: Final = (
    "tasks in Redis are signed with the server's keys, and it has none: pass state_keys= to Server,"
    " or --state-keys-env to the command, the same for every worker. To make a key:"
    " python -c 'import secrets; print(secrets.token_urlsafe(32))'"
)


class _Signing:
    """The signers of a server's keys. `is_claimed` is True once no other keys are in use."""

    def __init__(self, ring: KeyRing, name: str) -> None:
        self.keys = ring.signing_keys(PURPOSE)
        self.records = RecordSigner(self.keys, name)
        self.codec = MessageCodec(ring.signing_keys(_CHANGES), name)
        self.is_claimed = False


class RedisTaskStore:
    """A `TaskStore` in Redis or Valkey, shared by all workers of a server: `RedisStore(...).tasks`.

    Tasks are as durable as the server is configured. They are signed, and not encrypted: what
    clients send and tools return can be read by who can read Redis. The server needs
    `state_keys=`, the same for each worker.

    Args:
        client: the connections, which other stores may share.
        name: the deployment's name.
    """

    durable = True
    immediate = False

    def __init__(self, client: RedisClient, name: str) -> None:
        self._client = client
        self._name = name
        self._layout = RedisLayout(name)
        self._runtimes: list[TaskRuntime] = []
        self._observer = LeaseObserver()
        # What the last one to open it has set: others' keys are the same.
        self._signing: _Signing
        self._reports: StoreReports

    def __repr__(self) -> str:
        return f"<RedisTaskStore of {self._name!r}>"

    @asynccontextmanager
    async def opened(self, runtime: TaskRuntime, /) -> AsyncIterator[RedisTaskStore]:
        """Return the context in which the store may be used, as `TaskStore.opened`.

        A Redis that cannot be reached now doesn't keep a server from starting: the methods fail
        until it responds.

        Raises:
            ImportError: coredis isn't installed.
            TaskStoreError: the server has no `state_keys`, or other ones than the servers that have
                used the store, or Redis refuses. The text says what to do.
        """
        keys = runtime.keys
        if keys is None:
            raise TaskStoreError(_NO_KEYS)
        async with self._client.opened(runtime):
            signing = _Signing(keys, self._name)
            try:
                await self._claim(signing)
                await self._client.check_server(*self._layout.probes())
            except RedisFailure as exc:
                if exc.is_final:
                    raise TaskStoreError(str(exc)) from exc
                runtime.warn(f"tasks cannot be stored yet: {exc}")
            self._signing = signing
            self._reports = StoreReports(runtime)
            self._runtimes.append(runtime)
            try:
                yield self
            finally:
                self._runtimes.remove(runtime)

    async def _claim(self, signing: _Signing) -> None:
        """Refuse keys that others don't have: each would remove what the others have stored."""
        keys = signing.keys
        mark = keys.sign(_MARK)
        known = await self._client.run(self._layout.claim(mark, b""))
        if known != mark and keys.verify(_MARK, known):  # signed by another key of the ring
            known = await self._client.run(self._layout.claim(mark, known))
        if not keys.verify(_MARK, known):
            raise TaskStoreError(
                f"another server with other state_keys keeps its tasks under the name"
                f" {self._name!r} in this Redis: give each server a RedisStore with a name of its"
                " own, and all workers of one server the same keys. If the keys were replaced and"
                f" the tasks may be lost, delete the key {self._layout.mark!r}"
            )
        signing.is_claimed = True

    async def create(self, record: TaskRecord, /, *, limits: TaskQuota) -> TaskLimitName | None:
        call = self._layout.create(record, self._signed(record), limits=limits)
        outcome: bytes = await self._run(call)
        if outcome == b"exists":
            raise TaskStoreError("there is a task with this id already; create it with another id")
        return None if outcome == b"created" else _limit(outcome)

    async def get(self, key: TaskKey, /) -> TaskRecord | None:
        return (await self._read([member_of(key)], results=True))[0]

    async def change(
        self,
        key: TaskKey,
        serial: int,
        record: TaskRecord | None,
        /,
        *,
        limits: TaskQuota | None = None,
    ) -> bool:
        message = self._message(key)
        if record is None:
            removed = await self._run(self._layout.remove([Removal(key, serial, message)]))
            return bool(removed[0])
        signed = self._signed(record)
        call = self._layout.change(key, serial, record, signed, message, limits=limits)
        outcome = await self._run(call)
        if isinstance(outcome, bytes):
            raise TaskQuotaExceeded(_limit(outcome))
        return bool(outcome)

    async def page(self, owner: str, after: str, size: int, /) -> list[TaskRecord]:
        wanted = size
        while True:
            ids = await self._run(self._layout.page(owner, after, wanted))
            if ids is None:
                raise KeyError(after)
            members = [member_of(TaskKey(owner, _text(id))) for id in ids]
            records = [record for record in await self._read(members) if record is not None]
            # A damaged record must not make the page look like the last one.
            if len(records) >= size or len(ids) < wanted:
                return records[:size]
            wanted += len(ids) - len(records)

    async def remove_expired(self, now: float, size: int, /) -> list[TaskKey]:
        keys: list[TaskKey] = []
        before: list[str] = []
        while True:
            wanted = size - len(keys)
            members = [_text(each) for each in await self._run(self._layout.expired(wanted))]
            if members == before:
                return keys  # they cannot be removed
            found = [each for each in await self._read(members, expired=True) if each is not None]
            if found:
                removals = [
                    Removal(each.key, each.serial, self._message(each.key)) for each in found
                ]
                removed = await self._run(self._layout.remove(removals))
                keys += [each.key for each, done in zip(found, removed, strict=True) if done]
            # Fewer, if some were no records: Redis itself removes one when no worker has.
            if len(keys) == size or len(members) < wanted:
                return keys
            before = members

    async def renew_lease(self, worker: str, seconds: float, /) -> None:
        await self._run(self._layout.renew_lease(worker, seconds))

    async def lost(self, size: int, /) -> list[TaskRecord]:
        leases = stored_leases(await self._run(self._layout.leases()))
        now = self._runtimes[-1].monotonic() if self._runtimes else 0.0
        lost = set(self._observer.lost_workers((each.lease for each in leases), now))
        workers = [each for each in leases if each.lease.worker in lost]
        members = [_text(each) for each in await self._run(self._layout.lost(size, workers))]
        records = [each for each in await self._read(members) if each is not None]
        # The set isn't signed: it may have tasks that have ended, or are a living worker's.
        found = [each for each in records if not each.ended and each.worker in {"", *lost}]
        if len(found) < len(records):
            await self._run(self._layout.place(each for each in records if each not in found))
        return found

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[TaskKey | None]]:
        position = await self._last_change()
        runtime = self._runtimes[-1]
        yield _ChangedKeys(runtime, position, self._read_changes, self._last_change)

    async def _last_change(self) -> StreamPosition:
        """Return the place after the last change.

        Raises:
            TaskStoreError: Redis cannot be reached.
        """
        return StreamPosition.of(await self._run(last_entry(self._layout.changes)))

    async def _read_changes(
        self, position: StreamPosition, mark: bytes | None
    ) -> tuple[StreamPosition, bytes | None, list[TaskKey | None]]:
        """Wait some seconds for changes after `position`, whose entry has the digest `mark`.

        Return the next position, its mark, and the keys. None among them is a gap.

        Raises:
            TaskStoreError: Redis cannot be reached.
        """
        self._check_open()
        stream = self._layout.changes
        try:
            read = await self._client.read(stream, str(position), seconds=_WAIT, size=_AT_ONCE)
        except RedisFailure as exc:
            raise TaskStoreError(str(exc)) from exc
        replaced = None not in (mark, read.before) and mark != read.before
        if replaced or not read.entries:
            last = await self._last_change()
            if replaced or last < position:
                return last, None, [None]
            return position, read.last or mark, []
        position, messages = unread(position, read.entries)
        keys = [key for message in messages for key in self._changed(message)]
        return position, read.last, keys

    def _changed(self, message: bytes | None) -> list[TaskKey | None]:
        if message is None:
            return [None]
        try:
            _, changed = self._signing.codec.decode(message, self._layout.changes)
        except InvalidWorkerMessage as exc:
            self._reports.warn(f"Redis has a message that is skipped: {exc}")
            return []
        return [TaskKey(changed.owner, changed.id)] if isinstance(changed, TaskChanged) else []

    def _message(self, key: TaskKey) -> bytes:
        self._check_open()
        return self._signing.codec.encode(TaskChanged(key.owner, key.id), 0, self._layout.changes)

    def _signed(self, record: TaskRecord) -> StoredRecord:
        self._check_open()
        return self._signing.records.encode(record, self._layout.record_key(member_of(record.key)))

    async def _read(
        self, members: Sequence[str], *, results: bool = False, expired: bool = False
    ) -> list[TaskRecord | None]:
        """Return the records of `members`, and None for a damaged one, which is removed.

        One of a later form stays, unless it is `expired`. `members` are from a set, unless
        `results` are wanted.
        """
        if not members:
            return []
        rows = await self._run(self._layout.read(members, results=results))
        records: list[TaskRecord | None] = []
        strays: list[tuple[str, bytes | None]] = []
        for member, row in zip(members, rows, strict=True):
            record = None
            if row[0] is None and row[1] is None:
                if not results:
                    strays.append((member, None))
            else:
                try:
                    record = self._decode(member, *row)
                except LaterForm as exc:
                    self._reports.warn(f"{_DAMAGED}, which is left as it is: {exc}")
                    if expired:
                        strays.append((member, row[1]))
                except InvalidPayload as exc:
                    self._reports.warn(f"{_DAMAGED}, which is removed: {exc}")
                    strays.append((member, row[1]))
            records.append(record)
        if strays:
            await self._run(self._layout.discard(strays))
        return records

    def _decode(
        self, member: str, serial: bytes | None, data: bytes | None, *result: bytes | None
    ) -> TaskRecord:
        key = self._layout.record_key(member)
        if result:
            record = self._signing.records.decode_whole(data or b"", result[0], key)
        else:
            record = self._signing.records.decode(data or b"", key)
        if serial != b"%d" % record.serial:
            raise InvalidPayload("its serial number isn't the one that was signed")
        return record

    async def _run(self, call: RedisCall) -> Any:
        self._check_open()
        try:
            if not self._signing.is_claimed:
                await self._claim(self._signing)
            return await self._client.run(call)
        except RedisFailure as exc:
            raise TaskStoreError(str(exc)) from exc

    def _check_open(self) -> None:
        if not (self._runtimes and self._client.is_open):
            raise RuntimeError(NOT_OPEN)


class _ChangedKeys:
    """The iterator of a `watch`: it waits in Redis itself, so that no task runs beside its reader.

    Args:
        runtime: waits while Redis cannot be reached.
        position: where to begin.
        read: waits for changes after a position, and returns the next one and their keys.
        last: returns the place after the last change.
    """

    def __init__(
        self,
        runtime: TaskRuntime,
        position: StreamPosition,
        read: ReadChanges,
        last: Callable[[], Awaitable[StreamPosition]],
    ) -> None:
        self._runtime = runtime
        self._position = position
        self._read_after = read
        self._last = last
        self._mark: bytes | None = None  # of the last entry that was read
        # What was changed before the first read isn't known.
        self._keys: dict[TaskKey | None, None] = {None: None}
        self._failed = False

    def __aiter__(self) -> _ChangedKeys:
        return self

    async def __anext__(self) -> TaskKey | None:
        while not self._keys:
            try:
                self._keys = dict.fromkeys(await self._read())
            except (TaskStoreError, RuntimeError):
                # Other methods say what has failed. A store that is closed is read no more.
                self._failed = True
                await self._runtime.wait(self._runtime.new_event(), _READ_AGAIN)
        key = next(iter(self._keys))
        del self._keys[key]
        return key

    async def _read(self) -> list[TaskKey | None]:
        if self._failed:
            # As after a gap: a replica that has taken over uses the numbers of lost entries again.
            self._position, self._mark = await self._last(), None
            self._failed = False
            return [None]
        self._position, self._mark, keys = await self._read_after(self._position, self._mark)
        return [None] if None in keys else keys


def _limit(reply: bytes) -> TaskLimitName:
    return cast(TaskLimitName, reply.decode())


def _text(member: bytes) -> str:
    # Others have written one that isn't UTF-8. It becomes one that has no record.
    return member.decode(errors="replace")
