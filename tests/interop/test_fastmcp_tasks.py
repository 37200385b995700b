"""Our client follows the tasks of FastMCP (`fastmcp-tasks`), which has the extension of 2026-07-28.

`MCP_TRIO_FASTMCP_PYTHON` names the Python of an environment with `fastmcp[tasks]`.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio import Grace, PeerError, TaskCancelled, connect_stdio
from tests.harness.jsonrpc import E

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio import Client

SERVER = Path(__file__).with_name("fastmcp_tasks_server.py")
PYTHON = "MCP_TRIO_FASTMCP_PYTHON"


@asynccontextmanager
async def opened(sent: list[str] | None = None, **options: Any) -> AsyncIterator[Client]:
    """Connect to a new server. `sent` gets each line that the client sends."""
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"needs {PYTHON}, naming the Python of an environment with fastmcp[tasks]")

    def trace(direction: str, line: bytes) -> None:
        if sent is not None and direction == "sent":
            sent.append(line.decode())

    with trio.fail_after(60):
        async with connect_stdio(
            [python, str(SERVER)],
            versions=[E],
            stderr="discard",
            grace=Grace(stdin=0.1),
            trace=trace,
            **options,
        ) as client:
            yield client


@pytest.mark.requirement("TX-3", "TX-24")
async def test_fastmcp_task_is_followed_by_call() -> None:
    async with opened() as client:
        assert (await client.call_tool("plain")).text == "plain"
        result = await client.call_tool("research", {"topic": "owls"})
        assert result.text == "All about owls"
        total = await client.call_tool("add", {"a": 1, "b": 2})
        assert total.structured_content == {"sum": 3}
        failed = await client.call_tool("fail")
        assert failed.is_error
        assert "the oven is cold" in failed.text


@pytest.mark.requirement("TX-13", "TX-15")
async def test_fastmcp_task_asks_by_its_state() -> None:
    sent: list[str] = []
    asked: list[str] = []

    def elicit(params: Any) -> dict[str, str]:
        asked.append(params.message)
        return {"name": "Ada"}

    async with opened(sent, on_elicit=elicit) as client:
        assert (await client.call_tool("ask")).text == "Hello Ada"
    assert asked == ["Who?"]
    (update,) = [line for line in sent if '"tasks/update"' in line]
    assert ':{"action":"accept","content":{"name":"Ada"}}' in update


async def test_fastmcp_task_has_states_and_is_cancelled() -> None:
    async with opened() as client:
        task = await client.start_tool("research", {"topic": "owls"})
        assert task.ttl == 900
        assert [state.status async for state in task.states()] == ["working", "completed"]
        assert (await task.result()).text == "All about owls"
        assert await client.task(task.reference) is task

        task = await client.start_tool("research", {"topic": "bats", "seconds": 30})
        await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()


async def test_fastmcp_task_unknown_raises() -> None:
    async with opened() as client:
        reference = (await client.start_tool("research", {"topic": "owls"})).reference
    async with opened() as client:  # the tasks of the other server are gone with it
        with pytest.raises(PeerError) as caught:
            await client.task(reference)
        assert caught.value.code == -32602


async def test_fastmcp_client_without_tasks_is_answered_at_once() -> None:
    async with opened(tasks=False) as client:
        assert (await client.call_tool("research", {"topic": "owls"})).text == "All about owls"
        with pytest.raises(PeerError) as caught:
            await client.call_tool("add", {"a": 1, "b": 2})
        assert caught.value.code in (-32003, -32021)
