"""The drawing of steps that hand a value from one call to the next.

A step names a place among the values that there are when it is played, so a seed draws the same
cases for each server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from mcp_trio.oracle.fuzz._case import own_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.oracle.fuzz._case import Step

    from ._declared import Use
    from ._load import Invariants

__all__ = ["Handing", "find_handings", "with_handed_values"]


class DrawingLike(Protocol):
    """The choices of a case that is drawn."""

    def below(self, count: int) -> int:
        """Return a number from 0 to `count - 1`."""


class Handing(Struct, frozen=True):
    """An argument that gets values, with the tools that provide them.

    Attributes:
        use: the argument.
        tool: the place of its tool among the tools that may be called.
        providers: the places of the providing tools.
    """

    use: Use
    tool: int
    providers: tuple[int, ...]


def find_handings(invariants: Invariants | None, names: Sequence[str]) -> list[Handing]:
    """Return what can be handed between the tools that may be called."""
    if invariants is None:
        return []
    found = []
    for use in invariants.uses:
        providers = tuple(
            place
            for place, name in enumerate(names)
            if any(each.provides == use.value and each.takes(name) for each in invariants.functions)
        )
        if use.tool in names and providers:
            found.append(Handing(use, names.index(use.tool), providers))
    return found


def with_handed_values(
    draw: DrawingLike, steps: Sequence[Step], handings: Sequence[Handing]
) -> list[Step]:
    """Return steps with a `hand` before most calls that can use a value."""
    found: list[Step] = []
    for step in steps:
        played = own_step(step)
        if played[0] == "call":
            uses = [each.use for each in handings if each.use.tool == played[1]]
            found += [_step_of(use, draw) for use in uses if draw.below(5)]
        found.append(step)
    return found


def _step_of(use: Use, draw: DrawingLike) -> Step:
    place: Any = draw.below(4) if draw.below(3) == 0 else 0  # the newest value, mostly
    return ("hand", use.tool, use.argument, use.value, place)
