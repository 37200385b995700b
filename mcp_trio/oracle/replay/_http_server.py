"""Serve a trace over HTTP/1.1: one task for each connection, on this machine by default.

1. A request is read whole, with limits of size and time, and passed to `ReplayHttpServer`.
2. While a response is an event stream, the connection is read too, to notice that its client is
   gone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import h11
import trio

from mcp_core.http import Body, Head, RequestHead
from mcp_trio._nursery import open_quiet_nursery

if TYPE_CHECKING:
    from mcp_core.http import Action
    from mcp_core.trace import ReplayExchange, ReplayHttpServer

__all__ = ["serve_over_http"]

_MAX_HEAD: Final = 64 * 1024  # bytes
_MAX_BODY: Final = 64 * 1024 * 1024  # bytes
_MAX_CONNECTIONS: Final = 500
_IDLE_TIMEOUT: Final = 75.0  # seconds between two requests
_REQUEST_TIMEOUT: Final = 60.0  # seconds for a whole request
_WRITE_TIMEOUT: Final = 60.0  # seconds for a client to take a part of a response
_READ_SIZE: Final = 64 * 1024
_CONTENT_TOO_LARGE: Final = 413


async def serve_over_http(
    server: ReplayHttpServer, listeners: list[trio.SocketListener], stop: trio.Event
) -> None:
    """Serve live clients on `listeners`, which are closed at the end, until `stop` is set."""
    driver = _ReplayDriver(server)
    async with open_quiet_nursery() as nursery:
        nursery.start_soon(driver.keep_time)
        nursery.start_soon(trio.serve_listeners, driver.serve, listeners)
        await stop.wait()
        nursery.cancel_scope.cancel()


class _ReplayDriver:
    """The connections of a replayed server, each with an event for actions to send."""

    def __init__(self, server: ReplayHttpServer) -> None:
        self._server = server
        self._waiting: dict[ReplayExchange, trio.Event] = {}
        self._changed = trio.Event()
        self._count = 0

    async def keep_time(self) -> None:
        """Send what is due, at its time."""
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

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection until its end."""
        if self._count >= _MAX_CONNECTIONS:
            await trio.aclose_forcefully(stream)
            return
        self._count += 1
        try:
            with suppress(
                trio.BrokenResourceError,
                trio.ClosedResourceError,
                trio.TooSlowError,
                h11.ProtocolError,
            ):
                await self._serve(stream)
        finally:
            self._count -= 1
            await trio.aclose_forcefully(stream)

    async def _serve(self, stream: trio.SocketStream) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)
        while True:
            request = None
            with trio.move_on_after(_IDLE_TIMEOUT):
                request = await _next_event(http, stream)
            if not isinstance(request, h11.Request):
                return
            head = RequestHead(bytes(request.method), bytes(request.target), list(request.headers))
            exchange = self._server.begin(head)
            if exchange.wants_body:
                body = await _read_body(http, stream)
                if body is None:
                    self._server.disconnected(exchange)
                    await _send(http, stream, [Head(_CONTENT_TOO_LARGE, [])])
                    return
                self._server.receive_body(exchange, body, trio.current_time())
            else:
                http.next_event()  # the end of a request without a body
            await self._respond(http, stream, exchange)
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                return
            http.start_next_cycle()

    async def _respond(
        self, http: h11.Connection, stream: trio.SocketStream, exchange: ReplayExchange
    ) -> None:
        """Send an exchange's response, and notice that its client goes away."""
        event = self._waiting[exchange] = trio.Event()
        self._pump()
        try:
            async with open_quiet_nursery() as nursery:
                if not exchange.is_over:
                    nursery.start_soon(_watch, http, stream, nursery.cancel_scope)
                while True:
                    actions = exchange.actions_to_send()
                    if actions:
                        await _send(http, stream, actions)
                    elif exchange.is_over:
                        break
                    else:
                        await event.wait()
                        event = self._waiting[exchange] = trio.Event()
                nursery.cancel_scope.cancel()
        finally:
            del self._waiting[exchange]
            if not exchange.is_over:
                self._server.disconnected(exchange)
                self._pump()


async def _watch(http: h11.Connection, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
    """Cancel `scope` when the client goes away. What it sends early is kept by `http`."""
    early = 0
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while early <= _MAX_HEAD and (data := await stream.receive_some(_READ_SIZE)):
            early += len(data)
            http.receive_data(data)
    scope.cancel()


async def _next_event(http: h11.Connection, stream: trio.SocketStream) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await stream.receive_some(_READ_SIZE))
    return event


async def _read_body(http: h11.Connection, stream: trio.SocketStream) -> bytes | None:
    """Return a request's body, or None if it is too long or too slow."""
    if http.they_are_waiting_for_100_continue:
        await _send_event(http, stream, h11.InformationalResponse(status_code=100, headers=[]))
    body = bytearray()
    with trio.move_on_after(_REQUEST_TIMEOUT):
        while True:
            event = await _next_event(http, stream)
            if isinstance(event, h11.EndOfMessage):
                return bytes(body)
            if not isinstance(event, h11.Data) or len(body) + len(event.data) > _MAX_BODY:
                return None
            body += event.data
    return None


async def _send(http: h11.Connection, stream: trio.SocketStream, actions: list[Action]) -> None:
    parts: list[bytes] = []
    for action in actions:
        event: h11.Event = h11.EndOfMessage()
        if type(action) is Head:
            event = h11.Response(status_code=action.status, headers=action.headers)
        elif type(action) is Body:
            event = h11.Data(data=action.data)
        parts.append(http.send(event) or b"")
    with trio.fail_after(_WRITE_TIMEOUT):
        await stream.send_all(b"".join(parts))


async def _send_event(
    http: h11.Connection, stream: trio.SocketStream, event: h11.InformationalResponse
) -> None:
    await stream.send_all(http.send(event) or b"")
