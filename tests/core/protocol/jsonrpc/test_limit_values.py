"""Limits of the codec: what a message may cost, and what an error shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.protocol.jsonrpc import _body, _codec, _excerpt, _mending

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_body, "_CONTAINER", 80),
        (_body, "_MEMBER", 32),
        (_body, "_QUOTE", 16),
        (_body, "_MOST", 40),
        (_codec, "MAX_SAFE_INTEGER", 2**53 - 1),
        (_excerpt, "EXCERPT_SIZE", 1024),
        (_excerpt, "_SHOWN", 80),
        (_mending, "_MOST_ESCAPES", 20_000),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
