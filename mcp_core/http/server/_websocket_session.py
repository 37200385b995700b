"""A session over a WebSocket: how an endpoint begins it, and how its events join the others.

1. It begins like any other request: `Host` and `Origin`, authorization, capacity, then the
   handshake. A client that is rejected gets an HTTP response.
2. The connection is closed after a rejected upgrade. What follows may be WebSocket frames, and may
   come from another client: some proxies don't wait for the response.
3. Each message has the upgrade request's grant and headers, as if it came by POST.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

from mcp_core import types as t
from mcp_core.http.wire._messages import ErrorResponse
from mcp_core.http.wire._websocket import WebSocket
from mcp_core.http.wire._websocket_upgrade import accept_headers
from mcp_core.protocol.connection._connection import Connection
from mcp_core.protocol.messages._events import NEED_DATA, PAUSED, ConnectionClosed, Peer, PeerReady
from mcp_core.protocol.revisions._methods import Role

from ._session import Conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core._limits import Bucket
    from mcp_core.http.wire._messages import RequestHead
    from mcp_core.protocol.jsonrpc._body import ParsedBody
    from mcp_core.protocol.revisions._config import Config
    from mcp_core.types import RequestId

    from ._exchange import Exchange
    from ._incoming_request import IncomingHttpRequest
    from ._session import EndpointState

__all__ = ["WebSocketSession", "WebSocketSessions", "begin_websocket"]

_FEW: Final = 64  # numbers of checks that no longer count, which may stay in the heap


class WebSocketSession(Conversation):
    """The conversation over the WebSocket that `exchange` has become."""

    __slots__ = ("_held", "check", "exchange", "next_check", "socket")

    one_shot = False

    def __init__(
        self,
        exchange: Exchange,
        http: IncomingHttpRequest,
        endpoint: EndpointState,
        config: Config,
        bucket: Bucket | None,
        client: str,
    ) -> None:
        conn = Connection(Role.SERVER, config, bucket=bucket)
        super().__init__(endpoint, conn, exchange.principal, config.dialects[0].http, client)
        self._held = 0  # bytes of an unfinished message that are counted
        self.exchange = exchange
        # When `WebSocketSessions` checks its deadline next, and the number of that check.
        self.next_check = math.inf
        self.check = 0
        grant, auth = exchange.grant, endpoint.auth
        expires_at: float | None = None
        if grant is not None and auth is not None and grant.valid_until is not None:
            expires_at = auth.expiry(grant, endpoint.now)
        self.socket = WebSocket(
            conn,
            endpoint.now,
            grant=grant,
            http=http,
            find_rejection=self._authorize if grant is not None else None,
            token_expiry=expires_at,
            first_message_timeout=endpoint.limits.initialize,
        )

    def _authorize(self, body: ParsedBody) -> str | None:
        auth, grant = self.shared.auth, self.exchange.grant
        assert auth is not None
        assert grant is not None
        verdict = auth.authorize_body(grant, body, self.conn.config)
        return verdict.message if isinstance(verdict, ErrorResponse) else None

    def queued(self, id: RequestId | None) -> int:
        return self.socket.queued()

    def process_events(self) -> None:
        socket, endpoint = self.socket, self.shared
        if socket.buffered != self._held:
            self._count_buffered()
        was_paused = socket.paused
        while (event := socket.next_event()) is not NEED_DATA and event is not PAUSED:
            if isinstance(event, ConnectionClosed):
                endpoint.one_shots.discard(self)
            endpoint.events.append((self, event))
        if socket.has_output or socket.paused is not was_paused:
            endpoint.ready[self.exchange] = None
        if socket.done:
            endpoint.websockets.discard(self)
        else:
            endpoint.websockets.watch(self)

    def _count_buffered(self) -> None:
        bodies = self.shared.bodies
        self._held = size = self.socket.buffered
        if size:
            bodies.hold(self, size, self.shared.limits)
        else:
            bodies.release(self)

    def refuse_body(self, rejection: ErrorResponse) -> None:
        """Close the WebSocket: its unfinished message is in excess."""
        self._held = 0
        self.socket.refuse(rejection.message)
        self.mark_dirty()


class WebSocketSessions:
    """The deadlines of an endpoint's WebSockets.

    Moving a deadline back costs nothing: a WebSocket that is checked too early is checked again.
    The heap has numbers only, so that one that is over is released at once. `checks` is empty if no
    WebSocket has a deadline.
    """

    __slots__ = ("_heap", "_numbers", "checks")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []  # when to check, and the number of the check
        self.checks: dict[int, WebSocketSession] = {}
        self._numbers = count(1)

    def watch(self, conversation: WebSocketSession) -> None:
        """Check `conversation` at its next deadline. Call it after every change."""
        due = conversation.socket.next_deadline()
        if due is not None and due < conversation.next_check:
            self.checks.pop(conversation.check, None)
            conversation.next_check = due
            conversation.check = number = next(self._numbers)
            self.checks[number] = conversation
            heappush(self._heap, (due, number))
            self._sweep()

    def discard(self, conversation: WebSocketSession) -> None:
        """Check `conversation` no more. Call it when it is over."""
        if self.checks.pop(conversation.check, None) is not None:
            self._sweep()

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, None for never."""
        heap = self._heap
        while heap and heap[0][1] not in self.checks:
            heappop(heap)
        return heap[0][0] if heap else None

    def handle_timeout(self, now: float) -> None:
        """Handle the WebSockets' due timeouts, and mark these WebSockets dirty."""
        while self._heap and self._heap[0][0] <= now:
            conversation = self.checks.pop(heappop(self._heap)[1], None)
            if conversation is not None:
                conversation.next_check = math.inf
                conversation.socket.handle_timeout(now)
                conversation.mark_dirty()

    def _sweep(self) -> None:
        """Remove the numbers that no longer count once they are the majority."""
        if len(self._heap) > 2 * len(self.checks) + _FEW:
            self._heap = [(each.next_check, number) for number, each in self.checks.items()]
            heapify(self._heap)


def begin_websocket(
    exchange: Exchange,
    head: RequestHead,
    http: IncomingHttpRequest,
    endpoint: EndpointState,
    config: Config,
    bucket: Bucket | None,
    client: str,
    subprotocols: Sequence[str],
) -> None:
    """Accept a request that passed all checks: from here on it is a WebSocket.

    `http` is what handlers see of it. `bucket` counts the tool calls of its principal. The first
    of `subprotocols` that the client offers is selected.
    """
    conversation = WebSocketSession(exchange, http, endpoint, config, bucket, client)
    exchange.conversation, exchange.socket = conversation, conversation.socket
    endpoint.one_shots.add(conversation)
    # A client may only listen. Without an event the driver would not know about the conversation,
    # and could publish no changes.
    endpoint.events.append(
        (conversation, PeerReady(Peer(config.dialects[0], t.ClientCapabilities())))
    )
    exchange.switch_to_websocket(accept_headers(head, subprotocols))
