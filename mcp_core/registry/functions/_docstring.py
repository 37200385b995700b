"""Parsing of docstrings: the descriptions of a function and its parameters.

1. Three styles are recognised line by line, without configuration: Google (`Args:` and an indented
   block), numpy (`Parameters` underlined with dashes), reStructuredText (`:param name: text`).
2. A line that isn't clearly part of a section about parameters, return values or exceptions stays
   in the description. A superfluous line harms a model less than a missing one.
"""

from __future__ import annotations

import inspect
import re
from typing import Final

from mcp_core._patterns import compile_on_first_use

__all__ = ["read_docstring"]

_PARAMETERS: Final = frozenset(
    {
        "args",
        "arguments",
        "parameters",
        "params",
        "keyword args",
        "keyword arguments",
        "other parameters",
    }
)
# Sections that are left out: a client reads schemas instead.
_DROPPED: Final = frozenset(
    {"returns", "return", "yields", "yield", "raises", "raise", "receives", "warns"}
)

_FIELD = compile_on_first_use(
    r":(param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)"
)
_OTHER_FIELD = compile_on_first_use(
    r":(type|return|returns|rtype|raise|raises|except|exception|yield|yields)\b[^:]*:"
)
_GOOGLE_ENTRY = compile_on_first_use(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)")
_NUMPY_ENTRY = compile_on_first_use(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_UNDERLINE = compile_on_first_use(r"-{3,}\s*")


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Return the description, and the parameters' texts by name.

    The names need not be parameters that the function has.
    """
    lines = inspect.cleandoc(text or "").splitlines()
    kept: list[str] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        line = lines[position]
        underlined = (
            position + 1 < len(lines) and _UNDERLINE.fullmatch(lines[position + 1]) is not None
        )
        title = line.strip().lower()
        if underlined and title in _PARAMETERS | _DROPPED:
            end = _end_of_numpy_section(lines, position + 2)
            if title in _PARAMETERS:
                parameters |= _numpy_entries(lines[position + 2 : end])
        elif title.endswith(":") and title[:-1] in _PARAMETERS | _DROPPED and line[:1].strip():
            end = _end_of_block(lines, position + 1)
            if title[:-1] in _PARAMETERS:
                parameters |= _google_entries(lines[position + 1 : end])
        elif found := _FIELD.match(line):
            end = _end_of_block(lines, position + 1)
            parameters[found[2]] = _join([found[3], *lines[position + 1 : end]])
        elif _OTHER_FIELD.match(line):
            end = _end_of_block(lines, position + 1)
        else:
            kept.append(line)
            end = position + 1
        position = end
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), parameters


def _end_of_block(lines: list[str], position: int) -> int:
    """Return the end of the indented block that starts at `position`.

    Blank lines belong to it if more indented lines follow.
    """
    end = position
    while position < len(lines) and (not lines[position].strip() or lines[position][0].isspace()):
        position += 1
        if lines[position - 1].strip():
            end = position
    return end


def _end_of_numpy_section(lines: list[str], position: int) -> int:
    while position < len(lines):
        if (
            position + 1 < len(lines)
            and lines[position].strip()
            and _UNDERLINE.fullmatch(lines[position + 1])
        ):
            break
        position += 1
    return position


def _google_entries(block: list[str]) -> dict[str, str]:
    return _entries(inspect.cleandoc("\n".join(["", *block])).splitlines(), _GOOGLE_ENTRY)


def _numpy_entries(block: list[str]) -> dict[str, str]:
    return _entries(block, _NUMPY_ENTRY)


def _entries(lines: list[str], pattern: re.Pattern[str]) -> dict[str, str]:
    """Return each entry's text. An indented line continues the entry above it."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        start = pattern.fullmatch(line) if line[:1].strip() else None
        if start is None:
            current.append(line)
            continue
        current = [start[2]] if pattern.groups > 1 else []
        for name in start[1].split(","):
            found[name.strip().lstrip("*")] = current
    return {name: text for name, parts in found.items() if (text := _join(parts))}


def _join(parts: list[str]) -> str:
    return " ".join(stripped for part in parts if (stripped := part.strip()))
