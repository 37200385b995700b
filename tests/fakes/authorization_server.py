"""A tiny authorization server: for tests, and for trying out a protected server by hand.

    python tests/fakes/authorization_server.py 9000

Whoever comes is `alice`, and she agrees to everything: this protects nothing. What is asked of clients is checked, though: PKCE with
S256, the redirect URI, `resource`, that codes and refresh tokens are used once. Whoever sends a proof (DPoP) gets a token that is bound to
its key.

`AuthorizationServer.answer` is a function from a request to a response; `serve` gives a socket to it, or to another that is one too.
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
    """What a code, or a refresh token, was given for."""

    client_id: str
    redirect_uri: str
    challenge: str
    resource: str
    scope: str
    jkt: str | None = None  # of the key that a refresh token is bound to


class Answering(Protocol):
    """What `serve` can give a socket to."""

    issuer: str

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response: ...


class AuthorizationServer:
    """One at `issuer`. `scopes` is what it can grant; `lifetime` of its access tokens is in seconds.

    `clients` are those that were registered, by their ids; `log` has a line for each request. `nonce`, if there is one, has to be in
    each proof.
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
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": [*self.scopes.split(), "offline_access"],
            "dpop_signing_alg_values_supported": ["ES256"],
        }

    def token(self, resource: str, scope: str | None = None, **claims: Any) -> str:
        """An access token (RFC 9068) for `resource`, as it is also given at the token endpoint."""
        now = int(self._clock())
        said = {
            "iss": self.issuer,
            "aud": resource,
            "sub": self.user,
            "client_id": "tests",
            "iat": now,
            "exp": now + int(self.lifetime),
            "jti": secrets.token_hex(8),
            "scope": self.scopes if scope is None else scope,
        }
        return jwt.encode({"alg": "ES256", "kid": "1", "typ": "at+jwt"}, said | claims, self._key)

    # -- Requests ------------------------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        """The response to one request; `headers` by their names in lower case."""
        parts = urlsplit(target)
        self.log.append(f"{method} {parts.path}")
        try:
            match method, parts.path:
                case "GET", "/.well-known/oauth-authorization-server" | "/.well-known/openid-configuration":
                    return _json(self.metadata)
                case "GET", "/jwks":
                    return _json({"keys": [self._key.as_dict(private=False)]})
                case "POST", "/register":
                    return self._register(json.loads(body))
                case "GET", "/authorize":
                    return self._authorize(dict(parse_qsl(parts.query)))
                case "POST", "/token":
                    return self._give_token(dict(parse_qsl(body.decode())), headers)
                case "POST", "/introspect":
                    return self._introspect(dict(parse_qsl(body.decode())))
                case _:
                    return Response(404)
        except OAuthError as exc:
            refusal = _json({"error": exc.code}, exc.status)
            if exc.code == "use_dpop_nonce" and self.nonce is not None:
                refusal.headers.append(("dpop-nonce", self.nonce))
            return refusal
        except ValueError:
            return _json({"error": "invalid_request"}, 400)

    def _register(self, asked: dict[str, Any]) -> Response:
        id = f"client-{len(self.clients) + 1}"
        method = asked.get("token_endpoint_auth_method") or "client_secret_basic"
        registered: dict[str, Any] = {**asked, "client_id": id, "token_endpoint_auth_method": method}
        if method != "none":
            registered |= {"client_secret": secrets.token_urlsafe(), "client_secret_expires_at": 0}
        self.clients[id] = registered
        return _json(registered, 201)

    def _authorize(self, asked: dict[str, str]) -> Response:
        client = self.clients.get(asked.get("client_id", ""))
        where = asked.get("redirect_uri", "")
        if client is None or not any(_same_place(where, each) for each in client.get("redirect_uris", ())):
            return _json({"error": "invalid_request"}, 400)  # nobody is sent where he may not be sent
        if asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256":
            told = {"error": "invalid_request"}
        else:
            code = secrets.token_urlsafe()
            scope = " ".join(
                each for each in asked.get("scope", self.scopes).split() if each in self.scopes.split()
            )
            challenge, resource = asked["code_challenge"], asked.get("resource", "")
            self._codes[code] = Code(asked["client_id"], where, challenge, resource, scope)
            told = {"code": code}
        told |= {"iss": self.issuer, "state": asked.get("state", "")}
        return Response(
            302, headers=[("location", f"{where}{'&' if '?' in where else '?'}{urlencode(told)}")]
        )

    def _give_token(self, asked: dict[str, str], headers: dict[str, str]) -> Response:
        client_id = self._client(asked, headers)
        jkt = self._bound_to(headers["dpop"]) if "dpop" in headers else None
        bound = {"cnf": {"jkt": jkt}} if jkt is not None else {}
        kind = "Bearer" if jkt is None else "DPoP"
        match asked.get("grant_type"):
            case "authorization_code":
                given = self._codes.pop(asked.get("code", ""), None)
                verifier = sha256(asked.get("code_verifier", "").encode()).digest()
                if (
                    given is None
                    or given.challenge != urlsafe_b64encode(verifier).rstrip(b"=").decode()
                    or given.redirect_uri != asked.get("redirect_uri")
                ):
                    raise OAuthError("invalid_grant")
            case "refresh_token":
                given = self._refresh.pop(asked.get("refresh_token", ""), None)
                if given is None or given.jkt != jkt:
                    raise OAuthError("invalid_grant")
            case "client_credentials":
                resource, scope = asked.get("resource", ""), asked.get("scope", self.scopes)
                token = self.token(resource, scope, sub=client_id, client_id=client_id, **bound)
                return _json({"access_token": token, "token_type": kind, "expires_in": int(self.lifetime)})
            case _:
                raise OAuthError("unsupported_grant_type")
        if given.client_id != client_id:
            raise OAuthError("invalid_grant")
        if asked.get("resource", given.resource) != given.resource:
            raise OAuthError("invalid_target")
        refresh = secrets.token_urlsafe()
        self._refresh[refresh] = replace(given, jkt=jkt)
        return _json(
            {
                "access_token": self.token(given.resource, given.scope, client_id=client_id, **bound),
                "token_type": kind,
                "expires_in": int(self.lifetime),
                "refresh_token": refresh,
                "scope": given.scope,
            }
        )

    def _client(self, asked: dict[str, str], headers: dict[str, str]) -> str:
        id, secret = asked.get("client_id", ""), asked.get("client_secret")
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            id, _, secret = (unquote_plus(part) for part in b64decode(credentials).decode().partition(":"))
        client = self.clients.get(id)
        if client is None or client.get("client_secret") != secret:
            raise OAuthError("invalid_client", 401)
        return id

    def _bound_to(self, proof: str) -> str:
        """The thumbprint of the key by which a proof was made (RFC 9449, 4.3 and 5)."""
        try:
            shown = jws.deserialize_compact(proof, lambda found: ECKey.import_key(found.headers()["jwk"]))
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

    def _introspect(self, asked: dict[str, str]) -> Response:
        try:
            claims = jwt.decode(asked.get("token", ""), self._key).claims
        except Exception:  # noqa: BLE001 - a token that cannot be read is not active
            return _json({"active": False})
        return _json({"active": claims["exp"] > self._clock(), **claims})


def _json(value: Any, status: int = 200) -> Response:
    headers = [("content-type", "application/json"), ("cache-control", "no-store")]
    return Response(status, json.dumps(value).encode(), headers)


def _same_place(uri: str, registered: str) -> bool:
    """On loopback the port may be any (RFC 8252, 7.3)."""
    one, other = urlsplit(uri), urlsplit(registered)
    if one.hostname == other.hostname and one.hostname in ("127.0.0.1", "::1", "localhost"):
        return one.scheme == other.scheme and one.path == other.path
    return uri == registered


# -- By a socket -------------------------------------------------------------------------------------------------------


async def serve(
    port: int = 0,
    *,
    make: Callable[..., Answering] = AuthorizationServer,
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
    **options: Any,
) -> None:
    """Serve one on this machine. `server = await nursery.start(serve)` has it, and its `issuer`."""
    (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
    server = make(f"http://127.0.0.1:{listener.socket.getsockname()[1]}", **options)

    async def talk(stream: trio.SocketStream) -> None:
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
                told = server.answer(head.method.decode(), head.target.decode(), headers, body)
                all_headers = [
                    *told.headers,
                    ("content-length", str(len(told.body))),
                    ("connection", "close"),
                ]
                response = h11.Response(status_code=told.status, headers=all_headers)
                await stream.send_all(
                    b"".join(
                        http.send(each) or b""
                        for each in (response, h11.Data(data=told.body), h11.EndOfMessage())
                    )
                )
                return
            else:
                return

    async def visit(stream: trio.SocketStream) -> None:
        try:
            async with stream:
                await talk(stream)
        except (trio.BrokenResourceError, h11.ProtocolError):
            pass

    task_status.started(server)
    await trio.serve_listeners(visit, [listener])


if __name__ == "__main__":
    trio.run(serve, int(sys.argv[1]) if len(sys.argv) > 1 else 9000)
