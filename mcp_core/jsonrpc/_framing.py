r"""Newline framing: bytes in, lines out. For stdio and every other transport over a byte stream.

1. Only `\n` ends a line, and one `\r` before it is dropped. Any other `\r` is part of the line: to
   JSON it is white space.
2. The cost is linear in the input, however it is split into chunks. No byte is searched twice, and
   each is copied once into its line, or twice if the line arrived in several chunks.
3. A line over the limit is reported once, as `LINE_TOO_LONG`, as soon as the limit is passed. The
   rest of it is discarded as it arrives, in constant memory. Framing continues after its newline.

An empty line is a line like any other.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import Final, Literal

__all__ = ["LINE_TOO_LONG", "LineBuffer", "LineTooLong"]


class LineTooLong(enum.Enum):
    """The type of `LINE_TOO_LONG`."""

    LINE_TOO_LONG = "LINE_TOO_LONG"

    def __repr__(self) -> str:
        return self.value


LINE_TOO_LONG: Final = LineTooLong.LINE_TOO_LONG

_CR: Final = 0x0D


class LineBuffer:
    """A buffer that splits chunks of bytes into lines. Lines have no newline at the end.

    `limit` is the maximum length of a line in bytes, without its newline. Pass each chunk to
    `feed`, then call `next_line` until it returns None.
    """

    __slots__ = (
        "_chunk",
        "_limit",
        "_partial",
        "_queued_chunks",
        "_skipping",
        "_start",
    )

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunk = b""  # the chunk being searched
        self._start = 0  # where in it the next line begins
        self._queued_chunks: deque[bytes] = deque()  # chunks that follow it
        self._partial = bytearray()  # the beginning of a line whose end has not arrived
        self._skipping = False  # inside a line over the limit, which has been reported

    def __repr__(self) -> str:
        skipping = ", skipping" if self._skipping else ""
        return f"<LineBuffer {len(self)} of {self._limit} bytes{skipping}>"

    def __len__(self) -> int:
        """Return the number of buffered bytes that were not returned in a line."""
        return (
            len(self._partial) + len(self._chunk) - self._start + sum(map(len, self._queued_chunks))
        )

    @property
    def has_partial_line(self) -> bool:
        """True if a line has begun and its newline has not arrived."""
        return self._skipping or len(self) > 0

    @property
    def unfinished(self) -> bytearray:
        """The beginning of the line whose newline has not arrived. Do not change it.

        It is complete only after `next_line` returned None.
        """
        return self._partial

    def feed(self, data: bytes) -> None:
        """Add received bytes. Then call `next_line` until it returns None."""
        if self._start == len(self._chunk) and not self._queued_chunks:
            self._chunk = data
            self._start = 0
        else:
            self._queued_chunks.append(data)

    def next_line(self) -> bytes | Literal[LineTooLong.LINE_TOO_LONG] | None:
        """Return the next complete line, or None if more bytes are needed.

        Return `LINE_TOO_LONG` in place of a line over the limit.
        """
        while True:
            chunk = self._chunk
            start = self._start
            if start == len(chunk) and not self._queued_chunks:
                return None
            end = chunk.find(b"\n", start)
            if end < 0:
                if self._buffer_rest():
                    return LINE_TOO_LONG
                continue
            self._start = end + 1
            if self._skipping:
                self._skipping = False
                continue
            if self._partial:
                self._partial += memoryview(chunk)[start:end]
                chunk = bytes(self._partial)
                start = 0
                end = len(chunk)
                self._partial.clear()
            if end > start and chunk[end - 1] == _CR:
                end -= 1
            return LINE_TOO_LONG if end - start > self._limit else chunk[start:end]

    def _buffer_rest(self) -> bool:
        """Buffer the rest of the chunk, which has no newline, and go to the next chunk.

        Return True if the line has just passed the limit.
        """
        if not self._skipping:
            self._partial += memoryview(self._chunk)[self._start :]
        self._chunk = self._queued_chunks.popleft() if self._queued_chunks else b""
        self._start = 0
        # One byte more than the limit is allowed: it may be the `\r` of the newline.
        if len(self._partial) <= self._limit + 1:
            return False
        self._partial.clear()
        self._skipping = True
        return True
