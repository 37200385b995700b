"""Requests behind proxies: the client that a proxy names, and the fields that it passes on.

1. `X-Forwarded-For` counts only as far as trusted proxies have written it. Each proxy appends the
   address that it was asked by, so the entries are read from the last one. The first that isn't
   a trusted proxy is the client; what stands before it, the client may have made up.
2. Addresses are only counted with, never authorized by.
3. A field that `Connection` names is for one connection, too (RFC 9110, 7.6.1). But the fields that
   say where a message goes, who sends it and where it ends are passed on in any case: a server must
   not lose them because a client, or a proxy before this one, has named them there.
4. A receiver may merge trailers into the head, which was checked without them. So those pass that
   cannot change what a message is, where it goes and who sends it (RFC 9110, 6.5.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from ._messages import Headers

__all__ = ["TrustedProxies", "client_network", "end_to_end", "end_to_end_trailers"]

_Networks: TypeAlias = tuple[IPv4Network | IPv6Network, ...]

_FORWARDED_FOR: Final = b"x-forwarded-for"
# Stands for connections without an address, such as those over a Unix socket.
_UNIX: Final = "unix"
# An entry with a port, which some load balancers append.
_WITH_PORT: Final = re.compile(r"\[([^]]*)\](?::\d+)?|([^:]*):\d+")
# The bits of an IPv6 address that its network has. Every home and every server has such a network,
# with 2**64 addresses (RFC 6177).
_NETWORK_BITS: Final = 64
_CACHED: Final = 4096

# RFC 9110, 7.6.1 and 11.7.2: these are for the next connection only. `Trailer` isn't one of them.
_HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"transfer-encoding",
        b"upgrade",
    )
)
# Rule 3.
_ALWAYS_PASSED: Final = frozenset(
    (b"authorization", b"content-length", b"host", b"origin", b"sec-fetch-site")
)


def end_to_end(headers: Headers) -> Headers:
    """Return the fields of a message that a proxy passes on, in their order and spelling.

    Args:
        headers: pairs of name and value. The names may have capital letters.
    """
    removed = set(_HOP_BY_HOP)
    for name, value in headers:
        if name.lower() == b"connection":
            named = {option.strip(b" \t").lower() for option in value.split(b",")}
            removed |= named - _ALWAYS_PASSED
    return [(name, value) for name, value in headers if name.lower() not in removed]


# Rule 4: framing, routing, requests' controls and conditions, authentication, cookies, what decides
# about the response and its content, and what browsers and proxies say about a request.
_NOT_IN_TRAILERS: Final = _HOP_BY_HOP | frozenset(
    b"""
    content-length content-encoding content-type content-range content-location
    content-disposition content-security-policy trailer host forwarded via x-real-ip
    x-original-url x-rewrite-url x-http-method-override x-http-method x-method-override origin
    referer cache-control expect max-forwards pragma range accept accept-encoding if-match
    if-none-match if-modified-since if-unmodified-since if-range authorization
    proxy-authenticate www-authenticate x-api-key dpop cookie set-cookie age expires date location
    retry-after vary warning refresh clear-site-data strict-transport-security last-event-id
    x-accel-redirect x-sendfile x-content-type-options x-frame-options status
    """.split()
)
_NOT_IN_TRAILERS_PREFIXES: Final = (
    b":",
    b"access-control-",
    b"mcp-",
    b"proxy-",
    b"sec-",
    b"x-forwarded-",
)


def end_to_end_trailers(trailers: Headers, replaced: Iterable[str] = ()) -> Headers:
    """Return the trailers of a message that a proxy passes on, in their order and spelling.

    Args:
        trailers: pairs of name and value. The names may have capital letters.
        replaced: names, in lower case, of headers that the proxy itself sends: no trailer has them.
    """
    own = {name.encode() for name in replaced}
    passed = []
    for name, value in trailers:
        lower = name.lower().replace(b"_", b"-")  # CGI and WSGI read both alike
        if lower in _NOT_IN_TRAILERS or lower.startswith(_NOT_IN_TRAILERS_PREFIXES):
            continue
        if lower not in own and name.lower() not in own:
            passed.append((name, value))
    return passed


class TrustedProxies:
    """The reverse proxies that tell the address of a client in `X-Forwarded-For`.

    Args:
        proxies: their addresses or networks, such as `"127.0.0.1"` and `"10.0.0.0/8"`. `"unix"`
            stands for a proxy that connects over a Unix socket.

    Raises:
        ValueError: an entry is neither an address nor a network.
    """

    __slots__ = ("_networks", "_trusts_unix")

    def __init__(self, proxies: Iterable[str]) -> None:
        names = {proxies} if isinstance(proxies, str) else set(proxies)
        self._trusts_unix = _UNIX in names
        self._networks: _Networks = tuple(
            ip_network(name, strict=False) for name in sorted(names - {_UNIX})
        )

    def __repr__(self) -> str:
        names = [str(network) for network in self._networks]
        return f"<TrustedProxies {' '.join([*names, *[_UNIX] * self._trusts_unix])}>"

    def client_address(self, peer: str, headers: Headers) -> str:
        """Return the address of the client of a request with `headers`.

        `peer` is its connection's address, "" if that has none. If `X-Forwarded-For` is
        missing or malformed, the result is the last proxy that was found.
        """
        address = peer
        if not self._trusts(peer):
            return peer
        values = [value for name, value in headers if name == _FORWARDED_FOR]
        for entry in reversed(b",".join(values).split(b",")):
            found = _address_in(entry)
            if found is None:
                break
            address = found
            if not self._trusts(address):
                break
        return address

    def _trusts(self, address: str) -> bool:
        return _is_within(address, self._networks) if address else self._trusts_unix


@lru_cache(maxsize=_CACHED)
def _is_within(address: str, networks: _Networks) -> bool:
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return any((mapped or ip) in network for network in networks)


def _address_in(entry: bytes) -> str | None:
    text = entry.strip(b" \t").decode("latin-1")
    match = _WITH_PORT.fullmatch(text)
    if match is not None:
        text = match[1] or match[2]
    try:
        ip = ip_address(text)
    except ValueError:
        return None
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return str(mapped or ip)


@lru_cache(maxsize=_CACHED)
def client_network(address: str) -> str:
    """Return the network by which the client at `address` is counted.

    It is the address itself for IPv4, and the first 64 bits for IPv6.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if not isinstance(ip, IPv6Address):
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ip_network((ip, _NETWORK_BITS), strict=False))
