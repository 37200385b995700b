"""The results of requests that a connection answers itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core import DIALECTS, Config, LocalProtocolError, Peer
from mcp_core import types as t
from mcp_core.protocol.connection._builtin import BUILTIN_RESULTS, log_notification
from mcp_core.registry import CacheHint
from tests.harness.jsonrpc import (
    CLIENT_INFO,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    STATEFUL,
    VERSIONS,
    A,
    D,
    E,
    server_config,
)

PEER = Peer(DIALECTS[D], t.ClientCapabilities(), CLIENT_INFO)
CONFIG = server_config(instructions="be kind")
DISCOVERED = t.DiscoverResult(
    supported_versions=[E, *reversed(STATEFUL)],
    capabilities=SERVER_CAPABILITIES,
    instructions="be kind",
)


def initialized(version: str) -> t.InitializeResult:
    return t.InitializeResult(
        protocol_version=version,
        capabilities=SERVER_CAPABILITIES,
        server_info=SERVER_INFO,
        instructions="be kind",
    )


@pytest.mark.requirement("LIFE-3", "VER-3", "VER-5", "PING-1", "RPC-34")
@pytest.mark.parametrize(
    ("method", "params", "peer", "result", "remembered"),
    [
        ("initialize", None, PEER, initialized(D), PEER),
        (
            "initialize",
            None,
            Peer(DIALECTS[A], t.ClientCapabilities()),
            initialized(A),
            Peer(DIALECTS[A], t.ClientCapabilities()),
        ),
        ("ping", None, PEER, t.EmptyResult(), None),
        ("server/discover", None, PEER, DISCOVERED, None),
        (
            "logging/setLevel",
            t.SetLevelParams(level="error"),
            PEER,
            t.EmptyResult(),
            Peer(DIALECTS[D], t.ClientCapabilities(), CLIENT_INFO, "error"),
        ),
    ],
)
def test_builtin_result_depends_on_config_and_peer(
    method: str, params: Any, peer: Peer, result: t.Result, remembered: Peer | None
) -> None:
    assert BUILTIN_RESULTS[method](CONFIG, params, peer) == (result, remembered)


def test_builtin_discover_result_has_cache_hint() -> None:
    config = Config(
        SERVER_INFO, SERVER_CAPABILITIES, instructions="be kind", cache=CacheHint(60, "public")
    )
    hinted = replace(DISCOVERED, ttl_ms=60_000, cache_scope="public")
    assert BUILTIN_RESULTS["server/discover"](config, None, PEER) == (hinted, None)
    assert BUILTIN_RESULTS["initialize"](config, None, PEER) == (initialized(D), PEER)


def test_builtin_results_are_exactly_four() -> None:
    assert set(BUILTIN_RESULTS) == {"initialize", "ping", "server/discover", "logging/setLevel"}


# -- Log notifications -----------------------------------------------------------------------------


def sent_log(peer: Peer | None, level: Any, data: Any = "x", **options: Any) -> Any:
    note = log_notification(peer, level, data, options.get("logger"), options.get("related"))
    return None if note is None else json.loads(note.data)


def peer(version: str, level: Any = None) -> Peer:
    return Peer(DIALECTS[version], t.ClientCapabilities(), log_level=level)


@pytest.mark.requirement("LOG-2")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("wanted", t.LOGGING_LEVELS)
def test_log_notification_at_or_above_level_sent(version: str, wanted: Any) -> None:
    sent = [level for level in t.LOGGING_LEVELS if sent_log(peer(version, wanted), level)]
    assert sent == list(t.LOGGING_LEVELS[t.LOGGING_LEVELS.index(wanted) :])


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("version", STATEFUL)
def test_log_notification_default_level_is_info(version: str) -> None:
    sent = [level for level in t.LOGGING_LEVELS if sent_log(peer(version), level)]
    assert sent == ["info", "notice", "warning", "error", "critical", "alert", "emergency"]


@pytest.mark.requirement("LOG-7")
def test_log_notification_without_level_not_sent_in_newest_revision() -> None:
    assert [level for level in t.LOGGING_LEVELS if sent_log(peer(E), level)] == []
    assert sent_log(None, "emergency") is None


@pytest.mark.requirement("LOG-2")
def test_log_notification_has_all_members() -> None:
    assert sent_log(peer(D), "error", {"a": [1]}, logger="db") == {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "error", "data": {"a": [1]}, "logger": "db"},
    }
    note = log_notification(peer(A), "error", "x", None, 7)
    assert note is not None
    assert (note.related, note.method) == (7, "notifications/message")


def test_log_notification_not_json_raises() -> None:
    with pytest.raises(LocalProtocolError, match="no log level 'loud'"):
        sent_log(peer(D), "loud")
    with pytest.raises(TypeError):
        sent_log(peer(D), "error", object())
