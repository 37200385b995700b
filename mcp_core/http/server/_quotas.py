"""Quotas of one client: its name, and the memory for request bodies that all clients share.

1. A client is the principal of its token or, without authorization, the network that it connects
   from. A client whose address is unknown has no quota of its own: nothing tells it from others.
2. Totals protect the server, quotas the other clients. Above either, the body that has waited
   longest for its next piece is refused: a client that is still sending is served.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from mcp_core.http.wire._forwarded import client_network

from ._checks import client_bodies_too_large, too_many_bodies

if TYPE_CHECKING:
    from mcp_core.http.wire._messages import ErrorResponse

    from ._options import HttpLimits

__all__ = ["UnfinishedBodies", "client_key"]

_CACHED: Final = 4096


@lru_cache(maxsize=_CACHED)
def client_key(principal: str, address: str) -> str:
    """Return the name under which a client is counted, "" for one that cannot be told apart."""
    if principal:
        return f"principal {principal}"
    return f"address {client_network(address)}" if address else ""


class BodyOwner(Protocol):
    """Owns an unfinished body: an exchange, or a WebSocket with a message that isn't complete."""

    @property
    def client(self) -> str | None:
        """The client that the body counts for, None if it isn't known."""

    def refuse_body(self, rejection: ErrorResponse) -> None:
        """Answer the body with `rejection`: it is in excess."""


class _ClientBodies:
    """The unfinished bodies of one client and their bytes. The last one has grown last."""

    __slots__ = ("sizes", "total")

    def __init__(self) -> None:
        self.sizes: OrderedDict[BodyOwner, int] = OrderedDict()
        self.total = 0


class UnfinishedBodies:
    """The request bodies that have begun and aren't complete. `total` is their size in bytes.

    A message of a WebSocket that arrives in parts is such a body, too.
    """

    __slots__ = ("_by_client", "total")

    def __init__(self) -> None:
        self._by_client: dict[str, _ClientBodies] = {}
        self.total = 0

    def __repr__(self) -> str:
        return f"<UnfinishedBodies of {len(self._by_client)} clients, {self.total} bytes>"

    def hold(self, owner: BodyOwner, size: int, limits: HttpLimits) -> None:
        """Count `size` bytes for the body of `owner`, which has grown. Refuse those in excess.

        It counts for `owner.client`, which must not change until it is released.
        """
        client = owner.client or ""
        bodies = self._by_client.get(client)
        if bodies is None:
            bodies = self._by_client[client] = _ClientBodies()
        more = size - bodies.sizes.get(owner, 0)
        bodies.sizes[owner] = size
        bodies.sizes.move_to_end(owner)
        bodies.total += more
        self.total += more
        quota = limits.quota(limits.bodies)
        while client and bodies.total > quota:
            self._refuse(bodies, client_bodies_too_large(quota))
        while self.total > limits.bodies:
            # Of the client with the most, so that no other one pays for what it does.
            largest = max(self._by_client.values(), key=_total)
            self._refuse(largest, too_many_bodies(limits.bodies))

    def _refuse(self, bodies: _ClientBodies, rejection: ErrorResponse) -> None:
        owner = next(iter(bodies.sizes))
        self.release(owner)
        owner.refuse_body(rejection)

    def release(self, owner: BodyOwner) -> None:
        """Count the body of `owner` no more. Do nothing if it isn't counted."""
        client = owner.client or ""
        bodies = self._by_client.get(client)
        size = bodies.sizes.pop(owner, None) if bodies is not None else None
        if bodies is None or size is None:
            return
        bodies.total -= size
        self.total -= size
        if not bodies.sizes:
            del self._by_client[client]


def _total(bodies: _ClientBodies) -> int:
    return bodies.total
