"""An authorization server built with authlib, with everything in memory.

It is the one of `examples/login_proxy.py`, with introspection and revocation besides, and RS256.
`tests.fakes.authorization_server` serves it. Every user is `alice`, who agrees to everything.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from joserfc.jwk import RSAKey

from examples.login_proxy import METHODS, Answer, Client, LoginServer, Question, Token, User
from tests.fakes.authorization_server import Response

__all__ = ["AuthlibServer", "Client"]


class Introspection(IntrospectionEndpoint):  # type: ignore[misc]
    def query_token(self, token_string: str, token_type_hint: str | None) -> Token | None:
        found: Token | None = self.server.find(token_string)
        return found

    def check_permission(self, token: Token, client: Client, request: Any) -> bool:
        return client.client_id == "guard"

    def introspect_token(self, token: Token) -> dict[str, Any]:
        return {
            "client_id": token.client_id,
            "sub": token.user.id,
            "scope": token.scope,
            "aud": token.user.resource,
            "iss": self.server.issuer,
            "exp": int(token.expires_at),
        }


class Revocation(RevocationEndpoint):  # type: ignore[misc]
    CLIENT_AUTH_METHODS = METHODS

    def query_token(self, token_string: str, token_type_hint: str | None) -> Token | None:
        found: Token | None = self.server.find(token_string)
        return found

    def revoke_token(self, token: Token, request: Any) -> None:
        token.revoked = True


class AuthlibServer(LoginServer):
    """A server at `issuer`.

    `methods` are the client authentication methods in its metadata; its access tokens are valid for
    `lifetime` seconds; `log` has a line for each request, `issued` all tokens.
    """

    def __init__(self, issuer: str) -> None:
        key = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
        super().__init__(issuer, ["notes:read", "notes:write"], key)
        self.log: list[str] = []
        guard = {"token_endpoint_auth_method": "client_secret_basic"}
        self.clients["guard"] = Client("guard", "s3cr3t: of +the guard", guard)
        for endpoint in Introspection, Revocation:
            self.register_endpoint(endpoint)

    @property
    def metadata(self) -> dict[str, Any]:
        return super().metadata | {
            "introspection_endpoint": f"{self.issuer}/introspect",
            "revocation_endpoint": f"{self.issuer}/revoke",
        }

    @property
    def issued(self) -> list[Token]:
        return [*self.tokens.values()]

    def find(self, token: str) -> Token | None:
        return next(
            (each for each in self.issued if token in (each.access_token, each.refresh_token)), None
        )

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        """Return the response to one request, as `tests.fakes.authorization_server` does."""
        path = urlsplit(target).path
        self.log.append(f"{method} {path}")
        request = Question(method, f"{self.issuer}{target}", headers, body)
        found: Answer
        match method, path:
            case "GET", "/.well-known/oauth-authorization-server":
                found = self.handle_response(200, self.metadata, [])
            case "GET", "/jwks":
                found = self.handle_response(200, self.keys, [])
            case "GET", "/authorize":
                user = User(request.payload.data.get("resource", ""), "alice")
                try:
                    grant = self.get_consent_grant(request, user)
                except OAuth2Error as error:
                    found = self.refuse(request, error)
                else:
                    found = self.create_authorization_response(request, user, grant)
            case "POST", "/token":
                found = self.create_token_response(request)
            case "POST", "/register":
                found = self.register(request.uri, body)
            case "POST", "/introspect":
                found = self.create_endpoint_response("introspection", request)
            case "POST", "/revoke":
                found = self.create_endpoint_response("revocation", request)
            case _:
                found = Answer(status_code=404)
        sent = [each for each in found.headers.items() if each[0] != "content-length"]
        return Response(found.status_code, bytes(found.body), sent)
