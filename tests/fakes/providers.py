"""Well-known authorization servers as fakes: their documents, and what they do with a login.

One row of `PROVIDERS` each, with an MCP server in front of it. The documents have the members that
matter of those that the provider published in 2026; tenants, pools and clients are made up. A
`KnownProvider` maps the steps of a client's flow to replies, without I/O.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from mcp_core.auth import Browse, Fetch, HttpResponse

__all__ = ["CLIENT_ID", "PROVIDERS", "SECRET", "KnownProvider", "ProviderFake"]

CLIENT_ID: Final = "our-client"
SECRET: Final = "our-secret"
TENANT: Final = "11111111-2222-3333-4444-555555555555"
API: Final = "api://66666666-7777-8888-9999-000000000000"
NOT_FOUND: Final = HttpResponse(404, [], b"")


@dataclass(frozen=True)
class KnownProvider:
    """One authorization server, and an MCP server that uses it.

    - `mcp` is the URL of the MCP server, `resource_metadata` its document at `prm`.
    - `documents` are the authorization server's, by URL; `missing` answers any other GET.
    - `resource` says what it does with that parameter.
    - `needs_secret` is whether clients that were registered by hand have to send their secret.
    - `iss` is what it adds to the callback, None if nothing.
    - `token` has the further members of its token response, which has the status `token_status`.
    - `registration` is its answer to a registration, None if it has no endpoint for that.
    """

    mcp: str
    prm: str
    resource_metadata: dict[str, Any]
    documents: dict[str, dict[str, Any]]
    missing: HttpResponse = NOT_FOUND
    resource: Literal["bound", "ignored", "refused"] = "ignored"
    needs_secret: bool = False
    iss: str | None = None
    token: dict[str, Any] = field(default_factory=dict)
    token_status: int = 200
    registration: tuple[int, dict[str, Any]] | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        return next(iter(self.documents.values()))


class ProviderFake:
    """A `KnownProvider` at work.

    `authorized` and `redeemed` have the parameters of each request.
    """

    def __init__(self, provider: KnownProvider) -> None:
        self.provider = provider
        self.registered: list[dict[str, Any]] = []
        self.authorized: list[dict[str, str]] = []
        self.redeemed: list[dict[str, str]] = []

    @property
    def challenge(self) -> str:
        return f'Bearer resource_metadata="{self.provider.prm}"'

    def answer(self, step: Fetch | Browse) -> Any:
        """Return the reply to a request, or the URL to which the browser comes back."""
        if isinstance(step, Browse):
            return self._log_in(step)
        request = step.request
        if request.method == "GET":
            return self._document(request.url)
        if request.url == self.provider.metadata.get("registration_endpoint"):
            return self._register(json.loads(request.body))
        assert request.url == self.provider.metadata["token_endpoint"]
        return self._issue_token(
            dict(parse_qsl(request.body.decode())), dict(request.headers).get("authorization")
        )

    def _document(self, url: str) -> HttpResponse:
        provider = self.provider
        if url == provider.prm:
            return _json(provider.resource_metadata)
        found = provider.documents.get(url)
        return provider.missing if found is None else _json(found)

    def _register(self, sent: dict[str, Any]) -> HttpResponse:
        self.registered.append(sent)
        assert self.provider.registration is not None
        status, members = self.provider.registration
        return _json(members, status)

    def _log_in(self, step: Browse) -> str:
        provider = self.provider
        sent = {name: values[0] for name, values in parse_qs(urlsplit(step.url).query).items()}
        assert step.url.startswith(provider.metadata["authorization_endpoint"])
        assert sent["code_challenge_method"] == "S256"
        self.authorized.append(sent)
        back = {"code": "the-code"}
        if provider.resource == "refused" and "resource" in sent:
            back = {
                "error": "invalid_target",
                "error_description": "AADSTS9010010: The resource parameter provided in the request"
                " doesn't match with the requested scopes.",
            }
        back["state"] = sent["state"]
        if provider.iss is not None:
            back["iss"] = provider.iss
        return f"{step.redirect_uri}?{urlencode(back)}"

    def _issue_token(self, sent: dict[str, str], basic: str | None) -> HttpResponse:
        provider = self.provider
        self.redeemed.append(sent)
        if provider.resource == "refused" and "resource" in sent:
            return _json({"error": "invalid_target"}, 400)
        if provider.needs_secret and basic is None and "client_secret" not in sent:
            return _json({"error": "invalid_client", "error_description": "no client_secret"}, 401)
        members = {"access_token": f"token-{len(self.redeemed)}", "token_type": "Bearer"}
        return _json(members | provider.token, provider.token_status)


def _json(members: dict[str, Any], status: int = 200) -> HttpResponse:
    return HttpResponse(
        status, [("content-type", "application/json")], json.dumps(members).encode()
    )


def _protected(url: str, issuer: str, *scopes: str) -> dict[str, Any]:
    named = {"scopes_supported": list(scopes)} if scopes else {}
    return {"resource": url, "authorization_servers": [issuer], **named}


def _well_known(url: str) -> str:
    parts = urlsplit(url)
    return f"https://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"


def _provider(mcp: str, issuer: str, *scopes: str, **more: Any) -> KnownProvider:
    """Return a provider for the MCP server at `mcp`, which offers `issuer` with `scopes`."""
    return KnownProvider(mcp, _well_known(mcp), _protected(mcp, issuer, *scopes), **more)


_GOOGLE: Final = "https://accounts.google.com"
_GITHUB: Final = "https://github.com/login/oauth"
_ENTRA: Final = "https://login.microsoftonline.com"
_COGNITO: Final = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_EXAMPLE"
_COGNITO_LOGIN: Final = "https://example.auth.eu-west-1.amazoncognito.com/oauth2"
_AUTH0: Final = "https://example.eu.auth0.com"
_KEYCLOAK: Final = "https://sso.example.com/realms/mcp"
_OKTA: Final = "https://example.okta.com/oauth2/default"
_SUPABASE: Final = "https://api.supabase.com"


def _entra(tenant: str, issuer: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a tenant of Entra: the third of the well-known URLs only."""
    at = f"{_ENTRA}/{tenant}"
    return {
        f"{at}/v2.0/.well-known/openid-configuration": {
            "issuer": issuer,
            "authorization_endpoint": f"{at}/oauth2/v2.0/authorize",
            "token_endpoint": f"{at}/oauth2/v2.0/token",
            "jwks_uri": f"{at}/discovery/v2.0/keys",
            "token_endpoint_auth_methods_supported": [
                "client_secret_post",
                "private_key_jwt",
                "client_secret_basic",
            ],
            "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
            "scopes_supported": ["openid", "profile", "email", "offline_access"],
        }
    }


PROVIDERS: Final[dict[str, KnownProvider]] = {
    "Google": _provider(
        "https://calendarmcp.googleapis.com/mcp/v1",
        f"{_GOOGLE}/",
        "https://www.googleapis.com/auth/calendar.readonly",
        documents={
            f"{_GOOGLE}/.well-known/oauth-authorization-server": {
                "issuer": _GOOGLE,
                "authorization_endpoint": f"{_GOOGLE}/o/oauth2/v2/auth",
                "token_endpoint": "https://oauth2.googleapis.com/token",
                "jwks_uri": "https://www.googleapis.com/oauth2/v3/certs",
                "response_types_supported": ["code", "token", "id_token"],
                "scopes_supported": ["openid", "email", "profile"],
                "token_endpoint_auth_methods_supported": [
                    "client_secret_post",
                    "client_secret_basic",
                ],
                "code_challenge_methods_supported": ["plain", "S256"],
            }
        },
        needs_secret=True,
        iss=_GOOGLE,  # although its metadata doesn't say so
        token={"expires_in": 3599, "refresh_token": "1//r", "scope": "a"},
    ),
    "GitHub": _provider(
        "https://api.githubcopilot.com/mcp/",
        _GITHUB,
        "repo",
        "read:org",
        documents={
            "https://github.com/.well-known/oauth-authorization-server/login/oauth": {
                "issuer": _GITHUB,
                "authorization_endpoint": f"{_GITHUB}/authorize",
                "token_endpoint": f"{_GITHUB}/access_token",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
            }
        },
        needs_secret=True,
        token={"token_type": "bearer", "scope": "read:org,repo"},
    ),
    "Entra": _provider(
        "https://mcp.example.com/mcp",
        f"{_ENTRA}/{TENANT}/v2.0",
        f"{API}/mcp.read",
        documents=_entra(TENANT, f"{_ENTRA}/{TENANT}/v2.0"),
        missing=HttpResponse(400, [], b""),
        resource="refused",
        token={"expires_in": 3599, "ext_expires_in": 3599, "scope": f"{API}/mcp.read"},
    ),
    "Entra, any tenant": _provider(
        "https://mcp.example.com/mcp",
        f"{_ENTRA}/common/v2.0",
        f"{API}/mcp.read",
        documents=_entra("common", f"{_ENTRA}/{{tenantid}}/v2.0"),
        missing=HttpResponse(400, [], b""),
        resource="refused",
        token={"expires_in": 3599, "scope": f"{API}/mcp.read"},
    ),
    "Cognito": _provider(
        "https://mcp.example.com/mcp",
        _COGNITO,
        documents={
            f"{_COGNITO}/.well-known/openid-configuration": {
                "issuer": _COGNITO,
                "authorization_endpoint": f"{_COGNITO_LOGIN}/authorize",
                "token_endpoint": f"{_COGNITO_LOGIN}/token",
                "jwks_uri": f"{_COGNITO}/.well-known/jwks.json",
                "response_types_supported": ["code", "token"],
                "scopes_supported": ["openid", "email", "phone", "profile"],
                "token_endpoint_auth_methods_supported": [
                    "client_secret_basic",
                    "client_secret_post",
                ],
            }
        },
        missing=HttpResponse(400, [], b""),
        token={"expires_in": 3600, "refresh_token": "r", "id_token": "x.y.z"},
    ),
    "Auth0": _provider(
        "https://mcp.example.com/mcp",
        _AUTH0,
        "notes:read",
        documents={
            f"{_AUTH0}/.well-known/oauth-authorization-server": {
                "issuer": f"{_AUTH0}/",
                "authorization_endpoint": f"{_AUTH0}/authorize",
                "token_endpoint": f"{_AUTH0}/oauth/token",
                "registration_endpoint": f"{_AUTH0}/oidc/register",
                "jwks_uri": f"{_AUTH0}/.well-known/jwks.json",
                "scopes_supported": ["openid", "profile", "offline_access"],
                "code_challenge_methods_supported": ["S256", "plain"],
                "token_endpoint_auth_methods_supported": [
                    "client_secret_basic",
                    "client_secret_post",
                    "private_key_jwt",
                    "none",
                ],
            }
        },
        resource="bound",
        token={"expires_in": 86400, "refresh_token": "r", "scope": "notes:read offline_access"},
        registration=(201, {"client_id": "tpc_1", "token_endpoint_auth_method": "none"}),
    ),
    "Keycloak": _provider(
        "https://mcp.example.com/mcp",
        _KEYCLOAK,
        documents={
            f"{_KEYCLOAK}/.well-known/openid-configuration": {
                "issuer": _KEYCLOAK,
                "authorization_endpoint": f"{_KEYCLOAK}/protocol/openid-connect/auth",
                "token_endpoint": f"{_KEYCLOAK}/protocol/openid-connect/token",
                "registration_endpoint": f"{_KEYCLOAK}/clients-registrations/openid-connect",
                "jwks_uri": f"{_KEYCLOAK}/protocol/openid-connect/certs",
                "scopes_supported": ["openid", "profile", "offline_access", "mcp"],
                "code_challenge_methods_supported": ["plain", "S256"],
                "authorization_response_iss_parameter_supported": True,
                "token_endpoint_auth_methods_supported": [
                    "private_key_jwt",
                    "client_secret_basic",
                    "client_secret_post",
                ],
                "dpop_signing_alg_values_supported": ["ES256"],
            }
        },
        iss=_KEYCLOAK,
        token={
            "expires_in": 300,
            "refresh_expires_in": 1800,
            "refresh_token": "r",
            "not-before-policy": 0,
            "scope": "profile mcp",
        },
        registration=(
            403,
            {
                "error": "insufficient_scope",
                "error_description": "Policy 'Trusted Hosts' rejected request to"
                " client-registration service. Details: Host not trusted.",
            },
        ),
    ),
    "Okta": _provider(
        "https://mcp.example.com/mcp",
        _OKTA,
        "notes:read",
        documents={
            f"{_OKTA}/.well-known/openid-configuration": {
                "issuer": _OKTA,
                "authorization_endpoint": f"{_OKTA}/v1/authorize",
                "token_endpoint": f"{_OKTA}/v1/token",
                "registration_endpoint": "https://example.okta.com/oauth2/v1/clients",
                "jwks_uri": f"{_OKTA}/v1/keys",
                "scopes_supported": ["openid", "profile", "offline_access", "notes:read"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": [
                    "client_secret_basic",
                    "client_secret_post",
                    "private_key_jwt",
                    "none",
                ],
            }
        },
        token={"expires_in": 3600, "scope": "notes:read"},
        registration=(
            403,
            {"errorCode": "E0000005", "errorSummary": "Invalid session", "errorCauses": []},
        ),
    ),
    "Supabase": _provider(
        "https://mcp.supabase.com/mcp",
        _SUPABASE,
        "projects:read",
        documents={
            f"{_SUPABASE}/.well-known/oauth-authorization-server": {
                "issuer": _SUPABASE,
                "authorization_endpoint": f"{_SUPABASE}/v1/oauth/authorize",
                "token_endpoint": f"{_SUPABASE}/v1/oauth/token",
                "registration_endpoint": f"{_SUPABASE}/platform/oauth/apps/register",
                "scopes_supported": ["organizations:read", "projects:read", "database:read"],
                "code_challenge_methods_supported": ["S256", "plain"],
                "token_endpoint_auth_methods_supported": [
                    "client_secret_basic",
                    "client_secret_post",
                ],
            }
        },
        needs_secret=True,
        token={"expires_in": 86400, "refresh_token": "r"},
        token_status=201,
        # no `token_endpoint_auth_method`
        registration=(201, {"client_id": "app-1", "client_secret": SECRET}),
    ),
}
