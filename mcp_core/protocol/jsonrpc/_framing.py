r"""Newline framing: bytes in, lines out. For stdio and every other transport over a byte stream.

1. Only `\n` ends a line, and one `\r` before it is dropped. Any other `\r` is part of the line: to
   JSON it is white space.
2. The cost is linear in the input, however it is split into chunks. No byte is searched twice, and
   each is copied once into its line, or twice if the line arrived in several chunks.
3. A line over the limit is reported as an `Excerpt`, as soon as the limit is passed. The rest of it
   is discarded as it arrives, in constant memory. At its newline another `Excerpt` also has its
   end, and framing continues. Neither depends on how the line is split into chunks.

An empty line is a line like any other.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ._excerpt import EXCERPT_SIZE, Excerpt

__all__ = ["LineBuffer"]

_CR: Final = 0x0D


class LineBuffer:
    """A buffer that splits chunks of bytes into lines. Lines have no newline at the end.

    `limit` is the maximum length of a line in bytes, without its newline. Pass each chunk to
    `feed`, then call `next_line` until it returns None.
    """

    __slots__ = (
        "_chunk",
        "_end",
        "_excerpt_size",
        "_limit",
        "_long_line",
        "_partial",
        "_queued_chunks",
        "_size",
        "_start",
    )

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._excerpt_size = min(EXCERPT_SIZE, limit + 1)
        self._chunk = b""  # the chunk being searched
        self._start = 0  # where in it the next line begins
        self._queued_chunks: deque[bytes] = deque()  # chunks that follow it
        self._partial = bytearray()  # the beginning of a line whose end hasn't arrived
        self._long_line: Excerpt | None = None  # inside this line, which has been reported
        self._end = b""  # its last bytes
        self._size = 0  # its bytes so far

    def __repr__(self) -> str:
        skipping = ", skipping" if self._long_line is not None else ""
        return f"<LineBuffer {len(self)} of {self._limit} bytes{skipping}>"

    def __len__(self) -> int:
        """Return the number of buffered bytes that were not returned in a line."""
        return (
            len(self._partial) + len(self._chunk) - self._start + sum(map(len, self._queued_chunks))
        )

    @property
    def has_partial_line(self) -> bool:
        """True if a line has begun and its newline hasn't arrived."""
        return self._long_line is not None or len(self) > 0

    @property
    def unfinished(self) -> bytearray:
        """The beginning of the line whose newline hasn't arrived. Do not change it.

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

    def next_line(self) -> bytes | Excerpt | None:
        """Return the next complete line, or None if more bytes are needed.

        For a line over the limit, return an `Excerpt` when it passes the limit, and another one at
        its newline.
        """
        while True:
            chunk = self._chunk
            start = self._start
            if start == len(chunk) and not self._queued_chunks:
                return None
            end = chunk.find(b"\n", start)
            if end < 0:
                if self._buffer_rest():
                    return self._long_line
                continue
            self._start = end + 1
            if self._long_line is not None:
                return self._end_long_line(self._long_line, chunk[start:end])
            if self._partial:
                self._partial += memoryview(chunk)[start:end]
                chunk = bytes(self._partial)
                start = 0
                end = len(chunk)
                self._partial.clear()
            stop = end
            if end > start and chunk[end - 1] == _CR:
                end -= 1
            if end - start <= self._limit:
                return chunk[start:end]
            self._start -= 1  # the next call reads the newline again
            return self._begin_long_line(chunk[start:stop])

    def _buffer_rest(self) -> bool:
        """Buffer the rest of the chunk, which has no newline, and go to the next chunk.

        Return True if the line has just passed the limit.
        """
        rest = memoryview(self._chunk)[self._start :]
        self._chunk = self._queued_chunks.popleft() if self._queued_chunks else b""
        self._start = 0
        if self._long_line is not None:
            self._skip(rest)
            return False
        self._partial += rest
        # One byte more than the limit is allowed: it may be the `\r` of the newline.
        if len(self._partial) <= self._limit + 1:
            return False
        self._begin_long_line(self._partial)
        self._partial.clear()
        return True

    def _begin_long_line(self, data: bytes | bytearray) -> Excerpt:
        self._long_line = Excerpt(bytes(data[: self._excerpt_size]), too_long=True)
        self._end = b""
        self._size = 0
        self._skip(memoryview(data))
        return self._long_line

    def _skip(self, data: memoryview) -> None:
        """Discard bytes of a line over the limit, but for its last ones so far."""
        self._size += len(data)
        kept = self._excerpt_size + 1  # the last byte may be the `\r` of the newline
        self._end = (self._end + data[-kept:])[-kept:]

    def _end_long_line(self, line: Excerpt, data: bytes) -> Excerpt:
        self._skip(memoryview(data))
        self._long_line = None
        end = self._end.removesuffix(b"\r")
        size = self._size - len(self._end) + len(end)
        end = end[-self._excerpt_size :]
        return Excerpt(line.beginning, end, size, too_long=True, is_rest=True)
