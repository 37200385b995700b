"""`ClientTask.states` against a server in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import CallTimeout, McpError, PeerError, ToolError
from mcp_core.registry import Context, Server, Tasks
from mcp_core.runtime import TaskReference
from mcp_core.runtime.tasks import MemoryTaskStore
from mcp_core.types import ElicitResult
from tests.harness import either

if TYPE_CHECKING:
    from mcp_core.tasks import TaskKey, TaskRecord
    from mcp_core.types import ElicitParams

pytestmark = pytest.mark.usefixtures("each_driver")

D = "2025-11-25"
E = "2026-07-28"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def make_server() -> Server:
    server = Server("lab")

    @server.tool(task="required")
    async def ask(end: str, context: Context) -> str:
        """Ask for a name, and end as it was told."""
        answer = await context.elicit("Who?", FORM)
        await either.sleep(5)
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

    async with either.connect(
        make_server(), versions=[revision], on_elicit=on_elicit, trace=trace
    ) as c:
        task = await c.start_tool("ask", {"end": end})
        with either.fail_after(30):
            statuses = [state.status async for state in task.states()]
            try:
                result: Any = await task.result()
            except PeerError as exc:
                result = exc
    return statuses, result, len(sent)


@pytest.mark.parametrize("revision", [D, E])
async def test_states_of_task_that_asks_end_with_its_status(revision: str) -> None:
    statuses, result, sent = await follow("well", revision)
    assert statuses[:2] == ["working", "input_required"]
    assert statuses[-1] == "completed"
    assert result.content[0].text == "accept {'name': 'Ada'}"
    assert sent < 30


@pytest.mark.parametrize(("revision", "status"), [(D, "failed"), (E, "completed")])
async def test_states_of_task_whose_tool_fails_end_with_its_status(
    revision: str, status: str
) -> None:
    statuses, result, sent = await follow("tool", revision)
    assert statuses[-1] == status
    assert result.is_error
    assert sent < 30


@pytest.mark.parametrize("revision", [D, E])
async def test_states_of_task_that_fails_end_before_the_error_is_raised(revision: str) -> None:
    statuses, result, sent = await follow("error", revision)
    assert statuses[-1] == "failed"
    assert isinstance(result, PeerError)
    assert result.code == -32050
    assert sent < 30


class SlowStore(MemoryTaskStore):
    """A store that takes very long while `slow` is True."""

    immediate = False
    slow = True

    async def get(self, key: TaskKey) -> TaskRecord | None:
        if self.slow:
            await either.sleep(10_000)
        return await super().get(key)


@pytest.mark.parametrize("timeout", [None, 2.0, 100.0])
async def test_timeout_of_call_applies_to_polls_of_its_task(timeout: float | None) -> None:
    """The store never answers in time; a known task keeps its timeout, a new one gets its own."""
    store = SlowStore()
    server = Server("lab", tasks=Tasks(store=store))

    @server.tool(task="optional")
    async def wait() -> None:
        """Wait."""
        await either.sleep_forever()

    options: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    async with either.connect(server, versions=[E]) as client:
        task = await client.start_tool("wait", **options)
        for call in task.refresh, task.cancel, task.result:
            begin = either.current_time()
            with pytest.raises(CallTimeout):
                await call()
            assert either.current_time() - begin == pytest.approx(timeout or 60.0, abs=1.0)
        begin = either.current_time()
        with pytest.raises(CallTimeout):
            await client.task(task.reference, timeout=7.0)
        # The client still has the task, whose timeout stays.
        assert either.current_time() - begin == pytest.approx(timeout or 60.0, abs=1.0)
        reference = TaskReference.parse(task.reference)
        other = str(TaskReference("0" * 32, reference.tool, E, reference.created))
        begin = either.current_time()
        with pytest.raises(CallTimeout):
            await client.task(other, timeout=7.0)
        assert either.current_time() - begin == pytest.approx(7.0, abs=1.0)
        store.slow = False
