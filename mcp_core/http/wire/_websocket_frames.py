"""WebSocket frames: the adapter between a `WebSocket` and the library that encodes frames.

The library is `wsproto.frame_protocol`. A driver passes it in, because it draws random masks, which
the core must not do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ._websocket import Ping, Pong, Text, WebSocket, WebSocketAction

__all__ = ["WebSocketFrames"]

# Opcodes (RFC 6455, 11.8).
_TEXT: Final = 1
_BINARY: Final = 2
_PING: Final = 9
_PONG: Final = 10
_FIRST_CONTROL: Final = 8  # opcodes from here on are control frames
_NO_BITS: Final = (False, False, False)
# Bytes. A peer that reads a chunk within the write timeout reads at least 8 KiB a second.
_CHUNK: Final = 256 * 1024


class WebSocketFrames:
    """The frames of a WebSocket, for a client or a server (RFC 6455, section 5).

    Args:
        websocket: receives what was read.
        library: the module `wsproto.frame_protocol`.
        client: True at the client, which masks its frames.
    """

    __slots__ = ("_frames", "_parse_failed", "_socket")

    def __init__(self, websocket: WebSocket, library: Any, *, client: bool) -> None:
        self._socket = websocket
        self._frames = library.FrameProtocol(client, [_FrameLengths(websocket)])
        self._parse_failed: type[Exception] = library.ParseFailed

    def read(self, data: bytes, now: float) -> None:
        """Decode `data` and pass the messages and control frames to the WebSocket.

        `now` is the time on the WebSocket's clock.
        """
        socket = self._socket
        if socket.input_ignored:
            return
        self._frames.receive_bytes(data)
        try:
            for opcode, payload, _, ends in self._frames.received_frames():
                if opcode == _TEXT:
                    socket.receive_text(payload, now, end=ends)
                elif opcode == _BINARY:
                    socket.receive_binary()
                elif opcode == _PING:
                    socket.receive_ping(payload, now)
                elif opcode == _PONG:
                    socket.receive_pong(now)
                else:
                    code, reason = payload
                    socket.receive_close(code, reason, now)
        except self._parse_failed as exc:
            socket.receive_invalid(exc.code, str(exc), now)  # type: ignore[attr-defined]

    def write(self, actions: Sequence[WebSocketAction]) -> bytes:
        """Return the frames for the WebSocket's `actions`."""
        frames = self._frames
        parts: list[bytes] = []
        for action in actions:
            if isinstance(action, Text):
                parts.append(frames.send_data(action.text))
            elif isinstance(action, Ping):
                parts.append(frames.ping())
            elif isinstance(action, Pong):
                parts.append(frames.pong(action.payload))
            else:
                parts.append(frames.close(action.code, action.reason))
        return b"".join(parts)

    def write_chunks(
        self, actions: Sequence[WebSocketAction], clock: Callable[[], float]
    ) -> Iterator[memoryview]:
        """Yield the frames for `actions` in chunks, to be written one after the other.

        Asking for the next chunk means that the one before was written. `clock` returns the time on
        the WebSocket's clock.
        """
        data = memoryview(self.write(actions))
        for start in range(0, len(data), _CHUNK):
            self._socket.data_written(clock())
            yield data[start : start + _CHUNK]


class _FrameLengths:
    """A wsproto extension that only reports the length of each data frame, from its head."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def enabled(self) -> bool:
        return True

    def frame_inbound_header(self, frames: Any, opcode: int, bits: Any, length: int) -> Any:
        if opcode < _FIRST_CONTROL:
            self._socket.receive_frame_head(length)
        return _NO_BITS

    def frame_inbound_payload_data(self, frames: Any, data: bytes) -> bytes:
        return data

    def frame_inbound_complete(self, frames: Any, fin: bool) -> None:
        return None

    def frame_outbound(self, frames: Any, opcode: int, bits: Any, data: bytes, fin: bool) -> Any:
        return bits, data
