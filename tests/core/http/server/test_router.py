"""The router: literal paths, one endpoint at several of them, and `pump`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import json

from mcp_core.http import Body, Head, HostOriginPolicy, PlainResponse, RequestHead, Router
from tests.core.http.site import HOST, POST, E, Talk, meta, request

if TYPE_CHECKING:
    from mcp_core import Event
    from mcp_core.http import Conversation, Exchange


class Token:
    """The token of an exchange, which pumps when it is woken."""

    def __init__(self, site: Router, seen: list[str]) -> None:
        self.site = site
        self.seen = seen

    def wake(self) -> None:
        self.seen.append("woken")
        self.site.pump(lambda conversation, event: self.seen.append("again"))


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
    talk = Talk()
    paths = {"/mcp": talk.endpoint, "/other": talk.endpoint}
    talk.site = Router(paths, {"/healthz": lambda head: PlainResponse()})
    assert talk.site.endpoints == (talk.endpoint,)
    assert repr(talk.site) == "<Router of 1 endpoints and 1 plain routes>"
    assert talk.send(b"POST", [HOST], target=target).status == status
    assert talk.site.idle


def test_site_rejects_two_servers_at_one_path() -> None:
    one, other = Talk().endpoint, Talk().endpoint
    with pytest.raises(ValueError, match="two servers have the path '/mcp/'"):
        Router({"/mcp": one, "/mcp/": other})
    assert Router({"/": one, "": one}).endpoints == (one,)


def test_site_path_may_differ_from_the_target() -> None:
    talk = Talk(routes={"/healthz": lambda head: PlainResponse(200, head.target)})
    head = RequestHead(b"GET", b"/tools/healthz", [HOST])
    assert talk.site.actions_to_send(talk.site.begin(head, 0))[0].status == 404  # type: ignore[union-attr]
    found = talk.site.actions_to_send(talk.site.begin(head, 0, path=b"/healthz"))
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
    called: list[bytes] = []

    def route(head: RequestHead) -> PlainResponse:
        called.append(head.method)
        return PlainResponse(200, b"secret")

    endpoints = {"/a": Talk(gate=LOCAL).endpoint, "/b": Talk(gate=OTHER).endpoint}
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
    talk = Talk()
    seen: list[str] = []
    token = Token(talk.site, seen)

    def on_event(conversation: Conversation, event: Event) -> None:
        # The handler of an event begins another exchange and pumps.
        another = talk.site.begin(RequestHead(b"GET", b"/nowhere", [HOST]), 0, token=token)
        assert not another.reading
        seen.append(type(event).__name__)
        talk.site.pump(on_event)  # does nothing

    exchange = begin(talk, token)
    talk.site.pump(on_event)
    assert seen == ["RequestReceived", "woken", "woken"]
    assert talk.site.actions_to_send(exchange) == []


def test_pump_works_again_after_an_exception() -> None:
    talk = Talk()
    seen: list[str] = []
    begin(talk, Token(talk.site, seen))

    def on_event(conversation: Conversation, event: Event) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        talk.site.pump(on_event)
    talk.site.pump(lambda conversation, event: seen.append(type(event).__name__))
    assert seen == ["woken"]


def test_site_passes_timeouts_and_close_to_every_endpoint() -> None:
    talk = Talk(comment_interval=15.0)
    other = Talk()
    talk.site = Router({"/mcp": talk.endpoint, "/other": other.endpoint})
    assert talk.site.next_deadline() is None
    reply = talk.call(1, "slow", steps=5)
    assert talk.site.next_deadline() == 15
    assert not talk.site.idle
    talk.wait(16)
    assert reply.body == b":\n\n"
    talk.site.shutdown()
    talk.pump()
    for target in (b"/mcp", b"/other"):
        assert talk.send(b"POST", POST, b"{}", target=target).status == 503
    talk.site.close()
    talk.pump()
    talk.step()
    assert reply.ended
    assert talk.site.idle


def test_conversation_is_full_when_much_is_queued() -> None:
    talk = Talk()
    talk.call(1, "slow")
    conversation, _ = talk.seen[-1]
    assert conversation.current_stream is not None
    assert not conversation.write_blocked(1)
    conversation.current_stream.add_message(b"x" * 64 * 1024)
    assert not conversation.write_blocked(1)
    conversation.current_stream.add_message(b"x")
    assert conversation.write_blocked(1)
    talk.step(2)


def begin(talk: Talk, token: Token) -> Exchange:
    """A tools/call of 2026-07-28."""
    headers = [
        *POST,
        (b"mcp-protocol-version", E.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b"echo"),
    ]
    exchange = talk.site.begin(RequestHead(b"POST", b"/mcp", headers), 0, token=token)
    params = {"name": "echo", "arguments": {}, "_meta": meta()}
    talk.site.receive_data(exchange, json.encode(request(1, "tools/call", params)), 0)
    talk.site.receive_data(exchange, b"", 0)
    return exchange
