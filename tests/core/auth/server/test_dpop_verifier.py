"""DPoP proofs at the server: each is accepted once, for one request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from joserfc.jwk import ECKey

from mcp_core.auth._jose import InvalidToken
from mcp_core.auth._secret import Secret
from mcp_core.auth.client._dpop_signer import DpopSigner, new_seed
from mcp_core.auth.server._dpop_verifier import (
    DpopNonceRequired,
    DpopVerifier,
    InvalidDpopProof,
    same_url,
)
from tests.core.auth.minting import (
    CLAIMS,
    ED,
    HOLDER,
    JKT,
    KEYS,
    NOW,
    OCT,
    RESOURCE,
    RSA,
    STRANGER,
    forge,
    proof,
)
from tests.levels import fewer_examples

TOKEN = "canary-token"
NONCE_KEY = b"n" * 32
PUBLIC = HOLDER.as_dict(private=False)


def check(proofs: DpopVerifier, text: str, now: float = NOW, **options: Any) -> None:
    request: dict[str, Any] = {
        "method": "POST",
        "urls": [RESOURCE],
        "token": TOKEN,
        "thumbprint": JKT,
        "principal": "ann",
        "now": now,
    } | options
    proofs.verify(text, **request)


def refusal(text: str, **options: Any) -> str:
    proofs = DpopVerifier()
    with pytest.raises(InvalidDpopProof) as caught:
        check(proofs, text, **options)
    assert repr(proofs) == "<DpopVerifier, 0 remembered>"
    return str(caught.value)


@pytest.mark.parametrize("alg", ["ES256", "ES384", "ES512", "RS256", "PS256", "EdDSA", "Ed25519"])
def test_proof_used_twice_is_rejected(alg: str) -> None:
    key = KEYS["Ed25519" if alg == "EdDSA" else alg]
    proofs, text = DpopVerifier(), proof(TOKEN, key=key, alg=alg)
    check(proofs, text, thumbprint=key.thumbprint())
    with pytest.raises(InvalidDpopProof, match="used before"):
        check(proofs, text, thumbprint=key.thumbprint())
    check(proofs, proof(TOKEN, key=key, alg=alg, jti="p2"), thumbprint=key.thumbprint())
    assert repr(proofs) == "<DpopVerifier, 2 remembered>"


def test_proof_of_own_client_is_accepted() -> None:
    def entropy(size: int) -> bytes:
        counted.append(size)
        return bytes([len(counted)]) * size

    counted: list[int] = []
    prover = DpopSigner(new_seed(entropy), entropy=entropy, wall_time=lambda: NOW)
    proofs = DpopVerifier(NONCE_KEY)
    jkt = prover._key.thumbprint
    with pytest.raises(DpopNonceRequired):
        check(proofs, prover.create_proof("POST", RESOURCE, Secret(TOKEN)), thumbprint=jkt)
    prover.store_nonce(RESOURCE, proofs.nonce(NOW))
    check(proofs, prover.create_proof("POST", RESOURCE + "?x=1", Secret(TOKEN)), thumbprint=jkt)
    check(proofs, prover.create_proof("POST", RESOURCE, Secret(TOKEN)), thumbprint=jkt)


# Invalid proofs, and words of the error text.
BAD_PROOFS: list[Any] = [
    ("", "not have the form"),
    ("x" * 20_000, "longer than"),
    ("a.b.c.d.e", "encrypted"),
    ("\xff.\xff.\xff", "base64url"),
    (proof(TOKEN)[:-4] + "AAAA", "signature"),
    (proof(TOKEN, header={"typ": "JWT"}), "type dpop"),
    (proof(TOKEN, header={"typ": None}), "type dpop"),
    (proof(TOKEN, header={"typ": "at+jwt"}), "type dpop"),
    (proof(TOKEN, header={"jwk": None}), "type dpop"),
    (proof(TOKEN, header={"alg": "none"}), "algorithm"),
    (proof(TOKEN, header={"alg": "HS256"}), "algorithm"),
    (forge({"typ": "dpop+jwt", "alg": "HS256", "jwk": OCT.as_dict()}, CLAIMS, OCT, "HS256"),
        "algorithm"),
    (proof(TOKEN, header={"crit": ["x"], "x": 1}), "extension"),
    (proof(TOKEN, header={"jwk": {}}), "no usable key"),
    (proof(TOKEN, header={"jwk": "https://evil.example"}), "no usable key"),
    (proof(TOKEN, header={"jwk": HOLDER.as_dict(private=True)}), "private key"),
    (proof(TOKEN, header={"jwk": OCT.as_dict()}), "private key or a secret"),
    (proof(TOKEN, header={"jwk": RSA.as_dict(private=False)}), "another key"),
    (proof(TOKEN, header={"jwk": PUBLIC | {"kid": "x", "use": "enc"}}), "not for signatures"),
    (proof(TOKEN, header={"jwk": PUBLIC | {"alg": "ES384"}}), "do not belong together"),
    (proof(TOKEN, key=STRANGER), "another key"),
    (proof(TOKEN, key=STRANGER, header={"jwk": PUBLIC}), "signature"),
    (proof(TOKEN, key=ED, alg="EdDSA"), "another key"),
    *((proof(TOKEN, without=name), "needs the claims") for name in ("jti", "htm", "htu", "iat",
        "ath")),
    *((proof(TOKEN, **{name: value}), "needs the claims") for name in ("jti", "htm", "htu", "ath",
        "nonce") for value in (1, ["x"])),
    *((proof(TOKEN, **{name: None}), "needs the claims") for name in ("jti", "htm", "htu", "iat",
        "ath")),
    (proof(TOKEN, iat=str(NOW)), "needs the claims"),
    (proof(TOKEN, iat=True), "needs the claims"),
    (proof(TOKEN, jti=""), "no identifier"),
    (forge({"typ": "dpop+jwt", "alg": "ES256", "jwk": PUBLIC}, b"[]", HOLDER), "needs the claims"),
    (forge({"typ": "dpop+jwt", "alg": "ES256", "jwk": PUBLIC}, b'{"jti":"a","jti":"b"}', HOLDER),
        "needs the claims"),
    (proof(TOKEN, htm="GET"), "another method"),
    (proof(TOKEN, htm="post"), "another method"),
    (proof(TOKEN, htu="https://mcp.example.com/"), "another URL"),
    (proof(TOKEN, htu="https://mcp.example.com/mcp/"), "another URL"),
    (proof(TOKEN, htu="http://mcp.example.com/mcp"), "another URL"),
    (proof(TOKEN, htu="https://mcp.example.com:8443/mcp"), "another URL"),
    (proof(TOKEN, htu="https://mcp.example.com/MCP"), "another URL"),
    (proof(TOKEN, htu="https://user@mcp.example.com/mcp"), "another URL"),
    (proof(TOKEN, htu="https://mcp.example.com/mcp\n"), "another URL"),
    (proof(TOKEN, htu="/mcp"), "another URL"),
    (proof(TOKEN, htu=""), "another URL"),
    (proof("other"), "another token"),
    (proof(TOKEN, ath=""), "another token"),
    (proof(TOKEN, ath="é"), "another token"),
    (proof(TOKEN, iat=NOW - 61), "too old"),
    (proof(TOKEN, iat=NOW + 16), "from the future"),
    (proof(TOKEN, iat=0), "too old"),
    (proof(TOKEN, iat=-NOW), "too old"),
    (proof(TOKEN, iat=1e300), "from the future"),
    (proof(TOKEN, iat=10**400), "needs the claims"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BAD_PROOFS)
def test_proof_invalid_is_rejected_with_reason(text: str, words: str) -> None:
    reason = refusal(text)
    assert words in reason
    assert "canary" not in reason
    assert reason.isascii()


@fewer_examples(2)
@given(st.text() | st.from_regex(r"\A[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\Z"))
@example("\ud800")
def test_proof_any_text_is_rejected(text: str) -> None:
    assert refusal(text)


@fewer_examples(2)
@given(
    st.dictionaries(st.sampled_from(["jti", "htm", "htu", "iat", "ath", "nonce"]),
        st.none() | st.text() | st.integers() | st.floats(
        allow_nan=False, allow_infinity=False
    ), min_size=1)
)  # fmt: skip
def test_proof_any_claims_are_accepted_or_rejected(claims: dict[str, Any]) -> None:
    try:
        check(DpopVerifier(), proof(TOKEN, **claims))
    except InvalidDpopProof:
        return
    assert set(claims) <= {"jti", "nonce", "iat"}


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (-60, ""),
        (-60.5, "too old"),
        (15, ""),
        (15.5, "from the future"),
        (60, "from the future"),
        (0, ""),
    ],
)
def test_proof_timestamp_window_is_one_minute(seconds: float, error: str) -> None:
    text = proof(TOKEN, iat=NOW + seconds)
    if error:
        assert error in refusal(text)
    else:
        check(DpopVerifier(), text)


def test_proof_any_listed_url_is_accepted() -> None:
    check(DpopVerifier(), proof(TOKEN), urls=["https://mcp.example.com/sse", RESOURCE])
    assert "another URL" in refusal(proof(TOKEN), urls=[])


# -- Reuse -----------------------------------------------------------------------------------------


def test_proof_identifiers_are_stored_until_expiry() -> None:
    proofs = DpopVerifier()
    check(proofs, proof(TOKEN, jti="late", iat=NOW + 15))
    check(proofs, proof(TOKEN, jti="soon", iat=NOW))
    for now in (NOW, NOW + 60, NOW + 75):
        with pytest.raises(InvalidDpopProof, match="used before"):
            check(proofs, proof(TOKEN, jti="late", iat=NOW + 15), now)
        check(proofs, proof(TOKEN, jti=str(now), iat=now), now)
    # Proofs are forgotten by periods of five seconds: NOW's is over, and the one 15 s later is not.
    assert repr(proofs) == "<DpopVerifier, 3 remembered>"
    check(proofs, proof(TOKEN, jti="last", iat=NOW + 145), NOW + 145)
    assert repr(proofs) == "<DpopVerifier, 1 remembered>"


def test_proof_same_identifier_of_other_key_is_accepted() -> None:
    other = ECKey.derive_key(b"other" * 8, "P-256")
    proofs = DpopVerifier()
    check(proofs, proof(TOKEN))
    check(proofs, proof(TOKEN, key=other), thumbprint=other.thumbprint())


def test_proof_invalid_is_not_stored() -> None:
    proofs = DpopVerifier()
    for text, _ in BAD_PROOFS:
        with pytest.raises(InvalidDpopProof):
            check(proofs, text)
    assert repr(proofs) == "<DpopVerifier, 0 remembered>"


# -- Nonces ----------------------------------------------------------------------------------------


def test_proof_nonce_is_valid_five_to_ten_minutes() -> None:
    """The nonce isn't stored: it is computed per 5 minutes, and the last two are accepted."""
    start = NOW - NOW % 300
    nonce = DpopVerifier(NONCE_KEY).nonce(start)
    assert nonce is not None
    assert len(nonce) == 22  # 16 bytes in base64url
    for later, good in (
        (0, True),
        (299, True),
        (300, True),
        (599, True),
        (600, False),
        (-1, False),
    ):
        proofs, now = DpopVerifier(NONCE_KEY), start + later
        text = proof(TOKEN, iat=now, nonce=nonce)
        if good:
            check(proofs, text, now)
        else:
            with pytest.raises(DpopNonceRequired, match="lacks the current nonce"):
                check(proofs, text, now)


@pytest.mark.parametrize("nonce", [None, "", "x", "é", DpopVerifier(b"o" * 32).nonce(NOW)])
def test_proof_without_required_nonce_is_rejected(nonce: str | None) -> None:
    proofs = DpopVerifier(NONCE_KEY)
    with pytest.raises(DpopNonceRequired):
        check(proofs, proof(TOKEN, nonce=nonce))
    assert repr(proofs) == "<DpopVerifier, 0 remembered, with nonces>"


def test_proof_verifier_without_nonce_key_gives_no_nonce() -> None:
    assert DpopVerifier().nonce(NOW) is None
    check(DpopVerifier(), proof(TOKEN, nonce="any"))
    with pytest.raises(ValueError, match="31 bytes; at least 32 are required"):
        DpopVerifier(b"x" * 31)


def test_proof_nonce_is_shared_by_processes_with_same_key() -> None:
    nonce = DpopVerifier(NONCE_KEY).nonce(NOW)
    check(DpopVerifier(NONCE_KEY), proof(TOKEN, nonce=nonce))
    assert nonce != DpopVerifier(NONCE_KEY).nonce(NOW + 300)


# -- URLs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (RESOURCE, RESOURCE, True),
        (RESOURCE, "HTTPS://MCP.Example.COM/mcp", True),
        (RESOURCE, "https://mcp.example.com:443/mcp", True),
        (RESOURCE, "https://mcp.example.com/mcp?a=b", True),
        (RESOURCE, "https://mcp.example.com/mcp#a", True),
        (RESOURCE, "https://mcp.example.com/mcp?a=b#c?d", True),
        (RESOURCE, "https://mcp.example.com/%6Dcp", True),
        (RESOURCE, "https://mcp.example.com/%4Dcp", False),
        (RESOURCE, "https://mcp.example.com/mcp%2F", False),
        ("https://e.com/a%2fb", "https://e.com/a%2Fb", True),
        ("https://e.com/a%2fb", "https://e.com/a/b", False),
        ("https://e.com/a%2fb", "https://e.com/a2Fb", False),
        ("https://e.com/%257e", "https://e.com/%7e", False),
        ("https://e.com", "https://e.com/", True),
        ("https://e.com", "https://e.com//", False),
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp", True),
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1/mcp", False),
        ("http://127.0.0.1:80/mcp", "http://127.0.0.1/mcp", True),
        ("http://e.com/", "http://e.com/", False),
        ("", "", False),
        ("https://e.com:x/", "https://e.com:x/", False),
        ("https://[::1/", "https://[::1/", False),
    ],
)
def test_same_url_compares_as_in_table(one: str, other: str, same: bool) -> None:
    assert same_url(one, other) is same
    assert same_url(other, one) is same


@given(st.text(), st.text())
def test_same_url_any_text_raises_nothing(one: str, other: str) -> None:
    assert same_url(f"https://e.com/{one}", other) in (True, False)
    assert same_url(one, one) in (True, False)


def test_proof_errors_are_invalid_tokens() -> None:
    assert issubclass(DpopNonceRequired, InvalidDpopProof)
    assert issubclass(InvalidDpopProof, InvalidToken)
