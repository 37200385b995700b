"""A listener that waits, with one line in the log, while the system has no descriptor to spare."""

from __future__ import annotations

import errno
import logging
import math
import os
from typing import Final, TypeVar

import trio

__all__ = ["PatientListener"]

L = TypeVar("L", bound=trio.abc.Stream)

# Temporary: the process or the system has no free file descriptor or memory.
_RESOURCE_ERRORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_DELAY: Final = 0.1  # seconds
_REPORT_INTERVAL: Final = 60.0  # seconds between two lines

_log = logging.getLogger("mcp_trio")


class PatientListener(trio.abc.Listener[L]):
    """A listener for `trio.serve_listeners`, which would log a traceback ten times a second.

    Args:
        listener: accepts the connections. It is closed with this one.
    """

    def __init__(self, listener: trio.abc.Listener[L]) -> None:
        self._listener = listener
        self._next_report = -math.inf

    def __repr__(self) -> str:
        return f"<PatientListener of {self._listener!r}>"

    async def accept(self) -> L:
        """Return the next connection. Wait while there is no descriptor for it."""
        while True:
            try:
                return await self._listener.accept()
            except OSError as exc:
                if exc.errno not in _RESOURCE_ERRORS:
                    raise
                now = trio.current_time()
                if now >= self._next_report:
                    self._next_report = now + _REPORT_INTERVAL
                    _log.error(
                        "new connections wait: %s; raise the limit of open files (ulimit -n)",
                        os.strerror(exc.errno),
                    )
                await trio.sleep(_RETRY_DELAY)

    async def aclose(self) -> None:
        """Close the listener."""
        await self._listener.aclose()
