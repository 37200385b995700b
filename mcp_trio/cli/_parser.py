"""The command line: what the parsers of all subcommands share, and the help of `mcp-trio`.

1. Each subcommand has a parser of its own: subparsers of argparse don't allow options between
   positional arguments.
2. An error that argparse cannot detect, such as a missing `--`, shows a command line that works.

The table of subcommands is in `_subcommands.py`. Options that several subcommands share are in
`_options.py`, the server's words in `_target.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias

from mcp_core import __version__

from ._errors import MISUSE, CliError
from ._options import NO_WORDS, VariadicArgument, add_server_options
from ._subcommands import SUBCOMMANDS, Subcommand
from ._target import is_server, shown_server

__all__ = [
    "EXIT_STATUSES",
    "READ_PARSER",
    "SUBCOMMANDS_OF_PARSER",
    "Command",
    "ParserRead",
    "group_parser",
    "new_parser",
    "parse",
    "server_parser",
]

# An option of every parser. No command line can contain it: arguments have no NUL.
READ_PARSER: Final = "-\0"
# The name of the default that holds a parser's table of subcommands.
SUBCOMMANDS_OF_PARSER: Final = "subcommands"

Command: TypeAlias = Callable[[], int]

EXIT_STATUSES: Final = """\
exit status:
  0    done
  1    the tool or the server returned an error, or FILE could not be imported
  2    the command line is wrong, or names something that the server does not have
  3    no connection: the server did not start, refused, timed out, or closed it; or it, or what
       it offers, is not approved
  4    nothing was judged or compared, so that it has neither passed nor failed
  70   the command has a fault: please report it
  130  Ctrl+C
  143  SIGTERM
"""


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status.

    Raises:
        SystemExit: argparse has printed help or an error.
        CliError: the command line is invalid in a way that argparse doesn't detect.
    """
    if words and words[0] in SUBCOMMANDS:
        return SUBCOMMANDS[words[0]].parse(words[1:])
    if words and is_server(words[0]):
        server = shown_server(words[0])
        raise CliError(
            f"{server} is not a subcommand; to see what the server offers: mcp-trio inspect"
            f" {server}"
        )
    parser = group_parser(
        None,
        SUBCOMMANDS,
        description="Model Context Protocol: run servers, inspect them, use them.",
        exit_statuses=EXIT_STATUSES,
    )
    parser.add_argument("--version", action="version", version=f"mcp-trio {__version__}")
    parser.parse_args(words)
    parser.print_help(sys.stderr)
    return lambda: MISUSE


class ParserRead(Exception):
    """Ends a subcommand that was called only to get its parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__(parser.prog)
        self.parser = parser


class ReadParser(argparse.Action):
    """The action of `READ_PARSER`: like `--help`, it ends the parsing."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(
            option_strings, argparse.SUPPRESS, 0, default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise ParserRead(parser)


def new_parser(
    name: str | None, *, description: str, usage: str | None = None, epilog: str = EXIT_STATUSES
) -> argparse.ArgumentParser:
    """Build the parser of a subcommand, or of `mcp-trio` without a name."""
    parser = argparse.ArgumentParser(
        prog="mcp-trio" if name is None else f"mcp-trio {name}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(READ_PARSER, action=ReadParser)
    return parser


def group_parser(
    name: str | None,
    subcommands: Mapping[str, Subcommand],
    *,
    description: str,
    exit_statuses: str,
) -> argparse.ArgumentParser:
    """Build the parser of a subcommand, or of `mcp-trio`, that has subcommands in a table."""
    command = "mcp-trio" if name is None else f"mcp-trio {name}"
    width = max(map(len, subcommands)) + 2
    lines = "".join(f"  {word:{width}}{each.summary}\n" for word, each in subcommands.items())
    parser = new_parser(
        name,
        usage=f"{command} COMMAND ...",
        description=description,
        epilog=f"commands:\n{lines}\n`{command} COMMAND --help` lists its options.\n\n"
        f"{exit_statuses}",
    )
    parser.set_defaults(**{SUBCOMMANDS_OF_PARSER: subcommands})
    parser.add_argument("command", choices=list(subcommands), nargs="?", help=argparse.SUPPRESS)
    return parser


_SERVER_HELP: Final = """

The server is at URL, or in FILE, a Python file as for `mcp-trio run`, or COMMAND ARG... starts it.
A server that is started runs on stdin and stdout, and is ended afterwards. --server NAME is a
server of the configuration files: see `mcp-trio servers --help`."""


def server_parser(
    name: str,
    *,
    description: str,
    example: str,
    takes: VariadicArgument = NO_WORDS,
    choices: Sequence[str] | None = None,
    **positions: str,
) -> argparse.ArgumentParser:
    """Build the parser of a subcommand that connects to a server.

    Args:
        name: the subcommand.
        description: what it does, for its help.
        example: one or more lines, for its help.
        takes: the words that may be repeated, after `positions`.
        choices: the values of the positional arguments; None for any.
        positions: names of positional arguments, in order, and the help of each.
    """
    words = " ".join(filter(None, [name, *positions, takes.usage]))
    parser = new_parser(
        name,
        usage=f"mcp-trio {words} [options] URL\n       mcp-trio {words} [options] FILE[:NAME]\n"
        f"       mcp-trio {words} [options] -- COMMAND ARG...\n"
        f"       mcp-trio {words} [options] --server NAME",
        description=description + _SERVER_HELP,
        epilog=f"example:\n  {example}\n\n{EXIT_STATUSES}",
    )
    parser.set_defaults(takes=takes, positions=[each.lower() for each in positions])
    for position, text in positions.items():
        parser.add_argument(position.lower(), metavar=position, choices=choices, help=text)
    parser.add_argument("words", metavar=takes.metavar, nargs="*", default=[], help=takes.help)
    add_server_options(parser)
    return parser
