"""The error for a configuration file of another program."""

from __future__ import annotations

from mcp_core._errors import McpTrioError

__all__ = ["ConfigFileError"]


class ConfigFileError(McpTrioError):
    """A configuration file that cannot be parsed, or not be changed without losing something.

    `line` is the line in the file, counted from 1; `problem` is the cause, as a phrase.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem
