"""The requests of the peer that have no response yet: those in flight, and a queue of the others.

1. A request stays in the table until its handler has returned, even if it was cancelled. Its id
   cannot be used again until then, and a handler that ignores its cancellation still counts.
2. Above `limits.in_flight` a request waits in the queue. A full queue stops reading
   (`must_pause`), unless input is needed to empty it: while we wait for responses ourselves, and
   after `limits.pause` seconds. New requests are then rejected as busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ._errors import LocalProtocolError
from ._state import Act, Life, after

if TYPE_CHECKING:
    from mcp_core.messages._events import Peer, RequestReceived
    from mcp_core.revisions._config import DialectConfig

    from ._limits import Limits
    from .types import ProgressToken, RequestId

__all__ = ["Request", "Requests"]


_NOTE: Final = Act.NOTE
_CANCELLED: Final = Life.CANCELLED
_UNANSWERED: Final = frozenset(life for life in Life if after(life, Act.ANSWER) is Life.DONE)


class Request(Struct, gc=False):
    """A request of the peer that has no response yet."""

    peer: Peer
    terms: DialectConfig
    life: Life = Life.OPEN
    progress_token: ProgressToken | None = None
    progress: float | None = None  # the last value sent


class Requests:
    """The requests of the peer that have no response yet.

    Attributes:
        table: all of them, by id.
        waiting: those that wait for a handler, in order of arrival.
        paused_since: when reading stopped because of them, None if it has not.
    """

    __slots__ = (
        "_limits",
        "_pause_ended",
        "lane",
        "paused_since",
        "table",
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.table: dict[RequestId, Request] = {}
        self.lane: list[RequestReceived] = []
        self.paused_since: float | None = None
        self._pause_ended = False  # by timeout: reading goes on although the queue is full

    @property
    def in_flight(self) -> int:
        """The number of requests that were passed to a handler and have no response yet."""
        return len(self.table) - len(self.lane)

    def add(self, event: RequestReceived, request: Request) -> bool | None:
        """Add a request.

        Return True if it is in flight, False if it waits in the queue, None if the queue is full
        and the request has to be rejected.
        """
        limits = self._limits
        # While requests wait, a free place is theirs.
        if not self.lane and len(self.table) < limits.in_flight:
            self.table[event.id] = request
            return True
        if len(self.lane) < limits.waiting:
            self.table[event.id] = request
            self.lane.append(event)
            return False
        return None

    def next_waiting(self) -> RequestReceived | None:
        """Remove the first request from the queue and return it, None if it has to wait longer."""
        if not self.lane or self.in_flight >= self._limits.in_flight:
            return None
        self._resume()
        return self.lane.pop(0)

    def owes(self, id: RequestId) -> bool:
        """Return True if the request `id` has no response yet and was not cancelled."""
        request = self.table.get(id)
        return request is not None and request.life is not _CANCELLED

    def peer_of(self, id: RequestId) -> Peer:
        """Return the sender of the request `id`.

        Raises:
            LocalProtocolError: the request was answered or cancelled.
        """
        request = self.table.get(id)
        if request is None or request.life is Life.CANCELLED:
            raise LocalProtocolError(f"request {id!r} is over: nothing can be sent on its behalf")
        return request.peer

    def listener(self, id: RequestId, remembered: Peer | None) -> Peer | None:
        """Return the peer to which log messages of the request `id` are sent.

        Return None if none may be sent any more. `session_peer` is the current peer of the
        connection.
        """
        request = self.table.get(id)
        if request is None or after(request.life, _NOTE) is None:
            return None
        # After a handshake, the log level may have changed since the request arrived.
        same_session = remembered is not None and remembered.dialect is request.peer.dialect
        return remembered if same_session else request.peer

    def to_answer(self, id: RequestId) -> Request | None:
        """Return the request `id` if a response may be sent.

        Return None if it was cancelled, and remove it: its handler has returned.

        Raises:
            LocalProtocolError: there is no such request, or it was answered.
        """
        request = self.table.get(id)
        if request is None:
            raise LocalProtocolError(
                f"there is no request {id!r} to answer, or it was answered before"
            )
        if request.life in _UNANSWERED:
            return request
        del self.table[id]
        return None

    def cancel(self, id: RequestId) -> bool | None:
        """Mark the request `id` as cancelled.

        Return True if a handler is running, False if it was still in the queue and is removed, None
        if it is unknown, answered or already cancelled.
        """
        request = self.table.get(id)
        if request is None or after(request.life, Act.CANCEL) is None:
            return None
        request.life = Life.CANCELLED
        for event in self.lane:
            if event.id == id and type(event.id) is type(id):
                self.lane.remove(event)
                del self.table[id]
                self._resume()
                return False
        return True

    def end_all(self) -> list[RequestId]:
        """Cancel all requests. Return the ids of those whose handlers have to be cancelled."""
        for event in self.lane:
            del self.table[event.id]
        self.lane.clear()
        self._resume()
        running = [id for id, request in self.table.items() if request.life is not Life.CANCELLED]
        for id in running:
            self.table[id].life = Life.CANCELLED
        return running

    def must_pause(self, now: float, *, calling: bool) -> bool:
        """Return True if reading has to stop.

        Pass `calling` True while our own requests have no response. Reading then goes on, because
        the response may be what a handler needs to return.
        """
        if len(self.lane) < self._limits.waiting or calling or self._pause_ended:
            return False
        if self.paused_since is None:
            self.paused_since = now
        return True

    def _resume(self) -> None:
        """End the pause, because the queue has room. The next pause lasts `limits.pause` again."""
        self.paused_since = None
        self._pause_ended = False

    @property
    def escape(self) -> float | None:
        """When the pause ends by timeout, None if there is no pause."""
        if self.paused_since is None or self._pause_ended:
            return None
        return self.paused_since + self._limits.pause

    def escape_if_due(self, now: float) -> None:
        """End the pause if it has timed out. New requests are then rejected as busy."""
        escape = self.escape
        if escape is not None and now >= escape:
            self._pause_ended = True
