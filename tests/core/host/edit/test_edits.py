"""The whole text after each edit of the tables' files, as `edits.txt` keeps it."""

from __future__ import annotations

import pytest

from tests.core.host.edit.edits import edited, edits_to_make, kept_edits

KEPT = kept_edits()


def test_kept_edits_are_those_of_all_tables() -> None:
    assert list(KEPT) == list(edits_to_make())


@pytest.mark.parametrize("name", KEPT)
def test_edits_of_a_file_leave_the_kept_texts(name: str) -> None:
    assert edited(edits_to_make()[name]) == KEPT[name]
