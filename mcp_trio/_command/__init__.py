"""The command `mcp-trio`: serve a file, look into a server, use what it offers, see it all happen.

Rules of this package:

1. stdout carries what was asked for, stderr everything else: traces, logs, progress, questions, complaints. With `--json` stdout is
   one JSON document, or one a line where there is no end.
2. Whoever uses the command reads sentences: what is wrong, and what to do about it. A traceback is shown for the user's
   own file only.
3. `run` is what clients start, so it starts fast: it imports neither argparse nor rich. The others import rich only to
   write on a terminal.
4. Only here is logging configured, and of all loggers only `mcp_trio`.

What MCP says and how it is spoken is the library's; the command uses what any user of the library could. Subcommands,
options and exit statuses are in `_parser.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mcp_core import McpTrioError

from ._problem import INTERRUPTED, NO_CONVERSATION, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status. `argv` is `sys.argv[1:]` by default.

    Raises:
        SystemExit: argparse has shown help or a complaint.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _act(words)
    except (Problem, McpTrioError) as exc:
        from ._screen import Screen

        Screen(sys.stderr).say(f"mcp-trio: {exc}")
        return exc.status if isinstance(exc, Problem) else NO_CONVERSATION
    except KeyboardInterrupt:
        return INTERRUPTED


def _act(words: list[str]) -> int:
    if words[:1] == ["run"] and len(words) == 2 and not words[1].startswith("-"):
        from ._run import run

        return run(words[1])
    from ._parser import parse

    return parse(words)()
