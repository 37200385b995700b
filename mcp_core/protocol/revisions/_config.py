"""The configuration of one side: identity, capabilities, revisions, limits, cache hints.

1. What can be computed before the first message is computed once per `Config`, role and revision,
   as a `DialectConfig`: the methods received, and the constant bytes spliced into messages.
2. All connections of a server or client share one `Config`. Do not change it after the first one.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._limits import CLIENT_LIMITS, Limits
from mcp_core._patterns import compile_on_first_use
from mcp_core.protocol.jsonrpc._codec import MAX_SAFE_INTEGER, encode

from ._capabilities import is_declared, supported_methods, without_change_notifications
from ._dialects import ALL, DIALECTS, Dialect, dialects_of
from ._methods import TASKS, Method, Role

if TYPE_CHECKING:
    from mcp_core.types import CacheableResult

__all__ = [
    "META_LABEL",
    "PROBE_TIMEOUT",
    "CacheHint",
    "Config",
    "DeclaredUris",
    "DialectConfig",
]

# Seconds. A process on a loaded machine may take ten to start, and a wrong guess that the server is
# stateful fails with many servers.
PROBE_TIMEOUT: Final = 15.0

# A label of the prefix of a key of `_meta`. The name of an extension is such a key, with a prefix
# (2026-07-28, basic/index).
META_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_EXTENSION: Final = compile_on_first_use(
    rf"{META_LABEL}(?:\.{META_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
)


class DialectConfig(Struct, frozen=True, eq=False):
    """The consequences of a `Config` for one role in one revision.

    Attributes:
        dialect: the revision.
        receives: methods that the role receives, without requests that need a capability which the
            `Config` doesn't declare.
        sends: methods that the role may send.
        result_meta: members of `_meta` in every result.
        result_type_member: `resultType` as an encoded member with a comma, empty if the revision
            has none.
        result_meta_member: `_meta` likewise, for results without a `_meta` of their own.
        result_members: both of them.
        request_meta_members: encoded members of `_meta` in every request, without braces.
    """

    dialect: Dialect
    receives: dict[str, Method]
    sends: dict[str, Method]
    result_meta: dict[str, Any]
    result_type_member: bytes
    result_meta_member: bytes
    result_members: bytes
    request_meta_members: bytes


class _ConfigByDialect(dict[Dialect, DialectConfig]):
    """The `DialectConfig` of one role for each revision, computed on first use."""

    __slots__ = (
        "_config",
        "_role",
    )

    def __init__(self, config: Config, role: Role) -> None:
        self._config = config
        self._role = role

    def __missing__(self, dialect: Dialect) -> DialectConfig:
        config = self._config
        role = self._role
        custom = {name: row for name, row in config.methods.items() if row.to in (role, None)}
        custom_sent = {
            name: row for name, row in config.methods.items() if row.to in (role.other, None)
        }
        meta: dict[str, Any] = {}
        request_meta_members = b""
        if not dialect.stateful:
            if role is Role.SERVER:
                meta = {"io.modelcontextprotocol/serverInfo": dialect.fit(config.info)}
            else:
                sender = t.RequestMeta(
                    protocol_version=dialect.version,
                    client_capabilities=dialect.fit(config.capabilities),
                    client_info=dialect.fit(config.info),
                )
                request_meta_members = encode(sender)[1:-1]
        type_member = (
            b'"resultType":%b,' % encode(dialect.result_type) if dialect.result_type else b""
        )
        meta_member = b'"_meta":%b,' % encode(meta) if meta else b""
        dialect_config = DialectConfig(
            dialect=dialect,
            receives={**self._supported(dialect), **custom},
            sends={**dialect.receives[role.other], **custom_sent},
            result_meta=meta,
            result_type_member=type_member,
            result_meta_member=meta_member,
            result_members=type_member + meta_member,
            request_meta_members=request_meta_members,
        )
        self[dialect] = dialect_config
        return dialect_config

    def _supported(self, dialect: Dialect) -> dict[str, Method]:
        config = self._config
        found = supported_methods(dialect.receives[self._role], config.capabilities)
        if config.listens:
            return found
        return {name: row for name, row in found.items() if not row.long_lived}


class DeclaredUris(Protocol):
    """The resources and resource templates of a server."""

    def declared_uri(self, uri: str) -> str:
        """Return the URI of a resource as it is declared, or `uri` if none has its normal form."""

    def declared_template(self, text: str) -> str:
        """Return a resource template as it is declared, or `text` if none has its normal form."""


class Config:
    """The identity and the behaviour of one side, client or server.

    Args:
        info: name and version, sent to the peer.
        capabilities: the capabilities to declare. A request that needs another one is rejected
            without reaching a handler.
        instructions: how to use the server, for the client's model (servers only).
        versions: the revisions to speak. A client prefers the newest. If a stateless one is among
            them, it sends `server/discover` first; otherwise it sends `initialize` at once.
        limits: upper bounds. `Limits()` for a server, `CLIENT_LIMITS` for a client if not given.
        methods: requests and notifications that MCP doesn't define.
        probe_timeout: seconds a client waits for the response to `server/discover`; 15 by default.
            After that it takes the server for a stateful one.
        initialize_timeout: seconds a client waits for the response to `initialize`. None for no
            limit, because a process may start slowly.
        keep_alive: seconds without input after which a ping is sent. After as many seconds again
            the connection is closed. None sends no pings: the end of a pipe is detected at once.
        cache: the cache hint of the result of `server/discover`, None for none (servers only).
        declared: the resources and templates by whose spelling a request's scopes are looked up,
            beside the client's; None for a server that knows none (servers only).

    Attributes:
        dialects: the revisions to speak, newest first.
        stateful: the revisions among them with a handshake.
        stateless: those without.
        by_version: all of them by version.
        declares_tasks: the extension for tasks of 2026-07-28 is declared.
        dialect_configs: by role and dialect, a `DialectConfig`.
        receivable: by role, the methods that it receives in any of the revisions, by name.
        listens: False if requests that have no result until they are ended are refused.

    Raises:
        ValueError: the identifier of an extension is malformed, a version is unknown or there is
            none, a custom method has the name of one that MCP defines, or a number of seconds is
            not positive.
    """

    __slots__ = (
        "by_version",
        "cache",
        "capabilities",
        "declared",
        "declares_tasks",
        "dialect_configs",
        "dialects",
        "info",
        "initialize_timeout",
        "instructions",
        "keep_alive",
        "limits",
        "listens",
        "methods",
        "probe_timeout",
        "receivable",
        "stateful",
        "stateless",
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
        probe_timeout: float = PROBE_TIMEOUT,
        initialize_timeout: float | None = None,
        keep_alive: float | None = None,
        cache: CacheHint | None = None,
        declared: DeclaredUris | None = None,
    ) -> None:
        self.info = info
        self.capabilities: Any = capabilities  # a client's or a server's
        self.declares_tasks = self.declares(TASKS)
        self.instructions = instructions
        self.cache = cache
        self.declared = declared
        self.dialects = dialects_of(versions)
        self.stateful = tuple(dialect for dialect in self.dialects if dialect.stateful)
        self.stateless = tuple(dialect for dialect in self.dialects if not dialect.stateful)
        self.by_version = {dialect.version: dialect for dialect in self.dialects}
        if limits is None:
            limits = CLIENT_LIMITS if isinstance(capabilities, t.ClientCapabilities) else Limits()
        self.limits = limits
        self.listens = True
        for identifier in capabilities.extensions or ():
            if not _EXTENSION.fullmatch(identifier):
                raise ValueError(
                    f"{identifier!r} is not an extension identifier such as 'com.example/name'"
                )
        self.methods = {row.name: row for row in methods}
        for name in self.methods:
            if any(
                name in dialect.receives[role] for dialect in DIALECTS.values() for role in Role
            ):
                raise ValueError(f"{name} is a method of MCP and cannot be redefined")
        if not probe_timeout > 0:
            raise ValueError(f"probe_timeout is a number of seconds above 0, not {probe_timeout!r}")
        self.probe_timeout = probe_timeout
        self.initialize_timeout = _checked_seconds("initialize_timeout", initialize_timeout)
        self.keep_alive = _checked_seconds("keep_alive", keep_alive)
        self._compute_derived()

    def _compute_derived(self) -> None:
        self.dialect_configs = {role: _ConfigByDialect(self, role) for role in Role}
        self.receivable = {
            role: {
                name: row
                for dialect in self.dialects
                for name, row in self.dialect_configs[role][dialect].receives.items()
            }
            for role in Role
        }

    def __repr__(self) -> str:
        return f"<Config {self.info.name} {self.info.version} [{', '.join(self.versions)}]>"

    def for_http(self, *, handshake: bool = True, long_lived: bool = True) -> Config:
        """Return a copy for a connection over HTTP requests.

        It never pauses and sends no pings: an HTTP request cannot be left unread, and a client
        without a request is silent but alive.

        Args:
            handshake: the connection may be opened by a handshake. Otherwise each request has to
                carry its revision and capabilities.
            long_lived: the connection has a stream for change notifications. Otherwise the
                capabilities `listChanged` and `subscribe` aren't declared, and
                `subscriptions/listen` (2026-07-28), whose response is such a stream, is refused.
        """
        other = copy(self)
        other.limits = replace(self.limits, pause=0.0)
        other.keep_alive = None
        other.listens = long_lived
        if not handshake:
            other.stateful = ()
            # Each request has a connection to itself, where a rate would limit nothing.
            other.limits = replace(other.limits, tool_calls=None)
        if not long_lived:
            other.capabilities = without_change_notifications(self.capabilities)
        other._compute_derived()
        return other

    @property
    def versions(self) -> list[str]:
        """The versions of `dialects`, newest first."""
        return [dialect.version for dialect in self.dialects]

    def declares(self, path: tuple[str, ...]) -> bool:
        """Return True if `capabilities` declares the capability at `path`."""
        return is_declared(self.capabilities, path)


R = TypeVar("R", bound="CacheableResult")


class CacheHint(Struct, frozen=True):
    """How long a client may reuse a result before it requests it again, and for whom.

    Hints are set on the results of discovery, lists and `resources/read` (2026-07-28,
    server/utilities/caching). Earlier revisions leave them out. They are advice to clients and
    control no access.

    Args:
        ttl: time to live in seconds. 0 means that the result is stale at once.
        scope: "private" allows reuse for the requesting user only. "public" allows a gateway or
            proxy to serve it to any user, so use it only for results that are equal for all.

    Raises:
        ValueError: `ttl` is negative, infinite or NaN, or `scope` is neither of the two.
    """

    ttl: float = 0.0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if not 0 <= self.ttl * 1000 <= MAX_SAFE_INTEGER:
            raise ValueError(f"ttl is a number of seconds from 0 on, not {self.ttl!r}")
        if self.scope not in ("public", "private"):
            raise ValueError(f"scope is 'public' or 'private', not {self.scope!r}")

    def apply_to(self, result: R) -> R:
        """Return a copy of `result` with these hints. Hints that `result` has are kept."""
        return replace(
            result,
            ttl_ms=round(self.ttl * 1000) if result.ttl_ms is None else result.ttl_ms,
            cache_scope=self.scope if result.cache_scope is None else result.cache_scope,
        )


def _checked_seconds(name: str, seconds: float | None) -> float | None:
    """Return a number of seconds.

    Raises:
        ValueError: it isn't positive.
    """
    if seconds is not None and not seconds > 0:
        raise ValueError(f"{name} is a number of seconds above 0, or None, not {seconds!r}")
    return seconds
