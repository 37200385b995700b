"""The judge of texts: decode each text, and judge its messages by the rules."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ._message import SeenMessage
from ._sides import CLIENT, SERVER
from ._texts import NotJson, add_piece, decode, is_cut
from .conversation._http import SESSION
from .rows import ROWS
from .rules import RULES, rules_for_message
from .rules._shapes import find_message_error

if TYPE_CHECKING:
    from mcp_core.trace._format import TraceLine

    from ._conversation_table import ConversationTable
    from ._report import JudgeReport
    from ._revisions import Revisions
    from ._sides import Side
    from .conversation._conversation import ConversationState
    from .conversation._http import SeenExchange
    from .rows import Requirement
    from .rules import Rule

__all__ = ["MessageJudge"]

_SMALL_BATCH: Final = 10  # messages; every receiver's limit allows so many
_JUDGED_METHODS: Final = frozenset(method for rule in RULES for method in rule.methods)


class MessageJudge:
    """The judge of a trace's messages.

    Args:
        report: gets the findings.
        conversations: the trace's conversations.
        observer: the side at which the trace was recorded, or "between".
        is_stdio: the transport is stdio, where each message is a line.

    Attributes:
        judged: how many messages of each side were judged.
    """

    def __init__(
        self,
        report: JudgeReport,
        conversations: ConversationTable,
        observer: str,
        *,
        is_stdio: bool,
    ) -> None:
        self.judged: Counter[Side] = Counter()
        self._report = report
        self._conversations = conversations
        self._observer = observer
        self._is_stdio = is_stdio

    def judge_text(self, line: TraceLine, state: ConversationState) -> None:
        """Judge the text of a line: a message, a batch, or neither."""
        sender = line.sender
        assert sender is not None
        text, report = line.raw, self._report
        if line.end not in (None, "complete") and is_cut(line):
            state.lose("a message was cut off by the end of the stream")
            return
        if text is None:
            state.add_unreadable(sender)
            if _hold("RPC-26", state.negotiation.candidates(sender)):
                report.failed("RPC-26", state, sender, "the message is not UTF-8")
            return  # else a revision that doesn't specify an encoding
        report.count("RPC-26", sender)
        if not text or text.isspace():
            return  # an empty line is tolerated, and an event without data carries no message
        try:
            decoded = decode(text)
        except NotJson:
            state.add_unreadable(sender)
            self._judge_broken_text(text, state, sender)
            return
        except (ValueError, RecursionError):
            state.add_unreadable(sender)
            state.lose("a message is too much for the parser of the judge")
            return
        if self._is_stdio:
            report.count("STDIO-2" if sender == SERVER else "STDIO-3", sender)
            report.count("STDIO-1", sender)
        if isinstance(decoded, list):
            self._judge_batch(line, decoded, state)
        elif isinstance(decoded, dict):
            if _hold("RPC-25", state.negotiation.candidates(sender)):
                report.count("RPC-25", sender)
            message = SeenMessage(decoded, report.line, line.t, sender)
            message.size = len(text)
            message.exchange = line.exchange
            message.redacted = line.redacted
            self._judge_message(message, state)
        else:
            state.add_unreadable(sender)
            report.failed("RPC-1", state, sender, "a message is not an object")

    def _judge_broken_text(self, text: str, state: ConversationState, sender: Side) -> None:
        report = self._report
        if not self._is_stdio:
            report.failed("RPC-1", state, sender, "a message is not JSON")
            return
        row = "STDIO-2" if sender == SERVER else "STDIO-3"
        report.failed(row, state, sender, "a line is not JSON")
        if add_piece(text, state.pieces[sender]):
            report.failed("STDIO-1", state, sender, "a message is spread over several lines")

    def _judge_batch(self, line: TraceLine, members: list[Any], state: ConversationState) -> None:
        sender, report = line.sender, self._report
        assert sender is not None
        revisions = state.negotiation.candidates(sender)
        state.unreadable[sender] += 1
        if _hold("RPC-25", revisions):
            report.failed("RPC-25", state, sender, "a batch, which the revision has not")
        elif _hold("RPC-23", revisions):
            responses = [isinstance(each, dict) and "method" not in each for each in members]
            if not members:
                report.failed("RPC-23", state, sender, "the batch is empty")
            elif any(responses) and not all(responses):
                report.failed(
                    "RPC-23", state, sender, "the batch has requests as well as responses"
                )
            else:
                report.count("RPC-23", sender)
        for each in members:
            if isinstance(each, dict):
                message = SeenMessage(each, report.line, line.t, sender)
                message.size = len(line.raw or "") // len(members)
                message.exchange = line.exchange
                message.redacted = line.redacted
                message.in_batch = True
                self._judge_message(message, state)
        state = self._conversations.get(line.conversation) or state
        is_clean = all(isinstance(each, dict) and "method" in each for each in members)
        # A receiver can limit how many messages a batch has.
        is_small = 0 < len(members) <= _SMALL_BATCH
        state.batches[sender] = report.line if is_small and is_clean else 0

    def _judge_message(self, message: SeenMessage, state: ConversationState) -> None:
        report = self._report
        self.judged[message.sender] += 1
        if state.begins_session(message):
            state = self._conversations.begin_session(state)
        state.prepare(message)
        exchange = state.http.exchange
        if exchange is not None:
            exchange.add(message)
            if self._observer != CLIENT and _is_alone(message, exchange, state):
                state.lose("the requests of a client cannot be told from those of another one")
        is_counted, counted = message.sender != report.unjudged, report.counted
        for rule, row in _rules_for(message):
            outcome = rule.judge(message, state)
            if outcome is None:
                continue
            if is_counted and (counted is None or row.id in counted):
                report.opportunities[row.id] += 1
            if outcome is not True:
                hidden = message.redacted or (message.request and message.request.is_redacted)
                report.rule_failed(
                    outcome,
                    rule,
                    row,
                    state,
                    message.sender,
                    revision=message.revision,
                    is_certain=not hidden,
                    names_gap=True,
                )
        self._judge_shape(message, state)
        self._conversations.receive(message, state)

    def _judge_shape(self, message: SeenMessage, state: ConversationState) -> None:
        row, error = find_message_error(message)
        if row is None:
            return
        if error is None:
            self._report.count(row, message.sender)
            return
        part = "result" if message.kind == "response" else "params"
        # The redacted pointers begin at the message.
        place = f"/{part}{error.pointer}"
        is_hidden = any(
            place.startswith(each) or each.startswith(place) for each in message.redacted
        )
        method = message.method or (message.request.method if message.request else "")
        where = f"{error.pointer} " if error.pointer else ""
        self._report.failed(
            row,
            state,
            message.sender,
            f"the {part} of {method}: {where}{error.text}",
            revision=message.revision,
            is_certain=not is_hidden,
        )


def _rules_for(message: SeenMessage) -> list[tuple[Rule, Requirement]]:
    kind, method = message.kind, message.method
    if kind == "response":
        if message.result is not None:
            kind = "result"
        elif message.error is not None:
            kind = "error"
        method = message.request.method if message.request is not None else ""
    # All other methods share a cache entry, because a peer can make up any number of them.
    known = method if method in _JUDGED_METHODS else ""
    return rules_for_message(kind, message.sender, known, message.revisions)


@cache
def _hold(row: str, revisions: Revisions) -> bool:
    """Return True if a row holds in all of `revisions`."""
    return set(ROWS[row].revisions).issuperset(revisions)


def _is_alone(message: SeenMessage, exchange: SeenExchange, state: ConversationState) -> bool:
    """Return True if a client's notification or response came without a session."""
    if message.sender != CLIENT or message.is_modern or message.kind == "request":
        return False
    begun = state.negotiation.initialize is not None or state.http.has_endpoint
    return not begun and SESSION not in exchange.headers
