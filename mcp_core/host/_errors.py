"""The errors of hosts, and the one for a configuration file of another program."""

from __future__ import annotations

from mcp_core._errors import McpTrioError
from mcp_core._text import escape_text

from ._supervision import ServerStatus

__all__ = ["CallDenied", "ConfigFileError", "ServerUnavailable", "TooManyCalls", "UnknownName"]


class ConfigFileError(McpTrioError):
    """A configuration file that cannot be parsed, or not be changed without losing something.

    `line` is the line in the file, counted from 1; `problem` is the cause, as a phrase. `column` is
    the character in the line, counted from 1, or None if it isn't known.
    """

    def __init__(self, line: int, problem: str, *, column: int | None = None) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.column = column
        self.problem = problem


class UnknownName(McpTrioError, LookupError):
    """No server of a host has this name, or a tool, prompt or resource of this name."""


class ServerUnavailable(McpTrioError):
    """A server of a host that cannot be called now.

    `server` is its name, and `status` the state that it is in.
    """

    def __init__(self, server: str, status: ServerStatus) -> None:
        reason = f": {status.reason}" if status.reason else ""
        super().__init__(f"the server {escape_text(server)} is {status.state}{reason}")
        self.server = server
        self.status = status


class CallDenied(McpTrioError):
    """A call that the user or a rule has denied. Nothing was sent.

    `server` is the server's name, `tool` the tool's name at the server, and `reason` says who or
    what has denied it.
    """

    def __init__(self, server: str, tool: str, reason: str) -> None:
        super().__init__(f"{escape_text(tool)} of {escape_text(server)} was denied: {reason}")
        self.server = server
        self.tool = tool
        self.reason = reason


class TooManyCalls(McpTrioError):
    """A server of a host that has as many calls in flight as the host allows. Nothing was sent."""
