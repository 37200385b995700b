"""Conversations over HTTP: which message goes to which stream, and when a session expires.

There are two kinds. A session lives over many requests and has several streams; what belongs to no
request goes to its standalone stream, which the client opens by GET. A one-shot conversation serves
a single POST and has one stream.

1. A message goes to exactly one stream: a response to its request's stream, what was sent on behalf
   of a request too, and the rest to the standalone stream (2025-11-25, basic/transports, Multiple
   Connections).
2. Nothing here calls the endpoint. What is for it goes into `EndpointState`, and `finished` asks it
   to end the conversation. After anything was sent on `conn` outside of an event, call
   `mark_dirty`.
3. Only `detach` decides what becomes of a stream that no response carries any more: it is retained
   if its client can resume it, and forgotten otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from mcp_core import types as t
from mcp_core._errors import Fault
from mcp_core.http.wire._messages import ErrorResponse
from mcp_core.protocol.connection._connection import Connection
from mcp_core.protocol.connection._pump import HIGH_WATER
from mcp_core.protocol.connection._state import State
from mcp_core.protocol.jsonrpc._codec import BadMessage, InvalidPayload, reader
from mcp_core.protocol.messages._events import (
    NEED_DATA,
    PAUSED,
    ConnectionClosed,
    Event,
    MessageRejected,
    RequestCancelled,
    RequestReceived,
)
from mcp_core.protocol.messages._outbox import MessageKind
from mcp_core.protocol.revisions._dialects import HttpRules
from mcp_core.protocol.subscriptions._server import CHANGES_HIGH_WATER
from mcp_core.types import RequestId

from ._checks import (
    ENDING,
    EVENTS_GONE,
    OPEN_ALREADY,
    STREAM_OVER,
    TOO_BUSY,
    TOO_MANY_SESSIONS,
    client_sessions_too_many,
    client_too_busy,
)
from ._exchange import Exchange, ResponseMode
from ._quotas import UnfinishedBodies
from ._stream import EventLog, EventStream
from ._timeouts import TimeoutQueue

if TYPE_CHECKING:
    from mcp_core.protocol.jsonrpc._body import ParsedBody
    from mcp_core.protocol.messages._outbox import Outgoing

    from ._auth import EndpointAuth
    from ._options import HttpLimits
    from ._websocket_session import WebSocketSessions

__all__ = [
    "HIGH_WATER",
    "Conversation",
    "EndpointState",
    "OneShots",
    "Session",
    "Sessions",
    "cancelled_ids",
    "session_in_target",
    "target_with_session",
]

_RESPONSE: Final = MessageKind.RESPONSE

_CANCELLED: Final = "notifications/cancelled"
_DROPPED_BESIDE_JSON: Final = frozenset({"notifications/progress", "notifications/message"})
_SESSION_ENDED: Final = (
    "the session has ended before this request was answered: begin a new one with initialize"
)

_QUERY: Final = b"session_id="

_read_cancelled = reader(t.CancelledParams)

# Events that concern a conversation's streams.
_STREAM_EVENTS: Final = frozenset((ConnectionClosed, MessageRejected, RequestCancelled))

_UNDECIDED, _STREAM = ResponseMode.UNDECIDED, ResponseMode.STREAM

# Names of streams whose requests were cancelled. A client that resumes one does so within seconds.
_CANCELLED_STREAMS: Final = 32


class EndpointState:
    """The state that an endpoint shares with its conversations.

    - `events`: events of all conversations, in order, for the driver.
    - `dirty`: conversations whose connection may have events or output.
    - `ready`: exchanges that have something to write.
    - `one_shots`: the conversations that aren't sessions.
    - `websockets`: the deadlines of WebSockets.
    - `bodies`: unfinished bodies. A `Router` has one such table for all of its endpoints.
    - `log`: streams that clients can resume.
    - `limits`: the endpoint's limits.
    - `queued_limit`: bytes that may wait on one stream before it is closed.
    - `now`: the time of the call under way.
    - `token`: the endpoint's, for the driver.
    - `auth`: authorizes the endpoint's requests, None without authorization.
    """

    __slots__ = (
        "auth",
        "bodies",
        "dirty",
        "events",
        "limits",
        "log",
        "now",
        "one_shots",
        "queued_limit",
        "ready",
        "token",
        "websockets",
    )

    def __init__(
        self,
        limits: HttpLimits,
        token: Any,
        auth: EndpointAuth | None,
        websockets: WebSocketSessions,
    ) -> None:
        self.events: deque[tuple[Conversation, Event]] = deque()
        self.dirty: dict[Conversation, None] = {}
        self.ready: dict[Exchange, None] = {}
        self.one_shots = OneShots(limits)
        self.websockets = websockets
        self.bodies = UnfinishedBodies()
        self.log = EventLog(limits)
        self.limits = limits
        self.queued_limit = limits.queued
        self.now = 0.0
        self.token = token
        self.auth = auth


class Conversation:
    """A one-shot conversation. Its methods are for drivers, if not noted otherwise.

    `one_shot` is False in subclasses, in which a client sends any number of requests.

    `ConnectionClosed` is the last event, unless it is `retired`.

    Args:
        shared: the endpoint's state.
        conn: the connection. Its `close` is for the endpoint only.
        principal: the authenticated client, "" without one.
        rules: the HTTP rules for the revision that is spoken.
        client: the client that it counts for in quotas, "" for none.

    Attributes:
        service: belongs to the driver.
        retired: True if it has ended without an event: the driver has to forget `service`.
    """

    __slots__ = (
        "client",
        "conn",
        "current_stream",
        "finished",
        "principal",
        "rejected",
        "retired",
        "rules",
        "service",
        "shared",
    )

    id = b""
    legacy_sse = False
    one_shot = True

    def __init__(
        self,
        shared: EndpointState,
        conn: Connection,
        principal: str,
        rules: HttpRules,
        client: str = "",
    ) -> None:
        self.shared = shared
        self.conn = conn
        self.principal = principal
        self.client = client  # under which it counts, see `client_key`
        self.rules = rules  # the HTTP rules for the revision that is spoken
        self.service: Any = None
        # The stream of the body that is being processed.
        self.current_stream: EventStream | None = None
        self.rejected = False  # the body had something that isn't a valid message
        self.finished = False  # the endpoint has to end this conversation
        self.retired = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self.conn!r}>"

    def mark_dirty(self) -> None:
        """Report that something was sent on `conn`, or that it has events."""
        self.shared.dirty[self] = None

    def queued(self, id: RequestId | None) -> int:
        """Return the bytes that wait for the client of request `id`.

        None stands for the standalone stream. What is retained without a connected client doesn't
        count.
        """
        stream = self.stream_for(id)
        return stream.unsent if stream is not None and stream.exchange is not None else 0

    def write_blocked(self, id: RequestId | None) -> bool:
        """Return True if the handler of request `id` should wait until less is queued."""
        return self.queued(id) > HIGH_WATER

    def has_capacity(self, id: RequestId | None) -> bool:
        """Return True if a change can be sent now to subscription `id`, or None: to the session."""
        stream = self.stream_for(id)
        if stream is None or stream.exchange is None:
            return False
        return stream.unsent < CHANGES_HIGH_WATER

    def release(self, id: RequestId, retry: float | None) -> bool:
        """End the response of the running request `id`; its client reconnects and resumes.

        `retry` is the time in seconds after which it should, if that is sent. Return False if this
        isn't possible: then nothing happens (2025-11-25, basic/transports).
        """
        return False

    def authorize_calls(
        self, request: RequestReceived, tools: Collection[str]
    ) -> ErrorResponse | None:
        """Return None if the token of `request` covers calls of `tools`, or why it doesn't.

        `request` is about what such calls have returned. If its response is an error, it gets the
        status and the challenge of the denial. Otherwise a token that resumes its stream needs the
        scopes too.
        """
        auth = self.shared.auth
        if auth is None or request.grant is None:
            return None
        verdict = auth.authorize_calls(request.grant, tools, request.method.name)
        stream = self.stream_for(request.id)
        if isinstance(verdict, ErrorResponse):
            if stream is not None:
                stream.rejection = verdict
            return verdict
        if stream is not None and not verdict <= stream.needed_scopes:
            stream.needed_scopes |= verdict
        return None

    def may_call(self, request: RequestReceived, tool: str) -> bool:
        """Return True if the token of `request`, if it has one, covers a call of `tool`."""
        auth = self.shared.auth
        return auth is None or request.grant is None or auth.may_call(request.grant, tool)

    def stream_for(self, id: RequestId | None) -> EventStream | None:
        """Return the stream for messages on behalf of request `id`, or None."""
        return self.current_stream

    def close(self) -> None:
        """Close the connection, for the endpoint. What was sent still goes to connected clients."""
        self.conn.close()
        self.shared.dirty[self] = None

    def retire(self) -> bool:
        """End a conversation in which nothing is left to do, without an event.

        For the endpoint, and only while the last response is being sent: the driver reads `retired`
        when it reports that this was sent. Return False if something is left; then call `close`.
        """
        shared = self.shared
        if shared.events or self in shared.dirty or not self.conn.retire():
            return False
        self.retired = True
        return True

    # -- Where messages go -------------------------------------------------------------------------

    def process_events(self) -> None:
        """Move events to `shared` and messages to their streams, for the endpoint.

        Look at `finished` afterwards.
        """
        conn, shared = self.conn, self.shared
        while True:
            event = conn.next_event()
            if event is NEED_DATA:
                for message in conn.messages_to_send():
                    self._route(message)
                return
            if event is PAUSED:
                self._route_all()
                # HTTP cannot stop reading. What exceeds the limits is rejected, and over HTTP the
                # connection has a pause of 0 s, so its timeout makes it do so now.
                conn.handle_timeout(shared.now)
                continue
            shared.events.append((self, event))
            if type(event) in _STREAM_EVENTS:
                self._update_streams(event)
                if type(event) is ConnectionClosed:
                    return

    def _update_streams(self, event: Event) -> None:
        if isinstance(event, MessageRejected):
            self.rejected = True
            return
        self._route_all()
        if isinstance(event, RequestCancelled):
            # Cancellations of what the request itself has asked are routed by now, to its stream.
            self.drop_request(event.id)
        else:
            self._end_streams()

    def _route_all(self) -> None:
        for message in self.conn.messages_to_send():
            self._route(message)

    def _route(self, message: Outgoing) -> None:
        shared = self.shared
        is_answer = message.kind is _RESPONSE
        stream = self._response_stream(message.id) if is_answer else self._message_stream(message)
        if stream is None:
            return
        exchange = stream.exchange
        if (
            exchange is not None
            and stream.unsent > shared.queued_limit
            # There are never more responses than requests, so they may exceed the limit.
            and (stream.long_lived or not is_answer)
        ):
            self.abort(exchange)
            exchange = None
        if is_answer:
            stream.add_response(message.data, message.id, message.error)
        else:
            stream.add_message(message.data)
        if exchange is None:
            self._retain(stream)
        elif exchange.mode is _STREAM or stream.has_messages_before_response:
            self._retain(stream)
            shared.ready[exchange] = None
        elif stream.over:
            shared.ready[exchange] = None

    def _response_stream(self, id: RequestId | None) -> EventStream | None:
        return self.current_stream

    def _message_stream(self, message: Outgoing) -> EventStream | None:
        """Return the stream for a message that isn't a response; None to drop the message."""
        stream = self.current_stream
        exchange = stream.exchange if stream is not None else None
        return stream if exchange is not None and exchange.reply_format != "json" else None

    def _retain(self, stream: EventStream) -> None:
        """Act on a message that was added to a stream, and not to a JSON response."""
        if stream.abandoned:
            self.finished = True  # the client has gone, and no other can resume this stream

    # -- How streams end ---------------------------------------------------------------------------

    def detach(self, exchange: Exchange) -> None:
        """Detach `exchange` from its stream, for the endpoint. Look at `finished` next."""
        stream = exchange.stream
        if stream is not None and stream.exchange is exchange:
            stream.exchange = None
            stream.unsent = 0
            self._detached(stream, exchange)

    def abort(self, exchange: Exchange) -> None:
        """End the response of `exchange` in the middle, for the endpoint.

        Look at `finished` afterwards.
        """
        exchange.abort()
        self.shared.ready[exchange] = None
        self.detach(exchange)

    def _detached(self, stream: EventStream, exchange: Exchange) -> None:
        # Otherwise the handler runs on: before 2026-07-28 a disconnect isn't a cancellation.
        if stream.over or self.rules.disconnect_cancels:
            self.finished = True

    def drop_request(self, id: RequestId) -> None:
        """End the request `id` without a response, for the endpoint."""
        stream = self.current_stream
        assert stream is not None
        stream.drop_request(id)
        self._mark_if_over(stream)

    def _end_streams(self) -> None:
        assert self.current_stream is not None
        self._end_stream(self.current_stream)

    def _end_stream(self, stream: EventStream) -> None:
        stream.end()
        exchange = stream.exchange
        if exchange is not None:
            if exchange.mode is _UNDECIDED and not stream.messages:
                exchange.respond(503)
            self.shared.ready[exchange] = None

    def _mark_if_over(self, stream: EventStream) -> None:
        if stream.over and stream.exchange is not None:
            self.shared.ready[stream.exchange] = None


class Session(Conversation):
    """A session. `id` is its `Mcp-Session-Id`; `standalone_stream` carries the rest.

    `legacy_sse`: the HTTP+SSE transport of 2024-11-05, where everything goes to one stream, and the
    session ends with it.
    """

    __slots__ = (
        "cancelled_streams",
        "id",
        "legacy_sse",
        "standalone_stream",
        "stream_by_request",
        "stream_count",
        "streams",
    )

    one_shot = False

    def __init__(
        self,
        shared: EndpointState,
        conn: Connection,
        principal: str,
        rules: HttpRules,
        id: bytes,
        client: str = "",
        *,
        is_sse: bool = False,
    ) -> None:
        super().__init__(shared, conn, principal, rules, client)
        self.id = id
        self.legacy_sse = is_sse
        self.stream_count = 0  # streams that were opened for requests
        self.cancelled_streams: deque[bytes] = deque(maxlen=_CANCELLED_STREAMS)
        self.stream_by_request: dict[RequestId, EventStream] = {}
        self.standalone_stream = EventStream(b"0", owner=self, long_lived=True)
        self.streams: dict[bytes, EventStream] = {b"0": self.standalone_stream}
        conn.has_capacity = self.has_capacity

    @property
    def batches(self) -> bool:
        """True if a body may be a batch."""
        peer = self.conn.peer
        return peer is not None and peer.dialect.batches

    @property
    def in_use(self) -> bool:
        """True if a client is connected to one of the streams."""
        return any(stream.exchange is not None for stream in self.streams.values())

    def process_events(self) -> None:
        super().process_events()
        peer = self.conn.peer
        if peer is not None:
            self.rules = peer.dialect.http  # known since the handshake

    def close(self) -> None:
        """Close the connection, for the endpoint. Requests without a response get an error.

        Clients keep waiting for a request that gets no response, or take its 404 for a fault.
        """
        fault, problem = Fault.INTERNAL, _SESSION_ENDED
        if self.conn.state is State.CLOSING:
            fault, problem = Fault.BUSY, ENDING.message
        peer = self.conn.peer
        answer = t.ErrorData(peer.dialect.codes[fault], problem) if peer is not None else None
        self.conn.close(answer=answer)
        self.shared.dirty[self] = None

    def add_stream(self, ids: list[RequestId], *, batch: bool = False) -> EventStream:
        """Open a stream for the requests `ids`, all of one POST."""
        self.stream_count += 1
        stream = EventStream(b"%d" % self.stream_count, ids, owner=self, batch=batch)
        self.streams[stream.name] = stream
        for id in ids:
            self.stream_by_request[id] = stream
        return stream

    def find_stream(self, last_id: bytes | None) -> tuple[EventStream, int] | ErrorResponse:
        """Return the stream that a GET opens, and the number of the event behind which it begins.

        `last_id` is the request's `Last-Event-ID`. Without one it gets the standalone stream.
        """
        if last_id is None:
            stream = self.standalone_stream
            # What is still retained of the messages that came while no client was connected. None
            # of it was promised to a client, so a gap isn't an error.
            cursor = max(stream.last_taken, stream.last_evicted)
            return (stream, cursor) if stream.exchange is None else OPEN_ALREADY
        name, _, number = last_id.rpartition(b"-")
        found = self.streams.get(name)
        cursor = int(number) if number.isdigit() and len(number) < 19 else -1
        if found is None:
            return STREAM_OVER if name in self.cancelled_streams else EVENTS_GONE
        if not found.reaches(cursor) or (
            found.exchange is not None and found.exchange.mode is _UNDECIDED
        ):
            return EVENTS_GONE
        if found.over and cursor == found.last:
            return STREAM_OVER  # after an empty stream a client would resume again
        return found, cursor

    def attach(self, exchange: Exchange, stream: EventStream, cursor: int) -> None:
        """Send `stream` on `exchange`, for the endpoint, beginning after the event `cursor`."""
        before = stream.exchange
        if before is not None:
            # The client has lost that response, and we have not noticed yet.
            before.abort()
            self.shared.ready[before] = None
        exchange.stream = stream
        exchange.cursor = cursor
        stream.exchange = exchange
        stream.unsent = sum(len(data) for _, data, _ in stream.after(cursor))

    def make_room_for_stream(self, limit: int) -> bool:
        """Return True if there is room for a stream, perhaps after one was forgotten.

        It is the oldest of those that are only retained.
        """
        if len(self.streams) <= limit:
            return True
        for stream in self.streams.values():
            if stream.abandoned:
                self.forget(stream)
                return True
        return False

    def forget(self, stream: EventStream) -> None:
        """Forget a stream that was read to its end, or that no client can resume."""
        self.streams.pop(stream.name, None)
        self.shared.log.forget(stream)

    def release(self, id: RequestId, retry: float | None) -> bool:
        if self.legacy_sse or not self.rules.priming_event:
            return False
        self.process_events()  # what was sent before goes out before
        stream = self.stream_for(id)
        exchange = stream.exchange if stream is not None else None
        if exchange is None or exchange.reply_format == "json":
            return False
        exchange.end_for_reconnect(None if retry is None else round(retry * 1000))
        self.shared.ready[exchange] = None
        self.detach(exchange)
        return True

    def stream_for(self, id: RequestId | None) -> EventStream | None:
        return (
            self.standalone_stream
            if id is None or self.legacy_sse
            else self.stream_by_request.get(id)
        )

    def _response_stream(self, id: RequestId | None) -> EventStream | None:
        if self.legacy_sse:
            return self.standalone_stream
        return (
            self.current_stream
            if id is None
            else self._if_open(self.stream_by_request.pop(id, None))
        )

    def _message_stream(self, message: Outgoing) -> EventStream | None:
        related = message.related
        if related is None or self.legacy_sse:
            return self.standalone_stream
        stream = self._if_open(self.stream_by_request.get(related))
        if (
            stream is not None
            and stream.exchange is not None
            and stream.exchange.reply_format == "json"
        ):
            # The standalone stream should have nothing that is related to a running request
            # (2025-11-25, basic/transports), but a handler would wait forever for a dropped one.
            is_dropped = message.method in _DROPPED_BESIDE_JSON
            return None if is_dropped else self.standalone_stream
        return stream

    def _if_open(self, stream: EventStream | None) -> EventStream | None:
        """Return the stream, or None if its client went before it could resume it."""
        return stream if stream is not None and stream.name in self.streams else None

    def _retain(self, stream: EventStream) -> None:
        if not self.legacy_sse and not stream.ended and stream.name in self.streams:
            self.shared.log.retain(stream, self.shared.now)

    def _detached(self, stream: EventStream, exchange: Exchange) -> None:
        if self.legacy_sse:
            self.finished = True
        elif stream.long_lived or (
            exchange.is_resumable and not stream.ended and (stream.messages or not stream.over)
        ):
            self._retain(stream)
        else:
            self.forget(stream)

    def drop_request(self, id: RequestId) -> None:
        stream = self.stream_by_request.pop(id, None)
        if stream is not None:
            stream.drop_request(id)
            self._mark_if_over(stream)
            if stream.over:
                self.cancelled_streams.append(stream.name)
            if stream.abandoned and not stream.messages:
                self.forget(stream)

    def _end_streams(self) -> None:
        for stream in list(self.streams.values()):
            self._end_stream(stream)
            self.forget(stream)
        self.stream_by_request.clear()


def cancelled_ids(body: ParsedBody) -> list[RequestId]:
    """Return the ids of requests that the notifications in a body cancel."""
    ids: list[RequestId] = []
    for message in body.messages:
        if isinstance(message, BadMessage) or message.method != _CANCELLED:
            continue
        if message.id is not UNSET or message.params is UNSET:
            continue
        try:
            id = _read_cancelled(message.params).request_id
        except InvalidPayload:
            continue  # the connection rejects it
        if id is not None:
            ids.append(id)
    return ids


def target_with_session(target: bytes, id: bytes) -> bytes:
    """Return the target to which a client of 2024-11-05 posts: its stream's, with the id."""
    return b"%b?%b%b" % (target.partition(b"?")[0], _QUERY, id)


def session_in_target(target: bytes) -> bytes | None:
    """Return the session id in a target's query, which is its place in 2024-11-05."""
    _, _, query = target.partition(b"?")
    for part in query.split(b"&") if query else ():
        if part.startswith(_QUERY):
            return part[len(_QUERY) :]
    return None


class OneShots(dict[Conversation, None]):
    """The conversations that aren't sessions, and how many of them each client has.

    `quota` is the number that one client may have.
    """

    __slots__ = ("_by_client", "_limit", "quota")

    def __init__(self, limits: HttpLimits) -> None:
        super().__init__()
        self._by_client: dict[str, int] = {}
        self._limit = limits.sessions
        self.quota = limits.quota(limits.sessions)

    def find_capacity_error(self, client: str) -> ErrorResponse | None:
        """Return why `client` may begin no other conversation, None if it may."""
        if len(self) >= self._limit:
            return TOO_BUSY
        held = self._by_client.get(client, 0)
        return client_too_busy(self.quota) if held >= self.quota else None

    def add(self, conversation: Conversation) -> None:
        """Add a conversation that begins."""
        self[conversation] = None
        client = conversation.client
        if client:
            self._by_client[client] = self._by_client.get(client, 0) + 1

    def discard(self, conversation: Conversation) -> None:
        """Remove a conversation. Do nothing if it was removed before."""
        client = conversation.client
        if self.pop(conversation, self) is None and client:
            left = self._by_client[client] - 1
            if left:
                self._by_client[client] = left
            else:
                del self._by_client[client]


class _ClientCounts(dict[str, int]):
    """How many of something each client has. "" isn't counted: see `client_key`."""

    __slots__ = ()

    def change(self, client: str, more: int) -> None:
        """Count `more` for `client`, which may be negative."""
        count = self.get(client, 0) + more
        if count and client:
            self[client] = count
        else:
            self.pop(client, None)


class Sessions(dict[bytes, "Session"]):
    """The open sessions by id. Call `handle_timeout` at `next_deadline`."""

    __slots__ = ("_by_client", "_limits", "_uninitialized_by_client", "idle", "uninitialized")

    def __init__(self, limits: HttpLimits) -> None:
        super().__init__()
        self._limits = limits
        self._by_client = _ClientCounts()
        self._uninitialized_by_client = _ClientCounts()
        self.uninitialized: TimeoutQueue[Session] = TimeoutQueue(limits.initialize)
        self.idle: TimeoutQueue[Session] = TimeoutQueue(limits.idle)

    def find_capacity_error(self, client: str) -> ErrorResponse | None:
        """Return why `client` may begin no other session, None if it may."""
        limits = self._limits
        if len(self) >= limits.sessions or len(self.uninitialized) >= limits.uninitialized:
            return TOO_MANY_SESSIONS
        quota = limits.quota(limits.sessions)
        if self._by_client.get(client, 0) >= quota:
            return client_sessions_too_many(quota, initialized=True)
        quota = limits.quota(limits.uninitialized)
        if self._uninitialized_by_client.get(client, 0) >= quota:
            return client_sessions_too_many(quota, initialized=False)
        return None

    def add(self, session: Session, now: float) -> None:
        """Add a session that begins."""
        self[session.id] = session
        self._by_client.change(session.client, 1)
        self.uninitialized.add(session, now)
        self._uninitialized_by_client.change(session.client, 1)

    def initialized(self, session: Session, now: float) -> None:
        """Report that the handshake is complete. May be called again."""
        if session in self.uninitialized:
            self.uninitialized.discard(session)
            self._uninitialized_by_client.change(session.client, -1)
            self.idle.add(session, now)

    def mark_activity(self, session: Session, now: float) -> None:
        """Restart the idle timeout: the client has sent a request."""
        if session not in self.uninitialized:
            self.idle.add(session, now)

    def end(self, session: Session) -> None:
        """Remove a session, and close it."""
        if self.pop(session.id, None) is not None:
            self._by_client.change(session.client, -1)
        if session in self.uninitialized:
            self.uninitialized.discard(session)
            self._uninitialized_by_client.change(session.client, -1)
        self.idle.discard(session)
        session.close()

    def next_deadline(self) -> float | None:
        """Return when to call `handle_timeout`, None for never."""
        first, second = self.uninitialized.next_deadline(), self.idle.next_deadline()
        if first is None or second is None:
            return second if first is None else first
        return min(first, second)

    def handle_timeout(self, now: float) -> None:
        """End the sessions that have expired."""
        for session in self.uninitialized.pop_expired(now):
            self._uninitialized_by_client.change(session.client, -1)
            self.end(session)
        for session in self.idle.pop_expired(now):
            if session.in_use:
                self.idle.add(session, now)
            else:
                self.end(session)
