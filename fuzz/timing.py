"""Time bounds, for the invariants that say "linear".

Processor time is measured and the fastest of several attempts counts, so that a stalled or busy
machine causes no finding. Each bound is far above the time needed and far below a quadratic
algorithm's.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final, TypeVar

__all__ = ["run_within"]

T = TypeVar("T")

ATTEMPTS: Final = 3


def run_within(seconds: float, action: Callable[[], T]) -> T:
    """Run `action` and return its result.

    Raises:
        AssertionError: every attempt took longer than `seconds`.
    """
    durations: list[float] = []
    for _ in range(ATTEMPTS):
        started = process_time()
        result = action()
        durations.append(process_time() - started)
        if durations[-1] <= seconds:
            return result
    raise AssertionError(f"it took {min(durations):.3f} s, and may take {seconds:.3f} s")
