"""A host's servers: from the program, and from configuration files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeAlias

from msgspec.structs import replace

from mcp_core.registry import Server
from mcp_core.runtime.host import EntrySource, ServerSource, check_target, target_secrets
from mcp_core.urls import url_transport
from mcp_trio._connect import connect, connect_http, connect_stdio, connect_websocket

if TYPE_CHECKING:
    from mcp_core import Peer
    from mcp_core.adapters import Recording
    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.host import ServerLaunch, ServerTransport
    from mcp_core.runtime import AbstractClient
    from mcp_core.runtime.host import ClientConnection
    from mcp_trio._connect import ClientOptions
    from mcp_trio.auth._authorization import LoginConfig
    from mcp_trio.streams._child import Stderr

    from ._prepared_launch import ExpandedLaunch

__all__ = ["HostStderr", "HostTrace", "MemoryOfServer", "SourceOptions", "Target", "make_source"]

# A server as a program names it: as for `connect`, or an entry of a configuration file.
Target: TypeAlias = str | Server | Sequence[str | os.PathLike[str]] | Mapping[str, Any]

_Connectable: TypeAlias = str | Server | Sequence[str | os.PathLike[str]]

# The destination of the stderr of started servers. A function gets the server's name, and a
# line.
HostStderr: TypeAlias = Literal["forward", "discard"] | Callable[[str, str], object]

# Called for each message, with the server's name, the direction and the bytes.
HostTrace: TypeAlias = Callable[[str, Literal["sent", "received"], bytes], object]


class MemoryOfServer(Protocol):
    """A context manager with what earlier connections to one server found out, for the next one."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    @property
    def known_peer(self) -> Peer | None:
        """The option `known_peer` of the client."""

    def connected(self, client: AbstractClient) -> None:
        """Save what `client`, which is connected now, negotiated with the server."""


class SourceOptions(NamedTuple):
    """The options that the sources of one host share.

    They are `auth`, `stderr`, `trace`, `env` and `inherit_env` of `Host`. `record` returns the
    recording of the next connection to a server, `remember` what is known of a configured server.
    """

    auth: LoginConfig | bool | None
    stderr: HostStderr
    trace: HostTrace | None = None
    record: Callable[[str], Recording] | None = None
    remember: Callable[[ExpandedLaunch], MemoryOfServer] | None = None
    env: Mapping[str, str] = {}
    inherit_env: bool = False

    def secrets_of(self, target: _Connectable | None) -> frozenset[str]:
        """Return the secrets of a server that the program names; None for those of any command."""
        return target_secrets(target, self.env, os.environ if self.inherit_env else None)

    def client_options(
        self, server: str, options: ClientConfigOptions, secrets: frozenset[str] = frozenset()
    ) -> ClientOptions:
        """Return the options of a server's client: `options`, `trace` and `record`.

        The recording hides `secrets`.
        """
        record = None if self.record is None else self.record(server)
        if record is not None:
            record = replace(record, secrets=record.secrets | secrets)
        found: ClientOptions = {"trace": None, "record": record, **options}
        if self.trace is not None:
            found["trace"] = partial(self.trace, server)
        return found

    def connect_program(
        self,
        server: str,
        argv: Sequence[str | os.PathLike[str]],
        options: ClientOptions,
        *,
        env: Mapping[str, str] = {},
        cwd: str | None = None,
    ) -> ClientConnection:
        """Return the connection to a server that is started, with its own `env` before the host's.

        `server` is its name.
        """
        return connect_stdio(
            argv,
            env={**self.env, **env},
            inherit_env=self.inherit_env,
            cwd=cwd,
            stderr=self._stderr_of(server),
            **options,
        )

    def connect_url(
        self,
        transport: ServerTransport,
        url: str,
        headers: Mapping[str, str],
        options: ClientOptions,
    ) -> ClientConnection:
        """Return the connection to a server at a URL."""
        if transport == "ws":
            return connect_websocket(url, headers=headers, **options)
        return connect_http(url, headers=headers, auth=self.auth_of(headers), **options)

    def _stderr_of(self, server: str) -> Stderr:
        """Return the option `stderr` of `connect_stdio` for a server."""
        return partial(self.stderr, server) if callable(self.stderr) else self.stderr

    def auth_of(self, headers: Mapping[str, str]) -> LoginConfig | bool:
        """Return the option `auth` of `connect_http` for a server with these headers."""
        if any(name.lower() == "authorization" for name in headers):
            return False
        if self.auth is not None:
            return self.auth
        from mcp_trio.auth._authorization import LoginConfig

        return LoginConfig(browse=None)


def make_source(name: str, target: Target, shared: SourceOptions) -> ServerSource:
    """Return the source of a server that the program names.

    Raises:
        TypeError: the target is of another type.
        ValueError: it is an entry that is wrong.
    """
    if isinstance(target, Mapping):
        return _EntryServer(name, target, shared)
    check_target(name, target)
    return _ProgramServer(name, target, shared)


class _EntryServer(EntrySource):
    """A server that the program describes as a configuration file does."""

    def __init__(self, name: str, entry: Mapping[str, Any], shared: SourceOptions) -> None:
        super().__init__(name, entry)
        self._shared = shared

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        expanded = self.expand(os.environ, windows=os.name == "nt")
        if expanded.command is not None:
            self.secrets |= self._shared.secrets_of(None)
        given = self._shared.client_options(self.name, options, self.secrets)
        if expanded.command is None:
            url, headers = expanded.url or "", expanded.headers
            return self._shared.connect_url(self.transport, url, headers, given)
        argv = (expanded.command, *expanded.args)
        return self._shared.connect_program(
            self.name, argv, given, env=expanded.env, cwd=expanded.cwd
        )


class _ProgramServer(ServerSource):
    """A server that the program names: a URL, a command, or a `Server` of this process."""

    def __init__(self, name: str, target: _Connectable, shared: SourceOptions) -> None:
        self.name = name
        self.needs_pins = not isinstance(target, Server)
        self._target = target
        self._shared = shared

    def __repr__(self) -> str:
        return f"<server {self.name!r} of the program>"

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        target = self._target
        self.secrets = self._shared.secrets_of(target)
        given = self._shared.client_options(self.name, options, self.secrets)
        if isinstance(target, Server):
            return connect(target, **given)
        if not isinstance(target, str):
            return self._shared.connect_program(self.name, target, given)
        row = url_transport(target)
        if row is not None and row.has_login:
            return connect_http(target, auth=self._shared.auth_of({}), **given)
        return connect(target, **given)

    def same_as(self, other: Any) -> bool:
        return isinstance(other, _ProgramServer) and other._target == self._target
