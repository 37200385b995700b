"""`examples/host.py`: the program, and what its servers, its model and its user may do."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio
from tests.examples.pages import EXAMPLES, ROOT
from tests.examples.programs import command, load
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.host import HostTool

MAX_LINES = 60
FORECAST = '{"city":"Oslo","unit":"C","days":[{"sky":"cloudy","high":6.0,"low":0.0}]}'


def run(typed: str) -> str:
    """Run the program with what a user types, and return what it prints."""
    done = subprocess.run(
        command("host.py"),
        input=typed,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def test_host_prints_results_of_both_servers() -> None:
    assert run("y\n") == (
        "mcp__my__plans: a walk in Oslo\n"
        "sky: forecast with {'city': 'Oslo'}? [y/N] "
        f"mcp__sky__forecast: {FORECAST}\n"
        "Coat.\n"
    )


@pytest.mark.process
def test_host_denied_call_is_result_for_model() -> None:
    shown = run("n\n")
    assert "mcp__sky__forecast: forecast of sky was denied: user\n" in shown
    assert shown.endswith("Coat.\n")


def test_host_example_has_few_lines() -> None:
    assert len((EXAMPLES / "host.py").read_text("utf-8").splitlines()) <= MAX_LINES


class UsesTools:
    """A model that uses the same tools in each of its first turns, and then says "done"."""

    def __init__(self, *names: str, turns: int = 1) -> None:
        self.names, self.turns = names, turns
        self.shown: list[str] = []

    def __call__(
        self, messages: Sequence[str], tools: Sequence[HostTool]
    ) -> str | list[tuple[str, dict[str, object]]]:
        self.shown = [tool.name for tool in tools]
        is_over = len(messages) > self.turns * len(self.names)
        return "done" if is_over else [(name, {}) for name in self.names]


server = mcp_trio.Server("terminal")


@server.tool
def clear() -> str:
    """Return what clears a terminal."""
    return "\x1b[2Jdone"


async def answer(model: UsesTools, **servers: Any) -> str:
    async with mcp_trio.Host(servers, approve="all") as host:
        found = await load("host.py").answer(host, model, "?")
    assert isinstance(found, str)
    return found


async def test_host_example_escapes_texts_of_servers(capsys: pytest.CaptureFixture[str]) -> None:
    model = UsesTools("mcp__a__clear", "mcp__b__clear")
    assert await answer(model, a=server, b=server) == "done"
    assert model.shown == ["mcp__a__clear", "mcp__b__clear"]
    assert capsys.readouterr().out == (
        "mcp__a__clear: \\u001b[2Jdone\nmcp__b__clear: \\u001b[2Jdone\n"
    )


async def test_host_example_unknown_tool_is_result_for_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await answer(UsesTools("mcp__a__order_pizza"), a=server) == "done"
    assert "there is no tool mcp__a__order_pizza" in capsys.readouterr().out


async def test_host_example_model_without_end_is_stopped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await answer(UsesTools("mcp__a__clear", turns=100), a=server) == "no answer in 10 turns"
    assert len(capsys.readouterr().out.splitlines()) == 10
