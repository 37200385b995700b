"""The policy for URLs and addresses that a peer names: schemes, origins, networks.

1. A URL is `https`, or `http` on loopback if the MCP server is itself on loopback (development).
   The same holds for a URL that is fetched and for one that a browser opens.
2. A host name proves no address. The driver resolves it, asks `may_fetch` for each address,
   and connects to an allowed address only. A second DNS answer (rebinding) then changes nothing.
3. Behind a proxy, the proxy resolves the name. There only names that are never public can be
   refused (`is_internal_name`); all others are the proxy's decision.

Sources: RFC 3986; security best practices of modelcontextprotocol.io (Server-Side Request Forgery).
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urljoin, urlsplit

from mcp_core._patterns import compile_on_first_use

from ._url import DEFAULT_PORTS, effective_port

__all__ = [
    "MAX_URL",
    "covers_url",
    "find_host_error",
    "find_syntax_error",
    "find_url_error",
    "is_internal_name",
    "is_local_host",
    "is_loopback_host",
    "is_loopback_url",
    "is_private_address",
    "is_public_address",
    "may_fetch",
    "may_fetch_named",
    "origin_of",
    "origin_text",
    "same_origin_redirect",
]

MAX_URL: Final = 8192  # characters

# The characters of RFC 3986: no space, control character, quote or backslash. A URL of these cannot
# become an option, a second header or a command of the program that opens it.
_CHARACTERS: Final = compile_on_first_use(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
# RFC 1123 names, with underscores, which some hosts have. The dot at the end of a full name is
# legal.
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = compile_on_first_use(rf"(?=.{{1,254}}$){_LABEL}(?:\.{_LABEL})*\.?")
_AUTHORITY: Final = compile_on_first_use(r"(\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")
# A last label that makes browsers and `inet_aton` read the whole host as a number (WHATWG URL, ends
# in a number): 2130706433, 0x7f000001, 127.1 and 0177.0.0.1 are 127.0.0.1.
_NUMBER: Final = compile_on_first_use(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")

# IPv4 networks that aren't the public internet (IANA special-purpose registry). A table of our own:
# the standard library's differs between Python releases.
_NOT_PUBLIC_4: Final = tuple(
    ip_network(net)
    for net in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
_PUBLIC_6: Final = ip_network("2000::/3")
# Within 2000::/3, but not public: Teredo and other IETF protocols, documentation, 6to4.
_NOT_PUBLIC_6: Final = tuple(
    ip_network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_PRIVATE: Final = tuple(
    ip_network(net)
    for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)
# Services of clouds for their own machines, such as those that hand out credentials, beside the
# link-local ones: Azure (in the public space), Alibaba, Oracle, Amazon, Google, Scaleway. A private
# address among them doesn't belong to the private network in which a server was reached.
_CLOUD_SERVICES: Final = tuple(
    ip_network(net)
    for net in (
        "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::/32",
        "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128", "fd00:42::42/128",
    )
)  # fmt: skip
# NAT64 (RFC 6052): the last 32 bits are an IPv4 address, which decides.
_NAT64: Final = ip_network("64:ff9b::/96")
# Last labels of names that only a private network resolves: RFC 6761, RFC 6762 (with appendix G),
# RFC 8375, the reservations of ICANN (corp, home, mail, internal), and the ends of cluster names.
_INTERNAL_LABELS: Final = frozenset(
    """
    arpa cluster consul corp home internal intranet lan local localdomain localhost mail onion
    private svc
    """.split()
)


def find_url_error(url: str, *, allow_loopback: bool) -> str | None:
    """Return what is wrong with a URL that a peer named, or None if it may be used.

    Args:
        url: as the peer wrote it.
        allow_loopback: whether the MCP server is on loopback (`is_loopback_url`); then `http` on
            loopback is allowed.
    """
    error = find_syntax_error(url)
    if error:
        return error
    if "#" in url:
        return "has a fragment"
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "http" and not (allow_loopback and is_loopback_host(host)):
        return "is not https"
    return None


def find_syntax_error(url: str) -> str | None:
    """Return why a text isn't an unambiguous URL of a page (RFC 3986), or None.

    It has to be `http` or `https`, without credentials, and with a host that every reader reads
    alike, see `find_host_error`.
    """
    if len(url) > MAX_URL:
        return f"is longer than {MAX_URL} characters"
    # `$(` is legal in a URL, but starts a command in a shell.
    if not _CHARACTERS.fullmatch(url) or "$(" in url:
        return "has characters that do not belong into a URL"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in DEFAULT_PORTS:
        return "is neither https nor http"
    if "@" in parts.netloc:
        return "contains a user name"
    authority = _AUTHORITY.fullmatch(parts.netloc)
    if authority is None or port == 0:
        return "has no valid host"
    return find_host_error(authority[1])


def find_host_error(host: str) -> str | None:
    """Return why a host of a URL is invalid or ambiguous, or None. IPv6 addresses have brackets.

    Percent-encoded hosts and numbers other than a plain IP address are refused: browsers and
    resolvers convert them to another host than the one that a person reads.
    """
    if host.startswith("["):
        valid = host.endswith("]") and _is_ipv6(host[1:-1])
        return None if valid else "has no valid host: no IPv6 address is in its brackets"
    if "%" in host:
        return "has no valid host: it is percent-encoded"
    if not _HOST.fullmatch(host):
        return "has no valid host"
    if _NUMBER.fullmatch(host) and not _is_ipv4(host):
        return "has no valid host: it is a number, but no plain IP address such as 192.0.2.1"
    return None


# -- Origins ---------------------------------------------------------------------------------------


def origin_of(url: str) -> tuple[str, str, int]:
    """Return the origin of `url`: scheme, host in lower case, and port (RFC 6454, section 4).

    The port is the scheme's own if the URL names none, 0 for an unknown scheme.

    Raises:
        ValueError: the URL cannot be read.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", effective_port(parts)


def origin_text(url: str) -> str:
    """Return the origin of `url` as text, in lower case, with its port as it is written.

    Raises:
        ValueError: the URL cannot be read.
    """
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def same_origin_redirect(url: str, location: str) -> str | None:
    """Return the target of a redirect from `url`, or None if it is of another origin.

    `location` is the response's header, an absolute or a relative URL (RFC 9110, section
    10.2.2). The result is absolute. None is also returned if it cannot be read.
    """
    try:
        target = urljoin(url, location)
        return target if origin_of(target) == origin_of(url) else None
    except ValueError:
        return None


def covers_url(resource: str, url: str) -> bool:
    """Return True if `url` is at or below the path of `resource`, at the same origin.

    A slash at the end makes no difference. If `resource` has a query, `url` must have the same one.
    The path of `url` must have no dot segments: they are compared as any other text.

    Raises:
        ValueError: one of them cannot be read.
    """
    covering = urlsplit(resource)
    covered = urlsplit(url)
    path = covering.path.rstrip("/")
    return (
        origin_of(resource) == origin_of(url)
        and covering.query in ("", covered.query)
        and (covered.path == path or covered.path.startswith(f"{path}/"))
    )


# -- Addresses -------------------------------------------------------------------------------------


def is_loopback_url(url: str) -> bool:
    """Return True if the host of `url` is a loopback host, as for `is_loopback_host`.

    Raises:
        ValueError: the URL cannot be read.
    """
    return is_loopback_host(urlsplit(url).hostname or "")


def is_loopback_host(host: str) -> bool:
    """Return True if `host` is this machine: `localhost`, 127.0.0.0/8 or `::1`. No DNS query.

    It is in lower case, an IPv6 address without brackets. An IPv4 address inside an IPv6 one
    (`::ffff:127.0.0.1`) counts as itself.
    """
    if host == "localhost":
        return True
    try:
        ip = ip_address(host)
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return (mapped or ip).is_loopback


def is_local_host(host: str) -> bool:
    """Return True if `host`, which the user named, is this machine. No DNS query.

    Beside the loopback hosts, these are all names below `localhost` (RFC 6761, 6.3), and the same
    names with a final dot.
    """
    name = host.removesuffix(".")
    return name.endswith(".localhost") or is_loopback_host(name)


def is_public_address(address: str) -> bool:
    """Return True if `address` is an IP address on the public internet; other texts aren't.

    Not public are: private, link-local, cloud metadata services, loopback, carrier-grade NAT,
    multicast, documentation, reserved, unique-local, 6to4, Teredo. An IPv4 address inside an IPv6
    one (mapped, NAT64) counts as itself.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return _is_public(ip)


def is_private_address(address: str) -> bool:
    """Return True if `address` is one of a private network (RFC 1918, RFC 6598, RFC 4193).

    Loopback, link-local addresses and cloud metadata services aren't private here, nor is a text
    that isn't an IP address.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    ip = (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip
    return any(ip in net for net in _PRIVATE) and not _is_cloud_service(ip)


def is_internal_name(host: str) -> bool:
    """Return True if `host` is a name of a private network: no public DNS resolves it.

    These are names of one label, such as `vault`, and names that end in a label that isn't public,
    such as `metadata.google.internal`. An address isn't a name.
    """
    labels = host.lower().removesuffix(".").split(".")
    if ":" in host or labels[-1].isdigit():
        return False
    return len(labels) == 1 or labels[-1] in _INTERNAL_LABELS


def may_fetch(address: str, *, allow_loopback: bool, allow_private: bool = False) -> bool:
    """Return True if the driver may connect to a resolved address of a host that a peer named.

    Args:
        address: a resolved IP address. A public one is always allowed.
        allow_loopback: whether the MCP server is on loopback; then loopback is allowed.
        allow_private: whether the MCP server has a private address; then private addresses are
            allowed.
    """
    if is_public_address(address):
        return True
    return (allow_loopback and is_loopback_host(address)) or (
        allow_private and is_private_address(address)
    )


def may_fetch_named(address: str, publisher: Collection[str]) -> bool:
    """Return True if the driver may connect to an address of a URL that a document named.

    The document is a configured server's. It may lead further into that server's network, but not
    into another one: never from the internet into a private network, and never from there to this
    machine or to link-local addresses, such as cloud metadata services.

    Args:
        address: a resolved IP address from the URL.
        publisher: all the server's resolved IP addresses; none if they are unknown.
    """
    inside = bool(publisher) and not any(map(is_public_address, publisher))
    local = inside and all(map(is_loopback_host, publisher))
    private = inside and (local or any(map(is_private_address, publisher)))
    return may_fetch(address, allow_loopback=local, allow_private=private)


def _is_ipv4(host: str) -> bool:
    try:
        return isinstance(ip_address(host), IPv4Address)
    except ValueError:
        return False


def _is_ipv6(host: str) -> bool:
    # A zone (`fe80::1%eth0`) is refused: a peer cannot know the names of our interfaces (RFC 4007).
    try:
        return "%" not in host and isinstance(ip_address(host), IPv6Address)
    except ValueError:
        return False


def _is_cloud_service(ip: IPv4Address | IPv6Address) -> bool:
    return any(ip in net for net in _CLOUD_SERVICES)


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv4Address):
        return not any(ip in net for net in _NOT_PUBLIC_4) and not _is_cloud_service(ip)
    if ip.ipv4_mapped is not None:
        return _is_public(ip.ipv4_mapped)
    if ip in _NAT64:
        return _is_public(IPv4Address(int(ip) & 0xFFFFFFFF))
    return ip in _PUBLIC_6 and not any(ip in net for net in _NOT_PUBLIC_6)
