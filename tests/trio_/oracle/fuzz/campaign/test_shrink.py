"""Smaller cases with the same fault: which forms of a step are tried, and for how long."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_trio.oracle.fuzz.campaign._shrink import (
    ShrinkBudget,
    _simpler_steps,
    shrink,
    simpler_values,
)

if TYPE_CHECKING:
    from trio.testing import MockClock

    from mcp_trio.oracle.fuzz._case import Case, Step

OLD, NEW = "2025-11-25", "2026-07-28"
OPEN: Step = ("open", OLD, "whole", "all")


# -- Values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "simpler"),
    [
        (None, []),
        (False, []),
        (True, [False]),
        (0, []),
        (-5, []),
        (2, []),
        (40, [1, 2, 20, 30, 35, 39]),
        (99, [1, 2, 49, 74, 86, 98]),
        (100, [1, 2, 50, 75, 87]),
        (0.0, []),
        (-1.5, [0.0]),
        ("", []),
        ("a", [""]),
        ("ab", ["", "b", "a"]),
        (b"abcd", [b"", b"cd", b"ab", b"bcd", b"acd", b"abd", b"abc"]),
        ([], []),
        ([True], [[], [], [False]]),
        ((7, "a"), [(), ("a",), (7,), *((each, "a") for each in (1, 2, 3, 5, 6, 6)), (7, "")]),
        ({}, []),
        ({"a": True, "b": 0}, [{}, {"b": 0}, {"a": True}, {"a": False, "b": 0}]),
    ],
)
def test_simpler_values_are_of_the_same_type(value: Any, simpler: list[Any]) -> None:
    assert list(simpler_values(value)) == simpler


@pytest.mark.parametrize("size", [8, 16, 100])
def test_long_text_loses_pieces_of_an_eighth_at_least(size: int) -> None:
    """Each place is left out by one piece of each size."""
    text = "".join(chr(100 + each) for each in range(size))
    found = list(simpler_values(text))
    assert found[0] == ""
    lost = [set(text) - set(each) for each in found[1:]]
    assert all(each == "".join(c for c in text if c in set(each)) for each in found)
    for pieces in (2, 4, 8):
        step = size // pieces
        parts = [each for each in lost if len(each) == step]
        assert set(text) == set().union(*parts) or size % pieces
    assert min(map(len, lost)) >= min(size // 8, size % (size // 8) or size)


def test_deep_value_is_made_simpler_at_its_upper_levels() -> None:
    value: Any = 7
    for _ in range(9):
        value = [value]
    depths = set()
    for each in simpler_values(value):
        depth, found = 0, each
        while isinstance(found, list) and found:
            depth, found = depth + 1, found[0]
        depths.add(depth)
    assert depths == set(range(7))


def weight(value: Any) -> int:
    """Return a measure that each simpler value makes smaller."""
    if isinstance(value, bool):
        return 1 + value
    if isinstance(value, int):
        return 1 + max(0, value)
    if isinstance(value, float):
        return 1 + (value != 0)
    if isinstance(value, dict):
        return 1 + sum(1 + weight(each) for each in value.values())
    if isinstance(value, list):
        return 1 + sum(1 + weight(each) for each in value)
    return 1 + len(value or "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 500) | st.floats(-2, 2) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(JSON)
def test_simpler_value_is_smaller(value: Any) -> None:
    """So shrinking comes to an end."""
    for each in simpler_values(value):
        assert type(each) is type(value)
        assert weight(each) < weight(value)


# -- Steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "simpler"),
    [
        (OPEN, []),
        (("open", OLD, "late", "all"), [OPEN, OPEN]),
        (
            ("open", OLD, "late", "none"),
            [OPEN, ("open", OLD, "late", "all"), ("open", OLD, "whole", "none")],
        ),
        (("open", OLD), []),
        (
            ("call", "add", {}, ("progress", "text")),
            [("call", "add", {}, ("text",)), ("call", "add", {}, ("progress",))],
        ),
        (("call", "add", {"a": True}), [("call", "add", {})] * 2 + [("call", "add", {"a": False})]),
        (("request", "a/b", {}, "text"), [("request", "a/b", {}, "int")]),
        (
            ("request", "a/b", {}, "int", "old"),
            [("request", "a/b", {}, "int", "whole")],
        ),
        (("request", "a/b", {}, "int", "whole"), []),
        (("burst", 3, "a/b"), [("burst", each, "a/b") for each in (1, 2, 1, 2, 2, 2)]),
        (("cancel", 9), []),
        (("notify", "a/b", True), [("notify", "a/b", False)]),
        (("wait",), []),
        (("large", "message", 2), []),
        (
            ("mutate", '{"id":1,"method":"a"}'),
            [
                ("request", "a", {}, "int"),
                ("mutate", "{}"),
                ("mutate", '{"method":"a"}'),
                ("mutate", '{"id":1}'),
                ("mutate", '{"id":1,"method":""}'),
            ],
        ),
        (
            ("mutate", '{"method":"a","params":[]}'),
            [
                ("notify", "a", []),
                ("mutate", "{}"),
                ("mutate", '{"params":[]}'),
                ("mutate", '{"method":"a"}'),
                ("mutate", '{"method":"","params":[]}'),
            ],
        ),
        (("mutate", "5"), [("mutate", "")]),
        (("damage", b"a"), [("damage", b"")]),
        (("on", 1, "notify", "a", True), [("notify", "a", True), ("on", 1, "notify", "a", False)]),
        (("on", 1, "open", OLD, "late", "all"), [("on", 1, *OPEN)] * 2),
    ],
)
def test_step_is_made_simpler_in_its_values(step: Step, simpler: list[Step]) -> None:
    """Its first words say what it is."""
    assert list(_simpler_steps(step, "")) == simpler


def test_newest_revision_is_tried_first() -> None:
    found = list(_simpler_steps(("open", OLD, "late", "none"), NEW))
    assert found[0] == ("open", NEW, "whole", "none")
    assert list(_simpler_steps(("open", NEW, "whole", "all"), NEW)) == []


# -- The search ------------------------------------------------------------------------------------


class CountedPlays:
    """Plays that show the fault if a case has all of some steps. Each takes a second."""

    def __init__(self, *needed: Step) -> None:
        self.needed = set(needed)
        self.cases: list[Case] = []

    async def show(self, case: Case) -> Case | None:
        self.cases.append(list(case))
        await trio.sleep(1)
        return list(case) if self.needed <= set(case) else None


def notes(count: int) -> list[Step]:
    return [("notify", f"m{each}") for each in range(count)]


@pytest.mark.parametrize("needed", [[], [3], [0, 9], [4, 5, 6], list(range(10))])
async def test_only_the_steps_that_matter_are_left(
    needed: list[int], autojump_clock: MockClock
) -> None:
    steps = notes(10)
    plays = CountedPlays(*(steps[each] for each in needed))
    budget = ShrinkBudget(1000.0)
    smaller, count, is_cut = await shrink([OPEN, *steps], plays.show, budget)
    found = smaller[-1] if smaller else [OPEN, *steps]
    assert found == [OPEN, *(steps[each] for each in needed)]
    assert is_cut
    assert count == len(plays.cases) == 1000.0 - budget.left
    assert len({repr(each) for each in plays.cases}) == count, "no case is played twice"
    sizes = [len(each) for each in smaller]
    assert sizes == sorted(sizes, reverse=True)


async def test_steps_stay_if_only_values_are_to_be_simpler(autojump_clock: MockClock) -> None:
    case: Case = [OPEN, ("notify", "a", True), ("notify", "b", 2)]
    plays = CountedPlays(OPEN)
    smaller, _, is_cut = await shrink(case, plays.show, ShrinkBudget(), cuts=False)
    assert smaller == [[OPEN, ("notify", "a", False), ("notify", "b", 2)]]
    assert is_cut


@pytest.mark.parametrize(
    ("seconds", "deadline", "most", "count"),
    [
        (3.0, math.inf, 500, 3),
        (0.0, math.inf, 500, 0),
        (100.0, 4.0, 500, 4),
        (100.0, math.inf, 5, 5),
    ],
)
async def test_search_ends_with_its_budget(
    seconds: float, deadline: float, most: int, count: int, autojump_clock: MockClock
) -> None:
    budget = ShrinkBudget(seconds, trio.current_time() + deadline)
    plays = CountedPlays(*notes(10))
    smaller, found, is_cut = await shrink([OPEN, *notes(10)], plays.show, budget, max_plays=most)
    assert (smaller, found, is_cut) == ([], count, False)
    assert budget.left == seconds - count
    assert budget.is_spent is (most == 500)


async def test_part_that_was_played_is_the_next_case(autojump_clock: MockClock) -> None:
    """A play may end before the case does."""

    async def show(case: Case) -> Case | None:
        await trio.lowlevel.checkpoint()
        return case[:2] if len(case) > 2 else None

    smaller, _, _ = await shrink([OPEN, *notes(8)], show, ShrinkBudget())
    assert len(smaller) == 1
    assert len(smaller[0]) == 2
    json.dumps(smaller)


@pytest.mark.parametrize(
    ("kept", "names"),
    [
        (1, ("burst", "damage", "listen")),
        (
            2,
            (
                *("request", "call", "notify", "large", "deep", "streams", "batch", "half"),
                *("answer", "always", "push", "http", "cancel", "respond", "retry", "task"),
            ),
        ),
        (3, ("page", "head", "parts", "reply", "serve")),
        (4, ("hand",)),
    ],
)
def test_words_that_say_what_a_step_is_stay(kept: int, names: tuple[str, ...]) -> None:
    for name in names:
        step = (name, *("word",) * kept)
        found = list(_simpler_steps(step, ""))
        assert found
        assert all(each[:kept] == step[:kept] and each[kept] != "word" for each in found)
