"""`mcp-trio prompt`: get a prompt and print its messages, each below its role."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_trio.cli._arguments import parse_arguments
from mcp_trio.cli._errors import unknown_name
from mcp_trio.cli._options import ARGUMENTS, add_session_options
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._progress import show_progress
from mcp_trio.cli._screen import Screen, content_text, split_lines
from mcp_trio.cli._session import list_if_any, run_session
from mcp_trio.cli._target import parse_server_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_core.types import GetPromptResult, Prompt
    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import Target

__all__ = ["find_prompt", "parse", "prompt", "text_schema"]


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "prompt",
        takes=ARGUMENTS,
        description="Gets a prompt of a server, filled in with the arguments, and shows its"
        " messages.\n\n"
        "Every VALUE is text. A JSON object is sent to the server unchecked, and its members"
        " replace\n"
        "those given by KEY=VALUE.",
        example="mcp-trio prompt pack city=Lima days=5 weather.py",
        NAME="the name of the prompt; `mcp-trio inspect` lists them",
    )
    add_session_options(parser)
    found, target = parse_server_command(parser, words)
    return partial(prompt, target, found.name, found.words, as_json=found.json)


def prompt(target: Target, name: str, words: Sequence[str], *, as_json: bool) -> int:
    """Get a prompt, print its messages and return the exit status.

    Raises:
        CliError: the connection failed, the server has no such prompt, or an argument is invalid.
    """

    async def body(client: Client) -> int:
        found = target.local_name(name)
        accepted = (await find_prompt(found, client, target)).arguments or ()
        await target.require_approved("prompt", found)
        required = [argument.name for argument in accepted if argument.required]
        schema = text_schema([argument.name for argument in accepted], required)
        arguments = parse_arguments(words, schema, f"the prompt {found}")
        with show_progress(target.stderr, found) as progress:
            result = await client.get_prompt(found, arguments, **target.call_options(progress))
        screen = Screen(sys.stdout)
        if as_json:
            screen.write_json(result)
        else:
            _print_messages(result, screen)
        return 0

    return run_session(target, body)


async def find_prompt(name: str, client: Client, target: Target) -> Prompt:
    """Return the prompt as the server lists it.

    Raises:
        CliError: the server lists no such prompt.
    """
    request = partial(client.list_prompts, timeout=target.timeout)
    prompts = await list_if_any(client, target, "prompts", request)
    for found in prompts:
        if found.name == name:
            return found
    raise unknown_name("prompt", name, [found.name for found in prompts])


def text_schema(names: Iterable[str], required: Iterable[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema for arguments that are all strings, such as a prompt's."""
    return {
        "properties": {name: {"type": "string"} for name in names},
        "required": [*required],
        "additionalProperties": False,
    }


def _print_messages(result: GetPromptResult, screen: Screen) -> None:
    for index, message in enumerate(result.messages):
        if index:
            screen.write_line()
        screen.write_line((f"{message.role}:", "bold cyan"))
        # Indented: a text could contain a line such as "assistant:".
        for line in split_lines(content_text(message.content)):
            screen.write_line(f"  {line}".rstrip())
