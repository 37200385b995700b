"""The judge: compare a recorded conversation with the specification's rows.

1. A false accusation is the worst fault. If the lines don't prove a fault, the finding is
   inconclusive.
2. The judge reads one line at a time and takes constant memory, however long the trace is.
3. It reads JSON with the standard library and has its own shapes, so it doesn't repeat an error of
   the code that it judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core.trace._format import DamagedLine, TraceHeader, TraceLine
from mcp_core.trace._ids import GivenTexts

from ._conversation_table import ConversationTable
from ._evidence import find_evidence
from ._exchange_judge import ExchangeJudge
from ._finding import Finding
from ._message_judge import MessageJudge
from ._report import JudgeReport
from ._revisions import FACTS
from ._sides import CLIENT, SERVER, Side
from .rules import rules_for

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Set as AbstractSet

    from .conversation._conversation import ConversationState

__all__ = ["Judge"]

# Transports on which a message is a line.
_LINES: Final = ("stdio",)


class Judge:
    """A judge of one trace's conversations.

    Call `receive` with each trace line, and `close` at its end. Both return findings.

    Args:
        header: the trace's header. Without it, nothing is known about the transport and the
            server.
        from_start: True if the trace is known to have each conversation from its first message, as
            for a judge that runs while the conversation is recorded.
        all_conversations: True if the client has had no other conversation with the server, not
            even before the trace, as in a test that starts both. Only then is it certain that the
            client has made up a `requestState` that isn't in the trace.
        unjudged: a side that isn't judged: a fuzzer, which breaks rules on purpose. By default both
            are judged, unless the header names the observer as a fuzzer: then the other side is
            judged until the fuzzer's first breach in a conversation. If the header has a fuzzer's
            finding, its side is judged by the row of the finding from there on.

    Attributes:
        opportunities: how often each row was judged, findings included. If a row is missing, its
            case didn't occur in the trace. Rows of the unjudged side aren't counted, and neither
            is what may follow from a fuzzer's breach.
        left_out: the rows of findings that aren't reported, because they may follow from a fuzzer's
            breach.
        messages_from: how many messages of each side were judged.
        unjudged: the side that isn't judged; None if both are.
    """

    def __init__(
        self,
        header: TraceHeader | None = None,
        *,
        from_start: bool = False,
        all_conversations: bool = False,
        unjudged: Side | None = None,
    ) -> None:
        observer = header.observer if header is not None else "between"
        versions = header.server_versions if header is not None else ()
        is_stdio = header is not None and header.transport in _LINES
        self._server_versions = FACTS.keys() & set(versions or ())
        self._evidence = find_evidence(header)
        self.left_out: AbstractSet[str] = frozenset()
        if self._evidence is not None:
            unjudged, from_start = self._evidence.fuzzer, True
            self.left_out = self._evidence.left_out
        self.unjudged: Side | None = unjudged
        self._revision = ""  # the one that was selected last
        self._report = JudgeReport(unjudged)
        self._conversations = ConversationTable(
            observer,
            is_from_start=from_start,
            server_versions=self._server_versions,
            given_states=GivenTexts(is_complete=from_start and all_conversations),
            # It may be HTTP, which doesn't promise an order.
            is_ordered=header is None or bool(header.transport),
        )
        self._messages = MessageJudge(
            self._report, self._conversations, observer, is_stdio=is_stdio
        )
        self._exchanges = ExchangeJudge(self._report, self._messages, self._conversations)
        self.opportunities: Counter[str] = self._report.opportunities
        self.messages_from: Counter[Side] = self._messages.judged

    def __repr__(self) -> str:
        return f"<Judge after {self.messages} messages>"

    @property
    def messages(self) -> int:
        """The number of messages that were judged."""
        return self.messages_from.total()

    def unread(self, side: Side) -> int:
        """Return how many messages of a side the judge couldn't read, or holds for invalid.

        The other side may have read more of them than the judge, so some of its later messages
        can't be judged. Conversations that are no longer remembered don't count.

        Args:
            side: the side that has sent them.
        """
        return self._conversations.unread(side)

    def receive(self, line: TraceLine | DamagedLine, number: int | None = None) -> list[Finding]:
        """Judge the next line, and return the findings.

        Args:
            line: the line.
            number: its number in the file. By default the lines count from 2, after the header.
        """
        self._report.line = self._report.line + 1 if number is None else number
        if isinstance(line, DamagedLine):
            self._conversations.lose("a line of the trace is damaged")
            return []
        if line.kind is not None:
            self._receive_event(line)
            return []
        if line.sender is None:
            return []
        self._judge_line(line)
        if line.end is not None:
            self._receive_end(line, line.sender, line.end)
        return self._take()

    def add_server_version(self, version: str) -> None:
        """Tell the judge that the server speaks a revision.

        Otherwise, the judge only knows what the server says in the trace.

        Args:
            version: such as "2026-07-28".
        """
        self._server_versions.add(version)

    def close(self) -> list[Finding]:
        """Judge the ends of all conversations, and return the findings."""
        while (state := self._conversations.pop()) is not None:
            self._revision = state.negotiation.selected or self._revision
            self._count_rows(state)
            self._judge_close(state)
        found = self._take()
        return found if self._evidence is None else found + self._evidence.close(self._revision)

    def _take(self) -> list[Finding]:
        """Return the findings since the last call, about the sides that are judged."""
        found = self._report.take()
        if self.unjudged is None or not found:
            return found
        if self._evidence is not None:
            return self._evidence.select(found)
        return [each for each in found if each.side != self.unjudged]

    def _count_rows(self, state: ConversationState) -> None:
        """Count only what is judged of a conversation from now on."""
        if self._evidence is not None:
            self._report.counted = self._evidence.counted_rows(state.number)

    def _judge_line(self, line: TraceLine) -> None:
        if line.http is None and line.raw is None and line.data is None and line.sse is None:
            return
        state = self._conversations.find(line.conversation)
        self._count_rows(state)
        if line.t < 0:
            state.is_untimed = True
        if line.truncated is not None:
            state.lose("a message of the trace is truncated")
        elif line.http is not None or line.exchange:
            self._exchanges.judge_line(line, self._report.line, state)
        else:
            self._messages.judge_text(line, state)

    def _receive_event(self, line: TraceLine) -> None:
        if line.kind == "lost":
            self._conversations.lose("lines of the trace were lost")
        elif line.kind == "spawn":
            self._conversations.spawn(line.conversation)
        elif line.kind == "exit":
            state = self._conversations.get(line.conversation)
            if state is not None:
                state.ended_by = state.ended_by or SERVER
                state.exit = line.status or 0, line.t

    def _receive_end(self, line: TraceLine, sender: Side, end: str) -> None:
        state = self._conversations.get(line.conversation)
        if state is None:
            return
        if not line.exchange:
            state.ended_by = state.ended_by or sender
            state.end_times.setdefault(sender, line.t)
            return
        exchange = state.http.exchanges.get(line.exchange)
        if exchange is not None and not exchange.end:
            exchange.ended_by, exchange.end = sender, end
            exchange.end_line, exchange.end_time = self._report.line, line.t

    def _judge_close(self, state: ConversationState) -> None:
        for rule, row in rules_for("close", state.negotiation.candidates(CLIENT)):
            outcome = rule.judge(state)
            if outcome is None:
                continue
            self._report.count(row.id, CLIENT if row.role == "client" else SERVER)
            if outcome is not True:
                revision = state.negotiation.selected
                self._report.rule_failed(outcome, rule, row, state, CLIENT, revision=revision)
