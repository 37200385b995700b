"""The sessions of a run, which cases share because a start takes longer than many cases.

1. A session is for the cases of one group: those of one revision, with the same capabilities of the
   client, and all with damage or none with it.
2. The lanes have as many sessions of the main groups as they need. The other groups have few cases
   and one session, for which a lane waits a moment.
3. A case that begins its conversation in a special way has a session of its own.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

import trio
from msgspec import Struct, field

from mcp_trio.oracle.fuzz._damage import has_damage
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._examination import MAX_HISTORY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator

    from mcp_trio.oracle.fuzz._case import Case
    from mcp_trio.oracle.fuzz._session import TargetSession
    from mcp_trio.oracle.fuzz.play._player import TargetLike

__all__ = ["CaseGroup", "SessionPool", "SharedSession", "group_of"]

MAX_OTHERS: Final = 12  # sessions that wait for another case, beside one for each lane
MAX_WAIT: Final = 2.0  # seconds for a session that another lane uses


class CaseGroup(NamedTuple):
    """The common properties of cases that share a session.

    Attributes:
        revision: their revision.
        offers: the client's capabilities; "" if each request has its own.
        is_damaged: whether damage is sent.
    """

    revision: str
    offers: str
    is_damaged: bool


def group_of(case: Case) -> CaseGroup | None:
    """Return the group of a case, None if it needs a session of its own."""
    first = case[0] if case else ()
    if len(first) != 4 or first[0] != "open" or first[2] != "whole":
        return None
    revision = str(first[1])
    offers = str(first[3]) if dialect_of(revision).stateful else ""
    return CaseGroup(revision, offers, has_damage(case))


class SharedSession(Struct, eq=False):
    """A session, and the last cases that it has played."""

    session: TargetSession
    group: CaseGroup | None
    history: deque[Case] = field(default_factory=lambda: deque(maxlen=MAX_HISTORY))


class SessionPool:
    """The sessions of one run.

    Args:
        target: opens them.
        lanes: how many cases are played at the same time.
        main: the revisions of most cases.
        end: ends a session.

    Attributes:
        starts: how many sessions were opened.
    """

    def __init__(
        self,
        target: TargetLike,
        lanes: int,
        main: Collection[str],
        end: Callable[[TargetSession], Awaitable[None]],
    ) -> None:
        self.starts = 0
        self._target = target
        self._lanes = lanes
        self._main = main
        self._end = end
        self._waiting: list[SharedSession] = []  # for a case, the last used one at the end
        self._open: Counter[CaseGroup] = Counter()
        self._queues: dict[CaseGroup, deque[object]] = {}  # lanes that wait, the first one first
        self._changed = trio.Event()

    def __iter__(self) -> Iterator[TargetSession]:
        """Iterate over the sessions that wait for a case."""
        return iter([each.session for each in self._waiting])

    async def take(self, case: Case) -> SharedSession:
        """Return a session for a case. It must be given back, or be ended.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        await trio.lowlevel.checkpoint()
        group = group_of(case)
        found = None if group is None else await self._wait_for(group)
        if found is not None:
            return found
        try:
            session = await self._target.open()
        except BaseException:
            self._forget(group)
            raise
        self.starts += 1
        return SharedSession(session, group)

    async def _wait_for(self, group: CaseGroup) -> SharedSession | None:
        """Return a session of a group as soon as one is free, or None to open another one."""
        queue = self._queues.setdefault(group, deque())
        turn, end_of_wait = object(), trio.current_time() + MAX_WAIT
        queue.append(turn)
        try:
            while True:
                if queue[0] is turn:
                    found = await self._take_waiting(group)
                    if found is not None:
                        return found
                    if self._open[group] < self._limit(group):
                        break
                with trio.move_on_at(end_of_wait) as waiting:
                    await self._changed.wait()
                if waiting.cancelled_caught:
                    break
            self._open[group] += 1
            return None
        finally:
            queue.remove(turn)
            if not queue:
                del self._queues[group]
            self._wake()

    async def give_back(self, shared: SharedSession) -> None:
        """Keep a session for another case, unless it is spoilt or for one case only."""
        session, group = shared.session, shared.group
        if session.spent or group is None:
            await self.end(shared)
            return
        if not group.is_damaged and session.judge.unread("client"):
            # The steps didn't show it, such as what a tool has made of a response.
            self._forget(group)
            shared.group = group._replace(is_damaged=True)
            self._open[shared.group] += 1
        self._waiting.append(shared)
        self._wake()
        if len(self._waiting) > self._lanes + MAX_OTHERS:
            last = max(self._waiting, key=self._excess)
            self._waiting.remove(last)
            await self.end(last)

    async def end(self, shared: SharedSession) -> None:
        """End a session that a lane has taken."""
        self._forget(shared.group)
        await self._end(shared.session)

    async def aclose(self) -> None:
        """End the sessions that wait for a case."""
        async with trio.open_nursery() as nursery:  # each can take seconds
            while self._waiting:
                nursery.start_soon(self.end, self._waiting.pop())

    async def _take_waiting(self, group: CaseGroup) -> SharedSession | None:
        """Take a session that waits for a case of a group. Return None if there isn't one."""
        while True:
            found = next((each for each in reversed(self._waiting) if each.group == group), None)
            if found is None:
                return None
            self._waiting.remove(found)
            if not found.session.ended:
                return found
            await self.end(found)  # it has ended between two cases

    def _limit(self, group: CaseGroup) -> int:
        """Return how many sessions a group has, unless a lane has waited for one in vain."""
        is_main = group.revision in self._main and group.offers != "none"
        return self._lanes if is_main and not group.is_damaged else 1

    def _excess(self, shared: SharedSession) -> int:
        """Return how many more sessions the group of a session has than it needs."""
        group = shared.group
        return 0 if group is None else self._open[group] - self._limit(group)

    def _forget(self, group: CaseGroup | None) -> None:
        if group is not None:
            self._open[group] -= 1
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
