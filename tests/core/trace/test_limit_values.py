"""Limits of the recorder: what a connection may make it keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.trace import (
    _encoder,
    _format,
    _http_channel,
    _ids,
    _json_redaction,
    _messages,
    _redaction,
)

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_encoder, "_RESERVED", 1024),
        (_format, "MAX_TRACE_LINE", 16 * 1024 * 1024),
        (_format, "_MAX_REASON", 300),
        (_http_channel, "_MAX_SESSIONS", 10_000),
        (_ids, "MAX_RANGES", 10_000),
        (_ids, "MAX_STRINGS", 100_000),
        (_ids, "MAX_TEXTS", 100_000),
        (_ids, "_LONG", 256),
        (_json_redaction, "_MAX_DEPTH", 200),
        (_json_redaction, "_MAX_POINTERS", 100),
        (_messages, "_KEPT", 1024),
        (_redaction, "_MIN_ID_BITS", 32.0),
        (_redaction, "_MAX_PSEUDONYMS", 1_000),
        (_redaction, "_MAX_HEADERS", 200),
        (_redaction, "_MAX_ELICITATIONS", 1_000),
        (_redaction, "_MAX_LOGINS", 1_000),
        (_redaction, "_MAX_KEY_LINES", 200),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
