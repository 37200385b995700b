"""Which connection a request of HTTP takes: one that is idle, a new one, or for now none; and whether it is made again if that one
turns out to be dead.

Rules of this file:

1. The newest of the idle connections is taken, so that those which are not needed any more grow old and are closed.
2. A connection that is idle for too long is not taken: the server may be closing it at this moment. How long that is a server
   says, or we do.
3. A response that does not end takes its connection away from the others, so it does not count against their number; but such
   responses have a number of their own. What is answered at once never waits: all the others may be waiting for it.
4. Nothing that acts is sent twice. A request is made again only if nothing of a response came, on a connection that had been idle:
   then most likely the server had closed it before (RFC 9110 9.2.2, RFC 9112 9.3.1).

It has no connections to HTTP to begin with: what it is given back it takes for any value, and it never waits. For one origin.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from ._call import HttpCall

__all__ = ["Place", "Pool", "idle_time"]

C = TypeVar("C")

# Connections in use at the same time. A server of the usual kind lets one client have about so many.
_MOST: Final = 100
# Those of streams that last: one for a session, and one for each `listen`.
_MOST_LONG: Final = 100
# Seconds. Servers close after 5 (uvicorn, Node.js) to 75 (nginx), and those who close early mostly say so.
_IDLE: Final = 30.0
# What is subtracted from the server's word for the time that our request travels.
_MARGIN: Final = 1.0
# How often a request is made again. Each attempt needs one more connection that was idle and is dead.
_TRIES: Final = 3
_TIMEOUT: Final = re.compile(rb"(?:^|[,;\s])timeout=\"?([0-9]{1,6})", re.IGNORECASE)


class Place(enum.Enum):
    """What `Pool.take` says if there is no connection to take."""

    OPEN = "open"  # open a new one; it is counted from now on
    WAIT = "wait"  # there are enough: ask again when one was given back or dropped


class Pool(Generic[C]):
    """The connections to one origin.

    A call `take`s its place. Then, with its connection, it is `give`n back when that is good for another request, or the place is
    `drop`ped. Close what `expired` gives, by the time of `next_deadline`, and what `clear` gives.
    """

    __slots__ = ("_idle", "_long", "_short")

    def __init__(self) -> None:
        self._idle: list[tuple[C, float]] = []  # the newest last; when each is no longer good
        self._short = 0
        self._long = 0

    def __repr__(self) -> str:
        return f"<Pool: {self._short} in use, {self._long} for streams, {len(self._idle)} idle>"

    def take(self, call: HttpCall, now: float) -> C | Place:
        """A connection for `call`, or what to do instead."""
        if not call.brief and ((self._long >= _MOST_LONG) if call.long else (self._short >= _MOST)):
            return Place.WAIT
        self._count(call, 1)
        # What is too old stays, for `expired` to give it out.
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place][1] > now:
                return self._idle.pop(place)[0]
        return Place.OPEN

    def give(self, call: HttpCall, connection: C, now: float, *, lasts: float | None = None) -> None:
        """`call` is over, and its connection good for another. `lasts` is for how many seconds the server keeps it (`idle_time`)."""
        self._count(call, -1)
        good = _IDLE if lasts is None else min(_IDLE, max(0.0, lasts - _MARGIN))
        self._idle.append((connection, now + good))

    def drop(self, call: HttpCall) -> None:
        """`call` is over, and its connection of no use; or there never was one."""
        self._count(call, -1)

    def expired(self, now: float) -> list[C]:
        """Connections to close, because nobody has needed them; they are forgotten."""
        gone = [connection for connection, good in self._idle if good <= now]
        if gone:
            self._idle = [(connection, good) for connection, good in self._idle if good > now]
        return gone

    def next_deadline(self) -> float | None:
        """When to ask for `expired`; None for never."""
        return min((good for _, good in self._idle), default=None)

    def clear(self) -> list[C]:
        """All idle connections, to be closed; they are forgotten."""
        idle, self._idle = self._idle, []
        return [connection for connection, _ in idle]

    @staticmethod
    def may_retry(call: HttpCall, *, reused: bool, answered: bool, tries: int) -> bool:
        """Whether to make `call` again, whose connection broke.

        Args:
            reused: the connection had been used for another request before.
            answered: something of a response has come.
            tries: how often it was made, this time included.
        """
        return call.idempotent and reused and not answered and tries < _TRIES

    def _count(self, call: HttpCall, more: int) -> None:
        if call.long:
            self._long += more
        else:
            self._short += more


def idle_time(keep_alive: bytes | None) -> float | None:
    """For how many seconds a server keeps a connection, by its header `Keep-Alive`; None if it does not say."""
    found = _TIMEOUT.search(keep_alive or b"")
    return float(found[1]) if found else None
