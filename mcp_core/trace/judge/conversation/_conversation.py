"""The state of one conversation, as an observer of both sides sees it.

1. The state records what was sent, and trusts neither side. `gap` says why messages may be missing.
   A rule that needs them is then inconclusive.
2. A trace has the messages in the observer's order. A side has certainly read a message only once
   it has answered that message or a later request: `Requests.has_read`.
3. Everything that grows has a bound. An entry that is dropped because of a bound leaves a gap.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._ids import UsedIds, id_key
from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._message import MODERN_ERRORS, SeenRequest
from mcp_core.trace.judge._methods import find_method
from mcp_core.trace.judge._revisions import MODERN, STATEFUL, Revisions, are_modern, is_modern
from mcp_core.trace.judge._sides import CLIENT, SERVER, Side, other_side

from ._across import MARKED_METHODS, AcrossClients, Given, has_credentials
from ._http import SESSION, HttpState
from ._lists import CHANGES, LISTS, Lists
from ._negotiation import Negotiation, revisions_of_initialize
from ._requests import Requests
from ._rounds import Rounds
from ._tasks import TaskTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace._ids import GivenTexts
    from mcp_core.trace.judge._message import SeenMessage

    from ._http import SeenExchange

__all__ = ["ConversationState"]

_LONG: Final = 100  # characters of a method that are remembered
_SMALL: Final = 4_096  # bytes of a message that is below every limit


class ConversationState:
    """The known facts of one conversation.

    Call `prepare` with a message before it is judged, and `receive` with it afterwards.

    Args:
        number: its number in the trace.
        observer: the side at which the trace was recorded, or "between".
        is_from_start: the trace is known to begin with the conversation's first message.
        server_versions: see `Negotiation`.
        given_states: see `Rounds.given`.
        across: what all clients of the server have got; by default this conversation is alone.

    Attributes:
        negotiation, requests, lists, tasks, rounds, http, across: the state by subject.
        first_line: the line of its first message, 0 before that.
        has_begun: it is known whether the trace has the conversation's beginning. If it may be
            missing, that is a `gap`.
        is_ordered: each side reads what the other sends in one order, which HTTP doesn't promise.
        is_untimed: lines of it have no time.
        gap: why messages may be missing, empty if none are.
        unreadable: how many messages of each side could not be read or are invalid.
        invalid_ids: the ids of invalid messages, which an error can repeat.
        id_less_errors: how many errors without an id each side has sent, parse errors left out.
        large: how many messages of each side can be over a limit of the other side.
        last_kind: the kind of the last message of each side.
        last_time: the time of the last message.
        first_method: the method of the client's first request.
        early_request: the server's first request while the client's first one without a handshake
            was open: its method, its line, and for how long that was open. None before it.
        work_requests: how many requests the client has sent after the handshake, pings left out.
        ever_subscribed: a subscription was requested.
        log_level: the last level of `logging/setLevel` and the line of the response, or None.
        pieces: the last lines of each side that may together be one message.
        batches: the line of the last message of each side if that is a well-formed batch, else 0.
        ended_by: the side that was the first to end a byte stream, empty before that.
        end_times: when each side ended a byte stream.
        exit: the server process's exit status and time, or None.
    """

    def __init__(
        self,
        number: int,
        *,
        observer: str,
        is_from_start: bool,
        server_versions: set[str],
        given_states: GivenTexts,
        across: AcrossClients | None = None,
        is_ordered: bool = True,
    ) -> None:
        self.number = number
        self.observer = observer
        self.is_from_start = is_from_start
        self.negotiation = Negotiation(server_versions)
        self.requests = Requests()
        self.lists = Lists()
        self.tasks = TaskTable()
        self.rounds = Rounds(given_states)
        self.http = HttpState()
        self.across = across or AcrossClients()
        self.first_line = 0
        self.has_begun = False
        self.is_ordered = is_ordered
        self.is_untimed = False
        self.gap = ""
        self.unreadable: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.invalid_ids: dict[Side, UsedIds] = {CLIENT: UsedIds(), SERVER: UsedIds()}
        self.id_less_errors: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.large: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.last_kind: dict[Side, str] = {CLIENT: "", SERVER: ""}
        self.last_time = 0.0
        self.first_method = ""
        self.early_request: tuple[str, int, float] | None = None
        self.work_requests = 0
        self.ever_subscribed = False
        self.log_level: tuple[str, int] | None = None
        self.pieces: dict[Side, list[str]] = {CLIENT: [], SERVER: []}
        self.batches: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.ended_by = ""
        self.end_times: dict[Side, float] = {}
        self.exit: tuple[int, float] | None = None

    def __repr__(self) -> str:
        known = self.negotiation
        revisions = (known.selected,) if known.selected else known.modern or ("?",)
        return f"<ConversationState {self.number} {' '.join(revisions)}>"

    def begins_session(self, message: SeenMessage) -> bool:
        """Return True if a message begins another session, not the current one a second time."""
        exchange = self.http.exchange
        if message.method != "initialize" or exchange is None:
            return False
        if not self.negotiation.handshake_answered:
            return False
        sent = exchange.headers.get(SESSION)
        return sent is None or sent != self.http.session

    def next_session(self) -> ConversationState:
        """Return the state for the client's next session, which replaces this one."""
        following = ConversationState(
            self.number,
            observer=self.observer,
            is_from_start=False,
            server_versions=self.negotiation.server_versions,
            given_states=self.rounds.given,
            across=self.across,
        )
        following.gap, following.has_begun = self.gap, True
        following.is_ordered, following.is_untimed = self.is_ordered, self.is_untimed
        following.http = self.http.next_session()
        following.requests = self.requests.next_session()
        return following

    # -- Before a message is judged ----------------------------------------------------------------

    def prepare(self, message: SeenMessage) -> None:
        """Find the request, the revision and the row of `message`."""
        if not self.first_line:
            self.first_line = message.line
        if message.exchange:
            self.is_ordered = False
        if not self.has_begun:
            self._begin(message)
        sender = message.sender
        if message.kind == "response":
            request = message.request = self.requests.answered_by(message)
            revisions = self._revisions_of_response(message, request)
            method = request.method if request is not None else ""
            asked_by = other_side(sender)
        else:
            revisions = self._revisions_of(message)
            method, asked_by = message.method, sender
            is_of_server = sender == SERVER and META + "subscriptionId" not in message.meta
            if is_of_server and are_modern(revisions) and not self.negotiation.answers_modern(None):
                revisions = STATEFUL + revisions  # as for the server's responses
        message.set_revisions(revisions)
        if method and revisions:
            message.row = find_method(revisions[-1], method, asked_by)

    def _begin(self, message: SeenMessage) -> None:
        """Find out whether the first messages show that they begin the conversation."""
        self.has_begun = True
        if self.is_from_start:
            return
        method, key = message.method, id_key(message.id)
        if message.sender == SERVER:
            is_answer = message.kind == "response" and key in self.requests.open[CLIENT]
            if is_answer or method == "notifications/message":
                self.has_begun = False
                return
        elif message.kind == "request":
            if method == "ping":
                self.has_begun = False
                return
            if method in ("initialize", "server/discover"):
                return
            if self.http.exchange is not None:
                if SESSION not in self.http.exchange.headers:
                    return
            elif self.observer != "between" and META + "protocolVersion" in message.meta:
                return  # recorded by one side, from the connection's beginning
        self.lose("the trace may begin within the conversation")

    def _revisions_of(self, message: SeenMessage) -> Revisions:
        version = message.meta.get(META + "protocolVersion")
        if isinstance(version, str) and message.sender == CLIENT:
            if message.method == "initialize" and message.kind == "request":
                return STATEFUL + MODERN  # a server of both eras can choose either one
            if is_modern(version):
                return (version,)
            # Another version has its own rules. What all revisions say holds in it, too.
            return STATEFUL + MODERN
        if message.method == "initialize":
            return revisions_of_initialize(message.params)
        if message.kind == "notification":
            if META + "subscriptionId" in message.meta:
                return self.negotiation.modern or MODERN
            if message.method == "notifications/progress":
                request = self.requests.reported_by(message)
                if request is not None:
                    return request.revisions
            if message.method == "notifications/cancelled" and message.sender == CLIENT:
                key = id_key(message.params.get("requestId"))
                if key is not None and key in self.requests.open[CLIENT]:
                    return self.requests.open[CLIENT][key].revisions
        is_ping = message.method == "ping" and message.sender == CLIENT
        if is_ping and self.negotiation.initialize is None:
            return STATEFUL + MODERN  # a server of all revisions can choose an older one
        stream = self.http.exchange
        if message.sender == SERVER and stream is not None and len(stream.revisions) == 1:
            return stream.revisions  # the stream's request has that revision
        return self.negotiation.candidates(message.sender)

    def _revisions_of_response(
        self, message: SeenMessage, request: SeenRequest | None
    ) -> Revisions:
        if request is None:
            revisions = self.negotiation.candidates(message.sender)
        elif request.method == "initialize" and message.result is not None:
            revisions = revisions_of_initialize(message.result)
        else:
            revisions = request.revisions
        if request is not None and request.earlier is not None:
            return ()  # it can be the response to any of them
        if request is not None and request.names_other_version:
            return MODERN if message.code in MODERN_ERRORS else revisions
        if are_modern(revisions) and not self.negotiation.answers_modern(message):
            return STATEFUL + revisions  # the server may not know the revision
        return revisions

    # -- After a message was judged ----------------------------------------------------------------

    def receive(self, message: SeenMessage) -> None:
        """Update the state from a prepared message."""
        if not message.is_well_formed:
            self.unreadable[message.sender] += 1
            key = id_key(message.id)
            if key is not None:
                self.invalid_ids[message.sender].add(key)
        self.large[message.sender] += message.size > _SMALL
        if message.sender == CLIENT and not self.negotiation.has_client_message:
            is_modern = message.is_modern and message.is_well_formed
            self.negotiation.open(is_modern=is_modern or bool(message.exchange))
        if message.kind == "request":
            self._receive_request(message)
        elif message.kind == "notification":
            self._receive_notification(message)
        elif message.kind == "response":
            self._receive_response(message)
            given = lookup(message.result, "requestState")
            if message.sender == SERVER and isinstance(given, str):
                self.rounds.given.add(given)
        self.last_kind[message.sender] = message.kind
        self.last_time = message.time
        if not message.in_batch:
            self.batches[message.sender] = 0

    def receive_response_head(self, exchange: SeenExchange) -> None:
        """Update the state from the head of a judged HTTP response."""
        request = exchange.request
        is_unhandled = exchange.is_redirect or 400 <= exchange.status < 500
        if request is not None and is_unhandled and exchange.response is None:
            self.requests.drop(request)
            self.lists.receive_failure(request.method, request.line)
        self.http.receive_response(exchange)
        self.across.receive_response(exchange, self.number)

    def lose(self, reason: str) -> None:
        """Record that messages may be missing from here on."""
        self.gap = self.gap or reason
        self.rounds.given.is_complete = False

    def add_unreadable(self, sender: Side) -> None:
        """Record a text that isn't a message for this parser. Another parser may read it."""
        self.unreadable[sender] += 1
        if sender == SERVER:
            self.rounds.given.is_complete = False
        elif not self.negotiation.has_client_message:
            self.negotiation.open(is_modern=self.http.exchange is not None)

    def _receive_request(self, message: SeenMessage) -> None:
        request = SeenRequest(message)
        if message.sender == CLIENT:
            self.first_method = self.first_method or message.method
        elif self.negotiation.is_modern and not message.is_modern and self.early_request is None:
            asked = next(iter(self.requests.open[CLIENT].values()), None)
            if asked is not None:
                waited = message.time - asked.time
                self.early_request = message.method[:_LONG], message.line, waited
        if message.is_modern:
            self.negotiation.receive_modern_request(message, is_untimed=self.is_untimed)
            self.lists.expire(math.inf if self.is_untimed else message.time)
        elif message.method == "initialize" and message.sender == CLIENT:
            self.negotiation.receive_initialize(request)
        elif message.sender == CLIENT and message.method != "ping":
            self.work_requests += bool(self.negotiation.handshake_answered)
        key = id_key(message.id)
        if key is None:
            return
        gap = self.requests.add(request, key)
        if gap:
            self.lose(gap)
        if message.method in LISTS:
            self.lists.receive_request(message)
        if message.method == "resources/subscribe":
            self.ever_subscribed = True
        task = self.tasks.named_by(request)
        if task is not None:
            task.receive_request(message)

    def _receive_notification(self, message: SeenMessage) -> None:
        if message.sender == SERVER and META + "subscriptionId" in message.meta:
            known = self.negotiation
            known.has_served_modern = known.has_served_modern or known.is_modern
        match message.method:
            case "notifications/initialized" if message.sender == CLIENT:
                self.negotiation.initialized = self.negotiation.initialized or message.line
            case "notifications/cancelled":
                self.requests.cancel(message)
            case "notifications/progress":
                self.requests.report_progress(message)
            case method if method in CHANGES:
                self.lists.receive_change(message)
            case "notifications/subscriptions/acknowledged":
                self.requests.acknowledge(message)
            case "notifications/tasks/status" | "notifications/tasks":
                self.tasks.see(message, message.params)
            case _:
                pass

    def _receive_response(self, message: SeenMessage) -> None:
        # A parse error depends on the parser: another one may have read the message.
        is_parse_error = message.code == -32700
        if message.error is not None and message.id is None and not is_parse_error:
            self.id_less_errors[message.sender] += 1
        request = message.request
        if request is None or not self.requests.answer(message, request):
            return
        stream = self.http.exchange
        if stream is not None and message.exchange == request.exchange:
            stream.answered += 1
            stream.answered_time = message.time
        if self.is_ordered:
            self.requests.read_up_to(request)
        task = self.tasks.named_by(request)
        if task is not None:
            task.receive_response(message, request)
        if message.result is not None:
            self._receive_result(message, request, message.result)
        elif message.error is not None:
            self.negotiation.receive_error(message, request)
            self.lists.receive_failure(request.method, request.line)

    def _receive_result(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        exchange = self.http.exchange
        if exchange is not None and message.exchange == request.exchange:
            self.http.receive_result(exchange, message.line)
        kind = result.get("resultType")
        self.negotiation.receive_served_version(request)
        if request.is_modern and self.negotiation.answers_modern(message):
            self.negotiation.has_served_modern = True
        if kind == "input_required":
            self.rounds.receive(message, request, result)
            return
        method = request.method
        is_handshake = method == "initialize" and request.sender == CLIENT
        if is_handshake or method == "server/discover":
            self.negotiation.receive_result(message, request, result)
        elif method == "logging/setLevel" and isinstance(request.params.get("level"), str):
            # Over HTTP the server can have read two requests in either order.
            is_last = self.log_level is None or self.is_ordered or self.log_level[1] < request.line
            self.log_level = (request.params["level"], message.line) if is_last else None
        elif method in MARKED_METHODS and message.exchange:
            self.across.add_result(message, request, self.number)
        elif method in LISTS:
            gap = self.lists.receive_page(message, request, result, self.http.view)
            if gap:
                self.lose(gap)
        task: Any = result.get("task") if kind is None else result
        becomes_task = kind == "task" or (kind is None and "task" in request.params)
        if becomes_task and isinstance(lookup(task, "taskId"), str):
            self.tasks.add(message, request, task)
            if message.exchange and message.sender == SERVER:
                given = Given(self.number, message.line, has_credentials(self.http.exchange))
                self.across.add_task(task["taskId"], given)
        elif method in ("tasks/get", "tasks/cancel"):
            self.tasks.see(message, result)

    # -- The order of messages ---------------------------------------------------------------------

    def is_one_stream(self, message: SeenMessage, exchange: int) -> bool:
        """Return True if `message` certainly follows an earlier message that `exchange` carried.

        A resumed stream can repeat messages, but on another exchange.
        """
        return self.is_ordered or message.exchange == exchange != 0

    def follows(self, message: SeenMessage, line: int) -> bool:
        """Return True if a message's content is certainly newer than the line `line`.

        A response's content may be as old as its request.
        """
        if message.request is None:
            return self.is_ordered
        return message.request.line > line
