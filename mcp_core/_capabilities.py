"""What was declared, and what a message needs to have been declared.

Rules of this file:

1. A capability is a path, `("resources", "subscribe")`: attributes of the capability objects, keys where they are maps.
2. Presence means support, whatever the value, except that a member which is `False` counts as absent.
3. A capability that a revision cannot express is not asked for in it.

It does not know who is asking: the same functions serve what we offer and what the peer offers. Source: basic/lifecycle
(Capability Negotiation) of the stateful revisions, basic/index and schema of 2026-07-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Struct

    from ._methods import Method
    from .types import ServerCapabilities

__all__ = ["allowed", "as_object", "has", "unchanging"]


def has(capabilities: Struct | None, path: Sequence[str]) -> bool:
    """Whether the capability at `path` is declared. An empty path always is."""
    found: Any = capabilities
    for name in path:
        found = found.get(name) if isinstance(found, dict) else getattr(found, name, None)
        if found is None or found is False:
            return False
    return True


def allowed(rows: dict[str, Method], capabilities: Struct | None) -> dict[str, Method]:
    """The rows whose needs `capabilities` meets: what one who declared these will receive."""
    return {name: row for name, row in rows.items() if row.result is None or has(capabilities, row.needs)}


def as_object(path: Sequence[str]) -> dict[str, Any]:
    """The smallest capabilities object that declares `path`: the form in which an error names what is missing."""
    found: dict[str, Any] = {}
    for name in reversed(path):
        found = {name: found}
    return found


def unchanging(capabilities: ServerCapabilities) -> ServerCapabilities:
    """The same without those that need somebody who stays to be told of changes."""
    return replace(
        capabilities,
        **{
            name: replace(found, **dict.fromkeys(_OF_CHANGES & set(found.__struct_fields__)))
            for name in ("tools", "prompts", "resources")
            if (found := getattr(capabilities, name)) is not None
        },
    )


_OF_CHANGES = frozenset(("list_changed", "subscribe"))
