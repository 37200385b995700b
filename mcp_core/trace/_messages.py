"""Captured bytes as messages of a trace: cut at a limit, and decoded where they are UTF-8."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, Literal

from ._format import TraceLine, TruncatedMessage

if TYPE_CHECKING:
    from ._format import HttpHead, SseFields

__all__ = ["MessageBuffer", "MessageSplitter", "Sender", "message_line", "truncate"]

Sender = Literal["client", "server"]

_KEPT: Final = 1024  # bytes of a truncated message: enough for its id and method


class MessageBuffer:
    """The pieces of one message; if it is over `limit` bytes, its beginning and its digest."""

    __slots__ = ("_data", "_digest", "_limit", "_size", "_whole")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        # Most messages are one piece, which is kept as it is. `_data` has the pieces of others.
        self._whole = b""
        self._data: bytearray | None = None
        self._digest: Any = None

    def __len__(self) -> int:
        """Return the number of bytes so far."""
        return self._size

    def add(self, data: bytes) -> None:
        """Add the message's next bytes."""
        if not self._size and len(data) <= self._limit:
            self._whole = data
            self._size = len(data)
            return
        self._size += len(data)
        if self._data is None:
            self._data = bytearray(self._whole)
            self._whole = b""
        if self._digest is not None:
            self._digest.update(data)
            self._data += data[: max(_KEPT - len(self._data), 0)]
            return
        self._data += data
        if self._size > self._limit:
            self._digest = hashlib.sha256(self._data)
            del self._data[_KEPT:]

    def take(self, *, is_cut: bool = False) -> tuple[bytes, TruncatedMessage | None]:
        """Return the message, or its beginning and what was truncated. Then begin another one.

        `is_cut` is true if the rest of the message never came.
        """
        data = self._whole if self._data is None else bytes(self._data)
        truncated = None
        if self._digest is not None or is_cut:
            digest = self._digest or hashlib.sha256(data)
            truncated = TruncatedMessage(size=self._size, sha256=digest.hexdigest())
        self._whole = b""
        self._data = None
        self._size = 0
        self._digest = None
        return data, truncated


def truncate(data: bytes, limit: int) -> tuple[bytes, TruncatedMessage | None]:
    """Return a message; if it is over `limit` bytes, its beginning and what was truncated."""
    if len(data) <= limit:
        return data, None
    buffer = MessageBuffer(limit)
    buffer.add(data)
    return buffer.take()


class MessageSplitter:
    """The lines of one direction of a byte stream.

    Args:
        limit: bytes of a message. A longer one is truncated: its beginning and size are returned.
    """

    __slots__ = ("_limit", "_partial", "_skips")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partial: MessageBuffer | None = None  # the beginning of a message
        self._skips = False

    def feed(self, data: bytes) -> list[tuple[bytes, TruncatedMessage | None]]:
        """Return the messages that end in `data`, without their line breaks."""
        if self._partial is None and not self._skips and 0 < len(data) <= self._limit:
            # Usually data is one whole message.
            end = data.find(b"\n")
            if end == len(data) - 1:
                return [(data[: end - 1] if data[end - 1 : end] == b"\r" else data[:end], None)]
        *lines, rest = data.split(b"\n")
        found: list[tuple[bytes, TruncatedMessage | None]] = []
        for line in lines:
            if self._skips:
                self._skips = False
                continue
            if self._partial is None:
                message, truncated = truncate(line, self._limit)
            else:
                self._partial.add(line)
                message, truncated = self._partial.take()
                self._partial = None
            found.append((message.removesuffix(b"\r") if truncated is None else message, truncated))
        if rest and not self._skips:
            if self._partial is None:
                self._partial = MessageBuffer(self._limit)
            self._partial.add(rest)
        return found

    def end(self) -> tuple[bytes, TruncatedMessage | None] | None:
        """Return the message that has no line feed because the stream ended, or None."""
        partial, self._partial = self._partial, None
        return None if partial is None else partial.take()

    def skip(self) -> None:
        """Drop what is left of the current message: some bytes of the stream were lost."""
        self._partial = None
        self._skips = True


def message_line(
    t: float,
    sender: Sender,
    data: bytes,
    truncated: TruncatedMessage | None,
    conversation: int = 1,
    exchange: int = 0,
    sse: SseFields | None = None,
    end: str | None = None,
    http: HttpHead | None = None,
) -> TraceLine:
    """Return the line of a message."""
    raw: str | None = None
    rest: bytes | None = None
    try:
        raw = data.decode()
    except UnicodeDecodeError as exc:
        # The limit may have cut a character.
        if truncated is not None and exc.start > len(data) - 4:
            raw = data[: exc.start].decode()
        else:
            rest = data
    return TraceLine(
        t=t,
        conversation=conversation,
        exchange=exchange,
        sender=sender,
        raw=raw,
        data=rest,
        truncated=truncated,
        sse=sse,
        end=end,
        http=http,
    )
