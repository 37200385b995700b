"""The requests of Streamable HTTP and their responses: POST, GET of an event stream, DELETE.

1. A stream that ends before the result is resumed, if the revision allows that and an event had an
   id. Resuming repeats nothing: the server sends only what came after that id (2025-11-25,
   basic/transports, Resumability). Without an id the call is lost; nothing is posted again.
2. A JSON-RPC message in the body counts more than the status. Exceptions are 401 and 403, which are
   about authorization, and 404 to a request with a session id: the session has ended. Servers of
   2025 answer 400 instead. That counts as 404 if the body has no id, because then it isn't the
   response to the request, and is about the session; the transport decides whether the session can
   have ended.
3. After its result, a stream has some seconds to end by itself: then the connection can be reused.

Sources: as in `_streamable.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from mcp_core._errors import AuthRequired, ConnectionLost, Fault, RemoteProtocolError
from mcp_core.http.wire._media_types import JSON, media_type
from mcp_core.http.wire._messages import header
from mcp_core.protocol.connection._negotiation import is_modern_error
from mcp_core.protocol.connection._requests import other_spelling
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.jsonrpc._body import parse_body
from mcp_core.protocol.jsonrpc._codec import BadMessage, Envelope, decode
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.protocol.revisions._methods import Step

from ._operation import (
    NOTHING,
    STEPS,
    Accepted,
    Failed,
    HttpOperation,
    LegacyServer,
    MessagePost,
    Messages,
    PlainOutcome,
    ResponseBody,
    SessionRejected,
    Wait,
    handshake_step,
    is_long_lived,
)
from ._reconnect import Reconnection
from ._response import Response, error_in, names_session

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError
    from mcp_core.http.wire._messages import Head
    from mcp_core.http.wire._sse import SseDecoder
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.jsonrpc._body import ParsedBody
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.types import RequestId

    from ._operation import Outcomes
    from ._options import HttpClientOptions

__all__ = ["EventStreamGet", "SessionDelete", "StreamablePost", "with_prefix"]

# A GET that got one of these may succeed later; with any other status below 500 it will not.
_TEMPORARY: Final = frozenset({408, 429})
# The status with which a server of HTTP+SSE rejects a POST, or the `initialize` in it (2025-11-25
# and 2026-07-28, basic/transports, Backwards Compatibility).
_NO_STREAMABLE_HTTP: Final = frozenset({400, 404, 405})
# The status with which servers of the official Python SDK up to 1.25, and those made from older
# examples of the TypeScript SDK, answer an unknown session id.
_UNKNOWN_SESSION: Final = 400


class StreamablePost(MessagePost):
    """A message, and the response to it. `session` is the session id that was sent with it."""

    # Of the response, once it has turned out to be an event stream.
    reconnection: Reconnection | None = None

    def __init__(
        self, conn: Connection, options: HttpClientOptions, out: Outgoing, session: bytes | None
    ) -> None:
        self.conn = conn
        self._options = options
        self.out = out
        self.id = out.id if out.kind is MessageKind.REQUEST else None
        dialect = out.dialect
        self.session = session if dialect is None or dialect.http.sessions else None

    @property
    def accepted(self) -> bool:
        """True if the response has begun, with a good status."""
        return self.response is not None and self.response.good

    @property
    def is_streaming(self) -> bool:
        """True if the response has begun, and is an event stream."""
        return self.response is not None and self.response.events is not None

    def response_started(self, head: Head, now: float) -> Outcomes:
        if head.status == 404 and self.session is not None:
            return (PlainOutcome.SESSION_LOST,)
        try:
            self.response = response = Response(head, self.conn.config.limits.message)
        except RemoteProtocolError as exc:
            return (Failed(with_prefix(self.error_prefix, exc), head.status),)
        if response.events is not None:
            self.reconnection = Reconnection(self._options)
        if not response.good:
            return NOTHING
        reported = (
            (Accepted(head),)
            if self.session is not None or STEPS.get(self.out.method) is Step.INITIALIZE
            else NOTHING
        )
        if (
            self.id is not None
            and head.status == 200
            and not (
                response.events is not None or response.content_type == JSON or response.is_json
            )
        ):
            error = RemoteProtocolError(f"{self.error_prefix}{_unexpected_content_type(head)}")
            return (*reported, Failed(error, head.status))
        return reported

    def response_data(self, data: bytes, now: float) -> Outcomes:
        response = self.response
        assert response is not None
        if response.events is not None:
            assert self.reconnection is not None
            return _read_events(self, response.events, self.reconnection, data)
        if self.id is not None or not response.good:
            # No body is expected for a notification or a response, and many may be posted at a
            # time.
            try:
                response.keep(data)
            except RemoteProtocolError as exc:
                return (Failed(with_prefix(self.error_prefix, exc), response.status),)
        return NOTHING

    def response_ended(self, error: str | None, now: float) -> Outcomes:
        response = self.response
        if response is None or (error is not None and response.events is None):
            return self.connection_lost(error)
        if response.events is not None:
            return self._stream_ended(error)
        if not response.good:
            return self._error_status(response)
        if self.id is None:
            return NOTHING
        data = bytes(response.kept or b"")
        if response.status != 200 or not data:
            problem = (
                f"the server accepted the request (status {response.status}) but sent no response "
                "to it"
            )
            return (Failed(self.invalid_response_error(problem), response.status),)
        body = parse_body(data, self.conn.config.limits)
        message = body.messages[0] if len(body.messages) == 1 else None
        if (
            type(message) is Envelope
            and message.method is UNSET
            and message.id == self.id
            and type(message.id) is type(self.id)
            and not body.is_array
        ):
            return (ResponseBody(data, body),)
        wrong = self._find_error(body, data, self.id)
        if wrong is not None:
            return (Failed(self.invalid_response_error(wrong), response.status),)
        return (ResponseBody(data, body),)

    def _stream_ended(self, error: str | None) -> Outcomes:
        if self.id is None or not self.conn.has_outgoing(self.id):
            return (PlainOutcome.ANSWERED,)
        dialect = self.out.dialect
        reconnection = self.reconnection
        assert reconnection is not None
        if dialect is not None and dialect.http.resumable and reconnection.last_id:
            return (PlainOutcome.RESUME,)
        if error is not None or is_long_lived(self.out):
            return self.connection_lost(
                f"the stream broke before the response arrived ({error or 'it ended'})"
            )
        # As a proxy ends it whose upstream is gone: a later attempt may succeed.
        ended = self.invalid_response_error("the stream ended without the response", Fault.BUSY)
        return (Failed(ended, 200),)

    def _error_status(self, response: Response) -> Outcomes:
        if (
            handshake_step(self.out) is Step.INITIALIZE
            and response.status in _NO_STREAMABLE_HTTP
            and self.conn.state is State.OPENING
            and not _is_modern(response)
        ):
            return (LegacyServer(response),)
        outcomes = self.error_response(response)
        # Without a request in the message, a missing id says nothing: the next request will tell.
        if self.id is not None and _may_be_unknown_session(response, self.session):
            return (SessionRejected(outcomes),)
        return outcomes

    def _find_error(self, body: ParsedBody, data: bytes, id: RequestId) -> str | None:
        """Return why the body cannot be the response to request `id`, None if it can.

        `data` is what `body` was parsed from.
        """
        dialect = self.out.dialect
        if body.is_array and dialect is not None and dialect.batches:
            return None
        # Say what is wrong with one message: an array, for example, is none.
        try:
            message = decode(data)
        except BadMessage as exc:
            return f"the response is invalid: {exc.message}"
        if message.method is not UNSET:
            return "the body is another message than the response to the request"
        found = message.id
        is_other = found is UNSET or found is None or other_spelling(found, {id: id}) is None
        if found != id and is_other:
            return "the response is for another request"
        return None


class EventStreamGet(HttpOperation):
    """A GET of an event stream.

    It resumes the response to `out`; if that is None, it is the standalone stream of the session.
    """

    # As of `StreamablePost.is_streaming`, but here also before the response has begun.
    is_streaming = True

    def __init__(
        self,
        conn: Connection,
        reconnection: Reconnection,
        session: bytes | None,
        out: Outgoing | None = None,
    ) -> None:
        self.conn = conn
        self.reconnection = reconnection
        self.session = session
        self.out = out
        self.id = None if out is None else out.id
        self._started_at: float | None = None  # of the last response with a good status

    def __repr__(self) -> str:
        whose = "the session" if self.out is None else self.out.method
        return f"<EventStreamGet of {whose}, {self.reconnection!r}>"

    @property
    def error_prefix(self) -> str:
        """The start of an error's text."""
        return "the standalone stream: " if self.out is None else f"{self.out.method}: "

    def response_started(self, head: Head, now: float) -> Outcomes:
        # A standalone stream that was never open is rather one that the server doesn't offer: some
        # servers have no route for GET. If the session is lost, the next POST shows it.
        was_open = self.out is not None or self._started_at is not None
        if head.status == 404 and self.session is not None and was_open:
            return (PlainOutcome.SESSION_LOST,)
        try:
            limit = self.conn.config.limits.message
            self.response = response = Response(head, limit, self.reconnection.last_id)
            if response.good and response.events is None:
                raise RemoteProtocolError(_unexpected_content_type(head))
        except RemoteProtocolError as exc:
            return (Failed(with_prefix(self.error_prefix, exc)),)
        if not response.good:
            return NOTHING
        # Reconnected without an event id: what the server sent in between is lost.
        missed = self.out is None and self._started_at is not None and not self.reconnection.last_id
        self._started_at = now
        return (PlainOutcome.MISSED_CHANGES,) if missed else NOTHING

    def response_data(self, data: bytes, now: float) -> Outcomes:
        response = self.response
        assert response is not None
        if response.events is not None:
            return _read_events(self, response.events, self.reconnection, data)
        response.keep(data)  # raises nothing: the status is an error's
        return NOTHING

    def response_ended(self, error: str | None, now: float) -> Outcomes:
        response = self.response
        if self.id is not None and not self.conn.has_outgoing(self.id):
            return (PlainOutcome.ANSWERED,)
        if response is None or response.events is not None:
            if response is not None:
                assert self._started_at is not None
                self.reconnection.stream_ended(now - self._started_at)
            return self.retry(error or "the stream ended", now)
        if response.status in _TEMPORARY or response.status >= 500:
            return self.retry(str(self.status_error("", response)), now)
        if self.out is not None:
            status_error = self.status_error(self.error_prefix, response)
            if not isinstance(status_error, AuthRequired):
                status_error = ConnectionLost(str(status_error))
            return (Failed(status_error),)
        if self.reconnection.last_id:
            # The server doesn't know that event any more. A stream without a past may still work.
            self.reconnection.last_id = ""
            return self.retry(str(self.status_error("", response)), now)
        if self._started_at is not None and _may_be_unknown_session(response, self.session):
            return (SessionRejected((PlainOutcome.NO_STREAM,)),)
        return (PlainOutcome.NO_STREAM,)

    def denied(self, error: McpTrioError) -> Outcomes:
        return (Failed(error),)

    def retry(self, problem: str, now: float) -> Outcomes:
        """Reconnect after a delay; after too many attempts, fail with `problem` as the reason."""
        delay = self.reconnection.next_delay()
        if delay is None:
            text = (
                f"{self.error_prefix}no success after {self.reconnection.failures} attempts: "
                f"{problem}"
            )
            return (Failed(ConnectionLost(text)),)
        self.response = None
        return (Wait(now + delay),)

    def on_deadline(self, now: float) -> Outcomes:
        # While a call is in progress, `linger` set it: the request has its result, but the stream
        # did not end.
        return (PlainOutcome.ABANDON if self.key else PlainOutcome.RECONNECT,)


class SessionDelete(HttpOperation):
    """The DELETE that ends a session. Its outcome is ignored: a server may answer 405."""

    def response_started(self, head: Head, now: float) -> Outcomes:
        return NOTHING

    def response_data(self, data: bytes, now: float) -> Outcomes:
        return NOTHING

    def response_ended(self, error: str | None, now: float) -> Outcomes:
        return NOTHING

    def denied(self, error: McpTrioError) -> Outcomes:
        return NOTHING  # the client is closed already


def _read_events(
    operation: StreamablePost | EventStreamGet,
    decoder: SseDecoder,
    reconnection: Reconnection,
    data: bytes,
) -> Outcomes:
    """Return the messages in the events that a chunk of an event stream completes."""
    response = operation.response
    assert response is not None
    messages: list[bytes] = []
    has_event = False
    try:
        for event in response.feed(data):
            has_event = True
            if event.is_message:
                messages.append(event.data)
    except RemoteProtocolError as exc:
        error = with_prefix(operation.error_prefix, exc)
        return (Messages(messages), Failed(error, response.status))
    reconnection.chunk_received(decoder, event=has_event)
    return (Messages(messages),)


def _is_modern(response: Response) -> bool:
    """Return True if the response to the handshake is an error of a stateless server."""
    error = error_in(response.body)
    return error is not None and is_modern_error(error, response.status)


def _may_be_unknown_session(response: Response, session: bytes | None) -> bool:
    return session is not None and response.status == _UNKNOWN_SESSION and names_session(response)


def _unexpected_content_type(head: Head) -> str:
    value = header(head, b"content-type")
    wanted = "JSON or an event stream"
    if value is None:
        found = f"has no content type; {wanted} is expected"
    else:
        found = f"is of type {value.decode('latin-1')[:80]!r} instead of {wanted}"
        found += ", perhaps a login page" if media_type(value) == b"text/html" else ""
    return f"the response {found}; is this the URL of an MCP server?"


def with_prefix(prefix: str, error: RemoteProtocolError) -> RemoteProtocolError:
    return RemoteProtocolError(f"{prefix}{error}", error.fault, error.data)
