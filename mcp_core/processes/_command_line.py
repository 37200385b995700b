"""Split a command that was written as one text into its words, as the platform's shell does.

On POSIX that is a shell's quoting, without variables and patterns. On Windows a program gets one
text and splits it itself, nearly always by the rule of the C runtime: "Parsing C++ command-line
arguments" in its documentation.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

from mcp_core._patterns import compile_on_first_use

__all__ = ["split_command_line"]

# Backslashes before a quote, other backslashes, a quote, white space between words, other text.
_WINDOWS_PART: Final = compile_on_first_use(r'(\\*)"|(\\+)|([ \t\r\n]+)|([^\\" \t\r\n]+)')


def split_command_line(text: str, *, windows: bool) -> list[str]:
    """Return the words of a command line.

    Args:
        text: the command line, such as `python "my server.py"`.
        windows: True for the rule of Windows, where a backslash is a separator in paths; False for
            the rule of POSIX shells. Nothing is expanded.

    Raises:
        ValueError: a quote has no end, or a backslash has nothing after it.
    """
    if windows:
        return _split_windows(text)
    try:
        return shlex.split(text)
    except ValueError as exc:
        cause = "a quote" if "quot" in str(exc) else "a backslash"
        raise ValueError(f"{cause} has no end") from None


def _split_windows(text: str) -> list[str]:
    words: list[str] = []
    word: str | None = None  # None between words
    quoted = False
    parts = list(_WINDOWS_PART.finditer(text))
    position = 0
    while position < len(parts):
        part = parts[position]
        position += 1
        escapes, backslashes, space, other = part.groups()
        if space is not None and not quoted:
            if word is not None:
                words.append(word)
            word = None
            continue
        word = word or ""
        if escapes is None:
            word += backslashes or space or other or ""
            continue
        is_first = not words
        # In the program's name a backslash never escapes a quote: "C:\dir\".
        word += escapes if is_first else "\\" * (len(escapes) // 2)
        if not is_first and len(escapes) % 2:
            word += '"'
        elif quoted and not is_first and _is_quote(parts, position):
            word += '"'  # two quotes inside quotes are one
            position += 1
        else:
            quoted = not quoted
    if quoted:
        raise ValueError("a quote has no end")
    if word is not None:
        words.append(word)
    return words


def _is_quote(parts: list[re.Match[str]], position: int) -> bool:
    """Return True if a part is a quote without backslashes before it."""
    return position < len(parts) and parts[position][0] == '"'
