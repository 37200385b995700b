"""The cache hints that a server configures."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mcp_core.registry import CacheHint
from mcp_core.types import ListToolsResult


@pytest.mark.parametrize(
    ("cache", "ttl_ms", "scope"),
    [
        (CacheHint(), 0, "private"),
        (CacheHint(300), 300_000, "private"),
        (CacheHint(0.0015, "public"), 2, "public"),
        (CacheHint(ttl=2**53 / 1000 - 1), 2**53 - 1000, "private"),
    ],
)
def test_cache_hint_is_set_on_result(cache: CacheHint, ttl_ms: int, scope: str) -> None:
    result = ListToolsResult(tools=[])
    hinted = cache.apply_to(result)
    assert (hinted.ttl_ms, hinted.cache_scope) == (ttl_ms, scope)
    assert isinstance(hinted.ttl_ms, int)
    assert (result.ttl_ms, result.cache_scope) == (None, None)


def test_cache_hint_of_result_takes_precedence() -> None:
    cache = CacheHint(5, "public")
    assert cache.apply_to(ListToolsResult(tools=[], ttl_ms=0)) == ListToolsResult(
        tools=[], ttl_ms=0, cache_scope="public"
    )
    assert cache.apply_to(ListToolsResult(tools=[], cache_scope="private")) == ListToolsResult(
        tools=[], ttl_ms=5000, cache_scope="private"
    )


@pytest.mark.parametrize("ttl", [-1, -0.001, math.inf, math.nan, 2**53])
def test_cache_hint_invalid_ttl_rejected(ttl: float) -> None:
    with pytest.raises(ValueError, match="ttl is a number of seconds from 0 on"):
        CacheHint(ttl)


@pytest.mark.parametrize("scope", ["", "Public", "shared", None])
def test_cache_hint_invalid_scope_rejected(scope: Any) -> None:
    with pytest.raises(ValueError, match="scope is 'public' or 'private'"):
        CacheHint(1, scope)
