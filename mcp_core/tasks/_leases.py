"""Which workers have stopped renewing their leases, as one process sees it.

1. No wall clock plays a part: one that jumps must not end the lease of a worker that is alive. A
   renewal is a number that differs from the one before, and a worker is lost if its number hasn't
   changed for the time of its lease, by the monotonic clock of the process that looks.
2. Only what was watched counts. The process that looks may itself have been stopped, together with
   all others or because the file was locked, so that one look adds at most a part of the lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LeaseObserver", "WorkerLease"]

# The part of a lease that one look adds at most. Workers renew at a third of it: each of them has
# the time for a renewal between two looks.
_MOST_OF_LEASE: Final = 0.5
_ENOUGH: Final = 0.99  # sums of times aren't exact


class WorkerLease(NamedTuple):
    """The lease of one worker, as a store has it.

    Attributes:
        worker: the name.
        renewal: differs from the renewal before; None if the worker hasn't renewed its lease yet.
        seconds: how long the worker is believed to be alive; 0.0 if it has ended its lease.
    """

    worker: str
    renewal: int | None
    seconds: float


class LeaseObserver:
    """Remembers for how long each worker hasn't renewed its lease."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int | None, float]] = {}
        self._last_look = 0.0

    def lost_workers(self, leases: Iterable[WorkerLease], now: float) -> list[str]:
        """Return the workers that are lost. `now` is the monotonic time.

        `leases` are all present ones: a worker that is missing is forgotten.
        """
        elapsed = now - self._last_look
        self._last_look = now
        seen: dict[str, tuple[int | None, float]] = {}
        lost = []
        for lease in leases:
            silence = 0.0
            if lease.worker in self._seen:
                renewal, before = self._seen[lease.worker]
                if renewal == lease.renewal:
                    silence = before + min(elapsed, lease.seconds * _MOST_OF_LEASE)
            seen[lease.worker] = lease.renewal, silence
            if silence >= lease.seconds * _ENOUGH:
                lost.append(lease.worker)
        self._seen = seen
        return lost
