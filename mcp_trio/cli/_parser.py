"""The command line: subcommands, their options and help.

1. Each subcommand has a parser of its own: subparsers of argparse don't allow options between
   positional arguments.
2. An error that argparse cannot detect, such as a missing `--`, shows a command line that works.

Options that several subcommands share are in `_options.py`, the server's words in `_target.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from mcp_core import __version__

from ._errors import MISUSE, CliError
from ._options import (
    ARGUMENTS,
    NO_WORDS,
    REFERENCES,
    URIS,
    VariadicArgument,
    add_configured_options,
    add_log_level,
    add_output,
    add_server_options,
    add_session_options,
    listen_address,
    refuse_yes,
)
from ._recording import add_recording_options, read_recording
from ._screen import Screen
from ._session import Target, trace_printer
from ._target import (
    configured_target,
    invalid_url,
    is_server,
    is_url,
    parse_server_command,
    refuse_configured_options,
    require_url,
    shown_server,
)
from .serve._completion import READ_PARSER, ReadParser, completion
from .state._logins import add_keychain_option, has_login, uses_keychain

if TYPE_CHECKING:
    from mcp_core.auth import Secret

    Command = Callable[[], int]

__all__ = ["parse"]

_EXIT_STATUSES: Final = """\
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

_CHECK_EPILOG: Final = """\
example:
  mcp-trio check a.mcp.jsonl

exit status:
  0    nothing was found
  1    at least one rule is broken
  2    the command line is wrong, or FILE is not a trace
  4    nothing was judged: a side has no message in FILE
"""

_TASK_ACTIONS: Final = ("get", "result", "cancel", "list")

_SUMMARIES: Final = {
    "demo": "watch a client and a server talk, message by message",
    "run": "serve what a Python file declares, over stdio or HTTP",
    "inspect": "show what a server offers",
    "call": "call a tool of a server",
    "read": "read a resource of a server",
    "prompt": "get a prompt of a server, with its arguments filled in",
    "complete": "get suggestions for an argument of a prompt or template",
    "listen": "print a line whenever something that a server offers changes",
    "tasks": "get, wait for, cancel or list calls that a server runs as tasks",
    "login": "get an access token for a server that requires one",
    "show": "print a conversation that --record has recorded",
    "check": "judge a recorded conversation by the rules of the specification",
    "fuzz": "draw conversations with a server, and judge what it does",
    "proxy": "record and judge what passes between a client and a server",
    "replay": "be the server, or the client, of a recorded conversation",
    "diff": "compare two recorded conversations",
    "completion": "print a script that completes command lines in a shell",
    "servers": "add, show and change servers in configuration files",
    "install": "register a Python file with a program such as Claude Code or VS Code",
}


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status.

    Raises:
        SystemExit: argparse has printed help or an error.
        CliError: the command line is invalid in a way that argparse doesn't detect.
    """
    if words and words[0] in _COMMANDS:
        return _COMMANDS[words[0]](words[1:])
    if words and is_server(words[0]):
        server = shown_server(words[0])
        raise CliError(
            f"{server} is not a subcommand; to see what the server offers: mcp-trio inspect"
            f" {server}"
        )
    commands = "".join(f"  {name:11}{summary}\n" for name, summary in _SUMMARIES.items())
    parser = _parser(
        None,
        usage="mcp-trio COMMAND ...",
        description="Model Context Protocol: run servers, inspect them, use them.",
        epilog=f"commands:\n{commands}\n`mcp-trio COMMAND --help` lists its options.\n\n"
        f"{_EXIT_STATUSES}",
    )
    parser.add_argument("--version", action="version", version=f"mcp-trio {__version__}")
    parser.add_argument("command", choices=list(_COMMANDS), nargs="?", help=argparse.SUPPRESS)
    parser.parse_args(words)
    parser.print_help(sys.stderr)
    return lambda: MISUSE


def _demo(words: Sequence[str]) -> Command:
    parser = _parser(
        "demo",
        description="Starts a small server and talks to it in two revisions of MCP, showing every"
        " message.",
    )
    parser.parse_args(words)
    from mcp_trio.cli.use._demo import demo

    return demo


def _run(words: Sequence[str]) -> Command:
    parser = _parser(
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
        from mcp_trio.cli.serve._run import run

        return partial(run, found.file, recording)
    if found.sse_path is not None:
        if found.stateless:
            parser.error("--sse-path needs sessions: leave --stateless out")
        if not found.sse_path.startswith("/") or found.sse_path.rstrip("/") == "/mcp":
            parser.error(
                "--sse-path has to begin with a slash and differ from /mcp: --sse-path /sse"
            )
    if found.reload:
        return _reload(found)
    from mcp_trio.cli.serve._run import run_http

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
        fds=[int(fd) for fd in (found.listening_fds or "").split(",") if fd],
    )


def _reload(found: argparse.Namespace) -> Command:
    from mcp_trio.cli.serve._reload import run_reloading

    names = [name for name in ("json_response", "stateless") if getattr(found, name)]
    options = [f"--{name.replace('_', '-')}" for name in names]
    if found.sse_path is not None:
        options.append(f"--sse-path={found.sse_path}")
    return partial(run_reloading, found.file, options, found.http)


def _inspect(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "inspect",
        description="Shows what a server offers.",
        example="mcp-trio inspect greeter.py\n  mcp-trio inspect http://127.0.0.1:8000/mcp\n"
        "  mcp-trio inspect -- node server.js",
    )
    found, target = parse_server_command(parser, words)
    from mcp_trio.cli.use._inspect import inspect

    return partial(inspect, target, as_json=found.json)


def _call(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "call",
        takes=ARGUMENTS,
        description="Calls a tool of a server and shows the result.\n\n"
        "The schema of the tool decides how a VALUE is read: numbers, true, false, null, lists"
        " and\n"
        "objects as JSON, text unchanged. A JSON object is sent to the tool unchecked, and its"
        " members\n"
        "replace those given by KEY=VALUE. The merged name of a tool, mcp__SERVER__TOOL, names its"
        " server too.",
        example="mcp-trio call greet name=World greeter.py\n"
        "  mcp-trio call mcp__git__git_status repo_path=.",
        TOOL="the name of the tool; `mcp-trio inspect` lists them",
    )
    add_output(
        parser,
        "write images, sounds and embedded resources to FILE (numbered if there are several), or"
        " into a directory FILE; without any, write the whole result to it. A file that exists is"
        " replaced",
    )
    parser.add_argument(
        "--detach",
        action="store_true",
        help="do not wait for the result: print the reference of the task as which the server runs"
        " the call, for `mcp-trio tasks`",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave the task at the server if you press Ctrl+C, which otherwise cancels it, and"
        " print its reference",
    )
    add_session_options(parser)
    found, target = parse_server_command(parser, words)
    if found.detach and found.output is not None:
        parser.error("--detach prints no result for --output: leave one of them out")
    from mcp_trio.cli.use._call import call

    return partial(
        call,
        target,
        found.tool,
        found.words,
        output=found.output,
        as_json=found.json,
        detach=found.detach,
        keep=found.keep,
    )


def _read(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "read",
        description="Reads a resource of a server and writes it to stdout, unchanged. A"
        " terminal gets text\n"
        "only, and a line that describes other content.",
        example="mcp-trio read weather://Lima/today weather.py",
        URI="the URI of the resource; `mcp-trio inspect` lists resources and templates",
    )
    add_output(parser, "write to FILE instead of stdout, and replace it if it exists")
    add_session_options(parser)
    found, target = parse_server_command(parser, words)
    from mcp_trio.cli.use._read import read

    return partial(read, target, found.uri, output=found.output, as_json=found.json)


def _prompt(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "prompt",
        takes=ARGUMENTS,
        description="Gets a prompt of a server, filled in with the arguments, and shows its"
        " messages.\n\n"
        "Every VALUE is text. A JSON object is sent to the server unchecked, and its members"
        " replace\n"
        "those given by KEY=VALUE.",
        example="mcp-trio prompt pack city=Lima days=5 weather.py",
        NAME="the name of the prompt; `mcp-trio inspect` lists them",
    )
    add_session_options(parser)
    found, target = parse_server_command(parser, words)
    from mcp_trio.cli.use._prompt import prompt

    return partial(prompt, target, found.name, found.words, as_json=found.json)


def _complete(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "complete",
        takes=ARGUMENTS,
        description="Asks a server to complete an argument that begins with VALUE ('' for any), and"
        " prints\n"
        "the values that it suggests, one a line. KEY=VALUE are the values of other arguments.",
        example="mcp-trio complete pack city L weather.py",
        REF="the name of a prompt, or a resource template; `mcp-trio inspect` lists them",
        ARGUMENT="the argument of the prompt, or the variable of the template",
        VALUE="the beginning of the value",
    )
    found, target = parse_server_command(parser, words)
    from mcp_trio.cli.use._complete import complete

    return partial(
        complete, target, found.ref, found.argument, found.value, found.words, as_json=found.json
    )


def _listen(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "listen",
        takes=URIS,
        description="Prints a line whenever something that a server offers changes, until"
        " Ctrl+C, or until\n"
        "the server ends the subscription. The line is tools, prompts or resources for a"
        " change of that\n"
        "list, or the URI of a resource. Without URI and options it subscribes to all three"
        " lists. With\n"
        "--json each line is a document.",
        example="mcp-trio listen tea://menu tea.py",
    )
    parser.add_argument("--tools", action="store_true", help="subscribe to the list of tools")
    parser.add_argument("--prompts", action="store_true", help="subscribe to the list of prompts")
    parser.add_argument(
        "--resources", action="store_true", help="subscribe to the list of resources"
    )
    add_log_level(parser)
    found, target = parse_server_command(parser, words)
    from mcp_trio.cli.use._listen import listen

    return partial(
        listen,
        target,
        found.words,
        tools=found.tools,
        prompts=found.prompts,
        resources=found.resources,
        as_json=found.json,
    )


def _tasks(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "tasks",
        takes=REFERENCES,
        description="Finds the calls of tools that a server runs as tasks: `get` prints the state"
        " of one,\n"
        "`result` waits for its result and prints that, `cancel` cancels it, and `list` lists all,"
        " with\n"
        "their references. A server of 2026-07-28 lists no tasks; then these are the ones that"
        " `mcp-trio\n"
        "call --detach` has started on this machine, as far as the server still has them.",
        example="mcp-trio tasks list https://mcp.example.com/mcp\n"
        "  mcp-trio tasks result REFERENCE https://mcp.example.com/mcp",
        choices=_TASK_ACTIONS,
        ACTION=", ".join(_TASK_ACTIONS),
    )
    add_output(parser, "for result: write it to FILE, as `mcp-trio call` does")
    add_session_options(parser)
    found, target = parse_server_command(parser, words)
    from mcp_trio.cli.use._tasks import tasks

    return partial(
        tasks, target, found.action, found.words, output=found.output, as_json=found.json
    )


def _login(words: Sequence[str]) -> Command:
    parser = _parser(
        "login",
        usage="mcp-trio login [options] URL\n       mcp-trio login [options] --server NAME",
        description="Opens a browser, in which you authorize this command to use the server at URL,"
        " or a server\n"
        "of the configuration files, and stores the access token for the other commands.",
        epilog=f"example:\n  mcp-trio login https://mcp.example.com/mcp\n\n{_EXIT_STATUSES}",
    )
    parser.add_argument("url", metavar="URL", nargs="?", help="the URL of the server")
    add_configured_options(parser)
    refuse_yes(parser, "a login calls no tools. --approve-server NAME lets a server start")
    parser.add_argument(
        "--client-id",
        metavar="ID",
        help="the id of a client that is registered at the authorization server, if that does not"
        " register clients by itself",
    )
    parser.add_argument(
        "--client-secret-env",
        metavar="VARIABLE",
        help="the environment variable that holds the secret of client ID; the secret is"
        " stored with the token, to renew it",
    )
    parser.add_argument(
        "--issuer",
        metavar="URL",
        help="the authorization server at which the client is registered, and the only one to log"
        " in at; required with a secret",
    )
    parser.add_argument(
        "--scope",
        metavar="SCOPE",
        dest="scopes",
        action="append",
        default=[],
        help="request this scope, in addition to those that the server requires (may be repeated)",
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="print the address of the login page, and wait until you have logged in there",
    )
    add_keychain_option(parser)
    parser.add_argument(
        "--trace",
        action="store_true",
        help="show each message on stderr when it is sent or received",
    )
    add_recording_options(parser)
    found = parser.parse_args(words)
    target = _login_target(parser, found)
    from mcp_trio.cli.use._login import login

    return partial(
        login,
        target,
        client_id=found.client_id,
        client_secret=_client_secret(found),
        issuer=_issuer(found),
        scopes=found.scopes,
        open_browser=not found.no_browser,
    )


def _login_target(parser: argparse.ArgumentParser, found: argparse.Namespace) -> Target:
    """Return the server to log in at.

    Raises:
        SystemExit: argparse has printed an error: there is no server, or there are two.
        CliError: there is no such server, or it has no login.
    """
    is_configured = found.server_name is not None or found.config is not None
    if is_configured == (found.url is not None):
        parser.error("give the URL of the server, or --server NAME, and not both")
    if is_configured:
        target = configured_target(parser, found, found.server_name)
        assert target.configured is not None
        if not target.configured.choice.has_login:
            raise CliError(f"{target.name} has no login: only servers at http:// and https:// have")
        return target
    refuse_configured_options(parser, found)
    if not is_url(found.url):
        raise invalid_url(found.url)
    require_url(found.url)
    stderr = Screen(sys.stderr)
    trace = trace_printer(stderr) if found.trace else None
    keychain = uses_keychain(found, has_login=has_login(found.url))
    return Target(
        server=found.url,
        stderr=stderr,
        trace=trace,
        recording=read_recording(parser, found, stderr),
        keychain=keychain,
    )


def _show(words: Sequence[str]) -> Command:
    parser = _parser(
        "show",
        description="Prints the messages of a conversation that --record has recorded, as --trace"
        " does: → is\n"
        "from the client, ← from the server. Of several conversations in FILE, all but the first"
        " have\n"
        "their number before the arrow.",
        epilog=f"example:\n  mcp-trio inspect --record a.mcp.jsonl greeter.py\n"
        f"  mcp-trio show a.mcp.jsonl\n\n{_EXIT_STATUSES}",
    )
    parser.add_argument("file", metavar="FILE", help="the trace, such as a.mcp.jsonl")
    parser.add_argument(
        "--json", action="store_true", help="print the lines of the trace, without damaged ones"
    )
    found = parser.parse_args(words)
    from mcp_trio.cli.oracle._show import show

    return partial(show, found.file, as_json=found.json)


def _check(words: Sequence[str]) -> Command:
    parser = _parser(
        "check",
        description="Judges a conversation that was recorded in FILE by the rules of the"
        " specification, both\n"
        "sides of it. A finding has the line, the rule and its page. What the file cannot show is\n"
        "inconclusive, which is no fault.",
        epilog=_CHECK_EPILOG,
    )
    parser.add_argument("file", metavar="FILE", help="the trace, such as a.mcp.jsonl")
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
    from mcp_trio.cli.oracle._check import check

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


def _fuzz(words: Sequence[str]) -> Command:
    # What follows `--` is a command with options of its own.
    if "--client" in words[: words.index("--") if "--" in words else len(words)]:
        return _fuzz_client(words)
    from mcp_trio.cli.oracle import _fuzz as command

    parser = _parser(
        "fuzz", usage=command.USAGE, description=command.DESCRIPTION, epilog=command.EPILOG
    )
    return command.parse(parser, words)


def _fuzz_client(words: Sequence[str]) -> Command:
    from mcp_trio.cli.oracle import _fuzz_client as command

    parser = _parser(
        "fuzz", usage=command.USAGE, description=command.DESCRIPTION, epilog=command.EPILOG
    )
    return command.parse(parser, words)


def _proxy(words: Sequence[str]) -> Command:
    from .oracle import _proxy as command

    parser = _parser(
        "proxy", usage=command.USAGE, description=command.DESCRIPTION, epilog=command.EPILOG
    )
    return command.parse(parser, words)


def _replay(words: Sequence[str]) -> Command:
    from .oracle import _replay as command

    parser = _parser(
        "replay", usage=command.USAGE, description=command.DESCRIPTION, epilog=command.EPILOG
    )
    return command.parse(parser, words)


def _diff(words: Sequence[str]) -> Command:
    from .oracle import _diff as command

    parser = _parser("diff", description=command.DESCRIPTION, epilog=command.EPILOG)
    return command.parse(parser, words)


def _install(words: Sequence[str]) -> Command:
    from mcp_trio.cli.serve import _install as command

    parser = _parser(
        "install", usage=command.USAGE, description=command.DESCRIPTION, epilog=command.EPILOG
    )
    return command.parse(parser, words)


def _servers(words: Sequence[str]) -> Command:
    from mcp_trio.cli.servers._parser import parse

    return parse(words, _parser)


def _client_secret(found: argparse.Namespace) -> Secret | None:
    variable = found.client_secret_env
    if variable is None:
        return None
    if found.client_id is None:
        raise CliError("--client-secret-env needs the id of the client: give --client-id too")
    if found.issuer is None:
        raise CliError(
            "--client-secret-env needs the authorization server that the secret is for: give"
            " --issuer too"
        )
    value = os.environ.get(variable, "").strip()
    if not value:
        raise CliError(f"--client-secret-env {variable}: that environment variable holds no secret")
    from mcp_core.auth import Secret

    return Secret(value)


def _issuer(found: argparse.Namespace) -> str | None:
    from mcp_core.urls import find_url_error, redacted_url

    issuer: str | None = found.issuer
    if issuer is not None:
        problem = find_url_error(issuer, allow_loopback=True)
        if problem is not None:
            raise CliError(f"--issuer {redacted_url(issuer)} {problem}")
    return issuer


_COMMANDS: Final[dict[str, Callable[[Sequence[str]], Command]]] = {
    "demo": _demo,
    "run": _run,
    "inspect": _inspect,
    "call": _call,
    "read": _read,
    "prompt": _prompt,
    "complete": _complete,
    "listen": _listen,
    "tasks": _tasks,
    "login": _login,
    "show": _show,
    "check": _check,
    "fuzz": _fuzz,
    "proxy": _proxy,
    "replay": _replay,
    "diff": _diff,
    "completion": lambda words: completion(words, _parser, _SUMMARIES, _COMMANDS),
    "servers": _servers,
    "install": _install,
}


def _parser(
    name: str | None, *, description: str, usage: str | None = None, epilog: str = _EXIT_STATUSES
) -> argparse.ArgumentParser:
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


_SERVER_HELP: Final = """

The server is at URL, or in FILE, a Python file as for `mcp-trio run`, or COMMAND ARG... starts it.
A server that is started runs on stdin and stdout, and is ended afterwards. --server NAME is a
server of the configuration files: see `mcp-trio servers --help`."""


def _server_parser(
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
    parser = _parser(
        name,
        usage=f"mcp-trio {words} [options] URL\n       mcp-trio {words} [options] FILE[:NAME]\n"
        f"       mcp-trio {words} [options] -- COMMAND ARG...\n"
        f"       mcp-trio {words} [options] --server NAME",
        description=description + _SERVER_HELP,
        epilog=f"example:\n  {example}\n\n{_EXIT_STATUSES}",
    )
    parser.set_defaults(takes=takes, positions=[each.lower() for each in positions])
    for position, text in positions.items():
        parser.add_argument(position.lower(), metavar=position, choices=choices, help=text)
    parser.add_argument("words", metavar=takes.metavar, nargs="*", default=[], help=takes.help)
    add_server_options(parser)
    return parser
