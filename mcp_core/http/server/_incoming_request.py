"""The HTTP request that a message arrived in, as far as handlers may see it.

1. Credentials stay outside: the server's authorization has read them, and a handler that has them
   could pass them on (basic/authorization, Token Passthrough). So does the id of a session: without
   authorization, a client that has it may act in the session (security best practices, Session
   Hijacking).
2. Headers are read when a handler asks for them, so a server that never does pays nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct, msgpack

from mcp_core.http.wire._messages import Headers

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from ._auth import EndpointAuth

__all__ = ["IncomingHttpRequest", "withheld_headers"]

_CREDENTIALS: Final = frozenset(
    (b"authorization", b"proxy-authorization", b"cookie", b"mcp-session-id")
)
_HANDSHAKE: Final = b"sec-websocket-"


def withheld_headers(auth: EndpointAuth | None) -> AbstractSet[bytes]:
    """Return the names, in lower case, of the headers that handlers don't see."""
    if auth is None:
        return _CREDENTIALS
    return _CREDENTIALS.union(name.encode() for name in auth.resource_server.credential_headers)


class IncomingHttpRequest(Struct, gc=False):
    """The request of a POST, or the upgrade to a WebSocket.

    Attributes:
        fields: its header fields, or these as MessagePack.
        client_address: the client's address, "" if it is unknown.
        withheld: the names of the headers that `headers` leaves out.
    """

    fields: Headers | bytes
    client_address: str
    withheld: AbstractSet[bytes]
    _headers: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        return "<IncomingHttpRequest>"  # values of headers may be secrets

    # msgspec has rich show every member. Without it rich uses the repr, which hides the values.
    __rich_repr__ = None  # type: ignore[assignment]

    @property
    def headers(self) -> Mapping[str, str]:
        """The values by name, in lower case, without those of `withheld`.

        The values of fields with the same name are joined (RFC 9110, 5.3). Each byte is one
        character, as in ISO-8859-1.
        """
        if self._headers is None:
            self._headers = _by_name(self.fields, self.withheld)
        return self._headers

    @classmethod
    def of_upgrade(
        cls, fields: Headers, client_address: str, withheld: AbstractSet[bytes]
    ) -> IncomingHttpRequest:
        """Return the upgrade to a WebSocket, in little memory: it is kept while that is open.

        The handshake's own fields are left out: an ASGI application doesn't get them.
        """
        kept = [
            (name, value)
            for name, value in fields
            if name.lower() not in withheld and not name.lower().startswith(_HANDSHAKE)
        ]
        return cls(msgpack.encode(kept), client_address, withheld)


def _by_name(fields: Headers | bytes, withheld: AbstractSet[bytes]) -> Mapping[str, str]:
    if isinstance(fields, bytes):
        fields = msgpack.decode(fields, type=list[tuple[bytes, bytes]])
    found: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        key = name.lower()
        if key not in withheld:
            found.setdefault(key, []).append(value.strip(b" \t"))
    return MappingProxyType(
        {name.decode("latin-1"): b", ".join(found[name]).decode("latin-1") for name in found}
    )
