"""A conversation as HTTP carries it: a connection, and which of its messages goes out on which stream.

There are two kinds. A session lasts over many requests and has several streams; what is said without a request it tells on a
stream of its own, for which the client asks by GET. A single exchange lasts as long as one request, and has one stream.

Rules of this file:

1. A message goes to one stream: an answer to that of its request, what was said for a request too, the rest to the session's own
   (2025-11-25, basic/transports, Multiple Connections).
2. Nobody waits in here. Who says something on `conn` outside of an event calls `touch`, and the endpoint does the rest.
3. What becomes of a stream that no response carries any more is decided here, in `let_go`, and nowhere else: it is kept for a client
   who knows how to come back, and else it is nobody's.

It refuses to know how a stream becomes a response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core._events import NEED_DATA, PAUSED, ConnectionClosed, MessageRejected, RequestCancelled
from mcp_core._outbox import Kind

from ._exchange import Mode
from ._stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core._connection import Connection
    from mcp_core._dialects import HttpRules
    from mcp_core._events import Event
    from mcp_core._outbox import Outgoing
    from mcp_core.types import RequestId

    from ._endpoint import Endpoint

__all__ = ["Conversation", "Session"]

_ANSWER: Final = Kind.ANSWER
_TELLING: Final = frozenset((ConnectionClosed, MessageRejected, RequestCancelled))
_UNDECIDED, _STREAM = Mode.UNDECIDED, Mode.STREAM
# Bytes that wait on a stream above which no change is told on it: it is told once they are gone.
_ROOM: Final = 16 * 1024
# The capacity of a pipe on Linux: what is queued above it waits for the client, not for us.
_HIGH_WATER: Final = 64 * 1024


class Conversation:
    """One exchange by itself. `service` is the driver's own; `principal` who asks, as authenticated, "" where nobody is.

    `conn.close` is for the endpoint alone. `ConnectionClosed` is the last event.
    """

    __slots__ = ("_rules", "conn", "current", "endpoint", "principal", "rejected", "service", "take")

    id = b""
    is_sse = False
    gone = 503  # the status of what can no longer be answered

    def __init__(self, endpoint: Endpoint, conn: Connection, principal: str, rules: HttpRules) -> None:
        self.endpoint = endpoint
        self.conn = conn
        self.principal = principal
        self._rules = rules
        self.service: Any = None
        self.take: Callable[[Event], object] | None = None  # of whoever has his events from `Site.pump`
        self.current: Stream | None = None  # the stream of what arrives just now, or of all
        self.rejected = False  # something that arrived was no message

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self.conn!r}>"

    @property
    def rules(self) -> HttpRules:
        """What the revision that is spoken wants of HTTP."""
        return self._rules

    def touch(self) -> None:
        """Something was said on `conn`."""
        self.endpoint.dirty[self] = None

    def queued(self, id: RequestId | None) -> int:
        """Bytes that wait for the client who made request `id`, or (None) on the session's own stream. What waits for nobody, but
        is kept until somebody comes back, does not count."""
        stream = self.stream_for(id)
        return stream.unsent if stream is not None and stream.exchange is not None else 0

    def full(self, id: RequestId | None) -> bool:
        """Whether so much waits for the client who made request `id` that who sends without being asked has to wait."""
        return self.queued(id) > _HIGH_WATER

    def has_room(self, id: RequestId | None) -> bool:
        """Whether a change can be told now, to who listens by request `id` or to the session."""
        stream = self.stream_for(id)
        return stream is not None and stream.exchange is not None and stream.unsent < _ROOM

    def release(self, id: RequestId, retry: float | None) -> bool:
        """As `Endpoint.release`."""
        return self.endpoint.release(self, id, retry=retry)

    def stream_for(self, id: RequestId | None) -> Stream | None:
        """The stream on which something for request `id` is told, None if nobody would hear it."""
        return self.current

    def close(self) -> None:
        """End it. What runs is cancelled, and what was said is still told where somebody hears it."""
        self.endpoint.alone.pop(self, None)
        self.conn.close()
        self.touch()

    # -- Where messages go ---------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Take the events to the endpoint, and what is queued to its streams."""
        conn, endpoint = self.conn, self.endpoint
        while True:
            event = conn.next_event()
            if event is NEED_DATA:
                self._route_all()
                return
            if event is PAUSED:
                # Over HTTP nobody can stop reading: what is too much is refused. That is what this timer is for.
                self._route_all()
                conn.handle_timeout(endpoint.now)
                continue
            endpoint.events.append((self, event))
            if type(event) in _TELLING:
                self._note(event)
                if type(event) is ConnectionClosed:
                    return

    def _note(self, event: Event) -> None:
        """What an event means for the streams."""
        if isinstance(event, MessageRejected):
            self.rejected = True
            return
        self._route_all()
        if isinstance(event, RequestCancelled):
            self.drop(event.id)  # what was asked for its sake is withdrawn where it was asked
        else:
            self._end()

    def _route_all(self) -> None:
        for message in self.conn.messages_to_send():
            self._route(message)

    def _route(self, message: Outgoing) -> None:
        endpoint = self.endpoint
        answers = message.kind is _ANSWER
        stream = self._stream_of_answer(message.id) if answers else self._stream_of_note(message)
        if stream is None:
            return
        exchange = stream.exchange
        if (
            exchange is not None
            and stream.unsent > endpoint.options.limits.queued
            and (stream.lasting or not answers)  # of answers there are no more than requests
        ):
            endpoint.break_off(exchange)
            exchange = None
        if answers:
            stream.answer(message.data, message.id, message.error)
        else:
            stream.note(message.data)
        if exchange is None:
            self._keep(stream)
        elif exchange.mode is _STREAM or stream.noted:
            self._keep(stream)
            endpoint.ready[exchange] = None
        elif stream.over:
            endpoint.ready[exchange] = None

    def _stream_of_answer(self, id: RequestId | None) -> Stream | None:
        return self.current

    def _stream_of_note(self, message: Outgoing) -> Stream | None:
        stream = self.current
        exchange = stream.exchange if stream is not None else None
        return stream if exchange is not None and exchange.reply != "json" else None

    def _keep(self, stream: Stream) -> None:
        """Its newest message goes to no response yet, or to one that streams."""
        if stream.abandoned:
            self.close()

    # -- How streams end -----------------------------------------------------------------------------------------------------

    def let_go(self, stream: Stream, *, resumable: bool) -> None:
        """No response carries `stream` any more. `resumable`: its client knows how to come back for the rest."""
        if self.rules.cancels or stream.over:
            self.close()

    def drop(self, id: RequestId) -> None:
        """The request `id` gets no answer."""
        stream = self.current
        assert stream is not None
        stream.drop(id)
        self._mark(stream)

    def _end(self) -> None:
        """The conversation is over."""
        assert self.current is not None
        self._end_stream(self.current)

    def _end_stream(self, stream: Stream) -> None:
        stream.ended = True
        exchange = stream.exchange
        if exchange is not None:
            if exchange.mode is _UNDECIDED and not stream.log:
                exchange.respond(self.gone)
            self.endpoint.ready[exchange] = None

    def _mark(self, stream: Stream) -> None:
        if stream.over and stream.exchange is not None:
            self.endpoint.ready[stream.exchange] = None


class Session(Conversation):
    """A session. `id` is what its client shows; `own` the stream for what belongs to no request.

    `is_sse`: it is one of 2024-11-05, in which everything is told on one stream, and which ends with that.
    """

    __slots__ = ("by_id", "id", "is_sse", "names", "own", "streams")

    gone = 404

    def __init__(
        self,
        endpoint: Endpoint,
        conn: Connection,
        principal: str,
        rules: HttpRules,
        id: bytes,
        *,
        is_sse: bool = False,
    ) -> None:
        super().__init__(endpoint, conn, principal, rules)
        self.id = id
        self.is_sse = is_sse
        self.names = 0
        self.by_id: dict[RequestId, Stream] = {}
        self.own = Stream(b"0", owner=self, lasting=True)
        self.streams: dict[bytes, Stream] = {b"0": self.own}
        conn.has_room = self.has_room

    @property
    def batches(self) -> bool:
        """Whether a body may be an array."""
        peer = self.conn.peer
        return peer is not None and peer.dialect.batches

    @property
    def rules(self) -> HttpRules:
        peer = self.conn.peer
        return peer.dialect.http if peer is not None else self._rules

    @property
    def in_use(self) -> bool:
        """Whether a client is there that waits for something."""
        return any(stream.exchange is not None for stream in self.streams.values())

    def add_stream(self, ids: list[RequestId], *, batch: bool = False) -> Stream:
        """A stream for the requests `ids`, all of one POST."""
        self.names += 1
        stream = Stream(b"%d" % self.names, ids, owner=self, batch=batch)
        self.streams[stream.name] = stream
        for id in ids:
            self.by_id[id] = stream
        return stream

    def make_room(self) -> bool:
        """Forget the oldest stream that has ended, and is kept for a client who may come back. Whether there was one."""
        for stream in self.streams.values():
            if stream.abandoned:
                self.forget(stream)
                return True
        return False

    def forget(self, stream: Stream) -> None:
        """The stream was read to its end, or nobody can come back for it."""
        self.streams.pop(stream.name, None)
        self.endpoint.log.forget(stream)

    def stream_for(self, id: RequestId | None) -> Stream | None:
        return self.own if id is None or self.is_sse else self.by_id.get(id)

    def _stream_of_answer(self, id: RequestId | None) -> Stream | None:
        if self.is_sse:
            return self.own
        return self.current if id is None else self._kept(self.by_id.pop(id, None))

    def _stream_of_note(self, message: Outgoing) -> Stream | None:
        related = message.related
        if related is None or self.is_sse:
            return self.own
        stream = self._kept(self.by_id.get(related))
        if stream is not None and stream.exchange is not None and stream.exchange.reply == "json":
            return self.own
        return stream

    def _kept(self, stream: Stream | None) -> Stream | None:
        """The stream, unless its client went before it knew how to come back."""
        return stream if stream is not None and stream.name in self.streams else None

    def _keep(self, stream: Stream) -> None:
        if not self.is_sse and not stream.ended and stream.name in self.streams:
            self.endpoint.log.keep(stream, self.endpoint.now)

    def let_go(self, stream: Stream, *, resumable: bool) -> None:
        if self.is_sse:
            self.endpoint.sessions.end(self)
        elif stream.lasting or (resumable and not stream.ended and (stream.log or not stream.over)):
            self._keep(stream)
        else:
            self.forget(stream)

    def drop(self, id: RequestId) -> None:
        stream = self.by_id.pop(id, None)
        if stream is not None:
            stream.drop(id)
            self._mark(stream)
            if stream.abandoned and not stream.log:
                self.forget(stream)

    def _end(self) -> None:
        for stream in list(self.streams.values()):
            self._end_stream(stream)
            self.forget(stream)
        self.by_id.clear()
