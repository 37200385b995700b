"""The metadata of an authorization server: fetched by its issuer, then checked.

1. A 4xx response means that the document isn't there: the next URL is tried. A 5xx, a 429 or no
   response ends the search with an error, because a network fault must not lead to another server
   than the one that was meant.
2. A body that isn't JSON, such as a page for everything unknown, isn't the document either: the
   next URL is tried. JSON that isn't valid metadata was found: it is skipped, and the error names
   it if no other URL has a valid one.
3. Every URL is checked before it is fetched. At most three redirects are followed, all of them
   within one origin.

`MetadataSearch` also serves the search for protected resource metadata (`client/_discovery.py`).
Sources: 2026-07-28 basic/authorization/authorization-server-discovery, RFC 8414 section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_core.protocol.revisions._dialects import LATEST
from mcp_core.urls._addresses import find_url_error, same_origin_redirect
from mcp_core.urls._url import redacted_url

from ._errors import AuthorizationFailed, FetchFailed
from ._metadata import AuthorizationServerMetadata, is_json, read_server_metadata
from ._resource_urls import check_url, is_same_issuer, issuer_metadata_urls
from ._steps import MAX_BODY, Fetch, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from ._steps import Flow

__all__ = ["FoundMetadata", "MetadataSearch", "fetch_server_metadata", "find_server_metadata"]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

_MAX_REDIRECTS: Final = 3

_TOO_MANY_REQUESTS: Final = 429  # HTTP status


class FoundMetadata(Struct, frozen=True):
    """The metadata of an authorization server, as it was found.

    `address` is the IP address that it came from, None if unknown. `notes` say what was ignored.
    """

    metadata: AuthorizationServerMetadata
    address: str | None = None
    notes: tuple[str, ...] = ()


def find_server_metadata(
    issuer: str,
    *,
    allow_loopback: bool,
    metadata_issuer: str | None = None,
    cure: str = "",
) -> Flow[FoundMetadata]:
    """Fetch the metadata of an authorization server and check the URLs of its endpoints.

    The `issuer` in the metadata has to be `issuer`, or its other spelling if it is a bare origin
    (`issuer_spellings`). With `metadata_issuer` it has to be that, and nothing else. `cure` is the
    error's last sentence for another one.

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
        if metadata_issuer is not None:
            if metadata.issuer != metadata_issuer:
                raise AuthorizationFailed(
                    f"the metadata at {redacted_url(candidate)} has the issuer "
                    f"{redacted_url(metadata.issuer)}, and metadata_issuer of the profile is "
                    f"{redacted_url(metadata_issuer)}: it is not used."
                )
        elif not is_same_issuer(issuer, metadata.issuer):
            raise AuthorizationFailed(
                f"the metadata at {redacted_url(candidate)} is that of another authorization "
                f"server, {redacted_url(metadata.issuer)}: "
                f"it must not be used for {redacted_url(issuer)}. One of the two servers is set up "
                f"wrongly, or is malicious.{cure}"
            )
        return FoundMetadata(metadata, search.address, tuple(search.notes))
    raise search.failure()


def fetch_server_metadata(
    search: MetadataSearch, candidate: str
) -> Flow[AuthorizationServerMetadata | None]:
    """Fetch one candidate. Return None if it has no valid authorization server metadata."""
    body = yield from search.fetch(candidate)
    if body is None:
        return None
    try:
        metadata, ignored = read_server_metadata(body)
    except AuthorizationFailed as exc:
        search.add_invalid(candidate, str(exc))
        return None
    if ignored:
        search.notes.append(
            f"the metadata at {redacted_url(candidate)} has members that cannot be read, and are "
            f"ignored: {', '.join(ignored)}"
        )
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

    `address` is the IP address that the last response came from, None if unknown. `found_invalid`
    is True if a URL had JSON that isn't the document, `found_page` if one had no JSON. `notes` say
    what was ignored in what was found.
    """

    def __init__(self, document: str, *, allow_loopback: bool) -> None:
        self.allow_loopback = allow_loopback
        self.found_invalid = False
        self.found_page = False
        self.notes: list[str] = []
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
            if len(reply.body) > MAX_BODY or is_json(reply.body):
                return reply.body
            self.found_page = True
            self._failures.append(f"{redacted_url(url)} has no JSON")
            return None
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
