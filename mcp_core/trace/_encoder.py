"""The encoder of a trace: lines as bytes, without secrets, up to a file's limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ._format import TraceHeader, TraceLine, encode_header, encode_line, encode_lines
from ._redaction import Redactor

__all__ = ["TraceEncoder"]

_RESERVED: Final = 1024  # bytes that are reserved for the line that counts the lost lines


class TraceEncoder:
    """The bytes of one trace, in order.

    Args:
        header: the trace's header.
        redactor: hides secrets; None to write them.
        limit: bytes of each file. Lines beyond it are counted, and not written.
        on_line: called with each line, without secrets, even if it isn't written.

    Attributes:
        is_full: True if a line was lost because of the limit.
    """

    def __init__(
        self,
        header: TraceHeader,
        redactor: Redactor | None,
        limit: int,
        on_line: Callable[[TraceLine], object] | None = None,
    ) -> None:
        self._header = header
        self._redactor = redactor
        self._on_line = on_line
        self._limit = limit
        self._left = limit - _RESERVED
        self._lost = 0
        self.is_full = False

    def begin(self) -> bytes:
        """Return the header that begins a file. Each file has the same limit."""
        data = encode_header(self._header)
        self._left = self._limit - _RESERVED - len(data)
        self._lost = 0
        self.is_full = False
        return data

    def encode(self, lines: Sequence[TraceLine]) -> bytes:
        """Return `lines`, as far as the limit allows."""
        if not self.is_full or self._on_line is not None:
            if self._redactor is not None:
                lines = [self._redactor.redact_line(line) for line in lines]
            if self._on_line is not None:
                for line in lines:
                    self._on_line(line)
        if not self.is_full:
            data = encode_lines(lines)
            if len(data) <= self._left:
                self._left -= len(data)
                return data
        return self._encode_up_to_limit(lines)

    def _encode_up_to_limit(self, lines: Sequence[TraceLine]) -> bytes:
        found = []
        for line in lines:
            if not self.is_full:
                data = encode_line(line)
                self._left -= len(data)
                if self._left >= 0:
                    found.append(data)
                    continue
                # Later lines may be shorter, but a trace with holes says less than one that ends.
                self.is_full = True
            self._drop(line)
        return b"".join(found)

    def _drop(self, line: TraceLine) -> None:
        self._lost += line.count or 1 if line.kind == "lost" else 1

    def add_lost(self, count: int) -> None:
        """Count `count` lines that the caller has lost. The last line of the file says how many."""
        self._lost += count

    def end(self, t: float) -> bytes:
        """Return the line at the end of a file, which counts those lost in it, or `b""` for none.

        `t` is its time.
        """
        return encode_line(TraceLine(t=t, kind="lost", count=self._lost)) if self._lost else b""
