"""The judgements of names, definitions, rules and variables, as `judgements.txt` keeps them."""

from __future__ import annotations

import pytest

from tests.core.host.judgements import judged_lines, judgements_to_make, kept_judgements

KEPT = kept_judgements()


def test_kept_judgements_are_those_of_all_kinds() -> None:
    assert list(KEPT) == list(judgements_to_make())


@pytest.mark.parametrize("name", KEPT)
def test_judgements_of_a_kind_are_the_kept_ones(name: str) -> None:
    assert judged_lines(judgements_to_make()[name]) == KEPT[name]
