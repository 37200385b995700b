"""A WebSocket as ASGI 3 spells it: a scope is the request for it, messages are messages.

Whoever serves an application has looked at the handshake himself, spells all frames, and asks himself whether the client lives. So of
the request only what is ours to judge is handed on, and the rest is said as it should have been.

Rules of this file:

1. Nothing is said before the server has told that somebody connects, and nothing after it has told that he is gone.
2. Who is refused hears why if the server can say it (the extension `websocket.http.response`), and else 403.

It refuses to know how messages are waited for. Source: asgi.readthedocs.io, HTTP & WebSocket, version 2.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ._asgi import AsgiExchange, split_scope
from ._messages import Body, Head, RequestHead
from ._websocket import Close, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._messages import Action, Headers
    from ._site import Site

__all__ = ["AsgiSocket", "asgi_exchange"]

_HANDSHAKE: Final = (b"upgrade", b"connection", b"content-length", b"transfer-encoding")
_OF_SOCKETS: Final = b"sec-websocket-"
_AS_IT_SHOULD_BE: Final[Headers] = [
    (b"upgrade", b"websocket"),
    (b"connection", b"upgrade"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-key", b"AAAAAAAAAAAAAAAAAAAAAA=="),
]
_RESPONSE: Final = "websocket.http.response"
_NO_CODE: Final = 1005


def asgi_exchange(
    site: Site, scope: Mapping[str, Any], now: float, *, token: Any
) -> AsgiExchange | AsgiSocket:
    """What a scope of type `http` or `websocket` tells of.

    Raises:
        ValueError: the scope is of another type.
    """
    kind = AsgiSocket if scope["type"] == "websocket" else AsgiExchange
    return kind(site, scope, now, token=token)


class AsgiSocket:
    """A request for a WebSocket to a `site`, by its `scope`, and then the WebSocket. To be used as an `AsgiExchange`, but nothing is to
    be received while it is `paused`, and after what is received the token is to be taken for poked.
    """

    __slots__ = ("_accepted", "_connected", "_refuses", "_said", "_site", "_token", "exchange", "gone")

    def __init__(self, site: Site, scope: Mapping[str, Any], now: float, *, token: Any) -> None:
        head, path = split_scope({**scope, "method": "GET"})
        offered = ", ".join(scope.get("subprotocols", ())).encode()
        headers = [
            (name, value)
            for name, value in head.headers
            if name not in _HANDSHAKE and not name.startswith(_OF_SOCKETS)
        ]
        headers += [*_AS_IT_SHOULD_BE, (b"sec-websocket-protocol", offered)]
        head = RequestHead(b"GET", head.target, headers)
        self._token = token
        self._refuses = _RESPONSE in (scope.get("extensions") or {})
        self._connected = self._accepted = self._said = self.gone = False
        self._site = site
        self.exchange = site.begin(head, now, path=path, token=token, may_switch=True)

    def __repr__(self) -> str:
        return f"<AsgiSocket {'gone' if self.gone else 'over' if self.over else 'open'}, {self.exchange!r}>"

    @property
    def over(self) -> bool:
        """Whether nothing is left to be taken, or nobody is there any more."""
        return self.gone or self._said

    @property
    def paused(self) -> bool:
        """Whether nothing is to be received."""
        socket = self.exchange.socket
        return socket is not None and socket.paused

    def receive(self, message: Mapping[str, Any], now: float) -> None:
        """A message has arrived: `websocket.connect`, `websocket.receive` or `websocket.disconnect`."""
        socket = self.exchange.socket
        if message["type"] == "websocket.connect":
            self._connected = True
            self._token.poke()
        elif message["type"] == "websocket.disconnect":
            if socket is not None:
                socket.receive_close(message.get("code", _NO_CODE), message.get("reason") or "", now)
            self.disconnected(now)
        elif socket is not None:
            text = message.get("text")
            if text is None:
                socket.receive_binary(now)
            else:
                socket.receive_text(text, now)
            self._touch()

    def disconnected(self, now: float) -> None:
        """The client is gone, or nothing can be sent any more. Harmless when all was said."""
        self.gone = True
        self._site.disconnected(self.exchange, now)

    def messages_to_send(self, now: float) -> list[dict[str, Any]]:
        """What is to be sent now; nothing if that is nothing."""
        if not self._connected or self.over:
            return []
        messages: list[dict[str, Any]] = []
        if not self._accepted:
            actions = self._site.actions_to_send(self.exchange)
            if not actions:
                return []
            if self.exchange.socket is None:
                return self._refusal(actions)
            self._accepted = True
            self.exchange.socket.leave_frames()
            messages.append({"type": "websocket.accept", "subprotocol": "mcp", "headers": []})
        assert self.exchange.socket is not None
        for action in self.exchange.socket.messages_to_send(now):
            if isinstance(action, Text):
                messages.append({"type": "websocket.send", "text": action.text})
            else:
                assert isinstance(action, Close)
                messages.append({"type": "websocket.close", "code": action.code, "reason": action.reason})
                self._said = True
        self._said = self._said or self.exchange.socket.over
        self._touch()
        return messages

    def _refusal(self, actions: list[Action]) -> list[dict[str, Any]]:
        self._said = True
        if not self._refuses:
            return [{"type": "websocket.close"}]
        head = actions[0]
        assert isinstance(head, Head)
        body = b"".join([action.data for action in actions if isinstance(action, Body)])
        return [
            {"type": f"{_RESPONSE}.start", "status": head.status, "headers": head.headers},
            {"type": f"{_RESPONSE}.body", "body": body, "more_body": False},
        ]

    def _touch(self) -> None:
        """Have the events of the conversation taken, and its time looked at."""
        assert self.exchange.conversation is not None
        self.exchange.conversation.touch()
