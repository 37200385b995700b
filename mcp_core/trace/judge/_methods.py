"""The methods of each revision, by the side that sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.protocol.revisions._methods import METHODS, Role

from ._revisions import REVISIONS, STATEFUL
from ._sides import CLIENT, SERVER, other_side

if TYPE_CHECKING:
    from mcp_core.protocol.revisions._methods import Method

    from ._sides import Side

__all__ = ["KNOWN_METHODS", "find_method", "needs_modern", "senders_of"]


def _rows_by_name() -> dict[tuple[str, str, Side], Method]:
    return {
        (revision, name, other_side(CLIENT if role is Role.CLIENT else SERVER)): row
        for revision in REVISIONS
        for role in Role
        for name, row in DIALECTS[revision].receives[role].items()
    }


_ROWS: Final = _rows_by_name()
KNOWN_METHODS: Final = frozenset(row.name for row in METHODS)


def find_method(revision: str, name: str, sender: Side) -> Method | None:
    """Return a method's row, or None if `sender` may not send it in the revision."""
    return _ROWS.get((revision, name, sender))


def senders_of(name: str) -> frozenset[Side]:
    """Return the sides that send a method in any revision."""
    sides: tuple[Side, ...] = (CLIENT, SERVER)
    return frozenset(
        side for side in sides if any((each, name, side) in _ROWS for each in REVISIONS)
    )


def needs_modern(name: str) -> bool:
    """Return True if a client sends the method only in revisions without a handshake."""
    return name in KNOWN_METHODS and not any(
        (revision, name, CLIENT) in _ROWS for revision in STATEFUL
    )
