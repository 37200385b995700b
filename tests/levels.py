"""Which cases of a test are in the default run, and which ones are `long`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = ["fewer_examples", "long", "long_except"]


def long(*values: Any) -> Any:
    """Return a row of parameters that only a run of `long` has."""
    return pytest.param(*values, marks=pytest.mark.long)


def long_except(names: Collection[str], rows: Iterable[str]) -> list[Any]:
    """Return rows of one text each, of which all but those in `names` are `long`.

    Raises:
        ValueError: a name is not among the rows.
    """
    rows = list(rows)
    if missing := set(names).difference(rows):
        raise ValueError(f"not among the rows: {sorted(missing)}")
    return [row if row in names else long(row) for row in rows]


def fewer_examples(divisor: int) -> settings:
    """Return settings for an expensive property: a part of the profile's examples.

    With `--hypothesis-profile=thorough` that is a part of more.
    """
    return settings(max_examples=max(1, settings().max_examples // divisor))
