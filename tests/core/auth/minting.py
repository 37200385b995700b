"""Keys and tokens of a fake authorization server, valid and invalid ones.

`forge` signs any bytes with joserfc's algorithms but without its checks, so that an invalid token
is wrong in one respect only.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Generator
from hashlib import sha256
from typing import Any, TypeVar

from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from mcp_core.auth._errors import FetchFailed
from mcp_core.auth._jose import Key, public_key
from mcp_core.auth._steps import Fetch, HttpResponse

T = TypeVar("T")

NOW = 1_800_000_000.0
ISSUER = "https://as.example.com"
RESOURCE = "https://mcp.example.com/mcp"
JWKS_URI = "https://as.example.com/keys"

RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.derive_key(b"ec" * 16, "P-256", {"kid": "ec"})
EC384 = ECKey.derive_key(b"ec" * 16, "P-384", {"kid": "ec384"})
EC521 = ECKey.derive_key(b"ec" * 16, "P-521", {"kid": "ec521"})
ED = OKPKey.derive_key(b"ed" * 16, "Ed25519", {"kid": "ed"})
ED448 = OKPKey.derive_key(b"ed" * 16, "Ed448", {"kid": "ed448"})
STRANGER = ECKey.derive_key(b"not" * 16, "P-256", {"kid": "ec"})
STRANGER_RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
SECRET = b"correct horse battery staple, or so"
OCT = OctKey.import_key(SECRET)
KEYS: dict[str, Any] = {
    "RS256": RSA, "RS384": RSA, "RS512": RSA, "PS256": RSA, "PS384": RSA, "PS512": RSA,
    "ES256": EC, "ES384": EC384, "ES512": EC521, "Ed25519": ED, "Ed448": ED448,
    "HS256": OCT, "HS384": OCT, "HS512": OCT,
}  # fmt: skip
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "aud": RESOURCE,
    "sub": "alice",
    "client_id": "app",
    "exp": NOW + 600,
    "iat": NOW - 10,
    "jti": "t1",
    "scope": "files:read files:write",
}


def public(*keys: Any, **more: Any) -> dict[str, Any]:
    """Build a JWK Set with the public keys."""
    return {"keys": [key.as_dict(private=False, **more) for key in keys]}


JWKS = public(RSA, EC, EC384, EC521, ED, ED448)


def ours(key: Any) -> Key:
    """Convert a key of joserfc to a `Key`."""
    return public_key(json.dumps(key.as_dict(private=False)).encode())


def b64(data: bytes | str) -> str:
    return urlsafe_b64encode(data.encode() if isinstance(data, str) else data).rstrip(b"=").decode()


def as_bytes(part: Any) -> bytes:
    if isinstance(part, bytes):
        return part
    return part.encode() if isinstance(part, str) else json.dumps(part).encode()


def forge(header: Any, payload: Any, key: Any = EC, alg: str = "ES256") -> str:
    """Sign a token with this header and payload (bytes, text or JSON data), as `alg` would."""
    signed = f"{b64(as_bytes(header))}.{b64(as_bytes(payload))}"
    return f"{signed}.{b64(JWSRegistry.algorithms[alg].sign(signed.encode(), key))}"


def token(alg: str = "ES256", *, header: Any = None, without: Any = "", **claims: Any) -> str:
    """Return a token, valid but for the given claims. `without` is a claim to leave out."""
    key = KEYS["Ed25519" if alg == "EdDSA" else alg]
    head = {"alg": alg, "kid": key.kid, "typ": "at+jwt"} | (header or {})
    kept = {name: value for name, value in (CLAIMS | claims).items() if name != without}
    return forge(
        {name: value for name, value in head.items() if value is not None}, kept, key, key_alg(alg)
    )


def key_alg(alg: str) -> str:
    return "Ed25519" if alg == "EdDSA" else alg


def run_without_steps(flow: Generator[Any, Any, T]) -> T:
    """Return the result of a flow that needs no step."""
    return run_with_replies(flow, [])


def run_with_replies(flow: Generator[Any, Any, T], script: list[tuple[str, Any]]) -> T:
    """Run a flow against pairs of a URL and its reply, which may be an exception.

    Return its result.
    """
    left = iter(script)
    try:
        step = next(flow)
        while True:
            assert isinstance(step, Fetch), step
            url, reply = next(left, ("no further step", None))
            assert step.request.url == url
            step = flow.throw(reply) if isinstance(reply, Exception) else flow.send(reply)
    except StopIteration as stop:
        assert next(left, None) is None, "a step that did not come"
        value: T = stop.value
        return value


def keys_reply(jwks: Any = None, status: int = 200) -> HttpResponse:
    return HttpResponse(
        status, [("content-type", "application/json")], as_bytes(JWKS if jwks is None else jwks)
    )


NO_REPLY = FetchFailed("nobody is there")


# -- DPoP ------------------------------------------------------------------------------------------

HOLDER = ECKey.derive_key(b"holder" * 8, "P-256")
JKT = HOLDER.thumbprint()


def proof(
    bound: str,
    *,
    key: Any = HOLDER,
    alg: Any = "ES256",
    header: Any = None,
    without: Any = "",
    **claims: Any,
) -> str:
    """Return a proof for a POST to `RESOURCE` with the token `bound`.

    It is valid but for the given claims.
    """
    head = {"typ": "dpop+jwt", "alg": alg, "jwk": key.as_dict(private=False)} | (header or {})
    payload = {
        "jti": "p1",
        "htm": "POST",
        "htu": RESOURCE,
        "iat": NOW,
        "ath": b64(sha256(bound.encode()).digest()),
    } | claims
    return forge(
        {name: value for name, value in head.items() if value is not None},
        {name: value for name, value in payload.items() if name != without},
        key,
        key_alg(alg),
    )
