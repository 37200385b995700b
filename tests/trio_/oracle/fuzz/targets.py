"""Targets that are bad, as programs, and the command `mcp-trio fuzz` run against them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[4]
BROKEN = (sys.executable, str(ROOT / "tests" / "fuzz_targets" / "broken_server.py"))
LONGEST = 100.0  # seconds for one run

# A server of one revision, in a few lines. `{before}` runs at its start, `{on_message}` for each
# message, which is `message`.
SERVER = """
import json, os, signal, sys, time

def send(id, **members):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, **members}) + "\\n")
    sys.stdout.flush()

count = 0
{before}
for line in sys.stdin.buffer:
    count += 1
    try:
        message = json.loads(line.decode())
        if not isinstance(message, dict):
            raise ValueError
    except ValueError:
        send(None, error={"code": -32700, "message": "parse error"})
        continue
    id, method = message.get("id"), message.get("method")
    {on_message}
    is_id = isinstance(id, (int, str)) and not isinstance(id, bool)
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        if "result" not in message and "error" not in message:
            send(id if is_id else None, error={"code": -32600, "message": "invalid request"})
    elif "id" in message and not is_id:
        send(None, error={"code": -32600, "message": "invalid id"})
    elif "id" not in message:
        pass
    elif not isinstance(message.get("params", {}), dict):
        send(id, error={"code": -32602, "message": "invalid params"})
    elif method == "initialize":
        send(id, result={"protocolVersion": "2025-11-25", "capabilities": {},
                         "serverInfo": {"name": "small", "version": "1"}})
    elif method == "ping":
        send(id, result={})
    else:
        send(id, error={"code": -32601, "message": "method not found"})
"""


def small_server(before: str = "", on_message: str = "pass") -> tuple[str, ...]:
    """Return the command of a small server that does something else, too."""
    code = SERVER.replace("{before}", before).replace("{on_message}", on_message)
    return (sys.executable, "-S", "-c", code)


class FuzzRun(NamedTuple):
    """A run of the command: its exit status, what it has printed, and its report."""

    status: int
    out: str
    err: str
    report: dict[str, Any]
    folder: Path

    @property
    def rows(self) -> list[str]:
        """The rows of the findings that are no advice."""
        return [each["row"] for each in self.report["findings"] if each["verdict"] == "fail"]


def fuzz(folder: Path, *words: str) -> FuzzRun:
    """Run `mcp-trio fuzz` with `words`, and its findings in `folder`."""
    done = subprocess.run(
        [sys.executable, "-m", "mcp_trio", "fuzz", "--output", str(folder / "found"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
        cwd=folder,
    )
    report = folder / "found" / "report.json"
    found = json.loads(report.read_text()) if report.exists() else {"findings": [], "notes": []}
    return FuzzRun(done.returncode, done.stdout, done.stderr, found, folder / "found")


def fuzz_command(folder: Path, command: tuple[str, ...], *words: str) -> FuzzRun:
    """Fuzz a command with seed 1."""
    return fuzz(folder, "--seed", "1", *words, "--", *command)
