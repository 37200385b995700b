"""The two sides of a conversation."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

__all__ = ["CLIENT", "SERVER", "Side", "other_side"]

Side: TypeAlias = Literal["client", "server"]
CLIENT: Final = "client"
SERVER: Final = "server"


def other_side(side: Side) -> Side:
    """Return the other one of the two sides."""
    return SERVER if side == CLIENT else CLIENT
