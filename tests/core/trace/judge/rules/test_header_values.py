"""Headers that repeat arguments, and the annotations that ask for them."""

from __future__ import annotations

import pytest

from tests.core.trace.judge.rules.header_values import (
    HEADER_CASES,
    header_verdicts,
    kept_header_verdicts,
)

KEPT = kept_header_verdicts()


@pytest.mark.parametrize("name", HEADER_CASES)
def test_headers_of_arguments_have_the_verdicts_that_are_kept(name: str) -> None:
    """`python -m tests.core.trace.judge.rules.header_values` writes them again."""
    assert header_verdicts(name) == KEPT[name]


def test_kept_header_verdicts_are_those_of_all_cases() -> None:
    assert list(KEPT) == list(HEADER_CASES)
