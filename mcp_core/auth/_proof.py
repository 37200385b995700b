"""Proofs that a request comes from who got the token (DPoP), the resource server's part: a stolen token alone opens nothing.

Rules of this file:

1. A proof is good for one request: its method, its URL, its token, and this minute. It has an identifier, which is remembered
   for as long as the proof could be good, and is good once.
2. Only whoever has a good token and its key can fill that memory. If it is full, proofs are not refused but cannot be judged
   (503): to forget one would be to accept it again.
3. The key of a proof comes with the proof. It proves something since the token names that key, by its thumbprint, and so that
   is compared first.
4. Nonces, where they are wanted, are made from a key and the time and kept nowhere: any process that has the key knows them.

Source: RFC 9449, sections 4.3, 7, 9 and 11. The client's part is `_dpop.py`.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from mcp_core._jsonrpc import Unreadable, reader
from mcp_core.urls import origin_of, url_fault

from ._grant import VerifierUnavailable
from ._jose import ASYMMETRIC, BadKey, BadToken, base64url, members_of, public_key, read_jws

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BadProof", "NonceWanted", "Proofs", "same_url"]

_WINDOW: Final = 60.0  # seconds that the clock of a client may be off, or a proof be on its way
_NONCE_LIFE: Final = 300  # seconds; a nonce is good for up to twice as long
_REMEMBERED: Final = 100_000
_SHORTEST_KEY: Final = 32
_PURPOSE: Final = b"mcp dpop nonce "

_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class BadProof(BadToken):
    """The token may be good, but the proof that comes with it is not."""


class NonceWanted(BadProof):
    """The proof is good but for its nonce: the client makes another one with the nonce that it is told."""


class _Claims(Struct):
    jti: str
    htm: str
    htu: str
    iat: float
    ath: str
    nonce: str | None = None


_read_claims = reader(_Claims)


class Proofs:
    """The judge of proofs, who knows those that were used. With a `nonce_key`, of 32 bytes or more, proofs need a nonce.

    Raises:
        ValueError: the key is too short.
    """

    __slots__ = ("_nonce_key", "_used")

    def __init__(self, nonce_key: bytes | None = None) -> None:
        if nonce_key is not None and len(nonce_key) < _SHORTEST_KEY:
            raise ValueError(f"the key for nonces has {len(nonce_key)} bytes; {_SHORTEST_KEY} are the least")
        self._nonce_key = nonce_key
        # Digests of the proofs that were used, and until when each could be used again.
        self._used: dict[bytes, float] = {}

    def __repr__(self) -> str:
        return f"<Proofs, {len(self._used)} remembered{', with nonces' if self._nonce_key else ''}>"

    def nonce(self, now: float) -> str | None:
        """The nonce of this time, None if there are none."""
        return None if self._nonce_key is None else self._nonce(self._nonce_key, int(now) // _NONCE_LIFE)

    def check(
        self, proof: str, *, method: str, urls: Iterable[str], token: str, jkt: str, now: float
    ) -> None:
        """A proof by the key `jkt` (its thumbprint) that comes with a `token` to one of `urls`, all of which are this one request's.

        Raises:
            BadProof: it is none.
            VerifierUnavailable: there are so many that it cannot be told.
        """
        claims = self._believed(proof, jkt)
        if claims.htm != method:
            raise BadProof("the proof is for another method (htm)")
        if not any(same_url(claims.htu, url) for url in urls):
            raise BadProof("the proof is for another URL (htu)")
        if not hmac.compare_digest(claims.ath.encode(), base64url(sha256(token.encode()).digest()).encode()):
            raise BadProof("the proof is for another token (ath)")
        if not -_WINDOW <= now - claims.iat <= _WINDOW:
            raise BadProof("the proof is too old, or of the future (iat)")
        if not claims.jti:
            raise BadProof("the proof has no identifier (jti)")
        if self._nonce_key is not None:
            self._check_nonce(self._nonce_key, claims.nonce, now)
        self._use(sha256(f"{jkt} {claims.jti}".encode()).digest(), claims.iat + _WINDOW, now)

    def _believed(self, proof: str, jkt: str) -> _Claims:
        """What the proof says, after its signature was found good."""
        try:
            jws = read_jws(proof, ASYMMETRIC)
            if jws.typ != "dpop+jwt" or jws.jwk is None:
                raise BadProof("it is no proof: its header has not the type dpop+jwt and a jwk")
            key = public_key(jws.jwk)
            if not hmac.compare_digest(key.thumbprint.encode(), jkt.encode()):
                raise BadProof("the token is bound to another key than that of the proof")
            payload = jws.verify(key)
            members_of(payload)
            return _read_claims(payload)
        except BadProof:
            raise
        except BadToken as exc:
            raise BadProof(f"the proof is none: {exc}") from None
        except BadKey as exc:
            raise BadProof(f"the proof has no usable key: {exc}") from None
        except Unreadable:
            raise BadProof("the proof has not the claims jti, htm, htu, iat and ath, each once") from None

    def _check_nonce(self, key: bytes, nonce: str | None, now: float) -> None:
        period = int(now) // _NONCE_LIFE
        given = (nonce or "").encode()
        good = [hmac.compare_digest(given, self._nonce(key, time).encode()) for time in (period, period - 1)]
        if not any(good):
            raise NonceWanted("the proof has not the nonce that this server gives")

    def _nonce(self, key: bytes, period: int) -> str:
        return base64url(hmac.digest(key, _PURPOSE + str(period).encode(), "sha256")[:16])

    def _use(self, digest: bytes, until: float, now: float) -> None:
        used = self._used
        if used.get(digest, now - 1) >= now:
            raise BadProof("the proof was used before (jti)")
        # They are in the order of their coming, which is nearly that of their going.
        while used and used[oldest := next(iter(used))] < now:
            del used[oldest]
        if len(used) >= _REMEMBERED:
            raise VerifierUnavailable("more proofs were used in the last minute than can be remembered")
        used[digest] = until


def same_url(one: str, other: str) -> bool:
    """Whether two URLs are the same but for query and fragment, case of scheme and host, default port, and needless escapes."""
    first = _normal(one)
    return first is not None and first == _normal(other)


def _normal(url: str) -> tuple[tuple[str, str, int], str] | None:
    bare = re.split("[?#]", url, maxsplit=1)[0]
    if url_fault(bare, local=True) is not None:
        return None
    return origin_of(bare), _ESCAPE.sub(_unescaped, urlsplit(bare).path) or "/"


def _unescaped(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()
