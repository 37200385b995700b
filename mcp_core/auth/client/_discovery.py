"""Discovery: from the URL of an MCP server to the metadata of its authorization server.

1. A 4xx response means that the document isn't there: the next URL is tried. A 5xx, a 429 or no
   response ends the search with an error, because a network fault must not lead to another server
   than the one that was meant.
2. A document that cannot be parsed is skipped. The error names it if no other URL has a valid one.

Sources: 2026-07-28 basic/authorization/authorization-server-discovery, RFC 9728 sections 3 and 5,
RFC 8414 section 3. For servers without protected resource metadata: 2025-03-26 basic/authorization
(Server Metadata Discovery, Fallbacks for Servers without Metadata Discovery).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from mcp_core.auth._errors import AuthorizationFailed
from mcp_core.auth._metadata import (
    AuthorizationServerMetadata,
    ProtectedResourceMetadata,
    read_resource_metadata,
)
from mcp_core.auth._resource_urls import (
    canonical_resource,
    check_url,
    is_root_metadata_url,
    names_host,
    names_server,
    resource_metadata_urls,
)
from mcp_core.auth._server_metadata import (
    MetadataSearch,
    fetch_server_metadata,
    find_server_metadata,
)
from mcp_core.urls._addresses import find_url_error, is_loopback_url, origin_text
from mcp_core.urls._url import redacted_url

from ._challenge import AuthChallenge, split_scopes

if TYPE_CHECKING:
    from mcp_core.auth._steps import Flow

__all__ = [
    "AuthorizationServer",
    "find_authorization_server",
    "find_resource_metadata",
]


class AuthorizationServer(Struct, frozen=True):
    """The authorization server of an MCP server, and the name of the MCP server there.

    - `resource` is the value of the `resource` parameter, sent unchanged.
    - `scopes` are those that the MCP server publishes, None if it publishes none.
    - `metadata_url` is the `resource_metadata` URL of the MCP server's challenge.
    - `address` is the IP address that `metadata` came from, None if that is unknown.
    - `guessed` is True if no metadata was found, so that `server` holds default endpoints.
    """

    resource: str
    metadata: AuthorizationServerMetadata
    scopes: tuple[str, ...] | None = None
    metadata_url: str | None = None
    address: str | None = None
    guessed: bool = False

    @property
    def issuer(self) -> str:
        """The issuer identifier of the authorization server."""
        return self.metadata.issuer


def find_authorization_server(
    url: str,
    challenge: AuthChallenge,
    *,
    configured_issuer: str | None = None,
    token_issuer: str | None = None,
    cached: AuthorizationServer | None = None,
) -> Flow[AuthorizationServer]:
    """Find the authorization server for the MCP server at `url`.

    If the MCP server offers several, the choice is `configured_issuer`, then `token_issuer` (that
    of the current tokens), then the first one. `configured_issuer` is also used if the MCP server
    has no metadata. The metadata of the authorization server is copied from `cached`, and not
    fetched again, if the issuer is the same.

    Raises:
        AuthorizationFailed: there is no authorization server that may be used.
    """
    local = is_loopback_url(url)
    metadata = yield from find_resource_metadata(url, challenge.resource_metadata)
    if metadata is None and configured_issuer is None:
        published, address = yield from _legacy_server_metadata(url)
        server = published or _default_server_metadata(url)
        return AuthorizationServer(
            canonical_resource(url), server, address=address, guessed=published is None
        )
    if metadata is None:
        assert configured_issuer is not None
        issuer = configured_issuer
        resource = canonical_resource(url)
        scopes = None
    else:
        offered = metadata.authorization_servers or []
        if not offered:
            raise AuthorizationFailed(
                "the metadata of the MCP server names no authorization server. Its administrator "
                "has to add one."
            )
        preferred = next(
            (wanted for wanted in (configured_issuer, token_issuer) if wanted in offered), None
        )
        issuer = preferred or offered[0]
        resource = metadata.resource
        scopes = (
            split_scopes(" ".join(metadata.scopes_supported))
            if metadata.scopes_supported is not None
            else None
        )
    if cached is not None and cached.issuer == issuer:
        server = cached.metadata
        address = cached.address
    else:
        server, address = yield from find_server_metadata(issuer, allow_loopback=local)
    return AuthorizationServer(resource, server, scopes, challenge.resource_metadata, address)


def find_resource_metadata(
    url: str, location: str | None
) -> Flow[ProtectedResourceMetadata | None]:
    """Fetch the metadata of the MCP server at `url`. Return None if it publishes none.

    The URLs are tried in this order: `location` (from the server's challenge), then the well-known
    URLs, the most specific first.

    Raises:
        AuthorizationFailed: a document was found that must not be used, or `location` has none.
    """
    local = is_loopback_url(url)
    if location is not None:
        check_url(location, "the resource_metadata of the MCP server's challenge", local=local)
    search = MetadataSearch("the metadata of the MCP server", allow_loopback=local)
    candidates = resource_metadata_urls(url)
    if location:
        candidates.insert(0, location)
    for candidate in dict.fromkeys(candidates):
        body = yield from search.fetch(candidate)
        if body is None:
            continue
        try:
            metadata = read_resource_metadata(body)
        except AuthorizationFailed as exc:
            search.add_invalid(candidate, str(exc))
            continue
        # Otherwise a malicious server could make the client request a token for another server.
        _check_resource(metadata.resource, url, candidate)
        return metadata
    if location is not None or search.found_invalid:
        raise search.failure()
    return None


def _check_resource(resource: str, url: str, location: str) -> None:
    """Check that the document at `location` may name `resource` for the MCP server at `url`.

    It may name that server, and the document of the root may name the whole origin.

    Raises:
        AuthorizationFailed: it may not.
    """
    if find_url_error(resource, allow_loopback=is_loopback_url(url)) is None and (
        names_server(resource, url)
        or (names_host(resource, url) and is_root_metadata_url(location, url))
    ):
        return
    raise AuthorizationFailed(
        f"the metadata at {redacted_url(location)} is that of another resource, "
        f"{redacted_url(resource)}: a token for "
        f"it must not be requested. The MCP server is {redacted_url(url)}; its "
        "administrator has to correct the metadata."
    )


def _legacy_server_metadata(
    url: str,
) -> Flow[tuple[AuthorizationServerMetadata | None, str | None]]:
    """Fetch the authorization server metadata at the origin of an MCP server of 2025-03-26.

    Return it (None if the server publishes none) and the address that it came from.
    """
    root = origin_text(url)
    search = MetadataSearch(
        "the metadata of the authorization server", allow_loopback=is_loopback_url(url)
    )
    metadata = yield from fetch_server_metadata(
        search, f"{root}/.well-known/oauth-authorization-server"
    )
    if metadata is not None:
        # RFC 8414 allows no other issuer there. Servers write the origin with or without a slash.
        if metadata.issuer.removesuffix("/") != root:
            raise AuthorizationFailed(
                f"the MCP server {redacted_url(root)} has the metadata of another authorization "
                f"server, {redacted_url(metadata.issuer)}, "
                "which must not be used. Its administrator has to publish protected-resource "
                "metadata (RFC 9728)."
            )
        return metadata, search.address
    if search.found_invalid:
        raise search.failure()
    return None, None


def _default_server_metadata(url: str) -> AuthorizationServerMetadata:
    """Return the default endpoints of an MCP server of 2025-03-26 without metadata."""
    root = origin_text(url)
    return AuthorizationServerMetadata(
        issuer=root,
        authorization_endpoint=f"{root}/authorize",
        token_endpoint=f"{root}/token",
        registration_endpoint=f"{root}/register",
        # Revision 2025-03-26 requires PKCE of every server, and without metadata it cannot be
        # announced.
        code_challenge_methods_supported=["S256"],
        token_endpoint_auth_methods_supported=["none"],
    )
