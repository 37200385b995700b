"""Sampling with tools, and hooks on changed roots, with a real client on trio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_core.types import SamplingCapability
from tests.core.helpers import STATEFUL, VERSIONS, D, E
from tests.shop import Shop, model

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

transports = pytest.mark.parametrize("transport", ["memory", "http"])


@asynccontextmanager
async def connected(shop: Shop, transport: str, version: str) -> AsyncIterator[Any]:
    roots = ["file:///a"]
    options: Any = {
        "versions": [version],
        "on_sample": model,
        "sampling": SamplingCapability(tools={}),
        "on_roots": lambda: roots,
    }
    async with trio.open_nursery() as nursery:
        target: Any = shop.server
        if transport == "http":
            address = await nursery.start(mcp_trio.serve_http, shop.server)
            target = address.url
        async with mcp_trio.connect(target, **options) as client:
            yield client
        nursery.cancel_scope.cancel()


@transports
@pytest.mark.parametrize("version", [D, E])
async def test_sample_with_tools_runs_each_tool_use_once(transport: str, version: str) -> None:
    shop = Shop()
    async with connected(shop, transport, version) as client:
        result = await client.call_tool("advise")
    assert result.text == "['stock', 'price']: ['3', '450']"
    assert shop.runs == ["oolong", "price of oolong"]


@transports
@pytest.mark.parametrize("version", VERSIONS)
async def test_roots_hook_runs_where_the_revision_has_the_notification(
    transport: str, version: str
) -> None:
    shop = Shop()
    async with connected(shop, transport, version) as client:
        rescanned = trio.Event()
        shop.rescanned = rescanned.set
        client.roots_changed()
        if version in STATEFUL:
            await rescanned.wait()
        known = (await client.call_tool("known_roots")).text
    assert known == ("file:///a" if version in STATEFUL else "none")
    assert shop.runs == (["rescan"] if version in STATEFUL else [])
