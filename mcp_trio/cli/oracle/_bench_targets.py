"""The targets of `mcp-trio bench`: one as for other commands, or several by `--target NAME=...`.

The text behind NAME= is read in this order:

1. a URL;
2. `server:` and the name of a configured server;
3. FILE.py or FILE.py:NAME, if there is such a file;
4. a command line, split as the platform's shell does.

Options for headers, variables and the working directory apply to all targets that can have them.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mcp_core.processes import split_command_line
from mcp_core.urls import Url, is_local_host, redacted_url, url_transport
from mcp_trio.cli._errors import NO_CONNECTION, CliError, one_line
from mcp_trio.cli._target import (
    configured_target,
    invalid_url,
    is_server,
    is_url,
    parse_server_command,
    refuse_configured_options,
    require_url,
    require_utf_8,
    source_command,
    unconfigured_target,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from mcp_trio.cli._session import Target
    from mcp_trio.oracle.bench.engine._load import Address, Program

__all__ = ["BenchTarget", "parse_targets"]

_CONFIGURED: Final = "server:"
_NAMED: Final = re.compile(r"(?s)([\w.-]+)=(.+)")
_EXAMPLES: Final = (
    "ours='python server.py', theirs=https://127.0.0.1:8000/mcp or third=server:CONFIGURED"
)
MAX_TARGETS: Final = 16
_MAX_NAME: Final = 40
_HIDDEN: Final = "..."


@dataclass(frozen=True)
class BenchTarget:
    """A target and its name in the results.

    Attributes:
        name: as the user wrote it, or what names the only one.
        target: the server, with the command's options.
        find_denial: returns why a configured server's entry denies a tool, or None.
    """

    name: str
    target: Target
    find_denial: Callable[[str], str | None] = lambda _: None

    @property
    def is_url(self) -> bool:
        """True if it is at a URL, False if it is a program that is started."""
        return isinstance(self.target.server, str)

    @property
    def is_remote(self) -> bool:
        """True if it is on another machine."""
        server = self.target.server
        return isinstance(server, str) and not is_local_host(Url.parse(server).host)

    def approved(self) -> BenchTarget:
        """Return it with its launch, once a configured server is approved. Others are returned.

        Raises:
            CliError: it isn't approved, or can't be measured.
            McpTrioError, OSError: it can't be started as it is configured.
            SystemExit: a signal has ended the question about it.
        """
        if self.target.configured is None:
            return self
        from mcp_trio.cli.configured._launch import find_launch

        launch = find_launch(self.target, "bench", ("stdio", "http"))
        return BenchTarget(self.name, launch.applied_to(self.target), launch.find_tool_denial)

    def require_allowed(self, tools: Sequence[str]) -> None:
        """Check that a configured server's entry allows the tools that are called.

        Raises:
            CliError: it denies one.
        """
        for tool in tools:
            denial = self.find_denial(tool)
            if denial is not None:
                raise CliError(f"{self.name}, tool {one_line(tool)}: {denial}", NO_CONNECTION)

    def address(self) -> Address | Program:
        """Return how a load reaches it."""
        from mcp_trio.oracle.bench.engine._load import Address, Program

        target = self.target
        if isinstance(target.server, str):
            return Address(target.server, dict(target.headers))
        return Program(
            target.server, dict(target.env), inherit_env=target.inherit_env, cwd=target.cwd
        )

    def hide(self, text: str) -> str:
        """Return a text without the target's secrets."""
        for secret in sorted(self.target.known_secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text


def parse_targets(
    parser: argparse.ArgumentParser, words: Sequence[str]
) -> tuple[argparse.Namespace, list[BenchTarget]]:
    """Parse the words of the subcommand and its targets.

    Raises:
        SystemExit: argparse has printed help or an error.
        CliError: the command line is wrong in a way that argparse doesn't detect.
    """
    own = words[: words.index("--") if "--" in words else len(words)]
    if not any(word == "--target" or word.startswith("--target=") for word in own):
        found, target = parse_server_command(parser, words)
        _require_transport(target)
        return found, [BenchTarget(_only_name(target), target)]
    if "--" in words:
        parser.error("there is a command after --, and --target: give it as --target NAME='...'")
    found = parser.parse_args(words)
    if found.words or found.module is not None or found.server_name is not None:
        stray = [*found.words, *filter(None, [found.module, found.server_name])][0]
        parser.error(
            f"there are two kinds of targets: {stray}, and --target; give all as --target NAME=..."
        )
    if found.asyncio:
        parser.error("--asyncio is for one target; give the others as --target NAME=URL")
    if len(found.target) > MAX_TARGETS:
        parser.error(f"there are {len(found.target)} targets; at most {MAX_TARGETS} take turns")
    targets = [_parse_named(parser, found, text) for text in found.target]
    names = [each.name for each in targets]
    for name in names:
        if names.count(name) > 1:
            parser.error(f"two targets have the name {name}: give each one of its own")
    if all(each.target.configured is None for each in targets):
        refuse_configured_options(parser, found)
    _require_users(parser, found, targets)
    return found, targets


def _only_name(target: Target) -> str:
    if target.configured is not None or target.file:
        return target.name
    if isinstance(target.server, str):
        return redacted_url(target.server)[1:-1]
    return os.path.basename(target.server[0])  # noqa: PTH119 - a word, which may be no path


def _parse_named(
    parser: argparse.ArgumentParser, found: argparse.Namespace, text: str
) -> BenchTarget:
    """Return the target that `NAME=...` gives."""
    require_utf_8(text)
    form = _NAMED.fullmatch(text)
    if form is None or len(form[1]) > _MAX_NAME:
        shown = redacted_url(text)[1:-1] if is_url(text) else text
        raise CliError(
            f"--target {one_line(shown)} has no name: write NAME=TARGET, such as {_EXAMPLES}"
        )
    name, server = form[1], form[2].strip()
    found = copy.copy(found)
    if is_url(server):
        require_url(server)
        found.env, found.inherit_env, found.cwd = [], False, None
        target = unconfigured_target(parser, found, server)
    elif server.startswith(_CONFIGURED):
        target = _configured(parser, found, server.removeprefix(_CONFIGURED))
    else:
        found.headers, found.token_env = [], None
        target = _started(parser, found, name, server)
    _require_transport(target)
    return BenchTarget(name, target)


def _configured(parser: argparse.ArgumentParser, found: argparse.Namespace, name: str) -> Target:
    if not name:
        raise CliError("server: needs a name; `mcp-trio servers list` shows them")
    # Its entry decides these.
    found.headers, found.token_env, found.env = [], None, []
    found.inherit_env, found.cwd = False, None
    return configured_target(parser, found, name)


def _started(
    parser: argparse.ArgumentParser, found: argparse.Namespace, name: str, text: str
) -> Target:
    """Return a server that is a file or a command."""
    if not text:
        raise CliError(f"--target {name} has no command")
    if "://" in text.split(maxsplit=1)[0]:
        raise invalid_url(text)
    if is_server(text) and os.path.isfile(_without_name(text)):  # noqa: PTH113 - as typed
        return unconfigured_target(parser, found, source_command((text,), found), (text,))
    try:
        command = tuple(split_command_line(text, windows=os.name == "nt"))
    except ValueError as exc:
        raise CliError(f"--target {name}: the command line is wrong: {exc}") from None
    if not command:
        raise CliError(f"--target {name} has no command")
    if len(command) == 1 and is_server(command[0]) and shutil.which(command[0]) is None:
        raise CliError(f"--target {name}: there is no file {command[0]}")
    return unconfigured_target(parser, found, command)


def _without_name(word: str) -> str:
    """Return FILE of FILE.py or FILE.py:NAME."""
    head, ending, _ = word.rpartition(".py")
    return head + ending


def _require_transport(target: Target) -> None:
    server = target.server
    row = url_transport(server) if isinstance(server, str) else None
    if target.configured is None and row is not None and row.is_websocket:
        raise CliError(
            "bench speaks stdio and Streamable HTTP, and not WebSockets: give the http:// URL of"
            " the server, or its command"
        )


def _require_users(
    parser: argparse.ArgumentParser, found: argparse.Namespace, targets: Sequence[BenchTarget]
) -> None:
    """Refuse an option that no target can have."""
    plain = [each for each in targets if each.target.configured is None]
    for option, name, can_have in (
        ("headers", "--header", any(each.is_url for each in plain)),
        ("token_env", "--token-env", any(each.is_url for each in plain)),
        ("env", "--env", any(not each.is_url for each in plain)),
        ("inherit_env", "--inherit-env", any(not each.is_url for each in plain)),
        ("cwd", "--cwd", any(not each.is_url for each in plain)),
    ):
        if getattr(found, option) and not can_have:
            kind = "is at a URL" if option in ("headers", "token_env") else "is a command"
            parser.error(f"{name}: no target {kind} that the command line gives")
