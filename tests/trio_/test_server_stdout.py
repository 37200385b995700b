"""A stdio server that cannot write its stdout says so, and ends with a status. Real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.jsonrpc import line, ping
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

FULL = Path("/dev/full")
PROGRAM = """
import mcp_trio, resource, sys
if "limit" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
mcp_trio.run(mcp_trio.Server("echo"))
print("not reached", file=sys.stderr)
"""
REASON = "cannot write to standard output: "


def serve(stdout: Any, *words: str, command: Sequence[str] = ()) -> tuple[int, str]:
    """Send pings to a server, and return its exit status and its stderr."""
    done = subprocess.run(
        [sys.executable, *(command or ("-c", PROGRAM)), *words],
        input=line(ping()) * 10,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.process
@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_stdout_full_ends_server_with_status_and_reason() -> None:
    with FULL.open("wb") as stdout:
        assert serve(stdout) == (1, f"echo: {REASON}No space left on device\n")


@pytest.mark.process
@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_stdout_full_ends_command_with_status_and_reason(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("import mcp_trio\nserver = mcp_trio.Server('echo')\n")
    with FULL.open("wb") as stdout:
        status, stderr = serve(stdout, command=("-m", "mcp_trio", "run", str(file)))
    assert (status, stderr) == (1, f"echo: {REASON}No space left on device\n")


@pytest.mark.process
def test_stdout_file_over_its_limit_ends_server_with_status_and_reason(tmp_path: Path) -> None:
    with (tmp_path / "stdout").open("wb") as stdout:
        assert serve(stdout, "limit") == (1, f"echo: {REASON}File too large\n")


@pytest.mark.process
def test_stdout_closed_by_the_client_ends_server_in_order() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    status, stderr = serve(writer)
    os.close(writer)
    assert (status, stderr) == (0, "not reached\n")
