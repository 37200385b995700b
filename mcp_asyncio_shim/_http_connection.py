"""One HTTP/1.1 connection to a server, on asyncio's streams, as h11 reads and writes it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import h11

from mcp_core.adapters import H11ResponseReader
from mcp_core.http import Body, End, Head, require_http, response_error
from mcp_core.runtime import READ_SIZE

if TYPE_CHECKING:
    from mcp_core.http import RequestHead
    from mcp_core.runtime import OnActions

__all__ = ["_H11ClientConnection"]


class _H11ClientConnection:
    """One HTTP/1.1 connection, as a `PooledConnection`. The writer is closed by `aclose`."""

    protocol = "HTTP/1.1"
    capacity = 1
    received: bool  # set by `run`

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._wire = H11ResponseReader()
        # There is always one read under way, so that an idle connection notices when the server
        # closes it.
        self._incoming = asyncio.create_task(self._read())

    async def run(self, head: RequestHead, body: bytes, on_actions: OnActions) -> bool:
        """Send a request, and pass its response to `on_actions`. See `PooledConnection.run`."""
        self.received = False
        self._send(head, body)
        await self._receive(on_actions)
        return self._next_cycle()

    def _send(self, head: RequestHead, body: bytes) -> None:
        """Write the whole request. The response is read while the transport sends it."""
        headers = head.headers
        if body:
            headers = [*headers, (b"content-length", b"%d" % len(body))]
        # All of it is serialized before any of it is written: a head that h11 refuses raises here.
        try:
            request = h11.Request(method=head.method, target=head.target, headers=headers)
            parts = [
                self._wire.send(event) or b""
                for event in (request, h11.Data(data=body), h11.EndOfMessage())
            ]
        except h11.LocalProtocolError as exc:
            raise ValueError(f"the request cannot be written as HTTP/1.1: {exc}") from None
        self._writer.write(b"".join(parts))

    async def _receive(self, on_actions: OnActions) -> None:
        wire = self._wire
        data = b""
        try:
            while not isinstance(event := wire.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    data = await self._incoming
                    self._incoming = asyncio.create_task(self._read())
                    if data and not self.received:
                        self.received = True
                        require_http(data)
                    wire.receive_data(data)
                elif isinstance(event, h11.Response):
                    on_actions([Head(event.status_code, list(event.headers))])
                elif isinstance(event, h11.Data):
                    resumed = on_actions([Body(bytes(event.data))])
                    if resumed is not None:
                        await resumed.wait()
            on_actions([End()])
        except h11.RemoteProtocolError as exc:
            raise response_error(exc, received=self.received, ended=not data) from None

    def _next_cycle(self) -> bool:
        """Return True if the connection can be used again: it is at the start of a request now."""
        wire = self._wire
        done = wire.their_state is h11.DONE  # then so is ours: the request was sent before
        # Bytes that are left over belong to no request: the two sides are out of step.
        left_over = self._writer.transport.get_write_buffer_size() or wire.trailing_data[0]
        if not done or left_over or self.server_closed():
            return False
        wire.start_next_cycle()
        return True

    async def _read(self) -> bytes:
        """Read what comes next: b"" if the connection is closed or broken."""
        data = b""
        with suppress(OSError):
            data = await self._reader.read(READ_SIZE)
        return data

    def server_closed(self) -> bool:
        """Return True if data or the end of the connection has arrived while no request ran."""
        return self._incoming.done()

    def abort(self) -> None:
        """Close the connection without waiting."""
        self._writer.transport.abort()  # which ends the read, too

    async def aclose(self) -> None:
        """Close the connection."""
        self.abort()
        await asyncio.wait({self._incoming})
