"""Serve a trace over HTTP/1.1, with a task for each connection.

1. Each request is read whole, within limits, and passed to `ReplayHttpServer`.
2. While a response is sent, the connection is read too, to notice when the client disconnects.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import h11
import trio

from mcp_core.http import End, Head
from mcp_trio._listeners import serve_connections
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio._simple_http import SimpleHttpConnection, SimpleHttpLimits, UnreadableRequest

if TYPE_CHECKING:
    from mcp_core.trace import ReplayExchange, ReplayHttpServer

__all__ = ["serve_over_http"]

_MAX_CONNECTIONS: Final = 500
_LIMITS: Final = SimpleHttpLimits(
    body=64 * 1024 * 1024, head_seconds=75, body_seconds=60, write_seconds=60
)


async def serve_over_http(
    server: ReplayHttpServer, listeners: list[trio.SocketListener], stop: trio.Event
) -> None:
    """Serve live clients on `listeners` until `stop` is set. Then close the listeners."""
    driver = _ReplayDriver(server)
    async with open_quiet_nursery() as nursery:
        nursery.start_soon(driver.keep_time)
        nursery.start_soon(serve_connections, driver.serve, listeners, _MAX_CONNECTIONS)
        await stop.wait()


class _ReplayDriver:
    """The connections of a replayed server. Each has an event that is set when it may send."""

    def __init__(self, server: ReplayHttpServer) -> None:
        self._server = server
        self._waiting: dict[ReplayExchange, trio.Event] = {}
        self._changed = trio.Event()

    async def keep_time(self) -> None:
        """Send messages when they are due."""
        while True:
            changed = self._changed
            with trio.move_on_at(self._server.next_deadline) as timer:
                await changed.wait()
            if timer.cancelled_caught:
                self._server.advance(trio.current_time())
                self._pump()

    def _pump(self) -> None:
        for exchange in self._server.take_ready():
            event = self._waiting.get(exchange)
            if event is not None:
                event.set()
        self._changed.set()
        self._changed = trio.Event()

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection until it ends. The caller closes the stream.

        Raises:
            trio.BrokenResourceError: the client has disconnected.
            trio.TooSlowError: the client reads too slowly.
        """
        connection = SimpleHttpConnection(stream, _LIMITS)
        # A recorded response that h11 rejects, or a head that isn't HTTP, ends the connection.
        with suppress(h11.LocalProtocolError, UnreadableRequest):
            while (head := await connection.next_head()) is not None:
                exchange = self._server.begin(head)
                if exchange.wants_body:
                    try:
                        body = await connection.read_body()
                    except UnreadableRequest as exc:
                        self._server.disconnected(exchange)
                        await connection.send(Head(exc.status, [(b"content-length", b"0")]), End())
                        return
                    self._server.receive_body(exchange, body, trio.current_time())
                await self._respond(connection, exchange)

    async def _respond(self, connection: SimpleHttpConnection, exchange: ReplayExchange) -> None:
        """Send an exchange's response, unless its client disconnects before the end."""
        event = self._waiting[exchange] = trio.Event()
        self._pump()
        try:
            async with open_quiet_nursery() as nursery:
                if not exchange.is_over:
                    nursery.start_soon(_watch, connection, nursery.cancel_scope)
                while True:
                    actions = exchange.actions_to_send()
                    if actions:
                        await connection.send(*actions)
                    elif exchange.is_over:
                        break
                    else:
                        await event.wait()
                        event = self._waiting[exchange] = trio.Event()
        finally:
            del self._waiting[exchange]
            if not exchange.is_over:
                self._server.disconnected(exchange)
                self._pump()


async def _watch(connection: SimpleHttpConnection, scope: trio.CancelScope) -> None:
    await connection.wait_for_disconnect()
    scope.cancel()
