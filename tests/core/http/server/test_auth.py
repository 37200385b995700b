"""An endpoint with authorization: grants, denials, and no processing before the decision."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator
from typing import Any

import pytest
from msgspec import Struct, json

from mcp_core.auth import (
    Await,
    FetchFailed,
    Grant,
    IntrospectionVerifier,
    JwtVerifier,
    OAuthResourceServer,
    VerifierUnavailable,
)
from mcp_core.http import (
    Body,
    Endpoint,
    EndpointAuth,
    Head,
    HostOriginPolicy,
    PlainResponse,
    RequestHead,
    Router,
)
from mcp_core.http.server._auth import AUTHORIZED_VERBS
from mcp_core.http.wire._messages import ErrorResponse
from mcp_core.protocol.revisions._methods import METHODS
from mcp_core.registry import Context, Server
from mcp_core.runtime import run_auth_check
from mcp_core.types import InputRequiredResult, RequestParams
from tests.core.auth.minting import ISSUER, JWKS_URI, NOW, RESOURCE, keys_reply, token
from tests.harness.stepping import result_of
from tests.harness.wire.router import (
    GET,
    HOST,
    POST,
    D,
    E,
    Pause,
    Reply,
    RouterHarness,
    SessionClient,
    initialize,
    meta,
    request,
)

B = "2025-03-26"
SECRET = "canary-8c1f"
META = b"/.well-known/oauth-protected-resource"
READ, WRITE = "memo:read", "memo:write"
GRANTS = {
    "ann": Grant("ann", "app", frozenset({READ, WRITE}), claims={"plan": "gold"}),
    "ann-reads": Grant("ann", "app", frozenset({READ})),
    "bob": Grant("bob", "app", frozenset({READ, WRITE})),
    "ann-none": Grant("ann", "app"),
    "none": Grant("none", "app"),
}


def scoped_server() -> Server:
    server = Server("house")

    @server.tool
    def whoami(context: Context) -> str:
        """Return the principal."""
        grant = context.grant
        assert grant is not None
        return (
            f"{context.principal} {' '.join(sorted(grant.scopes))} {grant.client_id} "
            f"{grant.claims.get('plan')}"
        )

    @server.tool
    async def erase(context: Context) -> str:
        """Erase, which needs a scope."""
        done.append(context.principal)
        await context.progress(1)
        return "erased"

    @server.tool
    async def slow() -> str:
        """After a while."""
        await Pause()
        return "done"

    @server.tool
    def again(context: Context) -> Any:
        """In two rounds."""
        if context.request_state is None:
            return InputRequiredResult(request_state="mine")
        return f"{context.principal} again"

    @server.resource("memo://a")
    def memo() -> str:
        """A resource."""
        return "a"

    @server.resource("memo://secret")
    def secret() -> str:
        """Another one."""
        return SECRET

    done: list[str] = []
    server.done = done  # type: ignore[attr-defined]
    return server


class AuthHarness(RouterHarness):
    """A harness of a server with authorization. `log` is what was reported."""

    def __init__(
        self, guard: Any, wall_time: Callable[[], float] = lambda: NOW, **options: Any
    ) -> None:
        self.log: list[tuple[str, BaseException | None]] = []
        self.levels: list[int] = []
        auth = EndpointAuth(guard, wall_time, self._note)
        super().__init__(scoped_server(), auth=auth, **options)

    def _note(self, level: int, form: str, text: str, *, exc_info: BaseException | None) -> None:
        self.levels.append(level)
        self.log.append((form % text, exc_info))

    @property
    def done(self) -> list[str]:
        done: list[str] = self.server.done  # type: ignore[attr-defined]
        return done

    def logged(self) -> str:
        (line,) = self.log
        self.log.clear()
        return line[0]

    def tool(self, name: str, who: str, id: int = 1, **params: Any) -> Reply:
        """A call of 2026-07-28."""
        return self.ask("tools/call", who, id=id, name=name, arguments={}, **params)

    def ask(self, method: str, who: str, *, id: int = 1, **params: Any) -> Reply:
        more = [(b"mcp-protocol-version", E.encode()), (b"mcp-method", method.encode())]
        named = params.get("name") or params.get("uri")
        if named:
            more.append((b"mcp-name", named.encode()))
        return self.post(request(id, method, {**params, "_meta": meta()}), *more, principal=who)


def known(text: str) -> Grant | None:
    return GRANTS.get(text)


def guard(verifier: Any = known, **options: Any) -> OAuthResourceServer:
    options.setdefault("scopes", [READ])
    # A function, since not every server of these tests has the tool.
    options.setdefault("tool_scopes", lambda name: [WRITE] if name == "erase" else [])
    options.setdefault("resource_scopes", {"memo://secret": [WRITE]})
    return OAuthResourceServer(RESOURCE, [ISSUER], verifier, **options)


def guarded(verifier: Any = known, **options: Any) -> AuthHarness:
    return AuthHarness(guard(verifier), **options)


def challenge(reply: Reply) -> str:
    return reply.headers[b"www-authenticate"].decode()


# -- At the head -----------------------------------------------------------------------------------


def test_valid_token_is_served_with_its_principal() -> None:
    harness = guarded()
    assert harness.tool("whoami", "ann").message_text == f"ann {READ} {WRITE} app gold"
    client = harness.session(principal="ann")
    assert client.call(1, "whoami").message_text == f"ann {READ} {WRITE} app gold"
    # Of the same user, a token that may less: what counts is the one of this request.
    client.principal = "ann-reads"
    assert client.call(2, "whoami").message_text == f"ann {READ} app None"
    assert not harness.log


@pytest.mark.requirement("AG-1")
def test_unguarded_request_has_no_principal() -> None:
    server = Server("open")

    @server.tool
    def who(context: Context) -> str:
        """Return the principal."""
        return f"{context.principal!r} {context.grant}"

    assert RouterHarness(server).call(1, "who").message_text == "'' None"


HEADS: dict[str, tuple[bytes, list[tuple[bytes, bytes]], bytes | None]] = {
    "POST": (b"POST", POST, b"{}"),
    "POST of no JSON": (b"POST", [HOST, (b"content-type", b"text/plain")], b"x"),
    "POST that is too long": (b"POST", [*POST, (b"content-length", b"999999999")], None),
    "GET": (b"GET", GET, None),
    "GET of an SSE session": (b"GET", [HOST], None),
    "DELETE": (b"DELETE", [HOST, (b"mcp-session-id", b"0" * 32)], None),
}


@pytest.mark.parametrize("what", HEADS)
@pytest.mark.requirement("AR-13")
def test_missing_token_gets_a_challenge_only(what: str) -> None:
    harness = guarded()
    verb, headers, body = HEADS[what]
    reply = harness.send(verb, headers, body)
    assert reply.status == 401
    assert f'resource_metadata="https://mcp.example.com{META.decode()}/mcp"' in challenge(reply)
    assert "error" not in challenge(reply)
    assert harness.logged().startswith(f"{verb.decode()} refused with 401: ")
    assert harness.levels == [logging.INFO]
    assert not harness.seen
    assert not harness.endpoint.sessions


@pytest.mark.parametrize("bad", ["stolen-" + SECRET, "ann ann", "ann,"])
def test_bad_token_is_denied_and_not_logged(bad: str) -> None:
    harness = guarded()
    reply = harness.tool("whoami", bad)
    assert reply.status in (400, 401)
    assert "error=" in challenge(reply)
    assert SECRET not in harness.logged()
    assert SECRET.encode() not in reply.body
    assert not harness.seen


def test_token_in_the_query_or_the_body_is_ignored() -> None:
    harness = guarded()
    body = json.encode({**request(1, "ping"), "access_token": "ann"})
    assert harness.send(b"POST", POST, body, b"/mcp?access_token=ann").status == 401
    assert harness.send(b"POST", [*POST, (b"cookie", b"access_token=ann")], body).status == 401


def test_host_and_origin_are_checked_before_the_token() -> None:
    harness = guarded(policy=HostOriginPolicy("127.0.0.1", origins=["https://app.example.com"]))
    strange = [(b"host", b"evil.example"), *POST[1:], (b"authorization", b"Bearer ann")]
    assert harness.send(b"POST", strange, b"{}").status == 421
    assert harness.post({}, (b"origin", b"https://evil.example"), principal="ann").status == 403
    assert [line.partition(":")[0] for line, _ in harness.log] == [
        "POST refused with 421",
        "POST refused with 403",
    ]
    # A page that may ask can read the challenge.
    reply = harness.post({}, (b"origin", b"https://app.example.com"))
    assert reply.status == 401
    assert b"www-authenticate" in reply.headers[b"access-control-expose-headers"]


def test_other_verbs_need_no_token() -> None:
    harness = guarded()
    assert harness.send(b"OPTIONS", [HOST]).status == 204
    assert harness.send(b"PUT", [HOST]).status == 405
    assert {b"GET", b"POST", b"DELETE"} == AUTHORIZED_VERBS
    assert not harness.log


@pytest.mark.requirement("AR-13")
def test_required_scopes_apply_to_every_request() -> None:
    harness = guarded()
    client = harness.session(principal="ann")
    for verb in (b"GET", b"DELETE", b"POST"):
        reply = harness.send(
            verb,
            [*(POST if verb == b"POST" else GET), *client.headers],
            b"{}",
            principal="ann-none",
        )
        assert reply.status == 403, verb
        assert 'error="insufficient_scope"' in challenge(reply)
        assert f'scope="{READ}"' in challenge(reply)
        assert f"'{READ}' missing" in harness.logged()
    assert client.call(1, "whoami").status == 200


# -- What a guard has to ask -----------------------------------------------------------------------


class Later:
    """A verifier that asks the world once."""

    def __init__(self) -> None:
        self.steps = 0

    def verify(self, token: str, now: float) -> Generator[Any, Any, Grant]:
        self.steps += 1
        reply = yield "a step"
        assert isinstance(reply, str)
        return GRANTS[reply]


def test_body_is_not_read_before_the_grant() -> None:
    """An unknown client must not make the server buffer a body: only the head is read."""
    harness = guarded(Later())
    reply = harness.tool("whoami", "ann")
    exchange = reply.exchange
    admission = exchange.auth_check
    assert admission is not None
    assert admission.step == "a step"
    assert "waiting" in repr(admission)
    assert not exchange.reading
    assert not harness.seen
    assert reply.status == 0
    harness.answer_auth_check(reply, "ann")
    assert admission.step is None
    assert reply.exchange.reading
    harness.router.receive_data(
        exchange,
        json.encode(request(1, "tools/call", {"name": "whoami", "_meta": meta()})),
        harness.now,
    )
    harness.router.receive_data(exchange, b"", harness.now)
    harness.pump()
    assert reply.message_text.startswith("ann ")


def test_listen_stream_waits_for_the_grant() -> None:
    harness = guarded(Later())
    reply = harness.get(principal="ann")
    assert reply.status == 0
    assert not harness.endpoint.sessions
    harness.answer_auth_check(reply, "ann")
    assert reply.status == 200
    (session,) = harness.endpoint.sessions.values()
    assert session.principal == "ann"


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (VerifierUnavailable("nobody answers"), 503),
        (KeyError(SECRET), 500),
        (FetchFailed("no"), 500),  # this verifier does not know what to make of it
    ],
)
def test_undecided_check_denies_access(failure: Exception, status: int) -> None:
    harness = guarded(Later())
    reply = harness.tool("whoami", "ann")
    harness.answer_auth_check(reply, failure)
    assert reply.status == status
    assert SECRET.encode() not in reply.body
    ((text, exc),) = harness.log
    assert f"refused with {status}" in text
    assert (exc is failure) is (status == 500)
    assert harness.levels == [logging.ERROR if status == 500 else logging.WARNING]
    assert not harness.seen
    assert harness.endpoint.idle


def test_disconnect_during_the_check_ends_the_exchange() -> None:
    """The verifier's late grant or exception finds no exchange, and opens no session."""
    harness = guarded(Later())
    reply = harness.get(principal="ann")
    admission = reply.exchange.auth_check
    assert admission is not None
    harness.close_after(reply)
    assert reply.exchange.auth_check is None
    admission.send("ann", harness.now)
    harness.pump()
    assert not harness.endpoint.sessions
    assert reply.status == 0
    other = harness.get(principal="ann")
    admission = other.exchange.auth_check
    assert admission is not None
    harness.close_after(other)
    admission.throw(KeyError(), harness.now)
    assert other.status == 0


class NoGuard:
    """An invalid resource server: it returns neither a grant nor a denial."""

    metadata_paths = ("/nowhere",)
    credential_headers = ()

    def metadata(self) -> bytes:
        return b"{}"

    def admit(self, *requests: Any) -> Generator[Any, Any, Any]:
        return (yield "a step")


@pytest.mark.parametrize("outcome", [None, False, 7])
def test_invalid_result_of_the_check_denies_access(outcome: Any) -> None:
    harness = AuthHarness(NoGuard())
    reply = harness.get(principal="ann")
    harness.answer_auth_check(reply, outcome)
    assert reply.status == 500
    assert harness.levels == [logging.ERROR]
    assert not harness.endpoint.sessions


def test_own_fault_after_the_grant_ends_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = guarded(Later())
    reply = harness.get(principal="ann")
    with monkeypatch.context() as broken:
        broken.setattr(Endpoint, "_handle_head", lambda *anything: 1 / 0)
        harness.answer_auth_check(reply, "ann")
    assert reply.status == 500
    assert isinstance(harness.log[0][1], ZeroDivisionError)
    reply = harness.get(principal="ann")
    harness.answer_auth_check(reply, "ann")
    assert reply.status == 200


def test_warnings_of_undecided_checks_are_rare() -> None:
    now = NOW
    harness = AuthHarness(guard(Later()), wall_time=lambda: now)
    for seconds in (0, 1, 9.9, 10, 11, 21, -100):
        now = NOW + seconds
        harness.answer_auth_check(harness.tool("whoami", "ann"), VerifierUnavailable("x"))
    warning, info = logging.WARNING, logging.INFO
    assert harness.levels == [warning, info, info, warning, info, warning, warning]
    assert len({text for text, _ in harness.log}) == 1


def test_check_that_takes_too_long_gets_503() -> None:
    harness = guarded(Later())
    reply = harness.get(principal="ann")
    admission = reply.exchange.auth_check
    assert admission is not None
    for _ in range(2):
        admission.time_out(harness.now)
        harness.pump()
    assert reply.status == 503
    assert reply.headers[b"retry-after"]
    assert "took too long" in harness.logged()
    assert harness.levels == [logging.WARNING]


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_shutdown_rejects_requests_that_were_granted(when: str) -> None:
    harness = guarded(Later())
    if when == "before":
        harness.router.shutdown()
    reply = harness.get(principal="ann")
    harness.router.close()
    harness.answer_auth_check(reply, "ann")
    assert reply.status == 503


@pytest.mark.parametrize("raised", [ZeroDivisionError, SystemExit])
def test_verifier_exception_denies_access(raised: type[BaseException]) -> None:
    def broken(text: str) -> Grant:
        raise raised

    harness = guarded(broken)
    assert harness.tool("whoami", "ann").status == 500
    ((text, exc),) = harness.log
    assert isinstance(exc, raised)
    assert text == "POST refused with 500: the authorization check raised an exception"


class Doer:
    """A runner of steps, as in a driver."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    def __call__(self, step: Any) -> Any:
        async def do() -> Any:
            reply = self.replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            return reply

        return do()


@pytest.mark.parametrize(("outcome", "status"), [("ann", 200), (VerifierUnavailable("no"), 503)])
def test_steps_can_be_awaited(outcome: Any, status: int) -> None:
    harness = guarded(Later())
    reply = harness.get(principal="ann")
    admission = reply.exchange.auth_check
    assert admission is not None
    result_of(run_auth_check(admission, Doer(outcome), lambda: harness.now))
    harness.pump()
    assert reply.status == status
    assert "done" in repr(admission)


def test_check_without_a_fetch_function_fails() -> None:
    harness = guarded(Later())
    reply = harness.get(principal="ann")
    assert reply.exchange.auth_check is not None
    result_of(run_auth_check(reply.exchange.auth_check, None, lambda: harness.now))
    harness.pump()
    assert reply.status == 500
    ((_, exc),) = harness.log
    assert "sends no HTTP requests for authorization" in str(exc)


# -- With the verifiers of the package -------------------------------------------------------------


def test_signed_token_is_verified() -> None:
    harness = AuthHarness(
        OAuthResourceServer(RESOURCE, [ISSUER], JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI))
    )
    reply = harness.get(principal=token())
    admission = reply.exchange.auth_check
    assert admission is not None
    assert admission.step.request.url == JWKS_URI
    harness.answer_auth_check(reply, keys_reply())
    assert reply.status == 200
    # Now its keys are known.
    again = harness.tool("whoami", token())
    assert again.message_text.startswith(f"{ISSUER}#sub:alice files:read files:write app")
    assert harness.tool("whoami", token(aud="https://other.example")).status == 401
    assert harness.tool("whoami", token(exp=NOW - 3600)).status == 401


def test_async_verifier_is_awaited() -> None:
    async def verify(text: str) -> Grant | None:
        return GRANTS.get(text)

    harness = guarded(verify)
    for who, status in (("ann", 200), ("eve", 401)):
        reply = harness.get(principal=who)
        admission = reply.exchange.auth_check
        assert admission is not None
        assert isinstance(admission.step, Await)
        result_of(run_auth_check(admission, None, lambda: 0.0))
        harness.pump()
        assert reply.status == status


# -- In the body -----------------------------------------------------------------------------------

FORBIDDEN: dict[str, Callable[[AuthHarness], Reply]] = {
    "tool": lambda harness: harness.tool("erase", "ann-reads", id=7),
    "resource": lambda harness: harness.ask(
        "resources/read", "ann-reads", id=7, uri="memo://secret"
    ),
    "resource in other letters": lambda harness: harness.ask(
        "resources/read", "ann-reads", id=7, uri="memo://%73ecret"
    ),
    "resource with a scheme in capitals": lambda harness: harness.ask(
        "resources/read", "ann-reads", id=7, uri="MEMO://secret"
    ),
    "resource with a path": lambda harness: harness.ask(
        "resources/read", "ann-reads", id=7, uri="memo://s%65cret/"
    ),
    "subscription in other letters": lambda harness: harness.ask(
        "subscriptions/listen",
        "ann-reads",
        id=7,
        notifications={"resourceSubscriptions": ["memo://a", "MEMO://secret"]},
    ),
    "subscription": lambda harness: harness.ask(
        "subscriptions/listen",
        "ann-reads",
        id=7,
        notifications={"resourceSubscriptions": ["memo://a", "memo://secret"]},
    ),
}


@pytest.mark.parametrize("reply", ["auto", "sse", "json"])
@pytest.mark.parametrize("what", FORBIDDEN)
def test_insufficient_scope_is_denied_before_processing(what: str, reply: str) -> None:
    harness = guarded(reply=reply)
    refused = FORBIDDEN[what](harness)
    assert refused.status == 403
    assert not refused.is_stream
    assert f'scope="{READ} {WRITE}"' in challenge(refused)
    assert refused.message["id"] == 7
    assert refused.exchange.mcp_method
    assert f"'{WRITE}' missing" in harness.logged()
    assert not harness.seen
    assert not harness.done


def test_scopes_function_is_asked_for_the_declared_uri_too() -> None:
    asked: list[str] = []

    def scopes(uri: str) -> list[str]:
        asked.append(uri)
        return [WRITE] if uri == "memo://secret" else []

    harness = AuthHarness(guard(resource_scopes=scopes))
    for uri in ("memo://secret", "MEMO://secret", "memo://%73ecret/"):
        assert harness.ask("resources/read", "ann-reads", uri=uri).status == 403
        assert asked[-1] == "memo://secret"
        assert asked.pop(0) == uri
        asked.clear()
    assert harness.ask("resources/read", "ann", uri="MEMO://secret").status == 200


def test_sufficient_scopes_are_granted() -> None:
    harness = guarded()
    harness.tool("erase", "ann")
    harness.step(3)
    assert harness.done == ["ann"]
    assert SECRET.encode() in harness.ask("resources/read", "ann", uri="memo://secret").body
    assert harness.ask("resources/read", "ann-reads", uri="memo://a").status == 200
    assert not harness.log


@pytest.mark.parametrize("version", [B, D])
def test_scopes_are_checked_in_a_session(version: str) -> None:
    harness = guarded()
    client = harness.session(version, principal="ann")
    client.principal = "ann-reads"
    assert client.call(1, "erase").status == 403
    assert client.post(request(2, "resources/subscribe", {"uri": "memo://secret"})).status == 403
    assert client.post(request(3, "resources/subscribe", {"uri": "memo://a"})).status == 200
    assert client.call(1, "whoami").status == 200
    assert not harness.done


class Counted(RequestParams):
    """Params that count how often they are decoded."""

    number: int = 0

    def __post_init__(self) -> None:
        decoded.append(self.number)


decoded: list[int] = []


def counting(server: Server) -> Callable[..., dict[str, Any]]:
    """Declare a method with `Counted`, and return a function that forms a request of it."""
    decoded.clear()

    @server.method("test/count", params=Counted)
    def count(params: Counted) -> dict[str, int]:
        return {"number": params.number}

    return lambda number, **params: request(number, "test/count", {"number": number, **params})


def test_params_are_decoded_once_for_check_and_handler() -> None:
    harness = guarded()
    form = counting(harness.server)
    head = [(b"mcp-protocol-version", E.encode()), (b"mcp-method", b"test/count")]
    assert (
        harness.post(form(1, _meta=meta()), *head, principal="ann").message["result"]["number"] == 1
    )
    assert decoded == [1]
    client = harness.session(B, principal="ann")
    reply = client.post([form(2), {**form(0), "params": {"number": "x"}}, 5, form(3)])
    assert [each["result"]["number"] for each in reply.messages if "result" in each] == [2, 3]
    assert [each["error"]["code"] for each in reply.messages if "error" in each] == [-32602, -32600]
    assert decoded == [1, 2, 3]


def test_params_that_do_not_fit_are_rejected_by_the_connection() -> None:
    harness = guarded()
    counting(harness.server)
    client = harness.session(principal="ann")
    reply = client.post(request(1, "test/count", {"number": "x"}))
    assert reply.message["error"]["code"] == -32602
    assert "Expected `int`, got `str`" in reply.message["error"]["message"]
    assert not harness.log


def test_check_knows_the_methods_of_the_session() -> None:
    """A method that is removed later is still one of a session that has it."""
    asked: list[str | None] = []

    class Asked(OAuthResourceServer):
        def scopes_for(self, method: str | None, params: Any = None) -> tuple[str, ...]:
            asked.append(method)
            return super().scopes_for(method, params)

    harness = AuthHarness(Asked(RESOURCE, [ISSUER], known))
    form = counting(harness.server)
    client = harness.session(principal="ann")
    harness.server.remove_method("test/count")
    asked.clear()
    assert client.post(form(1)).message["error"]["code"] == -32601
    assert asked == ["test/count"]


def test_batch_with_a_denied_member_is_denied_as_a_whole() -> None:
    harness = guarded()
    client = harness.session(B, principal="ann")
    client.principal = "ann-reads"
    batch = [
        request(1, "tools/call", {"name": "whoami"}),
        request(2, "tools/call", {"name": "erase"}),
    ]
    seen = len(harness.seen)
    assert client.post(batch).status == 403
    assert len(harness.seen) == seen
    assert client.post(batch[:1]).status == 200


def test_scopes_are_checked_in_a_legacy_sse_session() -> None:
    """Each POST brings its own token: the stream's token neither lends nor limits scopes."""
    harness = guarded()
    opened = harness.get(principal="ann")
    target = opened.events[0][1]
    harness.send(b"POST", POST, json.encode(initialize("2024-11-05")), target, principal="ann")
    harness.send(
        b"POST",
        POST,
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        target,
        principal="ann",
    )
    call = json.encode(request(1, "tools/call", {"name": "erase", "arguments": {}}))
    assert harness.send(b"POST", POST, call, target, principal="ann-reads").status == 403
    assert harness.send(b"POST", POST, call, target, principal="bob").status == 404
    assert harness.send(b"POST", POST, call, target).status == 401
    assert harness.send(b"POST", POST, call, target, principal="ann").status == 202
    harness.step(3)
    assert harness.done == ["ann"]


UNREADABLE: list[bytes] = [
    b"",
    b"{",
    b"[",
    b"[]",
    b"[{]",
    b"[" + b",".join([b'{"jsonrpc":"2.0","id":1,"method":"ping"}'] * 1000) + b"]",
    b"null",
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
    b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
]


@pytest.mark.parametrize("body", UNREADABLE)
def test_invalid_body_gets_its_error_only_with_a_token(body: bytes) -> None:
    harness, unguarded = guarded(), RouterHarness(scoped_server())
    assert harness.post(body, principal="none").status == 403
    mine, theirs = harness.post(body, principal="ann"), unguarded.post(body)
    assert (mine.status, mine.body) == (theirs.status, theirs.body)


@pytest.mark.parametrize(
    "name", ["tools/call", "resources/read", "resources/subscribe", "subscriptions/listen"]
)
def test_method_name_has_one_row(name: str) -> None:
    # With two rows of one name, an endpoint could read its params in one way, and a connection in
    # the other.
    assert len([row for row in METHODS if row.name == name]) == 1


@pytest.mark.parametrize("raised", [LookupError, SystemExit])
def test_scopes_function_that_raises_denies_access(raised: type[BaseException]) -> None:
    def scopes(name: str) -> list[str]:
        raise raised(name)

    harness = AuthHarness(guard(tool_scopes=scopes))
    assert harness.tool("whoami", "ann").status == 500
    ((text, exc),) = harness.log
    assert isinstance(exc, raised)
    assert "500" in text
    assert not harness.seen


@pytest.mark.parametrize("raised", [LookupError, SystemExit])
def test_scopes_of_calls_that_raise_deny_access(raised: type[BaseException]) -> None:
    """They are asked for what earlier calls have returned, such as a task."""

    def scopes(name: str) -> list[str]:
        if name == "raises":
            raise raised(name)
        return [WRITE, READ] if name == "erase" else []

    harness = AuthHarness(guard(tool_scopes=scopes))
    auth = harness.endpoint.auth
    assert auth is not None
    ann, reads = GRANTS["ann"], GRANTS["ann-reads"]
    assert auth.may_call(ann, "erase")
    assert auth.may_call(reads, "whoami")
    assert harness.log == []
    assert not auth.may_call(reads, "erase")
    assert not auth.may_call(ann, "raises")
    failed = auth.authorize_calls(ann, ["erase", "raises"], "tasks/get")
    assert isinstance(failed, ErrorResponse)
    assert (failed.status, failed.headers) == (500, [])
    assert [type(exc) for _, exc in harness.log] == [raised, raised]
    assert harness.levels == [logging.ERROR] * 2
    assert auth.authorize_calls(ann, ["erase", "whoami", "erase"], "tasks/get") == frozenset(
        (READ, WRITE)
    )
    denied = auth.authorize_calls(reads, ["whoami", "erase"], "tasks/get")
    assert isinstance(denied, ErrorResponse)
    assert denied.status == 403
    assert harness.log[-1][0].startswith("POST tasks/get refused with 403: ")


def test_line_of_the_log_is_information_without_a_traceback_by_default() -> None:
    """A grant's expiry is moved to the endpoint's clock, too."""
    lines: list[tuple[Any, ...]] = []
    auth = EndpointAuth(
        guard(), lambda: NOW, lambda *line, exc_info: lines.append((*line, exc_info))
    )
    fault = LookupError()
    auth.log_line("one")
    auth.log_line("two %s", logging.ERROR, fault)
    assert lines == [
        (logging.INFO, "%s", "one", None),
        (logging.ERROR, "%s", "two %s", fault),
    ]
    assert [auth.expiry(Grant("ann", expires_at=until), 5.0) for until in (None, NOW + 2)] == [
        math.inf,
        7.0,
    ]


def test_check_that_is_decided_cannot_time_out() -> None:
    harness = guarded(Later())
    reply = harness.tool("whoami", "ann")
    admission = reply.exchange.auth_check
    assert admission is not None
    harness.answer_auth_check(reply, "ann")
    assert "done" in repr(admission)
    admission.time_out(harness.now)
    assert (reply.status, harness.log, reply.exchange.reading) == (0, [], True)


class Custom(Struct):
    """Params of a method of the user's."""

    what: str = ""


def test_unknown_method_needs_the_base_scopes_only() -> None:
    harness = guarded()

    @harness.server.method("x/y", params=Custom)
    def own(params: Custom) -> dict[str, str]:
        """Custom."""
        return {"what": params.what}

    assert harness.ask("x/y", "ann-reads", what="it").message["result"]["what"] == "it"
    assert harness.ask("x/y", "none", what="it").status == 403


# -- Whose it is -----------------------------------------------------------------------------------


@pytest.mark.requirement("AR-13", "AR-17", "AU-6")
def test_session_belongs_to_its_principal_not_to_its_token() -> None:
    harness = guarded()
    ann = harness.session(principal="ann")
    assert SessionClient(harness, ann.id, D, "bob").call(1, "whoami").status == 404
    assert SessionClient(harness, ann.id, D, "").call(1, "whoami").status == 401
    assert SessionClient(harness, ann.id, D, "ann-reads").call(1, "whoami").status == 200
    assert SessionClient(harness, ann.id, D, "bob").delete().status == 404
    assert ann.call(2, "whoami").status == 200
    assert [line for line, _ in harness.log if "404" in line] == [
        "refused with 404: the session belongs to another principal"
    ] * 2


@pytest.mark.parametrize("version", [B, D])
@pytest.mark.parametrize("progress", [True, False])
def test_stream_is_resumed_only_with_the_scopes_of_its_requests(
    version: str, progress: bool
) -> None:
    """A weaker token of the same user, such as a stolen one, must not replay the result."""
    harness = guarded(reply="sse")
    client = harness.session(version, principal="ann")
    reply = client.call(1, "erase", progress=progress)
    if not progress:
        harness.wait(15)  # the stream has begun
    harness.step(3)
    whole = reply.messages
    assert whole[-1]["result"]["content"][0]["text"] == "erased"
    first = b"2-0"
    client.principal = "ann-reads"
    harness.log.clear()
    denied = client.get(first)
    assert (denied.status, denied.ended, b"erased" in denied.body) == (403, True, False)
    assert 'error="insufficient_scope"' in challenge(denied)
    assert WRITE in challenge(denied)
    assert "GET refused with 403" in harness.logged()
    assert client.get().status == 200  # the standalone stream belongs to no request
    client.principal = "ann"
    assert client.get(first).messages == whole


def test_stream_of_requests_without_scopes_is_resumed_with_any_token() -> None:
    harness = guarded(reply="sse")
    client = harness.session(principal="ann")
    reply = client.call(1, "whoami")
    client.principal = "ann-reads"
    assert client.get(b"2-0").messages == reply.messages


def test_stream_of_a_batch_needs_the_scopes_of_all_its_requests() -> None:
    harness = guarded(reply="sse")
    client = harness.session(B, principal="ann")
    batch = [
        request(1, "tools/call", {"name": "whoami"}),
        request(2, "tools/call", {"name": "erase"}),
    ]
    reply = client.post(batch)
    harness.step(3)
    assert len(reply.messages) == 2
    client.principal = "ann-reads"
    assert client.get(b"2-0").status == 403


def test_running_stream_stays_with_its_client_when_a_weaker_token_asks() -> None:
    harness = guarded(reply="sse")
    client = harness.session(principal="ann")
    reply = client.call(1, "erase", progress=True)
    harness.wait(15)  # the stream has begun
    client.principal = "ann-reads"
    assert client.get(b"2-0").status == 403
    harness.step(3)
    assert reply.ended
    assert reply.message_text == "erased"


def test_exception_of_the_scope_check_denies_the_resume() -> None:
    harness = guarded(reply="sse")
    client = harness.session(principal="ann")
    client.call(1, "erase")
    harness.step(3)

    def broken(have: frozenset[str], scope: str) -> bool:
        raise LookupError(SECRET)

    served: Any = harness.endpoint.auth
    served.resource_server._satisfies = broken
    served.resource_server._scopes = ()  # or the head is denied already
    denied = client.get(b"2-0")
    assert (denied.status, SECRET.encode() in denied.body) == (500, False)


@pytest.mark.requirement("AR-17", "AU-7", "ELIC-20")
def test_request_state_belongs_to_its_principal() -> None:
    harness = guarded()
    first = harness.tool("again", "ann")
    state = first.message["result"]["requestState"]
    assert harness.tool("again", "ann-reads", requestState=state).message_text == "ann again"
    stolen = harness.tool("again", "bob", requestState=state)
    assert "error" in stolen.message
    assert "bob again" not in str(stolen.message)
    assert not harness.log


# -- For how long ----------------------------------------------------------------------------------


def grant_with_expiry(text: str) -> Grant | None:
    """Tokens that are good for as many seconds as they say."""
    name, _, seconds = text.partition("-")
    return Grant(name, "app", frozenset({READ, WRITE}), NOW + float(seconds), leeway=5)


LISTEN: dict[str, Any] = {"notifications": {"toolsListChanged": True}}


def is_open(reply: Reply) -> bool:
    return not reply.ended


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("what", ["listen", "GET"])
@pytest.mark.requirement("AR-13")
def test_long_lived_stream_ends_when_the_token_expires(what: str, busy: bool) -> None:
    """A busy stream ends 5 s after the expiry, an idle one soon after; a GET can be resumed."""
    harness = guarded(grant_with_expiry)
    client = harness.session(principal="ann-60")
    stream = (
        client.get() if what == "GET" else harness.ask("subscriptions/listen", "ann-60", **LISTEN)
    )
    for _ in range(64):
        harness.wait(1)
        if busy:
            assert harness.tool("whoami", "bob-900").status == 200
            harness.server.changed(tools=True)
            harness.pump()
    assert stream.is_stream
    assert is_open(stream)
    harness.wait(1 if busy else 15)
    if busy:
        assert harness.tool("whoami", "bob-900").status == 200
    harness.server.changed(tools=True)
    harness.pump()
    assert not is_open(stream)
    assert not [each for each in stream.messages if "result" in each]
    assert not harness.endpoint.one_shots
    # Its client comes back, and goes on where it was.
    if what == "GET":
        again = client.get(stream.last_id)
        assert again.status == 200
        assert is_open(again)
        assert client.delete().status == 204
    assert harness.endpoint.idle


def test_running_call_outlives_the_token() -> None:
    """Only long-lived streams end with their token; the result of a call is still sent."""
    harness = guarded(grant_with_expiry)
    client = harness.session(principal="ann-60")
    lone, called = harness.tool("slow", "ann-60"), client.call(1, "slow", progress=True)
    harness.wait(300)
    assert lone.is_stream
    harness.step(3)
    assert (lone.message_text, called.message_text) == ("done", "done")
    # Also after a reconnect.
    called = client.call(2, "slow")
    harness.wait(20)
    harness.close_after(called)
    again = client.get(called.last_id)
    harness.wait(300)
    assert is_open(again)
    harness.step(3)
    assert again.message_text == "done"


def test_legacy_sse_stream_is_extended_by_newer_tokens() -> None:
    """The GET can't bring a new token, so each POST's one counts; running calls extend it."""
    harness = guarded(grant_with_expiry)
    opened = harness.get(principal="ann-60")
    target = opened.events[0][1]
    harness.send(b"POST", POST, json.encode(initialize("2024-11-05")), target, principal="ann-60")
    ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    harness.send(b"POST", POST, ready, target, principal="ann-120")
    harness.wait(110)
    assert is_open(opened)
    call = json.encode(request(1, "tools/call", {"name": "slow"}))
    assert harness.send(b"POST", POST, call, target, principal="ann-130").status == 202
    harness.wait(200)
    assert is_open(opened)  # what is answered is answered there
    harness.step(3)
    assert opened.messages[-1]["id"] == 1
    harness.wait(15)
    assert not is_open(opened)
    assert not harness.endpoint.sessions


@pytest.mark.parametrize(("seconds", "status"), [(64, 200), (65, 401)])
@pytest.mark.requirement("AR-10")
def test_body_that_outlasts_its_token_is_denied(seconds: int, status: int) -> None:
    """The token is checked again after a slow body, with 5 s of tolerance, before the handler."""
    clock = [NOW]
    harness = AuthHarness(guard(grant_with_expiry), wall_time=lambda: clock[0])
    body = json.encode(
        request(1, "tools/call", {"name": "erase", "arguments": {}, "_meta": meta()})
    )
    headers = [*POST, (b"authorization", b"Bearer ann-60"), (b"mcp-protocol-version", E.encode())]
    headers += [(b"mcp-method", b"tools/call"), (b"mcp-name", b"erase")]
    exchange = harness.router.begin(RequestHead(b"POST", b"/mcp", headers), 0)
    reply = harness.replies[exchange] = Reply(exchange)
    harness.router.receive_data(exchange, body[:-1], 0)
    clock[0] += seconds
    harness.router.receive_data(exchange, body[-1:], 0)
    harness.router.receive_data(exchange, b"", 0)
    harness.pump()
    harness.step(3)
    assert reply.status == status
    assert harness.done == (["ann"] if status == 200 else [])
    if status == 401:
        assert 'error="invalid_token"' in challenge(reply)
        assert harness.logged() == "POST tools/call refused with 401: the token has expired"


def test_grant_without_expiry_never_expires() -> None:
    harness = guarded()
    stream = harness.session(principal="ann").get()
    harness.wait(10_000)
    assert is_open(stream)


# -- Metadata --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [META, META + b"/mcp", META + b"/mcp/", META + b"?x=y"])
@pytest.mark.requirement("AG-4", "AR-2", "AR-16")
def test_metadata_needs_no_token(path: bytes) -> None:
    """Clients read it to learn where to get a token, from any web page and at either path."""
    harness = guarded()
    reply = harness.send(
        b"GET", [(b"host", b"mcp.example.com"), (b"origin", b"https://any.example")], target=path
    )
    assert reply.status == 200
    assert reply.headers[b"content-type"] == b"application/json"
    assert reply.headers[b"access-control-allow-origin"] == b"*"
    assert json.decode(reply.body)["resource"] == RESOURCE
    assert json.decode(reply.body)["authorization_servers"] == [ISSUER]
    head = harness.send(b"HEAD", [HOST], target=path)
    assert (head.status, head.body) == (200, b"")
    preflight = harness.send(b"OPTIONS", [HOST], target=path)
    assert preflight.status == 204
    assert preflight.headers[b"access-control-allow-origin"] == b"*"
    assert harness.send(b"POST", POST, b"{}", target=path).status == 405
    assert not harness.log


def test_route_at_the_path_of_metadata_is_served_in_its_place() -> None:
    endpoint = guarded().endpoint
    body = b"of the route"
    router = Router(
        {"/mcp": endpoint}, {META.decode(): lambda head: PlainResponse(200, body, "text/plain")}
    )
    exchange = router.begin(RequestHead(b"GET", META, [HOST]), 0)
    _, sent, *_ = exchange.actions_to_send()
    assert isinstance(sent, Body)
    assert sent.data == body


def published(*guards: OAuthResourceServer, path: bytes = META) -> Any:
    """Return the resource that a router of these servers publishes at `path`, or the status."""
    endpoints = {f"/{index}": AuthHarness(each).endpoint for index, each in enumerate(guards)}
    exchange = Router(endpoints).begin(RequestHead(b"GET", path, [HOST]), 0)
    head, *body = exchange.actions_to_send()
    assert isinstance(head, Head)
    return json.decode(body[0].data)["resource"] if head.status == 200 else head.status  # type: ignore[union-attr]


@pytest.mark.requirement("AR-2")
def test_metadata_of_several_resource_servers_is_at_their_own_paths() -> None:
    a, b = (OAuthResourceServer(f"https://h.example/{name}", [ISSUER], known) for name in "ab")
    root = OAuthResourceServer("https://h.example", [ISSUER], known)
    for each, name in ((a, b"/a"), (b, b"/b")):
        assert published(a, b, root, path=META + name) == each.resource
    # The root has the metadata of its own resource, or of the only resource.
    assert published(a, b) == 404
    assert published(a, root, b) == published(root) == root.resource
    assert published(a) == published(a, a) == a.resource


def test_metadata_conflict_of_two_guards_raises() -> None:
    a, b = (OAuthResourceServer(f"https://{host}.example/mcp", [ISSUER], known) for host in "ab")
    with pytest.raises(
        ValueError, match=r"two resource servers have their metadata at '/\.well-known/.*/mcp'"
    ):
        published(a, b)
    assert published(a, OAuthResourceServer(a.resource, [ISSUER], known)) == a.resource


def test_metadata_without_a_guard_is_not_served() -> None:
    assert RouterHarness().send(b"GET", [HOST], target=META).status == 404


def test_introspection_response_is_the_grant() -> None:
    verifier = IntrospectionVerifier(
        ISSUER,
        RESOURCE,
        endpoint="https://as.example.com/introspect",
        client_id="rs",
        client_secret=SECRET,
    )
    harness = AuthHarness(OAuthResourceServer(RESOURCE, [ISSUER], verifier))
    reply = harness.get(principal="opaque")
    assert reply.exchange.auth_check is not None
    response = {"active": True, "sub": "alice", "aud": RESOURCE, "iss": ISSUER, "exp": NOW + 60}
    harness.answer_auth_check(reply, keys_reply(response))
    assert reply.status == 200
