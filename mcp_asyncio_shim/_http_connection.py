"""One HTTP/1.1 connection to a server, on asyncio's streams, as h11 reads and writes it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import h11

from mcp_core.http import (
    MAX_RESPONSE_HEAD,
    Body,
    End,
    Head,
    require_http,
    response_error,
)
from mcp_core.runtime import READ_SIZE

if TYPE_CHECKING:
    from mcp_core.http import RequestHead
    from mcp_core.runtime import OnActions

__all__ = ["_H11ClientConnection", "_H11ResponseReader"]

_TOO_LONG: Final = 431  # the status with which h11 marks a head that is too long
_LONG_HEAD: Final = f"the response's head has more than {MAX_RESPONSE_HEAD} bytes"


class _H11ResponseReader(h11.Connection):
    """h11's client side, with a limit of a response's head that holds however the head is cut.

    h11 has a limit for incomplete heads only, so what arrives with the last piece doesn't count.
    """

    def __init__(self) -> None:
        super().__init__(h11.CLIENT, max_incomplete_event_size=MAX_RESPONSE_HEAD)

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return the next event. See `h11.Connection.next_event`.

        Raises:
            h11.RemoteProtocolError: also if a head has more than `MAX_RESPONSE_HEAD` bytes.
        """
        if self.their_state is not h11.SEND_RESPONSE:
            return super().next_event()
        before = len(self.trailing_data[0])
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as exc:
            if exc.error_status_hint != _TOO_LONG:
                raise
            raise h11.RemoteProtocolError(_LONG_HEAD, _TOO_LONG) from None
        if before - len(self.trailing_data[0]) > MAX_RESPONSE_HEAD:
            raise h11.RemoteProtocolError(_LONG_HEAD, _TOO_LONG)
        return event


class _H11ClientConnection:
    """One HTTP/1.1 connection, as a `PooledConnection`. The writer is closed by `aclose`."""

    protocol = "HTTP/1.1"
    capacity = 1

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received = False
        self._reader = reader
        self._writer = writer
        self._wire = _H11ResponseReader()
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
                self._wire.send(event)
                for event in (request, h11.Data(data=body), h11.EndOfMessage())
            ]
        except h11.LocalProtocolError as exc:
            raise ValueError(f"the request cannot be written as HTTP/1.1: {exc}") from None
        self._writer.writelines(part for part in parts if part)

    async def _receive(self, on_actions: OnActions) -> None:
        wire = self._wire
        ended = False
        try:
            while not isinstance(event := wire.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    data = await self._incoming
                    self._incoming = asyncio.create_task(self._read())
                    ended = not data
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
            raise response_error(exc, received=self.received, ended=ended) from None

    def _next_cycle(self) -> bool:
        """Return True if the connection can be used again: it is at the start of a request now."""
        wire = self._wire
        done = wire.our_state is h11.DONE and wire.their_state is h11.DONE
        # Bytes that are left over belong to no request: the two sides are out of step.
        left_over = self._writer.transport.get_write_buffer_size() or wire.trailing_data[0]
        if not done or left_over or self.server_closed():
            return False
        wire.start_next_cycle()
        return True

    async def _read(self) -> bytes:
        """Read what comes next: b"" if the connection is closed or broken."""
        with suppress(OSError):
            return await self._reader.read(READ_SIZE)
        return b""

    def server_closed(self) -> bool:
        """Return True if data or the end of the connection has arrived while no request ran."""
        return self._incoming.done()

    def abort(self) -> None:
        """Close the connection without waiting."""
        self._incoming.cancel()
        self._writer.transport.abort()

    async def aclose(self) -> None:
        """Close the connection."""
        self.abort()
        await asyncio.wait({self._incoming})
