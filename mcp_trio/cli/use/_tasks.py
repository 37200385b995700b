"""`mcp-trio tasks`: find the tasks of a server again, by the reference of each.

1. A reference names a revision, and the command connects in this revision.
2. A server of 2025-11-25 lists its user's tasks. Otherwise the tasks are those that commands
   on this machine have noted, and each is looked up at the server.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import DIALECTS, PeerError
from mcp_core.drivers import shorten_text
from mcp_core.runtime import InvalidTaskReference, TaskReference, TaskState
from mcp_trio.cli._errors import MISUSE, SERVER_ERROR, CliError, one_line
from mcp_trio.cli._options import REFERENCES, add_output, add_session_options
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import describe_error, run_session, server_capabilities
from mcp_trio.cli._target import parse_server_command
from mcp_trio.cli.state._noted_tasks import NotedTasks

from ._following import UNKNOWN_TASK, follow_task, task_document
from ._tool_result import write_tool_result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mcp_core.runtime import ClientTask
    from mcp_core.types import CallToolResult
    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import Target

__all__ = ["parse", "tasks"]

_EXTENSION: Final = "io.modelcontextprotocol/tasks"
_METHOD_NOT_FOUND: Final = -32601  # JSON-RPC
_MAX_MESSAGE: Final = 1_000  # characters
_ACTIONS: Final = ("get", "result", "cancel", "list")


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "tasks",
        takes=REFERENCES,
        description="Finds the calls of tools that a server runs as tasks: `get` prints the state"
        " of one,\n"
        "`result` waits for its result and prints that, `cancel` cancels it, and `list` lists all,"
        " with\n"
        "their references. A server of 2026-07-28 lists no tasks; then these are the ones that"
        " `mcp-trio\n"
        "call --detach` has started on this machine, as far as the server still has them.",
        example="mcp-trio tasks list https://mcp.example.com/mcp\n"
        "  mcp-trio tasks result REFERENCE https://mcp.example.com/mcp",
        choices=_ACTIONS,
        ACTION=", ".join(_ACTIONS),
    )
    add_output(parser, "for result: write it to FILE, as `mcp-trio call` does")
    add_session_options(parser)
    found, target = parse_server_command(parser, words)
    return partial(
        tasks, target, found.action, found.words, output=found.output, as_json=found.json
    )


def tasks(
    target: Target, action: str, words: Sequence[str], *, output: Path | None, as_json: bool
) -> int:
    """Do something about one task, or list all, and return the exit status.

    Args:
        target: the server.
        action: `get`, `result`, `cancel` or `list`.
        words: the task's reference, or none to list all.
        output: where `result` writes the result; None for stdout.
        as_json: whether to print a JSON document.

    Raises:
        CliError: the connection failed, the reference is invalid, the server has no such task, or
            the words don't fit `action`.
    """
    if output is not None and action != "result":
        raise CliError(f"tasks {action} writes no file: use --output with tasks result")
    if action == "list":
        if words:
            raise CliError("tasks list takes no reference; tasks get shows a single task")
        return run_session(target, partial(_list, target=target, as_json=as_json))
    if len(words) != 1:
        raise CliError(
            f"tasks {action} needs the reference of one task: `mcp-trio call --detach` and"
            " `mcp-trio tasks list` print it"
        )
    reference = _parse(words[0])
    if reference.revision not in target.versions:
        raise CliError(
            f"the task is of revision {one_line(reference.revision)}, and no other finds it: leave"
            " --revision out"
        )

    async def body(client: Client) -> int:
        task = await _find(reference, client, target.timeout)
        if action == "get":
            return _show(task, target, as_json=as_json)
        if action == "cancel":
            return await _cancel(task, target, as_json=as_json)
        result = await _follow(task, target)
        # A task that `tasks/list` has found doesn't name its tool.
        tool = task.tool or "task"
        return write_tool_result(result, tool, target.stderr, output=output, as_json=as_json)

    # Offer older revisions too: for a server that speaks only these, an error that names its
    # revision says more than a failed negotiation.
    versions = target.versions[target.versions.index(reference.revision) :]
    return run_session(replace(target, versions=versions), body)


def _parse(text: str) -> TaskReference:
    try:
        reference = TaskReference.parse(text)
    except InvalidTaskReference as exc:
        raise CliError(
            f"{shorten_text(text, 60)!r} is not the reference of a task: {exc}"
        ) from None
    if reference.revision not in DIALECTS:
        raise CliError(
            f"the task is of revision {one_line(reference.revision)}, which this command does not"
            " speak"
        )
    return reference


async def _find(reference: TaskReference, client: Client, timeout: float) -> ClientTask:
    """Return the task, with its state.

    Raises:
        CliError: the server has no such task, has no tasks, or speaks another revision.
    """
    dialect = client.peer.dialect
    if DIALECTS[reference.revision] is not dialect:
        raise CliError(
            f"the task is of revision {reference.revision}, and the server speaks"
            f" {dialect.version}: it is a task of another server, or the server was replaced"
        )
    _lists_tasks(client)
    try:
        return await client.task(str(reference), timeout=timeout)
    except PeerError as exc:
        if exc.code != UNKNOWN_TASK:
            raise
        raise CliError(
            "the server has no such task: its time is over, or it is a task of another server or"
            f" of another user; {describe_error(exc)}",
            SERVER_ERROR,
        ) from exc


def _show(task: ClientTask, target: Target, *, as_json: bool) -> int:
    """Print a task's state, and return the exit status."""
    screen = Screen(sys.stdout)
    reference = TaskReference.parse(task.reference)
    if as_json:
        screen.write_json(task_document(reference, *task.state))
    else:
        _write_state(screen, reference, task.state)
    if task.status == "input_required":
        target.stderr.write_line(
            "mcp-trio: it waits for an answer, which `mcp-trio tasks result` asks you for"
        )
    return SERVER_ERROR if task.status in ("failed", "cancelled") else 0


async def _cancel(task: ClientTask, target: Target, *, as_json: bool) -> int:
    """Cancel a task, print its state, and return the exit status."""
    if task.ended:
        target.stderr.write_line(f"mcp-trio: nothing is cancelled: the task is {task.status}")
    else:
        await task.cancel()
        await task.refresh()  # the response to the cancellation has no state in 2026-07-28
        if not task.ended:
            target.stderr.write_line("mcp-trio: the server is still ending the task")
    _show(task, target, as_json=as_json)
    return 0


async def _follow(task: ClientTask, target: Target) -> CallToolResult:
    try:
        return await follow_task(task, target.stderr)
    except trio.Cancelled:
        target.stderr.write_line("mcp-trio: the task goes on; `mcp-trio tasks cancel` cancels it")
        raise


async def _list(client: Client, *, target: Target, as_json: bool) -> int:
    """Print a server's tasks, and return the exit status."""
    noted = NotedTasks(target)
    found = await _listed(client, noted, target.timeout) if _lists_tasks(client) else None
    if found is None:
        found = await _looked_up(client, noted, target.timeout)
    screen = Screen(sys.stdout)
    if as_json:
        documents = [task_document(reference, *state) for reference, state in found]
        screen.write_json({"tasks": documents})
    else:
        for reference, state in found:
            _write_state(screen, reference, state)
            screen.write_text(str(reference))
    others = {each.revision for each in noted.load()} - {client.peer.dialect.version}
    for other in sorted(others):
        target.stderr.write_line(
            f"mcp-trio: there are tasks of revision {other}, too: --revision {other} lists them"
        )
    return 0


def _lists_tasks(client: Client) -> bool:
    """Return True if the server lists its user's tasks.

    Raises:
        CliError: the server has no tasks.
    """
    capabilities = server_capabilities(client)
    dialect = client.peer.dialect
    if dialect.tasks == "requested" and capabilities.tasks is not None:
        return capabilities.tasks.list is not None
    if dialect.tasks == "extension" and _EXTENSION in (capabilities.extensions or {}):
        return False
    raise CliError(f"the server has no tasks in revision {dialect.version}", MISUSE)


async def _listed(
    client: Client, noted: NotedTasks, timeout: float
) -> list[tuple[TaskReference, TaskState]] | None:
    """Return the tasks that the server lists (2025-11-25), and forget the others.

    Return None if it refuses, as it should to a user that it doesn't know.
    """
    try:
        listed = await client.list_tasks(timeout=timeout)
    except PeerError as exc:
        if exc.code != _METHOD_NOT_FOUND:
            raise
        return None
    version = client.peer.dialect.version
    # The server doesn't name a task's tool.
    notes = {each.id: each for each in _of_connection(noted, client)}
    found = []
    for each in listed:
        note = notes.pop(each.task_id, None)
        ttl = each.ttl if isinstance(each.ttl, int | float) else None
        tool = "" if note is None else note.tool
        reference = TaskReference(each.task_id, tool, version, each.created_at, ttl)
        found.append((reference, TaskState(each.status, each.status_message)))
    for note in notes.values():
        noted.discard(note)
    return found


async def _looked_up(
    client: Client, noted: NotedTasks, timeout: float
) -> list[tuple[TaskReference, TaskState]]:
    """Return the noted tasks of the connection's revision, and forget those that are gone."""
    found = []
    for reference in _of_connection(noted, client):
        try:
            task = await client.task(str(reference), timeout=timeout)
        except PeerError as exc:
            if exc.code != UNKNOWN_TASK:
                raise
            noted.discard(reference)
        else:
            found.append((TaskReference.parse(task.reference), task.state))
    return found


def _of_connection(noted: NotedTasks, client: Client) -> list[TaskReference]:
    """Return the noted tasks of the connection's revision."""
    dialect = client.peer.dialect
    return [each for each in noted.load() if DIALECTS.get(each.revision) is dialect]


def _write_state(screen: Screen, reference: TaskReference, state: TaskState) -> None:
    """Write a line about a task: status, tool and status message, as far as they are known."""
    words = [state.status, reference.tool, shorten_text(state.message or "", _MAX_MESSAGE)]
    screen.write_line("  ".join(filter(None, words)))
