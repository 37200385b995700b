"""Which tools a server runs as tasks. Source: basic/utilities/tasks (2025-11-25)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core._errors import Fault
from mcp_core.protocol.revisions._capabilities import is_declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_core.protocol.messages._events import Peer
    from mcp_core.types import Tool

__all__ = ["must_be_task", "needs_task_code", "runs_tasks", "task_support"]

# The capability of a server that runs calls of tools as tasks.
_TASK_CALLS: Final = ("tasks", "requests", "tools", "call")


def task_support(tools: Iterable[Tool]) -> dict[str, str | None]:
    """Return each tool's `taskSupport`, by name. Tools without `execution` are left out."""
    return {tool.name: tool.execution.task_support for tool in tools if tool.execution is not None}


def runs_tasks(peer: Peer) -> bool:
    """Return True if a client may ask this server to run a tool as a task."""
    return peer.dialect.tasks == "requested" and is_declared(peer.capabilities, _TASK_CALLS)


def must_be_task(peer: Peer, support: Mapping[str, str | None], tool: str) -> bool:
    """Return True if a tool runs as a task only. `support` is what `task_support` has returned."""
    return runs_tasks(peer) and support.get(tool) == "required"


def needs_task_code(peer: Peer) -> int:
    """Return the error code for a plain call of a tool that runs as a task only (TSK-5)."""
    return peer.dialect.codes[Fault.METHOD_NOT_FOUND]
