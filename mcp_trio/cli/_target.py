"""The server that a command line names, and what the options say about it.

1. The last word is a URL if it begins with `http://`, `https://`, `ws://` or `wss://`, and a file
   if it ends in `.py` or `.py:NAME` and is not KEY=VALUE.
2. The words after `--` are the command that starts the server. They are split off before argparse
   sees them, so options of the server are never taken for ours.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from mcp_core import ALL

from ._errors import CliError, split_file
from ._options import ARGUMENTS, NO_WORDS, REFERENCES
from ._recording import read_recording
from ._screen import Screen
from ._session import Target, trace_printer
from ._user import User
from .state._logins import uses_keychain

__all__ = [
    "invalid_url",
    "is_server",
    "is_url",
    "parse_server_command",
    "require_url",
    "shown_server",
]

_URL: Final = re.compile(r"(?i)(?:https?|wss?)://")
_URL_WITHOUT_SCHEME: Final = re.compile(
    r"(?:[\w.-]+|\[[\da-fA-F:.]+\]):\d+(?:/.*)?"
)  # a URL without its scheme
_FILE: Final = re.compile(r"(?s).*\.py(?::\w+)?")


def is_url(word: str) -> bool:
    """Return True if `word` begins as the URL of a server does."""
    return _URL.match(word) is not None


def is_server(word: str) -> bool:
    """Return True if `word` is a URL, FILE or FILE:NAME, judged by its form only."""
    return is_url(word) or ("://" not in word and _FILE.fullmatch(word) is not None)


def shown_server(word: str) -> str:
    """Return a file, quoted for the shell, or "URL": a URL may have a password in it."""
    return "URL" if is_url(word) else shlex.quote(word)


def parse_server_command(
    parser: argparse.ArgumentParser, words: Sequence[str]
) -> tuple[argparse.Namespace, Target]:
    """Parse a subcommand's words and its server: a URL, a file, or a command after `--`."""
    cut = words.index("--") if "--" in words else len(words)
    own = words[:cut]
    command = words[cut + 1 :]
    found, unknown = parser.parse_known_intermixed_args(own)
    given = [getattr(found, position) for position in found.positions]
    for word in (*given, *found.words, *getattr(found, "answer", ())):
        _require_utf_8(word)
    server: str | tuple[str, ...] = tuple(command)
    file = ""
    if "--" not in words and found.words and is_url(found.words[-1]):
        server = found.words.pop()
    elif "--" not in words and found.words and _is_file(found.words[-1], found):
        file = found.words.pop()
    elif len(command) == 1 and is_url(command[0]):
        server = command[0]
    fitting = list(takewhile(found.takes.fits, found.words))
    stray = [*found.words[len(fitting) :], *unknown]
    # A reference is long, and the error would repeat it in each of its examples.
    shown = [REFERENCES.metavar for _ in fitting] if found.takes is REFERENCES else fitting
    prefix = f"{parser.prog} {shlex.join([*given, *shown])}".rstrip()
    if file and stray and not stray[0].startswith("-") and shutil.which(stray[0]):
        raise _missing_server(prefix, [*stray, file])  # such as `python server.py`
    if file:
        server = _run_command(file, found)
    elif not server:
        # The URI of a resource may look like the URL of a server.
        if given and found.words and is_server(given[0]) and found.positions != ["uri"]:
            words = f"{shlex.join([*given[1:], *found.words])} {shown_server(given[0])}"
            raise CliError(f"the server is the last word: {parser.prog} {words}")
        raise _missing_server(prefix, stray)
    elif isinstance(server, str):
        require_url(server)
    elif "://" in server[0]:
        raise invalid_url(server[0])
    elif len(server) == 1 and _is_file(server[0], found) and shutil.which(server[0]) is None:
        raise CliError(f"{server[0]} is not a command; to serve the file: {prefix} {server[0]}")
    if unknown or (stray and found.takes is NO_WORDS):
        parser.error(
            f"unrecognized arguments: {shlex.join(stray)} (options of the server go after its"
            " command)"
        )
    return found, _target(parser, found, server, file)


def _is_file(word: str, found: argparse.Namespace) -> bool:
    """Return True if `word` is FILE or FILE:NAME, judged by its form only."""
    if found.takes is ARGUMENTS and ARGUMENTS.fits(word):
        return False
    return is_server(word) and not is_url(word)


def _run_command(target: str, found: argparse.Namespace) -> tuple[str, ...]:
    """Return the command that serves `FILE[:NAME]`, with the Python that runs this command.

    Raises:
        CliError: there is no such file.
    """
    path, name = split_file(target)
    if found.cwd is not None:
        path = path.absolute()  # the server starts in another directory
    file = f"{path}:{name}" if name else str(path)
    # -P: not from the current directory, whose modules may have the same names.
    return (sys.executable, "-P", "-m", "mcp_trio", "run", file)


def _require_utf_8(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise CliError(f"{word!r} is not UTF-8") from None


def require_url(text: str) -> None:
    from mcp_core.http import Url

    try:
        Url.parse(re.sub("(?i)^ws", "http", text))
    except ValueError as exc:
        raise CliError(str(exc)) from None


def _target(
    parser: argparse.ArgumentParser,
    found: argparse.Namespace,
    server: str | tuple[str, ...],
    file: str,
) -> Target:
    stderr = Screen(sys.stderr)
    name = file or (server if isinstance(server, str) else shlex.join(server))
    headers = _headers(found, server)
    allow_cleartext = getattr(found, "allow_cleartext", False)
    if not allow_cleartext:
        _check_cleartext(server, headers)
    return Target(
        server=server,
        file=file,
        versions=ALL if found.revision is None else (found.revision,),
        timeout=found.timeout,
        log_level=getattr(found, "log_level", None),
        stderr=stderr,
        trace=trace_printer(stderr) if found.trace else None,
        recording=read_recording(parser, found, stderr),
        user=User(name, found.answer, stderr) if "answer" in found else None,
        roots=tuple(getattr(found, "roots", ())),
        headers=headers,
        allow_cleartext=allow_cleartext,
        keychain=uses_keychain(found, server),
        env=_environment(found, server, file),
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
            return invalid_url(word)
    if stray and _URL_WITHOUT_SCHEME.fullmatch(stray[-1]):
        return CliError(f"{stray[-1]} is not a URL: {prefix} http://{stray[-1]}")
    if stray:
        neither = f"{stray[0]} is neither a URL nor a Python file (FILE.py or FILE.py:NAME); "
        return CliError(
            f"{neither if len(stray) == 1 else ''}the command that starts the server comes after"
            f" `--`: {prefix} -- {shlex.join(stray)}"
        )
    return CliError(
        "no server: give its URL or its Python file as the last word, or after `--` the command"
        f" that starts it: {prefix} http://127.0.0.1:8000/mcp, or {prefix} server.py, or"
        f" {prefix} -- python server.py"
    )


def invalid_url(url: str) -> CliError:
    from mcp_core.urls import redacted_url

    shown = redacted_url(url)[1:-1]  # without quotes
    if is_url(url):
        return CliError(
            f"{shown} is not a command: a URL is the last word, without `--` and arguments"
        )
    return CliError(
        f"{shown} is not supported: give a URL that begins with http://, https://, ws:// or wss://"
    )


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


def _environment(
    found: argparse.Namespace, server: str | tuple[str, ...], file: str
) -> tuple[tuple[str, str], ...]:
    """Return the variables that the command which starts the server gets.

    A file is imported as `mcp-trio run` would: with the settings of Python, such as `PYTHONPATH`.
    """
    if isinstance(server, str):
        for option in "env", "inherit_env", "cwd":
            if getattr(found, option):
                raise CliError(
                    f"--{option.replace('_', '-')} is for a server that is started: give its"
                    " command after `--`, or its file, in place of the URL"
                )
    variables: list[tuple[str, str]] = []
    if file:
        variables += [pair for pair in os.environ.items() if pair[0].startswith("PYTHON")]
    for name, value in found.env:
        if value is None and name not in os.environ:
            raise CliError(
                f"--env {name}: that environment variable is not set; set it, or write"
                f" --env {name}=VALUE"
            )
        variables.append((name, os.environ[name] if value is None else value))
    return tuple(variables)
