"""Which URLs of strangers are used, which addresses are fetched, and where the well-known documents are.

Rules of this file:

1. A URL is `https`, or `http` on loopback if the MCP server is itself on loopback (development). It has a host, no user, no
   fragment, and only characters that an RFC 3986 URL has: no space, no control character, no quote, no backslash. So no URL can
   be an option, a second header or a command to whoever opens it; `$(` and the backtick are refused although the first is legal.
2. The same rules hold for what is fetched and for what a browser opens: there is no laxer case.
3. A name says nothing about where it leads. Who connects resolves it, asks `may_fetch` for each address, and connects to that
   address and no other, so that a second answer of the name server changes nothing.
4. URLs are compared as strings where the specifications say so (issuer, `resource` of our own choice); only the test whether a
   published `resource` covers the server URL knows that scheme and host ignore case and that ports have defaults.

Sources: RFC 3986, RFC 8414 section 3.1, RFC 9728 section 3.1, RFC 8707 section 2; security best practices of
modelcontextprotocol.io (Server-Side Request Forgery).
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from ._errors import AuthorizationFailed

__all__ = [
    "at_port_of",
    "canonical_resource",
    "check_url",
    "covers",
    "is_local",
    "is_private_address",
    "is_public_address",
    "issuer_metadata_urls",
    "may_fetch",
    "origin_of",
    "resource_metadata_urls",
    "root_of",
    "same_origin_redirect",
    "shown",
    "url_fault",
]

MAX_URL: Final = 8192

_CHARACTERS: Final = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.\-_]*[A-Za-z0-9.])?")
_PORTS: Final = {"https": 443, "http": 80}

# What is not the public internet. A table of our own: that of the standard library differs from release to release.
_NOT_PUBLIC_4: Final = tuple(
    ip_network(net)
    for net in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
_PUBLIC_6: Final = ip_network("2000::/3")
# Within it: Teredo and other protocols of the IETF, documentation, 6to4.
_NOT_PUBLIC_6: Final = tuple(
    ip_network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_PRIVATE: Final = tuple(
    ip_network(net) for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)
# An address of the other family inside: judged as that.
_NAT64: Final = ip_network("64:ff9b::/96")


def url_fault(url: str, *, local: bool) -> str | None:
    """What is wrong with `url`, None if it may be used. `local`: the MCP server is on loopback, see `is_local`."""
    if len(url) > MAX_URL:
        return f"is longer than {MAX_URL} characters"
    if not _CHARACTERS.fullmatch(url) or "$(" in url:
        return "has characters that do not belong into a URL"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in _PORTS:
        return "is neither https nor http"
    if "@" in parts.netloc:
        return "contains a user name"
    named = _is_ipv6(host or "") if "[" in parts.netloc else _HOST.fullmatch(host or "")
    if not host or port == 0 or not named:
        return "has no valid host"
    if "#" in url:
        return "has a fragment"
    if parts.scheme == "http" and not (local and _is_loopback_host(host)):
        return "is not https"
    return None


def check_url(url: str, what: str, *, local: bool) -> str:
    """`url` itself, if it may be used.

    Raises:
        AuthorizationFailed: it may not; the text calls it `what`.
    """
    fault = url_fault(url, local=local)
    if fault is not None:
        raise AuthorizationFailed(f"{what} {fault}: {shown(url)}. It is not used; tell who runs the server.")
    return url


def shown(url: str) -> str:
    """A URL as an error shows it: short, printable, without query and user."""
    text = re.split("[?#]", url, maxsplit=1)[0]
    if "@" in text:
        text = f"...@{text.rpartition('@')[2]}"
    return repr(text if len(text) <= 120 else f"{text[:120]}...")


def is_local(url: str) -> bool:
    """Whether the host of a URL is this machine by name: `localhost`, 127.0.0.0/8 or `::1`."""
    return _is_loopback_host(urlsplit(url).hostname or "")


def is_public_address(address: str) -> bool:
    """Whether an IP address belongs to the public internet; False as well for what is no address.

    Not public are: private, link-local (there the cloud keeps its metadata service), loopback, carrier-grade NAT, multicast,
    documentation, reserved, unique-local, 6to4, Teredo. An IPv4 address inside an IPv6 one (mapped, NAT64) counts as itself.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return _is_public(ip)


def is_private_address(address: str) -> bool:
    """Whether an IP address belongs to the network of an organisation or a home (RFC 1918, RFC 6598, RFC 4193): never loopback, nor
    link-local, where clouds keep what nobody else may see."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    ip = (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip
    return any(ip in net for net in _PRIVATE)


def may_fetch(address: str, *, local: bool, near: bool = False) -> bool:
    """Whether a resolved address may be connected to: a public one; or loopback if the MCP server is on loopback (`local`); or a
    private one if the MCP server has a private one too (`near`)."""
    if is_public_address(address):
        return True
    return (local and _is_loopback_host(address)) or (near and is_private_address(address))


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host in lower case and port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


def at_port_of(url: str, other: str) -> str:
    """`url` at the port of `other`, if that is a URL with one."""
    try:
        port = urlsplit(other).port
    except ValueError:
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition(":")[0]
    return parts._replace(netloc=f"{host}:{port}").geturl() if port else url


def root_of(url: str) -> str:
    """The origin of a URL as text, in lower case."""
    return _root(urlsplit(url))


def same_origin_redirect(url: str, location: str) -> str | None:
    """Where a redirect from `url` leads, None if to another origin."""
    try:
        target = urljoin(url, location)
        return target if origin_of(target) == origin_of(url) else None
    except ValueError:
        return None


def canonical_resource(url: str) -> str:
    """The name of an MCP server as a resource (RFC 8707): lower-case scheme and host, no fragment, no lone slash at the end."""
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    query = f"?{parts.query}" if parts.query else ""
    return f"{_root(parts)}{path}{query}"


def covers(resource: str, url: str) -> bool:
    """Whether a published `resource` is the MCP server at `url`, or stands above it in the same origin.

    RFC 9728 section 3.3 wants it to be identical. A server that publishes one document for several endpoints names their common
    parent there, and the official SDKs take it: `https://e.com` for `https://e.com/mcp`, but never `/mc` for `/mcp`.
    """
    try:
        if origin_of(resource) != origin_of(url):
            return False
    except ValueError:
        return False
    above, own = urlsplit(resource), urlsplit(url)
    if above.query and above.query != own.query:
        return False
    path = above.path.rstrip("/")
    return own.path.rstrip("/") == path or own.path.startswith(f"{path}/")


def resource_metadata_urls(url: str) -> list[str]:
    """Where the protected-resource metadata of an MCP server may be, the most specific place first (RFC 9728 section 3.1)."""
    parts = urlsplit(url)
    known = f"{_root(parts)}/.well-known/oauth-protected-resource"
    if parts.path in ("", "/"):
        return [known]
    query = f"?{parts.query}" if parts.query else ""
    return [f"{known}{parts.path}{query}", known]


def issuer_metadata_urls(issuer: str) -> list[str]:
    """Where the metadata of an authorization server may be: RFC 8414, then OpenID Connect in both of its forms."""
    parts = urlsplit(issuer)
    root, path = _root(parts), parts.path.rstrip("/")
    urls = [
        f"{root}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")
    ]
    return [*urls, f"{root}{path}/.well-known/openid-configuration"] if path else urls


def _root(parts: SplitResult) -> str:
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def _is_ipv6(host: str) -> bool:
    """Not with a zone, either: which of our networks that is a stranger cannot know (RFC 4007)."""
    try:
        return "%" not in host and isinstance(ip_address(host), IPv6Address)
    except ValueError:
        return False


def _is_loopback_host(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ip = ip_address(host)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return (mapped or ip).is_loopback


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv4Address):
        return not any(ip in net for net in _NOT_PUBLIC_4)
    if ip.ipv4_mapped is not None:
        return _is_public(ip.ipv4_mapped)
    if ip in _NAT64:
        return _is_public(IPv4Address(int(ip) & 0xFFFFFFFF))
    return ip in _PUBLIC_6 and not any(ip in net for net in _NOT_PUBLIC_6)
