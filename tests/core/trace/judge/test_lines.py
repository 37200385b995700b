"""Lines of a trace: what the judge finds, counts and remembers of them."""

from __future__ import annotations

import pytest

from tests.core.trace.judge.lines import LINES, judged_lines, kept_lines

KEPT = kept_lines()


@pytest.mark.parametrize("name", LINES)
def test_lines_are_judged_as_is_kept(name: str) -> None:
    """`python -m tests.core.trace.judge.lines` writes it again."""
    assert judged_lines(name) == KEPT[name]


def test_kept_lines_are_those_that_are_judged() -> None:
    assert list(KEPT) == list(LINES)
