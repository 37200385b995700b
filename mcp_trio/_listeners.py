"""Accept connections: wait while the system has no descriptor to spare, and have a maximum.

A task of its own serves each connection.
"""

from __future__ import annotations

import errno
import logging
import math
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

__all__ = ["PatientListener", "serve_connections"]

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


async def serve_connections(
    serve: Callable[[L], Awaitable[object]],
    listeners: Iterable[trio.abc.Listener[L]],
    max_connections: int,
) -> None:
    """Serve each connection in a task, until cancelled. Listeners and connections are closed.

    Args:
        serve: serves one connection. A client that disconnects, or that reads too slowly, ends its
            own connection only: `trio.BrokenResourceError`, `ClosedResourceError`, `TooSlowError`.
        listeners: accept the connections.
        max_connections: the maximum of open connections; more are closed at once.

    Raises:
        ExceptionGroup: a listener or `serve` has raised something else.
    """
    count = 0

    async def serve_one(stream: L) -> None:
        nonlocal count
        if count >= max_connections:
            _log.warning("%d connections are open, the maximum: closing a new one", count)
            return  # `trio.serve_listeners` closes the stream
        count += 1
        try:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
                await serve(stream)
        finally:
            count -= 1

    await trio.serve_listeners(serve_one, [PatientListener(each) for each in listeners])
