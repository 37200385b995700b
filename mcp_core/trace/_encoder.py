"""Lines of a trace as bytes, without secrets, up to a limit of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._format import TraceLine, encode_header, encode_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._format import TraceHeader
    from ._redaction import Redactor

__all__ = ["TraceEncoder"]

_RESERVED: Final = 1024  # bytes that are left for the line that counts the lost ones


class TraceEncoder:
    """The bytes of one trace, in order.

    Args:
        header: its header.
        redactor: hides secrets; None to write them.
        limit: bytes of the file. Later lines are counted, and not written.

    Attributes:
        is_full: whether a line was lost because of the limit.
    """

    def __init__(self, header: TraceHeader, redactor: Redactor | None, limit: int) -> None:
        self._header = header
        self._redactor = redactor
        self._left = limit - _RESERVED
        self._lost = 0
        self.is_full = False

    def begin(self) -> bytes:
        """Return the header."""
        data = encode_header(self._header)
        self._left -= len(data)
        return data

    def encode(self, lines: Iterable[TraceLine]) -> bytes:
        """Return `lines`, as far as the limit allows."""
        found = []
        for line in lines:
            if self.is_full:
                self._lost += 1
                continue
            if self._redactor is not None:
                line = self._redactor.redact_line(line)
            data = encode_line(line)
            if len(data) > self._left:
                # Later lines may be shorter, but a trace with holes says less than one that ends.
                self.is_full = True
                self._lost += 1
                continue
            self._left -= len(data)
            found.append(data)
        return b"".join(found)

    def add_lost(self, count: int) -> None:
        """Count `count` lines that were lost before they came here, for the end of the trace."""
        self._lost += count

    def end(self, t: float) -> bytes:
        """Return the line that counts the lost ones, with the time `t`, or `b""` if none was."""
        return encode_line(TraceLine(t=t, kind="lost", count=self._lost)) if self._lost else b""
