"""Words of a command line to something to do: the subcommands, their options, and what help says about them.

Rules of this file:

1. The server that a command talks to comes last, behind `--`, so that its own options are never taken for ours. Hence the
   words are cut there before argparse sees them.
2. Each subcommand has a parser of its own, since argparse's subparsers do not let options and arguments mix.
3. A complaint about what argparse cannot know (a missing `--`, a URL) names the line that would have worked.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from mcp_core import ALL
from mcp_trio import __version__

from ._problem import MISUSED, Problem
from ._screen import Screen
from ._talk import DEFAULT_TIMEOUT, Target, tracing

if TYPE_CHECKING:
    Act = Callable[[], int]

__all__ = ["parse"]

_STATUSES: Final = """\
exit status:
  0    done
  1    the tool or the server answered with an error, or FILE could not be loaded
  2    the command was not understood, or the arguments do not fit the tool
  3    no conversation: the server did not start, did not answer in time, or went away
  130  Ctrl+C
"""

_SUMMARIES: Final = {
    "demo": "watch a client and a server talk, message by message",
    "run": "serve what a Python file declares, over stdio",
    "inspect": "show what a server offers",
    "call": "call a tool of a server",
}


def parse(words: Sequence[str]) -> Act:
    """What the words ask for.

    Raises:
        SystemExit: help was asked for and shown, or argparse has complained.
        Problem: a complaint of our own.
    """
    if words and words[0] in _COMMANDS:
        return _COMMANDS[words[0]](words[1:])
    commands = "".join(f"  {name:9}{summary}\n" for name, summary in _SUMMARIES.items())
    parser = _parser(
        None,
        usage="mcp-trio COMMAND ...",
        description="Model Context Protocol: run servers, look into them, call them.",
        epilog=f"commands:\n{commands}\n`mcp-trio COMMAND --help` says more.\n\n{_STATUSES}",
    )
    parser.add_argument("--version", action="version", version=f"mcp-trio {__version__}")
    parser.add_argument("command", choices=list(_COMMANDS), nargs="?", help=argparse.SUPPRESS)
    parser.parse_args(words)
    parser.print_help(sys.stderr)
    return lambda: MISUSED


def _demo(words: Sequence[str]) -> Act:
    parser = _parser(
        "demo",
        description="Starts a small server and talks to it in two revisions of MCP, showing every message.",
    )
    parser.parse_args(words)
    from ._demo import demo

    return demo


def _run(words: Sequence[str]) -> Act:
    parser = _parser(
        "run",
        description="Imports FILE and serves its mcp_trio.Server over stdin and stdout, for a client that starts this.",
    )
    parser.add_argument(
        "file",
        metavar="FILE[:NAME]",
        help="NAME is the variable that holds the server; not needed for the only one of the file, nor for one called"
        " server, mcp or app",
    )
    found = parser.parse_args(words)
    from ._run import run

    return partial(run, found.file)


def _inspect(words: Sequence[str]) -> Act:
    own, command = _cut(words)
    parser = _talking(
        "inspect",
        usage="mcp-trio inspect [options] -- COMMAND ARG...",
        description="Starts a server and shows what it offers. COMMAND ARG... is the server's own command line.",
        example="mcp-trio inspect -- python greeter.py",
    )
    parser.add_argument("stray", nargs="*", help=argparse.SUPPRESS)
    found, unknown = parser.parse_known_intermixed_args(own)
    if command is None:
        raise _no_target("inspect", found.stray + unknown)
    if found.stray + unknown:
        _refuse(parser, found.stray + unknown)
    from ._inspect import inspect

    return partial(inspect, _target(found, command), as_json=found.json)


def _call(words: Sequence[str]) -> Act:
    own, command = _cut(words)
    parser = _talking(
        "call",
        usage="mcp-trio call TOOL [KEY=VALUE ... | JSON] [options] -- COMMAND ARG...",
        description="Starts a server, calls one of its tools and shows the result.\n\n"
        "A VALUE is read as the tool's schema says: numbers, true, false, null, lists and objects as JSON, text as it\n"
        "is. A JSON object goes to the tool as it is, unchecked, and its members replace those given by KEY=VALUE.",
        example="mcp-trio call greet name=World -- python greeter.py",
    )
    parser.add_argument("tool", metavar="TOOL", help="the name of the tool; `mcp-trio inspect` lists them")
    parser.add_argument(
        "arguments", metavar="KEY=VALUE", nargs="*", help="an argument, or all as a JSON object"
    )
    found, unknown = parser.parse_known_intermixed_args(own)
    if command is None:
        raise _no_target("call", [found.tool, *found.arguments, *unknown])
    if unknown:
        _refuse(parser, unknown)
    from ._call import call

    return partial(call, _target(found, command), found.tool, found.arguments, as_json=found.json)


_COMMANDS: Final[dict[str, Callable[[Sequence[str]], Act]]] = {
    "demo": _demo,
    "run": _run,
    "inspect": _inspect,
    "call": _call,
}


def _parser(
    name: str | None, *, description: str, usage: str | None = None, epilog: str = _STATUSES
) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog="mcp-trio" if name is None else f"mcp-trio {name}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _talking(name: str, *, usage: str, description: str, example: str) -> argparse.ArgumentParser:
    parser = _parser(
        name, usage=usage, description=description, epilog=f"example:\n  {example}\n\n{_STATUSES}"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document, with the names of the protocol"
    )
    parser.add_argument(
        "--revision",
        metavar="VERSION",
        choices=list(ALL),
        help=f"speak this revision of MCP only: {', '.join(ALL)} (default: the newest that the server knows)",
    )
    parser.add_argument("--trace", action="store_true", help="show each message on stderr as it crosses")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=DEFAULT_TIMEOUT,
        help="how long to wait for the server to open, and then for each answer; progress starts the time anew"
        " (default: %(default)g)",
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text} is no time to wait; give a number of seconds above 0")
    return seconds


_seconds.__name__ = "number of seconds"  # argparse names it when `float` refuses


def _cut(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """Our own words, and those behind the first `--`; None if there are none."""
    if "--" not in words:
        return words, None
    place = words.index("--")
    return words[:place], words[place + 1 :] or None


def _target(found: argparse.Namespace, command: Sequence[str]) -> Target:
    if "://" in command[0]:
        raise _url(command[0])
    versions = ALL if found.revision is None else (found.revision,)
    stderr = Screen(sys.stderr)
    return Target(
        command=tuple(command),
        versions=versions,
        timeout=found.timeout,
        stderr=stderr,
        trace=tracing(stderr) if found.trace else None,
    )


def _no_target(name: str, words: list[str]) -> Problem:
    url = next((word for word in words if "://" in word and "=" not in word.partition("://")[0]), None)
    if url is not None:
        return _url(url)
    if name == "inspect" and words:
        return Problem(f"the server's command comes behind `--`: mcp-trio inspect -- {shlex.join(words)}")
    given = shlex.join([name, *words])
    return Problem(
        f"no server: its command comes last, behind `--`, as in: mcp-trio {given} -- python server.py"
    )


def _url(url: str) -> Problem:
    return Problem(
        f"{url} cannot be reached: this release talks to servers that it starts itself, over stdio. Give the command that"
        " starts the server, behind `--`, as in: -- python server.py"
    )


def _refuse(parser: argparse.ArgumentParser, words: list[str]) -> NoReturn:
    parser.error(f"unrecognized arguments: {shlex.join(words)} (the server's own go behind its command)")
