"""Fixtures of the driver tests."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from tests.trio_.pipes import descriptors

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def no_descriptor_left() -> Iterator[None]:
    """What we opened is closed, whoever was cancelled meanwhile."""
    gc.collect()
    before = descriptors()
    yield
    gc.collect()
    assert descriptors() == before
