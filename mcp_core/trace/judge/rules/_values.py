"""A peer's values, as text for sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_core._text import escape_text

if TYPE_CHECKING:
    from mcp_core.protocol.schema._json_schema import Violation

__all__ = ["show", "show_violation"]


def show(value: Any) -> str:
    """Return a value as short JSON-like text for a sentence."""
    if value is None:
        return "null or missing"
    if isinstance(value, str):
        return f'"{escape_text(value[:60])}"' + ("..." if len(value) > 60 else "")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)[:60]
    return "an array" if isinstance(value, list) else "an object"


def show_violation(violation: Violation) -> str:
    """Return where a value violates a schema and how, as text for a sentence."""
    return escape_text(": ".join(filter(None, violation)))
