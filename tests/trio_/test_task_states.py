"""`ClientTask.states` on trio, against a server in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import McpError, PeerError, ToolError
from mcp_core.registry import Context, Server
from mcp_core.types import ElicitResult
from mcp_trio import connect

if TYPE_CHECKING:
    from mcp_core.types import ElicitParams

D = "2025-11-25"
E = "2026-07-28"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def make_server() -> Server:
    server = Server("lab")

    @server.tool(task="required")
    async def ask(end: str, context: Context) -> str:
        """Ask for a name, and end as it was told."""
        answer = await context.elicit("Who?", FORM)
        await trio.sleep(5)
        if end == "tool":
            raise ToolError("The oven is cold.")
        if end == "error":
            raise McpError(-32050, "broken")
        return f"{answer.action} {getattr(answer, 'data', None)}"

    return server


def on_elicit(_: ElicitParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


async def follow(end: str, revision: str) -> tuple[list[Any], Any, int]:
    """Return the statuses, the result or the error, and how many requests were sent."""
    sent: list[bytes] = []

    def trace(direction: str, line: bytes) -> None:
        if direction == "sent" and b'"method"' in line:
            sent.append(line)

    async with connect(make_server(), versions=[revision], on_elicit=on_elicit, trace=trace) as c:
        task = await c.start_tool("ask", {"end": end})
        with trio.fail_after(30):
            statuses = [state.status async for state in task.states()]
            try:
                result: Any = await task.result()
            except PeerError as exc:
                result = exc
    return statuses, result, len(sent)


@pytest.mark.parametrize("revision", [D, E])
async def test_states_of_task_that_asks_end_with_its_status(
    autojump_clock: trio.testing.MockClock, revision: str
) -> None:
    statuses, result, sent = await follow("well", revision)
    assert statuses[:2] == ["working", "input_required"]
    assert statuses[-1] == "completed"
    assert result.content[0].text == "accept {'name': 'Ada'}"
    assert sent < 30


@pytest.mark.parametrize(("revision", "status"), [(D, "failed"), (E, "completed")])
async def test_states_of_task_whose_tool_fails_end_with_its_status(
    autojump_clock: trio.testing.MockClock, revision: str, status: str
) -> None:
    statuses, result, sent = await follow("tool", revision)
    assert statuses[-1] == status
    assert result.is_error
    assert sent < 30


@pytest.mark.parametrize("revision", [D, E])
async def test_states_of_task_that_fails_end_before_the_error_is_raised(
    autojump_clock: trio.testing.MockClock, revision: str
) -> None:
    statuses, result, sent = await follow("error", revision)
    assert statuses[-1] == "failed"
    assert isinstance(result, PeerError)
    assert result.code == -32050
    assert sent < 30
