"""Members of decoded JSON, which may have any shape."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["META", "lookup"]

META: Final = "io.modelcontextprotocol/"  # begins the specification's own keys of `_meta`


def lookup(value: Any, *path: str) -> Any:
    """Return a member of decoded JSON by its path, or None if the value has no such member."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
