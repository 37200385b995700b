"""The command line of `mcp-trio servers`: a group of subcommands, each with a parser of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from mcp_core.host import CLIENT_FORMATS
from mcp_trio.cli._errors import MISUSE, CliError
from mcp_trio.cli._options import (
    add_asyncio,
    add_config,
    add_directory,
    add_headers,
    add_module,
    add_timeout,
    add_variables,
)
from mcp_trio.cli._parser import Command, group_parser, new_parser
from mcp_trio.cli._served_file import absolute_file, serving_command
from mcp_trio.cli._session import DEFAULT_TIMEOUT
from mcp_trio.cli._subcommands import SERVERS_SUBCOMMANDS
from mcp_trio.cli._target import (
    ASYNCIO_NEEDS_FILE,
    invalid_url,
    is_server,
    is_url,
    require_url,
    require_utf_8,
)

from ._places import SCOPES

__all__ = [
    "parse",
    "parse_add",
    "parse_approve",
    "parse_disable",
    "parse_enable",
    "parse_get",
    "parse_import",
    "parse_list",
    "parse_remove",
]

_EXIT_STATUSES: Final = """\
exit status:
  0    done
  1    a configuration file cannot be read or changed, or the server cannot be used
  2    the command line is wrong, or names a server that is not there
  3    not confirmed or not approved, or no connection
  130  Ctrl+C
"""
_FILES: Final = """

The servers are in the files .mcp.local.json and .mcp.json of the project, and mcp-trio/mcp.json in
your configuration directory. Of several servers with one name the first one counts."""


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs `mcp-trio servers` and returns the exit status.

    Args:
        words: the words after `servers`.

    Raises:
        SystemExit: argparse has printed help or an error.
        CliError: the command line is invalid in a way that argparse doesn't detect.
    """
    if words and words[0] in SERVERS_SUBCOMMANDS:
        return SERVERS_SUBCOMMANDS[words[0]].parse(words[1:])
    parser = group_parser(
        "servers",
        SERVERS_SUBCOMMANDS,
        description="Adds, shows and changes the servers in configuration files." + _FILES,
        exit_statuses=_EXIT_STATUSES,
    )
    parser.parse_args(words)
    parser.print_help(sys.stderr)
    return lambda: MISUSE


def parse_list(words: Sequence[str]) -> Command:
    """Return a function that runs `servers list` and returns the exit status."""
    parser = _server_parser(
        "list",
        description="Shows the servers of the configuration files, and connects to those that are"
        " approved: their\nstates, how many tools they have, what has changed since you approved"
        " it, and what may deceive\nyou in it. Nothing is approved or stored." + _FILES,
        example="mcp-trio servers list",
        name=False,
    )
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--no-connect",
        action="store_true",
        help="start no server and connect to none",
    )
    _add_connect_timeout(parser)
    found = parser.parse_args(words)
    from ._list import list_servers

    return partial(
        list_servers,
        config=found.config,
        as_json=found.json,
        connects=not found.no_connect,
        timeout=found.timeout or DEFAULT_TIMEOUT,
    )


def parse_approve(words: Sequence[str]) -> Command:
    """Return a function that runs `servers approve` and returns the exit status."""
    parser = _server_parser(
        "approve",
        usage="mcp-trio servers approve [options] NAME ...\n"
        "       mcp-trio servers approve [options] --all",
        description="Shows what servers run or connect to, and what they offer, and stores what you"
        " approve. Of a\nserver that was approved before only what is new or has changed is shown."
        " It needs a terminal." + _FILES,
        example="mcp-trio servers approve docs",
        name=False,
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="a server")
    parser.add_argument(
        "--all", action="store_true", help="all servers that are not disabled, one after the other"
    )
    parser.add_argument("--yes", action="store_true", help=argparse.SUPPRESS)
    add_config(parser)
    _add_connect_timeout(parser)
    found = parser.parse_intermixed_args(words)
    if found.yes:
        raise CliError(
            "servers approve has no --yes: it stores what a person has seen and approved. In a"
            " single run without questions --approve-server NAME starts a server, and --yes"
            " approves calls, and what it offers: mcp-trio call --approve-server NAME --yes ..."
        )
    if bool(found.names) == found.all:
        parser.error("give the names of servers, or --all, and not both")
    for name in found.names:
        require_utf_8(name)
    from ._approve import approve

    return partial(
        approve,
        found.names,
        all_servers=found.all,
        config=found.config,
        timeout=found.timeout or DEFAULT_TIMEOUT,
    )


def _add_connect_timeout(parser: argparse.ArgumentParser) -> None:
    add_timeout(parser, f"the timeout for the connections (default: {DEFAULT_TIMEOUT:g})")


def parse_add(words: Sequence[str]) -> Command:
    """Return a function that runs `servers add` and returns the exit status."""
    parser = _server_parser(
        "add",
        usage="mcp-trio servers add NAME [options] URL\n"
        "       mcp-trio servers add NAME [options] FILE[:NAME]\n"
        "       mcp-trio servers add NAME [options] -- COMMAND ARG...",
        description="Writes a server into a configuration file: the one at URL, the one in the"
        " Python file FILE,\nor the one that COMMAND ARG... starts. The change is shown, and made"
        " if you agree. A copy of\nthe old file is kept beside it.",
        example="mcp-trio servers add docs https://docs.example.com/mcp"
        " --header 'Authorization: Bearer ${DOCS_TOKEN}'\n"
        "  mcp-trio servers add files --scope project -- npx -y"
        " @modelcontextprotocol/server-filesystem .",
    )
    parser.add_argument(
        "server", metavar="FILE", nargs="?", help="the URL or the Python file of the server"
    )
    _add_scope(parser, default="user")
    add_variables(
        parser,
        "give the server this environment variable (may be repeated). NAME alone stores the value"
        " that it has here, or in a file that others may get a reference to the variable",
    )
    add_directory(parser)
    add_module(parser)
    add_asyncio(parser)
    add_headers(parser, "; ${NAME} in VALUE stands for an environment variable")
    parser.add_argument(
        "--transport",
        choices=["http", "sse", "ws"],
        help="how to talk to URL: Streamable HTTP, HTTP+SSE or WebSocket (default: http, or ws for"
        " ws:// and wss://)",
    )
    for word, what in ("allow", "let only this tool be used"), ("deny", "let no one use this tool"):
        parser.add_argument(
            f"--{word}-tool",
            metavar="TOOL",
            action="append",
            default=[],
            help=f"{what} (may be repeated); mcp-trio holds to it, and not each program that reads"
            " the file",
        )
    _add_replace(parser, "replace a server that has this name in the file")
    _add_confirmation(parser)
    cut = words.index("--") if "--" in words else len(words)
    found = parser.parse_intermixed_args(words[:cut])
    command = tuple(words[cut + 1 :])
    if not found.name:
        parser.error("the name of a server must not be empty")
    for word in (*words, str(found.cwd)):
        require_utf_8(word)
    from ._add import NewServer, add

    url, command = _read_server(parser, found, command)
    server = NewServer(
        url=url,
        command=command,
        transport=found.transport,
        variables=found.env,
        headers=found.headers,
        cwd=found.cwd,
        allowed_tools=tuple(found.allow_tool),
        denied_tools=tuple(found.deny_tool),
    )
    return partial(
        add,
        found.name,
        server,
        config=found.config,
        scope=_scope(parser, found) or "user",
        replace=found.replace,
        dry_run=found.dry_run,
        yes=found.yes,
    )


def _read_server(
    parser: argparse.ArgumentParser, found: argparse.Namespace, command: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """Return the URL of the server, and the command that starts it. One of them is empty.

    Raises:
        SystemExit: argparse has printed an error: there is no server, or an option isn't for it.
        CliError: the server isn't a URL or a Python file, or there is no such file.
    """
    word = found.server or ""
    if [bool(word), bool(command), found.module is not None].count(True) != 1:
        problem = (
            "leave one of them out"
            if word or command
            else "give its URL or file, or after -- COMMAND"
        )
        parser.error(f"which server? {problem}")
    url = word if is_url(word) else ""
    if found.asyncio and (url or command):
        parser.error(ASYNCIO_NEEDS_FILE)
    if url:
        require_url(url)
        for option in "env", "cwd":
            if getattr(found, option):
                parser.error(f"--{option} is for a server that is started, not for a URL")
        return url, ()
    for option in "headers", "transport":
        if getattr(found, option):
            parser.error(f"--{option.removesuffix('s')} is for the URL of a server")
    if "://" in word or (command and "://" in command[0]):
        raise invalid_url(word or command[0])
    if word and not is_server(word):
        raise CliError(
            f"{word} is neither a URL nor a Python file (FILE.py or FILE.py:NAME); the command that"
            f" starts a server comes after `--`: mcp-trio servers add NAME -- {word}"
        )
    if found.module is not None:
        command = serving_command("-m", found.module, asyncio=found.asyncio)
    elif word:
        command = serving_command(absolute_file(word), asyncio=found.asyncio)
    return "", command


def parse_get(words: Sequence[str]) -> Command:
    """Return a function that runs `servers get` and returns the exit status."""
    parser = _server_parser(
        "get",
        description="Shows the entry that is used for a server: its file, how the server is started"
        " or reached,\nwhich variables it gets, and what is wrong with it. Values of variables and"
        " headers are hidden." + _FILES,
        example="mcp-trio servers get docs",
    )
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    found = parser.parse_args(words)
    from ._get import get

    return partial(get, found.name, config=found.config, as_json=found.json)


def parse_remove(words: Sequence[str]) -> Command:
    """Return a function that runs `servers remove` and returns the exit status."""
    parser = _server_parser(
        "remove",
        description="Removes a server from a configuration file. The change is shown, and made if"
        " you agree. A\ncopy of the old file is kept beside it." + _FILES,
        example="mcp-trio servers remove docs --scope user",
    )
    _add_scope(parser)
    _add_confirmation(parser)
    found = parser.parse_args(words)
    from ._change import remove

    return partial(
        remove,
        found.name,
        config=found.config,
        scope=_scope(parser, found),
        dry_run=found.dry_run,
        yes=found.yes,
    )


def parse_enable(words: Sequence[str]) -> Command:
    """Return a function that runs `servers enable` and returns the exit status."""
    return _parse_enabling("enable", words)


def parse_disable(words: Sequence[str]) -> Command:
    """Return a function that runs `servers disable` and returns the exit status."""
    return _parse_enabling("disable", words)


def _parse_enabling(word: str, words: Sequence[str]) -> Command:
    is_enabling = word == "enable"
    parser = _server_parser(
        word,
        description=(
            "Turns a server on that a configuration file turns off."
            if is_enabling
            else "Turns a server off in its configuration file, and keeps its entry."
        )
        + " The change is\nmade at once, and a copy of the old file is kept beside it."
        + _FILES,
        example=f"mcp-trio servers {word} docs",
    )
    _add_scope(parser)
    found = parser.parse_args(words)
    from ._change import set_enabled

    return partial(
        set_enabled,
        found.name,
        is_enabling,
        config=found.config,
        scope=_scope(parser, found),
    )


def parse_import(words: Sequence[str]) -> Command:
    """Return a function that runs `servers import` and returns the exit status."""
    parser = _server_parser(
        "import",
        usage="mcp-trio servers import (--from CLIENT | --from-file FILE) [options] [NAME ...]",
        description="Copies servers from the file of another program into a configuration file of"
        " mcp-trio,\nwith their variables in its syntax. Values that look"
        " like secrets are asked about,\nand replaced by references to variables if you do not keep"
        " them. The change is shown, and\nmade if you agree. A copy of the old file is kept beside"
        " it.",
        example="mcp-trio servers import --from cursor github",
        name=False,
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="a server (default: all)")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--from",
        dest="client",
        choices=list(CLIENT_FORMATS),
        help="the program, whose file for you is read",
    )
    source.add_argument(
        "--from-file",
        metavar="FILE",
        type=Path,
        help="a file, whose path or content shows the program",
    )
    _add_scope(parser, default="user")
    _add_replace(parser, "replace servers that have such names in the file")
    _add_confirmation(parser, yes=", with references in place of secrets")
    found = parser.parse_intermixed_args(words)
    from ._import import import_from

    return partial(
        import_from,
        None if found.client is None else CLIENT_FORMATS[found.client],
        found.from_file,
        found.names,
        config=found.config,
        scope=_scope(parser, found) or "user",
        replace=found.replace,
        dry_run=found.dry_run,
        yes=found.yes,
    )


def _server_parser(
    word: str,
    *,
    description: str,
    example: str,
    usage: str | None = None,
    name: bool = True,
) -> argparse.ArgumentParser:
    """Build the parser of a subcommand of `servers`, with a server's name if it has one."""
    parser = new_parser(
        f"servers {word}",
        usage=usage,
        description=description,
        epilog=f"example:\n  {example}\n\n{_EXIT_STATUSES}",
    )
    if name:
        parser.add_argument("name", metavar="NAME", help="the name of the server")
    return parser


def _add_scope(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    add_config(parser)
    shown = default or "the only file that has the server"
    parser.add_argument(
        "--scope",
        choices=list(SCOPES),
        help="the file for you in all projects, for all users of this project, or for you in this"
        f" project (default: {shown})",
    )


def _add_replace(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--replace", action="store_true", help=help)


def _add_confirmation(parser: argparse.ArgumentParser, yes: str = "") -> None:
    parser.add_argument("--dry-run", action="store_true", help="show the change only")
    parser.add_argument(
        "--yes", action="store_true", help=f"make the change without a question{yes}"
    )


def _scope(parser: argparse.ArgumentParser, found: argparse.Namespace) -> str | None:
    if found.config is not None and found.scope is not None:
        parser.error("--config names the file: leave --scope out")
    scope: str | None = found.scope
    return scope
