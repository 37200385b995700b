"""The scenarios of the conformance suite, played by scripts against the everything server.

Each is played over memory, and all scenarios of a revision also against one process, as the suite
does it. They show the suite's result where the suite is not installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

import mcp_trio
import tests.conformance.scenarios_input  # noqa: F401 - registers scenarios
from mcp_core import ALL, DIALECTS, PeerError
from mcp_core.types import (
    CreateMessageResult,
    ElicitationCapability,
    SamplingCapability,
    TextContent,
)
from mcp_trio.testing import ScriptedPeer, play_client
from tests.conformance import everything_server
from tests.conformance.process import everything_at
from tests.conformance.scenarios import META, SCENARIOS, TOOLS, D, E
from tests.harness.wire.http_session import HttpSession, served_over_http
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_core import FormSchema
    from mcp_core.types import CreateMessageParams, ElicitParams

# The scenarios leave no state behind.
SERVER: Final = everything_server.everything()


async def play(peer: ScriptedPeer, name: str) -> None:
    """Play a scenario, and check every message of the server."""
    before = len(peer.transcript)
    await SCENARIOS[name, peer.version](peer)
    for direction, line in peer.transcript[before:]:
        if direction == "received" and peer.version == E:
            message = json.loads(line)
            assert "resultType" in message.get("result", {"resultType": "none"})
            assert not ("method" in message and "id" in message), (
                "a stateless server sends no requests"
            )


@pytest.mark.parametrize(("name", "version"), SCENARIOS)
async def test_everything_server_scenario_passes(
    name: str, version: str, autojump_clock: object
) -> None:
    async with play_client(SERVER, version) as peer:
        await play(peer, name)


@pytest.mark.process
@pytest.mark.parametrize("version", [D, E])
async def test_everything_server_all_scenarios_pass_in_one_process(version: str) -> None:
    async with served(version) as peer:
        for name, each in SCENARIOS:
            if each == version:
                await play(peer, name)


@asynccontextmanager
async def served(version: str) -> AsyncIterator[ScriptedPeer]:
    """Run the server in a process, and yield its client."""
    command = [sys.executable, everything_server.__file__, "--stdio"]
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdio is not None
        peer = ScriptedPeer(process.stdio, version)
        await peer.open_as_client()
        yield peer
        await peer.aclose()
        with trio.fail_after(PATIENCE):
            assert await process.wait() == 0
    finally:
        with trio.CancelScope(shield=True):
            process.kill()
            await process.wait()


# The arguments of tools in a successful call; those that are not here need none.
FAILING: Final = {"fail", "failing_job", "test_error_handling"}
ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "json_schema_2020_12_tool": {
        "name": "Ada",
        "contactMethod": "email",
        "email": "ada@example.org",
    },
    "test_elicitation": {"message": "Who are you?"},
    "test_sampling": {"prompt": "Who are you?"},
    "test_x_mcp_header": {"region": "everywhere"},
    "weather": {"city": "Rome"},
    "echo": {"text": "hi"},
    "fail": {"how": "reason"},
    "greet": {"name": "Ada"},
    "slow_compute": {"seconds": 0.1, "label": "pi"},
    "confirm_delete": {"filename": "old.txt"},
    "count": {"to": 3},
    "block": {"to": 3},
    "learn": {"name": "learned"},
    "forget": {"name": "learned"},
    "change": {"what": "tools"},
    "book": {"flight": "KL 1234"},
    "calculate": {"task": "2 + 3"},
    "visit": {"id": "v1"},
    "unlock": {"id": "v2"},
    "locked": {"id": "v2"},
}
WITHOUT_CONTENT: Final = {"change", "forget", "hang", "learn", "log", "unlock"}
FORM_VALUES: Final = {
    "username": "ada",
    "email": "ada@example.org",
    "name": "Ada",
    "ok": True,
    "color": "blue",
    "untitledSingle": "option1",
    "titledSingle": "value1",
    "legacyEnum": "opt1",
    "untitledMulti": ["option1"],
    "titledMulti": ["value2", "value3"],
    "count": 2,
    "dish": "a1",
    "confirm": True,
}


def fill_form(message: str, form: FormSchema) -> dict[str, Any]:
    return {name: FORM_VALUES[name] for name in form.required or ()}


def accept(params: ElicitParams) -> Any:
    return {} if params.mode == "url" else mcp_trio.answer_form(fill_form)(params)


def model(params: CreateMessageParams) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent("Paris"), model="m")


@pytest.mark.parametrize("version", [D, pytest.param(E, marks=pytest.mark.process)])
async def test_everything_server_tools_are_callable_by_own_client(version: str) -> None:
    # In real time: one tool runs in a thread, for which the clock of a test does not wait.
    await call_every_tool(everything_server.everything(), version)


@pytest.mark.process
async def test_everything_server_serves_every_revision_at_one_url(tmp_path: Path) -> None:
    with everything_at(tmp_path / "stderr.txt") as url:
        for version in ALL:
            async with mcp_trio.connect(url, versions=[version]) as client:
                assert (await client.call_tool("test_simple_text")).content
        for version in (D, E):
            await call_every_tool(url, version)


async def call_every_tool(target: mcp_trio.Server | str, version: str) -> None:
    async with mcp_trio.connect(
        target,
        versions=[version],
        on_elicit=accept,
        elicitation=ElicitationCapability(form={}, url={}),
        on_sample=model,
        sampling=SamplingCapability(tools={}),
        on_roots=["file:///home/ada"],
    ) as client:
        tools = [tool.name for tool in await client.list_tools()]
        assert {*tools} >= {"wait"} | WITHOUT_CONTENT | ARGUMENTS.keys() | {*TOOLS}
        with trio.CancelScope() as scope:
            await client.call_tool("wait", progress=lambda *_: scope.cancel())
        assert scope.cancelled_caught
        # `locked` is last: only `unlock` opens it.
        tools.remove("wait")
        with pytest.raises(PeerError, match="The job broke"):
            await client.call_tool("protocol_error_job")
        tools.remove("protocol_error_job")
        if DIALECTS[version].tasks == "none":
            with pytest.raises(PeerError, match="does not have"):
                await client.call_tool("failing_job")
            tools.remove("failing_job")
        for name in sorted(tools, key=lambda name: name == "locked"):
            result = await client.call_tool(name, ARGUMENTS.get(name))
            assert result.is_error is (name in FAILING), result
            assert (result.content == []) is (name in WITHOUT_CONTENT)


@pytest.mark.requirement("CAP-4")
async def test_missing_capability_over_http_has_status_400() -> None:
    """The capabilities in the request count, and the error names what is missing."""
    async with served_over_http(SERVER) as listener:
        client = HttpSession(listener.connect(), E)
        capabilities: dict[str, Any] = {META + "clientCapabilities": {"elicitation": {}}}
        answer = await client.post(client.calling(1, "test_missing_capability", **capabilities))
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"]) == (400, -32021)
    assert error["data"] == {"requiredCapabilities": {"sampling": {}}}


def test_everything_server_without_transport_option_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["everything_server.py"])
    with pytest.raises(SystemExit) as caught:
        everything_server.main()
    shown = capsys.readouterr()
    assert (caught.value.code, shown.out) == (2, "")
    assert "one of the arguments --stdio --http is required" in shown.err
