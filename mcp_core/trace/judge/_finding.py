"""A finding: the judge's report about one requirement and one message."""

from __future__ import annotations

from msgspec import Struct

from ._sides import Side
from .rows import Level

__all__ = ["Finding"]


class Finding(Struct, frozen=True, kw_only=True):
    """A requirement that a message of a trace doesn't fulfil, or may not fulfil.

    Attributes:
        row: the requirement's id, such as `RPC-7`.
        level: the requirement's level: MUST, SHOULD, ... or schema.
        side: the side at fault.
        lines: the trace lines that show it, by number, the last one first.
        conversation: the conversation's number.
        sentence: the fault, in one sentence.
        link: the specification text's URL.
        is_certain: True for the verdict "fail". False for "inconclusive": what the trace shows can
            have another cause, or part of the conversation is missing.
    """

    row: str
    level: Level
    side: Side
    lines: tuple[int, ...]
    conversation: int
    sentence: str
    link: str
    is_certain: bool = True
