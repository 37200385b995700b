"""`mcp-trio call`: call a tool with arguments from the command line and print the result.

1. If the server runs the call as a task, the command follows that to its end. Ctrl+C cancels it.
2. With `--detach` the command ends when the server has created the task, and prints its reference.
   In 2026-07-28 the server may answer with a result instead, which is printed as usual.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from mcp_core.runtime import ClientTask, TaskReference
from mcp_trio.cli._arguments import parse_arguments
from mcp_trio.cli._errors import unknown_name
from mcp_trio.cli._options import ARGUMENTS, add_output, add_session_options
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._progress import show_progress
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import list_if_any, run_session
from mcp_trio.cli._target import parse_server_command

from ._following import follow_own_task, leave_task, task_document
from ._tool_result import write_tool_result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mcp_core.types import CallToolResult, Tool
    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import Target

__all__ = ["call", "parse"]


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "call",
        takes=ARGUMENTS,
        description="Calls a tool of a server and shows the result.\n\n"
        "The schema of the tool decides how a VALUE is read: numbers, true, false, null, lists"
        " and\n"
        "objects as JSON, text unchanged. A JSON object is sent to the tool unchecked, and its"
        " members\n"
        "replace those given by KEY=VALUE. The merged name of a tool, mcp__SERVER__TOOL, names its"
        " server too.",
        example="mcp-trio call greet name=World greeter.py\n"
        "  mcp-trio call mcp__git__git_status repo_path=.",
        TOOL="the name of the tool; `mcp-trio inspect` lists them",
    )
    add_output(
        parser,
        "write images, sounds and embedded resources to FILE (numbered if there are several), or"
        " into a directory FILE; without any, write the whole result to it. A file that exists is"
        " replaced",
    )
    parser.add_argument(
        "--detach",
        action="store_true",
        help="do not wait for the result: print the reference of the task as which the server runs"
        " the call, for `mcp-trio tasks`",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave the task at the server if you press Ctrl+C, which otherwise cancels it, and"
        " print its reference",
    )
    add_session_options(parser)
    found, target = parse_server_command(parser, words)
    if found.detach and found.output is not None:
        parser.error("--detach prints no result for --output: leave one of them out")
    return partial(
        call,
        target,
        found.tool,
        found.words,
        output=found.output,
        as_json=found.json,
        detach=found.detach,
        keep=found.keep,
    )


def call(
    target: Target,
    tool: str,
    words: Sequence[str],
    *,
    output: Path | None,
    as_json: bool,
    detach: bool = False,
    keep: bool = False,
) -> int:
    """Call a tool, print the result or write it to `output`, and return the exit status.

    If the call becomes a task, `detach` prints its reference instead, and `keep` leaves it running
    when the user interrupts the command.

    Raises:
        CliError: the connection failed, the server has no such tool, an argument is invalid, or
            `output` cannot be written.
    """

    async def body(client: Client) -> int:
        name = target.local_name(tool)
        found = await _find_tool(name, client, target)
        await target.require_approved("tool", name)
        arguments = parse_arguments(words, found.input_schema, f"the tool {name}")
        started: ClientTask | CallToolResult
        caller = target.configured or client
        with show_progress(target.stderr, name) as progress:
            options = target.call_options(progress)
            if detach or _may_become_task(found, client):
                started = await caller.start_tool(name, arguments, **options)
            else:
                started = await caller.call_tool(name, arguments, **options)
        if not isinstance(started, ClientTask):
            result = started
        elif not started.id:
            result = await started.result()
            if detach:
                target.stderr.write_line("mcp-trio: the server answered at once, without a task")
        elif not detach:
            result = await follow_own_task(started, client, target, keep=keep)
        else:
            _print_reference(started, as_json=as_json)
            leave_task(started, client, target)
            return 0
        return write_tool_result(result, tool, target.stderr, output=output, as_json=as_json)

    if detach and target.answers is not None:
        target.answers.answers_later = True
    return run_session(target, body)


def _may_become_task(tool: Tool, client: Client) -> bool:
    """Return True if the server may run a call of `tool` as a task.

    In 2025-11-25 the client has to request a task. It does so only for tools that require one.
    """
    tasks = client.peer.dialect.tasks
    required = tool.execution is not None and tool.execution.task_support == "required"
    return tasks == "extension" or (tasks == "requested" and required)


def _print_reference(task: ClientTask, *, as_json: bool) -> None:
    screen = Screen(sys.stdout)
    if as_json:
        screen.write_json(task_document(TaskReference.parse(task.reference), *task.state))
    else:
        screen.write_text(task.reference)


async def _find_tool(name: str, client: Client, target: Target) -> Tool:
    request = partial(client.list_tools, timeout=target.timeout)
    tools = await list_if_any(client, target, "tools", request)
    for tool in tools:
        if tool.name == name:
            return tool
    raise unknown_name("tool", name, [tool.name for tool in tools])
