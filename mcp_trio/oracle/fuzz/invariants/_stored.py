"""The names of a file with invariants that a stored case needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_trio.oracle.fuzz._case import own_step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_trio.oracle.fuzz._case import Step

__all__ = ["needed_names"]


def needed_names(steps: Iterable[Step], invariant: str = "") -> frozenset[str]:
    """Return the names of the values that a case hands on, and of the invariant that it breaks.

    Without them a play shows nothing.
    """
    played = map(own_step, steps)
    values = {str(step[3]) for step in played if step[0] == "hand" and len(step) > 3}
    return frozenset(values | {invariant} - {""})
