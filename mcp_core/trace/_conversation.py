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

from mcp_core.revisions._dialects import DIALECTS
from mcp_core.revisions._methods import METHODS, Role

from ._ids import UsedIds, id_key
from ._seen import (
    CLIENT,
    LETTER_OF,
    META,
    MODERN,
    SERVER,
    STATEFUL,
    SeenExchange,
    SeenMessage,
    SeenRequest,
    SeenTask,
    Side,
    lookup,
    other_side,
)
from .rows import LETTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.revisions._methods import Method


__all__ = ["KNOWN_METHODS", "ConversationState", "find_method"]

MAX_OPEN: Final = 10_000  # requests without a response, of one side
MAX_ANSWERED: Final = 1_000  # responses that are remembered in full
MAX_ENTRIES: Final = 10_000  # tools, cursors, subscriptions, tasks and tokens, of each kind
MAX_ROUNDS: Final = 1_000  # `requestState`s that are remembered with their requests
MAX_TOOL_BYTES: Final = 8 * 1024 * 1024  # bytes of the pages of the last list of tools
_LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tasks/list": "tasks",
}


def _rows_by_name() -> dict[tuple[str, str, Side], Method]:
    return {
        (letter, name, other_side(CLIENT if role is Role.CLIENT else SERVER)): row
        for letter, revision in LETTERS.items()
        for role in Role
        for name, row in DIALECTS[revision].receives[role].items()
    }


_ROWS: Final = _rows_by_name()
KNOWN_METHODS: Final = frozenset(row.name for row in METHODS)


def find_method(letter: str, name: str, sender: Side) -> Method | None:
    """Return the row of a method, or None if `sender` may not send it in the revision."""
    return _ROWS.get((letter, name, sender))


class ConversationState:
    """The known facts of one conversation.

    Call `prepare` with a message before it is judged, and `receive` with it afterwards.

    Attributes:
        number: that of the trace.
        first_line: the line of its first message, 0 before that.
        is_from_start: the first message of the trace is known to be the first of the conversation.
        is_ordered: each side reads what the other sends in one order, which HTTP does not promise.
        observer: the side at which the trace was recorded, or "between".
        gap: why messages may be missing, empty if none are.
        negotiated: the letter of the revision that a handshake selected, empty before.
        is_modern, has_served_modern: the client has sent a request without a handshake, and the
            server a result for one.
        initialize: the request that began the handshake, or None.
        handshake_answered, initialized: the lines of its response and of `initialized`, 0 before.
        client_capabilities, server_capabilities: those of the handshake, None if unknown.
        discovered: the last result of `server/discover`, or None.
        open: the requests of each side that have no response, by id.
        answered: the last answered requests of each side, by id.
        used: all ids of the requests of each side.
        tokens: the requests of each side by progress token, open or not.
        has_read: the line up to which each side has certainly read what the other sent.
        unreadable: how many messages of each side could not be read or are invalid.
        id_less_errors: how many errors without an id each side has sent, parse errors left out.
        last_kind: the kind of the last message of each side.
        tools: the tools of the last complete list by name, None if there was none.
        compiled: schemas of the tools with what a rule has made of them, by identity.
        cursors: the cursors that were given out, by method.
        subscribed: the URIs of `resources/subscribe` with the line of its response.
        ever_subscribed: a subscription was requested.
        log_level: the level of the last `logging/setLevel` and the line of its response, or None.
        tasks: the tasks by id.
        exchanges: the last HTTP exchanges by number; `exchange` is that of the line being judged.
        session: the id of the session that the server has given, or None.
        ended_sessions: the ids of the sessions that the client has ended.
        events: the ids of the last events, with a hash of their message.
        request_states: the `requestState`s that the server has given out, and for which request.
    """

    def __init__(self, number: int, *, observer: str = "between") -> None:
        self.number = number
        self.observer = observer
        self.first_line = 0
        self.is_from_start = False
        self.is_ordered = True
        self.gap = ""
        self.negotiated = ""
        self.is_modern = False
        self.has_served_modern = False
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
        self.used: dict[Side, UsedIds] = {CLIENT: UsedIds(), SERVER: UsedIds()}
        self.tokens: dict[Side, OrderedDict[int | str, SeenRequest]] = {
            CLIENT: OrderedDict(),
            SERVER: OrderedDict(),
        }
        self.has_read: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.unreadable: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.id_less_errors: dict[Side, int] = {CLIENT: 0, SERVER: 0}
        self.last_kind: dict[Side, str] = {CLIENT: "", SERVER: ""}
        self.tools: dict[str, Mapping[str, Any]] | None = None
        self.compiled: dict[int, tuple[Any, Any]] = {}
        self._listed_tools: dict[str, Mapping[str, Any]] = {}
        self._listed_bytes = 0
        self.cursors: dict[str, set[str]] = {}
        self.cursor_scopes: dict[tuple[str, str], Any] = {}
        self.subscribed: dict[str, int] = {}
        self.ever_subscribed = False
        self.log_level: tuple[str, int] | None = None
        self.tasks: OrderedDict[str, SeenTask] = OrderedDict()
        self.request_states: OrderedDict[str, SeenRequest] = OrderedDict()
        self.work_requests = 0
        self.exchanges: OrderedDict[int, SeenExchange] = OrderedDict()
        self.exchange: SeenExchange | None = None
        self.session: str | None = None
        self.ended_sessions: set[str] = set()
        self.events: OrderedDict[str, int] = OrderedDict()

    def __repr__(self) -> str:
        revision = LETTERS.get(self.negotiated) or (LETTERS[MODERN] if self.is_modern else "?")
        return f"<ConversationState {self.number} {revision}>"

    # -- Before a message is judged ----------------------------------------------------------------

    def candidates(self, sender: Side) -> str:
        """Return the letters of the revisions that a message without a sign of its own can be of.

        A client that speaks the newest revision may be asking whether the server does.
        """
        is_modern = self.is_modern if sender == CLIENT else self.has_served_modern
        if self.is_modern and not is_modern and self.initialize is None:
            return STATEFUL + MODERN
        modern = MODERN if is_modern else ""
        if self.negotiated:
            return self.negotiated + modern
        if self.initialize is not None:
            return STATEFUL + modern
        return modern or STATEFUL + MODERN

    def prepare(self, message: SeenMessage) -> None:
        """Find the request, the revision and the row of `message`."""
        if not self.first_line:
            self.first_line = message.line
        if message.exchange:
            self.is_ordered = False
        sender = message.sender
        if message.kind == "response":
            key = id_key(message.id)
            if key is not None:
                message.request = self.open[other_side(sender)].get(key)
            request = message.request
            message.letters = request.letters if request is not None else self.candidates(sender)
            if request is not None and request.method == "initialize":
                message.letters = self._letters_of_handshake(message, request)
            if request is not None and request.earlier is not None:
                message.letters = ""  # it can be the response to any of them
            method = request.method if request is not None else ""
            asked_by = other_side(sender)
        else:
            message.letters = self._letters_of(message)
            method, asked_by = message.method, sender
        if method and message.letters:
            message.row = _ROWS.get((message.letters[-1], method, asked_by))

    def _letters_of(self, message: SeenMessage) -> str:
        version = message.meta.get(META + "protocolVersion")
        if isinstance(version, str) and message.sender == CLIENT:
            return MODERN if LETTER_OF.get(version) == MODERN else ""
        if message.method == "initialize":
            version = message.params.get("protocolVersion")
            requested = LETTER_OF.get(version, "") if isinstance(version, str) else ""
            return requested if requested in STATEFUL and requested else STATEFUL
        if message.kind == "notification":
            if META + "subscriptionId" in message.meta:
                return MODERN
            if message.method == "notifications/progress":
                key = id_key(message.params.get("progressToken"))
                request = None
                if key is not None:
                    request = self.tokens[other_side(message.sender)].get(key)
                if request is not None:
                    return request.letters
            if message.method == "notifications/cancelled" and message.sender == CLIENT:
                key = id_key(message.params.get("requestId"))
                if key is not None and key in self.open[CLIENT]:
                    return self.open[CLIENT][key].letters
        return self.candidates(message.sender)

    def _letters_of_handshake(self, message: SeenMessage, request: SeenRequest) -> str:
        version = lookup(message.result, "protocolVersion")
        letter = LETTER_OF.get(version, "") if isinstance(version, str) else ""
        if message.result is None:
            return request.letters
        return letter if letter and letter in STATEFUL else STATEFUL

    # -- After a message was judged ----------------------------------------------------------------

    def receive(self, message: SeenMessage) -> None:
        """Change the state by a message that was prepared."""
        if not message.is_well_formed:
            self.unreadable[message.sender] += 1
        if message.kind == "request":
            self._receive_request(message)
        elif message.kind == "notification":
            self._receive_notification(message)
        elif message.kind == "response":
            self._receive_response(message)
        self.last_kind[message.sender] = message.kind

    def lose(self, reason: str) -> None:
        """Record that messages may be missing from here on."""
        self.gap = self.gap or reason

    def tool(self, name: Any) -> Mapping[str, Any] | None:
        """Return the tool of a name in the last complete list, or None if that is unknown."""
        return self.tools.get(name) if self.tools is not None and isinstance(name, str) else None

    def capabilities(self, side: Side, message: SeenMessage) -> Mapping[str, Any] | None:
        """Return what `side` has declared at the time of `message`, or None if that is unknown."""
        if message.letters == MODERN:
            if side == SERVER:
                found = lookup(self.discovered, "capabilities")
            else:
                request = message.request
                meta = message.meta if request is None else request.meta
                found = meta.get(META + "clientCapabilities")
            return found if isinstance(found, dict) else None
        if MODERN in message.letters:
            return None
        return self.server_capabilities if side == SERVER else self.client_capabilities

    def _receive_request(self, message: SeenMessage) -> None:
        sender = message.sender
        request = SeenRequest(message)
        if message.letters == MODERN:
            self.is_modern = True
        elif message.method == "initialize" and sender == CLIENT:
            if self.initialize is None or not self.handshake_answered:
                self.initialize = request
        elif message.method != "ping":
            self.work_requests += 1
        key = id_key(message.id)
        if key is None:
            return
        request.earlier = self.open[sender].get(key)
        self.used[sender].add(key)
        self.open[sender][key] = request
        if len(self.open[sender]) > MAX_OPEN:
            self.open[sender].popitem(last=False)
            self.lose("there are too many open requests to remember")
        if request.token is not None:
            self._put(self.tokens[sender], request.token, request)
        if message.method == "resources/subscribe":
            self.ever_subscribed = True
        task = message.params.get("taskId")
        if message.method == "tasks/update" and isinstance(task, str) and task in self.tasks:
            responses = message.params.get("inputResponses")
            if isinstance(responses, dict):
                self.tasks[task].answered.update(responses)

    def _receive_notification(self, message: SeenMessage) -> None:
        other = other_side(message.sender)
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
            case "notifications/tools/list_changed":
                self.tools = None
                self._listed_tools = {}
            case "notifications/subscriptions/acknowledged":
                key = id_key(message.meta.get(META + "subscriptionId"))
                request = None if key is None else self.open[CLIENT].get(key)
                if request is not None and not request.acknowledged:
                    request.acknowledged = message.line
                    found = message.params.get("notifications")
                    request.filter = found if isinstance(found, dict) else {}
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
        request.is_error = message.result is None
        if self.is_ordered:
            self.has_read[sender] = max(self.has_read[sender], request.line)
        self._put(self.answered[other], key, request, MAX_ANSWERED)
        if message.result is not None:
            self._receive_result(message, request, message.result)

    def _receive_result(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        kind = result.get("resultType")
        if request.letters == MODERN and isinstance(kind, str):
            self.has_served_modern = True
        if kind == "input_required":
            request.result = result
            state = result.get("requestState")
            if isinstance(state, str):
                self._put(self.request_states, state, request, MAX_ROUNDS)
            return
        uri = request.params.get("uri")
        match request.method:
            case "initialize" if request.sender == CLIENT:
                self._finish_handshake(message, request, result)
            case "server/discover":
                self.discovered = result
            case "resources/subscribe" if isinstance(uri, str):
                if len(self.subscribed) < MAX_ENTRIES:
                    self.subscribed[uri] = message.line
            case "resources/unsubscribe" if isinstance(uri, str):
                self.subscribed.pop(uri, None)
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
        self.negotiated = message.letter
        found = result.get("capabilities")
        self.server_capabilities = found if isinstance(found, dict) else None
        found = request.params.get("capabilities")
        self.client_capabilities = found if isinstance(found, dict) else None

    def _receive_page(
        self, message: SeenMessage, method: str, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        cursor, following = request.params.get("cursor"), result.get("nextCursor")
        if isinstance(following, str):
            cursors = self.cursors.setdefault(method, set())
            if len(cursors) < MAX_ENTRIES:
                cursors.add(following)
                self.cursor_scopes[method, following] = result.get("cacheScope")
            else:
                self.lose("there are too many cursors to remember")
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
            self.tools = dict(self._listed_tools)

    def _add_task(self, message: SeenMessage, request: SeenRequest, task: Any) -> None:
        id, status = task["taskId"], task.get("status")
        request.task = id
        self._put(
            self.tasks,
            id,
            SeenTask(id, message.sender, request, message.line, status or ""),
        )

    def _see_task(self, message: SeenMessage, view: Mapping[str, Any]) -> None:
        task = self.tasks.get(view.get("taskId") or "") if _has_text(view, "taskId") else None
        if task is None:
            return
        status = view.get("status")
        if isinstance(status, str):
            task.status, task.line = status, message.line
        requests = view.get("inputRequests")
        if isinstance(requests, dict) and len(task.keys) < MAX_ENTRIES:
            task.keys.update(requests)

    def _put(
        self,
        table: OrderedDict[Any, Any],
        key: int | str,
        value: Any,
        limit: int = MAX_ENTRIES,
    ) -> None:
        """Put an entry into a table, and drop the oldest if there are too many."""
        table[key] = value
        table.move_to_end(key)
        if len(table) > limit:
            table.popitem(last=False)


def _has_text(value: Mapping[str, Any], key: str) -> bool:
    return isinstance(value.get(key), str)
