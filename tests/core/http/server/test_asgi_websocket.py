"""A WebSocket over ASGI: acceptance, messages, its end, and no output after a disconnect."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json

from mcp_core.auth import Await
from mcp_core.http import AsgiHttpExchange, AsgiWebSocket, asgi_exchange
from tests.core.http.server.test_auth import GRANTS, guard
from tests.core.http.server.test_websocket_session import AuthWebSocketHarness
from tests.harness.wire.router import (
    GET,
    HOST,
    D,
    initialize,
    request,
)
from tests.harness.wire.websocket_router import WebSocketHarness

CONNECT = {"type": "websocket.connect"}
ACCEPT = {"type": "websocket.accept", "subprotocol": "mcp", "headers": []}
EXPLAINS: dict[str, Any] = {"websocket.http.response": {}}


class AsgiHarness:
    """The application's end: `sent` is what it has sent."""

    def __init__(self, harness: WebSocketHarness, **scope: Any) -> None:
        self.harness = harness
        self.wakeups = 0
        whole = {
            "type": "websocket",
            "path": "/mcp",
            "subprotocols": ["mcp"],
            "headers": [HOST],
            **scope,
        }
        app = asgi_exchange(harness.router, whole, harness.now, token=self)
        assert isinstance(app, AsgiWebSocket)
        self.websocket = app
        self.sent: list[Any] = []
        self.pump()

    def wake(self) -> None:
        self.wakeups += 1

    def pump(self) -> None:
        router = self.harness.router
        while isinstance(found := router.next_event(), tuple):
            self.harness._take(*found)
        for exchange in router.ready():
            exchange.token.wake()

    def receive(self, **message: Any) -> list[Any]:
        """Receive a message, and return the output that follows."""
        self.websocket.receive(message, self.harness.now)
        return self.output()

    def output(self) -> list[Any]:
        output: list[Any] = []
        while True:
            self.pump()
            messages = self.websocket.messages_to_send(self.harness.now)
            if not messages:
                return output
            output += messages

    def receive_text(self, message: Any) -> list[Any]:
        output = self.receive(type="websocket.receive", text=json.encode(message).decode())
        return [json.decode(each["text"]) if "text" in each else each for each in output]


def connected(harness: WebSocketHarness | None = None, **scope: Any) -> AsgiHarness:
    app = AsgiHarness(harness or WebSocketHarness(), **scope)
    assert app.websocket.messages_to_send(0.0) == []
    assert app.receive(**CONNECT) == [ACCEPT]
    assert app.wakeups
    return app


def test_websocket_carries_a_conversation() -> None:
    """The web server sends pings itself, so here 1000 silent seconds cause none."""
    app = connected()
    (answer,) = app.receive_text(initialize(D))
    assert answer["result"]["protocolVersion"] == D
    assert app.receive_text({"jsonrpc": "2.0", "method": "notifications/initialized"}) == []
    app.websocket.receive(
        {"type": "websocket.receive", "text": json.encode(request(0, "ping")).decode()}, 0.0
    )
    app.pump()
    assert len(app.websocket.messages_to_send(0.0)) == 1
    app.harness.wait(1000.0)  # no keep-alive ping, and no write timeout
    assert app.receive_text(request(1, "ping")) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert repr(app.websocket).startswith("<AsgiWebSocket open, <Exchange DONE")
    app.receive(type="websocket.disconnect", code=1000)
    assert (app.websocket.over, app.websocket.gone, app.harness.endpoint.one_shots) == (
        True,
        True,
        {},
    )
    assert repr(app.websocket).startswith("<AsgiWebSocket gone")
    assert app.output() == []


ENDS: list[tuple[dict[str, Any], int]] = [
    ({"bytes": b"{}"}, 1003),
    ({"bytes": b"{}", "text": None}, 1003),
    ({"text": "x" * 100_001}, 1009),
]


@pytest.mark.parametrize(("message", "code"), ENDS)
def test_websocket_ends_by_close_or_disconnect(message: dict[str, Any], code: int) -> None:
    app = connected()
    (close,) = app.receive(type="websocket.receive", **message)
    assert (close["type"], close["code"]) == ("websocket.close", code)
    assert (app.websocket.over, app.websocket.gone) == (True, False)
    assert repr(app.websocket).startswith("<AsgiWebSocket over")
    app.websocket.disconnected(0.0)
    assert app.output() == []


def test_shutdown_closes_the_websocket() -> None:
    app = connected()
    app.harness.router.close()
    assert app.output() == [{"type": "websocket.close", "code": 1001, "reason": ""}]


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
    app = AsgiHarness(WebSocketHarness(), **scope)
    assert app.receive(**CONNECT) == [{"type": "websocket.close"}]
    assert app.websocket.over
    app = AsgiHarness(WebSocketHarness(), extensions=EXPLAINS, **scope)
    start, body = app.receive(**CONNECT)
    assert (start["type"], start["status"]) == ("websocket.http.response.start", status)
    assert body["body"]
    assert not body["more_body"]
    assert app.websocket.over


@pytest.mark.parametrize(("offered", "selected"), [(["a", "b"], None), ([], None)])
def test_server_without_subprotocols_selects_none(offered: list[str], selected: str | None) -> None:
    app = AsgiHarness(WebSocketHarness(subprotocols=()), subprotocols=offered)
    assert app.receive(**CONNECT) == [{**ACCEPT, "subprotocol": selected}]


def test_server_selects_one_of_its_subprotocols() -> None:
    app = AsgiHarness(WebSocketHarness(subprotocols=("b", "c")), subprotocols=["a", "c", "b"])
    assert app.receive(**CONNECT) == [{**ACCEPT, "subprotocol": "c"}]


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
    """`accept` is held back while the token is verified, and an early message is kept out."""

    def later(text: str) -> Any:
        async def verify() -> Any:
            raise AssertionError

        return verify()

    harness = AuthWebSocketHarness(guard(later))
    app = AsgiHarness(harness, headers=[HOST, (b"authorization", b"Bearer ann")])
    admission = app.websocket.exchange.auth_check
    assert admission is not None
    assert app.receive(**CONNECT) == []
    assert app.receive(type="websocket.receive", text="{}") == []
    assert not app.websocket.paused
    assert app.websocket.messages_to_send(0.0) == []
    assert isinstance(admission.step, Await)
    admission.step.awaitable.close()  # type: ignore[attr-defined]
    admission.send(GRANTS["ann"], 0.0)
    assert app.output() == [ACCEPT]


def test_disconnect_before_accept_leaves_nothing() -> None:
    app = AsgiHarness(WebSocketHarness())
    app.receive(type="websocket.disconnect", code=1006, reason="")
    assert (app.output(), app.harness.endpoint.one_shots) == ([], {})
    app = AsgiHarness(WebSocketHarness(), path="/other")
    app.receive(type="websocket.disconnect")
    assert app.output() == []


def test_websocket_that_is_not_read_is_paused() -> None:
    app = connected()
    app.receive_text(initialize(D))
    for id in range(30):
        params = {"name": "echo", "arguments": {"text": "x" * 60_000}}
        text = json.encode(request(id, "tools/call", params)).decode()
        app.websocket.receive({"type": "websocket.receive", "text": text}, 0.0)
        app.pump()
    assert app.websocket.paused
    app.output()
    assert not app.websocket.paused


def test_asgi_exchange_follows_the_scope_type() -> None:
    scope = {"type": "http", "method": "GET", "path": "/mcp", "headers": GET}
    exchange = asgi_exchange(WebSocketHarness().router, scope, 0.0, token=None)
    assert isinstance(exchange, AsgiHttpExchange)
    assert not exchange.paused
    with pytest.raises(ValueError, match="knows no 'telephone'"):
        asgi_exchange(WebSocketHarness().router, {"type": "telephone"}, 0.0, token=None)
