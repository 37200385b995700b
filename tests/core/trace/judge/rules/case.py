"""The type of the tables of this folder: three conversations for each row of each rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.core.trace.judge.conversations import EVERYTHING, C, Sent, Start, notify

__all__ = ["QUIET", "Case", "case"]

Capabilities = tuple[dict[str, Any], dict[str, Any]]
QUIET: Final = [C(notify("x"))]


@dataclass(frozen=True)
class Case:
    """One row in one revision.

    Attributes:
        row: the row.
        revision: its revision.
        fails: a conversation with this fault and no other.
        passes: one in which the row is judged and nothing is wrong.
        none: one in which the row is not judged.
        side: the side at fault.
        is_certain: the verdict on the fault: fail, or inconclusive.
        allowed: rows that `fails` does not fulfil either: one message can break two rules.
        pass_allowed: the same for `passes`: a rule about an answer to a fault.
        is_part: the row is about a part of a shape, which is judged with the shape. It counts as
            judged only if it is at fault.
    """

    row: str
    revision: str
    fails: Sequence[Sent]
    passes: Sequence[Sent]
    none: Sequence[Sent]
    side: str
    is_certain: bool
    allowed: tuple[str, ...]
    pass_allowed: tuple[str, ...]
    is_part: bool


def case(
    row: str,
    revision: str,
    fails: Sequence[Sent],
    passes: Sequence[Sent],
    none: Sequence[Sent] | None = None,
    *,
    start: Capabilities | None = EVERYTHING,
    pass_start: Capabilities | None = None,
    side: str | None = None,
    is_certain: bool = True,
    allowed: tuple[str, ...] = (),
    pass_allowed: tuple[str, ...] = (),
    is_part: bool = False,
) -> Case:
    """Return a case.

    Args:
        start: the capabilities of client and server with which all three conversations begin; None
            for conversations that have their own beginning.
        pass_start: other capabilities for the one that passes.
        side: by default the side that sent the last line of `fails`.
    """
    begins = [] if start is None else Start(revision, *start).messages()
    begins_pass = begins if pass_start is None else Start(revision, *pass_start).messages()
    if none is None:
        none = [*begins, *QUIET]
    return Case(
        row,
        revision,
        [*begins, *fails],
        [*begins_pass, *passes],
        none,
        side or fails[-1].sender,
        is_certain,
        allowed,
        pass_allowed,
        is_part,
    )
