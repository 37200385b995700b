"""`examples/host.py`: the program, and what its servers, its model and its user may do."""

from __future__ import annotations

import ast
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio
from mcp_core.types import CreateMessageResult, TextContent, ToolUseContent
from tests.examples.pages import EXAMPLES, ROOT
from tests.examples.programs import command, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.types import SamplingMessage
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
        timeout=30,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def test_host_prints_results_of_three_servers() -> None:
    assert run("y\ny\n") == (
        "mcp__diary__plans: a walk in Oslo\n"
        "weather: forecast with {'city': 'Oslo'}? [y/N] "
        f"mcp__weather__forecast: {FORECAST}\n"
        "advisor: recommend with {'sky': 'cloudy'}? [y/N] "
        "mcp__advisor__recommend: Oolong, which is half oxidised.\n"
        "Oolong.\n"
    )


def test_host_denied_call_is_result_for_model() -> None:
    shown = run("n\n\n")
    assert "mcp__weather__forecast: forecast of weather was denied: user\n" in shown
    assert "mcp__advisor__recommend: recommend of advisor was denied: user\n" in shown
    assert shown.endswith("Oolong.\n")


def test_host_example_has_few_lines() -> None:
    """Lines of code, without docstrings, comments and blank lines."""
    tree = ast.parse((EXAMPLES / "host.py").read_text("utf-8"))
    blocks = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, blocks) and ast.get_docstring(node) is not None:
            del node.body[0]
    lines = {
        number
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt | ast.expr) and not isinstance(node, blocks)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines |= {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert len(lines) <= MAX_LINES


class UsesTools:
    """A model that uses the same tools in each of its first turns, and then says "done"."""

    def __init__(self, *names: str, turns: int = 1) -> None:
        self.names, self.turns = names, turns
        self.shown: list[str] = []

    def __call__(
        self, messages: Sequence[SamplingMessage], tools: Sequence[HostTool]
    ) -> CreateMessageResult:
        self.shown = [tool.name for tool in tools]
        uses = [ToolUseContent(f"use-{name}", name, {}) for name in self.names]
        is_over = len(messages) > 2 * self.turns
        content: list[Any] = [TextContent("done")] if is_over else uses
        return CreateMessageResult(role="assistant", content=content, model="fake")


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
