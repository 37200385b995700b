"""A server with authorization: checks wait without blocking others, and failures stay isolated."""

from __future__ import annotations

import itertools
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_core.auth import (
    ApiKeys,
    Await,
    Fetch,
    FetchFailed,
    Grant,
    HttpRequest,
    HttpResponse,
    JwtVerifier,
    OAuthResourceServer,
)
from mcp_core.http import (
    Endpoint,
    EndpointAuth,
    Exchange,
    HostOriginPolicy,
    HttpOptions,
    RequestHead,
    Router,
)
from mcp_core.registry import Context, Server
from mcp_trio import connect_http, serve_http
from mcp_trio._runtime import SYSTEM_SOURCES
from mcp_trio.http_client._h11_connection import H11ClientConnection
from mcp_trio.http_server._auth import AuthStepRunner
from mcp_trio.http_server._driver import HttpServerDriver
from tests.core.auth.minting import ISSUER, JWKS_URI, RESOURCE, keys_reply, token
from tests.fakes import authorization_server
from tests.fakes.authorization_server import AuthorizationServer
from tests.harness.jsonrpc import E
from tests.harness.wire.http1_client import Answer, HttpWire, get
from tests.harness.wire.http1_server import MemoryConnector
from tests.harness.wire.http_session import served_over_http
from tests.harness.wire.lines import ERAS
from tests.harness.world.waiting import patience

ANN = Grant("ann", "app", frozenset({"read"}))


def scoped_server() -> Server:
    server = Server("house")

    @server.tool
    def whoami(context: Context) -> str:
        """Return the principal."""
        return context.principal

    @server.tool
    def erase() -> str:
        """A tool that requires a scope."""
        raise AssertionError

    return server


def call(
    name: str = "whoami",
    *headers: str,
    auth: str = "Bearer ann",
    path: str = "/mcp",
    body: str = "",
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


def guard(verifier: Any, **options: Any) -> OAuthResourceServer:
    return OAuthResourceServer(
        RESOURCE, [ISSUER], verifier, scopes=["read"], tool_scopes={"erase": ["write"]}, **options
    )


class IgnoredWakeups:
    """The token that a driver gives to an exchange."""

    def wake(self) -> None:
        pass


def endpoint_behind(auth: EndpointAuth) -> Endpoint:
    server = scoped_server()
    return Endpoint(
        server.config,
        HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1")),
        entropy=bytes,
        param_headers=server.param_headers,
        auth=auth,
    )


def begin(site: Router, bearer: str, poked: IgnoredWakeups) -> Exchange:
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {bearer}".encode())]
    return site.begin(RequestHead(b"POST", b"/mcp", headers), trio.current_time(), token=poked)


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


async def test_authorized_server_checks_token_and_scopes(caplog: pytest.LogCaptureFixture) -> None:
    """Each refusal names the metadata or the scopes; the log has the reason, but no token."""
    caplog.set_level(logging.INFO, "mcp_trio")
    async with serving(scoped_server(), guard({"ann": ANN}.get)) as dial:
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
        "POST refused with 401: the token is not accepted here",
        (
            "POST tools/call refused with 403: the token lacks scopes that this request needs:"
            " 'write' missing"
        ),
    ]
    assert "canary-77" not in caplog.text


class StalledVerifier:
    """A verifier that waits for `go`."""

    def __init__(self) -> None:
        self.go = trio.Event()
        self.started, self.left = trio.Event(), trio.Event()
        self.calls = 0
        self.over: list[str] = []

    async def __call__(self, text: str) -> Grant | None:
        self.calls += 1
        self.started.set()
        try:
            await self.go.wait()
        except trio.Cancelled:
            self.over.append("cancelled")
            raise
        else:
            self.over.append("released")
        finally:
            self.left.set()
        if text == "fault":
            raise LookupError("text-78")
        return {"ann": ANN}.get(text)


async def test_token_check_stalled_does_not_block_other_requests() -> None:
    """The identity provider hangs: only requests on that connection wait, in their order."""
    slow = StalledVerifier()
    servers = {"/mcp": scoped_server(), "/open": scoped_server()}
    async with serving(servers, {"/mcp": guard(slow), "/open": None}) as dial:
        wire, other = await dial(), await dial()
        await wire.send(
            call() + call(auth="Bearer eve") + get("/.well-known/oauth-protected-resource")
        )
        assert text(await other.ask(call(auth="", path="/open"))) == ""
        assert slow.calls == 1
        slow.go.set()
        assert text(await wire.answer()) == "ann"
        assert (await wire.answer()).status == 401
        assert (await wire.answer(to=b"GET")).status == 200
        for each in (wire, other):
            await each.stream.aclose()


async def test_token_check_body_may_arrive_before_or_after() -> None:
    slow = StalledVerifier()
    async with serving(scoped_server(), guard(slow)) as dial:
        wire = await dial()
        whole = call()
        head, _, body = whole.partition(b"\r\n\r\n")
        await wire.send(head + b"\r\n\r\n" + body[:10])
        await slow.started.wait()
        slow.go.set()
        await slow.left.wait()
        await wire.send(body[10:])
        assert text(await wire.answer()) == "ann"
        await wire.stream.aclose()


async def test_token_check_precedes_100_continue() -> None:
    """A client without a valid token needn't upload its body."""
    slow = StalledVerifier()
    async with serving(scoped_server(), guard(slow)) as dial:
        wire = await dial()
        head, _, body = call("whoami", "expect: 100-continue").partition(b"\r\n\r\n")
        await wire.send(head + b"\r\n\r\n")
        await slow.started.wait()
        assert not wire.buffer
        slow.go.set()
        assert await wire.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(body)
        assert text(await wire.answer()) == "ann"
        await wire.stream.aclose()
        # A client that is not authorized gets the error response instead.
        wire = await dial()
        head, _, _ = call("whoami", "expect: 100-continue", auth="Bearer eve").partition(
            b"\r\n\r\n"
        )
        assert (await wire.ask(head + b"\r\n\r\n")).status == 401
        await wire.stream.aclose()


async def test_token_check_is_cancelled_when_the_client_disconnects() -> None:
    slow = StalledVerifier()
    async with serving(scoped_server(), guard(slow)) as dial:
        wire = await dial()
        await wire.send(call())
        await slow.started.wait()
        await wire.stream.aclose()
        with trio.fail_after(patience()):
            await slow.left.wait()
        assert slow.over == ["cancelled"]
        slow.go.set()
        wire = await dial()
        assert text(await wire.ask(call())) == "ann"
        await wire.stream.aclose()


async def test_token_check_failure_is_a_500_without_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow = StalledVerifier()
    slow.go.set()
    async with serving(scoped_server(), guard(slow)) as dial:
        wire = await dial()
        answer = await wire.ask(call(auth="Bearer fault"))
        assert answer.status == 500
        assert b"text-78" not in answer.body
        assert text(await wire.ask(call())) == "ann"
        await wire.stream.aclose()
    assert "LookupError" in caplog.text


async def test_token_check_during_shutdown_is_answered_503() -> None:
    stop = trio.Event()
    slow = StalledVerifier()
    async with serving(scoped_server(), guard(slow), stop=stop, grace=0) as dial:
        wire = await dial()
        await wire.send(call())
        await slow.started.wait()
        stop.set()
        await trio.testing.wait_all_tasks_blocked()
        slow.go.set()
        assert (await wire.answer()).status == 503
        await wire.stream.aclose()


async def test_serve_http_auth_for_an_unknown_path_raises() -> None:
    with pytest.raises(ValueError, match="'/mpc', where nothing is served"):
        await serve_http(scoped_server(), auth={"/mpc": guard({}.get)})


async def test_serve_http_auth_without_entry_for_a_path_raises() -> None:
    servers = {"/mcp": scoped_server(), "/admin": scoped_server()}
    with pytest.raises(ValueError, match="no entry for '/admin': give None"):
        await serve_http(servers, auth={"/mcp": guard({}.get)})


async def test_serve_http_api_keys_need_no_issuer(caplog: pytest.LogCaptureFixture) -> None:
    """A login can't help, so there is no metadata, and our own client explains the refusal."""
    caplog.set_level(logging.INFO, "mcp_trio")
    keys = ApiKeys(
        {"ann": "CANARY-ann-0123456789"},
        granted_scopes={"ann": ["read"]},
        tool_scopes={"erase": ["write"]},
    )
    async with serving(scoped_server(), keys) as dial:
        wire = await dial()
        assert text(await wire.ask(call(auth="Bearer CANARY-ann-0123456789"))) == "ann"
        missing = await wire.ask(call(auth=""))
        assert (missing.status, missing.headers[b"www-authenticate"]) == (401, b"Bearer")
        refused = await wire.ask(call(auth="Bearer CANARY-eve-0123456789"))
        assert b"the API key was refused" in refused.headers[b"www-authenticate"]
        assert b"the API key was refused" in refused.body
        forbidden = await wire.ask(call("erase", auth="Bearer CANARY-ann-0123456789"))
        assert forbidden.status == 403
        assert forbidden.headers[b"www-authenticate"].endswith(b', scope="write"')
        found = await wire.ask(get("/.well-known/oauth-protected-resource"))
        assert found.status == 404
        assert isinstance(wire.stream, trio.SocketStream)
        url = f"http://127.0.0.1:{wire.stream.socket.getpeername()[1]}/mcp"
        with pytest.raises(ConnectFailed, match="does not accept the access token or API key"):
            async with connect_http(url, headers={"authorization": "Bearer CANARY-eve-012345"}):
                raise AssertionError
        with pytest.raises(ConnectFailed, match=r"401 Unauthorized: .* \(an API key is needed"):
            async with connect_http(url):
                raise AssertionError
        await wire.stream.aclose()
    assert "CANARY" not in caplog.text


@pytest.mark.parametrize("options", [{"tool_scopes": {"ease": []}}, {"prompt_scopes": {"ask": []}}])
async def test_serve_http_scopes_for_an_unknown_name_raise(options: Any) -> None:
    keys = ApiKeys({"ann": "ann-0123456789abcdef"}, **options)
    with pytest.raises(ValueError, match=r"_scopes has an entry for '(ease|ask)'"):
        await serve_http(scoped_server(), auth=keys)


async def test_serve_http_scopes_may_name_what_a_lifespan_or_another_server_declares() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        server.add_tool(lambda: "late", name="late", description="Declared late.")
        yield

    keys = ApiKeys({"ann": "ann-0123456789abcdef"}, tool_scopes={"late": ["a"], "erase": ["a"]})
    servers = {"/mcp": scoped_server(), "/late": Server("late", lifespan=lifespan)}
    async with serving(servers, keys) as dial:
        wire = await dial()
        late = call("late", path="/late", auth="Bearer ann-0123456789abcdef")
        assert (await wire.ask(late)).status == 403
        await wire.stream.aclose()


@pytest.mark.parametrize("version", ERAS)
async def test_expired_token_ends_the_stream_and_the_client_reconnects(
    version: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """The stream ends with the token. Our client reconnects with its current token."""
    seen: list[float] = []

    def for_ten_seconds(text: str) -> Grant:
        seen.append(trio.current_time())
        return Grant("ann", scopes=frozenset({"read"}), expires_at=trio.current_time() + 10)

    sources = SYSTEM_SOURCES._replace(wall_time=trio.current_time)
    server = scoped_server()
    guarded = guard(for_ten_seconds)
    async with served_over_http(server, auth={"/mcp": guarded}, sources=sources) as listener:

        class ServerConnector(MemoryConnector):
            async def connect(self) -> H11ClientConnection:
                await trio.lowlevel.checkpoint()
                return H11ClientConnection(listener.connect())

        monkeypatch.setattr("mcp_trio.http_client._connector.Connector", ServerConnector)
        headers = {"authorization": "Bearer ann"}
        async with (
            connect_http(
                "http://127.0.0.1:8000/mcp", headers=headers, versions=[version]
            ) as client,
            client.listen(tools=True) as changes,
        ):
            for minute in range(1, 4):
                await trio.sleep_until(60 * minute)
                server.changed(tools=True)
                assert (await anext(changes)).list == "tools"
    # Within a quarter of a minute after each end.
    assert all(later - earlier <= 10 + 15 + 2 for earlier, later in itertools.pairwise(seen))
    assert len(seen) > 6


# -- With an authorization server ----------------------------------------------------------------


async def test_jwt_of_an_authorization_server_is_verified() -> None:
    """A real issuer is played: five connections cause one fetch of its keys."""
    async with trio.open_nursery() as nursery:
        issuer: AuthorizationServer = await nursery.start(authorization_server.serve)
        keeper = guard(JwtVerifier(issuer.issuer, RESOURCE))
        async with serving(scoped_server(), keeper) as dial:
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
                AuthorizationServer(issuer.issuer).token(
                    RESOURCE, "read"
                ): 401,  # a key of another server
                issuer.token(RESOURCE, "nothing"): 403,
            }
            for each, status in bad.items():
                assert (await wires[0].ask(call(auth=f"Bearer {each}"))).status == status
            for wire in wires:
                await wire.stream.aclose()
        nursery.cancel_scope.cancel()


async def test_jwks_unreachable_is_answered_503() -> None:
    async with serving(scoped_server(), guard(JwtVerifier("http://127.0.0.1:1", RESOURCE))) as dial:
        wire = await dial()
        issuer = AuthorizationServer("http://127.0.0.1:1")
        answer = await wire.ask(call(auth=f"Bearer {issuer.token(RESOURCE, 'read')}"))
        assert answer.status == 503
        assert b"127.0.0.1:1" not in answer.body
        await wire.stream.aclose()


# -- Fetches -------------------------------------------------------------------------------------


class SteppedCheck:
    """An authorization check that needs `steps`, and records their results in `results`."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.results: list[Any] = []

    @property
    def step(self) -> Any:
        return self.steps[0] if self.steps else None

    def send(self, reply: Any, now: float) -> None:
        del self.steps[0]
        self.results.append(reply)

    def throw(self, exc: BaseException, now: float) -> None:
        self.send(repr(exc), now)

    def time_out(self, now: float) -> None:
        if self.steps:
            self.steps.clear()
            self.results.append("gave up")


class Fetching:
    """The fetch function, which answers when the test allows it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.urls: list[str] = []
        self.go = trio.Event()

    async def __call__(self, request: HttpRequest, *, allow: Callable[[str], bool]) -> HttpResponse:
        self.urls.append(request.url)
        assert allow("127.0.0.1")  # the configured URI may be anywhere
        await self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        reply: HttpResponse = self.answer
        return reply


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch) -> Fetching:
    """Replace `fetch`, so that nothing leaves this test. It returns a key set."""
    found = Fetching(keys_reply())
    monkeypatch.setattr("mcp_trio.auth._fetch.fetch", found)
    return found


def jwks_step() -> Any:
    flow = JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI).verify(token(), 1_800_000_000.0)
    return next(flow)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (keys_reply(), keys_reply()),
        (FetchFailed("nobody is there"), "FetchFailed('nobody is there')"),
        (KeyError("x"), "FetchFailed('it could not be fetched')"),
    ],
)
async def test_jwks_fetch_is_shared_by_concurrent_checks(
    answer: Any, outcome: Any, fetching: Fetching
) -> None:
    """One waiter is cancelled; the two others get the same keys, or the same failure."""
    fetching.answer = answer
    step = jwks_step()
    ann, bob, gone = (SteppedCheck(step) for _ in range(3))
    async with trio.open_nursery() as nursery:
        admitting = AuthStepRunner(nursery)
        run: Any = admitting.run
        going = trio.CancelScope()

        async def go() -> None:
            with going:
                await run(gone)

        for task in (go, partial(run, ann), partial(run, bob)):
            nursery.start_soon(task)
            await trio.testing.wait_all_tasks_blocked()
        going.cancel()
        await trio.testing.wait_all_tasks_blocked()
        fetching.go.set()
    assert fetching.urls == [JWKS_URI]
    assert [
        each if isinstance(each, str) else each.status
        for waiter in (ann, bob)
        for each in waiter.results
    ] == [outcome if isinstance(outcome, str) else outcome.status] * 2
    assert gone.results == []  # other checks still use the fetch
    assert repr(admitting) == "<AuthStepRunner, 0 fetches>"


async def test_token_check_verifier_times_out(autojump_clock: trio.testing.MockClock) -> None:
    slow = StalledVerifier()
    waiting = SteppedCheck(Await(slow("ann")))
    async with trio.open_nursery() as nursery:
        await AuthStepRunner(nursery).run(waiting)  # type: ignore[arg-type]
    assert waiting.results == ["gave up"]
    assert trio.current_time() == 20.0


async def test_token_check_fetch_times_out(
    autojump_clock: trio.testing.MockClock, fetching: Fetching
) -> None:
    waiting = SteppedCheck(jwks_step())
    async with trio.open_nursery() as nursery:
        await AuthStepRunner(nursery).run(waiting)  # type: ignore[arg-type]
    assert waiting.results == ["FetchFailed('it did not complete within 8 s')"]
    assert trio.current_time() == 8.0


async def test_jwks_fetch_continues_after_a_disconnect(fetching: Fetching) -> None:
    """Otherwise a client could prevent the fetch for all by disconnecting every time."""
    keeper = guard(JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI))
    now, report = 1_800_000_000.0, []
    auth = EndpointAuth(keeper, lambda: now, lambda *arguments, **how: report.append(arguments))
    async with trio.open_nursery() as nursery:
        driver = HttpServerDriver(Router({"/mcp": endpoint_behind(auth)}), nursery)
        first = begin(driver.router, "a.b.c", IgnoredWakeups())
        assert first.auth_check is None  # it is not a token
        for _ in range(5):
            first = begin(driver.router, token(header={"kid": "nobody"}), IgnoredWakeups())
            scope = driver.start_auth_check(first)
            await trio.testing.wait_all_tasks_blocked()
            driver.router.disconnected(first, trio.current_time())
            scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
        # Two waiting tasks are expected: the fetch, and one that uses its result.
        assert len(nursery.child_tasks) == 2
        fetching.go.set()
        await trio.testing.wait_all_tasks_blocked()
        second = begin(driver.router, token(), IgnoredWakeups())
        assert second.auth_check is None
        assert second.principal == f"{ISSUER}#sub:alice"
        assert fetching.urls == [JWKS_URI]
        driver.close()
        nursery.cancel_scope.cancel()


async def test_jwks_fetches_are_limited(fetching: Fetching) -> None:
    crowd = [SteppedCheck(jwks_step()) for _ in range(205)]
    async with trio.open_nursery() as nursery:
        admitting = AuthStepRunner(nursery)
        run: Any = admitting.run
        for each in crowd:
            nursery.start_soon(run, each)
        await trio.testing.wait_all_tasks_blocked()
        assert repr(admitting) == "<AuthStepRunner, 200 fetches>"
        fetching.go.set()
    assert len(fetching.urls) == 200
    refused = [each.results for each in crowd if isinstance(each.results[0], str)]
    assert refused == [["FetchFailed('too much is being fetched already')"]] * 5


async def test_jwks_fetch_pending_at_shutdown_fails(
    fetching: Fetching,
) -> None:
    waiting = SteppedCheck(jwks_step())
    async with trio.open_nursery() as outer, trio.open_nursery() as nursery:
        run: Any = AuthStepRunner(nursery).run
        outer.start_soon(run, waiting)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert waiting.results == ["FetchFailed('it was cancelled')"]


# -- Allowed addresses ---------------------------------------------------------------------------


class Names(trio.abc.HostnameResolver):
    """A name server with the given names."""

    def __init__(self, **known: list[str]) -> None:
        self.known = known

    async def getaddrinfo(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown host")
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0))
            for address in self.known[name]
        ]

    async def getnameinfo(self, *args: Any) -> Any:
        raise AssertionError


PUBLIC, PRIVATE = "93.184.216.34", "10.1.2.3"
LOOPBACK, LINK_LOCAL = "127.0.0.1", "169.254.169.254"


@pytest.mark.parametrize(
    ("issuer", "named_by", "private", "local"),
    [
        ([PUBLIC], None, True, True),
        ([PUBLIC], "https://issuer", False, False),
        ([PRIVATE], "https://issuer", True, False),
        ([PRIVATE, PUBLIC], "https://issuer", False, False),
        (["127.0.0.1", "::1"], "http://issuer", True, True),
        (["127.0.0.1", PRIVATE], "http://issuer", True, False),
        (["169.254.1.1"], "https://issuer", False, False),
        ([PUBLIC], "https://nobody", False, False),
        ([PUBLIC], "https://10.9.9.9", True, False),
    ],
)
async def test_jwks_of_another_origin_stays_in_the_network_of_its_issuer(
    issuer: list[str],
    named_by: str | None,
    private: bool,
    local: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The configured address may be anywhere. A private issuer may name a public address."""
    requests: list[Callable[[str], bool]] = []

    async def fetch(request: HttpRequest, *, allow: Callable[[str], bool]) -> HttpResponse:
        requests.append(allow)
        return keys_reply()

    monkeypatch.setattr("mcp_trio.auth._fetch.fetch", fetch)
    names = Names(issuer=issuer, **{"10.9.9.9": ["10.9.9.9"]})
    trio.socket.set_custom_hostname_resolver(names)
    waiting = SteppedCheck(Fetch(HttpRequest("GET", "https://keys.internal/jwks"), named_by))
    async with trio.open_nursery() as nursery:
        await AuthStepRunner(nursery).run(waiting)  # type: ignore[arg-type]
    (allow,) = requests
    assert allow(PUBLIC)
    assert allow(PRIVATE) is private
    assert allow("127.0.0.1") is local
    assert allow("169.254.169.254") is (named_by is None)
