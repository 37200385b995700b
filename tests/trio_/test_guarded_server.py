"""A guarded server on trio: what its guard wants is done while the connection waits, and nothing that goes wrong there harms another."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from mcp_core.auth import FetchFailed, Grant, Guard, HttpReply, HttpRequest, JwtVerifier
from mcp_core.http import Admission
from mcp_core.registry import Context, Server
from mcp_trio import serve_http
from mcp_trio._admitting import Admitting
from tests.core.auth.minting import ISSUER, JWKS_URI, RESOURCE, keys_reply, token
from tests.core.helpers import E
from tests.fakes import authorization_server
from tests.fakes.authorization_server import AuthorizationServer
from tests.trio_.http_site import Answer, HttpWire, get
from tests.trio_.wire import PATIENCE

ANN = Grant("ann", "app", frozenset({"read"}))


def house() -> Server:
    server = Server("house")

    @server.tool
    def whoami(context: Context) -> str:
        """Who asks."""
        return context.principal

    @server.tool
    def erase() -> str:
        """What not everybody may."""
        raise AssertionError

    return server


def call(
    name: str = "whoami", *headers: str, auth: str = "Bearer ann", path: str = "/mcp", body: str = ""
) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": E,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": {}, "_meta": meta}
    data = body or json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    lines = [
        f"POST {path} HTTP/1.1",
        "host: localhost",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        f"mcp-protocol-version: {E}",
        "mcp-method: tools/call",
        f"mcp-name: {name}",
        f"content-length: {len(data)}",
        *headers,
    ]
    if auth:
        lines.append(f"authorization: {auth}")
    return ("\r\n".join([*lines, "", ""]) + data).encode()


def text(answer: Answer) -> str:
    assert answer.status == 200, answer
    return str(json.loads(answer.body)["result"]["content"][0]["text"])


def guard(verifier: Any, **options: Any) -> Guard:
    return Guard(RESOURCE, [ISSUER], verifier, scopes=["read"], tool_scopes={"erase": ["write"]}, **options)


Dial = Callable[[], Awaitable[HttpWire]]


@asynccontextmanager
async def serving(server: Any, auth: Any, **options: Any) -> AsyncIterator[Dial]:
    async with trio.open_nursery() as nursery:
        start: Any = partial(serve_http, server, auth=auth, **options)
        address = await nursery.start(start)

        async def dial() -> HttpWire:
            return HttpWire(await trio.open_tcp_stream(address.host, address.port))

        yield dial
        nursery.cancel_scope.cancel()


async def test_who_may_and_who_may_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcp_trio")
    async with serving(house(), guard({"ann": ANN}.get)) as dial:
        wire = await dial()
        assert text(await wire.ask(call())) == "ann"
        refused = await wire.ask(call(auth=""))
        assert refused.status == 401
        assert b"resource_metadata=" in refused.headers[b"www-authenticate"]
        assert (await wire.ask(call(auth="Bearer canary-77"))).status == 401
        forbidden = await wire.ask(call("erase"))
        assert forbidden.status == 403
        assert b'scope="read write"' in forbidden.headers[b"www-authenticate"]
        metadata = await wire.ask(get("/.well-known/oauth-protected-resource/mcp"))
        assert json.loads(metadata.body)["resource"] == RESOURCE
        assert text(await wire.ask(call())) == "ann"
        await wire.stream.aclose()
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "refused" in line] == [
        "POST refused with 401: an access token is needed, in an Authorization header",
        "POST refused with 401: the token is not good here",
        "POST tools/call refused with 403: the token has not all of the scopes that this takes: 'write' missing",
    ]
    assert "canary-77" not in caplog.text


class Slow:
    """A verifier that takes its time: until `go`."""

    def __init__(self) -> None:
        self.go = trio.Event()
        self.came, self.left = trio.Event(), trio.Event()
        self.asked = 0
        self.over: list[str] = []

    async def __call__(self, text: str) -> Grant | None:
        self.asked += 1
        self.came.set()
        try:
            await self.go.wait()
        except trio.Cancelled:
            self.over.append("cancelled")
            raise
        else:
            self.over.append("told")
        finally:
            self.left.set()
        if text == "fault":
            raise LookupError("canary-78")
        return {"ann": ANN}.get(text)


async def test_a_verifier_that_takes_its_time_holds_up_nobody_else() -> None:
    slow = Slow()
    servers = {"/mcp": house(), "/open": house()}
    async with serving(servers, {"/mcp": guard(slow)}) as dial:
        wire, other = await dial(), await dial()
        await wire.send(call() + call(auth="Bearer eve") + get("/.well-known/oauth-protected-resource"))
        assert text(await other.ask(call(auth="", path="/open"))) == ""
        assert slow.asked == 1
        slow.go.set()
        assert text(await wire.answer()) == "ann"
        assert (await wire.answer()).status == 401
        assert (await wire.answer(to=b"GET")).status == 200
        for each in (wire, other):
            await each.stream.aclose()


async def test_the_body_may_come_before_or_after() -> None:
    slow = Slow()
    async with serving(house(), guard(slow)) as dial:
        wire = await dial()
        whole = call()
        head, _, body = whole.partition(b"\r\n\r\n")
        await wire.send(head + b"\r\n\r\n" + body[:10])
        await slow.came.wait()
        slow.go.set()
        await slow.left.wait()
        await wire.send(body[10:])
        assert text(await wire.answer()) == "ann"
        await wire.stream.aclose()


async def test_who_waits_for_a_word_before_the_body_gets_it_once_he_may() -> None:
    slow = Slow()
    async with serving(house(), guard(slow)) as dial:
        wire = await dial()
        head, _, body = call("whoami", "expect: 100-continue").partition(b"\r\n\r\n")
        await wire.send(head + b"\r\n\r\n")
        await slow.came.wait()
        assert not wire.heard
        slow.go.set()
        assert await wire.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(body)
        assert text(await wire.answer()) == "ann"
        await wire.stream.aclose()
        # And who may not learns that instead.
        wire = await dial()
        head, _, _ = call("whoami", "expect: 100-continue", auth="Bearer eve").partition(b"\r\n\r\n")
        assert (await wire.ask(head + b"\r\n\r\n")).status == 401
        await wire.stream.aclose()


async def test_who_goes_meanwhile_takes_his_verifier_along() -> None:
    slow = Slow()
    async with serving(house(), guard(slow)) as dial:
        wire = await dial()
        await wire.send(call())
        await slow.came.wait()
        await wire.stream.aclose()
        with trio.fail_after(PATIENCE * 5):
            await slow.left.wait()
        assert slow.over == ["cancelled"]
        slow.go.set()
        wire = await dial()
        assert text(await wire.ask(call())) == "ann"
        await wire.stream.aclose()


async def test_a_verifier_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    slow = Slow()
    slow.go.set()
    async with serving(house(), guard(slow)) as dial:
        wire = await dial()
        answer = await wire.ask(call(auth="Bearer fault"))
        assert answer.status == 500
        assert b"canary" not in answer.body
        assert text(await wire.ask(call())) == "ann"
        await wire.stream.aclose()
    assert "LookupError" in caplog.text


async def test_a_server_that_stops_while_a_guard_is_asked() -> None:
    stop = trio.Event()
    slow = Slow()
    async with serving(house(), guard(slow), stop=stop, grace=0) as dial:
        wire = await dial()
        await wire.send(call())
        await slow.came.wait()
        stop.set()
        await trio.testing.wait_all_tasks_blocked()
        slow.go.set()
        assert (await wire.answer()).status == 503
        await wire.stream.aclose()


async def test_a_guard_for_what_is_not_served() -> None:
    with pytest.raises(ValueError, match="'/mpc', where nothing is served"):
        await serve_http(house(), auth={"/mpc": guard({}.get)})


# -- With an authorization server ----------------------------------------------------------------------------------------------


async def test_tokens_of_an_authorization_server() -> None:
    async with trio.open_nursery() as nursery:
        issuer: AuthorizationServer = await nursery.start(authorization_server.serve)
        keeper = guard(JwtVerifier(issuer.issuer, RESOURCE))
        async with serving(house(), keeper) as dial:
            good = call(auth=f"Bearer {issuer.token(RESOURCE, 'read')}")
            wires = [await dial() for _ in range(5)]
            for wire in wires:
                await wire.send(good)
            for wire in wires:
                assert text(await wire.answer()) == f"{issuer.issuer}#sub:alice"
            # All of them waited for the same two documents.
            assert issuer.log == ["GET /.well-known/oauth-authorization-server", "GET /jwks"]
            bad = {
                issuer.token("https://other.example/mcp", "read"): 401,
                issuer.token(RESOURCE, "read", exp=1): 401,
                issuer.token(RESOURCE, "read", iss="https://other.example"): 401,
                AuthorizationServer(issuer.issuer).token(RESOURCE, "read"): 401,  # a stranger's key
                issuer.token(RESOURCE, "nothing"): 403,
            }
            for each, status in bad.items():
                assert (await wires[0].ask(call(auth=f"Bearer {each}"))).status == status
            for wire in wires:
                await wire.stream.aclose()
        nursery.cancel_scope.cancel()


async def test_an_authorization_server_that_does_not_answer() -> None:
    async with serving(house(), guard(JwtVerifier("http://127.0.0.1:1", RESOURCE))) as dial:
        wire = await dial()
        issuer = AuthorizationServer("http://127.0.0.1:1")
        answer = await wire.ask(call(auth=f"Bearer {issuer.token(RESOURCE, 'read')}"))
        assert answer.status == 503
        assert b"127.0.0.1:1" not in answer.body
        await wire.stream.aclose()


# -- Fetches -----------------------------------------------------------------------------------------------------------


class Waiting:
    """An admission that wants `steps`, and hears `told`."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.told: list[Any] = []

    @property
    def step(self) -> Any:
        return self.steps[0] if self.steps else None

    def send(self, reply: Any, now: float) -> None:
        del self.steps[0]
        self.told.append(reply)

    def throw(self, exc: BaseException, now: float) -> None:
        self.send(repr(exc), now)

    def give_up(self, now: float) -> None:
        if self.steps:
            self.steps.clear()
            self.told.append("gave up")

    done_by = Admission.done_by


class Fetching:
    """A fetcher that answers when it is told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.urls: list[str] = []
        self.go = trio.Event()

    async def __call__(self, request: HttpRequest) -> HttpReply:
        self.urls.append(request.url)
        await self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        reply: HttpReply = self.answer
        return reply


def jwks_step() -> Any:
    flow = JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI).verify(token(), 1_800_000_000.0)
    return next(flow)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (keys_reply(), keys_reply()),
        (FetchFailed("nobody is there"), "FetchFailed('nobody is there')"),
        (KeyError("x"), "FetchFailed('it could not be fetched')"),
    ],
)
async def test_what_several_wait_for_is_fetched_once(answer: Any, told: Any) -> None:
    fetch = Fetching(answer)
    step = jwks_step()
    ann, bob, gone = (Waiting(step) for _ in range(3))
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            admitting = Admitting(nursery, fetch)
            with trio.move_on_after(0) as going:
                await admitting.run(gone)  # type: ignore[arg-type]
            assert going.cancelled_caught
            run: Any = admitting.run
            nursery.start_soon(run, ann)
            nursery.start_soon(run, bob)
            await trio.testing.wait_all_tasks_blocked()
            fetch.go.set()
    assert not scope.cancelled_caught
    assert fetch.urls == [JWKS_URI]
    assert [each if isinstance(each, str) else each.status for each in ann.told + bob.told] == [
        told if isinstance(told, str) else told.status
    ] * 2
    assert gone.told == []
    assert repr(admitting) == "<Admitting, 0 fetches>"


async def test_it_does_not_wait_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    waiting = Waiting(jwks_step())
    async with trio.open_nursery() as nursery:
        await Admitting(nursery, Fetching(None)).run(waiting)  # type: ignore[arg-type]
        nursery.cancel_scope.cancel()
    assert waiting.told == ["gave up"]
    assert trio.current_time() == 20.0
