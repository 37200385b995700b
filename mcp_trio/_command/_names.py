"""Errors for unknown names of tools, prompts and arguments, with a suggestion."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from ._problem import CliError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["did_you_mean", "no_such", "no_such_argument"]


def no_such(kind: str, name: str, known: Sequence[str]) -> CliError:
    """Build the error for a tool, a prompt or a template that the server does not have."""
    has = f"its {kind}s are {', '.join(known)}" if known else "it has none"
    return CliError(f"the server has no {kind} {name}; {has}.{did_you_mean(name, known)}")


def no_such_argument(owner: str, name: str, known: Sequence[str]) -> CliError:
    """Build the error for an unknown argument. `owner` takes it, such as "the tool price"."""
    takes = f"it takes {', '.join(known)}" if known else "it takes none"
    return CliError(f"{owner} has no argument {name}; {takes}.{did_you_mean(name, known)}")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Return a question to append to an error about `name`; empty if no known name is similar."""
    close = get_close_matches(name, known, 1)
    return f" Did you mean {close[0]}?" if close else ""
