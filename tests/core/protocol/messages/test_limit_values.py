"""Limits of the lenient reader, and of what is sent at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.protocol.messages import _lenient_results, _outbox

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_lenient_results, "_MOST_FAULTS", 5_000),
        (_lenient_results, "_MOST_COMMAS", 300_000),
        (_lenient_results, "_MOST_NAMES", 3),
        (_lenient_results, "_MAX_NAME", 60),
        (_lenient_results, "_MAX_REASON", 200),
        (_outbox, "_MANY_RESPONSES", 64),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
