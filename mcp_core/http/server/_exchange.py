"""One HTTP request and its response: the body in, and a head, a body and an end out.

1. The first output decides the kind of response. A result on its own becomes a JSON body, with the
   status that the revision gives to it. Anything before the result, or a long silence, opens a
   stream, whose status is 200 even if the result is an error.
2. A streamed response is a cursor in an `EventStream`. It ends with that stream, or when the stream
   continues in another response.
3. What `actions_to_send` has returned counts as sent: nothing is returned twice.

An exchange reports facts. Its endpoint decides which conversation it belongs to, and what follows
from a fact.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_core.http.wire._mcp_headers import SESSION_ID
from mcp_core.http.wire._media_types import CONTENT_TYPE_JSON, EVENT_STREAM
from mcp_core.http.wire._messages import Action, Body, End, ErrorResponse, Head, Headers
from mcp_core.http.wire._sse import COMMENT, encode_event
from mcp_core.protocol.revisions._dialects import HttpRules

if TYPE_CHECKING:
    from mcp_core.http.wire._recorder import ExchangeRecorderLike
    from mcp_core.http.wire._websocket import WebSocket
    from mcp_core.protocol.messages._events import GrantLike

    from ._auth import AuthCheck
    from ._session import Conversation
    from ._stream import EventStream

__all__ = ["EndpointLike", "Exchange", "ResponseMode"]


class ResponseMode(enum.Enum):
    """How far a response has come."""

    __hash__ = object.__hash__

    READING = "the request is not complete"
    UNDECIDED = "no output yet: JSON or a stream"
    STREAM = "streaming"
    DONE = "complete, but perhaps not yet sent"
    DISCONNECTED = "the client has disconnected"


READING, UNDECIDED, STREAM, DONE, DISCONNECTED = ResponseMode

_EVENTS: Final = (
    (b"content-type", EVENT_STREAM),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # nginx: don't buffer this response
)
_NO_SCOPES: Final[frozenset[str]] = frozenset()
# Bytes up to which a block of a body grows: short pieces would take many times their size as
# objects of their own. One buffer for a whole body would take half as much again when there are
# many: growing and freeing buffers of megabytes leaves holes in the heap.
_BLOCK: Final = 32 * 1024
_NO_LENGTH: Final[Headers] = [(b"content-length", b"0")]


class EndpointLike(Protocol):
    """An exchange's endpoint: what a `Router` calls there on behalf of the driver."""

    def receive_data(self, exchange: Exchange, data: bytes, now: float, *, end: bool) -> None: ...

    def disconnected(self, exchange: Exchange, now: float) -> None: ...

    def actions_to_send(self, exchange: Exchange) -> list[Action]: ...

    def refuse_body(self, exchange: Exchange, rejection: ErrorResponse) -> None: ...


class Exchange:
    """One request and its response.

    A driver reads the attributes and leaves the methods to the `Router`. The router makes it, for
    an `endpoint` (None for a plain route), with the reconnection time `retry` in milliseconds.
    These attributes are for drivers:

    - `token`: belongs to the driver. The router calls its `wake` when there is output to send.
    - `reading`: True while the router wants the request's body.
    - `over`: True once `actions_to_send` has returned the whole response.
    - `auth_check`: the authorization check that is still undecided. No body is read until then.
    - `close_after`: True if the connection must be closed after this response.
    - `queued`: response bytes that wait to be sent.
    - `buffered`: body bytes that have arrived, as long as it isn't complete.
    - `socket`: the WebSocket that the connection becomes once the response's head is sent.
    - `conversation`: what the request belongs to, once that is known.
    - `record`: its recording, None if it isn't recorded.
    """

    __slots__ = (
        "_actions",
        "_body",
        "_streamed",
        "address",
        "auth_check",
        "begins_session",
        "body_limit",
        "buffered",
        "client",
        "close_after",
        "conversation",
        "cursor",
        "endpoint",
        "expires_at",
        "extra_headers",
        "fields",
        "grant",
        "headers",
        "is_head",
        "is_stateless",
        "mcp_method",
        "mirrored_headers",
        "mode",
        "needed_scopes",
        "over",
        "principal",
        "reading",
        "record",
        "reply_format",
        "retry",
        "session",
        "socket",
        "stream",
        "token",
        "too_long",
        "wants_websocket",
    )

    def __init__(self, endpoint: EndpointLike | None, token: Any, *, retry: int = 0) -> None:
        self.endpoint = endpoint  # None for a plain route, whose response is there at once
        self.token = token
        self.retry = retry  # milliseconds after which a client should reconnect
        self.mode = READING
        self.reading = False
        self.over = False
        self.close_after = False
        self.record: ExchangeRecorderLike | None = None
        self.body_limit = 0  # bytes
        self.too_long = False  # more than that has arrived
        self._actions: list[Action] = []
        self._body: list[bytes | bytearray] = []
        self.buffered = 0
        self.client: str | None = None  # that an unfinished body counts for, see `client_key`
        self._streamed = False  # some part of a stream was sent
        # What the endpoint has found out about the request.
        self.fields: Headers = []  # all header fields of the request
        self.headers: dict[bytes, bytes] = {}
        self.mirrored_headers: Headers = []  # those that repeat values of the body
        self.extra_headers: Headers = []  # for every response's head, such as CORS headers
        self.principal = ""
        self.address = ""  # of the client, "" if that is unknown
        self.auth_check: AuthCheck | None = None
        self.grant: GrantLike | None = None
        self.needed_scopes: frozenset[str] = _NO_SCOPES  # those that the messages in its body need
        # As `HttpOptions.reply`, unless the client accepts only one kind of response.
        self.reply_format = "auto"
        self.session: Conversation | None = None
        self.wants_websocket = False  # the client asks for a WebSocket
        self.socket: WebSocket | None = None
        self.begins_session = False  # this request has begun the session
        self.is_stateless = False  # the revision has no handshake
        self.is_head = False  # the verb is HEAD: the response has no body
        self.mcp_method = ""  # the MCP method, for the access log
        self.conversation: Conversation | None = None
        self.stream: EventStream | None = None
        self.cursor = 0  # number of the last message of `stream` that was sent
        self.expires_at = math.inf  # when a long-lived stream must end, with its access token

    def __repr__(self) -> str:
        stream = f" of {self.stream!r} at {self.cursor}" if self.stream is not None else ""
        return f"<Exchange {self.mode.name}{stream}>"

    # -- What arrives ------------------------------------------------------------------------------

    def refuse_body(self, rejection: ErrorResponse) -> None:
        """Answer the unfinished body, which is in excess, with `rejection`."""
        assert self.endpoint is not None
        self.endpoint.refuse_body(self, rejection)

    def receive_data(self, data: bytes, *, end: bool = False) -> bytes | None:
        """Add `data`, a piece of the body. Return the complete body at its end, and None before.

        `b""` is the end, and so is a piece that comes with `end`. If the body exceeds `body_limit`,
        `too_long` is set; then answer with an error. What isn't wanted is ignored.
        """
        if not self.reading:
            return None
        if data:
            self.buffered += len(data)
            if self.buffered > self.body_limit:
                self.too_long = True
                return None
            if not end:
                self._add_to_body(data)
                return None
        self.reading = False
        body = b"".join((*self._body, data)) if self._body else bytes(data)
        self._body.clear()
        self.buffered = 0
        return body

    def _add_to_body(self, data: bytes) -> None:
        blocks = self._body
        if not blocks or len(blocks[-1]) >= _BLOCK:
            blocks.append(data)
            return
        last = blocks[-1]
        if type(last) is not bytearray:
            last = blocks[-1] = bytearray(last)
        last += data

    def disconnected(self) -> bool:
        """Drop all output. Return False if there was nothing left to lose."""
        if self.over or self.mode is DISCONNECTED:
            return False
        self.mode = DISCONNECTED
        self.reading = False
        self.auth_check = None
        self._actions.clear()
        self._body.clear()
        self.buffered = 0
        return True

    # -- The response ------------------------------------------------------------------------------

    @property
    def queued(self) -> int:
        """Stream bytes that wait to be sent."""
        stream = self.stream
        return stream.unsent if stream is not None and stream.exchange is self else 0

    def drop_responses(self) -> None:
        """Replace long responses that were not taken by errors: too much waits to be read."""
        stream = self.stream
        if stream is not None and stream.exchange is self:
            stream.drop_responses(self.cursor)

    def respond(self, status: int, body: bytes = b"", headers: Headers | None = None) -> None:
        """Queue a whole response with `status` and `body`, empty for none.

        The body is JSON unless there are `headers`: then they have its content type.
        """
        if headers is not None:
            head = [*headers]
        else:
            head = [CONTENT_TYPE_JSON] if body else []
        if body:
            head.append((b"content-length", b"%d" % len(body)))
        elif status != 204:
            head += _NO_LENGTH
        self._actions.append(Head(status, head + self.extra_headers))
        if body and not self.is_head:
            self._actions.append(Body(body))
        self._actions.append(End())
        self.mode = DONE
        self.reading = False
        self._body.clear()
        self.buffered = 0

    def switch_to_websocket(self, headers: Headers) -> None:
        """Queue the head, with `headers`, that turns the connection into a WebSocket."""
        self._actions.append(Head(101, headers))
        self.mode = DONE
        # A WebSocket lives long and doesn't need them.
        self.fields, self.headers, self.mirrored_headers = [], {}, []

    def begin_stream(self) -> None:
        """Queue a stream's head; events follow."""
        self.mode = STREAM
        headers = [*_EVENTS, *self.extra_headers]
        if self.begins_session and self.session is not None:
            headers.append((SESSION_ID, self.session.id))
        self._actions.append(Head(200, headers))
        stream, rules = self.stream, self.rules
        if (
            stream is not None
            and rules.priming_event
            and rules.resumable
            and self.session is not None
        ):
            # A priming event: an id to resume from, before there is any message (2025-11-25).
            id = b"%b-%d" % (stream.name, self.cursor)
            self._actions.append(Body(encode_event(b"", id=id, retry=self.retry)))

    def send_raw(self, data: bytes) -> None:
        """Queue `data`, bytes of the stream that aren't a message."""
        self._actions.append(Body(data))

    def send_comment(self) -> None:
        """Queue an SSE comment, to keep the stream alive through proxies.

        If an earlier one wasn't sent yet, the silence is the client's, and one is enough.
        """
        begins = self.mode is UNDECIDED
        if begins:
            self.begin_stream()
        if begins or (self.mode is STREAM and not self._actions):
            self._actions.append(Body(COMMENT))

    def end_for_reconnect(self, retry: int | None) -> None:
        """End this response after what is queued; the client reconnects after `retry` ms."""
        if self.mode is UNDECIDED:
            self.begin_stream()
        self._take_messages()
        if retry is not None:
            self._actions.append(Body(b"retry: %d\n\n" % retry))
        self._finish()
        self._streamed = True

    def abort(self) -> None:
        """End this response now. Messages that were not sent stay in the stream."""
        if self.mode is UNDECIDED:
            self.begin_stream()
        self._finish()
        self._streamed = True

    def actions_to_send(self) -> list[Action]:
        """Return what to write now, in this order. Look at `mode` and `over` afterwards."""
        if self.mode is UNDECIDED:
            self._decide()
        if self.mode is STREAM:
            self._streamed = True
            self._take_messages()
            if self.stream is not None and self.stream.over:
                self._finish()
        actions = self._actions
        if not actions:
            return []
        self._actions = []
        self.over = self.mode is DONE
        return actions

    @property
    def is_resumable(self) -> bool:
        """True if the client has received an event id with which it can resume the stream."""
        return (
            self._streamed
            and self.session is not None
            and (self.rules.priming_event or self.cursor > 0)
        )

    @property
    def rules(self) -> HttpRules:
        """The HTTP rules for the conversation's revision."""
        assert self.conversation is not None
        return self.conversation.rules

    def _decide(self) -> None:
        """Choose between JSON and a stream, if there is something to send."""
        stream = self.stream
        assert stream is not None
        if stream.has_messages_before_response:
            self.begin_stream()
        elif stream.over:
            status = 200
            if len(stream.messages) == 1 and not stream.batch:
                code = stream.messages[0][2]
                if code and stream.rejection is not None:
                    status = stream.rejection.status
                elif code:
                    status = self.rules.statuses.get(code, 200)
            if stream.messages and (status != 200 or self.reply_format != "sse"):
                self._send_json(stream, status)
            elif stream.messages or self.reply_format != "json":
                self.begin_stream()  # an empty one, if the request was cancelled
            else:
                self.respond(202)

    def _send_json(self, stream: EventStream, status: int) -> None:
        if stream.batch:
            body = b"[%b]" % b",".join([data for _, data, _ in stream.messages])
        else:
            body = stream.messages[0][1]
        headers = [CONTENT_TYPE_JSON]
        if status != 200 and stream.rejection is not None:
            headers += stream.rejection.headers
        if self.begins_session and self.session is not None:
            headers.append((SESSION_ID, self.session.id))
        self.cursor = stream.last_taken = stream.last
        stream.unsent = 0
        self.respond(status, body, headers)

    def _take_messages(self) -> None:
        """Encode the stream's messages behind the cursor as events."""
        stream = self.stream
        if stream is None or self.cursor == stream.last:
            return
        session = self.session
        resumable = session is not None and not session.legacy_sse and self.rules.resumable
        if resumable:
            name = stream.name
            for number, data, _ in stream.after(self.cursor):
                self._actions.append(Body(encode_event(data, id=b"%b-%d" % (name, number))))
        else:
            event = b"message" if session is not None else None
            self._actions += [
                Body(encode_event(data, event=event)) for _, data, _ in stream.after(self.cursor)
            ]
        self.cursor = stream.last_taken = stream.last
        stream.unsent = 0
        if not resumable:
            stream.clear()

    def _finish(self) -> None:
        self._actions.append(End())
        self.mode = DONE
