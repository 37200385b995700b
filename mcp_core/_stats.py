"""What a connection holds and has carried, for who watches it.

Rule: reading it changes nothing and costs a few additions, so it may be asked at any time and as often as one likes.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Stats"]


class Stats(Struct, frozen=True, kw_only=True):
    """What a connection holds at the moment, and what has passed through it. Sizes are in bytes."""

    in_flight: int  # requests of the peer that were handed out and not ended
    waiting: int  # requests of the peer that wait for a place among those
    calls: int  # requests of ours without an answer
    events: int  # facts that nobody has taken yet
    buffered: int  # received, and not looked at yet
    queued: int  # waits to be sent
    received: int  # in all
    sent: int  # in all, as far as it was taken to be sent
    rejected: int  # messages of the peer that were no legal ones
