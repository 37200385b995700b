"""Recordings of other implementations, played as their server and as their client.

Each conversation is recorded with `mcp-trio call`, and the recording is the server of the official
SDK's client, or the client of the same server again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE: Final = Path(__file__).parent
SDK: Final = (sys.executable, str(HERE / "sdk_server.py"))
MODULES: Final = os.environ.get("MCP_TRIO_NODE_MODULES", "")
FASTMCP: Final = os.environ.get("MCP_TRIO_FASTMCP_PYTHON", "")
SAME: Final = " 0 not: 0 differences, 0 findings\n"
# The official client: it lists the tools and calls one.
SDK_CLIENT: Final = """
import sys
import anyio
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with Client(stdio_client(server)) as client:
        result = await client.call_tool("count", {"to": 3})
        print(result.content[0].text)

anyio.run(main)
"""


def everything() -> tuple[str, ...]:
    script = Path(MODULES) / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    if not MODULES or not script.exists():
        pytest.skip("needs MCP_TRIO_NODE_MODULES with server-everything")
    return ("node", str(script), "stdio")


def fastmcp() -> tuple[str, ...]:
    if not FASTMCP:
        pytest.skip("needs MCP_TRIO_FASTMCP_PYTHON")
    return (FASTMCP, str(HERE / "fastmcp_tasks_server.py"))


def mcp_trio(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mcp_trio", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def record(path: Path, words: Sequence[str], server: Sequence[str]) -> str:
    """Record a call, and return the path of its trace."""
    trace = str(path / "a.mcp.jsonl")
    done = mcp_trio(*words, "--record", trace, "--", *server)
    assert done.returncode == 0, done.stderr
    return trace


@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("call", "count", "to=3"),
        ("call", "--revision", "2025-11-25", "count", "to=3"),
        ("read", "memo://today"),
        ("prompt", "review", "code=x"),
    ],
    ids=" ".join,
)
def test_replay_with_official_server_finds_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    trace = record(tmp_path, words, SDK)
    done = mcp_trio("replay", trace, "--", *SDK)
    assert (done.returncode, done.stdout[-len(SAME) :]) == (0, SAME), done.stdout + done.stderr


@pytest.mark.node
@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("call", "trigger-long-running-operation", "duration=1", "steps=4"),
        ("call", "simulate-research-query", "topic=tea"),
        ("call", "--root", "/", "get-roots-list"),
        ("read", "demo://resource/dynamic/text/1"),  # its text has the time of day
    ],
    ids=" ".join,
)
def test_replay_with_server_everything_finds_nothing(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    server = everything()
    trace = record(tmp_path, words, server)
    done = mcp_trio("replay", trace, "--", *server)
    assert (done.returncode, done.stdout[-len(SAME) :]) == (0, SAME), done.stdout + done.stderr


def test_replay_with_fastmcp_waits_for_its_task(tmp_path: Path) -> None:
    server = fastmcp()
    trace = record(tmp_path, ("call", "add", "a=1", "b=2"), server)
    done = mcp_trio("replay", trace, "--", *server)
    assert (done.returncode, done.stdout[-len(SAME) :]) == (0, SAME), done.stdout + done.stderr


def test_replayed_server_serves_the_official_client(tmp_path: Path) -> None:
    """The client of another implementation gets what ours got, from the trace."""
    trace = record(tmp_path, ("call", "count", "to=3"), SDK)
    script = tmp_path / "client.py"
    script.write_text(SDK_CLIENT)
    done = subprocess.run(
        [sys.executable, str(script), sys.executable, "-m", "mcp_trio", "replay", trace],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
