"""The report of the judge about one message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from ._sides import Side
    from .rows import Level

__all__ = ["Finding"]


class Finding(Struct, frozen=True, kw_only=True):
    """A requirement that a message of a trace doesn't fulfil, or may not fulfil.

    Attributes:
        row: the requirement's id, such as `RPC-7`.
        level: that of the requirement: MUST, SHOULD, ... or schema.
        side: the side at fault.
        lines: the numbers of the lines of the trace that show it, the last one first.
        conversation: the number of the conversation.
        sentence: what is wrong.
        link: the address of the page that has the requirement.
        is_certain: True for the verdict "fail". False for "inconclusive": what the trace shows can
            have another cause, or a part of the conversation is missing.
    """

    row: str
    level: Level
    side: Side
    lines: tuple[int, ...]
    conversation: int
    sentence: str
    link: str
    is_certain: bool = True
