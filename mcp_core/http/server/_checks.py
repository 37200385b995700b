"""The checks of a request's head, in their order, the error responses, and the CORS headers.

1. The order is a tuple for each verb (`CHECKS`): who may send requests at all, then what is
   requested, then in which shape and revision. The first failed check is the response, and the body
   isn't read.
2. A header that may occur once and occurs twice is rejected, even if its values are equal: one
   reader takes the first, and another the last. Headers that repeat values in the body are checked
   with the body (`RequestHeaderValidator`).
3. Only pages of origins that `HostOriginPolicy` lists by name get CORS headers, and credentials are
   never allowed.

Sources: 2026-07-28, basic/transports/streamable-http; RFC 9110; Fetch, CORS protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from mcp_core._errors import Fault
from mcp_core.http.wire._fetch_metadata import (
    SEC_FETCH_DEST,
    SEC_FETCH_MODE,
    SEC_FETCH_SITE,
    is_foreign_fetch,
    is_visit,
)
from mcp_core.http.wire._mcp_headers import LAST_EVENT_ID, METHOD, PROTOCOL_VERSION, SESSION_ID
from mcp_core.http.wire._media_types import EVENT_STREAM, JSON, accepts, is_json
from mcp_core.http.wire._messages import ErrorResponse
from mcp_core.protocol.revisions._methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core.http.wire._messages import Headers
    from mcp_core.protocol.revisions._config import Config

    from ._options import HttpOptions

__all__ = [
    "ALLOWED",
    "CHECKS",
    "EMPTY_BODY",
    "ENDING",
    "EVENTS_GONE",
    "ID_IN_USE",
    "LONG_LIVED",
    "NOT_INITIALIZED",
    "NO_GET_STREAM",
    "NO_SESSION",
    "NO_STREAM",
    "ONLY_POST",
    "OPEN_ALREADY",
    "POST_HERE",
    "STREAM_OVER",
    "TOO_BUSY",
    "TOO_MANY_SESSIONS",
    "TOO_MANY_STREAMS",
    "TOO_MUCH_UNREAD",
    "WEBSOCKET_UPGRADE",
    "ParsedHead",
    "body_too_long",
    "body_too_slow",
    "check_head",
    "check_host_and_origin",
    "check_plain_route",
    "client_bodies_too_large",
    "client_sessions_too_many",
    "client_too_busy",
    "cors_headers",
    "parse_head",
    "preflight_headers",
    "too_many_bodies",
]

ALLOWED: Final = b"GET, POST, DELETE, OPTIONS"

# Stands for the verb of a request that is to become a WebSocket; no verb has a space in it.
WEBSOCKET_UPGRADE: Final = b"GET a WebSocket"

# Values of `Mcp-Method` for which the response is always a stream.
LONG_LIVED: Final = frozenset(row.name.encode() for row in METHODS if row.long_lived)

# What nearly every client sends. It is compared first, and anything else is parsed.
_USUAL_ACCEPT: Final = b"application/json, text/event-stream"

_SINGLE: Final = frozenset(
    (
        b"host",
        b"origin",
        b"content-type",
        b"content-length",
        LAST_EVENT_ID,
        PROTOCOL_VERSION,
        SESSION_ID,
    )
)

_READ: Final = _SINGLE | {
    METHOD,
    b"accept",
    b"content-encoding",
    b"access-control-request-method",
    b"access-control-request-headers",
    SEC_FETCH_SITE,
    SEC_FETCH_MODE,
    SEC_FETCH_DEST,
}


class ParsedHead(Struct, gc=False):
    """A request's head, as far as it is read here.

    `headers` has each header once, `repeated` one that occurs twice and must not, and `mirrored`
    those that may repeat a value in the body, unchanged. The check of `Accept` sets `accepted` to
    "json" or "sse" if the client takes only responses of that kind.
    """

    headers: dict[bytes, bytes]
    repeated: bytes | None
    mirrored: Headers
    accepted: Literal["json", "sse"] | None = None


def parse_head(headers: Headers) -> ParsedHead:
    """Collect the headers that are read, in one pass."""
    found: dict[bytes, bytes] = {}
    mirrored: Headers = []
    doubled = None
    for header in headers:
        name, value = header
        if name in _READ:
            if name not in found:
                found[name] = value
            elif name in _SINGLE:
                doubled = name
            else:
                found[name] += b", " + value
        if name.startswith(b"mcp-"):
            mirrored.append(header)
    return ParsedHead(found, doubled, mirrored)


def check_head(
    verb: bytes, parsed: ParsedHead, options: HttpOptions, config: Config
) -> ErrorResponse | None:
    """Run all checks for `verb`. Return the first failed check's response, or None."""
    for check in CHECKS.get(verb, _UNKNOWN_VERB):
        rejection = check(parsed, options, config)
        if rejection is not None:
            return rejection
    return None


def check_host_and_origin(parsed: ParsedHead, options: HttpOptions) -> ErrorResponse | None:
    """Run only the checks of who has caused the request, before authorization."""
    return _host(parsed, options, None) or _origin(parsed, options, None)


def check_plain_route(
    verb: bytes, parsed: ParsedHead, options: HttpOptions
) -> ErrorResponse | None:
    """Run the checks of a request for a plain route, of any verb.

    Pages of other sites may lead the user here, but not load anything from here.
    """
    headers = parsed.headers
    rejection = check_host_and_origin(parsed, options)
    if rejection is _FOREIGN_FETCH and is_visit(
        verb, headers.get(SEC_FETCH_MODE), headers.get(SEC_FETCH_DEST)
    ):
        rejection = None
    return rejection or _doubled(parsed, options, None)


# By `Sec-Fetch-Site`: an image, a script, a frame or a link of a page.
_FOREIGN_FETCH: Final = ErrorResponse(
    403,
    "a web page of another site requests this without its Origin: use fetch() there, and list the"
    " page in origins= (--allowed-origin of mcp-trio run)",
)


def _host(parsed: ParsedHead, options: HttpOptions, config: Config | None) -> ErrorResponse | None:
    host = parsed.headers.get(b"host")
    policy = options.host_origin_policy
    if host in policy.known_hosts or policy.allows_host(host):
        return None
    return ErrorResponse(
        421,
        "the name in Host is not allowed: list it in hosts= (--allowed-host of mcp-trio run)",
    )


def _origin(
    parsed: ParsedHead, options: HttpOptions, config: Config | None
) -> ErrorResponse | None:
    headers = parsed.headers
    origin = headers.get(b"origin")
    if origin is None:
        site = headers.get(SEC_FETCH_SITE)
        return None if site is None or not is_foreign_fetch(site) else _FOREIGN_FETCH
    if options.host_origin_policy.allows_origin(origin, headers[b"host"]):
        return None
    return ErrorResponse(
        403,
        "the Origin is not allowed: list it in origins= (--allowed-origin of mcp-trio run)",
    )


def _doubled(
    parsed: ParsedHead, options: HttpOptions, config: Config | None
) -> ErrorResponse | None:
    if parsed.repeated is None:
        return None
    return ErrorResponse(400, f"the header {parsed.repeated.decode('ascii')} stands twice")


def _verb(parsed: ParsedHead, options: HttpOptions, config: Config) -> ErrorResponse | None:
    return ErrorResponse(
        405, "only GET, POST, DELETE and OPTIONS are supported", [(b"allow", ALLOWED)]
    )


def _length(parsed: ParsedHead, options: HttpOptions, config: Config) -> ErrorResponse | None:
    length = parsed.headers.get(b"content-length")
    if length is None:
        return None
    if not length.isdigit():
        return ErrorResponse(400, "content-length is not a number", close_after=True)
    if len(length) > 18 or int(length) > config.limits.message:
        return body_too_long(config)
    return None


def body_too_long(config: Config) -> ErrorResponse:
    """Return the response to a body that exceeds the limit, declared or as it arrives."""
    return ErrorResponse(
        413, f"the body is longer than {config.limits.message} bytes", close_after=True
    )


def _json(parsed: ParsedHead, options: HttpOptions, config: Config) -> ErrorResponse | None:
    if parsed.headers.get(b"content-encoding", b"identity").lower() != b"identity":
        return ErrorResponse(
            415,
            "a content-encoding other than identity is not supported",
            [(b"accept-encoding", b"identity")],
        )
    content_type = parsed.headers.get(b"content-type")
    if content_type == JSON or is_json(content_type):
        return None
    return ErrorResponse(415, "the body must be application/json, in UTF-8")


def _accepts_responses(
    parsed: ParsedHead, options: HttpOptions, config: Config
) -> ErrorResponse | None:
    accept = parsed.headers.get(b"accept")
    if accept == _USUAL_ACCEPT:
        return None
    # The specification wants both from a client. One that takes a single type gets that.
    takes_json = accepts(accept, JSON)
    takes_events = accepts(accept, EVENT_STREAM)
    if takes_json and not takes_events:
        parsed.accepted = "json"
        if parsed.headers.get(METHOD) in LONG_LIVED:
            return _NO_EVENTS  # there is no other way to listen
    elif takes_events and not takes_json and options.reply != "json":
        parsed.accepted = "sse"
    elif not takes_json:
        types = "application/json"
        if options.reply != "json":
            types += " or text/event-stream, and should accept both"
        return ErrorResponse(406, f"the client must accept {types}")
    return None


def _accepts_events(
    parsed: ParsedHead, options: HttpOptions, config: Config
) -> ErrorResponse | None:
    if accepts(parsed.headers.get(b"accept"), EVENT_STREAM):
        return None
    return _NO_EVENTS


_NO_EVENTS: Final = ErrorResponse(406, "the client must accept text/event-stream")


_SENDER: Final = (_host, _origin)

CHECKS: Final[
    Mapping[bytes, tuple[Callable[[ParsedHead, HttpOptions, Config], ErrorResponse | None], ...]]
] = {
    b"POST": (*_SENDER, _doubled, _length, _json, _accepts_responses),
    b"GET": (*_SENDER, _doubled, _accepts_events),
    b"DELETE": (*_SENDER, _doubled),
    b"OPTIONS": _SENDER,
    WEBSOCKET_UPGRADE: (*_SENDER, _doubled),
}

_UNKNOWN_VERB: Final = (*_SENDER, _verb)

# -- Other error responses -------------------------------------------------------------------------

_RETRY_AFTER: Final[Headers] = [(b"retry-after", b"5")]
ONLY_POST: Final[Headers] = [(b"allow", b"POST, OPTIONS")]


def _busy(status: int, message: str) -> ErrorResponse:
    """Return the response to a request that may succeed later."""
    return ErrorResponse(status, message, _RETRY_AFTER, fault=Fault.BUSY)


ENDING: Final = _busy(503, "the server is being shut down")
TOO_MANY_SESSIONS: Final = _busy(503, "there are too many sessions; try again later")
TOO_BUSY: Final = _busy(503, "there are too many requests at once; try again later")
TOO_MANY_STREAMS: Final = _busy(429, "too many streams of this session are open")
EMPTY_BODY: Final = ErrorResponse(
    400, "the body is empty: send one JSON-RPC message", fault=Fault.PARSE
)
# Hint for operators: without it all clients of a proxy have one address.
_PROXY: Final = "; a proxy in front of the server has to be in its trusted_proxies"


def client_sessions_too_many(quota: int, *, initialized: bool) -> ErrorResponse:
    """Return the response to a client that has its quota of sessions, or of incomplete ones."""
    if initialized:
        text = f"this client has {quota} sessions, the most for one: end some by DELETE"
    else:
        text = (
            f"of this client {quota} sessions wait for notifications/initialized: send that first"
        )
    return _busy(429, text + _PROXY)


def client_too_busy(quota: int) -> ErrorResponse:
    """Return the response to a client with its quota of requests in progress."""
    return _busy(
        429, f"this client has {quota} requests in progress, the most for one: await some{_PROXY}"
    )


def client_bodies_too_large(quota: int) -> ErrorResponse:
    """Return the response to a request whose client has too much of unfinished bodies."""
    text = f"the unfinished bodies of this client have more than {quota} bytes: send fewer at once"
    return _refused_body(429, text + _PROXY)


def too_many_bodies(limit: int) -> ErrorResponse:
    """Return the response to a request whose body is unfinished when there are too many."""
    text = f"the unfinished bodies of all clients have more than {limit} bytes; try again later"
    return _refused_body(503, text)


TOO_MUCH_UNREAD: Final = _busy(
    503,
    "this connection has too much of unread responses: read them, or send fewer requests at once",
)


def body_too_slow(seconds: float) -> ErrorResponse:
    """Return the response to a request whose body has taken too long."""
    return ErrorResponse(
        408, f"the body has taken more than {seconds:g} s: send it faster", close_after=True
    )


def _refused_body(status: int, message: str) -> ErrorResponse:
    return ErrorResponse(status, message, _RETRY_AFTER, close_after=True, fault=Fault.BUSY)


NO_SESSION: Final = ErrorResponse(404, "unknown session: begin a new one with initialize")
NOT_INITIALIZED: Final = ErrorResponse(
    400, "no session: send initialize first, then its Mcp-Session-Id with each request"
)
ID_IN_USE: Final = ErrorResponse(400, "a request id of this body is still in use")
EVENTS_GONE: Final = ErrorResponse(
    400, "the events after Last-Event-ID are no longer retained: send the request again"
)
# With this status clients give up at once: it is what a server without streams answers.
STREAM_OVER: Final = ErrorResponse(
    405,
    "the requests of this stream are answered or cancelled, and all its events were sent",
    [(b"allow", b"POST, DELETE, OPTIONS")],
)
OPEN_ALREADY: Final = ErrorResponse(409, "the stream of this session is already open")
NO_STREAM: Final = ErrorResponse(405, "there is no stream without a session", ONLY_POST)
NO_GET_STREAM: Final = ErrorResponse(
    405,
    "this server offers no stream for messages that belong to no request (get_stream=False)",
    [(b"allow", b"POST, DELETE, OPTIONS")],
)
POST_HERE: Final = ErrorResponse(405, "send messages to this URL by POST", [(b"allow", b"POST")])

# -- CORS ----------------------------------------------------------------------------------------

_EXPOSED: Final = b"mcp-session-id, mcp-protocol-version"

_EXPOSED_WITH_AUTH: Final = _EXPOSED + b", www-authenticate, dpop-nonce"


def cors_headers(origin: bytes, *, with_auth: bool) -> Headers:
    """Return the headers of every response to a page of `origin`.

    If `with_auth`, a page can also read the challenge, which names where to get a token.
    """
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED_WITH_AUTH if with_auth else _EXPOSED),
        (b"vary", b"origin"),
    ]


def preflight_headers(headers: Mapping[bytes, bytes]) -> Headers:
    """Return the headers of the response to a preflight request. `headers` are the request's."""
    return [
        (b"access-control-allow-methods", ALLOWED),
        (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"*")),
        (b"access-control-max-age", b"600"),
    ]
