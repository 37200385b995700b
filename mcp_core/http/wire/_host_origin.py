"""`Host` and `Origin`: which requests a server answers, as a defence against web pages.

A web page can make its visitor's browser send requests to a server on the visitor's own machine or
network. Two headers reveal that. `Origin` names the page. And if the page had its own name resolve
to that server (DNS rebinding), so that its origin looks like ours, `Host` has that name.

1. **Safe without configuration.** Rebinding needs a name that an attacker controls. So `Host` may
   be `localhost` or a loopback address; any address, for a server that can be reached from other
   machines; and the names that were listed. Never another name. The ports of these don't matter:
   they change when they are forwarded.
2. **A request without `Origin` doesn't come from a page**: programs send none. An `Origin` must be
   the very server that `Host` names, or have been listed.
3. **Each value has one spelling.** Nothing is parsed leniently: no user, no path, no escapes, no
   white space, no list, no zone, no IPv4 address but four decimal numbers. A name with a trailing
   dot is another name. Only the case of names is free, and IPv6 addresses are compared as
   addresses. `hosts` and `origins` have no wildcards, which a prefix or suffix could match.

No name is resolved here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, Literal

from msgspec import Struct

from mcp_core.urls._url import DEFAULT_PORTS

__all__ = [
    "Authority",
    "HostOriginPolicy",
    "Origin",
    "parse_host",
    "parse_origin",
    "served_authority",
    "warning_without_hosts",
]

# Exact values of each header that were allowed, because a client sends the same with each request.
# Rejected values aren't cached, so that no client can fill the cache with them.
_CACHE_SIZE: Final = 256
_MAX_LENGTH: Final = 253 + len(":65535")  # RFC 1035: 255 on the wire, 253 as text

# A label by RFC 1123, and the underscore that containers and Windows put into names.
_LABEL: Final = r"(?!-)[a-z0-9_-]{1,63}+(?<!-)"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
# A last label like these makes browsers parse the whole as an IPv4 address (WHATWG URL, "ends in a
# number").
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")


class Authority(Struct, frozen=True):
    """A host and optionally a port.

    A name is in lower case, an IPv6 address in brackets and in its shortest form.
    """

    host: str
    port: int | None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


class Origin(Struct, frozen=True):
    """`http` or `https`, a host as in `Authority`, and the port, by default the scheme's."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        """Return the origin as browsers write it (RFC 6454, 6.2): without a default port."""
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


def parse_host(value: bytes) -> Authority | None:
    """Read a `Host` header (RFC 9110, 7.2). Return None if it isn't `host` or `host:port`."""
    if len(value) > _MAX_LENGTH or not value.isascii():
        return None
    host = value.decode("ascii").lower()
    port = None
    if host[-1:] != "]":
        # Without a bracket at the end, the only colon outside of brackets precedes the port.
        before, colon, digits = host.rpartition(":")
        if colon:
            if not _PORT.fullmatch(digits) or int(digits) > 0xFFFF:
                return None
            host = before
            port = int(digits)
    if host[:1] == "[":
        address = _ipv6(host)
        return Authority(f"[{address}]", port) if address is not None else None
    if not _NAME.fullmatch(host) or len(host) > 253:
        return None
    if _NUMBER.fullmatch(host) and _ipv4(host) is None:
        return None
    return Authority(host, port)


def parse_origin(value: bytes) -> Origin | None:
    """Read an `Origin` header (RFC 6454, 7).

    Return None for `null`, for several origins, and for anything but one http or https origin.
    """
    scheme, separator, rest = value.partition(b"://")
    default = DEFAULT_PORTS.get(scheme.decode("latin-1"))
    authority = parse_host(rest) if separator else None
    if default is None or authority is None:
        return None
    return Origin(
        scheme.decode(), authority.host, default if authority.port is None else authority.port
    )


class HostOriginPolicy:
    """Decides which requests a server answers, by their `Host` and `Origin`.

    `Host` may be `localhost` or a loopback address; any address, for a server that can be reached
    from other machines; and the listed names. `Origin` must be the server that `Host` names, or be
    listed; a request without it doesn't come from a web page.

    Args:
        bind: the address that the server listens on; None if it is every address, or unknown.
        hosts: further server names or addresses, each for all ports or with its port:
            `"mcp.example.com"`, `"mcp.example.com:8443"`.
        origins: pages of other origins that may send requests, as browsers write them:
            `"https://app.example.com"`.
        scheme: the server's scheme, if it is known: with "https" a page of the same host that
            was loaded over http has another origin. None behind a proxy, where it is unknown.

    Raises:
        ValueError: one of `hosts` or `origins` is malformed.
    """

    __slots__ = ("_hosts", "_origin_cache", "_origins", "_reachable", "_schemes", "known_hosts")

    def __init__(
        self,
        bind: str | None,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        *,
        scheme: Literal["http", "https"] | None = None,
    ) -> None:
        self._reachable = bind is None or not _is_loopback(bind.lower())
        self._hosts = frozenset(map(_parse_listed_host, _require_list(hosts, "hosts")))
        self._origins = frozenset(map(_parse_listed_origin, _require_list(origins, "origins")))
        self._schemes = (scheme,) if scheme else tuple(DEFAULT_PORTS)
        self.known_hosts: set[bytes] = set()  # values that were allowed before
        self._origin_cache: set[tuple[bytes, bytes]] = set()

    def __repr__(self) -> str:
        where = "any address" if self._reachable else "loopback"
        return (
            f"<HostOriginPolicy: {where}, {len(self._hosts)} hosts and {len(self._origins)} "
            "origins listed>"
        )

    def allows_host(self, value: bytes | None) -> bool:
        """Return True if a request is for this server. `value` is its `Host`, None without one."""
        if value in self.known_hosts:
            return True
        authority = None if value is None else parse_host(value)
        if value is None or authority is None or not self._is_ours(authority):
            return False
        if len(self.known_hosts) >= _CACHE_SIZE:
            self.known_hosts.clear()
        self.known_hosts.add(value)
        return True

    def allows_origin(self, origin: bytes | None, host: bytes) -> bool:
        """Return True if a page of `origin` may send requests to `host`, which was allowed before.

        Also True without an origin: then the request doesn't come from a page.
        """
        if origin is None or (origin, host) in self._origin_cache:
            return True
        page = parse_origin(origin)
        asked = parse_host(host)
        if page is None or asked is None:
            return False
        if page not in self._origins and not self._is_same(page, asked):
            return False
        if len(self._origin_cache) >= _CACHE_SIZE:
            self._origin_cache.clear()
        self._origin_cache.add((origin, host))
        return True

    def is_listed_origin(self, origin: bytes | None) -> bool:
        """Return True if `origin`, the header, is a listed one: its responses need CORS headers.

        The server's own pages need none.
        """
        return origin is not None and bool(self._origins) and parse_origin(origin) in self._origins

    def _is_ours(self, asked: Authority) -> bool:
        host = asked.host
        ports = [asked.port]
        if _is_loopback(host) or Authority(host, None) in self._hosts:
            return True
        if asked.port is None:
            ports += [DEFAULT_PORTS[scheme] for scheme in self._schemes]
        if any(Authority(host, port) in self._hosts for port in ports):
            return True
        address = _ipv4(host) or _ipv6(host)
        # Browsers that are sent to 0.0.0.0 connect to this machine, but no server has that address.
        return self._reachable and address is not None and not address.is_unspecified

    def _is_same(self, page: Origin, asked: Authority) -> bool:
        port = DEFAULT_PORTS[page.scheme] if asked.port is None else asked.port
        return page.scheme in self._schemes and (page.host, page.port) == (asked.host, port)


def served_authority(bound: tuple[str, int], host: str) -> Authority:
    """Return the host and port with which a client on this machine connects to a server.

    `bound` is the listening socket's address and port, `host` what it was given to listen on.
    """
    # A client cannot connect to "all addresses"; show loopback, which is one of them.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound[0], host)  # noqa: S104 - only compared
    return Authority(f"[{name}]" if ":" in name else name, bound[1])


def warning_without_hosts(
    bound: Iterable[str],
    host: str,
    cure: str = "name the hosts that clients use: hosts=, or --allowed-host of mcp-trio run",
) -> str | None:
    """Return what to log if other machines can connect, although no host name is accepted.

    Args:
        bound: the addresses of the sockets that listen on `host`.
        host: what the user wants to listen on.
        cure: what the user can do about it.
    """
    if all(map(_is_loopback, bound)):
        return None
    return f"listening on {host}, where other machines can connect by IP address only: {cure}"


def _ipv4(host: str) -> IPv4Address | None:
    try:
        return IPv4Address(host)
    except AddressValueError:
        return None


def _ipv6(host: str) -> IPv6Address | None:
    """Parse a bracketed address without a zone. A zone is meaningful on its own machine only."""
    if "%" in host or host[:1] != "[" or host[-1:] != "]":
        return None
    try:
        address = IPv6Address(host[1:-1])
    except AddressValueError:
        return None
    # An IPv4-mapped address would be a second spelling of an IPv4 address.
    return address if address.ipv4_mapped is None else None


def _is_loopback(host: str) -> bool:
    """Return True if a host, or an address to listen on, cannot be reached from other machines."""
    if host == "localhost":
        return True
    address = _ipv4(host) or _ipv6(host) or _ipv6(f"[{host}]")
    return address is not None and address.is_loopback


def _require_list(values: Iterable[str], parameter: str) -> Iterable[str]:
    if isinstance(values, str):
        raise ValueError(f"{parameter} is a list of texts, not one text: [{values!r}]")
    return values


def _parse_listed_host(text: str) -> Authority:
    authority = parse_host(text.encode())
    if authority is None:
        raise ValueError(f"{text!r} is not a host: {_hint(text, 'name or name:port')}")
    return authority


def _parse_listed_origin(text: str) -> Origin:
    origin = parse_origin(text.encode())
    if origin is None:
        raise ValueError(
            f"{text!r} is not an origin: {_hint(text, 'http(s)://name or http(s)://name:port')}"
        )
    if str(origin) != text:
        raise ValueError(f"{text!r} is not how browsers write this origin: that is {str(origin)!r}")
    return origin


def _hint(text: str, form: str) -> str:
    wild = "*" in text or text[:1] == "."
    return "there are no wildcards, list each name" if wild else f"write {form}, in ASCII"
