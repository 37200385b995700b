"""Lines of a trace as bytes, without secrets, up to a limit of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._format import TraceLine, encode_header, encode_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
        on_line: called with each line, without secrets, also with those that are not written.

    Attributes:
        is_full: whether a line was lost because of the limit.
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
        redactor = self._redactor
        on_line = self._on_line
        found = []
        for line in lines:
            if self.is_full and on_line is None:
                self._drop(line)
                continue
            if redactor is not None:
                line = redactor.redact_line(line)
            if on_line is not None:
                on_line(line)
                if self.is_full:
                    self._drop(line)
                    continue
            data = encode_line(line)
            self._left -= len(data)
            if self._left < 0:
                # Later lines may be shorter, but a trace with holes says less than one that ends.
                self.is_full = True
                self._drop(line)
                continue
            found.append(data)
        return b"".join(found)

    def _drop(self, line: TraceLine) -> None:
        self._lost += line.count or 1 if line.kind == "lost" else 1

    def add_lost(self, count: int) -> None:
        """Count `count` lines that were lost before they came here, for the end of the trace."""
        self._lost += count

    def end(self, t: float) -> bytes:
        """Return the line that counts the lost ones, with the time `t`, or `b""` if none was."""
        return encode_line(TraceLine(t=t, kind="lost", count=self._lost)) if self._lost else b""
