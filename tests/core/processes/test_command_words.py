"""A command that was written as one word: what to write in its place."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import escape_text
from mcp_core.processes import command_hint, list_form, member_form, start_problem
from mcp_core.processes._command_words import wrong_target
from tests.levels import fewer_examples

# the command, and the list of its words
COMMANDS = [
    ("npx", ""),
    ("", ""),
    ("npx -y server", '["npx", "-y", "server"]'),
    ("sh -c 'a b'", '["sh", "-c", "a b"]'),
    ("it's broken", '["it\'s", "broken"]'),
    (r"C:\py\python.exe server.py", r'["C:\\py\\python.exe", "server.py"]'),
    ("server --api-key CANARY x", '["server", "--api-key", "...", "x"]'),
    ("server --token=CANARY", '["server", "--token=..."]'),
    ("server https://u:CANARY@h/", '["server", "https://u:...@h/"]'),
    ("caf\xe9 \u65e5", '["caf\xe9", "\u65e5"]'),
    ("a \x1b[2J", r'["a", "\u001b[2J"]'),
]


@pytest.mark.parametrize(("command", "words"), COMMANDS)
def test_list_form_has_the_words_without_secrets(command: str, words: str) -> None:
    assert list_form(command) == words
    assert bool(command_hint(command)) == bool(words)
    assert "CANARY" not in member_form(command)


def test_member_form_has_the_members_of_a_configuration() -> None:
    assert member_form("npx -y server") == '"command": "npx", "args": ["-y", "server"]'
    assert member_form("npx") == ""


@fewer_examples(5)
@given(st.text())
def test_forms_of_any_text_are_short_and_printable(command: str) -> None:
    for text in list_form(command), member_form(command), command_hint(command):
        assert len(text) < 1500
        assert escape_text(text) == text


INTERPRETED = "it may not be executed; allow it (chmod +x), or start it through its interpreter"
NO_FILE = "there is no such file; check the path (a relative one counts from the working directory)"
NO_NAME = "no program of that name on PATH; install it, or give its full path"
NO_INTERPRETER = "the file is there, but the interpreter named in its first line is not"


@pytest.mark.parametrize(
    ("program", "code", "options", "cause"),
    [
        # A directory that is missing, or is a file, is named by the error.
        ("cat", errno.ENOENT, {"named": "/d", "cwd": "/d"}, "its working directory /d cannot be"),
        ("cat", errno.ENOTDIR, {"named": "/d", "cwd": "/d"}, "its working directory /d cannot be"),
        ("cat", errno.ENOENT, {"named": "cat", "cwd": "/d"}, NO_NAME),
        ("cat", errno.ENOENT, {}, NO_NAME),
        ("cat", errno.EACCES, {}, INTERPRETED),
        ("cat", errno.ENOEXEC, {}, "a script needs a first line such as #!/usr/bin/env python3"),
        ("cat", errno.ENOEXEC, {"windows": True}, "a script is started through its interpreter"),
        ("cat", errno.EMFILE, {}, os.strerror(errno.EMFILE)),
        ("cat", errno.ENOENT, {"there": True}, NO_INTERPRETER),
        # There the system itself looks through PATH, and not for scripts.
        ("cat", errno.ENOENT, {"there": True, "windows": True}, NO_NAME),
        ("./cat", errno.ENOENT, {}, NO_FILE),
        ("./cat", errno.ENOENT, {"there": True}, NO_INTERPRETER),
        (r"a\cat", errno.ENOENT, {}, NO_NAME),
        (r"a\cat", errno.ENOENT, {"windows": True}, NO_FILE),
        ("cat x", errno.ENOENT, {}, '["cat", "x"]'),
        ("./cat x", errno.ENOENT, {}, '["./cat", "x"]'),
    ],
)
def test_start_problem_names_the_cause_and_the_cure(
    program: str, code: int, options: dict[str, Any], cause: str
) -> None:
    error = OSError(code, os.strerror(code), options.get("named"))
    found = start_problem(
        program,
        error,
        cwd=options.get("cwd"),
        is_there=lambda path: path == program and options.get("there", False),
        windows=options.get("windows", False),
    )
    assert found.startswith(f"cannot start {program}: ")
    assert cause in found


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"a": {"command": "x"}}, "several, as in a configuration file, are a Host"),
        (5, "connect to a URL, to a Server or to a command as a list of words, not to "),
    ],
)
def test_target_of_another_type_is_refused_with_the_cure(target: Any, text: str) -> None:
    error = wrong_target(target)
    assert isinstance(error, TypeError)
    assert text in str(error)
