"""`Grant`: what it shows and rejects.

`test_jwt.py` covers the conversion of claims, token by token.
"""

from __future__ import annotations

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


def test_grant_scopes_and_audiences_table() -> None:
    assert scopes_from_claims({}) == frozenset()
    assert read_claims(b'{"cnf":{"jkt":"a"},"x":{"a":1,"a":2}}')["cnf"] == {"jkt": "a"}
    assert accepted_audiences(["api://x"]) == {"api://x"}
    assert accepted_audiences("urn:x") == {"urn:x"}
    assert accepted_audiences("https:///x") == {"https:///x"}
    assert isinstance(VerifierUnavailable("x"), McpTrioError)
    assert not isinstance(VerifierUnavailable("x"), InvalidToken)
