"""Limits and times of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.protocol.connection import _pump, _requests, _unreadable

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_pump, "HIGH_WATER", 64 * 1024),
        (_requests, "_LONGEST_ID", 17),
        (_requests, "_MAX_TASKS", 1_000),
        (_unreadable, "_DOUBT", 1.0),
        (_unreadable, "_MAX_LINES", 20_000),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
