"""The router: literal paths, one endpoint at several of them, and `pump`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import json

from mcp_core.http import (
    Body,
    Head,
    HostOriginPolicy,
    HttpLimits,
    PlainResponse,
    RequestHead,
    Router,
)
from mcp_core.http.server._auth import EndpointAuth
from mcp_core.http.server._router import _published_metadata
from mcp_core.http.wire._mcp_headers import PROTOCOL_VERSION
from tests.harness.wire.router import (
    GET,
    HOST,
    POST,
    E,
    RouterHarness,
    initialize,
    meta,
    request,
)

if TYPE_CHECKING:
    from mcp_core import Event
    from mcp_core.http import Conversation, Exchange, Headers


class PumpingToken:
    """The token of an exchange, which pumps when it is woken."""

    def __init__(self, router: Router, seen: list[str]) -> None:
        self.router = router
        self.seen = seen

    def wake(self) -> None:
        self.seen.append("woken")
        self.router.pump(lambda conversation, event: self.seen.append("again"))


def test_exchange_begins_with_nothing_but_its_request() -> None:
    harness = RouterHarness()
    head = RequestHead(b"GET", b"/mcp", GET)
    for target in (b"/mcp", b"/other"):
        exchange = harness.router.begin(RequestHead(b"PUT", target, GET), 0.0)
        assert (exchange.token, exchange.principal, exchange.address) == (None, "", "")
        assert (exchange.record, exchange.socket, exchange.wants_websocket) == (None, None, False)
        assert (exchange.over, exchange.close_after, exchange.buffered) == (False, False, 0)
        given = harness.router.begin(head, 0.0, token="t", principal="ann", address="10.0.0.1")
        assert (given.token, given.principal, given.address) == ("t", "ann", "10.0.0.1")
    assert harness.router.unread_limit == 16 * 1024 * 1024
    assert Router({}).unread_limit == 0
    assert harness.router.recorder is None


class NotedRecorder:
    """A recorder of exchanges, which notes what each of them begins with."""

    def __init__(self) -> None:
        self.begun: list[tuple[object, ...]] = []

    def begin(self, *arguments: object) -> None:
        self.begun.append(arguments)


def test_recorder_gets_head_and_http_version_of_each_request_to_an_endpoint() -> None:
    harness = RouterHarness(sse_path="/sse")
    recorder = NotedRecorder()
    harness.router.recorder = recorder  # type: ignore[assignment]
    heads = [RequestHead(b"GET", path, GET) for path in (b"/mcp", b"/sse", b"/other")]
    for head in heads:
        harness.router.begin(head, 0.0)
        harness.router.begin(head, 0.0, http_version="2")
    assert recorder.begun == [(head, None, version) for head in heads[:2] for version in ("", "2")]
    # The path within the router counts, if it is given.
    assert harness.router.begin(heads[2], 0.0, path=b"/mcp").endpoint is harness.endpoint
    assert harness.router.begin(heads[0], 0.0, path=b"/other").endpoint is None


@pytest.mark.parametrize("is_socket", [False, True])
def test_client_that_is_gone_ends_the_recording_of_its_exchange(is_socket: bool) -> None:
    """The end of a WebSocket is recorded by the socket."""
    harness = RouterHarness()
    exchange = harness.router.begin(RequestHead(b"GET", b"/other", GET), 0.0)
    ends: list[tuple[str, str]] = []
    exchange.record = SimpleNamespace(ended=lambda *end: ends.append(end))
    exchange.socket = SimpleNamespace() if is_socket else None  # type: ignore[assignment]
    harness.router.disconnected(exchange, 0.0)
    assert ends == ([] if is_socket else [("client", "closed")])
    assert exchange.actions_to_send() == []


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"/mcp", 415),
        (b"/mcp/", 415),
        (b"/mcp?a=b", 415),
        (b"/other", 415),
        (b"/healthz", 200),
        (b"/healthz/", 200),
        (b"/mcp//", 404),
        (b"/MCP", 404),
        (b"/mcp/x", 404),
        (b"//mcp", 404),
        (b"/m%63p", 404),
        (b"", 404),
        (b"*", 404),
    ],
)
def test_site_compares_paths_literally(target: bytes, status: int) -> None:
    harness = RouterHarness()
    paths = {"/mcp": harness.endpoint, "/other": harness.endpoint}
    harness.router = Router(paths, {"/healthz": lambda head: PlainResponse()})
    assert harness.router.endpoints == (harness.endpoint,)
    assert repr(harness.router) == "<Router of 1 endpoints and 1 plain routes>"
    assert harness.send(b"POST", [HOST], target=target).status == status
    assert harness.router.idle


@pytest.mark.parametrize("extra", [[], [(PROTOCOL_VERSION, b"2025-06-18")]], ids=["bare", "later"])
def test_sse_path_begins_http_sse_for_a_get_and_takes_its_messages(extra: Headers) -> None:
    """A client may send a version anyway; at the path of the server that is another stream."""
    harness = RouterHarness(sse_path="/sse")
    stream = harness.send(b"GET", [*GET, *extra], target=b"/sse")
    [(kind, post_to, _, _)] = stream.events
    assert (kind, post_to.partition(b"=")[0]) == ("endpoint", b"/sse?session_id")
    opening = harness.send(b"POST", POST, json.encode(initialize("2024-11-05")), target=post_to)
    assert opening.status == 202
    assert stream.messages[-1]["result"]["protocolVersion"] == "2024-11-05"
    # The server is served there like at its own path.
    modern = [*POST, (b"mcp-protocol-version", E.encode()), (b"mcp-method", b"tools/list")]
    body = json.encode(request(1, "tools/list", {"_meta": meta()}))
    assert harness.send(b"POST", modern, body, target=b"/sse/").status == 200
    assert harness.send(b"GET", [*GET, *extra], target=b"/mcp").status == (405 if extra else 200)


@pytest.mark.parametrize(
    ("paths", "routes", "problem"),
    [
        (["/sse"], [], "'/sse', which is the path of a server or route"),
        (["/mcp", "/sse/"], [], "'/sse', which is the path of a server or route"),
        (["/mcp"], ["/sse"], "'/sse', which is the path of a server or route"),
        (["/mcp", "/more"], [], "several servers have the sse_path '/sse'"),
    ],
)
def test_sse_path_that_is_taken_raises(paths: list[str], routes: list[str], problem: str) -> None:
    endpoints = {path: RouterHarness(sse_path="/sse").endpoint for path in paths}
    with pytest.raises(ValueError, match=problem):
        Router(endpoints, {path: lambda head: PlainResponse() for path in routes})


def test_site_rejects_two_servers_at_one_path() -> None:
    one, other = RouterHarness().endpoint, RouterHarness().endpoint
    with pytest.raises(ValueError, match="two servers have the path '/mcp/'"):
        Router({"/mcp": one, "/mcp/": other})
    assert Router({"/": one, "": one}).endpoints == (one,)


def test_site_path_may_differ_from_the_target() -> None:
    harness = RouterHarness(routes={"/healthz": lambda head: PlainResponse(200, head.target)})
    head = RequestHead(b"GET", b"/tools/healthz", [HOST])
    assert harness.router.actions_to_send(harness.router.begin(head, 0))[0].status == 404  # type: ignore[union-attr]
    found = harness.router.actions_to_send(harness.router.begin(head, 0, path=b"/healthz"))
    assert found[1].data == b"/tools/healthz"  # type: ignore[union-attr]


LOCAL = HostOriginPolicy("127.0.0.1", ["a.example"], ["https://app.example"])
OTHER = HostOriginPolicy("127.0.0.1", ["b.example"])


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", "", 200),
        ("127.0.0.1:8000", "", 200),
        ("a.example", "", 200),
        ("b.example", "", 200),
        ("127.0.0.1:8000", "http://127.0.0.1:8000", 200),
        ("a.example", "https://app.example", 200),
        # One endpoint has to accept both.
        ("b.example", "https://app.example", 421),
        ("", "", 421),
        ("evil.example", "", 421),
        ("evil.example:8000", "http://evil.example:8000", 421),
        ("10.0.0.1", "", 421),
        ("127.0.0.1:8000", "http://evil.example", 403),
        ("127.0.0.1:8000", "null", 403),
        ("localhost", "https://app.example.evil.example", 403),
    ],
)
def test_plain_route_checks_host_and_origin_as_an_endpoint_does(
    host: str, origin: str, status: int
) -> None:
    """Plain routes must not be open to DNS rebinding when the MCP endpoint isn't."""
    called: list[bytes] = []

    def route(head: RequestHead) -> PlainResponse:
        called.append(head.method)
        return PlainResponse(200, b"secret")

    endpoints = {
        "/a": RouterHarness(policy=LOCAL).endpoint,
        "/b": RouterHarness(policy=OTHER).endpoint,
    }
    router = Router(endpoints, {"/status": route})
    headers = [(b"host", host.encode())] if host else []
    headers += [(b"origin", origin.encode())] if origin else []
    for verb in (b"GET", b"POST", b"PUT", b"OPTIONS"):
        found = router.begin(RequestHead(verb, b"/status", headers), 0).actions_to_send()
        head, body, *_ = found
        assert isinstance(head, Head)
        assert isinstance(body, Body)
        assert head.status == status
        assert (body.data == b"secret") is (status == 200)
    assert called == ([b"GET", b"POST", b"PUT", b"OPTIONS"] if status == 200 else [])


def test_plain_route_rejects_repeated_headers_and_needs_no_endpoint() -> None:
    """With no endpoint to ask, localhost and addresses pass, while names are refused."""
    router = Router({}, {"/status": lambda head: PlainResponse(200, b"secret")})

    def status(*headers: tuple[bytes, bytes]) -> int:
        (head, *_) = router.begin(
            RequestHead(b"GET", b"/status", list(headers)), 0
        ).actions_to_send()
        assert isinstance(head, Head)
        return head.status

    evil = (b"host", b"evil.example")
    assert status(HOST) == 200
    assert status((b"host", b"10.0.0.1")) == 200  # the address of the server is unknown
    assert status(evil) == 421
    assert status(HOST, evil) == 400
    own, page = (b"origin", b"http://127.0.0.1:8000"), (b"origin", b"http://evil.example")
    assert [status(HOST, own), status(HOST, page), status(HOST, own, page)] == [200, 403, 400]


def test_pump_continues_until_nothing_is_left() -> None:
    """Handlers that pump again must not recurse, and their output isn't left behind."""
    harness = RouterHarness()
    seen: list[str] = []
    token = PumpingToken(harness.router, seen)

    def on_event(conversation: Conversation, event: Event) -> None:
        # The handler of an event begins another exchange and pumps.
        another = harness.router.begin(RequestHead(b"GET", b"/nowhere", [HOST]), 0, token=token)
        assert not another.reading
        seen.append(type(event).__name__)
        harness.router.pump(on_event)  # does nothing

    exchange = begin(harness, token)
    harness.router.pump(on_event)
    assert seen == ["RequestReceived", "woken", "woken"]
    assert harness.router.actions_to_send(exchange) == []


def test_pump_works_again_after_an_exception() -> None:
    harness = RouterHarness()
    seen: list[str] = []
    begin(harness, PumpingToken(harness.router, seen))

    def on_event(conversation: Conversation, event: Event) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        harness.router.pump(on_event)
    harness.router.pump(lambda conversation, event: seen.append(type(event).__name__))
    assert seen == ["woken"]


def test_site_passes_timeouts_and_close_to_every_endpoint() -> None:
    """One call per event loop step serves all endpoints, and the earliest timer counts."""
    harness = RouterHarness(comment_interval=15.0)
    other = RouterHarness()
    harness.router = Router({"/mcp": harness.endpoint, "/other": other.endpoint})
    assert harness.router.next_deadline() is None
    reply = harness.call(1, "slow", steps=5)
    assert harness.router.next_deadline() == 15
    assert not harness.router.idle
    harness.wait(16)
    assert reply.body == b":\n\n"
    harness.router.shutdown()
    harness.pump()
    for target in (b"/mcp", b"/other"):
        assert harness.send(b"POST", POST, b"{}", target=target).status == 503
    harness.router.close()
    harness.pump()
    harness.step()
    assert reply.ended
    assert harness.router.idle


def test_conversation_is_full_when_much_is_queued() -> None:
    harness = RouterHarness()
    harness.call(1, "slow")
    conversation, _ = harness.seen[-1]
    assert conversation.current_stream is not None
    assert not conversation.write_blocked(1)
    conversation.current_stream.add_message(b"x" * 64 * 1024)
    assert not conversation.write_blocked(1)
    conversation.current_stream.add_message(b"x")
    assert conversation.write_blocked(1)
    harness.step(2)


def begin(harness: RouterHarness, token: PumpingToken) -> Exchange:
    """A tools/call of 2026-07-28."""
    headers = [
        *POST,
        (b"mcp-protocol-version", E.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"echo"),
    ]
    exchange = harness.router.begin(RequestHead(b"POST", b"/mcp", headers), 0, token=token)
    params = {"name": "echo", "arguments": {}, "_meta": meta()}
    harness.router.receive_data(exchange, json.encode(request(1, "tools/call", params)), 0)
    harness.router.receive_data(exchange, b"", 0)
    return exchange


def test_unread_limit_is_the_largest_of_the_endpoints() -> None:
    harness = RouterHarness(limits=HttpLimits(unread=7))
    assert harness.router.unread_limit == 7
    assert Router({}).unread_limit == 0


def test_request_that_waits_for_unread_responses_is_refused() -> None:
    harness = RouterHarness()
    reply = harness.begin()
    harness.router.refuse_unread(reply.exchange)
    harness.pump()
    assert (reply.status, reply.message["error"]["code"]) == (503, -32000)
    assert reply.headers[b"retry-after"] == b"5"
    assert not reply.exchange.close_after
    assert harness.endpoint._reading == {}


@pytest.mark.parametrize("format", ["auto", "sse"])
def test_response_that_is_not_read_is_replaced_by_an_error(format: str) -> None:
    harness = RouterHarness(reply=format)
    visit = harness.session()
    reply = visit.call(5, "slow", text="x" * 90_000)
    harness.unread = True
    harness.step(2)
    assert reply.exchange.queued > 90_000
    harness.router.drop_responses(reply.exchange)
    assert reply.exchange.queued < 300
    harness.unread = False
    harness.read(reply.exchange)
    assert (reply.status, reply.message["id"], reply.message["error"]["code"]) == (200, 5, -32603)
    harness.router.drop_responses(reply.exchange)  # nothing is left to drop


class PublishedMetadata:
    """A resource server as far as it has metadata, at its own path and then at shared ones."""

    credential_headers = ()

    def __init__(self, document: bytes, *paths: str) -> None:
        self.document, self.metadata_paths = document, paths

    def metadata(self) -> bytes:
        return self.document

    def admit(self, *requests: Any) -> Any:
        raise AssertionError("no request is made")


def published(*servers: Any) -> dict[bytes, bytes]:
    auths: list[Any] = [PublishedMetadata(*each) for each in servers]
    return _published_metadata(EndpointAuth(each, lambda: 0.0, print) for each in auths)


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ([], {}),
        ([(b"a",)], {}),
        ([(b"a",), (b"b", "/b", "/x")], {b"/b": b"b", b"/x": b"b"}),
        ([(b"a", "/a", "/x"), (b"b", "/b", "/x")], {b"/a": b"a", b"/b": b"b"}),
        ([(b"a", "/a", "/x"), (b"a", "/a", "/x")], {b"/a": b"a", b"/x": b"a"}),
        ([(b"a", "/a", "/x"), (b"b", "/x")], {b"/a": b"a", b"/x": b"b"}),
        ([(b"a", "/a", "/b"), (b"b", "/b")], {b"/a": b"a", b"/b": b"b"}),
    ],
)
def test_metadata_is_at_the_own_path_and_at_a_shared_one_of_a_single_resource(
    servers: list[Any], expected: dict[bytes, bytes]
) -> None:
    assert published(*servers) == expected


def test_metadata_of_two_resources_at_one_path_is_refused() -> None:
    with pytest.raises(ValueError, match="two resource servers have their metadata at '/a'"):
        published((b"a", "/a"), (b"b", "/a"))
