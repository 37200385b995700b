"""Access tokens that are JWTs: signed by the authorization server, for us, and not for long.

Rules of this file:

1. First who signed, then what is said: before the signature is right no claim is looked at.
2. An ID token, a logout token or a DPoP proof is no access token, as far as can be told (RFC 8725, 3.11; RFC 9068, 4).
3. A secret is used if one was given, and then nothing else is: no token chooses between both.

It refuses to know which scopes are needed: that a good token allows too little is another answer (`_guard.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core._jsonrpc import encode
from mcp_core.urls import url_fault

from ._grant import audiences, grant_of, read_claims
from ._jose import ASYMMETRIC, SYMMETRIC, BadToken, load_keys, read_jws, require, secret_key
from ._jwks import GivenKeys, PublishedKeys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._grant import Grant
    from ._steps import Flow

__all__ = ["JwtVerifier"]

# RFC 9068 wants the first; most servers write the second, or nothing.
_TYPES: Final = frozenset({"at+jwt", "jwt"})
# An ID token is for the client that asked for it. These claims stand in no access token ...
_OF_OTHERS: Final = ("nonce", "at_hash", "c_hash", "s_hash", "events")
# ... and two widespread servers tell their tokens apart in claims of their own.
_KINDS: Final = {"token_use": frozenset({"id"}), "typ": frozenset({"ID", "Refresh", "Offline", "Logout"})}
_OTHER_KIND: Final = "this kind of token is no access token"


class JwtVerifier:
    """Verifies access tokens that are JWTs of `issuer` (RFC 7519, 9068). See `Verifier`.

    Its public keys are at `jwks_uri`, or `jwks` itself, or, without both, where the metadata of the issuer says (RFC 8414). They
    are fetched when the first token comes, and again after an hour, and when a token names another key: then once in five
    minutes at most.

    Args:
        issuer: the authorization server, as it writes itself into `iss`; compared to the letter.
        audience: what a token has to name in `aud`: the URI of this server, as in `Guard`. Several, if there is a reason.
        jwks_uri: where the issuer publishes its keys.
        jwks: the keys, as a JWK Set, if they are not to be fetched.
        secret: instead of them, 32 bytes or more that only the issuer knows too; then tokens are signed by HS256, HS384 or
            HS512, and else never.
        algorithms: fewer than all of RS*, PS*, ES*, EdDSA; or, with a secret, HS*.
        leeway: seconds by which clocks may differ.

    Raises:
        ValueError: several sources of keys, keys that are none, or an algorithm that does not go with them.
        ImportError: joserfc is not installed: pip install 'mcp-trio[auth]'.
    """

    __slots__ = ("_algorithms", "_audience", "_issuer", "_keys", "_leeway")

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
    ) -> None:
        if sum(source is not None for source in (jwks_uri, jwks, secret)) > 1:
            raise ValueError("give one of jwks_uri, jwks and secret")
        possible = ASYMMETRIC if secret is None else SYMMETRIC
        self._algorithms = possible if algorithms is None else frozenset(algorithms)
        if not self._algorithms or not self._algorithms <= possible:
            raise ValueError(f"algorithms are some of {', '.join(sorted(possible))}")
        self._issuer = issuer
        self._audience = audiences(audience)
        self._leeway = leeway
        self._keys: GivenKeys | PublishedKeys
        if secret is not None:
            self._keys = GivenKeys([secret_key(secret)])
        elif jwks is not None:
            keys = load_keys(jwks if isinstance(jwks, bytes) else encode(jwks))
            if not keys:
                raise ValueError("jwks has no public key for signatures of a kind that is used here")
            self._keys = GivenKeys(keys)
        else:
            require()
            fault = url_fault(jwks_uri or issuer, local=True)
            if fault is not None:
                raise ValueError(f"{'issuer' if jwks_uri is None else 'jwks_uri'} {fault}")
            self._keys = PublishedKeys(issuer, jwks_uri)

    def __repr__(self) -> str:
        return f"<JwtVerifier of {self._issuer}, {self._keys!r}>"

    def verify(self, token: str, now: float) -> Flow[Grant]:
        """See `Verifier`."""
        jws = read_jws(token, self._algorithms)
        kind = (jws.typ or "jwt").lower().removeprefix("application/")
        if kind not in _TYPES:
            raise BadToken(_OTHER_KIND)
        key = yield from self._keys.find(jws, now)
        claims = read_claims(jws.verify(key))
        if claims.get("iss") != self._issuer:
            raise BadToken("the token is of another issuer")
        if kind != "at+jwt" and _is_of_another_kind(claims):
            raise BadToken(_OTHER_KIND)
        return grant_of(
            claims,
            issuer=self._issuer,
            audience=self._audience,
            now=now,
            leeway=self._leeway,
            expires=True,
        )


def _is_of_another_kind(claims: Mapping[str, Any]) -> bool:
    return any(name in claims for name in _OF_OTHERS) or any(
        isinstance(claims.get(name), str) and claims[name] in kinds for name, kinds in _KINDS.items()
    )
