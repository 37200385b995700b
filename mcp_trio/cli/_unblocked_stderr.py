"""stderr for what goes on while a terminal is stopped, a window is stuck, or a pager isn't read."""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.adapters import StderrCopy

__all__ = ["unblocked_stderr"]

_POLL_INTERVAL: Final = 0.02  # seconds between two attempts to write


@contextmanager
def unblocked_stderr() -> Iterator[TextIO | None]:
    """Open a file that writes to our stderr, and waits for it a second at most.

    What stderr hasn't taken by then is lost, and so is all that it doesn't take at once, until it
    takes something again: see `StderrCopy`. On Windows, and if our stderr has no descriptor, the
    result is `sys.stderr`, which is waited for.
    """
    from mcp_core.adapters import StderrCopy

    stderr = sys.stderr
    if sys.platform == "win32":
        yield stderr
        return
    try:
        fd = os.dup(stderr.fileno())
    except (AttributeError, OSError):  # it was closed at the start, or isn't a file
        yield stderr
        return
    is_terminal = os.isatty(fd)
    file = _UnblockedFile(StderrCopy(fd, escape=False), is_terminal)
    with io.TextIOWrapper(file, stderr.encoding) as text:
        yield text


class _UnblockedFile(io.BufferedIOBase):
    """The bytes of such a file. Each `write` is on its own."""

    name = "<stderr>"

    def __init__(self, copy: StderrCopy, is_terminal: bool) -> None:
        self._copy = copy
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def writable(self) -> bool:
        return True

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # of a `TextIOWrapper`
        self._copy.begin(data, time.monotonic())
        while not self._copy.write_some(time.monotonic()):
            time.sleep(_POLL_INTERVAL)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._copy.close()
