"""A trace's server on a byte stream with one message per line: bytes in, bytes out."""

from __future__ import annotations

from typing import Final

from mcp_core.trace._messages import MessageSplitter

from ._server import ReplayServer

__all__ = ["MAX_REPLAY_LINE", "ReplayStream"]

# Bytes. Recorded messages are shorter, but a live peer may send more.
MAX_REPLAY_LINE: Final = 64 * 1024 * 1024


class ReplayStream:
    """A session of `server` with one live client on a byte stream.

    Send `data_to_send` at once and after each call of a method. The `now` of its methods is a
    monotonic time in seconds.

    Args:
        server: the trace's server.
        now: the time.
        limit: bytes of a line; a longer one is cut, and gets an error.
    """

    def __init__(self, server: ReplayServer, now: float, limit: int = MAX_REPLAY_LINE) -> None:
        self._session = server.open()
        self._lines = MessageSplitter(limit)
        self._session.begin(now)

    def __repr__(self) -> str:
        return f"<ReplayStream {self._session!r}>"

    def receive_data(self, data: bytes, now: float) -> None:
        """Take `data`, bytes from the live client."""
        for message, _ in self._lines.feed(data):
            if message.strip():
                self._session.receive(message, now)

    def advance(self, now: float) -> None:
        """Send what is due at `now`, the `next_deadline`."""
        self._session.advance(now)

    @property
    def next_deadline(self) -> float:
        """The next output's time, or infinity."""
        return self._session.next_deadline

    def data_to_send(self) -> bytes:
        """Return the bytes to send, and forget them."""
        return b"".join(each.data + b"\n" for each in self._session.outputs_to_send())
