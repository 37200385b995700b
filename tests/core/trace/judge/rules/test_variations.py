"""Conversations that differ from the rules' in one place have the verdicts that are kept."""

from __future__ import annotations

import pytest

from tests.core.trace.judge.rules.case import Case
from tests.core.trace.judge.rules.test_rules import CASES
from tests.core.trace.judge.rules.variations import kept_variations, variations_of
from tests.core.trace.judge.rules.verdicts import names_of

KEPT = kept_variations()


@pytest.mark.parametrize(
    ("name", "each"), [*zip(names_of(CASES), CASES, strict=True)], ids=names_of(CASES)
)
def test_changed_conversations_have_the_verdicts_that_are_kept(name: str, each: Case) -> None:
    """`python -m tests.core.trace.judge.rules.variations` writes them again."""
    assert variations_of(each) == KEPT[name]


def test_kept_variations_are_those_of_all_conversations() -> None:
    assert list(KEPT) == names_of(CASES)
