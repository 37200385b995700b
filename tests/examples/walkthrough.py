"""Play the blocks of a tutorial page in a folder, as a reader pastes them.

1. A Python or TOML block that begins with `# FILE` is that file. `# FILE, at the end`, `# FILE, at
   the top` and `# FILE, instead of NAME` change the file that earlier blocks have made.
2. A `console` block has commands after `$ `, each with what it prints on stdout and stderr. They
   run in a shell, with `mcp-trio`, `python` and `pytest` of the working tree.
3. What follows `(server)$ ` runs in a terminal of its own, until a line `^C` or the end of the
   page. A `console` block without a prompt at its beginning shows what that terminal printed since.
4. Any other Python block is a program, and a `text` block after it is its output.

The port 8000 of a page becomes a free one, and `/home/you/library` the folder. Times and numbers of
descriptors differ from run to run, and are not compared.
"""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.examples.pages import ROOT, Block, blocks, commands

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROMPT: Final = "$ "
SERVER_PROMPT: Final = "(server)$ "
PORT: Final = "8000"
FOLDER: Final = "/home/you/library"
MAX_SECONDS: Final = 20  # of one command, on a busy machine
_FILE: Final = re.compile(
    r"# ([\w-]+\.(?:py|toml))(?:, (at the end|at the top|instead of (\w+)))?\n"
)
# Clock times, durations in the access log, in the warning about blocking, and of pytest; numbers of
# descriptors.
_VARIABLE: Final = re.compile(
    r"\b\d\d:\d\d:\d\d\b|(?:<1|\b\d+) ms\b|\b\d+\.\d\d ?s\b|\bdescriptor \d+"
)


class Output(NamedTuple):
    """The output of a command, and the one that the page shows."""

    place: str
    shown: str
    printed: str

    def check(self) -> None:
        """Raise an AssertionError that names the place if the two differ."""
        assert _VARIABLE.sub("-", self.printed) == _VARIABLE.sub("-", self.shown), (
            f"{self.place} prints:\n{self.printed}"
        )


def write_files(page: str, folder: Path) -> None:
    """Make the files of a page, without running its commands."""
    for block in blocks(page):
        _write(block.text, folder)


def play(page: str, folder: Path) -> Iterator[Output]:
    """Play the blocks of a page, and yield the output of each command.

    `folder` is empty, or holds the files of earlier pages.
    """
    with ExitStack() as stack:
        terminal = _Terminal(folder)
        stack.callback(terminal.stop)
        found = blocks(page)
        for number, block in enumerate(found):
            place = f"{page}:{block.line}"
            following = found[number + 1] if number + 1 < len(found) else Block("", "", 0)
            if _FILE.match(block.text):
                _write(block.text.replace(PORT, terminal.port), folder)
            elif block.language == "python":
                program = folder / "program.py"
                program.write_text(block.text.replace(PORT, terminal.port))
                shown = following.text if following.language == "text" else ""
                yield Output(place, shown, terminal.run("python program.py"))
            elif block.language == "console":
                yield from _play_console(block, place, terminal)


def _play_console(block: Block, place: str, terminal: _Terminal) -> Iterator[Output]:
    if not block.text.startswith((PROMPT, SERVER_PROMPT)):
        yield Output(place, block.text, terminal.read(block.text))
        return
    for words, shown in commands(block.text, PROMPT, SERVER_PROMPT):
        here = f"{place} $ {words}"
        if words.startswith(SERVER_PROMPT):
            yield Output(here, shown, terminal.serve(words.removeprefix(SERVER_PROMPT), shown))
        elif words.startswith(PROMPT + "pip install "):
            assert not shown
            _check_requirements(words.removeprefix(PROMPT + "pip install "))
        else:
            yield Output(here, shown, terminal.run(words.removeprefix(PROMPT)))


class _Terminal:
    """Two terminals of a reader: one for commands, one for a server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder.parent / "server.log"
        self._shown = 0  # bytes of the log that the page has shown
        self._server: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = str(listener.getsockname()[1])
        programs = folder.parent / "bin"
        programs.mkdir()
        for name, module in ("mcp-trio", "-m mcp_trio"), ("python", ""), ("pytest", "-m pytest"):
            path = programs / name
            # Set here: the servers that a client starts inherit a few variables only.
            path.write_text(
                "#!/bin/sh\n"
                f"export PYTHONPATH={shlex.quote(str(ROOT))}\n"
                f'exec {shlex.quote(sys.executable)} {module} "$@"\n'
            )
            path.chmod(0o755)
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "no_proxy": "*",
        }
        self._status = 0

    def run(self, words: str) -> str:
        """Run a command and return what it prints."""
        done = subprocess.run(
            ["sh", "-c", f"(exit {self._status})\n{words.replace(PORT, self.port)}"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=MAX_SECONDS,
            check=False,
        )
        self._status = done.returncode
        return self._as_on_page(done.stdout)

    def serve(self, words: str, shown: str) -> str:
        """Start a server, and return what it prints until it has printed what is shown."""
        self.stop()
        self._shown = 0
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                ["sh", "-c", "exec " + words.replace(PORT, self.port)],
                cwd=self._folder,
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
            self._server.wait(MAX_SECONDS)
            printed += interrupted + self._read_lines(after.count("\n"))
        return printed

    def _read_lines(self, count: int) -> str:
        until = time.monotonic() + MAX_SECONDS
        while True:
            printed = self._log.read_bytes()[self._shown :]
            if printed.count(b"\n") >= count or time.monotonic() > until:
                self._shown += len(printed)
                return self._as_on_page(printed)
            assert self._server is not None
            time.sleep(0.01)

    def _as_on_page(self, printed: bytes) -> str:
        text = (
            printed.decode()
            .replace("\r\n", "\n")
            .replace(self.port, PORT)
            .replace(str(self._folder), FOLDER)
        )
        return text if not text or text.endswith("\n") else text + "\n"

    def stop(self) -> None:
        """Stop the server if one runs."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None


def _write(text: str, folder: Path) -> None:
    """Make or change the file that the first line of a block names. Ignore other blocks."""
    first = _FILE.match(text)
    if first is None:
        return
    path, where, name = folder / first[1], first[2], first[3]
    if path.suffix == ".py":
        compile(text, path.name, "exec")  # not every file of a page is run
    if where is None:
        path.write_text(text)
        return
    part, before = text[first.end() :].lstrip("\n"), path.read_text()
    match where:
        case "at the end":
            path.write_text(f"{before}\n\n{part}")
        case "at the top":
            path.write_text(part + before)
        case _:
            path.write_text(_replace(before, name, part))


def _replace(source: str, name: str, part: str) -> str:
    """Return the source with another definition of one function, class or variable."""
    lines = source.splitlines(keepends=True)
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.name == name:
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            case ast.Assign(targets=[ast.Name(assigned)]) if assigned == name:
                first = node.lineno
            case _:
                continue
        return "".join([*lines[: first - 1], part, *lines[node.end_lineno or first :]])
    raise AssertionError(f"no {name} to replace")


def _check_requirements(words: str) -> None:
    """Check that what a page installs is this project, or is installed for its tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for requirement in shlex.split(words):
        found = re.fullmatch(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement)
        assert found is not None, requirement
        if found[1] in {project["name"], "."}:
            assert set((found[2] or "auth").split(",")) <= set(project["optional-dependencies"])
        else:
            importlib.metadata.version(found[1])
