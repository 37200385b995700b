"""Each answer to each request: the rules that judge it, and those that find a fault in it."""

from __future__ import annotations

import pytest

from tests.core.trace.judge.rules.answers import AskedRequest, asked, kept_answers, verdicts_on

ASKED = asked()
KEPT = kept_answers()


@pytest.mark.parametrize("each", ASKED, ids=lambda each: each.name)
def test_answers_to_a_request_have_the_verdicts_that_are_kept(each: AskedRequest) -> None:
    """`python -m tests.core.trace.judge.rules.answers` writes them again."""
    assert verdicts_on(each) == KEPT[each.name]


def test_kept_answers_are_those_to_all_requests() -> None:
    assert list(KEPT) == [each.name for each in ASKED]
