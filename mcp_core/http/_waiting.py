"""Who waits for a time to come, where all wait equally long.

Rule of this file: who begins to wait again stands behind all others. So the order in which they stand is that in which they are due,
and neither to begin, nor to stop, nor to ask who is first costs more when there are many.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Waiting"]

T = TypeVar("T")


class Waiting(Generic[T]):
    """Each waits for so many `seconds` from the time at which it was added last."""

    __slots__ = ("_due", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # A plain dict has to step over all that were taken from its front to find the first one.
        self._due: OrderedDict[T, float] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Waiting: {len(self._due)} for {self.seconds:g} s>"

    def __len__(self) -> int:
        return len(self._due)

    def __iter__(self) -> Iterator[T]:
        return iter(self._due)

    def __contains__(self, each: T) -> bool:
        return each in self._due

    def add(self, each: T, now: float) -> None:
        """It begins to wait, or begins anew. `now` is never less than it was before."""
        self._due[each] = now + self.seconds
        self._due.move_to_end(each)

    def drop(self, each: T) -> None:
        """It does not wait any more, if it ever did."""
        self._due.pop(each, None)

    def next_deadline(self) -> float | None:
        """When the first one is due."""
        return next(iter(self._due.values())) if self._due else None

    def take_due(self, now: float) -> list[T]:
        """Those whose time has come. They wait no more."""
        due = []
        for each, deadline in self._due.items():
            if now < deadline:
                break
            due.append(each)
        for each in due:
            del self._due[each]
        return due
