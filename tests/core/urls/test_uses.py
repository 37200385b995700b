"""The use of each URL, address, URI and template, as `uses.txt` keeps it."""

from __future__ import annotations

import pytest

from tests.core.urls.uses import kept_uses, used, uses_to_find

KEPT = kept_uses()


def test_kept_uses_are_those_of_all_texts() -> None:
    assert list(KEPT) == list(uses_to_find())


@pytest.mark.parametrize("name", KEPT)
def test_uses_of_texts_are_the_kept_ones(name: str) -> None:
    assert used(uses_to_find()[name]) == KEPT[name]
