"""The command line: subcommands, their options and help.

1. The server comes last: its URL, or after `--` the command that starts it. The words are split
   there before argparse sees them, so options of the server are never taken for ours.
2. Each subcommand has a parser of its own: subparsers of argparse do not allow options between
   positional arguments.
3. An error that argparse cannot detect, such as a missing `--`, shows a command line that works.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_core import ALL, __version__
from mcp_core.types import LOGGING_LEVELS

from ._errors import MISUSE, CliError, is_uri
from ._logins import add_keychain_option, uses_keychain
from ._screen import Screen
from ._session import DEFAULT_LOG_LEVEL, DEFAULT_TIMEOUT, Target, trace_printer
from ._user import User
from .commands._completion import READ_PARSER, ReadParser, completion

if TYPE_CHECKING:
    from mcp_core.auth import Secret

    Command = Callable[[], int]

__all__ = ["parse"]

_EXIT_STATUSES: Final = """\
exit status:
  0    done
  1    the tool or the server returned an error, or FILE could not be imported
  2    the command line is wrong, or names something that the server does not have
  3    no connection: the server did not start, refused, timed out, or closed it
  130  Ctrl+C
  143  SIGTERM
"""

_SUMMARIES: Final = {
    "demo": "watch a client and a server talk, message by message",
    "run": "serve what a Python file declares, over stdio or HTTP",
    "inspect": "show what a server offers",
    "call": "call a tool of a server",
    "read": "read a resource of a server",
    "prompt": "get a prompt of a server, with its arguments filled in",
    "complete": "get suggestions for an argument of a prompt or template",
    "listen": "print a line whenever something that a server offers changes",
    "login": "get an access token for a server that requires one",
    "completion": "print a script that completes command lines in a shell",
    "install": "register a Python file with a program such as Claude Code or VS Code",
}


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status.

    Raises:
        SystemExit: argparse has printed help or an error.
        CliError: the command line is invalid in a way that argparse does not detect.
    """
    if words and words[0] in _COMMANDS:
        return _COMMANDS[words[0]](words[1:])
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
    from mcp_trio.cli.commands._demo import demo

    return demo


def _run(words: Sequence[str]) -> Command:
    parser = _parser(
        "run",
        description="Imports FILE and serves its mcp_trio.Server over stdin and stdout, to the"
        " client that\n"
        "starts this command. With --http it serves any number of clients, at a URL that it"
        " prints.",
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
        type=_listen_address,
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
    found = parser.parse_args(words)
    if found.http is None:
        for option in "json_response", "stateless", "sse_path":
            if getattr(found, option):
                parser.error(f"--{option.replace('_', '-')} needs --http: add --http 8000")
        from mcp_trio.cli.commands._run import run

        return partial(run, found.file)
    if found.sse_path is not None:
        if found.stateless:
            parser.error("--sse-path needs sessions: leave --stateless out")
        if not found.sse_path.startswith("/") or found.sse_path.rstrip("/") == "/mcp":
            parser.error(
                "--sse-path has to begin with a slash and differ from /mcp: --sse-path /sse"
            )
    from mcp_trio.cli.commands._run import run_http

    host, port = found.http
    return partial(
        run_http,
        found.file,
        host,
        port,
        reply="json" if found.json_response else "auto",
        sessions=not found.stateless,
        sse_path=found.sse_path,
    )


def _inspect(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "inspect",
        description="Shows what a server offers.",
        example="mcp-trio inspect -- python greeter.py\n  mcp-trio inspect"
        " http://127.0.0.1:8000/mcp",
    )
    found, target = _parse_server_command(parser, words)
    from mcp_trio.cli.commands._inspect import inspect

    return partial(inspect, target, as_json=found.json)


def _call(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "call",
        takes=_ARGUMENTS,
        description="Calls a tool of a server and shows the result.\n\n"
        "The schema of the tool decides how a VALUE is read: numbers, true, false, null, lists"
        " and\n"
        "objects as JSON, text unchanged. A JSON object is sent to the tool unchecked, and its"
        " members\n"
        "replace those given by KEY=VALUE.",
        example="mcp-trio call greet name=World -- python greeter.py",
        TOOL="the name of the tool; `mcp-trio inspect` lists them",
    )
    _add_session_options(parser)
    found, target = _parse_server_command(parser, words)
    from mcp_trio.cli.commands._call import call

    return partial(call, target, found.tool, found.words, as_json=found.json)


def _read(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "read",
        description="Reads a resource of a server and writes it to stdout, unchanged. A"
        " terminal gets text\n"
        "only, and a line that describes other content.",
        example="mcp-trio read weather://Lima/today -- python weather.py",
        URI="the URI of the resource; `mcp-trio inspect` lists resources and templates",
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout"
    )
    _add_session_options(parser)
    found, target = _parse_server_command(parser, words)
    from mcp_trio.cli.commands._read import read

    return partial(read, target, found.uri, output=found.output, as_json=found.json)


def _prompt(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "prompt",
        takes=_ARGUMENTS,
        description="Gets a prompt of a server, filled in with the arguments, and shows its"
        " messages.\n\n"
        "Every VALUE is text. A JSON object is sent to the server unchecked, and its members"
        " replace\n"
        "those given by KEY=VALUE.",
        example="mcp-trio prompt pack city=Lima days=5 -- python weather.py",
        NAME="the name of the prompt; `mcp-trio inspect` lists them",
    )
    _add_session_options(parser)
    found, target = _parse_server_command(parser, words)
    from mcp_trio.cli.commands._prompt import prompt

    return partial(prompt, target, found.name, found.words, as_json=found.json)


def _complete(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "complete",
        takes=_ARGUMENTS,
        description="Asks a server to complete an argument that begins with VALUE ('' for any), and"
        " prints\n"
        "the values that it suggests, one a line. KEY=VALUE are the values of other arguments.",
        example="mcp-trio complete pack city L -- python weather.py",
        REF="the name of a prompt, or a resource template; `mcp-trio inspect` lists them",
        ARGUMENT="the argument of the prompt, or the variable of the template",
        VALUE="the beginning of the value",
    )
    found, target = _parse_server_command(parser, words)
    from mcp_trio.cli.commands._complete import complete

    return partial(
        complete, target, found.ref, found.argument, found.value, found.words, as_json=found.json
    )


def _listen(words: Sequence[str]) -> Command:
    parser = _server_parser(
        "listen",
        takes=_URIS,
        description="Prints a line whenever something that a server offers changes, until"
        " Ctrl+C, or until\n"
        "the server ends the subscription. The line is tools, prompts or resources for a"
        " change of that\n"
        "list, or the URI of a resource. Without URI and options it subscribes to all three"
        " lists. With\n"
        "--json each line is a document.",
        example="mcp-trio listen tea://menu -- python tea.py",
    )
    parser.add_argument("--tools", action="store_true", help="subscribe to the list of tools")
    parser.add_argument("--prompts", action="store_true", help="subscribe to the list of prompts")
    parser.add_argument(
        "--resources", action="store_true", help="subscribe to the list of resources"
    )
    _add_log_level(parser)
    found, target = _parse_server_command(parser, words)
    from mcp_trio.cli.commands._listen import listen

    return partial(
        listen,
        target,
        found.words,
        tools=found.tools,
        prompts=found.prompts,
        resources=found.resources,
        as_json=found.json,
    )


def _login(words: Sequence[str]) -> Command:
    parser = _parser(
        "login",
        usage="mcp-trio login [options] URL",
        description="Opens a browser, in which you authorize this command to use the server at URL,"
        " and\n"
        "stores the access token for the other commands.",
        epilog=f"example:\n  mcp-trio login https://mcp.example.com/mcp\n\n{_EXIT_STATUSES}",
    )
    parser.add_argument("url", metavar="URL", help="the URL of the server")
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
    found = parser.parse_args(words)
    if not _URL.match(found.url):
        raise _invalid_url(found.url)
    _require_url(found.url)
    stderr = Screen(sys.stderr)
    trace = trace_printer(stderr) if found.trace else None
    keychain = uses_keychain(found, found.url)
    target = Target(server=found.url, stderr=stderr, trace=trace, keychain=keychain)
    from mcp_trio.cli.commands._login import login

    return partial(
        login,
        target,
        client_id=found.client_id,
        client_secret=_client_secret(found),
        issuer=_issuer(found),
        scopes=found.scopes,
        open_browser=not found.no_browser,
    )


def _install(words: Sequence[str]) -> Command:
    from mcp_trio.cli.commands import _install as command

    parser = _parser(
        "install", usage=command.USAGE, description=command.DESCRIPTION, epilog=command.EPILOG
    )
    return command.parse(parser, words, parse_variable=_variable)


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
    "login": _login,
    "completion": lambda words: completion(words, _parser, _SUMMARIES, _COMMANDS),
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


class _VariadicArgument(NamedTuple):
    """A positional argument that may be repeated. `fits` returns True if a word may be one."""

    usage: str
    metavar: str
    help: str
    fits: Callable[[str], bool]


_ARGUMENTS: Final = _VariadicArgument(
    "[KEY=VALUE ... | JSON]",
    "KEY=VALUE",
    "an argument, or all as a JSON object",
    lambda word: "=" in word or word.startswith("{"),
)
_URIS: Final = _VariadicArgument("[URI ...]", "URI", "a resource to subscribe to", is_uri)
_NO_WORDS: Final = _VariadicArgument("", "", argparse.SUPPRESS, lambda word: False)

_SERVER_HELP: Final = """

The server is at URL, or COMMAND ARG... starts it; then it runs on stdin and stdout, and is ended
afterwards."""
_URL: Final = re.compile(r"(?i)(?:https?|wss?)://")
_URL_WITHOUT_SCHEME: Final = re.compile(
    r"(?:[\w.-]+|\[[\da-fA-F:.]+\]):\d+(?:/.*)?"
)  # a URL without its scheme


def _server_parser(
    name: str,
    *,
    description: str,
    example: str,
    takes: _VariadicArgument = _NO_WORDS,
    **positions: str,
) -> argparse.ArgumentParser:
    """Build the parser of a subcommand that connects to a server.

    Args:
        name: the subcommand.
        description: what it does, for its help.
        example: one or more lines, for its help.
        takes: the words that may be repeated, after `positions`.
        positions: names of positional arguments, in order, and the help of each.
    """
    words = " ".join(filter(None, [name, *positions, takes.usage]))
    parser = _parser(
        name,
        usage=f"mcp-trio {words} [options] URL\n       mcp-trio {words} [options] -- COMMAND"
        " ARG...",
        description=description + _SERVER_HELP,
        epilog=f"example:\n  {example}\n\n{_EXIT_STATUSES}",
    )
    parser.set_defaults(takes=takes, positions=[each.lower() for each in positions])
    for position, text in positions.items():
        parser.add_argument(position.lower(), metavar=position, help=text)
    parser.add_argument("words", metavar=takes.metavar, nargs="*", default=[], help=takes.help)
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
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        dest="headers",
        type=_header,
        action="append",
        default=[],
        help="send this header with each request to URL (may be repeated)",
    )
    parser.add_argument(
        "--token-env",
        metavar="VARIABLE",
        help="the environment variable that holds an access token for URL; by default the token of"
        " `mcp-trio login` is sent, if the server requires one",
    )
    add_keychain_option(parser)
    parser.add_argument(
        "--allow-cleartext",
        action="store_true",
        help="send tokens and other credentials to another machine although URL is not encrypted",
    )
    parser.add_argument(
        "--env",
        metavar="NAME[=VALUE]",
        type=_variable,
        action="append",
        default=[],
        help="give COMMAND this environment variable; without =VALUE with the value that it has"
        " here (may be repeated). Otherwise COMMAND gets a few only, such as PATH and HOME",
    )
    parser.add_argument(
        "--inherit-env",
        action="store_true",
        help="give COMMAND the whole environment, with any secrets in it",
    )
    parser.add_argument(
        "--cwd", metavar="DIRECTORY", type=_existing_path, help="start COMMAND in this directory"
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=DEFAULT_TIMEOUT,
        help="the timeout for the connection, and for each response; progress restarts it"
        " (default: %(default)g)",
    )
    return parser


def _add_log_level(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level",
        metavar="LEVEL",
        choices=LOGGING_LEVELS,
        default=DEFAULT_LOG_LEVEL,
        help="show the server's log messages of this level and above on stderr:"
        f" {', '.join(LOGGING_LEVELS)} (default: %(default)s)",
    )


def _add_session_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for log messages, elicitation and roots."""
    _add_log_level(parser)
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
        type=_existing_path,
        action="append",
        default=[],
        help="tell the server that it may work in this directory or file (may be repeated)",
    )


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    header = name.strip().lower(), value.strip()
    from mcp_core.http import HttpClientOptions

    try:
        if not colon:
            raise ValueError("there is no colon in it")
        HttpClientOptions(headers=dict([header]))
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"not a header: {exc}") from None
    return header


def _headers(
    found: argparse.Namespace, server: str | tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the headers of each HTTP request.

    A token is read from the environment: other users of the machine can see a command line.
    """
    headers: list[tuple[str, str]] = list(getattr(found, "headers", ()))
    variable = getattr(found, "token_env", None)
    if variable is not None:
        token = os.environ.get(variable, "").strip()
        if not token or not token.isascii() or not token.isprintable():
            raise CliError(f"--token-env {variable}: that environment variable holds no token")
        headers.append(("authorization", f"Bearer {token}"))
    if headers and not isinstance(server, str):
        raise CliError(
            "--header and --token-env need a server at a URL; one that is started gets its"
            " secrets from the environment: --env NAME"
        )
    return tuple(headers)


def _variable(text: str) -> tuple[str, str | None]:
    """Parse `NAME[=VALUE]`. The value is None if there is none."""
    name, equals, value = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text} is not a variable; write NAME=VALUE, or NAME")
    return name, value if equals else None


def _environment(
    found: argparse.Namespace, server: str | tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the variables that the command which starts the server gets."""
    if isinstance(server, str):
        for option in "env", "inherit_env", "cwd":
            if getattr(found, option):
                raise CliError(
                    f"--{option.replace('_', '-')} is for a server that is started: give its"
                    " command after `--`, in place of the URL"
                )
    variables: list[tuple[str, str]] = []
    for name, value in found.env:
        if value is None and name not in os.environ:
            raise CliError(
                f"--env {name}: that environment variable is not set; set it, or write"
                f" --env {name}=VALUE"
            )
        variables.append((name, os.environ[name] if value is None else value))
    return tuple(variables)


def _existing_path(text: str) -> Path:
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


def _listen_address(text: str) -> tuple[str, int]:
    """Parse `[HOST:]PORT` to listen on; the host is 127.0.0.1 by default."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    if not (host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise argparse.ArgumentTypeError(
            f"{text} is not an address; write a port as 8000, or 0.0.0.0:8000, or [::1]:8000"
        )
    return host, int(port)


def _parse_server_command(
    parser: argparse.ArgumentParser, words: Sequence[str]
) -> tuple[argparse.Namespace, Target]:
    """Parse a subcommand's words and its server: a URL, or the command after the first `--`."""
    cut = words.index("--") if "--" in words else len(words)
    own = words[:cut]
    command = words[cut + 1 :]
    found, unknown = parser.parse_known_intermixed_args(own)
    given = [getattr(found, position) for position in found.positions]
    for word in (*given, *found.words, *getattr(found, "answer", ())):
        _require_utf_8(word)
    server: str | tuple[str, ...] = tuple(command)
    if "--" not in words and found.words and _URL.match(found.words[-1]):
        server = found.words.pop()
    elif len(command) == 1 and _URL.match(command[0]):
        server = command[0]
    fitting = list(takewhile(found.takes.fits, found.words))
    stray = [*found.words[len(fitting) :], *unknown]
    if not server:
        raise _missing_server(f"{parser.prog} {shlex.join([*given, *fitting])}".rstrip(), stray)
    if isinstance(server, str):
        _require_url(server)
    elif "://" in server[0]:
        raise _invalid_url(server[0])
    if unknown or (stray and found.takes is _NO_WORDS):
        parser.error(
            f"unrecognized arguments: {shlex.join(stray)} (options of the server go after its"
            " command)"
        )
    return found, _target(found, server)


def _require_utf_8(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise CliError(f"{word!r} is not UTF-8") from None


def _require_url(text: str) -> None:
    from mcp_core.http import Url

    try:
        Url.parse(re.sub("(?i)^ws", "http", text))
    except ValueError as exc:
        raise CliError(str(exc)) from None


def _target(found: argparse.Namespace, server: str | tuple[str, ...]) -> Target:
    stderr = Screen(sys.stderr)
    name = server if isinstance(server, str) else shlex.join(server)
    headers = _headers(found, server)
    allow_cleartext = getattr(found, "allow_cleartext", False)
    if not allow_cleartext:
        _check_cleartext(server, headers)
    return Target(
        server=server,
        versions=ALL if found.revision is None else (found.revision,),
        timeout=found.timeout,
        log_level=getattr(found, "log_level", None),
        stderr=stderr,
        trace=trace_printer(stderr) if found.trace else None,
        user=User(name, found.answer, stderr) if "answer" in found else None,
        roots=tuple(getattr(found, "roots", ())),
        headers=headers,
        allow_cleartext=allow_cleartext,
        keychain=uses_keychain(found, server),
        env=_environment(found, server),
        inherit_env=found.inherit_env,
        cwd=found.cwd,
    )


def _check_cleartext(server: str | tuple[str, ...], headers: Sequence[tuple[str, str]]) -> None:
    """Check that no credential is sent to another machine unencrypted.

    Raises:
        CliError: one would be.
    """
    from mcp_core.http import Url, find_cleartext_error

    if headers and isinstance(server, str):
        is_websocket = server.lower().startswith("ws")
        url = Url.parse(re.sub("(?i)^ws", "http", server))
        names = [name for name, _ in headers]
        problem = find_cleartext_error(url, names, websocket=is_websocket)
        if problem is not None:
            raise CliError(f"{problem}, or use --allow-cleartext in a network that you trust")


def _missing_server(prefix: str, stray: list[str]) -> CliError:
    for word in stray:
        if "://" in word:
            return _invalid_url(word)
    if stray and _URL_WITHOUT_SCHEME.fullmatch(stray[-1]):
        return CliError(f"{stray[-1]} is not a URL: {prefix} http://{stray[-1]}")
    if stray:
        return CliError(
            f"the command that starts the server comes after `--`: {prefix} -- {shlex.join(stray)}"
        )
    return CliError(
        "no server: give its URL as the last word, or after `--` the command that starts it:"
        f" {prefix} http://127.0.0.1:8000/mcp, or {prefix} -- python server.py"
    )


def _invalid_url(url: str) -> CliError:
    from mcp_core.urls import redacted_url

    shown = redacted_url(url)[1:-1]  # without quotes
    if _URL.match(url):
        return CliError(
            f"{shown} is not a command: a URL is the last word, without `--` and arguments"
        )
    return CliError(
        f"{shown} is not supported: give a URL that begins with http://, https://, ws:// or wss://"
    )
