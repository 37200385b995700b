"""Statistics of a connection. Reading them has no effect and costs a few additions."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Stats"]


class Stats(Struct, frozen=True, kw_only=True):
    """The current contents of a connection, and totals since it began. Sizes are in bytes."""

    in_flight: int  # requests of the peer that have an event and no response yet
    waiting: int  # requests of the peer that wait because of `Limits.in_flight`
    calls: int  # our requests without a response
    events: int  # events that `next_event` has not returned yet
    buffered: int  # bytes received and not processed
    queued: int  # bytes to send
    received: int  # total bytes received
    sent: int  # total bytes taken to be sent
    rejected: int  # total invalid or rejected messages of the peer
