"""The judge: hold a recorded conversation against the rows of the specification.

1. A false accusation is the worst fault. What the lines cannot show is inconclusive.
2. The judge reads one line at a time and takes constant memory, however long the trace is.
3. It reads JSON with the standard library and has its own shapes, so that it doesn't repeat an
   error of the code that it judges.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mcp_core._nesting import depth_exceeds
from mcp_core.trace._format import DamagedLine, SseFields
from mcp_core.trace._ids import GivenTexts, text_key

from ._conversation import ConversationState
from ._finding import Finding
from ._revisions import FACTS, REVISIONS, STATEFUL, Revisions
from ._seen import (
    CLIENT,
    MAX_PARAMS,
    SERVER,
    SeenExchange,
    SeenMessage,
)
from .rows import ROWS
from .rules import RULES, RuleFailure
from .rules._http import SESSION, receive_exchange
from .rules._shapes import find_message_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

    from mcp_core.trace._format import TraceHeader, TraceLine

    from ._seen import Side
    from .rows import Requirement
    from .rules import Rule

__all__ = ["Judge"]

MAX_CONVERSATIONS: Final = 1_000
MAX_EXCHANGES: Final = 1_000  # of one conversation
MAX_EXCHANGE_BYTES: Final = 8 * 1024 * 1024  # of messages of exchanges that can be judged again
MAX_KEPT_BYTES: Final = 32 * 1024 * 1024  # of lists that all conversations remember
MAX_EVENTS: Final = 10_000  # ids of events of one conversation
# Transports on which a message is a line.
_LINES: Final = ("stdio",)
_JUDGED_METHODS: Final = frozenset(method for rule in RULES for method in rule.methods)


class Judge:
    """A judge of the conversations of one trace.

    Call `receive` with each line of the trace, and `close` at its end. Each returns what was found.

    Args:
        header: the trace's header. Without it nothing is known of the transport, nor of the
            server.
        from_start: True if the first message of each conversation is known to be in the trace, as
            it is for a judge that is there when the conversation begins.
        all_conversations: True if the client has had no other conversation with the server, not
            even before the trace, as it is for a test that starts both. Only then it is certain
            that the client has made up a `requestState` which isn't in the trace.

    Attributes:
        opportunities: how often each row was judged, findings included. A row that is missing had
            nothing in the trace that could have shown a fault.
        messages: how many messages were judged.
        messages_from: how many of them each side has sent.
    """

    def __init__(
        self,
        header: TraceHeader | None = None,
        *,
        from_start: bool = False,
        all_conversations: bool = False,
    ) -> None:
        self.opportunities: Counter[str] = Counter()
        self.messages = 0
        self.messages_from: Counter[Side] = Counter()
        self._observer = header.observer if header is not None else "between"
        self._is_stdio = header is not None and header.transport in _LINES
        self._from_start = from_start
        self._line = 1
        self._conversations: OrderedDict[int, ConversationState] = OrderedDict()
        self._highest = 0
        self._lost = ""
        self._spawned: set[int] = set()
        versions = header.server_versions if header is not None else ()
        self._server_versions = FACTS.keys() & set(versions or ())
        self._given_states = GivenTexts(is_complete=from_start and all_conversations)
        self._large: deque[tuple[SeenExchange, int]] = deque()
        self._large_bytes = 0
        self._kept_bytes = 0
        self._inconclusive: set[tuple[int, str, str]] = set()

    def __repr__(self) -> str:
        return f"<Judge after {self.messages} messages>"

    def receive(self, line: TraceLine | DamagedLine, number: int | None = None) -> list[Finding]:
        """Judge the next line, and return what was found.

        Args:
            line: the line.
            number: its number in the file. By default the lines count from 2, after the header.
        """
        self._line = self._line + 1 if number is None else number
        if isinstance(line, DamagedLine):
            self._lose("a line of the trace is damaged")
            return []
        if line.kind is not None:
            self._receive_event(line)
            return []
        if line.sender is None:
            return []
        found = self._receive_crossing(line)
        if line.end is not None:
            self._receive_end(line)
        return found

    def _receive_crossing(self, line: TraceLine) -> list[Finding]:
        if line.http is None and line.raw is None and line.data is None and line.sse is None:
            return []
        state = self._find_conversation(line.conversation)
        if line.truncated is not None:
            state.lose("a message of the trace is truncated")
            return []
        if line.http is not None or line.exchange:
            return list(self._judge_http(line, state))
        return list(self._judge_text(line, state))

    def add_server_version(self, version: str) -> None:
        """Take it as known that the server speaks a revision.

        Without that, the judge knows it from what the server says in the trace alone.

        Args:
            version: such as "2026-07-28".
        """
        self._server_versions.add(version)

    def close(self) -> list[Finding]:
        """Judge the ends of all conversations, and return what was found."""
        found: list[Finding] = []
        while self._conversations:
            _, state = self._conversations.popitem(last=False)
            found += self._close(state)
        return found

    # -- Lines -------------------------------------------------------------------------------------

    def _receive_event(self, line: TraceLine) -> None:
        if line.kind == "lost":
            self._lose("lines of the trace were lost")
        elif line.kind == "spawn":
            # A process that is started again begins anew.
            former = self._conversations.pop(line.conversation, None)
            self._kept_bytes -= former.kept_bytes if former is not None else 0
            self._spawned.add(line.conversation)
        elif line.kind == "exit":
            state = self._conversations.get(line.conversation)
            if state is not None:
                state.ended_by = state.ended_by or SERVER
                state.exit = line.status or 0, line.t

    def _receive_end(self, line: TraceLine) -> None:
        state = self._conversations.get(line.conversation)
        if state is None or line.sender is None:
            return
        if not line.exchange:
            state.ended_by = state.ended_by or line.sender
            state.end_times.setdefault(line.sender, line.t)
            return
        exchange = state.exchanges.get(line.exchange)
        if exchange is not None and not exchange.end:
            exchange.ended_by, exchange.end = line.sender, line.end or ""
            exchange.end_line, exchange.end_time = self._line, line.t

    def _lose(self, reason: str) -> None:
        self._lost = reason
        for state in self._conversations.values():
            state.lose(reason)

    def _find_conversation(self, number: int) -> ConversationState:
        state = self._conversations.get(number)
        if state is None:
            state = ConversationState(number, observer=self._observer)
            state.is_from_start = self._from_start or number in self._spawned
            state.server_versions = self._server_versions
            state.given_states = self._given_states
            if self._lost:
                state.lose(self._lost)
            if number <= self._highest:
                state.lose("there are too many conversations to remember")
            self._highest = max(self._highest, number)
            self._conversations[number] = state
            if len(self._conversations) > MAX_CONVERSATIONS:
                _, oldest = self._conversations.popitem(last=False)
                self._kept_bytes -= oldest.kept_bytes
        return state

    # -- HTTP --------------------------------------------------------------------------------------

    def _judge_http(self, line: TraceLine, state: ConversationState) -> Iterator[Finding]:
        state.is_ordered = False
        exchange = state.exchanges.get(line.exchange)
        if line.http is not None and line.http.status == 0:
            exchange = state.exchanges[line.exchange] = SeenExchange(line.http, self._line, line.t)
            if len(state.exchanges) > MAX_EXCHANGES:
                state.exchanges.popitem(last=False)
        elif line.http is not None and exchange is not None:
            has_body = bool(line.raw or line.data)
            exchange.respond(line.http, self._line, line.t, has_body=has_body)
        state.exchange = exchange
        if exchange is not None and line.sse is not None:
            yield from self._judge_event(line, line.sse, exchange, state)
        if _has_message(line):
            yield from self._judge_text(line, state)
        elif line.http is not None and not line.http.status and (line.raw or line.data):
            state.add_unreadable(CLIENT)
        elif line.sender == SERVER and (line.raw or line.data):
            self._given_states.is_complete = False  # a client can read it all the same
        if exchange is not None and line.http is not None:
            revisions = {message.revisions for message in exchange.messages}
            if not line.http.status:
                if not exchange.messages:
                    exchange.set_revisions(state.candidates(CLIENT))
                elif len(revisions) == 1:
                    exchange.set_revisions(revisions.pop())
            yield from self._judge_exchange(exchange, state)
            self._bound_exchanges(exchange)
        state.exchange = None

    def _bound_exchanges(self, exchange: SeenExchange) -> None:
        """Forget messages that were judged with their response, and the oldest large ones."""
        if exchange.status:
            exchange.shrink()
        elif exchange.size > MAX_PARAMS:
            self._large.append((exchange, exchange.size))
            self._large_bytes += exchange.size
            while self._large_bytes > MAX_EXCHANGE_BYTES and len(self._large) > 1:
                oldest, size = self._large.popleft()
                oldest.shrink()
                self._large_bytes -= size

    def _judge_exchange(
        self, exchange: SeenExchange, state: ConversationState
    ) -> Iterator[Finding]:
        on, side = ("http_response", SERVER) if exchange.status else ("http_request", CLIENT)
        revisions = exchange.revisions
        if exchange.status and exchange.is_modern and not state.answers_modern(exchange.response):
            revisions = STATEFUL + revisions  # of a server that may not know the revision
        for rule, row in _rules_on(on, revisions):
            outcome = rule.judge(exchange, state)
            if outcome is None:
                continue
            self.opportunities[row.id] += 1
            if outcome is not True:
                failure = outcome if isinstance(outcome, RuleFailure) else RuleFailure(str(outcome))
                lines = (exchange.line,) if exchange.status else ()
                is_certain = failure.is_certain and not (rule.needs_history and state.gap)
                yield from self._report(
                    row,
                    state,
                    failure.side or side,  # type: ignore[arg-type]
                    failure.text,
                    (*lines, *failure.lines),
                    revisions[0] if len(revisions) == 1 else "",
                    is_certain,
                )
        receive_exchange(exchange, state)

    def _judge_event(
        self, line: TraceLine, fields: SseFields, exchange: SeenExchange, state: ConversationState
    ) -> Iterator[Finding]:
        if fields.retry is not None:
            exchange.retry = fields.retry
        if fields == SseFields(retry=fields.retry) and line.raw is None and line.data is None:
            return  # a reconnection time that came without an event
        exchange.events += 1
        if fields.event == "endpoint":
            yield from self._judge_endpoint(line, exchange, state)
        if fields.id:
            exchange.has_event_ids = True
            yield from self._judge_event_id(line, fields.id, exchange, state)
        elif exchange.is_modern and state.answers_modern(None):
            self.opportunities["SHM-13"] += 1

    def _judge_endpoint(
        self, line: TraceLine, exchange: SeenExchange, state: ConversationState
    ) -> Iterator[Finding]:
        state.has_endpoint, state.endpoint = True, line.raw or ""
        if exchange.events > 1:
            yield self._finding("SSE-2", state, SERVER, "the event `endpoint` is not the first one")
        elif not state.endpoint or any(each.isspace() for each in state.endpoint):
            yield self._finding("SSE-2", state, SERVER, "the event `endpoint` has no URI")
        else:
            self.opportunities["SSE-2"] += 1

    def _judge_event_id(
        self, line: TraceLine, id: str, exchange: SeenExchange, state: ConversationState
    ) -> Iterator[Finding]:
        if exchange.is_modern and state.answers_modern(None):
            revision = exchange.revisions[-1]
            yield self._finding("SHM-13", state, SERVER, "an event has an id", revision=revision)
            return
        text = line.raw or line.data
        is_first = exchange.method == "POST" and exchange.events == 1
        has_row = state.negotiated in ROWS["SHL-6"].revisions
        if is_first and has_row and state.session is not None:
            if text:
                yield self._finding(
                    "SHL-6",
                    state,
                    SERVER,
                    "the first event of a stream has data",
                    revision=state.negotiated,
                    is_certain=not state.gap,
                )
            else:
                self.opportunities["SHL-6"] += 1
        root = line.exchange
        if exchange.is_resumption:
            broken = state.events.get(text_key(exchange.headers["last-event-id"]))
            root = broken[1] if broken is not None else 0
        id = text_key(id)
        known = state.events.setdefault(id, (hash(text) if text else 0, root))
        if not known[0] and text:
            state.events[id] = hash(text), known[1]
        if exchange.is_resumption and root and known[1]:
            if known[1] == root:
                self.opportunities["SHL-19"] += 1
            else:
                yield self._finding(
                    "SHL-19",
                    state,
                    SERVER,
                    "a stream that is resumed has an event of another one",
                    is_certain=not state.gap,
                )
        # An event without data isn't a message: it moves the place at which a client resumes.
        if known[0] and text and known[0] != hash(text):
            yield self._finding(
                "SHL-16",
                state,
                SERVER,
                "two events of the session have one id",
                is_certain=not state.gap,
            )
        else:
            self.opportunities["SHL-16"] += 1
        if len(state.events) > MAX_EVENTS:
            state.events.popitem(last=False)
            state.has_all_events = False

    def _begin_again(self, state: ConversationState) -> ConversationState:
        fresh = ConversationState(state.number, observer=self._observer)
        fresh.gap, fresh.has_begun = state.gap, True
        fresh.is_ordered = state.is_ordered
        fresh.server_versions, fresh.given_states = self._server_versions, self._given_states
        fresh.exchanges, fresh.exchange = state.exchanges, state.exchange
        fresh.former_sessions = state.former_sessions
        if state.session is not None and len(fresh.former_sessions) < MAX_EXCHANGES:
            fresh.former_sessions.add(state.session)
        # Responses of the former session can still be on their way.
        fresh.open, fresh.tokens = state.open, state.tokens
        self._conversations[state.number] = fresh
        self._kept_bytes -= state.kept_bytes
        return fresh

    def _judge_text(self, line: TraceLine, state: ConversationState) -> Iterator[Finding]:
        sender = line.sender
        assert sender is not None
        text = line.raw
        if line.end not in (None, "complete") and _is_cut(line):
            state.lose("a message was cut off by the end of the stream")
            return
        if text is None:
            state.add_unreadable(sender)
            if not _hold("RPC-26", state.candidates(sender)):
                return  # of a revision that doesn't name an encoding
            yield self._finding("RPC-26", state, sender, "the message is not UTF-8")
            return
        self.opportunities["RPC-26"] += 1
        if not text or text.isspace():
            return  # an empty line is tolerated, and an event without data carries no message
        try:
            decoded = _decode(text)
        except _NotJson:
            state.add_unreadable(sender)
            yield from self._judge_junk(text, state, sender)
            return
        except (ValueError, RecursionError):
            state.add_unreadable(sender)
            state.lose("a message is too much for the parser of the judge")
            return
        if self._is_stdio:
            self.opportunities["STDIO-2" if sender == SERVER else "STDIO-3"] += 1
            self.opportunities["STDIO-1"] += 1
        if isinstance(decoded, list):
            yield from self._judge_batch(line, decoded, state)
        elif isinstance(decoded, dict):
            if _hold("RPC-25", state.candidates(sender)):
                self.opportunities["RPC-25"] += 1
            message = SeenMessage(decoded, self._line, line.t, sender)
            message.size = len(text)
            message.exchange = line.exchange
            message.redacted = line.redacted
            yield from self._judge_message(message, state)
        else:
            state.add_unreadable(sender)
            yield self._finding("RPC-1", state, sender, "a message is not an object")

    def _judge_junk(self, text: str, state: ConversationState, sender: Side) -> Iterator[Finding]:
        if not self._is_stdio:
            yield self._finding("RPC-1", state, sender, "a message is not JSON")
            return
        row = "STDIO-2" if sender == SERVER else "STDIO-3"
        yield self._finding(row, state, sender, "a line is not JSON")
        pieces = state.junk[sender]
        if text.lstrip()[:1] in ("{", "["):
            pieces.clear()  # the beginning of a message
        elif not pieces or len(pieces) >= _MAX_PIECES:
            return
        pieces.append(text)
        if sum(map(len, pieces)) > _MAX_PIECES_SIZE:
            pieces.clear()
        elif len(pieces) > 1 and _is_message("\n".join(pieces)):
            pieces.clear()
            yield self._finding("STDIO-1", state, sender, "a message is spread over several lines")

    def _judge_batch(
        self, line: TraceLine, members: list[Any], state: ConversationState
    ) -> Iterator[Finding]:
        sender = line.sender
        assert sender is not None
        revisions = state.candidates(sender)
        state.unreadable[sender] += 1
        if _hold("RPC-25", revisions):
            yield self._finding("RPC-25", state, sender, "a batch, which the revision has not")
        elif _hold("RPC-23", revisions):
            responses = [isinstance(each, dict) and "method" not in each for each in members]
            if not members:
                yield self._finding("RPC-23", state, sender, "the batch is empty")
            elif any(responses) and not all(responses):
                yield self._finding(
                    "RPC-23", state, sender, "the batch has requests as well as responses"
                )
            else:
                self.opportunities["RPC-23"] += 1
        for each in members:
            if isinstance(each, dict):
                message = SeenMessage(each, self._line, line.t, sender)
                message.size = len(line.raw or "") // len(members)
                message.exchange = line.exchange
                message.redacted = line.redacted
                message.in_batch = True
                yield from self._judge_message(message, state)
        state = self._conversations.get(line.conversation, state)
        is_clean = all(isinstance(each, dict) and "method" in each for each in members)
        # A receiver can have a limit for them.
        is_small = 0 < len(members) <= _SMALL_BATCH
        state.batches[sender] = self._line if is_small and is_clean else 0

    # -- Messages ----------------------------------------------------------------------------------

    def _judge_message(self, message: SeenMessage, state: ConversationState) -> Iterator[Finding]:
        self.messages += 1
        self.messages_from[message.sender] += 1
        if _begins_session(message, state):
            state = self._begin_again(state)
        state.prepare(message)
        if state.exchange is not None:
            _attach(message, state.exchange)
            if self._observer != CLIENT and _is_alone(message, state.exchange, state):
                state.lose("the requests of a client cannot be told from those of another one")
        method = message.method
        if message.kind == "response":
            method = message.request.method if message.request is not None else ""
        for rule, row in self._rules_for(message, method):
            outcome = rule.judge(message, state)
            if outcome is None:
                continue
            self.opportunities[row.id] += 1
            if outcome is not True:
                yield from self._failure(outcome, rule, row, message, state)
        yield from self._judge_shape(message, state)
        kept = state.kept_bytes
        state.receive(message)
        self._kept_bytes += state.kept_bytes - kept
        while self._kept_bytes > MAX_KEPT_BYTES and len(self._conversations) > 1:
            number = next(each for each in self._conversations if each != state.number)
            self._kept_bytes -= self._conversations.pop(number).kept_bytes

    def _rules_for(self, message: SeenMessage, method: str) -> list[tuple[Rule, Requirement]]:
        kind = message.kind
        if kind == "response":
            kind = "result" if message.result is not None else "error"
            if message.error is None and message.result is None:
                kind = "response"
        # One entry for all other methods, which are a peer's words.
        known = method if method in _JUDGED_METHODS else ""
        return _rules(kind, message.sender, known, message.revisions)

    def _judge_shape(self, message: SeenMessage, state: ConversationState) -> Iterator[Finding]:
        row, error = find_message_error(message)
        if row is None:
            return
        if error is None:
            self.opportunities[row] += 1
            return
        part = "result" if message.kind == "response" else "params"
        # The pointers are into the message.
        place = f"/{part}{error.pointer}"
        is_hidden = any(
            place.startswith(each) or each.startswith(place) for each in message.redacted
        )
        what = f"the {part} of "
        method = message.method or (message.request.method if message.request else "")
        where = f"{error.pointer} " if error.pointer else ""
        yield self._finding(
            row,
            state,
            message.sender,
            f"{what}{method}: {where}{error.text}",
            revision=message.revision,
            is_certain=not is_hidden,
        )

    def _failure(
        self,
        outcome: RuleFailure | str | bool,
        rule: Rule,
        row: Requirement,
        message: SeenMessage,
        state: ConversationState,
    ) -> Iterator[Finding]:
        failure = outcome if isinstance(outcome, RuleFailure) else RuleFailure(str(outcome))
        hidden = message.redacted or (message.request is not None and message.request.is_redacted)
        is_certain = failure.is_certain and not hidden
        reason = ""
        if rule.needs_history and state.gap:
            is_certain, reason = False, state.gap
        yield from self._report(
            row,
            state,
            failure.side or message.sender,
            failure.text + (f" ({reason})" if reason else ""),
            failure.lines,
            message.revision,
            is_certain,
        )

    def _close(self, state: ConversationState) -> Iterator[Finding]:
        for rule, row in _rules_on("close", state.candidates(CLIENT)):
            outcome = rule.judge(state)
            if outcome is None:
                continue
            self.opportunities[row.id] += 1
            if outcome is not True:
                failure = outcome if isinstance(outcome, RuleFailure) else RuleFailure(str(outcome))
                yield from self._report(
                    row,
                    state,
                    failure.side or CLIENT,
                    failure.text,
                    failure.lines,
                    state.negotiated,
                    failure.is_certain and not (rule.needs_history and state.gap),
                )

    def _report(
        self,
        row: Requirement,
        state: ConversationState,
        side: Side,
        text: str,
        lines: tuple[int, ...],
        revision: str,
        is_certain: bool,
    ) -> Iterator[Finding]:
        if not is_certain:
            # One cause can make every message inconclusive.
            key = (state.number, row.id, side)
            if key in self._inconclusive or len(self._inconclusive) > 10_000:
                return
            self._inconclusive.add(key)
        yield Finding(
            row=row.id,
            level=row.level,
            side=side,
            lines=(self._line, *lines),
            conversation=state.number,
            sentence=text,
            link=row.link(revision or state.negotiated or REVISIONS[-1]),
            is_certain=is_certain,
        )

    def _finding(
        self,
        id: str,
        state: ConversationState,
        side: Side,
        text: str,
        *,
        revision: str = "",
        is_certain: bool = True,
    ) -> Finding:
        """Return a finding of a rule that isn't in the table, and count its opportunity."""
        self.opportunities[id] += 1
        row = ROWS[id]
        return Finding(
            row=id,
            level=row.level,
            side=side,
            lines=(self._line,),
            conversation=state.number,
            sentence=text,
            link=row.link(revision or state.negotiated or REVISIONS[-1]),
            is_certain=is_certain,
        )


@cache
def _rules(
    kind: str, sender: str, method: str, revisions: Revisions
) -> list[tuple[Rule, Requirement]]:
    """Return the rules for a kind of message, with the row that each judges."""
    on = {"message", kind}
    if kind in ("result", "error"):
        on.add("response")
    if kind == "invalid":
        on.discard("message")
    found = []
    for rule in RULES:
        if rule.on not in on or rule.sender not in (None, sender):
            continue
        if rule.methods and method not in rule.methods:
            continue
        row = rule.row_for(revisions)
        if row is not None:
            found.append((rule, ROWS[row]))
    return found


@cache
def _hold(row: str, revisions: Revisions) -> bool:
    """Return True if a row holds in all of `revisions`."""
    return set(ROWS[row].revisions).issuperset(revisions)


def _begins_session(message: SeenMessage, state: ConversationState) -> bool:
    """True if a client asks for another session, rather than twice for the one that it has."""
    if message.method != "initialize" or state.exchange is None or not state.handshake_answered:
        return False
    sent = state.exchange.headers.get("mcp-session-id")
    return sent is None or sent != state.session


def _attach(message: SeenMessage, exchange: SeenExchange) -> None:
    """Add a message to its exchange, unless it is an event."""
    if message.sender == SERVER:
        if exchange.status and exchange.has_body:
            exchange.response = message
    elif len(exchange.messages) < _MAX_BATCH:
        exchange.messages.append(message)


_MAX_BATCH: Final = 100
_SMALL_BATCH: Final = 10
_MAX_PIECES: Final = 200  # lines of one message
_MAX_PIECES_SIZE: Final = 20_000  # characters


def _is_alone(message: SeenMessage, exchange: SeenExchange, state: ConversationState) -> bool:
    """Return True if what a client says of other messages came without a session."""
    if message.sender != CLIENT or message.is_modern or message.kind == "request":
        return False
    begun = state.initialize is not None or state.has_endpoint
    return not begun and SESSION not in exchange.headers


def _is_cut(line: TraceLine) -> bool:
    """Return True if a line's text is only the beginning of a message."""
    if line.raw is None:
        return True  # the end can be within a character
    if line.raw.lstrip()[:1] not in ("{", "["):
        return False
    try:
        _DECODER.decode(line.raw)
    except _NotJson:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _has_message(line: TraceLine) -> bool:
    """Return True if a line of an HTTP exchange should have a JSON-RPC message.

    The body of an error can be of a server in between, and other resources have other bodies.
    """
    if line.raw is None and line.data is None:
        return False
    if line.sse is not None:
        return line.sse.event in ("", "message")
    if line.http is None:
        return True
    kind = next((value for name, value in line.http.headers if name == "content-type"), "")
    if line.http.status and "json" not in kind.lower():
        return False
    return line.raw is not None and '"jsonrpc"' in line.raw


class _InvalidConstant(ValueError):
    """A constant of JavaScript that JSON doesn't have."""


# Other errors are limits: of nesting, and of the digits of a number.
_NotJson: Final = (json.JSONDecodeError, _InvalidConstant)


def _reject_constant(text: str) -> NoReturn:
    raise _InvalidConstant(f"{text} is no JSON")


@cache
def _rules_on(on: str, revisions: Revisions) -> list[tuple[Rule, Requirement]]:
    """Return the rules for heads and for ends, with the row that each judges."""
    rows = [(rule, rule.row_for(revisions)) for rule in RULES if rule.on == on]
    return [(rule, ROWS[row]) for rule, row in rows if row is not None]


def _decode(text: str) -> Any:
    """Return the value of a message's text.

    Raises:
        ValueError: it isn't JSON, or nested deeper than rules may walk, which encode and compare.
        RecursionError: it is nested deeper than Python decodes.
    """
    decoded = _DECODER.decode(text)
    if depth_exceeds(decoded):
        raise ValueError("nested too deeply")
    return decoded


def _is_message(text: str) -> bool:
    try:
        return isinstance(_DECODER.decode(text), dict)
    except (ValueError, RecursionError):
        return False


_DECODER: Final = json.JSONDecoder(parse_constant=_reject_constant)
