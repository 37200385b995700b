"""The URLs of OAuth: how an MCP server is named as a resource, and where its documents are.

1. Which URLs and addresses may be used is decided in `mcp_core.urls`; here a rejection becomes an
   error.
2. URLs are compared as strings where the specifications require it (issuer, the `resource` that we
   choose). Only `names_server` and its like know that scheme and host ignore case and that ports
   have defaults.
3. One deviation: an issuer that is a bare origin has two spellings, with and without a slash
   (`issuer_spellings`). Both have the same metadata URL, so they cannot be two servers.

Sources: RFC 3986, RFC 8414 section 3.1, RFC 9728 sections 3.1 and 3.3, RFC 8707 section 2, RFC 9700
section 4.4.2.2.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from mcp_core.urls._addresses import find_url_error, origin_of, origin_text
from mcp_core.urls._url import redacted_url

from ._errors import AuthorizationFailed
from ._jose import base64url

__all__ = [
    "canonical_resource",
    "check_url",
    "distinct_redirect_uri",
    "is_root_metadata_url",
    "is_same_issuer",
    "issuer_metadata_urls",
    "issuer_spellings",
    "names_host",
    "names_server",
    "resource_metadata_urls",
    "with_port_of",
]


_RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
# Characters of base64url: 132 bits, so no issuer can be made up that has another's digest.
_DIGEST_LENGTH: Final = 22


def check_url(url: str, what: str, *, local: bool) -> str:
    """Return `url` unchanged, if it may be used.

    Args:
        url: as a peer wrote it.
        what: the URL's name in the error's text.
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


def with_port_of(url: str, other: str) -> str:
    """Return `url` with the port of `other`; unchanged if `other` names none, or isn't a URL."""
    try:
        port = urlsplit(other).port
    except ValueError:
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition(":")[0]
    return parts._replace(netloc=f"{host}:{port}").geturl() if port else url


def distinct_redirect_uri(redirect_uri: str, issuer: str) -> str:
    """Return a redirect URI for one authorization server only: with a digest of `issuer` as path.

    An authorization server then cannot make another one redirect the user's browser here for it,
    as long as clients are registered with exact paths (RFC 9700 section 4.4.2.2).
    """
    parts = urlsplit(redirect_uri)
    digest = base64url(sha256(issuer.encode()).digest())[:_DIGEST_LENGTH]
    return parts._replace(path=f"{parts.path.rstrip('/')}/{digest}").geturl()


def canonical_resource(url: str) -> str:
    """Return the canonical URI of an MCP server as a resource (RFC 8707).

    Scheme and host are in lower case. A fragment is removed, and so is a path that is only "/".
    """
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    query = f"?{parts.query}" if parts.query else ""
    return f"{origin_text(url)}{path}{query}"


def names_server(resource: str, url: str) -> bool:
    """Return True if a published `resource` is the server at `url` (RFC 9728 section 3.3).

    The case of scheme and host, default ports and a slash at the end make no difference. The
    resource may lack the query of `url`.
    """
    if not _is_same_origin(resource, url):
        return False
    named = urlsplit(resource)
    server = urlsplit(url)
    return named.query in ("", server.query) and named.path.rstrip("/") == server.path.rstrip("/")


def names_host(resource: str, url: str) -> bool:
    """Return True if a published `resource` is the whole origin of the server at `url`.

    A token for it is valid for all servers of that host. Accept it only if the document is the one
    of the root (`is_root_metadata_url`): with any other, one of several servers of a host could get
    a token that the others accept (RFC 9728 section 3.3).
    """
    named = urlsplit(resource) if _is_same_origin(resource, url) else None
    return named is not None and named.path in ("", "/") and not named.query


def is_root_metadata_url(location: str, url: str) -> bool:
    """Return True if `location` is where the root of the origin of `url` has its metadata."""
    if not _is_same_origin(location, url):
        return False
    parts = urlsplit(location)
    return parts.path == _RESOURCE_METADATA and not parts.query


def _is_same_origin(url: str, other: str) -> bool:
    """Return True if both URLs have the same origin, False also if one cannot be read."""
    try:
        return origin_of(url) == origin_of(other)
    except ValueError:
        return False


def resource_metadata_urls(url: str) -> list[str]:
    """Return where the protected resource metadata of an MCP server may be (RFC 9728 section 3.1).

    The most specific URL is the first.
    """
    parts = urlsplit(url)
    known = f"{origin_text(url)}{_RESOURCE_METADATA}"
    if parts.path in ("", "/"):
        return [known]
    query = f"?{parts.query}" if parts.query else ""
    return [f"{known}{parts.path}{query}", known]


def issuer_spellings(issuer: str) -> tuple[str, ...]:
    """Return `issuer`, and if it is a bare origin, also its spelling with or without the slash.

    RFC 8414 section 3.3 knows one spelling only. Google, Supabase and others publish both.
    """
    _, mark, rest = issuer.partition("://")
    host, slash, path = rest.partition("/")
    if not mark or not host or path or "?" in host or "#" in host:
        return (issuer,)
    return issuer, issuer[:-1] if slash else f"{issuer}/"


def is_same_issuer(issuer: str, other: str) -> bool:
    """Return True if two issuers, found or configured, are two spellings of one.

    Never use it for `iss`, in a callback or a token: that is compared character by character.
    """
    return other in issuer_spellings(issuer)


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
