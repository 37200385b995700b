"""Signed tokens and keys, below all claims.

The corpus of invalid tokens is in `bad_tokens.py`; `test_jwt.py` runs it.
"""

from __future__ import annotations

import builtins
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from mcp_core.auth import _jose
from mcp_core.auth._jose import (
    ASYMMETRIC,
    SYMMETRIC,
    InvalidKey,
    InvalidToken,
    Key,
    base64url,
    load_keys,
    new_key,
    parse_members,
    private_key,
    public_key,
    read_jws,
    require_joserfc,
    secret_key,
    sign,
)
from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from tests.core.auth.minting import (
    EC,
    EC384,
    EC521,
    ED,
    ED448,
    JWKS,
    KEYS,
    RSA,
    SECRET,
    b64,
    forge,
    key_alg,
    ours,
)
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Callable

ANY = ASYMMETRIC | SYMMETRIC
MINE = {key.kid: private_key(key.as_dict(private=True)) for key in (RSA, EC, EC384, EC521, ED)}
PRIVATE: dict[str, Any] = {
    "RSA": RSA,
    "P-256": EC,
    "P-384": EC384,
    "P-521": EC521,
    "Ed25519": ED,
    "Ed448": ED448,
}


def jwk(key: Any, **changes: Any) -> bytes:
    known = key.as_dict(private=False) | changes
    return json.dumps({name: value for name, value in known.items() if value is not None}).encode()


# -- Signatures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("alg", sorted(ASYMMETRIC))
@settings(max_examples=10)
@given(payload=st.binary())
def test_signature_is_valid_for_joserfc_and_back(alg: str, payload: bytes) -> None:
    key, mine = KEYS[key_alg(alg)], MINE[KEYS[key_alg(alg)].kid]
    text = sign({"alg": alg, "typ": "JWT", "kid": "k"}, payload, mine)
    jws = read_jws(text, [alg])
    assert (jws.alg, jws.typ, jws.kid, jws.jwk) == (alg, "JWT", "k", None)
    assert jws.verify(mine) == jws.verify(ours(key)) == payload
    assert (
        read_jws(forge({"alg": alg}, payload, key, key_alg(alg)), ASYMMETRIC).verify(mine)
        == payload
    )


@pytest.mark.parametrize("alg", sorted(SYMMETRIC))
def test_secret_key_signs_and_verifies(alg: str) -> None:
    key = secret_key(SECRET * 2)
    assert read_jws(sign({"alg": alg}, b"x", key), SYMMETRIC).verify(key) == b"x"


@pytest.mark.parametrize("alg", sorted(ANY))
def test_key_supports_its_own_algorithms_only(alg: str) -> None:
    """A key of another kind must neither sign nor verify, or the header's `alg` would decide."""
    kinds = {
        "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        "P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",),
        "Ed25519": ("EdDSA", "Ed25519"), "Ed448": ("EdDSA",),
    }  # fmt: skip
    for kind, algorithms in kinds.items():
        key = private_key(PRIVATE[kind].as_dict(private=True))
        assert key.kind == kind
        assert key.algorithms == algorithms
        assert key.supports(alg) is (alg in algorithms)
        if alg not in algorithms:
            with pytest.raises(InvalidKey, match=f"cannot sign with {alg}"):
                sign({"alg": alg}, b"x", key)
            other = forge({"alg": alg}, b"x", KEYS[key_alg(alg)], key_alg(alg))
            with pytest.raises(InvalidToken, match="do not belong together"):
                read_jws(other, ANY).verify(key)


def test_sign_with_public_key_fails() -> None:
    with pytest.raises(InvalidKey, match="cannot sign with ES256"):
        sign({"alg": "ES256"}, b"x", ours(EC))


def test_secret_key_shorter_than_digest_is_rejected() -> None:
    assert [secret_key(b"x" * size).algorithms for size in (32, 47, 48, 63, 64, 99)] == [
        ("HS256",), ("HS256",), ("HS256", "HS384"), ("HS256", "HS384"),
        ("HS256", "HS384", "HS512"), ("HS256", "HS384", "HS512"),
    ]  # fmt: skip
    for size in (0, 14, 31):
        with pytest.raises(InvalidKey, match=f"{size} bytes; at least 32 are required"):
            secret_key(b"x" * size)


@pytest.mark.parametrize("key", [RSA, EC, ED])
def test_secret_key_from_public_key_is_rejected(key: Any) -> None:
    for text in (key.as_pem(private=False), key.as_der(private=False)):
        with pytest.raises(InvalidKey, match="public key"):
            secret_key(text)


def test_jws_header_key_is_read_but_not_used() -> None:
    jws = read_jws(forge({"alg": "ES256", "jwk": {"kty": "EC"}}, b"x"), ["ES256"])
    assert jws.jwk is not None
    assert json.loads(jws.jwk) == {"kty": "EC"}
    with pytest.raises(InvalidToken, match="signature"):
        jws.verify(ours(ECKey.derive_key(b"other" * 8, "P-256")))


@given(st.binary())
def test_base64url_other_encodings_are_rejected(data: bytes) -> None:
    text = base64url(data)
    assert text == b64(data)
    assert "=" not in text
    assert _jose._from_base64url(text) == data
    for wrong in (text + "=", text + "A" if len(text) % 4 == 0 else text + "!", f" {text}"):
        assert _jose._from_base64url(wrong) is None


@fewer_examples(4)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"')),
        st.none() | st.text(max_size=3),
    )
)
def test_members_repeated_name_is_rejected(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert set(parse_members(text.encode())) == set(value)
    assert set(
        parse_members(
            json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")
        )
    ) == set(value)
    for name in value:
        doubled = f"{text[:-1]},{json.dumps(name)}:1}}"
        with pytest.raises(InvalidPayload):
            parse_members(doubled.encode())


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (b'{"a":' + b"[" * 199 + b"1" + b"]" * 199 + b"}", True),
        (b'{"a":' + b"[" * 201 + b"1" + b"]" * 201 + b"}", False),
        (b'{"a":"\\""}', True),
        (b'{"a\\"":1}', False),
        (b'{"a\\"b\\"":1,"c":2}', False),
        (b'{"a":1,"b":2,"a":3}', False),
        (b'{"a":{"b":1,"b":2}}', True),
        (b"[]", False),
        (b'"a"', False),
    ],
)
def test_members_of_other_json_are_rejected(text: bytes, good: bool) -> None:
    if good:
        assert list(parse_members(text)) == ["a"]
    else:
        with pytest.raises(InvalidPayload):
            parse_members(text)


# -- Keys ------------------------------------------------------------------------------------------


def without_kid(jwk: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in jwk.items() if name != "kid"}


FORMATS: dict[str, Callable[[Any], Key]] = {
    "PEM": lambda key: private_key(key.as_pem(private=True)),
    "text": lambda key: private_key(key.as_pem(private=True).decode(), kid="named"),
    "JWK": lambda key: private_key(key.as_dict(private=True)),
    "JWK without kid": lambda key: private_key(without_kid(key.as_dict(private=True)), kid="named"),
}

# The `kid` of keys whose format has none.
NAMES = {FORMATS["PEM"]: None, FORMATS["text"]: "named", FORMATS["JWK without kid"]: "named"}


@pytest.mark.parametrize("kind", sorted(PRIVATE))
@pytest.mark.parametrize("load", FORMATS.values(), ids=FORMATS)
def test_private_key_every_format_loads(load: Callable[[Any], Key], kind: str) -> None:
    """PEM as bytes or text and JWK give the same thumbprint, and no `repr` shows the key."""
    key = PRIVATE[kind]
    mine = load(key)
    assert mine.kind == kind
    assert mine.kid == NAMES.get(load, key.kid)
    assert mine.thumbprint == key.thumbprint() == ours(key).thumbprint
    assert mine.public_jwk == ours(key).public_jwk
    assert public_key(json.dumps(mine.public_jwk).encode()).thumbprint == mine.thumbprint
    assert repr(mine) == f"<Key {kind}>"


def test_key_thumbprint_equals_example_of_rfc_7638() -> None:
    modulus = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMst"
        "n64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n9"
        "1CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
    )
    key = public_key(
        json.dumps(
            {"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RS256", "kid": "2011-04-29"}
        ).encode()
    )
    assert key.thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    assert key.kid == "2011-04-29"
    assert key.algorithms == ("RS256",)


def test_new_key_same_entropy_gives_same_key() -> None:
    sizes: list[int] = []

    def entropy(size: int) -> bytes:
        sizes.append(size)
        return b"e" * size

    one, two, other = new_key(entropy), new_key(entropy), new_key(lambda size: b"o" * size)
    assert sizes == [32, 32]
    assert one.thumbprint == two.thumbprint != other.thumbprint
    assert set(one.public_jwk) == {"kty", "crv", "x", "y"}
    assert read_jws(sign({"alg": "ES256"}, b"x", one), ["ES256"]).verify(two) == b"x"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "not an unencrypted private key in PEM"),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            "not an unencrypted private key in PEM",
        ),
        (RSA.as_pem(private=False), "not an unencrypted private key in PEM"),
        (EC.as_pem(private=True, password="secret"), "not an unencrypted private key in PEM"),
        (OKPKey.generate_key("X25519").as_pem(private=True), "its kind is not supported"),
        (ECKey.generate_key("secp256k1").as_pem(private=True), "its kind is not supported"),
        ({}, "not a JWK"),
        ({"kty": object()}, "not a JWK"),
        ({"kty": "\ud800"}, "not a JWK"),
        (EC.as_dict(private=False), "public key, where"),
        (EC.as_dict(private=True) | {"d": "AAAA"}, "do not form a valid key"),
        (EC.as_dict(private=True) | {"d": 1}, "do not form a valid key"),
        (RSA.as_dict(private=True) | {"p": None}, "do not form a valid key"),
        ({"kty": "oct", "k": "AAAA"}, "its kind is not supported"),
    ],
)
def test_private_key_invalid_source_is_rejected(source: Any, words: str) -> None:
    with pytest.raises(InvalidKey, match=words) as caught:
        private_key(source)
    assert isinstance(caught.value, ValueError)


def test_private_key_weak_rsa_is_rejected() -> None:
    with pytest.warns(SecurityWarning):
        weak = RSAKey.generate_key(1024).as_pem(private=True)
    with pytest.warns(SecurityWarning), pytest.raises(InvalidKey, match="from 2048 to 8192 bits"):
        private_key(weak)


# A foreign public key, and words of the error text.
BAD_KEYS: list[Any] = [
    (b"", "not a JWK"),
    (b"[]", "not a JWK"),
    (b"{}", "not a JWK"),
    (b'{"kty":"EC","kty":"EC"}', "not a JWK"),
    (jwk(EC, kty=1), "not a JWK"),
    (jwk(EC, x=1), "not a JWK"),
    (jwk(EC, use=["sig"]), "not a JWK"),
    (jwk(EC, key_ops="verify"), "not a JWK"),
    (json.dumps(EC.as_dict(private=True)).encode(), "private key or a secret"),
    (json.dumps(RSA.as_dict(private=True)).encode(), "private key or a secret"),
    (json.dumps(OctKey.import_key(SECRET).as_dict()).encode(), "private key or a secret"),
    (jwk(EC, use="enc"), "not for signatures"),
    (jwk(EC, use=""), "not for signatures"),
    (jwk(EC, key_ops=["sign"]), "not for signatures"),
    (jwk(EC, kty="RSA"), "2048 to 8192 bits"),
    (jwk(EC, kty="OKP"), "its kind is not supported"),
    (jwk(ED, kty="EC"), "its kind is not supported"),
    (jwk(EC, kty="AKP"), "its kind is not supported"),
    (jwk(EC, crv=None), "its kind is not supported"),
    (jwk(EC, crv="secp256k1"), "its kind is not supported"),
    (jwk(EC, crv="P-384"), "wrong size"),
    (jwk(ED, crv="X25519"), "its kind is not supported"),
    (jwk(ED, crv="Ed448"), "wrong size"),
    (jwk(EC, x=None), "wrong size"),
    (jwk(EC, y=None), "wrong size"),
    (jwk(EC, x="A" * 43 + "="), "wrong size"),
    (jwk(EC, x="!" * 43), "wrong size"),
    (jwk(EC, x="A" * 20_000), "wrong size"),
    (jwk(EC, x=base64url(bytes(32))), "do not form a valid key"),
    (jwk(EC, x=EC.as_dict()["y"]), "do not form a valid key"),
    (jwk(RSA, n=None), "2048 to 8192 bits"),
    (jwk(RSA, n="AQAB"), "2048 to 8192 bits"),
    (jwk(RSA, n=base64url(b"\xff" * 128)), "2048 to 8192 bits"),
    (jwk(RSA, n=base64url(b"\x00" * 200 + b"\xff" * 100)), "2048 to 8192 bits"),
    (jwk(RSA, n=base64url(b"\xff" * 1025)), "2048 to 8192 bits"),
    (jwk(RSA, n=base64url(b"\xff" * 12_000)), "2048 to 8192 bits"),
    (jwk(RSA, n="!" + str(RSA.as_dict()["n"])), "2048 to 8192 bits"),
    (jwk(RSA, e=None), "exponent"),
    (jwk(RSA, e="AQ"), "exponent"),
    (jwk(RSA, e="Ag"), "exponent"),
    (jwk(RSA, e=base64url(b"\x01\x00\x00\x00\x00")), "exponent"),
    (jwk(RSA, e=RSA.as_dict()["n"]), "exponent"),
    (jwk(RSA, e="BA"), "do not form a valid key"),
]


@pytest.mark.parametrize(("text", "words"), BAD_KEYS)
def test_public_key_invalid_jwk_is_rejected(text: bytes, words: str) -> None:
    with pytest.raises(InvalidKey, match=words):
        public_key(text)


@fewer_examples(2)
@given(
    st.dictionaries(
        st.sampled_from(["kty", "crv", "x", "y", "n", "e", "use", "alg", "kid"]),
        st.text(max_size=9) | st.integers(),
    )
)
def test_public_key_any_members_load_or_raise_invalid_key(changes: dict[str, Any]) -> None:
    for key in (EC, RSA, ED):
        try:
            assert isinstance(public_key(jwk(key, **changes)), Key)
        except InvalidKey:
            continue


def number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"n": number(2**2047 + 1)}, None),
        ({"n": number(2**2047 - 1)}, "2048 to 8192 bits"),
        ({"n": number(2**8192 - 1)}, None),
        ({"n": number(2**8192 + 1)}, "2048 to 8192 bits"),
        ({"e": number(3)}, None),
        ({"e": number(2)}, "exponent"),
        ({"e": number(2**32 - 1)}, None),
        ({"e": number(2**32 + 1)}, "exponent"),
        ({"use": "sig", "key_ops": ["verify", "sign"]}, None),
        ({"key_ops": []}, None),
    ],
)
def test_public_key_rsa_limits_are_exact(members: dict[str, Any], words: str | None) -> None:
    if words is None:
        assert public_key(jwk(RSA, **members)).kind == "RSA"
    else:
        with pytest.raises(InvalidKey, match=words):
            public_key(jwk(RSA, **members))


def test_private_key_with_alg_supports_only_that() -> None:
    key = private_key(RSA.as_dict(private=True) | {"alg": "PS256", "kid": "own"}, kid="other")
    assert (key.algorithms, key.kid) == (("PS256",), "own")


def test_key_set_skips_unusable_keys() -> None:
    """Issuers publish keys for other uses: an unknown one must not make the rest unusable."""
    assert [key.kid for key in load_keys(json.dumps(JWKS).encode())] == [
        "rsa",
        "ec",
        "ec384",
        "ec521",
        "ed",
        "ed448",
    ]
    odd = [
        {}, 1, None, "x", {"kty": "AKP", "alg": "ML-DSA-44", "pub": "x"}, EC.as_dict(private=True),
        {"kty": "oct", "k": "x"},
        EC.as_dict(private=False, use="enc"),
        EC.as_dict(private=False, use="sig", key_ops=["verify"], kid="good"),
    ]  # fmt: skip
    assert [key.kid for key in load_keys(json.dumps({"keys": odd, "more": 1}).encode())] == ["good"]
    assert load_keys(b'{"keys":[]}') == []


def test_key_set_over_limit_is_rejected() -> None:
    one = EC.as_dict(private=False)
    assert len(load_keys(json.dumps({"keys": [one] * 50}).encode())) == 50
    with pytest.raises(InvalidKey, match="has 51 keys; at most 50 are allowed"):
        load_keys(json.dumps({"keys": [one] * 51}).encode())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"keys":{}}',
        b'{"keys":null}',
        b"\xff",
        b'{"keys":' + b"[" * 9999,
    ],
)
def test_key_set_invalid_document_is_rejected(text: bytes) -> None:
    with pytest.raises(InvalidKey, match="not a JWK Set"):
        load_keys(text)


def test_key_with_alg_supports_only_that() -> None:
    key = public_key(jwk(RSA, alg="PS256"))
    assert key.algorithms == ("PS256",)
    with pytest.raises(InvalidToken, match="do not belong together"):
        read_jws(forge({"alg": "RS256"}, b"x", RSA, "RS256"), ["RS256"]).verify(key)
    assert public_key(jwk(EC, alg="ES384")).algorithms == ()


# -- joserfc ---------------------------------------------------------------------------------------


def test_require_joserfc_missing_names_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The `auth` extra is optional: its absence must name the command that installs it."""
    require_joserfc.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "joserfc"]:
        monkeypatch.delitem(sys.modules, name)
    found = builtins.__import__

    def without_joserfc(name: str, *args: Any) -> Any:
        if name.partition(".")[0] == "joserfc":
            raise ModuleNotFoundError(name=name)
        return found(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_joserfc)
    uses: list[Any] = [
        require_joserfc,
        lambda: new_key(lambda size: b"e" * size),
        lambda: secret_key(SECRET),
        lambda: public_key(jwk(EC)),
        lambda: private_key(EC.as_pem(private=True)),
        lambda: private_key(EC.as_dict(private=True)),
    ]
    for use in uses:
        with pytest.raises(ImportError, match=r"pip install 'mcp-trio\[auth\]'"):
            use()


def test_jose_reprs_hide_content() -> None:
    jws = read_jws(forge({"alg": "ES256"}, b"payload"), ["ES256"])
    assert repr(jws) == "<Jws, 7 bytes>"
    assert repr(secret_key(SECRET)) == "<Key oct256>"
    assert secret_key(SECRET).public_jwk == {"kty": "oct"}
