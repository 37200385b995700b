"""A pool of connections to one origin, without I/O: which one a call gets, when it is retried.

1. The newest idle connection is used, so that surplus ones expire. One that the server may be
   closing at this moment isn't used: after its keep-alive time, or ours.
2. A connection for many requests (HTTP/2) is filled before another one is opened, the oldest first.
   A call for which there is no capacity waits while a further connection of this kind is being
   opened.
3. Nothing is processed twice. A call is retried only if the server says that it hasn't processed
   it, or if an idempotent call got no byte of a response on a reused connection: most likely the
   server had closed that before (RFC 9110 9.2.2, RFC 9112 9.3.1, RFC 9113 8.7).

The pool never waits. It knows of a connection only its `capacity`, the number of requests that it
accepts.
"""

from __future__ import annotations

import enum
import re
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from mcp_core._errors import ConnectionLost

from ._options import HttpCall

__all__ = ["NotProcessed", "Pool", "PoolDecision", "keep_alive_seconds"]

# Connections in use at the same time. Usual servers allow one client about as many.
_MAX_IN_USE: Final = 100
# Connections in use by long-lived streams: one for a session, and one for each `listen`. They are
# counted apart, so that streams which never end don't use up the places of calls.
_MAX_LONG: Final = 100
# Seconds that a connection may be idle. Servers close after 5 (uvicorn, Node.js) to 75 (nginx), and
# most that close early send their time in `Keep-Alive`.
_IDLE_SECONDS: Final = 30.0
# Seconds that are subtracted from the server's keep-alive time, for the way of our request.
_SAFETY_MARGIN: Final = 1.0
# How often a call is made at most. Each retry takes one more idle connection that turned out to be
# dead.
_MAX_TRIES: Final = 3
_TIMEOUT: Final = re.compile(rb"(?:^|[,;\s])timeout=\"?([0-9]{1,6})", re.IGNORECASE)


class PoolDecision(enum.Enum):
    """The result of `Pool.acquire` if there is no connection for the call yet."""

    OPEN = "open"  # open a new connection; it is counted from now on
    WAIT = "wait"  # all places are in use: ask again when one is released or discarded


class NotProcessed(ConnectionLost):
    """The server says that it hasn't processed the request. Any call may then be retried."""


class CapacityLike(Protocol):
    """A connection, as the pool sees it.

    `capacity` is the number of requests that it accepts in parallel at present, 0 if it accepts no
    more.
    """

    @property
    def capacity(self) -> int: ...


C = TypeVar("C", bound=CapacityLike)


class _ConnectionUse(Struct):
    """The use of one connection. It counts as `long` if the first request on it is."""

    requests: int
    long: bool


class Pool(Generic[C]):
    """The connections to one origin.

    A call begins with `acquire`. If it has to open a connection, report `opened`, or `discard` if
    that failed. When a call with a connection has ended, with or without an error, `release` the
    connection. Close a connection if `release` returns True, and those that `expired` returns: call
    it at `next_deadline`. At the end close those that `clear` returns; from then on no connection
    is kept. `now` is a monotonic time in seconds, on one clock for all calls.

    Attributes:
        deadline: what `next_deadline` returns.
        shared: True if the last connection that was opened accepts several requests in parallel.
    """

    __slots__ = (
        "_closed",
        "_idle",
        "_in_use",
        "_long_count",
        "_open_failed",
        "_opening",
        "_short_count",
        "deadline",
        "shared",
    )

    def __init__(self) -> None:
        self.deadline: float | None = None
        self.shared = False
        self._idle: list[tuple[C, float]] = []  # with the time at which it expires; the newest last
        self._in_use: dict[C, _ConnectionUse] = {}
        self._opening = 0
        # The last attempt to open a connection failed: calls then don't wait for another such
        # attempt.
        self._open_failed = False
        # Connections in use, and those that are being opened.
        self._short_count = 0
        self._long_count = 0
        self._closed = False

    def __repr__(self) -> str:
        return (
            f"<Pool: {self._short_count} in use, {self._long_count} for streams, {len(self._idle)} "
            "idle>"
        )

    def acquire(self, call: HttpCall, now: float) -> C | PoolDecision:
        """Return a connection for `call`, or what to do instead."""
        if self.shared:
            for connection, use in self._in_use.items():
                if use.requests < connection.capacity:
                    use.requests += 1
                    return connection
        # A brief call is never held back: all others may be waiting for it.
        if not call.brief:
            full = (
                self._long_count >= _MAX_LONG
                if call.long_lived
                else self._short_count >= _MAX_IN_USE
            )
            if full:
                return PoolDecision.WAIT
        # Expired connections are skipped here, and removed by `expired`, which returns them to be
        # closed.
        for index in range(len(self._idle) - 1, -1, -1):
            connection, expiry = self._idle[index]
            if expiry > now and connection.capacity:
                del self._idle[index]
                if not self._idle:
                    self.deadline = None
                if call.long_lived:
                    self._long_count += 1
                else:
                    self._short_count += 1
                self._in_use[connection] = _ConnectionUse(1, call.long_lived)
                return connection
        if self.shared and self._opening and not self._open_failed:
            return PoolDecision.WAIT
        self._opening += 1
        self._count(1, long=call.long_lived)
        return PoolDecision.OPEN

    def opened(self, call: HttpCall, connection: C) -> None:
        """Add `connection`, which `call` has opened and now uses. Waiting calls may ask again."""
        self._opening -= 1
        self._open_failed = False
        self._in_use[connection] = _ConnectionUse(1, call.long_lived)
        self.shared = connection.capacity > 1

    def discard(self, call: HttpCall) -> None:
        """Free the place of `call`, which failed to connect. Waiting calls may ask again."""
        self._opening -= 1
        self._count(-1, long=call.long_lived)
        self._open_failed = True

    def release(
        self, connection: C, now: float, *, complete: bool, keep_alive_seconds: float | None = None
    ) -> bool:
        """Take back the connection of a call that has ended. Return True if it is to be closed.

        Args:
            connection: as `acquire` returned it, or as it was `opened`.
            now: the time.
            complete: whether the response is complete and nothing of it is left to read. Not
                relevant for a connection that accepts several requests in parallel.
            keep_alive_seconds: the time for which the server keeps it, None if it doesn't say.
        """
        use = self._in_use[connection]
        use.requests -= 1
        if use.requests:
            return False
        del self._in_use[connection]
        if use.long:
            self._long_count -= 1
        else:
            self._short_count -= 1
        capacity = connection.capacity
        if self._closed or not capacity or (capacity == 1 and not complete):
            return True
        idle_seconds = (
            _IDLE_SECONDS
            if keep_alive_seconds is None
            else min(_IDLE_SECONDS, max(0.0, keep_alive_seconds - _SAFETY_MARGIN))
        )
        expiry = now + idle_seconds
        self._idle.append((connection, expiry))
        if self.deadline is None or expiry < self.deadline:
            self.deadline = expiry
        return False

    def expired(self, now: float) -> list[C]:
        """Remove and return the connections that have been idle for too long. Close them."""
        gone = [connection for connection, expiry in self._idle if expiry <= now]
        if gone:
            self._idle = [(connection, expiry) for connection, expiry in self._idle if expiry > now]
        # A connection that was in use in between may have had the earliest expiry.
        self.deadline = min((expiry for _, expiry in self._idle), default=None)
        return gone

    def next_deadline(self) -> float | None:
        """Return when to call `expired`, None for never. It may be too early, never too late."""
        return self.deadline

    def clear(self) -> list[C]:
        """Close the pool: remove and return all idle connections. Close them."""
        self._closed = True
        idle = self._idle
        self._idle = []
        self.deadline = None
        return [connection for connection, _ in idle]

    @staticmethod
    def may_retry(
        call: HttpCall, problem: ConnectionLost, *, reused: bool, answered: bool, tries: int
    ) -> bool:
        """Return True if `call`, whose connection broke, is to be made again.

        Args:
            call: the call.
            problem: why it failed.
            reused: whether the connection had been used for another request before.
            answered: whether any byte of a response has arrived.
            tries: how often the call was made, this time included.
        """
        harmless = isinstance(problem, NotProcessed) or (call.idempotent and reused)
        return harmless and not answered and tries < _MAX_TRIES

    def _count(self, change: int, *, long: bool) -> None:
        if long:
            self._long_count += change
        else:
            self._short_count += change


def keep_alive_seconds(keep_alive: bytes | None) -> float | None:
    """Return the seconds for which a server keeps an idle connection, by its header `Keep-Alive`.

    `keep_alive` is the header's value, None without one. None if it doesn't say.
    """
    found = _TIMEOUT.search(keep_alive or b"")
    return float(found[1]) if found else None
