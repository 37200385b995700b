"""`MemoryStore`: the contract of a store of sessions, and what only this one promises."""

from __future__ import annotations

import asyncio

import pytest
import trio

from mcp_core.runtime.sharing import MemoryStore, check_session_store
from mcp_core.sharing import ChangesPublished, Position, WorkerBatch
from mcp_trio import testing
from tests.harness import either

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
