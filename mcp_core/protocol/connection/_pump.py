"""Delivery of a connection's events, and its back-pressure in both directions.

1. Events are delivered one at a time and in order. If `on_event` calls `run` again, that call
   returns at once, and the outer `run` delivers the new events after the current one.
2. Back-pressure on input is `paused`: stop reading from the peer. Back-pressure on output is
   `write_blocked`: wait before you send unsolicited messages, such as progress. Responses never
   wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from mcp_core.protocol.messages._events import NEED_DATA, PAUSED, Event, NeedData, Paused

__all__ = ["HIGH_WATER", "Pump"]

# Bytes queued for the peer above which handlers wait: the capacity of a pipe on Linux.
HIGH_WATER: Final = 64 * 1024


class PumpSource(Protocol):
    """A connection, or a state machine that wraps one."""

    def queued(self) -> int: ...

    def next_event(self) -> Event | NeedData | Paused: ...


class Pump:
    """A loop that passes each event of a connection to a callback.

    Args:
        conn: the connection.
        on_event: called for each event. It may call into the connection, but must not wait.

    `paused` is True if, as of the last `run`, the driver has to stop reading.
    """

    __slots__ = (
        "_conn",
        "_on_event",
        "_running",
        "paused",
    )

    def __init__(self, conn: PumpSource, on_event: Callable[[Event], object]) -> None:
        self._conn = conn
        self._on_event = on_event
        self._running = False
        self.paused = False

    def __repr__(self) -> str:
        paused = ", paused" if self.paused else ""
        blocked = ", write blocked" if self.write_blocked else ""
        return f"<Pump of {self._conn!r}{paused}{blocked}>"

    @property
    def write_blocked(self) -> bool:
        """True if unsolicited messages should wait, because more than 64 KiB are queued."""
        return self._conn.queued() > HIGH_WATER

    def run(self) -> None:
        """Deliver all available events. Call it after any call into the connection."""
        if self._running:
            return
        conn = self._conn
        on_event = self._on_event
        self._running = True
        try:
            while (event := conn.next_event()) is not NEED_DATA and event is not PAUSED:
                on_event(event)
            self.paused = event is PAUSED
        finally:
            self._running = False
