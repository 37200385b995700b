"""Rules for cancellation, progress, log messages, pages, completion and caching hints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core.trace._ids import id_key, text_key
from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._sides import CLIENT, SERVER, other_side
from mcp_core.types import LOGGING_LEVELS

from ._registry import RuleFailure, rule
from ._values import show

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage, SeenRequest
    from mcp_core.trace.judge.conversation._conversation import ConversationState

    from ._registry import Outcome

_LOG_LEVEL: Final = META + "logLevel"
CACHEABLE: Final = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tasks/list": "tasks",
}


# -- Cancellation ----------------------------------------------------------------------------------


@rule("CXL-2", on="notification", methods=("notifications/cancelled",), needs_history=True)
@rule(
    "CXL-3",
    on="notification",
    sender=CLIENT,
    methods=("notifications/cancelled",),
    needs_history=True,
)
def cancellation_names_own_request(message: SeenMessage, state: ConversationState) -> Outcome:
    key = id_key(message.params.get("requestId"))
    if key is None:
        return None
    # The request may have been answered meanwhile: the specification allows this race.
    if key in state.requests.used[message.sender]:
        return True
    if not state.requests.used[message.sender].is_complete or state.unreadable[message.sender]:
        return None  # the peer's parser may read what the judge's couldn't
    return f"it cancels {show(message.params['requestId'])}, which the {message.sender} never sent"


@rule(
    "CXL-4",
    on="notification",
    sender=CLIENT,
    methods=("notifications/cancelled",),
    needs_history=True,
)
def initialize_is_not_cancelled(message: SeenMessage, state: ConversationState) -> Outcome:
    if state.negotiation.initialize is None:
        return None
    key = id_key(message.params.get("requestId"))
    if key is None or key != id_key(state.negotiation.initialize.id):
        return True if key is not None else None
    return RuleFailure("it cancels initialize", (state.negotiation.initialize.line,))


@rule("CXL-5", "TX-18", on="notification", methods=("notifications/cancelled",), needs_history=True)
def task_is_not_cancelled_by_notification(
    message: SeenMessage, state: ConversationState
) -> Outcome:
    key = id_key(message.params.get("requestId"))
    if key is None:
        return None
    request = state.requests.answered[message.sender].get(key)
    if request is None or request.task is None:
        return key in state.requests.open[message.sender] or None
    # The cancellation can have crossed the response, unless its sender has used the task's id.
    task = state.tasks.find(other_side(request.sender), request.task)
    knows = task is not None and task.line > request.answered
    return RuleFailure(
        f"it cancels the request of task {show(request.task)}, which has its result",
        (request.line, request.answered),
        is_certain=knows,
    )


@rule("CXL-7", "CXL-6", on="response", needs_history=True)
def cancelled_request_is_not_answered(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if request is None or not request.cancelled or request.method == "subscriptions/listen":
        return None
    # A response that crossed the cancellation is legal.
    if state.requests.has_read[message.sender] <= request.cancelled:
        return True
    # Before 2026-07-28 a receiver may ignore the cancellation of what it cannot cancel (CXL-8).
    return RuleFailure(
        "a response to a request whose cancellation was read before",
        (request.line, request.cancelled),
        is_certain=message.is_modern,
    )


@rule(
    "CXL-7",
    on="notification",
    sender=SERVER,
    methods=("notifications/progress",),
    needs_history=True,
)
def cancelled_request_has_no_progress(message: SeenMessage, state: ConversationState) -> Outcome:
    request = _request_of_token(message, state)
    if request is None or not request.cancelled or request.answered:
        return None
    if state.requests.has_read[SERVER] <= request.cancelled:
        return True
    return RuleFailure(
        "progress of a request whose cancellation was read before",
        (request.line, request.cancelled),
    )


@rule(
    "CXL-17",
    on="notification",
    sender=SERVER,
    methods=("notifications/cancelled",),
    needs_history=True,
)
def server_cancels_subscriptions_only(message: SeenMessage, state: ConversationState) -> Outcome:
    key = id_key(message.params.get("requestId"))
    if key is None:
        return None
    request = state.requests.find(CLIENT, key)
    if request is None:
        if key in state.requests.used[CLIENT] or state.unreadable[CLIENT]:
            return None
        return f"it names {show(message.params['requestId'])}, which is no request of the client"
    return request.method == "subscriptions/listen" or RuleFailure(
        f"it names the request {request.method}", (request.line,)
    )


# -- Progress --------------------------------------------------------------------------------------


def _request_of_token(message: SeenMessage, state: ConversationState) -> SeenRequest | None:
    key = id_key(message.params.get("progressToken"))
    request = None if key is None else state.requests.tokens[other_side(message.sender)].get(key)
    return None if request is None or request.shares_token else request


@rule("PROG-2", on="request", needs_history=True)
def token_is_unique(message: SeenMessage, state: ConversationState) -> Outcome:
    if "progressToken" not in message.meta:
        return None
    token = message.meta["progressToken"]
    key = id_key(token)
    if key is None:
        return f"the progress token is {show(token)}"
    earlier = state.requests.tokens[message.sender].get(key)
    if earlier is None or earlier.answered or earlier.cancelled or earlier.task:
        return True
    if not state.is_ordered:
        return None
    return RuleFailure(
        f"the progress token {show(token)} is that of an open request", (earlier.line,)
    )


@rule("PROG-3", on="notification", methods=("notifications/progress",), needs_history=True)
def token_is_known(message: SeenMessage, state: ConversationState) -> Outcome:
    token = message.params.get("progressToken")
    if id_key(token) is None:
        return None
    if message.sender == CLIENT and message.is_modern:
        return None  # PROG-8
    if id_key(token) in state.requests.tokens[other_side(message.sender)]:
        return True
    if state.unreadable[other_side(message.sender)] or not state.requests.has_all_tokens:
        return None  # the peer's parser may read what the judge's couldn't
    return f"no request has the progress token {show(token)}"


@rule("PROG-4", on="notification", methods=("notifications/progress",), needs_history=True)
def progress_increases(message: SeenMessage, state: ConversationState) -> Outcome:
    request, value = _request_of_token(message, state), message.params.get("progress")
    if request is None or request.progress is None or request.answered:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not state.is_one_stream(message, request.progress_exchange):
        return None  # a resumed stream can repeat messages
    return value > request.progress or RuleFailure(
        f"the progress is {show(value)} after {show(request.progress)}",
        (request.line, request.progress_line),
    )


@rule("PROG-5", on="notification", methods=("notifications/progress",), needs_history=True)
def progress_ends_with_the_response(message: SeenMessage, state: ConversationState) -> Outcome:
    request = _request_of_token(message, state)
    if request is None:
        return None
    if not request.answered:
        return True
    if not state.is_one_stream(message, request.answer_exchange):
        return None
    if request.task is not None:
        task = state.tasks.find(other_side(request.sender), request.task)
        if message.is_modern or task is None:
            return None  # PROG-7
        if task.status not in FINAL:
            return True
        return RuleFailure(f"progress of a task that is {task.status}", (request.line, task.line))
    return RuleFailure("progress after the response", (request.line, request.answered))


FINAL: Final = ("completed", "failed", "cancelled")


@rule(
    "PROG-7",
    on="notification",
    sender=SERVER,
    methods=("notifications/progress",),
    needs_history=True,
)
def task_has_no_progress(message: SeenMessage, state: ConversationState) -> Outcome:
    request = _request_of_token(message, state)
    if request is None:
        return None
    if request.task is None:
        return True
    return RuleFailure("progress of a task", (request.line, request.answered))


@rule("PROG-8", on="notification", sender=CLIENT, methods=("notifications/progress",))
def client_sends_no_progress(message: SeenMessage, state: ConversationState) -> Outcome:
    return "the client sends progress"


@rule("PROG-8", on="notification", sender=SERVER, methods=("notifications/progress",))
def server_sends_progress(message: SeenMessage, state: ConversationState) -> Outcome:
    return True


# -- Log messages ----------------------------------------------------------------------------------


@rule(
    "LOG-3",
    on="notification",
    sender=SERVER,
    methods=("notifications/message",),
    needs_history=True,
)
def level_is_respected(message: SeenMessage, state: ConversationState) -> Outcome:
    level = message.params.get("level")
    if state.log_level is None:
        return None
    wanted, line = state.log_level
    if level not in LOGGING_LEVELS or wanted not in LOGGING_LEVELS:
        return None
    if any(
        request.method == "logging/setLevel" for request in state.requests.open[CLIENT].values()
    ):
        return None  # the level may be changing
    if not state.is_ordered:
        # A message on the stream of a request that was sent once the level was set.
        exchange = state.http.exchange
        if exchange is None or exchange.request is None or exchange.request.line < line:
            return None
        if not state.http.is_in_session:
            return None
    return LOGGING_LEVELS.index(level) >= LOGGING_LEVELS.index(wanted) or RuleFailure(
        f"a message of level {level} after the level {wanted} was set", (line,)
    )


@rule("LOG-5", on="result", sender=SERVER, methods=("logging/setLevel",))
def unknown_level_is_rejected(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.request is not None
    level = message.request.params.get("level")
    if not isinstance(level, str) or level in LOGGING_LEVELS:
        return None
    return RuleFailure(f"the unknown level {show(level)} is accepted", (message.request.line,))


@rule(
    "LOG-7",
    on="notification",
    sender=SERVER,
    methods=("notifications/message",),
    needs_history=True,
)
def log_messages_are_requested(message: SeenMessage, state: ConversationState) -> Outcome:
    if state.http.exchange is not None:
        asked = state.http.exchange.request
        if asked is None or asked.method == "subscriptions/listen":
            return None  # LOG-9
        return _LOG_LEVEL in asked.meta or (
            f'a log message, and its request has no `_meta["{_LOG_LEVEL}"]`'
        )
    if not state.is_ordered:
        return None
    if any(_LOG_LEVEL in request.meta for request in state.requests.open[CLIENT].values()):
        return True
    if any(_LOG_LEVEL in request.meta for request in state.requests.answered[CLIENT].values()):
        return None  # the log message can be late
    return f'a log message, and no open request has `_meta["{_LOG_LEVEL}"]`'


@rule("LOG-10", on="response", sender=SERVER)
def unknown_requested_level_is_rejected(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.request is None or _LOG_LEVEL not in message.request.meta:
        return None
    level = message.request.meta[_LOG_LEVEL]
    if level in LOGGING_LEVELS or level is None:  # some readers take null for an absent member
        return None
    if message.result is None:
        return True if message.code == -32602 else None
    return RuleFailure(f"the unknown level {show(level)} is accepted", (message.request.line,))


# -- Pages -----------------------------------------------------------------------------------------


@rule("PAGE-1", on="result", methods=tuple(LISTS))
def page_moves_on(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    assert message.request is not None
    cursor, following = message.request.params.get("cursor"), message.result.get("nextCursor")
    if cursor is None or not isinstance(following, str):
        return None
    items = message.result.get(LISTS[message.request.method])
    if following != cursor or not items:
        return True
    return RuleFailure(
        f"`nextCursor` {show(following)} is the cursor of this page, which has entries",
        (message.request.line,),
    )


@rule("PAGE-1", on="result", methods=tuple(LISTS), needs_history=True)
def pages_come_to_an_end(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.request is not None
    assert message.result is not None
    method, lists = message.request.method, state.lists
    cursor, following = message.request.params.get("cursor"), message.result.get("nextCursor")
    if not isinstance(cursor, str) or not isinstance(following, str) or following == cursor:
        return None  # judged above
    listing = lists.find_listing(message.request)
    if listing is None:
        return None  # other pages are between the ones before and this one
    circle = listing.find_circle(cursor, following)
    if circle is None or not message.result.get(LISTS[method]):
        return True
    # An entry that moves while the list is read can lead back once.
    return RuleFailure(
        f"the pages of {method} go round in a circle: `nextCursor` {show(following)} leads back to"
        f" the page at {show(cursor)}",
        (circle.line,),
        is_certain=circle.is_again and listing.is_alone and lists.is_only_view(state.http.view),
    )


@rule("PAGE-3", on="request", methods=tuple(LISTS), needs_history=True)
def cursor_was_given(message: SeenMessage, state: ConversationState) -> Outcome:
    cursor = message.params.get("cursor")
    if not isinstance(cursor, str):
        return None
    if state.lists.is_given_cursor(message.method, cursor):
        return True
    # A client of 2026-07-28 can have the cursor from another connection.
    return RuleFailure(
        f"the cursor {show(cursor)} was not given out for {message.method}",
        is_certain=not message.is_modern and state.is_ordered,
    )


# -- Completion and caching hints ------------------------------------------------------------------


@rule("COMP-3", on="result", sender=SERVER, methods=("completion/complete",))
def completion_is_bounded(message: SeenMessage, state: ConversationState) -> Outcome:
    values = lookup(message.result, "completion", "values")
    if not isinstance(values, list):
        return None
    return len(values) <= 100 or f"the completion has {len(values)} values, at most 100 are allowed"


@rule("CACHE-1", on="result", sender=SERVER, methods=CACHEABLE)
def cache_hints_are_given(message: SeenMessage, state: ConversationState) -> Outcome:
    result = message.result
    assert result is not None
    if result.get("resultType", "complete") != "complete":
        return None
    ttl, scope = result.get("ttlMs"), result.get("cacheScope")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl < 0 or ttl != int(ttl):
        return f"`ttlMs` is {show(ttl)}"
    return scope in ("public", "private") or f"`cacheScope` is {show(scope)}"


@rule("CACHE-2", on="result", sender=SERVER)
def input_required_has_no_hints(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    if message.result.get("resultType") != "input_required":
        return None
    found = next((key for key in ("ttlMs", "cacheScope") if key in message.result), None)
    return True if found is None else f"an `input_required` result has `{found}`"


@rule("CACHE-8", on="result", sender=SERVER, methods=CACHEABLE, needs_history=True)
def pages_have_one_scope(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.request is not None
    assert message.result is not None
    cursor = message.request.params.get("cursor")
    if not isinstance(cursor, str):
        return None
    earlier = state.lists.cursor_scopes.get((message.request.method, text_key(cursor)))
    scope = message.result.get("cacheScope")
    if not isinstance(earlier, str) or not isinstance(scope, str):
        return None
    return scope == earlier or (
        f"`cacheScope` is {show(scope)}, and {show(earlier)} on the page before"
    )
