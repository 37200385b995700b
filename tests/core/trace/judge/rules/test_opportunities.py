"""The opportunities of each row to be judged: sides, kinds of messages and methods."""

from __future__ import annotations

from tests.core.trace.judge.rules.opportunities import kept_opportunities, opportunities


def test_rows_are_judged_on_what_is_kept() -> None:
    """`python -m tests.core.trace.judge.rules.opportunities` writes it again."""
    assert opportunities() == kept_opportunities()
