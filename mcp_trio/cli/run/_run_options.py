"""The options of `mcp-trio run`.

They aren't in `_run.py`, because `mcp-trio run FILE` uses none of them and imports no argparse.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from mcp_core.adapters import ServedSourceError, add_run_options, read_run_options
from mcp_trio.cli._errors import source_error
from mcp_trio.cli._options import add_asyncio
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.cli._parser import Command

__all__ = ["parse"]


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser(
        "run",
        description="Imports FILE and serves its mcp_trio.Server over stdin and stdout, to the"
        " client that\n"
        "starts this command. With --http it serves any number of clients, at a URL that it"
        " prints.\n\n"
        "FILE finds modules as with `python FILE`: first in its own directory, and not in the"
        " current one.",
    )
    add_run_options(parser)
    add_asyncio(parser)
    parser.add_argument(
        "--reload",
        action="store_true",
        help="start the server again when FILE changes, or a module that it imports from its"
        " directory; clients stay connected",
    )
    warnings: list[str] = []
    try:
        options = read_run_options(parser, words, warnings.append)
    except ServedSourceError as exc:
        raise source_error(exc) from None
    if options.reload:
        from mcp_trio.cli.run._reload import run_reloading

        child = [word for word in words if word != "--reload"]
        return partial(run_reloading, options.source, child, options.http)
    if options.asyncio:
        # Another driver, which this package doesn't know otherwise.
        run_on_asyncio = import_module("mcp_asyncio_shim.__main__").main
        return partial(run_on_asyncio, [word for word in words if word != "--asyncio"])
    for warning in warnings:  # the other driver reads the options itself
        Screen(sys.stderr).write_line(warning)
    from mcp_trio.cli.run._run import run, run_http

    if options.http is None:
        return partial(run, options.source, options.recording, options.keys_variable)
    return partial(run_http, options.source, options.http, options.recording, options.keys_variable)
