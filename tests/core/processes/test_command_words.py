"""A command that was written as one word: what to write in its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import escape_text
from mcp_core.processes import command_hint, list_form, member_form
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
