"""Faults are found beside entries that their rules skip."""

from __future__ import annotations

import pytest

from tests.core.trace.judge.rules.case import Case
from tests.core.trace.judge.rules.neighbours import faults_beside_neighbours, kept_faults
from tests.core.trace.judge.rules.test_rules import CASES
from tests.core.trace.judge.rules.verdicts import names_of

KEPT = kept_faults()


@pytest.mark.parametrize(
    ("name", "each"), [*zip(names_of(CASES), CASES, strict=True)], ids=names_of(CASES)
)
def test_fault_beside_other_entries_is_found_as_is_kept(name: str, each: Case) -> None:
    """`python -m tests.core.trace.judge.rules.neighbours` writes it again."""
    assert faults_beside_neighbours(each) == KEPT[name]


def test_kept_faults_are_those_of_all_conversations() -> None:
    assert list(KEPT) == names_of(CASES)
