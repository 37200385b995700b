"""The JSON documents of OAuth as a table: bytes, and the result or the error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.auth import MAX_BODY, AuthorizationFailed, Secret
from mcp_core.auth._metadata import (
    OAuthErrorResponse,
    TokenResponse,
    is_token,
    read_error,
    read_registration,
    read_resource_metadata,
    read_server_metadata,
    read_token,
    sanitize_error,
)

READERS: list[tuple[Any, dict[str, Any], str]] = [
    (read_resource_metadata, {"resource": "https://e.com"}, "the metadata of the MCP server"),
    (read_server_metadata, {"issuer": "https://a.com"}, "the metadata of the authorization server"),
    (read_registration, {"client_id": "c"}, "the registration of this client"),
    (read_token, {"access_token": "t"}, "the answer of the token endpoint"),
]
NO_DOCUMENTS = [
    b"",
    b"null",
    b"[]",
    b'"x"',
    b"{",
    b"<!doctype html>",
    b"\xff\xfe{}",
    b"{}",
    b"[" * 5000,
    b'{"a":1} x',
]


@pytest.mark.parametrize("body", NO_DOCUMENTS)
@pytest.mark.parametrize(("read", "least", "what"), READERS)
def test_read_document_invalid_json_fails(
    read: Any, least: dict[str, Any], what: str, body: bytes
) -> None:
    with pytest.raises(AuthorizationFailed, match=f"^{what} cannot be read: "):
        read(body)


@pytest.mark.parametrize(("read", "least", "what"), READERS)
def test_read_document_minimal_members_suffice(read: Any, least: dict[str, Any], what: str) -> None:
    more = {
        "unknown": {"deep": [1, 2]},
        "scopes_supported": None,
        "expires_in": None,
        "client_secret": None,
    }
    assert read(json.dumps(least | more).encode()) == read(json.dumps(least).encode())
    assert (
        repr(read(json.dumps(least).encode()))
        == f"<{type(read(json.dumps(least).encode())).__name__}>"
    )
    with pytest.raises(AuthorizationFailed, match=f"^{what} is longer than"):
        read(json.dumps(least | {"x": "y" * MAX_BODY}).encode())


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (read_resource_metadata, {"resource": 1}, r"\$\.resource"),
    (
        read_resource_metadata,
        {"resource": "r", "authorization_servers": "https://a.com"},
        "authorization_servers",
    ),
    (
        read_resource_metadata,
        {"resource": "r", "authorization_servers": [1]},
        "authorization_servers",
    ),
    (read_resource_metadata, {"resource": "r", "scopes_supported": "a b"}, "scopes_supported"),
    (read_server_metadata, {"issuer": ["a"]}, r"\$\.issuer"),
    (read_server_metadata, {"issuer": "a", "token_endpoint": {}}, "token_endpoint"),
    (
        read_server_metadata,
        {"issuer": "a", "code_challenge_methods_supported": "S256"},
        "code_challenge",
    ),
    (
        read_server_metadata,
        {"issuer": "a", "client_id_metadata_document_supported": "yes"},
        "client_id_meta",
    ),
    (read_registration, {"client_id": 5}, r"\$\.client_id"),
    (read_registration, {"client_id": ""}, "usable client_id"),
    (read_registration, {"client_id": "a\nb"}, "usable client_id"),
    (read_token, {"access_token": ""}, "does not fit into a header"),
    (read_token, {"access_token": "a b"}, "does not fit into a header"),
    (read_token, {"access_token": "a\r\nx: y"}, "does not fit into a header"),
    (read_token, {"access_token": "é"}, "does not fit into a header"),
    (read_token, {"access_token": "t", "expires_in": [1]}, "expires_in"),
    (read_token, {"access_token": "t", "refresh_token": 7}, "refresh_token"),
]


@pytest.mark.parametrize(("read", "members", "text"), WRONG)
def test_read_document_wrong_member_is_named(read: Any, members: dict[str, Any], text: str) -> None:
    with pytest.raises(AuthorizationFailed, match=text):
        read(json.dumps(members).encode())


LIVES: list[tuple[Any, float | None]] = [
    (3600, 3600.0), ("3600", 3600.0), (1.5, 1.5), (0, 0.0), (-5, 0.0), (10**30, 315_360_000.0),
    (None, None),
    ("soon", None), ("", None), ("nan", None), ("inf", None),
]  # fmt: skip


@pytest.mark.parametrize(("expires_in", "lifetime"), LIVES)
def test_token_lifetime_is_read_as_in_table(expires_in: Any, lifetime: float | None) -> None:
    assert TokenResponse("t", expires_in=expires_in).lifetime == lifetime


ERRORS: list[tuple[bytes, OAuthErrorResponse | None]] = [
    (b'{"error":"invalid_grant"}', OAuthErrorResponse("invalid_grant")),
    (
        b'{"error":"x","error_description":"a\\u001b[31m\\n b"}',
        OAuthErrorResponse("x", "a [31m  b"),
    ),
    (b'{"error":"x","error_description":"\\n"}', OAuthErrorResponse("x")),
    (b'{"error":"x","error_description":"%s"}' % (b"y" * 300), OAuthErrorResponse("x", "y" * 200)),
    (b'{"error":"%s"}' % (b"y" * 65), None),
    (b'{"error":"a\\nb"}', None),
    (b'{"error":"\\u00e9"}', None),
    (b'{"error":""}', None),
    (b'{"error":{"code":1}}', None),
    (b"<html>", None),
    (b"", None),
]


@pytest.mark.parametrize(("body", "error"), ERRORS)
def test_read_error_table(body: bytes, error: OAuthErrorResponse | None) -> None:
    assert read_error(body) == error


def test_read_error_redacts_sent_secrets() -> None:
    hidden = [Secret("canary-1"), Secret("canary-2")]
    error = sanitize_error("canary-1", "x" * 190 + "canary-2 and canary-1", hidden)
    assert error == OAuthErrorResponse("...", ("x" * 190 + "... and ...")[:200])
    assert sanitize_error("x", "code=a%2Fb%3Dc+d", [Secret("a/b=c d")]) == OAuthErrorResponse(
        "x", "code=..."
    )
    assert sanitize_error("x", "a%2Fb%3Dc%20d", [Secret("a/b=c d")]) == OAuthErrorResponse(
        "x", "..."
    )
    assert sanitize_error("invalid_grant", "no", [Secret(""), Secret("i")]) == OAuthErrorResponse(
        "invalid_grant", "no"
    )


@given(st.binary() | st.text().map(str.encode))
def test_read_document_any_bytes_raise_authorization_failed_only(body: bytes) -> None:
    for read, _, _ in READERS:
        with pytest.raises(AuthorizationFailed):
            read(body)
    read_error(body)


def test_read_token_result_fits_into_header() -> None:
    assert is_token("abc.DEF-~")
    assert not is_token("")
