# mypy: ignore-errors
# FastMCP is not in the environment of the type checker.
"""A server of FastMCP with tasks in memory, over stdio.

It needs `fastmcp[tasks]`, and nothing of this repository.
"""

import asyncio
from datetime import timedelta

from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

QUICK = TaskConfig(mode="optional", poll_interval=timedelta(milliseconds=200))

mcp = FastMCP("Lab")
mcp.add_extension(TasksExtension(url="memory://"))


@mcp.tool(task=QUICK)
async def research(topic: str, seconds: float = 0.5) -> str:
    """Read everything about a topic."""
    await asyncio.sleep(seconds)
    return f"All about {topic}"


@mcp.tool(
    task=TaskConfig(mode="required", poll_interval=timedelta(milliseconds=200)),
)
async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers, slowly."""
    await asyncio.sleep(0.2)
    return {"sum": a + b}


@mcp.tool(task=QUICK)
async def fail() -> str:
    """Fail."""
    raise ValueError("the oven is cold")


@mcp.tool(task=QUICK)
async def ask(ctx: Context) -> str | InputRequiredResult:
    """Ask for a name: the tool is run again with the response."""
    responses = ctx.input_responses or {}
    if "name" in responses:
        return f"Hello {responses['name'].content['name']}"
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    params = ElicitRequestFormParams(message="Who?", requested_schema=schema)
    return InputRequiredResult(input_requests={"name": ElicitRequest(params=params)})


@mcp.tool
def plain() -> str:
    """Do nothing special."""
    return "plain"


mcp.run(show_banner=False)
