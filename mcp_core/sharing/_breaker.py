"""When a command of a failing store is tried again."""

from __future__ import annotations

from typing import Final

__all__ = ["StoreBreaker"]

# Failures in a row, of any commands, after which the store counts as out.
_MAX_FAILURES: Final = 3
_FIRST_PAUSE: Final = 0.1  # seconds after a command has failed once; it doubles
_MAX_PAUSE: Final = 1.0  # seconds; also between two tries of all commands while the store is out


class StoreBreaker:
    """The pauses between the tries of one worker's commands. `now` is in monotonic seconds.

    A command that has failed waits for 0.1 s, then twice as long each time, up to 1 s. While the
    store is out, one command a second is tried, whichever it is.

    Attributes:
        is_out: True from the third failure in a row to the next response.
        failures: all failures so far. Commands that fail together count once: see `failed`.
    """

    def __init__(self) -> None:
        self.failures = 0
        self._failures: dict[str, int] = {}  # in a row, by command
        self._not_before: dict[str, float] = {}  # by command
        self._in_a_row = 0
        self.is_out = False
        self._next_try = 0.0  # while the store is out

    def __repr__(self) -> str:
        return f"<StoreBreaker, {self._in_a_row} failures in a row>"

    def pause(self, command: str, now: float) -> float:
        """Return the seconds until `command` may be tried. If it is 0.0, the caller tries it."""
        pause = self._not_before.get(command, now) - now
        if self.is_out:
            pause = max(pause, self._next_try - now)
        if pause > 0:
            return pause
        self._next_try = now + _MAX_PAUSE
        return 0.0

    def failed(self, command: str, now: float, began: int) -> bool:
        """Take note that `command` failed at `now`. Return True if the store counts as out now.

        `began` is what `failures` was when the command began. If another one has failed since, one
        outage has ended both, such as a connection that was lost: it isn't counted again.
        """
        failures = self._failures[command] = self._failures.get(command, 0) + 1
        # The exponent is bounded: an outage may last for days.
        pause = min(_MAX_PAUSE, _FIRST_PAUSE * 2 ** min(failures - 1, 10))
        self._not_before[command] = now + pause
        if began != self.failures:
            return False
        self.failures += 1
        self._in_a_row += 1
        if self._in_a_row < _MAX_FAILURES or self.is_out:
            return False
        self.is_out = True
        self._next_try = now + _MAX_PAUSE
        return True

    def succeeded(self, command: str) -> None:
        """Take note that the store has responded to `command`."""
        self._failures.pop(command, None)
        self._not_before.pop(command, None)
        self._in_a_row = 0
        if self.is_out:
            self.is_out = False
            self._not_before.clear()  # all others may be tried at once
