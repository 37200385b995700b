"""Quotas of one client, and the memory for unfinished request bodies."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json

from mcp_core import Limits, Rate
from mcp_core.http import (
    Close,
    Endpoint,
    Exchange,
    HostOriginPolicy,
    HttpLimits,
    HttpOptions,
    RequestHead,
    Router,
    TrustedProxies,
)
from mcp_core.http.server._quotas import UnfinishedBodies, client_key
from mcp_core.registry import Server
from tests.core.http.server.test_auth import guarded
from tests.core.http.test_isolation import left_over
from tests.harness.wire.router import (
    POST,
    D,
    E,
    Reply,
    RouterHarness,
    SessionClient,
    example,
    initialize,
    meta,
    request,
)
from tests.harness.wire.websocket_router import WebSocketHarness

MANY = HttpLimits(bodies=1000)  # 250 for one client
ANN, BOB, EVE = "203.0.113.1", "203.0.113.2", "203.0.113.3"


def sending(harness: RouterHarness, size: int, address: str = "", **options: Any) -> Reply:
    """A request with an unfinished body of `size` bytes."""
    harness.address = address
    reply = harness.begin(**options)
    harness.add(reply, b"{" + b" " * (size - 1))
    return reply


def error_of(reply: Reply) -> tuple[int, int, str]:
    error = reply.message["error"]
    return reply.status, error["code"], error["message"]


def finish(harness: RouterHarness, reply: Reply) -> None:
    """Send the rest of a body, which makes it a ping."""
    harness.add(reply, json.encode(request(1, "ping"))[1:])
    harness.add(reply, b"")


def test_limits_quota_is_a_share_of_the_total() -> None:
    assert [HttpLimits().quota(total) for total in (10_000, 1000, 3, 1, 0)] == [2500, 250, 1, 1, 0]
    assert HttpLimits(client_share=1).quota(3) == 3
    for share in (0, -1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="client_share"):
            HttpLimits(client_share=share)


def test_client_key_is_the_principal_or_the_network() -> None:
    assert client_key("ann", ANN) == client_key("ann", BOB) == "principal ann"
    assert client_key("", ANN) == f"address {ANN}"
    assert client_key("", "2001:db8::1") == client_key("", "2001:db8::2")
    assert client_key("", "") == ""
    assert client_key(ANN, "") != client_key("", ANN)


# -- Unfinished bodies -----------------------------------------------------------------------------


def test_bodies_above_the_quota_refuse_the_one_that_has_waited_longest() -> None:
    """The body that has made no progress for longest pays, and the text names the proxy option."""
    harness = RouterHarness(limits=MANY)
    first, second, third = (sending(harness, 60, ANN) for _ in range(3))
    harness.add(first, b" ")  # it goes on
    other = sending(harness, 60, BOB)
    assert not any(reply.status for reply in (first, second, third, other))
    fourth = sending(harness, 80, ANN)
    status, code, text = error_of(second)
    assert (status, code) == (429, -32000)
    assert "more than 250 bytes" in text
    assert "trusted_proxies" in text
    assert second.headers[b"retry-after"] == b"5"
    assert second.exchange.close_after
    assert harness.endpoint.state.bodies.total == 261
    for reply in (first, third, fourth, other):
        finish(harness, reply)
        assert reply.message["error"]["code"] == -32600  # no session, but it was read
    assert harness.endpoint.state.bodies.total == 0
    assert left_over(harness) == {}


def test_bodies_above_the_total_refuse_one_of_the_client_with_the_most() -> None:
    harness = RouterHarness(limits=MANY)
    honest = sending(harness, 50, "198.51.100.1")  # the oldest, but of a client with little
    attackers = [sending(harness, 100, f"203.0.113.{host}") for host in (*range(5), *range(5))]
    assert [reply.status for reply in attackers] == [503, *[0] * 9]
    late = sending(harness, 50, "198.51.100.2")
    status, code, text = error_of(attackers[0])
    assert (status, code) == (503, -32000)
    assert "of all clients have more than 1000 bytes" in text
    assert (honest.status, late.status) == (0, 0)
    finish(harness, honest)
    assert honest.ended
    assert left_over(harness) == {}


def test_bodies_of_unknown_addresses_have_the_total_only() -> None:
    """Nothing tells the clients behind a Unix socket apart, so a quota would only be less."""
    harness = RouterHarness(limits=MANY)
    replies = [sending(harness, 100) for _ in range(11)]
    assert [reply.status for reply in replies] == [503, *[0] * 10]


def test_bodies_of_a_trusted_proxy_count_for_its_clients() -> None:
    harness = RouterHarness(limits=MANY, trusted_proxies=TrustedProxies(["127.0.0.1"]))

    def forwarded(client: bytes) -> Reply:
        headers = [*POST, (b"x-forwarded-for", client)]
        return sending(harness, 200, "127.0.0.1", headers=headers)

    first, second, third = (forwarded(client) for client in (b"1.1.1.1", b"1.1.1.2", b"1.1.1.1"))
    assert [reply.status for reply in (first, second, third)] == [429, 0, 0]


def test_bodies_count_for_principals_not_for_addresses() -> None:
    harness = guarded(limits=MANY)

    def authorized(who: bytes, address: str) -> Reply:
        headers = [*POST, (b"authorization", b"Bearer " + who)]
        return sending(harness, 200, address, headers=headers)

    ann, bob, again = (authorized(*each) for each in ((b"ann", ANN), (b"bob", ANN), (b"ann", BOB)))
    assert [reply.status for reply in (ann, bob, again)] == [429, 0, 0]


def test_body_in_one_piece_is_not_counted() -> None:
    harness = RouterHarness(limits=HttpLimits(bodies=0))
    harness.address = ANN
    reply = harness.begin()
    harness.router.receive_data(reply.exchange, json.encode(initialize()), 0.0, end=True)
    harness.pump()
    assert reply.status == 200


def test_single_body_above_the_quota_is_refused() -> None:
    harness = RouterHarness(limits=MANY)
    assert sending(harness, 250, ANN).status == 0
    assert sending(harness, 251, BOB).status == 429


@pytest.mark.parametrize("end", ["disconnect", "too long", "time"])
def test_body_that_ends_otherwise_is_released(end: str) -> None:
    harness = RouterHarness(limits=HttpLimits(body_time=300))
    reply = sending(harness, 100, ANN)
    assert harness.endpoint.state.bodies.total == 100
    if end == "disconnect":
        harness.close_after(reply)
    elif end == "too long":
        harness.add(reply, b" " * 100_000)
    else:
        harness.wait(300)
    assert (harness.endpoint.state.bodies.total, harness.endpoint._reading) == (0, {})
    assert left_over(harness) == {}


def test_bodies_of_all_endpoints_of_a_router_count_together() -> None:
    """A client must not multiply its quota by sending to several paths."""

    class Token:
        def wake(self) -> None:
            """Do nothing: no task waits here."""

    server = example()
    options = HttpOptions(host_origin_policy=HostOriginPolicy(None), limits=MANY)
    one, other = (
        Endpoint(
            server.config,
            options,
            entropy=bytes,
            param_headers=server.param_headers,
        )
        for _ in range(2)
    )
    router = Router({"/one": one, "/other": other})
    begun: list[Exchange] = []
    for target in (b"/one", b"/other"):
        exchange = router.begin(RequestHead(b"POST", target, POST), 0.0, token=Token(), address=ANN)
        router.receive_data(exchange, b"x" * 200, 0.0)
        begun.append(exchange)
    assert [exchange.reading for exchange in begun] == [False, True]
    assert router.ready() == [begun[0]]
    assert repr(one.state.bodies) == "<UnfinishedBodies of 1 clients, 200 bytes>"


def test_bodies_of_a_thousand_clients_keep_exact_counts() -> None:
    harness = RouterHarness(limits=HttpLimits(bodies=10_000))
    for number in range(1000):
        sending(harness, 20, f"10.0.{number // 250}.{number % 250}")
    assert harness.endpoint.state.bodies.total == 10_000
    open_bodies = [each.exchange.buffered for each in harness.replies.values() if not each.status]
    assert sum(open_bodies) == 10_000
    assert UnfinishedBodies().total == 0


# -- Time ------------------------------------------------------------------------------------------


def test_body_that_does_not_arrive_gets_408() -> None:
    """An ASGI server need not have a limit of its own for that."""
    harness = RouterHarness()
    reply = harness.begin()
    harness.wait(299)
    assert not reply.status
    harness.wait(1)
    status, code, text = error_of(reply)
    assert (status, code) == (408, -32600)
    assert "more than 300 s" in text
    assert reply.exchange.close_after
    assert left_over(harness) == {}


def test_body_trickled_within_all_limits_ends_after_its_time() -> None:
    harness = RouterHarness(limits=HttpLimits(body_time=60))
    early = sending(harness, 10, ANN)
    harness.wait(30)
    late = sending(harness, 10, ANN)
    for _ in range(59):
        harness.wait(1)
        if not early.status:
            harness.add(early, b" ")
        harness.add(late, b" ")
    assert (early.status, late.status) == (408, 0)
    finish(harness, late)
    assert late.status == 400
    harness.wait(100)
    assert left_over(harness) == {}


# -- Sessions --------------------------------------------------------------------------------------


def begun(harness: RouterHarness, address: str, principal: str = "") -> Reply:
    harness.address = address
    return harness.post(initialize(), principal=principal)


def test_session_flood_of_one_address_leaves_the_others_admitted() -> None:
    harness = RouterHarness(limits=HttpLimits(sessions=100, uninitialized=20))
    flood = [begun(harness, EVE).status for _ in range(500)]
    assert flood == [200] * 5 + [429] * 495
    status, code, text = error_of(begun(harness, EVE))
    assert (status, code) == (429, -32000)
    assert "5 sessions wait for notifications/initialized" in text
    for address in (ANN, BOB):
        harness.address = address
        assert harness.session().call(1).status == 200
    harness.wait(30)  # the incomplete sessions expire
    assert begun(harness, EVE).status == 200
    assert left_over(harness) == {}


def test_sessions_of_one_client_are_limited_until_some_end() -> None:
    """A quarter of all places is the most for one address; DELETE or idling frees one."""
    harness = RouterHarness(limits=HttpLimits(sessions=16))
    harness.address = EVE
    visits = [harness.session() for _ in range(4)]
    rejected = begun(harness, EVE)
    status, code, text = error_of(rejected)
    assert (status, code, rejected.message["id"]) == (429, -32000, 0)
    assert "4 sessions, the most for one: end some by DELETE" in text
    assert rejected.headers[b"retry-after"] == b"5"
    assert begun(harness, ANN).status == 200
    visits[0].delete()
    assert begun(harness, EVE).status == 200
    assert begun(harness, EVE).status == 429
    harness.wait(1800)
    assert begun(harness, EVE).status == 200
    assert left_over(harness) == {}


def test_sessions_of_a_principal_count_over_all_addresses() -> None:
    harness = guarded(limits=HttpLimits(sessions=8))
    assert [begun(harness, address, "ann").status for address in (ANN, BOB, EVE)] == [200, 200, 429]
    assert [begun(harness, EVE, "bob").status for _ in range(3)] == [200, 200, 429]
    harness.address = EVE
    assert SessionClient(harness, b"0" * 32, D, "ann").call(1, "whoami").status == 404


def test_legacy_sse_sessions_count_too() -> None:
    harness = RouterHarness(limits=HttpLimits(sessions=8))
    harness.address = EVE
    streams = [harness.get() for _ in range(3)]
    assert [stream.status for stream in streams] == [200, 200, 429]
    harness.close_after(streams[0])
    assert harness.get().status == 200


def test_session_total_is_checked_before_quotas() -> None:
    harness = RouterHarness(limits=HttpLimits(sessions=8))
    for host in range(4):
        for _ in range(2):
            assert begun(harness, f"203.0.113.{host}").status == 200
    assert error_of(begun(harness, EVE))[:2] == (503, -32000)


# -- Requests in progress --------------------------------------------------------------------------


def test_requests_of_one_client_leave_the_others_admitted() -> None:
    """Listening costs an attacker a stream each, and lasts as long as it likes."""
    harness = RouterHarness(limits=HttpLimits(sessions=20))
    listen = request(
        1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": meta()}
    )
    harness.address = EVE
    replies = [harness.modern(listen) for _ in range(50)]
    assert [reply.status for reply in replies] == [200] * 5 + [429] * 45
    status, code, text = error_of(replies[-1])
    assert (status, code) == (429, 429)
    assert "5 requests in progress, the most for one" in text
    assert replies[-1].message["id"] == 1
    harness.address = ANN
    assert harness.call(1).status == 200
    harness.close_after(replies[0])
    harness.address = EVE
    assert harness.call(1).status == 200  # and is over
    assert harness.call(1, "slow").status == 0
    assert harness.call(2).status == 429
    assert left_over(harness) == {}


def test_requests_that_end_are_not_counted() -> None:
    harness = RouterHarness(limits=HttpLimits(sessions=4))
    harness.address = EVE
    for id in range(10):
        assert harness.call(id).status == 200
        reply = harness.call(id, "slow")
        harness.step(2)
        assert reply.status == 200
    assert left_over(harness) == {}


def test_websockets_of_one_client_leave_the_others_admitted() -> None:
    harness = WebSocketHarness(limits=HttpLimits(sessions=8))
    harness.address = EVE
    first, _ = harness.connect(), harness.connect()
    assert harness.ask_for_socket().status == 429
    harness.address = ANN
    harness.connect()
    harness.router.disconnected(first.exchange, 0)
    harness.pump()
    harness.address = EVE
    assert harness.ask_for_socket().status == 101
    harness.router.close()
    harness.pump()
    assert (harness.endpoint.one_shots, harness.endpoint.one_shots._by_client) == ({}, {})


# -- Messages of WebSockets that arrive in parts ---------------------------------------------------


def test_websocket_messages_in_parts_count_as_unfinished_bodies() -> None:
    """A fragmented message is memory too: the socket gets 1013, which invites a later retry."""
    harness = WebSocketHarness(limits=MANY)
    harness.address = EVE
    one, two = harness.connect(), harness.connect()
    for played in (one, two):
        played.socket.receive_text(" " * 120, 0.0, end=False)
        played.settle()
    assert harness.endpoint.state.bodies.total == 240
    assert sending(harness, 20, EVE).status == 0  # it takes the place of the first
    (close,) = one.take()
    assert isinstance(close, Close)
    assert (close.code, "fewer at once" in close.reason) == (1013, True)
    assert harness.endpoint.state.bodies.total == 140
    two.socket.receive_text('{"jsonrpc":"2.0","id":1,"method":"ping"}', 0.0)
    two.settle()
    assert harness.endpoint.state.bodies.total == 20


def test_websocket_that_closes_in_a_message_is_released() -> None:
    harness = WebSocketHarness(limits=MANY)
    played = harness.connect()
    played.socket.receive_text(" " * 120, 0.0, end=False)
    played.settle()
    harness.router.disconnected(played.exchange, 0)
    harness.pump()
    assert harness.endpoint.state.bodies.total == 0


def test_websocket_message_that_takes_too_long_closes_it() -> None:
    """It grows fast enough at any time, and could go on like that for an hour."""
    harness = WebSocketHarness(example(Limits(message=4 << 20)))
    played = harness.connect()
    played.send(request(1, "ping"))
    for _ in range(30):
        assert not any(isinstance(action, Close) for action in played.take())
        played.socket.receive_text(" " * 11_000, harness.now, end=False)
        played.settle()
        harness.wait(10)
    (close,) = [action for action in played.take() if isinstance(action, Close)]
    assert (close.code, close.reason) == (1008, "a message arrives too slowly")
    assert harness.endpoint.state.bodies.total == 0


# -- The rate of a tool ----------------------------------------------------------------------------


def rated() -> Server:
    """A server with a tool that each client may call once, and then after a long time."""
    server = Server("rated")

    @server.tool(rate=Rate(per_second=0.001, burst=1))
    def once() -> str:
        """Be called once."""
        return "called"

    return server


CALLERS: list[tuple[tuple[str, str], tuple[str, str], bool]] = [
    # principal and address of the first call and of the second, and whether they are one client
    (("ann", "192.0.2.1"), ("ann", "198.51.100.1"), True),
    (("ann", "192.0.2.1"), ("bob", "192.0.2.1"), False),
    (("ann", "192.0.2.1"), ("", "192.0.2.1"), False),
    (("", "192.0.2.1"), ("", "192.0.2.1"), True),
    (("", "192.0.2.1"), ("", "192.0.2.2"), False),
    (("", "2001:db8::1"), ("", "2001:db8::2"), True),  # one network
    (("", ""), ("", ""), True),
    (("", ""), ("", "192.0.2.1"), False),
]


@pytest.mark.parametrize("era", ["session", "stateless"])
@pytest.mark.parametrize(("first", "second", "same"), CALLERS)
def test_rate_of_a_tool_is_for_each_client(
    first: tuple[str, str], second: tuple[str, str], same: bool, era: str
) -> None:
    """A client is counted over all of its sessions, and over requests without one."""
    harness = RouterHarness(rated())
    statuses = []
    for principal, harness.address in (first, second):
        if era == "session":
            reply = harness.session(principal=principal).call(1, "once")
        else:
            params = {"name": "once", "arguments": {}, "_meta": meta()}
            names = (b"mcp-method", b"tools/call"), (b"mcp-name", b"once")
            version = (b"mcp-protocol-version", E.encode())
            message = request(1, "tools/call", params)
            reply = harness.post(message, version, *names, principal=principal)
        harness.step()
        statuses.append("result" in reply.message)
    assert statuses == [True, not same]
