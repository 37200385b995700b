"""Each message at each point of a beginning: the rules that judge it, and the faults they find."""

from __future__ import annotations

import pytest

from tests.core.trace.judge.rules.openings import OPENINGS, kept_openings, opening_verdicts

KEPT = kept_openings()


@pytest.mark.parametrize("name", OPENINGS)
def test_messages_after_an_opening_have_the_verdicts_that_are_kept(name: str) -> None:
    """`python -m tests.core.trace.judge.rules.openings` writes them again."""
    assert opening_verdicts(name) == KEPT[name]


def test_kept_openings_are_all() -> None:
    assert list(KEPT) == list(OPENINGS)
