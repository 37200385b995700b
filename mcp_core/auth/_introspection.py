"""Access tokens that mean nothing by themselves: the authorization server is asked what each of them grants (RFC 7662).

Rules of this file:

1. Only `"active": true` is a yes, and then audience and times are checked as in any other token: a server that answers for
   several resources says yes to tokens of the others too.
2. A yes is remembered for some seconds, under a digest of the token, and not beyond its expiry; so a token that is revoked is
   good for as long. A no is not remembered: it costs who sends it as much as us.
3. No answer, or one that makes no sense, is `VerifierUnavailable` (503): it says nothing about the token.

The form of a token is not looked at, but for its length and its characters, which `Guard` has checked.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from mcp_core._jsonrpc import Unreadable
from mcp_core.urls import url_fault

from ._errors import FetchFailed
from ._grant import VerifierUnavailable, audiences, grant_of, read_claims
from ._jose import BadToken, members_of
from ._steps import MAX_BODY, Fetch, HttpRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._grant import Grant
    from ._steps import Flow, HttpReply

__all__ = ["IntrospectionVerifier"]

_REMEMBERED: Final = 10_000


class IntrospectionVerifier:
    """Verifies access tokens by asking their issuer.

    Args:
        issuer: the authorization server. If an answer has `iss`, it is the same to the letter.
        audience: what the answer has to name in `aud`: the URI of this server, as in `Guard`. Several, if there is a reason.
        endpoint: its introspection endpoint.
        client_id: who we are there.
        client_secret: what proves that (HTTP Basic, RFC 6749, 2.3.1).
        remember: seconds for which a yes is good.
        leeway: seconds by which clocks may differ.

    Raises:
        ValueError: `endpoint` is no URL to send a secret to.
    """

    __slots__ = (
        "_audience",
        "_authorization",
        "_endpoint",
        "_issuer",
        "_known",
        "_leeway",
        "_remember",
    )

    def __init__(
        self,
        issuer: str,
        audience: str | Iterable[str],
        *,
        endpoint: str,
        client_id: str,
        client_secret: str,
        remember: float = 30.0,
        leeway: float = 60.0,
    ) -> None:
        fault = url_fault(endpoint, local=True)
        if fault is not None:
            raise ValueError(f"endpoint {fault}")
        self._issuer = issuer
        self._audience = audiences(audience)
        self._endpoint = endpoint
        # A space is %20 and no plus sign: not every server reads that as one.
        credentials = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
        self._authorization = "Basic " + b64encode(credentials.encode()).decode()
        self._remember = remember
        self._leeway = leeway
        # Digest of a token: what it grants, and until when that is believed. The oldest come first.
        self._known: dict[bytes, tuple[Grant, float]] = {}

    def __repr__(self) -> str:
        return f"<IntrospectionVerifier of {self._issuer}, {len(self._known)} tokens remembered>"

    def verify(self, token: str, now: float) -> Flow[Grant]:
        """See `Verifier`."""
        digest = sha256(token.encode()).digest()
        known = self._known.pop(digest, None)
        if known is None or not known[1] - self._remember <= now < known[1]:
            claims = yield from self._ask(token)
            known = self._judge(claims, now), now + self._remember
        grant, until = known
        if grant.good_until is not None and now >= grant.good_until:
            raise BadToken("the token has expired")
        while len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[digest] = grant, until
        return grant

    def _ask(self, token: str) -> Flow[dict[str, Any]]:
        headers = [
            ("authorization", self._authorization),
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        ]
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        try:
            reply: HttpReply = yield Fetch(HttpRequest("POST", self._endpoint, headers, body))
        except FetchFailed as exc:
            raise VerifierUnavailable(f"the token could not be introspected: {exc.reason}") from None
        if reply.status in (401, 403):
            raise VerifierUnavailable(
                "the introspection endpoint does not accept our client_id and client_secret"
            )
        if reply.status != 200:
            raise VerifierUnavailable(f"the token could not be introspected: HTTP status {reply.status}")
        try:
            members = members_of(reply.body) if len(reply.body) <= MAX_BODY else {}
        except Unreadable:
            members = {}
        if bytes(members.get("active", b"")) not in (b"true", b"false"):
            raise VerifierUnavailable("the introspection endpoint did not answer as RFC 7662 says")
        return read_claims(reply.body)

    def _judge(self, claims: Mapping[str, Any], now: float) -> Grant:
        if claims["active"] is not True:
            raise BadToken("the token is not active: it has expired, was revoked, or never was one")
        if claims.get("iss", self._issuer) != self._issuer:
            raise BadToken("the token is of another issuer")
        return grant_of(
            claims,
            issuer=self._issuer,
            audience=self._audience,
            now=now,
            leeway=self._leeway,
            expires=False,
        )
