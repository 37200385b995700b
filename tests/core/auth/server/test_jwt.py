"""JWT access tokens: invalid ones are rejected with a reason, valid ones give a grant."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.auth._jose import InvalidToken, require_joserfc
from mcp_core.auth._steps import Fetch
from mcp_core.auth.server._grant import VerifierUnavailable
from mcp_core.auth.server._jwt import JwtVerifier
from tests.core.auth.bad_tokens import BAD_TOKENS, GOOD
from tests.core.auth.minting import (
    CLAIMS,
    EC,
    ED448,
    ISSUER,
    JWKS,
    JWKS_URI,
    NOW,
    OCT,
    RESOURCE,
    RSA,
    SECRET,
    as_bytes,
    forge,
    keys_reply,
    public,
    run_with_replies,
    run_without_steps,
    token,
)
from tests.levels import fewer_examples

VERIFIER = JwtVerifier(ISSUER, RESOURCE, jwks=JWKS)
ASYMMETRIC = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
]


def refusal(verifier: JwtVerifier, text: str, now: float = NOW) -> str:
    with pytest.raises(InvalidToken) as caught:
        run_without_steps(verifier.verify(text, now))
    return str(caught.value)


# -- Invalid tokens --------------------------------------------------------------------------------


def test_bad_tokens_corpus_is_large_and_distinct() -> None:
    assert len(BAD_TOKENS) >= 400
    assert len({name for name, _, _ in BAD_TOKENS}) == len(BAD_TOKENS)
    assert len({text for _, text, _ in BAD_TOKENS}) >= len(BAD_TOKENS) - 10
    assert run_without_steps(VERIFIER.verify(GOOD, NOW)).principal == f"{ISSUER}#sub:alice"


@pytest.mark.requirement("AR-1", "AR-10", "AR-11")
@pytest.mark.parametrize(
    ("text", "words"), [pytest.param(text, words, id=name[:60]) for name, text, words in BAD_TOKENS]
)
def test_jwt_bad_token_is_rejected_with_reason_only(text: str, words: str) -> None:
    reason = refusal(VERIFIER, text)
    assert words in reason
    assert reason.isascii()
    assert reason.isprintable()
    assert not any(part in reason for part in text.split(".") if len(part) > 12)


@pytest.mark.requirement("AR-10")
def test_jwt_bad_tokens_fetch_only_keys_and_seldom() -> None:
    verifier = JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI)
    fetched = [url for _, text, _ in BAD_TOKENS for url in fetched_by(verifier, text)]
    # For the first token, and three more for tokens with unknown keys.
    assert fetched == [JWKS_URI] * 4


def fetched_by(verifier: JwtVerifier, text: str) -> list[str]:
    """Return the URLs that are fetched for a token that is rejected in the end."""
    flow, urls = verifier.verify(text, NOW), []
    try:
        step = next(flow)
        while True:
            assert isinstance(step, Fetch)
            urls.append(step.request.url)
            step = flow.send(keys_reply())
    except (InvalidToken, VerifierUnavailable):
        return urls


@pytest.mark.parametrize("text", [text for _, text, _ in BAD_TOKENS[::9]])
def test_jwt_bad_token_with_secret_is_rejected(text: str) -> None:
    refusal(JwtVerifier(ISSUER, RESOURCE, secret=b"x" * 64), text)


@given(
    st.text()
    | st.from_regex(r"\A[A-Za-z0-9_.-]*\Z")
    | st.lists(st.binary(max_size=9)).map(lambda x: ".".join(map(bytes.hex, x)))
)
@example("\ud800")
@example("..")
def test_jwt_any_text_is_rejected(text: str) -> None:
    refusal(VERIFIER, text)


@given(st.data())
def test_jwt_any_changed_character_is_rejected(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(GOOD) - 1))
    other = data.draw(st.sampled_from("AZaz09-_.+/= \n\0é"))
    if GOOD[place] != other:
        refusal(VERIFIER, GOOD[:place] + other + GOOD[place + 1 :])


@fewer_examples(2)
@given(
    st.dictionaries(
        st.sampled_from([*CLAIMS, "cnf", "nbf", "scp", "typ", "token_use", "azp"]),
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False,
            allow_infinity=False) | st.text(max_size=5)
        | st.lists(st.text(max_size=3)) | st.dictionaries(st.text(max_size=3), st.text(max_size=3)),
        min_size=1,
    )
)  # fmt: skip
def test_jwt_any_claims_give_grant_or_invalid_token(claims: dict[str, Any]) -> None:
    try:
        grant = run_without_steps(VERIFIER.verify(token(**claims), NOW))
    except InvalidToken:
        return
    assert grant.principal.startswith(f"{ISSUER}#")


# -- Valid tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alg", ASYMMETRIC)
def test_jwt_each_asymmetric_algorithm_is_accepted(alg: str) -> None:
    assert run_without_steps(VERIFIER.verify(token(alg), NOW)).client_id == "app"
    assert (
        run_without_steps(
            JwtVerifier(ISSUER, RESOURCE, jwks=JWKS, algorithms=[alg]).verify(token(alg), NOW)
        ).claims["jti"]
        == "t1"
    )
    others = [name for name in ASYMMETRIC if name != alg]
    assert "not allowed" in refusal(
        JwtVerifier(ISSUER, RESOURCE, jwks=JWKS, algorithms=others), token(alg)
    )


def test_jwt_eddsa_accepts_ed448() -> None:
    text = forge({"alg": "EdDSA", "kid": "ed448"}, CLAIMS, ED448, "Ed448")
    assert run_without_steps(VERIFIER.verify(text, NOW)).principal == f"{ISSUER}#sub:alice"


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
def test_jwt_secret_accepts_hmac_only(alg: str) -> None:
    """A shared secret refuses RSA signatures, and an issuer's key set refuses HMAC."""
    secret = SECRET * 2
    shared = JwtVerifier(ISSUER, RESOURCE, secret=secret)
    key = type(OCT).import_key(secret)
    assert (
        run_without_steps(shared.verify(forge({"alg": alg}, CLAIMS, key, alg), NOW)).client_id
        == "app"
    )
    assert (
        run_without_steps(
            shared.verify(forge({"alg": alg, "kid": "any"}, CLAIMS, key, alg), NOW)
        ).client_id
        == "app"
    )
    assert "not allowed" in refusal(VERIFIER, forge({"alg": alg}, CLAIMS, key, alg))
    assert "not allowed" in refusal(shared, GOOD)


def test_jwt_secret_shorter_than_digest_is_rejected() -> None:
    shared = JwtVerifier(ISSUER, RESOURCE, secret=SECRET)
    assert run_without_steps(shared.verify(token("HS256"), NOW)).client_id == "app"
    assert "does not publish" in refusal(shared, token("HS384"))


# Claims, and the members of the grant.
GOOD_TOKENS: list[Any] = [
    pytest.param({},
        {"client_id": "app", "scopes": {"files:read", "files:write"}, "expires_at": NOW + 600},
        id="plain"),
    pytest.param({"aud": ["https://other.example", RESOURCE]}, {}, id="one audience of several"),
    pytest.param({"header": {"typ": "JWT"}}, {}, id="typ JWT"),
    pytest.param({"header": {"typ": "jwt"}}, {}, id="typ in lower case"),
    pytest.param({"header": {"typ": None}}, {}, id="no typ"),
    pytest.param({"header": {"typ": "application/AT+JWT"}}, {}, id="typ in full"),
    pytest.param({"header": {"typ": "at+jwt"}, "nonce": "x"}, {},
        id="says that it is an access token"),
    pytest.param({"header": {"typ": "JWT"}, "typ": "Bearer", "token_use": "access"}, {},
        id="kinds of others"),
    pytest.param({"header": {"typ": "JWT"}, "typ": 1, "token_use": ["id"]}, {},
        id="kinds that mean nothing"),
    pytest.param({"header": {"jku": "https://evil.example", "x5c": ["x"], "x5u": 1, "jwk": {}}}, {},
        id="keys beside"),
    pytest.param({"header": {"unknown": {"a": [1]}, "cty": "json"}}, {},
        id="parameters that nobody knows"),
    pytest.param({"without": "scope"}, {"scopes": set()}, id="no scope"),
    pytest.param({"scope": ""}, {"scopes": set()}, id="empty scope"),
    pytest.param({"scope": "a  b "}, {"scopes": {"a", "b"}}, id="spaces"),
    pytest.param({"scope": ["a", "b c"]}, {"scopes": {"a", "b c"}}, id="a list of scopes"),
    pytest.param({"without": "scope", "scp": ["a"]}, {"scopes": {"a"}}, id="scp, a list"),
    pytest.param({"without": "scope", "scp": "a b"}, {"scopes": {"a", "b"}}, id="scp, a text"),
    pytest.param({"scope": None, "scp": None, "cnf": None, "nbf": None},
        {"scopes": set(), "jkt": None}, id="null"),
    pytest.param({"without": "client_id"}, {"client_id": None}, id="no client"),
    pytest.param({"without": "client_id", "azp": "web"}, {"client_id": "web"}, id="azp"),
    pytest.param({"without": "sub"}, {"principal": f"{ISSUER}#client:app"},
        id="a client for itself"),
    pytest.param({"sub": "app"}, {"principal": f"{ISSUER}#sub:app"},
        id="a user with the name of a client"),
    pytest.param({"sub": "jörg #sub:x"}, {"principal": f"{ISSUER}#sub:jörg #sub:x"},
        id="an odd name"),
    pytest.param({"exp": NOW - 59}, {"expires_at": NOW - 59}, id="expired within the leeway"),
    pytest.param({"exp": NOW - 59.5}, {"expires_at": NOW - 59.5}, id="a fraction of a second"),
    pytest.param({"nbf": NOW + 60, "iat": NOW + 60}, {}, id="a clock that is ahead"),
    pytest.param({"iat": 0, "nbf": 0}, {}, id="very old"),
    pytest.param({"without": "iat"}, {}, id="no iat"),
    pytest.param({"cnf": {"jkt": "thumb"}}, {"jkt": "thumb"}, id="bound to a key"),
    pytest.param({"https://example.com/claim": 'a"b', "roles": [{"a": 'x"'}]}, {},
        id="claims of one's own"),
]  # fmt: skip


@pytest.mark.requirement("AR-10", "AR-11")
@pytest.mark.parametrize(("changes", "wanted"), GOOD_TOKENS)
def test_jwt_valid_token_gives_grant(changes: dict[str, Any], wanted: dict[str, Any]) -> None:
    grant = run_without_steps(VERIFIER.verify(token(**changes), NOW))
    for name, value in wanted.items():
        assert getattr(grant, name) == value
    if "principal" not in wanted:
        assert grant.principal == f"{ISSUER}#sub:alice"


def test_jwt_escaped_slash_in_claim_name_is_accepted() -> None:
    payload = (
        '{"iss":"https:\\/\\/as.example.com","aud":"https:\\/\\/mcp.example.com\\/mcp",'
        '"sub":"a","exp":1800000100,"https:\\/\\/x":1}'
    )
    assert (
        run_without_steps(
            VERIFIER.verify(forge({"alg": "ES256", "kid": "ec"}, payload), NOW)
        ).claims["https://x"]
        == 1
    )


def test_jwt_leeway_is_configurable() -> None:
    strict = JwtVerifier(ISSUER, RESOURCE, jwks=JWKS, leeway=0)
    assert "expired" in refusal(strict, token(exp=NOW))
    assert "not valid yet" in refusal(strict, token(nbf=NOW + 0.5))
    assert run_without_steps(strict.verify(token(exp=NOW + 0.5), NOW)).expires_at == NOW + 0.5


def test_jwt_key_without_kid_fits_any_kid() -> None:
    nameless = {name: value for name, value in EC.as_dict(private=False).items() if name != "kid"}
    verifier = JwtVerifier(ISSUER, RESOURCE, jwks=as_bytes({"keys": [nameless]}))
    for kid in ("ec", "other", None):
        assert (
            run_without_steps(verifier.verify(token(header={"kid": kid}), NOW)).client_id == "app"
        )


def test_jwt_without_kid_needs_single_fitting_key() -> None:
    assert (
        run_without_steps(VERIFIER.verify(token("ES384", header={"kid": None}), NOW)).client_id
        == "app"
    )
    two = public(EC, type(EC).derive_key(b"other" * 8, "P-256", {"kid": "ec2"}))
    assert "which key" in refusal(
        JwtVerifier(ISSUER, RESOURCE, jwks=two), token(header={"kid": None})
    )
    assert "which key" in refusal(JwtVerifier(ISSUER, RESOURCE, jwks=public(EC, EC)), GOOD)


# -- Options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jwks": JWKS, "jwks_uri": JWKS_URI}, "one of"),
        ({"jwks": JWKS, "secret": SECRET}, "one of"),
        ({"jwks": JWKS, "algorithms": ["HS256"]}, "algorithms must be some of"),
        ({"jwks": JWKS, "algorithms": ["none"]}, "algorithms must be some of"),
        ({"jwks": JWKS, "algorithms": []}, "algorithms must be some of"),
        ({"jwks": JWKS, "algorithms": ["RS256", "HS256"]}, "algorithms must be some of"),
        ({"secret": SECRET, "algorithms": ["RS256"]},
            "algorithms must be some of EdDSA|algorithms must be some of HS256"),
        ({"secret": b"short"}, "5 bytes; at least 32 are required"),
        ({"secret": RSA.as_pem(private=False)}, "public key"),
        ({"jwks": {"keys": []}}, "no public signature key"),
        ({"jwks": {"keys": [OCT.as_dict()]}}, "no public signature key"),
        ({"jwks": {"keys": [RSA.as_dict(private=True)]}}, "no public signature key"),
        ({"jwks": {}}, "not a JWK Set"),
        ({"jwks": b"keys"}, "not a JWK Set"),
        ({"jwks": {"keys": [{}] * 51}}, "51 keys"),
        ({"jwks_uri": "http://as.example.com/keys"}, "jwks_uri is not https"),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri is neither"),
    ],
)  # fmt: skip
def test_jwt_verifier_invalid_options_raise(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        JwtVerifier(ISSUER, RESOURCE, **options)


def test_jwt_verifier_unusable_issuer_url_raises() -> None:
    with pytest.raises(ValueError, match="issuer is neither https nor http"):
        JwtVerifier("my-issuer", RESOURCE)
    assert (
        run_without_steps(
            JwtVerifier("my-issuer", RESOURCE, jwks=JWKS).verify(token(iss="my-issuer"), NOW)
        ).client_id
        == "app"
    )


@pytest.mark.parametrize("audience", ["", [], [""]])
def test_jwt_verifier_without_audience_raises(audience: Any) -> None:
    with pytest.raises(ValueError, match="an audience is required"):
        JwtVerifier(ISSUER, audience, jwks=JWKS)


def test_jwt_audience_host_only_ignores_trailing_slash() -> None:
    for name in ("https://mcp.example.com", "https://mcp.example.com/"):
        verifier = JwtVerifier(ISSUER, name, jwks=JWKS)
        for audience in ("https://mcp.example.com", "https://mcp.example.com/"):
            assert run_without_steps(verifier.verify(token(aud=audience), NOW)).client_id == "app"
        assert "another audience" in refusal(verifier, token(aud="https://mcp.example.com//"))
        assert "another audience" in refusal(verifier, token(aud=RESOURCE))


def test_jwt_audiences_several_are_accepted() -> None:
    verifier = JwtVerifier(ISSUER, ["api://files", RESOURCE], jwks=JWKS)
    assert run_without_steps(verifier.verify(token(aud="api://files"), NOW)).client_id == "app"
    assert run_without_steps(verifier.verify(GOOD, NOW)).client_id == "app"
    assert "another audience" in refusal(verifier, token(aud="api://files/x"))


# Claims of an access token of Amazon Cognito.
COGNITO: dict[str, Any] = {"header": {"typ": None}, "without": "aud", "token_use": "access"}
BY_CLIENT = JwtVerifier(ISSUER, RESOURCE, jwks=JWKS, client_ids=["other", "app"])


def test_jwt_without_audience_is_accepted_for_listed_client() -> None:
    grant = run_without_steps(BY_CLIENT.verify(token(**COGNITO), NOW))
    assert (grant.principal, grant.client_id) == (f"{ISSUER}#sub:alice", "app")
    assert run_without_steps(BY_CLIENT.verify(GOOD, NOW)).client_id == "app"


@pytest.mark.requirement("AR-10")
@pytest.mark.parametrize(
    ("claims", "words"),
    [
        (COGNITO | {"client_id": "stranger"}, "its client_id is not in client_ids"),
        (COGNITO | {"client_id": ["app"]}, "its client_id is not in client_ids"),
        (COGNITO | {"client_id": None, "azp": "app"}, "its client_id is not in client_ids"),
        (COGNITO | {"token_use": "id"}, "not an access token"),
        (COGNITO | {"token_use": "Access"}, "does not say for whom it is (aud)"),
        (COGNITO | {"token_use": None}, "does not say for whom it is (aud)"),
        (COGNITO | {"token_use": ["access"]}, "does not say for whom it is (aud)"),
        (COGNITO | {"without": "", "aud": None}, "does not say for whom it is (aud)"),
        (COGNITO | {"without": "", "aud": []}, "another audience"),
        (COGNITO | {"without": "", "aud": ""}, "another audience"),
        (COGNITO | {"without": "", "aud": "app"}, "another audience"),
        (COGNITO | {"exp": NOW - 100}, "expired"),
        (COGNITO | {"iss": f"{ISSUER}/"}, "another issuer"),
    ],
)
def test_jwt_without_audience_is_refused_unless_everything_fits(
    claims: dict[str, Any], words: str
) -> None:
    assert words in refusal(BY_CLIENT, token(**claims))


def test_jwt_without_audience_is_refused_without_client_ids() -> None:
    text = "does not say for whom it is (aud), and its client_id is not in client_ids"
    assert text in refusal(VERIFIER, token(**COGNITO))


@pytest.mark.parametrize("ids", ["app", [""], ["app", ""]])
def test_jwt_verifier_invalid_client_ids_raise(ids: Any) -> None:
    with pytest.raises(ValueError, match="client_ids"):
        JwtVerifier(ISSUER, RESOURCE, jwks=JWKS, client_ids=ids)


@pytest.mark.requirement("AR-11")
@pytest.mark.parametrize(("configured", "own"), [(ISSUER, f"{ISSUER}/"), (f"{ISSUER}/", ISSUER)])
def test_jwt_issuer_is_compared_as_its_metadata_spells_it(configured: str, own: str) -> None:
    """Character by character. The principal keeps its name, whose tasks and sessions it owns."""
    place = f"{ISSUER}/.well-known/oauth-authorization-server"
    metadata = keys_reply({"issuer": own, "jwks_uri": JWKS_URI})
    script = [(place, metadata), (JWKS_URI, keys_reply())]
    verifier = JwtVerifier(configured, RESOURCE)
    grant = run_with_replies(verifier.verify(token(iss=own), NOW), script)
    assert grant.principal == f"{configured}#sub:alice"
    assert "another issuer" in refusal(verifier, token(iss=configured))
    assert "another issuer" in refusal(verifier, token(iss=f"{own}/"))


@pytest.mark.requirement("AR-11")
@pytest.mark.parametrize("own", [f"{ISSUER}/t", "https://evil.example.com", ISSUER.upper()])
def test_jwt_metadata_of_another_issuer_gives_no_keys(own: str) -> None:
    place = f"{ISSUER}/.well-known/oauth-authorization-server"
    metadata = keys_reply({"issuer": own, "jwks_uri": JWKS_URI})
    with pytest.raises(VerifierUnavailable, match=r"another authorization server.*With jwks_uri"):
        run_with_replies(JwtVerifier(ISSUER, RESOURCE).verify(GOOD, NOW), [(place, metadata)])


@pytest.mark.parametrize(
    ("issuer", "jwks_uri", "text"),
    [
        ("http://localhost:1001", None, None),
        (ISSUER, "http://127.0.0.1:1001/keys", None),
        ("http://as.example.com", None, "issuer is not https"),
        (ISSUER, "http://as.example.com/keys", "jwks_uri is not https"),
    ],
)
def test_verifier_fetches_keys_unencrypted_from_this_machine_only(
    issuer: str, jwks_uri: str | None, text: str | None
) -> None:
    if text is None:
        assert JwtVerifier(issuer, RESOURCE, jwks_uri=jwks_uri).fetches
    else:
        with pytest.raises(ValueError, match=text):
            JwtVerifier(issuer, RESOURCE, jwks_uri=jwks_uri)


def test_verifier_that_fetches_keys_needs_joserfc_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator should learn of it at the start, not from the first token."""
    require_joserfc.cache_clear()
    monkeypatch.setitem(sys.modules, "joserfc.jws", None)
    with pytest.raises(ImportError, match=r"mcp-trio\[auth\]"):
        JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI)


def test_jwt_issuer_without_metadata_is_the_configured_one() -> None:
    verifier = JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI)
    run_with_replies(verifier.verify(GOOD, NOW), [(JWKS_URI, keys_reply())])
    assert "another issuer" in refusal(verifier, token(iss=f"{ISSUER}/"))


def test_jwt_keys_are_fetched_on_first_use() -> None:
    verifier = JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI)
    assert "form" in refusal(verifier, "junk")
    assert (
        run_with_replies(verifier.verify(GOOD, NOW), [(JWKS_URI, keys_reply())]).client_id == "app"
    )
    assert run_without_steps(verifier.verify(token("RS256"), NOW)).client_id == "app"


def test_jwt_keys_unavailable_is_not_invalid_token() -> None:
    verifier = JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI)
    with pytest.raises(VerifierUnavailable, match="HTTP status 500"):
        run_with_replies(verifier.verify(GOOD, NOW), [(JWKS_URI, keys_reply(status=500))])


def test_jwt_verifier_repr_shows_issuer_not_keys() -> None:
    assert repr(VERIFIER) == f"<JwtVerifier of {ISSUER}, <6 keys>>"
    assert (
        repr(JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI))
        == f"<JwtVerifier of {ISSUER}, <0 keys>>"
    )
    assert (
        repr(JwtVerifier(ISSUER, RESOURCE, secret=SECRET)) == f"<JwtVerifier of {ISSUER}, <1 keys>>"
    )
