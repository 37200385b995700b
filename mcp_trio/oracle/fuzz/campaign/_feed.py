"""The cases of a run by number, for lanes that take one after the other.

Batches are drawn in a worker thread, ahead of the lanes. What a batch avoids depends on the batches
up to a certain one before it, and it is drawn once these are finished. So a seed gives the same
cases for every number of lanes and on every machine, however long each case takes.

A case can take seconds, if it waits for a response that doesn't come. The other lanes go on with
all cases that depend on no other ones, such as the classic ones, and with the batches after it:
first with one, later with more.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio
from msgspec import Struct, field

from mcp_trio.oracle.fuzz._case import avoided_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_trio.oracle.fuzz._case import Case
    from mcp_trio.oracle.fuzz._fault import TargetFault

__all__ = ["CaseFeed", "FedCase", "GuiltySteps", "SourceLike"]

# Cases of a batch. The first ones are small: what they show is avoided soon.
FIRST_BATCHES: Final = (8, 8, 8, 8, 16, 16)
BATCH: Final = 32
# A batch is drawn once the batch so many before it is finished. Early batches find the most, so
# what they show is avoided soon. Later ones mustn't hold up the lanes.
MIN_LAG, MAX_LAG = 2, 8
BATCHES_PER_LAG: Final = 4
# When a step counts as guilty of a fault: after so many cases with both, if so large a part of the
# step's cases has shown it, which is so many times the part of the other cases.
MIN_SIGHTINGS: Final = 3
MIN_GUILT: Final = 0.5
MIN_LIFT: Final = 3.0


class SourceLike(Protocol):
    """A source of cases."""

    @property
    def fixed(self) -> int:
        """How many of the next cases don't depend on what is avoided."""

    def draw(self, count: int) -> list[Case]:
        """Return `count` cases. It is called in a thread."""


class FedCase(Struct):
    """A case with the number of its batch."""

    case: Case
    batch: int


class _Batch(Struct):
    """A batch that is being played: how many cases aren't finished, and what the others showed."""

    left: int
    finished: trio.Event
    played: list[tuple[Case, list[TargetFault]]] = field(default_factory=list)
    changers: set[str] = field(default_factory=set)


class GuiltySteps:
    """The steps that show known faults, as far as the cases tell.

    That a step is avoided costs little, since it is still drawn now and then. That it isn't avoided
    can cost a timeout in each case that has it.
    """

    def __init__(self) -> None:
        self._count = 0
        self._cases: Counter[tuple[str, str]] = Counter()  # by step
        self._shown: Counter[tuple[str, str]] = Counter()  # by the fault's cause
        self._together: Counter[tuple[tuple[str, str], tuple[str, str]]] = Counter()

    def add(self, case: Case, faults: Iterable[TargetFault]) -> None:
        """Add a case and its faults. The order of the cases makes no difference."""
        names = {name for step in case[1:] if (name := avoided_name(step))}
        self._count += 1
        self._cases.update(names)
        for cause in {each.cause for each in faults}:
            self._shown[cause] += 1
            self._together.update((cause, name) for name in names)

    def names(self) -> set[tuple[str, str]]:
        """Return the `avoided_name` of each step that is guilty.

        Most of its cases have shown a fault, which cases without it show much less often.
        """
        found = set()
        for (cause, name), together in self._together.items():
            cases, others = self._cases[name], self._count - self._cases[name]
            elsewhere = (self._shown[cause] - together) / others if others else 1.0
            guilt = together / cases
            if together >= MIN_SIGHTINGS and guilt >= MIN_GUILT and guilt >= MIN_LIFT * elsewhere:
                found.add(name)
        return found


def lag_of(number: int) -> int:
    """Return how many batches before a batch the last one is that it depends on."""
    return min(MAX_LAG, max(MIN_LAG, number // BATCHES_PER_LAG))


class CaseFeed:
    """The drawn cases of a run.

    Args:
        source: draws them.
        choices: has `avoided`, the steps that the source draws less often, and `changers`, the
            tools that it calls more often in subscriptions.
        count: how many cases at most; None for no limit.
    """

    def __init__(self, source: SourceLike, choices: Any, count: int | None = None) -> None:
        self._source = source
        self._choices = choices
        self._left = math.inf if count is None else count
        self._guilty = GuiltySteps()
        self._batches: dict[int, _Batch] = {}
        self._scope = trio.CancelScope()
        self._send, self._receive = trio.open_memory_channel[FedCase](BATCH)

    async def run(self) -> None:
        """Draw cases until `count` is reached, or until the source has no more."""
        with self._scope, self._send:
            number = learned = 0
            while self._left > 0:
                size = FIRST_BATCHES[number] if number < len(FIRST_BATCHES) else BATCH
                if self._source.fixed < size:
                    for earlier in range(learned, number - lag_of(number) + 1):
                        await self._learn_from(earlier)
                        learned = earlier + 1
                drawn = await trio.to_thread.run_sync(
                    self._source.draw, size, abandon_on_cancel=True
                )
                cases = drawn if self._left >= len(drawn) else drawn[: int(self._left)]
                if not cases:
                    return
                self._left -= len(cases)
                self._batches[number] = _Batch(len(cases), trio.Event())
                for case in cases:
                    await self._send.send(FedCase(case, number))
                number += 1

    async def _learn_from(self, number: int) -> None:
        """Wait until a batch is finished, and avoid what has shown faults in it."""
        batch = self._batches[number]
        await batch.finished.wait()
        del self._batches[number]
        for case, faults in batch.played:
            self._guilty.add(case, faults)
        self._choices.avoided = self._guilty.names()
        if batch.changers:
            self._choices.changers = sorted({*self._choices.changers, *batch.changers})

    def stop(self) -> None:
        """Draw no more cases. Lanes that wait for one get None."""
        self._scope.cancel()

    async def next(self) -> FedCase | None:
        """Return the next case, or None if there are no more."""
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            return None

    def finish(
        self, fed: FedCase, faults: Iterable[TargetFault], changers: Iterable[str] = ()
    ) -> None:
        """Note that a case was played, the faults that it has shown, and the tools that changed
        something.
        """
        batch = self._batches[fed.batch]
        batch.played.append((fed.case, list(faults)))
        batch.changers.update(changers)
        batch.left -= 1
        if not batch.left:
            batch.finished.set()
