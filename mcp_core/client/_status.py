"""The status of a client's connection: opening, open or closed.

1. A connection that never opened is a `ConnectFailed`, for any cause. One that was open and ended
   is a `ConnectionLost`, for every later call.
2. A server that ends when it is probed for its revisions is worth a second start without the probe.
   No other server is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._errors import ConnectFailed, ConnectionLost
from mcp_core.protocol.connection._connection import Connection
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.messages._events import ConnectionClosed, Event, PeerReady
from mcp_core.protocol.messages._pending import deliver

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError

__all__ = ["ConnectionStatus"]


class ConnectionStatus:
    """The status of the client connection `conn`.

    Pass every event to `handle_event`; it also delivers responses to the calls in progress. When
    `settled` becomes true the connection is open or has failed: call `require_open`.
    """

    __slots__ = ("_conn", "_error", "settled")

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._error: McpTrioError | None = None
        self.settled = False

    def __repr__(self) -> str:
        state = "over" if self._error is not None else "open" if self.settled else "being opened"
        return f"<ConnectionStatus of {self._conn!r}: {state}>"

    def handle_event(self, event: Event) -> None:
        """Handle `event`, without waiting, and pass it to the call that it concerns."""
        deliver(event)
        if isinstance(event, ConnectionClosed):
            self._error = event.error or ConnectionLost("the client was closed")
            self.settled = True
        elif isinstance(event, PeerReady):
            self.settled = True

    @property
    def is_closed(self) -> bool:
        """True once the connection is closed."""
        return self._conn.state is State.CLOSED

    def require_open(self) -> None:
        """Check, once `settled`, that the connection opened.

        Raises:
            ConnectFailed: it did not.
        """
        if isinstance(self._error, ConnectFailed):
            raise self._error
        if self._error is not None:
            raise ConnectFailed(str(self._error)) from self._error

    def require_alive(self) -> None:
        """Check, before a call, that the connection isn't closed.

        Raises:
            ConnectionLost: it is closed.
        """
        if self._conn.state is State.CLOSED:
            raise ConnectionLost(str(self._error))

    def versions_without_probe(self, *, probe_unread: bool = False) -> list[str]:
        """Return the revisions for a second start of the same server after a failed opening, or [].

        `probe_unread` is True if the server hasn't read the probe: it did not end because of that,
        and would end again.
        """
        if probe_unread or not self._conn.probing:
            return []
        return [dialect.version for dialect in self._conn.config.stateful]
