"""Token introspection: the request, the handling of the response, and the cache."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth._jose import InvalidToken
from mcp_core.auth._steps import Fetch, HttpResponse
from mcp_core.auth.server import _introspection
from mcp_core.auth.server._grant import Grant, VerifierUnavailable
from mcp_core.auth.server._introspection import IntrospectionVerifier
from tests.core.auth.minting import (
    CLAIMS,
    ISSUER,
    NO_REPLY,
    NOW,
    RESOURCE,
    run_with_replies,
    run_without_steps,
)

ENDPOINT = "https://as.example.com/introspect"
TOKEN = "canary-2YotnFZFEjr1zCsicMWpAA"


def verifier(**options: Any) -> IntrospectionVerifier:
    given = {"endpoint": ENDPOINT, "client_id": "me", "client_secret": "canary secret"} | options
    return IntrospectionVerifier(ISSUER, RESOURCE, **given)


def responses(
    answer: Any = None, status: int = 200, **claims: Any
) -> list[tuple[str, HttpResponse]]:
    body = (
        answer
        if isinstance(answer, bytes)
        else json.dumps({"active": True} | CLAIMS | claims).encode()
    )
    return [(ENDPOINT, HttpResponse(status, [], body))]


def grant(script: list[Any], now: float = NOW, by: IntrospectionVerifier | None = None) -> Grant:
    return run_with_replies((by or verifier()).verify(TOKEN, now), script)


def test_introspection_needs_an_http_client() -> None:
    assert verifier().fetches


def test_introspection_request_form_and_headers() -> None:
    flow = verifier(client_id="a b:c", client_secret="ö%").verify(TOKEN, NOW)
    step = next(flow)
    assert isinstance(step, Fetch)
    request = step.request
    assert (request.method, request.url) == ("POST", ENDPOINT)
    assert parse_qs(request.body.decode()) == {
        "token": [TOKEN],
        "token_type_hint": ["access_token"],
    }
    headers = dict(request.headers)
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers["accept"] == "application/json"
    assert b64decode(headers["authorization"].removeprefix("Basic ")) == b"a%20b%3Ac:%C3%B6%25"
    flow.close()


@given(st.from_regex(r"\A[A-Za-z0-9._~+/=&%-]{1,50}\Z"))
def test_introspection_any_token_is_one_form_field(token: str) -> None:
    request = next(verifier().verify(token, NOW)).request  # type: ignore[union-attr]
    assert parse_qs(request.body.decode())["token"] == [token]


@pytest.mark.requirement("AR-11")
def test_introspection_active_token_gives_grant() -> None:
    found = grant(responses())
    assert found.principal == f"{ISSUER}#sub:alice"
    assert found.client_id == "app"
    assert found.scopes == {"files:read", "files:write"}
    assert found.expires_at == NOW + 600
    assert grant(responses(exp=None, iss=ISSUER, nbf=None, client_id=None)).expires_at is None
    assert grant(
        responses(json.dumps({"active": True, "aud": [RESOURCE], "sub": "bob"}).encode())
    ).principal.endswith("bob")
    assert grant(responses(cnf={"jkt": "thumb"}, token_type="DPoP")).jkt == "thumb"


@pytest.mark.requirement("AR-1", "AR-11")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"active":false}', "not active"),
        (b'{"active":false,"sub":"alice"}', "not active"),
        (json.dumps(CLAIMS | {"active": False}).encode(), "not active"),
        (b'{"active":true}', "for whom"),
        (b'{"active":true,"active":true}', None),
        (b'{"active":true,"aud":"https://other.example","sub":"a"}', "another audience"),
        (b'{"active":true,"aud":"https://mcp.example.com/mcp"}', "whose it is"),
        (json.dumps(CLAIMS | {"active": True, "exp": NOW - 60}).encode(), "expired"),
        (json.dumps(CLAIMS | {"active": True, "nbf": NOW + 61}).encode(), "not valid yet"),
        (
            json.dumps(CLAIMS | {"active": True, "iss": "https://evil.example"}).encode(),
            "another issuer",
        ),
        (json.dumps(CLAIMS | {"active": True, "iss": None}).encode(), "another issuer"),
        (json.dumps(CLAIMS | {"active": True, "scope": 1}).encode(), "scopes"),
        (json.dumps(CLAIMS | {"active": True, "exp": "soon"}).encode(), "exp"),
        (
            json.dumps(CLAIMS | {"active": True, "cnf": {"x5t#S256": "a"}}).encode(),
            "bound to a key",
        ),
        (b'{"active":true,"cnf":{"jkt":"a","jkt":"b"}}', "cannot be read"),
        (b"", None),
        (b"[]", None),
        (b"{}", None),
        (b"<html>", None),
        (b'{"active":"true"}', None),
        (b'{"active":1}', None),
        (b'{"active":null}', None),
        (b'{"active":"false"}', None),
        (b'{"ACTIVE":true}', None),
        (b'{"active":true}{', None),
        (b'{"active":true,"x":"' + b"x" * 65_536 + b'"}', None),
    ],
)
def test_introspection_other_responses_deny_or_unavailable(
    answer: bytes, words: str | None
) -> None:
    introspector = verifier()
    for _ in range(2):  # it is not cached
        if words is None:
            with pytest.raises(VerifierUnavailable, match="did not answer as RFC 7662 says"):
                grant(responses(answer), by=introspector)
        else:
            with pytest.raises(InvalidToken, match=words) as caught:
                grant(responses(answer), by=introspector)
            assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (NO_REPLY, "nobody is there"),
        (HttpResponse(500), "HTTP status 500"),
        (HttpResponse(302), "HTTP status 302"),
        (HttpResponse(201, [], b'{"active":true}'), "HTTP status 201"),
        (HttpResponse(401), "does not accept our client_id"),
        (HttpResponse(403), "does not accept our client_id"),
        (HttpResponse(400), "HTTP status 400"),
    ],
)
def test_introspection_no_response_is_unavailable(reply: Any, words: str) -> None:
    with pytest.raises(VerifierUnavailable, match=words) as caught:
        grant([(ENDPOINT, reply)])
    assert "canary" not in str(caught.value)


def test_introspection_active_result_is_cached() -> None:
    introspector = verifier(cache_seconds=30)
    first = grant(responses(), by=introspector)
    for later in (0.0, 1.0, 29.9):
        assert grant([], NOW + later, by=introspector) is first
    assert grant(responses(scope="less"), NOW + 30, by=introspector).scopes == {"less"}
    assert run_with_replies(
        introspector.verify(TOKEN + "x", NOW + 31), responses(scope="other")
    ).scopes == {"other"}
    assert grant([], NOW + 31, by=introspector).scopes == {"less"}
    assert repr(introspector) == f"<IntrospectionVerifier of {ISSUER}, 2 tokens remembered>"


def test_introspection_cache_ends_at_token_expiry() -> None:
    introspector = verifier(cache_seconds=30)
    grant(responses(exp=NOW + 5), by=introspector)
    assert grant([], NOW + 20, by=introspector).expires_at == NOW + 5  # within the leeway
    strict = verifier(cache_seconds=30, leeway=0)
    grant(responses(exp=NOW + 5), by=strict)
    with pytest.raises(InvalidToken, match="has expired"):
        grant([], NOW + 5, by=strict)


def test_introspection_clock_set_back_discards_cache() -> None:
    introspector = verifier()
    grant(responses(), by=introspector)
    assert grant(responses(scope="x"), NOW - 1, by=introspector).scopes == {"x"}


def test_introspection_cache_full_drops_least_recently_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_introspection, "_MAX_CACHED", 3)
    introspector = verifier()
    for index in range(5):
        run_with_replies(introspector.verify(f"t{index}", NOW), responses())
    assert "3 tokens" in repr(introspector)
    assert run_without_steps(introspector.verify("t4", NOW)).client_id == "app"
    assert run_without_steps(introspector.verify("t2", NOW)).client_id == "app"
    run_with_replies(introspector.verify("t1", NOW), responses(scope="asked again"))


def test_introspection_concurrent_flows_of_one_token_share_the_fetch() -> None:
    introspector = verifier()
    flows = [introspector.verify(TOKEN, NOW) for _ in range(3)]
    steps = [next(flow) for flow in flows]
    assert all(step is steps[0] for step in steps)
    assert next(introspector.verify("another", NOW)) is not steps[0]
    flows.pop().close()
    for flow in flows:
        with pytest.raises(StopIteration) as stop:
            flow.send(responses()[0][1])
        assert stop.value.value.client_id == "app"
    assert introspector._steps == {}
    # A response is for the flows that waited for it, not for later ones.
    assert next(verifier().verify(TOKEN, NOW)) is not steps[0]


def test_introspection_flood_of_unknown_tokens_spares_known_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bound keeps room for tokens introspected before: only unknown ones get the 503."""
    monkeypatch.setattr(_introspection, "_MAX_UNKNOWN", 2)
    introspector = verifier(cache_seconds=30)
    grant(responses(), by=introspector)
    flood = [introspector.verify(f"unknown-{index}", NOW + 60) for index in range(5)]
    for flow in flood[:2]:
        next(flow)
    for flow in flood[2:]:
        with pytest.raises(VerifierUnavailable, match="too many unknown tokens"):
            next(flow)
    assert grant(responses(scope="again"), NOW + 60, by=introspector).scopes == {"again"}
    # A known token stays known if it could not be introspected, and no longer if it is revoked.
    with pytest.raises(VerifierUnavailable):
        grant([(ENDPOINT, NO_REPLY)], NOW + 100, by=introspector)
    with pytest.raises(InvalidToken, match="not active"):
        grant(responses(b'{"active":false}'), NOW + 100, by=introspector)
    with pytest.raises(VerifierUnavailable, match="too many unknown tokens"):
        grant(responses(), NOW + 100, by=introspector)
    # Places are free again once the flows have ended.
    flood[0].close()
    with pytest.raises(InvalidToken):
        flood[1].send(responses(b'{"active":false}')[0][1])
    assert introspector._unknown == 0
    assert grant(responses(), NOW + 100, by=introspector).client_id == "app"


def test_introspection_token_is_hidden_in_repr_and_cache() -> None:
    introspector = verifier()
    grant(responses(), by=introspector)
    assert "canary" not in repr(introspector)
    assert "canary" not in repr(next(introspector.verify("canary-2", NOW)))
    assert TOKEN.encode() not in b"".join(introspector._cache)


@pytest.mark.parametrize(
    "endpoint",
    ["http://as.example.com/introspect", "ftp://x", "introspect", "https://u:p@as.example.com"],
)
def test_introspection_unusable_endpoint_raises(endpoint: str) -> None:
    with pytest.raises(ValueError, match="endpoint "):
        verifier(endpoint=endpoint)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:4711/introspect", "http://localhost/i"])
def test_introspection_endpoint_of_this_machine_needs_no_tls(endpoint: str) -> None:
    assert "canary" not in repr(verifier(endpoint=endpoint))
