"""CORS headers: the origins that may read a response, and the responses to preflights."""

from __future__ import annotations

import pytest

from mcp_core.http import HostOriginPolicy
from mcp_core.http.server._checks import cors_headers, preflight_headers
from tests.harness.wire.router import (
    HOST,
    E,
    RouterHarness,
    meta,
    request,
)

PAGE = (b"origin", b"https://app.example")


def test_response_names_the_one_allowed_origin() -> None:
    headers = dict(cors_headers(b"https://app.example", with_auth=False))
    assert headers[b"access-control-allow-origin"] == b"https://app.example"
    assert headers[b"vary"] == b"origin"
    assert b"mcp-session-id" in headers[b"access-control-expose-headers"]
    assert b"access-control-allow-credentials" not in headers


def test_guarded_response_exposes_the_challenge() -> None:
    readable = dict(cors_headers(b"https://app.example", with_auth=True))[
        b"access-control-expose-headers"
    ].split(b", ")
    assert {b"www-authenticate", b"dpop-nonce", b"mcp-session-id"} <= set(readable)
    open_to_all = dict(cors_headers(b"https://app.example", with_auth=False))[
        b"access-control-expose-headers"
    ]
    assert b"authenticate" not in open_to_all


@pytest.mark.parametrize(
    ("requests", "allowed"),
    [
        ({}, b"*"),
        (
            {b"access-control-request-headers": b"mcp-method, content-type"},
            b"mcp-method, content-type",
        ),
    ],
)
def test_preflight_allows_the_requested_headers(
    requests: dict[bytes, bytes], allowed: bytes
) -> None:
    headers = dict(preflight_headers(requests))
    assert headers[b"access-control-allow-headers"] == allowed
    assert headers[b"access-control-allow-methods"] == b"GET, POST, DELETE, OPTIONS"
    assert int(headers[b"access-control-max-age"]) == 600


def test_cors_headers_are_sent_to_listed_origins_only() -> None:
    """Errors carry the headers too, or a page couldn't read why its request failed."""
    harness = RouterHarness(policy=HostOriginPolicy("127.0.0.1", origins=["https://app.example"]))
    version = (b"mcp-protocol-version", E.encode())
    body = request(1, "tools/list", {"_meta": meta()})
    for page, shares in ((PAGE, True), ((b"origin", b"http://127.0.0.1:8000"), False)):
        replies = [
            harness.post(body, page, version, (b"mcp-method", b"tools/list")),
            harness.post(body, page, version),
            harness.send(b"PUT", [HOST, page]),
            harness.send(b"OPTIONS", [HOST, page]),
        ]
        assert [reply.status for reply in replies] == [200, 400, 405, 204]
        assert [b"access-control-allow-origin" in reply.headers for reply in replies] == [
            shares
        ] * 4
    assert (
        b"access-control-allow-origin"
        not in harness.send(b"OPTIONS", [HOST, (b"origin", b"https://evil.example")]).headers
    )
