"""DPoP proofs at the resource server: a stolen token is useless without its key.

1. A proof is valid for one request: one method, one URL, one token, within a minute after its
   timestamp. Its identifier is stored until the proof expires, so that it is accepted only once.
2. Only the owner of a valid token and its key can add to that store (`_dpop_replay.py`). One that
   adds too much harms only itself.
3. Nonces, if required, are computed from a key and the time and not stored. Every process with the
   key accepts them.

Source: RFC 9449, sections 4.3, 7, 9 and 11. The client's part is `client/_dpop_signer.py`.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_core.auth._jose import (
    ASYMMETRIC,
    InvalidKey,
    InvalidToken,
    base64url,
    parse_members,
    public_key,
    read_jws,
)
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.urls._addresses import find_url_error, origin_of

from ._dpop_replay import ReplayCache

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DpopNonceRequired", "DpopVerifier", "InvalidDpopProof", "same_url"]

# Seconds for which a proof is accepted: for the time in transit, and for a client whose clock is
# behind.
_MAX_AGE: Final = 60.0
# Seconds by which a client's clock may be ahead. As in Keycloak: a proof of the future has to
# be stored for longer.
_MAX_AHEAD: Final = 15.0
_NONCE_PERIOD: Final = 300  # seconds; a nonce is accepted for up to twice as long
_MIN_KEY_SIZE: Final = 32  # bytes
# Separates these nonces from other uses of the same key.
_NONCE_CONTEXT: Final = b"mcp dpop nonce "

_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class InvalidDpopProof(InvalidToken):
    """A DPoP proof that isn't valid. The token may be valid."""


class DpopNonceRequired(InvalidDpopProof):
    """A valid proof without a current nonce. The client sends a new one with the server's nonce."""


class _ProofClaims(Struct):
    """The claims of a proof (RFC 9449, section 4.2)."""

    jti: str
    htm: str
    htu: str
    iat: float
    ath: str
    nonce: str | None = None


_read_claims = reader(_ProofClaims)


class DpopVerifier:
    """A verifier of DPoP proofs, which stores the identifiers of used ones.

    With `nonce_key`, of 32 bytes or more, proofs need a nonce.

    Raises:
        ValueError: the key is too short.
    """

    __slots__ = ("_nonce_key", "_used")

    def __init__(self, nonce_key: bytes | None = None) -> None:
        if nonce_key is not None and len(nonce_key) < _MIN_KEY_SIZE:
            raise ValueError(
                f"nonce_key has {len(nonce_key)} bytes; at least {_MIN_KEY_SIZE} are required"
            )
        self._nonce_key = nonce_key
        self._used = ReplayCache(_MAX_AGE)

    def __repr__(self) -> str:
        return (
            f"<DpopVerifier, {len(self._used)} "
            f"remembered{', with nonces' if self._nonce_key else ''}>"
        )

    def nonce(self, now: float) -> str | None:
        """Return the nonce for clients at `now`, or None if none is required."""
        return (
            None
            if self._nonce_key is None
            else self._nonce_of(self._nonce_key, int(now) // _NONCE_PERIOD)
        )

    def verify(
        self,
        proof: str,
        *,
        method: str,
        urls: Iterable[str],
        token: str,
        thumbprint: str,
        principal: str,
        now: float,
    ) -> None:
        """Verify a proof that arrived with `token`, and mark it as used.

        `thumbprint` belongs to the key that the token is bound to, `principal` to the token's
        grant. `urls` are the URLs by which this one request may be known. `now` is in seconds since
        1970.

        Raises:
            InvalidDpopProof: the proof isn't valid, or was used before.
            TooManyProofs: the principal uses too many proofs.
            VerifierUnavailable: there are more clients than proofs can be stored for.
        """
        claims = self._verify_signature(proof, thumbprint)
        if claims.htm != method:
            raise InvalidDpopProof("the proof is for another method (htm)")
        if not any(same_url(claims.htu, url) for url in urls):
            raise InvalidDpopProof("the proof is for another URL (htu)")
        token_hash = base64url(sha256(token.encode()).digest())
        if not hmac.compare_digest(claims.ath.encode(), token_hash.encode()):
            raise InvalidDpopProof("the proof is for another token (ath)")
        if not now - claims.iat <= _MAX_AGE:
            raise InvalidDpopProof("the proof is too old (iat): make one for each request")
        if not claims.iat - now <= _MAX_AHEAD:
            raise InvalidDpopProof("the proof is from the future (iat): check the client's clock")
        if not claims.jti:
            raise InvalidDpopProof("the proof has no identifier (jti)")
        if self._nonce_key is not None:
            self._check_nonce(self._nonce_key, claims.nonce, now)
        digest = sha256(f"{thumbprint} {claims.jti}".encode()).digest()
        if not self._used.add(principal, digest, claims.iat, now):
            raise InvalidDpopProof("the proof was used before (jti)")

    def _verify_signature(self, proof: str, thumbprint: str) -> _ProofClaims:
        """Verify the signature of a proof and return its claims."""
        try:
            jws = read_jws(proof, ASYMMETRIC)
            if jws.typ != "dpop+jwt" or jws.jwk is None:
                raise InvalidDpopProof("the header of the proof needs the type dpop+jwt and a jwk")
            key = public_key(jws.jwk)
            # The key comes with the proof, so it proves nothing unless it is the token's key.
            if not hmac.compare_digest(key.thumbprint.encode(), thumbprint.encode()):
                raise InvalidDpopProof("the token is bound to another key than that of the proof")
            payload = jws.verify(key)
            parse_members(payload)
            return _read_claims(payload)
        except InvalidDpopProof:
            raise
        except InvalidToken as exc:
            raise InvalidDpopProof(f"the proof is not valid: {exc}") from None
        except InvalidKey as exc:
            raise InvalidDpopProof(f"the proof has no usable key: {exc}") from None
        except InvalidPayload:
            raise InvalidDpopProof(
                "the proof needs the claims jti, htm, htu, iat and ath, each once"
            ) from None

    def _check_nonce(self, key: bytes, nonce: str | None, now: float) -> None:
        """Raise `DpopNonceRequired` unless `nonce` is of this period or the one before."""
        period = int(now) // _NONCE_PERIOD
        given = (nonce or "").encode()
        # Compare both in any case: the duration must not reveal which one matched.
        current = hmac.compare_digest(given, self._nonce_of(key, period).encode())
        previous = hmac.compare_digest(given, self._nonce_of(key, period - 1).encode())
        if not (current or previous):
            raise DpopNonceRequired("the proof lacks the current nonce of this server")

    def _nonce_of(self, key: bytes, period: int) -> str:
        """Return the nonce of one period."""
        digest = hmac.digest(key, _NONCE_CONTEXT + str(period).encode(), "sha256")
        return base64url(digest[:16])


def same_url(one: str, other: str) -> bool:
    """Return True if two URLs are equal after normalization.

    Ignored are query, fragment, case of scheme and host, default ports and needless escapes.
    """
    first = _normalize(one)
    return first is not None and first == _normalize(other)


def _normalize(url: str) -> tuple[tuple[str, str, int], str] | None:
    """Return the normalized origin and path of a URL, or None if it isn't valid."""
    bare = re.split("[?#]", url, maxsplit=1)[0]
    if find_url_error(bare, allow_loopback=True) is not None:
        return None
    return origin_of(bare), _ESCAPE.sub(_decode_unreserved, urlsplit(bare).path) or "/"


def _decode_unreserved(match: re.Match[str]) -> str:
    """Decode an escape of an unreserved character (RFC 3986, 6.2.2.2). Keep any other."""
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()
