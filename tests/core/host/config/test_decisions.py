"""The decisions of lists of servers, and the readings they compare, as `decisions.txt` has them."""

from __future__ import annotations

import pytest

from tests.core.host.config.decisions import decided, decisions_to_make, kept_decisions

KEPT = kept_decisions()


def test_kept_decisions_are_those_of_all_kinds() -> None:
    assert list(KEPT) == list(decisions_to_make())


@pytest.mark.parametrize("name", KEPT)
def test_decisions_of_a_kind_are_the_kept_ones(name: str) -> None:
    assert decided(decisions_to_make()[name]) == KEPT[name]
