"""Everything that a phrase can draw: each number is drawn, in turn, where cases draw one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_trio.oracle.fuzz._case import Step
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices

__all__ = ["NEARLY_VALID", "EachDraw", "every_draw"]

NEARLY_VALID = "nearly valid"  # stands for a strategy of such arguments


class EachDraw:
    """A stand-in for `Drawing`, whose numbers are given. Further ones are 0.

    A value of a strategy is an empty object, but one that is nearly valid has a member.

    Attributes:
        numbers: the numbers that were drawn.
        counts: how many numbers there were for each.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._given = numbers
        self.numbers: list[int] = []
        self.counts: list[int] = []

    def value(self, strategy: Any) -> dict[str, Any]:
        return {"b": 1} if strategy == NEARLY_VALID else {}

    def below(self, count: int) -> int:
        place = len(self.numbers)
        self.numbers.append(self._given[place] if place < len(self._given) else 0)
        self.counts.append(count)
        return self.numbers[-1]

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.below(len(items))]


def every_draw(
    phrase: Callable[..., list[Step]], choices: CaseChoices, revision: str
) -> list[list[Step]]:
    """Return the steps of a phrase for each row of numbers that it can draw."""
    found = []
    numbers: list[int] = []
    while True:
        draw = EachDraw(numbers)
        found.append(phrase(draw, choices, revision))
        numbers = draw.numbers
        # The next row of numbers: one more at the last place that has one more.
        while numbers and numbers[-1] + 1 == draw.counts[len(numbers) - 1]:
            numbers.pop()
        if not numbers:
            return found
        numbers[-1] += 1
