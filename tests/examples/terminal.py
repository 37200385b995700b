"""The terminals of a reader: a shell for commands, and a second one for a server."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.examples.pages import ROOT
from tests.harness.world.waiting import PATIENCE

__all__ = ["PORT", "ReaderTerminal"]

PORT: Final = "8000"
HOME: Final = "/home/you"
PYTHON: Final = f"{HOME}/.venv/bin/python"
MAX_SECONDS_INSTALLED: Final = 200  # of one command that may download packages
# Of any other one: some take seconds of CPU, and a busy machine gives a test a tenth of a core.
MAX_SECONDS: Final = 100
_END: Final = b"\n-- end of the command --\n"
_ID: Final = re.compile(r"(?:(?<=^mcp-session-id: ).*|^mcp-task:1:.*)$", re.MULTILINE)
_STYLE: Final = re.compile(r"\x1b\[[\d;]*m")  # colours, at a pseudo-terminal
_VERSIONED: Final = re.compile(r"(/\.venv/bin/python)\d[\d.]*\b")  # such as python3.11
_ANSWER: Final = re.compile(r"\): (\w+)$", re.MULTILINE)


class ReaderTerminal:
    """A shell for commands, and a second terminal for a server.

    The port 8000 of a page becomes a free one, `/home/you` the parent of the folder, and
    `/home/you/.venv/bin/python` the interpreter. A session id or a reference of a task that a
    page shows becomes this run's.

    Args:
        folder: where the shell begins.
        installed: a page installs the library, so that the working tree must not be used.
    """

    def __init__(self, folder: Path, *, installed: bool = False) -> None:
        self.installed = installed
        self._home = folder.parent
        self._log = self._home / "server.log"
        self._shown = 0  # bytes of the log that the page has shown
        self._server: subprocess.Popen[bytes] | None = None
        self._ids: dict[str, str] = {}  # this run's, by the page's
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = str(listener.getsockname()[1])
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._home),
            "LANG": "C.UTF-8",
        }
        if installed:
            # How pip finds packages on this machine.
            kept = re.compile(r"(?i)pip_|ssl_|\w+_proxy$")
            self._environment |= {n: v for n, v in os.environ.items() if kept.match(n)}
        else:
            programs = _make_programs(self._home / ".local" / "bin")
            self._environment |= {"PATH": f"{programs}:{os.environ['PATH']}", "no_proxy": "*"}
        self._shell = subprocess.Popen(
            ["sh"],
            cwd=folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def directory(self) -> Path:
        """Return the current directory of the shell."""
        return Path(self._run("pwd").decode().removesuffix("\n"))

    def run(self, words: str, shown: str = "") -> str:
        """Run a command and return what it prints.

        Args:
            words: the command.
            shown: what the page shows, with the answers that the reader types.
        """
        for on_page, here in {PORT: self.port, **self._ids}.items():
            words = words.replace(on_page, here)
        answers = _ANSWER.findall(shown)
        text = self._as_on_page(self._answer(words, answers) if answers else self._run(words))
        self._ids.update(zip(_ID.findall(shown), _ID.findall(text), strict=False))
        for on_page, here in self._ids.items():
            text = text.replace(here, on_page)
        return text

    def _run(self, words: str) -> bytes:
        """Run a command in the shell, where the next one finds its directory and exit status."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        end = _END.decode().replace("\n", "\\n")
        # In braces, so that the command reads nothing of what follows.
        line = f"{{ {words}\n}} </dev/null; set -- $?; printf '{end}'; (exit $1)\n"
        self._shell.stdin.write(line.encode())
        self._shell.stdin.flush()
        printed = b""
        until = time.monotonic() + (MAX_SECONDS_INSTALLED if self.installed else MAX_SECONDS)
        while not printed.endswith(_END):
            left = max(0, until - time.monotonic())
            ready, _, _ = select.select([self._shell.stdout], [], [], left)
            chunk = os.read(self._shell.stdout.fileno(), 65_536) if ready else b""
            assert chunk, f"no end of: {words}\n{printed.decode()}"
            printed += chunk
        return printed.removesuffix(_END)

    def _answer(self, words: str, answers: list[str]) -> bytes:
        """Run a command at a pseudo-terminal, and type the answers to its questions."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            ["sh", "-c", words],
            cwd=self.directory(),
            # Paths have another length than on the page: fold no lines.
            env={**self._environment, "TERM": "xterm", "COLUMNS": "500"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            printed = b""
            while True:
                ready, _, _ = select.select([ours], [], [], MAX_SECONDS)
                try:
                    chunk = os.read(ours, 65_536) if ready else b""
                except OSError:  # on Linux: the other end is closed
                    chunk = b""
                if not chunk:
                    break
                printed += chunk
                if printed.endswith(b"): ") and answers:
                    os.write(ours, answers.pop(0).encode() + b"\n")
            os.close(ours)  # ends a command that waits for more answers
            process.wait(PATIENCE)
        return printed

    def serve(self, words: str, shown: str) -> str:
        """Start a server, and return what it prints until it has printed what is shown."""
        self._stop_server()
        self._shown = 0
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                ["sh", "-c", "exec " + words.replace(PORT, self.port)],
                cwd=self.directory(),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self.read(shown)

    def read(self, shown: str) -> str:
        """Return what the server has printed since, as soon as it is as much as is shown.

        A line `^C` in the middle ends the server.
        """
        before, interrupted, after = shown.partition("^C\n")
        printed = self._read_lines(before.count("\n"))
        if interrupted:
            assert self._server is not None
            self._server.send_signal(signal.SIGINT)
            self._server.wait(PATIENCE)
            printed += interrupted + self._read_lines(after.count("\n"))
        return printed

    def _read_lines(self, count: int) -> str:
        until = time.monotonic() + PATIENCE
        while True:
            printed = self._log.read_bytes()[self._shown :]
            if printed.count(b"\n") >= count or time.monotonic() > until:
                self._shown += len(printed)
                return self._as_on_page(printed)
            assert self._server is not None
            time.sleep(0.01)

    def _as_on_page(self, printed: bytes) -> str:
        text = (
            _STYLE.sub("", printed.decode())
            .replace("\r\n", "\n")
            .replace(self.port, PORT)
            .replace(str(self._home), HOME)
            .replace(sys.executable, PYTHON)
        )
        text = _VERSIONED.sub(r"\1", text)
        return text if not text or text.endswith("\n") else text + "\n"

    def stop(self) -> None:
        """Stop the server if one runs, and the shell with what it runs."""
        self._stop_server()
        with self._shell:
            os.killpg(self._shell.pid, signal.SIGKILL)

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None


def _make_programs(folder: Path) -> Path:
    """Write the programs of the working tree into a folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in ("mcp-trio", "-m mcp_trio"), ("python", ""), ("pytest", "-m pytest"):
        path = folder / name
        # Set here: the servers that a client starts inherit a few variables only.
        path.write_text(
            "#!/bin/sh\n"
            f"export PYTHONPATH={shlex.quote(str(ROOT))}\n"
            f'exec {shlex.quote(sys.executable)} {module} "$@"\n'
        )
        path.chmod(0o755)
    return folder
