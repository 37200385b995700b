"""The table of kinds. Each kind is a function that makes its cases for a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case

    from ._facts import TargetFacts

__all__ = ["CLASSIC_KINDS", "ClassicKind", "MakeCases", "kind"]

MakeCases: TypeAlias = "Callable[[TargetFacts], Iterator[Case]]"


class ClassicKind(Struct, frozen=True, kw_only=True):
    """A kind of classic cases.

    Attributes:
        name: its name.
        sentence: what its cases do.
        sources: why it is classic: specifications, sections of RFCs, and issues where a program
            was broken by it, as `owner/repository#number`.
        make: yields its cases for a target; none if the target lacks what they need.
    """

    name: str
    sentence: str
    sources: tuple[str, ...]
    make: MakeCases


CLASSIC_KINDS: Final[list[ClassicKind]] = []


def kind(name: str, sentence: str, *sources: str) -> Callable[[MakeCases], MakeCases]:
    """Return a decorator that adds a kind to the table. See `ClassicKind` for the arguments."""

    def add(make: MakeCases) -> MakeCases:
        CLASSIC_KINDS.append(ClassicKind(name=name, sentence=sentence, sources=sources, make=make))
        return make

    return add
