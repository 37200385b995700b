"""All that is read of broken results, as it is kept in a file."""

from __future__ import annotations

import pytest

from tests.core.protocol.messages.broken_results import (
    broken_results,
    kept_broken_results,
    readings_of,
)

KEPT = kept_broken_results()


@pytest.mark.parametrize("name", KEPT)
def test_broken_results_are_read_as_is_kept(name: str) -> None:
    """`python -m tests.core.protocol.messages.broken_results` writes the texts again."""
    assert readings_of(name) == KEPT[name]


def test_kept_readings_are_of_all_results() -> None:
    assert list(KEPT) == broken_results()
