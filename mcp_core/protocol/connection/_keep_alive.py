"""Keep-alive: when to send a ping to an idle peer, and when to close the connection.

1. Any input resets the timer. A ping is sent only after an interval without input, so a busy
   connection sends none.
2. One ping without a reply is enough: after another interval without input the connection is
   closed. Otherwise every call would wait for its own timeout.

`Dialect.ping` is the method to send. Source: basic/utilities/ping.
"""

from __future__ import annotations

import enum

__all__ = ["KeepAlive", "KeepAliveAction"]


class KeepAliveAction(enum.Enum):
    """The actions that the keep-alive timer requests."""

    NOTHING = "nothing"
    SEND_PING = "send a ping"
    CLOSE = "close the connection"


class KeepAlive:
    """The keep-alive timer of one connection.

    Args:
        interval: seconds without input before a ping; None sends no pings.

    Call `mark_activity` when the connection opens and on any input, and `due` at `deadline`.
    `deadline` is None until the first `mark_activity`, and after the timer has ended.
    """

    __slots__ = (
        "_interval",
        "_ping_sent",
        "deadline",
    )

    def __init__(self, interval: float | None) -> None:
        self._interval = interval
        self.deadline: float | None = None
        self._ping_sent = False

    @property
    def idle_seconds(self) -> float:
        """The number of seconds without input after which the connection is closed."""
        return 2 * (self._interval or 0.0)

    def mark_activity(self, now: float) -> None:
        """Restart the timer. Call it when the connection opens and on any input."""
        if self._interval is not None:
            self.deadline = now + self._interval
            self._ping_sent = False

    def due(self, now: float) -> KeepAliveAction:
        """Return what to do at the time `now`, and set the next deadline."""
        if self._interval is None or self.deadline is None or now < self.deadline:
            return KeepAliveAction.NOTHING
        if self._ping_sent:
            self.deadline = None
            return KeepAliveAction.CLOSE
        self._ping_sent = True
        self.deadline = now + self._interval
        return KeepAliveAction.SEND_PING
