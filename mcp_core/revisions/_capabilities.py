"""Checks of declared capabilities, for those of either side.

1. A capability is a path such as `("resources", "subscribe")`: attribute names of the capability
   objects, or keys where these are dicts.
2. A member that is present declares support, with any value but `False`, which counts as absent.
3. A method needs no capability in a revision that has no way to declare it.

Sources: basic/lifecycle (Capability Negotiation) of the stateful revisions; basic/index and schema
of 2026-07-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Struct

    from mcp_core.types import ServerCapabilities

    from ._methods import Method

__all__ = [
    "capability_name",
    "capability_object",
    "is_declared",
    "supported_methods",
    "without_change_notifications",
]


def is_declared(capabilities: Struct | None, path: Sequence[str]) -> bool:
    """Return True if the capability at `path` is declared. An empty path always is."""
    member: Any = capabilities
    for name in path:
        member = member.get(name) if isinstance(member, dict) else getattr(member, name, None)
        if member is None or member is False:
            return False
    return True


def supported_methods(rows: dict[str, Method], capabilities: Struct | None) -> dict[str, Method]:
    """Return the rows that a side which declared `capabilities` receives.

    Requests that need a capability which is not declared are left out. Notifications are all kept,
    because their `needs` are capabilities of the sender.
    """
    return {
        name: row
        for name, row in rows.items()
        if row.result is None or is_declared(capabilities, row.needs)
    }


def capability_object(path: Sequence[str]) -> dict[str, Any]:
    """Return the smallest capabilities object, as JSON, that declares `path`.

    An error response names a missing capability in this form (`requiredCapabilities`).
    """
    declared: dict[str, Any] = {}
    for name in reversed(path):
        declared = {name: declared}
    return declared


def capability_name(path: Sequence[str]) -> str:
    """Return the capability at `path` as users know it, such as `tools.listChanged`."""
    words = (name.split("_") for name in path)
    return ".".join(first + "".join(map(str.capitalize, others)) for first, *others in words)


def without_change_notifications(capabilities: ServerCapabilities) -> ServerCapabilities:
    """Return `capabilities` without `listChanged` and `subscribe`.

    A connection that serves a single request declares the result: it cannot send change
    notifications.
    """
    return replace(
        capabilities,
        **{
            name: replace(
                capability, **dict.fromkeys(_CHANGE_FIELDS & set(capability.__struct_fields__))
            )
            for name in ("tools", "prompts", "resources")
            if (capability := getattr(capabilities, name)) is not None
        },
    )


_CHANGE_FIELDS = frozenset(("list_changed", "subscribe"))
