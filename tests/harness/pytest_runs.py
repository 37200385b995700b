"""Runs of pytest that a test plays, for `tests.repeat` and `tests.cpu_times`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Runs"]

T = TypeVar("T")


class Runs(Generic[T]):
    """Runs of pytest with given outcomes, in order. `arguments` are each run's."""

    def __init__(self, *outcomes: T) -> None:
        self._outcomes = list(outcomes)
        self.arguments: list[list[str]] = []

    def __call__(self, arguments: Sequence[str]) -> T:
        self.arguments.append(list(arguments))
        return self._outcomes.pop(0)

    @property
    def all_made(self) -> bool:
        return not self._outcomes
