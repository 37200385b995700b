"""Tasks that a command follows to their end, cancels, or leaves at the server.

A task that the command has started itself is cancelled when the command fails or is interrupted, as
an ordinary call would be. A task that it found by a reference goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import McpTrioError, PeerError
from mcp_core.runtime import TaskReference
from mcp_trio.cli.state._noted_tasks import NotedTasks

from ._task_line import short_id, show_task

if TYPE_CHECKING:
    from mcp_core.runtime import ClientTask
    from mcp_core.types import CallToolResult
    from mcp_trio._client import Client
    from mcp_trio.cli._screen import Screen
    from mcp_trio.cli._session import Target

__all__ = ["UNKNOWN_TASK", "follow_own_task", "follow_task", "leave_task", "task_document"]

UNKNOWN_TASK: Final = -32602  # an unknown task, in 2025-11-25 and 2026-07-28
_CANCEL_TIMEOUT: Final = 2.0  # seconds; a user who has pressed Ctrl+C waits no longer


def task_document(reference: TaskReference, status: str, message: str | None) -> dict[str, Any]:
    """Return the JSON document of a task, with the names of 2025-11-25 for every revision."""
    document: dict[str, Any] = {
        "reference": str(reference),
        "tool": reference.tool,
        "revision": reference.revision,
        "taskId": reference.id,
        "status": status,
        "createdAt": reference.created,
        "ttl": reference.ttl,
    }
    if message is not None:
        document["statusMessage"] = message
    return document


async def follow_task(task: ClientTask, stderr: Screen) -> CallToolResult:
    """Show a task's state until it has ended, and return its result.

    Raises:
        PeerError: the task failed or was cancelled.
    """
    with show_task(stderr, task.id) as show:
        async for state in task.states():
            show(state)
        return await task.result()


async def follow_own_task(
    task: ClientTask, client: Client, target: Target, *, keep: bool
) -> CallToolResult:
    """Follow a task that this command has started.

    If the command fails or is interrupted, the task is cancelled; with `keep` it is left, and its
    reference is printed.

    Raises:
        PeerError: the task failed or was cancelled.
    """
    try:
        return await follow_task(task, target.stderr)
    except BaseException as exc:  # Ctrl+C, too
        unknown = isinstance(exc, PeerError) and exc.code == UNKNOWN_TASK
        if not (task.ended or unknown):
            with trio.CancelScope(shield=True):
                if keep:
                    target.stderr.write_line("mcp-trio: the task goes on; its reference:")
                    target.stderr.write_text(task.reference)
                    leave_task(task, client, target)
                else:
                    await _cancel(task, target.stderr)
        raise


async def _cancel(task: ClientTask, stderr: Screen) -> None:
    """Cancel a task and print the outcome. If that fails, print the reference."""
    name = f"task {short_id(task.id)}"
    try:
        with trio.fail_after(_CANCEL_TIMEOUT):
            await task.cancel()
    except (McpTrioError, trio.TooSlowError):
        stderr.write_line(f"mcp-trio: {name} could not be cancelled; its reference:")
        stderr.write_text(task.reference)
    else:
        # In 2026-07-28 the server confirms the request, but not its outcome. In 2025-11-25 the
        # task may have ended before.
        status = task.status if task.ended else "cancelled"
        stderr.write_line(f"mcp-trio: {name} is {status}")


def leave_task(task: ClientTask, client: Client, target: Target) -> None:
    """Store a task's reference for `tasks list`, and print why it may end with the command."""
    stderr = target.stderr
    try:
        NotedTasks(target).add(TaskReference.parse(task.reference))
    except (OSError, RuntimeError) as exc:
        stderr.write_line(f"mcp-trio: `mcp-trio tasks list` will not find the task: {exc}")
    if not isinstance(target.server, str):
        stderr.write_line(
            "mcp-trio: the server ends with this command, and the task with it, unless the server"
            " stores its tasks"
        )
    elif client.peer.dialect.tasks == "requested" and all(
        name != "authorization" for name, _ in target.headers
    ):
        stderr.write_line(
            "mcp-trio: a server that requires no login may cancel the task at the end of this"
            f" session ({client.peer.dialect.version})"
        )
