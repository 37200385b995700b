"""`Grant`: what it shows and rejects.

`test_jwt.py` covers the conversion of claims, token by token.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.pretty import pretty_repr

from mcp_core import McpTrioError
from mcp_core.auth._jose import InvalidToken
from mcp_core.auth.server._grant import (
    Grant,
    VerifierUnavailable,
    accepted_audiences,
    grant_from_claims,
    read_claims,
    scopes_from_claims,
)
from tests.core.auth.minting import CLAIMS, ISSUER, NOW, RESOURCE


def test_grant_repr_hides_claims() -> None:
    grant = Grant(
        "me", "app", frozenset({"b", "a"}), 7.0, {"email": "canary@example.com"}, "thumb-canary"
    )
    shown = "<Grant to 'me' by 'app', scopes='a b', until 7.0>"
    assert repr(grant) == str(grant) == f"{grant}" == pretty_repr(grant) == shown
    assert "canary" not in pretty_repr([grant], expand_all=True)


def test_grant_invalid_members_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        Grant("")
    scopes: Any = "files:read"
    with pytest.raises(ValueError, match="frozenset"):
        Grant("me", scopes=scopes)


def test_grant_introspected_without_expiry_is_accepted() -> None:
    claims = {name: value for name, value in CLAIMS.items() if name != "exp"}
    audience = accepted_audiences(RESOURCE)
    grant = grant_from_claims(
        claims, issuer=ISSUER, audience=audience, now=NOW, leeway=60, require_expiry=False
    )
    assert grant.expires_at is None
    assert grant.claims == claims
    with pytest.raises(InvalidToken, match="when it expires"):
        grant_from_claims(
            claims, issuer=ISSUER, audience=audience, now=NOW, leeway=60, require_expiry=True
        )


def test_grant_principals_are_unique() -> None:
    """Tasks and quotas are owned by principal: users, clients and issuers must never meet."""
    claim_sets: list[dict[str, Any]] = [
        {"sub": "x"},
        {"client_id": "x"},
        {"sub": "client:x"},
        {"sub": "x", "client_id": "y"},
    ]
    found = {
        (issuer, index): grant_from_claims(
            {"aud": RESOURCE} | claims,
            issuer=issuer,
            audience={RESOURCE},
            now=NOW,
            leeway=0,
            require_expiry=False,
        ).principal
        for issuer in (ISSUER, f"{ISSUER}/tenant")
        for index, claims in enumerate(claim_sets)
    }
    # The same user with another client is the same principal.
    assert found[ISSUER, 0] == found[ISSUER, 3]
    assert len(set(found.values())) == 6


def granted(*, leeway: float = 0.0, client_ids: tuple[str, ...] = (), **claims: Any) -> Grant:
    """Return the grant of claims at 1,000 s, from an issuer `as`, for the audience `us`."""
    return grant_from_claims(
        {"aud": "us", "sub": "ann"} | claims,
        issuer="as",
        audience={"us", "us too"},
        now=1000.0,
        leeway=leeway,
        require_expiry=False,
        client_ids=client_ids,
    )


@pytest.mark.requirement("AR-1")
def test_grant_from_full_claims_has_every_member() -> None:
    claims: dict[str, Any] = {
        "aud": ["other", "us"], "sub": "ann", "client_id": "app", "azp": "elsewhere", "exp": 1001,
        "nbf": 1000, "iat": 1000, "scope": "a b", "cnf": {"jkt": "thumb"},
    }  # fmt: skip
    expected = Grant("as#sub:ann", "app", frozenset({"a", "b"}), 1001.0, claims, "thumb", 7.0)
    assert granted(leeway=7.0, **claims) == expected
    assert expected.valid_until == 1008.0
    bare = granted()
    assert bare == Grant("as#sub:ann", claims={"aud": "us", "sub": "ann"})
    assert (bare.client_id, bare.scopes, bare.jkt, bare.leeway) == (None, frozenset(), None, 0.0)
    assert bare.valid_until is None


@pytest.mark.parametrize(
    ("claims", "principal", "client_id"),
    [
        ({"sub": None, "client_id": "app"}, "as#client:app", "app"),
        ({"sub": None, "azp": "app"}, "as#client:app", "app"),
        ({"client_id": None, "azp": "app"}, "as#sub:ann", "app"),
        ({"client_id": "app", "azp": "other"}, "as#sub:ann", "app"),
    ],
)
def test_grant_owner_is_the_subject_or_else_the_client(
    claims: dict[str, Any], principal: str, client_id: str
) -> None:
    grant = granted(**claims)
    assert (grant.principal, grant.client_id) == (principal, client_id)


_LAST_TIME = 2.0**53 - 1  # the last that is accepted


@pytest.mark.requirement("AR-1", "AR-10")
@pytest.mark.parametrize(
    ("claims", "leeway"),
    [
        ({"aud": "us"}, 0),
        ({"aud": "us too"}, 0),
        ({"aud": ["other", "us"]}, 0),
        ({"exp": 1000.5}, 0),
        ({"exp": 990.5}, 10),
        ({"exp": _LAST_TIME}, 0),
        ({"nbf": 1000}, 0),
        ({"nbf": 1010}, 10),
        ({"iat": 1000}, 0),
        ({"iat": 1010}, 10),
        ({"nbf": 0, "iat": 0.0}, 0),
        ({"exp": None, "nbf": None, "iat": None, "azp": None, "cnf": None}, 0),
        ({"cnf": {"jkt": "thumb"}}, 0),
    ],
)
def test_grant_claims_at_each_bound_are_accepted(claims: dict[str, Any], leeway: float) -> None:
    grant = granted(leeway=leeway, **claims)
    assert grant.principal == "as#sub:ann"
    expiry = claims.get("exp")
    assert grant.expires_at == expiry
    assert expiry is None or isinstance(grant.expires_at, float)


_NO_AUDIENCE = "the token does not say for whom it is (aud)"
_OTHER_AUDIENCE = "the token is for another audience: ask for one for this resource"
_NOT_SUPPORTED = "the token is bound to a key in a way that is not supported (cnf)"
_UNSUPPORTED_KEYS: list[Any] = [
    "jkt", ["jkt"], {}, {"jkt": ""}, {"jkt": 1}, {"jkt": None}, {"jwk": {}},
    {"jkt": "thumb", "x5t#S256": "x"},
]  # fmt: skip
_NO_OWNER = "the token does not say whose it is: it has neither sub nor client_id"


@pytest.mark.requirement("AR-1", "AR-10")
@pytest.mark.parametrize(
    ("claims", "leeway", "reason"),
    [
        ({"aud": None}, 0, _NO_AUDIENCE),
        ({"aud": 1}, 0, _NO_AUDIENCE),
        ({"aud": {"us": "us"}}, 0, _NO_AUDIENCE),
        ({"aud": ["us", 1]}, 0, _NO_AUDIENCE),
        ({"aud": [1, "us"]}, 0, _NO_AUDIENCE),
        ({"aud": []}, 0, _OTHER_AUDIENCE),
        ({"aud": "u"}, 0, _OTHER_AUDIENCE),
        ({"aud": ["other", "another"]}, 0, _OTHER_AUDIENCE),
        ({"aud": "other", "token_use": "access", "client_id": "app"}, 0, _OTHER_AUDIENCE),
        ({"exp": 1000}, 0, "the token has expired"),
        ({"exp": 990}, 10, "the token has expired"),
        ({"exp": 0}, 0, "the token has expired"),
        ({"nbf": 1000.5}, 0, "the token is not valid yet"),
        ({"nbf": 1010.5}, 10, "the token is not valid yet"),
        ({"iat": 1000.5}, 0, "the token was issued in the future"),
        ({"iat": 1010.5}, 10, "the token was issued in the future"),
        *(
            ({name: value}, 0, f"a time of the token cannot be read ({name})")
            for name in ("exp", "nbf", "iat")
            for value in (True, "1001", -1, -0.5, 2**53, float("inf"), float("nan"), [1001])
        ),
        *(
            ({name: value}, 0, f"a name in the token cannot be read ({name})")
            for name in ("sub", "client_id", "azp")
            for value in ("", 1, ["ann"], False, "a\nb", "a\u202eb")
        ),
        ({"sub": None}, 0, _NO_OWNER),
        ({"scope": 7}, 0, "the scopes of the token cannot be read"),
        *(
            ({"cnf": value}, 0, _NOT_SUPPORTED)
            for value in _UNSUPPORTED_KEYS
        ),
    ],
)  # fmt: skip
def test_grant_bad_claim_is_rejected_with_its_reason(
    claims: dict[str, Any], leeway: float, reason: str
) -> None:
    with pytest.raises(InvalidToken) as caught:
        granted(leeway=leeway, **claims)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("claims", "client_ids", "accepted"),
    [
        ({"token_use": "access", "client_id": "app"}, ("other", "app"), True),
        ({"token_use": "access", "client_id": "app"}, ("other",), False),
        ({"token_use": "access", "client_id": "app"}, (), False),
        ({"token_use": "access", "client_id": ["app"]}, ("app",), False),
        ({"token_use": "access"}, ("app",), False),
        # The exception does not apply, so that `aud` decides.
        ({"token_use": "id", "client_id": "app"}, ("app",), None),
        ({"client_id": "app"}, ("app",), None),
        ({"aud": None, "token_use": "access", "client_id": "app"}, ("app",), None),
    ],
)
def test_grant_without_audience_needs_a_known_client(
    claims: dict[str, Any], client_ids: tuple[str, ...], accepted: bool | None
) -> None:
    """Such a token is one of access, for a client of the list; None: it lacks an audience."""

    def grant() -> Grant:
        return grant_from_claims(
            {"sub": "ann"} | claims, issuer="as", audience={"us"}, now=0, leeway=0,
            require_expiry=False, client_ids=client_ids,
        )  # fmt: skip

    if accepted:
        assert (grant().principal, grant().client_id) == ("as#sub:ann", "app")
        return
    reason = _NO_AUDIENCE
    if accepted is not None:
        reason += ", and its client_id is not in client_ids of the verifier"
    with pytest.raises(InvalidToken) as caught:
        grant()
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, set()),
        ({"scope": None, "scp": None}, set()),
        ({"scope": "a"}, {"a"}),
        ({"scope": " a  b a "}, {"a", "b"}),
        ({"scope": ["a", "", "b c"]}, {"a", "b c"}),
        ({"scp": "a b"}, {"a", "b"}),
        ({"scp": ["a"]}, {"a"}),
        ({"scope": None, "scp": "a"}, {"a"}),
        # An empty `scope` says that there are none.
        ({"scope": "", "scp": "a"}, set()),
        ({"scope": "b", "scp": "a"}, {"b"}),
        ({"scope": {"a": 1}}, None),
        ({"scope": 1}, None),
        ({"scp": 1}, None),
        ({"scope": ["a", 1]}, None),
        ({"scope": [1, "a"]}, None),
    ],
)
def test_scopes_of_claims_in_each_form(claims: dict[str, Any], scopes: set[str] | None) -> None:
    if scopes is not None:
        assert scopes_from_claims(claims) == scopes
        assert type(scopes_from_claims(claims)) is frozenset
        return
    with pytest.raises(InvalidToken, match="the scopes of the token cannot be read"):
        scopes_from_claims(claims)


def test_claims_without_a_bound_key_are_read() -> None:
    read: list[dict[str, Any]] = [{}, {"cnf": None}, {"cnf": "x"}, {"cnf": {}}]
    for claims in read:
        assert read_claims(json.dumps(claims).encode()) == claims


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"1", b"null", b'{"a":', b'{"a":1,"a":2}', b'{"cnf":{"jkt":"a","jkt":"b"}}'],
)
def test_claims_that_are_no_object_or_repeat_names_are_rejected(payload: bytes) -> None:
    with pytest.raises(InvalidToken, match="the claims of the token cannot be read"):
        read_claims(payload)


@pytest.mark.parametrize(
    ("audience", "names"),
    [
        ("https://x", {"https://x", "https://x/"}),
        ("https://x/", {"https://x", "https://x/"}),
        ("http://x:8000", {"http://x:8000", "http://x:8000/"}),
        ("https://x/mcp", {"https://x/mcp"}),
        ("https://x/mcp/", {"https://x/mcp/"}),
        ("https://", {"https://"}),
        ("ftp://x", {"ftp://x"}),
        ("x", {"x"}),
        (["https://x", "api://y"], {"https://x", "https://x/", "api://y"}),
        (iter(["a", "b"]), {"a", "b"}),
    ],
)
def test_audience_host_alone_is_accepted_with_and_without_slash(
    audience: Any, names: set[str]
) -> None:
    assert accepted_audiences(audience) == names


@pytest.mark.parametrize("audience", ["", [], [""], ["https://x", ""]])
def test_audience_without_a_name_raises_value_error(audience: Any) -> None:
    with pytest.raises(ValueError, match="an audience is required: the URI of this server"):
        accepted_audiences(audience)


def test_verifier_unavailable_asks_to_wait_five_seconds() -> None:
    failure = VerifierUnavailable("a", "b")
    assert (failure.args, failure.retry_after) == (("a", "b"), 5.0)
    assert VerifierUnavailable(retry_after=1.5).retry_after == 1.5


def test_grant_scopes_and_audiences_table() -> None:
    assert scopes_from_claims({}) == frozenset()
    assert read_claims(b'{"cnf":{"jkt":"a"},"x":{"a":1,"a":2}}')["cnf"] == {"jkt": "a"}
    assert accepted_audiences(["api://x"]) == {"api://x"}
    assert accepted_audiences("urn:x") == {"urn:x"}
    assert accepted_audiences("https:///x") == {"https:///x"}
    assert isinstance(VerifierUnavailable("x"), McpTrioError)
    assert not isinstance(VerifierUnavailable("x"), InvalidToken)
