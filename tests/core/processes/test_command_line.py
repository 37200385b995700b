"""Command lines that are one text: their words on POSIX and on Windows."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.processes import split_command_line

POSIX = {
    "python a.py": ["python", "a.py"],
    "python 'my server.py' --name=\"a b\"": ["python", "my server.py", "--name=a b"],
    r"a\ b": ["a b"],
    "$HOME/*": ["$HOME/*"],  # nothing is expanded
    "": [],
}
# The first seven are the examples of Microsoft's documentation, after a program.
WINDOWS = {
    r'x "abc" d e': ["x", "abc", "d", "e"],
    r'x a\\b d"e f"g h': ["x", r"a\\b", "de fg", "h"],
    r"x a\\\"b c d": ["x", r"a\"b", "c", "d"],
    r'x a\\\\"b c" d e': ["x", r"a\\b c", "d", "e"],
    r'x a"b"" c d"': ["x", 'ab" c d'],
    r'x "a\"b" c': ["x", 'a"b', "c"],
    r'x ""': ["x", ""],
    r"C:\tools\node.exe C:\my\server.js": [r"C:\tools\node.exe", r"C:\my\server.js"],
    r'"C:\Program Files\node.exe" a': [r"C:\Program Files\node.exe", "a"],
    r'"C:\dir\" b': ["C:\\dir\\", "b"],  # the program's name has no escapes
    "  x\ty  ": ["x", "y"],
    "x 'a b'": ["x", "'a", "b'"],  # a single quote isn't one
    "": [],
}
WORDS = st.lists(st.text(st.sampled_from("ab \"\\'\t")), max_size=4)


@pytest.mark.parametrize(("text", "words"), POSIX.items())
def test_command_line_on_posix_is_split_as_by_a_shell(text: str, words: list[str]) -> None:
    assert split_command_line(text, windows=False) == words


@pytest.mark.parametrize(("text", "words"), WINDOWS.items())
def test_command_line_on_windows_is_split_as_by_the_runtime(text: str, words: list[str]) -> None:
    assert split_command_line(text, windows=True) == words


@given(WORDS)
def test_words_joined_for_windows_are_split_into_the_same(words: list[str]) -> None:
    words = ["program", *words]
    assert split_command_line(subprocess.list2cmdline(words), windows=True) == words


@pytest.mark.parametrize(
    ("text", "windows", "problem"),
    [
        ("a 'b", False, "a quote has no end"),
        ("a \\", False, "a backslash has no end"),
        ('a "b', True, "a quote has no end"),
    ],
)
def test_command_line_without_end_is_an_error(text: str, windows: bool, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        split_command_line(text, windows=windows)
