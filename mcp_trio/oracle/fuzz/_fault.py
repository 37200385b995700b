"""A target's fault, and what the fault takes from its row: the level and the link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from mcp_core import DIALECTS
from mcp_core.trace import CHECKED_LEVELS, ROWS

if TYPE_CHECKING:
    from mcp_core.trace import Finding

__all__ = [
    "BATCHED",
    "LEVELS",
    "UNANSWERED",
    "UNANSWERED_MALFORMED",
    "TargetFault",
    "level_of",
    "link_of",
    "row_fault",
]

UNANSWERED: Final = "RPC-35"  # the row of a request without a response
BATCHED: Final = "batch"  # in the detail of a fault about a request that wasn't sent alone
# The specification doesn't say that a malformed request needs a response. JSON-RPC does.
UNANSWERED_MALFORMED: Final = "RPC-17"
# The levels of obligations. Rows of other levels are readings and choices of this project.
LEVELS: Final = CHECKED_LEVELS["should"]
# Rows that can show the cause of another row. For example, an error without an id breaks RPC-14 if
# it follows a notification, and RPC-8 if a request came in between.
_SAME_CAUSE: Final = {"RPC-8": "RPC-14", "STDIO-6": "crash"}


class TargetFault(Struct, frozen=True, kw_only=True):
    """Something that the target did wrong.

    Attributes:
        kind: "row" for a broken requirement, "crash" for a process that ended, "hang" for a target
            that no longer responds, "invariant" for a failed check by the author.
        row: the requirement's id, "crash", or the name of the author's function.
        method: the method of the message that shows it; empty without a message.
        detail: for a crash its exit status. If the crash is known of an SDK, a space follows, and
            the link that explains it. For an invariant the called tool's name.
        variant: what a smaller case must keep besides row and detail. For an invariant it says
            whether the call's arguments were wrong, and where the assertion stands.
        sentence: the fault, in one sentence.
        level: the requirement's level.
        link: the URL of the requirement's text, or "".
        is_certain: False if the target may be right for a reason that a client doesn't see.
        cases_back: how many cases before the session's last case it happened.
        sent: the request that it is about, as JSON; "" if none is known.
        received: the message that shows it, as it was received; "" without a message.
        is_cancellation_error: `received` says that the request was cancelled, and the request had
            another response before.
    """

    kind: Literal["row", "crash", "hang", "invariant"]
    row: str
    method: str = ""
    detail: str = ""
    variant: str = ""
    sentence: str = ""
    level: str = "MUST"
    link: str = ""
    is_certain: bool = True
    cases_back: int = 0
    sent: str = ""
    received: str = ""
    is_cancellation_error: bool = False

    @classmethod
    def from_finding(cls, finding: Finding, method: str, **more: Any) -> TargetFault:
        """Return the fault for a judge's finding about a message of `method`."""
        return cls(
            kind="row",
            row=finding.row,
            method=method,
            sentence=finding.sentence,
            level=finding.level,
            link=finding.link,
            **more,
        )

    @property
    def key(self) -> tuple[str, str, str]:
        """A key that is the same for all reports of one fault."""
        return self.row, self.detail, self.method

    @property
    def cause(self) -> tuple[str, str]:
        """The part of it that stays the same while a case is shrunk."""
        return _SAME_CAUSE.get(self.row, self.row), f"{self.detail} {self.variant}".rstrip()

    @property
    def is_silence(self) -> bool:
        """True if the fuzzer has waited for a message that didn't come."""
        return self.kind == "hang" or self.row in (UNANSWERED, UNANSWERED_MALFORMED)

    @property
    def is_advice(self) -> bool:
        """True if a run doesn't fail for it: it is a reading of the text, or not certain."""
        return not self.is_certain or self.level == "reading"


def row_fault(row: str, method: str, sentence: str, revision: str) -> TargetFault:
    """Return the fault of breaking `row`, shown by a message of `method`. It is certain."""
    return TargetFault(
        kind="row",
        row=row,
        method=method,
        level=level_of(row),
        sentence=sentence,
        link=link_of(row, revision),
    )


def link_of(row: str, revision: str) -> str:
    """Return the URL of a row's text; empty for a row without one."""
    found = ROWS.get(row)
    return "" if found is None or revision not in DIALECTS else found.link(revision)


def level_of(row: str) -> str:
    """Return a row's level, MUST if it isn't known."""
    found = ROWS.get(row)
    return found.level if found is not None else "MUST"
