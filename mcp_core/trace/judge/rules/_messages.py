"""Rules for the form of messages, ids, the pairing of requests and responses, and `_meta`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcp_core.trace._ids import id_key
from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._message import TASKS_EXTENSION
from mcp_core.trace.judge._methods import KNOWN_METHODS
from mcp_core.trace.judge._revisions import FACTS
from mcp_core.trace.judge._sides import CLIENT, SERVER, other_side

from ._registry import RuleFailure, rule
from ._values import show

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage, SeenRequest
    from mcp_core.trace.judge._revisions import RevisionFacts
    from mcp_core.trace.judge.conversation._conversation import ConversationState
    from mcp_core.trace.judge.conversation._http import SeenExchange

    from ._registry import Outcome


# A message that cannot be parsed may not be in the trace: it can be endless.
_PARSE_ERROR: Final = -32700
_REACTION: Final = 1.0  # seconds after which a program has read what it was sent


@rule("RPC-1", on="message")
def has_version(message: SeenMessage, state: ConversationState) -> Outcome:
    found = message.members.get("jsonrpc")
    return found == "2.0" or f"`jsonrpc` is {show(found)}"


@rule("RPC-1", on="invalid")
def is_a_message(message: SeenMessage, state: ConversationState) -> Outcome:
    return "the object has neither a method nor a result nor an error"


@rule("RPC-2", on="request")
def request_id_has_type(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.id is None:
        return None  # RPC-3
    return id_key(message.id) is not None or f"the id is {show(message.id)}"


@rule("RPC-3", on="request")
def request_id_is_not_null(message: SeenMessage, state: ConversationState) -> Outcome:
    return message.id is not None or "the id of a request is null"


@rule("RPC-4", on="request", needs_history=True)
def id_is_new(message: SeenMessage, state: ConversationState) -> Outcome:
    key = id_key(message.id)
    if key is None:
        return None
    if key not in state.requests.used[message.sender]:
        return True
    earlier = state.requests.find(message.sender, key)
    if earlier is None and message.sender == CLIENT:
        earlier = state.requests.dropped.get(key)
    if message.method == "initialize" and not state.negotiation.handshake_answered:
        return None  # a client may begin again, for example after a rejected revision
    if state.negotiation.is_modern and (earlier is None or earlier.is_modern):
        return None  # a request without a handshake isn't part of the session
    stream = state.http.exchange if message.sender == SERVER else None
    is_repeated = earlier is not None and is_same(message, earlier)
    first = state.http.exchanges.get(earlier.exchange) if earlier is not None else None
    if is_repeated and first is not None and _is_rejected(first):
        return None
    if stream is not None and (stream.is_resumption or is_repeated):
        return None  # repeated after the stream broke; or SHL-15
    return RuleFailure(
        f"the id {show(message.id)} was used before", (earlier.line,) if earlier else ()
    )


def _is_rejected(exchange: SeenExchange) -> bool:
    """Return True if a request was lost, rejected or redirected, so that it is sent again."""
    if exchange.status in (0, 401, 403) or exchange.is_redirect:
        return True
    response = exchange.response
    return exchange.status >= 400 and (response is None or response.id is None)


def is_same(message: SeenMessage, earlier: SeenRequest) -> bool:
    """Return True if a request repeats an earlier one, as far as that one is remembered."""
    if message.method != earlier.method:
        return False
    if earlier.has_all_params:
        return message.params == earlier.params
    return all(message.params.get(key) == value for key, value in earlier.params.items())


@rule("RPC-5", on="request", sender=CLIENT, needs_history=True)
def id_is_not_in_use(message: SeenMessage, state: ConversationState) -> Outcome:
    key = id_key(message.id)
    if key is None:
        return None
    earlier = state.requests.open[CLIENT].get(key)
    if earlier is None:
        return True
    if earlier.cancelled or not state.is_ordered:
        return None  # cancelled; or over HTTP, where the request ends with its exchange
    return RuleFailure(f"the id {show(message.id)} is that of an open request", (earlier.line,))


@rule("RPC-7", on="response", needs_history=True)
def response_has_id_of_open_request(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.request is not None:
        return True
    key = id_key(message.id)
    if key is None:
        return None  # RPC-8 and RPC-14, or the id of a message that could not be read
    other = other_side(message.sender)
    if message.error is not None and key in state.invalid_ids[other]:
        return None  # an error can repeat an invalid message's id
    twin = _other_type(key)
    if (
        twin is not None
        and twin in state.requests.open[other]
        and key not in state.requests.used[other]
    ):
        earlier = state.requests.open[other][twin]
        return RuleFailure(
            f"the response has the id {show(message.id)} and the request {show(twin)}",
            (earlier.line,),
        )
    answered = state.requests.answered[other].get(key)
    if (
        answered is not None
        and state.http.exchange is not None
        and state.http.exchange.is_resumption
    ):
        return None  # repeated after the stream broke
    if answered is not None:
        # Over HTTP a resumed stream can repeat messages.
        return RuleFailure(
            f"the request with the id {show(message.id)} was answered before",
            (answered.line, answered.answered),
            is_certain=state.is_one_stream(message, answered.answer_exchange),
        )
    if key in state.requests.used[other]:
        return RuleFailure(
            f"the request with the id {show(message.id)} was answered before",
            is_certain=state.is_ordered,
        )
    if not state.requests.used[other].is_complete or state.unreadable[other]:
        return None  # the peer's parser may read what the judge's couldn't
    return f"no request has the id {show(message.id)}"


# What can get another client's result, for a sentence.
_SERVED: Final = {
    "tools/call": ("a call of", "name"),
    "prompts/get": ("the prompt", "name"),
    "resources/read": ("a read of", "uri"),
}


@rule("RPC-7", on="result", sender=SERVER, methods=tuple(_SERVED))
def result_is_of_this_client(message: SeenMessage, state: ConversationState) -> Outcome:
    if not message.exchange:
        return None
    found = state.across.find_mixed_result(message, state.number)
    if isinstance(found, bool):
        return found or None
    assert message.request is not None
    request = message.request
    what, key = _SERVED[request.method]
    if request.method == "tools/call":
        # What one call has stored, another one can return.
        is_certain = lookup(state.lists.tool_of(request), "annotations", "readOnlyHint") is True
    else:
        # A prompt is a template for its own arguments. A resource can have become another one's
        # alias.
        is_certain = request.method == "prompts/get"
    return RuleFailure(
        f"{what} {show(request.params.get(key))} has the result of a request of another client,"
        " and an equal request has its own",
        tuple(each for each in (found.line, found.other) if each != message.line),
        is_certain=is_certain,
    )


@rule("RPC-35", on="response")
def request_is_answered(message: SeenMessage, state: ConversationState) -> Outcome:
    return True if message.request is not None else None


@rule("RPC-35", on="close", needs_history=True)
def every_request_is_answered(state: ConversationState) -> Outcome:
    doubtful: Outcome = None
    for request in state.requests.open[CLIENT].values():
        if request.cancelled or not request.is_well_formed or request.earlier is not None:
            continue
        if request.method == "subscriptions/listen":
            continue  # it can end without its result: see SUB-4
        found = _missing_response(request, state)
        if found is not None and found.is_certain:
            return found
        doubtful = doubtful or found
    return doubtful


def _missing_response(request: SeenRequest, state: ConversationState) -> RuleFailure | None:
    """Return a failure if the trace shows that a request can no longer get a response."""
    what = f"{request.method} has no response, and "
    if not request.exchange:
        if state.ended_by != SERVER:
            return None  # the client left, or the trace ends before the conversation
        # The server may shut down at any time, and a user may end its process.
        what += "the server ended the conversation"
        return RuleFailure(what, (request.line,), is_certain=False, side=SERVER)
    exchange = state.http.exchanges.get(request.exchange)
    if exchange is None or exchange.end != "complete" or exchange.ended_by != SERVER:
        return None
    if not 200 <= exchange.status < 300 or exchange.response is not None:
        return None  # an HTTP error, or a response with another id
    is_certain = not exchange.has_body  # an intermediary can send a body that isn't a message
    if exchange.is_event_stream:
        if exchange.has_event_ids:
            return None  # the client can resume it
        # A server ends its streams when it shuts down, which it may do at any time.
        is_certain = (
            state.http.session is None
            and not state.http.ended_sessions
            and _serves_on(request, state)
        )
    elif (
        state.http.has_endpoint
        or any(FACTS[each].http_sse for each in request.revisions)
        or request.method == "initialize"
    ):
        return None  # on the HTTP+SSE transport the response comes on another stream
    elif exchange.headers.get("mcp-session-id") is None:
        # This may be the HTTP+SSE transport.
        is_certain = request.is_modern and state.negotiation.answers_modern(None) and is_certain
    return RuleFailure(
        what + f"the HTTP response with the status {exchange.status} is complete",
        (request.line, exchange.end_line),
        is_certain=is_certain,
        side=SERVER,
    )


def _serves_on(request: SeenRequest, state: ConversationState) -> bool:
    """Return True if the server later answered a request sent before this one's stream ended."""
    end = state.http.exchanges[request.exchange]
    return any(
        each.line < end.end_line < each.response_line and 200 <= each.status < 300
        for each in state.http.exchanges.values()
    )


def _other_type(key: int | str) -> int | str | None:
    """Return the id that looks the same and has the other JSON type, or None."""
    if isinstance(key, int):
        return str(key)
    return int(key) if re.fullmatch(r"-?[0-9]{1,18}", key) else None


@rule("RPC-8", on="error", needs_history=True)
def error_without_id_answers_unreadable_message(
    message: SeenMessage, state: ConversationState
) -> Outcome:
    if message.id is not None or not state.is_ordered or message.code == _PARSE_ERROR:
        return None
    other = other_side(message.sender)
    if state.id_less_errors[message.sender] < state.unreadable[other]:
        return True
    if state.last_kind[other] == "notification" and not state.requests.open[other]:
        return None  # RPC-14
    # A receiver may have read only the beginning of a message over its limit.
    return RuleFailure(
        "an error has no id although every message before it had a readable one",
        is_certain=not state.large[other],
    )


@rule("RPC-14", on="response", needs_history=True)
def notification_is_not_answered(message: SeenMessage, state: ConversationState) -> Outcome:
    other = other_side(message.sender)
    if state.last_kind[other] != "notification" or not state.is_ordered:
        return None
    if message.id is not None or message.error is None:
        return True
    if message.code == _PARSE_ERROR or state.requests.open[other]:
        return None
    if state.id_less_errors[message.sender] < state.unreadable[other]:
        return None
    return RuleFailure(
        "an error without an id answers a notification", is_certain=not state.large[other]
    )


@rule("RPC-9", "RPC-10", on="response")
def response_is_result_or_error(message: SeenMessage, state: ConversationState) -> Outcome:
    if "result" in message.members and "error" in message.members:
        return "the response has a result and an error"
    if "error" in message.members and message.error is None:
        return "the error is not an object"
    return True


@rule("RPC-11", on="error")
def error_has_code_and_text(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.error is not None
    code, text = message.error.get("code"), message.error.get("message")
    if isinstance(code, bool) or id_key(code) is None or isinstance(code, str):
        return f"the code of the error is {show(code)}"
    return isinstance(text, str) or f"the message of the error is {show(text)}"


@rule("RPC-13", on="request")
def notification_has_no_id(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.method in KNOWN_METHODS and message.method.startswith("notifications/"):
        return f"the notification {message.method} has an id"
    return None


@rule("RPC-13", on="notification")
def known_notification_has_no_id(message: SeenMessage, state: ConversationState) -> Outcome:
    return message.method.startswith("notifications/") or None


@rule("RPC-15", on="request")
@rule("RPC-15", on="notification")
def params_are_an_object(message: SeenMessage, state: ConversationState) -> Outcome:
    if "params" not in message.members:
        return None
    found = message.members["params"]
    return isinstance(found, dict) or f"the params are {show(found)}"


@rule("RPC-16", on="response")
def result_is_an_object(message: SeenMessage, state: ConversationState) -> Outcome:
    if "result" not in message.members:
        return None
    return message.result is not None or f"the result is {show(message.members['result'])}"


@rule("RPC-22", on="request", methods=("initialize",), sender=CLIENT)
def initialize_is_in_no_batch(message: SeenMessage, state: ConversationState) -> Outcome:
    return not message.in_batch or "initialize is in a batch"


@rule("RPC-28", on="request", sender=SERVER)
def server_sends_no_request(message: SeenMessage, state: ConversationState) -> Outcome:
    return f"the server sends the request {message.method or '?'}"


@rule("RPC-28", on="close", needs_history=True, needs_time=True)
def server_sent_no_request(state: ConversationState) -> Outcome:
    """Judge the requests that came before the response that shows the server's revision."""
    early, known = state.early_request, state.negotiation
    if early is None or known.initialize is not None or not known.has_served_modern:
        return None
    method, line, waited = early
    # A server of both eras may not have read the client's request yet, which selects one.
    return RuleFailure(
        f"the server sends the request {method or '?'}",
        (line,),
        is_certain=waited >= _REACTION,
        side=SERVER,
    )


@rule("RPC-28", on="result", sender=SERVER)
def server_sends_responses(message: SeenMessage, state: ConversationState) -> Outcome:
    return True


@rule("RPC-29", on="response", sender=CLIENT)
def client_sends_no_response(message: SeenMessage, state: ConversationState) -> Outcome:
    return "the client sends a response"


@rule("RPC-29", on="request", sender=CLIENT)
def client_sends_requests(message: SeenMessage, state: ConversationState) -> Outcome:
    return True


@rule("RPC-30", on="result", sender=SERVER)
def result_has_type(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    found = message.result.get("resultType")
    return isinstance(found, str) or f"`resultType` is {show(found)}"


@rule("RPC-33", on="result", sender=SERVER)
def result_type_is_known(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    found = message.result.get("resultType")
    if not isinstance(found, str):
        return None  # RPC-30
    if found in ("complete", "input_required"):
        return True
    declared = state.negotiation.capabilities(CLIENT, message) or {}
    extensions = declared.get("extensions")
    if found == "task":
        return None  # TX-2
    if extensions:
        return None  # an extension can define it
    return f"`resultType` is {show(found)}"


_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
META_KEY: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?{_NAME}")


@rule("META-2", on="message")
def meta_keys_follow_grammar(message: SeenMessage, state: ConversationState) -> Outcome:
    if not message.meta:
        return None
    wrong = next((key for key in message.meta if META_KEY.fullmatch(key) is None), None)
    return True if wrong is None else f"`_meta` has the key {show(wrong)}"


# How the keys of the specification and of its extensions begin.
_OFFICIAL: Final = ("io.modelcontextprotocol/", "io.modelcontextprotocol.")
_RESERVED_LABELS: Final = ("modelcontextprotocol", "mcp")


def _is_reserved(key: str, facts: RevisionFacts) -> bool:
    labels = key.rpartition("/")[0].lower().split(".")
    if facts.reserves_any_label:
        return any(label in _RESERVED_LABELS for label in labels[:-1])
    return len(labels) > 1 and labels[1] in _RESERVED_LABELS


@rule("META-3", on="message")
def reserved_prefixes_are_left_alone(message: SeenMessage, state: ConversationState) -> Outcome:
    if not message.meta:
        return None
    for key in message.meta:
        if "/" in key and not key.startswith(_OFFICIAL) and _is_reserved(key, message.facts):
            return f"`_meta` has the key {show(key)}, whose prefix is reserved"
    return True


@rule("META-7", on="request", sender=CLIENT)
def client_names_itself(message: SeenMessage, state: ConversationState) -> Outcome:
    # A client can be configured not to name itself.
    return META + "clientInfo" in message.meta or RuleFailure(
        f'`_meta["{META}clientInfo"]` is missing', is_certain=False
    )


@rule("META-10", on="result", sender=SERVER)
def server_names_itself(message: SeenMessage, state: ConversationState) -> Outcome:
    return META + "serverInfo" in message.meta or RuleFailure(
        f'`_meta["{META}serverInfo"]` is missing', is_certain=False
    )


@rule("META-15", on="message")
def related_task_is_an_object(message: SeenMessage, state: ConversationState) -> Outcome:
    if META + "related-task" not in message.meta:
        return None
    found = message.meta[META + "related-task"]
    is_task = isinstance(found, dict) and isinstance(found.get("taskId"), str)
    return is_task or f'`_meta["{META}related-task"]` has no `taskId`'


_TRACE_PARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)


@rule("META-13", on="message")
def trace_parent_follows_grammar(message: SeenMessage, state: ConversationState) -> Outcome:
    found = message.meta.get("traceparent")
    if found is None:
        return None
    if isinstance(found, str) and _TRACE_PARENT.fullmatch(found):
        return True
    return f"`traceparent` is {show(found)}"


@rule("META-8", on="result", sender=SERVER)
def request_without_version_is_rejected(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if request is None or request.method == "ping":
        return None
    if not state.is_ordered and META + "protocolVersion" not in request.meta:
        return None  # a server can take it for a request of another revision
    if not request.has_all_params:
        return None
    missing = [
        key for key in ("protocolVersion", "clientCapabilities") if META + key not in request.meta
    ]
    return not missing or RuleFailure(
        f'a request without `_meta["{META}{missing[0]}"]` has a result', (request.line,)
    )


@rule("TX-2", on="result", sender=SERVER)
def task_only_if_declared(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.result is not None
    if message.request is None or message.result.get("resultType") != "task":
        return None
    declared = state.negotiation.capabilities(CLIENT, message)
    if declared is None:
        return None
    extensions = declared.get("extensions")
    if isinstance(extensions, dict) and TASKS_EXTENSION in extensions:
        return True
    return RuleFailure("the request did not declare the tasks extension", (message.request.line,))
