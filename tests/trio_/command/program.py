"""The command as its users meet it: a process with arguments, output and an exit status; and servers for it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


ROOT = Path(__file__).parents[3]
GREETER = ("--", sys.executable, str(ROOT / "examples" / "greeter.py"))
TEAHOUSE = ("--", sys.executable, "-m", "mcp_trio.examples.teahouse")
COMMAND = (sys.executable, "-m", "mcp_trio")
DEAD = ("--", sys.executable, "-S", "-c", "import sys; sys.exit('the disk is full')")
SILENT = ("--", sys.executable, "-S", "-c", "import sys; sys.stdin.read()")


def run(
    *words: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def output_of(*words: str, status: int = 0) -> str:
    result = run(*words)
    assert result.returncode == status, result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    return result.stdout


def on_a_terminal(*words: str, **env: str) -> str:
    """All that is shown, with ESC written as ^."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", **env},
    ):
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65_536):
                shown += chunk
        except OSError:  # the last one has closed it, as Linux says it
            pass
    os.close(ours)
    return shown.decode().replace("\x1b", "^").replace("\r\n", "\n")


class ServerFile:
    """A server file that a test writes, and the words that make it a target."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, source: str) -> tuple[str, ...]:
        self.path.write_text("import mcp_trio\n" + textwrap.dedent(source))
        return ("--", *COMMAND, "run", str(self.path))
