"""`mcp-trio complete`: print the values that a server suggests for an argument, one per line.

The prompt or template and its argument must be listed by the server. A server answers a request
for an unknown argument with no values, so a mistyped name would go unnoticed.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from mcp_core.types import CompleteParams
from mcp_core.urls import InvalidUriTemplate, UriTemplate
from mcp_trio.cli._arguments import parse_arguments
from mcp_trio.cli._errors import CliError, one_line, unknown_argument, unknown_name
from mcp_trio.cli._options import ARGUMENTS
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import run_session, server_capabilities
from mcp_trio.cli._target import parse_server_command

from ._prompt import find_prompt, text_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.types import Completion
    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import Target

__all__ = ["complete", "parse"]


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "complete",
        takes=ARGUMENTS,
        description="Asks a server to complete an argument that begins with VALUE ('' for any), and"
        " prints\n"
        "the values that it suggests, one a line. KEY=VALUE are the values of other arguments.",
        example="mcp-trio complete pack city L weather.py",
        REF="the name of a prompt, or a resource template; `mcp-trio inspect` lists them",
        ARGUMENT="the argument of the prompt, or the variable of the template",
        VALUE="the beginning of the value",
    )
    found, target = parse_server_command(parser, words)
    return partial(
        complete, target, found.ref, found.argument, found.value, found.words, as_json=found.json
    )


def complete(
    target: Target, name: str, argument: str, value: str, words: Sequence[str], *, as_json: bool
) -> int:
    """Print completions of an argument and return the exit status.

    Args:
        target: the server.
        name: a prompt's name, or a resource template.
        argument: the prompt's argument, or the variable of the template.
        value: the beginning of the value.
        words: KEY=VALUE or JSON, the arguments that have a value already.
        as_json: print the result as a JSON document.

    Raises:
        CliError: the connection failed, the server has no such prompt or template, or it has no
            such argument.
    """
    template = _parse_template(name) if "{" in name or "://" in name else None

    async def body(client: Client) -> int:
        if template is not None:
            await _require_template(name, client, target.timeout)
            owner = f"the template {name}"
            known = template.variables
        else:
            found = await find_prompt(name, client, target)
            owner = f"the prompt {name}"
            known = tuple(each.name for each in found.arguments or ())
        if argument not in known:
            raise unknown_argument(owner, argument, known)
        settled = parse_arguments(words, text_schema(known), owner)
        if settled and client.peer.dialect.lacks(CompleteParams, "context"):
            unsent = " and ".join(settled)
            target.stderr.write_line(
                f"mcp-trio: revision {client.peer.dialect.version} cannot send other"
                f" arguments: {unsent}"
            )
        completion = await client.complete(
            name, argument, value, arguments=settled or None, timeout=target.timeout
        )
        screen = Screen(sys.stdout)
        if as_json:
            screen.write_json(completion)
        else:
            _print_completion(completion, screen, target.stderr)
        return 0

    return run_session(target, body)


def _parse_template(text: str) -> UriTemplate:
    try:
        return UriTemplate(text)
    except InvalidUriTemplate as exc:
        raise CliError(f"{exc}; `mcp-trio inspect` lists the server's templates") from None


async def _require_template(text: str, client: Client, timeout: float) -> None:
    has_resources = server_capabilities(client).resources is not None
    templates = await client.list_resource_templates(timeout=timeout) if has_resources else []
    known = [found.uri_template for found in templates]
    if text not in known:
        raise unknown_name("resource template", text, known)


def _print_completion(completion: Completion, screen: Screen, stderr: Screen) -> None:
    values = completion.values
    total = completion.total
    for value in values:
        screen.write_text(one_line(value))
    if not values:
        stderr.write_line("mcp-trio: the server suggests no values")
    elif total is not None and total > len(values):
        stderr.write_line(f"mcp-trio: these are {len(values)} of {total} values")
    elif completion.has_more:
        stderr.write_line("mcp-trio: the server has more values")
