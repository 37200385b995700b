"""How one case is drawn: values by hypothesis, choices by a random number."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import DrawFn

    from mcp_trio.oracle.fuzz._case import Step

__all__ = ["Drawing", "Phrase"]

# A function of a `Drawing`, the `CaseChoices` and a revision. It draws steps that belong together.
Phrase: TypeAlias = "Callable[..., list[Step]]"
_SEEDS: Final = st.integers(0, 2**64 - 1)
T = TypeVar("T")


class Drawing:
    """The drawing of one case: values by hypothesis, choices by a random number.

    A choice by hypothesis takes twenty times as long. It would help hypothesis to shrink, but here
    the literal steps are shrunk.

    Attributes:
        value: draws a value of a strategy.
    """

    def __init__(self, draw: DrawFn) -> None:
        self.value = draw
        self._random = Random(draw(_SEEDS))  # noqa: S311 - cases can be drawn again

    def below(self, count: int) -> int:
        """Return a number from 0 to `count - 1`."""
        return self._random.randrange(count)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return self._random.choice(items)
