r"""Newline framing: bytes in, lines out. Used by stdio and by every custom transport over a byte stream.

Rules of this file:

1. Only `\n` ends a line; one `\r` before it is dropped. A `\r` anywhere else is white space to JSON, not an end.
2. No byte is looked at twice: `_scanned` remembers how far the search for a newline has come, so that the cost is linear
   in the input however it is split.
3. A line over the limit is reported once, as `OVERLONG`, as soon as the limit is passed. The rest of it is thrown away
   as it arrives, in constant memory, and framing goes on after its newline.

It does not know JSON, and an empty line is a line like any other.
"""

from __future__ import annotations

import enum
from typing import Final, Literal

__all__ = ["OVERLONG", "LineBuffer", "Overlong"]


class Overlong(enum.Enum):
    """The type of `OVERLONG`."""

    OVERLONG = "OVERLONG"

    def __repr__(self) -> str:
        return self.value


OVERLONG: Final = Overlong.OVERLONG

# Below this many consumed bytes the front of the buffer is left alone: deleting it moves everything behind it.
_COMPACT_AT = 65_536


class LineBuffer:
    """Collects chunks and gives lines, without their newline, each copied to `bytes` once.

    `limit` is the longest line in bytes, its newline not counted.
    """

    __slots__ = ("_buffer", "_limit", "_scanned", "_skipping", "_start")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._start = 0  # where the current line begins
        self._scanned = 0  # no newline before this index
        self._skipping = False  # inside an overlong line that has been reported

    def __repr__(self) -> str:
        return f"<LineBuffer {len(self)} of {self._limit} bytes{', skipping' if self._skipping else ''}>"

    def __len__(self) -> int:
        """Bytes held that no line has taken yet."""
        return len(self._buffer) - self._start

    @property
    def in_line(self) -> bool:
        """Whether the input stopped in the middle of a line."""
        return self._skipping or len(self) > 0

    def feed(self, data: bytes) -> None:
        """Add what arrived. Then call `next_line` until it gives None."""
        self._buffer += data

    def next_line(self) -> bytes | Literal[Overlong.OVERLONG] | None:
        """The next whole line, `OVERLONG` for one that passed the limit, or None when more bytes are needed."""
        buffer = self._buffer
        while True:
            end = buffer.find(b"\n", self._scanned)
            if end < 0:
                return self._no_newline()
            start, self._start = self._start, end + 1
            self._scanned = end + 1
            if self._skipping:
                self._skipping = False
                self._compact()
                continue
            stop = end - 1 if end > start and buffer[end - 1] == 0x0D else end
            if stop - start > self._limit:
                self._compact()
                return OVERLONG
            line = bytes(memoryview(buffer)[start:stop])
            self._compact()
            return line

    def _no_newline(self) -> Literal[Overlong.OVERLONG] | None:
        if self._skipping:
            self._drop_all()
            return None
        self._scanned = len(self._buffer)
        # One byte of grace: the last one may be the `\r` that does not count.
        if len(self) > self._limit + 1:
            self._skipping = True
            self._drop_all()
            return OVERLONG
        return None

    def _drop_all(self) -> None:
        self._buffer.clear()
        self._start = self._scanned = 0

    def _compact(self) -> None:
        if self._start == len(self._buffer):
            self._drop_all()
        elif self._start >= _COMPACT_AT and self._start * 2 >= len(self._buffer):
            del self._buffer[: self._start]
            self._scanned -= self._start
            self._start = 0
