"""The store of sessions in Redis or Valkey: workers of several processes and machines share it.

1. Messages are signed with the server's `state_keys`. What isn't, or isn't for this place, is
   dropped with a line in the log, and nothing of it is decoded.
2. What the server says is believed about order only: positions, gaps, and who is alive.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from mcp_core._on_first_use import type_on_first_use
from mcp_core._redis_calls import StreamPosition, unread
from mcp_core.runtime.tasks._reports import StoreReports
from mcp_core.runtime.tasks._runtime import TaskRuntime
from mcp_core.sharing import (
    ChangesPublished,
    InvalidWorkerMessage,
    MessageCodec,
    Position,
    SessionStoreError,
    WorkerBatch,
    WorkerPlace,
    merged,
)
from mcp_core.sharing._layout import BusLayout

from ._redis_client import NOT_OPEN, RedisClient
from ._redis_errors import RedisFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from mcp_core.sharing import WorkerMessage

    from ._redis_client import AnyRedis
    from ._redis_tasks import RedisTaskStore
else:
    AnyRedis = type_on_first_use("coredis", "Redis")
    RedisTaskStore = type_on_first_use("mcp_core.adapters", "RedisTaskStore")

__all__ = ["RedisStore"]

T = TypeVar("T")

_READ_TIME: Final = 5.0  # seconds that a read waits
_NUMBER_SIZE: Final = 3  # bytes, of which 21 bits are used
_MAX_NUMBER: Final = 2**21 - 1
_OWNER_SIZE: Final = 16  # bytes
_PAGE: Final = 256  # messages of one read
# A reader that is further behind counts everything as changed, which costs less than to read it.
_MAX_MISSED: Final = 10_000
_MAX_MARKS: Final = 100  # more than servers in one process
_MAX_SHOWN: Final = 60  # characters of a name that the store has


class _Worker(NamedTuple):
    owner: str
    server: str


class RedisStore:
    """A `SessionStore` in Redis 7 or later, or in Valkey.

    Workers of one server, on any number of machines, have a store with the same server and name,
    and the same `state_keys`. It has no connection before it is opened, so it may be made before
    a process forks; what was opened before a fork isn't open in the child.

    Messages are signed and in clear: they name what has changed, such as URIs of resources. Give
    the server a password, and TLS where a network is between.

    Args:
        url_or_client: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://...` for TLS,
            where the server's name is verified and `?ssl_ca_certs=FILE` names a CA of its own, or
            `unix:///PATH`. Or a `coredis.Redis` with other settings, such as one of Sentinel. The
            caller keeps it: its connections aren't used, and it isn't closed.
        name: the deployment: one or more characters, no braces. Different deployments of one server
            of Redis see nothing of each other.

    Raises:
        ValueError: the URL or the name isn't of this form. The text has no credentials.
        TypeError: `url_or_client` is something else, or a client of a cluster.
    """

    needs_keys = True

    def __init__(self, url_or_client: str | AnyRedis, *, name: str) -> None:
        self._layout = BusLayout(name)
        self._client = RedisClient(url_or_client, name)
        self._name = name
        self._codec: MessageCodec | None = None  # while it is open
        self._openings = 0
        self._process = 0  # that has opened it
        self._workers: dict[int, _Worker] = {}
        self._known_servers: set[str] = set()
        # The digests of the last entries of reads, by their positions: one for each reader.
        self._marks: dict[Position, bytes] = {}
        self._reports: StoreReports | None = None

    def __repr__(self) -> str:
        return f"RedisStore({self._client.address!r}, name={self._name!r})"

    @cached_property
    def tasks(self) -> RedisTaskStore:
        """The store of tasks, for `Tasks(store=)`. It has the same connections and name.

        It is opened by itself, with or without this one.
        """
        from . import _redis_tasks  # on first use: not all workers have tasks

        return _redis_tasks.RedisTaskStore(self._client, self._name)

    @asynccontextmanager
    async def opened(self, runtime: TaskRuntime, /) -> AsyncIterator[RedisStore]:
        """Return the context in which the store may be used, as `SessionStore.opened`.

        If the server of Redis doesn't respond, that is logged, and the store is open.

        Raises:
            SessionStoreError: Redis refuses what workers need, such as the password or a command.
                The text says which, and what to do.
            ValueError: `runtime.keys` is None, or another server has opened this store with other
                keys.
            ImportError: coredis isn't installed.
            RuntimeError: it is open in another event loop of this process.
        """
        if runtime.keys is None:
            raise ValueError("a store in Redis needs state_keys=, which sign what workers say")
        codec = MessageCodec(runtime.keys.signing_keys("workers"), self._name)
        process = os.getpid()
        if self._codec is None or self._process != process:
            self._codec, self._openings, self._process = codec, 0, process
            self._reports = StoreReports(runtime, SessionStoreError)
            self._workers, self._known_servers, self._marks = {}, set(), {}
        self._check_same_keys(codec)
        self._openings += 1
        try:
            async with self._client.opened(runtime):
                try:
                    await self._client.check_server(*self._layout.probes())
                except RedisFailure as exc:
                    raise SessionStoreError(str(exc)) from None
                yield self
        finally:
            if self._process == process == os.getpid():
                self._openings -= 1
                if not self._openings:
                    self._codec = None

    async def join(self, server: str, /) -> WorkerPlace:
        self._open_codec()
        runtime = self._client.runtime
        owner = runtime.entropy(_OWNER_SIZE).hex()
        while True:
            number = int.from_bytes(runtime.entropy(_NUMBER_SIZE)) & _MAX_NUMBER
            if not number or number in self._workers:
                continue
            last = await _raising(self._client.run(self._layout.join(number, owner)))
            if last is not None:
                self._workers[number] = _Worker(owner, server)
                self._known_servers.add(server)
                return WorkerPlace(number, _position(last))

    async def heartbeat(self, worker: int, /) -> Position | None:
        self._open_codec()
        runtime = self._client.runtime
        known = self._workers.get(worker)
        if known is None:
            return None
        call = self._layout.heartbeat(worker, known.owner, known.server)
        found = await _raising(self._client.run(call))
        if found is None:
            self._workers.pop(worker, None)
            return None
        last, servers = found
        for name in {name.decode(errors="replace") for name in servers} - self._known_servers:
            self._known_servers.add(name)
            shown = name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}..."
            runtime.warn(
                f"{self!r} has workers of another server too, {shown!r}. Workers hear of changes of"
                " their own server only; if that is another deployment, give it a name of its own"
            )
        return _position(last)

    async def alive(self, workers: Collection[int], /) -> set[int]:
        numbers = [*workers]
        self._open_codec()
        if not numbers:
            return set()
        found = await _raising(self._client.execute("MGET", *self._layout.alive_keys(numbers)))
        return {number for number, value in zip(numbers, found, strict=True) if value is not None}

    async def leave(self, worker: int, /) -> None:
        self._open_codec()
        known = self._workers.pop(worker, None)
        if known is not None:
            await _raising(self._client.run(self._layout.leave(worker, known.owner)))

    async def publish(self, worker: int, message: ChangesPublished, /) -> Position:
        data = self._open_codec().encode(message, worker, self._layout.stream)
        return _position(await _raising(self._client.run(self._layout.publish(data))))

    async def missed(self, server: str, since: Position, /) -> ChangesPublished | None:
        position = StreamPosition(*since)
        result = ChangesPublished(server)
        for _ in range(_MAX_MISSED // _PAGE):
            stream = self._layout.stream
            page, last = await _raising(
                self._client.pipeline(
                    [
                        ("XRANGE", stream, f"({position}", "+", "COUNT", _PAGE),
                        ("XREVRANGE", stream, "+", "-", "COUNT", 1),
                    ]
                )
            )
            if not last or StreamPosition.of(last[0][0]) < position:
                return None  # it was lost, and perhaps begun again
            entries = [(id, _message(fields)) for id, fields in page]
            position, found = unread(position, entries)
            if None in found:
                return None
            result = merged([result, *self._changes_of(server, found)], server)
            if len(page) < _PAGE:
                return result
        return None

    async def read(self, position: Position, /) -> WorkerBatch:
        codec = self._open_codec()
        runtime = self._client.runtime
        place = StreamPosition(*position)
        end = runtime.monotonic() + _READ_TIME
        messages: list[tuple[int, WorkerMessage] | None] = []
        while not messages and (left := end - runtime.monotonic()) > 0:
            reading = self._client.read(self._layout.stream, str(place), seconds=left, size=_PAGE)
            before, last, entries = await _raising(reading)
            if before and self._marks.setdefault(_of(place), before) != before:
                # A replica has taken over that had not got this entry, and perhaps others.
                await _raising(self._client.run(self._layout.overtake(_of(place), lost=True)))
                del self._marks[_of(place)]
                break
            if not entries:
                await _raising(self._client.run(self._layout.overtake(_of(place))))
                break
            place, found = unread(place, entries)
            self._note_mark(_of(place), last)
            # What is dropped leaves no gap: who can write to the store could make any number.
            messages = [*self._decoded(codec, found)]
        return WorkerBatch(_of(place), messages)

    def _note_mark(self, position: Position, mark: bytes | None) -> None:
        if mark is not None:
            self._marks[position] = mark
        while len(self._marks) > _MAX_MARKS:
            del self._marks[next(iter(self._marks))]

    def _changes_of(self, server: str, found: Iterable[bytes | None]) -> Iterable[ChangesPublished]:
        for entry in self._decoded(self._open_codec(), found):
            if entry and isinstance(entry[1], ChangesPublished) and entry[1].server == server:
                yield entry[1]

    def _decoded(
        self, codec: MessageCodec, found: Iterable[bytes | None]
    ) -> Iterable[tuple[int, WorkerMessage] | None]:
        for data in found:
            if data is None:
                yield None
            elif data:  # the entry that begins a stream has no message
                try:
                    yield codec.decode(data, self._layout.stream)
                except InvalidWorkerMessage as exc:
                    if self._reports is not None:
                        self._reports.warn(
                            f"{self!r} has what isn't a message, and drops it: {exc}"
                        )

    def _open_codec(self) -> MessageCodec:
        if self._codec is None or not self._client.is_open:
            raise RuntimeError(NOT_OPEN)
        return self._codec

    def _check_same_keys(self, codec: MessageCodec) -> None:
        message = ChangesPublished("")
        first = self._open_codec() if self._openings else codec
        try:
            codec.decode(first.encode(message, 0, ""), "")
            first.decode(codec.encode(message, 0, ""), "")
        except InvalidWorkerMessage:
            raise ValueError(
                "servers that share a store need the same state_keys, which sign what their workers"
                " say. Give each a store of its own otherwise, with another name"
            ) from None


def _message(fields: list[bytes]) -> bytes:
    return dict(zip(fields[::2], fields[1::2], strict=False)).get(b"m", b"")


def _position(id: bytes) -> Position:
    return _of(StreamPosition.of(id))


def _of(position: StreamPosition) -> Position:
    return Position(position.epoch, position.number)


async def _raising(call: Awaitable[T]) -> T:
    """Return what a call of the client returns. Raise what a store of sessions raises."""
    try:
        return await call
    except RedisFailure as exc:
        raise SessionStoreError(str(exc)) from None
