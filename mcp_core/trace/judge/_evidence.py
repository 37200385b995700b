"""The judge of a fuzzer's traces: those of its findings, and recordings of whole runs.

1. The fuzzer's own breaches aren't reported. What the other side did after the first one may follow
   from it, so it is neither reported nor counted from there on, but for the row of the finding.
2. The fuzzer knows more than a trace shows, such as for how long it waited. If the messages don't
   prove its finding, the header's word for it is reported.
3. A fuzzer records its traces itself. If the observer is another side, the header isn't believed:
   one word of it would silence the judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import UNSET

from ._finding import Finding
from ._revisions import REVISIONS
from ._sides import other_side
from .rows import CHECKED_LEVELS, ROWS

if TYPE_CHECKING:
    from collections.abc import Collection

    from mcp_core.trace._format import RecordedFinding, TraceHeader

    from ._sides import Side

__all__ = ["Evidence", "FuzzEvidence", "FuzzRecording", "find_evidence"]

_LEVELS: Final = CHECKED_LEVELS["should"]


# Conversations whose breaches are known one by one. A run plays a few at the same time.
_MAX_BREACHED: Final = 1_000


class FuzzRecording:
    """The findings about a recording of a fuzzer's run.

    Args:
        fuzzer: the fuzzer's side.

    Attributes:
        fuzzer: the same as the argument.
        left_out: the rows of findings about the other side that aren't reported.
    """

    def __init__(self, fuzzer: Side) -> None:
        self.fuzzer: Side = fuzzer
        self.left_out: set[str] = set()
        self._breached: dict[int, None] = {}  # conversations in which it has broken a rule
        self._earlier = 0  # up to this one, all count as breached

    def select(self, found: list[Finding]) -> list[Finding]:
        """Return the judge's findings that are reported."""
        return [each for each in found if self._is_reported(each)]

    def _is_reported(self, found: Finding) -> bool:
        number = found.conversation
        if found.side != self.fuzzer:
            if not self._is_breached(number):
                return True
            self.left_out.add(found.row)
        elif _is_breach(found):
            self._breached[number] = None
            if len(self._breached) > _MAX_BREACHED:
                oldest = next(iter(self._breached))
                del self._breached[oldest]
                self._earlier = max(self._earlier, oldest)
        return False

    def counted_rows(self, conversation: int) -> Collection[str] | None:
        """Return the rows that are judged in a conversation from now on; None for all."""
        return () if self._is_breached(conversation) else None

    def _is_breached(self, conversation: int) -> bool:
        return conversation <= self._earlier or conversation in self._breached

    def close(self, revision: str) -> list[Finding]:
        """Return no further findings: this header has none."""
        return []


def _is_breach(found: Finding) -> bool:
    """Return True if a finding about the fuzzer shows that it has broken a rule."""
    return found.is_certain and found.level in _LEVELS


class FuzzEvidence:
    """The findings about one trace of a fuzzer.

    Args:
        finding: the one in the trace's header.

    Attributes:
        fuzzer, left_out: as of `FuzzRecording`.
    """

    def __init__(self, finding: RecordedFinding) -> None:
        self.fuzzer: Side = other_side(finding.side)
        self.left_out: set[str] = set()
        self._finding = finding
        self._is_breached = False  # the fuzzer has broken a rule
        self._is_proved = False  # the messages show the finding
        self._lines: tuple[int, ...] = ()  # that may show it
        self._conversation = 1

    def select(self, found: list[Finding]) -> list[Finding]:
        """Return the judge's findings that are reported."""
        return [each for each in found if self._is_reported(each)]

    def _is_reported(self, found: Finding) -> bool:
        if found.side != self._finding.side:
            self._is_breached = self._is_breached or _is_breach(found)
            return False
        if found.row != self._finding.row:
            if self._is_breached:
                self.left_out.add(found.row)
            return not self._is_breached
        if not self._lines:
            self._lines, self._conversation = found.lines, found.conversation
        self._is_proved = self._is_proved or found.is_certain
        return found.is_certain

    def counted_rows(self, conversation: int) -> Collection[str] | None:
        """Return the rows that are judged from now on; None for all."""
        return (self._finding.row,) if self._is_breached else None

    def close(self, revision: str) -> list[Finding]:
        """Return the header's finding, unless the messages have shown it.

        Args:
            revision: the trace's revision, for the link; empty if it isn't known.
        """
        if self._is_proved:
            return []
        finding = self._finding
        row = ROWS.get(finding.row)
        return [
            Finding(
                row=finding.row,
                level="MUST" if row is None else row.level,
                side=finding.side,
                lines=self._lines or (1,),
                conversation=self._conversation,
                sentence=finding.sentence,
                link="" if row is None else row.link(revision or REVISIONS[-1]),
                is_certain=finding.verdict == "fail",
            )
        ]


Evidence: TypeAlias = FuzzRecording | FuzzEvidence


def find_evidence(header: TraceHeader | None) -> Evidence | None:
    """Return how a fuzzer's trace is judged; None for other traces."""
    if header is None:
        return None
    evidence: Evidence | None = None
    if header.finding is not UNSET:
        evidence = FuzzEvidence(header.finding)
    elif header.fuzzer is not UNSET:
        evidence = FuzzRecording(header.fuzzer)
    return evidence if evidence is not None and evidence.fuzzer == header.observer else None
