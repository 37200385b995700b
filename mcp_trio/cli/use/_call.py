"""`mcp-trio call`: call a tool with arguments from the command line and print the result.

1. Text content is printed unchanged, so that it can be piped.
2. Structured content is printed unless a text block is the same value.
3. `--output` takes images, sounds and embedded resources, and the rest is printed. If there are
   none, it takes what would be printed.
"""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from mcp_core.types import TextContent
from mcp_trio.cli._arguments import parse_arguments
from mcp_trio.cli._errors import SERVER_ERROR, unknown_name
from mcp_trio.cli._progress import show_progress
from mcp_trio.cli._screen import Screen, content_text
from mcp_trio.cli._session import run_session, server_capabilities

from ._output import STDOUT, file_content, write_file, write_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mcp_core.types import CallToolResult
    from mcp_trio._client import Client
    from mcp_trio.cli._session import Target

__all__ = ["call"]


def call(
    target: Target, tool: str, words: Sequence[str], *, output: Path | None, as_json: bool
) -> int:
    """Call a tool, print the result or write it to `output`, and return the exit status.

    Raises:
        CliError: the connection failed, the server has no such tool, an argument is invalid, or
            `output` cannot be written.
    """

    async def body(client: Client) -> int:
        schema = await _input_schema(tool, client, target.timeout)
        arguments = parse_arguments(words, schema, f"the tool {tool}")
        with show_progress(target.stderr, tool) as progress:
            result = await client.call_tool(tool, arguments, **target.call_options(progress))
        screen = Screen(sys.stdout)
        # The content of an error is its explanation, and replaces no file.
        if output is not None and not result.is_error:
            _write_result(result, output, tool, screen, target.stderr, as_json=as_json)
        elif as_json:
            screen.write_json(result)
        else:
            _print_result(result, screen)
        if not result.is_error:
            return 0
        target.stderr.write_line(f"mcp-trio: the tool {tool} reported an error")
        return SERVER_ERROR

    return run_session(target, body)


async def _input_schema(name: str, client: Client, timeout: float) -> dict[str, Any]:
    tools = (
        await client.list_tools(timeout=timeout)
        if server_capabilities(client).tools is not None
        else []
    )
    for tool in tools:
        if tool.name == name:
            return tool.input_schema
    raise unknown_name("tool", name, [tool.name for tool in tools])


def _write_result(
    result: CallToolResult,
    output: Path,
    tool: str,
    stdout: Screen,
    stderr: Screen,
    *,
    as_json: bool,
) -> None:
    """Write the files of a result, or all of it if it has none, to `output`."""
    found = [(block, file_content(block)) for block in result.content]
    files = [content for _, content in found if content is not None]
    if as_json or not files:
        buffer = BytesIO()
        text = stdout if output == STDOUT else Screen(TextIOWrapper(buffer, "utf-8"))
        if as_json:
            text.write_json(result)
        else:
            _print_result(result, text)
        if output != STDOUT:
            write_file(output, buffer.getvalue())
        return
    rest = replace(result, content=[block for block, content in found if content is None])
    if output != STDOUT:
        write_files(output, files, tool, stderr)
        _print_result(rest, stdout)
    elif stdout.terminal:
        _print_result(result, stdout)  # a terminal gets no bytes of a server
    else:
        stdout.write_bytes(b"".join(content.data for content in files))
        _print_result(rest, stderr)


def _print_result(result: CallToolResult, screen: Screen) -> None:
    data = result.structured_content
    # Up to 2025-11-25 structured content is an object, and servers wrap any other value in a member
    # `result`.
    value = data["result"] if isinstance(data, dict) and data.keys() == {"result"} else data
    repeated = [
        block
        for block in result.content
        if isinstance(block, TextContent)
        and (_represents(block.text, value) or _represents(block.text, data))
    ]
    nested = isinstance(value, dict | list)  # easier to read indented than as one line of text
    for block in result.content:
        if not (nested and block in repeated):
            screen.write_text(content_text(block, "--output FILE saves them"))
    if data is not UNSET and (nested or not repeated):
        if len(result.content) > len(repeated):
            screen.write_line(("structured content:", "dim"))
        screen.write_json(data)


def _represents(text: str, value: Any) -> bool:
    """Return True if `text` is the value itself, or JSON of it."""
    try:
        return bool(text == value or json.loads(text) == value)
    except (ValueError, RecursionError):
        return False
