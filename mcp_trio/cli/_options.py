"""Options that several subcommands share, and the types of their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from mcp_core import ALL
from mcp_core.adapters import add_recording_options
from mcp_core.types import LOGGING_LEVELS

from ._errors import is_uri
from ._session import DEFAULT_LOG_LEVEL, DEFAULT_TIMEOUT
from .state._logins import add_keychain_option

__all__ = [
    "ARGUMENTS",
    "NO_WORDS",
    "REFERENCES",
    "URIS",
    "VariadicArgument",
    "add_asyncio",
    "add_config",
    "add_configured_options",
    "add_directory",
    "add_headers",
    "add_log_level",
    "add_module",
    "add_output",
    "add_process_options",
    "add_server_name",
    "add_server_options",
    "add_session_options",
    "add_timeout",
    "add_token",
    "add_variables",
    "existing_path",
    "refuse_yes",
]


Parser: TypeAlias = argparse.ArgumentParser | argparse._ArgumentGroup


class VariadicArgument(NamedTuple):
    """A positional argument that may be repeated. `fits` returns True if a word may be one."""

    usage: str
    metavar: str
    help: str
    fits: Callable[[str], bool]


ARGUMENTS: Final = VariadicArgument(
    "[KEY=VALUE ... | JSON]",
    "KEY=VALUE",
    "an argument, or all as a JSON object",
    lambda word: "=" in word or word.startswith("{"),
)
URIS: Final = VariadicArgument("[URI ...]", "URI", "a resource to subscribe to", is_uri)
REFERENCES: Final = VariadicArgument(
    "[REFERENCE]",
    "REFERENCE",
    "the task, as `mcp-trio call --detach` and `mcp-trio tasks list` print it",
    lambda word: word.startswith("mcp-task:"),
)
NO_WORDS: Final = VariadicArgument("", "", argparse.SUPPRESS, lambda word: False)


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every subcommand that connects to a server."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document, with the names of the protocol",
    )
    parser.add_argument(
        "--revision",
        metavar="VERSION",
        choices=list(ALL),
        help=f"use this revision of MCP only: {', '.join(ALL)} (default: the newest that the server"
        " knows)",
    )
    parser.add_argument(
        "--trace",
        action="store_true",
        help="show each message on stderr when it is sent or received",
    )
    add_headers(parser)
    add_token(
        parser, "; by default the token of `mcp-trio login` is sent, if the server requires one"
    )
    add_recording_options(parser)
    add_keychain_option(parser)
    _add_cleartext(parser)
    add_process_options(parser)
    add_module(parser)
    add_asyncio(parser)
    add_configured_options(parser)
    parser.add_argument(
        "--yes",
        action="store_true",
        help="with a server of the configuration files: approve calls of its tools, and what it"
        " offers, for this run, and store nothing. It does not start a server",
    )
    add_timeout(
        parser,
        "the timeout for the connection, and for each response; progress restarts it (default:"
        f" that of the configuration, or {DEFAULT_TIMEOUT:g})",
    )


def add_headers(parser: Parser, more: str = "") -> None:
    """Add `--header`. `more` follows its help text."""
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        dest="headers",
        type=_header,
        action="append",
        default=[],
        help=f"send this header with each request to URL (may be repeated){more}",
    )


def add_token(parser: Parser, more: str = "") -> None:
    """Add `--token-env`. `more` follows its help text."""
    parser.add_argument(
        "--token-env",
        metavar="VARIABLE",
        help=f"the environment variable that holds an access token for URL{more}",
    )


def add_process_options(parser: Parser) -> None:
    """Add the options of a command that is started: `--env`, `--inherit-env`, `--cwd`."""
    add_variables(
        parser,
        "give COMMAND this environment variable; without =VALUE with the value that it has here"
        " (may be repeated). Otherwise COMMAND gets a few only, such as PATH and HOME",
    )
    parser.add_argument(
        "--inherit-env",
        action="store_true",
        help="give COMMAND the whole environment, with any secrets in it",
    )
    add_directory(parser)


def add_variables(parser: Parser, help: str) -> None:
    """Add `--env`."""
    parser.add_argument(
        "--env",
        metavar="NAME[=VALUE]",
        type=_environment_variable,
        action="append",
        default=[],
        help=help,
    )


def add_directory(parser: Parser) -> None:
    """Add `--cwd`."""
    parser.add_argument(
        "--cwd", metavar="DIRECTORY", type=existing_path, help="start COMMAND in this directory"
    )


def add_module(parser: Parser) -> None:
    """Add `-m`."""
    parser.add_argument(
        "-m",
        dest="module",
        metavar="PACKAGE.MODULE[:NAME]",
        help="serve a module in place of FILE; it is found as by `python -m`, first in the current"
        " directory, or in that of --cwd",
    )


def add_asyncio(parser: Parser) -> None:
    """Add `--asyncio`."""
    parser.add_argument(
        "--asyncio",
        action="store_true",
        help="run FILE on asyncio, which its functions await, and not on trio",
    )


def add_timeout(parser: argparse.ArgumentParser, help: str) -> None:
    """Add `--timeout`, whose value is None by default."""
    parser.add_argument("--timeout", metavar="SECONDS", type=_seconds, help=help)


def add_config(parser: Parser) -> None:
    """Add `--config`."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="use this file only, in any of the formats that other programs have, as one that"
        " others may get",
    )


def add_configured_options(parser: Parser) -> None:
    """Add the options that name a server of configuration files, in place of its URL."""
    add_config(parser)
    add_server_name(parser)
    parser.add_argument(
        "--approve-server",
        metavar="NAME[@FILE]",
        action="append",
        default=[],
        help="start this server of a project's file, or connect to it, in this run without its"
        " approval, and store nothing. One that takes the place of a server of yours needs the file"
        " that has it: NAME@FILE (may be repeated)",
    )


def add_tried_server(parser: argparse.ArgumentParser) -> None:
    """Add the words and options of a server that `fuzz` and `bench` try.

    Both have `--allow-remote`.
    """
    # Values that `parse_server_command` reads, and that these two have no options for.
    parser.set_defaults(takes=NO_WORDS, positions=[], revision=None, trace=False, keychain=False)
    parser.add_argument("words", nargs="*", default=[], help=argparse.SUPPRESS)
    add_module(parser)
    add_asyncio(parser)
    add_configured_options(parser)
    refuse_yes(
        parser,
        "--allow-remote sends to another machine, and --approve-server NAME lets a server of the"
        " configuration files start",
    )
    add_headers(parser)
    add_token(parser)
    _add_cleartext(parser)


def _add_cleartext(parser: Parser) -> None:
    parser.add_argument(
        "--allow-cleartext",
        action="store_true",
        help="send tokens and other credentials to another machine although URL is not encrypted",
    )


def refuse_yes(parser: argparse.ArgumentParser, cure: str) -> None:
    """Refuse `--yes` with a sentence about what to write in its place."""
    parser.add_argument("--yes", action=_Refused, nargs=0, const=cure, help=argparse.SUPPRESS)


class _Refused(argparse.Action):
    """An option that a command doesn't have, although others do."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        parser.error(f"there is no {self.option_strings[0]} here: {self.const}")


def add_server_name(parser: Parser) -> None:
    """Add `--server`."""
    parser.add_argument(
        "--server",
        metavar="NAME",
        dest="server_name",
        help="use this server of the configuration files; `mcp-trio servers list` shows them",
    )


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--output`."""
    parser.add_argument("--output", metavar="FILE", type=Path, help=f"{what}; - is stdout")


def add_log_level(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level",
        metavar="LEVEL",
        choices=LOGGING_LEVELS,
        default=DEFAULT_LOG_LEVEL,
        help="show the server's log messages of this level and above on stderr:"
        f" {', '.join(LOGGING_LEVELS)} (default: %(default)s)",
    )


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for log messages, elicitation and roots."""
    add_log_level(parser)
    parser.add_argument(
        "--answer",
        metavar="KEY=VALUE|JSON",
        action="append",
        default=[],
        help="fill in a field of the first form that the server requests, as if typed; or, as"
        " a JSON"
        " object, a whole form. Without it, forms need a terminal (may be repeated, for other"
        " fields or other forms)",
    )
    parser.add_argument(
        "--root",
        metavar="PATH",
        dest="roots",
        type=existing_path,
        action="append",
        default=[],
        help="tell the server that it may work in this directory or file (may be repeated)",
    )


def _header(text: str) -> tuple[str, str]:
    """Parse `NAME: VALUE`, a header of HTTP requests."""
    name, colon, value = text.partition(":")
    name, value = name.strip(), value.strip()
    from mcp_core.http import HttpClientOptions

    try:
        if not colon:
            raise ValueError("there is no colon in it")
        HttpClientOptions(headers={name.lower(): value})
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"not a header: {exc}") from None
    return name, value


def _environment_variable(text: str) -> tuple[str, str | None]:
    """Parse `NAME[=VALUE]`. Without `=VALUE` the value is None."""
    name, equals, value = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text} is not a variable; write NAME=VALUE, or NAME")
    return name, value if equals else None


def existing_path(text: str) -> Path:
    try:
        return Path(text).resolve(strict=True)
    except OSError as exc:
        raise argparse.ArgumentTypeError(f"{text}: {exc.strerror}") from None


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(
            f"{text} is not a timeout; give a number of seconds above 0"
        )
    return seconds


_seconds.__name__ = "number of seconds"  # argparse shows this name if `float` raises
