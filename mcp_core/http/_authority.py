"""Who was asked, and who asks: `Host` and `Origin`, and which of them a server answers.

A page on the web can make the browser of its visitor send requests to a server on the visitor's own machine or network.
Two headers give it away. `Origin` names the page. And if the page has had its own name point to that server (DNS
rebinding), so that its origin looks like ours, then `Host` has that name. Rules of this file:

1. **Safe without a word of configuration.** Rebinding needs a name that somebody else controls. So `Host` may be
   `localhost` or a loopback address; for a server that can be reached from elsewhere any address; and the names that
   were listed. Never another name. Ports of these do not matter: they change when they are forwarded.
2. **No `Origin`, no page**: programs send none. One that is there must be the very server that `Host` names, or have
   been listed.
3. **What is read has one spelling.** No library that forgives: no user, no path, no escapes, no white space, no list,
   no zone, no IPv4 address other than four decimal numbers. A name with a trailing dot is another name. Only the case
   of names is free, and IPv6 addresses are compared as addresses.
4. No wildcards, neither in `hosts` nor in `origins`: a list that says what it means cannot be outwitted by a prefix or
   a suffix.

Exact bytes that were allowed once are remembered, a few hundred of them: a client says the same with each request. What
is refused is not remembered, so that nobody can fill the memory or drive the good ones out with rubbish.

It knows no other headers and no status; and it resolves no names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, Literal

from msgspec import Struct

__all__ = ["Authority", "Gate", "Origin", "parse_host", "parse_origin"]

_REMEMBERED: Final = 256  # exact values of each header
_LONGEST: Final = 253 + len(":65535")  # RFC 1035: 255 on the wire, 253 as text

# A label by RFC 1123, and the underscore that containers and Windows put into names.
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?+"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*+\.?")
# A last label like these makes browsers read the whole as an IPv4 address (WHATWG URL, "ends in a number").
_NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Authority(Struct, frozen=True):
    """A host and, if it was given, a port. A name is in lower case; an IPv6 address in brackets and its shortest form."""

    host: str
    port: int | None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


class Origin(Struct, frozen=True):
    """`http` or `https`, a host as in `Authority`, and the port, that of the scheme if none was given."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        """As browsers write it (RFC 6454, 6.2): without the port of the scheme."""
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


def parse_host(value: bytes) -> Authority | None:
    """Read a `Host` header (RFC 9110, 7.2); None if it is not exactly `host` or `host:port`."""
    if len(value) > _LONGEST or not value.isascii():
        return None
    host, port = value.decode("ascii").lower(), None
    if host[-1:] != "]":
        # Without a bracket at the end, the only colon outside of brackets is that of the port.
        before, colon, digits = host.rpartition(":")
        if colon:
            if not _PORT.fullmatch(digits) or int(digits) > 0xFFFF:
                return None
            host, port = before, int(digits)
    if host[:1] == "[":
        address = _ipv6(host)
        return Authority(f"[{address}]", port) if address is not None else None
    if not _NAME.fullmatch(host) or len(host) > 253:
        return None
    if _NUMBER.fullmatch(host) and _ipv4(host) is None:
        return None
    return Authority(host, port)


def parse_origin(value: bytes) -> Origin | None:
    """Read an `Origin` header (RFC 6454, 7); None for `null`, several origins and whatever is not exactly one of http(s)."""
    scheme, separator, rest = value.partition(b"://")
    default = _DEFAULT_PORTS.get(scheme.decode("latin-1"))
    authority = parse_host(rest) if separator else None
    if default is None or authority is None:
        return None
    return Origin(scheme.decode(), authority.host, default if authority.port is None else authority.port)


class Gate:
    """Which requests a server answers, judged by who sent them and whom they asked for.

    `bind` is the address that is listened on; None is every address, or one that nobody knows. `hosts` are names (or
    addresses) under which the server is reached beside those of rule 1, each for all ports or with its port:
    `"mcp.example.com"`, `"mcp.example.com:8443"`. `origins` are the pages that may talk to it from elsewhere, as browsers
    write them: `"https://app.example.com"`. `scheme` is what is spoken, if that is known: "https" for a server that does
    TLS itself, so that a page that came without it is another one. Behind a proxy it is not known.

    Raises:
        ValueError: one of `hosts` or `origins` is not written like that.
    """

    __slots__ = ("_anywhere", "_asking", "_hosts", "_origins", "_schemes", "known_hosts")

    def __init__(
        self,
        bind: str | None,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        *,
        scheme: Literal["http", "https"] | None = None,
    ) -> None:
        self._anywhere = bind is None or not _is_loopback(bind.lower())
        self._hosts = frozenset(map(_listed_host, _several(hosts, "hosts")))
        self._origins = frozenset(map(_listed_origin, _several(origins, "origins")))
        self._schemes = (scheme,) if scheme else tuple(_DEFAULT_PORTS)
        self.known_hosts: set[bytes] = set()  # values that were allowed before
        self._asking: set[tuple[bytes, bytes]] = set()

    def __repr__(self) -> str:
        where = "any address" if self._anywhere else "loopback"
        return f"<Gate: {where}, {len(self._hosts)} hosts and {len(self._origins)} origins listed>"

    def allows_host(self, value: bytes | None) -> bool:
        """Whether a request with this `Host` is for us. One without is not."""
        if value in self.known_hosts:
            return True
        authority = None if value is None else parse_host(value)
        if value is None or authority is None or not self._is_ours(authority):
            return False
        if len(self.known_hosts) >= _REMEMBERED:
            self.known_hosts.clear()
        self.known_hosts.add(value)
        return True

    def allows_origin(self, origin: bytes | None, host: bytes) -> bool:
        """Whether a page of this origin may ask a server of that `Host`, which was allowed before. No origin is no page."""
        if origin is None or (origin, host) in self._asking:
            return True
        page, asked = parse_origin(origin), parse_host(host)
        if page is None or asked is None:
            return False
        if page not in self._origins and not self._is_same(page, asked):
            return False
        if len(self._asking) >= _REMEMBERED:
            self._asking.clear()
        self._asking.add((origin, host))
        return True

    def cross_origin(self, origin: bytes | None) -> bool:
        """Whether it was listed: then the answers carry the headers of CORS. The server's own pages need none."""
        return origin is not None and bool(self._origins) and parse_origin(origin) in self._origins

    def _is_ours(self, asked: Authority) -> bool:
        host, ports = asked.host, [asked.port]
        if _is_loopback(host) or Authority(host, None) in self._hosts:
            return True
        if asked.port is None:
            ports += [_DEFAULT_PORTS[scheme] for scheme in self._schemes]
        if any(Authority(host, port) in self._hosts for port in ports):
            return True
        address = _ipv4(host) or _ipv6(host)
        # Browsers connect to this machine when they are sent to 0.0.0.0, but nobody's server has that address.
        return self._anywhere and address is not None and not address.is_unspecified

    def _is_same(self, page: Origin, asked: Authority) -> bool:
        port = _DEFAULT_PORTS[page.scheme] if asked.port is None else asked.port
        return page.scheme in self._schemes and (page.host, page.port) == (asked.host, port)


def _ipv4(host: str) -> IPv4Address | None:
    try:
        return IPv4Address(host)
    except AddressValueError:
        return None


def _ipv6(host: str) -> IPv6Address | None:
    """An address in brackets, without a zone, which means something on the machine of the sender only."""
    if "%" in host or host[:1] != "[" or host[-1:] != "]":
        return None
    try:
        address = IPv6Address(host[1:-1])
    except AddressValueError:
        return None
    # An IPv4 address in the clothes of the other family would be its second spelling.
    return address if address.ipv4_mapped is None else None


def _is_loopback(host: str) -> bool:
    """Whether a host, or an address that is listened on, cannot be reached from another machine."""
    if host == "localhost":
        return True
    address = _ipv4(host) or _ipv6(host) or _ipv6(f"[{host}]")
    return address is not None and address.is_loopback


def _several(values: Iterable[str], what: str) -> Iterable[str]:
    if isinstance(values, str):
        raise ValueError(f"{what} is a list of texts, not one text: [{values!r}]")
    return values


def _listed_host(text: str) -> Authority:
    authority = parse_host(text.encode())
    if authority is None:
        raise ValueError(f"{text!r} is not a host: {_hint(text, 'name or name:port')}")
    return authority


def _listed_origin(text: str) -> Origin:
    origin = parse_origin(text.encode())
    if origin is None:
        raise ValueError(f"{text!r} is not an origin: {_hint(text, 'http(s)://name or http(s)://name:port')}")
    if str(origin) != text:
        raise ValueError(f"{text!r} is not how browsers write this origin: that is {str(origin)!r}")
    return origin


def _hint(text: str, form: str) -> str:
    wild = "*" in text or text[:1] == "."
    return "there are no wildcards, list each name" if wild else f"write {form}, in ASCII"
