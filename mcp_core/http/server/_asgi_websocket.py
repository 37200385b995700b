"""Translation between ASGI 3 and a WebSocket: a scope is the upgrade request.

1. The ASGI server has checked the handshake, encodes all frames and sends the pings. So the scope's
   handshake headers are replaced by valid ones, and only the rest is checked here.
2. Nothing is sent before the server has reported the connect, nor after it has reported the
   disconnect.
3. A client that is rejected gets the reason if the server has the extension
   `websocket.http.response`, and 403 otherwise.

Source: asgi.readthedocs.io, HTTP & WebSocket, version 2.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp_core.http.wire._messages import Body, Head, RequestHead, header
from mcp_core.http.wire._websocket import NO_CODE, Close, Text

from ._asgi import AsgiHttpExchange, client_address, split_scope
from ._router import Router

if TYPE_CHECKING:
    from mcp_core.http.wire._messages import Action, Headers


__all__ = ["AsgiWebSocket", "asgi_exchange"]

_HANDSHAKE: Final = (b"upgrade", b"connection", b"content-length", b"transfer-encoding")
_WEBSOCKET_PREFIX: Final = b"sec-websocket-"
_VALID_HANDSHAKE: Final[Headers] = [
    (b"upgrade", b"websocket"),
    (b"connection", b"upgrade"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-key", b"AAAAAAAAAAAAAAAAAAAAAA=="),
]
_RESPONSE: Final = "websocket.http.response"


def asgi_exchange(
    router: Router, scope: Mapping[str, Any], now: float, *, token: Any
) -> AsgiHttpExchange | AsgiWebSocket:
    """Return the exchange of a scope of type `http` or `websocket`.

    Args:
        router: what serves the request.
        scope: the application call's scope.
        now: the time on the router's clock.
        token: belongs to the driver. Its `wake` is called when there is output to send.

    Raises:
        ValueError: the scope is of another type.
    """
    kind = AsgiWebSocket if scope["type"] == "websocket" else AsgiHttpExchange
    return kind(router, scope, now, token=token)


class AsgiWebSocket:
    """An upgrade request to a `router`, made from its `scope`, and then the WebSocket.

    Use it as an `AsgiHttpExchange`, with a `token` and the time `now`, but receive nothing while it
    is `paused`.

    Attributes:
        exchange: the router's exchange.
        gone: True if the client has disconnected.
    """

    __slots__ = (
        "_accepted",
        "_connected",
        "_ended",
        "_router",
        "_sends_rejections",
        "_token",
        "exchange",
        "gone",
    )

    def __init__(self, router: Router, scope: Mapping[str, Any], now: float, *, token: Any) -> None:
        head, path = split_scope({**scope, "method": "GET"})
        offered = ", ".join(scope.get("subprotocols", ())).encode()
        headers = [
            (name, value)
            for name, value in head.headers
            if name not in _HANDSHAKE and not name.startswith(_WEBSOCKET_PREFIX)
        ]
        headers += [*_VALID_HANDSHAKE, (b"sec-websocket-protocol", offered)]
        head = RequestHead(b"GET", head.target, headers)
        self._token = token
        self._sends_rejections = _RESPONSE in (scope.get("extensions") or {})
        self._connected = self._accepted = self._ended = self.gone = False
        self._router = router
        self.exchange = router.begin(
            head,
            now,
            path=path,
            token=token,
            address=client_address(scope),
            may_upgrade=True,
            http_version=scope.get("http_version", ""),
        )

    def __repr__(self) -> str:
        return (
            f"<AsgiWebSocket {'gone' if self.gone else 'over' if self.over else 'open'}, "
            f"{self.exchange!r}>"
        )

    @property
    def over(self) -> bool:
        """True if all was sent, the Close included, or the client has disconnected."""
        return self.gone or self._ended

    @property
    def paused(self) -> bool:
        """True if nothing may be received now."""
        socket = self.exchange.socket
        return socket is not None and socket.paused

    def receive(self, message: Mapping[str, Any], now: float) -> None:
        """Receive `message`: `websocket.connect`, `websocket.receive` or `websocket.disconnect`."""
        socket = self.exchange.socket
        if message["type"] == "websocket.connect":
            self._connected = True
            self._token.wake()
        elif message["type"] == "websocket.disconnect":
            if socket is not None:
                socket.receive_close(message.get("code", NO_CODE), message.get("reason") or "", now)
            self.disconnected(now)
        elif socket is not None:
            text = message.get("text")
            if text is None:
                socket.receive_binary()
            else:
                socket.receive_text(text, now)
            self._mark_dirty()

    def disconnected(self, now: float) -> None:
        """Report that the client is gone. Harmless once all was sent."""
        self.gone = True
        self._router.disconnected(self.exchange, now)

    def messages_to_send(self, now: float) -> list[dict[str, Any]]:
        """Return what to send now; empty if there is nothing."""
        if not self._connected or self.over:
            return []
        messages: list[dict[str, Any]] = []
        if not self._accepted:
            actions = self._router.actions_to_send(self.exchange)
            if not actions:
                return []
            if self.exchange.socket is None:
                return self._rejection(actions)
            self._accepted = True
            self.exchange.socket.disable_keep_alive()
            accepted = actions[0]
            assert isinstance(accepted, Head)
            selected = header(accepted, b"sec-websocket-protocol")
            subprotocol = None if selected is None else selected.decode()
            messages.append({"type": "websocket.accept", "subprotocol": subprotocol, "headers": []})
        assert self.exchange.socket is not None
        for action in self.exchange.socket.messages_to_send(now):
            if isinstance(action, Text):
                messages.append({"type": "websocket.send", "text": action.text})
            else:
                assert isinstance(action, Close)
                messages.append(
                    {"type": "websocket.close", "code": action.code, "reason": action.reason}
                )
                self._ended = True
        self._ended = self._ended or self.exchange.socket.done
        self._mark_dirty()
        return messages

    def _rejection(self, actions: list[Action]) -> list[dict[str, Any]]:
        self._ended = True
        if not self._sends_rejections:
            return [{"type": "websocket.close"}]
        head = actions[0]
        assert isinstance(head, Head)
        body = b"".join([action.data for action in actions if isinstance(action, Body)])
        return [
            {"type": f"{_RESPONSE}.start", "status": head.status, "headers": head.headers},
            {"type": f"{_RESPONSE}.body", "body": body, "more_body": False},
        ]

    def _mark_dirty(self) -> None:
        """Have the conversation's events and its deadline looked at by the next pump."""
        assert self.exchange.conversation is not None
        self.exchange.conversation.mark_dirty()
