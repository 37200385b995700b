"""When to ask a silent peer whether it still lives, and when to believe that it does not.

Rules of this file:

1. Anything that arrives is a sign of life. A question is asked only after a whole interval of silence, so a busy
   conversation costs nothing.
2. One unanswered question is enough: a peer that is silent for another interval after it is given up. A missed ping is
   indistinguishable from a lost connection, and every call would otherwise wait for its own deadline.

It does not know what the question is: the dialect does (`Dialect.ping`). Source: basic/utilities/ping.
"""

from __future__ import annotations

import enum

__all__ = ["Due", "KeepAlive"]


class Due(enum.Enum):
    """What is to be done now."""

    NOTHING = "nothing"
    ASK = "ask"
    GIVE_UP = "give up"


class KeepAlive:
    """Silence of at most `interval` seconds; None asks nobody. `deadline` is when to look `due` next, None as long as it has
    not begun."""

    __slots__ = ("_asked", "_interval", "deadline")

    def __init__(self, interval: float | None) -> None:
        self._interval = interval
        self.deadline: float | None = None
        self._asked = False

    @property
    def silence(self) -> float:
        """The seconds after which a silent peer is given up."""
        return 2 * (self._interval or 0.0)

    def heard(self, now: float) -> None:
        """Something arrived, or the conversation is open now."""
        if self._interval is not None:
            self.deadline = now + self._interval
            self._asked = False

    def due(self, now: float) -> Due:
        """What the time `now` asks for; changes what is due next."""
        if self._interval is None or self.deadline is None or now < self.deadline:
            return Due.NOTHING
        if self._asked:
            self.deadline = None
            return Due.GIVE_UP
        self._asked = True
        self.deadline = now + self._interval
        return Due.ASK
