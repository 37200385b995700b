"""All errors of values by schemas, and the headers of arguments, as they are kept in a file."""

from __future__ import annotations

import pytest

from tests.core.protocol.schema.checked_values import checked_values, errors_of, kept_values

KEPT = kept_values()


@pytest.mark.parametrize("name", KEPT)
def test_values_have_the_errors_that_are_kept(name: str) -> None:
    """`python -m tests.core.protocol.schema.checked_values` writes them again."""
    assert errors_of(name) == KEPT[name]


def test_kept_errors_are_of_all_schemas() -> None:
    assert list(KEPT) == checked_values()
