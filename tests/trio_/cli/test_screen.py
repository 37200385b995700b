"""Output: plain text to pipes, styled and harmless text to terminals."""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import types as t
from mcp_trio.cli._screen import Screen, content_text, encode_document, encode_json_line
from tests.harness.world.command import ServerFile, on_a_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = "a\x1b[2J\x9b31m\x7f\u202eb\u2066\u200b\U000e0041\n\r\u2028é"
ESCAPED = "a\\u001b[2J\\u009b31m\\u007f\\u202eb\\u2066\\u200b\\udb40\\udc41\\n\\r\\u2028é"


def to_pipe(write: Callable[[Screen], object]) -> str:
    """Return what `write` writes to a screen that is no terminal."""
    written = io.BytesIO()
    file = io.TextIOWrapper(written, encoding="utf-8")
    write(Screen(file))
    return written.getvalue().decode()


def to_terminal(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[Screen], object], columns: int = 60
) -> list[str]:
    """Return the lines that `write` writes to a pseudo-terminal, without their styles."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    shown = b""
    with os.fdopen(ours, "rb", 0):
        with os.fdopen(theirs, "w", encoding="utf-8") as file:
            write(Screen(file))
        with suppress(OSError):  # on Linux: the other end is closed
            while chunk := os.read(ours, 65_536):
                shown += chunk
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n").splitlines()


# -- JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encode", [encode_document, encode_json_line])
def test_json_hidden_characters_are_escaped_and_keep_their_value(
    encode: Callable[[Any], bytes],
) -> None:
    value = {HOSTILE: [HOSTILE, {"text": HOSTILE}]}
    document = encode(value).decode()
    assert json.loads(document) == value
    assert document.count(ESCAPED) == 3
    assert document.replace("\n", "").isprintable()


HOSTILE_SERVER = """
    app = mcp_trio.Server("hostile")

    @app.resource("tea://menu")
    @app.prompt
    @app.tool
    def show() -> str:
        "Shows \\x9b31m\\u202e\\u2066."
        return "red\\x9b31m\\x7f\\u202e\\u2028\\U000e0041"
"""


@pytest.mark.parametrize(
    "words", [("inspect",), ("call", "show"), ("read", "tea://menu"), ("prompt", "show")]
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_terminal_gets_no_control_of_a_server(
    server: ServerFile, words: tuple[str, ...], options: tuple[str, ...]
) -> None:
    shown = on_a_terminal(*words, *options, *server(HOSTILE_SERVER), NO_COLOR="1", TERM="dumb")
    assert "\\u009b31m" in shown
    assert "\\u202e" in shown
    for hidden in "\x9b\x7f\u202e\u2066\u2028\U000e0041":
        assert hidden not in shown


# -- Lines -------------------------------------------------------------------------------------


def test_line_is_one_line_with_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(screen: Screen) -> None:
        screen.write_line("x: ", HOSTILE, ("\tz", "bold"))

    assert to_pipe(write) == f"x: {ESCAPED}\\tz\n"
    assert to_terminal(monkeypatch, write, 200) == [f"x: {ESCAPED}\\tz"]


def test_message_of_several_lines_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(screen: Screen) -> None:
        screen.write_message("mcp-trio: no\r\nmcp-trio: go\n\tthere", ("[tag]", "bold"))

    lines = ["[tag]mcp-trio: no", "  | mcp-trio: go", "  |         there"]
    assert to_pipe(write).splitlines() == lines
    assert to_terminal(monkeypatch, write) == lines


FOLDED = [
    # the terminal would continue each of these lines in the first column
    ("word " * 4 + " " * 60 + "mcp-trio: log in", ["word word word word", "  mcp-trio: log in"]),
    ("  | " + "ab " * 12, ["  | ab ab ab ab ab", "  |   ab ab ab ab ab", "  |   ab ab"]),
    ('← {"a":"' + "x" * 30 + '"}', ['← {"a":"xxxxxxxxxxxx', "  xxxxxxxxxxxxxxxxxx", '  "}']),
    ("中" * 12, ["中" * 10, "  中中"]),
    ("a\xa0" * 12, ["a\xa0" * 10, "  a\xa0a"]),
    ("to https://a.example/" + "y" * 30 + " x", ["to", "  https://a.example/" + "y" * 30, "  x"]),
    ("x" * 20, ["x" * 20]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "lines"), FOLDED)
def test_line_on_terminal_is_folded_with_hanging_indent(
    monkeypatch: pytest.MonkeyPatch, text: str, lines: list[str]
) -> None:
    shown = to_terminal(monkeypatch, lambda screen: screen.write_line(text), 20)
    assert [line.rstrip() for line in shown] == [line.rstrip() for line in lines]


def test_line_of_many_megabytes_is_folded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.text import Text

    from mcp_trio.cli._folding import fold

    for text in "ab " * 30_000, "x" * 90_000, "中" * 50_000:
        assert fold(Text(text), 60).plain.count("\n") > 1000


def test_prompt_is_folded_and_repeated_below_other_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(screen: Screen) -> None:
        screen.begin_prompt("  text [", "d" * 20, "]: ")
        screen.write_line("[info] news")
        screen.end_prompt(ended=False)

    prompt = ["  text [dddddddddddd", "    dddddddd]: "]
    assert to_terminal(monkeypatch, write, 20) == [*prompt, "[info] news", *prompt]


def test_result_below_prompt_begins_in_first_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(screen: Screen) -> None:
        screen.begin_prompt("  text: ")
        screen.write_text("y" * 30)
        screen.end_prompt(ended=False)

    assert to_terminal(monkeypatch, write, 20) == ["  text: ", "y" * 30, "  text: "]


def test_text_from_right_to_left_is_isolated_on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(screen: Screen) -> None:
        screen.write_line("1  ", "שלום 1", ": ", "100")

    assert to_terminal(monkeypatch, write) == ["1  \u2068שלום 1\u2069: 100"]
    assert to_pipe(write) == "1  שלום 1: 100\n"


# -- Results -----------------------------------------------------------------------------------


def test_result_goes_to_pipe_unchanged() -> None:
    assert to_pipe(lambda screen: screen.write_text(HOSTILE)) == HOSTILE + "\n"


def test_result_on_terminal_keeps_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = to_terminal(monkeypatch, lambda screen: screen.write_text("a\r\nb" * 20 + "\rc\n"))
    assert shown == ["a", *["ba"] * 19, "b\\rc"]


@pytest.mark.parametrize("name", ["mcp-trio: ", "MCP-Trio: ", "mcp\u2011trio: "])
def test_result_with_name_of_command_is_quoted_on_terminal(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = f"done\n{name}log in at https://evil.example/\n"
    shown = to_terminal(monkeypatch, lambda screen: screen.write_text(text), 200)
    assert shown == ["| done", f"| {name}log in at https://evil.example/"]


BLOCKS = [
    (t.ResourceLink(name="n", uri="a:b\nc", title="d\ne"), "[a:b\\nc: d\\ne]"),
    (t.ImageContent(data="AAAA", mime_type="x\ny"), "[image, x\\ny, 3 bytes; --json shows them]"),
    (
        t.EmbeddedResource(resource=t.ResourceContents(uri="a:\nb", blob="AAAA")),
        "[a:\\nb, 3 bytes; --json shows them]",
    ),
]


@pytest.mark.parametrize(("block", "line"), BLOCKS)
def test_content_described_in_one_line_has_no_line_feeds(block: Any, line: str) -> None:
    assert content_text(block) == line


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
    assert "Is \\u001b[2J bad." in text
    assert max(len(line) for line in text.splitlines() if "word" in line) <= 60
    assert "\\u001b[2J" in on_a_terminal("call", "evil", "a=1", *target)
    assert "^[3" not in on_a_terminal("inspect", *target, NO_COLOR="1")
