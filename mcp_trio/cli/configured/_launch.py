"""The launch of a configured server, for commands that speak to it without a client.

1. A host finds it, checks it against the policy and has it approved, as for every other command.
   Then the command itself starts the server, or connects to it.
2. What is written or printed about it has the file's texts, unexpanded. Only the server gets the
   values of variables.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from mcp_trio.cli._errors import NO_CONNECTION, CliError, join_names
from mcp_trio.cli.servers._places import shown_name
from mcp_trio.cli.state._logins import login_storage
from mcp_trio.streams._stdio import stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mcp_core.host import ServerConfig, ServerTransport, ToolRule
    from mcp_core.http import Url
    from mcp_trio.cli._session import Target
    from mcp_trio.host._prepared_launch import ExpandedLaunch

    from ._configured import ApprovedLaunch

__all__ = ["ConfiguredLaunch", "find_launch", "transport_of"]

_TRANSPORTS: Final[Mapping[str, str]] = {"sse": "HTTP+SSE", "ws": "WebSockets"}


@dataclass(frozen=True, kw_only=True)
class ConfiguredLaunch:
    """A configured server that is approved, with all values. Only a command has a `cwd` and `env`.

    Args:
        name: its name.
        server: its URL, or the words of its command.
        unexpanded: the same as the file has it, always as words.
        env: the command's variables.
        cwd: its working directory.
        headers: the headers of each HTTP request, with names in lower case.
        secrets: values that must not be written.
        config: its entry, unexpanded.
        denials: the stored rules that deny calls of its tools.
    """

    name: str
    server: str | tuple[str, ...]
    unexpanded: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: Path | None
    headers: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    config: ServerConfig = field(repr=False)
    denials: tuple[ToolRule, ...] = ()

    def applied_to(self, target: Target) -> Target:
        """Return `target` with this server in place of its name."""
        return replace(
            target,
            server=self.server,
            unexpanded=self.unexpanded,
            env=tuple(self.env.items()),
            cwd=self.cwd,
            headers=tuple(self.headers.items()),
            secrets=self.secrets,
        )

    @property
    def key(self) -> str:
        """A line that identifies the entry."""
        return f"{self.config.place.file!r} {self.config.name!r}"

    def url_to_pass_on(self) -> Url:
        """Return the URL for a proxy, which prints the path and the query.

        Raises:
            CliError: the server has a command, or a value of a variable is in them.
        """
        from mcp_core.http import Url

        if not isinstance(self.server, str):
            raise CliError(f"the server {self.name} has a command, and no URL")
        url = Url.parse(self.server)
        target = url.target.decode()
        if any(secret in target for secret in self.secrets):
            raise CliError(
                f"the path or query of the server {self.name} has a variable, and each client of a"
                " proxy would have to know its value: move it to a header of the entry"
            )
        return url

    def find_tool_denial(self, tool: str) -> str | None:
        """Return why a tool must not be called, by its entry or a stored rule, or None."""
        if any(rule.matches(tool, rule.digest) for rule in self.denials):
            return "a stored rule denies it"
        return self.config.find_tool_denial(tool)

    @property
    def written_env(self) -> frozenset[str]:
        """The names of variables whose values are in the file as they are."""
        written = self.config.env
        return frozenset(name for name, value in self.env.items() if written.get(name) == value)

    @property
    def written_headers(self) -> frozenset[str]:
        """The names of headers whose values are in the file as they are."""
        written = {name.lower(): value for name, value in self.config.headers.items()}
        return frozenset(name for name, value in self.headers.items() if written.get(name) == value)


def transport_of(target: Target) -> ServerTransport:
    """Return the transport of a configured server."""
    assert target.configured is not None, "the server is a configured one"
    return target.configured.choice.first.server.transport


def find_launch(
    target: Target,
    command: str,
    transports: Collection[ServerTransport],
    *,
    handles_login: bool = False,
    passes_on: bool = False,
) -> ConfiguredLaunch:
    """Return the launch of the configured server of `target`, once it is approved.

    Args:
        target: the command's options.
        command: the command, for errors.
        transports: the transports that the command speaks.
        handles_login: whether the caller handles logins at a URL itself.
        passes_on: whether the command only passes on what others send, and calls no tools itself.

    Raises:
        CliError: it isn't approved, is disabled, has tools that must not be called, or the command
            cannot talk to it.
        McpTrioError, OSError: it cannot be started as it is configured.
        SystemExit: a signal has ended the question about it.
    """
    session = target.configured
    assert session is not None, "the server is a configured one"
    config = session.choice.first.server
    name = shown_name(session.server)
    if passes_on and config.restricts_tools:
        raise CliError(
            f"the entry of the server {name} restricts its tools"
            f" ({config.tool_lists_place}), and `mcp-trio {command}` passes on all"
            " calls: remove the list, or give the server's URL or command itself",
            NO_CONNECTION,
        )
    if config.transport not in transports:
        raise CliError(
            f"the server {name} speaks {_TRANSPORTS.get(config.transport, config.transport)}, and"
            f" `mcp-trio {command}` does not: use a server with a command, or one with Streamable"
            " HTTP"
        )
    launch, denials = trio.run(_find, target)
    if passes_on and denials:
        tools = join_names([shown_name(each.tool) for each in denials])
        raise CliError(
            f"stored rules deny tools of the server {name} ({tools}), and `mcp-trio {command}`"
            " passes on all calls: give the server's URL or command itself",
            NO_CONNECTION,
        )
    if launch.url is not None:
        _check_headers(name, launch, None if handles_login else command)
    return ConfiguredLaunch(
        name=name,
        server=launch.argv if launch.url is None else launch.url,
        unexpanded=(config.command or "", *config.args) if config.url is None else (config.url,),
        env=launch.env,
        cwd=None if launch.cwd is None else Path(launch.cwd),
        headers={key.lower(): value for key, value in launch.headers.items()},
        secrets=launch.secrets,
        config=config,
        denials=denials,
    )


async def _find(target: Target) -> ApprovedLaunch:
    assert target.configured is not None, "the server is a configured one"
    with trio.CancelScope() as scope, stop_on_signals(scope.cancel) as stop:
        return await target.configured.find_launch(target)
    raise SystemExit(stop.exit_code)


def _check_headers(name: str, launch: ExpandedLaunch, command: str | None) -> None:
    """Check that a server's headers may be sent, and are all that it needs.

    Raises:
        CliError: a credential would be sent unencrypted, a header is invalid, or the user's login
            at the server is needed, which `command` doesn't use.
    """
    from mcp_core.http import HttpClientOptions, Url, find_cleartext_error
    from mcp_core.urls import http_url

    assert launch.url is not None, "the server is at a URL"
    is_websocket = launch.transport == "ws"
    try:
        HttpClientOptions(headers=launch.headers)
        url = Url.parse(http_url(launch.url))
        problem = find_cleartext_error(url, launch.headers, websocket=is_websocket)
    except ValueError as exc:
        raise CliError(f"the server {name} cannot be used: {exc}", NO_CONNECTION) from None
    if problem is not None:
        raise CliError(f"the server {name}: {problem}", NO_CONNECTION)
    has_token = any(each.lower() == "authorization" for each in launch.headers)
    if command is not None and not has_token and _has_stored_login(launch.url):
        raise CliError(
            f"you are logged in at the server {name}, and `mcp-trio {command}` does not use that"
            " login: write a header Authorization with a token into the entry, such as `Bearer"
            " ${TOKEN}`, or give the URL with --token-env",
            NO_CONNECTION,
        )


def _has_stored_login(url: str) -> bool:
    """Return True if `mcp-trio login` has stored tokens for a URL in the user's files."""
    from mcp_core.auth import Authorizer, ClientProfile, Load

    authorizer = Authorizer(url, ClientProfile(), entropy=os.urandom, wall_time=time.time)
    step = next(authorizer.load())
    with suppress(OSError):  # other commands say that it cannot be read
        return isinstance(step, Load) and login_storage(keychain=False).load(step.key) is not None
    return False
