"""The command `mcp-trio`: serve a file, inspect a server, and use what the server offers.

1. stdout carries the result. stderr carries traces, logs, progress, questions and errors. With
   `--json`, stdout is one JSON document, or one a line for `listen`, which has no last one.
2. An error is a sentence for the user: the cause, then the cure. A traceback is shown only for
   the user's own file, or if the command itself has a fault.
3. Only this package configures logging, and only the logger `mcp_trio`.

Subcommands, options and exit statuses are in `_parser.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mcp_core import McpTrioError, escape_text

from ._errors import INTERRUPTED, NO_CONNECTION, SERVER_ERROR, CliError

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
    except Exception:  # noqa: BLE001 - an error of the user's file, or ours
        from traceback import format_exc

        # A server's text may be in it.
        print(escape_text(format_exc(), "\n\t"), end="", file=sys.stderr)
        return SERVER_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


def _run_subcommand(arguments: list[str]) -> int:
    # Clients start `run FILE`, so it must start fast: it imports neither argparse nor rich.
    if arguments[:1] == ["run"] and len(arguments) == 2 and not arguments[1].startswith("-"):
        from mcp_trio.cli.serve._run import run

        return run(arguments[1])
    from ._parser import parse

    return parse(arguments)()
