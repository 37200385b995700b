"""`check_session_store`: each fault of a store that it finds, and the freedoms that a store has.

Every store here is a `MemoryStore` with another method.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
from msgspec.structs import replace

from mcp_core.runtime.sharing import MemoryStore, check_session_store
from mcp_core.sharing import ChangesPublished, Position, TaskChanged, WorkerBatch, merged
from tests.harness import either

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

pytestmark = pytest.mark.usefixtures("each_driver")

TOOLS = ChangesPublished("s", lists=("tools",))
CANCELLED: Final = (trio.Cancelled, asyncio.CancelledError)


class StoreFailure(Exception):
    """An exception that only these stores raise."""


async def check(store: MemoryStore) -> float:
    """Run the contract, and return how many seconds that took."""
    start = either.current_time()
    async with either.open_task_runtime() as runtime:
        await check_session_store(lambda: store, runtime)
    return either.current_time() - start


# -- Faults ----------------------------------------------------------------------------------------


async def _ignores_that_it_is_closed(self: Any, *args: Any) -> None:
    pass


async def _joins_twice(self: Any, server: str) -> Any:
    place = await MemoryStore.join(self, server)
    return place._replace(number=7)


async def _counts_from_zero(self: Any, server: str) -> Any:
    place = await MemoryStore.join(self, server)
    self.joined = getattr(self, "joined", 0) + 1
    return place._replace(number=0) if self.joined % 3 == 1 else place


async def _counts_too_far(self: Any, server: str) -> Any:
    place = await MemoryStore.join(self, server)
    self.joined = getattr(self, "joined", 0) + 1
    return place._replace(number=2_097_152) if self.joined % 3 == 1 else place


async def _begins_at_the_first_message(self: Any, server: str) -> Any:
    place = await MemoryStore.join(self, server)
    return place._replace(position=Position(1, 0))


async def _leaves_once(self: Any, worker: int) -> None:
    if worker not in await self.alive([worker]):
        raise AssertionError("no such worker")
    await MemoryStore.leave(self, worker)


async def _knows_nobody(self: Any, workers: Collection[int]) -> set[int]:
    self._open_runtime()
    return set()


async def _knows_its_workers_only(self: Any, workers: Collection[int]) -> set[int]:
    if {*workers} - self._heartbeats.keys():
        raise AssertionError("no such worker")
    return await MemoryStore.alive(self, workers)


async def _knows_one_more(self: Any, workers: Collection[int]) -> set[int]:
    return {*await MemoryStore.alive(self, workers), 7}


async def _believes_all(self: Any, workers: Collection[int]) -> set[int]:
    self._open_runtime()
    return {*workers}


async def _has_no_heartbeat(self: Any, worker: int) -> None:
    self._open_runtime()


async def _beats_as_before(self: Any, worker: int) -> Position:
    self._open_runtime()
    return Position(1, 0)


async def _returns_a_tuple(self: Any, worker: int, message: Any) -> tuple[int, int]:
    return tuple(await MemoryStore.publish(self, worker, message))  # type: ignore[return-value]


async def _repeats_its_position(self: Any, worker: int, message: Any) -> Position:
    await MemoryStore.publish(self, worker, message)
    return Position(1, 1)


async def _drops_all_uris(self: Any, worker: int, message: ChangesPublished) -> Position:
    return await MemoryStore.publish(self, worker, replace(message, all_uris=False))


async def _drops_elicitations(self: Any, worker: int, message: ChangesPublished) -> Position:
    return await MemoryStore.publish(self, worker, replace(message, elicitations=()))


async def _drops_what_is_too_much(self: Any, worker: int, message: ChangesPublished) -> Position:
    return await MemoryStore.publish(self, worker, replace(message, uris=message.uris[:999]))


async def _is_slow_in_the_end(self: Any, worker: int, message: ChangesPublished) -> Position:
    """Publishes at once get one position."""
    await MemoryStore.publish(self, worker, message)
    await either.sleep(0)
    return self._last()  # type: ignore[no-any-return]


async def _loses_the_last_of_ten(self: Any, worker: int, message: ChangesPublished) -> Position:
    """Only publishes at once are so many."""
    position = await MemoryStore.publish(self, worker, message)
    if message.uris and message.uris[0].endswith(":9"):
        self._messages[-1] = (worker, ChangesPublished("lost"))
    return position


async def _hangs(self: Any, *args: Any) -> None:
    self._open_runtime()
    await either.sleep_forever()


async def _returns_a_list(self: Any, position: Position) -> list[Any]:
    return [*(await MemoryStore.read(self, position)).messages]


async def _goes_back(self: Any, position: Position) -> WorkerBatch:
    return WorkerBatch(Position(1, 0), (await MemoryStore.read(self, position)).messages)


async def _stays_there(self: Any, position: Position) -> WorkerBatch:
    return WorkerBatch(position, (await MemoryStore.read(self, position)).messages)


async def _never_wakes(self: Any, position: Position) -> WorkerBatch:
    if position == self._last():
        await either.sleep_forever()
    return await MemoryStore.read(self, position)


async def _fails_instead_of_waiting(self: Any, position: Position) -> WorkerBatch:
    if position == self._last():
        raise StoreFailure("nothing there")
    return await MemoryStore.read(self, position)


async def _invents_instead_of_waiting(self: Any, position: Position) -> WorkerBatch:
    if position == self._last():
        return WorkerBatch(position._replace(number=position.number + 1), [None])
    return await MemoryStore.read(self, position)


async def _has_a_gap_after_a_cancelled_read(self: Any, position: Position) -> WorkerBatch:
    try:
        batch = await MemoryStore.read(self, position)
    except CANCELLED:
        self.was_cancelled = True
        raise
    return WorkerBatch(batch.position, [None]) if hasattr(self, "was_cancelled") else batch


async def _fails_when_it_is_cancelled(self: Any, position: Position) -> WorkerBatch:
    try:
        return await MemoryStore.read(self, position)
    except CANCELLED:
        raise StoreFailure("cancelled") from None


async def _has_an_order_for_each_reader(self: Any, position: Position) -> WorkerBatch:
    batch = await MemoryStore.read(self, position)
    if len(batch.messages) < 20:
        return batch
    self.turned = not getattr(self, "turned", False)
    return WorkerBatch(batch.position, batch.messages[:: -1 if self.turned else 1])


async def _has_one_epoch(self: Any, position: Position) -> WorkerBatch:
    return await MemoryStore.read(self, position._replace(epoch=1))


async def _goes_on_at_the_first_message(self: Any, position: Position) -> WorkerBatch:
    if position.epoch == 1:
        return await MemoryStore.read(self, position)
    return WorkerBatch(Position(1, 0), [None])


async def _goes_on_too_late(self: Any, position: Position) -> WorkerBatch:
    if position.epoch == 1:
        return await MemoryStore.read(self, position)
    return WorkerBatch(self._last()._replace(number=self._count + 1), [None])


async def _forgets(self: Any, server: str, since: Position) -> None:
    self._open_runtime()


async def _has_missed_too_much(self: Any, server: str, since: Position) -> Any:
    self._open_runtime()
    return TOOLS


async def _mixes_servers(self: Any, server: str, since: Position) -> Any:
    if await MemoryStore.missed(self, server, since) is None:
        return None
    return merged((message for _, message in self._after(since.number)), server)


async def _misses_in_one_epoch(self: Any, server: str, since: Position) -> Any:
    return await MemoryStore.missed(self, server, since._replace(epoch=1))


async def _misses_nothing_in_the_future(self: Any, server: str, since: Position) -> Any:
    since = since._replace(number=min(since.number, self._count))
    return await MemoryStore.missed(self, server, since)


@asynccontextmanager
async def _waits_to_open(self: Any, runtime: Any) -> AsyncIterator[None]:
    await either.sleep_forever()
    yield


@asynccontextmanager
async def _fails_to_open(self: Any, runtime: Any) -> AsyncIterator[None]:
    if runtime is not None:
        raise StoreFailure("no such store")
    yield


@asynccontextmanager
async def _closes_for_all(self: Any, runtime: Any) -> AsyncIterator[None]:
    self._published = runtime.new_event()
    self._runtimes.append(runtime)
    yield
    self._runtimes.clear()


async def _fails_if_closed(self: Any, server: str) -> Any:
    if not self._runtimes:
        raise StoreFailure("closed")
    return await MemoryStore.join(self, server)


NOT_OPEN = "that isn't open has to raise RuntimeError"
CLOSED = ["join", "heartbeat", "alive", "leave", "publish", "missed", "read"]


@pytest.mark.parametrize(
    ("method", "fault", "text"),
    [
        ("needs_keys", 1, "needs_keys is True or False"),
        *((each, _ignores_that_it_is_closed, f"{each} of a store {NOT_OPEN}") for each in CLOSED),
        ("opened", _waits_to_open, "to enter and leave it takes more than 20 s"),
        ("join", _joins_twice, "a number of its own"),
        ("join", _counts_from_zero, r"too high or low: \[0, "),
        ("join", _counts_too_far, r"too high or low: \[2097152, "),
        ("join", _begins_at_the_first_message, "a new worker begins at"),
        ("leave", _leaves_once, "no such worker"),
        ("alive", _knows_nobody, "is alive when it has joined"),
        ("alive", _knows_its_workers_only, "no such worker"),
        ("alive", _knows_one_more, "of no workers none"),
        ("alive", _believes_all, "a worker that has left isn't alive"),
        ("heartbeat", _has_no_heartbeat, "heartbeat returns the last position, .* not None"),
        ("heartbeat", _beats_as_before, "heartbeat returns the last position"),
        ("publish", _returns_a_tuple, "publish returns a Position"),
        ("publish", _repeats_its_position, "isn't after"),
        ("publish", _drops_all_uris, "published: .*all_uris=True"),
        ("publish", _drops_elicitations, "published: .*elicitations="),
        ("publish", _drops_what_is_too_much, "published: "),
        ("publish", _is_slow_in_the_end, "two messages have one position"),
        ("publish", _loses_the_last_of_ten, "published at once: "),
        ("read", _returns_a_list, "read returns a WorkerBatch"),
        ("read", _goes_back, "read went back"),
        ("read", _stays_there, "read returned . messages after .*, and stays there"),
        ("read", _never_wakes, r"published: .*u:waiting.*read: \[\]"),
        ("read", _invents_instead_of_waiting, r"published: .*u:waiting.*read: \[None\]"),
        ("read", _has_a_gap_after_a_cancelled_read, r"published: .*u:cancelled.*read: \[None\]"),
        ("read", _has_an_order_for_each_reader, "in different orders"),
        ("read", _has_one_epoch, "of another epoch there is a gap"),
        ("read", _goes_on_at_the_first_message, "it goes on at"),
        ("read", _goes_on_too_late, r"published: .*u:2.*read: \[\]"),
        ("missed", _forgets, "missed since .*returned: None"),
        ("missed", _has_missed_too_much, "missed since"),
        ("missed", _mixes_servers, "missed since .*prompts"),
        ("missed", _misses_in_one_epoch, "was never a position"),
        ("missed", _misses_nothing_in_the_future, "was never a position"),
    ],
)
async def test_contract_finds_the_fault(method: str, fault: Any, text: str) -> None:
    store = type("FaultyMemoryStore", (MemoryStore,), {method: fault})()
    with pytest.raises(AssertionError, match=text):
        await check(store)


@pytest.mark.parametrize(
    ("method", "fault", "error"),
    [
        ("join", _fails_if_closed, StoreFailure),
        ("opened", _fails_to_open, StoreFailure),
        ("opened", _closes_for_all, RuntimeError),
        ("publish", _hangs, TimeoutError),
        ("read", _fails_instead_of_waiting, StoreFailure),
        ("read", _fails_when_it_is_cancelled, StoreFailure),
    ],
)
async def test_exception_of_a_store_is_raised(method: str, fault: Any, error: Any) -> None:
    """Also one that is raised in a task that waits beside the check."""
    store = type("FailingMemoryStore", (MemoryStore,), {method: fault})()
    with pytest.raises(error):
        await check(store)


async def test_method_has_twenty_seconds_to_return() -> None:
    class SlowStore(MemoryStore):
        async def missed(self, server: str, since: Position, /) -> ChangesPublished | None:
            await either.sleep(19.5 if self._runtimes else 0)
            return await MemoryStore.missed(self, server, since)

    assert await check(SlowStore()) > 5 * 19.5


# -- Freedoms --------------------------------------------------------------------------------------


class BusyStore(MemoryStore):
    """A store that others use too, whose reads are short, and which checks its arguments.

    A read may return nothing, and may end after messages that are dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def alive(self, workers: Collection[int], /) -> set[int]:
        assert all(0 < each < 2_097_152 for each in workers)
        return await super().alive(workers)

    async def publish(self, worker: int, message: ChangesPublished, /) -> Position:
        assert 0 < worker < 2_097_152
        await super().publish(worker, ChangesPublished("another", uris=("u:1",)))
        position = await super().publish(worker, message)
        await super().publish(worker, ChangesPublished("another", uris=("u:2",)))
        return position

    async def missed(self, server: str, since: Position, /) -> ChangesPublished | None:
        assert since.epoch >= 0
        assert since.number >= 0
        return await super().missed(server, since)

    async def read(self, position: Position, /) -> WorkerBatch:
        assert position.epoch >= 0
        assert position.number >= 0
        self.reads += 1
        if self.reads % 3 == 1 and position.epoch:
            self._open_runtime()
            return WorkerBatch(position, [])
        batch = await super().read(position)
        if len(batch.messages) > 1 and batch.messages[0] is not None and self.reads % 3 == 0:
            # Only the first one, which is dropped.
            return WorkerBatch(position._replace(number=position.number + 1), [])
        return WorkerBatch(batch.position, [(1, TaskChanged("ada", "1")), *batch.messages])


async def test_store_that_others_use_keeps_the_contract() -> None:
    await check(BusyStore())


async def test_lowest_and_highest_numbers_are_numbers() -> None:
    store = MemoryStore()
    numbers = iter([2_097_151, *range(1, 30)])
    async with either.open_task_runtime() as runtime:
        entropy = runtime.entropy

        def drawn(size: int) -> bytes:
            return next(numbers).to_bytes(3) if size == 3 else entropy(size)

        runtime.entropy = drawn  # type: ignore[method-assign]
        await check_session_store(lambda: store, runtime)


async def test_contract_of_a_quick_store_takes_less_than_a_second() -> None:
    """It waits three times to see whether a read waits."""
    assert await check(MemoryStore()) == pytest.approx(0.15)
