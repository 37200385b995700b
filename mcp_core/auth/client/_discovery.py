"""Discovery: from the URL of an MCP server to the metadata of its authorization server.

1. A 4xx response means that the document isn't there: the next URL is tried. A 5xx, a 429 or no
   response ends the search with an error, because a network fault must not lead to another server
   than the one that was meant.
2. A body that isn't JSON isn't the document either. JSON that isn't valid metadata is skipped, and
   the error names it if no other URL has a valid one.
3. What was ignored is a note in the result, for the log.

Sources: 2026-07-28 basic/authorization/authorization-server-discovery, RFC 9728 sections 3 and 5,
RFC 8414 section 3. For servers without protected resource metadata: 2025-03-26 basic/authorization
(Server Metadata Discovery, Fallbacks for Servers without Metadata Discovery).
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

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
    is_same_issuer,
    names_host,
    names_server,
    resource_metadata_urls,
)
from mcp_core.auth._server_metadata import (
    FoundMetadata,
    MetadataSearch,
    fetch_server_metadata,
    find_server_metadata,
)
from mcp_core.auth._steps import Flow
from mcp_core.urls._addresses import find_url_error, is_loopback_url, origin_text
from mcp_core.urls._url import redacted_url

from ._challenge import AuthChallenge, split_scopes

__all__ = [
    "AuthorizationServer",
    "find_authorization_server",
    "find_resource_metadata",
]


# For the error about metadata with another issuer.
_OTHER_ISSUER: Final = (
    " If its provider documents that difference, set issuer and metadata_issuer of the profile "
    "(`mcp-trio login --issuer --metadata-issuer`)."
)


class AuthorizationServer(Struct, frozen=True):
    """The authorization server of an MCP server, and the MCP server's name there.

    - `resource` is the value of the `resource` parameter, sent unchanged.
    - `scopes` are those that the MCP server publishes, None if it publishes none.
    - `metadata_url` is the `resource_metadata` URL in the MCP server's challenge.
    - `address` is the IP address that `metadata` came from, None if that is unknown.
    - `guessed` is True if no metadata was found, so that `server` holds default endpoints.
    - `metadata_issuer` is the profile's `metadata_issuer`, if the metadata has that issuer.
      `metadata` then has the profile's `issuer`.
    - `notes` say what was ignored in what the servers publish, and how it deviates.
    """

    resource: str
    metadata: AuthorizationServerMetadata
    scopes: tuple[str, ...] | None = None
    metadata_url: str | None = None
    address: str | None = None
    guessed: bool = False
    metadata_issuer: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def issuer(self) -> str:
        """The authorization server's issuer identifier. Records are stored under it."""
        return self.metadata.issuer

    @property
    def iss(self) -> str:
        """The issuer identifier as the authorization server itself writes it, in `iss`."""
        return self.metadata_issuer or self.metadata.issuer


def find_authorization_server(
    url: str,
    challenge: AuthChallenge,
    *,
    configured_issuer: str | None = None,
    metadata_issuer: str | None = None,
    token_issuer: str | None = None,
    cached: AuthorizationServer | None = None,
) -> Flow[AuthorizationServer]:
    """Find the authorization server for the MCP server at `url`.

    If the MCP server offers several, the choice is `configured_issuer`, then `token_issuer` (the
    current tokens' issuer), then the first one. `configured_issuer` is also used if the MCP server
    has no metadata. `metadata_issuer` is the issuer in its metadata, None for the same one; it
    counts for no other authorization server. The authorization server's metadata is copied from
    `cached`, and not fetched again, if the issuer is the same.

    Raises:
        AuthorizationFailed: there is no authorization server that may be used.
    """
    notes: tuple[str, ...] = ()
    location = challenge.resource_metadata
    metadata = yield from find_resource_metadata(url, location)
    if location is not None and is_relative(location):
        note = (
            "the resource_metadata of the MCP server's challenge is not an absolute URL in quotes"
        )
        notes = (f"{note}: the well-known URLs are used instead",)
        location = None
    if metadata is None and configured_issuer is None:
        legacy = yield from _legacy_server_metadata(url)
        if legacy is None:
            return AuthorizationServer(
                canonical_resource(url), _default_server_metadata(url), guessed=True, notes=notes
            )
        return AuthorizationServer(
            canonical_resource(url),
            legacy.metadata,
            address=legacy.address,
            notes=(*notes, *legacy.notes),
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
        preferred = _preferred(offered, configured_issuer) or _preferred(offered, token_issuer)
        issuer = preferred or offered[0]
        resource = metadata.resource
        scopes = (
            split_scopes(" ".join(metadata.scopes_supported))
            if metadata.scopes_supported is not None
            else None
        )
    is_configured = configured_issuer is not None and is_same_issuer(configured_issuer, issuer)
    if not is_configured:
        metadata_issuer = None
    if (
        cached is not None
        and is_same_issuer(cached.issuer, issuer)
        and cached.metadata_issuer == metadata_issuer
    ):
        found = FoundMetadata(cached.metadata, cached.address, cached.notes)
    else:
        found = yield from find_server_metadata(
            issuer,
            allow_loopback=is_loopback_url(url),
            metadata_issuer=metadata_issuer,
            cure=_OTHER_ISSUER,
        )
        notes += found.notes
        server = found.metadata
        if metadata_issuer is not None:
            assert configured_issuer is not None
            found = replace(found, metadata=replace(server, issuer=configured_issuer))
        elif server.issuer != issuer:
            note = f"the authorization server {redacted_url(issuer)} calls itself "
            notes += (f"{note}{redacted_url(server.issuer)}: that is its issuer from now on",)
        found = replace(found, notes=notes)
    return AuthorizationServer(
        resource,
        found.metadata,
        scopes,
        location,
        found.address,
        metadata_issuer=metadata_issuer,
        notes=found.notes,
    )


def _preferred(offered: list[str], wanted: str | None) -> str | None:
    """Return the offered issuer that is `wanted`: that spelling if it is there, then the other."""
    if wanted is None or wanted in offered:
        return wanted
    return next((each for each in offered if is_same_issuer(wanted, each)), None)


def is_relative(location: str) -> bool:
    """Return True if a `resource_metadata` isn't an absolute URL. It is then not used at all."""
    try:
        return not urlsplit(location).scheme
    except ValueError:
        return False


def find_resource_metadata(
    url: str, location: str | None
) -> Flow[ProtectedResourceMetadata | None]:
    """Fetch the MCP server's metadata at `url`. Return None if it publishes none.

    The URLs are tried in this order: `location` (from the server's challenge), unless it is
    relative, then the well-known URLs, the most specific first.

    Raises:
        AuthorizationFailed: a document was found that must not be used, or none was found although
            there is a `location`.
    """
    local = is_loopback_url(url)
    usable = location is not None and not is_relative(location)
    if location is not None and usable:
        check_url(location, "the resource_metadata of the MCP server's challenge", local=local)
    search = MetadataSearch("the metadata of the MCP server", allow_loopback=local)
    candidates = resource_metadata_urls(url)
    if location is not None and usable:
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


def find_supported_scopes(url: str) -> Flow[tuple[str, ...] | None]:
    """Return the scopes in the metadata of the MCP server at `url`; None if it publishes none.

    The flow fetches only the well-known URLs at the server's own origin, without a credential.

    Args:
        url: the MCP server's URL.

    Raises:
        AuthorizationFailed: a document was found that must not be used, or a fetch failed.
    """
    metadata = yield from find_resource_metadata(url, None)
    if metadata is None or metadata.scopes_supported is None:
        return None
    return tuple(sorted(split_scopes(" ".join(metadata.scopes_supported))))


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


def _legacy_server_metadata(url: str) -> Flow[FoundMetadata | None]:
    """Fetch the authorization server metadata at the origin of an MCP server of 2025-03-26.

    Return None if the server publishes none. A page isn't that: a server that has one for
    everything unknown has one at the default endpoints too.
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
        if not is_same_issuer(root, metadata.issuer):
            raise AuthorizationFailed(
                f"the MCP server {redacted_url(root)} has the metadata of another authorization "
                f"server, {redacted_url(metadata.issuer)}, "
                "which must not be used. Its administrator has to publish protected-resource "
                "metadata (RFC 9728)."
            )
        return FoundMetadata(metadata, search.address, tuple(search.notes))
    if search.found_invalid or search.found_page:
        raise search.failure()
    return None


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
