"""Signed tokens (JWS): parse and verify others' tokens, sign our own.

1. The algorithm must be on our list, and the key must be of its kind. A public key can therefore
   never serve as a shared secret, and `none` isn't an algorithm.
2. Every token has one encoding: base64url without padding or loose bits, each member once.
   Extensions (`crit`, `b64`), encryption (JWE) and compression (`zip`) are rejected.
3. No text of an exception contains a part of a token or a key.

Only this module imports joserfc, and uses it for keys and signatures only: what a token may look
like must not depend on the version of a library. Claims and times aren't checked here. Sources:
RFC 7515, 7517, 7518, 7638, 8037, 8725, 9864.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from mcp_core._errors import McpTrioError
from mcp_core._nesting import depth_exceeds
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from joserfc.jwk import Key as JoseKey
    from joserfc.jws import JWSRegistry

__all__ = [
    "ASYMMETRIC",
    "MAX_TOKEN",
    "SYMMETRIC",
    "InvalidKey",
    "InvalidToken",
    "Jws",
    "Key",
    "base64url",
    "load_keys",
    "new_key",
    "parse_members",
    "private_key",
    "public_key",
    "read_jws",
    "require_joserfc",
    "secret_key",
    "sign",
]

MAX_TOKEN: Final = 16 * 1024  # characters; more than most servers accept in an HTTP header
MAX_KEYS: Final = 50
_MIN_RSA_BITS: Final = 2048  # bits; NIST SP 800-131A
# The work for one signature grows with its square, and the key may be an attacker's.
_MAX_RSA_BITS: Final = 8192
_MAX_RSA_EXPONENT: Final = 2**32

# The kinds of key of each algorithm. A secret is never shorter than the digest (RFC 7518, 3.2).
_ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {
    "RS256": ("RSA",),
    "RS384": ("RSA",),
    "RS512": ("RSA",),
    "PS256": ("RSA",),
    "PS384": ("RSA",),
    "PS512": ("RSA",),
    "ES256": ("P-256",),
    "ES384": ("P-384",),
    "ES512": ("P-521",),
    "EdDSA": ("Ed25519", "Ed448"),
    "Ed25519": ("Ed25519",),
    "HS256": ("oct256", "oct384", "oct512"),
    "HS384": ("oct384", "oct512"),
    "HS512": ("oct512",),
}
SYMMETRIC: Final = frozenset(name for name in _ALGORITHMS if name.startswith("HS"))
ASYMMETRIC: Final = frozenset(_ALGORITHMS) - SYMMETRIC
# Key type and coordinate size in bytes of each curve.
_CURVES: Final = {
    "P-256": ("EC", 32),
    "P-384": ("EC", 48),
    "P-521": ("EC", 66),
    "Ed25519": ("OKP", 32),
    "Ed448": ("OKP", 57),
}
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")


class InvalidToken(McpTrioError):
    """A token, or DPoP proof, that isn't valid.

    The text says why, and is sent to the client and logged: it must not contain any part of the
    token. A verifier of your own raises this exception to reject a token.
    """


class InvalidKey(McpTrioError, ValueError):
    """A key that isn't valid or not supported.

    The text says why, and must not contain any part of the key.
    """


class _Header(Struct):
    """The header parameters of a JWS that are read.

    Unknown ones are ignored (RFC 7515, section 4). So are `jku`, `x5u` and `x5c`: a token can
    neither bring its key nor name where to fetch it. Only for a DPoP proof
    `server/_dpop_verifier.py` reads `jwk`.
    """

    alg: str
    kid: str | None = None
    typ: str | None = None
    jwk: Raw | UnsetType = UNSET
    crit: Raw | UnsetType = UNSET
    b64: Raw | UnsetType = UNSET
    enc: Raw | UnsetType = UNSET
    zip: Raw | UnsetType = UNSET


class _Jwk(Struct):
    """The members of a key that are read (RFC 7517, section 4; RFC 7518, section 6)."""

    kty: str
    kid: str | None = None
    use: str | None = None
    alg: str | None = None
    key_ops: list[str] | None = None
    crv: str = ""
    x: str = ""
    y: str = ""
    n: str = ""
    e: str = ""
    d: Raw | UnsetType = UNSET


class _KeySet(Struct):
    """A JWK Set (RFC 7517, section 5)."""

    keys: list[Raw]


_read_members = reader(dict[str, Raw])
_read_any = reader(Any)
_read_header = reader(_Header)
_read_jwk = reader(_Jwk)
_read_key_set = reader(_KeySet)


class Key:
    """A key to verify or sign with. The functions of this module create it.

    `kid` is its name in a key set, `kind` a curve, "RSA", or "oct" with a size in bits. The repr
    shows the kind only.
    """

    __slots__ = ("_alg", "_key", "kid", "kind")

    def __init__(
        self, key: JoseKey, kind: str, kid: str | None = None, alg: str | None = None
    ) -> None:
        self._key = key
        self._alg = alg
        self.kind = kind
        self.kid = kid

    def __repr__(self) -> str:
        return f"<Key {self.kind}>"

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms that the key supports, the most common first."""
        return tuple(name for name in _ALGORITHMS if self.supports(name))

    @property
    def public_jwk(self) -> dict[str, str]:
        """The public key as a JWK, with only the members that RFC 7638 requires."""
        members = ("crv", "kty", "x", "y") if self.kind in _CURVES else ("e", "kty", "n")
        known = self._key.as_dict(private=False)
        return {name: str(known[name]) for name in members if name in known}

    @property
    def thumbprint(self) -> str:
        """The key's SHA-256 thumbprint (RFC 7638), in base64url."""
        return self._key.thumbprint()

    def supports(self, algorithm: str) -> bool:
        """Return True if the key supports `algorithm`."""
        return self.kind in _ALGORITHMS.get(algorithm, ()) and self._alg in (None, algorithm)


class Jws:
    """A parsed token whose signature isn't verified yet.

    `alg`, `kid`, `typ` and `jwk` (encoded JSON) are from its header.
    """

    __slots__ = ("_payload", "_signature", "_signed", "alg", "jwk", "kid", "typ")

    def __init__(self, header: _Header, signed: str, payload: bytes, signature: bytes) -> None:
        self.alg = header.alg
        self.kid = header.kid
        self.typ = header.typ
        self.jwk = None if header.jwk is UNSET else bytes(header.jwk)
        self._signed = signed
        self._payload = payload
        self._signature = signature

    def __repr__(self) -> str:
        return f"<Jws, {len(self._payload)} bytes>"

    def verify(self, key: Key) -> bytes:
        """Verify the signature with `key` and return the payload.

        Raises:
            InvalidToken: the signature is wrong, or the key doesn't support the algorithm.
        """
        if not key.supports(self.alg):
            raise InvalidToken("the token's algorithm and its key do not belong together")
        algorithm = require_joserfc().algorithms[_joserfc_name(self.alg, key)]
        if not algorithm.verify(self._signed.encode(), self._signature, key._key):
            raise InvalidToken("the signature of the token is wrong")
        return self._payload


def read_jws(token: str, algorithms: Collection[str]) -> Jws:
    """Parse a token (JWS compact serialization) that names one of `algorithms`.

    Call `Jws.verify` next: nothing is verified yet.

    Raises:
        InvalidToken: the token is malformed, or its algorithm isn't one of `algorithms`.
    """
    if len(token) > MAX_TOKEN:
        raise InvalidToken(f"the token is longer than {MAX_TOKEN} characters")
    parts = token.split(".")
    if len(parts) == 5:
        raise InvalidToken("the token is encrypted (JWE): only signed tokens are accepted")
    if len(parts) != 3:
        raise InvalidToken("the token does not have the form of a signed token (JWS)")
    header = _from_base64url(parts[0])
    payload = _from_base64url(parts[1])
    signature = _from_base64url(parts[2])
    if header is None or payload is None or signature is None:
        raise InvalidToken("the token is not written in base64url")
    try:
        parse_members(header)
        found = _read_header(header)
    except InvalidPayload:
        raise InvalidToken("the header of the token cannot be read") from None
    if found.enc is not UNSET or found.zip is not UNSET:
        raise InvalidToken("the token is encrypted or compressed: only signed tokens are accepted")
    if found.crit is not UNSET or found.b64 is not UNSET:
        raise InvalidToken("the token has an extension (crit or b64) that is not supported")
    if found.alg not in algorithms:
        raise InvalidToken("the token is signed by an algorithm that is not allowed here")
    return Jws(found, f"{parts[0]}.{parts[1]}", payload, signature)


def parse_members(data: bytes) -> dict[str, Raw]:
    """Parse a JSON object with unique names. Return its members, not decoded.

    Raises:
        InvalidPayload: it isn't a JSON object, it is nested more than 200 deep, or a name is
            repeated.
    """
    members = _read_members(data)
    # The decoder doesn't check the values that it skips.
    if depth_exceeds(_read_any(data)):
        raise InvalidPayload("it is nested too deeply")
    # The decoder keeps the last of equal names, so a repeated name shows as missing quotes. A quote
    # inside a name would upset the count.
    quotes = sum(2 + bytes(value).count(b'"') for value in members.values())
    if quotes != data.count(b'"') or any('"' in name for name in members):
        raise InvalidPayload("a member stands twice")
    return members


# -- Keys ------------------------------------------------------------------------------------------


def load_keys(document: bytes) -> list[Key]:
    """Return the public signature keys of a JWK Set.

    Secrets, private keys, encryption keys and keys of unknown kinds are skipped (RFC 7517, section
    5).

    Raises:
        InvalidKey: it isn't a JWK Set, or has more than `MAX_KEYS` keys.
        ImportError: joserfc isn't installed.
    """
    try:
        found = _read_key_set(document).keys
    except InvalidPayload:
        raise InvalidKey('it is not a JWK Set, that is, an object with a list "keys"') from None
    if len(found) > MAX_KEYS:
        raise InvalidKey(f"it has {len(found)} keys; at most {MAX_KEYS} are allowed")
    keys = []
    for raw in found:
        try:
            keys.append(public_key(bytes(raw)))
        except InvalidKey:
            continue
    return keys


def public_key(jwk: bytes) -> Key:
    """Load a public key for verifying signatures. `jwk` is JSON.

    Raises:
        InvalidKey: it isn't a public signature key of a supported kind.
        ImportError: joserfc isn't installed.
    """
    try:
        parse_members(jwk)
        found = _read_jwk(jwk)
    except InvalidPayload:
        raise InvalidKey("it is not a JWK") from None
    if found.d is not UNSET or found.kty == "oct":
        raise InvalidKey("it is a private key or a secret, where a public key is wanted")
    if found.use not in (None, "sig") or "verify" not in (found.key_ops or ("verify",)):
        raise InvalidKey("it is not for signatures")
    kind, values = _public_members(found)
    return Key(_import_key({"kty": found.kty, **values}), kind, found.kid, found.alg)


def private_key(source: str | bytes | Mapping[str, Any], *, kid: str | None = None) -> Key:
    """Load a private key for signing: PEM, or a JWK as a mapping.

    `kid` is used if the JWK has none.

    Raises:
        InvalidKey: it isn't a private key of a supported kind.
        ImportError: joserfc isn't installed.
    """
    if isinstance(source, str | bytes):
        key = _import_pem(source.encode() if isinstance(source, str) else source)
        # Its public half, to be checked like any other key.
        found = _read_jwk(encode(key.as_dict(private=False)))
        kind, _ = _public_members(found)
        return Key(key, kind, kid)
    try:
        found = _read_jwk(encode(source))
    except (InvalidPayload, TypeError, ValueError):
        raise InvalidKey("it is not a JWK") from None
    kind, values = _public_members(found)
    private = {name: source[name] for name in ("d", "p", "q", "dp", "dq", "qi") if name in source}
    if not private:
        raise InvalidKey("it is a public key, where a private key is wanted")
    return Key(
        _import_key({"kty": found.kty, **values, **private}), kind, found.kid or kid, found.alg
    )


def new_key(entropy: Callable[[int], bytes]) -> Key:
    """Derive a private key for ES256 from 32 bytes of `entropy`.

    The same bytes give the same key.

    Raises:
        ImportError: joserfc isn't installed.
    """
    require_joserfc()
    from joserfc.jwk import ECKey

    return Key(ECKey.derive_key(entropy(32), "P-256"), "P-256")


def secret_key(secret: bytes) -> Key:
    """Load a secret that is shared with the signer, for HS256, HS384 and HS512.

    Raises:
        InvalidKey: it is shorter than 32 bytes, or is a public key.
        ImportError: joserfc isn't installed.
    """
    require_joserfc()
    from joserfc.jwk import OctKey

    if len(secret) < 32:
        raise InvalidKey(f"the secret has {len(secret)} bytes; at least 32 are required")
    try:
        key = OctKey.import_key(secret)
    except ValueError:
        raise InvalidKey("it is a public key: anyone who knows it could sign tokens") from None
    size = next(bits for bits in (512, 384, 256) if len(secret) * 8 >= bits)
    return Key(key, f"oct{size}")


def sign(header: Mapping[str, Any], payload: bytes, key: Key) -> str:
    """Sign `payload` and return a JWS (compact serialization). `header` must have `alg`.

    Raises:
        InvalidKey: the key is public, or doesn't support the algorithm.
    """
    algorithm = str(header["alg"])
    if not key.supports(algorithm) or not key._key.is_private:
        raise InvalidKey(f"the key cannot sign with {algorithm}")
    signed = f"{base64url(encode(header))}.{base64url(payload)}"
    signature = (
        require_joserfc().algorithms[_joserfc_name(algorithm, key)].sign(signed.encode(), key._key)
    )
    return f"{signed}.{base64url(signature)}"


def base64url(data: bytes) -> str:
    """Encode `data` in base64url without padding, as JOSE does."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _from_base64url(text: str) -> bytes | None:
    """Decode `text`. Return None if it isn't exactly what `base64url` returns."""
    if len(text) % 4 == 1 or not _BASE64URL.fullmatch(text):
        return None
    data = urlsafe_b64decode(text + "==")
    # The last character may have unused bits, so several texts decode to the same bytes.
    return data if base64url(data) == text else None


def _public_members(jwk: _Jwk) -> tuple[str, dict[str, str]]:
    """Check a public key. Return its kind, and the JWK members that define it.

    The key may come from an attacker, as a DPoP proof's key does. Sizes are checked before anything
    is computed with it.
    """
    if jwk.kty == "RSA":
        modulus = _from_base64url(jwk.n)
        exponent = _from_base64url(jwk.e)
        bits = int.from_bytes(modulus or b"", "big").bit_length()
        if not _MIN_RSA_BITS <= bits <= _MAX_RSA_BITS:
            raise InvalidKey(f"an RSA key has from {_MIN_RSA_BITS} to {_MAX_RSA_BITS} bits")
        if not 2 < int.from_bytes(exponent or b"", "big") < _MAX_RSA_EXPONENT:
            raise InvalidKey("its RSA exponent is out of range")
        return "RSA", {"n": jwk.n, "e": jwk.e}
    kty, size = _CURVES.get(jwk.crv, ("", 0))
    if not kty or kty != jwk.kty:
        raise InvalidKey("its kind is not supported")
    values = {"crv": jwk.crv, "x": jwk.x, "y": jwk.y}
    if kty == "OKP":
        del values["y"]
    coordinates = [value for name, value in values.items() if name != "crv"]
    if any(len(_from_base64url(coordinate) or b"") != size for coordinate in coordinates):
        raise InvalidKey("a coordinate of it has the wrong size")
    return jwk.crv, values


def _import_key(jwk: dict[str, str]) -> JoseKey:
    """Convert a JWK to a key of joserfc."""
    require_joserfc()
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    try:
        return JWKRegistry.import_key(dict(jwk))
    except (JoseError, ValueError, TypeError):
        raise InvalidKey("its numbers do not form a valid key") from None


def _import_pem(pem: bytes) -> JoseKey:
    """Convert a private key in PEM to a key of joserfc."""
    require_joserfc()
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    for kind in (ECKey, RSAKey, OKPKey):
        try:
            key = kind.import_key(pem)
        except (JoseError, ValueError, TypeError):
            continue
        if key.is_private:
            return key
    raise InvalidKey(
        "it is not an unencrypted private key in PEM, of RSA, an elliptic curve or Ed25519"
    )


@cache
def require_joserfc() -> type[JWSRegistry]:
    """Import joserfc. Call it where the need is known, not when the first token arrives.

    Raises:
        ImportError: joserfc isn't installed.
    """
    try:
        from joserfc.jws import JWSRegistry
    except ImportError as exc:
        problem = "signed tokens need joserfc: pip install 'mcp-trio[auth]'"
        raise ImportError(problem, name=exc.name) from exc
    return JWSRegistry


def _joserfc_name(algorithm: str, key: Key) -> str:
    """Return joserfc's name of `algorithm` with this key.

    EdDSA goes by the curve's name: joserfc warns about the name that leaves it open (RFC 9864).
    """
    return key.kind if algorithm == "EdDSA" else algorithm
