"""The server that a command line names, and what the options say about it.

1. The last word is a URL if it begins with `http://`, `https://`, `ws://` or `wss://`, and a file
   if it ends in `.py` or `.py:NAME` and isn't KEY=VALUE.
2. The words after `--` are the command that starts the server. They are split off before argparse
   sees them, so options of the server are never taken for ours.
3. `--server` and `--config` name a server of the configuration files. So does a merged name, such
   as `mcp__git__git_log`, if no server is given in another way.
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
from typing import TYPE_CHECKING, Final, Literal

from mcp_core import ALL
from mcp_core.adapters import read_recording
from mcp_core.urls import http_url, url_transport

from ._elicitation_answers import ElicitationAnswers, open_terminal
from ._errors import CliError, file_source, one_line
from ._options import ARGUMENTS, NO_WORDS, REFERENCES
from ._screen import Screen
from ._served_file import absolute_file, serving_command
from ._session import DEFAULT_TIMEOUT, Target, trace_printer
from .state._logins import has_login, uses_keychain

if TYPE_CHECKING:
    from mcp_core.host import QualifiedName

__all__ = [
    "ASYNCIO_NEEDS_FILE",
    "configured_target",
    "invalid_url",
    "is_server",
    "is_url",
    "parse_server_command",
    "read_environment",
    "read_headers",
    "refuse_configured_options",
    "refuse_unconfigured_options",
    "require_url",
    "require_utf_8",
    "shown_server",
    "source_command",
    "unconfigured_target",
]

_URL_WITHOUT_SCHEME: Final = re.compile(
    r"(?:[\w.-]+|\[[\da-fA-F:.]+\]):\d+(?:/.*)?"
)  # a URL without its scheme
_MERGED_PREFIX: Final = "mcp__"
# The options that aren't for configured servers, since a server's entry decides these.
_UNCONFIGURED_OPTIONS: Final = (
    *("headers", "token_env", "allow_cleartext", "env", "inherit_env", "cwd", "asyncio"),
)
ASYNCIO_NEEDS_FILE: Final = (
    "--asyncio is for a server that this command takes from a Python file: give FILE, or -m"
    " PACKAGE.MODULE"
)
_FILE: Final = re.compile(r"(?s).*\.py(?::\w+)?")


def is_url(word: str) -> bool:
    """Return True if `word` begins as the URL of a server does."""
    return url_transport(word) is not None


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
        require_utf_8(word)
    has_server = found.module is not None or _ends_in_server(words, found)
    if _is_configured(found, has_server=has_server):
        stray = [*found.words[len(list(takewhile(found.takes.fits, found.words))) :], *unknown]
        module = ["-m", found.module] if found.module is not None else []
        return found, _configured_target(parser, found, [*stray, *module, *words[cut:]])
    refuse_configured_options(parser, found)
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
    source = _choose_source(parser, found, file, is_elsewhere=bool(server))
    if source and stray and not stray[0].startswith("-") and shutil.which(stray[0]):
        # Such as `python server.py`, or `python -m server`.
        raise _missing_server(prefix, [*stray, *source])
    if source:
        server = source_command(source, found)
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
    return found, unconfigured_target(parser, found, server, source)


def _choose_source(
    parser: argparse.ArgumentParser, found: argparse.Namespace, file: str, *, is_elsewhere: bool
) -> tuple[str, ...]:
    """Return what this command serves itself: `FILE[:NAME]`, `-m` and a module, or nothing.

    `is_elsewhere` is True if the command line has a URL, or a command that starts the server.

    Raises:
        SystemExit: argparse has printed an error: there are two servers, or an option isn't for it.
    """
    if found.module is not None:
        if file or is_elsewhere:
            parser.error(f"there are two servers: -m {found.module}, and the last word or command")
        return ("-m", found.module)
    if found.asyncio and is_elsewhere:
        parser.error(ASYNCIO_NEEDS_FILE)
    return (file,) if file else ()


def _ends_in_server(words: Sequence[str], found: argparse.Namespace) -> bool:
    """Return True if a command line's last words name a server."""
    if "--" in words:
        return True
    return bool(found.words) and (is_url(found.words[-1]) or _is_file(found.words[-1], found))


def _is_configured(found: argparse.Namespace, *, has_server: bool) -> bool:
    """Return True if the server is from the configuration files."""
    if found.server_name is not None or found.config is not None:
        return True
    return not has_server and (bool(_merged_name(found)) or _resource_label(found) is not None)


def _merged_name(found: argparse.Namespace) -> str:
    """Return the merged name of a tool or a prompt that is given, or ""."""
    if found.positions[:1] not in (["tool"], ["name"]):
        return ""
    name: str = getattr(found, found.positions[0])
    return name if name.startswith(_MERGED_PREFIX) else ""


def _resource_label(found: argparse.Namespace) -> QualifiedName | None:
    """Return the server and URI of a label `@SERVER:URI` that is given, or None."""
    if found.positions != ["uri"] or not found.uri.startswith("@"):
        return None
    from mcp_core.host import read_resource_label

    return read_resource_label(found.uri)


def _configured_target(
    parser: argparse.ArgumentParser, found: argparse.Namespace, stray: Sequence[str]
) -> Target:
    """Return the server of the configuration files that a command line names.

    Raises:
        SystemExit: argparse has printed an error: there are words or options for other servers.
        CliError: there is no such server.
    """
    if stray:
        parser.error(
            "the server is one of the configuration files: leave"
            f" {shlex.join(stray)} out, or --server and --config"
        )
    refuse_unconfigured_options(parser, found)
    server: str | None = found.server_name
    label = _resource_label(found)
    if label is not None:
        if server not in (None, label.server):
            parser.error(f"{found.uri} is a resource of another server than that of --server")
        server, found.uri = label.server, label.name
    if server is not None:
        require_utf_8(server)
    kind: Literal["tool", "prompt"] = "prompt" if found.positions == ["name"] else "tool"
    merged = "" if server is not None else _merged_name(found)
    return configured_target(parser, found, server, merged, kind)


def refuse_configured_options(parser: argparse.ArgumentParser, found: argparse.Namespace) -> None:
    """Refuse the options for the approval of a configured server.

    Raises:
        SystemExit: argparse has printed an error.
    """
    for option in "yes", "approve_server":
        if getattr(found, option, None):
            name = option.replace("_", "-")
            parser.error(f"--{name} is for a server of the configuration files: --server NAME")


def refuse_unconfigured_options(parser: argparse.ArgumentParser, found: argparse.Namespace) -> None:
    """Refuse the options for what a configured server's entry decides.

    Raises:
        SystemExit: argparse has printed an error.
    """
    for option in _UNCONFIGURED_OPTIONS:
        if getattr(found, option, None):
            name = option.replace("_", "-").removesuffix("s")
            parser.error(f"--{name} is not for a server of the configuration files: write it there")


def configured_target(
    parser: argparse.ArgumentParser,
    found: argparse.Namespace,
    server: str | None,
    merged: str = "",
    kind: Literal["tool", "prompt"] = "tool",
) -> Target:
    """Return a server of the configuration files as a command's target.

    Args:
        parser: for errors about options that don't fit each other.
        found: the command's options.
        server: the server's name. None takes the server of `merged`, or else the only one.
        merged: the merged name of a tool or a prompt, or "".
        kind: what `merged` names.

    Raises:
        CliError: there is no such server, or an option isn't for it.
    """
    from .configured._configured import ConfiguredSession, choose_servers
    from .configured._consent import TerminalConsent

    choice = choose_servers(found.config, server, merged)
    config = choice.first.server
    stderr = Screen(sys.stderr)
    answers = None
    if "answer" in found:
        answers = ElicitationAnswers(
            " or ".join(map(one_line, choice.servers)), found.answer, stderr
        )
    terminal = open_terminal(stderr) if answers is None else answers.terminal
    for word in found.approve_server:
        require_utf_8(word)
    consent = TerminalConsent(
        stderr,
        terminal,
        assume_yes=getattr(found, "yes", None) or False,
        approved_servers=found.approve_server,
    )
    timeout = getattr(found, "timeout", None)
    revision = getattr(found, "revision", None)
    return Target(
        server=config.url or (config.command or "", *config.args),
        versions=ALL if revision is None else (revision,),
        timeout=timeout or config.call_timeout or DEFAULT_TIMEOUT,
        connect_timeout=timeout or config.connect_timeout or DEFAULT_TIMEOUT,
        log_level=getattr(found, "log_level", None),
        stderr=stderr,
        trace=trace_printer(stderr) if found.trace else None,
        recording=read_recording(parser, found, stderr.write_line),
        answers=answers,
        roots=tuple(getattr(found, "roots", ())),
        keychain=uses_keychain(found, has_login=choice.has_login),
        configured=ConfiguredSession(choice, consent, kind),
    )


def _is_file(word: str, found: argparse.Namespace) -> bool:
    """Return True if `word` is FILE or FILE:NAME, judged by its form only."""
    if found.takes is ARGUMENTS and ARGUMENTS.fits(word):
        return False
    return is_server(word) and not is_url(word)


def source_command(source: Sequence[str], found: argparse.Namespace) -> tuple[str, ...]:
    """Return the command that serves a source: `FILE[:NAME]`, or `-m` and `PACKAGE.MODULE[:NAME]`.

    Raises:
        CliError: there is no such file.
    """
    if found.module is None:
        (file,) = source
        # With --cwd the server starts in another directory.
        source = file_source(file).words if found.cwd is None else (absolute_file(file),)
    return serving_command(*source, asyncio=found.asyncio)


def require_utf_8(word: str) -> None:
    """Check that a word is UTF-8.

    Raises:
        CliError: it isn't.
    """
    try:
        word.encode()
    except UnicodeEncodeError:
        raise CliError(f"{word!r} is not UTF-8") from None


def require_url(text: str) -> None:
    from mcp_core.http import Url

    try:
        Url.parse(http_url(text))
    except ValueError as exc:
        raise CliError(str(exc)) from None


def unconfigured_target(
    parser: argparse.ArgumentParser,
    found: argparse.Namespace,
    server: str | tuple[str, ...],
    source: tuple[str, ...] = (),
) -> Target:
    """Return a server that isn't from a configuration file as a command's target.

    Args:
        parser: for errors about options that don't fit each other.
        found: the command's options.
        server: its URL, or the command that starts it.
        source: what the command serves: `FILE[:NAME]`, or `-m` and a module; empty for others.

    Raises:
        CliError: an option isn't for it.
    """
    stderr = Screen(sys.stderr)
    file = source[-1] if source else ""
    name = file or (server if isinstance(server, str) else shlex.join(server))
    headers = read_headers(found, server)
    allow_cleartext = getattr(found, "allow_cleartext", False)
    if not allow_cleartext:
        _check_cleartext(server, headers)
    return Target(
        server=server,
        file=file,
        file_words=(*(("--asyncio",) if found.asyncio else ()), *source),
        versions=ALL if found.revision is None else (found.revision,),
        timeout=found.timeout or DEFAULT_TIMEOUT,
        log_level=getattr(found, "log_level", None),
        stderr=stderr,
        trace=trace_printer(stderr) if found.trace else None,
        recording=read_recording(parser, found, stderr.write_line),
        answers=ElicitationAnswers(name, found.answer, stderr) if "answer" in found else None,
        roots=tuple(getattr(found, "roots", ())),
        headers=headers,
        allow_cleartext=allow_cleartext,
        keychain=uses_keychain(found, has_login=has_login(server)),
        env=read_environment(found, server, file),
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
        row = url_transport(server)
        is_websocket = row is not None and row.is_websocket
        url = Url.parse(http_url(server))
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


def read_headers(
    found: argparse.Namespace, server: str | tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the headers of each HTTP request, with names in lower case.

    A token is read from the environment: other users of the machine can see a command line.
    """
    headers: list[tuple[str, str]] = [
        (name.lower(), value) for name, value in getattr(found, "headers", ())
    ]
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


def read_environment(
    found: argparse.Namespace, server: str | tuple[str, ...], file: str
) -> tuple[tuple[str, str], ...]:
    """Return the variables for the command that starts the server.

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
