"""Messages that differ from the rules' own in one member have the verdicts that are kept."""

from __future__ import annotations

import pytest

from tests.core.trace.judge.rules.case import Case
from tests.core.trace.judge.rules.members import kept_members, verdicts_by_member
from tests.core.trace.judge.rules.test_rules import CASES
from tests.core.trace.judge.rules.verdicts import names_of

KEPT = kept_members()


@pytest.mark.parametrize(
    ("name", "each"), [*zip(names_of(CASES), CASES, strict=True)], ids=names_of(CASES)
)
def test_messages_with_other_members_have_the_verdicts_that_are_kept(name: str, each: Case) -> None:
    """`python -m tests.core.trace.judge.rules.members` writes them again."""
    assert verdicts_by_member(each) == KEPT[name]


def test_kept_members_are_those_of_all_messages() -> None:
    assert list(KEPT) == names_of(CASES)
