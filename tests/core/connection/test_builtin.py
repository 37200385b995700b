"""The results of requests that a connection answers itself."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core import DIALECTS, Config, Peer
from mcp_core import types as t
from mcp_core.connection._builtin import BUILTIN_RESULTS
from mcp_core.registry import CacheHint
from tests.core.helpers import (
    CLIENT_INFO,
    SERVER_CAPABILITIES,
    SERVER_INFO,
    STATEFUL,
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
