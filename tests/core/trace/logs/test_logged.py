"""All that is read of lines and values of other programs' files, as it is kept in a file."""

from __future__ import annotations

import pytest

from tests.core.trace.logs.logged import entries_of, kept_entries, logged

KEPT = kept_entries()


@pytest.mark.parametrize("name", KEPT)
def test_lines_have_the_entries_that_are_kept(name: str) -> None:
    """`python -m tests.core.trace.logs.logged` writes them again."""
    assert entries_of(name) == KEPT[name]


def test_kept_entries_are_of_all_messages() -> None:
    assert list(KEPT) == logged()
