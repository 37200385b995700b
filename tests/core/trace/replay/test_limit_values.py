"""Limits and times of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.trace.replay import (
    _client,
    _diff,
    _differences,
    _http_client,
    _http_server,
    _keys,
    _load,
    _mapping,
    _matching,
    _recorded,
    _replayed,
    _server,
    _stream,
    _turns,
    _volatile,
)

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_client, "RESPONSE_TIMEOUT", 10.0),
        (_client, "_SLOWER", 3.0),
        (_client, "_GRACE", 1.0),
        (_client, "_MAX_UNANSWERED", 3),
        (_client, "_MAX_PROBLEMS", 1_000),
        (_client, "_MAX_HIDDEN", 10),
        (_diff, "_MAX_DIFFERENCES", 10_000),
        (_diff, "_MAX_VALUES", 100),
        (_diff, "_MAX_CANDIDATES", 100_000),
        (_differences, "_MAX_DEPTH", 200),
        (_http_client, "_MAX_RESUMED", 10),
        (_http_client, "_MAX_TOOLS", 10_000),
        (_http_client, "_MAX_NAME", 80),
        (_http_client, "_RETRY", 1.0),
        (_http_server, "_MAX_SESSIONS", 1_000),
        (_http_server, "_MAX_WAITING", 1_000),
        (_keys, "_MAX_DEPTH", 100),
        (_load, "_MAX_BYTES", 64 * 1024 * 1024),
        (_load, "_MAX_LINES", 5),
        (_load, "_MAX_REPEATS", 1_000),
        (_mapping, "_MAX_VALUES", 100_000),
        (_mapping, "_MAX_DEPTH", 100),
        (_matching, "_MAX_COMPARED", 100),
        (_recorded, "MAX_TRACE_BYTES", 256 * 1024 * 1024),
        (_recorded, "_MESSAGE_SIZE", 200),
        (_recorded, "_MAX_NOTED", 10),
        (_recorded, "_MAX_DESCRIPTION", 80),
        (_replayed, "_SHOWN", 20),
        (_replayed, "_SHOWN_CHARACTERS", 500),
        (_server, "_MAX_MISSING", 1_000),
        (_server, "_MAX_NOTES", 1_000),
        (_server, "_MAX_POINTERS", 5),
        (_server, "_MAX_PLAYING", 10_000),
        (_stream, "MAX_REPLAY_LINE", 64 * 1024 * 1024),
        (_turns, "_POLL", 0.2),
        (_turns, "_MAX_POLL", 5.0),
        (_volatile, "_ZONE", 900),
        (_volatile, "_TOLERANCE", 5),
        (_volatile, "_MAX_IDS", 100_000),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
