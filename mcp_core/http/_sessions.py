"""The sessions of an endpoint, by their ids: how many there may be, and when one is over that nobody uses.

Rules of this file:

1. A session whose handshake does not come to its end has a short time, and there are few of those, since anybody can begin one.
2. Any other one lives as long as its client is heard of or something of it is under way, and then for a long time.

It refuses to know whose a session is, and what it is asked: `_endpoint.py` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._waiting import Waiting

if TYPE_CHECKING:
    from ._conversation import Session
    from ._options import HttpLimits

__all__ = ["Sessions"]


class Sessions(dict[bytes, "Session"]):
    """All that are open. `enter` one, `end` one; to be driven by `next_deadline` and `handle_timeout`."""

    __slots__ = ("_limits", "beginning", "idle")

    def __init__(self, limits: HttpLimits) -> None:
        super().__init__()
        self._limits = limits
        self.beginning: Waiting[Session] = Waiting(limits.initialize)
        self.idle: Waiting[Session] = Waiting(limits.idle)

    @property
    def full(self) -> bool:
        """Whether no other one may be begun."""
        return len(self) >= self._limits.sessions or len(self.beginning) >= self._limits.uninitialized

    def enter(self, session: Session, now: float) -> None:
        """It begins."""
        self[session.id] = session
        self.beginning.add(session, now)

    def begun(self, session: Session, now: float) -> None:
        """Its handshake has come to its end, perhaps long ago."""
        if session in self.beginning:
            self.beginning.discard(session)
            self.idle.add(session, now)

    def heard(self, session: Session, now: float) -> None:
        """Its client is there."""
        if session not in self.beginning:
            self.idle.add(session, now)

    def end(self, session: Session) -> None:
        """It is over."""
        self.pop(session.id, None)
        self.beginning.discard(session)
        self.idle.discard(session)
        session.close()

    def next_deadline(self) -> float | None:
        """When to call `handle_timeout`; None for never."""
        first, second = self.beginning.next_deadline(), self.idle.next_deadline()
        if first is None or second is None:
            return second if first is None else first
        return min(first, second)

    def handle_timeout(self, now: float) -> None:
        """The time is `now`."""
        for session in self.beginning.pop_expired(now):
            self.end(session)
        for session in self.idle.pop_expired(now):
            if session.in_use:
                self.idle.add(session, now)
            else:
                self.end(session)
