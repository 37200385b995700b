"""Proofs that a request comes from who got the token (DPoP), the client's part.

Rules of this file:

1. A key is made from 32 random bytes, its seed, in base64url. The seed is what is kept beside the tokens, so that a token can
   be used again by the next process; it goes nowhere else.
2. Every proof is made for one request, with an identifier of its own, and is never sent twice: not even after a nonce was asked
   for.
3. A nonce is remembered for the origin that gave it and sent to nobody else.

The algorithm is ES256, which every implementation of RFC 9449 has in practice. Sources: RFC 9449 sections 4, 7.1, 8 and 9.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from mcp_core._jsonrpc import encode
from mcp_core.urls import origin_of

from ._errors import AuthorizationFailed
from ._jose import base64url, new_key, require, sign
from ._secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ALGORITHM", "Prover", "can_sign", "new_seed"]

ALGORITHM: Final = "ES256"
_SEED: Final = 32  # bytes
_MAX_NONCE: Final = 256


def can_sign() -> bool:
    """Whether proofs can be made here at all: joserfc is an extra."""
    try:
        require()
    except ImportError:
        return False
    return True


def new_seed(entropy: Callable[[int], bytes]) -> Secret:
    """What a new key is made of."""
    return Secret(base64url(entropy(_SEED)))


class Prover:
    """Makes proofs with one key; holds the nonces that were asked for. `entropy` and `wall_time` are those of the authorizer."""

    __slots__ = ("_entropy", "_key", "_nonces", "_wall_time", "seed")

    def __init__(
        self, seed: Secret, *, entropy: Callable[[int], bytes], wall_time: Callable[[], float]
    ) -> None:
        """Raises:
        AuthorizationFailed: joserfc is not installed, or the seed is none.
        """
        try:
            raw = urlsafe_b64decode(seed.reveal() + "==")
            if len(raw) != _SEED:
                raise ValueError
            self._key = new_key(lambda size: raw[:size])
        except ImportError as exc:
            raise AuthorizationFailed(f"the MCP server wants tokens that are bound to a key: {exc}") from exc
        except ValueError:
            raise AuthorizationFailed(
                "the key that was kept for the MCP server is none; log in again"
            ) from None
        self.seed = seed
        self._entropy = entropy
        self._wall_time = wall_time
        self._nonces: dict[tuple[str, str, int], str] = {}

    def __repr__(self) -> str:
        return f"<Prover {ALGORITHM}, {len(self._nonces)} nonces>"

    def proof(self, method: str, url: str, token: Secret | None = None) -> str:
        """The value of the header `DPoP` for one request; `token` is the access token sent along."""
        claims: dict[str, object] = {
            "jti": base64url(self._entropy(16)),
            "htm": method,
            "htu": url.partition("?")[0].partition("#")[0],
            "iat": int(self._wall_time()),
        }
        if token is not None:
            claims["ath"] = base64url(sha256(token.reveal().encode()).digest())
        nonce = self._nonces.get(origin_of(url))
        if nonce is not None:
            claims["nonce"] = nonce
        header = {"typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self._key.public_jwk}
        return sign(header, encode(claims), self._key)

    def keep_nonce(self, url: str, nonce: str | None) -> bool:
        """Remember the nonce that the server at `url` gave (header `DPoP-Nonce`); whether it is a new one."""
        if not nonce or len(nonce) > _MAX_NONCE:
            return False
        origin = origin_of(url)
        fresh = self._nonces.get(origin) != nonce
        self._nonces[origin] = nonce
        return fresh
