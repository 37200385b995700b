"""All that messages and calls cause at each state of a connection, as it is kept in a file."""

from __future__ import annotations

import pytest

from tests.core.protocol.connection.outcomes import kept_outcomes, outcomes, outcomes_at

KEPT = kept_outcomes()


@pytest.mark.parametrize("name", KEPT)
def test_state_has_the_outcomes_that_are_kept(name: str) -> None:
    """`python -m tests.core.protocol.connection.outcomes` writes them again."""
    assert outcomes_at(name) == KEPT[name]


def test_kept_outcomes_are_of_all_states() -> None:
    assert list(KEPT) == outcomes()
