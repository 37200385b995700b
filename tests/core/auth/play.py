"""Flows run as lists of steps and replies, in the setting of the conformance suite.

`play` compares each step with the expected one and sends the reply beside it. `Load` and `Save` use
a dict, and `ListenForRedirect` is answered too, so a list shows only what others can observe.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator
from typing import Any, TypeVar
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import msgspec
from msgspec import Struct

from mcp_core.auth import (
    Authorizer,
    Browse,
    ClientProfile,
    Fetch,
    HttpResponse,
    ListenForRedirect,
    Load,
    Save,
)
from mcp_core.auth._metadata import AuthorizationServerMetadata
from mcp_core.auth.client._discovery import AuthorizationServer

T = TypeVar("T")
Expected = Callable[[Any], None]
Script = list[tuple[Expected, Any]]

RS = "http://localhost:1001"
MCP = f"{RS}/mcp"
AS = "http://localhost:1002"
REDIRECT = "http://localhost:3000/callback"
FREE_PORT = 4711
PRM = "/.well-known/oauth-protected-resource"
OAUTH = "/.well-known/oauth-authorization-server"
OIDC = "/.well-known/openid-configuration"


def play(flow: Generator[Any, Any, T], script: Script, store: dict[str, bytes] | None = None) -> T:
    """Run `flow` against `script` and return its result.

    A reply may be an exception, or a function of the step.
    """
    store = {} if store is None else store
    rows = iter(script)
    reply: Any = None
    while True:
        try:
            step = flow.throw(reply) if isinstance(reply, Exception) else flow.send(reply)
        except StopIteration as stop:
            assert next(rows, None) is None, "the flow ended too early"
            result: T = stop.value
            return result
        reply = None
        if isinstance(step, Load):
            reply = store.get(step.key)
        elif isinstance(step, ListenForRedirect):
            reply = (
                step.redirect_uri.replace(":0/", f":{FREE_PORT}/")
                if step.any_port
                else step.redirect_uri
            )
        elif isinstance(step, Save):
            if step.value is None:
                store.pop(step.key, None)
            else:
                store[step.key] = step.value
        else:
            row = next(rows, None)
            assert row is not None, f"nobody expected {step!r}"
            row[0](step)
            reply = row[1](step) if callable(row[1]) else row[1]


def play_to_failure(
    flow: Generator[Any, Any, T], script: Script, store: dict[str, bytes] | None = None
) -> Any:
    """Run a flow that must fail at the end of the script. Return the exception."""
    try:
        play(flow, script, store)
    except Exception as exc:
        if isinstance(exc, AssertionError):
            raise
        return exc
    raise AssertionError("the flow went well")


class Entropy:
    """A source of bytes that differ from call to call and repeat from run to run."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, size: int) -> bytes:
        self.calls += 1
        return hashlib.shake_256(b"%d" % self.calls).digest(size)


class Clock:
    """A wall clock that stands still until a test moves it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class McpRequest(Struct):
    """A request to the MCP server, as the small driver of these tests sends it."""

    operation: str
    headers: dict[str, str]


# -- Expected steps --------------------------------------------------------------------------------


def get(url: str) -> Expected:
    """Expect the fetch of a document."""

    def check(step: Any) -> None:
        assert isinstance(step, Fetch), step
        assert (step.request.method, step.request.url, step.request.body) == ("GET", url, b"")

    return check


def posted(url: str, **members: Any) -> Expected:
    """Expect a POST of JSON with these members. A member that is None must be absent."""

    def check(step: Any) -> None:
        assert isinstance(step, Fetch), step
        assert (step.request.method, step.request.url) == ("POST", url)
        assert dict(step.request.headers)["content-type"] == "application/json"
        body = json.loads(step.request.body)
        assert {name: body.get(name) for name in members} == members

    return check


def form(url: str, authorization: str | None = None, **fields: str | None) -> Expected:
    """Expect a POST of a form with these fields. A field that is None must be absent."""

    def check(step: Any) -> None:
        assert isinstance(step, Fetch), step
        assert (step.request.method, step.request.url) == ("POST", url)
        headers = dict(step.request.headers)
        assert headers["content-type"] == "application/x-www-form-urlencoded"
        assert headers.get("authorization") == authorization
        pairs = parse_qsl(step.request.body.decode(), strict_parsing=True)
        body = dict(pairs)
        assert len(body) == len(pairs)
        assert {name: body.get(name) for name in fields} == fields

    return check


def browsed(url: str, **fields: str | None) -> Expected:
    """Expect the browser at `url` with these parameters. One that is None must be absent."""

    def check(step: Any) -> None:
        assert isinstance(step, Browse), step
        assert step.url.partition("?")[0] == url
        query = dict(parse_qsl(urlsplit(step.url).query, strict_parsing=True))
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert query["redirect_uri"] == step.redirect_uri
        assert len(query["code_challenge"]) == len(query["state"]) == 43
        assert {name: query.get(name) for name in fields} == fields

    return check


def mcp(authorization: str | None = None, operation: str | None = None) -> Expected:
    """Expect a request to the MCP server with this token."""

    def check(step: Any) -> None:
        assert isinstance(step, McpRequest), step
        assert step.headers.get("authorization") == authorization
        assert operation is None or step.operation == operation

    return check


# -- Replies ---------------------------------------------------------------------------------------


def document_reply(**members: Any) -> HttpResponse:
    """Return a JSON document."""
    return HttpResponse(200, [("content-type", "application/json")], json.dumps(members).encode())


def status(code: int, *headers: tuple[str, str], **members: Any) -> HttpResponse:
    return HttpResponse(code, list(headers), json.dumps(members).encode() if members else b"")


MISSING = status(404)


def resource(*servers: str, resource: str = MCP, **more: Any) -> HttpResponse:
    """Return protected resource metadata."""
    return document_reply(resource=resource, authorization_servers=list(servers or (AS,)), **more)


def server_metadata(issuer: str = AS, endpoints: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the metadata of the suite's authorization server. None removes a member."""
    at = issuer if endpoints is None else endpoints
    members = {
        "issuer": issuer,
        "authorization_endpoint": f"{at}/authorize",
        "token_endpoint": f"{at}/token",
        "registration_endpoint": f"{at}/register",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "token_endpoint_auth_methods_supported": ["none"],
    } | more
    return {name: value for name, value in members.items() if value is not None}


def server(issuer: str = AS, endpoints: str | None = None, **more: Any) -> HttpResponse:
    return document_reply(**server_metadata(issuer, endpoints, **more))


def registered(
    client_id: str = "test-client-id", secret: str | None = "test-client-secret", **more: Any
) -> HttpResponse:
    members = {"client_id": client_id, "client_secret": secret, "redirect_uris": [REDIRECT]} | more
    return status(201, **{name: value for name, value in members.items() if value is not None})


def callback_reply(
    iss: str | None = AS, code: str | None = "test-auth-code", **more: str
) -> Callable[[Browse], str]:
    """Redirect the browser back, with the `state` that it was sent with."""

    def answer(step: Browse) -> str:
        state = parse_qs(urlsplit(step.url).query)["state"][0]
        fields = {"code": code, "state": state, "iss": iss} | more
        return (
            f"{step.redirect_uri}?{urlencode({k: v for k, v in fields.items() if v is not None})}"
        )

    return answer


def token(access: str = "t1", expires_in: Any = 3600, **more: Any) -> HttpResponse:
    return document_reply(
        **({"access_token": access, "token_type": "Bearer", "expires_in": expires_in} | more)
    )


def oauth_error(code: str, description: str | None = None, at: int = 400) -> HttpResponse:
    members = {"error": code} | ({"error_description": description} if description else {})
    return status(at, **members)


def unauthorized(
    prm: str | None = f"{RS}{PRM}/mcp", scope: str | None = None, scheme: str = "Bearer"
) -> HttpResponse:
    parameters = {"resource_metadata": prm, "scope": scope}
    text = ", ".join(f'{name}="{value}"' for name, value in parameters.items() if value is not None)
    return status(401, ("www-authenticate", f"{scheme} {text}".strip()))


def forbidden(scope: str | None) -> HttpResponse:
    wanted = f', scope="{scope}"' if scope is not None else ""
    challenge = f'Bearer error="insufficient_scope"{wanted}, resource_metadata="{RS}{PRM}/mcp"'
    return status(403, ("www-authenticate", challenge))


OK = status(200)


# -- Drivers and scripts ---------------------------------------------------------------------------


def profile(**more: Any) -> ClientProfile:
    return ClientProfile(**({"redirect_uri": REDIRECT, "client_name": "tests"} | more))


def authorizer(url: str = MCP, clock: Clock | None = None, **more: Any) -> Authorizer:
    return Authorizer(url, profile(**more), entropy=Entropy(), wall_time=clock or Clock())


def request(
    auth: Authorizer, operation: str = "tools/list", url: str = MCP
) -> Generator[Any, Any, int]:
    """Do what a driver does for one MCP request. Return the status of the last response."""
    attempt = auth.attempt(operation)
    while True:
        headers = attempt.headers("POST", url)
        assert len(dict(headers)) == len(headers)
        reply: HttpResponse = yield McpRequest(operation, dict(headers))
        if not attempt.received(reply.status, reply.headers, url):
            return reply.status
        yield from attempt.handle_challenge()


def session(auth: Authorizer, *operations: str, url: str = MCP) -> Generator[Any, Any, int]:
    """Run a client that starts, sends some requests and ends."""
    yield from auth.load()
    last = 0
    for operation in operations or ("tools/list",):
        last = yield from request(auth, operation, url)
    return last


def discovery(prm: HttpResponse | None = None, metadata: HttpResponse | None = None) -> Script:
    """Return the fetches of both metadata documents at their usual URLs."""
    return [
        (get(f"{RS}{PRM}/mcp"), prm or resource()),
        (get(f"{AS}{OAUTH}"), metadata or server()),
    ]


def login(
    access: str = "t1",
    iss: str | None = AS,
    reply: HttpResponse | None = None,
    **fields: str | None,
) -> Script:
    """Return the steps of a user's login. The authorization request must have `fields`."""
    return [
        (
            browsed(
                f"{AS}/authorize", **({"client_id": "test-client-id", "resource": MCP} | fields)
            ),
            callback_reply(iss),
        ),
        (
            form(
                f"{AS}/token",
                grant_type="authorization_code",
                code="test-auth-code",
                redirect_uri=REDIRECT,
                client_id="test-client-id",
                resource=MCP,
                client_secret=None,
            ),
            reply or token(access),
        ),
    ]


def first_login(access: str = "t1", challenge: HttpResponse | None = None) -> Script:
    """Return the steps from a request without a token to one with it."""
    return [
        (mcp(None), challenge or unauthorized()),
        *discovery(),
        (posted(f"{AS}/register"), registered()),
        *login(access),
        (mcp(f"Bearer {access}"), OK),
    ]


def authority(resource: str = MCP, issuer: str = AS, **more: Any) -> AuthorizationServer:
    """Return the result of discovery with the default metadata."""
    return AuthorizationServer(
        resource, msgspec.convert(server_metadata(issuer, **more), AuthorizationServerMetadata)
    )
