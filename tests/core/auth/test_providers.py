"""Logins at well-known authorization servers, and their tokens, with the settings of the page.

Each claim of `docs/howto/authorization-servers.md` is a row or a test here.
"""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core import AuthRequired
from mcp_core.auth import (
    AuthorizationFailed,
    Authorizer,
    Browse,
    ClientProfile,
    Fetch,
    InvalidToken,
    JwtVerifier,
    ListenForRedirect,
    Load,
    Save,
)
from tests.core.auth.minting import JWKS, NOW, keys_reply, token
from tests.core.auth.play import Clock, Entropy, McpRequest, status
from tests.examples.pages import read, run
from tests.fakes.providers import API, PROVIDERS, TENANT, ProviderFake

PAGE = "docs/howto/authorization-servers.md"
# The variable of the page with the profile for each provider.
PROFILES = {name: re.sub(r"\W+", "_", name.lower()) for name in PROVIDERS}


@cache
def page() -> dict[str, Any]:
    return run(PAGE)


def profile_of(name: str, **changes: Any) -> ClientProfile:
    profile: ClientProfile = page()[PROFILES[name]]
    return replace(profile, **changes)


def log_in(
    fake: ProviderFake,
    profile: ClientProfile,
    store: dict[str, bytes] | None = None,
    demanded: str | None = None,
) -> Authorizer:
    """Send one request to the MCP server, which demands the scope `demanded`, until it succeeds."""
    store = {} if store is None else store
    auth = Authorizer(fake.provider.mcp, profile, entropy=Entropy(), wall_time=Clock())

    def flow() -> Any:
        yield from auth.load()
        attempt = auth.attempt("tools/list")
        while True:
            headers = dict(attempt.headers("POST", fake.provider.mcp))
            reply = yield McpRequest("tools/list", headers)
            if not attempt.received(reply.status, reply.headers, fake.provider.mcp):
                return
            yield from attempt.handle_challenge()

    running = flow()
    reply: Any = None
    while True:
        try:
            step = running.send(reply)
        except StopIteration:
            return auth
        reply = None
        if isinstance(step, Load):
            reply = store.get(step.key)
        elif isinstance(step, Save):
            if step.value is None:
                store.pop(step.key, None)
            else:
                store[step.key] = step.value
        elif isinstance(step, ListenForRedirect):
            reply = step.redirect_uri.replace(":0/", ":4711/")
        elif isinstance(step, McpRequest):
            reply = answer_of_mcp_server(fake, step, demanded)
        else:
            assert isinstance(step, Fetch | Browse)
            reply = fake.answer(step)


def answer_of_mcp_server(fake: ProviderFake, step: McpRequest, demanded: str | None) -> Any:
    given = step.headers.get("authorization")
    if fake.redeemed and given == f"Bearer token-{len(fake.redeemed)}":
        return status(200)
    scope = f', scope="{demanded}"' if demanded is not None else ""
    return status(401, ("www-authenticate", f"{fake.challenge}{scope}"))


@pytest.mark.parametrize("name", PROVIDERS)
def test_login_with_the_profile_of_the_page_succeeds(name: str) -> None:
    fake = ProviderFake(PROVIDERS[name])
    store: dict[str, bytes] = {}
    log_in(fake, profile_of(name), store)
    assert len(fake.authorized) == len(fake.redeemed) == 1
    assert len(fake.authorized[0]["code_challenge"]) == 43
    # A second program finds the tokens.
    log_in(fake, profile_of(name), store)
    assert len(fake.redeemed) == 1


@pytest.mark.parametrize("name", PROVIDERS)
def test_row_of_page_for_each_provider(name: str) -> None:
    assert f"\n| {name} |" in read(PAGE)
    settings = profile_of(name)
    row = read(PAGE).partition(f"\n| {name} |")[2].partition("\n")[0]
    for setting, default in (("assume_pkce", False), ("metadata_issuer", None)):
        other = name == "Entra, any tenant" and setting == "assume_pkce"
        assert (getattr(settings, setting) != default) == (f"`{setting}`" in row or other)


NEEDED: list[tuple[str, dict[str, Any], str]] = [
    # what doesn't work without a setting, and what the error says
    ("Google", {"client_id": None, "client_secret": None}, "has no dynamic registration"),
    ("GitHub", {"client_id": None, "client_secret": None}, "has no dynamic registration"),
    ("Google", {"client_secret": None}, "invalid_client"),
    ("GitHub", {"client_secret": None}, "invalid_client"),
    ("Google", {"issuer": "https://accounts.google.com/o"}, "client_id was made for"),
    ("Entra", {"client_id": None}, "has no dynamic registration"),
    ("Entra", {"assume_pkce": False}, "set issuer and assume_pkce=True of the profile"),
    ("Entra", {"send_resource": True}, r"AADSTS9010010.*send_resource=False"),
    ("Entra, any tenant", {"metadata_issuer": None}, "set issuer and metadata_issuer"),
    (
        "Entra, any tenant",
        {"metadata_issuer": "https://login.microsoftonline.com/common/v2.0"},
        "metadata_issuer of the profile is",
    ),
    ("Entra, any tenant", {"assume_pkce": False}, "set issuer and assume_pkce=True"),
    ("Cognito", {"client_id": None}, "has no dynamic registration"),
    ("Cognito", {"assume_pkce": False}, "set issuer and assume_pkce=True of the profile"),
    ("Keycloak", {"client_id": None}, r"Trusted Hosts.*Register it by hand"),
    ("Okta", {"client_id": None}, r"did not register this client: status 403.*by hand"),
]


@pytest.mark.parametrize(("name", "changes", "text"), NEEDED)
def test_login_without_a_setting_of_the_page_says_what_to_do(
    name: str, changes: dict[str, Any], text: str
) -> None:
    with pytest.raises((AuthorizationFailed, AuthRequired), match=text):
        log_in(ProviderFake(PROVIDERS[name]), profile_of(name, **changes))


@pytest.mark.parametrize("name", ["Entra", "Entra, any tenant"])
def test_login_without_resource_ignores_scopes_of_another_audience(name: str) -> None:
    """A hostile MCP server would otherwise get a token for the user's mail."""
    fake = ProviderFake(PROVIDERS[name])
    log_in(fake, profile_of(name), demanded="https://graph.microsoft.com/Mail.ReadWrite")
    [sent] = fake.authorized
    assert sent["scope"].split() == [f"{API}/mcp.read", "offline_access"]
    assert "resource" not in {*sent, *fake.redeemed[0]}


@pytest.mark.parametrize("name", [name for name in PROVIDERS if not name.startswith("Entra")])
def test_login_sends_resource_unless_the_page_turns_it_off(name: str) -> None:
    fake = ProviderFake(PROVIDERS[name])
    log_in(fake, profile_of(name))
    for sent in (*fake.authorized, *fake.redeemed):
        assert sent["resource"] == fake.provider.mcp


SLASHES = [("Google", "https://accounts.google.com"), ("Auth0", "https://example.eu.auth0.com")]


@pytest.mark.parametrize(("name", "origin"), SLASHES)
@pytest.mark.parametrize("configured", ["", "/"])
@pytest.mark.parametrize("offered", ["", "/"])
def test_issuer_of_bare_origin_may_have_either_spelling(
    name: str, origin: str, configured: str, offered: str
) -> None:
    provider = PROVIDERS[name]
    named = {**provider.resource_metadata, "authorization_servers": [f"{origin}{offered}"]}
    fake = ProviderFake(dataclasses.replace(provider, resource_metadata=named))
    log_in(fake, profile_of(name, issuer=f"{origin}{configured}"))


@pytest.mark.requirement("AF-9", "AF-10")
@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("end", ["/", "x", " "])
def test_iss_in_another_spelling_is_refused(name: str, end: str) -> None:
    provider = PROVIDERS[name]
    iss = f"{profile_of(name).metadata_issuer or provider.metadata['issuer']}{end}"
    fake = ProviderFake(dataclasses.replace(provider, iss=iss))
    with pytest.raises(AuthorizationFailed, match="iss does not match"):
        log_in(fake, profile_of(name))
    assert fake.redeemed == []


def test_iss_of_the_users_tenant_is_refused_for_any_tenant() -> None:
    iss = f"https://login.microsoftonline.com/{TENANT}/v2.0"
    fake = ProviderFake(dataclasses.replace(PROVIDERS["Entra, any tenant"], iss=iss))
    with pytest.raises(AuthorizationFailed, match="iss does not match"):
        log_in(fake, profile_of("Entra, any tenant"))


def test_github_tokens_are_not_renewed() -> None:
    assert not log_in(ProviderFake(PROVIDERS["GitHub"]), profile_of("GitHub")).expires_soon()


def test_github_error_with_status_200_is_reported() -> None:
    error = {"error": "bad_verification_code", "error_description": "incorrect or expired"}
    fake = ProviderFake(dataclasses.replace(PROVIDERS["GitHub"], token=error))
    with pytest.raises(AuthorizationFailed, match=r"bad_verification_code \(incorrect or expired"):
        log_in(fake, profile_of("GitHub"))


def test_supabase_client_authenticates_although_registration_does_not_say_how() -> None:
    fake = ProviderFake(PROVIDERS["Supabase"])
    log_in(fake, profile_of("Supabase"))
    assert [sent["token_endpoint_auth_method"] for sent in fake.registered] == [
        "client_secret_basic"
    ]


# -- Tokens at a server ----------------------------------------------------------------------------

MCP = "https://mcp.example.com/mcp"
COGNITO = {"token_use": "access", "client_id": "our-client", "without": "aud"}
API_ID = API.removeprefix("api://")
TOKENS: list[tuple[str, dict[str, Any], str | None]] = [
    # the provider, the claims of a token, and why it is refused (None: accepted)
    ("Entra", {"aud": API_ID}, None),
    ("Entra", {"aud": API}, "another audience"),
    ("Entra", {"aud": MCP}, "another audience"),
    ("Cognito", COGNITO, None),
    ("Cognito", COGNITO | {"client_id": "another"}, "client_ids"),
    ("Cognito", COGNITO | {"token_use": "id"}, "not an access token"),
    ("Auth0", {"aud": [MCP, "https://example.eu.auth0.com/userinfo"]}, None),
    ("Auth0", {"aud": "https://example.eu.auth0.com/api/v2/"}, "another audience"),
    ("Keycloak", {"aud": [MCP, "account"]}, None),
    ("Keycloak", {"aud": "account"}, "another audience"),
    ("Okta", {"aud": MCP}, None),
    ("Okta", {"aud": "api://default"}, "another audience"),
    *(
        (name, COGNITO, "does not say for whom it is")
        for name in ("Entra", "Auth0", "Keycloak", "Okta")
    ),
]


@pytest.mark.parametrize(("name", "claims", "refused"), TOKENS)
def test_token_at_the_verifier_of_the_page(
    name: str, claims: dict[str, Any], refused: str | None
) -> None:
    """The verifiers of the page accept the tokens of their provider, and no others."""
    verifier: JwtVerifier = page()[f"{PROFILES[name]}_tokens"]
    documents = PROVIDERS[name].documents
    issuer = PROVIDERS[name].metadata["issuer"]
    flow = verifier.verify(token(header={"typ": "JWT"}, iss=issuer, **claims), NOW)
    try:
        step = next(flow)
        while True:
            assert isinstance(step, Fetch)
            found = documents.get(step.request.url)
            is_keys = step.request.url == PROVIDERS[name].metadata["jwks_uri"]
            reply = keys_reply(JWKS if is_keys else found, 200 if is_keys or found else 404)
            step = flow.send(reply)
    except StopIteration:
        assert refused is None
    except InvalidToken as exc:
        assert refused is not None
        assert refused in str(exc)  # noqa: PT017
