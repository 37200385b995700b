"""How long something may take, for the invariants that say "linear".

Processor time is what is measured, so that a machine which stalls is no finding; and of several attempts the quickest
counts, so that one which is busy is none either. A bound is far above what is needed and far below what looking at
everything twice for each byte would cost.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final, TypeVar

__all__ = ["within"]

T = TypeVar("T")

ATTEMPTS: Final = 3


def within(seconds: float, action: Callable[[], T]) -> T:
    """What `action` gives.

    Raises:
        AssertionError: it took longer, each time.
    """
    spent: list[float] = []
    for _ in range(ATTEMPTS):
        started = process_time()
        found = action()
        spent.append(process_time() - started)
        if spent[-1] <= seconds:
            return found
    raise AssertionError(f"it took {min(spent):.3f} s, and may take {seconds:.3f} s")
