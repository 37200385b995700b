"""A router with a WebSocket, without frames: the test is the driver and the client."""

from __future__ import annotations

from typing import Any

from msgspec import json

from mcp_core.http import Close, Exchange, Ping, Pong, RequestHead, Text, WebSocket, WebSocketAction
from tests.harness.wire.router import HOST, Reply, RouterHarness

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
PROOF = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, 1.3
UPGRADE = [
    HOST,
    (b"upgrade", b"websocket"),
    (b"connection", b"Upgrade"),
    (b"sec-websocket-key", KEY),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-protocol", b"mcp"),
]


def upgrade(**changed: bytes | None) -> list[tuple[bytes, bytes]]:
    """The headers of an upgrade, some of them otherwise, or (None) not there."""
    headers = dict(UPGRADE)
    for name, value in changed.items():
        key = name.replace("_", "-").encode()
        headers.pop(key, None)
        if value is not None:
            headers[key] = value
    return list(headers.items())


class WebSocketHarness(RouterHarness):
    """A harness of a server that is reached over WebSockets."""

    def ask_for_socket(
        self,
        headers: list[tuple[bytes, bytes]] | None = None,
        *,
        target: bytes = b"/mcp",
        may_upgrade: bool = True,
        who: str = "",
    ) -> Reply:
        headers = UPGRADE if headers is None else headers
        if who:
            headers = [*headers, (b"authorization", b"Bearer " + who.encode())]
        exchange = self.router.begin(
            RequestHead(b"GET", target, headers),
            self.now,
            address=self.address,
            may_upgrade=may_upgrade,
        )
        reply = self.replies[exchange] = Reply(exchange)
        self.pump()
        return reply

    def connect(self, **options: Any) -> WebSocketClient:
        reply = self.ask_for_socket(**options)
        assert reply.status == 101, reply
        return WebSocketClient(self, reply.exchange)

    def read(self, exchange: Exchange) -> None:
        if exchange.socket is None or not exchange.over:
            super().read(exchange)


class WebSocketClient:
    """The client's end."""

    def __init__(self, harness: WebSocketHarness, exchange: Exchange) -> None:
        self.harness = harness
        self.exchange = exchange
        assert exchange.socket is not None
        assert exchange.conversation is not None
        self.socket: WebSocket = exchange.socket
        self.conversation = exchange.conversation
        self.actions: list[WebSocketAction] = []

    def is_gone(self) -> bool:
        return self.socket.disconnected

    def is_over(self) -> bool:
        return self.socket.done

    def is_paused(self) -> bool:
        return self.socket.paused

    def settle(self) -> None:
        self.conversation.mark_dirty()
        self.harness.pump()

    def send(self, *messages: Any) -> list[Any]:
        """Messages, or text, go in; gives what comes back."""
        for message in messages:
            text = message if isinstance(message, str) else json.encode(message).decode()
            self.socket.receive_text(text, self.harness.now)
        self.settle()
        return self.output()

    def take(self) -> list[WebSocketAction]:
        """Return all output, taken in the pieces that the writer takes."""
        taken: list[WebSocketAction] = []
        while actions := self.socket.messages_to_send(self.harness.now):
            taken += actions
            self.settle()
        return taken

    def output(self) -> list[Any]:
        """The same, messages decoded and the rest in short."""
        return [_short(action) for action in self.take()]


def _short(action: WebSocketAction) -> Any:
    if isinstance(action, Text):
        return json.decode(action.text)
    if isinstance(action, Ping):
        return "ping"
    if isinstance(action, Pong):
        return ("pong", action.payload)
    assert isinstance(action, Close)
    return action.code
