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
    is_json,
    is_token,
    read_error,
    read_registration,
    read_resource_metadata,
    read_server_metadata,
    read_token,
    sanitize_error,
)


def document_of(read: Any) -> Any:
    """Return a reader without the names of the ignored members."""
    return lambda body: read(body)[0]


READERS: list[tuple[Any, dict[str, Any], str]] = [
    (read_resource_metadata, {"resource": "https://e.com"}, "the metadata of the MCP server"),
    (
        document_of(read_server_metadata),
        {"issuer": "https://a.com"},
        "the metadata of the authorization server",
    ),
    (read_registration, {"client_id": "c"}, "the registration of this client"),
    (document_of(read_token), {"access_token": "t"}, "the answer of the token endpoint"),
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
        {"issuer": "a", "token_endpoint_auth_methods_supported": "none"},
        "token_endpoint_auth_methods",
    ),
    (read_server_metadata, {"issuer": "a", "scopes_supported": "a b"}, "scopes_supported"),
    (
        read_server_metadata,
        {"issuer": "a", "dpop_signing_alg_values_supported": "ES256"},
        "dpop_signing",
    ),
    (read_server_metadata, {"issuer": "a", "code_challenge_methods_supported": [1]}, "code_chall"),
    (read_server_metadata, {"issuer": None}, "issuer"),
    (read_server_metadata, {"issuer": "a", "authorization_endpoint": 1}, "authorization_endpoint"),
    (read_server_metadata, {"issuer": "a", "registration_endpoint": []}, "registration_endpoint"),
    (read_server_metadata, {"issuer": "a", "jwks_uri": 1}, "jwks_uri"),
    (read_registration, {"client_id": 5}, r"\$\.client_id"),
    (read_registration, {"client_id": ""}, "usable client_id"),
    (read_registration, {"client_id": "a\nb"}, "usable client_id"),
    (read_token, {"access_token": ""}, "does not fit into a header"),
    (read_token, {"access_token": "a b"}, "does not fit into a header"),
    (read_token, {"access_token": "a\r\nx: y"}, "does not fit into a header"),
    (read_token, {"access_token": "é"}, "does not fit into a header"),
    (read_token, {"access_token": 7, "scope": []}, "access_token"),
    (read_token, {"token_type": None, "scope": []}, "access_token"),
    (read_token, {"access_token": "t", "token_type": 5}, "token_type"),
    (read_token, {"access_token": "t", "token_type": ["Bearer"]}, "token_type"),
]


@pytest.mark.parametrize(("read", "members", "text"), WRONG)
def test_read_document_wrong_member_is_named(read: Any, members: dict[str, Any], text: str) -> None:
    with pytest.raises(AuthorizationFailed, match=text):
        read(json.dumps(members).encode())


GENEROUS: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    # what a server writes, as what it is read, and what is ignored
    ({"scope": ["a", "b"]}, {"scope": "a b"}, ()),
    ({"scope": []}, {"scope": ""}, ()),
    ({"scope": "a b", "refresh_token": 7}, {"scope": "a b"}, ("refresh_token",)),
    ({"scope": None, "token_type": None}, {"scope": None, "token_type": "Bearer"}, ()),
    ({"scope": ["a", 1]}, {"scope": None}, ("scope",)),
    ({"scope": 7, "refresh_token": "r"}, {"scope": None, "refresh_token": "r"}, ("scope",)),
    ({"token_type": "BEARER", "scope": ["a"]}, {"token_type": "BEARER"}, ()),
    ({"expires_in": "3600", "scope": ["a"]}, {"expires_in": "3600"}, ()),
    ({"expires_in": True}, {"expires_in": None}, ("expires_in",)),
    ({"expires_in": [1]}, {"expires_in": None}, ("expires_in",)),
    ({"expires_in": 10**30, "scope": []}, {"expires_in": 1e30}, ()),
    ({"refresh_token": 7}, {"refresh_token": None}, ("refresh_token",)),
    ({"issued_token_type": {}}, {"issued_token_type": None}, ("issued_token_type",)),
    ({"refresh_token": 7, "expires_in": {}}, {"expires_in": None}, ("expires_in", "refresh_token")),
]


@pytest.mark.parametrize(("written", "members", "ignored"), GENEROUS)
def test_token_member_that_breaks_the_rfc_is_read_or_ignored(
    written: dict[str, Any], members: dict[str, Any], ignored: tuple[str, ...]
) -> None:
    reply, names = read_token(json.dumps({"access_token": "t"} | written).encode())
    assert reply.access_token == "t"
    assert {name: getattr(reply, name) for name in members} == members
    assert names == ignored


@pytest.mark.requirement("AF-9")
@pytest.mark.parametrize(
    ("written", "counts_as"),
    [
        (True, True), ("true", True), (1, True), (0, True), ("", True), ("False", True),
        ("no", True), ({}, True), ([], True),
        (False, False), ("false", False), (None, None),
    ],
)  # fmt: skip
def test_iss_flag_counts_as_true_unless_it_is_clearly_false(written: Any, counts_as: Any) -> None:
    members = {"issuer": "a", "authorization_response_iss_parameter_supported": written}
    metadata, ignored = read_server_metadata(json.dumps(members).encode())
    assert metadata.authorization_response_iss_parameter_supported is counts_as
    assert ignored == ()


def test_unreadable_flag_of_client_metadata_documents_is_ignored() -> None:
    members = {"issuer": "a", "client_id_metadata_document_supported": "yes", "jwks_uri": "u"}
    metadata, ignored = read_server_metadata(json.dumps(members).encode())
    assert metadata.client_id_metadata_document_supported is None
    assert metadata.jwks_uri == "u"
    assert ignored == ("client_id_metadata_document_supported",)


@pytest.mark.parametrize(
    ("body", "answer"),
    [(b"", False), (b"<html>", False), (b"\xff", False), (b"{", False), (b"a=b", False),
     (b"null", True), (b"[" * 60_000, True), (b"[]", True), (b"{}", True), (b'"x"', True)],
)  # fmt: skip
def test_is_json_table(body: bytes, answer: bool) -> None:
    assert is_json(body) is answer


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
    (b'{"error":"%s"}' % (b"y" * 64), OAuthErrorResponse("y" * 64)),
    (b'{"error":"%s"}' % (b"y" * 65), None),
    (b'{"error":"x"}'.ljust(MAX_BODY + 1), OAuthErrorResponse("x")),
    (b'{"error":"x"}'.rjust(MAX_BODY), OAuthErrorResponse("x")),
    (b'{"error":"x"}'.rjust(MAX_BODY + 1), None),
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
