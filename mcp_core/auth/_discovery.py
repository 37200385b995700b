"""From a refused request to the authorization server that can help: two documents, each looked for in several places.

Rules of this file:

1. The metadata of the MCP server is looked for where its challenge says, then at the well-known places, the most specific
   first. It counts only if its `resource` covers the URL that we talk to; if it does not, somebody wants a token for another
   server, and nothing more is asked.
2. The metadata of the authorization server counts only if its `issuer` is, character by character, the one it was looked for.
3. A place that answers 4xx has nothing: the next one is tried. A place that fails (5xx, 429, no answer) is a failure, or else
   a fault of the network would lead to other places than the server wants. What cannot be read is passed over, and told at
   the end if nothing was found.
4. A server that shows no sign of metadata at all is one of revision 2025-03-26: its own origin is the authorization server,
   with the endpoints of its metadata or, without any, `/authorize`, `/token` and `/register`.
5. Every URL is judged before it is fetched. At most three redirects are followed, and never to another origin.

Sources: 2026-07-28 basic/authorization/authorization-server-discovery, RFC 9728 sections 3 and 5, RFC 8414 section 3; for rule 4
2025-03-26 basic/authorization (Server Metadata Discovery, Fallbacks for Servers without Metadata Discovery).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_core._dialects import LATEST
from mcp_core.urls import is_local, root_of, same_origin_redirect, url_fault

from ._challenge import Demand, split_scopes
from ._errors import AuthorizationFailed, FetchFailed
from ._metadata import ResourceMetadata, ServerMetadata, read_resource_metadata, read_server_metadata
from ._steps import Fetch, HttpReply, HttpRequest
from ._urls import canonical_resource, check_url, covers, issuer_metadata_urls, resource_metadata_urls, shown

if TYPE_CHECKING:
    from ._steps import Flow

__all__ = ["Authority", "find_authority", "find_resource", "find_server"]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS: Final = 3
_OVERLOADED: Final = 429


class Authority(Struct, frozen=True):
    """Who gives tokens for an MCP server, and under which name the server is known there.

    `resource` is sent as it is; `scopes` are those that the server publishes, None if it publishes none; `metadata_url` is
    where its challenge said that its metadata is. `guessed` if there was no document at all.
    """

    resource: str
    server: ServerMetadata
    scopes: tuple[str, ...] | None = None
    metadata_url: str | None = None
    guessed: bool = False

    @property
    def issuer(self) -> str:
        return self.server.issuer


def find_authority(
    url: str,
    demand: Demand,
    *,
    preset: str | None = None,
    held: str | None = None,
    known: Authority | None = None,
) -> Flow[Authority]:
    """The authorization server for the MCP server at `url`.

    If the server offers several, the issuer `preset` is taken, or else `held`, from which there are tokens, or else the first;
    `preset` also if the server tells of none. The metadata of the authorization server is taken from `known` if it is still
    the same one.

    Raises:
        AuthorizationFailed: there is none that may be used.
    """
    local = is_local(url)
    metadata = yield from find_resource(url, demand.resource_metadata)
    if metadata is None and preset is None:
        old = yield from _old_server(url)
        return Authority(canonical_resource(url), old or _guess(url), guessed=old is None)
    if metadata is None:
        assert preset is not None
        issuer, resource, scopes = preset, canonical_resource(url), None
    else:
        offered = metadata.authorization_servers or []
        if not offered:
            raise AuthorizationFailed(
                "the metadata of the MCP server names no authorization server. Its administrator has to add one."
            )
        issuer = next((wanted for wanted in (preset, held) if wanted in offered), None) or offered[0]
        resource = metadata.resource
        scopes = (
            split_scopes(" ".join(metadata.scopes_supported))
            if metadata.scopes_supported is not None
            else None
        )
    if known is not None and known.issuer == issuer:
        server = known.server
    else:
        server = yield from find_server(issuer, local=local)
    return Authority(resource, server, scopes, demand.resource_metadata)


def find_resource(url: str, place: str | None) -> Flow[ResourceMetadata | None]:
    """The metadata of the MCP server at `url`; `place` is where its challenge says it is. None if there is no sign of any.

    Raises:
        AuthorizationFailed: there was something, and it may not be used.
    """
    local = is_local(url)
    if place is not None:
        check_url(place, "the resource_metadata of the MCP server's challenge", local=local)
    search = _Search("the metadata of the MCP server", local=local)
    for candidate in dict.fromkeys(([place] if place else []) + resource_metadata_urls(url)):
        body = yield from search.look(candidate)
        if body is None:
            continue
        try:
            metadata = read_resource_metadata(body)
        except AuthorizationFailed as exc:
            search.miss(candidate, str(exc))
            continue
        if url_fault(metadata.resource, local=local) or not covers(metadata.resource, url):
            raise AuthorizationFailed(
                f"the metadata at {shown(candidate)} is that of another resource, {shown(metadata.resource)}: a token for "
                f"it must not be asked for. The MCP server is {shown(url)}; its administrator has to correct the metadata."
            )
        return metadata
    if place is not None or search.unreadable:
        raise search.failure()
    return None


def find_server(issuer: str, *, local: bool) -> Flow[ServerMetadata]:
    """The metadata of an authorization server; all its endpoints may be used.

    Raises:
        AuthorizationFailed: it has none, or not its own.
    """
    check_url(issuer, "the authorization server that the MCP server names", local=local)
    search = _Search(f"the metadata of the authorization server {shown(issuer)}", local=local)
    for candidate in issuer_metadata_urls(issuer):
        metadata = yield from _server_metadata(search, candidate)
        if metadata is None:
            continue
        if metadata.issuer != issuer:
            raise AuthorizationFailed(
                f"the metadata at {shown(candidate)} is that of another authorization server, {shown(metadata.issuer)}: "
                f"it must not be used for {shown(issuer)}. One of the two servers is set up wrongly, or is not honest."
            )
        return metadata
    raise search.failure()


def _old_server(url: str) -> Flow[ServerMetadata | None]:
    """What a server of 2025-03-26 publishes on its own origin."""
    root = root_of(url)
    search = _Search("the metadata of the authorization server", local=is_local(url))
    metadata = yield from _server_metadata(search, f"{root}/.well-known/oauth-authorization-server")
    if metadata is not None:
        # Its authors wrote the origin with and without a slash; RFC 8414 forbids any other issuer there.
        if metadata.issuer.removesuffix("/") != root:
            raise AuthorizationFailed(
                f"the MCP server {shown(root)} has the metadata of another authorization server, {shown(metadata.issuer)}, "
                "which must not be used. Its administrator has to publish protected-resource metadata (RFC 9728)."
            )
        return metadata
    if search.unreadable:
        raise search.failure()
    return None


def _guess(url: str) -> ServerMetadata:
    """What a server of 2025-03-26 has that publishes nothing."""
    root = root_of(url)
    return ServerMetadata(
        issuer=root,
        authorization_endpoint=f"{root}/authorize",
        token_endpoint=f"{root}/token",
        registration_endpoint=f"{root}/register",
        # That revision demands PKCE of everybody and knows no other way to say so.
        code_challenge_methods_supported=["S256"],
        token_endpoint_auth_methods_supported=["none"],
    )


def _server_metadata(search: _Search, candidate: str) -> Flow[ServerMetadata | None]:
    body = yield from search.look(candidate)
    if body is None:
        return None
    try:
        metadata = read_server_metadata(body)
    except AuthorizationFailed as exc:
        search.miss(candidate, str(exc))
        return None
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
        endpoint = getattr(metadata, name)
        if endpoint is not None:
            check_url(endpoint, f"the {name} of the authorization server", local=search.local)
    # None and empty say the same.
    return replace(metadata, registration_endpoint=metadata.registration_endpoint or None)


class _Search:
    """A search for a document: what was tried, and what came of it."""

    def __init__(self, what: str, *, local: bool) -> None:
        self.local = local
        self.unreadable = False
        self._what = what
        self._tried: list[str] = []

    def look(self, url: str) -> Flow[bytes | None]:
        """What is at `url`, None if nothing.

        Raises:
            AuthorizationFailed: nobody can say.
        """
        reply, url = yield from self._get(url)
        if reply.status == 200:
            return reply.body
        if reply.status >= 500 or reply.status == _OVERLOADED:
            raise AuthorizationFailed(
                f"{self._what} cannot be had: {shown(url)} answered {reply.status}. Try again later."
            )
        self._tried.append(f"{shown(url)} answered {reply.status}")
        return None

    def miss(self, url: str, reason: str) -> None:
        """There was something at `url`, but not what is looked for."""
        self.unreadable = True
        self._tried.append(f"{shown(url)}: {reason}")

    def failure(self) -> AuthorizationFailed:
        return AuthorizationFailed(f"{self._what} was not found: {'; '.join(self._tried)}")

    def _get(self, url: str) -> Flow[tuple[HttpReply, str]]:
        headers = [("accept", "application/json"), ("mcp-protocol-version", LATEST)]
        left = _MAX_REDIRECTS
        while True:
            try:
                reply: HttpReply = yield Fetch(HttpRequest("GET", url, headers))
            except FetchFailed as exc:
                raise AuthorizationFailed(
                    f"{self._what} cannot be had from {shown(url)}: {exc.reason}"
                ) from exc
            location = reply.header("location") if reply.status in _REDIRECTS else None
            target = same_origin_redirect(url, location) if location else None
            if target is None or url_fault(target, local=self.local) or not left:
                return reply, url
            left -= 1
            url = target
