"""Which cases of a test are in the default run, and which ones are `long`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

__all__ = ["fewer_examples", "long"]


def long(*values: Any) -> Any:
    """Return a row of parameters that only a run of `long` has."""
    return pytest.param(*values, marks=pytest.mark.long)


def fewer_examples(divisor: int) -> settings:
    """Return settings for an expensive property: a part of the profile's examples.

    With `--hypothesis-profile=thorough` that is a part of more.
    """
    return settings(max_examples=max(1, settings().max_examples // divisor))
