"""The dialect of a revision, and the names that messages of MCP have in every revision."""

from __future__ import annotations

from typing import Final

from mcp_core import ALL, DIALECTS, Dialect

__all__ = ["META", "TASKS", "UNKNOWN_REVISION", "dialect_of"]

UNKNOWN_REVISION: Final = "2199-01-01"  # no server can know it
META: Final = "io.modelcontextprotocol/"  # the prefix of MCP's own members of `_meta`
TASKS: Final = META + "tasks"  # the extension's identifier


def dialect_of(revision: str) -> Dialect:
    """Return a revision's dialect, or the first one's if it is unknown or not negotiated yet."""
    return DIALECTS.get(revision, DIALECTS[ALL[-1]])
