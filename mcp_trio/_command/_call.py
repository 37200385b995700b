"""`mcp-trio call`: one tool, its arguments from the command line, its result on stdout.

Rules of this file:

1. What the tool wrote for people comes out as it is, so that it can be piped. Pictures and sounds are told of in a line.
2. Structured content is shown unless the text says the very same.
3. Progress goes to stderr: a bar on a terminal, lines elsewhere.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from mcp_core import types as t

from ._arguments import arguments_from, did_you_mean
from ._problem import ANSWERED_ERROR, Problem
from ._screen import Screen, clean
from ._talk import talk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcp_core.types import CallToolResult, ContentBlock
    from mcp_trio import Client

    from ._talk import Target

    Progress = Callable[[float, float | None, str | None], object]

__all__ = ["call"]


def call(target: Target, tool: str, words: Sequence[str], *, as_json: bool) -> int:
    """Call a tool and show the result; returns the exit status.

    Raises:
        Problem: the conversation went wrong, there is no such tool, or the arguments do not fit it.
    """

    async def body(client: Client) -> int:
        schema = await _schema_of(tool, client, target.timeout)
        arguments = arguments_from(words, schema, tool)
        with _progress(target.stderr, tool) as progress:
            result = await client.call_tool(tool, arguments, timeout=target.timeout, progress=progress)
        screen = Screen(sys.stdout)
        if as_json:
            screen.write_json(result)
        else:
            _show(result, screen)
        if not result.is_error:
            return 0
        target.stderr.say(f"mcp-trio: the tool {tool} says that this is an error")
        return ANSWERED_ERROR

    return talk(target, body)


async def _schema_of(name: str, client: Client, timeout: float) -> dict[str, Any]:
    declared = cast("t.ServerCapabilities", client.peer.capabilities)
    tools = await client.list_tools(timeout=timeout) if declared.tools is not None else []
    for tool in tools:
        if tool.name == name:
            return tool.input_schema
    names = [tool.name for tool in tools]
    has = f"its tools are {', '.join(names)}" if names else "it has none"
    raise Problem(f"the server has no tool {name}; {has}.{did_you_mean(name, names)}")


# --- The result ----------------------------------------------------------------------------------------------------------


def _show(result: CallToolResult, screen: Screen) -> None:
    data = result.structured_content
    # Up to 2025-11-25 structured content is an object, and servers put what is none into a member `result`.
    value = data["result"] if isinstance(data, dict) and data.keys() == {"result"} else data
    said = [
        block
        for block in result.content
        if isinstance(block, t.TextContent) and (_says(block.text, value) or _says(block.text, data))
    ]
    nested = isinstance(value, dict | list)  # easier to read folded than as the text has it
    for block in result.content:
        if not (nested and block in said):
            screen.show(_text_of(block))
    if data is not UNSET and (nested or not said):
        if len(result.content) > len(said):
            screen.say(("structured content:", "dim"))
        screen.show(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def _says(text: str, value: Any) -> bool:
    try:
        return bool(text == value or json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _text_of(block: ContentBlock) -> str:
    if isinstance(block, t.TextContent):
        return block.text
    if isinstance(block, t.ResourceLink):
        return f"[{block.uri}: {block.title or block.name}]"
    if isinstance(block, t.EmbeddedResource):
        found = block.resource
        return (
            found.text if found.text is not None else _summary(found.uri, found.mime_type, found.blob or "")
        )
    return _summary(block.type, block.mime_type, block.data)


def _summary(what: str, mime_type: str | None, base64: str) -> str:
    size = len(base64.rstrip("=")) * 3 // 4
    return f"[{what}{f', {mime_type}' if mime_type else ''}, {size} bytes; --json shows them]"


# --- Progress ------------------------------------------------------------------------------------------------------------


@contextmanager
def _progress(screen: Screen, tool: str) -> Iterator[Progress]:
    """What to call with each progress message."""

    def line(done: float, total: float | None, message: str | None) -> None:
        of = f" of {total:g}" if total is not None else ""
        screen.say(f"{done:g}{of}", f"  {message}" if message else "")

    if screen.terminal:
        with _bar(screen, tool) as bar:
            yield bar
    else:
        yield line


@contextmanager
def _bar(screen: Screen, tool: str) -> Iterator[Progress]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    # It shows nothing until a task is added: most tools have no progress.
    shown = Progress(
        *columns, console=screen.console, transient=True, redirect_stdout=False, redirect_stderr=False
    )
    tasks: list[Any] = []

    def move(done: float, total: float | None, message: str | None) -> None:
        if not tasks:
            shown.start()
            tasks.append(shown.add_task(tool, total=None))
        shown.update(tasks[0], completed=done, total=total, description=clean(message or tool))

    try:
        yield move
    finally:
        shown.stop()
