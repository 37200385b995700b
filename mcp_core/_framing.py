r"""Newline framing: bytes in, lines out. Used by stdio and by every custom transport over a byte stream.

Rules of this file:

1. Only `\n` ends a line; one `\r` before it is dropped. A `\r` anywhere else is white space to JSON, not an end.
2. No byte is looked at twice, and each is copied once into its line (twice if its line came in several chunks): so the cost
   is linear in the input however it is split.
3. A line over the limit is reported once, as `OVERLONG`, as soon as the limit is passed. The rest of it is thrown away
   as it arrives, in constant memory, and framing goes on after its newline.

It does not know JSON, and an empty line is a line like any other.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import Final, Literal

__all__ = ["OVERLONG", "LineBuffer", "Overlong"]


class Overlong(enum.Enum):
    """The type of `OVERLONG`."""

    OVERLONG = "OVERLONG"

    def __repr__(self) -> str:
        return self.value


OVERLONG: Final = Overlong.OVERLONG

_CR: Final = 0x0D


class LineBuffer:
    """Collects chunks and gives lines, without their newline, as `bytes`.

    `limit` is the longest line in bytes, its newline not counted.
    """

    __slots__ = ("_chunk", "_later", "_limit", "_partial", "_skipping", "_start")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunk = b""  # what is looked at now ...
        self._start = 0  # ... from here on
        self._later: deque[bytes] = deque()  # chunks that came before that one was used up
        self._partial = bytearray()  # the beginning of a line whose end was in no chunk so far
        self._skipping = False  # inside an overlong line that has been reported

    def __repr__(self) -> str:
        return f"<LineBuffer {len(self)} of {self._limit} bytes{', skipping' if self._skipping else ''}>"

    def __len__(self) -> int:
        """Bytes held that no line has taken yet."""
        return len(self._partial) + len(self._chunk) - self._start + sum(map(len, self._later))

    @property
    def in_line(self) -> bool:
        """Whether the input stopped in the middle of a line."""
        return self._skipping or len(self) > 0

    @property
    def unfinished(self) -> bytearray:
        """Once `next_line` gave None: the beginning of the line whose end has not come. To be looked at, and not changed."""
        return self._partial

    def feed(self, data: bytes) -> None:
        """Add what arrived. Then call `next_line` until it gives None."""
        if self._start == len(self._chunk) and not self._later:
            self._chunk = data
            self._start = 0
        else:
            self._later.append(data)

    def next_line(self) -> bytes | Literal[Overlong.OVERLONG] | None:
        """The next whole line, `OVERLONG` for one that passed the limit, or None when more bytes are needed."""
        while True:
            chunk, start = self._chunk, self._start
            if start == len(chunk) and not self._later:
                return None
            end = chunk.find(b"\n", start)
            if end < 0:
                if self._keep_rest():
                    return OVERLONG
                continue
            self._start = end + 1
            if self._skipping:
                self._skipping = False
                continue
            if self._partial:
                self._partial += memoryview(chunk)[start:end]
                chunk, start, end = bytes(self._partial), 0, len(self._partial)
                self._partial.clear()
            if end > start and chunk[end - 1] == _CR:
                end -= 1
            return OVERLONG if end - start > self._limit else chunk[start:end]

    def _keep_rest(self) -> bool:
        """Put aside the rest of the chunk, which has no newline, and take up the next one. True if the line got too long."""
        if not self._skipping:
            self._partial += memoryview(self._chunk)[self._start :]
        self._chunk = self._later.popleft() if self._later else b""
        self._start = 0
        # One byte of grace: the last one may be the `\r` that does not count.
        if len(self._partial) <= self._limit + 1:
            return False
        self._partial.clear()
        self._skipping = True
        return True
