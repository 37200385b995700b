"""Who waits for a time to come: in which order, how long, and until when exactly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_core.http._waiting import Waiting


def test_who_begins_first_is_due_first() -> None:
    waiting: Waiting[str] = Waiting(10)
    assert (waiting.next_deadline(), waiting.take_due(99), len(waiting)) == (None, [], 0)
    waiting.add("a", 0)
    waiting.add("b", 1)
    waiting.add("c", 2)
    assert repr(waiting) == "<Waiting: 3 for 10 s>"
    waiting.drop("b")
    waiting.drop("nobody")
    assert ("b" in waiting, "c" in waiting) == (False, True)
    assert waiting.next_deadline() == 10
    waiting.add("a", 5)
    assert (list(waiting), waiting.next_deadline()) == (["c", "a"], 12)
    assert waiting.take_due(11.999) == []
    assert waiting.take_due(12) == ["c"]
    assert waiting.take_due(100) == ["a"]
    assert waiting.next_deadline() is None


@given(
    st.lists(
        st.tuples(st.sampled_from(("add", "drop", "due")), st.integers(0, 3), st.integers(0, 5)), max_size=40
    )
)
def test_it_does_what_a_sorted_table_does(steps: list[tuple[str, int, int]]) -> None:
    waiting: Waiting[int] = Waiting(7)
    table: dict[int, tuple[int, int]] = {}
    now = 0
    for order, (step, each, later) in enumerate(steps):
        now += later
        if step == "add":
            waiting.add(each, now)
            table[each] = (now + 7, order)
        elif step == "drop":
            waiting.drop(each)
            table.pop(each, None)
        else:
            due = sorted((each for each in table if table[each][0] <= now), key=table.__getitem__)
            assert waiting.take_due(now) == due
            for each in due:
                del table[each]
        assert list(waiting) == sorted(table, key=table.__getitem__)
        assert waiting.next_deadline() == min((due for due, _ in table.values()), default=None)
