"""Each annotation of a table with each value."""

from __future__ import annotations

import pytest

from tests.core.registry.functions.conversions import (
    ANNOTATIONS,
    VERSIONS,
    conversions_of,
    kept_conversions,
    versions,
)

KEPT = kept_conversions()


@pytest.mark.skipif(
    versions() != KEPT[VERSIONS],
    reason="another release of msgspec or pydantic may have other texts: write the file again",
)
@pytest.mark.parametrize("name", ANNOTATIONS)
def test_annotation_makes_of_each_value_what_is_kept(name: str) -> None:
    """`python -m tests.core.registry.functions.conversions` writes it again."""
    assert conversions_of(name) == KEPT[name]


def test_kept_conversions_are_those_of_all_annotations() -> None:
    assert list(KEPT) == [VERSIONS, *ANNOTATIONS]
