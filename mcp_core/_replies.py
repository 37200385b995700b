"""The requests that a connection answers itself, because the configuration determines the result.

Each function returns the result, and the new `Peer` if the request changes what is known of it,
else None. These requests never become events, so a driver cannot forget them.

Sources: basic/lifecycle, basic/utilities/ping, server/utilities/logging of the stateful revisions;
server/discover of 2026-07-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mcp_core import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core.messages._events import Peer
    from mcp_core.revisions._config import Config

__all__ = ["REPLIES"]


def _initialize(
    config: Config, params: t.InitializeParams, peer: Peer
) -> tuple[t.Result, Peer | None]:
    result = t.InitializeResult(
        protocol_version=peer.dialect.version,
        capabilities=config.capabilities,
        server_info=config.info,
        instructions=config.instructions,
    )
    return result, peer


def _discover(config: Config, params: t.DiscoverParams, peer: Peer) -> tuple[t.Result, Peer | None]:
    result = t.DiscoverResult(
        supported_versions=config.versions,
        capabilities=config.capabilities,
        instructions=config.instructions,
    )
    return result if config.cache is None else config.cache.on(result), None


def _ping(config: Config, params: t.PingParams, peer: Peer) -> tuple[t.Result, Peer | None]:
    return t.EmptyResult(), None


def _set_level(
    config: Config, params: t.SetLevelParams, peer: Peer
) -> tuple[t.Result, Peer | None]:
    return t.EmptyResult(), replace(peer, log_level=params.level)


REPLIES: Final[Mapping[str, Callable[[Config, Any, Peer], tuple[t.Result, Peer | None]]]] = {
    "initialize": _initialize,
    "server/discover": _discover,
    "ping": _ping,
    "logging/setLevel": _set_level,
}
