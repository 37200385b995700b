"""The judge of a fuzzer's evidence: a trace whose header says what the fuzzer has found in it.

1. The fuzzer's own breaches aren't reported. What the other side did after the first one may follow
   from it, so only the row of the finding is reported from there on.
2. The fuzzer knows more than a trace shows, such as for how long it waited. If the messages don't
   prove its finding, the header's word for it is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._finding import Finding
from ._revisions import REVISIONS
from .rows import CHECKED_LEVELS, ROWS

if TYPE_CHECKING:
    from mcp_core.trace._format import RecordedFinding

__all__ = ["FuzzEvidence"]

_LEVELS: Final = CHECKED_LEVELS["should"]


class FuzzEvidence:
    """The findings about one trace of a fuzzer. `finding` is the one in the trace's header."""

    def __init__(self, finding: RecordedFinding) -> None:
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
            self._is_breached = self._is_breached or (found.is_certain and found.level in _LEVELS)
            return False
        if found.row != self._finding.row:
            return not self._is_breached
        if not self._lines:
            self._lines, self._conversation = found.lines, found.conversation
        self._is_proved = self._is_proved or found.is_certain
        return found.is_certain

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
