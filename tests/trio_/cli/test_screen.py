"""Output: plain text to pipes, styled and harmless text to terminals."""

from __future__ import annotations

from mcp_trio.cli._screen import replace_controls
from tests.trio_.cli.program import ServerFile, on_a_terminal


def test_clean_replaces_control_characters() -> None:
    assert replace_controls("a\x1b[2Jb\r\nc\td\x9be\u202ef") == "a\u241b[2Jb\nc\td\ufffde\ufffdf"


def test_inspect_terminal_output_is_coloured_and_wrapped(server: ServerFile) -> None:
    target = server("""
        app = mcp_trio.Server("wide", instructions="word " * 30)

        @app.tool
        def evil(a: int) -> str:
            "Is \\x1b[2J bad."
            return "\\x1b[2J"
    """)
    text = on_a_terminal("inspect", *target)
    assert "^[1mwide 0^[0m" in text
    assert "Is \u241b[2J bad." in text
    assert max(len(line) for line in text.splitlines() if "word" in line) <= 60
    assert "\u241b[2J" in on_a_terminal("call", "evil", "a=1", *target)
    assert "^[3" not in on_a_terminal("inspect", *target, NO_COLOR="1")
