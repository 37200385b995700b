"""The part of Redis that the bus uses, played in this process: `RedisStore` beside no server.

It plays what each script of `mcp_core.sharing._layout` does, one call at a time. Real servers are
in `test_redis_store.py`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp_core.adapters import RedisStore
from mcp_core.adapters._redis_client import NOT_OPEN, StreamRead
from mcp_core.sharing import _layout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from mcp_core._redis_calls import RedisCall

__all__ = ["PlayedBus", "PlayedRedisClient", "played_store"]

Id = tuple[int, int]


class PlayedBus:
    """The state that several clients share.

    Attributes:
        entries: of the stream: ids and messages.
        keys: the texts by key, without their times to live.
        servers: the names of the last heartbeats.
        epoch: of the next stream.
        failure: what the next command raises.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[Id, bytes]] = []
        self.keys: dict[str, bytes] = {}
        self.servers: dict[str, None] = {}
        self.epoch = 1_000
        self.failure: Exception | None = None
        self.clients: list[PlayedRedisClient] = []

    def last(self) -> Id | None:
        return self.entries[-1][0] if self.entries else None

    def add(self, message: bytes, id: Id | None = None) -> Id:
        """Append an entry, and wake those that wait for it."""
        if id is None:
            epoch, number = self.last() or (self.epoch, 0)
            id = epoch, number + 1
        assert id > (self.last() or (0, 0))
        self.entries = [*self.entries, (id, message)][-10_000:]
        for client in self.clients:
            client.wake()
        return id

    def begun(self) -> Id:
        """Begin the stream if there is none."""
        return self.last() or self.add(b"", (self.epoch, 0))


class PlayedRedisClient:
    """As a `RedisClient`. Its methods are those that a `RedisStore` calls."""

    address = "redis://played"

    def __init__(self, redis: PlayedBus) -> None:
        self._redis = redis
        self._runtimes: list[Any] = []
        self._waiting: list[Any] = []
        redis.clients.append(self)

    @property
    def is_open(self) -> bool:
        return bool(self._runtimes)

    @property
    def runtime(self) -> Any:
        return self._runtimes[0]

    def wake(self) -> None:
        for event in self._waiting:
            event.set()

    @asynccontextmanager
    async def opened(self, runtime: Any) -> AsyncIterator[PlayedRedisClient]:
        self._runtimes.append(runtime)
        try:
            yield self
        finally:
            self._runtimes.remove(runtime)

    async def check_server(self, probe: RedisCall, commands: Sequence[Sequence[Any]]) -> None:
        assert probe.keys == ("mcp:{lab}:probe",)
        assert {words[0] for words in commands} == {"MGET", "XRANGE", "XREVRANGE", "XREAD"}
        self._check()

    async def run(self, call: RedisCall) -> Any:
        self._check()
        redis, keys, words = self._redis, call.keys, call.arguments
        if call.script == _layout._JOIN:
            if keys[0] in redis.keys:
                return None
            redis.keys |= {keys[0]: _bytes(words[0]), keys[1]: b"1"}
            return _text(redis.begun())
        if call.script == _layout._HEARTBEAT:
            if redis.keys.get(keys[0], _bytes(words[0])) != _bytes(words[0]):
                return None
            redis.keys |= {keys[0]: _bytes(words[0]), keys[1]: b"1"}
            redis.servers[str(words[1])] = None
            return [_text(redis.begun()), [name.encode() for name in redis.servers]]
        if call.script == _layout._LEAVE:
            if redis.keys.get(keys[0]) == _bytes(words[0]):
                del redis.keys[keys[0]], redis.keys[keys[1]]
            return None
        if call.script == _layout._PUBLISH:
            return _text(redis.add(_bytes(words[0])))
        assert call.script == _layout._OVERTAKE
        reader = (int(words[0]), int(words[1]))
        last = redis.last()
        if last is not None and (last < reader or (words[2] and last[0] == reader[0])):
            redis.add(b"", (reader[0] + 1, 0))
        return None

    async def execute(self, name: str, *keys: str) -> Any:
        self._check()
        assert name == "MGET"
        return [self._redis.keys.get(key) for key in keys]

    async def pipeline(self, commands: Sequence[Sequence[Any]]) -> Any:
        self._check()
        [xrange, _] = commands
        after, size = _id(xrange[2][1:]), xrange[5]
        page = [entry for entry in self._redis.entries if entry[0] > after][:size]
        last = self._redis.entries[-1:]
        return [[[_text(id), [b"m", message]] for id, message in found] for found in (page, last)]

    async def read(self, stream: str, after: str, *, seconds: float, size: int) -> StreamRead:
        self._check()
        assert stream == "mcp:{lab}:bus"
        position = _id(after)
        before = self._redis.entries
        if (self._redis.last() or (0, 0)) <= position:
            event = self.runtime.new_event()
            self._waiting.append(event)
            try:
                await self.runtime.wait(event, seconds)
            finally:
                self._waiting.remove(event)
        self._check()
        found = [entry for entry in self._redis.entries if entry[0] > position]
        last = found[:size][-1:] or [entry for entry in before if entry[0] == position]
        return StreamRead(
            next((_mark(each) for each in before if each[0] == position), None),
            next(map(_mark, last), None),
            [(_text(id), message) for id, message in found[:size]],
        )

    def _check(self) -> None:
        if not self._runtimes:
            raise RuntimeError(NOT_OPEN)
        failure, self._redis.failure = self._redis.failure, None
        if failure is not None:
            raise failure


def played_store(redis: PlayedBus) -> RedisStore:
    """Return a store whose client is played."""
    store = RedisStore("redis://played", name="lab")
    store._client = PlayedRedisClient(redis)  # type: ignore[assignment]
    return store


def _text(id: Id) -> bytes:
    return b"%d-%d" % id


def _mark(entry: tuple[Id, bytes]) -> bytes:
    return entry[1] or b"begun"


def _id(text: str) -> Id:
    epoch, _, number = text.partition("-")
    return int(epoch), int(number)


def _bytes(word: str | bytes) -> bytes:
    return word.encode() if isinstance(word, str) else word
