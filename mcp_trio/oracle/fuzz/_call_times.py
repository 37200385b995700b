"""How long the calls of tools may take: what a server's author has written can be slow.

1. The first call may take long, because nothing is known about the tool. Once it has answered, a
   call may take three times as long as its slowest one that succeeded.
2. A tool that has never answered in time gets little time from then on. But its 2nd, 4th and 8th
   call may take long again: the first one can have loaded something, or had odd arguments. So a
   tool that never answers is waited for four times, and then 0.3 s for each call.
3. If a tool has answered and then doesn't, its call is played in another session too, and gets the
   time of a first call before it is reported: with a result there, it isn't the call that is slow.
   So do requests for which no tool runs. What was reported three times isn't waited for any more.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

__all__ = ["DEFAULT_CALL_TIMEOUT", "CallTimes"]

DEFAULT_CALL_TIMEOUT: Final = 10.0  # seconds; the same for `find_faults`
SHORTEST: Final = 0.3  # seconds; less can pass on a busy machine
FACTOR: Final = 3.0
MAX_SLOW_ELSEWHERE: Final = 3  # calls of one tool that were slow in another session, too
MAX_STOPPED: Final = 3  # calls of one tool that are waited for and reported, unless one is sought
MAX_NAMES: Final = 1_000
FULL_AGAIN: Final = (1, 3, 7)  # late calls after which the next one may take long again
# The part of the longest time, after which a tool with a slowest success isn't just slower now.
PROVING_PART: Final = 0.05


class CallTimes:
    """The time that each tool, prompt and resource of a target takes, in all sessions of a run.

    A name is a method, and what is called, such as `tools/call add`.

    Args:
        longest: the seconds that a call may take at most, and the first one.
        proves: that time is so long that a tool which needs more has stopped.

    Attributes:
        longest, proves: the same.
    """

    def __init__(self, longest: float = DEFAULT_CALL_TIMEOUT, *, proves: bool = False) -> None:
        self.longest = longest
        self.proves = proves
        self._slowest: dict[str, float] = {}
        self._late: Counter[str] = Counter()  # late calls of those that never answered in time
        self._late_at: dict[str, float] = {}
        self._slow_elsewhere: Counter[str] = Counter()
        self._stopped: Counter[str] = Counter()

    def timeout(self, name: str) -> float:
        """Return the seconds that the next call of `name` may take."""
        slowest = self._slowest.get(name)
        if slowest is None:
            late = self._late[name]
            is_short = late and late not in FULL_AGAIN
            return min(SHORTEST, self.longest) if is_short else self.longest
        return min(self.longest, max(SHORTEST, FACTOR * slowest))

    def add(self, name: str, seconds: float) -> None:
        """Note that a call of `name` has succeeded, after so many seconds."""
        if name in self._slowest or len(self._slowest) < MAX_NAMES:
            self._slowest[name] = max(seconds, self._slowest.get(name, 0.0))

    def add_late(self, name: str, began: float, now: float) -> None:
        """Note that a call of `name` wasn't answered in time.

        Calls that run beside each other count once: all of them had the same time.
        """
        is_beside = began < self._late_at.get(name, began)
        is_kept = name in self._late or len(self._late) < MAX_NAMES
        if name not in self._slowest and is_kept and not is_beside:
            self._late[name] += 1
            self._late_at[name] = now

    def is_steady(self, name: str) -> bool:
        """Return True if each success of `name` was quick, compared with the longest time."""
        return self._slowest.get(name, self.longest) <= PROVING_PART * self.longest

    def may_have_stopped(self, name: str, *, is_wanted: bool = False) -> bool:
        """Return True unless calls of `name` are known to be slow in other sessions, too.

        Nor are they examined again once they were reported, unless a play wants to see just that.
        """
        if self._slow_elsewhere[name] >= MAX_SLOW_ELSEWHERE:
            return False
        return is_wanted or self._stopped[name] < MAX_STOPPED

    def add_slow_elsewhere(self, name: str) -> None:
        """Note that a call of `name` was slow in another session, too."""
        self._slow_elsewhere[name] += 1

    def add_stopped(self, name: str) -> None:
        """Note that a call of `name` got no response, and got one in another session."""
        self._stopped[name] += 1
