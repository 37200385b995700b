"""Rules for Streamable HTTP: heads, status, sessions and mirrored headers.

They are judged at a request's head, and at its response's head. They don't blame the server for a
response that an intermediary may have sent, such as a status without a JSON-RPC body.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final

from mcp_core.trace._ids import id_key
from mcp_core.trace._members import META
from mcp_core.trace.judge._sides import CLIENT, SERVER
from mcp_core.trace.judge.conversation._across import has_credentials
from mcp_core.trace.judge.conversation._http import SESSION

from ._registry import RuleFailure, rule
from ._values import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace.judge._message import SeenMessage
    from mcp_core.trace.judge.conversation._conversation import ConversationState
    from mcp_core.trace.judge.conversation._http import SeenExchange

    from ._registry import Outcome

__all__ = ["decode_header", "mirrored_name"]

_VERSION: Final = "mcp-protocol-version"
_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
# The member of the params that `Mcp-Name` repeats. Task ids are left out: a trace replaces them.
_NAMES: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
_PORT: Final = re.compile(r":[0-9]*$")
_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
_PARSE_ERROR: Final = -32700
_AFTER_BODY: Final = (200, 400, 404)  # statuses of a response to a request that was read


def _is_post(exchange: SeenExchange) -> bool:
    return exchange.method == "POST" and bool(exchange.messages)


def _is_initialize(exchange: SeenExchange) -> bool:
    return exchange.request is not None and exchange.request.method == "initialize"


# -- Requests --------------------------------------------------------------------------------------


@rule("HTTP-6", on="http_request", needs_history=True)
def post_accepts_json_and_events(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if not _is_post(exchange) or state.http.has_endpoint:
        return None
    accept = exchange.headers.get("accept", "").lower()
    return (_JSON in accept and _EVENTS in accept) or f"`Accept` is {show(accept or None)}"


def _is_of_endpoint(exchange: SeenExchange, state: ConversationState) -> bool:
    """Return True if a GET or DELETE is for the endpoint: only such requests name a session."""
    return exchange.headers.get(SESSION) is not None


@rule("SHL-22", on="http_request", needs_history=True)
def session_is_repeated(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if state.http.session is None or not _is_post(exchange) or _is_initialize(exchange):
        return None
    if all(message.kind == "response" for message in exchange.messages):
        return None  # it can answer a previous session's request
    sent = exchange.headers.get(SESSION)
    if sent in state.http.former_sessions:
        return None  # the request may be late, or come from another client
    return sent == state.http.session or (
        "the request does not repeat `Mcp-Session-Id`"
        if sent is None
        else "the request has another `Mcp-Session-Id` than the server gave"
    )


@rule("SHL-28", on="http_request", needs_history=True)
def version_is_repeated(exchange: SeenExchange, state: ConversationState) -> Outcome:
    selected = state.negotiation.selected
    if not selected or selected not in exchange.revisions or state.http.has_endpoint:
        return None
    if _is_initialize(exchange) or not _is_post(exchange):
        return None
    found = exchange.headers.get(_VERSION)
    return found == selected or f"`MCP-Protocol-Version` is {show(found)} after the handshake"


@rule("SHM-2", on="http_request")
def version_header_equals_meta(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    if request is None:
        return None
    found, wanted = exchange.headers.get(_VERSION), request.meta.get(META + "protocolVersion")
    return found == wanted or f"`MCP-Protocol-Version` is {show(found)}, `_meta` has {show(wanted)}"


@rule("HDR-1", on="http_request")
def method_header_equals_method(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    if request is None:
        return None
    found = exchange.headers.get("mcp-method")
    return found == request.method or (
        f"`Mcp-Method` is {show(found)}, the method {show(request.method)}"
    )


@rule("HDR-2", on="http_request")
def name_header_equals_name(exchange: SeenExchange, state: ConversationState) -> Outcome:
    wanted = mirrored_name(exchange)
    if wanted is None:
        return None
    found = exchange.headers.get("mcp-name")
    return (found is not None and decode_header(found) == wanted) or (
        f"`Mcp-Name` is {show(found)}, the name {show(wanted)}"
    )


@rule("HDR-5", on="http_request")
def name_header_is_encoded_if_needed(exchange: SeenExchange, state: ConversationState) -> Outcome:
    wanted, found = mirrored_name(exchange), exchange.headers.get("mcp-name")
    if wanted is None or found is None or _is_plain(wanted):
        return None
    return found.startswith("=?base64?") or f"`Mcp-Name` has {show(wanted)} as it is"


def mirrored_name(exchange: SeenExchange) -> str | None:
    """Return the value that `Mcp-Name` repeats, or None."""
    request = exchange.request
    if request is None or request.redacted or request.method not in _NAMES:
        return None
    wanted = request.params.get(_NAMES[request.method])
    return wanted if isinstance(wanted, str) else None


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip() and value[:2] != "=?"


def decode_header(value: str) -> str | None:
    """Return the value that a header repeats, or None if its encoding is broken."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None


# -- Responses -------------------------------------------------------------------------------------


def _content_type(exchange: SeenExchange) -> str:
    return exchange.response_headers.get("content-type", "").split(";")[0].strip().lower()


@rule("HTTP-8", on="http_response", needs_history=True)
def request_is_answered_in_a_known_type(
    exchange: SeenExchange, state: ConversationState
) -> Outcome:
    if exchange.request is None or not 200 <= exchange.status < 300 or state.http.has_endpoint:
        return None
    if exchange.status != 200:
        # On the HTTP+SSE transport the response comes on another stream.
        is_modern = exchange.is_modern and state.negotiation.answers_modern(exchange.response)
        is_certain = is_modern or exchange.headers.get(SESSION) is not None
        key = id_key(exchange.request.id)
        request = None if key is None else state.requests.open[CLIENT].get(key)
        if (request is not None and request.cancelled) or _ends_session(exchange, state):
            return None  # there is no response whose type could be judged
        return RuleFailure(
            f"a request is answered with the status {exchange.status}",
            is_certain=is_certain,
        )
    kind = _content_type(exchange)
    return kind in (_JSON, _EVENTS) or f"a request is answered with the type {show(kind or None)}"


def _ends_session(exchange: SeenExchange, state: ConversationState) -> bool:
    """Return True if the client has ended an exchange's session, or is about to."""
    session = exchange.headers.get(SESSION)
    return session is not None and any(
        each.method == "DELETE" and each.headers.get(SESSION) == session
        for each in state.http.exchanges.values()
    )


@rule("HTTP-9", on="http_response", needs_history=True)
def notification_is_accepted_with_202(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if state.http.has_endpoint:
        return None  # the HTTP+SSE transport specifies no status
    kinds = {message.kind for message in exchange.messages}
    if not kinds or not kinds <= {"notification", "response"} or exchange.status >= 300:
        return None
    if exchange.status != 202:
        return f"a notification is accepted with the status {exchange.status}"
    return not exchange.has_body or "the response 202 has a body"


@rule("SHL-11", on="http_response")
def get_is_answered_with_events(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if exchange.method != "GET" or not _is_of_endpoint(exchange, state):
        return None
    if exchange.status == 405:
        return True
    if exchange.status >= 300:
        return None
    kind = _content_type(exchange)
    return kind == _EVENTS or f"a GET is answered with the type {show(kind or None)}"


@rule("SHL-21", on="http_response")
def session_id_is_visible_ascii(exchange: SeenExchange, state: ConversationState) -> Outcome:
    found = exchange.response_headers.get(SESSION)
    if found is None:
        return None
    return (bool(found) and all("\x21" <= each <= "\x7e" for each in found)) or (
        f"the session id is {show(found)}"
    )


@rule("SHL-24", on="http_response", needs_history=True)
def ended_session_is_not_found(exchange: SeenExchange, state: ConversationState) -> Outcome:
    sent = exchange.headers.get(SESSION)
    ended = state.http.ended_sessions.get(sent) if sent is not None else None
    if ended is None or ended > exchange.line or exchange.method == "DELETE":
        return None
    if exchange.status == 404:
        return True
    if exchange.status >= 300:
        return None  # another check can come first
    return f"a request of a session that was ended has the status {exchange.status}"


@rule("SHL-21", on="http_response")
def session_id_is_of_one_client(exchange: SeenExchange, state: ConversationState) -> Outcome:
    found, request = exchange.response_headers.get(SESSION), exchange.request
    if found is None or request is None or request.method != "initialize":
        return None
    if SESSION in exchange.headers or exchange.status >= 300:
        return None
    earlier = state.across.find_session(found)
    if earlier is None or earlier.conversation == state.number:
        return None
    # A client that the server knows may get its session again, and an id that is free any client.
    is_known = earlier.has_credentials or has_credentials(exchange)
    return RuleFailure(
        "two clients get the same session id",
        (earlier.line,),
        is_certain=not is_known and not state.across.has_ended(found),
    )


@rule("SHL-24", on="http_response", needs_history=True)
def session_outlives_the_others(exchange: SeenExchange, state: ConversationState) -> Outcome:
    sent, last = exchange.headers.get(SESSION), state.across.last_end
    if sent is None or sent != state.http.session or last is None:
        return None
    conversation, line = last
    if conversation == state.number or exchange.line < line or exchange.status != 404:
        return None
    # A server may end a session at any time.
    return RuleFailure(
        "a session is not found that its client has not ended, after another client ended its own",
        (line,),
        is_certain=False,
    )


@rule("SHL-23", on="http_response")
def request_without_session_is_always_refused(
    exchange: SeenExchange, state: ConversationState
) -> Outcome:
    if SESSION in exchange.headers or exchange.status not in (400, 404):
        return None
    return _is_equal_without_session(exchange, state, state.http.served, "is refused", "is served")


@rule("SHL-23", on="result", sender=SERVER)
def refused_request_without_session_is_never_served(
    message: SeenMessage, state: ConversationState
) -> Outcome:
    exchange = _exchange_of(message, state)
    if exchange is None or SESSION in exchange.headers:
        return None
    return _is_equal_without_session(exchange, state, state.http.refused, "is served", "is refused")


def _is_equal_without_session(
    exchange: SeenExchange,
    state: ConversationState,
    earlier: Mapping[int, tuple[int, int]],
    what: str,
    before: str,
) -> Outcome:
    """Judge whether a server treats equal requests without a session alike, once it gives sessions.

    If it refuses some, it requires a session. If it serves others, it takes another client's.
    """
    if not state.http.given_line or not earlier:
        return None
    found = earlier.get(state.http.request_key(exchange) or 0)
    if found is None or found[1] < state.http.given_line:
        return None
    return RuleFailure(
        f"a request without a session {what}, and an equal one {before} before",
        (found[1],),
        # By them, the server may find the client's session.
        is_certain=not has_credentials(exchange),
    )


@rule("SHL-24", on="result", sender=SERVER)
def lost_session_is_not_served(message: SeenMessage, state: ConversationState) -> Outcome:
    exchange = _exchange_of(message, state)
    if exchange is None or not state.http.refused or SESSION not in exchange.headers:
        return None
    status, line = state.http.refused.get(state.http.request_key(exchange) or 0, (0, 0))
    if status != 404:
        return None
    return RuleFailure(
        "a request is served, and its session was not found before for an equal one", (line,)
    )


def _exchange_of(message: SeenMessage, state: ConversationState) -> SeenExchange | None:
    """Return the exchange of a message if that answers its one request, or None."""
    exchange, request = state.http.exchange, message.request
    if exchange is None or request is None or exchange.request is None:
        return None
    return exchange if exchange.request.line == request.line else None


@rule("SHM-5", on="http_response", args=(404, -32601))
@rule("SHM-6", on="http_response", args=(400, -32020, -32021, -32022))
def error_has_its_status(
    exchange: SeenExchange, state: ConversationState, status: int, *codes: int
) -> Outcome:
    if exchange.request is None or exchange.response is None:
        return None
    code = exchange.response.code
    if code not in codes:
        return None
    return exchange.status == status or (
        f"the error {code} has the status {exchange.status} in place of {status}"
    )


@rule("SHM-7", on="http_response")
def error_keeps_the_id(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request, response = exchange.request, exchange.response
    if request is None or response is None or response.error is None:
        return None
    if not request.is_well_formed:
        return None
    found = response.id
    if found is None and exchange.status not in _AFTER_BODY:
        return None  # the server can reject the head before it reads the body
    if found is None and response.code == _PARSE_ERROR:
        return None  # parsers differ, for example on escaped lone surrogates
    return found == request.id or f"the error has the id {show(found)}, not {show(request.id)}"


@rule("SHM-3", on="http_response")
def wrong_version_header_is_rejected(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    if request is None:
        return None
    if exchange.headers.get(_VERSION) == request.meta.get(META + "protocolVersion"):
        return None
    if exchange.is_redirect:
        return None
    return exchange.status >= 400 or "a request is served, and its version header is wrong"


@rule("HDR-3", on="http_response")
def wrong_method_header_is_rejected(exchange: SeenExchange, state: ConversationState) -> Outcome:
    request = exchange.request
    if request is None:
        return None
    wrong = ""
    wanted, found = mirrored_name(exchange), exchange.headers.get("mcp-name")
    if exchange.headers.get("mcp-method") != request.method:
        wrong = "Mcp-Method"
    elif wanted is not None and (found is None or decode_header(found) != wanted):
        wrong = "Mcp-Name"
    if not wrong or exchange.is_redirect:
        return None
    return exchange.status >= 400 or f"a request is served, and its `{wrong}` is wrong"


@rule("SHM-14", on="http_response")
def no_session_is_given(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if exchange.request is None:
        return None
    # A server that speaks earlier revisions, too, may have sessions.
    return SESSION not in exchange.response_headers or RuleFailure(
        "a response of a revision without sessions has `Mcp-Session-Id`", is_certain=False
    )


@rule("SHM-15", on="http_response")
def buffering_is_switched_off(exchange: SeenExchange, state: ConversationState) -> Outcome:
    if exchange.request is None or exchange.status != 200 or _content_type(exchange) != _EVENTS:
        return None
    found = exchange.response_headers.get("x-accel-buffering")
    # The header is for nginx, which removes it. The response need not show that nginx was there.
    host = _PORT.sub("", exchange.headers.get("host", ""))
    is_near = state.observer == SERVER or host in _LOCAL
    is_passed = "via" in exchange.response_headers
    is_nginx = "nginx" in exchange.response_headers.get("server", "")
    return (found or "").lower() == "no" or RuleFailure(
        f"`X-Accel-Buffering` of a stream is {show(found)}",
        is_certain=is_near and not is_passed and not is_nginx,
    )
