"""Names that a server has, and those that somebody typed."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from ._problem import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["did_you_mean", "no_such", "no_such_argument"]


def no_such(kind: str, name: str, known: Sequence[str]) -> Problem:
    """The complaint about a tool, a prompt or the like that the server does not have."""
    has = f"its {kind}s are {', '.join(known)}" if known else "it has none"
    return Problem(f"the server has no {kind} {name}; {has}.{did_you_mean(name, known)}")


def no_such_argument(whose: str, name: str, known: Sequence[str]) -> Problem:
    """The complaint about an argument that "the tool price" does not take."""
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    return Problem(f"{whose} has no argument {name}; {takes}.{did_you_mean(name, known)}")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A question to add to a complaint about an unknown name; empty if nothing is like it."""
    close = get_close_matches(name, known, 1)
    return f" Did you mean {close[0]}?" if close else ""
