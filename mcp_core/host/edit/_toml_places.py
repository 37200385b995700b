"""Find where the tables and keys of a TOML text are.

`tomllib` gives values without positions. This scanner reads a text that `tomllib` has accepted, so
it distinguishes only what decides where a statement begins: strings, comments and brackets. Keys
inside inline tables have no position of their own.

Source: TOML 1.0.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["TomlStatement", "find_toml_places", "find_toml_statements"]

# A string on one line. Strings over several lines have no pattern: Python before 3.11.5 matches
# possessive groups of alternatives wrongly (gh-106052), and other groups take memory by length.
_STRING: Final = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"' + r"|'[^'\n]*+'"
# The ends of strings over several lines, by their beginnings. An escape may hide a quote.
_STRING_ENDS: Final = {
    '"""': re.compile(r'\\.|"{3,5}', re.DOTALL),
    "'''": re.compile("'{3,5}"),
}
_PART: Final = rf"(?:[\w-]++|{_STRING})"
_STATEMENT: Final = re.compile(
    rf"[ \t]*+(?P<start>\[?+\[?+)[ \t]*+(?P<key>{_PART}(?:[ \t]*+\.[ \t]*+{_PART})*)",
    re.ASCII | re.DOTALL,
)
_PARTS: Final = re.compile(_PART, re.ASCII | re.DOTALL)
# The rest of a statement: all up to the line feed that no bracket or string contains.
_REST: Final = re.compile(
    rf"(?P<string>\"{{3}}|'{{3}})|{_STRING}|\#[^\n]*+|[^\[\]{{}}\"'\#\n]++|(?P<mark>[\[\]{{}}\n])|.",
    re.DOTALL,
)


class TomlStatement(NamedTuple):
    """A table header or a key with its value.

    Args:
        start: the position of the header or key; before it on its line is only white space.
        end: the position after the line on which the statement ends.
        path: the names from the outermost table to the table or key.
        is_header: whether it is a table's header.
    """

    start: int
    end: int
    path: tuple[str, ...]
    is_header: bool


def find_toml_statements(text: str) -> Iterator[TomlStatement]:
    """Yield the statements of a text in order.

    Args:
        text: a text that `tomllib` can read.
    """
    table: tuple[str, ...] = ()
    position = 0
    while position < len(text):
        match = _STATEMENT.match(text, position)
        if match is None:  # an empty line, or a comment
            position = _end_of_statement(text, position)
            continue
        path = tuple(_read_part(part[0]) for part in _PARTS.finditer(match["key"]))
        position = match.end()
        if match["start"]:
            table = path
            position = _end_of_line(text, position)  # after a header there is at most a comment
        else:
            path = table + path
            position = _end_of_statement(text, position)
        yield TomlStatement(match.start("start"), position, path, bool(match["start"]))


def find_toml_places(text: str) -> dict[tuple[str, ...], int]:
    """Return the position of the first statement of each table and key, by its path.

    Args:
        text: a text that `tomllib` can read.
    """
    places: dict[tuple[str, ...], int] = {}
    for statement in find_toml_statements(text):
        for depth in range(1, len(statement.path) + 1):
            places.setdefault(statement.path[:depth], statement.start)
    return places


def _read_part(part: str) -> str:
    if part[0] not in "\"'":
        return part
    return str(tomllib.loads(f"part = {part}")["part"])


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _end_of_statement(text: str, position: int) -> int:
    """Return the start of the line after the value that begins at `position` or behind it."""
    depth = 0
    while match := _REST.match(text, position):
        position = match.end()
        mark = match["mark"]
        if match["string"] is not None:
            position = _end_of_string(text, position, match["string"])
        elif mark == "\n":
            if depth <= 0:
                return match.end()
        elif mark is not None:
            depth += 1 if mark in "[{" else -1
    return len(text)


def _end_of_string(text: str, position: int, quotes: str) -> int:
    """Return where a string over several lines ends whose text begins at `position`."""
    for match in _STRING_ENDS[quotes].finditer(text, position):
        if match[0].startswith(quotes):
            return match.end()
    return len(text)
