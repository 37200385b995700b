"""Sampling with tools, and hooks on changed roots, with a real client on asyncio."""

from __future__ import annotations

import asyncio

import pytest

from mcp_asyncio_shim import connect
from mcp_core.types import SamplingCapability
from tests.asyncio_shim.loop import run
from tests.core.helpers import STATEFUL, VERSIONS, D, E
from tests.shop import Shop, model


@pytest.mark.parametrize("version", [D, E])
def test_sample_with_tools_runs_each_tool_use_once(version: str) -> None:
    shop = Shop()

    async def main() -> None:
        async with connect(
            shop.server,
            versions=[version],
            on_sample=model,
            sampling=SamplingCapability(tools={}),
        ) as client:
            result = await client.call_tool("advise")
            assert result.text == "['stock', 'price']: ['3', '450']"

    run(main())
    assert shop.runs == ["oolong", "price of oolong"]


@pytest.mark.parametrize("version", VERSIONS)
def test_roots_hook_runs_where_the_revision_has_the_notification(version: str) -> None:
    shop = Shop()

    async def main() -> str:
        async with connect(
            shop.server, versions=[version], on_roots=lambda: ["file:///a"]
        ) as client:
            rescanned = asyncio.Event()
            shop.rescanned = rescanned.set
            client.roots_changed()
            if version in STATEFUL:
                await rescanned.wait()
            return (await client.call_tool("known_roots")).text

    known = run(main())
    assert known == ("file:///a" if version in STATEFUL else "none")
    assert shop.runs == (["rescan"] if version in STATEFUL else [])
