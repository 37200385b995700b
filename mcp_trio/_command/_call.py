"""`mcp-trio call`: one tool, its arguments from the command line, its result on stdout.

Rules of this file:

1. What the tool wrote for people comes out as it is, so that it can be piped.
2. Structured content is shown unless the text says the very same.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcp_core.types import TextContent

from ._arguments import arguments_from
from ._content import text_of
from ._names import no_such
from ._problem import ANSWERED_ERROR
from ._progress import progress_on
from ._screen import Screen
from ._talk import declared_by, talk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.types import CallToolResult
    from mcp_trio import Client

    from ._talk import Target

__all__ = ["call"]


def call(target: Target, tool: str, words: Sequence[str], *, as_json: bool) -> int:
    """Call a tool and show the result; returns the exit status.

    Raises:
        Problem: the conversation went wrong, there is no such tool, or the arguments do not fit it.
    """

    async def body(client: Client) -> int:
        schema = await _schema_of(tool, client, target.timeout)
        arguments = arguments_from(words, schema, f"the tool {tool}")
        with progress_on(target.stderr, tool) as progress:
            result = await client.call_tool(tool, arguments, **target.call_options(progress))
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
    tools = await client.list_tools(timeout=timeout) if declared_by(client).tools is not None else []
    for tool in tools:
        if tool.name == name:
            return tool.input_schema
    raise no_such("tool", name, [tool.name for tool in tools])


def _show(result: CallToolResult, screen: Screen) -> None:
    data = result.structured_content
    # Up to 2025-11-25 structured content is an object, and servers put what is none into a member `result`.
    value = data["result"] if isinstance(data, dict) and data.keys() == {"result"} else data
    said = [
        block
        for block in result.content
        if isinstance(block, TextContent) and (_says(block.text, value) or _says(block.text, data))
    ]
    nested = isinstance(value, dict | list)  # easier to read folded than as the text has it
    for block in result.content:
        if not (nested and block in said):
            screen.show(text_of(block))
    if data is not UNSET and (nested or not said):
        if len(result.content) > len(said):
            screen.say(("structured content:", "dim"))
        screen.show(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def _says(text: str, value: Any) -> bool:
    try:
        return bool(text == value or json.loads(text) == value)
    except (ValueError, RecursionError):
        return False
