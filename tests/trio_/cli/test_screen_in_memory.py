"""A screen that is a file, a closed pipe or nothing, and lines that describe content."""

from __future__ import annotations

import io
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import types as t
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import (
    Screen,
    content_text,
    counted,
    describe_blob,
    encode_document,
    encode_json_line,
    split_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def written_by(write: Callable[[Screen], object], encoding: str = "utf-8") -> str:
    """Return what `write` writes to a file."""
    data = io.BytesIO()
    file = io.TextIOWrapper(data, encoding=encoding)
    write(Screen(file))
    file.flush()
    return data.getvalue().decode()


@pytest.mark.parametrize(("number", "text"), [(0, "0 tools"), (1, "1 tool"), (2, "2 tools")])
def test_number_has_its_noun(number: int, text: str) -> None:
    assert counted(number, "tool") == text


def test_lines_of_a_text_end_with_either_line_break_and_have_no_tabs() -> None:
    assert split_lines("a\r\nb\n\tc\n") == ["a", "b", "        c", ""]


@pytest.mark.parametrize(("base64", "size"), [("", 0), ("AA==", 1), ("AAA=", 2), ("AAAA", 3)])
def test_bytes_are_described_by_their_size(base64: str, size: int) -> None:
    assert describe_blob("a\n", "b\n", base64, "x") == f"[a\\n, b\\n, {size} bytes; x]"
    assert describe_blob("a", None, base64, "x") == f"[a, {size} bytes; x]"


UNKNOWN = t.UnknownContent(type="x\ny", data={"a": 1})


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (t.TextContent(text="a\nb"), "a\nb"),
        (t.ResourceLink(name="n", uri="a:b"), "[a:b: n]"),
        (t.EmbeddedResource(resource=t.ResourceContents(uri="a:b", text="")), ""),
        (t.EmbeddedResource(resource=t.ResourceContents(uri="a:b", text="c")), "c"),
        (
            t.EmbeddedResource(resource=t.ResourceContents(uri="a:b", mime_type="x", blob="AAAA")),
            "[a:b, x, 3 bytes; cure]",
        ),
        (t.AudioContent(data="AAAA", mime_type="x/y"), "[audio, x/y, 3 bytes; cure]"),
        (UNKNOWN, "[content of the unknown type x\\ny; --json shows it]"),
    ],
)
def test_content_is_its_text_or_a_line_that_describes_it(block: Any, text: str) -> None:
    assert content_text(block, "cure") == text


def test_document_is_indented_and_a_json_line_is_not() -> None:
    assert encode_document({"a": [1]}) == b'{\n  "a": [\n    1\n  ]\n}\n'
    assert encode_json_line({"a": [1]}) == b'{"a":[1]}\n'
    assert encode_json_line({"a": "\x1b"}) == b'{"a":"\\u001b"}\n'


def test_document_has_unknown_content_as_the_server_sent_it() -> None:
    assert encode_document(UNKNOWN) == b'{\n  "type": "x\\ny",\n  "a": 1\n}\n'
    with pytest.raises(TypeError, match="object is not JSON"):
        encode_document(object())


@pytest.mark.parametrize(("text", "written"), [("a", "a\n"), ("a\n", "a\n"), ("", "\n")])
def test_result_in_a_file_ends_with_one_line_break(text: str, written: str) -> None:
    assert written_by(lambda screen: screen.write_text(text)) == written


def test_locale_without_a_letter_gets_another_one() -> None:
    assert written_by(lambda screen: screen.write_line("a → é"), "ascii") == "a ? ?\n"
    assert written_by(lambda screen: screen.write_json("é"), "ascii") == '"é"\n'


def test_message_in_a_file_has_its_further_lines_quoted() -> None:
    assert written_by(lambda screen: screen.write_message("a", "[x]")) == "[x]a\n"
    assert written_by(lambda screen: screen.write_message("a\nb\nc")) == "a\n  | b\n  | c\n"
    assert written_by(lambda screen: screen.write_quoted("b\nc", "")) == "| b\n| c\n"


def test_screen_that_is_closed_discards_everything() -> None:
    screen = Screen(None)
    screen.write_line("a")
    screen.write_text("a")
    screen.write_bytes(b"a")
    assert (screen.terminal, screen.reader_gone, screen.width(81)) == (False, False, 81)


def test_reader_that_has_gone_is_no_error() -> None:
    """A reader such as `head` may have enough. The command goes on without output."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as file:
        screen = Screen(file)
        assert not screen.reader_gone
        os.close(reader)
        for _ in range(2):
            screen.write_line("a")
            assert screen.reader_gone


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
def test_full_disk_is_an_error_that_names_the_file() -> None:
    """It comes once: the file is discarded, or its end would fail again."""
    with open("/dev/full", "w", encoding="utf-8") as file:  # noqa: PTH123
        screen = Screen(file)
        with pytest.raises(CliError, match="/dev/full cannot be written: No space left"):
            screen.write_line("a")
        screen.write_line("b")
        assert screen.reader_gone


def test_prompt_hides_the_progress_bar_until_its_end() -> None:
    """The bar is stopped when a prompt begins, and at the end of its block, not after it."""
    stops: list[bool] = []
    bar: Any = SimpleNamespace(stop=lambda: stops.append(True))

    def write(screen: Screen) -> None:
        with screen.progress_bar(bar):
            assert not screen.prompting
            screen.begin_prompt("a: ")
            assert (screen.prompting, len(stops)) == (True, 1)
            screen.end_prompt(ended=True)
            assert not screen.prompting
        assert len(stops) == 2
        screen.begin_prompt("b: ")
        screen.end_prompt(ended=False)
        assert len(stops) == 2

    assert written_by(write) == "a: b: \n"


def test_only_text_from_right_to_left_is_isolated() -> None:
    def write(screen: Screen) -> None:
        screen.begin_prompt("a ", "é ", "שלום", "مرحبا: ")
        screen.end_prompt(ended=True)

    assert written_by(write) == "a é \u2068שלום\u2069\u2068مرحبا: \u2069"
