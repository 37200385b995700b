"""Output on its way to our stderr, which may take nothing for a while, such as in a pager."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING, Final

from mcp_core._text import ByteEscaper

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StderrCopy"]

_STALL_TIMEOUT: Final = 1.0  # seconds that our blocked stderr may hold up the child's, once


class StderrCopy:
    """A copier of chunks that waits for nothing and keeps no more than one of them.

    What isn't taken within a second is dropped. From then on, bytes that aren't taken at once are
    dropped, until some are taken again. So a child isn't held up by a second at each line::

        copy.begin(chunk, now)
        while not copy.write_some(now):
            ...  # wait for a moment

    A terminal gets escapes in place of control characters.

    Args:
        fd: our stderr. The copier owns it, and doesn't change its flags, which other processes
            share. On Windows, writing waits for it.
        escape: False if the chunks have styles for a terminal, and are written as they are.
    """

    def __init__(self, fd: int, *, escape: bool = True) -> None:
        is_terminal = os.isatty(fd)
        self._escaper = ByteEscaper() if is_terminal and escape else None
        self._fd, self._most = _unblocked(fd) if is_terminal else (fd, _PIPE_BUF)
        self._is_writable = _polled(self._fd)
        self._rest = memoryview(b"")
        self._deadline = 0.0
        self._is_stalled = False

    def begin(self, chunk: bytes, now: float) -> None:
        """Take the next chunk, once `write_some` has returned True for the former one.

        Args:
            chunk: what the child has written.
            now: the time in seconds, of any clock.
        """
        self._rest = memoryview(chunk if self._escaper is None else self._escaper.feed(chunk))
        self._deadline = now + _STALL_TIMEOUT

    def write_some(self, now: float) -> bool:
        """Write what is taken at once. Return False if the rest is to be tried again.

        Args:
            now: the time in seconds, of the clock of `begin`.
        """
        while self._rest and self._is_writable():
            try:
                taken = os.write(self._fd, self._rest[: self._most])
            except BlockingIOError:
                break
            except OSError:
                return True  # its reader is gone
            self._rest = self._rest[taken:]
            self._is_stalled = False
        if self._rest and now >= self._deadline:
            self._is_stalled = True
        return not self._rest or self._is_stalled

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


# A descriptor that polls as writable takes so many bytes without waiting, unless it is a terminal.
_PIPE_BUF: Final[int] = getattr(select, "PIPE_BUF", 65_536)


def _polled(fd: int) -> Callable[[], bool]:
    """Return a function that says whether a descriptor takes bytes."""
    if sys.platform == "win32":
        return lambda: True
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return lambda: bool(poll.poll(0))


def _unblocked(fd: int) -> tuple[int, int]:
    """Return a descriptor of the same terminal that never waits, and how much to write at once.

    A terminal polls as writable if it takes one byte. It is opened anew, with flags of its own. If
    that isn't possible, as after a change of the user, it gets byte after byte.
    """
    if sys.platform == "win32":
        return fd, _PIPE_BUF
    try:
        own = os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return fd, 1
    os.close(fd)
    return own, _PIPE_BUF
