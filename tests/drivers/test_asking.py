"""Sampling with tools, and hooks on changed roots, with a real client and server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_core.types import SamplingCapability
from tests.drivers.shop import Shop, model
from tests.harness import either
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    D,
    E,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.usefixtures("each_driver", "waits_for_threads")  # and for sockets
# Servers of HTTP belong to mcp_trio.
transports = pytest.mark.parametrize(
    ("each_driver", "transport"),
    [("trio", "memory"), ("trio", "http"), ("asyncio", "memory")],
    indirect=["each_driver"],
)


@asynccontextmanager
async def connected(shop: Shop, transport: str, version: str) -> AsyncIterator[Any]:
    roots = ["file:///a"]
    options: Any = {
        "versions": [version],
        "on_sample": model,
        "sampling": SamplingCapability(tools={}),
        "on_roots": lambda: roots,
    }
    if transport == "memory":
        async with either.connect(shop.server, **options) as client:
            yield client
        return
    async with trio.open_nursery() as nursery:
        address = await nursery.start(mcp_trio.serve_http, shop.server)
        async with mcp_trio.connect(address.url, **options) as client:
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
        rescanned = either.Event()
        shop.rescanned = rescanned.set
        client.roots_changed()
        if version in STATEFUL:
            await rescanned.wait()
        known = (await client.call_tool("known_roots")).text
    assert known == ("file:///a" if version in STATEFUL else "none")
    assert shop.runs == (["rescan"] if version in STATEFUL else [])
