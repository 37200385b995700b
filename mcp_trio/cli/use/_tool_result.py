"""A tool's result, as `call` and `tasks result` print it.

1. Text content is printed unchanged, so that it can be piped.
2. Structured content is printed unless a text block is the same value.
3. `--output` writes images, sounds and embedded resources to files, and the rest is printed. If
   there are none, it writes the text that would be printed.
"""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from mcp_core.types import TextContent
from mcp_trio.cli._errors import SERVER_ERROR
from mcp_trio.cli._screen import Screen, content_text

from ._output import STDOUT, file_content, write_file, write_files

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_core.types import CallToolResult

__all__ = ["write_tool_result"]


def write_tool_result(
    result: CallToolResult, tool: str, stderr: Screen, *, output: Path | None, as_json: bool
) -> int:
    """Print a result or write it to `output`, and return the exit status.

    Raises:
        CliError: `output` cannot be written.
    """
    screen = Screen(sys.stdout)
    # The content of an error is its explanation, and replaces no file.
    if output is not None and not result.is_error:
        _write_result(result, output, tool, screen, stderr, as_json=as_json)
    elif as_json:
        screen.write_json(result)
    else:
        _print_result(result, screen)
    if not result.is_error:
        return 0
    stderr.write_line(f"mcp-trio: the tool {tool} reported an error")
    return SERVER_ERROR


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
        _print_result(result, stdout)  # a server's bytes never go to a terminal
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
