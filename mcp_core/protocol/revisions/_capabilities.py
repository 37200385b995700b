"""Checks for the capabilities that either side declares.

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

from mcp_core import types as t

from ._methods import TASKS

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
    "with_tasks",
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

    Requests that need a capability which isn't declared are left out. Notifications are all kept,
    because their `needs` are the sender's capabilities.
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
        declared = {_json_name(name): declared}
    return declared


def capability_name(path: Sequence[str]) -> str:
    """Return the capability at `path` as users know it, such as `tools.listChanged`."""
    return ".".join(map(_json_name, path))


def _json_name(name: str) -> str:
    """Return the member of JSON for an attribute. An identifier of an extension is unchanged."""
    first, *others = name.split("_") if "/" not in name else (name,)
    return first + "".join(map(str.capitalize, others))


def with_tasks(capabilities: ServerCapabilities, *, may_list: bool) -> ServerCapabilities:
    """Return `capabilities` of a server that runs tool calls as tasks.

    Each revision gets its own form: 2025-11-25 `tasks`, and 2026-07-28 the extension, which isn't
    repeated under `experimental`. The other revisions get neither.

    Pass `may_list` False for a server that cannot tell its clients apart: it would list the tasks
    of all of them (2025-11-25, basic/utilities/tasks, Task Isolation and Access Control).
    """
    declared = t.TasksCapability(
        list={} if may_list else None,
        cancel={},
        requests=t.TaskRequests(tools=t.ToolTasks(call={})),
    )
    extensions = {**(capabilities.extensions or {}), TASKS[-1]: {}}
    return replace(capabilities, tasks=declared, extensions=extensions)


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
