"""An endpoint with authorization: grants, denials, and no processing before the decision."""

from __future__ import annotations

import logging
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
from mcp_core.http import Endpoint, EndpointAuth, Head, HostOriginPolicy, RequestHead, Router
from mcp_core.http.server._auth import AUTHORIZED_VERBS
from mcp_core.registry import Context, Server
from mcp_core.revisions._methods import METHODS
from mcp_core.runtime import run_auth_check
from mcp_core.types import InputRequiredResult
from tests.core.auth.minting import ISSUER, JWKS_URI, NOW, RESOURCE, keys_reply, token
from tests.core.http.site import (
    GET,
    HOST,
    POST,
    D,
    E,
    Reply,
    Talk,
    Visit,
    _Pause,
    initialize,
    meta,
    request,
)
from tests.core.runtime.stepping import result_of

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


def house() -> Server:
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
        await _Pause()
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


class Gatehouse(Talk):
    """A talk with a guarded server. `log` is what was reported."""

    def __init__(
        self, guard: Any, wall_time: Callable[[], float] = lambda: NOW, **options: Any
    ) -> None:
        self.log: list[tuple[str, BaseException | None]] = []
        self.levels: list[int] = []
        door = EndpointAuth(guard, wall_time, self._note)
        super().__init__(house(), door=door, **options)

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
    options.setdefault("tool_scopes", {"erase": [WRITE]})
    options.setdefault("resource_scopes", {"memo://secret": [WRITE]})
    return OAuthResourceServer(RESOURCE, [ISSUER], verifier, **options)


def guarded(verifier: Any = known, **options: Any) -> Gatehouse:
    return Gatehouse(guard(verifier), **options)


def challenge(reply: Reply) -> str:
    return reply.headers[b"www-authenticate"].decode()


# -- At the head -----------------------------------------------------------------------------------


def test_valid_token_is_served_with_its_principal() -> None:
    talk = guarded()
    assert talk.tool("whoami", "ann").message_text == f"ann {READ} {WRITE} app gold"
    visit = talk.session(principal="ann")
    assert visit.call(1, "whoami").message_text == f"ann {READ} {WRITE} app gold"
    # Of the same user, a token that may less: what counts is the one of this request.
    visit.principal = "ann-reads"
    assert visit.call(2, "whoami").message_text == f"ann {READ} app None"
    assert not talk.log


@pytest.mark.requirement("AG-1")
def test_unguarded_request_has_no_principal() -> None:
    server = Server("open")

    @server.tool
    def who(context: Context) -> str:
        """Return the principal."""
        return f"{context.principal!r} {context.grant}"

    assert Talk(server).call(1, "who").message_text == "'' None"


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
    talk = guarded()
    verb, headers, body = HEADS[what]
    reply = talk.send(verb, headers, body)
    assert reply.status == 401
    assert f'resource_metadata="https://mcp.example.com{META.decode()}/mcp"' in challenge(reply)
    assert "error" not in challenge(reply)
    assert talk.logged().startswith(f"{verb.decode()} refused with 401: ")
    assert talk.levels == [logging.INFO]
    assert not talk.seen
    assert not talk.endpoint.sessions


@pytest.mark.parametrize("bad", ["stolen-" + SECRET, "ann ann", "ann,"])
def test_bad_token_is_denied_and_not_logged(bad: str) -> None:
    talk = guarded()
    reply = talk.tool("whoami", bad)
    assert reply.status in (400, 401)
    assert "error=" in challenge(reply)
    assert SECRET not in talk.logged()
    assert SECRET.encode() not in reply.body
    assert not talk.seen


def test_token_in_the_query_or_the_body_is_ignored() -> None:
    talk = guarded()
    body = json.encode({**request(1, "ping"), "access_token": "ann"})
    assert talk.send(b"POST", POST, body, b"/mcp?access_token=ann").status == 401
    assert talk.send(b"POST", [*POST, (b"cookie", b"access_token=ann")], body).status == 401


def test_host_and_origin_are_checked_before_the_token() -> None:
    talk = guarded(gate=HostOriginPolicy("127.0.0.1", origins=["https://app.example.com"]))
    strange = [(b"host", b"evil.example"), *POST[1:], (b"authorization", b"Bearer ann")]
    assert talk.send(b"POST", strange, b"{}").status == 421
    assert talk.post({}, (b"origin", b"https://evil.example"), principal="ann").status == 403
    assert [line.partition(":")[0] for line, _ in talk.log] == [
        "POST refused with 421",
        "POST refused with 403",
    ]
    # A page that may ask can read the challenge.
    reply = talk.post({}, (b"origin", b"https://app.example.com"))
    assert reply.status == 401
    assert b"www-authenticate" in reply.headers[b"access-control-expose-headers"]


def test_other_verbs_need_no_token() -> None:
    talk = guarded()
    assert talk.send(b"OPTIONS", [HOST]).status == 204
    assert talk.send(b"PUT", [HOST]).status == 405
    assert {b"GET", b"POST", b"DELETE"} == AUTHORIZED_VERBS
    assert not talk.log


@pytest.mark.requirement("AR-13")
def test_required_scopes_apply_to_every_request() -> None:
    talk = guarded()
    visit = talk.session(principal="ann")
    for verb in (b"GET", b"DELETE", b"POST"):
        reply = talk.send(
            verb, [*(POST if verb == b"POST" else GET), *visit.headers], b"{}", principal="ann-none"
        )
        assert reply.status == 403, verb
        assert 'error="insufficient_scope"' in challenge(reply)
        assert f'scope="{READ}"' in challenge(reply)
        assert f"'{READ}' missing" in talk.logged()
    assert visit.call(1, "whoami").status == 200


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
    talk = guarded(Later())
    reply = talk.tool("whoami", "ann")
    exchange = reply.exchange
    admission = exchange.auth_check
    assert admission is not None
    assert admission.step == "a step"
    assert "waiting" in repr(admission)
    assert not exchange.reading
    assert not talk.seen
    assert reply.status == 0
    talk.judge(reply, "ann")
    assert admission.step is None
    assert reply.exchange.reading
    talk.site.receive_data(
        exchange,
        json.encode(request(1, "tools/call", {"name": "whoami", "_meta": meta()})),
        talk.now,
    )
    talk.site.receive_data(exchange, b"", talk.now)
    talk.pump()
    assert reply.message_text.startswith("ann ")


def test_listen_stream_waits_for_the_grant() -> None:
    talk = guarded(Later())
    reply = talk.get(principal="ann")
    assert reply.status == 0
    assert not talk.endpoint.sessions
    talk.judge(reply, "ann")
    assert reply.status == 200
    (session,) = talk.endpoint.sessions.values()
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
    talk = guarded(Later())
    reply = talk.tool("whoami", "ann")
    talk.judge(reply, failure)
    assert reply.status == status
    assert SECRET.encode() not in reply.body
    ((text, exc),) = talk.log
    assert f"refused with {status}" in text
    assert (exc is failure) is (status == 500)
    assert talk.levels == [logging.ERROR if status == 500 else logging.WARNING]
    assert not talk.seen
    assert talk.endpoint.idle


def test_disconnect_during_the_check_ends_the_exchange() -> None:
    talk = guarded(Later())
    reply = talk.get(principal="ann")
    admission = reply.exchange.auth_check
    assert admission is not None
    talk.close_after(reply)
    assert reply.exchange.auth_check is None
    admission.send("ann", talk.now)
    talk.pump()
    assert not talk.endpoint.sessions
    assert reply.status == 0
    other = talk.get(principal="ann")
    admission = other.exchange.auth_check
    assert admission is not None
    talk.close_after(other)
    admission.throw(KeyError(), talk.now)
    assert other.status == 0


class NoGuard:
    """An invalid resource server: it returns neither a grant nor a denial."""

    metadata_paths = ("/nowhere",)

    def metadata(self) -> bytes:
        return b"{}"

    def admit(self, *asked: Any) -> Generator[Any, Any, Any]:
        return (yield "a step")


@pytest.mark.parametrize("outcome", [None, False, 7])
def test_invalid_result_of_the_check_denies_access(outcome: Any) -> None:
    talk = Gatehouse(NoGuard())
    reply = talk.get(principal="ann")
    talk.judge(reply, outcome)
    assert reply.status == 500
    assert talk.levels == [logging.ERROR]
    assert not talk.endpoint.sessions


def test_own_fault_after_the_grant_ends_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = guarded(Later())
    reply = talk.get(principal="ann")
    with monkeypatch.context() as broken:
        broken.setattr(Endpoint, "_handle_head", lambda *anything: 1 / 0)
        talk.judge(reply, "ann")
    assert reply.status == 500
    assert isinstance(talk.log[0][1], ZeroDivisionError)
    reply = talk.get(principal="ann")
    talk.judge(reply, "ann")
    assert reply.status == 200


def test_check_that_takes_too_long_gets_503() -> None:
    talk = guarded(Later())
    reply = talk.get(principal="ann")
    admission = reply.exchange.auth_check
    assert admission is not None
    for _ in range(2):
        admission.time_out(talk.now)
        talk.pump()
    assert reply.status == 503
    assert reply.headers[b"retry-after"]
    assert "took too long" in talk.logged()
    assert talk.levels == [logging.WARNING]


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_shutdown_rejects_requests_that_were_granted(when: str) -> None:
    talk = guarded(Later())
    if when == "before":
        talk.site.shutdown()
    reply = talk.get(principal="ann")
    talk.site.close()
    talk.judge(reply, "ann")
    assert reply.status == 503


@pytest.mark.parametrize("raised", [ZeroDivisionError, SystemExit])
def test_verifier_exception_denies_access(raised: type[BaseException]) -> None:
    def broken(text: str) -> Grant:
        raise raised

    talk = guarded(broken)
    assert talk.tool("whoami", "ann").status == 500
    ((text, exc),) = talk.log
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


@pytest.mark.parametrize(("told", "status"), [("ann", 200), (VerifierUnavailable("no"), 503)])
def test_steps_can_be_awaited(told: Any, status: int) -> None:
    talk = guarded(Later())
    reply = talk.get(principal="ann")
    admission = reply.exchange.auth_check
    assert admission is not None
    result_of(run_auth_check(admission, Doer(told), lambda: talk.now))
    talk.pump()
    assert reply.status == status
    assert "done" in repr(admission)


def test_check_without_a_fetch_function_fails() -> None:
    talk = guarded(Later())
    reply = talk.get(principal="ann")
    assert reply.exchange.auth_check is not None
    result_of(run_auth_check(reply.exchange.auth_check, None, lambda: talk.now))
    talk.pump()
    assert reply.status == 500
    ((_, exc),) = talk.log
    assert "sends no HTTP requests for authorization" in str(exc)


# -- With the verifiers of the package -------------------------------------------------------------


def test_signed_token_is_verified() -> None:
    talk = Gatehouse(
        OAuthResourceServer(RESOURCE, [ISSUER], JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI))
    )
    reply = talk.get(principal=token())
    admission = reply.exchange.auth_check
    assert admission is not None
    assert admission.step.request.url == JWKS_URI
    talk.judge(reply, keys_reply())
    assert reply.status == 200
    # Now its keys are known.
    again = talk.tool("whoami", token())
    assert again.message_text.startswith(f"{ISSUER}#sub:alice files:read files:write app")
    assert talk.tool("whoami", token(aud="https://other.example")).status == 401
    assert talk.tool("whoami", token(exp=NOW - 3600)).status == 401


def test_async_verifier_is_awaited() -> None:
    async def verify(text: str) -> Grant | None:
        return GRANTS.get(text)

    talk = guarded(verify)
    for who, status in (("ann", 200), ("eve", 401)):
        reply = talk.get(principal=who)
        admission = reply.exchange.auth_check
        assert admission is not None
        assert isinstance(admission.step, Await)
        result_of(run_auth_check(admission, None, lambda: 0.0))
        talk.pump()
        assert reply.status == status


# -- In the body -----------------------------------------------------------------------------------

FORBIDDEN: dict[str, Callable[[Gatehouse], Reply]] = {
    "tool": lambda talk: talk.tool("erase", "ann-reads", id=7),
    "resource": lambda talk: talk.ask("resources/read", "ann-reads", id=7, uri="memo://secret"),
    "resource in other letters": lambda talk: talk.ask(
        "resources/read", "ann-reads", id=7, uri="memo://%73ecret"
    ),
    "subscription": lambda talk: talk.ask(
        "subscriptions/listen",
        "ann-reads",
        id=7,
        notifications={"resourceSubscriptions": ["memo://a", "memo://secret"]},
    ),
}


@pytest.mark.parametrize("reply", ["auto", "sse", "json"])
@pytest.mark.parametrize("what", FORBIDDEN)
def test_insufficient_scope_is_denied_before_processing(what: str, reply: str) -> None:
    talk = guarded(reply=reply)
    refused = FORBIDDEN[what](talk)
    assert refused.status == 403
    assert not refused.is_stream
    assert f'scope="{READ} {WRITE}"' in challenge(refused)
    assert refused.message["id"] == 7
    assert refused.exchange.mcp_method
    assert f"'{WRITE}' missing" in talk.logged()
    assert not talk.seen
    assert not talk.done


def test_sufficient_scopes_are_granted() -> None:
    talk = guarded()
    talk.tool("erase", "ann")
    talk.step(3)
    assert talk.done == ["ann"]
    assert SECRET.encode() in talk.ask("resources/read", "ann", uri="memo://secret").body
    assert talk.ask("resources/read", "ann-reads", uri="memo://a").status == 200
    assert not talk.log


@pytest.mark.parametrize("version", [B, D])
def test_scopes_are_checked_in_a_session(version: str) -> None:
    talk = guarded()
    visit = talk.session(version, principal="ann")
    visit.principal = "ann-reads"
    assert visit.call(1, "erase").status == 403
    assert visit.post(request(2, "resources/subscribe", {"uri": "memo://secret"})).status == 403
    assert visit.post(request(3, "resources/subscribe", {"uri": "memo://a"})).status == 200
    assert visit.call(1, "whoami").status == 200
    assert not talk.done


def test_batch_with_a_denied_member_is_denied_as_a_whole() -> None:
    talk = guarded()
    visit = talk.session(B, principal="ann")
    visit.principal = "ann-reads"
    batch = [
        request(1, "tools/call", {"name": "whoami"}),
        request(2, "tools/call", {"name": "erase"}),
    ]
    seen = len(talk.seen)
    assert visit.post(batch).status == 403
    assert len(talk.seen) == seen
    assert visit.post(batch[:1]).status == 200


def test_scopes_are_checked_in_a_legacy_sse_session() -> None:
    talk = guarded()
    opened = talk.get(principal="ann")
    target = opened.events[0][1]
    talk.send(b"POST", POST, json.encode(initialize("2024-11-05")), target, principal="ann")
    talk.send(
        b"POST",
        POST,
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        target,
        principal="ann",
    )
    call = json.encode(request(1, "tools/call", {"name": "erase", "arguments": {}}))
    assert talk.send(b"POST", POST, call, target, principal="ann-reads").status == 403
    assert talk.send(b"POST", POST, call, target, principal="bob").status == 404
    assert talk.send(b"POST", POST, call, target).status == 401
    assert talk.send(b"POST", POST, call, target, principal="ann").status == 202
    talk.step(3)
    assert talk.done == ["ann"]


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
    talk, unguarded = guarded(), Talk(house())
    assert talk.post(body, principal="none").status == 403
    mine, theirs = talk.post(body, principal="ann"), unguarded.post(body)
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

    talk = Gatehouse(guard(tool_scopes=scopes))
    assert talk.tool("whoami", "ann").status == 500
    ((text, exc),) = talk.log
    assert isinstance(exc, raised)
    assert "500" in text
    assert not talk.seen


class Custom(Struct):
    """Params of a method of the user's."""

    what: str = ""


def test_unknown_method_needs_the_base_scopes_only() -> None:
    talk = guarded()

    @talk.server.method("x/y", params=Custom)
    def own(params: Custom) -> dict[str, str]:
        """Custom."""
        return {"what": params.what}

    assert talk.ask("x/y", "ann-reads", what="it").message["result"]["what"] == "it"
    assert talk.ask("x/y", "none", what="it").status == 403


# -- Whose it is -----------------------------------------------------------------------------------


@pytest.mark.requirement("AR-13", "AR-17", "AU-6")
def test_session_belongs_to_its_principal_not_to_its_token() -> None:
    talk = guarded()
    ann = talk.session(principal="ann")
    assert Visit(talk, ann.id, D, "bob").call(1, "whoami").status == 404
    assert Visit(talk, ann.id, D, "").call(1, "whoami").status == 401
    assert Visit(talk, ann.id, D, "ann-reads").call(1, "whoami").status == 200
    assert Visit(talk, ann.id, D, "bob").delete().status == 404
    assert ann.call(2, "whoami").status == 200
    assert [line for line, _ in talk.log if "404" in line] == [
        "refused with 404: the session belongs to another principal"
    ] * 2


@pytest.mark.requirement("AR-17", "AU-7", "ELIC-20")
def test_request_state_belongs_to_its_principal() -> None:
    talk = guarded()
    first = talk.tool("again", "ann")
    state = first.message["result"]["requestState"]
    assert talk.tool("again", "ann-reads", requestState=state).message_text == "ann again"
    stolen = talk.tool("again", "bob", requestState=state)
    assert "error" in stolen.message
    assert "bob again" not in str(stolen.message)
    assert not talk.log


# -- For how long ----------------------------------------------------------------------------------


def fleeting(text: str) -> Grant | None:
    """Tokens that are good for as many seconds as they say."""
    name, _, seconds = text.partition("-")
    return Grant(name, "app", frozenset({READ, WRITE}), NOW + float(seconds), leeway=5)


LISTEN: dict[str, Any] = {"notifications": {"toolsListChanged": True}}


def stands(reply: Reply) -> bool:
    return not reply.ended


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("what", ["listen", "GET"])
@pytest.mark.requirement("AR-13")
def test_long_lived_stream_ends_when_the_token_expires(what: str, busy: bool) -> None:
    talk = guarded(fleeting)
    visit = talk.session(principal="ann-60")
    stream = visit.get() if what == "GET" else talk.ask("subscriptions/listen", "ann-60", **LISTEN)
    for _ in range(64):
        talk.wait(1)
        if busy:
            assert talk.tool("whoami", "bob-900").status == 200
            talk.server.changed(tools=True)
            talk.pump()
    assert stream.is_stream
    assert stands(stream)
    talk.wait(1 if busy else 15)
    if busy:
        assert talk.tool("whoami", "bob-900").status == 200
    talk.server.changed(tools=True)
    talk.pump()
    assert not stands(stream)
    assert not [each for each in stream.messages if "result" in each]
    assert not talk.endpoint.one_shots
    # Its client comes back, and goes on where it was.
    if what == "GET":
        again = visit.get(stream.last_id)
        assert again.status == 200
        assert stands(again)
        assert visit.delete().status == 204
    assert talk.endpoint.idle


def test_running_call_outlives_the_token() -> None:
    talk = guarded(fleeting)
    visit = talk.session(principal="ann-60")
    lone, called = talk.tool("slow", "ann-60"), visit.call(1, "slow", progress=True)
    talk.wait(300)
    assert lone.is_stream
    talk.step(3)
    assert (lone.message_text, called.message_text) == ("done", "done")
    # Also after a reconnect.
    called = visit.call(2, "slow")
    talk.wait(20)
    talk.close_after(called)
    again = visit.get(called.last_id)
    talk.wait(300)
    assert stands(again)
    talk.step(3)
    assert again.message_text == "done"


def test_legacy_sse_stream_is_extended_by_newer_tokens() -> None:
    talk = guarded(fleeting)
    opened = talk.get(principal="ann-60")
    target = opened.events[0][1]
    talk.send(b"POST", POST, json.encode(initialize("2024-11-05")), target, principal="ann-60")
    ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    talk.send(b"POST", POST, ready, target, principal="ann-120")
    talk.wait(110)
    assert stands(opened)
    call = json.encode(request(1, "tools/call", {"name": "slow"}))
    assert talk.send(b"POST", POST, call, target, principal="ann-130").status == 202
    talk.wait(200)
    assert stands(opened)  # what is answered is answered there
    talk.step(3)
    assert opened.messages[-1]["id"] == 1
    talk.wait(15)
    assert not stands(opened)
    assert not talk.endpoint.sessions


@pytest.mark.parametrize(("seconds", "status"), [(64, 200), (65, 401)])
@pytest.mark.requirement("AR-10")
def test_body_that_outlasts_its_token_is_denied(seconds: int, status: int) -> None:
    clock = [NOW]
    talk = Gatehouse(guard(fleeting), wall_time=lambda: clock[0])
    body = json.encode(
        request(1, "tools/call", {"name": "erase", "arguments": {}, "_meta": meta()})
    )
    headers = [*POST, (b"authorization", b"Bearer ann-60"), (b"mcp-protocol-version", E.encode())]
    headers += [(b"mcp-method", b"tools/call"), (b"mcp-name", b"erase")]
    exchange = talk.site.begin(RequestHead(b"POST", b"/mcp", headers), 0)
    reply = talk.replies[exchange] = Reply(exchange)
    talk.site.receive_data(exchange, body[:-1], 0)
    clock[0] += seconds
    talk.site.receive_data(exchange, body[-1:], 0)
    talk.site.receive_data(exchange, b"", 0)
    talk.pump()
    talk.step(3)
    assert reply.status == status
    assert talk.done == (["ann"] if status == 200 else [])
    if status == 401:
        assert 'error="invalid_token"' in challenge(reply)
        assert talk.logged() == "POST tools/call refused with 401: the token has expired"


def test_grant_without_expiry_never_expires() -> None:
    talk = guarded()
    stream = talk.session(principal="ann").get()
    talk.wait(10_000)
    assert stands(stream)


# -- Metadata --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [META, META + b"/mcp", META + b"/mcp/", META + b"?x=y"])
@pytest.mark.requirement("AG-4", "AR-2", "AR-16")
def test_metadata_needs_no_token(path: bytes) -> None:
    talk = guarded()
    reply = talk.send(
        b"GET", [(b"host", b"mcp.example.com"), (b"origin", b"https://any.example")], target=path
    )
    assert reply.status == 200
    assert reply.headers[b"content-type"] == b"application/json"
    assert reply.headers[b"access-control-allow-origin"] == b"*"
    assert json.decode(reply.body)["resource"] == RESOURCE
    assert json.decode(reply.body)["authorization_servers"] == [ISSUER]
    head = talk.send(b"HEAD", [HOST], target=path)
    assert (head.status, head.body) == (200, b"")
    preflight = talk.send(b"OPTIONS", [HOST], target=path)
    assert preflight.status == 204
    assert preflight.headers[b"access-control-allow-origin"] == b"*"
    assert talk.send(b"POST", POST, b"{}", target=path).status == 405
    assert not talk.log


def published(*guards: OAuthResourceServer, path: bytes = META) -> Any:
    """Return the resource that a router of these servers publishes at `path`, or the status."""
    endpoints = {f"/{index}": Gatehouse(each).endpoint for index, each in enumerate(guards)}
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
    assert Talk().send(b"GET", [HOST], target=META).status == 404


def test_introspection_response_is_the_grant() -> None:
    verifier = IntrospectionVerifier(
        ISSUER,
        RESOURCE,
        endpoint="https://as.example.com/introspect",
        client_id="rs",
        client_secret=SECRET,
    )
    talk = Gatehouse(OAuthResourceServer(RESOURCE, [ISSUER], verifier))
    reply = talk.get(principal="opaque")
    assert reply.exchange.auth_check is not None
    said = {"active": True, "sub": "alice", "aud": RESOURCE, "iss": ISSUER, "exp": NOW + 60}
    talk.judge(reply, keys_reply(said))
    assert reply.status == 200
