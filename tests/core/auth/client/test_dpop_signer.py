"""Proofs of the DPoP signer, checked as a verifier would."""

from __future__ import annotations

import json
import sys
from base64 import urlsafe_b64decode
from hashlib import sha256
from typing import Any

import pytest

from mcp_core.auth import AuthorizationFailed, Secret
from mcp_core.auth._jose import require_joserfc
from mcp_core.auth.client._dpop_signer import DpopSigner, is_dpop_available, new_seed
from tests.core.auth.play import Clock, Entropy

URL = "https://e.com/mcp"


def prover(seed: Secret | None = None) -> DpopSigner:
    entropy = Entropy()
    return DpopSigner(seed or new_seed(entropy), entropy=entropy, wall_time=Clock(1234.9))


def parts(proof: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, claims, _ = (urlsafe_b64decode(part + "==") for part in proof.split("."))
    return json.loads(header), json.loads(claims)


@pytest.mark.requirement("AX-3")
def test_dpop_proof_has_claims_of_rfc_9449() -> None:
    """joserfc verifies the signature; `htu` has no query, and `ath` is the token's hash."""
    from joserfc.jwk import ECKey
    from joserfc.jws import deserialize_compact

    proof = prover().create_proof("POST", f"{URL}?a=b#c", Secret("t"))
    header, claims = parts(proof)
    assert (header["typ"], header["alg"], sorted(header["jwk"])) == (
        "dpop+jwt",
        "ES256",
        ["crv", "kty", "x", "y"],
    )
    deserialize_compact(proof, ECKey.import_key(header["jwk"]), algorithms=["ES256"])
    assert len(claims.pop("jti")) == 22
    ath = claims.pop("ath")
    assert urlsafe_b64decode(ath + "=") == sha256(b"t").digest()
    assert claims == {"htm": "POST", "htu": URL, "iat": 1234}


def test_dpop_proofs_have_unique_identifiers() -> None:
    one = prover()
    proofs = [one.create_proof("GET", URL) for _ in range(5)]
    assert len({parts(proof)[1]["jti"] for proof in proofs}) == 5
    assert "ath" not in parts(proofs[0])[1]


def test_dpop_same_seed_gives_same_key() -> None:
    one, two, other = prover(Secret("A" * 43)), prover(Secret("A" * 43)), prover()
    keys = [parts(each.create_proof("GET", URL))[0]["jwk"] for each in (one, two, other)]
    assert keys[0] == keys[1] != keys[2]
    assert one.seed == Secret("A" * 43)


@pytest.mark.requirement("AX-3")
def test_dpop_nonce_is_sent_to_its_origin_only() -> None:
    one = prover()
    assert one.store_nonce(URL, "n1")
    assert not one.store_nonce(f"{URL}/other", "n1")
    assert one.store_nonce(URL, "n2")
    assert parts(one.create_proof("GET", "https://E.com:443/x"))[1]["nonce"] == "n2"
    assert "nonce" not in parts(one.create_proof("GET", "https://f.com/"))[1]
    assert repr(one) == "<DpopSigner ES256, 1 nonces>"
    for nothing in (None, "", "x" * 257):
        assert not one.store_nonce("https://f.com/", nothing)
    assert "nonce" not in parts(one.create_proof("GET", "https://f.com/"))[1]
    assert one.store_nonce("https://f.com/", "x" * 256)
    assert parts(one.create_proof("GET", "https://f.com/"))[1]["nonce"] == "x" * 256


@pytest.mark.parametrize("seed", ["", "AAAA", "é" * 43, "A" * 44, "A"])
def test_dpop_invalid_seed_fails(seed: str) -> None:
    with pytest.raises(AuthorizationFailed, match="the stored DPoP key"):
        prover(Secret(seed))


def test_dpop_without_joserfc_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_dpop_available()
    require_joserfc.cache_clear()
    monkeypatch.setitem(sys.modules, "joserfc.jws", None)
    assert not is_dpop_available()
    monkeypatch.setitem(sys.modules, "joserfc.jwk", None)
    with pytest.raises(AuthorizationFailed, match="requires tokens that are bound to a key"):
        prover()
