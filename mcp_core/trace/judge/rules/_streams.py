"""Rules for the streams of Streamable HTTP and HTTP+SSE: which message comes on which, and when."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcp_core.trace._ids import id_key, text_key
from mcp_core.trace._members import META
from mcp_core.trace.judge._sides import CLIENT, SERVER

from ._messages import is_same
from ._registry import RuleFailure, rule
from ._values import show

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage, SeenRequest
    from mcp_core.trace.judge.conversation._conversation import ConversationState
    from mcp_core.trace.judge.conversation._http import SeenExchange

    from ._registry import Outcome

_SLACK: Final = 0.9  # this part of the time that a peer asks for is enough
_LINGER: Final = 5.0  # seconds that a stream can stay open after its response
_REACTION: Final = 1.0  # seconds after which a program has read what it was sent
_LIFE_OF_TOKEN: Final = 10.0  # seconds; every token is valid for longer
_SESSION: Final = "mcp-session-id"
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_PORT: Final = re.compile(r":[0-9]*$")
_CHANGES: Final = (
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/tasks",
)
_PROGRESS: Final = ("notifications/progress",)


def _request_of_progress(message: SeenMessage, state: ConversationState) -> SeenRequest | None:
    key = id_key(message.params.get("progressToken"))
    request = None if key is None else state.requests.tokens[CLIENT].get(key)
    if request is None or not request.exchange:
        return None
    # A task's messages can come on any stream.
    is_open = request.shares_token or request.task or "task" in request.params
    return None if is_open else request


def _has_ends(state: ConversationState) -> bool:
    """Return True if the trace shows where responses end. Some recorders don't write it."""
    return any(each.end for each in state.http.exchanges.values())


def _stream(state: ConversationState) -> SeenExchange | None:
    """Return the event stream that carried the message being judged, or None."""
    found = state.http.exchange
    return found if found is not None and found.is_event_stream else None


# -- Messages --------------------------------------------------------------------------------------


@rule("PROG-9", "SHL-4", on="notification", sender=SERVER, methods=_PROGRESS, needs_history=True)
def progress_is_on_its_own_stream(message: SeenMessage, state: ConversationState) -> Outcome:
    request, stream = _request_of_progress(message, state), _stream(state)
    if request is None or stream is None or stream.method != "POST":
        return None
    return message.exchange == request.exchange or RuleFailure(
        f"progress of {request.method} on the stream of another request",
        (request.line, stream.line),
    )


@rule("SHL-12", on="notification", sender=SERVER, methods=_PROGRESS, needs_history=True)
def progress_is_not_on_the_general_stream(
    message: SeenMessage, state: ConversationState
) -> Outcome:
    request, stream = _request_of_progress(message, state), _stream(state)
    if request is None or stream is None or stream.is_resumption or state.http.has_endpoint:
        return None
    return stream.method != "GET" or RuleFailure(
        f"progress of {request.method} on a stream that is of no request",
        (request.line, stream.line),
    )


@rule("SHL-13", on="response", sender=SERVER, needs_history=True)
def response_is_not_on_the_general_stream(
    message: SeenMessage, state: ConversationState
) -> Outcome:
    stream = _stream(state)
    if stream is None or stream.is_resumption or state.http.has_endpoint:
        return None
    if message.request is None or not message.request.exchange:
        return None
    return stream.method != "GET" or RuleFailure(
        "a response on a stream that is of no request", (message.request.line, stream.line)
    )


@rule("SHL-15", on="request", sender=SERVER, needs_history=True)
def message_is_on_one_stream(message: SeenMessage, state: ConversationState) -> Outcome:
    key, stream = id_key(message.id), _stream(state)
    if key is None or stream is None or stream.is_resumption:
        return None
    earlier = state.requests.find(SERVER, key)
    if earlier is None:
        return True
    if earlier.exchange == message.exchange or not is_same(message, earlier):
        return None  # RPC-4
    first = state.http.exchanges.get(earlier.exchange)
    return RuleFailure(
        f"{message.method} is on two streams",
        (earlier.line,),
        is_certain=first is not None and not first.end and _has_ends(state),
    )


@rule("SHM-8", on="notification", sender=SERVER, methods=_CHANGES, needs_history=True)
def changes_are_on_a_subscription(message: SeenMessage, state: ConversationState) -> Outcome:
    stream = _stream(state)
    request = stream.request if stream is not None else None
    if request is None:
        return None
    return request.method == "subscriptions/listen" or RuleFailure(
        f"{message.method} on the stream of {request.method}", (request.line,)
    )


@rule(
    "LOG-9",
    on="notification",
    sender=SERVER,
    methods=("notifications/message",),
    needs_history=True,
)
def log_messages_are_on_no_subscription(message: SeenMessage, state: ConversationState) -> Outcome:
    stream = _stream(state)
    request = stream.request if stream is not None else None
    if request is None or META + "subscriptionId" in message.meta:
        return None  # SUB-10
    return request.method != "subscriptions/listen" or RuleFailure(
        "a log message on the stream of a subscription", (request.line,)
    )


# -- Requests --------------------------------------------------------------------------------------


@rule("SHL-8", on="http_request", needs_history=True, needs_time=True)
def client_waits_before_it_reconnects(exchange: SeenExchange, state: ConversationState) -> Outcome:
    known = state.http.events.get(text_key(exchange.headers.get("last-event-id", "")))
    if exchange.method != "GET" or known is None:
        return None
    # The stream itself, or a later exchange that resumed it.
    ended = [
        each
        for number, each in state.http.exchanges.items()
        if each is not exchange
        and each.end
        and (number == known[1] or _root(each, state) == known[1])
    ]
    broken = max(ended, key=lambda each: each.end_line, default=None)
    if broken is None or broken.retry is None or broken.ended_by != SERVER:
        return None
    waited = exchange.time - broken.end_time
    return waited >= _SLACK * broken.retry / 1000 or RuleFailure(
        f"reconnected after {waited:.3g} s, the server asked for {broken.retry / 1000:.3g} s",
        (broken.end_line,),
    )


def _root(exchange: SeenExchange, state: ConversationState) -> int:
    """Return the number of the exchange that first carried a stream, 0 if it is unknown."""
    known = state.http.events.get(text_key(exchange.headers.get("last-event-id", "")))
    return known[1] if known is not None else 0


@rule("SHL-18", on="http_request", needs_history=True)
def resumed_event_was_received(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if not exchange.is_resumption:
        return None
    id = exchange.headers["last-event-id"]
    return text_key(id) in state.http.events or RuleFailure(
        f"the event {show(id)}, of which no stream had the id",
        is_certain=state.http.has_all_events and state.is_from_start,
    )


@rule("SHL-25", on="http_request", needs_history=True)
def lost_session_is_left(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if not state.http.lost_sessions or exchange.method == "DELETE":
        return None
    known = state.http.lost_sessions.get(exchange.headers.get(_SESSION, ""))
    if known is None:
        request = exchange.request
        return True if request is not None and request.method == "initialize" else None
    line, time = known
    if exchange.time - time < _REACTION:
        return None  # the request can cross the response
    return RuleFailure("a request of a session that was not found before", (line,))


@rule("AT-1", on="http_request", needs_history=True, needs_time=True)
def token_is_sent_with_each_request(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if "access_token=" in exchange.target.partition("?")[2]:
        # The token can be part of the URL that the user gave.
        return RuleFailure("an access token is in the query of the URL", is_certain=False)
    if "authorization" in exchange.headers:
        return True
    if exchange.path not in state.http.is_authorized or exchange.method == "OPTIONS":
        return None
    # A client whose token has expired has none to send.
    return RuleFailure(
        "a request without `Authorization` follows requests with it",
        is_certain=exchange.time - state.http.is_authorized[exchange.path] < _LIFE_OF_TOKEN,
    )


@rule("SSE-3", on="http_request", any_revision=True, needs_history=True)
def messages_go_to_the_endpoint(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if not state.http.endpoint or exchange.method != "POST" or not exchange.messages:
        return None
    wanted = state.http.endpoint.partition("?")[0]
    if "://" in wanted:
        wanted = "/" + wanted.partition("://")[2].partition("/")[2]
    # A relative reference is resolved against the stream's URL, and a proxy can add a prefix.
    return exchange.path.endswith(wanted.lstrip("./")) or (
        f"a message is sent to {show(exchange.path)}, the endpoint is {show(wanted)}"
    )


# -- Responses -------------------------------------------------------------------------------------


@rule("SSE-4", on="http_response", any_revision=True, needs_history=True)
def responses_come_as_events(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if not state.http.has_endpoint or exchange.method != "POST" or not exchange.messages:
        return None
    if not 200 <= exchange.status < 300:
        return None
    # Both transports can share the endpoint.
    return exchange.response is None or RuleFailure(
        "a message in the response to a POST of the HTTP+SSE transport", is_certain=False
    )


@rule("HTTP-1", on="http_response")
def foreign_origins_are_rejected(exchange: SeenExchange, state: ConversationState) -> Outcome:
    host = _foreign_host(exchange)
    if host is None or exchange.is_redirect:
        return None
    if exchange.status >= 400:
        return True
    # A server can be configured to allow an origin, but not one whose domain is reserved.
    return RuleFailure(
        f"a request of the origin {show(exchange.headers['origin'])} is served",
        is_certain=host.rpartition(".")[2] in ("invalid", "example"),
    )


@rule("HTTP-2", on="http_response")
def foreign_origins_are_forbidden(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if _foreign_host(exchange) is None or exchange.status < 400:
        return None
    # Another check can come first.
    return exchange.status == 403 or RuleFailure(
        f"a request of the origin {show(exchange.headers['origin'])} has the status "
        f"{exchange.status}",
        is_certain=False,
    )


def _foreign_host(exchange: SeenExchange) -> str | None:
    """Return the host in `Origin` if it isn't the server's, or None."""
    origin, host = exchange.headers.get("origin", "").lower(), exchange.headers.get("host", "")
    scheme, _, found = origin.partition("://")
    if not found or not host or exchange.method == "OPTIONS":
        return None
    port = _DEFAULT_PORTS.get(scheme, "")
    same = found.removesuffix(port) == host.lower().removesuffix(port)
    return None if same else _PORT.sub("", found)


@rule("SHL-23", on="http_response", needs_history=True)
def missing_session_is_a_bad_request(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    if state.http.session is None or request is None or request.method == "initialize":
        return None
    if exchange.headers.get(_SESSION) is not None or exchange.status < 400:
        return None  # the server may not need a session
    return exchange.status == 400 or RuleFailure(
        f"a request without a session has the status {exchange.status}", is_certain=False
    )


@rule("AR-3", "AR-4", on="http_response")
def challenge_names_the_metadata(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if exchange.status != 401 or exchange.request is None:
        return None
    # The metadata can be at its well-known URL, or the server uses another kind of authorization.
    return "resource_metadata" in exchange.response_headers.get("www-authenticate", "") or (
        RuleFailure("`WWW-Authenticate` names no resource_metadata", is_certain=False)
    )


@rule("AR-6", on="http_response")
def missing_scope_is_named(exchange: SeenExchange, state: ConversationState) -> Outcome:
    challenge = exchange.response_headers.get("www-authenticate", "")
    if exchange.status != 403 or "insufficient_scope" not in challenge:
        return None
    missing = [key for key in ("scope", "resource_metadata") if f"{key}=" not in challenge]
    # A server that issues its own tokens can have no metadata.
    return not missing or RuleFailure(
        f"the challenge insufficient_scope has no {missing[0]}", is_certain="scope" in missing
    )


@rule("AR-9", on="http_response")
def offline_access_is_not_challenged(exchange: SeenExchange, state: ConversationState) -> Outcome:
    challenge = exchange.response_headers.get("www-authenticate", "")
    if exchange.status not in (401, 403) or "scope=" not in challenge:
        return None
    scope = challenge.partition("scope=")[2].lstrip('"').partition('"')[0]
    return "offline_access" not in scope.split() or "the challenge has the scope offline_access"


@rule("AR-13", on="http_response", needs_history=True)
def each_request_is_authorized(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    if request is None or request.method not in state.http.denied:
        return None
    if "authorization" in exchange.headers or "access_token=" in exchange.target:
        return None
    if exchange.is_redirect:
        return None
    # The request can have other credentials: a cookie, a key, a certificate.
    return exchange.status >= 400 or RuleFailure(
        f"{request.method} without `Authorization` is served, and was denied before",
        is_certain=False,
    )


@rule("AR-14", on="http_response", needs_history=True)
def token_of_the_query_is_ignored(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    if request is None or "access_token=" not in exchange.target.partition("?")[2]:
        return None
    if "authorization" in exchange.headers or exchange.is_redirect:
        return None
    # The server may serve this request without a token.
    return exchange.status >= 400 or RuleFailure(
        "a request with an access token in its URL is served",
        is_certain=request.method in state.http.denied and "cookie" not in exchange.headers,
    )


# -- The end of the conversation -------------------------------------------------------------------


@rule("SHL-3", "SHM-10", on="close", needs_history=True)
def stream_ends_with_its_response(state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for stream in state.http.exchanges.values():
        if not stream.answered or not stream.is_event_stream:
            continue
        if len([each for each in stream.messages if each.kind == "request"]) > stream.answered:
            continue
        if stream.end:
            outcome = True
        elif state.last_time - stream.answered_time > _LINGER:
            return RuleFailure(
                f"a stream is open {state.last_time - stream.answered_time:.0f} s after its "
                "response",
                (stream.line,),
                is_certain=_has_ends(state),
                side=SERVER,
            )
    return outcome


@rule("SHL-5", on="close", needs_history=True)
def stream_ends_after_its_responses(state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for request in state.requests.open[CLIENT].values():
        stream = state.http.exchanges.get(request.exchange)
        if stream is None or not stream.is_event_stream or request.cancelled:
            continue
        if stream.end != "complete" or stream.ended_by != SERVER:
            continue
        session = stream.headers.get(_SESSION)
        lives_on = session is not None and any(
            each.line > stream.end_line
            and each.headers.get(_SESSION) == session
            and 200 <= each.status < 300
            for each in state.http.exchanges.values()
        )
        return RuleFailure(
            f"the stream of {request.method} ends before its response",
            (request.line, stream.end_line),
            is_certain=lives_on,
            side=SERVER,
        )
    for stream in state.http.exchanges.values():
        if stream.answered and stream.is_event_stream and stream.end:
            outcome = True
    return outcome


@rule("SUB-8", on="close", needs_history=True)
def subscription_ends_with_its_result(state: ConversationState) -> Outcome:
    outcome: Outcome = None
    for stream in state.http.exchanges.values():
        request = stream.request
        if request is None or request.method != "subscriptions/listen":
            continue
        if stream.answered:
            outcome = True
        elif stream.status == 200 and stream.end == "complete" and stream.ended_by == SERVER:
            # An intermediary can have ended the stream.
            return RuleFailure(
                "the stream of a subscription ends without its result",
                (stream.line, stream.end_line),
                is_certain=False,
                side=SERVER,
            )
    return outcome
