"""One HTTP response at the client: its body, kept or decoded as events, and what its status means.

1. A body is an event stream, or it is kept until it ends. The body of an error has a small limit of
   its own, above which it is discarded, because it only explains the status.
2. The client asks for unencoded bodies. An encoded one is rejected and never unpacked: a few bytes
   of it may become gigabytes.
3. One table says what each status means for a call without a JSON-RPC response, and what to do
   about it.

JSON-RPC messages aren't decoded here, but for the text of an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from mcp_core._errors import AuthRequired, Fault, McpTrioError, PeerError, RemoteProtocolError
from mcp_core.http.wire._media_types import JSON, is_event_stream, is_json, media_type
from mcp_core.http.wire._messages import header
from mcp_core.http.wire._sse import EventTooLong, SseDecoder
from mcp_core.protocol.jsonrpc._codec import BadMessage, decode
from mcp_core.protocol.jsonrpc._excerpt import show_bytes
from mcp_core.protocol.messages._responses import decode_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.http.wire._messages import Head, Headers
    from mcp_core.http.wire._sse import SseEvent

__all__ = [
    "DENIED_STATUS",
    "MAX_ERROR_BODY",
    "Response",
    "error_for_status",
    "error_in",
    "has_token",
    "is_token_refused",
    "names_session",
]

_CURE: Final = " (the option limits=Limits(message=...) allows longer ones)"
MAX_ERROR_BODY: Final = 64 * 1024  # bytes of an error response that are read
_MAX_SHOWN: Final = 200  # characters of a text of the server that an error repeats
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]+")
# In JSON: a result, or an id that isn't null.
_RESPONSE_MEMBER: Final = re.compile(rb'"result"|"id"\s*:\s*(?!null\b)\S')
# What servers say of a session that they don't know: "Bad Request: No valid session ID provided",
# "Invalid or missing session ID", "No transport found for sessionId", "Server not initialized".
_SESSION_WORDS: Final = re.compile(
    rb"session[ _-]?id\b|\b(?:in)?(?:valid|no|no such|unknown|missing|expired) session\b"
    rb"|\bsession (?:is |was |has )?(?:not found|expired|unknown|invalid)\b|\bnot initialized\b",
    re.IGNORECASE,
)
_SCOPES: Final = re.compile(r'(?:^|[ ,])scope="([^"]*)"')


class Response:
    """A response whose head has arrived. Pass each chunk of its body to `feed`.

    `events` is the decoder of an event stream, None for any other body. `good` is True if the
    status is 2xx. `content_type` is the value of that header, None without it. `kept` is the
    body as far as it has arrived; None for one that isn't kept.

    Args:
        head: the response's head.
        limit: the maximum size of the body or each event, in bytes.
        last_id: the event id with which a stream is resumed.

    Raises:
        RemoteProtocolError: the body is encoded, and the status is good.
    """

    __slots__ = ("_limit", "content_type", "events", "good", "head", "kept", "status")

    def __init__(self, head: Head, limit: int, last_id: str = "") -> None:
        self.head = head
        self.status = head.status
        self.good = 200 <= head.status < 300
        self.events: SseDecoder | None = None
        self.kept: bytearray | None = bytearray()
        self._limit = limit
        self.content_type: bytes | None = None
        coding: bytes | None = None
        for name, value in head.headers:
            if name == b"content-type":
                if self.content_type is None:
                    self.content_type = value
            elif name == b"content-encoding" and coding is None:
                coding = value.strip().lower()
        if coding not in (None, b"identity", b""):
            assert coding is not None
            if self.good:
                raise RemoteProtocolError(
                    f"the body is encoded ({coding.decode('latin-1')[:40]}), which the client did "
                    "not request; does a proxy encode it?"
                )
            self.kept = None
        elif self.good and self.content_type != JSON and is_event_stream(self.content_type):
            self.events = SseDecoder(last_id, limit=limit)

    def __repr__(self) -> str:
        kind = "events" if self.events is not None else f"{len(self.kept or b'')} bytes"
        return f"<Response {self.status}, {kind}>"

    @property
    def is_json(self) -> bool:
        """True if the body is JSON, by its content type."""
        return self.content_type == JSON or is_json(self.content_type)

    @property
    def body(self) -> bytes:
        """The body as far as it has arrived; `b""` if it isn't kept."""
        return bytes(self.kept or b"")

    def feed(self, data: bytes) -> Iterator[SseEvent]:
        """Process a chunk of the body, and yield the events that it completes.

        This is a generator: the chunk is processed while it is iterated over.

        Raises:
            RemoteProtocolError: the body or an event is over the limit. Events before it were
                yielded.
        """
        decoder = self.events
        if decoder is None:
            self.keep(data)
            return
        decoder.feed(data)
        try:
            while (event := decoder.next_event()) is not None:
                yield event
        except EventTooLong as exc:
            raise RemoteProtocolError(f"{exc}{_CURE}") from None

    def keep(self, data: bytes) -> None:
        """Add a chunk to a body that isn't an event stream. `feed` does this too.

        Raises:
            RemoteProtocolError: the body is over the limit.
        """
        body = self.kept
        if body is None:
            return
        if len(body) + len(data) <= (self._limit if self.good else MAX_ERROR_BODY):
            body += data
        elif self.good:
            beginning = show_bytes(body or data)
            raise RemoteProtocolError(
                f"the body of the response is longer than {self._limit} bytes; it begins with"
                f" {beginning}{_CURE}"
            )
        else:
            self.kept = None


# -- What a status means ---------------------------------------------------------------------------

_STATUS_TEXTS: Final = {
    400: "Bad Request",
    401: (
        "Unauthorized: the server wants an access token, in the header authorization: "
        "connect with auth=True, or log in with `mcp-trio login`"
    ),
    403: "Forbidden: the server denies access, or does not accept this host name or origin",
    404: "Not Found: is this the URL of an MCP server?",
    405: "Method Not Allowed: is this the URL of an MCP server?",
    406: (
        "Not Acceptable: the server can send neither JSON nor an event stream. "
        "Is this the URL of an MCP server?"
    ),
    407: "Proxy Authentication Required: a proxy in between wants a login",
    408: "Request Timeout",
    410: "Gone: is this the URL of an MCP server?",
    413: "Content Too Large: the server does not accept a message of this size",
    415: "Unsupported Media Type: the server does not accept JSON",
    421: "Misdirected Request: the server is not responsible for this host name",
    426: "Upgrade Required: does the server want https:// or ws://?",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error: its log may say why",
    501: "Not Implemented",
    502: "Bad Gateway: the server behind it cannot be reached",
    503: "Service Unavailable",
    504: "Gateway Timeout: the server behind it does not answer",
    511: "Network Authentication Required: log in to this network in a browser first",
}
_NOT_ACCEPTED: Final = (
    "Unauthorized: the server does not accept the access token or API key that was sent. It is "
    "wrong, expired or revoked: get a new one, a token with auth=True or `mcp-trio login`"
)
# Headers in which users send tokens and keys.
_TOKEN_HEADERS: Final = frozenset({b"authorization", b"x-api-key"})
# A later attempt may succeed.
_BUSY: Final = frozenset({429, 502, 503, 504})
DENIED_STATUS: Final = (401, 403)


def has_token(headers: Headers) -> bool:
    """Return True if a request with `headers`, whose names are in lower case, sends a token."""
    return any(name in _TOKEN_HEADERS for name, _ in headers)


def error_for_status(
    prefix: str, response: Response, *, sent_token: bool | None = None, redirect: str = ""
) -> McpTrioError:
    """Build the error for a request that got this response, and no JSON-RPC response in it.

    `sent_token` is as for `is_token_refused`. `redirect` says why a redirect isn't followed.

    Returns:
        `AuthRequired` for 401, and for 403 with a challenge; else a `RemoteProtocolError`. Its
        `fault` is `BUSY` if a later attempt may succeed. Its `data` has the `status`, and
        `retryAfter` as the server wrote it. The text begins with `prefix`.
    """
    head = response.head
    status = response.status
    text = f"{prefix}HTTP status {status}"
    if is_token_refused(head, sent_token=sent_token):
        text += f" {_NOT_ACCEPTED}"
    elif status in _STATUS_TEXTS:
        text += f" {_STATUS_TEXTS[status]}"
    if 300 <= status < 400:
        why = f", {redirect}" if redirect else ""
        return RemoteProtocolError(f"{text}{why}", data={"status": status})
    challenge = header(head, b"www-authenticate")
    explanation = _explanation(response)
    if explanation:
        explanation = f" ({explanation})"
    if status == 401 or (status in DENIED_STATUS and challenge is not None):
        text += explanation  # the server may want an API key, for which there is no login
        value = "" if challenge is None else challenge.decode("latin-1")
        found = _SCOPES.search(value)
        return AuthRequired(text, found[1].split() if found else (), challenge=value)
    data: dict[str, int | str] = {"status": status}
    after = header(head, b"retry-after")
    if after is not None and status in _BUSY:
        retry_after = _printable(after.decode("latin-1"))
        data["retryAfter"] = retry_after
        text += f"; try again after {retry_after}{' s' if retry_after.isdigit() else ''}"
    elif status in _BUSY:
        text += "; try again later"
    text += explanation
    return RemoteProtocolError(text, Fault.BUSY if status in _BUSY else Fault.INVALID_REQUEST, data)


def is_token_refused(head: Head, *, sent_token: bool | None) -> bool:
    """Return True if the client sent an access token, which the server doesn't accept.

    `sent_token` is True if the request had one, None if that is unknown. The challenge doesn't
    tell: some servers write `invalid_token` without a token, and others nothing with one.
    """
    if head.status != 401 or sent_token is not None:
        return head.status == 401 and bool(sent_token)
    return any(
        name == b"www-authenticate" and b"invalid_token" in value for name, value in head.headers
    )


def _explanation(response: Response) -> str:
    """Return the text in the body, or the message of a JSON-RPC error. HTML explains nothing."""
    type = media_type(response.content_type)
    if type not in (b"text/plain", JSON):
        return ""
    error = error_in(response.body) if type == JSON else None
    return _printable(response.body.decode("utf-8", "replace") if error is None else error.message)


def error_in(body: bytes) -> PeerError | None:
    """Return the JSON-RPC error in a body, None if it is something else."""
    try:
        raw = decode(body).error
    except BadMessage:
        return None
    error = None if raw is UNSET else decode_error(raw)
    return error if isinstance(error, PeerError) else None


def names_session(response: Response) -> bool:
    """Return True if the complete body of an error is about the session, and about no request.

    That is a JSON-RPC error whose id is absent or null, or no JSON-RPC at all. Its text has to be
    about the session: some servers answer without an id to a handler that has failed, too, and what
    may have run is never sent again.
    """
    body = response.body
    if _SESSION_WORDS.search(body) is None:
        return False
    try:
        envelope = decode(body)
    except BadMessage:
        # Unreadable JSON may be about any request.
        return _RESPONSE_MEMBER.search(body) is None
    is_error = envelope.method is UNSET and envelope.error is not UNSET
    return is_error and (envelope.id is UNSET or envelope.id is None)


def _printable(text: str) -> str:
    text = _UNPRINTABLE.sub(" ", text).strip()
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."
