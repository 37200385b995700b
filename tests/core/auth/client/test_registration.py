"""The client's identity at an authorization server: what is requested, stored and reused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mcp_core import AuthRequired
from mcp_core.auth import AuthorizationFailed, FetchFailed, HttpResponse, Secret
from mcp_core.auth.client._registration import (
    ClientIdentity,
    forget_registration,
    identify,
    known_identity,
    load_registration,
    registration_key,
)
from mcp_core.auth.client._tokens import Tokens
from tests.core.auth.play import (
    AS,
    MCP,
    REDIRECT,
    Script,
    authority,
    oauth_error,
    play,
    posted,
    profile,
    registered,
    status,
)

CIMD = "https://app.example.com/client.json"
SECRET = Secret("s")
REGISTER = f"{AS}/register"


def identity_of(
    script: Script | None = None,
    store: dict[str, bytes] | None = None,
    *,
    scopes: tuple[str, ...] = (),
    redirect_uri: str = REDIRECT,
    now: float = 1000.0,
    issuer_: str = AS,
    metadata: dict[str, Any] | None = None,
    **members: Any,
) -> ClientIdentity:
    server = authority(issuer=issuer_, **(metadata or {})).metadata
    flow = identify(profile(**members), server, redirect_uri=redirect_uri, scopes=scopes, now=now)
    return play(flow, script or [], store)


SUPPORTED: dict[str, Any] = {"client_id_metadata_document_supported": True}


@pytest.mark.requirement("AQ-2")
@pytest.mark.parametrize(
    ("members", "metadata", "client_id"),
    [
        ({"client_id": "c", "client_metadata_url": CIMD}, SUPPORTED, "c"),
        ({"client_metadata_url": CIMD}, SUPPORTED, CIMD),
        ({"client_metadata_url": CIMD}, {}, "test-client-id"),
        (
            {"client_metadata_url": CIMD},
            {"client_id_metadata_document_supported": False},
            "test-client-id",
        ),
        ({}, SUPPORTED, "test-client-id"),
    ],
)
def test_identity_order_follows_specification(
    members: dict[str, Any], metadata: dict[str, Any], client_id: str
) -> None:
    script: Script = [(posted(REGISTER), registered())] if client_id == "test-client-id" else []
    assert identity_of(script, metadata=metadata, **members).client_id == client_id


@pytest.mark.requirement("AQ-1", "AQ-2")
@pytest.mark.parametrize(
    ("redirect_uri", "shown_uri"),
    [
        (REDIRECT, REDIRECT),
        ("http://127.0.0.1:0/callback", "http://127.0.0.1/callback (at any port)"),
        ("http://[::1]:0/", "http://[::1]/ (at any port)"),
    ],
)
def test_identity_without_registration_endpoint_requires_manual_one(
    redirect_uri: str, shown_uri: str
) -> None:
    server = authority(registration_endpoint=None).metadata
    ours = profile(redirect_uri=redirect_uri)
    flow = identify(ours, server, redirect_uri=REDIRECT, scopes=(), now=1000.0)
    with pytest.raises(
        AuthRequired,
        match=re.escape(f"with the redirect URI {shown_uri}, and set the client_id (and"),
    ):
        play(flow, [])


OTHER_SPELLINGS = [("https://a.com", "https://a.com/"), ("https://a.com/", "https://a.com")]


@pytest.mark.requirement("AQ-7")
@pytest.mark.parametrize(("old", "new"), OTHER_SPELLINGS)
def test_registration_of_the_other_spelling_is_found_and_deleted(old: str, new: str) -> None:
    store: dict[str, bytes] = {}
    script: Script = [(posted(f"{old}/register"), registered(secret=None))]
    identity_of(script, store, issuer_=old)
    assert identity_of([], store, issuer_=new).from_storage
    assert play(load_registration(new), [], store) == (old, store[registration_key(old)])
    play(forget_registration(new), [], store)
    assert store == {}
    assert play(load_registration(new), [], store) == (new, None)


@pytest.mark.requirement("AQ-7")
@pytest.mark.parametrize(("old", "new"), OTHER_SPELLINGS)
def test_client_id_belongs_to_both_spellings_of_its_issuer(old: str, new: str) -> None:
    store: dict[str, bytes] = {}
    for issuer in (old, new):
        assert identity_of([], store, issuer_=issuer, client_id="c").client_id == "c"
        assert identity_of([], {}, issuer_=issuer, client_id="c", issuer=old).client_id == "c"
    assert store == {"issuer:c": old.encode()}


@pytest.mark.requirement("AQ-7")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("https://a.com/t", "https://a.com/t/"),
        ("https://a.com", "https://a.com//"),
        ("https://a.com", "http://a.com/"),
        ("https://a.com", "https://A.com/"),
        ("https://a.com", "https://a.com:443/"),
    ],
)
def test_registration_and_client_id_of_another_issuer_are_not_used(old: str, new: str) -> None:
    store: dict[str, bytes] = {}
    identity_of([(posted(f"{old}/register"), registered(secret=None))], store, issuer_=old)
    script: Script = [(posted(f"{new}/register"), registered("new", None))]
    assert identity_of(script, store, issuer_=new).client_id == "new"
    with pytest.raises(AuthorizationFailed, match="client_id was made for"):
        identity_of([], {"issuer:c": old.encode()}, issuer_=new, client_id="c")


def test_identity_non_interactive_grant_does_not_register() -> None:
    members: dict[str, Any] = {
        "grant": "client_credentials",
        "client_metadata_url": CIMD,
        "private_key": SECRET,
    }
    with pytest.raises(AuthRequired):
        identity_of(**members)
    assert identity_of(metadata=SUPPORTED, **members) == ClientIdentity(CIMD, "private_key_jwt")


BASIC, POST, NONE, JWT = "client_secret_basic", "client_secret_post", "none", "private_key_jwt"


@pytest.mark.requirement("AQ-10")
@pytest.mark.parametrize(
    ("members", "supported", "method"),
    [
        ({}, [BASIC], NONE),
        ({"client_secret": SECRET}, None, BASIC),
        ({"client_secret": SECRET}, [POST, BASIC], BASIC),
        ({"client_secret": SECRET}, [POST], POST),
        ({"client_secret": SECRET}, [NONE], BASIC),
        ({"client_secret": SECRET, "private_key": SECRET}, [POST], JWT),
    ],
)
def test_identity_preregistered_authentication_method(
    members: dict[str, Any], supported: list[str] | None, method: str
) -> None:
    identity = identity_of(
        client_id="c",
        issuer=AS,
        metadata={"token_endpoint_auth_methods_supported": supported},
        **members,
    )
    assert identity == ClientIdentity("c", method, members.get("client_secret"))


@pytest.mark.requirement("AQ-10", "AQ-6", "AQ-8", "AQ-9")
@pytest.mark.parametrize(
    ("supported", "configured", "given", "method"),
    [
        ([NONE, BASIC], NONE, None, NONE),
        ([BASIC, POST], BASIC, None, BASIC),
        ([POST], POST, None, POST),
        (None, BASIC, None, BASIC),
        (["tls_client_auth"], NONE, None, NONE),
        ([BASIC], BASIC, POST, POST),  # what registration returned counts
        ([BASIC], BASIC, NONE, NONE),
    ],
)
def test_registration_request_declares_authentication_method(
    supported: list[str] | None, configured: str, given: str | None, method: str
) -> None:
    """The server may register another method than asked for: its response counts."""
    expected = posted(
        REGISTER,
        client_name="tests",
        redirect_uris=[REDIRECT],
        application_type="native",
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method=configured,
        scope="a b",
    )
    script: Script = [(expected, registered(token_endpoint_auth_method=given))]
    identity = identity_of(
        script, scopes=("a", "b"), metadata={"token_endpoint_auth_methods_supported": supported}
    )
    secret = None if method == NONE else Secret("test-client-secret")
    assert identity == ClientIdentity("test-client-id", method, secret, registered=True)


@pytest.mark.requirement("AQ-9")
def test_registration_has_the_redirect_uri_of_this_login() -> None:
    """The profile's URI has port 0: the server compares exactly."""
    used = "http://127.0.0.1:49152/callback"
    expected = posted(
        REGISTER,
        client_name="tests",
        redirect_uris=[used],
        application_type="native",
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method=NONE,
    )
    identity = identity_of(
        [(expected, registered())],
        redirect_uri=used,
        metadata={"token_endpoint_auth_methods_supported": [NONE]},
    )
    assert identity.client_id == "test-client-id"


REFUSALS: list[tuple[Any, str, str | None]] = [
    (
        oauth_error("invalid_redirect_uri"),
        f"does not accept the redirect URI {REDIRECT}",
        "invalid_redirect_uri",
    ),
    (
        oauth_error("invalid_client_metadata", "no \x1b localhost"),
        r"invalid_client_metadata \(no   localhost\)",
        "invalid_client_metadata",
    ),
    (status(403), "did not register this client: status 403. Register it by hand", None),
    (status(500), "status 500", None),
    (HttpResponse(201, [], b"<html>"), "the registration of this client cannot be read", None),
    (registered(client_id=""), "usable client_id", None),
    (registered(secret=None, token_endpoint_auth_method=BASIC), "which needs a secret", None),
    (
        registered(token_endpoint_auth_method="x" * 100),
        f"for '{'x' * 40}', which is not supported",
        None,
    ),
    (
        FetchFailed("it took longer than 5 s"),
        "the registration with 'http://localhost:1002' failed: it took longer",
        None,
    ),
]


@pytest.mark.requirement("AQ-6")
@pytest.mark.parametrize(("reply", "text", "error"), REFUSALS)
def test_registration_failed_reports_cause(reply: Any, text: str, error: str | None) -> None:
    store: dict[str, bytes] = {}
    with pytest.raises(AuthorizationFailed, match=text) as caught:
        identity_of([(posted(REGISTER), reply)], store)
    assert caught.value.error == error
    assert store == {}


def store_of(**more: Any) -> dict[str, bytes]:
    kept = {"issuer": AS, "client_id": "kept", "method": "none", "redirect_uri": REDIRECT} | more
    return {registration_key(AS): json.dumps(kept).encode()}


@pytest.mark.requirement("AQ-7")
@pytest.mark.parametrize(
    ("store", "recalled"),
    [
        (store_of(), True),
        (store_of(expires_at=1001), True),
        (store_of(expires_at=1000), False),
        (store_of(scope="a b c"), True),
        (store_of(scope="a"), False),
        (store_of(redirect_uri="http://localhost:3001/callback"), False),
        (store_of(client_id=None), False),
        (store_of(issuer="http://localhost:1003"), False),
        (store_of(issuer=None), False),
        ({registration_key(AS): b"\x00garbage"}, False),
        ({registration_key("http://localhost:1003"): store_of()[registration_key(AS)]}, False),
    ],
)
def test_registration_stored_is_reused_if_it_fits(store: dict[str, bytes], recalled: bool) -> None:
    script: Script = [] if recalled else [(posted(REGISTER), registered())]
    identity = identity_of(script, store, scopes=("a", "b"))
    assert identity.from_storage is recalled
    assert identity.client_id == ("kept" if recalled else "test-client-id")


@pytest.mark.requirement("AQ-7")
def test_registration_is_stored_with_secret() -> None:
    store: dict[str, bytes] = {}
    reply = registered(token_endpoint_auth_method=POST, client_secret_expires_at=5000, scope="a")
    first = identity_of([(posted(REGISTER), reply)], store)
    again = identity_of([], store, scopes=("a",))
    assert (again.client_id, again.method, again.secret) == (
        first.client_id,
        first.method,
        first.secret,
    )
    assert again.from_storage
    assert identity_of([(posted(REGISTER), registered())], store, now=5000.0).from_storage is False
    forever: dict[str, bytes] = {}
    identity_of([(posted(REGISTER), registered(client_secret_expires_at=0))], forever)
    assert identity_of([], forever, now=1e12).from_storage


OTHER = "http://localhost:1003"


@pytest.mark.requirement("AQ-7")
@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"client_id": "c"}, "client_id was made for 'http://localhost:1002'"),
        ({"client_id": "c", "issuer": AS}, "client_id was made for 'http://localhost:1002'"),
        (
            {"client_id": "c", "client_secret": SECRET, "issuer": AS},
            "client_id was made for 'http://localhost:1002'",
        ),
        ({"issuer": AS}, "the issuer of the profile is 'http://localhost:1002'"),
        (
            {"client_metadata_url": CIMD, "issuer": AS},
            "the issuer of the profile is 'http://localhost:1002'",
        ),
    ],
)
def test_configured_identity_other_issuer_fails(members: dict[str, Any], text: str) -> None:
    store = store_of()
    for _ in range(2):
        identity_of([], store, metadata=SUPPORTED, **members)
    with pytest.raises(
        AuthorizationFailed,
        match=f"names the authorization server 'http://localhost:1003', but.*{text}",
    ):
        identity_of([], store, issuer_=OTHER, metadata=SUPPORTED, **members)


@pytest.mark.requirement("AQ-7")
def test_client_id_owner_is_recorded_for_all_mcp_servers() -> None:
    store: dict[str, bytes] = {}
    identity_of([], store, client_id="c")
    assert store == {"issuer:c": AS.encode()}
    assert identity_of([], store, client_id="d", issuer_=OTHER).client_id == "d"


@pytest.mark.requirement("AQ-7")
def test_client_metadata_document_is_sent_to_any_issuer() -> None:
    store: dict[str, bytes] = {}
    for issuer in (AS, OTHER):
        assert (
            identity_of(
                [], store, client_metadata_url=CIMD, issuer_=issuer, metadata=SUPPORTED
            ).client_id
            == CIMD
        )
    assert store == {}


def tokens(client_id: str, method: str | None = None) -> Tokens:
    return Tokens(
        access=SECRET,
        issuer=AS,
        resource=MCP,
        client_id=client_id,
        client_method=method,
        client_secret=SECRET,
    )


@pytest.mark.parametrize(
    ("members", "stored", "identity"),
    [
        ({"client_id": "c"}, tokens("c"), ClientIdentity("c", NONE)),
        ({"client_id": "c"}, tokens("d", POST), None),
        ({"client_metadata_url": CIMD}, tokens(CIMD), ClientIdentity(CIMD, NONE)),
        ({}, tokens("d", POST), ClientIdentity("d", POST, SECRET, registered=True)),
        ({}, tokens("d"), None),
        ({}, None, None),
    ],
)
def test_known_identity_of_tokens_table(
    members: dict[str, Any], stored: Tokens | None, identity: ClientIdentity | None
) -> None:
    assert known_identity(profile(**members), authority(**SUPPORTED).metadata, stored) == identity


def test_identity_repr_shows_no_secret() -> None:
    assert repr(ClientIdentity("c", POST, SECRET)).count("<secret>") == 1
