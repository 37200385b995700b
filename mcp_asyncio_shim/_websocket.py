"""A client's transport over a WebSocket, whose frames are read and written by wsproto."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wsproto import frame_protocol

from mcp_core.http import WebSocket, WebSocketFrames

from ._link import FLUSH_TIMEOUT, Link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_core import Connection, Event, McpTrioError
    from mcp_core.http import WebSocketRecorderLike

    from ._link import Streams

__all__ = ["_FramedWebSocket", "_WebSocketTransport"]


class _FramedWebSocket(WebSocket):
    """A WebSocket in bytes. To a `Link` it looks like a `Connection`."""

    def __init__(self, conn: Connection) -> None:
        self._clock = asyncio.get_running_loop().time
        super().__init__(conn, self._clock())
        self._frames = WebSocketFrames(self, frame_protocol, client=True)
        self._pieces: Iterator[memoryview] = iter(())
        self._just_wrote = False

    def receive_data(self, data: bytes, now: float) -> None:
        """Process received bytes; b"" is the end of the input."""
        if data:
            self._frames.read(data, now)
        else:
            self.receive_eof(now)

    def queued(self) -> int:
        """Return 1 if `data_to_send` should be called, else 0."""
        # Once more after each write: `messages_to_send` has to know that the write is complete.
        return int(self._just_wrote or (self.has_output and not self.done))

    def data_to_send(self) -> memoryview:
        """Return the next piece of the queued frames. The call confirms the piece before it."""
        piece = next(self._pieces, None)
        if piece is None:
            actions = self.messages_to_send(self._clock())
            self._just_wrote = bool(actions)
            self._pieces = self._frames.write_chunks(actions, self._clock)
            piece = next(self._pieces, memoryview(b""))
        return piece

    def close(self, error: McpTrioError | None = None) -> None:
        """Close the connection that the WebSocket carries; with an `error`, the stream broke."""
        if error is None:
            self.conn.close()
        else:
            self.receive_eof(self._clock())


class _WebSocketTransport(Link):
    """The transport of `conn` over a WebSocket that is open on `streams`.

    `recorder` records its messages; None for no recording.
    """

    conn: _FramedWebSocket

    def __init__(
        self,
        streams: Streams,
        recorder: WebSocketRecorderLike | None,
        conn: Connection,
        on_event: Callable[[Event], object],
    ) -> None:
        socket = _FramedWebSocket(conn)
        socket.recorder = recorder
        super().__init__(streams, socket, on_event)

    async def aclose(self, timeout: float = FLUSH_TIMEOUT) -> None:
        """Close the WebSocket. The server has `timeout` seconds to close it as well."""
        self.conn.close()
        self.pump()
        await self.wait_until(lambda: self.conn.done, timeout)
        await super().aclose(timeout)
