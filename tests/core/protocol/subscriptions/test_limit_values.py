"""Limits of subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.protocol.subscriptions import _client, _server

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_client, "_MAX_PARTS", 256),
        (_client, "_MAX_URI_LENGTH", 8 * 1024),
        (_server, "CHANGES_HIGH_WATER", 16 * 1024),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
