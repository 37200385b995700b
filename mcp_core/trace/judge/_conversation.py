"""The state of one conversation, as an observer of both sides sees it.

1. The state follows what was sent and believes neither side. It says what is known, and `gap` says
   why something may be missing. A rule that needs what is missing is inconclusive.
2. The order of messages in a trace is that of the observer. What one side had read when it sent a
   message is known only by `has_read`: it answered a request that was sent later.
3. Everything that grows has a bound. What falls out of a bound is a gap.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.protocol.revisions._methods import METHODS, Role
from mcp_core.trace._ids import GivenTexts, UsedIds, id_key, text_key
from mcp_core.trace._members import META, lookup

from ._revisions import (
    FACTS,
    MODERN,
    REVISIONS,
    STATEFUL,
    Revisions,
    are_modern,
    is_known,
    is_modern,
    is_stateful,
)
from ._seen import (
    CLIENT,
    MODERN_ERRORS,
    SERVER,
    SeenExchange,
    SeenList,
    SeenMessage,
    SeenRequest,
    SeenTask,
    Side,
    holds_until,
    other_side,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.protocol.revisions._methods import Method


__all__ = ["KNOWN_METHODS", "ConversationState", "find_method"]

MAX_OPEN: Final = 10_000  # requests without a response, of one side
MAX_ANSWERED: Final = 1_000  # responses that are remembered in full
MAX_ENTRIES: Final = 10_000  # tools, cursors, subscriptions, tasks and tokens, of each kind
MAX_ROUNDS: Final = 1_000  # `requestState`s that are remembered with their requests
MAX_ROUND_BYTES: Final = 65_536  # of a result that is remembered with its `requestState`
MAX_TASK_ID: Final = 1_024  # characters
MAX_EARLIER: Final = 100  # open requests with one id
MAX_TOOL_BYTES: Final = 8 * 1024 * 1024  # bytes of the pages of the last list of tools
MAX_LIST_BYTES: Final = 1024 * 1024  # bytes of the pages of a list whose names are remembered
# The member of the result of each list, and that of an entry which names it.
_LISTS: Final = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "roots/list": ("roots", "uri"),
    "tasks/list": ("tasks", "taskId"),
}
# Lists by the notification that they have changed.
_CHANGES: Final = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/roots/list_changed": ("roots/list",),
}
SMALL: Final = 4_096  # bytes of a message that is below every limit
_UNSUPPORTED_VERSION: Final = -32022
_SESSION: Final = "mcp-session-id"
_MAX_REJECTED: Final = 100  # versions


def _rows_by_name() -> dict[tuple[str, str, Side], Method]:
    return {
        (revision, name, other_side(CLIENT if role is Role.CLIENT else SERVER)): row
        for revision in REVISIONS
        for role in Role
        for name, row in DIALECTS[revision].receives[role].items()
    }


_ROWS: Final = _rows_by_name()
KNOWN_METHODS: Final = frozenset(row.name for row in METHODS)


def find_method(revision: str, name: str, sender: Side) -> Method | None:
    """Return a method's row, or None if `sender` may not send it in the revision."""
    return _ROWS.get((revision, name, sender))


class ConversationState:
    """The known facts of one conversation.

    Call `prepare` with a message before it is judged, and `receive` with it afterwards.

    Attributes:
        number: that of the trace.
        first_line: the line of its first message, 0 before that.
        is_from_start: the first message of the trace is known to be the first of the conversation.
        has_begun: it is known whether the trace has the beginning; `gap` says if it may not.
        is_ordered: each side reads what the other sends in one order, which HTTP doesn't promise.
        observer: the side at which the trace was recorded, or "between".
        gap: why messages may be missing, empty if none are.
        negotiated: the revision that a handshake selected, empty before.
        modern: the revisions without a handshake that the client has sent requests of.
        has_served_modern: the server has sent a result for one of them.
        has_client_message: a message of the client was seen.
        opened_otherwise: the first one wasn't a request of the revision without a handshake, by
            which a server of both kinds can choose how it serves the conversation.
        initialize: the request that began the handshake, or None.
        handshake_answered, initialized: the lines of its response and of `initialized`, 0 before.
        client_capabilities, server_capabilities: those of the handshake, None if unknown.
        discovered: the last result of `server/discover`, or None.
        open: the requests of each side that have no response, by id.
        answered: the last answered requests of each side, by id.
        dropped: the last requests of the client that only a status was given for, by id.
        used: all ids of the requests of each side.
        tokens: the requests of each side by progress token, open or not; `has_all_tokens` is False
            if some are missing.
        has_read: the line up to which each side has certainly read what the other sent.
        unreadable: how many messages of each side could not be read or are invalid.
        invalid_ids: the ids of those of them that have one: an error can repeat it.
        id_less_errors: how many errors without an id each side has sent, parse errors left out.
        large: how many messages of each side can be over a limit of the other one.
        last_kind: the kind of the last message of each side.
        tools, tools_line: the tools of the last complete list by name, None before such a list, and
            the line of its last page.
        compiled, annotations: schemas of the tools with what a rule has made of them, by identity.
        lists: the last complete lists, by method.
        changed: the line of the last notification that a list has changed, by its method.
        silent_changes: two lines and a time, by method: two lists that differ without such a
            notification between them or since.
        first_method: of the first request of the client.
        answered_version: the version that the server has selected in the handshake.
        server_versions: the versions that this server is known to support, in all conversations.
        rejected: of each version that the server rejected: the line, the time and `data.supported`.
        probe_error: the error of the last `server/discover`, or None.
        junk: lines of each side that can be pieces of one message.
        batches: the line of the last message of each side if that is a well-formed batch, else 0.
        last_line, last_time: of the last message.
        end_times: when each side ended a byte stream.
        exit: the status and the time of the end of the server's process, or None.
        cursors: the cursors that were given out, by method.
        ever_subscribed: a subscription was requested.
        log_level: the level of the last `logging/setLevel` and the line of its response, or None.
        tasks: the tasks by the side that runs them and their id.
        task_ids: the last two ids that each side has given out.
        exchanges: the last HTTP exchanges by number; `exchange` is that of the line being judged.
        ended_by: the side that was the first to end a byte stream, empty before that.
        has_endpoint, endpoint: an event has named an endpoint, so that the transport is HTTP+SSE;
            and its URL.
        session: the id of the session that the server has given, or None.
        former_sessions: those of sessions that have begun before it.
        ended_sessions: the ids of the sessions that the client has ended, with the line.
        lost_sessions: ids of sessions that were not found, with the line and the time.
        is_authorized: when a request with `Authorization` was served last, by path.
        denied: methods of requests without it that got the status 401 and asked for a token.
        events: the ids of the last events, with a hash of their message and the number of the
            exchange that first carried their stream; `has_all_events` is False if some are missing.
        request_states: the `requestState`s that the server has given out, and for which request:
            None if for several.
        given_states: those of all conversations of the trace.
    """

    def __init__(self, number: int, *, observer: str = "between") -> None:
        self.number = number
        self.observer = observer
        self.first_line = 0
        self.is_from_start = False
        self.has_begun = False
        self.is_ordered = True
        self.gap = ""
        self.negotiated = ""
        self.modern: Revisions = ()
        self.has_served_modern = False
        self.has_client_message = False
        self.opened_otherwise = False
        self.initialize: SeenRequest | None = None
        self.handshake_answered = 0
        self.initialized = 0
        self.client_capabilities: Mapping[str, Any] | None = None
        self.server_capabilities: Mapping[str, Any] | None = None
        self.discovered: Mapping[str, Any] | None = None
        self.open: dict[Side, OrderedDict[int | str, SeenRequest]] = {
            CLIENT: OrderedDict(),
            SERVER: OrderedDict(),
        }
        self.answered: dict[Side, OrderedDict[int | str, SeenRequest]] = {
            CLIENT: OrderedDict(),
            SERVER: OrderedDict(),
        }
        self.dropped: OrderedDict[int | str, SeenRequest] = OrderedDict()
        self.used: dict[Side, UsedIds] = {CLIENT: UsedIds(), SERVER: UsedIds()}
        self.tokens: dict[Side, OrderedDict[int | str, SeenRequest]] = {
            CLIENT: OrderedDict(),
            SERVER: OrderedDict(),
        }
        self.has_all_tokens = True
        self.has_read: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.unreadable: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.invalid_ids: dict[Side, UsedIds] = {CLIENT: UsedIds(), SERVER: UsedIds()}
        self.id_less_errors: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.large: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.last_kind: dict[Side, str] = {CLIENT: "", SERVER: ""}
        self.tools: dict[str, Mapping[str, Any]] | None = None
        self.compiled: dict[int, tuple[Any, Any]] = {}
        self.annotations: dict[int, tuple[Any, Any]] = {}
        self._discovered_until = self._tools_until = 0.0  # seconds
        self._listed_tools: dict[str, Mapping[str, Any]] = {}
        self._listed_bytes = 0
        self._kept_tools = 0
        self.lists: dict[str, SeenList] = {}
        self.changed: dict[str, int] = {}
        self.silent_changes: dict[str, tuple[int, int, float]] = {}
        self._pages: dict[str, list[Any]] = {}
        self._page_bytes: dict[str, int] = {}
        self._asked: dict[str, int] = {}  # the lines of the requests for the first pages
        self.first_method = ""
        self.answered_version: Any = None
        self.server_versions: set[str] = set()
        self.rejected: dict[str, tuple[int, float, list[Any]]] = {}
        self.probe_error: SeenMessage | None = None
        self.junk: dict[Side, list[str]] = {CLIENT: [], SERVER: []}
        self.batches: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.last_line = 0
        self.last_time = 0.0
        self.end_times: dict[Side, float] = {}
        self.exit: tuple[int, float] | None = None
        self.cursors: dict[str, set[str]] = {}
        self.cursor_scopes: dict[tuple[str, str], Any] = {}
        self.ever_subscribed = False
        self.log_level: tuple[str, int] | None = None
        self.tasks: OrderedDict[tuple[Side, str], SeenTask] = OrderedDict()
        self.task_ids: dict[Side, list[str]] = {CLIENT: [], SERVER: []}
        self.request_states: OrderedDict[str, SeenRequest | None] = OrderedDict()
        self.given_states = GivenTexts(is_complete=False)
        self.work_requests = 0
        self.exchanges: OrderedDict[int, SeenExchange] = OrderedDict()
        self.exchange: SeenExchange | None = None
        self.ended_by = ""
        self.has_endpoint = False
        self.endpoint = ""
        self.session: str | None = None
        self.former_sessions: set[str] = set()
        self.ended_sessions: dict[str, int] = {}
        self.lost_sessions: dict[str, tuple[int, float]] = {}
        self.is_authorized: dict[str, float] = {}
        self.denied: set[str] = set()
        self.events: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self.has_all_events = True
        self.tools_line = 0

    def __repr__(self) -> str:
        revisions = (self.negotiated,) if self.negotiated else self.modern or ("?",)
        return f"<ConversationState {self.number} {' '.join(revisions)}>"

    # -- Before a message is judged ----------------------------------------------------------------

    @property
    def is_modern(self) -> bool:
        """True if the client has sent a request of a revision without a handshake."""
        return bool(self.modern)

    def candidates(self, sender: Side) -> Revisions:
        """Return the revisions that a message without a sign of its own can be of.

        A client that speaks a revision without a handshake may be asking whether the server does.
        """
        is_modern = bool(self.modern) if sender == CLIENT else self.has_served_modern
        if self.modern and not is_modern and self.initialize is None:
            return STATEFUL + self.modern
        modern = self.modern if is_modern else ()
        if self.negotiated:
            return (self.negotiated, *modern)
        if self.initialize is not None:
            return STATEFUL + modern
        return modern or STATEFUL + MODERN

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
            key = id_key(message.id)
            if key is not None:
                message.request = self.open[other_side(sender)].get(key)
            request = message.request
            revisions = request.revisions if request is not None else self.candidates(sender)
            if request is not None and request.method == "initialize":
                revisions = self._revisions_of_handshake(message, request)
            if are_modern(revisions) and not self.answers_modern(message):
                revisions = STATEFUL + revisions  # of a server that may not know the revision
            if request is not None and request.earlier is not None:
                revisions = ()  # it can be the response to any of them
            method = request.method if request is not None else ""
            asked_by = other_side(sender)
        else:
            revisions = self._revisions_of(message)
            method, asked_by = message.method, sender
            is_of_server = sender == SERVER and META + "subscriptionId" not in message.meta
            if is_of_server and are_modern(revisions) and not self.answers_modern(None):
                revisions = STATEFUL + revisions  # the same as for its responses
        message.set_revisions(revisions)
        if method and revisions:
            message.row = _ROWS.get((revisions[-1], method, asked_by))

    def _begin(self, message: SeenMessage) -> None:
        """Find out whether the first messages show that nothing was before them."""
        self.has_begun = True
        if self.is_from_start:
            return
        method, key = message.method, id_key(message.id)
        if message.sender == SERVER:
            is_answer = message.kind == "response" and key in self.open[CLIENT]
            if is_answer or method == "notifications/message":
                self.has_begun = False
                return
        elif message.kind == "request":
            if method == "ping":
                self.has_begun = False
                return
            if method in ("initialize", "server/discover"):
                return
            if self.exchange is not None:
                if _SESSION not in self.exchange.headers:
                    return
            elif self.observer != "between" and META + "protocolVersion" in message.meta:
                return  # one of the two sides, which records its connection from the beginning
        self.lose("the trace may begin within the conversation")

    def answers_modern(self, response: SeenMessage | None) -> bool:
        """Return True if the server certainly speaks a revision without a handshake.

        A server of an earlier one can serve its requests, too: it ignores what it doesn't know.
        A server of both can choose by how a client opens the conversation. `response` can show it
        itself.
        """
        if self.has_served_modern:
            return True
        if not self.opened_otherwise and not self.server_versions.isdisjoint(MODERN):
            return True
        if response is None:
            return False
        if response.error is not None:
            return response.code in MODERN_ERRORS
        asked = response.request.method if response.request is not None else ""
        is_new = asked in KNOWN_METHODS and not any(
            (revision, asked, CLIENT) in _ROWS for revision in STATEFUL
        )
        return is_new or isinstance(lookup(response.result, "resultType"), str)

    def _revisions_of(self, message: SeenMessage) -> Revisions:
        version = message.meta.get(META + "protocolVersion")
        if isinstance(version, str) and message.sender == CLIENT:
            if message.method == "initialize" and message.kind == "request":
                return STATEFUL + MODERN  # a server of both eras can serve it as of either
            return (version,) if is_modern(version) else ()
        if message.method == "initialize":
            version = message.params.get("protocolVersion")
            return (version,) if is_stateful(version) else STATEFUL
        if message.kind == "notification":
            if META + "subscriptionId" in message.meta:
                return self.modern or MODERN
            if message.method == "notifications/progress":
                key = id_key(message.params.get("progressToken"))
                request = None
                if key is not None:
                    request = self.tokens[other_side(message.sender)].get(key)
                if request is not None:
                    return request.revisions
            if message.method == "notifications/cancelled" and message.sender == CLIENT:
                key = id_key(message.params.get("requestId"))
                if key is not None and key in self.open[CLIENT]:
                    return self.open[CLIENT][key].revisions
        if message.method == "ping" and message.sender == CLIENT and self.initialize is None:
            return STATEFUL + MODERN  # a server of all revisions can answer it as of an older one
        stream = self.exchange
        if message.sender == SERVER and stream is not None and len(stream.revisions) == 1:
            return stream.revisions  # it comes with the response to a request of that revision
        return self.candidates(message.sender)

    def _revisions_of_handshake(self, message: SeenMessage, request: SeenRequest) -> Revisions:
        if message.result is None:
            return request.revisions
        version = lookup(message.result, "protocolVersion")
        return (version,) if is_stateful(version) else STATEFUL

    # -- After a message was judged ----------------------------------------------------------------

    def receive(self, message: SeenMessage) -> None:
        """Change the state by a message that was prepared."""
        if not message.is_well_formed:
            self.unreadable[message.sender] += 1
            key = id_key(message.id)
            if key is not None:
                self.invalid_ids[message.sender].add(key)
        self.large[message.sender] += message.size > SMALL
        if message.sender == CLIENT and not self.has_client_message:
            self.has_client_message = True
            is_modern = message.is_modern and message.is_well_formed
            self.opened_otherwise = not message.exchange and not is_modern
        if message.kind == "request":
            self._receive_request(message)
        elif message.kind == "notification":
            self._receive_notification(message)
        elif message.kind == "response":
            self._receive_response(message)
            given = lookup(message.result, "requestState")
            if message.sender == SERVER and isinstance(given, str):
                self.given_states.add(given)
        self.last_kind[message.sender] = message.kind
        self.last_line, self.last_time = message.line, message.time
        if not message.in_batch:
            self.batches[message.sender] = 0

    def lose(self, reason: str) -> None:
        """Record that messages may be missing from here on."""
        self.gap = self.gap or reason
        self.given_states.is_complete = False

    def add_unreadable(self, sender: Side) -> None:
        """Record a text that isn't a message here. Another parser can read it."""
        self.unreadable[sender] += 1
        if sender == SERVER:
            self.given_states.is_complete = False
        elif not self.has_client_message:
            self.has_client_message, self.opened_otherwise = True, self.exchange is None

    def round_of(self, params: Mapping[str, Any]) -> SeenRequest | None:
        """Return the request whose `requestState` params repeat, or None if that is unknown."""
        found = params.get("requestState")
        return self.request_states.get(text_key(found)) if isinstance(found, str) else None

    def is_given_cursor(self, method: str, cursor: str) -> bool:
        """Return True if a page of a list had the cursor."""
        return text_key(cursor) in self.cursors.get(method, ())

    @property
    def kept_bytes(self) -> int:
        """About how many bytes of lists are remembered."""
        return self._kept_tools + self._listed_bytes + sum(self._page_bytes.values())

    def tool(self, name: Any) -> Mapping[str, Any] | None:
        """Return the tool of a name in the last complete list, or None if that is unknown."""
        return self.tools.get(name) if self.tools is not None and isinstance(name, str) else None

    def tool_of(self, request: SeenRequest) -> Mapping[str, Any] | None:
        """Return the tool of a call in a list that came before it, or None if that is unknown."""
        return self.tool(request.params.get("name")) if self.tools_line < request.line else None

    def capabilities(self, side: Side, message: SeenMessage) -> Mapping[str, Any] | None:
        """Return what `side` has declared at the time of `message`, or None if that is unknown."""
        if message.is_modern:
            if side == SERVER:
                found = lookup(self.discovered, "capabilities")
            else:
                request = message.request
                meta = message.meta if request is None else request.meta
                found = meta.get(META + "clientCapabilities")
            return found if isinstance(found, dict) else None
        if not all(FACTS[each].handshake for each in message.revisions):
            return None
        return self.server_capabilities if side == SERVER else self.client_capabilities

    def _receive_request(self, message: SeenMessage) -> None:
        sender = message.sender
        request = SeenRequest(message)
        if sender == CLIENT:
            self.first_method = self.first_method or message.method
        if message.is_modern:
            self.modern = tuple(each for each in MODERN if each in self.modern + message.revisions)
            if message.time > self._discovered_until:
                self.discovered = None
            if message.time > self._tools_until:
                self.tools = None
        elif message.method == "initialize" and sender == CLIENT:
            if self.initialize is None or not self.handshake_answered:
                self.initialize = request
        elif sender == CLIENT and self.handshake_answered and message.method != "ping":
            self.work_requests += 1
        key = id_key(message.id)
        if key is None:
            return
        request.earlier = self.open[sender].get(key)
        if request.earlier is not None:
            request.count = request.earlier.count + 1
            if request.count > MAX_EARLIER:
                request.earlier.earlier = None
                request.count = 2
                self.lose("there are too many open requests with one id to remember")
        self.used[sender].add(key)
        self.open[sender][key] = request
        if len(self.open[sender]) > MAX_OPEN:
            self.open[sender].popitem(last=False)
            self.lose("there are too many open requests to remember")
        if request.token is not None:
            same = self.tokens[sender].get(request.token)
            # Its progress can still be on its way, if it was cancelled.
            request.shares_token = same is not None and not same.answered
            self._put(self.tokens[sender], request.token, request)
            self.has_all_tokens = self.has_all_tokens and len(self.tokens[sender]) < MAX_ENTRIES
        if message.method == "resources/subscribe":
            self.ever_subscribed = True
        task = self.task_of(request)
        if task is not None:
            task.receive_request(message)

    def drop_request(self, message: SeenMessage) -> None:
        """Forget a request that has only a status for its response. It can be sent again."""
        key = id_key(message.id)
        request = None if key is None else self.open[message.sender].get(key)
        if key is None or request is None or request.line != message.line:
            return
        del self.open[message.sender][key]
        self._put(self.dropped, key, request, MAX_ANSWERED)
        if request.earlier is not None:
            self.open[message.sender][key] = request.earlier

    def task(self, owner: Side, id: Any) -> SeenTask | None:
        """Return the task of a side with an id, or None. Both sides can give out one id."""
        return self.tasks.get((owner, id)) if isinstance(id, str) else None

    def task_of(self, request: SeenRequest | SeenMessage) -> SeenTask | None:
        """Return the task that a request names, or None."""
        return self.task(other_side(request.sender), request.params.get("taskId"))

    def _receive_notification(self, message: SeenMessage) -> None:
        other = other_side(message.sender)
        if message.sender == SERVER and META + "subscriptionId" in message.meta:
            self.has_served_modern = self.has_served_modern or self.is_modern
        match message.method:
            case "notifications/initialized" if message.sender == CLIENT:
                self.initialized = self.initialized or message.line
            case "notifications/cancelled":
                self._receive_cancellation(message)
            case "notifications/progress":
                key = id_key(message.params.get("progressToken"))
                request = None if key is None else self.tokens[other].get(key)
                value = message.params.get("progress")
                if request is not None and isinstance(value, int | float):
                    request.progress, request.progress_line = value, message.line
                    request.progress_exchange = message.exchange
            case method if method in _CHANGES:
                if method == "notifications/tools/list_changed":
                    self.tools = None
                    self._listed_tools = {}
                for changed in _CHANGES[method]:
                    self.changed[changed] = message.line
                    self.silent_changes.pop(changed, None)
            case "notifications/subscriptions/acknowledged":
                key = id_key(message.meta.get(META + "subscriptionId"))
                request = None if key is None else self.open[CLIENT].get(key)
                if request is not None and not request.acknowledged:
                    request.acknowledged = message.line
            case "notifications/tasks/status" | "notifications/tasks":
                self._see_task(message, message.params)
            case _:
                pass

    def _receive_cancellation(self, message: SeenMessage) -> None:
        key = id_key(message.params.get("requestId"))
        if key is None:
            return
        # A server ends a subscription of its client with the same notification (2026-07-28).
        owner = message.sender
        request = self.open[owner].get(key)
        if request is None and message.sender == SERVER:
            request = self.open[CLIENT].get(key)
            if request is not None and request.method != "subscriptions/listen":
                request = None
        if request is not None and not request.cancelled:
            request.cancelled = message.line

    def _receive_response(self, message: SeenMessage) -> None:
        sender = message.sender
        # What a parser cannot read is a matter of the parser: another one can read it.
        is_parse_error = message.code == -32700
        if message.error is not None and message.id is None and not is_parse_error:
            self.id_less_errors[sender] += 1
        request = message.request
        if request is None:
            return
        other = other_side(sender)
        key = id_key(message.id)
        assert key is not None
        if request.earlier is not None:
            self.open[other][key] = request.earlier
            return
        del self.open[other][key]
        request.answered = message.line
        request.answer_exchange = message.exchange
        stream = self.exchange
        if stream is not None and message.exchange == request.exchange:
            stream.answered += 1
            stream.answered_time = message.time
        request.is_error = message.result is None
        if self.is_ordered:
            self.has_read[sender] = max(self.has_read[sender], request.line)
        self._put(self.answered[other], key, request, MAX_ANSWERED)
        task = self.task_of(request)
        if task is not None:
            task.receive_response(message, request)
        if message.result is not None:
            self._receive_result(message, request, message.result)
        elif message.error is not None:
            self._receive_error(message, request)

    def _receive_error(self, message: SeenMessage, request: SeenRequest) -> None:
        if request.method == "server/discover":
            self.probe_error = message
        version = request.meta.get(META + "protocolVersion")
        if message.code == _UNSUPPORTED_VERSION and isinstance(version, str):
            supported = lookup(message.error, "data", "supported")
            if isinstance(supported, list) and len(self.rejected) < _MAX_REJECTED:
                self.rejected[version] = message.line, message.time, supported

    def _receive_result(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        kind = result.get("resultType")
        if request.is_modern and self.answers_modern(message):
            self.has_served_modern = True
        if kind == "input_required":
            request.result = result if message.size <= MAX_ROUND_BYTES else None
            state = result.get("requestState")
            if isinstance(state, str):
                # A server can give the same state to several requests. A retry is of any of them,
                # but for one that goes on with the state that it has repeated.
                key = text_key(state)
                is_of_one = key not in self.request_states or (
                    self.request_states[key] is not None
                    and request.params.get("requestState") == state
                )
                self._put(self.request_states, key, request if is_of_one else None, MAX_ROUNDS)
            return
        match request.method:
            case "initialize" if request.sender == CLIENT:
                self._finish_handshake(message, request, result)
            case "server/discover":
                self.discovered, self._discovered_until = result, holds_until(message)
                self.probe_error = None
                versions = result.get("supportedVersions")
                for version in versions if isinstance(versions, list) else ():
                    self._add_version(version)
            case "logging/setLevel" if isinstance(request.params.get("level"), str):
                self.log_level = request.params["level"], message.line
            case method if method in _LISTS:
                self._receive_page(message, method, request, result)
            case _:
                pass
        task = result.get("task") if kind is None else result
        if (kind == "task" or (kind is None and "task" in request.params)) and isinstance(
            lookup(task, "taskId"), str
        ):
            self._add_task(message, request, task)
        elif request.method in ("tasks/get", "tasks/cancel"):
            self._see_task(message, result)

    def _finish_handshake(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        if self.handshake_answered:
            return
        self.handshake_answered = message.line
        self.negotiated = message.revision
        self.answered_version = result.get("protocolVersion")
        self._add_version(self.answered_version)
        found = result.get("capabilities")
        self.server_capabilities = found if isinstance(found, dict) else None
        found = request.params.get("capabilities")
        self.client_capabilities = found if isinstance(found, dict) else None

    def _add_version(self, version: Any) -> None:
        if is_known(version):
            self.server_versions.add(version)

    def completed_list(self, message: SeenMessage) -> SeenList | None:
        """Return the list whose last page `message` is, or None if its other pages are unknown."""
        request, result = message.request, message.result
        if request is None or result is None or request.method not in _LISTS:
            return None
        pages = self._pages.get(request.method)
        if result.get("nextCursor") is not None:
            return None
        if request.params.get("cursor") is None:
            pages = []
        elif pages is None:
            return None
        member, key = _LISTS[request.method]
        entries = result.get(member)
        if not isinstance(entries, list) or message.size > MAX_LIST_BYTES:
            return None
        asked = self._asked.get(request.method, 0) if pages else request.line
        return SeenList([*pages, *entries], key, message.line, asked)

    def _receive_list(self, message: SeenMessage, method: str, request: SeenRequest) -> None:
        """Remember a page, and the list if it is the last one."""
        found, previous = self.completed_list(message), self.lists.get(method)
        if found is not None:
            self._pages.pop(method, None)
            self._page_bytes.pop(method, None)
            self.lists[method] = found
            # The response that is under way when the list changes can be an old one.
            is_known = previous is not None and self.changed.get(method, 0) < previous.asked
            if previous is not None and is_known and set(previous.names) != set(found.names):
                self.silent_changes[method] = previous.line, message.line, message.time
            return
        entries = (message.result or {}).get(_LISTS[method][0])
        if request.params.get("cursor") is None:
            self._pages[method], self._page_bytes[method] = [], 0
            self._asked[method] = request.line
        self._page_bytes[method] = self._page_bytes.get(method, 0) + message.size
        if self._page_bytes[method] > MAX_LIST_BYTES or not isinstance(entries, list):
            self._pages.pop(method, None)
        elif method in self._pages:
            self._pages[method] += entries

    def _receive_page(
        self, message: SeenMessage, method: str, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        cursor, following = request.params.get("cursor"), result.get("nextCursor")
        if isinstance(following, str):
            following = text_key(following)
            cursors = self.cursors.setdefault(method, set())
            if len(cursors) < MAX_ENTRIES:
                scope = result.get("cacheScope")
                is_one = following not in cursors or self.cursor_scopes[method, following] == scope
                cursors.add(following)
                self.cursor_scopes[method, following] = scope if is_one else None  # of two listings
            else:
                self.lose("there are too many cursors to remember")
        self._receive_list(message, method, request)
        if method != "tools/list":
            return
        if cursor is None:
            self._listed_tools, self._listed_bytes = {}, 0
        self._listed_bytes += message.size
        if self._listed_bytes > MAX_TOOL_BYTES:
            self._listed_tools, self.tools = {}, None
            return
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            name = lookup(tool, "name")
            if isinstance(name, str) and len(self._listed_tools) < MAX_ENTRIES:
                self._listed_tools[name] = tool
        if following is None and (cursor is None or self._listed_tools):
            self.tools, self.tools_line = dict(self._listed_tools), message.line
            self._tools_until = holds_until(message)
            self._kept_tools = self._listed_bytes

    def _add_task(self, message: SeenMessage, request: SeenRequest, task: Any) -> None:
        id = task["taskId"]
        if len(id) > MAX_TASK_ID:
            return
        request.task = id
        self._put(self.tasks, (message.sender, id), SeenTask(task, message, request))
        self.task_ids[message.sender] = [*self.task_ids[message.sender][-1:], id]

    def _see_task(self, message: SeenMessage, view: Mapping[str, Any]) -> None:
        task = self.task(message.sender, view.get("taskId"))
        if task is not None:
            task.see(view, message)

    def is_one_stream(self, message: SeenMessage, exchange: int) -> bool:
        """Return True if `message` comes in the same order as one that `exchange` carried before.

        A stream that is resumed can repeat messages, but on another exchange.
        """
        return self.is_ordered or message.exchange == exchange != 0

    def follows(self, message: SeenMessage, line: int) -> bool:
        """Return True if what a message says is certainly newer than the line `line`.

        A response can say what was true when its request was read.
        """
        if message.request is None:
            return self.is_ordered
        return message.request.line > line

    def _put(
        self,
        table: OrderedDict[Any, Any],
        key: Any,
        value: Any,
        limit: int = MAX_ENTRIES,
    ) -> None:
        """Put an entry into a table, and drop the oldest if there are too many."""
        table[key] = value
        table.move_to_end(key)
        if len(table) > limit:
            table.popitem(last=False)
