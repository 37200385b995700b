"""`mcp-trio listen`: print a line for each change notification of a server.

1. A notification carries no data, so a line only names what changed: a list, or the URI of a
   resource. With `--json` each line is the notification, with the protocol's names.
2. The command ends by itself when no more notifications can come (the server ended the
   subscription, or the connection is lost), or when the reader of stdout has gone.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from mcp_core import ConnectionLost
from mcp_trio.cli._errors import NO_CONNECTION, CliError, check_uri, one_line
from mcp_trio.cli._options import URIS, add_log_level
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._screen import Screen, encode_json_line
from mcp_trio.cli._session import run_session
from mcp_trio.cli._target import parse_server_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_core import Change
    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import Target

__all__ = ["listen", "parse"]


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "listen",
        takes=URIS,
        description="Prints a line whenever something that a server offers changes, until"
        " Ctrl+C, or until\n"
        "the server ends the subscription. The line is tools, prompts or resources for a"
        " change of that\n"
        "list, or the URI of a resource. Without URI and options it subscribes to all three"
        " lists. With\n"
        "--json each line is a document.",
        example="mcp-trio listen tea://menu tea.py",
    )
    parser.add_argument("--tools", action="store_true", help="subscribe to the list of tools")
    parser.add_argument("--prompts", action="store_true", help="subscribe to the list of prompts")
    parser.add_argument(
        "--resources", action="store_true", help="subscribe to the list of resources"
    )
    add_log_level(parser)
    found, target = parse_server_command(parser, words)
    return partial(
        listen,
        target,
        found.words,
        tools=found.tools,
        prompts=found.prompts,
        resources=found.resources,
        as_json=found.json,
    )


def listen(
    target: Target,
    uris: Sequence[str],
    *,
    tools: bool,
    prompts: bool,
    resources: bool,
    as_json: bool,
) -> int:
    """Print changes until the subscription ends, and return the exit status.

    Args:
        target: the server.
        uris: the resources to subscribe to.
        tools: subscribe to the list of tools. Without any list and URI, all three lists are meant.
        prompts: subscribe to the list of prompts.
        resources: subscribe to the list of resources.
        as_json: print each notification as a JSON document.

    Raises:
        CliError: a URI is invalid, the connection failed, or the server supports no subscription
            that was requested.
    """
    for uri in uris:
        check_uri(uri)
    lists = {"tools": tools, "prompts": prompts, "resources": resources}
    if not uris and not any(lists.values()):
        lists = dict.fromkeys(lists, True)
    requested = [*(name for name, enabled in lists.items() if enabled), *dict.fromkeys(uris)]

    async def body(client: Client) -> int:
        screen = Screen(sys.stdout)
        try:
            async with client.listen(**lists, uris=uris, timeout=target.timeout) as changes:
                _print_subscription(
                    target.stderr,
                    requested,
                    [_format_change(change) for change in changes.honoured],
                )
                async for change in changes:
                    if as_json:
                        screen.write_bytes(_encode_change(change))
                    else:
                        screen.write_text(one_line(_format_change(change)))
                    if screen.reader_gone:
                        return 0
        except ConnectionLost as exc:
            cause, _, _ = str(exc).partition("\n")
            raise CliError(f"{cause}{target.stderr_hint}", NO_CONNECTION) from exc
        target.stderr.write_line("mcp-trio: the server has ended the subscription")
        return 0

    return run_session(target, body)


def _print_subscription(stderr: Screen, requested: Iterable[str], honoured: Sequence[str]) -> None:
    stderr.write_line("mcp-trio: listening to ", ", ".join(honoured))
    unsupported = [name for name in requested if name not in honoured]
    if unsupported:
        stderr.write_line(
            "mcp-trio: the server sends no notifications about ", " or ".join(unsupported)
        )


def _format_change(change: Change) -> str:
    return change.list or change.uri or ""


def _encode_change(change: Change) -> bytes:
    params = {} if change.uri is None else {"params": {"uri": change.uri}}
    return encode_json_line({"method": change.method, **params})
