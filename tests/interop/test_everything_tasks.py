"""Our client follows the tasks of `@modelcontextprotocol/server-everything`, written in TypeScript.

It has tasks of 2025-11-25: `simulate-research-query` runs as a task only, in four stages of a
second each, and may ask in the middle.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio import Grace, TaskCancelled, connect, connect_stdio
from tests.interop.http_servers import Servers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_core.types import ElicitParams
    from mcp_trio import Client

pytestmark = pytest.mark.node
TOOL = "simulate-research-query"
both_transports = pytest.mark.parametrize("transport", ["stdio", "streamableHttp"])


@asynccontextmanager
async def opened(node_modules: Path, transport: str, **options: Any) -> AsyncIterator[Client]:
    package = node_modules / "@modelcontextprotocol" / "server-everything"
    script = str(package / "dist" / "index.js")
    with trio.fail_after(40):
        if transport == "stdio":
            # The server does not exit while a task runs.
            grace = Grace(stdin=0.1)
            argv = ["node", script, "stdio"]
            async with connect_stdio(argv, stderr="discard", grace=grace, **options) as client:
                yield client
            return
        servers = Servers((script, transport))
        try:
            async with connect(servers.url(script, transport), **options) as client:
                yield client
        finally:
            servers.close()


@pytest.mark.requirement("TSK-5", "TSK-13")
@both_transports
async def test_everything_task_is_followed_by_call(node_modules: Path, transport: str) -> None:
    """Without `list_tools` before: the server's refusal says that the tool is a task."""
    async with opened(node_modules, transport) as client:
        result = await client.call_tool(TOOL, {"topic": "owls"})
        assert not result.is_error
        assert "Research Report: owls" in result.text


@pytest.mark.requirement("TSK-16", "TSK-17")
@both_transports
async def test_everything_task_asks_in_the_middle(node_modules: Path, transport: str) -> None:
    """The server overrides our TTL, and its question names the task it belongs to."""
    asked: list[ElicitParams] = []

    def elicit(params: ElicitParams) -> dict[str, Any]:
        asked.append(params)
        return {"interpretation": "snake"}

    async with opened(node_modules, transport, on_elicit=elicit) as client:
        task = await client.start_tool(TOOL, {"topic": "python", "ambiguous": True}, ttl=60)
        assert task.ttl == 300  # the server has the last word
        statuses = [state.status async for state in task.states()]
        assert list(dict.fromkeys(statuses)) == ["working", "input_required", "completed"]
        assert "Research Report: python (snake)" in (await task.result()).text
        (params,) = asked
        assert params.meta is not None
        assert params.meta.related_task is not None
        assert params.meta.related_task.task_id == task.id


@both_transports
async def test_everything_task_is_cancelled_with_its_call(
    node_modules: Path, transport: str
) -> None:
    async with opened(node_modules, transport) as client:
        await client.list_tools()
        with trio.move_on_after(1.5):
            await client.call_tool(TOOL, {"topic": "owls"})
        task = await client.start_tool(TOOL, {"topic": "bats"})
        await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
        await task.cancel()
        listed = await client.list_tasks()
        assert [each.status for each in listed] == ["cancelled", "cancelled"]
