"""Limits, intervals and sizes of the core, by module: what each of them is.

Other tests replace many of these with small ones, or compute with them. Their effects are shown
there; here is their size.
"""

from __future__ import annotations

from importlib import import_module
from inspect import Parameter, signature
from typing import Final

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields

from mcp_core import Rate
from mcp_core.host import CatalogLimits
from mcp_core.http import HttpLimits

# Lengths are in bytes or characters, times in seconds.
_LIMITS: Final[dict[str, dict[str, float]]] = {
    "mcp_core._known_secrets": {
        "_MIN_PART": 8,
        "_MIN_WORDS": 16,
        "_MIN_BASE64": 12,
        "_MAX_LAYERS": 4,
    },
    "mcp_core._limits": {
        "_MOST_BUCKETS": 10_000,
    },
    "mcp_core._nesting": {
        "MAX_NESTING": 200,
    },
    "mcp_core._secret_patterns": {
        "MIN_SECRET": 6,
        "_MIN_RANDOM": 8,
        "_MAX_RUN": 2.5,
        "_LONG": 12,
    },
    "mcp_core.auth._jose": {
        "MAX_TOKEN": 16 * 1024,
        "MAX_KEYS": 50,
        "_MIN_RSA_BITS": 2048,
        "_MAX_RSA_BITS": 8192,
        "_MAX_RSA_EXPONENT": 2**32,
    },
    "mcp_core.auth._metadata": {
        "_MAX_LIFETIME": 315_360_000.0,
        "_MAX_DESCRIPTION": 200,
    },
    "mcp_core.auth._resource_urls": {
        "_DIGEST_LENGTH": 22,
    },
    "mcp_core.auth._secret": {
        "MIN_SECRET_LENGTH": 6,
    },
    "mcp_core.auth._server_metadata": {
        "_MAX_REDIRECTS": 3,
    },
    "mcp_core.auth._steps": {
        "MAX_BODY": 65_536,
    },
    "mcp_core.auth.client._authorizer": {
        "MAX_STEP_UPS": 3,
        "_MAX_OPERATIONS": 256,
        "_MAX_WARNINGS": 16,
        "_RENEW_RETRY_DELAY": 10.0,
        "_MAX_CHALLENGES": 6,
        "_MAX_CHALLENGE_TEXT": 1000,
    },
    "mcp_core.auth.client._callback": {
        "_MAX_CALLBACK": 16_384,
        "_MAX_FIELDS": 50,
        "_SECRET_SIZE": 32,
    },
    "mcp_core.auth.client._challenge": {
        "MAX_LENGTH": 16_384,
        "MAX_SCOPES": 100,
    },
    "mcp_core.auth.client._dpop_signer": {
        "_SEED_SIZE": 32,
        "_MAX_NONCE": 256,
    },
    "mcp_core.auth.client._token_request": {
        "_ASSERTION_LIFETIME": 60,
    },
    "mcp_core.auth.client._tokens": {
        "_MAX_RENEW_MARGIN": 60.0,
        "_RENEW_MARGIN_SHARE": 0.1,
    },
    "mcp_core.auth.server._api_keys": {
        "_MIN_KEY": 16,
    },
    "mcp_core.auth.server._dpop_replay": {
        "_MAX_STORED": 100_000,
        "_PERIOD": 5.0,
        "_FEW": 100,
    },
    "mcp_core.auth.server._dpop_verifier": {
        "_MAX_AGE": 60.0,
        "_MAX_AHEAD": 15.0,
        "_NONCE_PERIOD": 300,
        "_MIN_KEY_SIZE": 32,
    },
    "mcp_core.auth.server._grant": {
        "_MAX_TIME": 2.0**53,
    },
    "mcp_core.auth.server._introspection": {
        "_MAX_CACHED": 10_000,
        "_MAX_UNKNOWN": 100,
    },
    "mcp_core.auth.server._jwks": {
        "_RETRY_INTERVAL": 10.0,
        "_MAX_AGE": 3600.0,
        "_MAX_STALE_AGE": 86400.0,
    },
    "mcp_core.auth.server._scopes": {
        "_MAX_COMPARED": 1024,
    },
    "mcp_core.client._cache": {
        "_MAX_RESULTS": 1_000,
        "_MAX_BYTES": 8 * 1024 * 1024,
    },
    "mcp_core.client._calls": {
        "_TIMEOUT": 60.0,
        "_MAX_TIMEOUT": 300.0,
        "_MAX_PAGES": 10_000,
        "_MAX_PROBLEMS": 100,
        "_VALUE_SIZE": 64,
    },
    "mcp_core.client._handshake_cache": {
        "_LIFETIME": 24 * 3600.0,
        "_MAX_ENTRIES": 256,
    },
    "mcp_core.client._options": {
        "NETWORK_INITIALIZE_TIMEOUT": 30.0,
    },
    "mcp_core.contract._compare": {
        "_MAX_TOTAL_STEPS": 500_000,
        "_MAX_CHANGES": 10_000,
    },
    "mcp_core.contract._documents": {
        "MAX_STEPS": 50_000,
        "MAX_DEPTH": 32,
        "_MAX_NESTING": 100,
        "MAX_HOPS": 16,
        "MAX_EXAMPLES": 12,
        "_MAX_EXAMPLE_DEPTH": 8,
        "_MAX_EXAMPLE_LENGTH": 10_000,
        "_MAX_PATTERN": 200,
    },
    "mcp_core.contract._keywords": {
        "_MAX_PARTS_DEPTH": 8,
    },
    "mcp_core.contract._schemas": {
        "_MAX_FINDINGS": 100,
        "_MAX_EXAMPLES": 50,
    },
    "mcp_core.host._audit": {
        "_MAX_TEXT": 1000,
        "_MAX_VALUES": 1000,
        "_MAX_DEPTH": 20,
    },
    "mcp_core.host._canonical_json": {
        "_MAX_POINT": 21,
        "_MIN_POINT": -5,
    },
    "mcp_core.host._definition_warnings": {
        "_MAX_WARNINGS": 20,
        "_MAX_PATH": 120,
        "_MAX_NAME": 200,
        "_MIN_EDITED": 6,
        "_MAX_EDITED": 40,
        "_MAX_SHARING": 4,
    },
    "mcp_core.host._launch": {
        "_MAX_LINES": 200,
        "_MAX_LINE": 4096,
    },
    "mcp_core.host._names": {
        "MAX_NAME_LENGTH": 64,
        "_DIGEST_LENGTH": 8,
        "_MAX_WRITTEN": 63,
        "_SHOWN": 80,
    },
    "mcp_core.host._pins": {
        "_CONTEXT": 2,
        "_MAX_LINE": 160,
        "_MAX_COMPARED": 250_000,
    },
    "mcp_core.host._supervision": {
        "_FIRST_DELAY": 1.0,
        "_MAX_DELAY": 30.0,
        "_STABLE_AFTER": 10.0,
        "_FIRST_LIST_DELAY": 0.5,
        "_MAX_LIST_DELAY": 300.0,
    },
    "mcp_core.host.catalog._server": {
        "_MAX_PROBLEM": 300,
        "_MAX_LEFT_OUT": 200,
        "_STEP": 50,
    },
    "mcp_core.host.config._beside": {
        "_MAX_COMPARED": 30_000,
        "_MAX_ENTRY": 300,
        "_WRITTEN_START": 28,
    },
    "mcp_core.host.config._env_file": {
        "MAX_ENV_FILE_SIZE": 1024 * 1024,
    },
    "mcp_core.host.config._import": {
        "_SHORTEST_TIMEOUT": 1.0,
    },
    "mcp_core.host.config._members": {
        "_MAX_DEPTH": 100,
        "_MAX_BITS": 64,
    },
    "mcp_core.host.config._opencode": {
        "_MAX_COMPARED": 10_000_000,
    },
    "mcp_core.host.config._problems": {
        "_MAX_NAME": 100,
        "_MAX_SHOWN": 20,
    },
    "mcp_core.host.config._read": {
        "_MAX_NAMED": 5,
        "_MAX_COMPARED": 50,
    },
    "mcp_core.host.config._restrictions": {
        "_MAX_DEPTH": 100,
    },
    "mcp_core.host.config._tree": {
        "MAX_CONFIG_SIZE": 4 * 1024 * 1024,
    },
    "mcp_core.host.config._url_readings": {
        "_MAX_LENGTH": 4096,
        "_MAX_READINGS": 64,
    },
    "mcp_core.host.config._variables": {
        "_MAX_NAME": 100,
    },
    "mcp_core.host.config._yaml": {
        "MAX_YAML_SIZE": 256 * 1024,
        "_MAX_WRITTEN_OUT": 4 * 1024 * 1024,
    },
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
    "mcp_core.http.client._websocket_upgrade": {
        "_KEY_SIZE": 16,
    },
    "mcp_core.http.server._auth": {
        "_WARNING_INTERVAL": 10.0,
    },
    "mcp_core.http.server._exchange": {
        "_BLOCK": 32 * 1024,
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
    "mcp_core.http.server._websocket_session": {
        "_FEW": 64,
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
        "_MAX_LENGTH": 259,
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
    "mcp_core.processes._command_words": {
        "_MAX_SHOWN": 500,
    },
    "mcp_core.processes._exit_text": {
        "_LINES_SHOWN": 5,
        "_LINE_SHOWN": 300,
        "_LINES_SEARCHED": 30,
    },
    "mcp_core.processes._process_tree": {
        "_MAX_PASSES": 5,
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
    "mcp_core.protocol.input_requests._request_state": {
        "_MIN_KEY_SIZE": 32,
    },
    "mcp_core.protocol.input_requests._rounds": {
        "MAX_ROUNDS": 10,
    },
    "mcp_core.protocol.jsonrpc._body": {
        "_CONTAINER": 80,
        "_MEMBER": 32,
        "_QUOTE": 16,
        "_MOST": 40,
        "_PIECE": 64 * 1024,
    },
    "mcp_core.protocol.jsonrpc._codec": {
        "MAX_SAFE_INTEGER": 2**53 - 1,
        "_LARGE": 4096,
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
    "mcp_core.protocol.revisions._config": {
        "PROBE_TIMEOUT": 15.0,
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
    "mcp_core.registry._context": {
        "EXTENSION_TIMEOUT": 60.0,
    },
    "mcp_core.registry._pages": {
        "PAGE_SIZE": 1_000,
        "_MAX_PAGE_BYTES": 2 * 1024 * 1024,
    },
    "mcp_core.registry._roots": {
        "_TIMEOUT": 60.0,
    },
    "mcp_core.registry._sampling_tools": {
        "_MAX_SHOWN": 128,
    },
    "mcp_core.registry._server": {
        "_MAX_FILE_SIZE": 3 * 1024 * 1024,
    },
    "mcp_core.registry._trace_context": {
        "_TRACESTATE_LIMIT": 512,
        "_BAGGAGE_LIMIT": 8192,
    },
    "mcp_core.registry._url_elicitation": {
        "ELICITATION_LIFETIME": 600.0,
        "_ID_SIZE": 16,
    },
    "mcp_core.registry._validation": {
        "MAX_SHOWN": 128,
    },
    "mcp_core.registry._visibility": {
        "_LOG_INTERVAL": 60.0,
        "_MAX_BLOCKING": 0.05,
    },
    "mcp_core.registry.entries._completion": {
        "_MAX_VALUES": 100,
    },
    "mcp_core.registry.functions._explanation": {
        "_MAX_SHOWN": 100,
        "_MAX_ALLOWED": 30,
        "_MAX_ERRORS": 10,
    },
    "mcp_core.registry.functions._output": {
        "_MAX_ITEMS": 1_000_000,
    },
    "mcp_core.sharing._breaker": {
        "_MAX_FAILURES": 3,
        "_FIRST_PAUSE": 0.1,
        "_MAX_PAUSE": 1.0,
    },
    "mcp_core.sharing._changes": {
        "_MAX_UNHEARD": 1_000,
    },
    "mcp_core.sharing._messages": {
        "_MAX_SIZE": 1024 * 1024,
        "MAX_URIS": 1_000,
        "_MAX_CHARACTERS": 64 * 1024,
    },
    "mcp_core.sharing._state_keys": {
        "_MIN_SIZE": 32,
    },
    "mcp_core.tasks._layout": {
        "_KEPT_EXPIRED": 3600,
    },
    "mcp_core.tasks._leases": {
        "_MOST_OF_LEASE": 0.5,
    },
    "mcp_core.tasks._record": {
        "_ID_SIZE": 16,
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
        "_DIGITS": 9,
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
    "mcp_core.urls._addresses": {
        "MAX_URL": 8192,
    },
    "mcp_core.urls._normal_uri": {
        "_MAX_LENGTH": 8 * 1024,
    },
    "mcp_core.urls._uri_matcher": {
        "_MAX_MEMBERS": 256,
    },
    "mcp_core.urls._url": {
        "_MAX_SHOWN": 120,
    },
}


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [(module, name, value) for module, limits in _LIMITS.items() for name, value in limits.items()],
)
def test_limit_has_its_value(module: str, name: str, value: float) -> None:
    assert getattr(import_module(module), name) == value


# The same of options, by class.
_DEFAULTS: Final[dict[str, dict[str, dict[str, object]]]] = {
    "mcp_core._limits": {
        "Limits": {
            "message": 4 * 1024 * 1024,
            "decoded": 0,
            "id": 256,
            "method": 256,
            "batch": 100,
            "in_flight": 256,
            "waiting": 256,
            "queued": 1024 * 1024,
            "pause": 5.0,
            "tool_calls": Rate(1000, 10_000),
            "uri": 8192,
            "uris": 1024,
            "task_ids": 1024,
            "listens": 64,
            "listing": 48 * 1024 * 1024,
        },
    },
    "mcp_core.runtime.host._options": {
        "HostLimits": {
            "servers": 1000,
            "connecting": 32,
            "calls": 100,
            "catalog": CatalogLimits(),
            "listing": 8 * 1024 * 1024,
        },
    },
    "mcp_core.tasks._record": {
        "TaskLimits": {
            "per_principal": 100,
            "total": 10_000,
            "client_share": 0.25,
            "stored_bytes": 64 * 1024 * 1024,
            "file_bytes": 256 * 1024 * 1024,
            "ttl": 3600.0,
            "max_ttl": 86_400.0,
            "open_requests": 16,
            "requests": 100,
            "result": 4 * 1024 * 1024,
            "responses": 4 * 1024 * 1024,
            "message": 1000,
            "message_interval": 1.0,
            "waiting": 16,
            "lease": 30.0,
            "poll_interval": 0.5,
            "max_poll_interval": 5.0,
        },
    },
    "mcp_core.http.server._options": {
        "HttpLimits": {
            "client_share": 0.25,
            "sessions": 10_000,
            "uninitialized": 1000,
            "initialize": 30.0,
            "idle": 1800.0,
            "streams": 256,
            "events": 256,
            "event_age": 300.0,
            "session_bytes": 4 * 1024 * 1024,
            "all_bytes": 256 * 1024 * 1024,
            "bodies": 64 * 1024 * 1024,
            "body_time": 300.0,
            "queued": 1024 * 1024,
            "unread": 16 * 1024 * 1024,
        },
        "HttpOptions": {
            "reply": "auto",
            "sessions": True,
            "retry": 1.0,
            "comment_interval": 15.0,
            "limits": HttpLimits(),
            "trusted_proxies": None,
            "sse_path": None,
            "subprotocols": ("mcp",),
            "listen": True,
            "get_stream": True,
        },
    },
    "mcp_core.http.client._options": {
        "HttpClientOptions": {
            "headers": {},
            "reconnect_attempts": 5,
            "max_reconnect_delay": 30.0,
            "entropy": None,
            "on_message": None,
            "authorizer": None,
            "allow_cleartext": False,
        },
    },
    "mcp_core.registry.tasks._options": {
        "TaskOptions": {
            "support": "optional",
            "detach": 0.0,
            "ttl": None,
            "rerun": False,
            "meanwhile": None,
        },
    },
    "mcp_core.host.catalog._server": {
        "CatalogLimits": {
            "tools": 1000,
            "prompts": 1000,
            "resources": 10_000,
            "resource_templates": 1000,
            "definition": 256 * 1024,
            "definitions": 2 * 1024 * 1024,
        },
    },
    "mcp_core.adapters._run_options": {
        "HttpRunOptions": {
            "path": "/mcp",
            "sse_path": None,
            "reply": "auto",
            "sessions": True,
            "hosts": (),
            "origins": (),
            "api_key_variables": (),
            "fds": (),
        },
        "RunOptions": {
            "http": None,
            "recording": None,
            "keys_variable": None,
            "reload": False,
            "asyncio": False,
        },
    },
}


@pytest.mark.parametrize(
    ("module", "name", "defaults"),
    [(module, *each) for module, classes in _DEFAULTS.items() for each in classes.items()],
)
def test_options_have_their_defaults_and_go_by_name(
    module: str, name: str, defaults: dict[str, object]
) -> None:
    """A factory is called."""
    cls = getattr(import_module(module), name)
    found = {
        field.name: field.default_factory() if field.default is NODEFAULT else field.default
        for field in fields(cls)
        if not field.required
    }
    assert found == defaults
    parameters = signature(cls).parameters.values()
    assert {each.kind for each in parameters} == {Parameter.KEYWORD_ONLY}


# How many results a function remembers; None if its arguments are the project's own and thus few.
_REMEMBERED: Final[dict[str, dict[str, int | None]]] = {
    "mcp_core.adapters._redis_client": {"_digest": 64},
    "mcp_core.auth._jose": {"require_joserfc": None},
    "mcp_core.contract._documents": {"_texts_of_pattern": 128},
    "mcp_core.host._audit": {"_known": 8},
    "mcp_core.host.config._policy": {"_parse_pattern": 1024},
    "mcp_core.host.config._url_readings": {"read_target": 256},
    "mcp_core.http.server._quotas": {"client_key": 4096},
    "mcp_core.http.wire._forwarded": {"_is_within": 4096, "client_network": 4096},
    "mcp_core.http.wire._media_types": {"_is_json": 128, "_parse_type": 128, "_accepts": 128},
    "mcp_core.protocol.messages._lenient_results": {
        "_exact_reader": None,
        "_fields_of": None,
        "_members_of": None,
    },
    "mcp_core.registry._form": {"_form_of_type": 256},
    "mcp_core.registry.functions._pydantic": {"_has_fields": 256},
    "mcp_core.registry.functions._types": {"_model_type": 256},
    "mcp_core.runtime._typed_results": {"_cached_reader": 256},
    "mcp_core.trace._http_channel": {"_text_pairs": 128, "_text_pair": 128},
    "mcp_core.trace.judge._message": {"_known_of": None},
    "mcp_core.trace.judge._message_judge": {"_hold": None},
    "mcp_core.trace.judge._shapes": {"_revision": None},
    "mcp_core.trace.judge.rows._requirement": {"_span": None},
    "mcp_core.trace.judge.rules._features": {"_compile_remembered": 256},
    "mcp_core.trace.judge.rules._opportunity": {"opportunity_of": None},
    "mcp_core.trace.judge.rules._registry": {"rules_for": None, "rules_for_message": None},
    "mcp_core.trace.judge.rules._shapes": {"_row_of_whole": None},
}


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [(module, *each) for module, functions in _REMEMBERED.items() for each in functions.items()],
)
def test_function_remembers_that_many_results(module: str, name: str, count: int | None) -> None:
    function = getattr(import_module(module), name)
    assert function.cache_parameters()["maxsize"] == count
