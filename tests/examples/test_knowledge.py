"""`examples/knowledge.py`: its search, its changes and its errors, on both drivers."""

from __future__ import annotations

from typing import Any

import pytest

import mcp_trio
from tests.examples.programs import load
from tests.harness import either

pytestmark = pytest.mark.usefixtures("each_driver")
every_era = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
URI = "kb://articles/orders"


@pytest.fixture
def server() -> Any:
    return load("knowledge.py").server


@every_era
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"words": "refund order"}, ["Refunds", "Orders"]),
        ({"words": "ORDER"}, ["Refunds", "Orders"]),
        ({"words": "number", "limit": 1}, ["Refunds"]),
        ({"words": "coffee"}, ["No article has any of these words."]),
        ({"words": " "}, None),
        ({"words": "order", "limit": 0}, None),
    ],
    ids=str,
)
async def test_knowledge_example_search_returns_best_links(
    arguments: dict[str, Any], found: list[str] | None, version: str, server: Any
) -> None:
    async with either.connect(server, versions=[version]) as client:
        result = await client.call_tool("search", arguments)
        shown = [getattr(block, "name", None) or block.text for block in result.content]
        assert (None if result.is_error else shown) == found


@every_era
async def test_knowledge_example_revision_reaches_subscriber(version: str, server: Any) -> None:
    async with (
        either.connect(server, versions=[version]) as client,
        client.listen(uris=[URI]) as changes,
    ):
        await client.call_tool("revise", {"id": "orders", "text": "None today."})
        async for change in changes:
            assert change.uri == URI
            break
        read = await client.read_resource(URI)
        assert read.contents[0].text == "# Orders\n\nNone today.\n"


@every_era
async def test_knowledge_example_unknown_article_is_named(version: str, server: Any) -> None:
    """A model gets the ids to choose from; a resource or prompt is an error of the protocol."""
    async with either.connect(server, versions=[version]) as client:
        result = await client.call_tool("revise", {"id": "tea", "text": ""})
        assert (result.is_error, result.text) == (
            True,
            "There is no article 'tea'. There are: refunds, orders, parcels.",
        )
        with pytest.raises(mcp_trio.PeerError):
            await client.read_resource("kb://articles/tea")
        with pytest.raises(mcp_trio.PeerError):
            await client.get_prompt("reply", {"id": "tea", "question": "?"})
