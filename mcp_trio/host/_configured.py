"""The servers of configuration files, as a host connects to them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from mcp_core import McpTrioError
from mcp_core.host import ConfigInput, ServerConfig, find_denial, find_variables
from mcp_core.runtime.host import ServerSource

from ._prepared_launch import prepare_launch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping

    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.host import MergedServers, ServerLaunch, ServerPolicy
    from mcp_core.runtime import AbstractClient
    from mcp_core.runtime.host import ClientConnection
    from mcp_trio._connect import ClientOptions

    from ._config_files import ConfigFiles
    from ._prepared_launch import ExpandedLaunch, PreparedLaunch
    from ._sources import SourceOptions

__all__ = ["ConfiguredServer", "LaunchFound", "LaunchSource", "configured_sources", "kept_sources"]

Placed = TypeVar("Placed", ServerConfig, ConfigInput)

# The scopes of files that the user, or the administrator, has written.
_TRUSTED = ("managed", "user")


def kept_sources(
    present: Iterable[ServerSource], servers: MergedServers, found: Collection[str]
) -> list[ServerSource]:
    """Return the present servers to keep while their file, or their entry in it, cannot be read.

    Its user may be in the middle of a change. The administrator's present file applies to them as
    to others. A server isn't kept if a restriction in its entry cannot be read: it would go on
    without that.

    Args:
        present: the host's sources.
        servers: what the files have now.
        found: the names of the servers that count now.
    """
    if servers.is_exclusive:
        return []
    unreadable = {(each.place.file, each.server) for each in servers.problems if not each.ignored}
    restricted = {(each.place.file, each.server) for each in servers.problems if each.restricts}
    return [
        source.with_policy(servers.policy)
        for source in present
        if isinstance(source, ConfiguredServer)
        and source.name not in found
        and not {(source.file, None), (source.file, source.name)}.isdisjoint(unreadable)
        and (source.file, source.name) not in restricted
        and source.is_allowed_by(servers.policy)
    ]


def configured_sources(
    files: ConfigFiles, servers: MergedServers, shared: SourceOptions
) -> list[ServerSource]:
    """Return the sources of the servers that count."""
    return [ConfiguredServer(files, servers, name, shared) for name in servers.servers]


class ConfiguredServer(ServerSource):
    """A server of a configuration file.

    Args:
        files: the files' places.
        servers: the servers that count in these files.
        name: the server's name.
        shared: the options that all sources of the host share.
    """

    def __init__(
        self, files: ConfigFiles, servers: MergedServers, name: str, shared: SourceOptions
    ) -> None:
        scoped = servers.servers[name]
        self.name = name
        self.file = scoped.server.place.file
        self.is_disabled = scoped.server.disabled
        self.needs_approval = scoped.scope not in _TRUSTED
        self.is_trusted = not self.needs_approval and not scoped.server.asks_always
        self.replaces = scoped.replaces
        self.connect_timeout = scoped.server.connect_timeout
        self.call_timeout = scoped.server.call_timeout
        self._scoped = scoped
        self._files = files
        self._servers = servers
        self._shared = shared

    def __repr__(self) -> str:
        return f"<server {self.name!r} of {self._scoped.server.place}>"

    def prepare(self) -> ServerLaunch:
        return self._prepare().launch

    def _prepare(self, launch: ServerLaunch | None = None) -> PreparedLaunch:
        return prepare_launch(
            self._files, self._servers, self.name, launch=launch, env=self._shared.env
        )

    def find_tool_denial(self, tool: str) -> str | None:
        return self._scoped.server.find_tool_denial(tool)

    def inputs(self) -> Mapping[str, ConfigInput]:
        # Not other servers' values: they may be secrets of one that isn't approved.
        known = self._scoped.inputs
        used = {use.name for use in find_variables(self._scoped.server) if use.kind == "input"}
        return {id: each for id, each in known.items() if id in used}

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        if launch is None and self.needs_approval:
            raise ValueError(f"{self.name} needs the launch that was approved")
        return self._connected(options, inputs, launch)

    @asynccontextmanager
    async def _connected(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> AsyncIterator[AbstractClient]:
        def expand() -> ExpandedLaunch:
            # What was approved is what runs: the program isn't looked for again.
            return self._prepare(launch).expand(inputs)

        expanded = await trio.to_thread.run_sync(expand)
        self.secrets = expanded.secrets
        if expanded.url is None:
            self.secrets |= self._shared.secrets_of(None)
        given = self._shared.client_options(self.name, options, self.secrets)
        remember = self._shared.remember
        if remember is None:
            async with self._connection(expanded, given) as client:
                yield client
            return
        with remember(expanded) as memory:
            given["known_peer"] = memory.known_peer
            async with self._connection(expanded, given) as client:
                memory.connected(client)
                yield client

    def _connection(self, launch: ExpandedLaunch, options: ClientOptions) -> ClientConnection:
        if launch.url is None:
            return self._shared.connect_program(
                self.name, launch.argv, options, env=launch.env, cwd=launch.cwd
            )
        return self._shared.connect_url(launch.transport, launch.url, launch.headers, options)

    def is_allowed_by(self, policy: ServerPolicy | None) -> bool:
        """Return True if an administrator's lists don't deny the server, unexpanded."""
        return policy is None or find_denial(policy, self._scoped.server) is None

    def with_policy(self, policy: ServerPolicy | None) -> ConfiguredServer:
        """Return the same server under other lists of an administrator."""
        servers = replace(self._servers, policy=policy)
        return ConfiguredServer(self._files, servers, self.name, self._shared)

    def same_as(self, other: Any) -> bool:
        return isinstance(other, ConfiguredServer) and self._compared == other._compared

    @property
    def _compared(self) -> tuple[Any, ...]:
        scoped = self._scoped
        inputs = {id: _without_place(each) for id, each in scoped.inputs.items()}
        # Other lists of the administrator may deny the address or the arguments. A server that
        # replaces another one has to be approved for that.
        server = _without_place(scoped.server)
        return scoped.scope, inputs, server, scoped.replaces, self._servers.policy


class LaunchFound(McpTrioError):
    """Ends an attempt that had to find a launch only, without connecting."""


class LaunchSource(ConfiguredServer):
    """A server of a configuration file that the host approves, and something else starts.

    The arguments are `ConfiguredServer`'s.

    Attributes:
        expanded: the launch, once it is approved and expanded; None before.
    """

    expanded: ExpandedLaunch | None = None

    def _connection(self, launch: ExpandedLaunch, options: ClientOptions) -> ClientConnection:
        self.expanded = launch
        raise LaunchFound("the launch is known")


def _without_place(part: Placed) -> Placed:
    """Return a server or an input that is equal if only its place in the file differs."""
    return replace(part, place=replace(part.place, line=1, column=1))
