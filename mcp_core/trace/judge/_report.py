"""The findings of a trace, and how often each row was judged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from ._finding import Finding
from ._revisions import REVISIONS
from .rows import ROWS
from .rules import RuleFailure

if TYPE_CHECKING:
    from collections.abc import Collection

    from ._sides import Side
    from .conversation._conversation import ConversationState
    from .rows import Requirement
    from .rules import Rule

__all__ = ["JudgeReport"]

MAX_INCONCLUSIVE: Final = 10_000  # inconclusive findings, one for each conversation, row and side


class JudgeReport:
    """The findings of a trace.

    Args:
        unjudged: the side whose rows aren't counted; None to count both.

    Attributes:
        opportunities: how often each row was judged, findings included.
        counted: the rows that are counted from now on; None for all.
        line: the number of the line that is judged.
    """

    def __init__(self, unjudged: Side | None = None) -> None:
        self.unjudged = unjudged
        self.opportunities: Counter[str] = Counter()
        self.counted: Collection[str] | None = None
        self.line = 1
        self._found: list[Finding] = []
        self._inconclusive: set[tuple[int, str, str]] = set()

    def take(self) -> list[Finding]:
        """Return the findings since the last call."""
        found, self._found = self._found, []
        return found

    def count(self, row: str, side: Side) -> None:
        """Count a row that was judged in what `side` has sent."""
        if side != self.unjudged and (self.counted is None or row in self.counted):
            self.opportunities[row] += 1

    def failed(
        self,
        row: str,
        state: ConversationState,
        side: Side,
        text: str,
        *,
        revision: str = "",
        is_certain: bool = True,
    ) -> None:
        """Count a row that was judged, and add a finding about it."""
        self.count(row, side)
        self._add(ROWS[row], state, side, (), text, revision, is_certain)

    def rule_failed(
        self,
        outcome: RuleFailure | str | bool,
        rule: Rule,
        row: Requirement,
        state: ConversationState,
        side: Side,
        *,
        revision: str,
        lines: tuple[int, ...] = (),
        is_certain: bool = True,
        names_gap: bool = False,
    ) -> None:
        """Add a rule's finding, unless it repeats an earlier inconclusive one.

        Args:
            outcome: what the rule returned.
            rule, row: the rule and the row that it judged.
            state: the conversation.
            side: the side at fault if the rule doesn't name one.
            revision: the message's revision, empty if it isn't known.
            lines: the lines that show the fault, before the rule's own.
            is_certain: False if the message has values that the recorder replaced.
            names_gap: the sentence ends with the gap if the rule needs the missing messages.
        """
        failure = outcome if isinstance(outcome, RuleFailure) else RuleFailure(str(outcome))
        gap = state.gap if rule.needs_history else ""
        if rule.needs_time and state.is_untimed:
            gap = gap or "lines of the trace have no time"
        side = failure.side or side
        is_certain = failure.is_certain and is_certain and not gap
        if not is_certain:
            # One cause can make every message inconclusive.
            key = (state.number, row.id, side)
            if key in self._inconclusive or len(self._inconclusive) > MAX_INCONCLUSIVE:
                return
            self._inconclusive.add(key)
        text = f"{failure.text} ({gap})" if gap and names_gap else failure.text
        self._add(row, state, side, (*lines, *failure.lines), text, revision, is_certain)

    def _add(
        self,
        row: Requirement,
        state: ConversationState,
        side: Side,
        lines: tuple[int, ...],
        text: str,
        revision: str,
        is_certain: bool,
    ) -> None:
        self._found.append(
            Finding(
                row=row.id,
                level=row.level,
                side=side,
                lines=(self.line, *lines),
                conversation=state.number,
                sentence=text,
                link=row.link(revision or state.negotiation.selected or REVISIONS[-1]),
                is_certain=is_certain,
            )
        )
