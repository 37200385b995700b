"""Hidden characters become visible, and JSON keeps its value."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import escape_text
from mcp_core._text import hidden_characters, shorten_text
from mcp_core.drivers import ByteEscaper

ESCAPED = [
    # a text, and what is shown of it
    ("plain \\n ~ é 中 \U0001f600", "plain \\n ~ é 中 \U0001f600"),
    ("a\r\nb\tc", "a\\r\\nb\\tc"),
    ("\x00\x1b[2J\x7f", "\\u0000\\u001b[2J\\u007f"),
    ("\x9b31m\x85", "\\u009b31m\\u0085"),
    ("\u202eevil\u202c \u2066\u2069\u200f\u061c", None),
    ("pay\u200bpal\u200d\ufeff\xad", "pay\\u200bpal\\u200d\\ufeff\\u00ad"),
    ("\u2028\u2029", "\\u2028\\u2029"),
    ("\ud800", "\\ud800"),
    ("\U000e0041", "\\udb40\\udc41"),
    ("\u3164\u115f\uffa0\u2800", "\\u3164\\u115f\\uffa0\u2800"),
    ("a\ufe01b\U000e0101", "a\\ufe01b\\udb40\\udd01"),
]


@pytest.mark.parametrize(("text", "shown"), ESCAPED)
def test_escape_text_hidden_characters_become_json_escapes(text: str, shown: str | None) -> None:
    found = escape_text(text)
    assert found == shown or shown is None
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in found)
    # Every escape is one that JSON has.
    assert json.loads(f'"{found}"') == text.replace("\\n ~", "\n ~")


@given(st.text())
def test_escape_text_of_json_keeps_its_value(text: str) -> None:
    document = json.dumps({text: [text]}, ensure_ascii=False, indent=1)
    assert json.loads(escape_text(document, "\n")) == {text: [text]}


def test_escape_text_keeps_requested_characters() -> None:
    assert escape_text("a\n\tb\r", "\n\t") == "a\n\tb\\r"


JOINED = [
    ("می\u200cخواهم", True),  # Persian
    ("\U0001f469\u200d\U0001f4bb \u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3", True),  # emoji
    ("pay\u200dpal", False),
    ("é\u200d", False),
    ("\u200dé", False),
    ("é\u200c\u200cé", False),
    ("a\ufe0f", False),
    ("\u2764\ufe0f\ufe0f", False),
    ("\U0001f3f4\U000e0067", False),  # tags can carry text that only a model reads
    ("é\u202eé", False),
]


@pytest.mark.parametrize(("text", "kept"), JOINED)
def test_escape_text_joiners_are_kept_inside_visible_words(text: str, kept: bool) -> None:
    assert (escape_text(text, joiners=True) == text) is kept
    assert escape_text(text) != text


@given(st.text(), st.booleans())
def test_hidden_characters_are_those_that_escape_text_replaces(text: str, joiners: bool) -> None:
    found = hidden_characters(text, "\n", joiners=joiners)
    escaped = escape_text(text, "\n", joiners=joiners)
    assert bool(found) == (escaped != text)
    assert "\n" not in found


def test_shorten_text_names_the_full_length() -> None:
    assert shorten_text("abc", 3) == "abc"
    assert shorten_text("abcd", 3) == "abc… (4 characters)"


CHUNKS = [
    ([b"a\r", b"\nb\r", b"c\r\n"], b"a\nb\\rc\n"),
    ([b"\xc3", b"\xa9\xff\t"], "é\ufffd\t".encode()),
    ([b"\xe2\x80", b"\xae\x1b[31m"], b"\\u202e\\u001b[31m"),
    ([b"\xc2", b"\x9b"], b"\\u009b"),
    ([b"\xc3"], "\ufffd".encode()),
    (["\u06cc\u200c\u062e".encode()], "\u06cc\u200c\u062e".encode()),  # a joiner in a word
]


@pytest.mark.parametrize(("chunks", "shown"), CHUNKS)
def test_byte_escaper_joins_characters_across_chunks(chunks: list[bytes], shown: bytes) -> None:
    escaper = ByteEscaper()
    assert b"".join(map(escaper.feed, chunks)) + escaper.feed(b"", final=True) == shown
