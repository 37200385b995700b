"""`TimeoutQueue`: the order of its entries, their deadlines, and the exact moment of expiry."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http._waiting import Waiting


def test_queue_empty_has_no_deadline() -> None:
    queue: Waiting[str] = Waiting(10)
    assert len(queue) == 0
    assert queue.next_deadline() is None
    assert queue.pop_expired(99) == []


def test_repr_shows_length_and_timeout() -> None:
    queue: Waiting[str] = Waiting(10)
    queue.add("a", 0)
    queue.add("b", 1)
    queue.add("c", 2)
    assert repr(queue) == "<Waiting: 3 for 10 s>"


def test_next_deadline_is_that_of_first_entry() -> None:
    queue: Waiting[str] = Waiting(10)
    queue.add("a", 0)
    queue.add("b", 1)
    assert queue.next_deadline() == 10


def test_discard_removes_only_that_entry() -> None:
    queue: Waiting[str] = Waiting(10)
    queue.add("a", 0)
    queue.add("b", 1)
    queue.add("c", 2)
    queue.discard("b")
    assert list(queue) == ["a", "c"]
    assert "b" not in queue
    assert "c" in queue


def test_discard_unknown_entry_does_nothing() -> None:
    queue: Waiting[str] = Waiting(10)
    queue.add("a", 0)
    queue.discard("unknown")
    assert list(queue) == ["a"]


def test_add_again_restarts_timeout_and_moves_to_end() -> None:
    queue: Waiting[str] = Waiting(10)
    queue.add("a", 0)
    queue.add("c", 2)
    queue.add("a", 5)
    assert list(queue) == ["c", "a"]
    assert queue.next_deadline() == 12


def test_pop_expired_at_deadline_includes_entry() -> None:
    """The deadline itself counts as expired: a timer that fires on time must not fire twice."""
    queue: Waiting[str] = Waiting(10)
    queue.add("a", 2)
    assert queue.pop_expired(11.999) == []
    assert queue.pop_expired(12) == ["a"]


def test_pop_expired_late_returns_all_in_order() -> None:
    queue: Waiting[str] = Waiting(10)
    queue.add("a", 0)
    queue.add("b", 1)
    assert queue.pop_expired(100) == ["a", "b"]
    assert queue.next_deadline() is None


_OPERATIONS = st.tuples(
    st.sampled_from(("add", "discard", "pop_expired")),
    st.integers(0, 3),  # the entry
    st.integers(0, 5),  # seconds since the previous operation
)


@given(st.lists(_OPERATIONS, max_size=40))
def test_queue_any_operations_match_sorted_table(operations: list[tuple[str, int, int]]) -> None:
    """Compare with a model that sorts all entries by deadline, then by order of the last add."""
    queue: Waiting[int] = Waiting(7)
    table: dict[int, tuple[int, int]] = {}  # entry -> (deadline, index of its last add)
    now = 0
    for index, (operation, entry, elapsed) in enumerate(operations):
        now += elapsed
        if operation == "add":
            queue.add(entry, now)
            table[entry] = (now + 7, index)
        elif operation == "discard":
            queue.discard(entry)
            table.pop(entry, None)
        else:
            expired = sorted((e for e in table if table[e][0] <= now), key=table.__getitem__)
            assert queue.pop_expired(now) == expired
            for gone in expired:
                del table[gone]
        assert list(queue) == sorted(table, key=table.__getitem__)
        assert queue.next_deadline() == min((due for due, _ in table.values()), default=None)
