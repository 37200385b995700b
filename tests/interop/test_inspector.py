"""The command of the MCP Inspector (`@modelcontextprotocol/inspector` 2) with our servers.

It is what many authors try a server with first. Each run connects anew and calls one method.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trio

from tests.interop import cafe_server
from tests.interop.official import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.node

PACKAGE = "@modelcontextprotocol/inspector"


class Outcome(NamedTuple):
    """The exit status of a run, its result, and its error."""

    status: int
    result: Any
    error: Any


class Inspector:
    """The command, with its target and era. `home` is where it keeps what it stores."""

    def __init__(self, modules: Path, home: Path, target: list[str], era: str) -> None:
        package = modules / PACKAGE
        if not package.exists():
            pytest.skip(f"needs {PACKAGE} in MCP_TRIO_NODE_MODULES")
        launcher = str(package / "clients" / "launcher" / "build" / "index.js")
        self._argv = ["node", launcher, "--cli", "--protocol-era", era, "--quiet"]
        self._target = target
        self._environment = {**os.environ, "HOME": str(home)}

    async def run(self, method: str, *options: str) -> Outcome:
        argv = [*self._argv, "--method", method, *options, *self._target]
        with trio.fail_after(60):
            done = await trio.run_process(
                argv, capture_stdout=True, capture_stderr=True, check=False, env=self._environment
            )
        error = json.loads(done.stderr)["error"] if done.stderr else None
        return Outcome(done.returncode, json.loads(done.stdout or b"null"), error)


@asynccontextmanager
async def target_of(transport: str) -> AsyncIterator[list[str]]:
    if transport in ("trio", "asyncio"):
        path = f"PYTHONPATH={os.environ['PYTHONPATH']}"  # it passes little of its environment on
        yield ["-e", path, sys.executable, cafe_server.__file__, transport]
        return
    async with served(cafe_server.make_server(), transport) as server:
        kind = "sse" if transport == "http+sse" else "http"
        yield ["--transport", kind, "--server-url", server.url]
        methods = {each.rpc_method for each in server.exchanges}
        assert ("initialize" in methods) != ("server/discover" in methods)


@pytest.mark.parametrize(
    ("transport", "era"),
    [
        ("asyncio", "legacy"),
        ("http", "modern"),
        *[
            pytest.param(*row, marks=pytest.mark.slow)
            for row in (
                ("trio", "legacy"),
                ("trio", "auto"),
                ("asyncio", "auto"),
                ("http", "legacy"),
                ("http-json", "legacy"),
                ("http+sse", "legacy"),
            )
        ],
    ],
)
async def test_inspector_uses_our_server(
    node_modules: Path, tmp_path: Path, transport: str, era: str
) -> None:
    """It shows the URIs as they are declared, and takes them in another spelling."""
    async with target_of(transport) as target:
        inspector = Inspector(node_modules, tmp_path, target, era)
        listed = await inspector.run("resources/list")
        assert listed.status == 0
        assert [each["uri"] for each in listed.result["resources"]] == cafe_server.URIS
        read = await inspector.run("resources/read", "--uri", "note://caf%C3%A9")
        assert read.result["contents"][0]["text"] == "at note://café"
        called = await inspector.run("tools/call", "--tool-name", "count")
        assert called.result["content"] == [{"type": "text", "text": "3"}]
        assert (read.status, called.status) == (0, 0)


@pytest.mark.slow
async def test_inspector_shows_our_errors(node_modules: Path, tmp_path: Path) -> None:
    """A tool that fails, an unknown resource, and a question that the client cannot show."""
    async with target_of("trio") as target:
        inspector = Inspector(node_modules, tmp_path, target, "auto")
        failed = await inspector.run("tools/call", "--tool-name", "fail")
        assert failed.result["content"][0]["text"] == "the oven is cold"
        missing = await inspector.run("resources/read", "--uri", "note://none")
        assert "not found" in missing.error["message"]
        asked = await inspector.run("tools/call", "--tool-name", "order")
        assert "this needs a client that declares" in asked.error["message"]
        for each in failed, missing, asked:
            assert each.status != 0
        filled = await inspector.run("resources/read", "--uri", "note://café/may/list")
        assert filled.result["contents"][0]["text"] == "Notes of may."
        options = ("--prompt-name", "greet", "--prompt-args", "name=Ada")
        prompt = await inspector.run("prompts/get", *options)
        assert prompt.result["messages"][0]["content"]["text"] == "Say hello to Ada."
