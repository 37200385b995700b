"""Task clients of TypeScript with our server, over Streamable HTTP.

The official SDK 1.32 has a task client of 2025-11-25, `client.experimental.tasks`. The package
`@modelcontextprotocol/ext-tasks` has one of both forms, for `@modelcontextprotocol/client` 2. They
check what they receive by the schemas. `ts_tasks.mjs` plays them and reports the results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio import Context, McpError, Server
from tests.harness.jsonrpc import D, E
from tests.interop.official import served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.node
SCRIPT = Path(__file__).with_name("ts_tasks.mjs")
PACKAGES = {"sdk": ("sdk",), "v1": ("client", "ext-tasks"), "v2": ("client", "ext-tasks")}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
RELATED = "io.modelcontextprotocol/related-task"


def make_server() -> Server:
    server = Server("lab")

    @server.tool(task="optional")
    async def research(topic: str, context: Context) -> str:
        """Read everything about a topic."""
        await context.progress(1, 2, f"Reading about {topic}")
        await trio.sleep(0.7)
        return f"All about {topic}"

    @server.tool(task="required")
    async def ask(context: Context) -> str:
        """Ask for a name."""
        answer = await context.elicit("Who?", FORM)
        assert answer.action == "accept"
        return f"Hello {answer.data['name']}"

    @server.tool(task="optional")
    async def fail() -> str:
        """Fail."""
        raise McpError(-32050, "broken")

    @server.tool(task="optional")
    async def forever() -> str:
        """Take an hour."""
        await trio.sleep(3600)
        return ""

    @server.tool
    def plain() -> str:
        """Do nothing special."""
        return "plain"

    return server


@pytest.fixture
def play(node_modules: Path) -> Callable[[str], Awaitable[Any]]:
    """Return a function that lets a client use our server, and returns its report."""

    async def play(which: str) -> Any:
        for package in PACKAGES[which]:
            if not (node_modules / "@modelcontextprotocol" / package).exists():
                pytest.skip(f"needs @modelcontextprotocol/{package} in MCP_TRIO_NODE_MODULES")
        with trio.fail_after(40):
            async with served(make_server()) as server:
                argv = ["node", str(SCRIPT), which, str(node_modules), server.url]
                done = await trio.run_process(
                    argv, capture_stdout=True, capture_stderr=True, check=False
                )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return play


def text(result: Any) -> str:
    (content,) = result["content"]
    assert isinstance(content["text"], str)
    return content["text"]


async def test_typescript_sdk_follows_tasks_of_2025_11_25(
    play: Callable[[str], Awaitable[Any]],
) -> None:
    """Success, a question, a failure and a cancellation, as the client's stream shows them."""
    report = await play("sdk")

    first, *states, last = report["research"]
    assert first["type"] == "taskCreated"
    assert first["task"]["ttl"] == 60_000
    assert {each["type"] for each in states} == {"taskStatus"}
    assert states[0]["task"]["statusMessage"] == "Reading about owls"
    assert states[-1]["task"]["status"] == "completed"
    assert text(last["result"]) == "All about owls"
    task_id = first["task"]["taskId"]
    assert last["result"]["_meta"] == {RELATED: {"taskId": task_id}}

    *_, state, last = report["ask"]
    assert state["task"]["status"] == "input_required"
    assert text(last["result"]) == "Hello Ada"
    (question,) = report["questions"]
    assert question["message"] == "Who?"
    assert question["_meta"] == {RELATED: {"taskId": state["task"]["taskId"]}}

    *_, state, last = report["fail"]
    assert (state["task"]["status"], last["type"]) == ("failed", "error")

    *_, state, last = report["cancelled"]
    assert report["cancel"]["status"] == "cancelled"
    assert (state["task"]["status"], last["type"]) == ("cancelled", "error")
    assert report["again"]["code"] == report["unknown"]["code"] == -32602
    assert report["listed"] == ["completed", "completed", "failed", "cancelled"]


@pytest.mark.parametrize(("which", "version"), [("v1", D), ("v2", E)])
async def test_extension_package_follows_tasks(
    play: Callable[[str], Awaitable[Any]], which: str, version: str
) -> None:
    """One package plays both forms of tasks; only 2026-07-28 asks by `tasks/update`."""
    report = await play(which)
    assert report["version"] == version

    research = report["research"]
    assert (research["kind"], research["status"]) == ("task", "completed")
    assert text(research["result"]) == "All about owls"
    assert research["events"][0] == "working"
    assert research["events"][-2:] == ["completed", "outcome"]

    assert report["fail"]["status"] == "failed"
    assert "broken" in report["fail"]["error"]["message"]
    assert report["cancelled"]["status"] == "cancelled"
    plain = report["plain"]
    assert (plain["kind"], text(plain["result"])) == ("immediate", "plain")

    if version == E:
        ask = report["ask"]
        assert (ask["status"], text(ask["result"])) == ("completed", "Hello Ada")
        assert "input_required" in ask["events"]
        (question,) = report["questions"]
        assert question["delivery"] == "task-update"
        assert question["params"]["message"] == "Who?"
