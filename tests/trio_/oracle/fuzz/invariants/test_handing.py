"""Drawn cases that hand values from call to call, and what a stored case needs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("hypothesis")

from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign._shrink import _simpler_steps
from mcp_trio.oracle.fuzz.draw import _calls, _phrases
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.invariants._handing import (
    Handing,
    find_handings,
    with_handed_values,
)
from mcp_trio.oracle.fuzz.invariants._load import load_invariants
from mcp_trio.oracle.fuzz.invariants._stored import needed_names
from tests.trio_.oracle.fuzz.memory_target import NEW, OLD
from tests.trio_.oracle.fuzz.notes_server import CREATED, TOOLS, write_invariants

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_trio.oracle.fuzz._case import Case

HAND = ("hand", "read_note", "id", "note_id")
BOTH = ("create_note", "read_note")


@pytest.fixture(autouse=True)
def import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def drawn(folder: Path | None, tools: tuple[str, ...] = BOTH, count: int = 60) -> list[Case]:
    found = None if folder is None else load_invariants(write_invariants(folder, CREATED))
    choices = CaseChoices(Offers(revisions=[NEW, OLD], tools=TOOLS), tools, invariants=found)
    return CaseSource(choices, 7).draw(count)


def test_cases_hand_the_newest_value_mostly_right_before_its_call(tmp_path: Path) -> None:
    cases = drawn(tmp_path)
    hands = [
        (step, case[place + 1], case[:place])
        for case in cases
        for place, step in enumerate(case)
        if step[0] == "hand"
    ]
    assert len(hands) > 20
    assert {step[:4] for step, _, _ in hands} == {HAND}
    assert {following[:2] for _, following, _ in hands} == {("call", "read_note")}
    newest = sum(step[4] == 0 for step, _, _ in hands)
    assert len(hands) / 2 < newest < len(hands)
    fed = sum(any(each[:2] == ("call", "create_note") for each in before) for *_, before in hands)
    assert fed > len(hands) / 2


def test_same_seed_draws_the_same_cases(tmp_path: Path) -> None:
    assert drawn(tmp_path) == drawn(tmp_path)


@pytest.mark.parametrize("tools", [("create_note",), ("read_note",)])
def test_no_value_is_handed_unless_both_tools_may_be_called(
    tmp_path: Path, tools: tuple[str, ...]
) -> None:
    """Then cases are drawn as without the file."""
    assert drawn(tmp_path, tools, 20) == drawn(None, tools, 20)


def test_step_gets_simpler_by_its_place_only() -> None:
    assert list(_simpler_steps((*HAND, 0), NEW)) == []
    assert {step[:4] for step in _simpler_steps((*HAND, 3), NEW)} == {HAND}


@pytest.mark.parametrize(
    ("steps", "invariant", "expected"),
    [
        ([("open", OLD), ("wait",)], "", set()),
        ([("open", OLD)], "f", {"f"}),
        ([(*HAND, 0), (*HAND, 1)], "f", {"f", "note_id"}),
        ([("hand",)], "", set()),
    ],
)
def test_stored_case_needs_its_values_and_its_invariant(
    steps: Case, invariant: str, expected: set[str]
) -> None:
    assert needed_names(steps, invariant) == expected


def test_call_that_is_wrong_on_purpose_gets_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error says nothing about the value, but a check of errors would take it for one."""
    for name in ("_phrases", "_damaging_phrases"):
        monkeypatch.setattr(_phrases, name, lambda *_: [_calls.nearly_valid])
    steps = [step for case in drawn(tmp_path) for step in case]
    assert {step[0] for step in steps} >= {"open", "call"}
    assert "hand" not in {step[0] for step in steps}


class _ScriptedDraw:
    """Choices that are given, with the number of those that there were."""

    def __init__(self, *choices: int) -> None:
        self.choices = list(choices)
        self.counts: list[int] = []

    def below(self, count: int) -> int:
        self.counts.append(count)
        return self.choices.pop(0)


def declared_handings(folder: Path, *tools: str) -> list[Handing]:
    more = '@after_call("other", provides="note_id")\ndef also(c, r): return 1\n'
    return find_handings(load_invariants(write_invariants(folder, CREATED, more)), tools)


@pytest.mark.parametrize(
    ("choices", "counts", "place"),
    [
        ((0,), [5], None),
        ((1, 1), [5, 3], 0),
        ((4, 2), [5, 3], 0),
        ((1, 0, 3), [5, 3, 4], 3),
        ((1, 0, 0), [5, 3, 4], 0),
    ],
)
def test_value_is_handed_four_times_in_five_and_is_the_newest_in_three_of_four(
    tmp_path: Path, choices: tuple[int, ...], counts: list[int], place: int | None
) -> None:
    draw = _ScriptedDraw(*choices)
    steps: Case = [("call", "create_note", {}, ()), ("wait",), ("call", "read_note", {}, ())]
    hands = [] if place is None else [(*HAND, place)]
    found = with_handed_values(draw, steps, declared_handings(tmp_path, *BOTH))
    assert found == [*steps[:2], *hands, steps[2]]
    assert draw.counts == counts


def test_handing_has_the_places_of_the_tools_that_may_be_called(tmp_path: Path) -> None:
    (found,) = declared_handings(tmp_path, "x", "read_note", "create_note", "y", "other")
    assert (found.tool, found.providers) == (1, (2, 4))
    assert (found.use.value, found.use.argument) == ("note_id", "id")
    assert declared_handings(tmp_path, "read_note", "x") == []
    assert declared_handings(tmp_path, "create_note", "other") == []
    assert find_handings(None, ["read_note"]) == []


def test_value_of_a_short_step_is_not_needed() -> None:
    assert needed_names([HAND], "") == {"note_id"}
    assert needed_names([HAND[:3]], "") == frozenset()
