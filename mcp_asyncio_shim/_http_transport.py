"""A client's transport over HTTP, on HTTP/1.1 connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_core import http
from mcp_core.runtime import HttpRequestRunner

from ._driver import ConnectionDriver, in_new_context
from ._http_connection import _H11ClientConnection
from ._link import FLUSH_TIMEOUT
from ._tcp import open_http_streams

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from mcp_core import Connection, Event

__all__ = ["_HttpTransport"]


class _HttpTransport(ConnectionDriver):
    """The transport of `conn` over HTTP, and the `HttpClientRuntime` of its requests.

    Each event is passed to `on_event`, which must not wait. `recorder` records requests and
    responses; None for no recording.
    """

    def __init__(
        self,
        url: http.Url,
        tls: ssl.SSLContext | None,
        options: http.HttpClientOptions,
        recorder: http.HttpRecorderLike | None,
        conn: Connection,
        on_event: Callable[[Event], object],
    ) -> None:
        self._url = url
        self._tls = tls
        self._requests: HttpRequestRunner[_H11ClientConnection] = HttpRequestRunner(
            http.HttpClient(conn, url.text, options),
            self,
            in_new_context(on_event),
            recorder=recorder,
        )
        super().__init__(self._requests, self._requests.run)

    async def connect(self) -> _H11ClientConnection:
        """Open a connection to the server."""
        return _H11ClientConnection(*await open_http_streams(self._url, self._tls))

    def discard(self, connections: list[_H11ClientConnection]) -> None:
        """Close connections that the pool has dropped, without waiting."""
        for connection in connections:
            connection.abort()

    def new_event(self) -> asyncio.Event:
        """Create an event."""
        return asyncio.Event()

    async def aclose(self) -> None:
        """End the session, for which there is one second, and close all connections. Idempotent."""
        requests = self._requests
        requests.http.conn.close()
        self.pump()
        try:
            await self.wait_until(lambda: requests.idle, FLUSH_TIMEOUT)
        finally:
            requests.stop()
            await self.wait_until(lambda: requests.idle)
            await asyncio.gather(*(connection.aclose() for connection in requests.pool.clear()))
            self.stop_timer()
