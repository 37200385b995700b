"""What one side is and what it puts up with: identity, capabilities, revisions, limits - and what follows from them.

Rules of this file:

1. Everything that a peer can make grow has a limit in `Limits`, and every default has its reason next to it.
2. What can be worked out before the first message is worked out once for each `Config`, role and revision, and kept as
   `Terms`: which methods are received, and the constant bytes that are spliced into messages.
3. A `Config` is shared by all connections of a server or client and is not changed after the first of them.

It does not know any peer.
"""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from . import types as t
from ._capabilities import allowed, has, unchanging
from ._dialects import ALL, DIALECTS, Dialect, known
from ._jsonrpc import encode
from ._methods import Method, Role
from ._rate import Rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._hints import Cache

__all__ = ["CLIENT_LIMITS", "Config", "Limits", "Terms"]


# The grammar of keys of `_meta`, with the prefix that extensions must have (2026-07-28, basic/index).
_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_EXTENSION: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")


class Limits(Struct, frozen=True, kw_only=True):
    """Upper bounds. Sizes are in bytes, times in seconds."""

    # The figure that the larger peers use for a request body; tool arguments above it are files in disguise.
    message: int = 4 * 1024 * 1024
    # Long enough for a UUID or a hash with a prefix. An id is kept for as long as its request runs.
    id: int = 256
    # Four times the longest name of the specification.
    method: int = 256
    # Revision 2025-03-26 sets no bound; a batch is work that is admitted at once, so it is a fraction of `in_flight`.
    batch: int = 100
    # Handlers that run at the same time for one peer: more than people need, few enough to keep their memory small.
    in_flight: int = 256
    # Requests that have been read and wait for a handler. Behind them reading stops, so a second lane of equal length.
    waiting: int = 256
    # Bytes of answers that wait for a peer who does not read. Above it a server reads no further requests from that peer,
    # and a client gives the server up.
    queued: int = 1024 * 1024
    # How long reading may stand still because of `waiting` before the requests behind it are refused as busy. A
    # cancellation that would free a place may be among them.
    pause: float = 5.0
    # Tool calls and completions of one peer. A model makes a few in a second and a program a few hundred; who keeps up more
    # than that is a loop gone wrong. None sets no limit.
    tool_calls: Rate | None = Rate(per_second=1_000, burst=10_000)
    # Characters of a URI to be told about. As long as the longest that HTTP servers take, for it travels in a header there.
    uri: int = 8 * 1024
    # URIs that one peer may watch, in all. With the length above 8 MiB at the very worst, and more than anybody looks at.
    uris: int = 1024
    # Requests to listen that one connection may hold open. One is enough for a client, and a gateway has one for each user.
    listens: int = 64


# Servers choose what they send, and a large resource is nothing hostile: eight times a server's own limit.
CLIENT_LIMITS: Final = Limits(message=32 * 1024 * 1024)


class Terms(Struct, frozen=True, eq=False):
    """What `Config` means in one revision, for one role."""

    dialect: Dialect
    receives: dict[str, Method]  # requests refused for want of a capability of ours are not in here
    sends: dict[str, Method]
    result_meta: dict[str, Any]  # what belongs into `_meta` of each of our results
    # Constant members of each of our results, encoded with their commas: its type, its `_meta` for a result that has none
    # of its own, and both.
    type_stamp: bytes
    meta_stamp: bytes
    stamp: bytes
    request_meta: bytes  # constant members of `_meta` in each of our requests, without braces


class _TermsByDialect(dict[Dialect, Terms]):
    """What a configuration means for one role in each revision; worked out when it is first asked for."""

    __slots__ = ("_config", "_role")

    def __init__(self, config: Config, role: Role) -> None:
        self._config = config
        self._role = role

    def __missing__(self, dialect: Dialect) -> Terms:
        config, role = self._config, self._role
        custom = {name: row for name, row in config.methods.items() if row.to in (role, None)}
        sent = {name: row for name, row in config.methods.items() if row.to in (role.other, None)}
        meta: dict[str, Any] = {}
        request_meta = b""
        if not dialect.stateful:
            if role is Role.SERVER:
                meta = {"io.modelcontextprotocol/serverInfo": dialect.fit(config.info)}
            else:
                described = t.RequestMeta(
                    protocol_version=dialect.version,
                    client_capabilities=dialect.fit(config.capabilities),
                    client_info=dialect.fit(config.info),
                )
                request_meta = encode(described)[1:-1]
        type_stamp = b'"resultType":%b,' % encode(dialect.result_type) if dialect.result_type else b""
        meta_stamp = b'"_meta":%b,' % encode(meta) if meta else b""
        terms = self[dialect] = Terms(
            dialect=dialect,
            receives={**allowed(dialect.receives[role], config.capabilities), **custom},
            sends={**dialect.receives[role.other], **sent},
            result_meta=meta,
            type_stamp=type_stamp,
            meta_stamp=meta_stamp,
            stamp=type_stamp + meta_stamp,
            request_meta=request_meta,
        )
        return terms


class Config:
    """What one side says about itself and how it behaves.

    Args:
        info: name and version, told to the peer.
        capabilities: what is offered. A request that needs more is refused without anyone being asked.
        instructions: how to use the server, for the model (servers only).
        versions: the revisions spoken. A client prefers the newest; several eras make it probe, one makes it fixed.
        limits: upper bounds.
        methods: requests and notifications that MCP does not define.
        probe_timeout: seconds after which a client takes silence to `server/discover` for a stateful server.
        initialize_timeout: seconds that a client gives `initialize`; None waits, as a process may start slowly.
        keep_alive: seconds of silence after which the peer is asked whether it lives; after as many more it is given up. None
            never asks: on a pipe the end of a peer is seen at once.
        cache: how long what `server/discover` tells may be kept, and by whom; not at all if None (servers only).

    `dialects` are the revisions spoken, newest first; `stateful` those of them with a handshake, `stateless` the others.
    `terms[role][dialect]` is what this configuration means for that role in that revision, and `rows[role]` the requests and
    notifications that the role receives in any of them.

    Raises:
        ValueError: an extension's identifier is none, a version is unknown, a custom method has the name of one that MCP
            defines, or `keep_alive` is not positive.
    """

    __slots__ = (
        "by_version",
        "cache",
        "capabilities",
        "dialects",
        "info",
        "initialize_timeout",
        "instructions",
        "keep_alive",
        "limits",
        "methods",
        "probe_timeout",
        "rows",
        "stateful",
        "stateless",
        "terms",
    )

    def __init__(
        self,
        info: t.Implementation,
        capabilities: t.ClientCapabilities | t.ServerCapabilities,
        *,
        instructions: str | None = None,
        versions: Iterable[str] = ALL,
        limits: Limits | None = None,
        methods: Iterable[Method] = (),
        probe_timeout: float = 5.0,
        initialize_timeout: float | None = None,
        keep_alive: float | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.info = info
        self.capabilities: Any = capabilities  # a client's or a server's, as the role wants it
        self.instructions = instructions
        self.cache = cache
        self.dialects = known(versions)
        self.stateful = tuple(dialect for dialect in self.dialects if dialect.stateful)
        self.stateless = tuple(dialect for dialect in self.dialects if not dialect.stateful)
        self.by_version = {dialect.version: dialect for dialect in self.dialects}
        if limits is None:
            limits = CLIENT_LIMITS if isinstance(capabilities, t.ClientCapabilities) else Limits()
        self.limits = limits
        for identifier in capabilities.extensions or ():
            if not _EXTENSION.fullmatch(identifier):
                raise ValueError(
                    f"{identifier!r} is no identifier of an extension; they are like 'com.example/name'"
                )
        self.methods = {row.name: row for row in methods}
        for name in self.methods:
            if any(name in dialect.receives[role] for dialect in DIALECTS.values() for role in Role):
                raise ValueError(f"{name} is a method of MCP and cannot be redefined")
        self.probe_timeout = probe_timeout
        self.initialize_timeout = initialize_timeout
        if keep_alive is not None and not keep_alive > 0:
            raise ValueError(f"keep_alive is a number of seconds above 0, or None, not {keep_alive!r}")
        self.keep_alive = keep_alive
        self._work_out()

    def _work_out(self) -> None:
        self.terms = {role: _TermsByDialect(self, role) for role in Role}
        self.rows = {
            role: {
                name: row
                for dialect in self.dialects
                for name, row in self.terms[role][dialect].receives.items()
            }
            for role in Role
        }

    def __repr__(self) -> str:
        return (
            f"<Config {self.info.name} {self.info.version} [{', '.join(d.version for d in self.dialects)}]>"
        )

    def over_http(self, *, handshake: bool = True, lasting: bool = True) -> Config:
        """The same, on a connection that is carried by HTTP requests, where nobody can stop reading, and where what is silent has
        not died. Without `handshake` each request has to carry who asks; if nothing is `lasting` there is nobody to tell of changes.
        """
        other = copy(self)
        other.limits = replace(self.limits, pause=0.0)
        other.keep_alive = None
        if not handshake:
            other.stateful = ()
            # Each request has a connection to itself, where a rate would limit nothing.
            other.limits = replace(other.limits, tool_calls=None)
        if not lasting:
            other.capabilities = unchanging(self.capabilities)
        other._work_out()
        return other

    @property
    def versions(self) -> list[str]:
        """All revisions spoken, newest first."""
        return [dialect.version for dialect in self.dialects]

    def declares(self, path: tuple[str, ...]) -> bool:
        """Whether the capability at `path` is among our own."""
        return has(self.capabilities, path)
