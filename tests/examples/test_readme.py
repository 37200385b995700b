"""The README: it is short, its code runs, and its figures are the benchmarks'."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.examples.pages import EXAMPLES, code, read
from tests.examples.walkthrough import play

if TYPE_CHECKING:
    from pathlib import Path

README = read("README.md")
SERVER, _ = code("README.md", "python")
SET_UP = code("README.md", "console")[0]
MAX_LINES = 150


def without_blank_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def test_readme_stays_short() -> None:
    assert len(README.splitlines()) <= MAX_LINES


def test_server_of_readme_is_the_example() -> None:
    example = (EXAMPLES / "greeter.py").read_text("utf-8")
    assert without_blank_lines(SERVER) == without_blank_lines(example.partition('"""\n')[2])


def test_readme_prints_what_it_shows(tmp_path: Path) -> None:
    """The client calls the example, and the commands inspect and call it."""
    folder = tmp_path / "library"
    shutil.copytree(EXAMPLES, folder / "examples")
    outputs = list(play("README.md", folder))
    for output in outputs:
        output.check()
    assert len(outputs) == 4


@pytest.mark.parametrize(
    "command", ["pip install . && mcp-trio demo", "pip install '.[test]' && pytest"]
)
def test_set_up_of_readme_is_two_lines(command: str) -> None:
    assert f"$ {command}\n" in SET_UP
