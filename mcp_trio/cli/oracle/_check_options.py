"""The options of `mcp-trio check`.

They aren't in `_check.py`, because `mcp-trio check --help` shouldn't import the rules.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from mcp_trio.cli._parser import new_parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.cli._parser import Command

__all__ = ["parse"]

_EPILOG: Final = """\
example:
  mcp-trio check a.mcp.jsonl

exit status:
  0    nothing was found
  1    at least one rule is broken
  2    the command line is wrong, or FILE has no messages of MCP
  4    nothing was judged: a side has no message in FILE
  70   an internal error of this command
"""


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser(
        "check",
        description="Judges the messages in FILE by the rules of the specification, both sides of"
        " it. FILE is a\n"
        "trace, or another program's file: JSON messages, one a line or in an array, an export of\n"
        "the Inspector, or a log with messages in its lines. A finding has the line, the rule and\n"
        "its page. What the file cannot show is inconclusive, which is no fault.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "file", metavar="FILE", help="the file, such as a.mcp.jsonl; - for standard input"
    )
    parser.add_argument(
        "--side", choices=("client", "server", "both"), default="both", help="judge one side only"
    )
    parser.add_argument(
        "--level",
        choices=("must", "should", "all"),
        default="should",
        help="the lowest level of findings: must, should (the default), or all",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--junit", metavar="REPORT", help="write a report of JUnit to REPORT")
    parser.add_argument(
        "--baseline",
        metavar="REPORT",
        help="leave out the findings of REPORT, which --json has written",
    )
    parser.add_argument("--rows", action="store_true", help="print what became of every rule")
    found = parser.parse_args(words)
    from ._check import check

    return partial(
        check,
        found.file,
        side=found.side,
        level=found.level,
        as_json=found.json,
        junit=found.junit,
        baseline=found.baseline,
        rows=found.rows,
    )
