"""Each annotation of a table with each value."""

from __future__ import annotations

import pytest

from tests.core.registry.functions.conversions import (
    ANNOTATIONS,
    conversions_of,
    kept_conversions,
)


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_annotation_makes_of_each_value_what_is_kept(name: str) -> None:
    assert conversions_of(name) == kept_conversions()[name]


def test_kept_conversions_are_those_of_all_annotations() -> None:
    assert list(kept_conversions()) == list(ANNOTATIONS)
