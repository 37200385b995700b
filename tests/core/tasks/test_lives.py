"""Each action on tasks in each status, and how each revision shows them."""

from __future__ import annotations

import pytest

from tests.core.tasks.lives import RECORDS_ACTED_ON, kept_lives, life_of


@pytest.mark.parametrize("name", RECORDS_ACTED_ON)
def test_record_is_shown_and_changed_as_kept(name: str) -> None:
    assert life_of(name) == kept_lives()[name]


def test_kept_lives_are_those_of_all_records() -> None:
    assert list(kept_lives()) == list(RECORDS_ACTED_ON)
