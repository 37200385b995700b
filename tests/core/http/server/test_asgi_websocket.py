"""A WebSocket over ASGI: acceptance, messages, its end, and no output after a disconnect."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json

from mcp_core.auth import Await
from mcp_core.http import AsgiHttpExchange, AsgiWebSocket, asgi_exchange
from tests.core.http.router_harness import GET, HOST, D, initialize, request
from tests.core.http.server.test_auth import GRANTS, guard
from tests.core.http.server.test_websocket_session import AuthWebSocketHarness
from tests.core.http.websocket_harness import WebSocketHarness

CONNECT = {"type": "websocket.connect"}
ACCEPT = {"type": "websocket.accept", "subprotocol": "mcp", "headers": []}
EXPLAINS: dict[str, Any] = {"websocket.http.response": {}}


class Asked:
    """The application's end: `said` is what it has sent."""

    def __init__(self, harness: WebSocketHarness, **scope: Any) -> None:
        self.harness = harness
        self.pokes = 0
        whole = {
            "type": "websocket",
            "path": "/mcp",
            "subprotocols": ["mcp"],
            "headers": [HOST],
            **scope,
        }
        asked = asgi_exchange(harness.router, whole, harness.now, token=self)
        assert isinstance(asked, AsgiWebSocket)
        self.asked = asked
        self.said: list[Any] = []
        self.pump()

    def wake(self) -> None:
        self.pokes += 1

    def pump(self) -> None:
        router = self.harness.router
        while isinstance(found := router.next_event(), tuple):
            self.harness._take(*found)
        for exchange in router.ready():
            exchange.token.wake()

    def tell(self, **message: Any) -> list[Any]:
        """Receive a message, and return the output that follows."""
        self.asked.receive(message, self.harness.now)
        return self.hear()

    def hear(self) -> list[Any]:
        said: list[Any] = []
        while True:
            self.pump()
            messages = self.asked.messages_to_send(self.harness.now)
            if not messages:
                return said
            said += messages

    def say(self, message: Any) -> list[Any]:
        heard = self.tell(type="websocket.receive", text=json.encode(message).decode())
        return [json.decode(each["text"]) if "text" in each else each for each in heard]


def connected(harness: WebSocketHarness | None = None, **scope: Any) -> Asked:
    asked = Asked(harness or WebSocketHarness(), **scope)
    assert asked.hear() == []
    assert asked.tell(**CONNECT) == [ACCEPT]
    assert asked.pokes
    return asked


def test_websocket_carries_a_conversation() -> None:
    asked = connected()
    (answer,) = asked.say(initialize(D))
    assert answer["result"]["protocolVersion"] == D
    assert asked.say({"jsonrpc": "2.0", "method": "notifications/initialized"}) == []
    asked.asked.receive(
        {"type": "websocket.receive", "text": json.encode(request(0, "ping")).decode()}, 0.0
    )
    asked.pump()
    assert len(asked.asked.messages_to_send(0.0)) == 1
    asked.harness.wait(1000.0)  # no keep-alive ping, and no write timeout
    assert asked.say(request(1, "ping")) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert repr(asked.asked).startswith("<AsgiWebSocket open, <Exchange DONE")
    asked.tell(type="websocket.disconnect", code=1000)
    assert (asked.asked.over, asked.asked.gone, asked.harness.endpoint.one_shots) == (
        True,
        True,
        {},
    )
    assert repr(asked.asked).startswith("<AsgiWebSocket gone")
    assert asked.hear() == []


ENDS: list[tuple[dict[str, Any], int]] = [
    ({"bytes": b"{}"}, 1003),
    ({"bytes": b"{}", "text": None}, 1003),
    ({"text": "x" * 100_001}, 1009),
]


@pytest.mark.parametrize(("message", "code"), ENDS)
def test_websocket_ends_by_close_or_disconnect(message: dict[str, Any], code: int) -> None:
    asked = connected()
    (close,) = asked.tell(type="websocket.receive", **message)
    assert (close["type"], close["code"]) == ("websocket.close", code)
    assert (asked.asked.over, asked.asked.gone) == (True, False)
    assert repr(asked.asked).startswith("<AsgiWebSocket over")
    asked.asked.disconnected(0.0)
    assert asked.hear() == []


def test_shutdown_closes_the_websocket() -> None:
    asked = connected()
    asked.harness.router.close()
    assert asked.hear() == [{"type": "websocket.close", "code": 1001, "reason": ""}]


REFUSED = [
    # what is different in the scope, the status
    ({"headers": []}, 421),
    ({"headers": [(b"host", b"evil.example")]}, 421),
    ({"headers": [HOST, (b"origin", b"http://evil.example")]}, 403),
    ({"subprotocols": []}, 400),
    ({"subprotocols": ["graphql"]}, 400),
    ({"path": "/other"}, 404),
]


@pytest.mark.parametrize(("scope", "status"), REFUSED)
def test_rejected_upgrade_gets_a_reason_or_403(scope: dict[str, Any], status: int) -> None:
    asked = Asked(WebSocketHarness(), **scope)
    assert asked.tell(**CONNECT) == [{"type": "websocket.close"}]
    assert asked.asked.over
    asked = Asked(WebSocketHarness(), extensions=EXPLAINS, **scope)
    start, body = asked.tell(**CONNECT)
    assert (start["type"], start["status"]) == ("websocket.http.response.start", status)
    assert body["body"]
    assert not body["more_body"]
    assert asked.asked.over


def test_handshake_headers_are_not_checked_again() -> None:
    headers = [
        HOST,
        (b"upgrade", b"websocket"),
        (b"connection", b"close"),
        (b"content-length", b"5"),
        (b"sec-websocket-version", b"8"),
        (b"sec-websocket-key", b"x"),
        (b"sec-websocket-protocol", b"graphql"),
    ]
    connected(headers=headers, extensions=None)


def test_upgrade_waits_for_the_grant() -> None:
    def later(text: str) -> Any:
        async def verify() -> Any:
            raise AssertionError

        return verify()

    harness = AuthWebSocketHarness(guard(later))
    asked = Asked(harness, headers=[HOST, (b"authorization", b"Bearer ann")])
    admission = asked.asked.exchange.auth_check
    assert admission is not None
    assert asked.tell(**CONNECT) == []
    assert asked.tell(type="websocket.receive", text="{}") == []
    assert not asked.asked.paused
    assert isinstance(admission.step, Await)
    admission.step.awaitable.close()  # type: ignore[attr-defined]
    admission.send(GRANTS["ann"], 0.0)
    assert asked.hear() == [ACCEPT]


def test_disconnect_before_accept_leaves_nothing() -> None:
    asked = Asked(WebSocketHarness())
    asked.tell(type="websocket.disconnect", code=1006, reason="")
    assert (asked.hear(), asked.harness.endpoint.one_shots) == ([], {})
    asked = Asked(WebSocketHarness(), path="/other")
    asked.tell(type="websocket.disconnect")
    assert asked.hear() == []


def test_websocket_that_is_not_read_is_paused() -> None:
    asked = connected()
    asked.say(initialize(D))
    for id in range(30):
        params = {"name": "echo", "arguments": {"text": "x" * 60_000}}
        text = json.encode(request(id, "tools/call", params)).decode()
        asked.asked.receive({"type": "websocket.receive", "text": text}, 0.0)
        asked.pump()
    assert asked.asked.paused
    asked.hear()
    assert not asked.asked.paused


def test_asgi_exchange_follows_the_scope_type() -> None:
    scope = {"type": "http", "method": "GET", "path": "/mcp", "headers": GET}
    exchange = asgi_exchange(WebSocketHarness().router, scope, 0.0, token=None)
    assert isinstance(exchange, AsgiHttpExchange)
    assert not exchange.paused
    with pytest.raises(ValueError, match="knows no 'telephone'"):
        asgi_exchange(WebSocketHarness().router, {"type": "telephone"}, 0.0, token=None)
