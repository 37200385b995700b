"""The conversation of an endpoint that goes over a WebSocket: how it begins, and how its events get among those of the others.

Rules of this file:

1. It begins like any other request: `Host` and `Origin`, then the guard, then whether there is room, then the handshake. Only then
   there is a WebSocket (`begin_socket`), and whoever is refused hears so over HTTP.
2. The connection does not go on when it was refused, for what comes behind may be meant for a WebSocket, and come from somebody else
   than who asked: there are proxies that do not wait for the answer.
3. By what somebody was let in, each of his messages is judged, as if it came by POST.

It refuses to know frames.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

from mcp_core import types as t
from mcp_core._connection import Connection
from mcp_core._events import NEED_DATA, PAUSED, ConnectionClosed, Peer, PeerReady
from mcp_core._methods import Role

from ._conversation import Conversation
from ._handshake import accepted
from ._websocket import WebSocket

if TYPE_CHECKING:
    from mcp_core._body import ParsedBody
    from mcp_core._config import Config
    from mcp_core.types import RequestId

    from ._endpoint import Endpoint
    from ._exchange import Exchange
    from ._messages import RequestHead

__all__ = ["SocketConversation", "Sockets", "begin_socket"]

_LOOK: Final = 30.0  # seconds


class SocketConversation(Conversation):
    """All that goes over the WebSocket that `exchange` has become."""

    __slots__ = ("endpoint", "exchange", "looked_at", "socket")

    def __init__(self, exchange: Exchange, endpoint: Endpoint, config: Config, now: float) -> None:
        principal = exchange.principal
        conn = Connection(Role.SERVER, config, bucket=endpoint.bucket(principal))
        super().__init__(endpoint.shared, conn, principal, config.dialects[0].http)
        self.endpoint = endpoint
        self.exchange = exchange
        self.looked_at = math.inf  # when `Sockets` looks at it next
        grant, door = exchange.grant, endpoint.door
        until: float | None = None
        if grant is not None and door is not None and grant.good_until is not None:
            until = now + grant.good_until - door.wall_time()
        self.socket = WebSocket(
            conn,
            now,
            grant=grant,
            judge=self._judge if grant is not None else None,
            until=until,
            patience=endpoint.options.limits.initialize,
        )

    def _judge(self, body: ParsedBody) -> str | None:
        door, grant = self.endpoint.door, self.exchange.grant
        assert door is not None
        assert grant is not None
        refused = door.judge(grant, body, self.conn.config)
        return None if refused is None else refused.message

    def queued(self, id: RequestId | None) -> int:
        return self.socket.queued()

    def settle(self) -> None:
        socket, endpoint = self.socket, self.endpoint
        was_paused = socket.paused
        while (event := socket.next_event()) is not NEED_DATA and event is not PAUSED:
            if isinstance(event, ConnectionClosed):
                endpoint.alone.pop(self, None)
            endpoint.events.append((self, event))
        if socket.has_to_say or socket.paused is not was_paused:
            endpoint.ready[self.exchange] = None
        if not socket.over:
            endpoint.sockets.watch(self, socket.now)


class Sockets:
    """When something is due at any of the WebSockets of an endpoint.

    To put a deadline off costs nothing here: who is looked at too early is looked at once more. `_LOOK` bounds how long one that is
    over is remembered.
    """

    __slots__ = ("_numbers", "deadlines")

    def __init__(self) -> None:
        self.deadlines: list[tuple[float, int, SocketConversation]] = []
        self._numbers = count()

    def watch(self, conversation: SocketConversation, now: float) -> None:
        due = conversation.socket.next_deadline()
        if due is not None and due < conversation.looked_at:
            conversation.looked_at = due = min(due, now + _LOOK)
            heappush(self.deadlines, (due, next(self._numbers), conversation))

    def next_deadline(self) -> float | None:
        return self.deadlines[0][0] if self.deadlines else None

    def handle_timeout(self, now: float) -> None:
        while self.deadlines and self.deadlines[0][0] <= now:
            when, _, conversation = heappop(self.deadlines)
            if when == conversation.looked_at:
                conversation.looked_at = math.inf
                conversation.socket.handle_timeout(now)
                conversation.touch()


def begin_socket(exchange: Exchange, head: RequestHead, endpoint: Endpoint, config: Config) -> None:
    """Answer a request in which there is no fault: from here on it is a WebSocket."""
    conversation = SocketConversation(exchange, endpoint, config, endpoint.shared.now)
    exchange.conversation, exchange.socket = conversation, conversation.socket
    endpoint.alone[conversation] = None
    # Who only listens asks nothing of anybody, and yet somebody has to attend to him.
    endpoint.events.append((conversation, PeerReady(Peer(config.dialects[0], t.ClientCapabilities()))))
    exchange.switch(accepted(head))
