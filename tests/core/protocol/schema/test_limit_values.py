"""Limits of schemas and of the values that they check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.protocol.schema import _json_schema, _param_headers

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_json_schema, "MAX_SCHEMA_BYTES", 256 * 1024),
        (_json_schema, "MAX_SCHEMA_DEPTH", 32),
        (_json_schema, "MAX_VALUE_DEPTH", 64),
        (_json_schema, "MAX_REFERENCES", 100_000),
        (_json_schema, "MAX_FRAMES", 700),
        (_json_schema, "MAX_UNTRUSTED_PARTS", 1_000),
        (_json_schema, "MAX_UNTRUSTED_STEPS", 100_000),
        (_json_schema, "_MAX_MESSAGE_LENGTH", 500),
        (_json_schema, "_MAX_SHOWN", 200),
        (_json_schema, "_SEARCH_COST", 2),
        (_json_schema, "_STEP_CHARACTERS", 100),
        (_param_headers, "MAX_PARTS", 100_000),
        (_param_headers, "MAX_DEPTH", 16),
        (_param_headers, "MAX_HEADERS", 64),
        (_param_headers, "MAX_NAME", 128),
        (_param_headers, "MAX_PATH", 1024),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
