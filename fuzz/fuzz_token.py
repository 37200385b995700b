# Invariant: for any Authorization and DPoP values, a resource server gives a grant or a denial.
# What it grants is signed, and its header, claims and proof have all required members, as read by
# the standard library's JSON. A valid token is granted, and a proof is accepted once. A denial
# reveals nothing of the token, in challenges that our own client can parse.
"""Access tokens and DPoP proofs, as `OAuthResourceServer` checks them by the issuer's keys. Nothing
may be raised.

Their parts are arbitrary bytes with valid signatures, so that each error is found by its own check
and not by the signature. The oracle knows what must hold for every grant, and which tokens are
valid.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from joserfc.jwk import ECKey
from joserfc.jws import JWSRegistry

from fuzz.targets import Target
from mcp_core.auth import AuthDenial, Grant, JwtVerifier, OAuthResourceServer
from mcp_core.auth.client._challenge import parse_auth_challenge
from mcp_trio.oracle.strategies._mutations import damage
from mcp_trio.oracle.strategies._values import encoded, json_values, weighted

# Header and claims, as JSON or not.
Parts: TypeAlias = tuple[bytes, bytes]
# the token; its proof or None; an edit: which of the two (0, 1), the position, the bytes written
# there
Case: TypeAlias = tuple[Parts, Parts | None, tuple[int, int, bytes] | None]

NOW: Final = 1_800_000_000.0
ISSUER: Final = "https://as.example.com"
RESOURCE: Final = "https://mcp.example.com/mcp"
LEEWAY: Final = 60
ISSUER_KEY, CLIENT_KEY = (ECKey.derive_key(seed * 16, "P-256") for seed in (b"as", b"me"))
CLIENT_JWK: Final = CLIENT_KEY.as_dict(private=False)
HASH_PLACEHOLDER: Final = "<hash of the token>"

HEADER: Final[dict[str, Any]] = {"alg": "ES256", "typ": "at+jwt", "kid": "k"}
CLAIMS: Final[dict[str, Any]] = {
    "iss": ISSUER,
    "aud": RESOURCE,
    "sub": "alice",
    "client_id": "app",
    "exp": NOW + 600,
    "iat": NOW,
    "scope": "read",
}
BOUND_CLAIMS: Final[dict[str, Any]] = CLAIMS | {"cnf": {"jkt": CLIENT_KEY.thumbprint()}}
PROOF_HEADER: Final[dict[str, Any]] = {"alg": "ES256", "typ": "dpop+jwt", "jwk": CLIENT_JWK}
PROOF_CLAIMS: Final[dict[str, Any]] = {
    "jti": "1",
    "htm": "POST",
    "htu": RESOURCE,
    "iat": NOW,
    "ath": HASH_PLACEHOLDER,
}
_VALID_TOKEN: Final = (encoded(HEADER), encoded(CLAIMS))
_VALID_BOUND_TOKEN: Final = (encoded(HEADER), encoded(BOUND_CLAIMS))
_VALID_PROOF: Final = (encoded(PROOF_HEADER), encoded(PROOF_CLAIMS))

_JWKS: Final = {"keys": [ISSUER_KEY.as_dict(private=False) | {"kid": "k"}]}
_VERIFIER: Final = JwtVerifier(ISSUER, RESOURCE, jwks=_JWKS, leeway=LEEWAY)


def check(case: Case) -> Iterable[str]:
    parts, proof_parts, edit = case
    sent = [_sign(*parts, ISSUER_KEY)]
    if proof_parts is not None:
        header, claims = proof_parts
        sent.append(
            _sign(header, claims.replace(HASH_PLACEHOLDER.encode(), _hash(sent[0])), CLIENT_KEY)
        )
    if edit is not None:
        which, place, data = edit
        which %= len(sent)
        # White space around a header value is not part of it.
        sent[which] = (sent[which][:place] + data + sent[which][place + len(data) :]).strip(b" ")
    headers = [(b"authorization", (b"Bearer " if proof_parts is None else b"DPoP ") + sent[0])]
    headers += [(b"dpop", each) for each in sent[1:]]
    server = OAuthResourceServer(RESOURCE, [ISSUER], _VERIFIER, dpop=True, scopes=["read"])
    outcome = _outcome(server, headers)
    if isinstance(outcome, AuthDenial):
        assert edit is not None or (parts, proof_parts) not in (
            (_VALID_TOKEN, None),
            (_VALID_BOUND_TOKEN, _VALID_PROOF),
        ), f"a valid token is denied: {outcome.reason}"
        _check_denial(outcome, sent)
        yield f"{outcome.status}: {outcome.reason}"
        return
    _check_grant(outcome, sent[0])
    if proof_parts is None:
        yield f"granted, {len(outcome.scopes)} scopes"
        return
    _check_proof(outcome, *sent)
    again = _outcome(server, headers)
    assert isinstance(again, AuthDenial), "a proof is accepted twice"
    yield "granted with proof"


def _outcome(server: OAuthResourceServer, headers: list[tuple[bytes, bytes]]) -> Grant | AuthDenial:
    try:
        step = next(server.admit(b"POST", b"/mcp", headers, NOW))
    except StopIteration as end:
        outcome: Grant | AuthDenial = end.value
        return outcome
    raise AssertionError(f"it has its keys, but yields {step!r}")


def _check_denial(denial: AuthDenial, sent: Iterable[bytes]) -> None:
    text = repr(denial).encode()
    assert not any(
        len(part) > 20 and part in text for secret in sent for part in secret.split(b".")
    )
    assert denial.status in (400, 401)  # never 403: the scope check comes later
    assert denial.reason.isprintable()
    challenges = [
        value.decode("ascii") for name, value in denial.headers if name == b"www-authenticate"
    ]
    assert len(challenges) == 2
    assert parse_auth_challenge(challenges).scopes == ("read",)


def _check_grant(grant: Grant, token: bytes) -> None:
    header, claims = _verify(token, ISSUER_KEY)
    assert header["alg"] == "ES256"
    assert not header.keys() & {"crit", "b64", "enc", "zip"}
    assert claims["iss"] == ISSUER
    assert RESOURCE in (claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]])
    assert grant.valid_until == claims["exp"] + LEEWAY > NOW
    assert (claims.get("nbf") or 0) <= NOW + LEEWAY
    subject = claims.get("sub") or claims["client_id"]
    assert grant.principal.partition("#")[0] == ISSUER
    assert grant.principal.endswith(f":{subject}")
    assert grant.claims.keys() == claims.keys()
    cnf = claims.get("cnf")
    assert grant.jkt == (None if cnf is None else cnf["jkt"])


def _check_proof(grant: Grant, token: bytes, proof: bytes) -> None:
    header, claims = _verify(proof, CLIENT_KEY)
    assert header["typ"] == "dpop+jwt"
    assert {header["jwk"][name] == CLIENT_JWK[name] for name in ("crv", "kty", "x", "y")} == {True}
    assert grant.jkt == CLIENT_KEY.thumbprint()
    assert claims["htm"] == "POST"
    assert claims["htu"].lower().startswith("https://mcp.example.com")
    assert claims["htu"].partition("?")[0].partition("#")[0].endswith("/mcp")
    assert abs(claims["iat"] - NOW) <= 60
    assert claims["ath"] == _hash(token).decode()


# -- Tokens ----------------------------------------------------------------------------------------


def _sign(header: bytes, claims: bytes, key: ECKey) -> bytes:
    signed = _base64url(header) + b"." + _base64url(claims)
    return signed + b"." + _base64url(JWSRegistry.algorithms["ES256"].sign(signed, key))


def _verify(token: bytes, key: ECKey) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the signed header and claims, and check that they have one spelling and unique
    members.
    """
    parts = token.split(b".")
    header, claims, signature = (urlsafe_b64decode(part + b"==") for part in parts)
    assert [_base64url(part) for part in (header, claims, signature)] == parts
    assert JWSRegistry.algorithms["ES256"].verify(b".".join(parts[:2]), signature, key)
    return _members(header), _members(claims)


def _members(data: bytes) -> dict[str, Any]:
    objects: list[list[tuple[str, Any]]] = []

    def kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        objects.append(pairs)
        return dict(pairs)

    found = json.loads(data.decode(), object_pairs_hook=kept)
    assert isinstance(found, dict)
    assert len(found) == len(objects[-1]), "a member occurs twice"
    return found


def _hash(token: bytes) -> bytes:
    return _base64url(sha256(token).digest())


def _base64url(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


# -- Cases -----------------------------------------------------------------------------------------

_VALUES: Final = st.one_of(
    st.sampled_from(
        (
            None,
            "",
            0,
            -1,
            True,
            [],
            {},
            "ES256",
            "none",
            "HS256",
            "k",
            "JWT",
            "ID",
            ISSUER,
            RESOURCE,
        )
    ),
    st.sampled_from(
        ([RESOURCE, "x"], ["read", "write"], [1], {"jkt": "x"}, CLIENT_JWK, 2**53, 1e300, "a\0b")
    ),
    st.sampled_from(
        (
            NOW,
            NOW - 61,
            NOW + 61,
            NOW - 59,
            str(NOW),
            "POST",
            "GET",
            RESOURCE + "?a=b",
            HASH_PLACEHOLDER,
        )
    ),
    json_values(1),
)
_NAMES: Final = {
    "header": st.sampled_from((*HEADER, "crit", "b64", "enc", "zip", "jwk", "jku", "x5u", "cty")),
    "claims": st.sampled_from(
        (*CLAIMS, "nbf", "azp", "scp", "cnf", "nonce", "token_use", "typ", "act")
    ),
    "proof_header": st.sampled_from((*PROOF_HEADER, "kid", "crit")),
    "proof_claims": st.sampled_from((*PROOF_CLAIMS, "nonce", "exp")),
}
_EDITS: Final = st.tuples(
    st.integers(0, 1),
    st.integers(0, 700),
    st.sampled_from(
        (b".", b"..", b"=", b"A", b"AAAA", b"-_", b" ", b",", b"\xff", b"+/", b"." * 40)
    ),
)
_RARELY: Final = st.sampled_from((True, False, False, False, False, False))


def _part(draw: DrawFn, good: dict[str, Any], names: SearchStrategy[str]) -> bytes:
    members = dict(good)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        name = draw(names)
        if draw(st.booleans()):
            members[name] = draw(_VALUES)
        else:
            members.pop(name, None)
    data = encoded(members)
    return damage(draw, data) if draw(_RARELY) else data


@st.composite
def _made(draw: DrawFn) -> Case:
    bound = draw(st.booleans())
    claims = BOUND_CLAIMS if bound is not draw(_RARELY) else CLAIMS
    token = _part(draw, HEADER, _NAMES["header"]), _part(draw, claims, _NAMES["claims"])
    proof = (
        (
            _part(draw, PROOF_HEADER, _NAMES["proof_header"]),
            _part(draw, PROOF_CLAIMS, _NAMES["proof_claims"]),
        )
        if bound
        else None
    )
    return token, proof, draw(_EDITS) if draw(_RARELY) else None


@st.composite
def _recorded(draw: DrawFn, seeds: Sequence[Case]) -> Case:
    (header, claims), proof, edit = draw(st.sampled_from(seeds))
    return (header, damage(draw, claims)), proof, edit


_MADE: Final = _made()


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    return weighted((9, _MADE), (1, _recorded(seeds))) if seeds else _MADE


TARGET: Final = Target("token", cases, check)
