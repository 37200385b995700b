"""Read how opencode writes variables, and how it turns servers off by the names of their tools.

Sources: opencode.ai/v1/docs/mcp-servers and opencode.ai/v2/docs/mcp-servers, "Glob patterns".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ._policy import matches_text
from ._servers import ServerConfig
from ._tree import MemberPath

__all__ = ["find_partly_off", "is_off", "translate_entry"]

_VARIABLE: Final = re.compile(r"\{env:([^{}]*)\}")
# What would be a variable after the translation, and what opencode replaces by a file's content.
_FOREIGN: Final = re.compile(r"\$\{|\{file:")


def translate_entry(entry: Any) -> tuple[Any, list[tuple[MemberPath, str]]]:
    """Return an entry with `${env:NAME}` in place of `{env:NAME}`, and what has no translation.

    That is the path of each text that has it, and what is in the text.
    """
    foreign: list[tuple[MemberPath, str]] = []

    def translate(value: Any, *path: str | int) -> Any:
        if isinstance(value, dict):
            return {name: translate(each, *path, name) for name, each in value.items()}
        if isinstance(value, list):
            return [translate(each, *path, n) for n, each in enumerate(value)]
        if not isinstance(value, str):
            return value
        found = _FOREIGN.search(value)
        if found is not None:
            foreign.append((path, found[0]))
        return _VARIABLE.sub(r"${env:\1}", value)

    return translate(entry), foreign


def is_off(root: Mapping[str, Any], server: str) -> bool:
    """Return True if a file turns off all tools of a server."""
    return any(
        pattern == server or matches_text(pattern, f"{server}_") for pattern in _tools_off(root)
    )


def find_partly_off(
    root: Mapping[str, Any], servers: Mapping[str, ServerConfig]
) -> Iterator[tuple[str, str]]:
    """Yield the servers of which a file turns some tools off, with the pattern that may do so."""
    for pattern in _tools_off(root):
        for name, server in servers.items():
            if not server.disabled and (pattern.startswith(f"{name}_") or "?" in pattern):
                yield name, pattern


def _tools_off(root: Mapping[str, Any]) -> list[str]:
    """Return the patterns of tools that are turned off. A tool is `SERVER_TOOL` there."""
    tools = root.get("tools")
    if not isinstance(tools, dict):
        return []
    return [name for name, is_on in tools.items() if is_on is False]
