"""All that a client does in each of a table of logins, in `logins.txt`.

    python -m tests.core.auth.client.logins

writes the file again. A change of authorization shows in it which requests, errors and stored
values it changes, also in logins that the change isn't about: read that difference before you
commit it.

Each login begins with a request to the MCP server, which it answers with 401 until there is a
token. The lines are the flow's steps with all that they send, then the result (`=`) or the
exception, and the warnings. Lines of the first login have numbers, and are named by them in the
others. The signatures of proofs and assertions are left out.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from mcp_core import AuthRequired
from mcp_core.auth import (
    Authorizer,
    Browse,
    EnterpriseManaged,
    Fetch,
    HttpResponse,
    JwtBearer,
    ListenForRedirect,
    Load,
    Save,
    Secret,
)
from mcp_core.auth._errors import AuthorizationFailed, FetchFailed
from tests.core.auth.play import (
    AS,
    FREE_PORT,
    MCP,
    MISSING,
    OAUTH,
    OIDC,
    OK,
    PRM,
    RS,
    Clock,
    McpRequest,
    authorizer,
    callback_reply,
    document_reply,
    forbidden,
    oauth_error,
    registered,
    resource,
    server,
    status,
    token,
    unauthorized,
)
from tests.core.auth.play import (
    request as mcp_request,
)
from tests.kept import read_kept, write_kept

__all__ = ["LOGINS", "kept_logins", "play_login"]

_FILE: Final = Path(__file__).with_name("logins.txt")
_OTHER: Final = "http://localhost:1003"
_TENANT: Final = f"{AS}/tenant"
_CIMD: Final = "https://client.example/metadata.json"
_PAGE: Final = HttpResponse(200, [("content-type", "text/html")], b"<p>")
_BROKEN: Final = FetchFailed("no route to host")
_SECRET: Final = Secret("client-secret-4711")
_STEPS: Final = 60

# What each place answers, one after the other; the last reply again and again. A place is a URL's
# path, "browser" or "mcp".
_Replies = dict[str, list[Any]]


class _Login:
    """One login.

    Args:
        replies: what a place answers, if that isn't the usual.
        challenge: the MCP server's 401.
        operations: of the requests to the MCP server.
        rejects: statuses that it answers to requests with a token, one after the other.
        pass_time: seconds that pass after each request to the MCP server.
        options: the profile's.
    """

    def __init__(
        self,
        replies: _Replies | None = None,
        *,
        challenge: HttpResponse | None = None,
        operations: tuple[str, ...] = ("tools/list",),
        rejects: tuple[HttpResponse, ...] = (),
        pass_time: float = 0.0,
        url: str = MCP,
        **options: Any,
    ) -> None:
        usual: _Replies = {
            f"{PRM}/mcp": [resource()],
            PRM: [MISSING],
            OAUTH: [server()],
            "/register": [registered()],
            "/token": [token("t1"), token("t2"), token("t3")],
            "browser": [callback_reply()],
        }
        self.replies = usual | (replies or {})
        self.challenge = challenge or unauthorized()
        self.operations = operations
        self.rejects = rejects
        self.pass_time = pass_time
        self.url = url
        self.options = options


def _grant(grant: Any, **options: Any) -> _Login:
    """Return a login without a user."""
    more: dict[str, Any] = {"issuer": AS, "client_id": "robot", "client_secret": _SECRET}
    more |= options
    replies: _Replies = {OAUTH: [server(token_endpoint_auth_methods_supported=None)]}
    replies["/exchange"] = [
        document_reply(
            access_token="id-jag", token_type="N_A", issued_token_type=f"{_URN}:token-type:id-jag"
        )
    ]
    return _Login(more.pop("replies", replies), grant=grant, **more)


def _fails() -> str:
    raise OSError("no metadata service")


_URN: Final = "urn:ietf:params:oauth"
_ID: Final = EnterpriseManaged(lambda: "id-token-4711", f"{_OTHER}/exchange", "idp-client")
_CALL: Final = ("tools/list", "tools/call a", "tools/call a")
_FORBIDDEN: Final = forbidden("write")
_NONCE: Final = ("dpop-nonce", "n1")
_DPOP: Final[_Replies] = {
    OAUTH: [server(dpop_signing_alg_values_supported=["ES256"])],
    "/token": [token("t1", token_type="DPoP")],
}


def _with_metadata(*, known: bool = True, **more: Any) -> _Login:
    """Return a login whose authorization server has other metadata."""
    return _Login({OAUTH: [server(**more)]}, client_id=None if known else "mine")


def _with_replies(*replies: HttpResponse | FetchFailed, at: str = OAUTH, **more: Any) -> _Login:
    return _Login({at: list(replies)}, **more)


def _legacy(replies: _Replies, **more: Any) -> _Login:
    return _Login({f"{PRM}/mcp": [MISSING], **replies}, challenge=unauthorized(None), **more)


LOGINS: Final[dict[str, dict[str, _Login]]] = {
    "challenges": {
        "usual": _Login(),
        "without parameters": _Login(challenge=unauthorized(None)),
        "with scopes": _Login(challenge=unauthorized(scope="b a b")),
        "a 401 without a challenge": _Login(challenge=status(401)),
        "Basic": _Login(challenge=unauthorized(scheme="Basic")),
        "DPoP": _Login(challenge=unauthorized(scheme="DPoP")),
        "a relative URL": _Login(challenge=unauthorized("/metadata")),
        "a URL that cannot be read": _Login(challenge=unauthorized("http://[")),
        "a URL elsewhere": _Login(
            {"/elsewhere": [resource()]}, challenge=unauthorized(f"{_OTHER}/elsewhere")
        ),
        "a URL without TLS": _Login(challenge=unauthorized("http://server.example/x")),
        "the root": _Login({PRM: [resource(resource=RS)]}, challenge=unauthorized(f"{RS}{PRM}")),
    },
    "the metadata of the MCP server": {
        "missing": _with_replies(MISSING, at=f"{PRM}/mcp"),
        "missing without a URL for it": _with_replies(
            MISSING, at=f"{PRM}/mcp", challenge=unauthorized(None)
        ),
        "at the root": _Login(
            {f"{PRM}/mcp": [MISSING], PRM: [resource(resource=RS)]}, challenge=unauthorized(None)
        ),
        "of the root at the path": _with_replies(resource(resource=RS), at=f"{PRM}/mcp"),
        "a page": _with_replies(_PAGE, at=f"{PRM}/mcp"),
        "a page, then none": _with_replies(_PAGE, at=f"{PRM}/mcp", challenge=unauthorized(None)),
        "503": _with_replies(status(503), at=f"{PRM}/mcp"),
        "429": _with_replies(status(429), at=f"{PRM}/mcp"),
        "no response": _with_replies(_BROKEN, at=f"{PRM}/mcp"),
        "no object": _with_replies(HttpResponse(200, [], b"[]"), at=f"{PRM}/mcp"),
        "too long": _with_replies(HttpResponse(200, [], b" " * 65_537), at=f"{PRM}/mcp"),
        "another type": _with_replies(document_reply(resource=5), at=f"{PRM}/mcp"),
        "another resource": _with_replies(resource(resource=f"{_OTHER}/mcp"), at=f"{PRM}/mcp"),
        "no server": _with_replies(
            document_reply(resource=MCP, authorization_servers=[]), at=f"{PRM}/mcp"
        ),
        "no list of servers": _with_replies(document_reply(resource=MCP), at=f"{PRM}/mcp"),
        "two servers": _with_replies(resource(AS, _OTHER), at=f"{PRM}/mcp"),
        "two servers, one configured": _with_replies(
            resource(_OTHER, f"{AS}/"), at=f"{PRM}/mcp", issuer=AS, client_id="mine"
        ),
        "another server than the configured one": _with_replies(
            resource(_OTHER), at=f"{PRM}/mcp", issuer=AS, client_id="mine"
        ),
        "a server without TLS": _with_replies(resource("http://server.example"), at=f"{PRM}/mcp"),
        "scopes": _with_replies(resource(scopes_supported=["read", "write"]), at=f"{PRM}/mcp"),
        "no scopes": _with_replies(resource(scopes_supported=[]), at=f"{PRM}/mcp"),
        "a redirect": _Login(
            {f"{PRM}/mcp": [status(302, ("location", "/moved"))], "/moved": [resource()]}
        ),
        "a redirect elsewhere": _with_replies(
            status(301, ("location", f"{_OTHER}/moved")), at=f"{PRM}/mcp"
        ),
        "redirects without end": _with_replies(
            status(308, ("location", f"{PRM}/mcp")), at=f"{PRM}/mcp"
        ),
        "a slash at the end": _Login(url=f"{RS}/", challenge=unauthorized(None)),
    },
    "the metadata of the authorization server": {
        "missing": _with_replies(MISSING),
        "OpenID": _Login({OAUTH: [MISSING], OIDC: [server()]}),
        "a page": _with_replies(_PAGE),
        "500": _with_replies(status(500)),
        "no response": _with_replies(_BROKEN),
        "invalid": _with_replies(document_reply(issuer=5)),
        "invalid, then OpenID": _Login({OAUTH: [document_reply(issuer=5)], OIDC: [server()]}),
        "another issuer": _with_replies(server(_OTHER)),
        "the issuer with a slash": _with_replies(server(f"{AS}/", AS)),
        "a path": _Login(
            {
                f"{PRM}/mcp": [resource(_TENANT)],
                f"/tenant{OIDC}": [server(_TENANT)],
                "browser": [callback_reply(_TENANT)],
                "/tenant/register": [registered()],
                "/tenant/token": [token("t1")],
            }
        ),
        "metadata_issuer": _Login(
            {OAUTH: [server(_OTHER, AS)], "browser": [callback_reply(_OTHER)]},
            issuer=AS,
            metadata_issuer=_OTHER,
            client_id="mine",
        ),
        "another metadata_issuer": _Login(issuer=AS, metadata_issuer=_OTHER, client_id="mine"),
        "no PKCE": _with_metadata(code_challenge_methods_supported=None),
        "no PKCE, assumed": _Login(
            {OAUTH: [server(code_challenge_methods_supported=None)]},
            issuer=AS,
            assume_pkce=True,
            client_id="mine",
        ),
        "plain PKCE, assumed": _Login(
            {OAUTH: [server(code_challenge_methods_supported=["plain"])]},
            issuer=AS,
            assume_pkce=True,
            client_id="mine",
        ),
        "no authorization endpoint": _with_metadata(authorization_endpoint=None),
        "an authorization endpoint with a query": _with_metadata(
            authorization_endpoint=f"{AS}/authorize?a=b"
        ),
        "an authorization endpoint with a state": _with_metadata(
            authorization_endpoint=f"{AS}/authorize?state=1&resource=x"
        ),
        "no token endpoint": _with_metadata(token_endpoint=None),
        "a token endpoint without TLS": _with_metadata(
            token_endpoint="http://server.example/token"
        ),
        "no registration endpoint": _with_metadata(registration_endpoint=None),
        "an empty registration endpoint": _with_metadata(registration_endpoint=""),
        "no registration endpoint, known": _with_metadata(known=False, registration_endpoint=None),
        "a flag that is a text": _with_metadata(client_id_metadata_document_supported="yes"),
        "offline_access": _Login(
            {OAUTH: [server(scopes_supported=["offline_access", "a"])]}, scopes=("a",)
        ),
        "offline_access, not wanted": _Login(
            {OAUTH: [server(scopes_supported=["offline_access", "a"])]},
            scopes=("a",),
            offline_access=False,
        ),
        "DPoP": _Login(_DPOP, challenge=unauthorized(scheme='DPoP algs="ES256", Bearer')),
        "DPoP of another algorithm": _Login(
            {OAUTH: [server(dpop_signing_alg_values_supported=["RS256"])]},
            challenge=unauthorized(scheme='DPoP algs="ES256", Bearer'),
        ),
    },
    "servers of 2025-03-26": {
        "metadata": _legacy({OAUTH: [server(RS)], "browser": [callback_reply(RS)]}),
        "no metadata": _legacy({OAUTH: [MISSING], "browser": [callback_reply(None)]}),
        "no metadata, no registration": _legacy({OAUTH: [MISSING], "/register": [MISSING]}),
        "a page": _legacy({OAUTH: [_PAGE]}),
        "invalid": _legacy({OAUTH: [document_reply(issuer=5)]}),
        "another issuer": _legacy({OAUTH: [server(_OTHER)]}),
        "configured": _legacy({}, issuer=AS, client_id="mine"),
    },
    "registrations": {
        "a secret": _Login({OAUTH: [server(token_endpoint_auth_methods_supported=None)]}),
        "a secret in the form": _Login(
            {
                OAUTH: [server(token_endpoint_auth_methods_supported=["client_secret_post"])],
                "/register": [registered(token_endpoint_auth_method="client_secret_post")],
            }
        ),
        "unknown methods": _with_metadata(
            token_endpoint_auth_methods_supported=["tls_client_auth"]
        ),
        "another method": _with_replies(
            registered(token_endpoint_auth_method="private_key_jwt"), at="/register"
        ),
        "no secret": _with_replies(registered(secret=None), at="/register"),
        "a secret that expires": _with_replies(
            registered(client_secret_expires_at=1_000_100), at="/register"
        ),
        "other scopes": _Login({"/register": [registered(scope="b")]}, scopes=("a", "b")),
        "200": _with_replies(HttpResponse(200, [], registered().body), at="/register"),
        "no client_id": _with_replies(status(201, client_secret="s"), at="/register"),
        "an unusable client_id": _with_replies(registered("\n"), at="/register"),
        "an error": _with_replies(
            oauth_error("invalid_redirect_uri", "only https"), at="/register"
        ),
        "an error without a text": _with_replies(status(400), at="/register"),
        "403": _with_replies(status(403), at="/register"),
        "no response": _with_replies(_BROKEN, at="/register"),
        "a free port": _Login(redirect_uri="http://127.0.0.1:0/callback"),
        "a free port, known": _Login(redirect_uri="http://127.0.0.1:0/callback", client_id="me"),
        "a web page": _Login(redirect_uri="https://app.example/callback", client_name="A&B"),
        "a metadata document": _Login(
            {OAUTH: [server(client_id_metadata_document_supported=True)]}, client_metadata_url=_CIMD
        ),
        "a metadata document, not supported": _Login(client_metadata_url=_CIMD),
        "a client_id": _Login(client_id="mine"),
        "a client_id and a secret": _Login(
            issuer=AS, client_id="mi ne:", client_secret=_SECRET, keep_secret=True
        ),
    },
    "the browser": {
        "another state": _Login({"browser": [callback_reply(state="other")]}),
        "no code": _Login({"browser": [callback_reply(code=None)]}),
        "no iss": _Login({"browser": [callback_reply(None)]}),
        "no iss, not promised": _Login(
            {
                OAUTH: [server(authorization_response_iss_parameter_supported=None)],
                "browser": [callback_reply(None)],
            }
        ),
        "another iss": _Login({"browser": [callback_reply(_OTHER)]}),
        "denied": _Login(
            {"browser": [callback_reply(code=None, error="access_denied", error_description="No")]}
        ),
        "an unknown error": _Login({"browser": [callback_reply(code=None, error="odd")]}),
        "an unreadable error": _Login({"browser": [callback_reply(code=None, error="\x01")]}),
        "no user": _Login({"browser": [AuthRequired("there is no browser")]}),
        "no callback": _Login({"browser": [AuthorizationFailed("nothing arrived in time")]}),
        "no port": _Login({"listen": [AuthorizationFailed("port 3000 is taken")]}),
        "no listener": _Login({"listen": [AuthRequired("log in elsewhere")]}),
    },
    "token responses": {
        "201": _with_replies(HttpResponse(201, [], token().body), at="/token"),
        "no expiry": _with_replies(token(expires_in=None), at="/token"),
        "a text as expiry": _with_replies(token(expires_in="60"), at="/token"),
        "a refresh token and scopes": _with_replies(
            token(refresh_token="r1", scope="a b"), at="/token", scopes=("a",)
        ),
        "a list of scopes": _with_replies(token(scope=["a"], refresh_token=5), at="/token"),
        "another type": _with_replies(token(token_type="mac"), at="/token"),
        "DPoP without a proof": _with_replies(token(token_type="DPoP"), at="/token"),
        "no token": _with_replies(document_reply(token_type="Bearer"), at="/token"),
        "a token with a space": _with_replies(token("a b"), at="/token"),
        "invalid_grant": _with_replies(oauth_error("invalid_grant", "code used"), at="/token"),
        "invalid_target": _with_replies(oauth_error("invalid_target"), at="/token"),
        "an unknown error": _with_replies(oauth_error("odd", "test-auth-code is odd"), at="/token"),
        "an error in 200": _with_replies(oauth_error("invalid_client", at=200), at="/token"),
        "500": _with_replies(oauth_error("server_error", at=500), at="/token"),
        "404": _with_replies(MISSING, at="/token"),
        "no response": _with_replies(_BROKEN, at="/token"),
        "a nonce": _Login(
            _DPOP
            | {
                "/token": [
                    HttpResponse(400, [_NONCE], b'{"error":"use_dpop_nonce"}'),
                    token("t1", token_type="DPoP"),
                ]
            },
            challenge=unauthorized(scheme='DPoP algs="ES256"'),
            rejects=(
                status(
                    401,
                    ("www-authenticate", 'DPoP error="use_dpop_nonce"'),
                    ("dpop-nonce", "n2"),
                ),
            ),
        ),
    },
    "later requests": {
        "a refresh": _Login(
            {"/token": [token("t1", refresh_token="r1"), token("t2", 60, scope="a")]},
            operations=_CALL,
            rejects=(OK, unauthorized()),
        ),
        "a refresh that fails": _Login(
            {
                "/token": [
                    token("t1", refresh_token="r1"),
                    oauth_error("invalid_grant"),
                    token("t2"),
                ]
            },
            operations=_CALL,
            rejects=(OK, unauthorized()),
        ),
        "a refresh without a response": _Login(
            {"/token": [token("t1", refresh_token="r1"), _BROKEN]},
            operations=_CALL,
            rejects=(OK, unauthorized()),
        ),
        "a refresh of an unknown client": _Login(
            {"/token": [token("t1", refresh_token="r1"), oauth_error("invalid_client")]},
            operations=_CALL,
            rejects=(OK, unauthorized()),
        ),
        "before the expiry": _Login(
            {"/token": [token("t1", 100, refresh_token="r1"), token("t2", 100)]},
            operations=_CALL,
            pass_time=95,
        ),
        "a new token that is rejected": _Login(rejects=(unauthorized(scope="a"),)),
        "a rejected token, without a refresh": _Login(
            operations=_CALL, rejects=(OK, unauthorized())
        ),
        "more scopes": _Login(operations=_CALL, rejects=(OK, _FORBIDDEN), scopes=("a",)),
        "more scopes again": _Login(
            operations=_CALL, rejects=(OK, _FORBIDDEN, _FORBIDDEN, _FORBIDDEN), scopes=("a",)
        ),
        "more scopes than are fixed": _Login(
            operations=_CALL,
            rejects=(OK, _FORBIDDEN),
            scopes=("a",),
            issuer=AS,
            client_id="mine",
            send_resource=False,
        ),
        "403 without a reason": _Login(rejects=(status(403),)),
        "other metadata": _Login(
            {
                f"{PRM}/mcp": [resource(), resource(_OTHER)],
                "/token": [token("t1", refresh_token="r1")],
            },
            operations=_CALL,
            rejects=(OK, unauthorized()),
        ),
    },
    "without a user": {
        "client_credentials": _grant("client_credentials"),
        "client_credentials, scopes": _grant("client_credentials", scopes=("a", "b")),
        "client_credentials, more scopes": _grant(
            "client_credentials", operations=_CALL, rejects=(OK, _FORBIDDEN)
        ),
        "client_credentials, expired": _grant(
            "client_credentials", operations=_CALL, rejects=(OK, unauthorized())
        ),
        "client_credentials, no resource": _grant(
            "client_credentials", scopes=("a",), send_resource=False
        ),
        "an assertion": _grant(JwtBearer(lambda: "assertion-4711")),
        "an assertion that fails": _grant(JwtBearer(_fails)),
        "no assertion": _grant(JwtBearer(lambda: "")),
        "an organization": _grant(_ID),
        "an organization with scopes": _grant(_ID, scopes=("a",)),
        "an organization without resource": _grant(_ID, scopes=("a",), send_resource=False),
        "an organization and its secret": _grant(
            EnterpriseManaged(
                lambda: "id-token-4711", f"{_OTHER}/exchange", "idp-client", Secret("idp-secret")
            )
        ),
        "an organization that denies": _grant(
            _ID, replies={"/exchange": [oauth_error("access_denied", "id-token-4711")]}
        ),
        "an organization with another token": _grant(_ID, replies={"/exchange": [token("x")]}),
        "an organization without TLS": _grant(
            EnterpriseManaged(lambda: "id-token-4711", "http://idp.example/x", "idp-client")
        ),
    },
}


# -- What is seen ----------------------------------------------------------------------------------


def _show_request(step: Fetch) -> str:
    request = step.request
    headers = [
        f"{name}: {_without_signature(value)}"
        for name, value in request.headers
        if name not in ("accept", "content-type", "mcp-protocol-version")
    ]
    body = request.body.decode()
    if dict(request.headers).get("content-type") == "application/x-www-form-urlencoded":
        body = " ".join(f"{name}={_without_signature(value)}" for name, value in parse_qsl(body))
    by = f" by {step.named_by}" if step.named_by is not None else ""
    text = f"{request.method} {request.url} [{'; '.join(headers)}]{by} {body}"
    return text.replace(" []", "").rstrip()


def _without_signature(value: str) -> str:
    """Return the claims of a signed proof, any other text as it is."""
    parts = value.split(".")
    if len(parts) != 3 or not value.startswith("ey"):
        return value
    return urlsafe_b64decode(parts[1] + "==").decode()


def _show_step(step: Any) -> str:
    if isinstance(step, McpRequest):
        headers = [f"{name}: {_without_signature(each)}" for name, each in step.headers.items()]
        return f"mcp {step.operation} {'; '.join(headers)}".rstrip()
    if isinstance(step, Fetch):
        return _show_request(step)
    if isinstance(step, ListenForRedirect):
        return f"listen {step.redirect_uri}{' or another port' if step.any_port else ''}"
    if isinstance(step, Load):
        return f"load {step.key}{' to replace it' if step.for_update else ''}"
    if isinstance(step, Save):
        return f"save {step.key} {None if step.value is None else step.value.decode()}"
    assert isinstance(step, Browse)
    parts = urlsplit(step.url)
    shown = " ".join(f"{name}={value}" for name, value in parse_qsl(parts.query))
    return f"browse {step.url.partition('?')[0]} for {step.server} {shown} {step.new_scopes}"


class _LoginServers:
    """The servers and the browser of one login."""

    def __init__(self, row: _Login, clock: Clock) -> None:
        self._replies = {place: list(replies) for place, replies in row.replies.items()}
        self._rejects = list(row.rejects)
        self._row = row
        self._clock = clock
        self._store: dict[str, bytes] = {}

    def answer(self, step: Any) -> Any:
        if isinstance(step, Load):
            return self._store.get(step.key)
        if isinstance(step, Save):
            if step.value is None:
                self._store.pop(step.key, None)
            else:
                self._store[step.key] = step.value
            return None
        if isinstance(step, ListenForRedirect):
            used = step.redirect_uri.replace(":0/", f":{FREE_PORT}/")
            return self._next("listen", used if step.any_port else step.redirect_uri)
        if isinstance(step, Browse):
            return self._next("browser")(step)
        if isinstance(step, Fetch):
            return self._next(urlsplit(step.request.url).path)
        self._clock.now += self._row.pass_time
        if "authorization" not in step.headers:
            return self._row.challenge
        return self._rejects.pop(0) if self._rejects else OK

    def _next(self, place: str, usual: Any = MISSING) -> Any:
        replies = self._replies.get(place, [usual])
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply


def _renewing_session(auth: Authorizer, row: _Login) -> Generator[Any, Any, int]:
    """Do as a driver does: renew a token that expires soon before each request."""
    yield from auth.load()
    last = 0
    for operation in row.operations:
        if auth.expires_soon():
            yield from auth.renew()
        last = yield from mcp_request(auth, operation, row.url)
    return last


def _play_row(row: _Login) -> list[str]:
    clock = Clock()
    auth = authorizer(row.url, clock, **row.options)
    places = _LoginServers(row, clock)
    flow = _renewing_session(auth, row)
    lines: list[str] = []
    reply: Any = None
    for _ in range(_STEPS):
        try:
            step = flow.throw(reply) if isinstance(reply, Exception) else flow.send(reply)
        except StopIteration as stop:
            lines.append(f"= {stop.value}")
            break
        except (AuthRequired, AuthorizationFailed) as exc:
            more = {
                name: value
                for name in ("scopes", "challenge", "error")
                if (value := getattr(exc, name, None))
            }
            lines.append(f"{type(exc).__name__}: {exc} {more or ''}".rstrip())
            break
        lines.append(_show_step(step))
        try:
            reply = places.answer(step)
        except (AuthRequired, AuthorizationFailed, FetchFailed) as exc:
            reply = exc
    lines += [f"warning: {each}" for each in auth.take_warnings()]
    lines.append(f"{auth!r} {auth.generation} {auth.expires_soon()}")
    return lines


@cache
def _usual() -> dict[str, int]:
    """Return the numbers of the first login's lines."""
    return {line: number for number, line in enumerate(_play_row(LOGINS["challenges"]["usual"]), 1)}


def _without_usual(lines: list[str]) -> list[str]:
    """Return lines, with numbers for those of the first login."""
    shown: list[str] = []
    first = last = 0
    for line in (*lines, ""):
        number = _usual().get(line, 0)
        if last and number == last + 1:
            last = number
            continue
        if last:
            shown.append(f"{first}-{last}" if last > first else f"{first}")
        first = last = number
        if not number:
            shown.append(line)
    return shown[:-1]


def play_login(name: str) -> str:
    """Return what a client does in all logins of a group."""
    lines: list[str] = []
    known: dict[str, str] = {}
    for label, row in LOGINS[name].items():
        played = _play_row(row)
        if row is LOGINS["challenges"]["usual"]:
            played = [f"{number}: {line}" for number, line in enumerate(played, 1)]
        else:
            played = _without_usual(played)
        found = "\n".join(f"  {line}" for line in played)
        same = known.setdefault(found, label)
        lines.append(f"{label}:\n{found}" if same == label else f"{label}: as {same}")
    return "\n".join(lines)


def kept_logins() -> dict[str, str]:
    """Return the kept text of each group of logins."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: play_login(name) for name in LOGINS})
