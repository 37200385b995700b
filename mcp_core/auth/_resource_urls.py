"""The URLs of OAuth: how an MCP server is named as a resource, and where its documents are.

1. Which URLs and addresses may be used is decided in `mcp_core.urls`; here a rejection becomes an
   error.
2. URLs are compared as strings where the specifications require it (issuer, the `resource` that we
   choose). Only `covers` knows that scheme and host ignore case and that ports have defaults.

Sources: RFC 3986, RFC 8414 section 3.1, RFC 9728 section 3.1, RFC 8707 section 2.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from mcp_core.urls._addresses import find_url_error, origin_of, origin_text

from ._errors import AuthorizationFailed

__all__ = [
    "canonical_resource",
    "check_url",
    "covers",
    "issuer_metadata_urls",
    "redacted_url",
    "resource_metadata_urls",
    "with_port_of",
]


def check_url(url: str, what: str, *, local: bool) -> str:
    """Return `url` unchanged, if it may be used.

    Args:
        url: as a peer wrote it.
        what: the name of the URL in the text of the error.
        local: whether the MCP server is on loopback, the `allow_loopback` of `find_url_error`.

    Raises:
        AuthorizationFailed: it may not be used.
    """
    error = find_url_error(url, allow_loopback=local)
    if error is not None:
        raise AuthorizationFailed(
            f"{what} {error}: {redacted_url(url)}. It is not used; tell its administrator."
        )
    return url


def redacted_url(url: str) -> str:
    """Return a URL as an error shows it: short, printable, without query and credentials."""
    text = re.split("[?#]", url, maxsplit=1)[0]
    if "@" in text:
        text = f"...@{text.rpartition('@')[2]}"
    return repr(text if len(text) <= 120 else f"{text[:120]}...")


def with_port_of(url: str, other: str) -> str:
    """Return `url` with the port of `other`; unchanged if `other` names none, or is not a URL."""
    try:
        port = urlsplit(other).port
    except ValueError:
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition(":")[0]
    return parts._replace(netloc=f"{host}:{port}").geturl() if port else url


def canonical_resource(url: str) -> str:
    """Return the canonical URI of an MCP server as a resource (RFC 8707).

    Scheme and host are in lower case. A fragment is removed, and so is a path that is only "/".
    """
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    query = f"?{parts.query}" if parts.query else ""
    return f"{origin_text(url)}{path}{query}"


def covers(resource: str, url: str) -> bool:
    """Return True if a published `resource` is the server at `url`, or a parent in its origin.

    RFC 9728 section 3.3 requires it to be identical. A server that publishes one document for
    several endpoints names their common parent there, and the official SDKs accept it:
    `https://e.com` for `https://e.com/mcp`, but never `/mc` for `/mcp`.
    """
    try:
        if origin_of(resource) != origin_of(url):
            return False
    except ValueError:
        return False
    parent = urlsplit(resource)
    server = urlsplit(url)
    if parent.query and parent.query != server.query:
        return False
    path = parent.path.rstrip("/")
    return server.path.rstrip("/") == path or server.path.startswith(f"{path}/")


def resource_metadata_urls(url: str) -> list[str]:
    """Return where the protected resource metadata of an MCP server may be (RFC 9728 section 3.1).

    The most specific URL is the first.
    """
    parts = urlsplit(url)
    known = f"{origin_text(url)}/.well-known/oauth-protected-resource"
    if parts.path in ("", "/"):
        return [known]
    query = f"?{parts.query}" if parts.query else ""
    return [f"{known}{parts.path}{query}", known]


def issuer_metadata_urls(issuer: str) -> list[str]:
    """Return where the metadata of an authorization server may be.

    First RFC 8414, then OpenID Connect Discovery in both of its forms.
    """
    root = origin_text(issuer)
    path = urlsplit(issuer).path.rstrip("/")
    urls = [
        f"{root}/.well-known/{name}{path}"
        for name in ("oauth-authorization-server", "openid-configuration")
    ]
    return [*urls, f"{root}{path}/.well-known/openid-configuration"] if path else urls
