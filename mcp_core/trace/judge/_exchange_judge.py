"""The judge of HTTP: heads, events and their ids, by the rules and line by line."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Final

from mcp_core.trace._format import SseFields
from mcp_core.trace._ids import id_key, text_key
from mcp_core.trace._members import lookup

from ._message import MAX_PARAMS
from ._revisions import STATEFUL
from ._sides import CLIENT, SERVER
from ._texts import has_http_message
from .rows import ROWS
from .rules import rules_for

if TYPE_CHECKING:
    from mcp_core.trace._format import TraceLine

    from ._conversation_table import ConversationTable
    from ._message_judge import MessageJudge
    from ._report import JudgeReport
    from ._sides import Side
    from .conversation._conversation import ConversationState
    from .conversation._http import SeenExchange
    from .rules import On

__all__ = ["ExchangeJudge"]

MAX_EXCHANGE_BYTES: Final = 8 * 1024 * 1024  # of messages of exchanges that wait for a response


def _is_foreign(text: str | bytes, state: ConversationState) -> bool:
    """Return True if a text is a response or progress that belongs to no request of the client.

    Other messages, such as the change of a list, can be told to all clients.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(message, dict) and "method" not in message:
        key = id_key(message.get("id"))
        return key is not None and key not in state.requests.used[CLIENT]
    token = id_key(lookup(message, "params", "progressToken"))
    return token is not None and token not in state.requests.tokens[CLIENT]


class ExchangeJudge:
    """The judge of a trace's HTTP exchanges.

    Args:
        report: gets the findings.
        messages: judges the exchanges' messages.
        conversations: the trace's conversations.
    """

    def __init__(
        self, report: JudgeReport, messages: MessageJudge, conversations: ConversationTable
    ) -> None:
        self._report = report
        self._messages = messages
        self._conversations = conversations
        self._large: deque[tuple[SeenExchange, int]] = deque()
        self._large_bytes = 0

    def judge_line(self, line: TraceLine, number: int, state: ConversationState) -> None:
        """Judge a head, an event or a message of an exchange. `number` is the line's number."""
        state.is_ordered = False
        exchange = state.http.exchanges.get(line.exchange)
        if line.http is not None and line.http.status == 0:
            exchange = state.http.add(line.exchange, line.http, number, line.t)
            self._conversations.receive_head(exchange, state.number)
        elif line.http is not None and exchange is not None:
            has_body = bool(line.raw or line.data)
            exchange.respond(line.http, number, line.t, has_body=has_body)
        state.http.exchange = exchange
        if exchange is not None and line.sse is not None:
            self._judge_event(line, line.sse, exchange, state)
        if has_http_message(line):
            self._messages.judge_text(line, state)
        elif line.http is not None and not line.http.status and (line.raw or line.data):
            state.add_unreadable(CLIENT)
        elif line.sender == SERVER and (line.raw or line.data):
            state.rounds.given.is_complete = False  # the client may have found a state in it
        if exchange is not None and line.http is not None:
            if not line.http.status:
                revisions = {message.revisions for message in exchange.messages}
                if not exchange.messages:
                    exchange.set_revisions(state.negotiation.candidates(CLIENT))
                elif len(revisions) == 1:
                    exchange.set_revisions(revisions.pop())
            self._judge_heads(exchange, state)
            self._bound_exchanges(exchange)
        state.http.exchange = None

    def _bound_exchanges(self, exchange: SeenExchange) -> None:
        """Forget the messages of an answered exchange, and the oldest large ones of the others."""
        if exchange.status:
            exchange.shrink()
        elif exchange.size > MAX_PARAMS:
            self._large.append((exchange, exchange.size))
            self._large_bytes += exchange.size
            while self._large_bytes > MAX_EXCHANGE_BYTES and len(self._large) > 1:
                oldest, size = self._large.popleft()
                oldest.shrink()
                self._large_bytes -= size

    def _judge_heads(self, exchange: SeenExchange, state: ConversationState) -> None:
        """Judge a request's head, or the response's if there is one."""
        revisions = exchange.revisions
        lines: tuple[int, ...] = ()
        on: On = "http_request"
        side: Side = CLIENT
        if exchange.status:
            on, side, lines = "http_response", SERVER, (exchange.line,)
            if exchange.is_modern and not state.negotiation.answers_modern(exchange.response):
                revisions = STATEFUL + revisions  # the server may not know the revision
            elif exchange.response is not None and exchange.response.is_modern:
                revisions = exchange.response.revisions  # the request names another version
        for rule, row in rules_for(on, revisions):
            outcome = rule.judge(exchange, state)
            if outcome is None:
                continue
            self._report.count(row.id, side)
            if outcome is not True:
                revision = revisions[0] if len(revisions) == 1 else ""
                self._report.rule_failed(
                    outcome, rule, row, state, side, revision=revision, lines=lines
                )
        if exchange.status:
            state.receive_response_head(exchange)

    def _judge_event(
        self, line: TraceLine, fields: SseFields, exchange: SeenExchange, state: ConversationState
    ) -> None:
        if fields.retry is not None:
            exchange.retry = fields.retry
        if fields == SseFields(retry=fields.retry) and line.raw is None and line.data is None:
            return  # a reconnection time without an event
        exchange.events += 1
        if fields.event == "endpoint":
            self._judge_endpoint(line, exchange, state)
        is_modern = exchange.is_modern and state.negotiation.answers_modern(None)
        if fields.id:
            exchange.has_event_ids = True
            if is_modern:
                revision = exchange.revisions[-1]
                self._report.failed(
                    "SHM-13", state, SERVER, "an event has an id", revision=revision
                )
            else:
                self._judge_event_id(line, fields.id, exchange, state)
        elif is_modern:
            self._report.count("SHM-13", SERVER)

    def _judge_endpoint(
        self, line: TraceLine, exchange: SeenExchange, state: ConversationState
    ) -> None:
        endpoint, report = line.raw or "", self._report
        state.http.has_endpoint, state.http.endpoint = True, endpoint
        if exchange.events > 1:
            report.failed("SSE-2", state, SERVER, "the event `endpoint` is not the first one")
        elif not endpoint or any(each.isspace() for each in endpoint):
            report.failed("SSE-2", state, SERVER, "the event `endpoint` has no URI")
        else:
            report.count("SSE-2", SERVER)

    def _judge_event_id(
        self, line: TraceLine, id: str, exchange: SeenExchange, state: ConversationState
    ) -> None:
        report, text = self._report, line.raw or line.data
        revision = state.negotiation.selected
        is_first = exchange.method == "POST" and exchange.events == 1
        has_row = revision in ROWS["SHL-6"].revisions
        if is_first and has_row and state.http.session is not None:
            if text:
                report.failed(
                    "SHL-6",
                    state,
                    SERVER,
                    "the first event of a stream has data",
                    revision=revision,
                    is_certain=not state.gap,
                )
            else:
                report.count("SHL-6", SERVER)
        self._judge_foreign_event(id, text, exchange, state)
        earlier = state.http.add_event(id, text, exchange, line.exchange)
        if earlier.is_on_its_stream:
            report.count("SHL-19", SERVER)
        elif earlier.is_on_its_stream is False:
            report.failed(
                "SHL-19",
                state,
                SERVER,
                "a stream that is resumed has an event of another one",
                is_certain=not state.gap,
            )
        if earlier.has_other_content:
            report.failed(
                "SHL-16",
                state,
                SERVER,
                "two events of the session have one id",
                is_certain=not state.gap,
            )
        else:
            report.count("SHL-16", SERVER)

    def _judge_foreign_event(
        self, id: str, text: str | bytes | None, exchange: SeenExchange, state: ConversationState
    ) -> None:
        """Judge whether a stream replays a message that another client got."""
        if not text:
            return
        given = state.across.find_event(id, text)
        state.across.add_event(id, text, state.number)
        if not exchange.is_resumption or given is None or given == state.number:
            return
        known = state.http.events
        if text_key(id) in known or text_key(exchange.headers["last-event-id"]) in known:
            return  # both sessions can count their events
        if not _is_foreign(text, state):
            return
        self._report.failed(
            "SHL-19",
            state,
            SERVER,
            "a stream that is resumed has an event of a stream of another client",
            is_certain=not state.gap and state.http.has_all_events,
        )
