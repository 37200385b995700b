"""The requests of Streamable HTTP and their responses: POST, GET of an event stream, DELETE.

1. A stream that ends before the result is resumed, if the revision allows that and an event had an
   id. Resuming repeats nothing: the server sends only what came after that id (2025-11-25,
   basic/transports, Resumability). Without an id the call is lost; nothing is posted again.
2. A JSON-RPC message in the body counts more than the status. Exceptions are 401 and 403, which are
   about authorization, and 404 to a request with a session id: the session has ended.
3. After its result, a stream has some seconds to end by itself: then the connection can be reused.

Sources: those of `_streamable.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from msgspec import UNSET

from mcp_core._errors import AuthRequired, ConnectionLost, Fault, RemoteProtocolError
from mcp_core.http.wire._mcp_headers import LAST_EVENT_ID
from mcp_core.http.wire._media_types import JSON
from mcp_core.http.wire._messages import header
from mcp_core.http.wire._sse import last_event_id
from mcp_core.protocol.connection._negotiation import MODERN_ERRORS
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.jsonrpc._body import parse_body
from mcp_core.protocol.jsonrpc._codec import BadMessage, Envelope, decode
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.protocol.revisions._methods import Step

from ._reconnect import Reconnection
from ._response import Response, error_for_status, error_in
from ._transport import (
    ACCEPT_EVENT_STREAM,
    STEPS,
    HttpOperation,
    MessagePost,
    handshake_step,
    is_long_lived,
)

if TYPE_CHECKING:
    from mcp_core._errors import McpTrioError
    from mcp_core.http.wire._messages import Head, Headers
    from mcp_core.http.wire._sse import SseDecoder
    from mcp_core.protocol.jsonrpc._body import ParsedBody
    from mcp_core.protocol.messages._outbox import Outgoing
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.types import RequestId

    from ._transport import OperationHost

__all__ = ["EventStreamGet", "SessionDelete", "SessionTransport", "StreamablePost"]

# A GET that got one of these may succeed later; with any other status below 500 it will not.
_TEMPORARY: Final = frozenset({408, 429})
# The status with which a server of HTTP+SSE rejects a POST, or the `initialize` in it (2025-11-25
# and 2026-07-28, basic/transports, Backwards Compatibility).
_NO_STREAMABLE_HTTP: Final = frozenset({400, 404, 405})


class SessionTransport(Protocol):
    """The `StreamableHttpTransport`, as far as the operations of a session need it."""

    @property
    def client(self) -> OperationHost: ...

    @property
    def session(self) -> bytes | None:
        """The session's id, None without one."""

    @property
    def reading(self) -> dict[RequestId, StreamablePost | EventStreamGet]:
        """By our request's id: the operation on which its response is expected."""

    @property
    def is_unproven(self) -> bool:
        """True if the session is a new one, in which the server has accepted nothing yet."""

    def headers(self, dialect: Dialect | None = None) -> Headers:
        """Return each request's headers: protocol version and session id, as far as known."""

    def accepted(self, post: StreamablePost, head: Head) -> None:
        """Process a good status for the handshake, or for a message while `is_unproven`.

        Raises:
            RemoteProtocolError: the session id in `head` cannot be sent in a header.
        """

    def try_legacy_sse(self, post: StreamablePost, response: Response, now: float) -> None:
        """Try HTTP+SSE, because the server has rejected the handshake with `response`."""

    def resume(self, post: StreamablePost, reconnection: Reconnection, now: float) -> None:
        """Resume the stream that was the response to a message."""

    def forget_standalone_stream(self, problem: McpTrioError | None) -> None:
        """Forget the standalone stream of the session. A `problem` is reported."""

    def session_lost(self, operation: StreamablePost | EventStreamGet, now: float) -> None:
        """Process status 404: the server doesn't know a request's session."""

    def forget(self, operation: StreamablePost | EventStreamGet) -> None:
        """Forget an operation: its request has been answered, or has failed."""


class StreamablePost(MessagePost):
    """A message, and the response to it. `session` is the session id that was sent with it."""

    # Of the response, once it has turned out to be an event stream.
    reconnection: Reconnection | None = None

    def __init__(self, transport: SessionTransport, out: Outgoing) -> None:
        self.transport = transport
        self.client = transport.client
        self.out = out
        self.id = out.id if out.kind is MessageKind.REQUEST else None
        dialect = out.dialect
        self.session = transport.session if dialect is None or dialect.http.sessions else None

    @property
    def accepted(self) -> bool:
        """True if the response has begun, with a good status."""
        return self.response is not None and self.response.good

    @property
    def is_streaming(self) -> bool:
        """True if the response has begun, and is an event stream."""
        return self.response is not None and self.response.events is not None

    def response_started(self, head: Head, now: float) -> None:
        if head.status == 404 and self.session is not None:
            self.transport.session_lost(self, now)
            return
        try:
            self.response = response = Response(head, self.client.message_limit)
            if response.events is not None:
                self.reconnection = Reconnection(self.client.options)
            if response.good:
                transport = self.transport
                if transport.is_unproven or STEPS.get(self.out.method) is Step.INITIALIZE:
                    transport.accepted(self, head)
                if (
                    self.id is not None
                    and head.status == 200
                    and not (
                        response.events is not None
                        or response.content_type == JSON
                        or response.is_json
                    )
                ):
                    raise RemoteProtocolError(_unexpected_content_type(head))
        except RemoteProtocolError as exc:
            self.fail(_with_prefix(self.error_prefix, exc), now, head.status)

    def response_data(self, data: bytes, now: float) -> None:
        response = self.response
        assert response is not None
        if response.events is not None:
            assert self.reconnection is not None
            _process_events(self, response.events, self.reconnection, data, now)
        elif self.id is not None or not response.good:
            # No body is expected for a notification or a response, and many may be posted at a
            # time.
            try:
                response.keep(data)
            except RemoteProtocolError as exc:
                self.fail(_with_prefix(self.error_prefix, exc), now, response.status)

    def response_ended(self, error: str | None, now: float) -> None:
        response = self.response
        if response is None or (error is not None and response.events is None):
            self.fail_connection_lost(error, now)
        elif response.events is not None:
            self._stream_ended(error, now)
        elif not response.good:
            self._handle_error_status(response, now)
        elif self.id is not None:
            self._handle_body(response, self.id, now)

    def on_deadline(self, now: float) -> None:
        self.transport.forget(self)
        super().on_deadline(now)

    def fail(self, error: McpTrioError, now: float, status: int = 0) -> None:
        self.transport.forget(self)
        super().fail(error, now, status)

    def _stream_ended(self, error: str | None, now: float) -> None:
        if self.id is None or not self.client.conn.has_outgoing(self.id):
            self.transport.forget(self)
            return
        dialect = self.out.dialect
        reconnection = self.reconnection
        assert reconnection is not None
        if dialect is not None and dialect.http.resumable and reconnection.last_id:
            self.transport.resume(self, reconnection, now)
        elif error is not None or is_long_lived(self.out):
            self.fail_connection_lost(
                f"the stream broke before the response arrived ({error or 'it ended'})", now
            )
        else:
            # As a proxy ends it whose upstream is gone: a later attempt may succeed.
            ended = self.invalid_response_error("the stream ended without the response", Fault.BUSY)
            self.fail(ended, now, 200)

    def _handle_error_status(self, response: Response, now: float) -> None:
        if (
            handshake_step(self.out) is Step.INITIALIZE
            and response.status in _NO_STREAMABLE_HTTP
            and self.client.conn.state is State.OPENING
            and not _is_modern_body(response.body)
        ):
            self.transport.try_legacy_sse(self, response, now)
        else:
            self.handle_error_response(response, now)

    def _handle_body(self, response: Response, id: RequestId, now: float) -> None:
        """Process a complete body with a good status that isn't an event stream."""
        data = bytes(response.kept or b"")
        body: ParsedBody | None = None
        if response.status != 200 or not data:
            problem: str | None = (
                f"the server accepted the request (status {response.status}) but sent no response "
                "to it"
            )
        else:
            client = self.client
            body = parse_body(data, client.conn.config.limits)
            message = body.messages[0] if len(body.messages) == 1 else None
            if (
                type(message) is Envelope
                and message.method is UNSET
                and message.id == id
                and type(message.id) is type(id)
                and not body.is_array
            ):
                problem = None
            else:
                problem = self._find_error(body, data, id)
        if problem is not None:
            self.fail(self.invalid_response_error(problem), now, response.status)
            return
        reading = self.transport.reading
        if reading.get(id) is self:
            del reading[id]
        answered = self.client.receive(data, now, id, response.status, body)
        # A batch may lack the response, and a response of the wrong shape is rejected.
        if not answered and self.client.conn.has_outgoing(id):
            missing = self.invalid_response_error(
                "the body does not contain the response to the request"
            )
            self.client.message_failed(self.out, missing, now, response.status)

    def _find_error(self, body: ParsedBody, data: bytes, id: RequestId) -> str | None:
        """Return why the body cannot be the response to request `id`, None if it can.

        `data` is what `body` was parsed from.
        """
        dialect = self.out.dialect
        if body.is_array and dialect is not None and dialect.batches:
            return None
        message = None if body.is_array or not body.messages else body.messages[0]
        if message is None or isinstance(message, BadMessage):
            # Say what is wrong with one message: an array, for example, is none.
            try:
                message = decode(data)
            except BadMessage as exc:
                return f"the response is invalid: {exc.message}"
        if message.method is not UNSET:
            return "the body is another message than the response to the request"
        if message.id != id or type(message.id) is not type(id):
            return "the response is for another request"
        return None


class EventStreamGet(HttpOperation):
    """A GET of an event stream.

    It resumes the response to `out`; if that is None, it is the standalone stream of the session.
    """

    # As of `StreamablePost.is_streaming`, but here also before the response has begun.
    is_streaming = True

    def __init__(
        self, transport: SessionTransport, reconnection: Reconnection, out: Outgoing | None = None
    ) -> None:
        self.transport = transport
        self.client = transport.client
        self.reconnection = reconnection
        self.out = out
        self.id = None if out is None else out.id
        self.session = transport.session
        self._started_at: float | None = None  # of the last response with a good status

    def __repr__(self) -> str:
        whose = "the session" if self.out is None else self.out.method
        return f"<EventStreamGet of {whose}, {self.reconnection!r}>"

    @property
    def error_prefix(self) -> str:
        """The start of an error's text."""
        return "the standalone stream: " if self.out is None else f"{self.out.method}: "

    def connect(self) -> None:
        """Queue the GET, with the id of the last event if there was one."""
        headers = [
            ACCEPT_EVENT_STREAM,
            *self.transport.headers(None if self.out is None else self.out.dialect),
        ]
        last_id = last_event_id(self.reconnection.last_id)
        if last_id:
            headers.append((LAST_EVENT_ID, last_id))
        self.response = None
        self.client.make(self, b"GET", self.client.url.target, headers, long_lived=True)

    def response_started(self, head: Head, now: float) -> None:
        # A standalone stream that was never open is rather one that the server doesn't offer: some
        # servers have no route for GET. If the session is lost, the next POST shows it.
        was_open = self.out is not None or self._started_at is not None
        if head.status == 404 and self.session is not None and was_open:
            self.transport.session_lost(self, now)
            return
        try:
            self.response = response = Response(
                head, self.client.message_limit, self.reconnection.last_id
            )
            if response.good and response.events is None:
                raise RemoteProtocolError(_unexpected_content_type(head))
        except RemoteProtocolError as exc:
            self.fail(_with_prefix(self.error_prefix, exc), now)
            return
        if response.good:
            # Reconnected without an event id: what the server sent in between is lost.
            if self.out is None and self._started_at is not None and not self.reconnection.last_id:
                self.client.report_missed_changes()
            self._started_at = now

    def response_data(self, data: bytes, now: float) -> None:
        response = self.response
        assert response is not None
        if response.events is not None:
            _process_events(self, response.events, self.reconnection, data, now)
            return
        try:
            response.keep(data)
        except RemoteProtocolError as exc:
            self.fail(_with_prefix(self.error_prefix, exc), now, response.status)

    def response_ended(self, error: str | None, now: float) -> None:
        response = self.response
        if self.id is not None and not self.client.conn.has_outgoing(self.id):
            self.transport.forget(self)
        elif response is None or response.events is not None:
            if response is not None:
                assert self._started_at is not None
                self.reconnection.stream_ended(now - self._started_at)
            self.retry(error or "the stream ended", now)
        elif response.status in _TEMPORARY or response.status >= 500:
            self.retry(str(error_for_status("", response)), now)
        elif self.out is not None:
            status_error = error_for_status(self.error_prefix, response, sent_token=self.sent_token)
            if not isinstance(status_error, AuthRequired):
                status_error = ConnectionLost(str(status_error))
            self.fail(status_error, now)
        elif self.reconnection.last_id:
            # The server doesn't know that event any more. A stream without a past may still work.
            self.reconnection.last_id = ""
            self.retry(str(error_for_status("", response)), now)
        else:
            self.transport.forget_standalone_stream(None)

    def denied(self, error: McpTrioError, now: float) -> None:
        self.fail(error, now)

    def retry(self, problem: str, now: float) -> None:
        """Reconnect after a delay; after too many attempts, fail with `problem` as the reason."""
        delay = self.reconnection.next_delay()
        if delay is None:
            text = (
                f"{self.error_prefix}no success after {self.reconnection.failures} attempts: "
                f"{problem}"
            )
            self.fail(ConnectionLost(text), now)
        else:
            self.response = None
            self.client.set_deadline(self, now + delay)

    def on_deadline(self, now: float) -> None:
        if not self.key:
            self.connect()
        else:
            # Set by `linger`: the request has its result, but the stream did not end.
            self.transport.forget(self)
            self.client.drop(self)

    def fail(self, error: McpTrioError, now: float, status: int = 0) -> None:
        """End the operation with an error."""
        self.client.drop(self)
        if self.out is None:
            self.transport.forget_standalone_stream(error)
        else:
            self.transport.forget(self)
            self.client.message_failed(self.out, error, now, status)


class SessionDelete(HttpOperation):
    """The DELETE that ends a session. Its outcome is ignored: a server may answer 405."""

    def response_started(self, head: Head, now: float) -> None:
        """Ignore the status."""

    def response_data(self, data: bytes, now: float) -> None:
        """Ignore the body."""

    def response_ended(self, error: str | None, now: float) -> None:
        """Ignore the end, and how it came about."""

    def denied(self, error: McpTrioError, now: float) -> None:
        """Ignore the error: the client is closed already."""


def _process_events(
    operation: StreamablePost | EventStreamGet,
    decoder: SseDecoder,
    reconnection: Reconnection,
    data: bytes,
    now: float,
) -> None:
    """Pass the events that a chunk of an event stream completes to the connection."""
    response = operation.response
    client = operation.client
    id = operation.id
    assert response is not None
    has_event = False
    try:
        for event in response.feed(data):
            has_event = True
            if event.is_message:
                client.receive(event.data, now, id, response.status)
    except RemoteProtocolError as exc:
        operation.fail(_with_prefix(operation.error_prefix, exc), now, response.status)
        return
    reconnection.chunk_received(decoder, event=has_event)
    if id is not None and not client.conn.has_outgoing(id):
        client.linger(operation, now)


def _is_modern_body(body: bytes) -> bool:
    """Return True if a body is an error that only a stateless server sends."""
    error = error_in(body)
    return error is not None and error.code in MODERN_ERRORS


def _unexpected_content_type(head: Head) -> str:
    value = header(head, b"content-type")
    type = "no type" if value is None else f"type {value.decode('latin-1')[:80]!r}"
    return (
        f"the response is of {type} instead of JSON or an event stream; is this the URL of an MCP "
        "server?"
    )


def _with_prefix(prefix: str, error: RemoteProtocolError) -> RemoteProtocolError:
    return RemoteProtocolError(f"{prefix}{error}", error.fault, error.data)
