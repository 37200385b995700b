"""Limits and times of the wire formats: what a peer may send, and how long it may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.http.wire import (
    _forwarded,
    _head_limits,
    _host_origin,
    _http1,
    _http2_frames,
    _http2_headers,
    _mcp_headers,
    _media_types,
    _proxy_policy,
    _sse,
    _websocket,
)

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_forwarded, "_NETWORK_BITS", 64),
        (_forwarded, "_CACHED", 4096),
        (_head_limits, "MAX_HEAD", 32 * 1024),
        (_head_limits, "MAX_RESPONSE_HEAD", 64 * 1024),
        (_head_limits, "MAX_FIELDS", 100),
        (_head_limits, "MAX_VALUE", 8 * 1024),
        (_head_limits, "MAX_TARGET", 8 * 1024),
        (_head_limits, "MAX_METHOD", 32),
        (_head_limits, "MAX_DIGITS", 18),
        (_host_origin, "_CACHE_SIZE", 256),
        (_http1, "MAX_EMPTY_LINES", 4),
        (_http2_frames, "MAX_CONCURRENT_STREAMS", 100),
        (_http2_frames, "_MAX_FRAME", 16_384),
        (_http2_frames, "_MAX_CONTINUATIONS", 16),
        (_http2_frames, "_MAX_SETTINGS", 32 * 6),
        (_http2_frames, "_PERIOD", 10.0),
        (_http2_frames, "_RESETS", 100),
        (_http2_frames, "_IDLE_FRAMES", 200),
        (_http2_frames, "_UPDATES", 1_000),
        (_http2_frames, "_UPDATES_EACH", 8),
        (_http2_frames, "_SMALL_FRAMES", 1_000),
        (_http2_frames, "_SMALL", 64),
        (_http2_frames, "_SMALL_FRAMES_EACH", 4),
        (_http2_frames, "_LATE_FRAMES", 1_000),
        (_http2_frames, "_LATE_FRAMES_EACH", 64),
        (_http2_frames, "_PADDING", 256),
        (_http2_headers, "_FIELD_OVERHEAD", 32),
        (_mcp_headers, "_MAX_QUOTED", 64),
        (_media_types, "_CACHE_SIZE", 128),
        (_media_types, "_MAX_VALUE", 1024),
        (_proxy_policy, "_MAX_EVENT", 16 * 1024),
        (_sse, "_MAX_ID", 8 * 1024),
        (_sse, "_MAX_RETRY_DIGITS", 15),
        (_websocket, "_MAX_REASON", 123),
        (_websocket, "_PING_INTERVAL", 20.0),
        (_websocket, "_MAX_PONGS", 16),
        (_websocket, "_CLOSE_TIMEOUT", 1.0),
        (_websocket, "_WRITE_TIMEOUT", 30.0),
        (_websocket, "_SLOW_PERIOD", 30.0),
        (_websocket, "_MIN_PROGRESS", 30 * 1024),
        (_websocket, "_PARTIAL_TIMEOUT", 5 * 60.0),
        (_websocket, "_MAX_GARBAGE", 3),
        (_websocket, "_GARBAGE_PERIOD", 10.0),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
