"""An authorization server built with authlib, with everything in memory.

It has codes with PKCE, registration, rotating refresh tokens, JWT access tokens (RFC 9068),
introspection, revocation and `iss` in its responses. `tests.fakes.authorization_server` serves it.
Every user is `alice`, who agrees to everything. authlib has no `resource` parameter, so it is
stored here.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from authlib.common.security import generate_token
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import (
    AuthorizationCodeMixin,
    AuthorizationServer,
    ClientMixin,
    JsonPayload,
    JsonRequest,
    OAuth2Request,
    TokenMixin,
)
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from joserfc.jwk import RSAKey

from tests.fakes.authorization_server import Response

__all__ = ["AuthlibServer"]

METHODS = ["none", "client_secret_basic", "client_secret_post"]


class Page(Response):
    """A response with the `location` attribute that `IssuerParameter` changes."""

    @property
    def location(self) -> str | None:
        return next((value for name, value in self.headers if name.lower() == "location"), None)

    @location.setter
    def location(self, value: str) -> None:
        self.headers = [each for each in self.headers if each[0].lower() != "location"] + [
            ("location", value)
        ]


class Request(OAuth2Request):  # type: ignore[misc]
    def __init__(
        self, method: str, url: str, headers: dict[str, str], form: dict[str, str]
    ) -> None:
        super().__init__(method, url, headers=headers)
        self.payload = BasicOAuth2Payload(dict(parse_qsl(urlsplit(url).query)) | form)
        self._form = form

    @property
    def form(self) -> dict[str, str]:
        return self._form


class Document(JsonPayload):  # type: ignore[misc]
    def __init__(self, data: Any) -> None:
        self._data = data

    @property
    def data(self) -> Any:
        return self._data


@dataclass
class User:
    """The user who agrees, and the resource of the grant."""

    resource: str
    name: str = "alice"

    def get_user_id(self) -> str:
        return self.name


@dataclass
class Client(ClientMixin):  # type: ignore[misc]
    client_id: str
    secret: str
    metadata: dict[str, Any]

    def get_client_id(self) -> str:
        return self.client_id

    def get_allowed_scope(self, scope: str | None) -> str:
        allowed = self.metadata.get("scope", "").split()
        return " ".join(each for each in (scope or "").split() if each in allowed)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.metadata["redirect_uris"]

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return bool(method == self.metadata["token_endpoint_auth_method"])

    def check_response_type(self, response_type: str) -> bool:
        return response_type in self.metadata["response_types"]

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.metadata["grant_types"]


@dataclass
class Code(AuthorizationCodeMixin):  # type: ignore[misc]
    redirect_uri: str
    scope: str
    user: User
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token(TokenMixin):  # type: ignore[misc]
    client_id: str
    user: User
    access_token: str
    refresh_token: str
    scope: str
    expires_at: float
    revoked: bool = False
    family: list[Token] = field(default_factory=list)

    def check_client(self, client: Client) -> bool:
        return self.client_id == client.client_id

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return self.expires_at + 60 < time.time()

    def is_revoked(self) -> bool:
        return self.revoked


class Codes(AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def save_authorization_code(self, code: str, request: Request) -> None:
        params = request.payload.data
        self.server.codes[code] = Code(
            params["redirect_uri"],
            request.scope,
            request.user,
            params["code_challenge"],
            params["code_challenge_method"],
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found: Code | None = self.server.codes.pop(code, None)
        return found

    def delete_authorization_code(self, authorization_code: Code) -> None:
        pass  # `query_authorization_code` has removed it

    def authenticate_user(self, authorization_code: Code) -> User:
        return authorization_code.user


class Refreshes(RefreshTokenGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        found: Token | None = self.server.find(refresh_token)
        if found is not None and found.revoked:
            # A reused refresh token was stolen (RFC 9700, 4.14.2): revoke all its descendants.
            for each in found.family:
                each.revoked = True
            return None
        return found

    def authenticate_user(self, refresh_token: Token) -> User:
        return refresh_token.user

    def revoke_old_credential(self, refresh_token: Token) -> None:
        refresh_token.revoked = True


class Registration(ClientRegistrationEndpoint):  # type: ignore[misc]
    def authenticate_token(self, request: Any) -> str:
        return "anyone"

    def get_server_metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.metadata
        return found

    def save_client(
        self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: Any
    ) -> Client:
        client = Client(client_info["client_id"], client_info["client_secret"], client_metadata)
        self.server.clients[client.client_id] = client
        return client


class Introspection(IntrospectionEndpoint):  # type: ignore[misc]
    def query_token(self, token_string: str, token_type_hint: str | None) -> Token | None:
        found: Token | None = self.server.find(token_string)
        return found

    def check_permission(self, token: Token, client: Client, request: Any) -> bool:
        return client.client_id == "guard"

    def introspect_token(self, token: Token) -> dict[str, Any]:
        return {
            "client_id": token.client_id,
            "sub": token.user.name,
            "scope": token.scope,
            "aud": token.user.resource,
            "iss": self.server.issuer,
            "exp": int(token.expires_at) + 60,
        }


class Revocation(RevocationEndpoint):  # type: ignore[misc]
    CLIENT_AUTH_METHODS = METHODS

    def query_token(self, token_string: str, token_type_hint: str | None) -> Token | None:
        found: Token | None = self.server.find(token_string)
        return found

    def revoke_token(self, token: Token, request: Any) -> None:
        token.revoked = True


class Bearer(JWTBearerTokenGenerator):  # type: ignore[misc]
    def __init__(self, server: AuthlibServer) -> None:
        super().__init__(
            server.issuer,
            refresh_token_generator=lambda **_: generate_token(48),
            expires_generator=lambda client, grant_type: server.lifetime,
        )
        self._server = server

    def get_jwks(self) -> Any:
        return self._server.key.as_dict(private=True)

    def get_audiences(self, client: Client, user: User, scope: str) -> str:
        return user.resource


class Issuer(IssuerParameter):  # type: ignore[misc]
    def __init__(self, server: AuthlibServer) -> None:
        self._server = server
        super().__call__(server)

    def get_issuer(self) -> str:
        return self._server.issuer


class AuthlibServer(AuthorizationServer):  # type: ignore[misc]
    """A server at `issuer`.

    `methods` are the client authentication methods in its metadata; its access tokens are valid for
    `lifetime` seconds; `log` has a line for each request.
    """

    def __init__(self, issuer: str) -> None:
        scopes = ["notes:read", "notes:write"]
        super().__init__(scopes_supported=scopes)
        self.issuer = issuer
        self.methods = METHODS
        self.lifetime = 600
        self.log: list[str] = []
        self.key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
        guard = {"token_endpoint_auth_method": "client_secret_basic"}
        self.clients = {"guard": Client("guard", "s3cr3t: of +the guard", guard)}
        self.codes: dict[str, Code] = {}
        self.tokens: list[Token] = []
        self.register_token_generator("default", Bearer(self))
        self.register_grant(Codes, [CodeChallenge(required=True)])
        self.register_grant(Refreshes)
        for endpoint in Registration, Introspection, Revocation:
            self.register_endpoint(endpoint)
        self.register_extension(Issuer)

    @property
    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "introspection_endpoint": f"{self.issuer}/introspect",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": self.methods,
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": self.scopes_supported,
        }

    def find(self, token: str) -> Token | None:
        return next(
            (each for each in self.tokens if token in (each.access_token, each.refresh_token)), None
        )

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        """Return the response to one request, as `tests.fakes.authorization_server` does."""
        path = urlsplit(target).path
        self.log.append(f"{method} {path}")
        named = {name.title(): value for name, value in headers.items()}
        is_form = named.get("Content-Type") == "application/x-www-form-urlencoded"
        form = dict(parse_qsl(body.decode())) if is_form else {}
        request = Request(method, f"{self.issuer}{target}", named, form)
        found: Response
        match method, path:
            case "GET", "/.well-known/oauth-authorization-server":
                found = self.handle_response(200, self.metadata, [])
            case "GET", "/jwks":
                found = self.handle_response(200, {"keys": [self.key.as_dict(private=False)]}, [])
            case "GET", "/authorize":
                user = User(request.payload.data.get("resource", ""))
                try:
                    grant = self.get_consent_grant(request, user)
                except OAuth2Error as error:
                    found = self.handle_error_response(request, error)
                else:
                    found = self.create_authorization_response(request, user, grant)
            case "POST", "/token":
                found = self.create_token_response(request)
            case "POST", "/register":
                registration = JsonRequest(method, request.uri, named)
                registration.payload = Document(json.loads(body))
                found = self.create_endpoint_response("client_registration", registration)
            case "POST", "/introspect":
                found = self.create_endpoint_response("introspection", request)
            case "POST", "/revoke":
                found = self.create_endpoint_response("revocation", request)
            case _:
                found = Response(404)
        return found

    # -- Hooks of authlib --------------------------------------------------------------------------

    def query_client(self, client_id: str) -> Client | None:
        return self.clients.get(client_id)

    def save_token(self, token: dict[str, Any], request: Request) -> None:
        before = request.refresh_token
        saved = Token(
            request.client.client_id,
            request.user or before.user,
            token["access_token"],
            token["refresh_token"],
            token["scope"],
            time.time() + token.get("expires_in", 0),
            family=before.family if before is not None else [],
        )
        saved.family.append(saved)
        self.tokens.append(saved)

    def create_oauth2_request(self, request: Request) -> Request:
        return request

    def create_json_request(self, request: JsonRequest) -> JsonRequest:
        return request

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    def handle_response(self, status: int, payload: Any, headers: list[tuple[str, str]]) -> Page:
        data = json.dumps(payload).encode() if isinstance(payload, dict) else payload.encode()
        if isinstance(payload, dict) and not headers:
            headers = [("content-type", "application/json")]
        return Page(status, data, [(name.lower(), value) for name, value in headers])
