"""WebSockets of an endpoint: upgrades, rejections, authorization, limits and shutdown."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import json

from mcp_core import DIALECTS, NEED_DATA, Peer, PeerReady
from mcp_core.auth import Grant
from mcp_core.http import (
    Close,
    EndpointAuth,
    HostOriginPolicy,
    HttpLimits,
    PlainResponse,
    RequestHead,
)
from mcp_core.http.server._websocket_session import WebSocketSessions
from mcp_core.types import ClientCapabilities
from tests.core.auth.minting import NOW
from tests.core.http.hosts import ANYWHERE, HOSTS, LISTED, LOOPBACK, ORIGINS
from tests.core.http.server.test_auth import READ, AuthHarness, counting, decoded, guard
from tests.harness.wire.router import (
    HOST,
    D,
    E,
    initialize,
    meta,
    request,
)
from tests.harness.wire.websocket_router import (
    UPGRADE,
    WebSocketClient,
    WebSocketHarness,
    upgrade,
)

REFUSED: list[tuple[dict[str, bytes | None], int]] = [
    # what is different, the status
    ({"host": b"evil.example"}, 421),
    ({"host": None}, 421),
    ({"origin": b"http://evil.example"}, 403),
    ({"origin": b"null"}, 403),
    ({"sec_websocket_version": b"8"}, 426),
    ({"sec_websocket_key": b"x"}, 400),
    ({"sec_websocket_protocol": None}, 400),
    ({"content_length": b"1"}, 400),
    # The first that is wrong is the answer.
    ({"host": b"evil.example", "origin": b"null", "sec_websocket_version": b"8"}, 421),
    ({"origin": b"null", "sec_websocket_version": b"8"}, 403),
]


@pytest.mark.parametrize(("changed", "status"), REFUSED)
def test_upgrade_with_a_fault_is_rejected(changed: dict[str, bytes | None], status: int) -> None:
    harness = WebSocketHarness()
    reply = harness.ask_for_socket(upgrade(**changed))
    assert (reply.status, reply.ended, reply.exchange.close_after) == (status, True, True)
    assert reply.exchange.socket is None
    assert harness.endpoint.one_shots == {}


def test_upgrade_with_a_repeated_header_is_rejected() -> None:
    reply = WebSocketHarness().ask_for_socket([*UPGRADE, HOST])
    assert (reply.status, b"host stands twice" in reply.body) == (400, True)


def test_client_that_only_listens_is_known_from_its_upgrade_on() -> None:
    """It speaks the newest revision until it says otherwise."""
    router = WebSocketHarness().router
    exchange = router.begin(RequestHead(b"GET", b"/mcp", UPGRADE), 0.0, may_upgrade=True)
    found = router.next_event()
    assert isinstance(found, tuple)
    assert found == (exchange.conversation, PeerReady(Peer(DIALECTS[E], ClientCapabilities())))
    assert router.next_event() is NEED_DATA


def test_upgrade_from_the_own_origin_is_accepted() -> None:
    reply = WebSocketHarness().ask_for_socket(upgrade(origin=b"http://127.0.0.1:8000"))
    assert reply.status == 101
    assert b"access-control-allow-origin" not in reply.headers


def test_upgrade_at_a_path_without_an_endpoint_closes_the_connection() -> None:
    harness = WebSocketHarness(routes={"/plain": lambda head: PlainResponse(200, b"ok")})
    for target, status in ((b"/nowhere", 404), (b"/plain", 200)):
        reply = harness.ask_for_socket(target=target)
        assert (reply.status, reply.exchange.close_after) == (status, True)


def test_upgrade_on_a_connection_that_cannot_switch_is_ignored() -> None:
    """One of HTTP/1.0, or a stream of HTTP/2: then it is a GET like any other."""
    reply = WebSocketHarness().ask_for_socket(may_upgrade=False)
    assert (reply.status, reply.exchange.close_after) == (200, False)


def test_upgrade_above_the_limit_is_rejected() -> None:
    harness = WebSocketHarness(limits=HttpLimits(sessions=2))
    first, _ = harness.connect(), harness.connect()
    assert harness.ask_for_socket().status == 503
    first.socket.receive_eof(0.0)
    first.settle()
    assert harness.ask_for_socket().status == 101


def test_upgrade_during_shutdown_is_rejected() -> None:
    """Open sockets go on until their calls are done, and then close with 1001 (going away)."""
    harness = WebSocketHarness()
    played = harness.connect()
    played.send(initialize(D), {"jsonrpc": "2.0", "method": "notifications/initialized"})
    played.send(request(1, "tools/call", {"name": "slow", "arguments": {"steps": 1}}))
    harness.router.shutdown()
    harness.pump()
    assert harness.ask_for_socket().status == 503
    (busy,) = played.send(request(2, "tools/list"))
    assert busy["error"]["code"] == -32000
    harness.step(2)
    (answer,) = played.output()
    assert answer["id"] == 1
    harness.router.close()
    harness.pump()
    assert played.output() == [1001]


def test_disconnect_before_the_switch_leaves_nothing() -> None:
    harness = WebSocketHarness()
    harness.unread = True
    exchange = harness.ask_for_socket().exchange
    harness.router.disconnected(exchange, 0.0)
    harness.pump()
    assert harness.endpoint.one_shots == {}


def test_deadline_is_checked_once() -> None:
    harness = WebSocketHarness()
    played = harness.connect()
    assert harness.router.next_deadline() == 20.0
    played.socket.receive_binary()
    played.settle()
    assert played.output() == [1003]
    played.settle()
    assert harness.router.next_deadline() == 1.0
    assert not played.conversation.write_blocked(1)
    harness.wait(31.0)
    assert played.is_gone()
    assert harness.router.next_deadline() is None


def test_many_websockets_share_one_endpoint() -> None:
    harness = WebSocketHarness()
    sockets = [harness.connect() for _ in range(3)]
    for number, played in enumerate(sockets):
        played.send(initialize(D))
        (answer,) = played.send(request(1, "tools/call", call("echo", text=str(number))))
        assert answer["result"]["content"][0]["text"] == str(number)
    assert len(harness.endpoint.one_shots) == 3
    assert len(harness.services) == 3
    assert harness.router.idle


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "_meta": meta()}


# -- A guarded one ---------------------------------------------------------------------------------


class AuthWebSocketHarness(AuthHarness, WebSocketHarness):
    """WebSockets of a guarded server."""


def test_upgrade_without_a_token_is_denied() -> None:
    harness = AuthWebSocketHarness(guard())
    reply = harness.ask_for_socket()
    assert (reply.status, reply.exchange.close_after) == (401, True)
    assert reply.headers[b"www-authenticate"].startswith(b"Bearer ")
    assert "GET refused with 401" in harness.logged()


def test_upgrade_with_a_bad_token_is_denied() -> None:
    assert AuthWebSocketHarness(guard()).ask_for_socket(who="nobody").status == 401


def test_upgrade_checks_host_before_the_token() -> None:
    assert AuthWebSocketHarness(guard()).ask_for_socket(upgrade(host=b"evil.example")).status == 421
    assert AuthWebSocketHarness(guard()).ask_for_socket(upgrade(origin=b"null")).status == 403


def test_upgrade_checks_the_token_before_the_handshake() -> None:
    assert (
        AuthWebSocketHarness(guard()).ask_for_socket(upgrade(sec_websocket_version=b"8")).status
        == 401
    )


def test_principal_is_known_to_handlers() -> None:
    played = AuthWebSocketHarness(guard()).connect(who="ann")
    (answer,) = played.send(request(1, "tools/call", call("whoami")))
    assert answer["result"]["content"][0]["text"].startswith("ann ")


def test_each_message_is_authorized() -> None:
    harness = AuthWebSocketHarness(guard(tool_scopes={"erase": ["memo:write"]}))
    played = harness.connect(who="ann-reads")
    (refused,) = played.send(request(7, "tools/call", call("erase")))
    assert (refused["id"], refused["error"]["code"]) == (7, -32600)
    assert "scopes" in refused["error"]["message"]
    assert "tools/call refused with 403" in harness.logged()
    (answer,) = played.send(request(7, "tools/call", call("whoami")))
    assert "result" in answer
    assert harness.done == []


def test_params_of_a_message_are_decoded_once() -> None:
    harness = AuthWebSocketHarness(guard())
    form = counting(harness.server)
    played = harness.connect(who="ann")
    (answer,) = played.send(form(5, _meta=meta()))
    assert answer["result"]["number"] == 5
    assert decoded == [5]


def test_denied_notification_gets_no_response() -> None:
    harness = AuthWebSocketHarness(guard(satisfies=lambda scopes, scope: False))
    played = WebSocketClient(harness, _accept(harness))
    assert played.send({"jsonrpc": "2.0", "method": "notifications/initialized"}) == []


def _accept(harness: AuthWebSocketHarness) -> Any:
    """Return the exchange of a client whose grant allows nothing."""
    grant = Grant("ann", "app")
    assert harness.endpoint.auth is not None
    lenient: Any = _Lenient(harness.endpoint.auth.resource_server, grant)
    harness.endpoint.auth = EndpointAuth(lenient, lambda: NOW, lambda *_, **__: None)
    return harness.ask_for_socket(who="ann").exchange


class _Lenient:
    """A resource server that admits every client, and then authorizes no message."""

    def __init__(self, guard: Any, grant: Grant) -> None:
        self._guard, self._grant = guard, grant

    def admit(self, *args: Any) -> Any:
        yield from ()
        return self._grant

    def check(self, grant: Any, method: Any = None, params: Any = None, now: Any = None) -> Any:
        return self._guard._refused(403, "insufficient_scope", "no", [READ])


def test_denied_requests_not_read_pause_the_websocket() -> None:
    harness = AuthWebSocketHarness(guard())
    played = WebSocketClient(harness, _accept(harness))
    batch = json.encode([request(id, "ping") for id in range(100)]).decode()
    for _ in range(200):
        played.socket.receive_text(batch, 0.0)
        played.settle()
    assert played.is_paused()
    assert len(played.output()) == 20_000
    assert not played.is_paused()


def test_websocket_closes_when_the_token_expires() -> None:
    def brief(text: str) -> Grant:
        return Grant("ann", "app", frozenset({READ}), expires_at=NOW + 100.0)

    harness = AuthWebSocketHarness(guard(brief))
    played = harness.connect(who="ann")
    played.socket.disable_keep_alive()
    played.send(request(1, "tools/call", call("whoami")))
    harness.wait(99.0)
    assert played.output() == []
    harness.wait(1.1)
    assert played.take() == [Close(1008, "the token has expired")]


# -- Deadlines -------------------------------------------------------------------------------------


def test_closed_websockets_have_no_deadlines() -> None:
    """500 sockets come and go beside one that stays: the heap of timers must not grow."""
    harness = WebSocketHarness()
    websockets = harness.endpoint.websockets
    kept = harness.connect()
    for number in range(500):
        played = harness.connect()
        assert len(websockets.checks) == 2
        if number % 2:
            played.socket.receive_eof(0.0)
        else:
            played.socket.receive_close(1000, "", 0.0)
            played.settle()
            assert played.take() == [Close(1000)]
        played.settle()
        assert len(websockets.checks) == 1
        assert len(websockets._heap) <= 66
    kept.socket.receive_eof(0.0)
    kept.settle()
    assert harness.router.next_deadline() is None
    assert websockets.next_deadline() is None
    assert websockets._heap == []


def test_deadlines_of_websockets_are_handled_in_order() -> None:
    """They move to later times, and to earlier ones, while others end."""
    harness = WebSocketHarness(limits=HttpLimits(initialize=10.0))
    played = [harness.connect() for _ in range(200)]
    for each in played:
        each.socket.disable_keep_alive()
    for each in played[:190]:
        each.socket.receive_eof(0.0)
        each.settle()
    harness.wait(4.0)
    late = harness.connect()
    played[190].send(initialize(D))
    harness.wait(6.1)
    policy = [Close(1008, "no message arrived in time")]
    assert [each.take() for each in played[191:]] == [policy] * 9
    assert played[190].take() == late.take() == []
    harness.wait(4.0)
    assert late.take() == policy


# -- The corpora of names --------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [LOOPBACK, ANYWHERE, LISTED], ids="LAN")
def test_upgrade_checks_every_form_of_host_and_origin(policy: HostOriginPolicy) -> None:
    letter = "LAN"[(LOOPBACK, ANYWHERE, LISTED).index(policy)]
    harness = WebSocketHarness(policy=policy)
    for host, allowed in HOSTS:
        assert harness.ask_for_socket(upgrade(host=host)).status == (
            101 if letter in allowed else 421
        ), host
    for origin, host, allowed in ORIGINS:
        if policy.allows_host(host):
            status = harness.ask_for_socket(upgrade(host=host, origin=origin)).status
            assert status == (101 if letter in allowed else 403), (origin, host)


def test_websocket_without_a_deadline_discards_no_other_check() -> None:
    """It has never been watched, so it has the number of no check."""

    def websocket(due: float | None) -> Any:
        socket = SimpleNamespace(next_deadline=lambda: due)
        return SimpleNamespace(socket=socket, next_check=math.inf, check=0)

    sessions = WebSocketSessions()
    assert (sessions.next_deadline(), sessions.checks) == (None, {})
    first, second, endless = websocket(5.0), websocket(3.0), websocket(None)
    for each in (first, second, endless):
        sessions.watch(each)
    sessions.discard(endless)
    assert list(sessions.checks.values()) == [first, second]
    assert (sessions.next_deadline(), first.next_check, endless.next_check) == (3.0, 5.0, math.inf)
    sessions.discard(second)
    sessions.discard(second)
    assert (sessions.next_deadline(), list(sessions.checks.values())) == (5.0, [first])
