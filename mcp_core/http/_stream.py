"""A stream of messages as a numbered log, and what is kept of such logs for clients that come back.

A response that streams is a cursor in a log. So a client that lost it takes it up again by a new response with an older cursor
(`Last-Event-ID`), and every message is heard once and in order.

Rules of this file:

1. What is kept has a window: so many events, so much memory, so much time. What has left the window is gone, and who asks for it
   is told so; nothing is skipped in silence.
2. A message that no response has taken is not thrown away as long as one is there to take it. How much may wait is the
   exchange's to say.
3. Memory is counted as it is used: a short message, and a stream with a few of them, cost more than their bytes.

It refuses to know HTTP, and which revision wants what. Source: basic/transports, Resumability and Redelivery.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, Protocol

from ._waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcp_core.types import RequestId

    from ._exchange import Exchange
    from ._options import HttpLimits

__all__ = ["EventLog", "Stream"]


_EMPTY: Final[deque[tuple[int, bytes, int]]] = deque()  # of the many that never have a message
# Bytes that a stream, and each of its messages, take beside the message itself.
_STREAM: Final = 1_500
_MESSAGE: Final = 150


class Owner(Protocol):
    """Whose stream it is."""

    def forget(self, stream: Stream) -> None: ...


class Stream:
    """The messages of one POST, or a session's own, in order.

    `name` is unique in its session. `pending`: requests whose answers are still to come on it; a `lasting` stream has none and
    ends with its session. `batch`: its answers belong together. `noted`: something was said before the answers. `unsent`: bytes
    that `exchange`, the response that carries it now, has not taken. `counted`: what an `EventLog` holds of it, in bytes of memory.
    `last` is the number of the newest message, `taken` that of the newest one which a response has taken, `evicted` that of the
    newest one which is gone.
    """

    __slots__ = (
        "batch",
        "bytes",
        "counted",
        "ended",
        "evicted",
        "exchange",
        "last",
        "lasting",
        "log",
        "name",
        "noted",
        "owner",
        "pending",
        "taken",
        "unsent",
    )

    def __init__(
        self,
        name: bytes,
        pending: Iterable[RequestId] = (),
        *,
        owner: Owner | None = None,
        lasting: bool = False,
        batch: bool = False,
    ) -> None:
        self.name = name
        self.owner = owner
        self.pending = set(pending)
        self.lasting = lasting
        self.batch = batch
        self.log = _EMPTY  # number, message, code of an error that answers
        self.last = self.taken = self.evicted = 0
        self.bytes = self.unsent = self.counted = 0
        self.noted = self.ended = False
        self.exchange: Exchange | None = None

    def __repr__(self) -> str:
        return f"<Stream {self.name.decode()}, {self.last} messages, {len(self.pending)} pending>"

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.ended or not (self.pending or self.lasting)

    @property
    def abandoned(self) -> bool:
        """Whether nothing more will come, and no response is there that could take what has."""
        return self.over and self.exchange is None

    def note(self, data: bytes) -> None:
        """A message that is no answer."""
        self.noted = True
        self._put(data, 0)

    def answer(self, data: bytes, id: RequestId | None, code: int) -> None:
        """The answer to `id`; `code` is that of an error, 0 if it is none."""
        if id is not None:
            self.pending.discard(id)
        self._put(data, code)

    def drop(self, id: RequestId) -> None:
        """The request `id` gets no answer."""
        self.pending.discard(id)

    def _put(self, data: bytes, code: int) -> None:
        self.last += 1
        if self.log is _EMPTY:
            self.log = deque()
        self.log.append((self.last, data, code))
        size = len(data)
        self.bytes += size
        self.unsent += size

    def after(self, cursor: int) -> Iterator[tuple[int, bytes, int]]:
        """The messages behind number `cursor`."""
        log = self.log
        return (log[place] for place in range(cursor - self.last, 0))

    def reaches(self, cursor: int) -> bool:
        """Whether all messages behind number `cursor` are still here."""
        return self.evicted <= cursor <= self.last

    def evict(self) -> bool:
        """Forget the oldest message, unless there is none, or a response is there that has not taken it."""
        exchange = self.exchange
        if not self.log or (exchange is not None and exchange.cursor < self.log[0][0]):
            return False
        self.evicted, data, _ = self.log.popleft()
        self.bytes -= len(data)
        return True

    def clear(self) -> None:
        """Forget all messages, but those that a response is there to take."""
        exchange = self.exchange
        if exchange is None or exchange.cursor == self.last:
            self.log = _EMPTY
            self.evicted, self.bytes = self.last, 0
        else:
            while self.evict():
                pass


class _Shelf:
    """What is kept of the streams of one owner, oldest first, and how much that is."""

    __slots__ = ("bytes", "streams")

    def __init__(self) -> None:
        self.streams: OrderedDict[Stream, None] = OrderedDict()
        self.bytes = 0


class EventLog:
    """What is kept of streams that can be taken up again, within `limits`. `bytes` is the memory that it takes."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._streams: Waiting[Stream] = Waiting(limits.event_age)
        self._shelves: dict[Owner | None, _Shelf] = {}
        self.bytes = 0

    def __repr__(self) -> str:
        return f"<EventLog of {len(self._streams)} streams, {self.bytes} bytes>"

    def keep(self, stream: Stream, now: float) -> None:
        """What `stream` has now is to be kept for a while. May forget older messages, of any stream."""
        limits = self._limits
        shelf = self._shelves.get(stream.owner)
        if shelf is None:
            shelf = self._shelves[stream.owner] = _Shelf()
        shelf.streams[stream] = None
        shelf.streams.move_to_end(stream)
        self._streams.add(stream, now)
        while len(stream.log) > limits.events and stream.evict():
            pass
        self._count(stream, shelf)
        if shelf.bytes > limits.session_bytes:
            self._make_room(shelf.streams, lambda: shelf.bytes <= limits.session_bytes)
        if self.bytes > limits.all_bytes:
            self._make_room(self._streams, lambda: self.bytes <= limits.all_bytes)

    def forget(self, stream: Stream) -> None:
        """Keep nothing of `stream` any more."""
        shelf = self._shelves.get(stream.owner)
        if shelf is None or stream not in shelf.streams:
            return
        stream.clear()
        self._streams.discard(stream)
        self.bytes -= stream.counted
        shelf.bytes -= stream.counted
        stream.counted = 0
        del shelf.streams[stream]
        if not shelf.streams:
            del self._shelves[stream.owner]

    def next_deadline(self) -> float | None:
        """When the oldest is too old."""
        return self._streams.next_deadline()

    def expire(self, now: float) -> None:
        """Forget what is too old."""
        for stream in self._streams.pop_expired(now):
            if stream.exchange is not None and stream.unsent:
                self._streams.add(stream, now)  # somebody is there, and has still to take it
            else:
                self._drop(stream)

    def _make_room(self, streams: Iterable[Stream], enough: Callable[[], bool]) -> None:
        """Forget the oldest of `streams` until it is enough."""
        empty = []
        for stream in streams:
            shelf = self._shelves[stream.owner]
            while not enough() and stream.evict():
                self._count(stream, shelf)
            if not stream.log:
                empty.append(stream)
            if enough():
                break
        for stream in empty:
            self._drop(stream)

    def _drop(self, stream: Stream) -> None:
        self.forget(stream)
        if stream.abandoned and stream.owner is not None:
            stream.owner.forget(stream)

    def _count(self, stream: Stream, shelf: _Shelf) -> None:
        held = len(stream.log)
        size = stream.bytes + _STREAM + held * _MESSAGE if held else 0
        more = size - stream.counted
        stream.counted = size
        shelf.bytes += more
        self.bytes += more
