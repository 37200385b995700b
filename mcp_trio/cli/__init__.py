"""The command `mcp-trio`: serve a file, inspect a server, and use what the server offers.

1. stdout carries the result. stderr carries traces, logs, progress, questions and errors. With
   `--json`, stdout is one JSON document; for `listen`, which has no last one, it is one document
   per line.
2. An error is a sentence for the user: the cause, then the cure. A traceback is shown only for the
   user's own file, or if the command itself has a fault. Only a fault has the exit status 70.
3. Only this package configures logging, and only the logger `mcp_trio`.

The table of subcommands is in `_subcommands.py`, the exit statuses are in `_parser.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mcp_core import McpTrioError, __version__, escape_text

from ._errors import (
    INTERNAL_ERROR,
    INTERRUPTED,
    NO_CONNECTION,
    SERVER_ERROR,
    CliError,
    file_source,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Args:
        argv: the arguments of the command line; `sys.argv[1:]` by default.

    Raises:
        SystemExit: argparse has printed help or an error.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run_subcommand(arguments)
    except (CliError, McpTrioError) as exc:
        from ._screen import Screen

        if isinstance(exc, OSError):  # a `CannotRecord`: the option is wrong
            exc = CliError(str(exc))
        Screen(sys.stderr).write_message(f"mcp-trio: {exc}")
        return exc.status if isinstance(exc, CliError) else NO_CONNECTION
    except KeyboardInterrupt:
        return INTERRUPTED
    except (Exception, BaseExceptionGroup) as exc:  # noqa: BLE001 - of the user's file, or ours
        from traceback import format_exc

        from mcp_core.adapters import is_of_served_code

        # A server's text may be in it.
        print(escape_text(format_exc(), "\n\t"), end="", file=sys.stderr)
        if is_of_served_code(exc):
            return SERVER_ERROR
        print(
            f"mcp-trio: this is an internal error of mcp-trio {__version__}, and says nothing about"
            " a server or a client; please report it with the traceback and the command line",
            file=sys.stderr,
        )
        return INTERNAL_ERROR


def _run_subcommand(arguments: list[str]) -> int:
    # Clients start `run FILE`, so it must start fast: it imports neither argparse nor rich.
    if arguments[:1] == ["run"] and len(arguments) == 2 and not arguments[1].startswith("-"):
        from mcp_trio.cli.run._run import run

        return run(file_source(arguments[1]))
    from ._parser import parse

    return parse(arguments)()
