"""An authorization server that registers clients, in front of a provider that registers none.

GitHub and Google know only the OAuth apps that someone has registered by hand, so a client of MCP
can't log in there by itself. It registers here instead. Its user agrees on a page of this server,
logs in at the provider, and the client gets tokens of this server, which are for one MCP server
only. The tokens of the provider stay here.

Everything is in memory and for one process: a restart ends all logins. Keep `clients`, `codes`,
`tokens` and `key` in a database if that is too often. docs/howto/login-proxy.md has a program.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from secrets import compare_digest
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import httpx2
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
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
from authlib.oauth2.rfc6749.errors import InvalidRequestError
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7591 import (
    ClientRegistrationEndpoint,
    InvalidClientMetadataError,
    InvalidRedirectURIError,
)
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from joserfc.jwk import ECKey
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

METHODS = ["none", "client_secret_basic", "client_secret_post"]
MAX_BODY = 64 * 1024
LOGIN_SECONDS, CODE_SECONDS, ACCESS_SECONDS, REFRESH_SECONDS = 600, 60, 3600, 30 * 86400
T = TypeVar("T")


class Newest(dict[str, T]):
    """The newest 10,000 entries: anyone may register a client, or begin a login."""

    def __setitem__(self, key: str, value: T) -> None:
        super().__setitem__(key, value)
        if len(self) > 10_000:
            del self[next(iter(self))]


# --- What authlib asks for ------------------------------------------------------------------------


class Answer(Response):
    """A response with the `location` that `IssuerParameter` changes."""

    @property
    def location(self) -> str | None:
        return self.headers.get("location")

    @location.setter
    def location(self, value: str) -> None:
        self.headers["location"] = value


class Question(OAuth2Request):  # type: ignore[misc]
    """A request, with the parameters of its URL and its form."""

    def __init__(self, method: str, url: str, headers: dict[str, str], body: bytes) -> None:
        named = {name.title(): value for name, value in headers.items()}
        super().__init__(method, url, headers=named)
        is_form = named.get("Content-Type") == "application/x-www-form-urlencoded"
        self._form = dict(parse_qsl(body.decode(errors="replace"))) if is_form else {}
        self.payload = BasicOAuth2Payload(dict(parse_qsl(urlsplit(url).query)) | self._form)

    @property
    def form(self) -> dict[str, str]:
        return self._form


class Document(JsonPayload):  # type: ignore[misc]
    def __init__(self, body: bytes) -> None:
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise InvalidRequestError("a registration is a JSON object")
        self._data: dict[str, Any] = found

    @property
    def data(self) -> dict[str, Any]:
        return self._data


@dataclass
class User:
    """A user, and the MCP server that the grant is for."""

    resource: str
    id: str

    def get_user_id(self) -> str:
        return self.id


@dataclass
class Client(ClientMixin):  # type: ignore[misc]
    client_id: str
    secret: str
    metadata: dict[str, Any]

    def get_client_id(self) -> str:
        return self.client_id

    def get_allowed_scope(self, scope: str | None) -> str:
        allowed = self.metadata["scope"].split()
        return " ".join(each for each in (scope or "").split() if each in allowed)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return any(same_redirect(redirect_uri, each) for each in self.metadata["redirect_uris"])

    def check_client_secret(self, client_secret: str) -> bool:
        return compare_digest(client_secret.encode(), self.secret.encode())

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return bool(method == self.metadata["token_endpoint_auth_method"])

    def check_response_type(self, response_type: str) -> bool:
        return response_type in self.metadata.get("response_types", ["code"])

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.metadata.get("grant_types", ["authorization_code"])


def is_loopback(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")


def same_redirect(uri: str, registered: str) -> bool:
    """True if a redirect URI is registered. On loopback the port may differ (RFC 8252, 7.3)."""
    if not (is_loopback(uri) and is_loopback(registered)):
        return uri == registered
    one, other = urlsplit(uri), urlsplit(registered)
    return (one.hostname, one.path, one.query) == (other.hostname, other.path, other.query)


@dataclass
class Code(AuthorizationCodeMixin):  # type: ignore[misc]
    client_id: str
    redirect_uri: str
    scope: str
    user: User
    code_challenge: str
    code_challenge_method: str
    expires_at: float

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token(TokenMixin):  # type: ignore[misc]
    """The tokens of one response. `family` has all that came from the same login."""

    client_id: str
    user: User
    access_token: str
    refresh_token: str
    scope: str
    expires_at: float  # of the access token
    refresh_until: float
    family: list["Token"] = field(default_factory=list, repr=False)
    revoked: bool = False

    def check_client(self, client: Client) -> bool:
        return self.client_id == client.client_id

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return self.expires_at < time.time()

    def is_revoked(self) -> bool:
        return self.revoked


class Codes(AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def save_authorization_code(self, code: str, request: Question) -> None:
        params = request.payload.data
        self.server.codes[code] = Code(
            request.client.client_id,
            params["redirect_uri"],
            request.scope,
            request.user,
            params["code_challenge"],
            params["code_challenge_method"],
            time.time() + CODE_SECONDS,
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found: Code | None = self.server.codes.pop(code, None)
        if found is None or found.client_id != client.client_id or found.expires_at < time.time():
            return None
        return found

    def delete_authorization_code(self, authorization_code: Code) -> None:
        pass  # `query_authorization_code` has removed it

    def authenticate_user(self, authorization_code: Code) -> User:
        return authorization_code.user


class S256(CodeChallenge):  # type: ignore[misc]
    def validate_code_challenge(self, grant: Codes, redirect_uri: str) -> None:
        super().validate_code_challenge(grant, redirect_uri)
        if grant.request.payload.data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("PKCE with S256 is needed", redirect_uri=redirect_uri)


class Refreshes(RefreshTokenGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        found: Token | None = self.server.tokens.get(refresh_token)
        if found is not None and found.revoked:
            # A reused refresh token was stolen (RFC 9700, 4.14.2): revoke all its descendants.
            for each in found.family:
                each.revoked = True
        if found is None or found.revoked or found.refresh_until < time.time():
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
        uris = client_metadata.get("redirect_uris", [])
        if not uris or not all(is_loopback(uri) or uri.startswith("https://") for uri in uris):
            raise InvalidRedirectURIError("a redirect URI is https:, or http: on loopback")
        client_metadata.setdefault("scope", " ".join(self.server.scopes_supported))
        client = Client(client_info["client_id"], client_info["client_secret"], client_metadata)
        self.server.clients[client.client_id] = client
        return client


class Bearer(JWTBearerTokenGenerator):  # type: ignore[misc]
    def __init__(self, server: "LoginServer") -> None:
        super().__init__(
            server.issuer,
            alg=server.key.get("alg"),
            refresh_token_generator=lambda **_: generate_token(48),
            expires_generator=lambda client, grant_type: server.lifetime,
        )
        self._server = server

    def get_jwks(self) -> Any:
        return self._server.key.as_dict(private=True)

    def get_audiences(self, client: Client, user: User, scope: str) -> str:
        return user.resource


class Issuer(IssuerParameter):  # type: ignore[misc]
    def __init__(self, server: "LoginServer") -> None:
        self._server = server
        super().__call__(server)

    def get_issuer(self) -> str:
        return self._server.issuer


class LoginServer(AuthorizationServer):  # type: ignore[misc]
    """An authorization server at `issuer`, without the page on which users log in."""

    def __init__(self, issuer: str, scopes: list[str], key: Any = None) -> None:
        super().__init__(scopes_supported=scopes)
        self.issuer = issuer
        self.lifetime = ACCESS_SECONDS
        self.methods = METHODS
        self.key = key or ECKey.generate_key("P-256", {"kid": "1", "use": "sig", "alg": "ES256"})
        self.clients: Newest[Client] = Newest()
        self.codes: Newest[Code] = Newest()
        self.tokens: Newest[Token] = Newest()  # by refresh token
        self.register_token_generator("default", Bearer(self))
        self.register_grant(Codes, [S256(required=True)])
        self.register_grant(Refreshes)
        self.register_endpoint(Registration)
        self._named = Issuer(self)

    @property
    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": self.methods,
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": self.scopes_supported,
        }

    @property
    def keys(self) -> dict[str, Any]:
        """The public keys of the access tokens: a JWK set."""
        return {"keys": [self.key.as_dict(private=False)]}

    def register(self, uri: str, body: bytes) -> Answer:
        request = JsonRequest("POST", uri, {})
        try:
            request.payload = Document(body)
            found: Answer = self.create_endpoint_response("client_registration", request)
        except OAuth2Error as error:
            found = self.refuse(request, error)
        except (AttributeError, TypeError, ValueError):  # a member of another type
            found = self.refuse(request, InvalidClientMetadataError())
        return found

    def refuse(self, request: Any, error: OAuth2Error) -> Answer:
        """Answer with an error; a redirect with one says from whom it is (RFC 9207)."""
        if isinstance(request, Question):
            error.state = request.payload.state
        response: Answer = self.handle_error_response(request, error)
        self._named.add_issuer_parameter(self, response)
        return response

    def query_client(self, client_id: str) -> Client | None:
        return self.clients.get(client_id)

    def save_token(self, token: dict[str, Any], request: Question) -> None:
        before, now = request.refresh_token, time.time()
        saved = Token(
            request.client.client_id,
            request.user or before.user,
            token["access_token"],
            token.get("refresh_token") or generate_token(48),
            token["scope"],
            now + token["expires_in"],
            before.refresh_until if before is not None else now + REFRESH_SECONDS,
            before.family if before is not None else [],
        )
        saved.family.append(saved)
        self.tokens[saved.refresh_token] = saved

    def create_oauth2_request(self, request: Question) -> Question:
        return request

    def create_json_request(self, request: JsonRequest) -> JsonRequest:
        return request

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    def handle_response(self, status: int, payload: Any, headers: list[tuple[str, str]]) -> Answer:
        is_json = isinstance(payload, dict)
        content = json.dumps(payload) if is_json else payload
        return Answer(content, status, dict(headers), "application/json" if is_json else None)


# --- In front of a provider -----------------------------------------------------------------------


@dataclass(frozen=True)
class Provider:
    """The OAuth app at the provider; its redirect URI is `<issuer>/callback`.

    `user_url` returns the user as JSON, and its member `user_id` never changes. `allows` says which
    of the provider's users may log in: most providers have users whom you don't know.
    """

    authorize_url: str
    token_url: str
    user_url: str
    client_id: str
    client_secret: str = field(repr=False)
    allows: Callable[[dict[str, Any]], bool]
    user_id: str = "sub"
    scope: str = ""


@dataclass
class Login:
    """A login under way in one browser: `browser` is in a cookie there."""

    request: Question
    browser: str
    verifier: str = field(default_factory=lambda: generate_token(48))
    expires_at: float = field(default_factory=lambda: time.time() + LOGIN_SECONDS)


class LoginProxy(LoginServer):
    """An authorization server for the MCP server at `resource`; its users are the provider's.

    `routes` are for a Starlette application at `issuer`, which has no path. `provider_tokens` has
    the newest token of each user for the provider's own API, by the `sub` of our tokens.
    """

    def __init__(self, issuer: str, resource: str, provider: Provider, scopes: list[str]) -> None:
        super().__init__(issuer, scopes)
        self.resource, self.provider = resource, provider
        self.provider_tokens: Newest[str] = Newest()
        self._asked: Newest[Login] = Newest()  # by the id in the page
        self._sent: Newest[Login] = Newest()  # by the state that the provider returns
        self._is_https = issuer.startswith("https:")
        self._cookie = "__Host-login" if self._is_https else "login"
        documents = {"/.well-known/oauth-authorization-server": self.metadata, "/jwks": self.keys}
        self.routes = [
            Route("/authorize", self._authorize),
            Route("/consent", self._consent, methods=["POST"]),
            Route("/callback", self._callback),
            Route("/token", self._token, methods=["POST"]),
            Route("/register", self._register, methods=["POST"]),
            *[Route(path, self._publish(found)) for path, found in documents.items()],
        ]

    def _publish(self, document: dict[str, Any]) -> Callable[[Request], Response]:
        return lambda request: self.handle_response(200, document, [])

    async def _read(self, request: Request) -> Question:
        headers = dict(request.headers)
        return Question(request.method, self._url(request), headers, await read(request))

    def _url(self, request: Request) -> str:
        return f"{self.issuer}{request.url.path}?{request.url.query}"

    async def _register(self, request: Request) -> Response:
        return self.register(self._url(request), await read(request))

    async def _token(self, request: Request) -> Response:
        answer: Answer = self.create_token_response(await self._read(request))
        return answer

    async def _authorize(self, request: Request) -> Response:
        """Show who wants to log in. Without this page, a login at the provider that is still open
        would give any client that registers a token, and the user would not notice.
        """
        question = await self._read(request)
        params = question.payload.data
        try:
            if "redirect_uri" not in params:
                raise InvalidRequestError("redirect_uri is needed")
            grant = self.get_consent_grant(question, None)
            if params.get("resource", self.resource) != self.resource:
                raise InvalidRequestError("unknown resource", redirect_uri=grant.redirect_uri)
        except OAuth2Error as error:
            return self.refuse(question, error)
        id, browser = generate_token(48), request.cookies.get(self._cookie) or generate_token(48)
        self._asked[id] = Login(question, browser)
        name = grant.client.metadata.get("client_name", "A program without a name")
        host = urlsplit(params["redirect_uri"]).netloc
        page = HTMLResponse(
            f"<!doctype html><title>Log in</title><p><b>{escape(str(name))}</b> at"
            f" {escape(host)} wants to use {escape(self.resource)} as you"
            f" ({escape(params.get('scope', ''))}). Did you just start it?"
            f'<form method=post action=/consent><input type=hidden name=id value="{id}">'
            "<button name=agree value=yes>Yes</button> <button name=agree value=no>No</button>",
            headers={
                "cache-control": "no-store",
                "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
                "referrer-policy": "no-referrer",
            },
        )
        page.set_cookie(self._cookie, browser, httponly=True, samesite="lax", secure=self._is_https)
        return page

    def _take(self, logins: Newest[Login], id: str, request: Request) -> Login | None:
        """Return a login that this browser has begun. It is used once."""
        found = logins.pop(id, None)
        if found is None or found.browser != request.cookies.get(self._cookie):
            return None
        return found if found.expires_at >= time.time() else None

    async def _consent(self, request: Request) -> Response:
        form = (await self._read(request)).form
        login = self._take(self._asked, form.get("id", ""), request)
        if login is None:
            return HTMLResponse("This login is over. Begin again.", 403)
        if form.get("agree") != "yes":
            return self._finish(login, None)
        state = generate_token(48)
        self._sent[state] = login
        async with self._provider() as http:
            url, _ = http.create_authorization_url(
                self.provider.authorize_url, state=state, code_verifier=login.verifier
            )
        return RedirectResponse(url, 303)

    async def _callback(self, request: Request) -> Response:
        params = request.query_params
        login = self._take(self._sent, params.get("state", ""), request)
        if login is None:
            return HTMLResponse("This login is over. Begin again.", 403)
        if "code" not in params:
            return self._finish(login, None)
        try:
            async with self._provider() as http:
                token = await http.fetch_token(
                    self.provider.token_url, code=params["code"], code_verifier=login.verifier
                )
                user = (await http.get(self.provider.user_url)).raise_for_status().json()
            id = str(user[self.provider.user_id])
        except (OAuthError, httpx2.HTTPError, KeyError, TypeError, ValueError):
            return HTMLResponse("The login at the provider has failed. Begin again.", 502)
        if not self.provider.allows(user):
            return self._finish(login, None)
        self.provider_tokens[id] = token["access_token"]
        return self._finish(login, User(self.resource, id))

    def _finish(self, login: Login, user: User | None) -> Response:
        """Send the browser back to the client, with a code or an error."""
        try:
            grant = self.get_consent_grant(login.request, user)
        except OAuth2Error as error:
            return self.refuse(login.request, error)
        answer: Answer = self.create_authorization_response(login.request, user, grant)
        return answer

    def _provider(self) -> Any:
        return AsyncOAuth2Client(
            self.provider.client_id,
            self.provider.client_secret,
            token_endpoint_auth_method="client_secret_post",  # noqa: S106 - the name of a method
            scope=self.provider.scope or None,
            redirect_uri=f"{self.issuer}/callback",
            code_challenge_method="S256",
        )


async def read(request: Request) -> bytes:
    """Return the body, or an empty one in place of one that is too long."""
    body = b""
    async for chunk in request.stream():
        body = (body + chunk)[: MAX_BODY + 1]
    return body if len(body) <= MAX_BODY else b""
