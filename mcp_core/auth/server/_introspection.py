"""Opaque access tokens: the verifier asks the authorization server about each one (RFC 7662).

1. `"active": true` alone isn't enough: audience and times are checked as in any other token. A
   server that issues tokens for several resources reports all of them as active.
2. Only positive results are cached, for some seconds and not beyond the expiry. A revoked token is
   therefore accepted until its cache entry expires.
3. No response, or an unusable one, is `VerifierUnavailable` (503): it says nothing about the token.
4. A stranger can invent any number of tokens. Only some that were never valid are introspected at
   the same time; the others get 503. Tokens that were valid before don't have to wait for that.

The token's length and characters were checked by `OAuthResourceServer`; it has no other format.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, urlencode

from mcp_core.auth._errors import FetchFailed
from mcp_core.auth._jose import InvalidToken, parse_members
from mcp_core.auth._steps import MAX_BODY, Fetch, Flow, HttpRequest, HttpResponse
from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.urls._addresses import find_url_error

from ._grant import Grant, VerifierUnavailable, accepted_audiences, grant_from_claims, read_claims

__all__ = ["IntrospectionVerifier"]

_MAX_CACHED: Final = 10_000  # tokens
# Introspections at once of tokens that were not valid before. Half of what the trio driver fetches
# at once: the other half is for known tokens, and for the keys of other issuers.
_MAX_UNKNOWN: Final = 100


class IntrospectionVerifier:
    """A verifier that asks the issuer about each access token (RFC 7662). See `TokenVerifier`.

    Args:
        issuer: the authorization server. If a response has `iss`, it must be equal, character by
            character.
        audience: what `aud` of a response must contain: the URI of this server, as in
            `OAuthResourceServer`. Several, if there is a reason.
        endpoint: the issuer's introspection endpoint.
        client_id: the identifier of this server at the issuer.
        client_secret: its secret (HTTP Basic, RFC 6749, 2.3.1).
        cache_seconds: the time for which a positive result is cached.
        leeway: the seconds by which clocks may differ.

    Raises:
        ValueError: `endpoint` isn't a URL to which a secret may be sent.
    """

    __slots__ = (
        "_audience",
        "_authorization",
        "_cache",
        "_cache_seconds",
        "_endpoint",
        "_issuer",
        "_leeway",
        "_steps",
        "_unknown",
    )

    fetches: Final = True  # the driver needs an HTTP client

    def __init__(
        self,
        issuer: str,
        audience: str | Iterable[str],
        *,
        endpoint: str,
        client_id: str,
        client_secret: str,
        cache_seconds: float = 30.0,
        leeway: float = 60.0,
    ) -> None:
        fault = find_url_error(endpoint, allow_loopback=True)
        if fault is not None:
            raise ValueError(f"endpoint {fault}")
        self._issuer = issuer
        self._audience = accepted_audiences(audience)
        self._endpoint = endpoint
        # A space becomes %20, not a plus sign: not every server decodes that.
        credentials = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
        self._authorization = "Basic " + b64encode(credentials.encode()).decode()
        self._cache_seconds = cache_seconds
        self._leeway = leeway
        # By digest of the token: its grant, and the time until which the grant is used. After that
        # the entry only tells that the token was valid. Least recently used entries come first.
        self._cache: dict[bytes, tuple[Grant, float]] = {}
        # Introspections in progress, by digest. Flows for the same token yield the same step, which
        # the driver runs once.
        self._steps: dict[bytes, Fetch] = {}
        self._unknown = 0  # of them, those for tokens that aren't in the cache

    def __repr__(self) -> str:
        return f"<IntrospectionVerifier of {self._issuer}, {len(self._cache)} tokens remembered>"

    def verify(self, token: str, now: float) -> Flow[Grant]:
        """Verify an access token, and return its grant: a flow, see `TokenVerifier.verify`."""
        digest = sha256(token.encode()).digest()
        entry = self._cache.get(digest)
        if entry is None:
            claims = yield from self._introspect_unknown(token, digest)
            entry = self._verify_response(claims, now), now + self._cache_seconds
        elif not entry[1] - self._cache_seconds <= now < entry[1]:
            claims = yield from self._introspect(token, digest)
            self._cache.pop(digest, None)
            entry = self._verify_response(claims, now), now + self._cache_seconds
        grant = entry[0]
        self._cache.pop(digest, None)  # to the end
        if grant.valid_until is not None and now >= grant.valid_until:
            raise InvalidToken("the token has expired")
        while len(self._cache) >= _MAX_CACHED:
            del self._cache[next(iter(self._cache))]
        self._cache[digest] = entry
        return grant

    def _introspect_unknown(self, token: str, digest: bytes) -> Flow[dict[str, Any]]:
        """Introspect a token that wasn't valid before, unless there are too many of them."""
        if digest in self._steps:
            return (yield from self._introspect(token, digest))
        if self._unknown >= _MAX_UNKNOWN:
            raise VerifierUnavailable("too many unknown tokens are being introspected")
        self._unknown += 1
        try:
            return (yield from self._introspect(token, digest))
        finally:
            self._unknown -= 1

    def _introspect(self, token: str, digest: bytes) -> Flow[dict[str, Any]]:
        """Send an introspection request and return the response's claims."""
        step = self._steps.get(digest)
        if step is None:
            step = self._steps[digest] = Fetch(self._request(token))
        try:
            reply: HttpResponse = yield step
        except FetchFailed as exc:
            raise VerifierUnavailable(
                f"the token could not be introspected: {exc.reason}"
            ) from None
        finally:
            # Flows that wait for this step have it. The next token needs a new response.
            if self._steps.get(digest) is step:
                del self._steps[digest]
        if reply.status in (401, 403):
            raise VerifierUnavailable(
                "the introspection endpoint does not accept our client_id and client_secret"
            )
        if reply.status != 200:
            raise VerifierUnavailable(
                f"the token could not be introspected: HTTP status {reply.status}"
            )
        try:
            members = parse_members(reply.body) if len(reply.body) <= MAX_BODY else {}
        except InvalidPayload:
            members = {}
        if bytes(members.get("active", b"")) not in (b"true", b"false"):
            raise VerifierUnavailable("the introspection endpoint did not answer as RFC 7662 says")
        return read_claims(reply.body)

    def _request(self, token: str) -> HttpRequest:
        """Build the introspection request (RFC 7662, section 2.1)."""
        headers = [
            ("authorization", self._authorization),
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        ]
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        return HttpRequest("POST", self._endpoint, headers, body)

    def _verify_response(self, claims: Mapping[str, Any], now: float) -> Grant:
        """Check the claims of a response and build the grant."""
        if claims["active"] is not True:
            raise InvalidToken("the token is not active: it is expired, revoked or unknown")
        if claims.get("iss", self._issuer) != self._issuer:
            raise InvalidToken("the token is of another issuer")
        return grant_from_claims(
            claims,
            issuer=self._issuer,
            audience=self._audience,
            now=now,
            leeway=self._leeway,
            require_expiry=False,
        )
