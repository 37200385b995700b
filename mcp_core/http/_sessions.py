"""The sessions of an endpoint by id: how many there may be, and when they expire.

1. A session whose handshake is not complete expires soon, and there are few of those, since any
   client can begin one.
2. Any other session expires a long time after its last request, unless a response is open then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._waiting import Waiting

if TYPE_CHECKING:
    from ._conversation import Session
    from ._options import HttpLimits

__all__ = ["Sessions"]


class Sessions(dict[bytes, "Session"]):
    """The open sessions by id. Call `handle_timeout` at `next_deadline`."""

    __slots__ = ("_limits", "beginning", "idle")

    def __init__(self, limits: HttpLimits) -> None:
        super().__init__()
        self._limits = limits
        self.beginning: Waiting[Session] = Waiting(limits.initialize)
        self.idle: Waiting[Session] = Waiting(limits.idle)

    @property
    def full(self) -> bool:
        """True if no other session may begin."""
        return len(self) >= self._limits.sessions or len(self.beginning) >= self._limits.uninitialized

    def enter(self, session: Session, now: float) -> None:
        """Add a session that begins."""
        self[session.id] = session
        self.beginning.add(session, now)

    def begun(self, session: Session, now: float) -> None:
        """Report that the handshake is complete. May be called again."""
        if session in self.beginning:
            self.beginning.discard(session)
            self.idle.add(session, now)

    def heard(self, session: Session, now: float) -> None:
        """Restart the idle timeout: the client has sent a request."""
        if session not in self.beginning:
            self.idle.add(session, now)

    def end(self, session: Session) -> None:
        """Remove a session, and close it."""
        self.pop(session.id, None)
        self.beginning.discard(session)
        self.idle.discard(session)
        session.close()

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, None for never."""
        first, second = self.beginning.next_deadline(), self.idle.next_deadline()
        if first is None or second is None:
            return second if first is None else first
        return min(first, second)

    def handle_timeout(self, now: float) -> None:
        """End the sessions that have expired."""
        for session in self.beginning.pop_expired(now):
            self.end(session)
        for session in self.idle.pop_expired(now):
            if session.in_use:
                self.idle.add(session, now)
            else:
                self.end(session)
