"""Access tokens that are JWTs, signed by the authorization server.

1. The signature is verified before any claim is read.
2. ID tokens, logout tokens and DPoP proofs are rejected as far as they can be recognized (RFC 8725,
   3.11; RFC 9068, 4).
3. Either a shared secret or public keys are configured. No token chooses between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_core.auth._jose import (
    ASYMMETRIC,
    SYMMETRIC,
    InvalidToken,
    load_keys,
    read_jws,
    require_joserfc,
    secret_key,
)
from mcp_core.auth._steps import Flow
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.urls._addresses import find_url_error

from ._grant import Grant, accepted_audiences, grant_from_claims, read_claims
from ._jwks import RemoteKeys, StaticKeys

__all__ = ["JwtVerifier"]

# Accepted values of `typ`. RFC 9068 requires the first; most servers write the second, or none.
_TYPES: Final = frozenset({"at+jwt", "jwt"})
# Claims of ID tokens and logout tokens, which access tokens never have.
_FOREIGN_CLAIMS: Final = ("nonce", "at_hash", "c_hash", "s_hash", "events")
# Values with which two widespread servers mark other kinds of tokens, in claims of their own.
_FOREIGN_VALUES: Final = {
    "token_use": frozenset({"id"}),
    "typ": frozenset({"ID", "Refresh", "Offline", "Logout"}),
}
_WRONG_KIND: Final = "this kind of token is not an access token"


class JwtVerifier:
    """A verifier for access tokens that are JWTs of `issuer` (RFC 7519, 9068). See `TokenVerifier`.

    The public keys are `jwks`, or those at `jwks_uri`. Without both, the issuer's metadata names
    their URL (RFC 8414). They are fetched for the first token, and again after an hour. A token
    with an unknown key causes a fetch too, but at most one in half a minute on average. Until the
    next one is allowed, such tokens get 503 with `Retry-After`.

    Args:
        issuer: the authorization server, as its tokens name it in `iss`. Compared character by
            character. If its metadata is fetched, and has it with another slash at the end of a
            bare origin, `iss` has to be as there.
        audience: what `aud` of a token must contain: the URI of this server, as in
            `OAuthResourceServer`. Several, if there is a reason.
        jwks_uri: the URL at which the issuer publishes its keys.
        jwks: the keys, as a JWK Set, if they are not to be fetched.
        secret: instead of public keys, 32 bytes or more that only the issuer knows too. Tokens are
            then signed with HS256, HS384 or HS512; without it never.
        algorithms: the accepted algorithms. Default: all of RS*, PS*, ES*, EdDSA; with a secret,
            all of HS*.
        leeway: the seconds by which clocks may differ.
        client_ids: for issuers whose access tokens have no audience, such as Amazon Cognito: a
            token without `aud` whose `token_use` is `access` is accepted if its `client_id` is one
            of these. All servers that list a client accept its tokens. None: every token needs
            `aud`.

    Raises:
        ValueError: there are several sources of keys, the keys are invalid, or an algorithm does
            not go with them; or `client_ids` is a text, or has an empty one.
        ImportError: joserfc isn't installed: pip install 'mcp-trio[auth]'.
    """

    __slots__ = ("_algorithms", "_audience", "_client_ids", "_issuer", "_keys", "_leeway")

    def __init__(
        self,
        issuer: str,
        audience: str | Iterable[str],
        *,
        jwks_uri: str | None = None,
        jwks: Mapping[str, Any] | bytes | None = None,
        secret: bytes | None = None,
        algorithms: Iterable[str] | None = None,
        leeway: float = 60.0,
        client_ids: Iterable[str] | None = None,
    ) -> None:
        if sum(source is not None for source in (jwks_uri, jwks, secret)) > 1:
            raise ValueError("give one of jwks_uri, jwks and secret")
        possible = ASYMMETRIC if secret is None else SYMMETRIC
        self._algorithms = possible if algorithms is None else frozenset(algorithms)
        if not self._algorithms or not self._algorithms <= possible:
            raise ValueError(f"algorithms must be some of {', '.join(sorted(possible))}")
        self._issuer = issuer
        self._audience = accepted_audiences(audience)
        self._leeway = leeway
        if isinstance(client_ids, str):
            raise ValueError("client_ids is a list: write [...] around the id")
        self._client_ids = frozenset(client_ids or ())
        if "" in self._client_ids:
            raise ValueError("client_ids has an empty id")
        self._keys: StaticKeys | RemoteKeys
        if secret is not None:
            self._keys = StaticKeys([secret_key(secret)])
        elif jwks is not None:
            keys = load_keys(jwks if isinstance(jwks, bytes) else encode(jwks))
            if not keys:
                raise ValueError("jwks has no public signature key of a supported kind")
            self._keys = StaticKeys(keys)
        else:
            require_joserfc()
            fault = find_url_error(jwks_uri or issuer, allow_loopback=True)
            if fault is not None:
                raise ValueError(f"{'issuer' if jwks_uri is None else 'jwks_uri'} {fault}")
            self._keys = RemoteKeys(issuer, jwks_uri)

    @property
    def fetches(self) -> bool:
        """True if the keys are fetched, so that the driver needs an HTTP client."""
        return isinstance(self._keys, RemoteKeys)

    def __repr__(self) -> str:
        return f"<JwtVerifier of {self._issuer}, {self._keys!r}>"

    def verify(self, token: str, now: float) -> Flow[Grant]:
        """Verify an access token, and return its grant: a flow, see `TokenVerifier.verify`."""
        jws = read_jws(token, self._algorithms)
        kind = (jws.typ or "jwt").lower().removeprefix("application/")
        if kind not in _TYPES:
            raise InvalidToken(_WRONG_KIND)
        key = yield from self._keys.find_key(jws, now)
        claims = read_claims(jws.verify(key))
        if claims.get("iss") != (self._keys.issuer or self._issuer):
            raise InvalidToken("the token is of another issuer")
        # `at+jwt` already says that it is an access token.
        if kind != "at+jwt" and _is_other_token_type(claims):
            raise InvalidToken(_WRONG_KIND)
        return grant_from_claims(
            claims,
            issuer=self._issuer,
            audience=self._audience,
            client_ids=self._client_ids,
            now=now,
            leeway=self._leeway,
            require_expiry=True,
        )


def _is_other_token_type(claims: Mapping[str, Any]) -> bool:
    """Return True if the claims belong to an ID token, logout token or refresh token."""
    return any(name in claims for name in _FOREIGN_CLAIMS) or any(
        isinstance(claims.get(name), str) and claims[name] in kinds
        for name, kinds in _FOREIGN_VALUES.items()
    )
