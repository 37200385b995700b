"""A small OAuth authorization server, for tests and for trying out a protected server by hand.

    python tests/fakes/authorization_server.py 9000

It protects nothing: every user is `alice`, who agrees to everything. Clients are checked, though:
PKCE with S256, the redirect URI, `resource`, and that codes and refresh tokens are used once. A
client that sends a DPoP proof gets a token bound to its key.

`AuthorizationServer.answer` maps a request to a response. `serve` runs it, or a similar object, on
a socket.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

import h11
import trio
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

__all__ = ["Answering", "AuthorizationServer", "Response", "serve"]


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)


class OAuthError(Exception):
    """An error of RFC 6749, 5.2."""

    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(code)
        self.code, self.status = code, status


@dataclass
class Code:
    """The grant for which a code or a refresh token was issued."""

    client_id: str
    redirect_uri: str
    challenge: str
    resource: str
    scope: str
    jkt: str | None = None  # thumbprint of the key to which a refresh token is bound


class Answering(Protocol):
    """An object that `serve` can run."""

    issuer: str

    def answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> Response: ...


class AuthorizationServer:
    """A server at `issuer`.

    `scopes` are those that it can grant; its access tokens are valid for `lifetime` seconds.
    `clients` maps the ids of registered clients to their metadata, and `log` has a line for each
    request. If `nonce` is set, each proof must contain it.
    """

    def __init__(
        self,
        issuer: str,
        *,
        scopes: str = "notes:read notes:write",
        user: str = "alice",
        lifetime: float = 600,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.issuer, self.scopes, self.user, self.lifetime = issuer, scopes, user, lifetime
        self.clients: dict[str, dict[str, Any]] = {}
        self.log: list[str] = []
        self.nonce: str | None = None
        self._clock = clock
        self._key = ECKey.generate_key("P-256", {"kid": "1", "use": "sig"})
        self._codes: dict[str, Code] = {}
        self._refresh: dict[str, Code] = {}
        self._proofs: set[str] = set()

    @property
    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "introspection_endpoint": f"{self.issuer}/introspect",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [
                "none",
                "client_secret_basic",
                "client_secret_post",
            ],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": [*self.scopes.split(), "offline_access"],
            "dpop_signing_alg_values_supported": ["ES256"],
        }

    def token(self, resource: str, scope: str | None = None, **claims: Any) -> str:
        """Return an access token (RFC 9068) for `resource`, like the token endpoint's."""
        now = int(self._clock())
        claims_set = {
            "iss": self.issuer,
            "aud": resource,
            "sub": self.user,
            "client_id": "tests",
            "iat": now,
            "exp": now + int(self.lifetime),
            "jti": secrets.token_hex(8),
            "scope": self.scopes if scope is None else scope,
        }
        return jwt.encode(
            {"alg": "ES256", "kid": "1", "typ": "at+jwt"}, claims_set | claims, self._key
        )

    # -- Requests ----------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        """Return the response to one request. Names of `headers` are in lower case."""
        parts = urlsplit(target)
        self.log.append(f"{method} {parts.path}")
        try:
            match method, parts.path:
                case (
                    "GET",
                    "/.well-known/oauth-authorization-server" | "/.well-known/openid-configuration",
                ):
                    return _json(self.metadata)
                case "GET", "/jwks":
                    return _json({"keys": [self._key.as_dict(private=False)]})
                case "POST", "/register":
                    return self._register(json.loads(body))
                case "GET", "/authorize":
                    return self._authorize(dict(parse_qsl(parts.query)))
                case "POST", "/token":
                    return self._issue_token(dict(parse_qsl(body.decode())), headers)
                case "POST", "/introspect":
                    return self._introspect(dict(parse_qsl(body.decode())))
                case _:
                    return Response(404)
        except OAuthError as exc:
            response = _json({"error": exc.code}, exc.status)
            if exc.code == "use_dpop_nonce" and self.nonce is not None:
                response.headers.append(("dpop-nonce", self.nonce))
            return response
        except ValueError:
            return _json({"error": "invalid_request"}, 400)

    def _register(self, params: dict[str, Any]) -> Response:
        id = f"client-{len(self.clients) + 1}"
        method = params.get("token_endpoint_auth_method") or "client_secret_basic"
        registered: dict[str, Any] = {
            **params,
            "client_id": id,
            "token_endpoint_auth_method": method,
        }
        if method != "none":
            registered |= {"client_secret": secrets.token_urlsafe(), "client_secret_expires_at": 0}
        self.clients[id] = registered
        return _json(registered, 201)

    def _authorize(self, params: dict[str, str]) -> Response:
        client = self.clients.get(params.get("client_id", ""))
        redirect_uri = params.get("redirect_uri", "")
        if client is None or not any(
            _matches_redirect_uri(redirect_uri, each) for each in client.get("redirect_uris", ())
        ):
            return _json({"error": "invalid_request"}, 400)  # never redirect to an unregistered URI
        if params.get("response_type") != "code" or params.get("code_challenge_method") != "S256":
            answer = {"error": "invalid_request"}
        else:
            code = secrets.token_urlsafe()
            scope = " ".join(
                each
                for each in params.get("scope", self.scopes).split()
                if each in self.scopes.split()
            )
            challenge, resource = params["code_challenge"], params.get("resource", "")
            self._codes[code] = Code(params["client_id"], redirect_uri, challenge, resource, scope)
            answer = {"code": code}
        answer |= {"iss": self.issuer, "state": params.get("state", "")}
        return Response(
            302,
            headers=[
                (
                    "location",
                    f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{urlencode(answer)}",
                )
            ],
        )

    def _issue_token(self, params: dict[str, str], headers: dict[str, str]) -> Response:
        client_id = self._client(params, headers)
        jkt = self._proof_thumbprint(headers["dpop"]) if "dpop" in headers else None
        bound = {"cnf": {"jkt": jkt}} if jkt is not None else {}
        kind = "Bearer" if jkt is None else "DPoP"
        match params.get("grant_type"):
            case "authorization_code":
                grant = self._codes.pop(params.get("code", ""), None)
                verifier = sha256(params.get("code_verifier", "").encode()).digest()
                if (
                    grant is None
                    or grant.challenge != urlsafe_b64encode(verifier).rstrip(b"=").decode()
                    or grant.redirect_uri != params.get("redirect_uri")
                ):
                    raise OAuthError("invalid_grant")
            case "refresh_token":
                grant = self._refresh.pop(params.get("refresh_token", ""), None)
                if grant is None or grant.jkt != jkt:
                    raise OAuthError("invalid_grant")
            case "client_credentials":
                resource, scope = params.get("resource", ""), params.get("scope", self.scopes)
                token = self.token(resource, scope, sub=client_id, client_id=client_id, **bound)
                return _json(
                    {"access_token": token, "token_type": kind, "expires_in": int(self.lifetime)}
                )
            case _:
                raise OAuthError("unsupported_grant_type")
        if grant.client_id != client_id:
            raise OAuthError("invalid_grant")
        if params.get("resource", grant.resource) != grant.resource:
            raise OAuthError("invalid_target")
        refresh = secrets.token_urlsafe()
        self._refresh[refresh] = replace(grant, jkt=jkt)
        return _json(
            {
                "access_token": self.token(
                    grant.resource, grant.scope, client_id=client_id, **bound
                ),
                "token_type": kind,
                "expires_in": int(self.lifetime),
                "refresh_token": refresh,
                "scope": grant.scope,
            }
        )

    def _client(self, params: dict[str, str], headers: dict[str, str]) -> str:
        id, secret = params.get("client_id", ""), params.get("client_secret")
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            id, _, secret = (
                unquote_plus(part) for part in b64decode(credentials).decode().partition(":")
            )
        client = self.clients.get(id)
        if client is None or client.get("client_secret") != secret:
            raise OAuthError("invalid_client", 401)
        return id

    def _proof_thumbprint(self, proof: str) -> str:
        """Check a proof (RFC 9449, 4.3 and 5) and return the thumbprint of its key."""
        try:
            shown = jws.deserialize_compact(
                proof, lambda found: ECKey.import_key(found.headers()["jwk"])
            )
            header, claims = shown.headers(), json.loads(shown.payload)
            right = (header["typ"], claims["htm"], claims["htu"]) == (
                "dpop+jwt",
                "POST",
                f"{self.issuer}/token",
            )
            fresh = abs(self._clock() - claims["iat"]) < 60 and claims["jti"] not in self._proofs
            if not right or not fresh or "d" in header["jwk"]:
                raise OAuthError("invalid_dpop_proof")
        except (JoseError, KeyError) as exc:
            raise OAuthError("invalid_dpop_proof") from exc
        self._proofs.add(claims["jti"])
        if claims.get("nonce") != self.nonce:
            raise OAuthError("use_dpop_nonce")
        return ECKey.import_key(header["jwk"]).thumbprint()

    def _introspect(self, params: dict[str, str]) -> Response:
        try:
            claims = jwt.decode(params.get("token", ""), self._key).claims
        except Exception:  # noqa: BLE001 - a token that cannot be read is not active
            return _json({"active": False})
        return _json({"active": claims["exp"] > self._clock(), **claims})


def _json(value: Any, status: int = 200) -> Response:
    headers = [("content-type", "application/json"), ("cache-control", "no-store")]
    return Response(status, json.dumps(value).encode(), headers)


def _matches_redirect_uri(uri: str, registered: str) -> bool:
    """True if a redirect URI is registered. On loopback the port may differ (RFC 8252, 7.3)."""
    one, other = urlsplit(uri), urlsplit(registered)
    if one.hostname == other.hostname and one.hostname in ("127.0.0.1", "::1", "localhost"):
        return one.scheme == other.scheme and one.path == other.path
    return uri == registered


# -- On a socket -----------------------------------------------------------------------------------


async def serve(
    port: int = 0,
    *,
    make: Callable[..., Answering] = AuthorizationServer,
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
    **options: Any,
) -> None:
    """Serve on this machine, until cancelled.

    `server = await nursery.start(serve)` returns the server, with its `issuer`.
    """
    (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
    server = make(f"http://127.0.0.1:{listener.socket.getsockname()[1]}", **options)

    async def serve_connection(stream: trio.SocketStream) -> None:
        http = h11.Connection(h11.SERVER)
        head: h11.Request | None = None
        body = b""
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode(): value.decode() for name, value in head.headers}
                answer = server.answer(head.method.decode(), head.target.decode(), headers, body)
                all_headers = [
                    *answer.headers,
                    ("content-length", str(len(answer.body))),
                    ("connection", "close"),
                ]
                response = h11.Response(status_code=answer.status, headers=all_headers)
                await stream.send_all(
                    b"".join(
                        http.send(each) or b""
                        for each in (response, h11.Data(data=answer.body), h11.EndOfMessage())
                    )
                )
                return
            else:
                return

    async def handle(stream: trio.SocketStream) -> None:
        try:
            async with stream:
                await serve_connection(stream)
        except (trio.BrokenResourceError, h11.ProtocolError):
            pass

    task_status.started(server)
    await trio.serve_listeners(handle, [listener])


if __name__ == "__main__":
    trio.run(serve, int(sys.argv[1]) if len(sys.argv) > 1 else 9000)
