"""`SharedChanges`: the pure machine of one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_core.sharing import (
    ChangesPublished,
    Position,
    SharedChanges,
    TaskChanged,
    WorkerBatch,
    WorkerPlace,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ME, OTHER = 7, 8
TOOLS = ChangesPublished("s", lists=("tools",))
PROMPTS = ChangesPublished("s", lists=("prompts",))
EVERYTHING = ChangesPublished("s", lists=("tools", "prompts", "resources"), all_uris=True)


def uris(*names: str) -> ChangesPublished:
    return ChangesPublished("s", uris=names)


def joined(number: int = 0) -> SharedChanges:
    changes = SharedChanges("s")
    changes.join(WorkerPlace(ME, Position(1, number)), changes.position)
    assert changes.take_heard() == EVERYTHING
    return changes


def batch(number: int, *entries: Any, epoch: int = 1) -> WorkerBatch:
    return WorkerBatch(Position(epoch, number), entries)


def test_batch_asked_for_before_the_worker_went_back_brings_nothing() -> None:
    """The store has lost messages, and gives their numbers to others while a read is under way."""
    changes = joined(10)
    asked = changes.position
    changes.receive_heartbeat(Position(1, 7), asked)
    assert changes.take_heard() == EVERYTHING
    assert not changes.receive(batch(11, (OTHER, uris("11"))), asked)
    assert changes.position == Position(1, 7)
    changes.receive(batch(8, (OTHER, TOOLS)), changes.position)
    assert changes.take_heard() == TOOLS


def test_worker_that_joins_a_store_that_has_lost_messages_goes_back() -> None:
    """But it isn't before a message that was published while the join was under way."""
    changes = joined(10)
    sent_at = changes.position
    changes.receive(batch(11, (OTHER, TOOLS)), changes.position)
    assert changes.take_heard() == TOOLS
    changes.join(WorkerPlace(9, Position(1, 10)), sent_at)
    assert (changes.take_heard(), changes.position) == (None, Position(1, 11))
    changes.join(WorkerPlace(9, Position(1, 7)), changes.position)
    assert (changes.take_heard(), changes.position) == (EVERYTHING, Position(1, 7))


def test_message_that_cannot_be_sent_is_replaced_once() -> None:
    changes = joined()
    changes.add(TOOLS)
    changes.start_publishing()
    changes.publishing_refused()
    assert changes.start_publishing() == EVERYTHING
    changes.publishing_refused()
    assert not changes.has_unpublished


@pytest.mark.parametrize(
    "garbled",
    [
        ChangesPublished("s", uris=5),  # type: ignore[arg-type]
        ChangesPublished("s", uris=(5,)),  # type: ignore[arg-type]
        ChangesPublished("s", lists=("files",)),  # type: ignore[arg-type]
        ChangesPublished("s", elicitations=None),  # type: ignore[arg-type]
        ChangesPublished("s", all_uris="no"),  # type: ignore[arg-type]
        ChangesPublished(5),  # type: ignore[arg-type]
        TaskChanged("o", 5),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_garbled_member_of_a_message_is_a_gap(garbled: Any) -> None:
    changes = joined()
    changes.receive(batch(2, (OTHER, garbled), (OTHER, TOOLS)), changes.position)
    assert (changes.missed_since, changes.take_heard()) == (Position(1, 0), TOOLS)
    with pytest.raises(TypeError):
        changes.receive_missed(garbled)


# -- Publishing ------------------------------------------------------------------------------------


def test_changes_merge_while_one_publish_is_under_way() -> None:
    changes = joined()
    changes.add(TOOLS)
    assert changes.start_publishing() == TOOLS
    changes.add(PROMPTS)
    changes.add(uris("a"))
    changes.add(uris("a", "b"))
    assert changes.start_publishing() is None
    changes.published()
    assert changes.start_publishing() == ChangesPublished("s", lists=("prompts",), uris=("a", "b"))
    changes.published()
    assert changes.start_publishing() is None
    assert not changes.has_unpublished


def test_failed_publish_is_repeated_with_later_changes() -> None:
    changes = joined()
    changes.add(uris("a"))
    assert changes.start_publishing() == uris("a")
    changes.add(uris("b"))
    changes.publishing_failed()
    assert changes.has_unpublished
    assert changes.start_publishing() == uris("a", "b")


def test_changes_before_joining_are_published_after_it() -> None:
    changes = SharedChanges("s")
    changes.add(TOOLS)
    assert changes.start_publishing() is None
    changes.join(WorkerPlace(ME, Position(1, 0)), changes.position)
    assert changes.start_publishing() == TOOLS
    changes.publishing_failed()
    changes.lose_number()
    assert changes.start_publishing() is None
    assert changes.has_unpublished


def test_flood_of_uris_becomes_all_of_them() -> None:
    """Changes that wait for a store that is out have a limit."""
    changes = SharedChanges("s")
    for number in range(3000):
        changes.add(uris(f"u:{number}"))
    changes.join(WorkerPlace(ME, Position(1, 0)), changes.position)
    published = changes.start_publishing()
    assert published is not None
    assert published.all_uris
    assert len(published.uris) < 2000


# -- Receiving -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "heard"),
    [
        ([(OTHER, TOOLS)], TOOLS),
        ([(OTHER, TOOLS), (9, TOOLS), (OTHER, uris("a"))], replace(TOOLS, uris=("a",))),
        ([(ME, TOOLS)], TOOLS),  # it has published nothing: another worker has its number
        ([(OTHER, ChangesPublished("t", lists=("tools",)))], None),
        ([(OTHER, TaskChanged("o", "t"))], None),
        ([(OTHER, ChangesPublished("s", elicitations=("e",)))], None),
        ([(OTHER, EVERYTHING), (9, uris("a"))], EVERYTHING),
    ],
)
def test_batch_is_heard_merged(entries: Sequence[Any], heard: ChangesPublished | None) -> None:
    changes = joined()
    assert changes.receive(batch(len(entries), *entries), changes.position)
    if entries[0][1] == ChangesPublished("s", elicitations=("e",)):
        heard = entries[0][1]
    assert changes.take_heard() == heard
    assert changes.take_heard() is None
    assert changes.missed_since is None
    assert changes.position == Position(1, len(entries))


def test_own_messages_are_skipped_each_once() -> None:
    """Two equal messages with its number of which it has published one: the other is news."""
    changes = joined()
    changes.add(TOOLS)
    changes.start_publishing()
    changes.receive(
        batch(1, (ME, TOOLS)), changes.position
    )  # read before the store has confirmed it
    assert changes.take_heard() is None
    changes.published()
    changes.receive(batch(2, (ME, TOOLS)), changes.position)
    assert changes.take_heard() == TOOLS


def test_message_whose_publish_failed_is_skipped_if_it_was_stored() -> None:
    changes = joined()
    changes.add(TOOLS)
    changes.start_publishing()
    changes.publishing_failed()
    changes.start_publishing()
    changes.published()
    changes.receive(batch(2, (ME, TOOLS), (ME, TOOLS)), changes.position)
    assert changes.take_heard() is None


def test_message_that_was_never_stored_is_not_waited_for() -> None:
    changes = joined()
    changes.add(TOOLS)
    changes.start_publishing()
    changes.publishing_failed()
    changes.add(PROMPTS)
    message = changes.start_publishing()
    changes.published()
    changes.receive(batch(1, (ME, message)), changes.position)
    assert changes.take_heard() is None
    changes.receive(batch(2, (ME, TOOLS)), changes.position)
    assert changes.take_heard() == TOOLS


@pytest.mark.parametrize(
    "entry",
    [None, "x", (OTHER,), (OTHER, "x"), ("8", TOOLS), [OTHER, TOOLS], (True, TOOLS), 3],
    ids=repr,
)
def test_gap_or_garbage_is_asked_for(entry: Any) -> None:
    """The store is asked from before the batch on, and the rest is heard."""
    changes = joined(5)
    changes.receive(batch(8, (OTHER, TOOLS), entry, (OTHER, PROMPTS)), changes.position)
    assert changes.missed_since == Position(1, 5)
    assert changes.position == Position(1, 8)
    changes.receive(batch(9, None), changes.position)  # the earlier gap counts
    waiting = [changes.missed_since]
    changes.receive_missed(uris("a"))
    assert [*waiting, changes.missed_since] == [Position(1, 5), None]
    assert changes.take_heard() == ChangesPublished("s", lists=("tools", "prompts"), uris=("a",))


def test_unknown_gap_counts_as_everything() -> None:
    changes = joined(5)
    changes.receive(batch(8, None), changes.position)
    changes.receive_missed(None)
    assert changes.take_heard() == EVERYTHING


def test_later_epoch_is_a_gap_even_if_the_store_says_nothing() -> None:
    changes = joined(5)
    changes.receive(batch(1, (OTHER, TOOLS), epoch=2), changes.position)
    assert changes.missed_since == Position(1, 5)
    assert changes.position == Position(2, 1)


@pytest.mark.parametrize("number", [4, 5])
def test_batch_from_before_a_join_brings_nothing(number: int) -> None:
    changes = joined(5)
    assert not changes.receive(batch(number, (OTHER, TOOLS)), changes.position)
    assert changes.take_heard() is None
    assert changes.position == Position(1, 5)


def test_joining_a_store_that_was_emptied_counts_as_everything() -> None:
    """Once: a read that was on its way notices nothing more."""
    changes = joined(5)
    changes.receive(batch(8, None), changes.position)
    changes.lose_number()
    changes.join(WorkerPlace(9, Position(2, 3)), changes.position)
    assert (changes.number, changes.position) == (9, Position(2, 3))
    assert changes.missed_since is None
    assert changes.take_heard() == EVERYTHING
    assert not changes.receive(batch(3, None, (OTHER, TOOLS), epoch=2), changes.position)
    assert changes.take_heard() is None


def test_joining_again_goes_on_where_it_was() -> None:
    """Its number was lost, and the messages are still there."""
    changes = joined(5)
    changes.add(TOOLS)
    changes.start_publishing()
    changes.publishing_failed()
    changes.lose_number()
    changes.join(WorkerPlace(9, Position(1, 8)), changes.position)
    assert (changes.number, changes.position) == (9, Position(1, 5))
    assert changes.take_heard() is None
    assert changes.start_publishing() == TOOLS
    changes.published()
    changes.receive(batch(7, (9, TOOLS), (9, TOOLS)), changes.position)
    assert changes.take_heard() == TOOLS


@pytest.mark.parametrize(
    ("last", "sent_at", "lost"),
    [
        (Position(1, 8), Position(1, 8), False),
        (Position(1, 9), Position(1, 8), False),
        (Position(1, 6), Position(1, 5), False),  # it was read on while the response came
        (Position(2, 0), Position(1, 8), False),  # the next read has a gap
        (Position(1, 7), Position(1, 8), True),
        (Position(0, 9), Position(1, 8), True),
    ],
)
def test_store_that_has_lost_its_last_messages_is_noticed(
    last: Position, sent_at: Position, lost: bool
) -> None:
    """A replica took over that hadn't got them. Their numbers are used again."""
    changes = joined(8)
    changes.receive_heartbeat(last, sent_at)
    assert changes.take_heard() == (EVERYTHING if lost else None)
    assert changes.position == (last if lost else Position(1, 8))


@pytest.mark.parametrize(
    ("method", "garbage"),
    [
        ("join", None),
        ("join", 3),
        ("join", (1, 2, 3)),
        ("join", WorkerPlace(0, Position(1, 1))),
        ("join", WorkerPlace(True, Position(1, 1))),
        ("join", WorkerPlace("7", Position(1, 1))),  # type: ignore[arg-type]
        ("join", WorkerPlace(7, (1, 1))),  # type: ignore[arg-type]
        ("receive", None),
        ("receive", [TOOLS]),
        ("receive", WorkerBatch((1, 9), [(OTHER, TOOLS)])),  # type: ignore[arg-type]
        ("receive", WorkerBatch(Position(1, "9"), [(OTHER, TOOLS)])),  # type: ignore[arg-type]
        ("receive", WorkerBatch(Position(1, 9), None)),  # type: ignore[arg-type]
        ("receive_missed", "x"),
        ("receive_missed", TaskChanged("o", "t")),
    ],
)
def test_garbage_of_a_store_is_refused_without_effect(method: str, garbage: Any) -> None:
    changes = joined(5)
    changes.receive(batch(6, None), changes.position)
    with pytest.raises((TypeError, ValueError)):
        getattr(changes, method)(garbage)
    assert (changes.number, changes.position) == (ME, Position(1, 6))
    assert changes.missed_since == Position(1, 5)
    assert changes.take_heard() is None


# -- Sequences -------------------------------------------------------------------------------------


class ModelledStore:
    """A store that two machines share, and what each of them has to have heard by the end."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, ChangesPublished]] = []
        self.epoch = 1
        self.first = 0
        self.workers = [SharedChanges("s"), SharedChanges("s")]
        self.next_number = 1
        self.told: list[set[str]] = [set(), set()]  # by worker: what it heard, as names
        self.said: list[set[str]] = [set(), set()]
        self.expected: list[set[str]] = [set(), set()]

    @property
    def last(self) -> Position:
        return Position(self.epoch, self.first + len(self.messages))

    def join(self, worker: int, number: int) -> None:
        self.workers[worker].lose_number()
        assert self.workers[worker].start_publishing() is None
        self.workers[worker].join(WorkerPlace(number, self.last), self.workers[worker].position)

    def change(self, worker: int, name: str) -> None:
        self.workers[worker].add(uris(name))
        self.expected[1 - worker].add(name)

    def publish(self, worker: int, outcome: str) -> None:
        """Publish, if there is something. It may be stored although it fails."""
        changes = self.workers[worker]
        message = changes.start_publishing()
        if message is None:
            return
        if outcome != "lost":
            self.messages.append((changes.number, message))
        if outcome == "stored":
            changes.published()
        else:
            changes.publishing_failed()

    def read(self, worker: int, size: int) -> None:
        changes = self.workers[worker]
        if not changes.number:
            return
        epoch, number = changes.position
        if epoch != self.epoch or number < self.first:
            entries: list[Any] = [None, *self.messages]
            position = self.last
        else:
            entries = [*self.messages[number - self.first :][:size]]
            position = Position(epoch, number + len(entries))
        changes.receive(WorkerBatch(position, entries), changes.position)
        since = changes.missed_since
        if since is not None:
            known = since.epoch == self.epoch and since.number >= self.first
            found = [message for _, message in self.messages[since.number - self.first :]]
            names = {uri for message in found for uri in message.uris}
            changes.receive_missed(uris(*sorted(names)) if known else None)
        self.deliver(worker)

    def deliver(self, worker: int) -> None:
        heard = self.workers[worker].take_heard()
        if heard is not None:
            self.told[worker] |= {*heard.uris}
            if heard.all_uris:
                self.told[worker] |= self.expected[worker]

    def forget(self, size: int) -> None:
        self.messages = self.messages[size:]
        self.first += size

    def empty(self) -> None:
        self.epoch += 1
        self.first = 0
        self.messages = []


STEPS = st.one_of(
    st.tuples(st.just("change"), st.integers(0, 1), st.sampled_from("abcdef")),
    st.tuples(
        st.just("publish"), st.integers(0, 1), st.sampled_from(["stored", "lost", "unknown"])
    ),
    st.tuples(st.just("read"), st.integers(0, 1), st.integers(1, 3)),
    st.tuples(st.just("join"), st.integers(0, 1), st.integers(1, 2)),
    st.tuples(st.just("forget"), st.integers(0, 2)),
    st.tuples(st.just("empty")),
)


@given(st.lists(STEPS, max_size=40))
def test_every_change_is_heard_in_the_end(steps: list[tuple[Any, ...]]) -> None:
    """Publishes fail, the store forgets, comes back empty, and workers have each other's number.

    Once the store behaves, each worker hears of every change of the other, and no other news.
    """
    store = ModelledStore()
    store.join(0, 1)
    store.join(1, 2)
    for name, *arguments in steps:
        if name == "forget":
            arguments = [min(arguments[0], len(store.messages))]
        getattr(store, name)(*arguments)
    for worker in (0, 1):
        store.publish(worker, "stored")
        assert not store.workers[worker].has_unpublished
    for worker in (0, 1):
        store.read(worker, 1000)
        store.deliver(worker)
        assert store.told[worker] >= store.expected[worker]
        assert store.workers[worker].position == store.last


@given(st.lists(st.sampled_from(["change", "publish", "read"]), max_size=30))
def test_alone_in_a_good_store_a_worker_hears_nothing(steps: list[str]) -> None:
    """It doesn't hear itself."""
    store = ModelledStore()
    store.join(0, 1)
    assert store.workers[0].take_heard() == EVERYTHING
    for index, step in enumerate(steps):
        if step == "change":
            store.change(0, f"{index % 3}")
        elif step == "publish":
            store.publish(0, "stored")
        else:
            store.read(0, 2)
    store.read(0, 1000)
    assert store.told[0] == set()


@pytest.mark.parametrize("number", [0, -1, True, "1", 1.0, None])
def test_number_that_is_no_worker_s_is_refused(number: Any) -> None:
    changes = SharedChanges("s")
    with pytest.raises(ValueError, match="a worker's number is 1 or more"):
        changes.join(WorkerPlace(number, Position(1, 1)), changes.position)
    assert (changes.number, changes.position) == (0, Position(-1, 0))
    changes.join(WorkerPlace(1, Position(1, 1)), changes.position)
    assert changes.number == 1


def test_worker_before_its_first_join_has_no_place() -> None:
    changes = SharedChanges("s")
    assert repr(changes) == "<SharedChanges of 's', worker 0 at Position(epoch=-1, number=0)>"
    assert changes.missed_since is None
    assert not changes.has_unpublished
    assert changes.start_publishing() is changes.take_heard() is None
