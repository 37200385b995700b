"""Places in configuration files, and what is wrong there.

No value of a file is part of a problem: it may be a secret. Names are, with hidden characters made
visible, and so is the word that says which transport is meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mcp_core._errors import McpTrioError
from mcp_core._text import escape_text, shorten_text

__all__ = ["ConfigPlace", "ConfigProblem", "InvalidConfig", "kind_text", "member_text", "name_text"]

_PLAIN_NAME: Final = re.compile(r"[\w-]+", re.ASCII)
_KIND: Final = re.compile(r"[A-Za-z][\w.+-]{0,29}", re.ASCII)
_MAX_NAME: Final = 100  # characters of a name in a problem
_MAX_SHOWN: Final = 20  # problems in the text of an error; all are in `problems`


def name_text(name: str) -> str:
    """Return a name of a file as a problem shows it: plain, or quoted as JSON."""
    if _PLAIN_NAME.fullmatch(name):
        return shorten_text(name, _MAX_NAME)
    return escape_text(json.dumps(shorten_text(name, _MAX_NAME), ensure_ascii=False))


def kind_text(kind: str) -> str:
    """Return a word of a file that should name a kind: quoted, or "a text" if it isn't a word."""
    return f'"{kind}"' if _KIND.fullmatch(kind) else "a text"


def member_text(path: Sequence[str | int]) -> str:
    """Return the path of a member for people, such as `mcpServers.github.args[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{name_text(part)}" if text else name_text(part)
    return text


@dataclass(frozen=True, slots=True)
class ConfigPlace:
    """A place in a configuration file.

    Args:
        file: the file's path, as the caller gave it; "" for an entry of a program.
        line: the line, counted from 1.
        column: the character in the line, counted from 1.
        member: the member's path, such as `mcpServers.github.url`; empty for the file itself.
    """

    file: str
    line: int
    column: int
    member: str = ""

    def __str__(self) -> str:
        if not self.file:
            return self.member
        place = f"{escape_text(self.file)}:{self.line}:{self.column}"
        return f"{place}: {self.member}" if self.member else place


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A problem of a configuration file, with its place.

    Args:
        place: where it is.
        problem: the cause, and the cure where it isn't obvious. It shows no values from the file.
        server: the server that cannot be used because of it, by name; None for the whole file.
        restricts: whether the member turns the server off or restricts it. A running server must
            not go on without it.
        ignored: whether only this member is ignored, and the file's servers are used.
    """

    place: ConfigPlace
    problem: str
    server: str | None = None
    restricts: bool = False
    ignored: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


class InvalidConfig(McpTrioError):
    """A configuration that cannot be used. Its text has one line for each problem.

    Args:
        problems: what is wrong, in the files' order; at least one.
    """

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        lines = [str(problem) for problem in problems[:_MAX_SHOWN]]
        if len(problems) > _MAX_SHOWN:
            lines.append(f"and {len(problems) - _MAX_SHOWN} more problems")
        super().__init__("\n".join(lines))
        # What is wrong, in the files' order.
        self.problems = tuple(problems)
