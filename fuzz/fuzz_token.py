# Invariant: whatever stands in Authorization and DPoP, a guard gives a grant or a refusal; what it grants is signed, and its
# header, claims and proof say all that they have to, as the JSON of the standard library reads them; a good token is granted,
# and a proof is good once; and a refusal tells nothing of the token, in challenges that our own client can read.
"""Access tokens and DPoP proofs, as `mcp_core.auth.Guard` judges them by the keys of their issuer. Nothing may be raised.

Their parts are any bytes, and they are really signed, so that what is wrong is found by who looks at it and not by the signature.
The judge knows what has to be true of whatever is granted, and of which tokens nothing is wrong.
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

from mcp_core.auth import Grant, Guard, JwtVerifier, Refusal
from mcp_core.auth._challenge import demand_in

from .mutations import damage
from .targets import Target
from .values import encoded, json_values, weighted

# Header and claims, as JSON or not.
Parts: TypeAlias = tuple[bytes, bytes]
# the token; its proof, if it is sent with one; and what is written over which of the two (0, 1), from which place on
Case: TypeAlias = tuple[Parts, Parts | None, tuple[int, int, bytes] | None]

NOW: Final = 1_800_000_000.0
ISSUER: Final = "https://as.example.com"
RESOURCE: Final = "https://mcp.example.com/mcp"
LEEWAY: Final = 60
ISSUERS, HOLDERS = (ECKey.derive_key(seed * 16, "P-256") for seed in (b"as", b"me"))
HOLDER: Final = HOLDERS.as_dict(private=False)
HASH: Final = "<hash of the token>"

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
BOUND: Final[dict[str, Any]] = CLAIMS | {"cnf": {"jkt": HOLDERS.thumbprint()}}
PROOF: Final[dict[str, Any]] = {"alg": "ES256", "typ": "dpop+jwt", "jwk": HOLDER}
PROVEN: Final[dict[str, Any]] = {"jti": "1", "htm": "POST", "htu": RESOURCE, "iat": NOW, "ath": HASH}
_GOOD: Final = (encoded(HEADER), encoded(CLAIMS))
_GOOD_BOUND: Final = (encoded(HEADER), encoded(BOUND))
_GOOD_PROOF: Final = (encoded(PROOF), encoded(PROVEN))

_KEYS: Final = {"keys": [ISSUERS.as_dict(private=False) | {"kid": "k"}]}
_VERIFIER: Final = JwtVerifier(ISSUER, RESOURCE, jwks=_KEYS, leeway=LEEWAY)


def check(case: Case) -> Iterable[str]:
    parts, proof_parts, edit = case
    sent = [_forged(*parts, ISSUERS)]
    if proof_parts is not None:
        header, claims = proof_parts
        sent.append(_forged(header, claims.replace(HASH.encode(), _hash(sent[0])), HOLDERS))
    if edit is not None:
        which, place, data = edit
        which %= len(sent)
        # White space around a header's value is not of it.
        sent[which] = (sent[which][:place] + data + sent[which][place + len(data) :]).strip(b" ")
    headers = [(b"authorization", (b"Bearer " if proof_parts is None else b"DPoP ") + sent[0])]
    headers += [(b"dpop", each) for each in sent[1:]]
    guard = Guard(RESOURCE, [ISSUER], _VERIFIER, dpop=True, scopes=["read"])
    outcome = _outcome(guard, headers)
    if isinstance(outcome, Refusal):
        assert edit is not None or (parts, proof_parts) not in (
            (_GOOD, None),
            (_GOOD_BOUND, _GOOD_PROOF),
        ), f"what is good is refused: {outcome.reason}"
        _check_refusal(outcome, sent)
        yield f"{outcome.status}: {outcome.reason}"
        return
    _check_grant(outcome, sent[0])
    if proof_parts is None:
        yield f"granted, {len(outcome.scopes)} scopes"
        return
    _check_proof(outcome, *sent)
    again = _outcome(guard, headers)
    assert isinstance(again, Refusal), "a proof is good twice"
    yield "proved"


def _outcome(guard: Guard, headers: list[tuple[bytes, bytes]]) -> Grant | Refusal:
    try:
        step = next(guard.admit(b"POST", b"/mcp", headers, NOW))
    except StopIteration as end:
        outcome: Grant | Refusal = end.value
        return outcome
    raise AssertionError(f"it has its keys, and wants {step!r}")


def _check_refusal(refusal: Refusal, sent: Iterable[bytes]) -> None:
    told = repr(refusal).encode()
    assert not any(len(part) > 20 and part in told for secret in sent for part in secret.split(b"."))
    assert refusal.status in (400, 401)  # `read` is for what is asked, and that is nothing so far
    assert refusal.reason.isprintable()
    challenges = [value.decode("ascii") for name, value in refusal.headers if name == b"www-authenticate"]
    assert len(challenges) == 2
    assert demand_in(challenges).scopes == ("read",)


def _check_grant(grant: Grant, token: bytes) -> None:
    header, claims = _verified(token, ISSUERS)
    assert header["alg"] == "ES256"
    assert not header.keys() & {"crit", "b64", "enc", "zip"}
    assert claims["iss"] == ISSUER
    assert RESOURCE in (claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]])
    assert grant.good_until == claims["exp"] + LEEWAY > NOW
    assert (claims.get("nbf") or 0) <= NOW + LEEWAY
    whose = claims.get("sub") or claims["client_id"]
    assert grant.principal.partition("#")[0] == ISSUER
    assert grant.principal.endswith(f":{whose}")
    assert grant.claims.keys() == claims.keys()
    cnf = claims.get("cnf")
    assert grant.jkt == (None if cnf is None else cnf["jkt"])


def _check_proof(grant: Grant, token: bytes, proof: bytes) -> None:
    header, claims = _verified(proof, HOLDERS)
    assert header["typ"] == "dpop+jwt"
    assert {header["jwk"][name] == HOLDER[name] for name in ("crv", "kty", "x", "y")} == {True}
    assert grant.jkt == HOLDERS.thumbprint()
    assert claims["htm"] == "POST"
    assert claims["htu"].lower().startswith("https://mcp.example.com")
    assert claims["htu"].partition("?")[0].partition("#")[0].endswith("/mcp")
    assert abs(claims["iat"] - NOW) <= 60
    assert claims["ath"] == _hash(token).decode()


# -- Tokens ------------------------------------------------------------------------------------------------------------


def _forged(header: bytes, claims: bytes, key: ECKey) -> bytes:
    signed = _base64url(header) + b"." + _base64url(claims)
    return signed + b"." + _base64url(JWSRegistry.algorithms["ES256"].sign(signed, key))


def _verified(token: bytes, key: ECKey) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a token says that is signed, in its one spelling and each thing once."""
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
    assert len(found) == len(objects[-1]), "a member stands twice"
    return found


def _hash(token: bytes) -> bytes:
    return _base64url(sha256(token).digest())


def _base64url(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


# -- Cases -------------------------------------------------------------------------------------------------------------

_VALUES: Final = st.one_of(
    st.sampled_from(
        (None, "", 0, -1, True, [], {}, "ES256", "none", "HS256", "k", "JWT", "ID", ISSUER, RESOURCE)
    ),
    st.sampled_from(([RESOURCE, "x"], ["read", "write"], [1], {"jkt": "x"}, HOLDER, 2**53, 1e300, "a\0b")),
    st.sampled_from((NOW, NOW - 61, NOW + 61, NOW - 59, str(NOW), "POST", "GET", RESOURCE + "?a=b", HASH)),
    json_values(1),
)
_NAMES: Final = {
    "header": st.sampled_from((*HEADER, "crit", "b64", "enc", "zip", "jwk", "jku", "x5u", "cty")),
    "claims": st.sampled_from((*CLAIMS, "nbf", "azp", "scp", "cnf", "nonce", "token_use", "typ", "act")),
    "proof": st.sampled_from((*PROOF, "kid", "crit")),
    "proven": st.sampled_from((*PROVEN, "nonce", "exp")),
}
_EDITS: Final = st.tuples(
    st.integers(0, 1),
    st.integers(0, 700),
    st.sampled_from((b".", b"..", b"=", b"A", b"AAAA", b"-_", b" ", b",", b"\xff", b"+/", b"." * 40)),
)
_SELDOM: Final = st.sampled_from((True, False, False, False, False, False))


def _part(draw: DrawFn, good: dict[str, Any], names: SearchStrategy[str]) -> bytes:
    said = dict(good)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        name = draw(names)
        if draw(st.booleans()):
            said[name] = draw(_VALUES)
        else:
            said.pop(name, None)
    data = encoded(said)
    return damage(draw, data) if draw(_SELDOM) else data


@st.composite
def _made(draw: DrawFn) -> Case:
    bound = draw(st.booleans())
    claims = BOUND if bound is not draw(_SELDOM) else CLAIMS
    token = _part(draw, HEADER, _NAMES["header"]), _part(draw, claims, _NAMES["claims"])
    proof = (_part(draw, PROOF, _NAMES["proof"]), _part(draw, PROVEN, _NAMES["proven"])) if bound else None
    return token, proof, draw(_EDITS) if draw(_SELDOM) else None


@st.composite
def _recorded(draw: DrawFn, seeds: Sequence[Case]) -> Case:
    (header, claims), proof, edit = draw(st.sampled_from(seeds))
    return (header, damage(draw, claims)), proof, edit


_MADE: Final = _made()


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    return weighted((9, _MADE), (1, _recorded(seeds))) if seeds else _MADE


TARGET: Final = Target("token", cases, check)
