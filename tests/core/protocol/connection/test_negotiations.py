"""All ways in which a version negotiation can go, as they are kept in a file."""

from __future__ import annotations

import pytest

from tests.core.protocol.connection.negotiations import (
    kept_negotiations,
    negotiations,
    ways_of,
)

KEPT = kept_negotiations()


@pytest.mark.parametrize("name", KEPT)
def test_negotiation_goes_the_ways_that_are_kept(name: str) -> None:
    """`python -m tests.core.protocol.connection.negotiations` writes them again."""
    assert ways_of(name) == KEPT[name]


def test_kept_negotiations_are_of_all_clients() -> None:
    assert list(KEPT) == negotiations()
