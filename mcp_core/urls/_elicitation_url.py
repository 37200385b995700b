"""The page that a server asks the user to visit, as a browser would reach it.

A user decides by the host whether to open a page. The host is therefore shown as it will be
reached, and everything suspicious about it is a warning. What readers could read differently, such
as `http://2130706433/`, isn't a page at all.

Sources: client/elicitation, Safe URL Handling; RFC 3986; RFC 5890 (IDNA); WHATWG URL, host parsing.
"""

from __future__ import annotations

import unicodedata
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_core._text import escape_text

from ._addresses import find_syntax_error, is_loopback_host, is_public_address
from ._url import effective_port

__all__ = ["ElicitationUrl"]

_PUNYCODE: Final = "xn--"


class ElicitationUrl(Struct, frozen=True):
    """The URL of a page, with its host as a browser would reach it.

    Make one with `ElicitationUrl.parse` (client/elicitation, Safe URL Handling; WHATWG URL, host
    parsing).

    Attributes:
        text: the URL as the server wrote it, printable ASCII.
        scheme: "https" or "http".
        host: the host in lower case; an IP address in its shortest form, without brackets.
        unicode_host: `host` with its Punycode labels decoded. Show it beside `host`, and not in its
            place: it may look like another name.
        port: the port, which the scheme determines if the URL has none.
        warnings: sentences for the user, each about a reason to distrust the page.
    """

    text: str
    scheme: str
    host: str
    unicode_host: str
    port: int
    warnings: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> ElicitationUrl:
        """Return the URL of a page that `text` is, as a server wrote it.

        Raises:
            ValueError: it isn't an `http` or `https` URL, contains credentials, or has a host that
                isn't what it seems to be. The message is to be appended to a name of the URL.
        """
        error = find_syntax_error(text)
        if error:
            raise ValueError(error)
        parts = urlsplit(text)
        host = _normalise(parts.hostname or "")
        unicode_host = _decode_punycode(host)
        warnings = (*_host_warnings(host, unicode_host), *_scheme_warnings(parts.scheme, host))
        return cls(text, parts.scheme, host, unicode_host, effective_port(parts), warnings)


def _normalise(host: str) -> str:
    """Return a host name unchanged, and an IP address in its canonical form."""
    try:
        ip = ip_address(host)
    except ValueError:
        return host
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return str(mapped or ip)


def _decode_punycode(host: str) -> str:
    """Return `host` with decoded labels.

    Raises:
        ValueError: a label isn't a Punycode, or contains characters that no name may have.
    """
    labels = []
    for label in host.split("."):
        if label.startswith(_PUNYCODE):
            try:
                label = label.removeprefix(_PUNYCODE).encode().decode("punycode")
            except ValueError:
                label = ""
            if label.isascii() or label != escape_text(label, joiners=True):
                raise ValueError("has no valid host: its Punycode (xn--) is invalid")
        labels.append(label)
    return ".".join(labels)


def _host_warnings(host: str, unicode_host: str) -> list[str]:
    found = []
    if host.startswith(_PUNYCODE) or f".{_PUNYCODE}" in host:
        found.append(
            f"The name of this host is in Punycode (xn--): it reads {unicode_host}, with letters of"
            f" {' and '.join(_scripts(unicode_host))}. It may imitate another name."
        )
    if is_loopback_host(host.rstrip(".")) or host.rstrip(".").endswith(".localhost"):
        found.append("This page is on your own machine.")
    elif _is_address(host):
        found.append("This host is an IP address, which does not say whose page it is.")
        if not is_public_address(host):
            found.append("This address is not on the public internet.")
    return found


def _scheme_warnings(scheme: str, host: str) -> list[str]:
    if scheme == "https" or is_loopback_host(host):
        return []
    return ["What you enter on this page is not encrypted."]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _scripts(text: str) -> list[str]:
    """Return the scripts of the letters in `text`, by the first word of their Unicode names."""
    names = {unicodedata.name(letter, "unknown") for letter in text if letter.isalpha()}
    return sorted({name.partition(" ")[0].capitalize() for name in names})
