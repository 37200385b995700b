"""`MemoryStore`: the contract of a store of sessions, and what only this one promises."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec.structs import replace

from mcp_core.runtime.sharing import MemoryStore, check_session_store
from mcp_core.runtime.sharing._contract import _MAX_NUMBER
from mcp_core.sharing import ChangesPublished, Position, WorkerBatch
from mcp_trio import testing
from tests.harness import either

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.usefixtures("each_driver")

TOOLS = ChangesPublished("s", lists=("tools",))


async def test_memory_store_keeps_the_contract() -> None:
    store = MemoryStore()
    async with either.open_task_runtime() as runtime:
        await check_session_store(lambda: store, runtime)


async def test_store_in_another_event_loop_is_refused() -> None:
    """It stays open in the first one, and is free when that has left it."""
    store = MemoryStore()
    other = MemoryStore()

    async def elsewhere() -> None:
        async with either.open_task_runtime() as runtime:
            async with other.opened(runtime):
                pass
            async with store.opened(runtime):
                raise AssertionError

    on_trio = either.on_trio()

    def run() -> None:
        if on_trio:
            trio.run(elsewhere)
        else:
            asyncio.run(elsewhere())

    async with either.open_task_runtime() as runtime:
        async with store.opened(runtime):
            with pytest.raises(RuntimeError, match=r"open in another event loop.*stores of Redis"):
                await either.in_thread(run)
            place = await store.join("s")
            await store.publish(place.number, TOOLS)
        async with store.opened(runtime), store.opened(runtime):
            await store.join("s")


@either.trio_only
async def test_public_check_runs_the_contract() -> None:
    store = MemoryStore()
    await testing.check_session_store(lambda: store)


# Each fault that a store may have, as a change of a method of `MemoryStore`.
async def _reads_itself_only(self: Any, position: Position) -> WorkerBatch:
    return WorkerBatch(Position(1, position.number + 1), [(1, TOOLS)])


async def _rejoins(self: Any, server: str) -> Any:
    place = await MemoryStore.join(self, server)
    return place._replace(number=7)


async def _forgets(self: Any, server: str, since: Position) -> Any:
    self._open_runtime()


async def _knows_too_much(self: Any, server: str, since: Position) -> Any:
    self._open_runtime()
    return TOOLS


async def _lives_on(self: Any, workers: Any) -> set[int]:
    return {*workers}


async def _never_beats(self: Any, worker: int) -> None:
    self._open_runtime()


async def _repeats_position(self: Any, worker: int, message: Any) -> Position:
    await MemoryStore.publish(self, worker, message)
    return Position(1, 1)


async def _counts_from_zero(self: Any, server: str) -> Any:
    place = await MemoryStore.join(self, server)
    self.joined = getattr(self, "joined", 0) + 1
    return place._replace(number=0) if self.joined % 3 == 1 else place


async def _counts_too_far(self: Any, server: str) -> Any:
    place = await MemoryStore.join(self, server)
    return place._replace(number=place.number + _MAX_NUMBER)


async def _leaves_once(self: Any, worker: int) -> None:
    if worker not in await self.alive([worker]):
        raise AssertionError("no such worker")
    await MemoryStore.leave(self, worker)


async def _drops_all_uris(self: Any, worker: int, message: ChangesPublished) -> Position:
    return await MemoryStore.publish(self, worker, replace(message, all_uris=False))


async def _drops_elicitations(self: Any, worker: int, message: ChangesPublished) -> Position:
    return await MemoryStore.publish(self, worker, replace(message, elicitations=()))


async def _has_a_gap_after_a_cancelled_read(self: Any, position: Position) -> WorkerBatch:
    try:
        batch = await MemoryStore.read(self, position)
    except (trio.Cancelled, asyncio.CancelledError):
        self.was_cancelled = True
        raise
    return WorkerBatch(batch.position, [None]) if hasattr(self, "was_cancelled") else batch


@asynccontextmanager
async def _waits_to_open(self: Any, runtime: Any) -> AsyncIterator[None]:
    await either.sleep_forever()
    yield


@pytest.mark.parametrize(
    ("method", "fault", "text"),
    [
        ("read", _reads_itself_only, "has to raise RuntimeError"),
        ("join", _rejoins, "a number of its own"),
        ("join", _counts_from_zero, "too high or low"),
        ("join", _counts_too_far, "too high or low"),
        ("leave", _leaves_once, "no such worker"),
        ("publish", _drops_all_uris, "published: .*all_uris=True"),
        ("publish", _drops_elicitations, "published: .*elicitations="),
        ("missed", _forgets, "has forgotten"),
        ("missed", _knows_too_much, "missed since"),
        ("alive", _lives_on, "alive"),
        ("heartbeat", _never_beats, "heartbeat returns"),
        ("publish", _repeats_position, "isn't after"),
        ("read", _has_a_gap_after_a_cancelled_read, r"published: .*u:cancelled.*read: \[None\]"),
        ("opened", _waits_to_open, "enter"),
    ],
)
async def test_contract_finds_the_fault(method: str, fault: Any, text: str) -> None:
    store = type("FaultyMemoryStore", (MemoryStore,), {method: fault})()
    async with either.open_task_runtime() as runtime:
        with pytest.raises(AssertionError, match=text):
            await check_session_store(lambda: store, runtime)


async def test_reader_that_is_too_far_behind_gets_a_gap() -> None:
    """The history has 10,000 messages: one more, and the reader has missed some."""
    store = MemoryStore()
    async with either.open_task_runtime() as runtime, store.opened(runtime):
        place = await store.join("s")
        for _ in range(10_000):
            last = await store.publish(place.number, TOOLS)
        batch = await store.read(place.position)
        assert (len(batch.messages), None in batch.messages) == (10_000, False)
        assert await store.missed("s", place.position) == TOOLS
        last = await store.publish(place.number, TOOLS)
        batch = await store.read(place.position)
        assert batch.messages[0] is None
        assert (len(batch.messages), batch.position) == (10_001, last)
        assert await store.missed("s", place.position) is None


async def test_history_of_long_messages_is_short() -> None:
    """It has as many as have 4 Mi characters, and one that has more by itself."""
    store = MemoryStore()
    async with either.open_task_runtime() as runtime, store.opened(runtime):
        place = await store.join("s")
        long = ChangesPublished("s", uris=("u" * 1024 * 1024,), elicitations=("e",))
        for _ in range(10):
            await store.publish(place.number, long)
        batch = await store.read(place.position)
        assert batch.messages == [None, *3 * [(place.number, long)]]
        huge = ChangesPublished("s", uris=("u" * 5 * 1024 * 1024,))
        await store.publish(place.number, huge)
        batch = await store.read(place.position)
        assert batch.messages == [None, (place.number, huge)]
        await store.publish(place.number, TOOLS)
        batch = await store.read(place.position)
        assert batch.messages == [None, (place.number, TOOLS)]


async def test_number_is_kept_for_an_hour_and_alive_for_ten_seconds() -> None:
    """A worker that was suspended keeps its number, and gets None when it is lost."""
    store = MemoryStore()
    async with either.open_task_runtime() as runtime, store.opened(runtime):
        number = (await store.join("s")).number
        await either.sleep(9)
        assert await store.alive([number]) == {number}
        await either.sleep(2)
        assert await store.alive([number]) == set()
        assert await store.heartbeat(number) == Position(1, 0)
        assert await store.alive([number]) == {number}
        await either.sleep(3601)
        await store.join("s")
        assert await store.heartbeat(number) is None


async def test_number_that_is_drawn_twice_is_given_once() -> None:
    """The source of entropy repeats itself, and has a zero."""
    store = MemoryStore()
    drawn = iter([b"\0\0\0", b"\0\0\5", b"\xe0\0\5", b"\xe0\0\0", b"\0\0\6"])
    async with either.open_task_runtime() as runtime, store.opened(runtime):
        runtime.entropy = lambda size: next(drawn)  # type: ignore[method-assign]
        assert [(await store.join("s")).number for _ in range(2)] == [5, 6]


async def test_empty_read_ends_after_some_seconds() -> None:
    store = MemoryStore()
    async with either.open_task_runtime() as runtime, store.opened(runtime):
        place = await store.join("s")
        start = either.current_time()
        assert await store.read(place.position) == WorkerBatch(place.position, [])
        assert 1 < either.current_time() - start < 10
