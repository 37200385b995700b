"""`Authorizer`: which token is sent, and what each rejection leads to."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from mcp_core import AuthRequired
from mcp_core.auth import (
    AuthorizationFailed,
    Authorizer,
    Browse,
    EnterpriseManaged,
    Fetch,
    FetchFailed,
    HttpResponse,
    JwtBearer,
    ListenForRedirect,
    Load,
    Secret,
)
from mcp_core.auth._jose import require_joserfc
from mcp_core.auth._resource_urls import distinct_redirect_uri
from mcp_core.auth.client import _authorizer
from mcp_core.auth.client._authorizer import MAX_STEP_UPS
from mcp_core.auth.client._registration import registration_key
from mcp_core.auth.client._tokens import Tokens, decode_tokens, encode_tokens, tokens_key
from tests.core.auth.play import (
    AS,
    FREE_PORT,
    MCP,
    MISSING,
    OAUTH,
    OK,
    PRM,
    REDIRECT,
    RS,
    Clock,
    Script,
    authorizer,
    browsed,
    callback_reply,
    discovery,
    document_reply,
    first_login,
    forbidden,
    form,
    get,
    login,
    mcp,
    oauth_error,
    play,
    play_to_failure,
    posted,
    registered,
    request,
    resource,
    server,
    server_metadata,
    session,
    status,
    token,
    unauthorized,
)
from tests.levels import long

KEY = tokens_key(MCP)
PLACES = [
    # the MCP server, the address at which it was reached, the URL to fetch, and the addresses
    # allowed for it
    (MCP, None, f"{AS}/x", {"127.0.0.1": True, "::1": True, "9.9.9.9": True, "10.0.0.1": False}),
    (MCP, "127.0.0.1", f"{AS}/x", {"10.0.0.1": False}),
    ("https://e.com/mcp", None, "https://as.com/x",
        {"127.0.0.1": False, "9.9.9.9": True, "10.0.0.1": False}),
    ("https://e.com/mcp", "9.9.9.9", "https://as.com/x", {"10.0.0.1": False, "100.64.0.1": False}),
    ("https://e.com/mcp", None, "https://e.com/prm",
        {"10.0.0.1": True, "127.0.0.1": False, "169.254.169.254": False}),
    ("https://e.com/mcp", "9.9.9.9", "https://e.com/prm",
        {"9.9.9.9": True, "10.0.0.1": False, "169.254.169.254": False}),
    ("https://e.com/mcp", "10.0.0.1", "https://e.com/prm",
        {"10.0.0.1": True, "10.0.0.2": True, "127.0.0.1": False}),
    ("https://e.com/mcp", "127.0.1.1", "https://e.com/prm",
        {"127.0.1.1": True, "127.0.0.1": False, "10.0.0.1": False}),
    ("https://e.com/mcp", None, "https://E.com:443/prm", {"10.0.0.1": True}),
    ("https://e.com/mcp", None, "https://e.com:8443/prm", {"10.0.0.1": False}),
    (
        "https://e.com/mcp",
        "192.168.1.4",
        "https://as.com/x",
        {
            "10.0.0.1": True, "172.31.0.1": True, "192.168.1.5": True, "::ffff:10.0.0.1": True,
            "fd12::1": True,
            "100.64.0.1": True, "9.9.9.9": True, "169.254.169.254": False, "fe80::1": False,
            "127.0.0.1": False,
            "::1": False, "0.0.0.0": False, "::ffff:169.254.169.254": False, "224.0.0.1": False,
            "x": False,
        },
    ),
    ("https://e.com/mcp", "not an address", "https://as.com/x", {"10.0.0.1": False}),
]  # fmt: skip
TOKEN = f"{AS}/token"
CREDENTIALS: dict[str, Any] = {
    "grant": "client_credentials",
    "client_id": "c",
    "client_secret": Secret("canary"),
    "issuer": AS,
}
REFRESH = {"grant_type": "refresh_token", "client_id": "test-client-id", "resource": MCP}


def stored_tokens(**more: Any) -> dict[str, bytes]:
    """Return a storage with tokens of an earlier session."""
    members: dict[str, Any] = {
        "access": Secret("t1"),
        "issuer": AS,
        "resource": MCP,
        "client_id": "test-client-id",
        "refresh": Secret("r1"),
        "requested_scopes": ("a",),
        "expires_at": 1_003_600.0,
        "renew_at": 1_003_540.0,
        "client_method": "none",
    }
    return {KEY: encode_tokens(Tokens(**(members | more)))}


def loaded_authorizer(
    store: dict[str, bytes], clock: Clock | None = None, **more: Any
) -> Authorizer:
    auth = authorizer(clock=clock, **more)
    play(auth.load(), [], store)
    return auth


def refresh_step(access: str = "t2", old: str = "r1", **more: Any) -> tuple[Any, Any]:
    return (form(TOKEN, **REFRESH, refresh_token=old), token(access, **more))


# -- Tokens and headers ----------------------------------------------------------------------------


@pytest.mark.requirement("AT-1", "AT-8")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_authorizer_token_is_sent_with_every_request(method: str) -> None:
    auth = loaded_authorizer(stored_tokens())
    assert auth.attempt("x").headers(method, MCP) == [("authorization", "Bearer t1")]
    assert auth.attempt().headers(method, f"{MCP}?a=b") == [("authorization", "Bearer t1")]


@pytest.mark.requirement("AT-2", "AT-4")
@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1002/mcp",
        "https://localhost:1001/mcp",
        "http://127.0.0.1:1001/mcp",
        "http://e.com/",
    ],
)
def test_authorizer_token_other_origin_is_not_sent(url: str) -> None:
    assert loaded_authorizer(stored_tokens()).attempt().headers("POST", url) == []


def test_authorizer_without_token_sends_no_header() -> None:
    auth = loaded_authorizer({})
    assert auth.attempt().headers("POST", MCP) == []
    assert repr(auth) == "<Authorizer 'http://localhost:1001/mcp': no tokens>"
    assert not auth.expires_soon()


def test_authorizer_repr_shows_no_secret() -> None:
    auth = loaded_authorizer(stored_tokens(client_secret=Secret("p1")))
    assert (
        repr(auth) == "<Authorizer 'http://localhost:1001/mcp': tokens of 'http://localhost:1002'>"
    )
    attempt = auth.attempt("tools/list")
    attempt.headers("POST", MCP)
    assert repr(attempt) == "<AuthAttempt 'tools/list', last status 0>"


STORED: list[tuple[dict[str, bytes], dict[str, Any], str]] = [
    ({KEY: b"\x00garbage"}, {}, "cannot be read"),
    ({KEY: b""}, {}, "cannot be read"),
    (stored_tokens(resource="https://evil.example.com"), {}, "for another MCP server"),
    (stored_tokens(resource="http://["), {}, "for another MCP server"),
    (stored_tokens(), {"client_id": "another"}, "belong to another client"),
    (
        stored_tokens(),
        {"issuer": "https://another.com"},
        "belong to another client or authorization server",
    ),
    (stored_tokens(dpop_seed=Secret("short")), {}, "the stored DPoP key"),
]


@pytest.mark.requirement("AQ-7")
@pytest.mark.parametrize(("store", "members", "text"), STORED)
def test_load_unusable_tokens_are_ignored_with_warning(
    store: dict[str, bytes], members: dict[str, Any], text: str
) -> None:
    before = dict(store)
    auth = loaded_authorizer(store, **members)
    assert auth.attempt().headers("POST", MCP) == []
    (note,) = auth.take_warnings()
    assert text in note
    assert auth.take_warnings() == []
    assert store == before


def test_warnings_too_many_drop_oldest() -> None:
    auth = authorizer()
    for _ in range(50):
        play(auth.load(), [], {KEY: b"x"})
    assert len(auth.take_warnings()) == 16


@pytest.mark.requirement("AU-1", "AU-3")
@pytest.mark.parametrize(("server", "server_address", "url", "addresses"), PLACES)
def test_may_fetch_address_depends_on_server_address(
    server: str, server_address: str | None, url: str, addresses: dict[str, bool]
) -> None:
    auth = authorizer(server)
    auth.set_server_address(server_address)
    assert {each: auth.may_fetch(url, each) for each in addresses} == addresses


NAMED_BY = [
    # the MCP server, where it was reached, where the issuer's metadata came from, and the addresses
    # allowed for a URL that the issuer named
    (MCP, "127.0.0.1", "127.0.0.1", {"127.0.0.1": True, "10.0.0.1": False}),
    (MCP, "127.0.0.1", None, {"127.0.0.1": True, "10.0.0.1": False}),  # http://localhost:1002
    (MCP, "127.0.0.1", "9.9.9.9", {"127.0.0.1": False, "10.0.0.1": False, "9.9.9.8": True}),
    ("https://e.com/mcp", "10.0.0.1", "9.9.9.9",
        {"10.0.0.2": False, "127.0.0.1": False, "9.9.9.8": True}),
    ("https://e.com/mcp", "9.9.9.9", "9.9.9.8", {"10.0.0.2": False, "9.9.9.7": True}),
    ("https://e.com/mcp", "10.0.0.1", "10.0.0.2",
        {"10.0.0.3": True, "9.9.9.9": True, "127.0.0.1": False, "169.254.169.254": False}),
]  # fmt: skip


@pytest.mark.requirement("AU-1", "AU-3")
@pytest.mark.parametrize(("mcp_url", "met", "issuer_address", "addresses"), NAMED_BY)
def test_may_fetch_url_named_by_issuer_depends_on_its_address(
    mcp_url: str, met: str | None, issuer_address: str | None, addresses: dict[str, bool]
) -> None:
    """A public authorization server must not direct us into a private network, or to loopback."""
    issuer = AS if mcp_url == MCP else "https://as.com"
    auth = authorizer(mcp_url)
    auth.set_server_address(met)
    named: list[Fetch] = []
    attempt = auth.attempt()
    attempt.headers("POST", mcp_url)
    assert attempt.received(401, [], mcp_url)
    document = msgspec.structs.replace(
        server(issuer, registration_endpoint="https://other.com/register"), address=issuer_address
    )
    root = mcp_url.removesuffix("/mcp")
    script: Script = [
        (get(f"{root}{PRM}/mcp"), resource(issuer, resource=mcp_url)),
        (get(f"{issuer}{OAUTH}"), document),
        (named.append, FetchFailed("slow")),
    ]
    assert isinstance(play_to_failure(attempt.handle_challenge(), script), AuthorizationFailed)
    url, by = named[0].request.url, named[0].named_by
    assert (url, by) == ("https://other.com/register", issuer)
    assert {each: auth.may_fetch(url, each, by) for each in addresses} == addresses


def test_may_fetch_configured_urls_any_address_is_allowed() -> None:
    managed = EnterpriseManaged(lambda: "id", "https://idp.corp/token", "ic")
    auth = authorizer("https://e.com/mcp", client_id="c", issuer="https://as.corp/t", grant=managed)
    for url, good in (
        ("https://idp.corp/token", True),
        ("https://as.corp/token", True),
        ("https://other.corp/token", False),
    ):
        assert auth.may_fetch(url, "10.0.0.1") is good


@pytest.mark.parametrize(
    ("server", "met", "name", "allowed"),
    [
        ("https://e.com/mcp", None, "as.example", True),
        ("https://e.com/mcp", None, "vault", False),
        ("https://e.com/mcp", None, "metadata.google.internal", False),
        ("https://e.com/mcp", "93.184.216.34", "vault", False),
        # The client can reach the private network anyway, and its server could fetch the URL.
        ("https://e.com/mcp", "10.1.2.3", "vault", True),
        ("https://mcp.corp/mcp", None, "vault", True),
        ("https://10.0.0.1/mcp", None, "vault", True),
        # A server on this machine says nothing of the network behind the proxy.
        ("http://localhost:8000/mcp", "127.0.0.1", "vault", False),
        ("http://127.0.0.1:8000/mcp", "127.0.0.1", "as.example", True),
    ],
)
def test_may_fetch_by_proxy_internal_name_depends_on_server(
    server: str, met: str | None, name: str, allowed: bool
) -> None:
    auth = authorizer(server)
    auth.set_server_address(met)
    assert auth.may_fetch_by_proxy(f"https://{name}/x", name) is allowed


def test_may_fetch_by_proxy_configured_or_own_origin_is_allowed() -> None:
    auth = authorizer("https://mcp/mcp", client_id="c", issuer="https://as.corp/t")
    assert auth.may_fetch_by_proxy("https://mcp/.well-known/x", "mcp")
    assert auth.may_fetch_by_proxy("https://as.corp/token", "as.corp")
    auth = authorizer("https://e.com/mcp", client_id="c", issuer="https://as.corp/t")
    assert auth.may_fetch_by_proxy("https://as.corp/token", "as.corp")
    assert not auth.may_fetch_by_proxy("https://other.corp/token", "other.corp")
    auth = authorizer("http://localhost:1/mcp")
    assert auth.may_fetch_by_proxy("http://localhost:1/prm", "localhost")
    assert not auth.may_fetch_by_proxy("http://localhost:2/prm", "localhost")


def test_is_at_server_compares_origins() -> None:
    auth = authorizer("https://e.com/mcp")
    assert auth.is_at_server("https://E.com:443/.well-known/x")
    for url in "https://e.com:8443/", "http://e.com/", "https://as.e.com/", "https://evil.com/":
        assert not auth.is_at_server(url)


# -- 401 -------------------------------------------------------------------------------------------


@pytest.mark.requirement("AT-4")
def test_refresh_stores_the_redirect_uri_of_the_profile_if_its_port_is_fixed() -> None:
    store = stored_tokens(redirect_uri="http://127.0.0.1:4242/callback")
    play(expiring_authorizer(store).renew(), [*discovery(), refresh_step()], store)
    kept = decode_tokens(store[KEY])
    assert kept is not None
    assert kept.redirect_uri == REDIRECT


def test_unauthorized_with_token_refreshes() -> None:
    """No browser opens, the rotated refresh token is kept, and another process uses the result."""
    store = stored_tokens()
    script: Script = [
        (mcp("Bearer t1"), unauthorized()),
        *discovery(),
        refresh_step(refresh_token="r2"),
        (mcp("Bearer t2"), OK),
        (mcp("Bearer t2"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource()),
        refresh_step("t3", "r2"),
        (mcp("Bearer t3"), OK),
    ]
    auth = authorizer()
    play(session(auth, "x", "y"), script, store)
    assert auth.generation == 0
    play(session(authorizer(), "x"), [(mcp("Bearer t3"), OK)], store)


@pytest.mark.requirement("AT-4", "AT-8")
def test_refresh_rejected_leads_to_login() -> None:
    store = stored_tokens()
    script: Script = [
        (mcp("Bearer t1"), unauthorized()),
        *discovery(),
        (form(TOKEN, **REFRESH), oauth_error("invalid_grant")),
        (posted(f"{AS}/register"), registered()),
        *login("t2", scope="a"),
        (mcp("Bearer t2"), OK),
    ]
    auth = authorizer()
    play(session(auth), script, store)
    assert auth.generation == 1
    (note,) = auth.take_warnings()
    assert "no longer accepted" in note


def test_refresh_invalid_client_registers_again() -> None:
    """The server has forgotten the client, so the stored registration is replaced, not retried."""
    store = stored_tokens() | {
        registration_key(AS): (
            b'{"issuer":"%s","client_id":"old","method":"none","redirect_uri":"%s"}'
            % (AS.encode(), REDIRECT.encode())
        )
    }
    script: Script = [
        (mcp("Bearer t1"), unauthorized()),
        *discovery(),
        (form(TOKEN, **REFRESH), oauth_error("invalid_client", at=401)),
        (posted(f"{AS}/register"), registered()),
        *login("t2"),
        (mcp("Bearer t2"), OK),
    ]
    play(session(authorizer()), script, store)


@pytest.mark.parametrize(
    "reply",
    [
        oauth_error("temporarily_unavailable", at=400),
        oauth_error("server_error"),
        status(503),
        FetchFailed("slow"),
    ],
)
def test_refresh_server_failure_keeps_stored_tokens(reply: Any) -> None:
    store = stored_tokens()
    before = dict(store)
    script: Script = [
        (mcp("Bearer t1"), unauthorized()),
        *discovery(),
        (form(TOKEN, **REFRESH), reply),
    ]
    assert isinstance(play_to_failure(session(authorizer()), script, store), AuthorizationFailed)
    assert store == before


@pytest.mark.requirement("AT-4")
def test_unauthorized_after_refresh_leads_to_one_login() -> None:
    """A server that refuses every token must not open one browser window after another."""
    script: Script = [
        (mcp("Bearer t1"), unauthorized()),
        *discovery(),
        refresh_step(),
        (mcp("Bearer t2"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource()),
        (posted(f"{AS}/register"), registered()),
        *login("t3"),
        (mcp("Bearer t3"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource()),
    ]
    auth, store = authorizer(), stored_tokens()
    failure = play_to_failure(session(auth), script, store)
    assert isinstance(failure, AuthRequired)
    assert "refuses the token that 'http://localhost:1002' has just given" in str(failure)
    assert failure.challenge.startswith("Bearer resource_metadata=")
    again: Script = [(mcp("Bearer t3"), unauthorized()), (get(f"{RS}{PRM}/mcp"), resource())]
    assert isinstance(play_to_failure(request(auth), again, store), AuthRequired)


@pytest.mark.requirement("AT-4")
def test_unauthorized_while_other_requests_succeed_ends() -> None:
    """The server rejects the token here and accepts it elsewhere, which clears it each time."""
    auth, store = loaded_authorizer(stored_tokens()), stored_tokens()
    other = auth.attempt("other")

    def elsewhere_it_is_good(step: Any) -> HttpResponse:
        other.headers("POST", MCP)
        assert not other.received(200, [], MCP)
        return unauthorized()

    def rounds(step: Any) -> HttpResponse:
        return token("t9")

    script: Script = [(mcp("Bearer t1"), unauthorized()), *discovery(), (form(TOKEN), rounds)]
    for _ in range(5):
        script += [
            (mcp("Bearer t9"), elsewhere_it_is_good),
            (get(f"{RS}{PRM}/mcp"), resource()),
            (form(TOKEN), rounds),
        ]
    script += [(mcp("Bearer t9"), elsewhere_it_is_good)]
    failure = play_to_failure(request(auth), script, store)
    assert isinstance(failure, AuthRequired)
    assert "keeps refusing tools/list with every new token" in str(failure)


@pytest.mark.requirement("AT-4")
def test_redirect_does_not_confirm_a_token() -> None:
    """A proxy that redirects looks at no token: counting that would lead to login after login."""
    auth, store = authorizer(), stored_tokens()
    script: Script = [
        (mcp("Bearer t1"), unauthorized()),
        *discovery(),
        refresh_step(),
        (mcp("Bearer t2"), status(307)),
        (mcp("Bearer t2"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource()),
        (posted(f"{AS}/register"), registered()),
        *login("t3"),
        (mcp("Bearer t3"), status(308)),
        (mcp("Bearer t3"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource()),
    ]
    failure = play_to_failure(session(auth, "a", "b", "c"), script, store)
    assert isinstance(failure, AuthRequired)
    assert "has just given" in str(failure)


@pytest.mark.parametrize(
    ("token_resource", "url", "covered"),
    [
        (MCP, f"{MCP}/", True),
        (MCP, f"{RS}/other", False),
        (f"{RS}/", f"{RS}/other", True),
        (RS, f"{RS}/other", True),
        (None, f"{MCP}/", True),
        (None, f"{RS}/other", False),
        (RS, "https://elsewhere.example/mcp", False),
    ],
)
def test_attempt_covers_what_its_token_is_for(
    token_resource: str | None, url: str, covered: bool
) -> None:
    auth = authorizer()
    if token_resource is not None:
        auth = loaded_authorizer(stored_tokens(resource=token_resource))
    assert auth.attempt("tools/list").covers(url) is covered


def test_refresh_public_client_needs_no_profile() -> None:
    """A client without this profile can renew the tokens later."""
    store: dict[str, bytes] = {}
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(),
        *login("t1", scope="a", reply=token("t1", refresh_token="r1")),
        (mcp("Bearer t1"), OK),
    ]
    play(session(authorizer(client_id="test-client-id", scopes=("a",))), script, store)
    script = [
        (mcp("Bearer t1"), unauthorized()),
        *discovery(),
        refresh_step(),
        (mcp("Bearer t2"), OK),
    ]
    play(session(authorizer()), script, store)


def test_tokens_profile_secret_is_not_stored() -> None:
    store: dict[str, bytes] = {}
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(),
        (form(TOKEN, "Basic YzpjYW5hcnk="), token("t1")),
        (mcp("Bearer t1"), OK),
    ]
    auth = authorizer(
        client_id="c", client_secret=Secret("canary"), issuer=AS, grant="client_credentials"
    )
    play(session(auth), script, store)
    assert b"canary" not in b"".join(store.values())
    assert b"client_method" not in store[KEY]


def test_tokens_keep_secret_stores_profile_secret() -> None:
    """A later authorizer without the secret can refresh, since the profile's is in the store."""
    store: dict[str, bytes] = {}
    basic = "Basic dGVzdC1jbGllbnQtaWQ6Y2FuYXJ5"  # of test-client-id and canary
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(),
        (browsed(f"{AS}/authorize", client_id="test-client-id"), callback_reply()),
        (form(TOKEN, basic, code="test-auth-code"), token("t1", refresh_token="r1")),
        (mcp("Bearer t1"), OK),
    ]
    known = authorizer(
        client_id="test-client-id", client_secret=Secret("canary"), issuer=AS, keep_secret=True
    )
    play(session(known), script, store)
    assert b"canary" in store[KEY]
    script = [
        (mcp("Bearer t1"), unauthorized()),
        *discovery(),
        (form(TOKEN, basic, refresh_token="r1"), token("t2")),
        (mcp("Bearer t2"), OK),
    ]
    play(session(authorizer()), script, store)


def test_unauthorized_without_refresh_token_leads_to_login() -> None:
    for store in (stored_tokens(refresh=None), stored_tokens(client_method=None)):
        script: Script = [
            (mcp("Bearer t1"), unauthorized()),
            *discovery(),
            (posted(f"{AS}/register"), registered()),
            *login("t2"),
            (mcp("Bearer t2"), OK),
        ]
        play(session(authorizer()), script, store)


def test_challenge_without_metadata_url_uses_stored_one() -> None:
    place = f"{RS}/custom.json"
    script: Script = [
        (mcp("Bearer t1"), unauthorized(None)),
        (get(place), resource()),
        (get(f"{AS}{OAUTH}"), server()),
        refresh_step(),
        (mcp("Bearer t2"), OK),
    ]
    play(session(authorizer()), script, stored_tokens(metadata_url=place))


def test_received_other_errors_are_not_challenges() -> None:
    for code, headers in (
        (403, []),
        (403, [("www-authenticate", 'Bearer error="invalid_token"')]),
        (404, []),
        (500, []),
    ):
        attempt = loaded_authorizer(stored_tokens()).attempt()
        attempt.headers("POST", MCP)
        assert not attempt.received(code, headers, MCP)
        assert repr(attempt) == f"<AuthAttempt '', last status {code}>"


@pytest.mark.requirement("AU-2", "AG-6")
def test_login_server_without_tls_fails() -> None:
    url = "http://mcp.example.com/mcp"
    failure = play_to_failure(request(authorizer(url), url=url), [(mcp(None), unauthorized(None))])
    assert isinstance(failure, AuthorizationFailed)
    assert "the URL of the MCP server is not https" in str(failure)


def test_authorizer_server_url_fragment_is_dropped() -> None:
    store: dict[str, bytes] = {}
    play(session(authorizer(f"{MCP}#top")), first_login(), store)
    assert KEY in store


def test_unauthorized_without_any_metadata_requires_credentials() -> None:
    challenge = "Bearer " + ", ".join(f'a{number}="x"' for number in range(200))
    script: Script = [
        (mcp(None), status(401, ("www-authenticate", challenge))),
        (get(f"{RS}{PRM}/mcp"), MISSING),
        (get(f"{RS}{PRM}"), MISSING),
        (get(f"{RS}{OAUTH}"), MISSING),
        (posted(f"{RS}/register"), MISSING),
    ]
    failure = play_to_failure(session(authorizer()), script)
    assert isinstance(failure, AuthRequired)
    assert "does not say where to get a token" in str(failure)
    assert "status 404" in str(failure)
    assert failure.challenge == challenge[:1000]


def test_login_registration_error_is_reported_unchanged() -> None:
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(),
        (posted(f"{AS}/register"), oauth_error("invalid_redirect_uri")),
    ]
    failure = play_to_failure(session(authorizer()), script)
    assert isinstance(failure, AuthorizationFailed)
    assert failure.error == "invalid_redirect_uri"


def test_listen_prefers_port_of_last_login() -> None:
    """The same port lets the server accept the registered redirect URI; a new profile wins."""
    place, anywhere = "http://127.0.0.1:4242/callback", "http://127.0.0.1:0/callback"
    ours, free = distinct_redirect_uri(place, AS), distinct_redirect_uri(anywhere, AS)
    for stored, redirect_uri, expected in (
        (ours, anywhere, ListenForRedirect(ours, any_port=True)),
        (place, anywhere, ListenForRedirect(ours, any_port=True)),
        (None, anywhere, ListenForRedirect(free, any_port=True)),
        # a changed profile wins
        ("http://localhost:4242/other", anywhere, ListenForRedirect(ours, any_port=True)),
        (place, REDIRECT, ListenForRedirect(REDIRECT)),
        ("http://[::1", anywhere, ListenForRedirect(free, any_port=True)),
        ("https://e.com/cb", anywhere, ListenForRedirect(free, any_port=True)),
    ):
        store = stored_tokens(redirect_uri=stored, refresh=None)
        auth = loaded_authorizer(store, redirect_uri=redirect_uri)
        assert listen_step(challenged_flow(auth), store) == expected


CIMD = "https://app.example.com/client.json"


@pytest.mark.requirement("AQ-9")
@pytest.mark.parametrize(
    ("members", "distinct"),
    [
        ({}, True),
        ({"client_metadata_url": CIMD}, False),
        ({"client_id": "c"}, False),
        ({"redirect_uri": "http://127.0.0.1:3000/callback"}, False),
    ],
)
def test_redirect_uri_is_distinct_per_issuer_if_we_register_it(
    members: dict[str, Any], distinct: bool
) -> None:
    """The other redirect URIs are registered by the user, or in the user's document."""
    uris = []
    for issuer in AS, "http://localhost:1003":
        auth = authorizer(**({"redirect_uri": "http://127.0.0.1:0/callback"} | members))
        asked: list[Browse] = []

        def look(step: Any, asked: list[Browse] = asked) -> None:
            asked.append(step)

        script: Script = [
            (get(f"{RS}{PRM}/mcp"), resource(issuer)),
            (get(f"{issuer}{OAUTH}"), server(issuer, client_id_metadata_document_supported=True)),
        ]
        if distinct or "redirect_uri" in members:
            script.append((posted(f"{issuer}/register"), registered()))
        script.append((look, TIMEOUT))
        play_to_failure(challenged_flow(auth), script, {})
        assert parse_qs(urlsplit(asked[0].url).query)["redirect_uri"] == [asked[0].redirect_uri]
        uris.append(asked[0].redirect_uri)
    assert (uris[0] != uris[1]) is distinct


# -- Failing and concurrent flows ------------------------------------------------------------------


def store_after_failed_login(*, recalled: bool, failure: Any) -> dict[str, bytes]:
    """Return the storage after a login that failed in the browser."""
    store: dict[str, bytes] = {}
    if recalled:
        store[registration_key(AS)] = (
            b'{"issuer":"%s","client_id":"c","method":"none","redirect_uri":"%s"}'
            % (AS.encode(), REDIRECT.encode())
        )
    script: Script = [(mcp(None), unauthorized()), *discovery()]
    if not recalled:
        script.append((posted(f"{AS}/register"), registered()))
    script.append((browsed(f"{AS}/authorize"), failure))
    assert isinstance(play_to_failure(session(authorizer()), script, store), AuthorizationFailed)
    return store


TIMEOUT = AuthorizationFailed("nobody came back from the browser within 300 s")


@pytest.mark.parametrize(
    ("recalled", "failure", "kept"),
    [
        (True, TIMEOUT, False),
        (True, callback_reply(code=None, error="unauthorized_client"), False),
        (True, callback_reply(code=None, error="access_denied"), True),
        (False, TIMEOUT, True),
    ],
)
def test_login_failed_with_stored_registration_deletes_it(
    recalled: bool, failure: Any, kept: bool
) -> None:
    assert (
        registration_key(AS) in store_after_failed_login(recalled=recalled, failure=failure)
    ) is kept


def listen_step(flow: Generator[Any, Any, None], store: dict[str, bytes]) -> ListenForRedirect:
    """Return the `ListenForRedirect` step of a flow, which then fails."""
    steps: list[ListenForRedirect] = []

    def until_it_listens() -> Generator[Any, Any, None]:
        reply: Any = None
        while True:
            step = flow.send(reply)
            if isinstance(step, ListenForRedirect):
                steps.append(step)
                flow.throw(AuthRequired("nobody is there"))
            reply = yield step

    assert "nobody is there" in str(play_to_failure(until_it_listens(), discovery(), store))
    return steps[0]


@pytest.mark.requirement("AT-6")
def test_listen_impossible_error_names_scopes() -> None:
    """The program can log in elsewhere, with old and new scopes in one request."""
    store = stored_tokens(requested_scopes=("a",))
    auth = loaded_authorizer(store)

    def no_one() -> Generator[Any, Any, None]:
        flow, reply = challenged_flow(auth, reply=forbidden("b")), None
        while not isinstance(step := flow.send(reply), ListenForRedirect):
            reply = yield step
        flow.throw(AuthRequired("nobody is there"))

    failure = play_to_failure(no_one(), discovery(), store)
    assert isinstance(failure, AuthRequired)
    assert failure.scopes == ("a", "b")
    assert failure.challenge.startswith("Bearer ")
    assert str(failure) == "nobody is there"
    auth = authorizer()
    failure = play_to_failure(no_one(), discovery(), {})
    assert isinstance(failure, AuthRequired)
    assert failure.scopes == ()  # the login will determine them
    assert str(failure) == "nobody is there"


def test_listen_impossible_after_a_rejected_token_says_so() -> None:
    """Else the user would think that there is no token."""
    store = stored_tokens(refresh=None)
    auth = loaded_authorizer(store)

    def no_one() -> Generator[Any, Any, None]:
        flow, reply = challenged_flow(auth), None
        while not isinstance(step := flow.send(reply), ListenForRedirect):
            reply = yield step
        flow.throw(AuthRequired("log in elsewhere"))

    failure = play_to_failure(no_one(), discovery(), store)
    assert isinstance(failure, AuthRequired)
    text = f"the MCP server '{MCP}' does not accept the token of the last login; log in elsewhere"
    assert str(failure) == text
    assert failure.scopes == ("a",)


def test_listen_impossible_sends_no_registration() -> None:
    auth = authorizer(redirect_uri="http://127.0.0.1:0/callback")
    assert listen_step(challenged_flow(auth), {}) == ListenForRedirect(
        distinct_redirect_uri("http://127.0.0.1:0/callback", AS), any_port=True
    )
    place = distinct_redirect_uri(f"http://127.0.0.1:{FREE_PORT}/callback", AS)
    again: Script = [
        (mcp(None), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource()),
        (posted(f"{AS}/register", redirect_uris=[place]), registered()),
        (browsed(f"{AS}/authorize", redirect_uri=place), callback_reply()),
        (form(TOKEN, redirect_uri=place), token()),
        (mcp("Bearer t1"), OK),
    ]
    play(request(auth), again)


def test_refresh_does_not_listen() -> None:
    """Another process may be listening on that port, in the middle of a login."""
    flow = challenged_flow(loaded_authorizer(stored_tokens()))
    replies = (None, resource(), server(), None, token("t2"))
    steps = [flow.send(reply) for reply in replies]
    assert [type(step).__name__ for step in steps] == ["Fetch", "Fetch", "Load", "Fetch", "Save"]
    # No other process may use the same refresh token before this one has stored the next.
    assert steps[2] == Load(KEY, for_update=True)


def test_grant_without_a_user_does_not_listen() -> None:
    flow = challenged_flow(authorizer(**CREDENTIALS))
    replies = (None, resource(), server(), None, token("t2"))
    assert [type(flow.send(reply)).__name__ for reply in replies] == [
        "Fetch",
        "Fetch",
        "Load",
        "Fetch",
        "Save",
    ]


def challenged_flow(
    auth: Authorizer, operation: str = "x", reply: HttpResponse | None = None
) -> Generator[Any, Any, None]:
    """Return the flow of a request that was sent and rejected. The flow has not started."""
    attempt = auth.attempt(operation)
    attempt.headers("POST", MCP)
    reply = reply or unauthorized()
    assert attempt.received(reply.status, reply.headers, MCP)
    return attempt.handle_challenge()


@pytest.mark.requirement("AT-4")
def test_flow_after_concurrent_login_uses_its_token() -> None:
    auth = authorizer()
    store: dict[str, bytes] = {}
    one, two, three = (
        challenged_flow(auth),
        challenged_flow(auth),
        challenged_flow(auth, reply=forbidden("a")),
    )
    play(one, first_login()[1:-1], store)
    play(two, [], store)
    play(three, [], store)
    assert auth.attempt().headers("POST", MCP) == [("authorization", "Bearer t1")]


@pytest.mark.requirement("AT-4")
def test_flow_after_concurrent_failed_login_fails_alike() -> None:
    """One browser window is enough: the second flow shares the failure, a later request doesn't."""
    auth = authorizer()
    store: dict[str, bytes] = {}
    one, two = challenged_flow(auth), challenged_flow(auth)
    script: Script = [
        *discovery(),
        (posted(f"{AS}/register"), registered()),
        (browsed(f"{AS}/authorize"), TIMEOUT),
    ]
    assert isinstance(play_to_failure(one, script, store), AuthorizationFailed)
    failure = play_to_failure(two, [], store)
    assert isinstance(failure, AuthorizationFailed)
    assert str(failure) == str(TIMEOUT)
    assert failure is not TIMEOUT
    # a later request starts a flow of its own
    play(challenged_flow(auth), [(get(f"{RS}{PRM}/mcp"), resource()), *login()], store)


@pytest.mark.parametrize("renews", [False, True])
def test_flow_after_a_failed_and_a_successful_one_uses_the_new_token(renews: bool) -> None:
    """The outcome of the last flow counts, also of one that renewed the token in time."""
    store = stored_tokens()
    auth = expiring_authorizer(store)
    failed, waiting = challenged_flow(auth), challenged_flow(auth)
    script: Script = [(get(f"{RS}{PRM}/mcp"), status(500))]
    assert isinstance(play_to_failure(failed, script, store), AuthorizationFailed)
    flow = auth.renew() if renews else challenged_flow(auth)
    play(flow, [*discovery(), refresh_step()], store)
    play(waiting, [], store)
    assert auth.attempt().headers("POST", MCP) == [("authorization", "Bearer t2")]


def test_flow_closed_early_lets_next_one_run() -> None:
    auth = authorizer()
    store: dict[str, bytes] = {}
    one, two = challenged_flow(auth), challenged_flow(auth)
    next(one)
    one.close()
    play(two, first_login()[1:-1], store)


# -- 403 -------------------------------------------------------------------------------------------


@pytest.mark.requirement("AT-5", "AT-6", "AT-7")
def test_step_ups_are_counted_per_operation() -> None:
    """The fourth 403 for `x` is final, while `y` starts a count of its own."""
    auth, store = (
        loaded_authorizer(stored_tokens(requested_scopes=("s",)), client_id="test-client-id"),
        stored_tokens(),
    )
    scope = "s"
    script: Script = []
    for number in range(MAX_STEP_UPS):
        script += [(mcp(f"Bearer t{number + 1}", "x"), forbidden(f"x{number}"))]
        if not number:
            script += discovery()
        scope += f" x{number}"
        script += login(f"t{number + 2}", scope=scope)
    script += [(mcp("Bearer t4", "x"), forbidden("x4"))]
    failure = play_to_failure(request(auth, "x"), script, store)
    assert isinstance(failure, AuthRequired)
    assert failure.scopes == ("x4",)
    assert "still refuses x after the scopes it wants (x4)" in str(failure)
    more: Script = [
        (mcp("Bearer t4", "y"), forbidden("y0")),
        *login("t5", scope=f"{scope} y0"),
        (mcp("Bearer t5"), OK),
    ]
    play(request(auth, "y"), more, store)
    assert isinstance(
        play_to_failure(request(auth, "x"), [(mcp("Bearer t5"), forbidden("x5"))], store),
        AuthRequired,
    )


@pytest.mark.requirement("AF-6", "AT-5")
@pytest.mark.parametrize("scopes", [None, (), ("a", "b")])
def test_login_without_user_requests_scopes_of_profile_only(scopes: tuple[str, ...] | None) -> None:
    """A hostile server must not get a token with more rights: no user sees what it demands."""
    wanted = " ".join(scopes) if scopes else None
    request_token = (form(TOKEN, "Basic YzpjYW5hcnk=", scope=wanted), token("t2"))
    script: Script = [
        (mcp(None), unauthorized(scope="admin")),
        # Nor is a refresh token requested, which only a user's login needs.
        *discovery(
            resource(scopes_supported=["admin", "root"]),
            server(scopes_supported=["offline_access"]),
        ),
        request_token,
        (mcp("Bearer t2"), OK),
        (mcp("Bearer t2"), unauthorized(scope="admin")),
        (get(f"{RS}{PRM}/mcp"), resource(scopes_supported=["admin"])),
        request_token,
        (mcp("Bearer t2"), forbidden("a admin")),
    ]
    failure = play_to_failure(session(authorizer(**CREDENTIALS, scopes=scopes), "x", "y"), script)
    assert isinstance(failure, AuthRequired)
    assert "demands the scopes a admin for y. Without a user, only the scopes of the" in str(
        failure
    )
    assert failure.scopes == ("a", "admin")
    # Nor does a profile get the scopes that an earlier one requested.
    store = stored_tokens(client_id="c", requested_scopes=("z",))
    auth = expiring_authorizer(store, **CREDENTIALS, scopes=scopes)
    assert play(auth.renew(), [*discovery(), request_token], store)


@pytest.mark.requirement("AT-6")
@pytest.mark.parametrize(
    ("members", "reply", "new"),
    [
        ({}, forbidden("b"), ("b",)),
        ({}, forbidden("a b c"), ("b", "c")),
        ({}, unauthorized(scope="b"), ("b",)),
        ({"scopes": ("b",)}, forbidden("b"), ()),
        ({}, forbidden("a"), ()),
        ({}, unauthorized(), ()),
    ],
)
def test_login_shows_scopes_that_are_new(
    members: dict[str, Any], reply: HttpResponse, new: tuple[str, ...]
) -> None:
    store = stored_tokens(refresh=None)
    auth = loaded_authorizer(store, client_id="test-client-id", **members)
    asked: list[Browse] = []
    metadata = server(scopes_supported=["offline_access"])
    script: Script = [*discovery(metadata=metadata), (asked.append, TIMEOUT)]
    play_to_failure(challenged_flow(auth, reply=reply), script, store)
    assert (asked[0].new_scopes, asked[0].server) == (new, MCP)
    assert ("new_scopes" in repr(asked[0])) is bool(new)


def test_first_login_has_no_new_scopes() -> None:
    asked: list[Browse] = []
    script: Script = [*discovery(), (asked.append, TIMEOUT)]
    auth = authorizer(client_id="test-client-id")
    play_to_failure(challenged_flow(auth, reply=unauthorized(scope="a")), script, {})
    assert asked[0].new_scopes == ()


def test_step_up_failed_is_not_counted() -> None:
    """A closed page or a network failure must not end step-ups for the rest of the process."""
    auth, store = loaded_authorizer(stored_tokens(), client_id="test-client-id"), stored_tokens()
    script: Script = [
        (mcp("Bearer t1"), forbidden("a")),
        *discovery(),
        (browsed(f"{AS}/authorize"), TIMEOUT),
    ]
    assert isinstance(play_to_failure(request(auth, "x"), script, store), AuthorizationFailed)
    for _ in range(MAX_STEP_UPS):
        again: Script = [(mcp("Bearer t1"), forbidden("a")), (browsed(f"{AS}/authorize"), TIMEOUT)]
        assert isinstance(play_to_failure(request(auth, "x"), again, store), AuthorizationFailed)
    play(
        request(auth, "x"),
        [(mcp("Bearer t1"), forbidden("a")), *login("t2"), (mcp("Bearer t2"), OK)],
        store,
    )


def test_step_up_by_other_process_is_adopted() -> None:
    auth, store = loaded_authorizer(stored_tokens()), stored_tokens(**NEWER)
    play(
        request(auth, "x"),
        [(mcp("Bearer t1"), forbidden("b")), *discovery(), (mcp("Bearer t7"), OK)],
        store,
    )


@pytest.mark.requirement("AT-7")
@pytest.mark.parametrize(("scope", "shown"), [(None, "none named"), ("a", "a")])
def test_step_up_challenge_for_no_new_scope_runs_once(scope: str | None, shown: str) -> None:
    auth, store = loaded_authorizer(stored_tokens(), client_id="test-client-id"), stored_tokens()
    script: Script = [
        (mcp("Bearer t1"), forbidden(scope)),
        *discovery(),
        *login("t2", scope="a"),
        (mcp("Bearer t2"), forbidden(scope)),
    ]
    failure = play_to_failure(request(auth, ""), script, store)
    assert isinstance(failure, AuthRequired)
    assert f"still refuses the request after the scopes it wants ({shown})" in str(failure)


@pytest.mark.parametrize(("limit", "count"), [(16, 20), long(256, 300)])
def test_step_up_tables_too_many_operations_stay_bounded(
    limit: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit != _authorizer._MAX_OPERATIONS:
        monkeypatch.setattr(_authorizer, "_MAX_OPERATIONS", limit)
    auth, store = loaded_authorizer(stored_tokens(), client_id="test-client-id"), stored_tokens()
    play(challenged_flow(auth, "first", forbidden("s0")), [*discovery(), *login("t2")], store)
    for number in range(count):
        play(
            challenged_flow(auth, f"tool {number}", forbidden(f"s{number + 1}")), login("t2"), store
        )
        play(
            challenged_flow(auth, f"tool {number}", forbidden(f"s{number + 1}")), login("t3"), store
        )
    assert len(auth._step_ups) == len(auth._repeated_scopes) == limit


def test_table_of_operations_forgets_the_oldest_of_256() -> None:
    table: dict[int, str] = {}
    for number in range(256):
        _authorizer._put_bounded(table, number, "")
    _authorizer._put_bounded(table, 0, "again")
    assert len(table) == 256
    _authorizer._put_bounded(table, 300, "")
    assert len(table) == 256
    assert 1 not in table
    assert table[0] == "again"


def test_insufficient_scope_without_token_leads_to_login() -> None:
    script: Script = [
        (mcp(None), forbidden("b")),
        *discovery(),
        (posted(f"{AS}/register"), registered()),
        *login("t1", scope="b"),
        (mcp("Bearer t1"), OK),
    ]
    play(session(authorizer()), script)


@pytest.mark.requirement("AF-6", "AF-7")
@pytest.mark.parametrize(
    ("members", "challenge", "published", "expected_scope"),
    [
        ({}, "c", ["p"], "c"),
        ({}, None, ["p", "q"], "p q"),
        ({}, None, [], None),
        ({"scopes": ("u",)}, None, ["p"], "u"),
        ({"scopes": ("u",)}, "c u", ["p"], "u c"),
        ({"scopes": ()}, None, ["p"], None),
    ],
)
def test_login_scopes_combine_stored_profile_and_challenge(
    members: dict[str, Any], challenge: str | None, published: list[str], expected_scope: str | None
) -> None:
    script: Script = [
        (mcp(None), unauthorized(scope=challenge)),
        *discovery(resource(scopes_supported=published), server(scopes_supported=["zzz"])),
        (posted(f"{AS}/register"), registered()),
        *login("t1", scope=expected_scope),
        (mcp("Bearer t1"), OK),
    ]
    play(session(authorizer(**members)), script)


@pytest.mark.requirement("AT-3")
@pytest.mark.parametrize(
    ("members", "challenge", "known", "expected_scope"),
    [
        ({}, "c", ["offline_access"], "c offline_access"),
        ({}, "c", ["c"], "c"),
        ({}, "c", None, "c"),
        # Alone it would replace the default scopes of the server.
        ({}, None, ["offline_access"], None),
        ({"offline_access": False}, "c", ["offline_access"], "c"),
    ],
)
def test_login_offline_access_requested_if_supported(
    members: dict[str, Any],
    challenge: str | None,
    known: list[str] | None,
    expected_scope: str | None,
) -> None:
    script: Script = [
        (mcp(None), unauthorized(scope=challenge)),
        *discovery(metadata=server(scopes_supported=known)),
        (posted(f"{AS}/register"), registered()),
        *login("t1", scope=expected_scope),
        (mcp("Bearer t1"), OK),
    ]
    play(session(authorizer(**members)), script)


# -- Renewal before expiry -------------------------------------------------------------------------


def test_renew_before_expiry_refreshes() -> None:
    clock, store = Clock(), stored_tokens()
    auth = loaded_authorizer(store, clock)
    assert not auth.expires_soon()
    assert play(auth.renew(), [], store)
    clock.now = 1_003_540.0
    assert auth.expires_soon()
    assert play(
        auth.renew(),
        [(get(f"{RS}{PRM}/mcp"), resource()), (get(f"{AS}{OAUTH}"), server()), refresh_step()],
        store,
    )
    assert not auth.expires_soon()
    assert auth.attempt().headers("GET", MCP) == [("authorization", "Bearer t2")]
    assert play(auth.renew(), [], store)  # another process was faster


def expiring_authorizer(store: dict[str, bytes], **more: Any) -> Authorizer:
    return loaded_authorizer(store, Clock(2_000_000.0), **more)


@pytest.mark.parametrize("members", [{"refresh": None}, {"renew_at": None}])
def test_expires_soon_without_refresh_token_is_false(members: dict[str, Any]) -> None:
    assert not expiring_authorizer(stored_tokens(**members)).expires_soon()


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ([*discovery(), (form(TOKEN), oauth_error("invalid_grant"))], "no longer accepted"),
        ([*discovery(), (form(TOKEN), status(500))], "could not be renewed before it expires"),
        (
            [(get(f"{RS}{PRM}/mcp"), FetchFailed("no such host"))],
            "could not be renewed .*no such host",
        ),
        (
            [
                (get(f"{RS}{PRM}/mcp"), resource("http://localhost:1003")),
                (get(f"http://localhost:1003{OAUTH}"), server("http://localhost:1003")),
            ],
            "now names the authorization server",
        ),
    ],
)
def test_renew_failed_returns_false_with_warning(script: Script, text: str) -> None:
    store = stored_tokens()
    auth = expiring_authorizer(store)
    assert play(auth.renew(), script, store) is False
    assert not auth.expires_soon()
    (note,) = auth.take_warnings()
    assert re.search(text, note)


FAULTS_OF_FORM: dict[str, HttpResponse] = {
    "no JSON": HttpResponse(200, [], b"<html>"),
    "no token": token(access_token=None),
    "created, without a token": status(201, token_type="Bearer"),
    "a token for no header": token("a b"),
    "a token of an unknown type": token(token_type="mac"),
    "a type that is no text": token(token_type=5),
}


@pytest.mark.parametrize("name", FAULTS_OF_FORM)
def test_refresh_fault_of_form_keeps_client_alive_while_its_token_lives(name: str) -> None:
    clock = Clock(1_003_550.0)  # shortly before the token expires
    store = stored_tokens()
    auth = loaded_authorizer(store, clock)
    script: Script = [*discovery(), (form(TOKEN, **REFRESH), FAULTS_OF_FORM[name])]
    assert play(auth.renew(), script, store) is False
    assert len(auth.take_warnings()) == 1
    assert not auth.expires_soon()  # no request waits for the next attempt
    assert play(request(auth), [(mcp("Bearer t1"), OK)], store) == 200
    assert decode_tokens(store[KEY]) == decode_tokens(stored_tokens()[KEY])
    clock.now += 10
    play(auth.renew(), [(get(f"{RS}{PRM}/mcp"), resource()), refresh_step()], store)
    assert play(request(auth), [(mcp("Bearer t2"), OK)], store) == 200


def test_refresh_created_with_ignored_members_is_used_and_warned_about() -> None:
    store = stored_tokens(renew_at=0.0)
    auth = loaded_authorizer(store)
    reply = status(201, access_token="t2", token_type=None, scope=["a"], refresh_token=[])
    assert play(auth.renew(), [*discovery(), (form(TOKEN, **REFRESH), reply)], store)
    kept = decode_tokens(store[KEY])
    assert kept is not None
    assert (kept.access, kept.refresh, kept.scopes) == (Secret("t2"), Secret("r1"), ("a",))
    [warning] = auth.take_warnings()
    assert warning.endswith("members that cannot be read, and are ignored: refresh_token")
    auth = authorizer()
    play(session(auth), [*first_login("t2")[:-2], (form(TOKEN), reply), (mcp("Bearer t2"), OK)])
    [warning] = auth.take_warnings()
    assert warning.endswith("members that cannot be read, and are ignored: refresh_token")


def test_fault_of_the_driver_in_a_flow_is_raised_and_changes_nothing() -> None:
    """It isn't taken for an authorization server that knows the client no longer."""
    fault = ZeroDivisionError()
    store = stored_tokens()
    auth = expiring_authorizer(store)
    before = dict(store)
    assert play_to_failure(auth.renew(), [*discovery(), (form(TOKEN), fault)], store) is fault
    script: Script = [
        (mcp(None), status(401)),
        *[(get(f"{RS}{path}"), MISSING) for path in (f"{PRM}/mcp", PRM, OAUTH)],
        (posted(f"{RS}/register"), fault),
    ]
    assert play_to_failure(session(authorizer()), script) is fault
    assert store == before
    store = {}
    play(session(authorizer()), first_login(), store)
    del store[KEY]
    before = dict(store)
    script = [(mcp(None), unauthorized()), *discovery(), (browsed(f"{AS}/authorize"), fault)]
    assert play_to_failure(session(authorizer()), script, store) is fault
    assert store == before


# -- Issuers with two spellings, and settings that drop a requirement ------------------------------


@pytest.mark.requirement("AC-13", "AT-2")
@pytest.mark.parametrize(("old", "new"), [(AS, f"{AS}/"), (f"{AS}/", AS)])
def test_tokens_of_the_other_spelling_are_refreshed_and_recorded_anew(old: str, new: str) -> None:
    store = stored_tokens(issuer=old, renew_at=0.0)
    for issuer in (None, old, new):
        auth = loaded_authorizer(dict(store), issuer=issuer)
        script = [*discovery(resource(old), server(new, AS)), refresh_step()]
        mine = dict(store)
        assert play(auth.renew(), script, mine)
        kept = decode_tokens(mine[KEY])
        assert kept is not None
        assert kept.issuer == new


@pytest.mark.parametrize("issuer", [f"{AS}/t", "http://localhost:1003/", AS.upper()])
def test_tokens_of_another_issuer_are_not_refreshed(issuer: str) -> None:
    store = stored_tokens(issuer=issuer, renew_at=0.0)
    auth = loaded_authorizer(store)
    assert play(auth.renew(), discovery(), store) is False
    assert KEY not in store


@pytest.mark.requirement("AF-9", "AF-10")
@pytest.mark.parametrize(("offered", "own"), [(AS, f"{AS}/"), (f"{AS}/", AS)])
def test_login_iss_is_compared_with_the_spelling_of_the_metadata(offered: str, own: str) -> None:
    """The `iss` of a callback must not be normalized (2026-07-28)."""

    def script(iss: str) -> Script:
        return [
            (mcp(None), unauthorized()),
            *discovery(resource(offered), server(own, AS)),
            (posted(f"{AS}/register"), registered()),
            *login(iss=iss),
        ]

    failure = play_to_failure(request(authorizer()), script(offered)[:-1])
    assert "iss does not match" in str(failure)
    store: dict[str, bytes] = {}
    auth = authorizer()
    assert play(request(auth), [*script(own), (mcp("Bearer t1"), OK)], store) == 200
    assert set(store) == {KEY, registration_key(own)}
    assert ["that is its issuer from now on" in line for line in auth.take_warnings()] == [True]


def test_redirect_uri_stays_that_of_the_registration_under_the_other_spelling() -> None:
    """With a free port the redirect URI has a digest of the issuer."""
    place = distinct_redirect_uri(f"http://127.0.0.1:{FREE_PORT}/callback", AS)
    store = {
        registration_key(AS): msgspec.json.encode(
            {"issuer": AS, "client_id": "old", "method": "none", "redirect_uri": place}
        )
    }
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(resource(f"{AS}/"), server(f"{AS}/", AS)),
        (browsed(f"{AS}/authorize", client_id="old"), callback_reply(f"{AS}/")),
        (form(TOKEN, client_id="old"), token()),
        (mcp("Bearer t1"), OK),
    ]
    auth = authorizer(redirect_uri="http://127.0.0.1:0/callback")
    assert play(request(auth), script, store) == 200


NO_RESOURCE: dict[str, Any] = {"issuer": AS, "scopes": ("api://x/a",), "send_resource": False}


@pytest.mark.requirement("AF-3")
@pytest.mark.parametrize(
    ("challenge", "published"),
    [(None, None), ("api://other/b", None), (None, ["api://other/b"]), ("api://x/a c", ["d"])],
)
def test_login_without_resource_requests_scopes_of_the_profile_only(
    challenge: str | None, published: list[str] | None
) -> None:
    """Otherwise a hostile MCP server would choose what the token is for."""
    fields = {"resource": None, "scope": "api://x/a"}
    script: Script = [
        (mcp(None), unauthorized(scope=challenge)),
        *discovery(resource(scopes_supported=published)),
        (posted(f"{AS}/register"), registered()),
        (browsed(f"{AS}/authorize", **fields), callback_reply()),
        (form(TOKEN, resource=None), token()),
        (mcp("Bearer t1"), forbidden("api://other/b")),
    ]
    store: dict[str, bytes] = {}
    failure = play_to_failure(request(authorizer(**NO_RESOURCE)), script, store)
    assert isinstance(failure, AuthRequired)
    assert "With send_resource=False, only the scopes of the profile are requested" in str(failure)
    assert failure.scopes == ()
    # Scopes that an earlier login without this setting requested are not requested again.
    earlier = stored_tokens(requested_scopes=("api://other/b",), refresh=None)
    auth = loaded_authorizer(earlier, **NO_RESOURCE)
    again: Script = [(mcp("Bearer t1"), unauthorized()), *script[1:6], (mcp("Bearer t1"), OK)]
    assert play(request(auth), again, earlier) == 200


SETTINGS: dict[str, Any] = {
    "issuer": AS,
    "scopes": ("a",),
    "assume_pkce": True,
    "send_resource": False,
    "metadata_issuer": "https://own.com",
}
OWN: dict[str, Any] = {"issuer": "https://own.com", "code_challenge_methods_supported": None}


def login_with_settings(**settings: Any) -> dict[str, bytes]:
    """Return a storage after a login with `SETTINGS`."""
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(metadata=server(endpoints=AS, **OWN)),
        (posted(f"{AS}/register"), registered(secret=None)),
        (browsed(f"{AS}/authorize", resource=None, scope="a"), callback_reply("https://own.com")),
        (form(TOKEN, resource=None), token(refresh_token="r1")),
        (mcp("Bearer t1"), OK),
    ]
    store: dict[str, bytes] = {}
    assert play(request(authorizer(**(SETTINGS | settings))), script, store) == 200
    return store


def test_login_settings_are_recorded_under_the_configured_issuer() -> None:
    store = login_with_settings()
    assert set(store) == {KEY, registration_key(AS)}
    kept = decode_tokens(store[KEY])
    assert kept is not None
    assert (kept.issuer, kept.assume_pkce, kept.send_resource) == (AS, True, False)
    assert kept.metadata_issuer == "https://own.com"


def test_login_settings_of_the_record_are_used_without_the_profile() -> None:
    """By the other commands, and by a new login at the same authorization server."""
    store = login_with_settings()
    clock = Clock()
    auth = loaded_authorizer(store, clock)
    clock.now += 4000
    refresh = (form(TOKEN, refresh_token="r1", resource=None), oauth_error("invalid_grant"))
    known = discovery(metadata=server(endpoints=AS, **OWN))
    assert play(auth.renew(), [*known, refresh], store) is False
    script: Script = [
        (mcp("Bearer t1"), unauthorized(scope="api://other/b")),
        known[0],
        (browsed(f"{AS}/authorize", resource=None, scope="a"), callback_reply("https://own.com")),
        (form(TOKEN, resource=None), token("t2")),
        (mcp("Bearer t2"), OK),
    ]
    assert play(request(auth), script, store) == 200


def test_login_settings_of_the_record_serve_no_other_authorization_server() -> None:
    """A hostile MCP server that names its own gets no login, and no token of the old one."""
    evil = "http://localhost:1666"
    store = login_with_settings()
    auth = loaded_authorizer(store)
    quiet = server(evil, code_challenge_methods_supported=None)
    script: Script = [
        (mcp("Bearer t1"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource(evil)),
        (get(f"{evil}{OAUTH}"), quiet),
    ]
    failure = play_to_failure(request(auth), script, store)
    assert "but the issuer of the profile is 'http://localhost:1002'" in str(failure)


def test_login_settings_of_a_profile_with_issuer_come_first() -> None:
    store = login_with_settings()
    auth = loaded_authorizer(store, issuer=AS)
    failure = play_to_failure(
        request(auth),
        [(mcp("Bearer t1"), unauthorized()), *discovery(metadata=server(endpoints=AS, **OWN))],
        store,
    )
    assert "set issuer and metadata_issuer of the profile" in str(failure)


@pytest.mark.parametrize("grown", [{"send_resource": False, "requested_scopes": ()}])
def test_load_contradictory_settings_are_ignored_with_warning(grown: dict[str, Any]) -> None:
    auth = loaded_authorizer(stored_tokens(**grown))
    assert play(request(auth), [(mcp(None), OK)]) == 200
    [warning] = auth.take_warnings()
    assert "their settings contradict each other: send_resource=False needs scopes" in warning


def test_notes_of_discovery_are_warned_about_once() -> None:
    """A second login at the same server repeats no warning."""
    auth = authorizer()
    store: dict[str, bytes] = {}
    script: Script = [
        (mcp(None), unauthorized("/prm")),
        *discovery(resource(f"{AS}/")),
        (posted(f"{AS}/register"), registered()),
        *login(),
        (mcp("Bearer t1"), OK),
    ]
    assert play(request(auth), script, store) == 200
    assert len(auth.take_warnings()) == 2
    script = [
        (mcp("Bearer t1"), unauthorized("/prm")),
        (get(f"{RS}{PRM}/mcp"), resource(f"{AS}/")),
        (browsed(f"{AS}/authorize"), callback_reply()),
        (form(TOKEN), token("t2")),
        (mcp("Bearer t2"), OK),
    ]
    assert play(request(auth), script, store) == 200
    assert auth.take_warnings() == []


def test_renew_raises_faults_of_the_driver() -> None:
    """A failure of the network is a warning, and a bug is not."""
    auth = expiring_authorizer(stored_tokens())
    flow = auth.renew()
    next(flow)
    with pytest.raises(ZeroDivisionError):
        flow.throw(ZeroDivisionError())
    assert auth.take_warnings() == []


def test_renew_after_failure_waits_before_retry() -> None:
    clock, store = Clock(2_000_000.0), stored_tokens()
    auth = loaded_authorizer(store, clock)
    assert play(auth.renew(), [*discovery(), (form(TOKEN), status(500))], store) is False
    clock.now += 9.9
    assert not auth.expires_soon()
    clock.now += 0.1
    assert play(auth.renew(), [(get(f"{RS}{PRM}/mcp"), resource()), refresh_step()], store)


def test_renew_resolves_earlier_challenge() -> None:
    store = stored_tokens()
    auth = expiring_authorizer(store)
    waiting = challenged_flow(auth)
    play(auth.renew(), [*discovery(), refresh_step()], store)
    play(waiting, [], store)


NEWER = {"access": Secret("t7"), "refresh": Secret("r7"), "renew_at": 3_000_000.0}


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"renew_at": None, "expires_at": None},
        # The other process listened on another port, since this one was taken; or its user logged
        # in anew.
        {"redirect_uri": "http://127.0.0.1:4242/callback"},
        {"client_id": "another", "client_secret": Secret("s"), "metadata_url": f"{RS}/prm"},
    ],
)
def test_renew_newer_stored_tokens_are_adopted(members: dict[str, Any]) -> None:
    """Using a refresh token twice may invalidate the tokens of both processes."""
    store = stored_tokens()
    auth = expiring_authorizer(store)
    store |= stored_tokens(**(NEWER | members))
    before = dict(store)
    assert play(auth.renew(), discovery(), store)
    assert auth.attempt().headers("GET", MCP) == [("authorization", "Bearer t7")]
    assert auth.generation == 1  # they may belong to another user
    assert store == before


@pytest.mark.parametrize(
    ("ours", "theirs", "generation"), [("1", "1", 0), ("1", "2", 1), ("1", None, 1), (None, "2", 1)]
)
def test_adopted_tokens_of_same_login_keep_generation(
    ours: str | None, theirs: str | None, generation: int
) -> None:
    """Another process has only refreshed them, so the user is the same."""
    store = stored_tokens(login_id=ours)
    auth = expiring_authorizer(store)
    store |= stored_tokens(**(NEWER | {"login_id": theirs}))
    assert play(auth.renew(), discovery(), store)
    assert auth.generation == generation


def test_login_id_stays_with_refresh_and_changes_with_login() -> None:
    """The id tells a renewed token from a new login, and a refused refresh leads to the latter."""
    store: dict[str, bytes] = {}
    auth = authorizer()

    def login_id() -> str | None:
        tokens = decode_tokens(store[KEY])
        assert tokens is not None
        return tokens.login_id

    script = first_login()
    script[-2] = (script[-2][0], token("t1", refresh_token="r1"))
    play(session(auth), script, store)
    first = login_id()
    assert first
    rejected = (mcp("Bearer t1"), unauthorized())
    metadata = (get(f"{RS}{PRM}/mcp"), resource())
    play(request(auth), [rejected, metadata, refresh_step(), (mcp("Bearer t2"), OK)], store)
    assert login_id() == first
    again: Script = [
        (mcp("Bearer t2"), unauthorized()),
        metadata,
        (form(TOKEN), oauth_error("invalid_grant")),
        *login("t3"),
        (mcp("Bearer t3"), OK),
    ]
    play(request(auth), again, store)
    assert login_id() not in (None, first)


@pytest.mark.parametrize("before", [{}, stored_tokens(refresh=None), stored_tokens()])
def test_unauthorized_tokens_of_other_process_are_adopted(before: dict[str, bytes]) -> None:
    auth = loaded_authorizer(before)
    store = before | stored_tokens(**NEWER)
    kept = dict(store)
    script: Script = [
        (mcp("Bearer t1" if before else None), unauthorized()),
        *discovery(),
        (mcp("Bearer t7"), OK),
    ]
    play(request(auth), script, store)
    assert store == kept


def test_refresh_lost_race_adopts_stored_tokens() -> None:
    """Both processes read the same refresh token before either used it."""
    store = stored_tokens()
    auth = expiring_authorizer(store)

    def too_late(step: Any) -> HttpResponse:
        store.update(stored_tokens(**NEWER))
        return oauth_error("invalid_grant")

    assert play(auth.renew(), [*discovery(), (form(TOKEN, refresh_token="r1"), too_late)], store)
    assert auth.attempt().headers("GET", MCP) == [("authorization", "Bearer t7")]
    assert store == stored_tokens(**NEWER)
    assert auth.take_warnings() == []


def test_refresh_token_that_was_rejected_is_not_used_again() -> None:
    """The access token stays: it may be valid for some time."""
    store = stored_tokens()
    auth = expiring_authorizer(store)
    assert not play(
        auth.renew(), [*discovery(), (form(TOKEN), oauth_error("invalid_grant"))], store
    )
    kept = decode_tokens(store[KEY])
    assert kept is not None
    assert (kept.access, kept.refresh) == (Secret("t1"), None)
    assert not auth.expires_soon()


@pytest.mark.parametrize(
    "members", [{"issuer": "http://localhost:1003"}, {"renew_at": 1.0}, {"renew_at": 2_000_000.0}]
)
def test_refresh_rejected_keeps_tokens_of_other_process(members: dict[str, Any]) -> None:
    store = stored_tokens()
    auth = expiring_authorizer(store)

    def too_late(step: Any) -> HttpResponse:
        store.update(stored_tokens(**(NEWER | members)))
        return oauth_error("invalid_grant")

    assert not play(
        auth.renew(), [*discovery(), (form(TOKEN, refresh_token="r1"), too_late)], store
    )
    assert store == stored_tokens(**(NEWER | members))
    # Tokens of the same server are adopted, also if they aren't usable now.
    access = "t7" if "renew_at" in members else "t1"
    assert auth.attempt().headers("GET", MCP) == [("authorization", f"Bearer {access}")]


def test_server_moved_keeps_tokens_of_other_process() -> None:
    moved = "http://localhost:1003"
    auth, store = loaded_authorizer(stored_tokens()), stored_tokens(**(NEWER | {"issuer": moved}))
    script: Script = [
        (mcp("Bearer t1"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource(moved)),
        (get(f"{moved}{OAUTH}"), server(moved)),
        (mcp("Bearer t7"), OK),
    ]
    play(request(auth), script, store)


def test_server_moved_is_shown_no_key_of_the_old_one() -> None:
    """With the same key, both authorization servers could tell that it is one client."""
    moved = "http://localhost:1003"
    store: dict[str, bytes] = {}
    auth = bound_session(store)
    sent: list[Fetch] = []

    def issue(step: Fetch) -> HttpResponse:
        sent.append(step)
        return token("t3")

    script: Script = [
        (mcp("DPoP t2"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource(moved)),
        (get(f"{moved}{OAUTH}"), server(moved)),
        (posted(f"{moved}/register"), registered()),
        (browsed(f"{moved}/authorize"), callback_reply(moved)),
        (form(f"{moved}/token"), issue),
        (mcp("Bearer t3"), OK),
    ]
    play(request(auth), script, store)
    assert "dpop" not in dict(sent[0].request.headers)


def test_unauthorized_bound_tokens_of_other_process_are_adopted() -> None:
    seed = Secret("A" * 43)
    auth, store = loaded_authorizer(stored_tokens()), stored_tokens(**NEWER, dpop_seed=seed)
    script: Script = [(mcp("Bearer t1"), DPOP), *discovery(), (mcp("DPoP t7"), OK)]
    play(request(auth), script, store)


@pytest.mark.parametrize(
    "members",
    [
        {"access": Secret("t7"), "dpop_seed": Secret("short")},
        {"access": Secret("t7"), "resource": RS},
        {"access": Secret("t7"), "issuer": "http://localhost:1003"},
        {"access": Secret("t7"), "renew_at": 1_999_999.0},
        {},
    ],
)
def test_renew_unusable_stored_tokens_are_not_adopted(members: dict[str, Any]) -> None:
    store = stored_tokens()
    auth = expiring_authorizer(store)
    store |= stored_tokens(**members)
    assert play(auth.renew(), [*discovery(), refresh_step()], store)
    assert auth.attempt().headers("GET", MCP) == [("authorization", "Bearer t2")]


def test_renew_storage_emptied_still_refreshes() -> None:
    auth = expiring_authorizer(stored_tokens())
    assert play(auth.renew(), [*discovery(), refresh_step()], {})


@pytest.mark.requirement("AX-1")
def test_renew_non_interactive_grant_runs_again() -> None:
    """Each renewal asks for a fresh JWT; a token refused right after its exchange is an error."""
    clock = Clock()
    jwts = iter(["j1", "j2", "j3"])
    auth = authorizer(
        clock=clock, grant=JwtBearer(lambda: next(jwts)), client_id="c", issuer=AS, scopes=("a",)
    )
    store: dict[str, bytes] = {}
    script: Script = [
        (mcp(None), unauthorized(scope="a")),
        *discovery(),
        (form(TOKEN, assertion="j1", scope="a"), token("t1")),
        (mcp("Bearer t1"), OK),
    ]
    play(session(auth), script, store)
    assert auth.generation == 1
    clock.now += 3600
    again: Script = [
        (get(f"{RS}{PRM}/mcp"), resource()),
        (form(TOKEN, assertion="j2", scope="a"), token("t2")),
    ]
    assert play(auth.renew(), again, store)
    assert auth.generation == 1
    refused_: Script = [
        (mcp("Bearer t2"), unauthorized(scope="a")),
        (get(f"{RS}{PRM}/mcp"), resource()),
        (form(TOKEN, assertion="j3", scope="a"), token("t3")),
        (mcp("Bearer t3"), unauthorized(scope="a")),
        (get(f"{RS}{PRM}/mcp"), resource()),
    ]
    assert isinstance(play_to_failure(request(auth), refused_, store), AuthRequired)


def return_none() -> Any:
    return None


def return_empty() -> str:
    return ""


def raise_error() -> str:
    raise OSError("canary-token")


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (return_none, "returned no text"),
        (return_empty, "returned no text"),
        (raise_error, r"failed \(OSError\)"),
    ],
)
@pytest.mark.parametrize("enterprise", [False, True])
def test_grant_profile_function_without_text_fails(
    ask: Any, problem: str, enterprise: bool
) -> None:
    managed = EnterpriseManaged(ask, "http://localhost:1004/token", "ic")
    auth = authorizer(client_id="c", issuer=AS, grant=managed if enterprise else JwtBearer(ask))
    failure = play_to_failure(request(auth), [(mcp(None), unauthorized()), *discovery()])
    assert isinstance(failure, AuthorizationFailed)
    assert re.search(("id_token" if enterprise else "assertion") + f" .* {problem}", str(failure))
    assert "canary" not in str(failure)


@pytest.mark.requirement("AX-1", "AX-2")
@pytest.mark.parametrize(("enterprise", "wanted"), [(False, "b"), (False, "a b"), (True, "b")])
def test_step_up_non_interactive_grant_runs_again(enterprise: bool, wanted: str) -> None:
    """Without a user, all configured scopes are asked for again, also at the identity provider."""
    managed = EnterpriseManaged(lambda: "id", "http://localhost:1004/token", "ic")
    auth = authorizer(
        client_id="c",
        client_secret=Secret("canary"),
        issuer=AS,
        scopes=("a", "b"),
        grant=managed if enterprise else "client_credentials",
    )
    jag = "urn:ietf:params:oauth:token-type:id-jag"
    exchanged = (form(managed.token_endpoint, scope="a b"), token("jag", issued_token_type=jag))
    script: Script = [
        (mcp("Bearer t1"), forbidden(wanted)),
        *discovery(),
        *([exchanged] if enterprise else []),
        (form(TOKEN, "Basic YzpjYW5hcnk=", scope="a b"), token("t2")),
        (mcp("Bearer t2"), OK),
    ]
    play(session(auth), script, stored_tokens(client_id="c", client_method=None))


# -- DPoP ------------------------------------------------------------------------------------------


DPOP = unauthorized(scheme="DPoP")
NONCE = status(401, ("www-authenticate", 'DPoP error="use_dpop_nonce"'), ("dpop-nonce", "n1"))
BOUND = token("t2", token_type="DPoP", refresh_token="r2")


def bound_session(store: dict[str, bytes]) -> Authorizer:
    auth = authorizer()
    script: Script = [
        (mcp(None), DPOP),
        *discovery(),
        (posted(f"{AS}/register"), registered()),
        *login("t2", reply=BOUND),
        (mcp("DPoP t2"), OK),
    ]
    play(session(auth), script, store)
    return auth


@pytest.mark.requirement("AX-3")
def test_bound_token_stored_is_used_by_next_process() -> None:
    store: dict[str, bytes] = {}
    bound_session(store)
    script: Script = [
        # A server may send a nonce with any response.
        (mcp("DPoP t2"), status(200, ("dpop-nonce", "n0"))),
        (mcp("DPoP t2"), NONCE),
        (mcp("DPoP t2"), DPOP),
        *discovery(),
        (form(TOKEN, refresh_token="r2"), token("t3", token_type="dpop")),
        (mcp("DPoP t3"), OK),
    ]
    play(session(authorizer(), "x", "y"), script, store)


@pytest.mark.requirement("AX-3")
def test_bearer_token_dpop_required_is_replaced_by_login() -> None:
    script: Script = [
        (mcp("Bearer t1"), DPOP),
        *discovery(),
        (posted(f"{AS}/register"), registered()),
        *login("t2", reply=BOUND),
        (mcp("DPoP t2"), OK),
    ]
    play(session(authorizer()), script, stored_tokens())


EITHER = status(401, *DPOP.headers, *unauthorized().headers)


def requests_bound_token(metadata: HttpResponse | None, reply: HttpResponse, header: str) -> bool:
    """Return True if a bound token is requested when the MCP server accepts both kinds.

    The token is then sent with `header`.
    """
    proved: list[bool] = []

    def at_token_endpoint(step: Any) -> None:
        form(TOKEN, code="test-auth-code")(step)
        proved.append("dpop" in dict(step.request.headers))

    script: Script = [
        (mcp(None), EITHER),
        *discovery(metadata=metadata),
        (posted(f"{AS}/register"), registered()),
        (browsed(f"{AS}/authorize"), callback_reply()),
        (at_token_endpoint, reply),
        (mcp(header), OK),
    ]
    play(session(authorizer()), script)
    return proved == [True]


@pytest.mark.requirement("AX-3")
def test_login_both_token_types_prefers_bound_if_supported() -> None:
    knows, knows_another = (
        server(dpop_signing_alg_values_supported=[algorithm]) for algorithm in ("ES256", "PS512")
    )
    assert requests_bound_token(knows, BOUND, "DPoP t2")
    assert requests_bound_token(
        knows, token("t2"), "Bearer t2"
    )  # the authorization server issues a bearer token all the same
    assert not requests_bound_token(knows_another, token("t2"), "Bearer t2")
    assert not requests_bound_token(None, token("t2"), "Bearer t2")


def test_login_without_joserfc_requests_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    require_joserfc.cache_clear()
    monkeypatch.setitem(sys.modules, "joserfc.jws", None)
    knows = server(dpop_signing_alg_values_supported=["ES256"])
    assert not requests_bound_token(knows, token("t2"), "Bearer t2")


def test_login_dpop_required_but_bearer_issued_fails() -> None:
    script: Script = [
        (mcp("Bearer t1"), DPOP),
        *discovery(),
        (posted(f"{AS}/register"), registered()),
        *login("t2"),
        (mcp("Bearer t2"), DPOP),
        (get(f"{RS}{PRM}/mcp"), resource()),
    ]
    assert isinstance(play_to_failure(session(authorizer()), script, stored_tokens()), AuthRequired)


def test_challenges_with_endless_nonces_end() -> None:
    store: dict[str, bytes] = {}
    auth = bound_session(store)
    numbers = iter(range(100))

    def another(step: Any) -> HttpResponse:
        return status(401, NONCE.headers[0], ("dpop-nonce", f"n{next(numbers)}"))

    failure = play_to_failure(request(auth), [(mcp("DPoP t2"), another)] * 7, store)
    assert isinstance(failure, AuthRequired)


def test_challenge_with_known_nonce_refreshes() -> None:
    store: dict[str, bytes] = {}
    auth = bound_session(store)
    script: Script = [
        (mcp("DPoP t2"), NONCE),
        (mcp("DPoP t2"), NONCE),
        (get(f"{RS}{PRM}/mcp"), resource()),
        (form(TOKEN, refresh_token="r2"), token("t3", token_type="DPoP")),
        (mcp("DPoP t3"), OK),
    ]
    play(request(auth), script, store)


# -- Secrets ---------------------------------------------------------------------------------------


CANARIES = ("canary-access", "canary-refresh", "canary-secret", "canary-code")


@pytest.mark.requirement("AT-3")
def test_flows_at_every_step_print_no_secret() -> None:
    """Print every step and object during a login, a refresh, and an error that echoes secrets."""
    seen: list[str] = []
    store: dict[str, bytes] = {}
    auth = authorizer()

    def watched(flow: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        reply: Any = None
        while True:
            try:
                step = flow.send(reply)
            except StopIteration as stop:
                return stop.value
            if type(step).__name__ != "McpRequest":
                seen.append(f"{step!r} {step}")
            reply = yield step
            seen.append(
                repr([auth, auth._tokens, auth._auth_server, auth._dpop_signer, vars(auth)])
            )
            if isinstance(reply, HttpResponse):
                seen.append(repr(reply))

    echo = " ".join(CANARIES)
    script: Script = [
        (mcp(None), unauthorized()),
        *discovery(metadata=server(token_endpoint_auth_methods_supported=["client_secret_post"])),
        (posted(f"{AS}/register"), registered(secret="canary-secret")),
        (browsed(f"{AS}/authorize"), callback_reply(code="canary-code")),
        (
            form(TOKEN, client_secret="canary-secret"),
            token("canary-access", refresh_token="canary-refresh"),
        ),
        (mcp("Bearer canary-access"), OK),
        (mcp("Bearer canary-access"), unauthorized()),
        (get(f"{RS}{PRM}/mcp"), resource()),
        (
            form(TOKEN, refresh_token="canary-refresh"),
            oauth_error("invalid_grant", f"{CANARIES[1]} {CANARIES[2]}"),
        ),
        (browsed(f"{AS}/authorize"), callback_reply(code="canary-code")),
        (form(TOKEN), oauth_error("invalid_grant", f"{CANARIES[3]} {CANARIES[2]}")),
    ]
    failure = play_to_failure(watched(session(auth, "x", "y")), script, store)
    assert isinstance(failure, AuthorizationFailed)
    seen += [str(failure), repr(failure), *auth.take_warnings()]
    assert len(seen) > 20
    assert not [text for text in seen if any(canary in text for canary in echo.split())]


def test_browse_repr_hides_state() -> None:
    """The URL's `state` and challenge protect the login, so logs show the endpoint only."""
    auth = authorizer()
    flow = challenged_flow(auth)
    shown: list[str] = []

    def look(step: Browse) -> Any:
        shown.append(repr(step))
        return callback_reply()(step)

    script = [
        *discovery(),
        (posted(f"{AS}/register"), registered()),
        (browsed(f"{AS}/authorize"), look),
        login()[1],
    ]
    play(flow, script, {})
    assert shown == [f"<Browse {AS}/authorize redirect_uri='{REDIRECT}'>"]


@pytest.mark.requirement("AC-14")
def test_unauthorized_server_of_2025_03_26_refreshes() -> None:
    """Discovery by that revision's rules runs again, and the stored tokens stay usable."""
    misses: Script = [
        (get(f"{RS}{PRM}/mcp"), MISSING),
        (get(f"{RS}{PRM}"), MISSING),
        (get(f"{RS}{OAUTH}"), MISSING),
    ]
    store = stored_tokens(issuer=RS)
    script: Script = [
        (mcp("Bearer t1"), unauthorized(None)),
        *misses,
        (form(f"{RS}/token", **REFRESH), token("t2")),
        (mcp("Bearer t2"), OK),
    ]
    play(session(authorizer()), script, store)


# -- Where a user would log in ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("challenge", "scopes"),
    [("", ("a", "b")), ('Bearer scope="c"', ("c",)), ("Basic", ("a", "b"))],
)
def test_find_login_fetches_metadata_only(challenge: str, scopes: tuple[str, ...]) -> None:
    """No client is registered, no redirect is awaited, and nothing is stored."""
    store: dict[str, bytes] = {}
    script = discovery(resource(AS, scopes_supported=["b", "a"]))
    found = play(authorizer().find_login(challenge), script, store)
    assert (found.issuer, found.scopes, found.can_register) == (AS, scopes, True)
    assert (found.is_guessed, found.notes, store) == (False, (), {})


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"code_challenge_methods_supported": None}, "supports PKCE with S256"),
        ({"authorization_endpoint": None}, "has no authorization endpoint"),
        ({"authorization_endpoint": f"{AS}/a?state=b"}, "already sets parameters of a login"),
    ],
)
def test_find_login_metadata_without_which_no_login_works_fails(
    members: dict[str, Any], text: str
) -> None:
    metadata = {**server_metadata(), **members}
    reply = document_reply(**{name: each for name, each in metadata.items() if each is not None})
    with pytest.raises(AuthorizationFailed, match=text):
        play(authorizer().find_login(""), discovery(metadata=reply))


def test_find_login_without_metadata_is_guessed() -> None:
    script: Script = [
        (get(f"{RS}{PRM}/mcp"), MISSING),
        (get(f"{RS}{PRM}"), MISSING),
        (get(f"{RS}{OAUTH}"), MISSING),
    ]
    found = play(authorizer().find_login(""), script)
    assert (found.issuer, found.is_guessed, found.scopes) == (RS, True, ())
