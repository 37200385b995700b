"""A host's servers: those that the program names, and those of configuration files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeAlias

from msgspec.structs import replace

from mcp_core.registry import Server
from mcp_core.runtime.host import ServerSource
from mcp_core.urls import URL_TRANSPORTS, url_transport
from mcp_trio._connect import connect, connect_http, connect_stdio

if TYPE_CHECKING:
    import os

    from mcp_core import Peer
    from mcp_core.adapters import Recording
    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.host import ServerLaunch
    from mcp_core.runtime import AbstractClient
    from mcp_core.runtime.host import ClientConnection
    from mcp_trio._connect import ClientOptions
    from mcp_trio.auth._authorization import LoginConfig
    from mcp_trio.streams._child import Stderr

    from ._prepared_launch import ExpandedLaunch

__all__ = ["HostStderr", "HostTrace", "MemoryOfServer", "SourceOptions", "Target", "make_source"]

# A server as a program names it: as for `connect`.
Target: TypeAlias = "str | Server | Sequence[str | os.PathLike[str]]"

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

    They are `auth`, `stderr` and `trace` of `Host`. `record` returns the recording of the next
    connection to a server, `remember` what is known of a configured server.
    """

    auth: LoginConfig | bool | None
    stderr: HostStderr
    trace: HostTrace | None = None
    record: Callable[[str], Recording] | None = None
    remember: Callable[[ExpandedLaunch], MemoryOfServer] | None = None

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

    def stderr_of(self, server: str) -> Stderr:
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
    """
    if isinstance(target, str):
        is_valid = url_transport(target) is not None
    elif isinstance(target, Server):
        is_valid = True
    else:
        is_valid = isinstance(target, list | tuple) and bool(target)
    if not is_valid:
        schemes = ", ".join(f"{scheme}://" for scheme in URL_TRANSPORTS)
        raise TypeError(
            f"{name}: give a URL with {schemes}, a command as a list of words, or a"
            f" Server, not {target!r}"
        )
    return _ProgramServer(name, target, shared)


class _ProgramServer(ServerSource):
    """A server that the program names: a URL, a command, or a `Server` of this process."""

    def __init__(self, name: str, target: Target, shared: SourceOptions) -> None:
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
        given = self._shared.client_options(self.name, options)
        if isinstance(target, Server):
            return connect(target, **given)
        if not isinstance(target, str):
            stderr = self._shared.stderr_of(self.name)
            return connect_stdio(target, stderr=stderr, **given)
        row = url_transport(target)
        if row is not None and row.has_login:
            return connect_http(target, auth=self._shared.auth_of({}), **given)
        return connect(target, **given)

    def same_as(self, other: Any) -> bool:
        return isinstance(other, _ProgramServer) and other._target == self._target
