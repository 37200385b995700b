"""Taking the events out of a connection, and what back-pressure means for whoever carries it.

Rules of this file:

1. Events are acted on one at a time and in their order. Acting on one may call into the connection and ask for more, also
   from within a handler: then the call that is under way takes those too, after the present one.
2. Pressure has two ends. `paused`: nothing more is to be read from the peer. `full`: so much waits to be sent that whoever
   sends without being asked, as with progress, has to wait; an answer never has to.

It refuses to know how anyone reads, sends or waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ._events import NEED_DATA, PAUSED

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._events import Event, NeedData, Paused

__all__ = ["Pump"]

_HIGH_WATER: Final = (
    64 * 1024
)  # a pipe's capacity on Linux: what is queued above it waits for the peer, not for us


class Source(Protocol):
    """A connection, or a machine on top of one."""

    def queued(self) -> int: ...

    def next_event(self) -> Event | NeedData | Paused: ...


class Pump:
    """Gives each event of `conn` to `take`, which may call into the connection but not wait.

    `paused` tells, as of the last `run`, whether to stop reading.
    """

    __slots__ = ("_conn", "_running", "_take", "paused")

    def __init__(self, conn: Source, take: Callable[[Event], object]) -> None:
        self._conn = conn
        self._take = take
        self._running = False
        self.paused = False

    def __repr__(self) -> str:
        return f"<Pump of {self._conn!r}{', paused' if self.paused else ''}{', full' if self.full else ''}>"

    @property
    def full(self) -> bool:
        """Whether to wait before sending what nobody asked for."""
        return self._conn.queued() > _HIGH_WATER

    def run(self) -> None:
        """Take out everything there is. To be called after any call into the connection."""
        if self._running:
            return
        conn, take = self._conn, self._take
        self._running = True
        try:
            while (event := conn.next_event()) is not NEED_DATA and event is not PAUSED:
                take(event)
            self.paused = event is PAUSED
        finally:
            self._running = False
