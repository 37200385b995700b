"""Signed tokens: who signed a JWS, by which of the keys that we trust; and signing what we ourselves have to say.

Rules of this file:

1. It alone knows joserfc, and only for what is arithmetic: keys and signatures. What a token may look like is decided here,
   so that the answer does not depend on what a version of a library likes to understand. joserfc is imported on first use.
2. The algorithm is that of a list of ours, and the key has to be of its kind. So a public key never serves as a shared secret,
   and `none` is no algorithm.
3. A token brings no keys along and names no places to find them: `jku`, `jwk`, `x5u`, `x5c` are not looked at, and `kid` is
   compared and nothing else. (A DPoP proof has its key in `jwk` by definition; `_proof.py` reads it there.)
4. What must be understood is not (`crit`, `b64`), and what must be taken apart first (JWE, `zip`) is refused. Every token has
   one spelling: base64url without padding and without loose bits, and each member once.
5. A text in an exception has nothing in it of a token or a key.

It knows neither claims nor time. RFC 7515, 7517, 7518, 7638, 8037, 8725, 9864.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from mcp_core._errors import McpTrioError
from mcp_core._jsonrpc import Unreadable, encode, reader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from joserfc.jwk import Key as JoseKey
    from joserfc.jws import JWSRegistry

__all__ = [
    "ASYMMETRIC",
    "MAX_TOKEN",
    "SYMMETRIC",
    "BadKey",
    "BadToken",
    "Jws",
    "Key",
    "base64url",
    "load_keys",
    "members_of",
    "new_key",
    "private_key",
    "public_key",
    "read_jws",
    "require",
    "secret_key",
    "sign",
]

MAX_TOKEN: Final = 16 * 1024  # characters; an HTTP header of that length is more than most servers take
MAX_KEYS: Final = 50
_SHORTEST_MODULUS: Final = 2048  # NIST SP 800-131A
_LONGEST_MODULUS: Final = (
    8192  # the work for one signature grows with its square, and it may be somebody else's key
)
_LARGEST_EXPONENT: Final = 2**32

# Algorithm: the kinds of key it is used with. A secret is no shorter than the digest (RFC 7518, 3.2).
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
# Curve: key type, and bytes of a coordinate.
_CURVES: Final = {
    "P-256": ("EC", 32),
    "P-384": ("EC", 48),
    "P-521": ("EC", 66),
    "Ed25519": ("OKP", 32),
    "Ed448": ("OKP", 57),
}
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")


class BadToken(McpTrioError):
    """This is no token, or proof, that we may believe. The text says why, and holds nothing of it: it is told to the client and
    goes into the log.

    A verifier of your own raises it to say why it refuses a token.
    """


class BadKey(McpTrioError, ValueError):
    """This is no key that can be used here. The text says why, and holds nothing of it."""


class _Header(Struct):
    """What is read of the header of a JWS. A parameter that nobody here understands means nothing (RFC 7515, section 4)."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    jwk: Raw | UnsetType = UNSET
    crit: Raw | UnsetType = UNSET
    b64: Raw | UnsetType = UNSET
    enc: Raw | UnsetType = UNSET
    zip: Raw | UnsetType = UNSET


class _Jwk(Struct):
    """What is read of a key (RFC 7517, section 4; RFC 7518, section 6)."""

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
    keys: list[Raw]


_read_members = reader(dict[str, Raw])
_read_header = reader(_Header)
_read_jwk = reader(_Jwk)
_read_key_set = reader(_KeySet)


class Key:
    """A key, ours or somebody's. `kid` is the name it goes by in its set, `kind` a curve, "RSA", or "oct" with its size.

    It shows its kind and nothing else. Made by the functions of this file.
    """

    __slots__ = ("_alg", "_key", "kid", "kind")

    def __init__(self, key: JoseKey, kind: str, kid: str | None = None, alg: str | None = None) -> None:
        self._key = key
        self._alg = alg
        self.kind = kind
        self.kid = kid

    def __repr__(self) -> str:
        return f"<Key {self.kind}>"

    @property
    def algorithms(self) -> tuple[str, ...]:
        """What it can be used with, the most common first."""
        return tuple(name for name in _ALGORITHMS if self.fits(name))

    @property
    def public_jwk(self) -> dict[str, str]:
        """What others have to know of it: only what RFC 7638 hashes."""
        members = ("crv", "kty", "x", "y") if self.kind in _CURVES else ("e", "kty", "n")
        known = self._key.as_dict(private=False)
        return {name: str(known[name]) for name in members if name in known}

    @property
    def thumbprint(self) -> str:
        """Its name that nobody has to give it: SHA-256 as in RFC 7638, in base64url."""
        return self._key.thumbprint()

    def fits(self, algorithm: str) -> bool:
        return self.kind in _ALGORITHMS.get(algorithm, ()) and self._alg in (None, algorithm)


class Jws:
    """A token that can be read and is not believed yet: `alg`, `kid`, `typ` and `jwk` (encoded) of its header."""

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
        """What `key` signed.

        Raises:
            BadToken: it did not, or is no key for the algorithm.
        """
        if not key.fits(self.alg):
            raise BadToken("the token's algorithm and its key do not belong together")
        if not _primitive(self.alg, key).verify(self._signed.encode(), self._signature, key._key):
            raise BadToken("the signature of the token is wrong")
        return self._payload


def read_jws(token: str, algorithms: Collection[str]) -> Jws:
    """Take a token (JWS compact serialization) apart. It is signed by one of `algorithms`, or said to be.

    Raises:
        BadToken: it is none.
    """
    if len(token) > MAX_TOKEN:
        raise BadToken(f"the token is longer than {MAX_TOKEN} characters")
    parts = token.split(".")
    if len(parts) == 5:
        raise BadToken("the token is encrypted (JWE): only signed ones are read here")
    if len(parts) != 3:
        raise BadToken("the token has not the form of a signed one (JWS)")
    header, payload, signature = map(_from_base64url, parts)
    if header is None or payload is None or signature is None:
        raise BadToken("the token is not written in base64url")
    try:
        members_of(header)
        found = _read_header(header)
    except Unreadable:
        raise BadToken("the header of the token cannot be read") from None
    if found.enc is not UNSET or found.zip is not UNSET:
        raise BadToken("the token is encrypted or compressed: only signed ones are read here")
    if found.crit is not UNSET or found.b64 is not UNSET:
        raise BadToken("the token has an extension (crit or b64) that is not understood here")
    if found.alg not in algorithms:
        raise BadToken("the token is signed by an algorithm that is not allowed here")
    return Jws(found, f"{parts[0]}.{parts[1]}", payload, signature)


def members_of(data: bytes) -> dict[str, Raw]:
    """The members of a JSON object, undecoded, of which none stands twice.

    Raises:
        Unreadable: it is no such object.
    """
    members = _read_members(data)
    # What the decoder skips it does not look at closely.
    try:
        data.decode()
    except UnicodeDecodeError:
        raise Unreadable("it is not UTF-8") from None
    # The decoder keeps the last of equal names, so that quotes are missing. A quote in a name would hide that.
    quotes = sum(2 + bytes(value).count(b'"') for value in members.values())
    if quotes != data.count(b'"') or any('"' in name for name in members):
        raise Unreadable("a member stands twice")
    return members


# -- Keys --------------------------------------------------------------------------------------------------------------


def load_keys(document: bytes) -> list[Key]:
    """The public keys for signatures in a JWK Set. What else is in it is left out: secrets, private keys, keys for encryption, and
    keys of a kind that is not known here (RFC 7517, section 5).

    Raises:
        BadKey: it is no JWK Set, or has more than `MAX_KEYS` keys.
        ImportError: joserfc is not installed.
    """
    try:
        found = _read_key_set(document).keys
    except Unreadable:
        raise BadKey('it is no JWK Set, that is, an object with a list "keys"') from None
    if len(found) > MAX_KEYS:
        raise BadKey(f"it has {len(found)} keys; {MAX_KEYS} are the most")
    keys = []
    for raw in found:
        try:
            keys.append(public_key(bytes(raw)))
        except BadKey:
            continue
    return keys


def public_key(jwk: bytes) -> Key:
    """A key to verify signatures with, as JSON.

    Raises:
        BadKey: it is none, or one that nobody should have made public.
        ImportError: joserfc is not installed.
    """
    try:
        members_of(jwk)
        found = _read_jwk(jwk)
    except Unreadable:
        raise BadKey("it is no JWK") from None
    if found.d is not UNSET or found.kty == "oct":
        raise BadKey("it is a private key or a secret, where a public key is wanted")
    if found.use not in (None, "sig") or "verify" not in (found.key_ops or ("verify",)):
        raise BadKey("it is not for signatures")
    kind, values = _parts(found)
    return Key(_imported({"kty": found.kty, **values}), kind, found.kid, found.alg)


def private_key(source: str | bytes | Mapping[str, Any], *, kid: str | None = None) -> Key:
    """A key of ours to sign with: PEM, or a JWK as a mapping. `kid` names it, if the JWK does not.

    Raises:
        BadKey: it is no private key, or not of a kind that is used here.
        ImportError: joserfc is not installed.
    """
    if isinstance(source, str | bytes):
        key = _from_pem(source.encode() if isinstance(source, str) else source)
        # A JWK of its public half, to be judged like any other.
        found = _read_jwk(encode(key.as_dict(private=False)))
        kind, _ = _parts(found)
        return Key(key, kind, kid)
    try:
        found = _read_jwk(encode(source))
    except (Unreadable, TypeError, ValueError):
        raise BadKey("it is no JWK") from None
    kind, values = _parts(found)
    private = {name: source[name] for name in ("d", "p", "q", "dp", "dq", "qi") if name in source}
    if not private:
        raise BadKey("it is a public key, where a private key is wanted")
    return Key(_imported({"kty": found.kty, **values, **private}), kind, found.kid or kid, found.alg)


def new_key(entropy: Callable[[int], bytes]) -> Key:
    """A new private key for ES256, made of 32 bytes of `entropy`; the same bytes make the same key."""
    require()
    from joserfc.jwk import ECKey

    return Key(ECKey.derive_key(entropy(32), "P-256"), "P-256")


def secret_key(secret: bytes) -> Key:
    """A secret that is shared with who signs, for HS256, HS384 and HS512.

    Raises:
        BadKey: it is shorter than 32 bytes, or is a public key.
        ImportError: joserfc is not installed.
    """
    require()
    from joserfc.jwk import OctKey

    if len(secret) < 32:
        raise BadKey(f"the secret has {len(secret)} bytes; 32 are the least")
    try:
        key = OctKey.import_key(secret)
    except ValueError:
        raise BadKey("that is a public key: who knows it could sign everything") from None
    return Key(key, f"oct{next(bits for bits in (512, 384, 256) if len(secret) * 8 >= bits)}")


def sign(header: Mapping[str, Any], payload: bytes, key: Key) -> str:
    """A JWS (compact serialization) of ours. `header` has `alg`.

    Raises:
        BadKey: the key is public, or none for that algorithm.
    """
    algorithm = str(header["alg"])
    if not key.fits(algorithm) or not key._key.is_private:
        raise BadKey(f"it is no key to sign with {algorithm}")
    signed = b"%b.%b" % (base64url(encode(header)).encode(), base64url(payload).encode())
    return f"{signed.decode()}.{base64url(_primitive(algorithm, key).sign(signed, key._key))}"


def base64url(data: bytes) -> str:
    """As JOSE writes bytes: base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _from_base64url(text: str) -> bytes | None:
    """None if it is not written exactly as `base64url` does."""
    if len(text) % 4 == 1 or not _BASE64URL.fullmatch(text):
        return None
    data = urlsafe_b64decode(text + "==")
    # The last character may have bits that mean nothing: two spellings of the same bytes.
    return data if base64url(data) == text else None


def _parts(jwk: _Jwk) -> tuple[str, dict[str, str]]:
    """What kind of public key it is, and its numbers. A key may come from an enemy, as that of a DPoP proof does, so that sizes
    are looked at before anybody calculates with it."""
    if jwk.kty == "RSA":
        modulus, exponent = _from_base64url(jwk.n), _from_base64url(jwk.e)
        bits = int.from_bytes(modulus or b"", "big").bit_length()
        if not _SHORTEST_MODULUS <= bits <= _LONGEST_MODULUS:
            raise BadKey(f"an RSA key has from {_SHORTEST_MODULUS} to {_LONGEST_MODULUS} bits")
        if not 2 < int.from_bytes(exponent or b"", "big") < _LARGEST_EXPONENT:
            raise BadKey("its exponent is none")
        return "RSA", {"n": jwk.n, "e": jwk.e}
    kty, size = _CURVES.get(jwk.crv, ("", 0))
    if not kty or kty != jwk.kty:
        raise BadKey("it is of a kind that is not used here")
    values = {"crv": jwk.crv, "x": jwk.x, "y": jwk.y}
    if kty == "OKP":
        del values["y"]
    if any(len(_from_base64url(value) or b"") != size for name, value in values.items() if name != "crv"):
        raise BadKey("a coordinate of it has the wrong size")
    return jwk.crv, values


def _imported(jwk: dict[str, str]) -> JoseKey:
    require()
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    try:
        return JWKRegistry.import_key(dict(jwk))
    except (JoseError, ValueError, TypeError):
        raise BadKey("its numbers make no key") from None


def _from_pem(pem: bytes) -> JoseKey:
    require()
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    for kind in (ECKey, RSAKey, OKPKey):
        try:
            key = kind.import_key(pem)
        except (JoseError, ValueError, TypeError):
            continue
        if key.is_private:
            return key
    raise BadKey("it is no private key in PEM, unencrypted, of RSA, an elliptic curve or Ed25519")


@cache
def require() -> type[JWSRegistry]:
    """Load joserfc, at the time when the need for it is known rather than when the first token comes.

    Raises:
        ImportError: it is not installed.
    """
    try:
        from joserfc.jws import JWSRegistry
    except ImportError as exc:
        problem = "signed tokens need joserfc: pip install 'mcp-trio[auth]'"
        raise ImportError(problem, name=exc.name) from exc
    return JWSRegistry


def _primitive(algorithm: str, key: Key) -> Any:
    """What signs and verifies. EdDSA goes by the curve, since joserfc warns of the name that leaves it open (RFC 9864)."""
    return require().algorithms[key.kind if algorithm == "EdDSA" else algorithm]
