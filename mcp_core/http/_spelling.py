"""Between a `WebSocket` and a library that knows its frames: bytes in and out, nothing decided.

The library is `wsproto.frame_protocol`, which a driver hands in: it chooses the masks at random, so it is not for the core to have.

Rule of this file: the length of a frame is told as soon as its head is there. That is what `_Lengths` is for, which to the library is an
extension, and to the peer nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ._websocket import Ping, Pong, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ._websocket import SocketAction, WebSocket

__all__ = ["Spelling"]

# RFC 6455, 11.8
_TEXT: Final = 1
_BINARY: Final = 2
_PING: Final = 9
_PONG: Final = 10
_CONTROL: Final = 8  # and above
_NO_BITS: Final = (False, False, False)
# Bytes. Who takes so much in the time of a stall is read to, at 8 KiB a second.
_PIECE: Final = 256 * 1024


class Spelling:
    """The frames of `socket`, at the `client`'s end or the server's. `library` is `wsproto.frame_protocol`."""

    __slots__ = ("_fault", "_frames", "_socket")

    def __init__(self, socket: WebSocket, library: Any, *, client: bool) -> None:
        self._socket = socket
        self._frames = library.FrameProtocol(client, [_Lengths(socket)])
        self._fault: type[Exception] = library.ParseFailed

    def read(self, data: bytes, now: float) -> None:
        """Tell the machine what is in bytes that have arrived."""
        socket = self._socket
        if socket.deaf:
            return
        self._frames.receive_bytes(data)
        try:
            for opcode, payload, _, ends in self._frames.received_frames():
                if opcode == _TEXT:
                    socket.receive_text(payload, now, end=ends)
                elif opcode == _BINARY:
                    socket.receive_binary(now)
                elif opcode == _PING:
                    socket.receive_ping(payload, now)
                elif opcode == _PONG:
                    socket.receive_pong(now)
                else:
                    code, reason = payload
                    socket.receive_close(code, reason, now)
        except self._fault as exc:
            socket.receive_fault(exc.code, str(exc), now)  # type: ignore[attr-defined]

    def write(self, actions: Sequence[SocketAction]) -> bytes:
        """What the machine says, as bytes."""
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

    def pieces(self, actions: Sequence[SocketAction], clock: Callable[[], float]) -> Iterator[memoryview]:
        """The same in pieces, to be written one after the other: whoever takes one says by that that the one before has left."""
        data = memoryview(self.write(actions))
        for start in range(0, len(data), _PIECE):
            self._socket.wrote(clock())
            yield data[start : start + _PIECE]


class _Lengths:
    """An extension that changes nothing, and tells `socket` how long a frame of data will be."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def enabled(self) -> bool:
        return True

    def frame_inbound_header(self, frames: Any, opcode: int, bits: Any, length: int) -> Any:
        if opcode < _CONTROL:
            self._socket.frame_begins(length)
        return _NO_BITS

    def frame_inbound_payload_data(self, frames: Any, data: bytes) -> bytes:
        return data

    def frame_inbound_complete(self, frames: Any, fin: bool) -> None:
        return None

    def frame_outbound(self, frames: Any, opcode: int, bits: Any, data: bytes, fin: bool) -> Any:
        return bits, data
