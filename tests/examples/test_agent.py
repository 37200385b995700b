"""`examples/agent.py`: the program, and what its servers and its model may do wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_core.types import CreateMessageResult, TextContent, ToolUseContent
from tests.examples.pages import ROOT
from tests.examples.programs import command, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.types import SamplingMessage, Tool

TRANSCRIPT = """\
user: Which tea suits the weather in Oslo?
model: uses weather__forecast with {'city': 'Oslo'}
model: uses weather__watch with {'city': 'Oslo', 'hours': 1000}
model: uses shop__show_product with {'sku': 'sencha'}
model: uses advisor__recommend with {'sky': 'cloudy'}
advisor: asks the model
weather__forecast: {"city":"Oslo","unit":"C","days":[{"sky":"cloudy","high":6.0,"low":0.0}]}
weather__watch: failed: tools/call was not over after 1 s in all (max_timeout)
shop__show_product: failed: no product 'sencha'; search_products finds those in the shop
advisor__recommend: Oolong, which is half oxidised.
model: uses shop__order_pizza with {}
shop__order_pizza: failed: there is no tool shop__order_pizza
model: Oolong. The shop has no tea at all, though.
"""


def test_agent_prints_transcript_of_three_servers() -> None:
    done = subprocess.run(
        command("agent.py"),
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", TRANSCRIPT)


class UsesTools:
    """A model that uses the same tools in each of its first turns, and then says "done"."""

    def __init__(self, *names: str, turns: int = 1) -> None:
        self.names, self.turns = names, turns
        self.shown: list[str] = []

    async def respond(
        self, messages: Sequence[SamplingMessage], tools: Sequence[Tool]
    ) -> CreateMessageResult:
        self.shown = [tool.name for tool in tools]
        uses = [ToolUseContent(f"use-{name}", name, {}) for name in self.names]
        over = len(messages) > 2 * self.turns
        content: list[Any] = [TextContent("done")] if over else uses
        return CreateMessageResult(role="assistant", content=content, model="fake")


class Meeting:
    """A server whose tool `meet` ends when two calls of it run, and `wait` never."""

    def __init__(self) -> None:
        self.server = mcp_trio.Server("meeting")
        self.present = 0
        self.complete = trio.Event()
        self.waiting = trio.Event()
        self.cancelled = False
        for tool in self.meet, self.wait, self.clear:
            self.server.add_tool(tool)

    async def meet(self) -> str:
        """Wait for another call."""
        self.present += 1
        if self.present == 2:
            self.complete.set()
        await self.complete.wait()
        return "met"

    async def wait(self) -> None:
        """Wait forever."""
        self.waiting.set()
        try:
            await trio.sleep_forever()
        finally:
            self.cancelled = True

    def clear(self) -> str:
        """Return what clears a terminal."""
        return "\x1b[2Jdone"


async def run_agent(
    model: UsesTools, servers: dict[str, Any], *, call_timeout: float = 60, lose: str = ""
) -> None:
    """Run an agent. It loses the server of the tool `lose` before its first turn."""
    agent = load("agent.py").Agent(model, call_timeout)
    async with trio.open_nursery() as nursery:
        await nursery.start(agent.connect, servers)
        if lose:
            client, _ = agent.tools[lose]
            await client.aclose()
        await agent.answer("?")
        nursery.cancel_scope.cancel()


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the printed lines, without those that announce a use of a tool."""
    return [line for line in capsys.readouterr().out.splitlines() if "model: uses" not in line]


async def test_agent_calls_of_one_turn_run_at_the_same_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = UsesTools("one__meet", "two__meet")
    meeting = Meeting()
    await run_agent(model, {"one": meeting.server, "two": meeting.server})
    assert printed(capsys) == ["user: ?", "one__meet: met", "two__meet: met", "model: done"]
    names = ["clear", "meet", "wait"]
    assert model.shown == [f"{server}__{name}" for server in ("one", "two") for name in names]


async def test_agent_works_without_server_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    model = UsesTools("a__clear")
    gone = [sys.executable, "-c", ""]
    await run_agent(model, {"gone": gone, "a": Meeting().server, "toolless": mcp_trio.Server("b")})
    lines = printed(capsys)
    assert sorted(line[:28] for line in lines[:2]) == [
        "agent: works without gone: t",
        "agent: works without toolles",
    ]
    assert lines[-1] == "model: done"


async def test_agent_server_that_never_responds_delays_start_only(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: object,
) -> None:
    """The server is a stream that is not read, in place of a child that never responds."""
    mute, _end = mcp_trio.memory_pair()
    connect = mcp_trio.connect

    def connect_mute(target: Any, **options: Any) -> Any:
        if target == ["mute"]:
            return mcp_trio.connect_stream(mute, **options)
        return connect(target, **options)

    monkeypatch.setattr(mcp_trio, "connect", connect_mute)
    await run_agent(UsesTools("a__clear"), {"mute": ["mute"], "a": Meeting().server})
    first, *_, last = printed(capsys)
    assert "works without mute" in first
    assert last == "model: done"


async def test_agent_server_lost_is_result_for_model(capsys: pytest.CaptureFixture[str]) -> None:
    await run_agent(UsesTools("a__clear"), {"a": Meeting().server}, lose="a__clear")
    assert printed(capsys)[1:] == ["a__clear: failed: the client was closed", "model: done"]


async def test_agent_call_that_takes_too_long_is_cancelled(
    capsys: pytest.CaptureFixture[str], autojump_clock: object
) -> None:
    meeting = Meeting()
    await run_agent(UsesTools("a__wait"), {"a": meeting.server}, call_timeout=5)
    assert meeting.cancelled
    assert printed(capsys)[1].startswith("a__wait: failed: tools/call was not over after 5 s")


async def test_agent_cancelled_cancels_handlers_of_servers() -> None:
    meeting = Meeting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_agent, UsesTools("a__wait"), {"a": meeting.server})
        await meeting.waiting.wait()
        nursery.cancel_scope.cancel()
    assert meeting.cancelled


async def test_agent_model_without_end_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    await run_agent(UsesTools("a__clear", turns=100), {"a": Meeting().server})
    *results, end = printed(capsys)[1:]
    assert results == ["a__clear: \\u001b[2Jdone"] * 10, "no server may control the terminal"
    assert end == "agent: no answer in 10 turns"
