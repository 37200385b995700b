"""The error for a configuration file of another program."""

from __future__ import annotations

from mcp_core._errors import McpTrioError

__all__ = ["ConfigFileError"]


class ConfigFileError(McpTrioError):
    """A configuration file that cannot be parsed, or not be changed without losing something.

    `line` is the line in the file, counted from 1; `problem` is the cause, as a phrase. `column` is
    the character in the line, counted from 1, or None if it is not known.
    """

    def __init__(self, line: int, problem: str, *, column: int | None = None) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.column = column
        self.problem = problem
