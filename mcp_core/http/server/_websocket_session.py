"""A session over a WebSocket: how an endpoint begins it, and how its events join the others.

1. It begins like any other request: `Host` and `Origin`, authorization, capacity, then the
   handshake. A client that is rejected gets an HTTP response.
2. The connection is closed after a rejected upgrade. What follows may be WebSocket frames, and may
   come from another client: some proxies do not wait for the response.
3. Each message is authorized by the grant of the upgrade request, as if it came by POST.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

from mcp_core import types as t
from mcp_core.connection._connection import Connection
from mcp_core.http.wire._messages import ErrorResponse
from mcp_core.http.wire._websocket import WebSocket
from mcp_core.http.wire._websocket_upgrade import accept_headers
from mcp_core.messages._events import NEED_DATA, PAUSED, ConnectionClosed, Peer, PeerReady
from mcp_core.revisions._methods import Role

from ._session import Conversation

if TYPE_CHECKING:
    from mcp_core.http.wire._messages import RequestHead
    from mcp_core.jsonrpc._body import ParsedBody
    from mcp_core.revisions._config import Config
    from mcp_core.types import RequestId

    from ._endpoint import Endpoint
    from ._exchange import Exchange

__all__ = ["WebSocketSession", "WebSocketSessions", "begin_websocket"]

_LONGEST_CHECK: Final = 30.0  # seconds


class WebSocketSession(Conversation):
    """The conversation over the WebSocket that `exchange` has become."""

    __slots__ = ("_held", "endpoint", "exchange", "next_check", "socket")

    def __init__(
        self, exchange: Exchange, endpoint: Endpoint, config: Config, now: float, client: str
    ) -> None:
        principal = exchange.principal
        conn = Connection(Role.SERVER, config, bucket=endpoint.bucket(principal))
        super().__init__(endpoint.state, conn, principal, config.dialects[0].http, client)
        self.endpoint = endpoint
        self._held = 0  # bytes of an unfinished message that are counted
        self.exchange = exchange
        self.next_check = math.inf  # when `WebSocketSessions` checks its deadline next
        grant, auth = exchange.grant, endpoint.auth
        expires_at: float | None = None
        if grant is not None and auth is not None and grant.valid_until is not None:
            expires_at = auth.expiry(grant, now)
        self.socket = WebSocket(
            conn,
            now,
            grant=grant,
            find_rejection=self._authorize if grant is not None else None,
            token_expiry=expires_at,
            first_message_timeout=endpoint.options.limits.initialize,
        )

    def _authorize(self, body: ParsedBody) -> str | None:
        auth, grant = self.endpoint.auth, self.exchange.grant
        assert auth is not None
        assert grant is not None
        verdict = auth.authorize_body(grant, body, self.conn.config)
        return verdict.message if isinstance(verdict, ErrorResponse) else None

    def queued(self, id: RequestId | None) -> int:
        return self.socket.queued()

    def process_events(self) -> None:
        socket, endpoint = self.socket, self.endpoint
        if socket.buffered != self._held:
            self._count_buffered()
        was_paused = socket.paused
        while (event := socket.next_event()) is not NEED_DATA and event is not PAUSED:
            if isinstance(event, ConnectionClosed):
                endpoint.one_shots.discard(self)
            endpoint.events.append((self, event))
        if socket.has_output or socket.paused is not was_paused:
            endpoint.ready[self.exchange] = None
        if not socket.done:
            endpoint.websockets.watch(self, socket.now)

    def _count_buffered(self) -> None:
        bodies = self.endpoint.bodies
        self._held = size = self.socket.buffered
        if size:
            bodies.hold(self, size, self.endpoint.options.limits)
        else:
            bodies.release(self)

    def refuse(self, rejection: ErrorResponse) -> None:
        """Close the WebSocket: its unfinished message is in excess."""
        self._held = 0
        self.socket.refuse(rejection.message)
        self.mark_dirty()


class WebSocketSessions:
    """The deadlines of the WebSockets of an endpoint.

    Moving a deadline back costs nothing: a WebSocket that is checked too early is checked again.
    `_LONGEST_CHECK` limits how long one that is over stays in the heap.
    """

    __slots__ = ("_numbers", "deadlines")

    def __init__(self) -> None:
        self.deadlines: list[tuple[float, int, WebSocketSession]] = []
        self._numbers = count()

    def watch(self, conversation: WebSocketSession, now: float) -> None:
        """Check `conversation` at its next deadline. Call it after every change."""
        due = conversation.socket.next_deadline()
        if due is not None and due < conversation.next_check:
            conversation.next_check = due = min(due, now + _LONGEST_CHECK)
            heappush(self.deadlines, (due, next(self._numbers), conversation))

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, None for never."""
        return self.deadlines[0][0] if self.deadlines else None

    def handle_timeout(self, now: float) -> None:
        """Handle the timeouts of the WebSockets that are due, and mark these dirty."""
        while self.deadlines and self.deadlines[0][0] <= now:
            when, _, conversation = heappop(self.deadlines)
            if when == conversation.next_check:
                conversation.next_check = math.inf
                conversation.socket.handle_timeout(now)
                conversation.mark_dirty()


def begin_websocket(
    exchange: Exchange, head: RequestHead, endpoint: Endpoint, config: Config, client: str
) -> None:
    """Accept a request that passed all checks: from here on it is a WebSocket."""
    conversation = WebSocketSession(exchange, endpoint, config, endpoint.state.now, client)
    exchange.conversation, exchange.socket = conversation, conversation.socket
    endpoint.one_shots.add(conversation)
    # A client may only listen. Without an event the driver would not know of the conversation, and
    # could publish no changes.
    endpoint.events.append(
        (conversation, PeerReady(Peer(config.dialects[0], t.ClientCapabilities())))
    )
    exchange.switch_to_websocket(accept_headers(head))
