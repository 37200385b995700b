"""The set of used ids: as a set of Python, but for its bounds and its size."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import _ids
from mcp_core.trace._ids import GivenTexts, UsedIds, id_key, text_key

IDS = st.integers(-5, 20) | st.text("ab", max_size=2)


@given(st.lists(IDS), IDS)
def test_used_ids_contain_what_was_added(added: list[int | str], asked: int | str) -> None:
    used = UsedIds()
    for each in added:
        used.add(each)
    assert (asked in used) is (asked in set(added))
    assert all(each in used for each in added)
    starts, ends = used._starts, used._ends
    assert all(start <= end for start, end in zip(starts, ends, strict=True))
    assert all(end + 1 < start for end, start in zip(ends, starts[1:], strict=False))


def test_used_ids_that_follow_each_other_take_the_space_of_one() -> None:
    used = UsedIds()
    for each in range(100_000):
        used.add(each)
    assert len(used._starts) == 1


def test_used_ids_over_their_bounds_are_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ids, "MAX_RANGES", 2)
    monkeypatch.setattr(_ids, "MAX_STRINGS", 1)
    used = UsedIds()
    for each in (1, 3, "a"):
        used.add(each)
    complete = [used.is_complete]
    used.add(5)
    assert [*complete, used.is_complete] == [True, False]
    assert 5 not in used
    used.add("b")
    assert "b" not in used


@pytest.mark.parametrize(
    ("value", "key"),
    [(1, 1), (1.0, 1), ("1", "1"), (True, None), (1.5, None), (None, None), ([], None)],
)
def test_id_key_tells_types_apart(value: Any, key: int | str | None) -> None:
    assert id_key(value) == key


def test_given_texts_over_their_bound_are_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ids, "MAX_TEXTS", 2)
    texts = GivenTexts(is_complete=True)
    for text in "a", "b", "a", "b":
        texts.add(text)
    assert ("a" in texts, "b" in texts, "c" in texts, texts.is_complete) == (
        True,
        True,
        False,
        True,
    )
    texts.add("c")
    assert ("c" in texts, texts.is_complete) == (False, False)
    assert not GivenTexts(is_complete=False).is_complete


def test_used_ids_over_each_bound_are_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ids, "MAX_STRINGS", 1)
    monkeypatch.setattr(_ids, "MAX_RANGES", 1)
    pairs: list[tuple[int | str, int | str]] = [("a", "b"), (1, 3)]
    for within, beyond in pairs:
        used = UsedIds()
        used.add(within)
        assert (within in used, used.is_complete) == (True, True)
        used.add(beyond)
        assert (beyond in used, used.is_complete) == (False, False)


@pytest.mark.parametrize(("size", "is_kept"), [(256, True), (257, False)])
def test_long_text_is_kept_as_its_digest(size: int, is_kept: bool) -> None:
    text = "x" * size
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert text_key(text) == id_key(text) == (text if is_kept else digest)
