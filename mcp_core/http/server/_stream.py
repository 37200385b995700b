"""The messages of an SSE stream as a numbered log, and the logs that are retained for clients.

A streamed response is a cursor in a log. A client that lost its connection resumes the stream by a
new response with an older cursor (`Last-Event-ID`), so it gets every message once and in order.

1. Retention is limited by number of events, bytes and age. A client that asks for an event which is
   no longer retained gets an error; no event is skipped silently.
2. A message that a connected response hasn't sent yet is never evicted. How much may wait there
   is limited elsewhere, by `HttpLimits.queued`.
3. Memory is counted as it is used: a short message, and a stream with a few of them, cost more than
   their bytes.

Source: basic/transports, Resumability and Redelivery.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import UNSET

from mcp_core.protocol.jsonrpc._codec import decode, encode, encode_error
from mcp_core.types import ErrorData

from ._timeouts import TimeoutQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcp_core.http.wire._messages import ErrorResponse
    from mcp_core.types import RequestId

    from ._exchange import Exchange
    from ._options import HttpLimits

__all__ = ["EventLog", "EventStream"]

_NO_SCOPES: Final[frozenset[str]] = frozenset()
# Bytes of a response from which it is worth dropping.
_LONG: Final = 64 * 1024
# The request has run, so this isn't an error after which it may simply be sent again.
_UNREAD: Final = ErrorData(
    -32603,
    "the response was dropped, because this connection has too much of unread responses: "
    "read them, or send fewer requests at once",
)
_EMPTY: Final[deque[tuple[int, bytes, int]]] = deque()  # shared by all streams without a message
# Estimated bytes of memory of a stream with messages, and of each message beside its own bytes.
_STREAM: Final = 1_500
_MESSAGE: Final = 150


class StreamOwner(Protocol):
    """The session that a stream belongs to."""

    def forget(self, stream: EventStream) -> None: ...


class EventStream:
    """The messages of one POST, or of a session's standalone stream, in order.

    - `name`: unique in its session.
    - `needed_scopes`: the scopes that a token needs to read it, beside those that every request
      needs.
    - `rejection`: the status and headers of its response if that is an error, None for the usual.
    - `pending`: requests whose responses are still to come on it.
    - `long_lived`: True for a standalone stream. It has no requests and ends with its session.
    - `batch`: its responses answer one batch, and leave together.
    - `has_messages_before_response`: a message came before the responses.
    - `over`: nothing more will come.
    - `exchange`: the response that carries the stream now.
    - `unsent`: bytes that this response hasn't sent.
    - `last`, `last_taken`, `last_evicted`: numbers of the newest message, of the newest one that a
      response has sent, and of the newest one that was evicted.
    - `bytes`, `counted_bytes`: the messages' bytes, and the memory that an `EventLog` counts for
      them.
    """

    __slots__ = (
        "batch",
        "bytes",
        "counted_bytes",
        "ended",
        "exchange",
        "has_messages_before_response",
        "last",
        "last_evicted",
        "last_taken",
        "long_lived",
        "messages",
        "name",
        "needed_scopes",
        "over",
        "owner",
        "pending",
        "rejection",
        "unsent",
    )

    def __init__(
        self,
        name: bytes,
        pending: Iterable[RequestId] = (),
        *,
        owner: StreamOwner | None = None,
        long_lived: bool = False,
        batch: bool = False,
    ) -> None:
        self.name = name
        self.owner = owner
        self.needed_scopes: frozenset[str] = _NO_SCOPES
        self.rejection: ErrorResponse | None = None
        self.pending = set(pending)
        self.long_lived = long_lived
        self.batch = batch
        # Number, message, and the code if it is an error response (0 if not).
        self.messages = _EMPTY
        self.last = self.last_taken = self.last_evicted = 0
        self.bytes = self.unsent = self.counted_bytes = 0
        self.has_messages_before_response = False
        self.ended = False  # by `end`, even if requests are pending
        self.over = not (self.pending or long_lived)
        self.exchange: Exchange | None = None

    def __repr__(self) -> str:
        return (
            f"<EventStream {self.name.decode()}, {self.last} messages, {len(self.pending)} pending>"
        )

    @property
    def abandoned(self) -> bool:
        """True if nothing more will come, and no response is connected to take what has come."""
        return self.over and self.exchange is None

    def add_message(self, data: bytes) -> None:
        """Append a message that isn't a response."""
        self.has_messages_before_response = True
        self._append(data, 0)

    def add_response(self, data: bytes, id: RequestId | None, code: int) -> None:
        """Append the response to request `id`; `code` is an error's code, 0 for a result."""
        if id is not None:
            self.pending.discard(id)
            self.over = self.ended or not (self.pending or self.long_lived)
        self._append(data, code)

    def drop_request(self, id: RequestId) -> None:
        """Stop waiting for the response to request `id`: there will be none."""
        self.pending.discard(id)
        self.over = self.ended or not (self.pending or self.long_lived)

    def end(self) -> None:
        """End the stream, even with requests pending: its session has ended."""
        self.ended = self.over = True

    def _append(self, data: bytes, code: int) -> None:
        self.last += 1
        if self.messages is _EMPTY:
            self.messages = deque()
        self.messages.append((self.last, data, code))
        size = len(data)
        self.bytes += size
        self.unsent += size

    def drop_responses(self, cursor: int) -> None:
        """Replace long responses with numbers above `cursor` by errors."""
        messages: deque[tuple[int, bytes, int]] = deque()
        for number, data, code in self.messages:
            if number > cursor and len(data) > _LONG:
                data, code = _dropped(data, code)
            messages.append((number, data, code))
        self.messages = messages
        self.bytes = sum(len(data) for _, data, _ in messages)
        self.unsent = sum(len(data) for number, data, _ in messages if number > cursor)

    def after(self, cursor: int) -> Iterator[tuple[int, bytes, int]]:
        """Iterate over the messages with numbers above `cursor`."""
        log = self.messages
        return (log[place] for place in range(cursor - self.last, 0))

    def reaches(self, cursor: int) -> bool:
        """Return True if all messages with numbers above `cursor` are still here."""
        return self.last_evicted <= cursor <= self.last

    def evict(self) -> bool:
        """Remove the oldest message. Return False if it is absent or a response needs it."""
        exchange = self.exchange
        if not self.messages or (exchange is not None and exchange.cursor < self.messages[0][0]):
            return False
        self.last_evicted, data, _ = self.messages.popleft()
        self.bytes -= len(data)
        return True

    def clear(self) -> None:
        """Remove all messages, but for those that a connected response hasn't sent."""
        exchange = self.exchange
        if exchange is None or exchange.cursor == self.last:
            self.messages = _EMPTY
            self.last_evicted, self.bytes = self.last, 0
        else:
            while self.evict():
                pass


def _dropped(data: bytes, code: int) -> tuple[bytes, int]:
    """Return an error response instead of a response, and its code. Others stay as they are."""
    message = decode(data)
    if message.method is not UNSET or message.id is UNSET:
        return data, code
    return encode_error(message.id, encode(_UNREAD)), _UNREAD.code


class _RetainedStreams:
    """The retained streams of one session, oldest first, and the memory that they take."""

    __slots__ = ("bytes", "streams")

    def __init__(self) -> None:
        self.streams: OrderedDict[EventStream, None] = OrderedDict()
        self.bytes = 0


class EventLog:
    """The streams that are retained so that clients can resume them, within `limits`.

    `bytes` is the memory that they take, as it is estimated here.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._expiry: TimeoutQueue[EventStream] = TimeoutQueue(limits.event_age)
        self._retained: dict[StreamOwner | None, _RetainedStreams] = {}
        self.bytes = 0

    def __repr__(self) -> str:
        return f"<EventLog of {len(self._expiry)} streams, {self.bytes} bytes>"

    def retain(self, stream: EventStream, now: float) -> None:
        """Retain what `stream` holds, and restart its age. Evict older messages if need be."""
        limits = self._limits
        retained = self._retained.get(stream.owner)
        if retained is None:
            retained = self._retained[stream.owner] = _RetainedStreams()
        retained.streams[stream] = None
        retained.streams.move_to_end(stream)
        self._expiry.add(stream, now)
        while len(stream.messages) > limits.events and stream.evict():
            pass
        self._count(stream, retained)
        if retained.bytes > limits.session_bytes:
            self._evict_until(retained.streams, lambda: retained.bytes <= limits.session_bytes)
        if self.bytes > limits.all_bytes:
            self._evict_until(self._expiry, lambda: self.bytes <= limits.all_bytes)

    def forget(self, stream: EventStream) -> None:
        """Retain nothing of `stream` any more. Do nothing if it isn't retained."""
        retained = self._retained.get(stream.owner)
        if retained is None or stream not in retained.streams:
            return
        stream.clear()
        self._expiry.discard(stream)
        self.bytes -= stream.counted_bytes
        retained.bytes -= stream.counted_bytes
        stream.counted_bytes = 0
        del retained.streams[stream]
        if not retained.streams:
            del self._retained[stream.owner]

    def next_deadline(self) -> float | None:
        """Return the time at which the oldest stream expires, or None."""
        return self._expiry.next_deadline()

    def expire(self, now: float) -> None:
        """Forget the streams that are too old."""
        for stream in self._expiry.pop_expired(now):
            if stream.exchange is not None and stream.unsent:
                self._expiry.add(stream, now)  # a connected client has still to take it
            else:
                self._discard(stream)

    def _evict_until(self, streams: Iterable[EventStream], enough: Callable[[], bool]) -> None:
        """Evict the oldest messages of `streams` until `enough` returns True."""
        empty = []
        for stream in streams:
            retained = self._retained[stream.owner]
            while not enough() and stream.evict():
                self._count(stream, retained)
            if not stream.messages:
                empty.append(stream)
            if enough():
                break
        for stream in empty:
            self._discard(stream)

    def _discard(self, stream: EventStream) -> None:
        self.forget(stream)
        if stream.abandoned and stream.owner is not None:
            stream.owner.forget(stream)

    def _count(self, stream: EventStream, retained: _RetainedStreams) -> None:
        """Bring the counters up to date with what `stream` holds."""
        held = len(stream.messages)
        size = stream.bytes + _STREAM + held * _MESSAGE if held else 0
        more = size - stream.counted_bytes
        stream.counted_bytes = size
        retained.bytes += more
        self.bytes += more
