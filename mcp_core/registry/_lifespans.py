"""The values of the lifespans of a server and of those that are mounted in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._server import Server

__all__ = ["LifespanValues", "lifespan_value"]


class LifespanValues(Struct, frozen=True, eq=False):
    """The value of each server's lifespan, None for one without.

    A server with mounts is served with this in place of its own value.
    """

    by_server: Mapping[Server, Any]


def lifespan_value(value: Any, server: Server, *, mounted: bool = False) -> Any:
    """Return `server`'s lifespan value. `value` is what the served server was started with.

    `mounted` is True for a server that is mounted in the one that is served.
    """
    if isinstance(value, LifespanValues):
        return value.by_server.get(server)
    return None if mounted else value
