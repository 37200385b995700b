"""Read Markdown pages, and run the code in them.

1. All Python blocks of a page share one namespace, as if they were one program.
2. A `text` block that follows a Python block is what the block prints.
3. Coroutine functions named `test_*` are run too, on trio. One that takes `autojump_clock` gets a
   mock clock.
"""

from __future__ import annotations

import inspect
import io
import re
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio
from trio.testing import MockClock

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples"
PAGES: Final = [
    "README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]

TUTORIAL: Final = [page for page in PAGES if page.startswith("docs/tutorial/")]
HOWTO: Final = [page for page in PAGES if page.startswith("docs/howto/")]
QUICK_START: Final = "docs/howto/quick-start.md"  # played as a whole, with an installed library

_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced code block, and the number of its first line."""

    language: str
    text: str
    line: int


def read(page: str) -> str:
    """Return the text of a page, whose path is relative to the repository."""
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> list[Block]:
    """Return all code blocks of a page."""
    text = read(page)
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 2)
        for found in _BLOCK.finditer(text)
    ]


def output_after(found: list[Block], number: int) -> Block | None:
    """Return the `text` block that follows the Python block `found[number]`: what it prints."""
    following = found[number + 1 : number + 2]
    if found[number].language == "python" and following and following[0].language == "text":
        return following[0]
    return None


def code(page: str, language: str) -> list[str]:
    """Return the texts of the code blocks in one language."""
    return [block.text for block in blocks(page) if block.language == language]


def commands(block: str, *prompts: str) -> list[tuple[str, str]]:
    """Return each command of a transcript, which may have several lines, and its output.

    A command begins with its prompt, one of `prompts`.
    """
    found: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith(prompts):
            found.append((line, ""))
            continue
        words, shown = found.pop()
        found.append((words + line, "") if is_incomplete(words) else (words, shown + line))
    return found


def is_incomplete(words: str) -> bool:
    """Return True if the command goes on: it ends with a backslash, or inside quotes."""
    if words.endswith("\\\n"):
        return True
    try:
        shlex.split(words)
    except ValueError:
        return True
    return False


WITH_CODE: Final = [
    page
    for page in PAGES
    if page not in ("README.md", *TUTORIAL, QUICK_START) and code(page, "python")
]
WITH_COMMANDS: Final = [page for page in HOWTO if page != QUICK_START and code(page, "console")]


def run(page: str) -> dict[str, Any]:
    """Run the Python blocks of a page. Return their namespace.

    `examples/` must be on `sys.path`. An example that the page imports is loaded anew.

    Raises:
        AssertionError: a block prints something else than the page shows, or a test in it fails.
    """
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)
    names: dict[str, Any] = {"__name__": Path(page).stem}
    found = blocks(page)
    for number, block in enumerate(found):
        if block.language != "python":
            continue
        printed = io.StringIO()
        known = set(names)
        # Blank lines in front, so that a traceback has the line numbers of the page.
        program = compile("\n" * (block.line - 1) + block.text, page, "exec", dont_inherit=True)
        with redirect_stdout(printed):
            exec(program, names)
            for name in [name for name in names if name not in known]:
                if name.startswith("test_"):
                    _run_test(names[name])
        following = output_after(found, number)
        if following is not None:
            assert printed.getvalue() == following.text, f"{page}:{block.line}"
        else:
            assert printed.getvalue() == "", (
                f"{page}:{block.line} prints what the page does not show"
            )
    return names


def _run_test(function: Any) -> None:
    if "autojump_clock" in inspect.signature(function).parameters:
        clock = MockClock(autojump_threshold=0)
        trio.run(function, clock, clock=clock)
    else:
        trio.run(function)
