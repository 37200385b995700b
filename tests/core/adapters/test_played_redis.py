"""`RedisStore` beside a Redis that a test plays: the store's own part, in the default run."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.adapters import RedisStore, _redis_store
from mcp_core.adapters._redis_errors import RedisFailure
from mcp_core.registry import Server
from mcp_core.runtime.sharing import check_session_store
from mcp_core.sharing import (
    ChangesPublished,
    Position,
    SessionStoreError,
    WorkerBatch,
)
from tests.core.adapters.played_redis import PlayedBus, played_store
from tests.core.adapters.redis_runs import CODEC, KEYS, RUNS, STREAM, TOOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.parametrize("run", RUNS)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_redis_store, "_READ_TIME", 0.05)


def play(
    run: Callable[[Any], None],
    redis: PlayedBus,
    scene: Callable[[RedisStore, Any], Awaitable[None]],
) -> None:
    async def main(runtime: Any) -> None:
        store = played_store(redis)
        async with store.opened(runtime):
            await scene(store, runtime)

    run(main)


def test_store_keeps_the_contract(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_redis_store, "_READ_TIME", 5.0)
    redis = PlayedBus()
    run(partial(check_session_store, lambda: played_store(redis)))


def test_garbage_is_dropped_with_one_line_for_each_cause(run: Any) -> None:
    """It leaves no gap, and hides no message."""
    redis = PlayedBus()

    async def scene(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        for data in (b"x", b"y" * 99, CODEC.encode(TOOLS, 7, "elsewhere"), b"z" * 2_000_000):
            redis.add(data)
        assert await store.read(place.position) == WorkerBatch(Position(1_000, 4), [])
        assert await store.missed("s", place.position) == ChangesPublished("s")
        redis.add(CODEC.encode(TOOLS, 7, STREAM))
        assert (await store.read(place.position)).messages == [(7, TOOLS)]
        assert await store.missed("s", place.position) == TOOLS
        lines = [line for line in runtime.warnings if "drops it" in line]
        assert len(lines) == 2

    play(run, redis, scene)


def test_marks_of_the_last_hundred_positions_are_kept(run: Any) -> None:
    """Each server of the process has one, and remembers by it what it has read."""

    async def scene(store: RedisStore, runtime: Any) -> None:
        for number in range(150):
            store._note_mark(Position(1, number), b"x")
        store._note_mark(Position(1, 150), None)
        assert [*store._marks] == [Position(1, number) for number in range(50, 150)]

    play(run, PlayedBus(), scene)


def test_lost_stream_is_a_gap_and_nothing_is_known_of_it(run: Any) -> None:
    redis = PlayedBus()

    async def scene(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        position = await store.publish(place.number, TOOLS)
        redis.entries.clear()
        assert await store.missed("s", position) is None
        redis.epoch = 2_000
        assert await store.heartbeat(place.number) == Position(2_000, 0)
        assert await store.read(position) == WorkerBatch(Position(2_000, 0), [None])
        assert await store.missed("s", position) is None

    play(run, redis, scene)


def test_number_that_was_used_again_is_a_gap(run: Any) -> None:
    """A replica takes over that lacks an entry, and gives its number, and more, to others.

    The first reader that sees it begins another epoch, so that the others see it too.
    """
    redis = PlayedBus()
    uris = [CODEC.encode(ChangesPublished("s", uris=(f"u:{n}",)), 7, STREAM) for n in range(9)]

    async def scene(store: RedisStore, runtime: Any) -> None:
        position = (await store.join("s")).position
        for data in uris[:3]:
            redis.add(data)
        position = (await store.read(position)).position
        assert (await store.read(position)).messages == []
        del redis.entries[-1]  # the failover
        for data in uris[3:6]:
            redis.add(data)
        assert await store.read(position) == WorkerBatch(position, [])
        batch = await store.read(position)
        assert batch.position == Position(1_001, 0)
        assert batch.messages[-1] is None
        assert await store.missed("s", position) is None
        redis.add(CODEC.encode(TOOLS, 7, STREAM), (1_001, 1))
        assert (await store.read(batch.position)).messages == [(7, TOOLS)]

    play(run, redis, scene)


def test_reader_with_a_later_epoch_begins_another_one(run: Any) -> None:
    redis = PlayedBus()

    async def scene(store: RedisStore, runtime: Any) -> None:
        await store.join("s")
        ahead = Position(5_000, 3)
        assert await store.read(ahead) == WorkerBatch(ahead, [])
        assert await store.read(ahead) == WorkerBatch(Position(5_001, 0), [None])

    play(run, redis, scene)


def test_long_history_is_read_in_pages(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`missed` reads all of it, and gives up above its limit."""
    monkeypatch.setattr(_redis_store, "_PAGE", 10)
    monkeypatch.setattr(_redis_store, "_MAX_MISSED", 50)
    redis = PlayedBus()

    async def scene(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        for number in range(30):
            message = ChangesPublished("s" if number % 2 else "t", uris=(f"u:{number}",))
            redis.add(CODEC.encode(message, 7, STREAM))
        missed = await store.missed("s", place.position)
        assert missed is not None
        assert missed.uris == tuple(f"u:{number}" for number in range(1, 30, 2))
        assert len((await store.read(place.position)).messages) == 10
        for _ in range(20):
            redis.add(CODEC.encode(TOOLS, 7, STREAM))
        assert await store.missed("s", place.position) is None
        redis.entries = redis.entries[5:]
        assert (await store.read(place.position)).messages[0] is None
        assert await store.missed("s", place.position) is None

    play(run, redis, scene)


@pytest.mark.parametrize(("count", "is_known"), [(511, True), (512, False)])
def test_missed_messages_are_read_in_pages_of_256(
    run: Any, count: int, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So two pages hold 511, behind which nothing can be."""
    monkeypatch.setattr(_redis_store, "_MAX_MISSED", 512)
    redis = PlayedBus()

    async def scene(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        for _ in range(count):
            redis.add(b"")
        assert (await store.missed("s", place.position) is not None) is is_known

    play(run, redis, scene)


def test_lost_number_is_forgotten(run: Any) -> None:
    redis = PlayedBus()

    async def scene(store: RedisStore, runtime: Any) -> None:
        number = (await store.join("s")).number
        redis.keys[f"mcp:{{lab}}:number:{number}"] = b"another"
        assert await store.heartbeat(number) is None
        assert await store.heartbeat(number) is None
        await store.leave(number)
        assert redis.keys[f"mcp:{{lab}}:number:{number}"] == b"another"

    play(run, redis, scene)


def test_other_server_is_warned_of_once(run: Any) -> None:
    redis = PlayedBus()
    redis.servers["x" * 99] = None

    async def scene(store: RedisStore, runtime: Any) -> None:
        numbers = [(await store.join(name)).number for name in ("s", "t")]
        for number in [*numbers, *numbers]:
            await store.heartbeat(number)
        [line] = [line for line in runtime.warnings if "another server" in line]
        assert f"'{'x' * 60}...'" in line

    play(run, redis, scene)


def test_failures_are_those_of_a_store(run: Any) -> None:
    """Each method raises `SessionStoreError` with the text of the client."""
    redis = PlayedBus()

    async def scene(store: RedisStore, runtime: Any) -> None:
        place = await store.join("s")
        for call in (
            partial(store.join, "s"),
            partial(store.heartbeat, place.number),
            partial(store.alive, [1]),
            partial(store.publish, place.number, TOOLS),
            partial(store.missed, "s", place.position),
            partial(store.read, place.position),
            partial(store.leave, place.number),
        ):
            redis.failure = RedisFailure("Redis at there: it hangs")
            with pytest.raises(SessionStoreError, match="Redis at there: it hangs"):
                await call()

    play(run, redis, scene)


def test_refusal_at_the_start_closes_the_store(run: Any) -> None:
    redis = PlayedBus()

    async def main(runtime: Any) -> None:
        store = played_store(redis)
        redis.failure = RedisFailure("Redis at there: no password", is_final=True)
        with pytest.raises(SessionStoreError, match="no password"):
            async with store.opened(runtime):
                raise AssertionError("opened")
        with pytest.raises(RuntimeError, match="not open"):
            await store.join("s")
        async with store.opened(runtime):
            assert (await store.join("s")).number

    run(main)


def test_keys_are_needed_and_have_to_be_the_same(run: Any) -> None:
    async def main(runtime: Any) -> None:
        store = played_store(PlayedBus())
        runtime.keys = None
        with pytest.raises(ValueError, match="needs state_keys="):
            async with store.opened(runtime):
                raise AssertionError("opened")
        runtime.keys = KEYS
        async with store.opened(runtime):
            runtime.keys = Server("x", state_keys={"1": b"x" * 32}).shared_keys
            with pytest.raises(ValueError, match="need the same state_keys"):
                async with store.opened(runtime):
                    raise AssertionError("opened")

    run(main)


def test_store_in_a_forked_process_is_not_open(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be opened there, and what the parent's leaves there changes nothing."""

    async def main(runtime: Any) -> None:
        store = played_store(PlayedBus())
        async with store.opened(runtime):
            number = (await store.join("s")).number
            monkeypatch.setattr(os, "getpid", lambda: -1)
            async with store.opened(runtime):
                assert await store.heartbeat(number) is None
            monkeypatch.undo()

    run(main)


def test_text_of_a_store_has_no_password(run: Any) -> None:
    store = RedisStore("redis://ada:hunter2@there", name="lab")
    assert repr(store) == "RedisStore('redis://there:6379', name='lab')"
    for name in ("", "a{b", "a}b"):
        with pytest.raises(ValueError, match="no braces"):
            RedisStore("redis://there", name=name)
