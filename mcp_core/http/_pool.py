"""Which connection a request of HTTP takes: one that carries others and has room, one that is idle, a new one, or for now none; and
whether it is made again if that one turns out to be dead.

Rules of this file:

1. The newest of the idle connections is taken, so that those which are not needed any more grow old and are closed.
2. A connection that is idle for too long is not taken: the server may be closing it at this moment. How long that is a server
   says, or we do.
3. A connection that carries many requests (HTTP/2) carries as many as it can before another one is opened, the oldest first. Where
   the last one was of this kind, whoever finds no room waits while another one is being opened: that will have room for him.
4. A response that does not end takes its connection away from the others, so it does not count against their number; but such
   responses have a number of their own. What is answered at once never waits for a number: all the others may be waiting for it.
5. Nothing that acts is sent twice. A request is made again only if the server says that it has not processed it, or if nothing of
   a response came, on a connection that had been idle: then most likely the server had closed it before (RFC 9110 9.2.2, RFC 9112
   9.3.1, RFC 9113 8.7).

It has no connections to HTTP to begin with: what it is given back it takes for anything that says how much `room` it has, and it never
waits. For one origin.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from mcp_core._errors import ConnectionLost

if TYPE_CHECKING:
    from ._call import HttpCall

__all__ = ["NotProcessed", "Place", "Pool", "idle_time"]

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


class NotProcessed(ConnectionLost):
    """The server has not processed the request, and says so: it may be made again, whatever it does."""


class Roomy(Protocol):
    """`room`: how many requests a connection carries at the same time, as things are; 0 if it takes no more."""

    @property
    def room(self) -> int: ...


C = TypeVar("C", bound=Roomy)


class _Use(Struct):
    """What a connection carries. It counts as `long` if the first of it does."""

    requests: int
    long: bool


class Pool(Generic[C]):
    """The connections to one origin.

    A call `take`s its place. If it has to open a connection it says that this is `opened`, or `drop`s its place. With its connection, it
    `give`s it back, whatever has become of it. Close what that says is to be closed, what `expired` gives, by the time of
    `next_deadline`, and what `clear` gives; from then on nothing is kept any more. `shared`: the connections carry many requests.
    """

    __slots__ = ("_closed", "_failed", "_idle", "_in_use", "_long", "_opening", "_short", "shared")

    def __init__(self) -> None:
        self.shared = False
        self._idle: list[tuple[C, float]] = []  # the newest last; when each is no longer good
        self._in_use: dict[C, _Use] = {}
        self._opening = 0
        self._failed = False  # the last attempt to open one; then nobody waits for another's failure
        # Connections in use, those included that are being opened.
        self._short = 0
        self._long = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<Pool: {self._short} in use, {self._long} for streams, {len(self._idle)} idle>"

    def take(self, call: HttpCall, now: float) -> C | Place:
        """A connection for `call`, or what to do instead."""
        if self.shared:
            for connection, use in self._in_use.items():
                if use.requests < connection.room:
                    use.requests += 1
                    return connection
        if not call.brief and ((self._long >= _MOST_LONG) if call.long else (self._short >= _MOST)):
            return Place.WAIT
        # What is too old stays, for `expired` to give it out.
        for place in range(len(self._idle) - 1, -1, -1):
            connection, good = self._idle[place]
            if good > now and connection.room:
                del self._idle[place]
                self._count(1, long=call.long)
                self._in_use[connection] = _Use(1, call.long)
                return connection
        if self.shared and self._opening and not self._failed:
            return Place.WAIT
        self._opening += 1
        self._count(1, long=call.long)
        return Place.OPEN

    def opened(self, call: HttpCall, connection: C) -> None:
        """`call` has opened a connection, and takes it. All that wait may ask again."""
        self._opening -= 1
        self._failed = False
        self._in_use[connection] = _Use(1, call.long)
        self.shared = connection.room > 1

    def drop(self, call: HttpCall) -> None:
        """`call` has opened none. All that wait may ask again."""
        self._opening -= 1
        self._count(-1, long=call.long)
        self._failed = True

    def give(self, connection: C, now: float, *, whole: bool, lasts: float | None = None) -> bool:
        """A call is over that had `connection`; gives whether that is to be closed.

        Args:
            connection: as it was taken.
            now: the time.
            whole: whether the response came to its end and nothing of it is left. With one that carries many requests it does not
                matter to the others.
            lasts: for how many seconds the server keeps it (`idle_time`).
        """
        use = self._in_use[connection]
        use.requests -= 1
        if use.requests:
            return False
        del self._in_use[connection]
        self._count(-1, long=use.long)
        room = connection.room
        if self._closed or not room or (room == 1 and not whole):
            return True
        good = _IDLE if lasts is None else min(_IDLE, max(0.0, lasts - _MARGIN))
        self._idle.append((connection, now + good))
        return False

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
        self._closed = True
        idle, self._idle = self._idle, []
        return [connection for connection, _ in idle]

    @staticmethod
    def may_retry(
        call: HttpCall, problem: ConnectionLost, *, reused: bool, answered: bool, tries: int
    ) -> bool:
        """Whether to make `call` again, whose connection broke.

        Args:
            call: which one.
            problem: what happened.
            reused: the connection had been used for another request before.
            answered: something of a response has come.
            tries: how often it was made, this time included.
        """
        harmless = isinstance(problem, NotProcessed) or (call.idempotent and reused)
        return harmless and not answered and tries < _TRIES

    def _count(self, more: int, *, long: bool) -> None:
        if long:
            self._long += more
        else:
            self._short += more


def idle_time(keep_alive: bytes | None) -> float | None:
    """For how many seconds a server keeps a connection, by its header `Keep-Alive`; None if it does not say."""
    found = _TIMEOUT.search(keep_alive or b"")
    return float(found[1]) if found else None
