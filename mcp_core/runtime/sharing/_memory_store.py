"""The store of sessions in one process's memory, for tests and for several workers of one process.

Each method takes effect in one step, because all workers share a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

from mcp_core.runtime.tasks import TaskRuntime
from mcp_core.runtime.tasks._opening import check_event_loop
from mcp_core.sharing import ChangesPublished, Position, WorkerBatch, WorkerPlace, merged

__all__ = ["MemoryStore"]

_NOT_OPEN: Final = (
    "the store of sessions is not open; pass it to a server, which opens it while it is served,"
    " or use it inside `async with store.opened(runtime)`"
)
# Messages, and characters of their texts. A worker that is further behind gets a gap.
_HISTORY: Final = 10_000
_HISTORY_SIZE: Final = 4 * 1024 * 1024
_READ_TIME: Final = 5.0  # seconds that a read waits
_ALIVE: Final = 10.0  # seconds after a heartbeat
_NUMBER_KEPT: Final = 3600.0  # seconds after the last heartbeat: a worker may only be suspended
_NUMBER_SIZE: Final = 3  # bytes, of which 21 bits are used
_MAX_NUMBER: Final = 2**21 - 1


class MemoryStore:
    """A `SessionStore` in the process's memory.

    It serves several workers of one process, which share one event loop: opening it in two at once
    is a `RuntimeError`. Other processes don't see it, so it needs no `state_keys`. It has the last
    10,000 messages, or 4 Mi characters of them.
    """

    needs_keys = False

    def __init__(self) -> None:
        self._runtimes: list[TaskRuntime] = []
        self._epoch = 1
        self._count = 0  # of all messages
        self._messages: deque[tuple[int, ChangesPublished]] = deque()
        self._size = 0  # of the texts of `_messages`, in characters
        self._heartbeats: dict[int, float] = {}  # by number: the time of the last one

    def __repr__(self) -> str:
        return f"<MemoryStore of {len(self._heartbeats)} workers, {self._count} messages>"

    @asynccontextmanager
    async def opened(self, runtime: TaskRuntime, /) -> AsyncIterator[MemoryStore]:
        check_event_loop(runtime, self._runtimes, self)
        if not self._runtimes:
            self._published = runtime.new_event()
        self._runtimes.append(runtime)
        try:
            yield self
        finally:
            self._runtimes.remove(runtime)

    async def join(self, server: str, /) -> WorkerPlace:
        runtime = self._open_runtime()
        now = runtime.monotonic()
        for number, beat in list(self._heartbeats.items()):
            if now - beat > _NUMBER_KEPT:
                del self._heartbeats[number]
        number = 0
        while not number or number in self._heartbeats:
            number = int.from_bytes(runtime.entropy(_NUMBER_SIZE)) & _MAX_NUMBER
        self._heartbeats[number] = now
        return WorkerPlace(number, self._last())

    async def heartbeat(self, worker: int, /) -> Position | None:
        now = self._open_runtime().monotonic()
        if worker not in self._heartbeats:
            return None
        self._heartbeats[worker] = now
        return self._last()

    async def alive(self, workers: Collection[int], /) -> set[int]:
        now = self._open_runtime().monotonic()
        beats = self._heartbeats
        return {each for each in workers if each in beats and now - beats[each] <= _ALIVE}

    async def leave(self, worker: int, /) -> None:
        self._open_runtime()
        self._heartbeats.pop(worker, None)

    async def publish(self, worker: int, message: ChangesPublished, /) -> Position:
        runtime = self._open_runtime()
        self._count += 1
        self._messages.append((worker, message))
        self._size += _size_of(message)
        # The last one stays: those who wait for it read it now.
        while len(self._messages) > _HISTORY or (
            self._size > _HISTORY_SIZE and len(self._messages) > 1
        ):
            self._size -= _size_of(self._messages.popleft()[1])
        self._published.set()
        self._published = runtime.new_event()
        return self._last()

    async def missed(self, server: str, since: Position, /) -> ChangesPublished | None:
        self._open_runtime()
        if not self._has_all_after(since):
            return None
        messages = (message for _, message in self._after(since.number))
        return merged((message for message in messages if message.server == server), server)

    async def read(self, position: Position, /) -> WorkerBatch:
        runtime = self._open_runtime()
        if position == self._last():
            await runtime.wait(self._published, _READ_TIME)
        messages: list[tuple[int, ChangesPublished] | None] = []
        if self._has_all_after(position):
            messages += self._after(position.number)
        else:
            messages += [None, *self._messages]
        return WorkerBatch(self._last(), messages)

    def _last(self) -> Position:
        return Position(self._epoch, self._count)

    def _has_all_after(self, position: Position) -> bool:
        first = self._count - len(self._messages)
        return position.epoch == self._epoch and first <= position.number <= self._count

    def _after(self, number: int) -> list[tuple[int, ChangesPublished]]:
        newer = self._count - number
        return list(islice(self._messages, len(self._messages) - newer, None))

    def _open_runtime(self) -> TaskRuntime:
        if not self._runtimes:
            raise RuntimeError(_NOT_OPEN)
        return self._runtimes[-1]


def _size_of(message: ChangesPublished) -> int:
    return sum(map(len, message.uris)) + sum(map(len, message.elicitations))
