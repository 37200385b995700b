"""Limits and times of the client: what a server may make it keep, and how long it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.http.client import (
    _operation,
    _pool,
    _reconnect,
    _redirects,
    _response,
    _response_queue,
    _sse_transport,
    _streamable,
    _transport,
)

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_operation, "GATE_TIMEOUT", 10.0),
        (_operation, "_RESPONSE_TIMEOUT", 30.0),
        (_pool, "_MAX_IN_USE", 100),
        (_pool, "_MAX_LONG", 100),
        (_pool, "_IDLE_SECONDS", 30.0),
        (_pool, "_SAFETY_MARGIN", 1.0),
        (_pool, "_MAX_TRIES", 3),
        (_reconnect, "_FIRST_DELAY", 1.0),
        (_reconnect, "_MIN_DELAY", 0.1),
        (_redirects, "_MAX_REDIRECTS", 3),
        (_redirects, "_MAX_SHOWN", 200),
        (_response, "MAX_ERROR_BODY", 64 * 1024),
        (_response, "_MAX_SHOWN", 200),
        (_response_queue, "_MAX_POSTS", 16),
        (_response_queue, "_MAX_WAITING", 256),
        (_response_queue, "_STALL_TIMEOUT", 4.0),
        (_sse_transport, "_ENDPOINT_TIMEOUT", 10.0),
        (_sse_transport, "_CHECK_INTERVAL", 5.0),
        (_streamable, "_STREAM_OPEN_TIMEOUT", 1.0),
        (_streamable, "_MAX_TOOLS", 4096),
        (_streamable, "_MAX_TOOL_NAME", 1024),
        (_transport, "_LINGER_TIMEOUT", 5.0),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
