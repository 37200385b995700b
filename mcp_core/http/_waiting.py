"""A queue of equal timeouts.

Every entry waits equally long, and adding an entry again moves it to the end. Insertion order is
therefore expiry order: no heap is needed, and add, discard and next deadline are O(1).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Waiting"]

T = TypeVar("T")


class Waiting(Generic[T]):
    """Entries that expire a fixed number of `seconds` after they were last added.

    The queue has no clock. Pass `now` to `add`, wait until `next_deadline`, then call
    `pop_expired`. Iteration yields the entries in the order in which they expire.
    """

    __slots__ = ("_deadlines", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # A plain dict keeps the slots of deleted keys, so finding its first key after many
        # deletions at the front is O(n). An OrderedDict finds it in O(1).
        self._deadlines: OrderedDict[T, float] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Waiting: {len(self._deadlines)} for {self.seconds:g} s>"

    def __len__(self) -> int:
        return len(self._deadlines)

    def __iter__(self) -> Iterator[T]:
        return iter(self._deadlines)

    def __contains__(self, entry: T) -> bool:
        return entry in self._deadlines

    def add(self, entry: T, now: float) -> None:
        """Start the timeout of `entry`, or restart it.

        `now` must not be lower than in any earlier call: the order of the queue depends on it.
        """
        self._deadlines[entry] = now + self.seconds
        self._deadlines.move_to_end(entry)  # assigning to an existing key keeps its old place

    def discard(self, entry: T) -> None:
        """Remove `entry` without letting it expire. Do nothing if it is not in the queue."""
        self._deadlines.pop(entry, None)

    def next_deadline(self) -> float | None:
        """Return the time at which the first entry expires, or None if the queue is empty."""
        return next(iter(self._deadlines.values())) if self._deadlines else None

    def pop_expired(self, now: float) -> list[T]:
        """Remove and return the entries whose deadline is `now` or earlier, oldest first."""
        expired = []
        for entry, deadline in self._deadlines.items():
            if now < deadline:
                break  # all later entries expire later
            expired.append(entry)
        for entry in expired:
            del self._deadlines[entry]
        return expired
