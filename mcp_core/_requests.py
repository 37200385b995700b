"""The peer's requests that have no answer yet: the ones that are worked on, and the lane of those that wait.

Rules of this file:

1. A request keeps its place until its handler has come back, even when it was cancelled: so an id cannot be used again
   under a handler that still holds it, and work that ignores its cancellation still counts.
2. Over `limits.in_flight` a request waits in the lane. A full lane stops the reading (`must_pause`), unless reading is
   what would empty it: because we wait for answers ourselves, or have stood still for `limits.pause` seconds. Then what
   comes is refused as busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ._errors import LocalProtocolError
from ._state import Act, Life, after

if TYPE_CHECKING:
    from ._config import Limits, Terms
    from ._events import Peer, RequestReceived
    from .types import ProgressToken, RequestId

__all__ = ["Request", "Requests"]


_NOTE: Final = Act.NOTE
_CANCELLED: Final = Life.CANCELLED
_UNANSWERED: Final = frozenset(life for life in Life if after(life, Act.ANSWER) is Life.DONE)


class Request(Struct, gc=False):
    """One request of the peer."""

    peer: Peer
    terms: Terms
    life: Life = Life.OPEN
    progress_token: ProgressToken | None = None
    progress: float | None = None  # the last one told


class Requests:
    """The peer's requests by id in `table`; those that wait for a place are in `lane` too, in the order they came.

    `paused_since` is when reading stopped because of them, None while it goes on.
    """

    __slots__ = ("_limits", "_overflowing", "lane", "paused_since", "table")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.table: dict[RequestId, Request] = {}
        self.lane: list[RequestReceived] = []
        self.paused_since: float | None = None
        self._overflowing = False

    @property
    def in_flight(self) -> int:
        """Requests handed out and not ended."""
        return len(self.table) - len(self.lane)

    def add(self, event: RequestReceived, request: Request) -> bool | None:
        """Admit a request: True if it may be worked on now, False if it waits, None if there is no place for it."""
        limits = self._limits
        # A place that has become free belongs to the lane, as long as someone waits in it.
        if not self.lane and len(self.table) < limits.in_flight:
            self.table[event.id] = request
            return True
        if len(self.lane) < limits.waiting:
            self.table[event.id] = request
            self.lane.append(event)
            return False
        return None

    def next_waiting(self) -> RequestReceived | None:
        """The request that waits longest, if there is a place for it now."""
        if not self.lane or self.in_flight >= self._limits.in_flight:
            return None
        self._resume()
        return self.lane.pop(0)

    def owes(self, id: RequestId) -> bool:
        """Whether the request `id` is still to be answered."""
        request = self.table.get(id)
        return request is not None and request.life is not _CANCELLED

    def peer_of(self, id: RequestId) -> Peer:
        """Who made the request `id`.

        Raises:
            LocalProtocolError: it is over, or was cancelled.
        """
        request = self.table.get(id)
        if request is None or request.life is Life.CANCELLED:
            raise LocalProtocolError(f"request {id!r} is over: nothing can be sent on its behalf")
        return request.peer

    def listener(self, id: RequestId, remembered: Peer | None) -> Peer | None:
        """Who hears what is said about the request `id`, None if nothing can be said about it any more."""
        request = self.table.get(id)
        if request is None or after(request.life, _NOTE) is None:
            return None
        # Whoever began with a handshake may have asked for another level since.
        known = remembered is not None and remembered.dialect is request.peer.dialect
        return remembered if known else request.peer

    def to_answer(self, id: RequestId) -> Request | None:
        """The request `id`, to be answered now; None if it wants no answer any more: then it is forgotten.

        Raises:
            LocalProtocolError: there is no such request, or it has been answered.
        """
        request = self.table.get(id)
        if request is None:
            raise LocalProtocolError(f"there is no request {id!r} to answer, or it was answered before")
        if request.life in _UNANSWERED:
            return request
        del self.table[id]
        return None

    def cancel(self, id: RequestId) -> bool | None:
        """Mark a request as cancelled: True if a handler has it, False if it only waited, None if it is over or unknown."""
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
        """Cancel everything; gives the requests whose handlers are to be told."""
        for event in self.lane:
            del self.table[event.id]
        self.lane.clear()
        self._resume()
        told = [id for id, request in self.table.items() if request.life is not Life.CANCELLED]
        for id in told:
            self.table[id].life = Life.CANCELLED
        return told

    def must_pause(self, now: float, *, calling: bool) -> bool:
        """Whether the peer has to wait. `calling`: requests of ours are unanswered, so that reading must go on."""
        if len(self.lane) < self._limits.waiting or calling or self._overflowing:
            return False
        if self.paused_since is None:
            self.paused_since = now
        return True

    def _resume(self) -> None:
        """There is room in the lane again, so that the next pause is a new one."""
        self.paused_since = None
        self._overflowing = False

    @property
    def escape(self) -> float | None:
        """When the pause has lasted too long."""
        if self.paused_since is None or self._overflowing:
            return None
        return self.paused_since + self._limits.pause

    def escape_if_due(self, now: float) -> None:
        """Go on reading, refusing what comes, if the pause has lasted too long."""
        escape = self.escape
        if escape is not None and now >= escape:
            self._overflowing = True
