"""Limits, intervals and sizes of the core, by module: what each of them is.

Other tests replace many of these with small ones, or compute with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import pytest

# Lengths are in bytes or characters, times in seconds.
_LIMITS: Final[dict[str, dict[str, float]]] = {
    "mcp_core.http.client._operation": {
        "GATE_TIMEOUT": 10.0,
        "_RESPONSE_TIMEOUT": 30.0,
    },
    "mcp_core.http.client._pool": {
        "_MAX_IN_USE": 100,
        "_MAX_LONG": 100,
        "_IDLE_SECONDS": 30.0,
        "_SAFETY_MARGIN": 1.0,
        "_MAX_TRIES": 3,
    },
    "mcp_core.http.client._reconnect": {
        "_FIRST_DELAY": 1.0,
        "_MIN_DELAY": 0.1,
    },
    "mcp_core.http.client._redirects": {
        "_MAX_REDIRECTS": 3,
        "_MAX_SHOWN": 200,
    },
    "mcp_core.http.client._response": {
        "MAX_ERROR_BODY": 64 * 1024,
        "_MAX_SHOWN": 200,
    },
    "mcp_core.http.client._response_queue": {
        "_MAX_POSTS": 16,
        "_MAX_WAITING": 256,
        "_STALL_TIMEOUT": 4.0,
    },
    "mcp_core.http.client._sse_transport": {
        "_ENDPOINT_TIMEOUT": 10.0,
        "_CHECK_INTERVAL": 5.0,
    },
    "mcp_core.http.client._streamable": {
        "_STREAM_OPEN_TIMEOUT": 1.0,
        "_MAX_TOOLS": 4096,
        "_MAX_TOOL_NAME": 1024,
    },
    "mcp_core.http.client._transport": {
        "_LINGER_TIMEOUT": 5.0,
    },
    "mcp_core.http.server._auth": {
        "_WARNING_INTERVAL": 10.0,
    },
    "mcp_core.http.server._quotas": {
        "_CACHED": 4096,
    },
    "mcp_core.http.server._session": {
        "_CANCELLED_STREAMS": 32,
    },
    "mcp_core.http.server._stream": {
        "_LONG": 64 * 1024,
        "_STREAM": 1_500,
        "_MESSAGE": 150,
    },
    "mcp_core.http.wire._forwarded": {
        "_NETWORK_BITS": 64,
        "_CACHED": 4096,
    },
    "mcp_core.http.wire._head_limits": {
        "MAX_HEAD": 32 * 1024,
        "MAX_RESPONSE_HEAD": 64 * 1024,
        "MAX_FIELDS": 100,
        "MAX_VALUE": 8 * 1024,
        "MAX_TARGET": 8 * 1024,
        "MAX_METHOD": 32,
        "MAX_DIGITS": 18,
    },
    "mcp_core.http.wire._host_origin": {
        "_CACHE_SIZE": 256,
    },
    "mcp_core.http.wire._http1": {
        "MAX_EMPTY_LINES": 4,
    },
    "mcp_core.http.wire._http2_frames": {
        "MAX_CONCURRENT_STREAMS": 100,
        "_MAX_FRAME": 16_384,
        "_MAX_CONTINUATIONS": 16,
        "_MAX_SETTINGS": 32 * 6,
        "_PERIOD": 10.0,
        "_RESETS": 100,
        "_IDLE_FRAMES": 200,
        "_UPDATES": 1_000,
        "_UPDATES_EACH": 8,
        "_SMALL_FRAMES": 1_000,
        "_SMALL": 64,
        "_SMALL_FRAMES_EACH": 4,
        "_LATE_FRAMES": 1_000,
        "_LATE_FRAMES_EACH": 64,
        "_PADDING": 256,
    },
    "mcp_core.http.wire._http2_headers": {
        "_FIELD_OVERHEAD": 32,
    },
    "mcp_core.http.wire._mcp_headers": {
        "_MAX_QUOTED": 64,
    },
    "mcp_core.http.wire._media_types": {
        "_CACHE_SIZE": 128,
        "_MAX_VALUE": 1024,
    },
    "mcp_core.http.wire._proxy_policy": {
        "_MAX_EVENT": 16 * 1024,
    },
    "mcp_core.http.wire._sse": {
        "_MAX_ID": 8 * 1024,
        "_MAX_RETRY_DIGITS": 15,
    },
    "mcp_core.http.wire._websocket": {
        "_MAX_REASON": 123,
        "_PING_INTERVAL": 20.0,
        "_MAX_PONGS": 16,
        "_CLOSE_TIMEOUT": 1.0,
        "_WRITE_TIMEOUT": 30.0,
        "_SLOW_PERIOD": 30.0,
        "_MIN_PROGRESS": 30 * 1024,
        "_PARTIAL_TIMEOUT": 5 * 60.0,
        "_MAX_GARBAGE": 3,
        "_GARBAGE_PERIOD": 10.0,
    },
    "mcp_core.protocol.connection._pump": {
        "HIGH_WATER": 64 * 1024,
    },
    "mcp_core.protocol.connection._requests": {
        "_LONGEST_ID": 17,
        "_MAX_TASKS": 1_000,
    },
    "mcp_core.protocol.connection._unreadable": {
        "_DOUBT": 1.0,
        "_MAX_LINES": 20_000,
    },
    "mcp_core.protocol.jsonrpc._body": {
        "_CONTAINER": 80,
        "_MEMBER": 32,
        "_QUOTE": 16,
        "_MOST": 40,
    },
    "mcp_core.protocol.jsonrpc._codec": {
        "MAX_SAFE_INTEGER": 2**53 - 1,
    },
    "mcp_core.protocol.jsonrpc._excerpt": {
        "EXCERPT_SIZE": 1024,
        "_SHOWN": 80,
    },
    "mcp_core.protocol.jsonrpc._mending": {
        "_MOST_ESCAPES": 20_000,
    },
    "mcp_core.protocol.messages._lenient_results": {
        "_MOST_FAULTS": 5_000,
        "_MOST_COMMAS": 300_000,
        "_MOST_NAMES": 3,
        "_MAX_NAME": 60,
        "_MAX_REASON": 200,
    },
    "mcp_core.protocol.messages._outbox": {
        "_MANY_RESPONSES": 64,
    },
    "mcp_core.protocol.schema._json_schema": {
        "MAX_SCHEMA_BYTES": 256 * 1024,
        "MAX_SCHEMA_DEPTH": 32,
        "MAX_VALUE_DEPTH": 64,
        "MAX_REFERENCES": 100_000,
        "MAX_FRAMES": 700,
        "MAX_UNTRUSTED_PARTS": 1_000,
        "MAX_UNTRUSTED_STEPS": 100_000,
        "_MAX_MESSAGE_LENGTH": 500,
        "_MAX_SHOWN": 200,
        "_SEARCH_COST": 2,
        "_STEP_CHARACTERS": 100,
    },
    "mcp_core.protocol.schema._param_headers": {
        "MAX_PARTS": 100_000,
        "MAX_DEPTH": 16,
        "MAX_HEADERS": 64,
        "MAX_NAME": 128,
        "MAX_PATH": 1024,
    },
    "mcp_core.protocol.subscriptions._client": {
        "_MAX_PARTS": 256,
        "_MAX_URI_LENGTH": 8 * 1024,
    },
    "mcp_core.protocol.subscriptions._server": {
        "CHANGES_HIGH_WATER": 16 * 1024,
    },
    "mcp_core.trace._encoder": {
        "_RESERVED": 1024,
    },
    "mcp_core.trace._format": {
        "MAX_TRACE_LINE": 16 * 1024 * 1024,
        "_MAX_REASON": 300,
    },
    "mcp_core.trace._http_channel": {
        "_MAX_SESSIONS": 10_000,
    },
    "mcp_core.trace._ids": {
        "MAX_RANGES": 10_000,
        "MAX_STRINGS": 100_000,
        "MAX_TEXTS": 100_000,
        "_LONG": 256,
    },
    "mcp_core.trace._json_redaction": {
        "_MAX_DEPTH": 200,
        "_MAX_POINTERS": 100,
    },
    "mcp_core.trace._messages": {
        "_KEPT": 1024,
    },
    "mcp_core.trace._redaction": {
        "_MIN_ID_BITS": 32.0,
        "_MAX_PSEUDONYMS": 1_000,
        "_MAX_HEADERS": 200,
        "_MAX_ELICITATIONS": 1_000,
        "_MAX_LOGINS": 1_000,
        "_MAX_KEY_LINES": 200,
    },
    "mcp_core.trace.judge._conversation_table": {
        "MAX_CONVERSATIONS": 1_000,
        "MAX_KEPT_BYTES": 32 * 1024 * 1024,
    },
    "mcp_core.trace.judge._evidence": {
        "_MAX_BREACHED": 1_000,
    },
    "mcp_core.trace.judge._exchange_judge": {
        "MAX_EXCHANGE_BYTES": 8 * 1024 * 1024,
    },
    "mcp_core.trace.judge._message": {
        "MAX_PARAMS": 4096,
        "_HOLDS": 60.0,
        "_LONG_ID": 200,
        "_MAX_MEMBER": 2048,
        "_MAX_META": 50,
    },
    "mcp_core.trace.judge._message_judge": {
        "_SMALL_BATCH": 10,
    },
    "mcp_core.trace.judge._report": {
        "MAX_INCONCLUSIVE": 10_000,
    },
    "mcp_core.trace.judge._texts": {
        "_MAX_PIECES": 200,
        "_MAX_PIECES_SIZE": 20_000,
    },
    "mcp_core.trace.judge.conversation._across": {
        "MAX_GIVEN": 10_000,
        "MAX_NAMES": 100,
        "MAX_REQUESTS": 8,
        "MAX_REQUEST_BYTES": 4096,
        "MIN_MARK": 16,
    },
    "mcp_core.trace.judge.conversation._bounds": {
        "MAX_ENTRIES": 10_000,
    },
    "mcp_core.trace.judge.conversation._conversation": {
        "_LONG": 100,
        "_SMALL": 4096,
    },
    "mcp_core.trace.judge.conversation._http": {
        "MAX_EXCHANGES": 1_000,
        "MAX_EVENTS": 10_000,
        "_MAX_MESSAGES": 100,
        "_MAX_SESSIONS": 1_000,
    },
    "mcp_core.trace.judge.conversation._lists": {
        "MAX_TOOL_BYTES": 8 * 1024 * 1024,
        "MAX_LIST_BYTES": 1024 * 1024,
    },
    "mcp_core.trace.judge.conversation._negotiation": {
        "_MAX_REJECTED": 100,
    },
    "mcp_core.trace.judge.conversation._requests": {
        "MAX_OPEN": 10_000,
        "MAX_ANSWERED": 1_000,
        "MAX_EARLIER": 100,
    },
    "mcp_core.trace.judge.conversation._rounds": {
        "MAX_ROUNDS": 1_000,
        "MAX_ROUND_BYTES": 65_536,
    },
    "mcp_core.trace.judge.conversation._tasks": {
        "MAX_TASK_ID": 1024,
        "_MAX_KEYS": 10_000,
    },
    "mcp_core.trace.judge.rules._eras": {
        "_REACTION": 1.0,
        "_PROMPTLY": 10.0,
    },
    "mcp_core.trace.judge.rules._errors": {
        "_SHORT": 500,
        "_MAX_LINES": 3,
    },
    "mcp_core.trace.judge.rules._features": {
        "_MAX_COMPILED": 100,
        "_MAX_REMEMBERED": 16_384,
        "_NOTIFIED": 1.0,
    },
    "mcp_core.trace.judge.rules._headers": {
        "_MAX_DEPTH": 32,
        "_MAX_KEPT": 100,
    },
    "mcp_core.trace.judge.rules._messages": {
        "_REACTION": 1.0,
    },
    "mcp_core.trace.judge.rules._streams": {
        "_SLACK": 0.9,
        "_LINGER": 5.0,
        "_REACTION": 1.0,
        "_LIFE_OF_TOKEN": 10.0,
    },
    "mcp_core.trace.judge.rules._tasks": {
        "_SLACK": 0.9,
        "_DELAY": 1.0,
        "_POLLS": 2,
        "_MIN_BITS": 32.0,
    },
    "mcp_core.trace.logs._entries": {
        "_WORDS": 200,
        "_MAX_TRIES": 8,
    },
    "mcp_core.trace.logs._python": {
        "_MAX_SIZE": 1024 * 1024,
    },
    "mcp_core.trace.logs._reader": {
        "_MAX_NAMES": 1_000,
        "_MAX_HELD": 10_000,
        "_LOGGERS": 3,
        "_LONG_BEGIN": 64 * 1024,
    },
    "mcp_core.trace.logs._sides": {
        "_MAX_IDS": 2_000,
    },
    "mcp_core.trace.replay._client": {
        "RESPONSE_TIMEOUT": 10.0,
        "_SLOWER": 3.0,
        "_GRACE": 1.0,
        "_MAX_UNANSWERED": 3,
        "_MAX_PROBLEMS": 1_000,
        "_MAX_HIDDEN": 10,
    },
    "mcp_core.trace.replay._diff": {
        "_MAX_DIFFERENCES": 10_000,
        "_MAX_VALUES": 100,
        "_MAX_CANDIDATES": 100_000,
    },
    "mcp_core.trace.replay._differences": {
        "_MAX_DEPTH": 200,
    },
    "mcp_core.trace.replay._http_client": {
        "_MAX_RESUMED": 10,
        "_MAX_TOOLS": 10_000,
        "_MAX_NAME": 80,
        "_RETRY": 1.0,
    },
    "mcp_core.trace.replay._http_server": {
        "_MAX_SESSIONS": 1_000,
        "_MAX_WAITING": 1_000,
    },
    "mcp_core.trace.replay._keys": {
        "_MAX_DEPTH": 100,
    },
    "mcp_core.trace.replay._load": {
        "_MAX_BYTES": 64 * 1024 * 1024,
        "_MAX_LINES": 5,
        "_MAX_REPEATS": 1_000,
    },
    "mcp_core.trace.replay._mapping": {
        "_MAX_VALUES": 100_000,
        "_MAX_DEPTH": 100,
    },
    "mcp_core.trace.replay._matching": {
        "_MAX_COMPARED": 100,
    },
    "mcp_core.trace.replay._recorded": {
        "MAX_TRACE_BYTES": 256 * 1024 * 1024,
        "_MESSAGE_SIZE": 200,
        "_MAX_NOTED": 10,
        "_MAX_DESCRIPTION": 80,
    },
    "mcp_core.trace.replay._replayed": {
        "_SHOWN": 20,
        "_SHOWN_CHARACTERS": 500,
    },
    "mcp_core.trace.replay._server": {
        "_MAX_MISSING": 1_000,
        "_MAX_NOTES": 1_000,
        "_MAX_POINTERS": 5,
        "_MAX_PLAYING": 10_000,
    },
    "mcp_core.trace.replay._stream": {
        "MAX_REPLAY_LINE": 64 * 1024 * 1024,
    },
    "mcp_core.trace.replay._turns": {
        "_POLL": 0.2,
        "_MAX_POLL": 5.0,
    },
    "mcp_core.trace.replay._volatile": {
        "_ZONE": 900,
        "_TOLERANCE": 5,
        "_MAX_IDS": 100_000,
    },
}


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [(module, name, value) for module, limits in _LIMITS.items() for name, value in limits.items()],
)
def test_limit_has_its_value(module: str, name: str, value: float) -> None:
    assert getattr(import_module(module), name) == value
