"""Play the blocks of a page in a folder, as a reader pastes them.

1. A Python or TOML block that begins with `# FILE` is that file. `# FILE, at the end`, `# FILE, at
   the top` and `# FILE, instead of NAME` change the file that earlier blocks have made.
2. A `console` block has commands after `$ `, each with what it prints on stdout and stderr. They
   run in one shell, with `mcp-trio`, `python` and `pytest` of the working tree.
3. What follows `(server)$ ` runs in a terminal of its own, until a line `^C` or the end of the
   page, and so does `mcp-trio run`, which does not end by itself. A `console` block without a
   prompt at its beginning shows what that terminal printed since.
4. If the output has a question that ends with `): `, the word after it is typed.
5. Any other Python block is a program, and a `text` block after it is its output.
6. `pip install` is run only if the page is played with `installed=True`, and its output is not
   compared. The commands of `NOT_RUN` are not run.

`terminal.py` says which words of a page stand for others, and `_VARIABLE` what is not compared.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shlex
import tomllib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.examples.pages import ROOT, Block, blocks, commands, output_after
from tests.examples.terminal import PORT, ReaderTerminal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

PROMPT: Final = "$ "
SERVER_PROMPT: Final = "(server)$ "
NOT_RUN: Final = {
    "pip install . && mcp-trio demo": "test_howto.py installs, and test_demo.py runs the demo",
    "pip install '.[test]' && pytest": "it runs all tests; `.ci/run` does that",
}
_FILE: Final = re.compile(
    r"# ([\w-]+\.(?:py|toml))(?:, (at the end|at the top|instead of (\w+)))?\n"
)
# What differs from run to run: clock times, durations in the access log, in the warning about
# blocking, and of pytest; numbers of descriptors; the header `date`.
_VARIABLE: Final = re.compile(
    r"\b\d\d:\d\d:\d\d\b|(?:<1|\b\d+) ms\b|\b\d+\.\d\d ?s\b|\bdescriptor \d+|^date: .*$",
    re.MULTILINE,
)
# What the command says only if the target is slow to connect.
_WAITING: Final = re.compile(r"^mcp-trio: waiting for .*\(for at most \d+ s\)\n", re.MULTILINE)
# Figures of benchmarks and fuzzing, with the spaces that align them.
FIGURE: Final = re.compile(r" *\b\d[\d,.]*\b")


class Output(NamedTuple):
    """The output of a command, and the one that the page shows."""

    place: str
    shown: str
    printed: str

    def check(self, variable: re.Pattern[str] | None = None) -> None:
        """Raise an AssertionError that names the place if the two differ.

        Args:
            variable: what is not compared on this page, besides `_VARIABLE`.
        """
        printed = _VARIABLE.sub("-", _WAITING.sub("", self.printed))
        shown = _VARIABLE.sub("-", self.shown)
        if variable is not None:
            printed, shown = variable.sub("-", printed), variable.sub("-", shown)
        assert printed == shown, f"{self.place} prints:\n{self.printed}"


def write_files(page: str, folder: Path) -> None:
    """Make the files of a page, without running its commands."""
    for block in blocks(page):
        _write(block.text, folder)


def play(
    page: str, folder: Path, languages: Collection[str] | None = None, *, installed: bool = False
) -> Iterator[Output]:
    """Play the blocks of a page, and yield the output of each command.

    Args:
        page: its path.
        folder: where the commands run; empty, or with the files of earlier pages.
        languages: the languages of the blocks to play; by default all.
        installed: the page installs the library, so that the working tree must not be used.

    Raises:
        AssertionError: there is no way to play a block.
    """
    with ExitStack() as stack:
        terminal = ReaderTerminal(folder, installed=installed)
        stack.callback(terminal.stop)
        found = blocks(page)
        for number, block in enumerate(found):
            if languages is not None and block.language not in languages:
                continue
            place = f"{page}:{block.line}"
            if _FILE.match(block.text):
                _write(block.text.replace(PORT, terminal.port), terminal.directory())
            elif block.language == "python":
                program = terminal.directory() / "program.py"
                program.write_text(block.text.replace(PORT, terminal.port))
                following = output_after(found, number)
                shown = "" if following is None else following.text
                yield Output(place, shown, terminal.run("python program.py"))
            elif block.language == "console":
                yield from _play_console(block, place, terminal)
            else:
                is_output = number > 0 and output_after(found, number - 1) is not None
                assert is_output, f"{place}: {block.language} that no rule plays"


def _play_console(block: Block, place: str, terminal: ReaderTerminal) -> Iterator[Output]:
    if not block.text.startswith((PROMPT, SERVER_PROMPT)):
        yield Output(place, block.text, terminal.read(block.text))
        return
    for line, shown in commands(block.text, PROMPT, SERVER_PROMPT):
        serves = line.startswith((SERVER_PROMPT, f"{PROMPT}mcp-trio run "))
        words = line.removeprefix(SERVER_PROMPT).removeprefix(PROMPT)
        if words.startswith("pip install "):
            assert not shown
            _check_requirements(words.removeprefix("pip install ").partition("&&")[0])
            assert "&&" not in words or words.strip() in NOT_RUN, words
            if terminal.installed:
                printed = terminal.run(words)
                status = terminal.run("echo $?")
                yield Output(f"{place} $ {words}", "0\n", status if status == "0\n" else printed)
        else:
            run = terminal.serve if serves else terminal.run
            yield Output(f"{place} $ {words}", shown, run(words, shown))


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
        found = re.fullmatch(r"(?:\.\./)?([\w.-]+)(?:\[([\w,]+)\])?", requirement)
        assert found is not None, requirement
        if found[1] in {project["name"], "."}:
            assert set((found[2] or "auth").split(",")) <= set(project["optional-dependencies"])
        else:
            importlib.metadata.version(found[1])
