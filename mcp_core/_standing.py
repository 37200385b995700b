"""How a client's conversation stands: being opened, open, or over; and what follows from it for who wants to use it.

Rules of this file:

1. A conversation that does not come about is `ConnectFailed`, whatever it died of; one that was open and ended is
   `ConnectionLost` for every call after it.
2. A server that dies of the question which revisions it knows is worth a second start, without the question; no other is.

It refuses to know how anyone waits for the opening, or how a server is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._calls import deliver
from ._errors import ConnectFailed, ConnectionLost
from ._events import ConnectionClosed, PeerReady
from ._state import State

if TYPE_CHECKING:
    from ._connection import Connection
    from ._errors import McpTrioError
    from ._events import Event

__all__ = ["Standing"]


class Standing:
    """The standing of the client's conversation over `conn`. Give it every event; it hands answers to who waits for them.

    `settled` becomes true when the conversation is open, or never will be: then `require_open` tells which.
    """

    __slots__ = ("_conn", "_end", "settled")

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._end: McpTrioError | None = None
        self.settled = False

    def __repr__(self) -> str:
        stands = "over" if self._end is not None else "open" if self.settled else "being opened"
        return f"<Standing of {self._conn!r}: {stands}>"

    def take(self, event: Event) -> None:
        """Act on one event, without waiting."""
        deliver(event)
        if isinstance(event, ConnectionClosed):
            self._end = event.error or ConnectionLost("the client was closed")
            self.settled = True
        elif isinstance(event, PeerReady):
            self.settled = True

    def require_open(self) -> None:
        """Once `settled`: see whether the opening came to a good end.

        Raises:
            ConnectFailed: it did not.
        """
        if isinstance(self._end, ConnectFailed):
            raise self._end
        if self._end is not None:
            raise ConnectFailed(str(self._end)) from self._end

    def require_alive(self) -> None:
        """Before a call: see whether the conversation can still carry it.

        Raises:
            ConnectionLost: it is over.
        """
        if self._conn.state is State.CLOSED:
            raise ConnectionLost(str(self._end))

    @property
    def versions_without_probe(self) -> list[str]:
        """After a failed opening: the revisions to speak with the same server, started once more; none if that is no use."""
        if not self._conn.probing:
            return []
        return [dialect.version for dialect in self._conn.config.stateful]
