"""The client's DPoP proofs: a signature over each request with the key that the token is bound to.

1. The key is derived from a seed of 32 random bytes, written in base64url. The seed is stored with
   the tokens, so that the next process can use them; it is sent nowhere.
2. Every proof is for one request, has its own identifier (`jti`), and is never sent twice: a retry
   with a nonce gets a new proof.
3. A nonce is sent only to the origin that issued it.

The algorithm is ES256, which implementations of RFC 9449 support in practice. Sources: RFC 9449,
sections 4, 7.1, 8 and 9.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from mcp_core.auth._errors import AuthorizationFailed
from mcp_core.auth._jose import base64url, new_key, require_joserfc, sign
from mcp_core.auth._secret import Secret
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.urls._addresses import origin_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ALGORITHM", "DpopSigner", "is_dpop_available", "new_seed"]

ALGORITHM: Final = "ES256"
_SEED_SIZE: Final = 32  # bytes
_MAX_NONCE: Final = 256  # characters; a longer nonce is ignored


def is_dpop_available() -> bool:
    """Return True if proofs can be made: joserfc, which is an extra, is installed."""
    try:
        require_joserfc()
    except ImportError:
        return False
    return True


def new_seed(entropy: Callable[[int], bytes]) -> Secret:
    """Return the seed of a new key. `entropy` must return random bytes that are fit for secrets."""
    return Secret(base64url(entropy(_SEED_SIZE)))


class DpopSigner:
    """A signer of DPoP proofs with one key, which also stores each origin's nonces.

    Args:
        seed: as returned by `new_seed`.
        entropy: returns random bytes, for the identifiers of proofs.
        wall_time: returns seconds since 1970, for their timestamps.

    Raises:
        AuthorizationFailed: joserfc isn't installed, or the seed is invalid.
    """

    __slots__ = ("_entropy", "_key", "_nonces", "_wall_time", "seed")

    def __init__(
        self, seed: Secret, *, entropy: Callable[[int], bytes], wall_time: Callable[[], float]
    ) -> None:
        try:
            seed_bytes = urlsafe_b64decode(seed.reveal() + "==")
            if len(seed_bytes) != _SEED_SIZE:
                raise ValueError
            self._key = new_key(lambda size: seed_bytes[:size])
        except ImportError as exc:
            raise AuthorizationFailed(
                f"the MCP server requires tokens that are bound to a key: {exc}"
            ) from exc
        except ValueError:
            raise AuthorizationFailed(
                "the stored DPoP key for the MCP server is invalid; log in again"
            ) from None
        self.seed = seed
        self._entropy = entropy
        self._wall_time = wall_time
        self._nonces: dict[tuple[str, str, int], str] = {}

    def __repr__(self) -> str:
        return f"<DpopSigner {ALGORITHM}, {len(self._nonces)} nonces>"

    def create_proof(self, method: str, url: str, token: Secret | None = None) -> str:
        """Return a new value of the `DPoP` header for one request.

        `token` is the access token of that request.
        """
        claims: dict[str, object] = {
            "jti": base64url(self._entropy(16)),
            "htm": method,
            # Without query and fragment (RFC 9449, section 4.2).
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

    def store_nonce(self, url: str, nonce: str | None) -> bool:
        """Store the `DPoP-Nonce` of a response from `url`. Return True if it is a new value."""
        if not nonce or len(nonce) > _MAX_NONCE:
            return False
        origin = origin_of(url)
        is_new = self._nonces.get(origin) != nonce
        self._nonces[origin] = nonce
        return is_new
