"""Read a file of environment variables, the `envFile` of VS Code and Cursor.

1. A line is `NAME=value` or `NAME: value`, perhaps after `export`. Nothing is expanded: `$` is an
   ordinary character.
2. Where VS Code and the npm package dotenv agree, so does this parser. One line is read as in VS
   Code. A quoted value over several lines is read as in dotenv: VS Code would read half of it.
3. Both skip a line that they cannot read. Here it is an error: the server would start without a
   variable that the user believes is set.

Sources: VS Code, `src/vs/base/common/envfile.ts`; dotenv, "Parsing rules".
"""

from __future__ import annotations

import re
from typing import Final

from ._problems import ConfigPlace, ConfigProblem, InvalidConfig
from ._tree import decode_file

__all__ = ["MAX_ENV_FILE_SIZE", "parse_env_file"]

# Bytes. Such a file has a few KiB; Linux gives a program 128 KiB for each variable.
MAX_ENV_FILE_SIZE: Final = 1024 * 1024

_ASSIGNMENT: Final = re.compile(
    r"(?:export[ \t]+)?(?P<name>[^\s=:]++)[ \t]*[=:][ \t]*(?P<value>.*)", re.DOTALL
)
_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)  # dotenv
_LINE_END: Final = re.compile(r"\r\n?")
_QUOTES: Final = "\"'`"
# For each kind of quote: the value up to the next quote without a backslash before it.
_UP_TO_QUOTE: Final = {
    quote: re.compile(rf"(?P<value>[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+){quote}")
    for quote in _QUOTES
}
_COMMENT_OR_NOTHING: Final = re.compile(r"\s*(?:#.*)?")
# One piece of the text before a comment. `#` inside quotes doesn't begin a comment. A quote without
# an end takes the rest of the line.
_PIECE: Final = re.compile(
    "|".join(
        [
            f"[^#{_QUOTES}]+",
            *(f"{quote}{pattern.pattern}" for quote, pattern in _UP_TO_QUOTE.items()),
            f"[{_QUOTES}].*",
        ]
    ).replace("?P<value>", "?:")
)


def parse_env_file(data: bytes, *, file: str) -> dict[str, str]:
    """Return a file's variables, by name. If one is there twice, the last value counts.

    Args:
        data: the file's content, in UTF-8.
        file: its path, for places.

    A value ends at a `#` outside quotes, and loses the white space around it. Quotes around it are
    removed: double, single or back quotes. In double quotes `\\n` and `\\r` are line ends; other
    backslashes stay. A value that begins with a quote may go on over several lines.

    Raises:
        InvalidConfig: the file is larger than 1 MiB or isn't UTF-8, a line has no variable, a name
            has other characters than letters, digits and `_.-`, a value has a NUL character, or
            its quote has no end. The text has the line, and never a value.
    """
    if len(data) > MAX_ENV_FILE_SIZE:
        raise _error(file, 1, f"the file is larger than {MAX_ENV_FILE_SIZE >> 20} MiB")
    text = _LINE_END.sub("\n", decode_file(data, file).removeprefix("\ufeff"))
    lines = text.split("\n")
    variables: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number].lstrip()
        number += 1
        if not line or line.startswith("#"):
            continue
        match = _ASSIGNMENT.fullmatch(line)
        if match is None:
            raise _error(file, number, "is no variable: write NAME=value, or # before a comment")
        name = match["name"]
        if not _NAME.fullmatch(name):
            # It may be part of a value that was pasted here, so it isn't shown.
            problem = "the name of a variable may have letters, digits, _, . and - only"
            raise _error(file, number, problem)
        value = _read_line(match["value"])
        if value is None:
            value, end = _read_lines(match["value"], lines, number, file, name)
        else:
            end = number
        if "\x00" in value:
            raise _error(file, number, "the value has a NUL character", name)
        variables[name] = value
        number = end
    return variables


def _read_line(text: str) -> str | None:
    """Return a line's value, or None if it begins with a quote that has no end here."""
    value = _before_comment(text).strip()
    if not text or text[0] not in _QUOTES:
        return value
    quote = text[0]
    match = _UP_TO_QUOTE[quote].match(text, 1)
    if match and _COMMENT_OR_NOTHING.fullmatch(text, match.end()):
        return _unescape(match["value"], quote)
    if len(value) > 1 and value.endswith(quote):
        # Such as "C:\directory\", whose last quote only looks escaped.
        return _unescape(value[1:-1], quote)
    return value if match else None


def _before_comment(text: str) -> str:
    end = 0
    while piece := _PIECE.match(text, end):
        end = piece.end()
    return text[:end]


def _read_lines(first: str, lines: list[str], number: int, file: str, name: str) -> tuple[str, int]:
    """Return a quoted value that ends on a later line, and the number of that line.

    `first` is the value's first line from the quote on. `number` is its line, counted from 1.
    """
    quote = first[0]
    parts = [first[1:]]
    for end in range(number, len(lines)):
        match = _UP_TO_QUOTE[quote].match(lines[end])
        if match is None:
            parts.append(lines[end])
            continue
        if not _COMMENT_OR_NOTHING.fullmatch(lines[end], match.end()):
            raise _error(file, end + 1, f"the value has text after the {quote} at its end", name)
        return _unescape("\n".join([*parts, match["value"]]), quote), end + 1
    raise _error(file, number, f"the value begins with {quote} and has no {quote} at its end", name)


def _unescape(value: str, quote: str) -> str:
    if quote != '"':
        return value
    return value.replace("\\n", "\n").replace("\\r", "\r")


def _error(file: str, line: int, problem: str, name: str = "") -> InvalidConfig:
    return InvalidConfig([ConfigProblem(ConfigPlace(file, line, 1, name), problem)])
