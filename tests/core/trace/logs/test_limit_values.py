"""Limits of the readers of logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.trace.logs import _entries, _python, _reader, _sides

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_entries, "_WORDS", 200),
        (_entries, "_MAX_TRIES", 8),
        (_python, "_MAX_SIZE", 1024 * 1024),
        (_reader, "_MAX_NAMES", 1_000),
        (_reader, "_MAX_HELD", 10_000),
        (_reader, "_LOGGERS", 3),
        (_reader, "_LONG_BEGIN", 64 * 1024),
        (_sides, "_MAX_IDS", 2_000),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
