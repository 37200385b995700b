"""The peer's requests that have no answer yet: the ones that are worked on, and the lane of those that wait.

Rules of this file:

1. A request keeps its place until its handler has come back, even when it was cancelled: so an id cannot be used again
   under a handler that still holds it, and work that ignores its cancellation still counts.
2. Over `limits.in_flight` a request waits in the lane. A full lane stops the reading (`must_pause`), unless reading is
   what would empty it: because we wait for answers ourselves, or have stood still for `limits.pause` seconds. Then what
   comes is refused as busy.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct

from ._state import Act, Life, after

if TYPE_CHECKING:
    from ._config import Limits
    from ._events import Peer, RequestReceived
    from .types import ProgressToken, RequestId

__all__ = ["Request", "Requests"]


class Request(Struct, gc=False):
    """One request of the peer."""

    peer: Peer
    life: Life = Life.OPEN
    progress_token: ProgressToken | None = None
    progress: float | None = None  # the last one told


class Requests:
    """The table of the peer's requests."""

    __slots__ = ("_lane", "_limits", "_overflowing", "_paused_since", "_table")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._table: dict[RequestId, Request] = {}
        self._lane: deque[RequestReceived] = deque()
        self._paused_since: float | None = None
        self._overflowing = False

    def __contains__(self, id: RequestId) -> bool:
        return id in self._table

    def __len__(self) -> int:
        return len(self._table)

    @property
    def in_flight(self) -> int:
        """Requests handed out and not ended."""
        return len(self._table) - len(self._lane)

    @property
    def waiting(self) -> bool:
        """Whether any request waits for a place."""
        return bool(self._lane)

    def get(self, id: RequestId) -> Request | None:
        return self._table.get(id)

    def add(self, event: RequestReceived, request: Request) -> bool | None:
        """Admit a request: True if it may be worked on now, False if it waits, None if there is no place for it."""
        limits = self._limits
        # A place that has become free belongs to the lane, as long as someone waits in it.
        if not self._lane and len(self._table) < limits.in_flight:
            self._table[event.id] = request
            return True
        if len(self._lane) < limits.waiting:
            self._table[event.id] = request
            self._lane.append(event)
            return False
        return None

    def next_waiting(self) -> RequestReceived | None:
        """The request that waits longest, if there is a place for it now."""
        if not self._lane or self.in_flight >= self._limits.in_flight:
            return None
        return self._lane.popleft()

    def cancel(self, id: RequestId) -> bool | None:
        """Mark a request as cancelled: True if a handler has it, False if it only waited, None if it is over or unknown."""
        request = self._table.get(id)
        if request is None or after(request.life, Act.CANCEL) is None:
            return None
        request.life = Life.CANCELLED
        for event in self._lane:
            if event.id == id and type(event.id) is type(id):
                self._lane.remove(event)
                del self._table[id]
                return False
        return True

    def end(self, id: RequestId) -> None:
        """Its handler has come back."""
        del self._table[id]

    def end_all(self) -> list[RequestId]:
        """Cancel everything; gives the requests whose handlers are to be told."""
        for event in self._lane:
            del self._table[event.id]
        self._lane.clear()
        told = [id for id, request in self._table.items() if request.life is not Life.CANCELLED]
        for id in told:
            self._table[id].life = Life.CANCELLED
        return told

    def must_pause(self, now: float, *, calling: bool) -> bool:
        """Whether the peer has to wait. `calling`: requests of ours are unanswered, so that reading must go on."""
        if len(self._lane) < self._limits.waiting or self.in_flight < self._limits.in_flight:
            self._paused_since = None
            self._overflowing = False
            return False
        if calling or self._overflowing:
            return False
        if self._paused_since is None:
            self._paused_since = now
        return True

    @property
    def escape(self) -> float | None:
        """When the pause has lasted too long."""
        if self._paused_since is None or self._overflowing:
            return None
        return self._paused_since + self._limits.pause

    def escape_if_due(self, now: float) -> None:
        """Go on reading, refusing what comes, if the pause has lasted too long."""
        escape = self.escape
        if escape is not None and now >= escape:
            self._overflowing = True
