"""The options of `mcp-trio run`.

They aren't in `_run.py`, because `mcp-trio run FILE` uses none of them and imports no argparse.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from mcp_trio.cli._options import listen_address
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._recording import add_recording_options, read_recording
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
    parser.add_argument(
        "file",
        metavar="FILE[:NAME]",
        help="NAME is the variable that holds the server; not needed if the file has one server, or"
        " one named server, mcp or app",
    )
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=listen_address,
        help="serve over HTTP, at http://HOST:PORT/mcp; HOST is 127.0.0.1 by default, for this"
        " machine only; PORT 0 is any free port",
    )
    parser.add_argument(
        "--json-response",
        action="store_true",
        help="respond with JSON only, never with an event stream",
    )
    parser.add_argument(
        "--stateless",
        action="store_true",
        help="open no sessions: nothing is kept between requests",
    )
    parser.add_argument(
        "--sse-path",
        metavar="PATH",
        help="a second path, such as /sse, for clients that are set up for HTTP+SSE (2024-11-05);"
        " /mcp serves them too",
    )
    parser.add_argument(
        "--state-keys-env",
        metavar="NAME",
        help="the environment variable with the keys that all processes behind one address share:"
        " one secret, or several as NAME=SECRET,NAME=SECRET",
    )
    parser.add_argument(
        "--reload",
        action="store_true",
        help="start the server again when FILE changes, or a module that it imports from its"
        " directory; clients stay connected",
    )
    parser.add_argument("--listening-fds", help=argparse.SUPPRESS)  # from the parent of --reload
    add_recording_options(parser)
    found = parser.parse_args(words)
    recording = read_recording(parser, found, Screen(sys.stderr))
    if recording is not None and found.reload:
        parser.error(
            "--record with --reload would replace FILE at each start: leave one out, or record at"
            " the client"
        )
    if found.http is None:
        for option in "json_response", "stateless", "sse_path":
            if getattr(found, option):
                parser.error(f"--{option.replace('_', '-')} needs --http: add --http 8000")
        if found.reload:
            return _reload(found)
        from mcp_trio.cli.run._run import run

        return partial(run, found.file, recording, found.state_keys_env)
    if found.sse_path is not None:
        if found.stateless:
            parser.error("--sse-path needs sessions: leave --stateless out")
        if not found.sse_path.startswith("/") or found.sse_path.rstrip("/") == "/mcp":
            parser.error(
                "--sse-path has to begin with a slash and differ from /mcp: --sse-path /sse"
            )
    if found.reload:
        return _reload(found)
    from mcp_trio.cli.run._run import run_http

    host, port = found.http
    return partial(
        run_http,
        found.file,
        host,
        port,
        reply="json" if found.json_response else "auto",
        sessions=not found.stateless,
        sse_path=found.sse_path,
        recording=recording,
        keys_variable=found.state_keys_env,
        fds=[int(fd) for fd in (found.listening_fds or "").split(",") if fd],
    )


def _reload(found: argparse.Namespace) -> Command:
    from mcp_trio.cli.run._reload import run_reloading

    names = [name for name in ("json_response", "stateless") if getattr(found, name)]
    options = [f"--{name.replace('_', '-')}" for name in names]
    if found.sse_path is not None:
        options.append(f"--sse-path={found.sse_path}")
    if found.state_keys_env is not None:
        options.append(f"--state-keys-env={found.state_keys_env}")
    return partial(run_reloading, found.file, options, found.http)
