"""Limits and times of the server: what clients may make it keep, and how often it warns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.http.server import _auth, _quotas, _session, _stream

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_auth, "_WARNING_INTERVAL", 10.0),
        (_quotas, "_CACHED", 4096),
        (_session, "_CANCELLED_STREAMS", 32),
        (_stream, "_LONG", 64 * 1024),
        (_stream, "_STREAM", 1_500),
        (_stream, "_MESSAGE", 150),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
