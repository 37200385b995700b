"""Our client and our command with reference servers of the protocol's authors, over stdio.

`mcp-server-time` is an independent program and supports every revision. `server-postgres` is used
without its database: its tools are known, and its list of resources fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_core import ALL, LATEST
from mcp_trio import PeerError, connect_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio import Client

CONVERSION = {"source_timezone": "Asia/Kolkata", "time": "12:00", "target_timezone": "Asia/Tokyo"}

CONNECTION_REFUSED = "the server answered with an error: connect ECONNREFUSED 127.0.0.1:1 (-32603)"


@pytest.fixture
def argv() -> list[str]:
    # Look beside the interpreter first: the environment may not be activated.
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = shutil.which("mcp-server-time", path=places)
    if program is not None:
        return [program, "--local-timezone", "Etc/UTC"]
    pytest.skip("needs the program mcp-server-time, from the package of that name")


@asynccontextmanager
async def opened(argv: list[str], *versions: str) -> AsyncIterator[Client]:
    with trio.fail_after(20):
        async with connect_stdio(argv, versions=versions or ALL, stderr="discard") as client:
            yield client


@pytest.mark.parametrize("version", ALL)
async def test_reference_server_works_in_each_revision(argv: list[str], version: str) -> None:
    """Good calls and bad ones in turn: after each error the server is still usable."""
    async with opened(argv, version) as client:
        assert client.peer.dialect.version == version
        assert client.peer.info is not None
        assert client.peer.info.name == "mcp-time"
        await client.ping()

        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools.keys() == {"get_current_time", "convert_time"}
        assert tools["convert_time"].input_schema["required"] == [*CONVERSION]
        assert (
            "Etc/UTC"
            in tools["get_current_time"].input_schema["properties"]["timezone"]["description"]
        )

        now = json.loads(
            (await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})).text
        )
        assert now["timezone"] == "Asia/Tokyo"
        assert datetime.fromisoformat(now["datetime"]).utcoffset() == timedelta(hours=9)
        converted = json.loads((await client.call_tool("convert_time", CONVERSION)).text)
        assert converted["time_difference"] == "+3.5h"
        assert converted["target"]["datetime"].endswith("T15:30:00+09:00")

        for arguments in {"timezone": "Mars"}, {}, {"timezone": 1}:
            assert (await client.call_tool("get_current_time", arguments)).is_error
        with pytest.raises(PeerError, match="get_tea") as unknown:
            await client.call_tool("get_tea")
        assert unknown.value.code == -32602
        assert not (await client.call_tool("convert_time", CONVERSION)).is_error


async def test_reference_server_newest_revision_is_negotiated(argv: list[str]) -> None:
    async with opened(argv) as client:
        assert client.peer.dialect.version == LATEST
        result = await client.call_tool("convert_time", CONVERSION)
        assert result.structured_content == json.loads(result.text)
        for tool in await client.list_tools():
            assert tool.output_schema is not None
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is True
        assert await client.list_resources() == []
        assert await client.list_prompts() == []


def mcp_trio(*words: str, server: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    argv = [sys.executable, "-m", "mcp_trio", *words, "--", *server]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)


def test_command_with_reference_server_works(argv: list[str]) -> None:
    """Exit status and stdout are what a script relies on, even with errors of the server."""
    page = mcp_trio("inspect", server=argv)
    assert page.stdout.startswith("mcp-time ")
    assert "source_timezone  string, required" in page.stdout
    words = [f"{name}={value}" for name, value in CONVERSION.items()]
    shown = mcp_trio("call", "convert_time", *words, server=argv)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["time_difference"] == "+3.5h"

    failed = mcp_trio("call", "get_current_time", "timezone=Mars", server=argv)
    assert failed.returncode == 1
    assert "No time zone found with key Mars" in failed.stdout
    unknown = mcp_trio("read", "time://now", server=argv)
    assert unknown.returncode == 1
    assert unknown.stdout == ""
    assert "the server answered with an error" in unknown.stderr


@pytest.mark.node
def test_command_with_server_whose_resources_fail_shows_its_tools(node_modules: Path) -> None:
    script = node_modules / "@modelcontextprotocol" / "server-postgres" / "dist" / "index.js"
    server = ["node", str(script), "postgresql://127.0.0.1:1/none"]
    page = mcp_trio("inspect", server=server)
    assert page.returncode == 1, page.stderr
    assert page.stdout.startswith("example-servers/postgres ")
    assert "Tools (1)\n  query\n" in page.stdout
    assert page.stdout.endswith("Resources\n  " + CONNECTION_REFUSED + "\n")
    document = json.loads(mcp_trio("inspect", "--json", server=server).stdout)
    assert [tool["name"] for tool in document["tools"]] == ["query"]
    assert document["errors"] == {"resources": CONNECTION_REFUSED}
