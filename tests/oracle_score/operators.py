"""The table of ways to break a server or a client: operators, their places, and the broken rows.

A place is a method, a member or a value at which an operator works. Its talk is a conversation
that shows the breach, to the judge or by its own assertion. Without either it isn't a mutant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from mcp_core.trace import ROWS
from tests.oracle_score.same_breach import same_breach
from tests.oracle_score.talks import Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.oracle_score.talks import Talk, TalkShown

__all__ = ["MutantPlace", "Operator", "all_places", "operators"]

CRASH, HANG = "crash", "hang"
_MODULES: Final = (
    "broken_messages",
    "broken_members",
    "broken_state",
    "broken_processes",
    "broken_http",
    "broken_clients",
    "broken_sdks",
)


class MutantPlace(Struct, kw_only=True, eq=False):
    """An operator at one of its places: a mutant.

    Attributes:
        operator: the operator.
        name: the place's name, by which the operator knows it.
        key: its name among the operator's places, which names another server, too.
        row: the row of the judge's manifest that it breaks, "crash" or "hang". See also `same`.
        talk: shows it.
        server: the name of the right server.
    """

    operator: Operator
    name: str
    key: str
    row: str
    talk: Talk | Visit
    server: str

    @property
    def id(self) -> str:
        """The mutant's name."""
        return f"{self.operator.name}/{self.key}"

    @property
    def same(self) -> Mapping[str, str]:
        """Further rows by which it counts as found, each with the reason."""
        return same_breach(self.operator.name, self.name)

    def is_found_by(self, row: str) -> bool:
        """Return True if a finding of a row is the breach."""
        return row == self.row or row in self.same

    @property
    def level(self) -> Literal["MUST", "SHOULD"]:
        """The level of its row. A crash and a hang are a MUST."""
        row = ROWS.get(self.row)
        return "SHOULD" if row is not None and row.level.startswith("SHOULD") else "MUST"

    def is_shown_by(self, shown: TalkShown) -> bool:
        """Return True if its talk has shown the breach."""
        if isinstance(self.talk, Visit):
            return self.row in shown.rows
        if self.talk.breach is not None:
            return self.talk.breach(shown)
        if self.row == CRASH:
            return bool(shown.ended)
        if self.row == HANG or self.row == "RPC-35":
            return bool(shown.unanswered) and not shown.ended
        return self.row in shown.rows


class Operator(Struct, kw_only=True, eq=False):
    """A way to break a server.

    Attributes:
        name: its name.
        sentence: what it does.
        make: makes it for a process.
        places: its places by name.
    """

    name: str
    sentence: str
    make: Callable[..., Any]
    places: dict[str, MutantPlace] = field(default_factory=dict)


class OperatorTable:
    """The operators by name."""

    def __init__(self) -> None:
        self.operators: dict[str, Operator] = {}

    def also(self, server: str, places: Mapping[str, tuple[str, ...]]) -> None:
        """Break another server in the same way at some places of operators, by their names."""
        for name, chosen in places.items():
            operator = self.operators[name]
            same = {
                each: (operator.places[each].row, operator.places[each].talk) for each in chosen
            }
            self.add(name, operator.sentence, operator.make, same, server)

    def add(
        self,
        name: str,
        sentence: str,
        make: Callable[..., Any],
        places: Mapping[str, tuple[str, Talk | Visit]],
        server: str = "workshop",
    ) -> None:
        """Add an operator, or further places of one. Places have a row and a talk."""
        found = self.operators.setdefault(name, Operator(name=name, sentence=sentence, make=make))
        for place, (row, talk) in places.items():
            key = f"{place} ({server})" if place in found.places else place
            assert key not in found.places, f"{name}/{key} is there twice"
            found.places[key] = MutantPlace(
                operator=found, name=place, key=key, row=row, talk=talk, server=server
            )


TABLE: Final = OperatorTable()


def operators() -> dict[str, Operator]:
    """Return all operators by name."""
    for module in _MODULES:
        importlib.import_module(f"tests.oracle_score.{module}")
    return TABLE.operators


def all_places() -> dict[str, MutantPlace]:
    """Return all mutants by their names."""
    return {
        place.id: place for operator in operators().values() for place in operator.places.values()
    }
