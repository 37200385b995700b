"""The metadata of an authorization server: fetched by its issuer, then checked.

1. A 4xx response means that the document isn't there: the next URL is tried. A 5xx, a 429 or no
   response ends the search with an error, because a network fault must not lead to another server
   than the one that was meant.
2. A document that cannot be parsed is skipped. The error names it if no other URL has a valid one.
3. Every URL is checked before it is fetched. At most three redirects are followed, all of them
   within one origin.

`MetadataSearch` also serves the search for protected resource metadata (`client/_discovery.py`).
Sources: 2026-07-28 basic/authorization/authorization-server-discovery, RFC 8414 section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from mcp_core.protocol.revisions._dialects import LATEST
from mcp_core.urls._addresses import find_url_error, same_origin_redirect
from mcp_core.urls._url import redacted_url

from ._errors import AuthorizationFailed, FetchFailed
from ._metadata import AuthorizationServerMetadata, read_server_metadata
from ._resource_urls import check_url, issuer_metadata_urls
from ._steps import Fetch, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from ._steps import Flow

__all__ = ["MetadataSearch", "fetch_server_metadata", "find_server_metadata"]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

_MAX_REDIRECTS: Final = 3

_TOO_MANY_REQUESTS: Final = 429  # HTTP status


def find_server_metadata(
    issuer: str, *, allow_loopback: bool
) -> Flow[tuple[AuthorizationServerMetadata, str | None]]:
    """Fetch the metadata of an authorization server and check the URLs of its endpoints.

    Returns:
        The metadata, and the IP address that it came from; None if that is unknown.

    Raises:
        AuthorizationFailed: it publishes none, or one that names another issuer.
    """
    check_url(issuer, "the authorization server that the MCP server names", local=allow_loopback)
    search = MetadataSearch(
        f"the metadata of the authorization server {redacted_url(issuer)}",
        allow_loopback=allow_loopback,
    )
    for candidate in issuer_metadata_urls(issuer):
        metadata = yield from fetch_server_metadata(search, candidate)
        if metadata is None:
            continue
        # Character by character (RFC 8414 section 3.3).
        if metadata.issuer != issuer:
            raise AuthorizationFailed(
                f"the metadata at {redacted_url(candidate)} is that of another authorization "
                f"server, {redacted_url(metadata.issuer)}: "
                f"it must not be used for {redacted_url(issuer)}. One of the two servers is set up "
                "wrongly, or is malicious."
            )
        return metadata, search.address
    raise search.failure()


def fetch_server_metadata(
    search: MetadataSearch, candidate: str
) -> Flow[AuthorizationServerMetadata | None]:
    """Fetch one candidate. Return None if it has no valid authorization server metadata."""
    body = yield from search.fetch(candidate)
    if body is None:
        return None
    try:
        metadata = read_server_metadata(body)
    except AuthorizationFailed as exc:
        search.add_invalid(candidate, str(exc))
        return None
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
        endpoint = getattr(metadata, name)
        if endpoint is not None:
            check_url(
                endpoint, f"the {name} of the authorization server", local=search.allow_loopback
            )
    # Some servers write an empty string instead of omitting the member.
    return replace(metadata, registration_endpoint=metadata.registration_endpoint or None)


class MetadataSearch:
    """A search for one document at several URLs. It records why each URL failed.

    `address` is the IP address that the last response came from, None if unknown.
    """

    def __init__(self, document: str, *, allow_loopback: bool) -> None:
        self.allow_loopback = allow_loopback
        self.found_invalid = False
        self.address: str | None = None
        self._document = document
        self._failures: list[str] = []

    def fetch(self, url: str) -> Flow[bytes | None]:
        """Fetch `url`. Return the body, or None if the document isn't there.

        Raises:
            AuthorizationFailed: the fetch failed, so it is unknown whether the document is there.
        """
        reply, url = yield from self._fetch_following_redirects(url)
        self.address = reply.address
        if reply.status == 200:
            return reply.body
        if reply.status >= 500 or reply.status == _TOO_MANY_REQUESTS:
            raise AuthorizationFailed(
                f"{self._document} cannot be fetched: {redacted_url(url)} answered {reply.status}. "
                "Try again later."
            )
        self._failures.append(f"{redacted_url(url)} answered {reply.status}")
        return None

    def add_invalid(self, url: str, reason: str) -> None:
        """Record that the document at `url` is invalid."""
        self.found_invalid = True
        self._failures.append(f"{redacted_url(url)}: {reason}")

    def failure(self) -> AuthorizationFailed:
        """Build the exception for a search without a result."""
        return AuthorizationFailed(f"{self._document} was not found: {'; '.join(self._failures)}")

    def _fetch_following_redirects(self, url: str) -> Flow[tuple[HttpResponse, str]]:
        """Fetch `url`, following redirects. Return the response and the URL that it is from."""
        headers = [("accept", "application/json"), ("mcp-protocol-version", LATEST)]
        redirects_left = _MAX_REDIRECTS
        while True:
            try:
                reply: HttpResponse = yield Fetch(HttpRequest("GET", url, headers))
            except FetchFailed as exc:
                raise AuthorizationFailed(
                    f"{self._document} cannot be fetched from {redacted_url(url)}: {exc.reason}"
                ) from exc
            location = reply.header("location") if reply.status in _REDIRECTS else None
            target = same_origin_redirect(url, location) if location else None
            if (
                target is None
                or find_url_error(target, allow_loopback=self.allow_loopback)
                or not redirects_left
            ):
                return reply, url
            redirects_left -= 1
            url = target
